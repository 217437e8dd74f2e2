//! Faces are thin: what they know of the record goes through the engine, and the engine talks to nobody by itself.

use std::path::Path;
use std::path::PathBuf;

fn sources(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(below).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Lines of the sources below that have one of these words.
fn lines_with(below: &Path, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in sources(below) {
        let text = std::fs::read_to_string(&path).unwrap();
        let bad = text.lines().enumerate().filter(|(_, line)| words.iter().any(|word| line.contains(word)));
        found.extend(bad.map(|(number, line)| format!("{}:{}: {line}", path.display(), number + 1)));
    }
    found
}

#[test]
fn the_command_line_knows_no_store() {
    let segno = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(lines_with(&segno.join("src"), &["segno_store", "engine::store"]), Vec::<String>::new());
    let manifest: toml::Table = std::fs::read_to_string(segno.join("Cargo.toml")).unwrap().parse().unwrap();
    let dependencies = manifest["dependencies"].as_table().unwrap();
    assert!(!dependencies.contains_key("segno-store"), "only tests may open a store themselves");
}

#[test]
fn the_engine_has_no_terminal_and_reads_no_environment() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src");
    let words = ["io::stdin", "io::stdout", "env::var", "env::home_dir", "env::args", "env::current_dir"];
    // Tests name the moment at which a debug build dies.
    let found = lines_with(&engine, &words);
    let found: Vec<String> = found.into_iter().filter(|line| !line.contains("src/fault.rs")).collect();
    assert_eq!(found, Vec::<String>::new());
}
