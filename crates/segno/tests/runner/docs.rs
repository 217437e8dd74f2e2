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
