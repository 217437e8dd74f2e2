use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::symlink;

use crate::common::TestEnv;

const PROJECT: &str =
    "[ui]\npager = \"evil\"\ntime = \"iso\"\n[session]\nbudget = 5\n[store]\nurl = \"postgres://evil/x\"\n";

fn project() -> TestEnv {
    let env = TestEnv::new();
    env.write("project/.segno/config.toml", PROJECT);
    env.write("project/.segno/workflows/tdd.toml", "# phases\n");
    env
}

#[test]
fn the_whole_story() {
    let env = project();
    let before = env.show_all(&[
        &["config", "get", "ui.pager"],
        &["trust", "--show"],
        &["trust", "--list"],
        &["trust"],
    ]);
    env.trust();
    let trusted = env.show_all(&[&["config", "get", "ui.pager"], &["trust", "--show"], &["trust", "--list"]]);
    env.write("project/.segno/prompts/new.md", "do something else\n");
    let changed = env.show_all(&[&["config", "get", "ui.pager"], &["trust", "--list"]]);
    env.trust();
    let revoked = env.show_all(&[&["trust", "--revoke"], &["trust", "--revoke"], &["trust", "--list"]]);
    insta::assert_snapshot!("trust_story", [before, trusted, changed, revoked].join("\n"));
}

#[test]
fn the_whole_story_for_programs() {
    let env = project();
    let before = env.show(&["--json", "trust", "--show"]);
    env.trust();
    let trusted = env.show_all(&[&["--json", "trust", "--list"], &["--json", "trust", "--revoke"]]);
    insta::assert_snapshot!("trust_json", [before, trusted].join("\n"));
}

#[test]
fn a_trusted_project_still_cannot_set_the_store() {
    let env = project();
    env.trust();
    let said = env.run(&["config", "get", "store.url"]);
    assert_eq!(said.stdout, "\n");
    assert!(said.stderr.contains("store.url is ignored"), "{}", said.stderr);
}

#[test]
fn a_planted_link() {
    let env = project();
    env.trust();
    env.write("secret", "secret");
    fs::create_dir_all(env.path("project/.segno/prompts")).unwrap();
    symlink(env.path("secret"), env.path("project/.segno/prompts/x.md")).unwrap();
    let prompt = env.show_all(&[&["config", "get", "ui.pager"], &["trust", "--show"]]);
    let refused = env.on_terminal("$SEGNO trust", "").unwrap();
    assert_eq!(refused.status.code(), Some(5), "{}", String::from_utf8_lossy(&refused.stdout));
    fs::remove_file(env.path("project/.segno/config.toml")).unwrap();
    env.write("outside.toml", "[ls]\nlimit = 3\n");
    symlink(env.path("outside.toml"), env.path("project/.segno/config.toml")).unwrap();
    let config =
        env.show_all(&[&["config", "get", "ls.limit"], &["config", "set", "ls.limit", "4", "--in-project"]]);
    insta::assert_snapshot!("trust_link", [prompt, config].join("\n"));
    assert_eq!(env.read("outside.toml"), "[ls]\nlimit = 3\n");
}

#[test]
fn a_damaged_list_is_put_aside() {
    let env = project();
    env.trust();
    fs::write(env.path("data/segno/trust.json"), "{ half of i").unwrap();
    insta::assert_snapshot!(
        "trust_damaged",
        env.show_all(&[&["config", "get", "ls.limit"], &["config", "get", "ls.limit"], &["trust", "--list"]])
    );
    let kept = fs::read_dir(env.path("data/segno")).unwrap().filter_map(Result::ok);
    let kept: Vec<_> =
        kept.filter(|entry| entry.file_name().to_string_lossy().contains(".corrupt-")).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::read_to_string(kept[0].path()).unwrap(), "{ half of i");
}

#[test]
fn an_agent_cannot_trust() {
    let mut env = project();
    env.set("SEGNO_RUN", "0192f0c4a1b27c3d8e4f5a6b7c8d9e0f");
    insta::assert_snapshot!("trust_agent", env.show(&["trust"]));
    assert!(!env.path("data/segno/trust.json").exists());
}

#[test]
fn private_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let env = project();
        let command = format!("umask {umask}; $SEGNO trust && $SEGNO config set ls.limit 5");
        let output = env.on_terminal(&command, "").unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let mode = |name: &str| fs::metadata(env.path(name)).unwrap().mode() & 0o777;
        assert_eq!(mode("data/segno"), 0o700, "umask {umask}");
        assert_eq!(mode("data/segno/trust.json"), 0o600, "umask {umask}");
        assert_eq!(mode("data/segno/trust.lock"), 0o600, "umask {umask}");
        assert_eq!(mode("config/segno"), 0o700, "umask {umask}");
        assert_eq!(mode("config/segno/config.toml"), 0o600, "umask {umask}");
    }
}
