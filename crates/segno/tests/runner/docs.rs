//! The pages in `docs/` that the program writes itself. `SEGNO_BLESS=1` writes them anew.

use std::fs;
use std::path::PathBuf;

use segno::config::env;
use segno::exit::ExitCode;

fn pages() -> [(&'static str, String); 4] {
    let made = "<!-- Made by the program itself; SEGNO_BLESS=1 cargo test -p segno writes it anew. -->\n\n";
    let cli =
        segno::cli::markdown().replacen("# The command line\n", &format!("# The command line\n\n{made}"), 1);
    let config = format!(
        "# Configuration\n\n{made}This is the whole file of defaults, as `segno config show --default` prints it.\n\n```toml\n{}```\n",
        segno::config::DEFAULT
    );
    let variables = format!("# Environment variables\n\n{made}{}", env::markdown());
    let exits = format!(
        "# Exit codes\n\n{made}Scripts may rely on these numbers: a number never changes its meaning.\n\n{}",
        ExitCode::markdown()
    );
    [
        ("cli.md", cli.replace("\n\n\n", "\n\n")),
        ("config.md", config),
        ("env.md", variables),
        ("exit-codes.md", exits),
    ]
}

/// Rows of `docs/sources.md` name tests as `file::name`, below `crates/`.
#[test]
fn every_test_named_in_the_sources_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/sources.md")).unwrap();
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what it says |")).collect();
    let (mut shown, mut differ, mut not_yet) = (0, 0, 0);
    for row in &rows {
        let where_shown = row.trim_end_matches(" |").rsplit_once(" | ").unwrap().1;
        match where_shown {
            cell if cell.contains("**not yet**") => not_yet += 1,
            cell if cell.contains("*differs*") => differ += 1,
            _ => shown += 1,
        }
        let tests: Vec<(&str, &str)> =
            where_shown.split('`').filter_map(|piece| piece.split_once(".rs::")).collect();
        assert!(!tests.is_empty() || where_shown.contains('*'), "nothing shows this: {row}");
        for (file, name) in tests {
            let source = fs::read_to_string(root.join("crates").join(format!("{file}.rs")))
                .unwrap_or_else(|why| panic!("{file}.rs: {why}: {row}"));
            let defined = source
                .split(&format!("fn {name}"))
                .skip(1)
                .any(|rest| rest.starts_with(|c: char| !c.is_alphanumeric() && c != '_'))
                || source.lines().any(|line| line.trim().trim_end_matches(',') == name);
            assert!(defined, "{file}.rs has no test {name}: {row}");
        }
    }
    let counted =
        format!("{} rows: {shown} shown, {differ} differ on purpose, {not_yet} not yet.", rows.len());
    assert!(page.contains(&counted), "docs/sources.md has {counted}");
}

/// `CONTRIBUTING.md` sends people to files; what is named from the root on has to be there.
#[test]
fn every_path_in_contributing_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let begins = ["crates/", "docs/", "scripts/", "fuzz/", ".config/"];
    let paths =
        page.split('`').skip(1).step_by(2).filter(|piece| begins.iter().any(|one| piece.starts_with(one)));
    let missing: Vec<&str> = paths
        // `a/{b,c}.rs` stands for several files of a folder.
        .map(|path| path.split('{').next().unwrap())
        .filter(|path| !root.join(path).exists())
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn the_pages_say_what_the_program_does() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let bless = env::Environment::capture().get("SEGNO_BLESS") == Some("1");
    for (name, text) in pages() {
        let path = folder.join(name);
        if bless {
            fs::write(&path, &text).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(there == text, "docs/{name} is not what the program says; SEGNO_BLESS=1 writes it anew");
    }
}
