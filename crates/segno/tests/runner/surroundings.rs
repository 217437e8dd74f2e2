//! Directories, colours, pipes and hostile text.

use std::fs;

use crate::common::TestEnv;

#[test]
fn paths() {
    let env = TestEnv::new();
    insta::assert_snapshot!("paths", env.show_all(&[&["config", "path"], &["config", "path", "--json"]]));
}

#[test]
fn relative_directories_are_ignored() {
    let mut env = TestEnv::new();
    env.set("XDG_CONFIG_HOME", "relative/config");
    env.set("XDG_DATA_HOME", "");
    let said = env.run(&["config", "path"]).stdout;
    assert!(said.contains("$TEST/home/.config/segno/config.toml"), "{said}");
    assert!(said.contains("$TEST/home/.local/share/segno"), "{said}");
}

#[test]
fn another_project() {
    let mut env = TestEnv::new();
    env.write("other/.segno/config.toml", "[ls]\nlimit = 3\n");
    assert_eq!(env.run(&["--project", "../other", "config", "get", "ls.limit"]).stdout, "3\n");
    env.set("SEGNO_PROJECT", "../other");
    assert_eq!(env.run(&["config", "get", "ls.limit"]).stdout, "3\n");
    insta::assert_snapshot!("no_project", env.show(&["--project", "../none", "config", "path"]));
}

#[test]
fn colour() {
    let mut env = TestEnv::new();
    let coloured = |env: &TestEnv, args: &[&str]| env.run(args).stdout.contains('\u{1b}');
    let show = &["config", "show"][..];
    assert!(!coloured(&env, show), "a pipe has no colour");
    assert!(coloured(&env, &["--color", "always", "config", "show"]));
    env.set("CLICOLOR_FORCE", "1");
    assert!(coloured(&env, show));
    env.set("NO_COLOR", "1");
    assert!(!coloured(&env, show));
    env.set("SEGNO_COLOR", "always");
    assert!(coloured(&env, show), "an explicit wish wins over NO_COLOR");
    assert!(!coloured(&env, &["--color", "never", "config", "show"]));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let env = TestEnv::new();
    // `sleep` keeps the reader's end open just long enough for the program to start, then it is gone.
    let said = env.shell("{ $SEGNO completions zsh; echo $? >&2; } | true");
    assert_eq!(said.stderr, "0\n");
    let said = env.shell("{ sleep 0.2; $SEGNO config show --origin; echo $? >&2; } | true");
    assert_eq!(said.stderr, "0\n");
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let env = TestEnv::new();
    let directory = env.path("evil\u{1b}]0;owned\u{7}\u{202e}");
    fs::create_dir_all(directory.join(".segno")).unwrap();
    fs::write(directory.join(".segno/config.toml"), "[ui]\npager = 'x'\n").unwrap();
    for args in
        [&["config", "path"][..], &["config", "path", "--json"], &["trust", "--show"], &["trust", "--json"]]
    {
        let mut all = vec!["--project", directory.to_str().unwrap()];
        all.extend(args);
        let said = env.run(&all);
        for text in [&said.stdout, &said.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{args:?}: {text:?}");
        }
    }
}

#[test]
fn quiet_is_quiet() {
    let env = TestEnv::new();
    let said = env.run(&["-q", "config", "set", "ls.limit", "5"]);
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "", ""));
}
