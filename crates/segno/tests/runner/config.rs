use crate::common::TestEnv;

#[test]
fn show_with_origins() {
    let mut env = TestEnv::new();
    env.write("config/segno/config.toml", "# mine\n[session]\nbudget = 5000\n\n[ls]\nlimit = 7\n");
    env.write("project/.segno/config.toml", "[ls]\nlimit = 9\n[view]\nenabled = false\n");
    env.set("SEGNO_CLEANUP_DAYS", "3");
    insta::assert_snapshot!(
        "config_show",
        env.show_all(&[
            &["config", "show", "--origin", "--color", "never"],
            &["config", "show"],
            &["config", "get", "ls.limit"],
            &["config", "get", "session.budget", "--json"],
        ])
    );
}

#[test]
fn the_default_file_is_printed_as_it_is() {
    let env = TestEnv::new();
    let output =
        env.command(env!("CARGO_BIN_EXE_segno")).args(["config", "show", "--default"]).output().unwrap();
    assert_eq!(output.stdout, segno::config::DEFAULT.as_bytes());
}

#[test]
fn set_and_unset() {
    let env = TestEnv::new();
    env.write("config/segno/config.toml", "# mine\n[session]\nbudget = 5 # small\n");
    insta::assert_snapshot!(
        "config_set",
        env.show_all(&[
            &["config", "set", "session.budget", "200k"],
            &["config", "set", "ui.pager", "less -R", "--json"],
            &["config", "set", "ls.limit", "5", "--in-project"],
            &["config", "set", "ls.limit", "6"],
            &["config", "unset", "session.budget"],
            &["config", "unset", "session.budget"],
        ])
    );
    insta::assert_snapshot!("config_set_user_file", env.read("config/segno/config.toml"));
    assert_eq!(env.read("project/.segno/config.toml"), "[ls]\nlimit = 5\n");
}

#[test]
fn what_cannot_be_set() {
    let env = TestEnv::new();
    insta::assert_snapshot!(
        "config_refusals",
        env.show_all(&[
            &["config", "set", "session.bugdet", "5"],
            &["config", "get", "nothing.like.it"],
            &["config", "set", "session.warn_percent", "200"],
            &["config", "set", "session.hard", "maybe", "--json"],
            &["config", "set", "store.url", "sqlite:/x", "--in-project"],
        ])
    );
    assert!(!env.path("config/segno/config.toml").exists());
}

#[test]
fn broken_files_have_a_place_and_can_be_repaired() {
    let env = TestEnv::new();
    env.write("config/segno/config.toml", "[session]\nbudget = \"lots\"\n");
    let wrong = env.show_all(&[
        &["config", "show"],
        &["config", "show", "--json"],
        // The way out must not need what is broken.
        &["config", "set", "session.budget", "5"],
        &["config", "get", "session.budget"],
    ]);
    env.write("config/segno/config.toml", "[session\nbudget = 1\n");
    let syntax = env.show(&["config", "show"]);
    env.write("config/segno/config.toml", &"#".repeat(1024 * 1024 + 1));
    let large = env.show(&["config", "show"]);
    insta::assert_snapshot!("config_broken", [wrong, syntax, large].join("\n"));
}

#[test]
fn unknown_keys_and_slips_are_warnings() {
    let mut env = TestEnv::new();
    env.write("config/segno/config.toml", "[session]\nbugdet = 1\n\n[ui]\ncolour = 'never'\n[shop]\nx = 1\n");
    env.set("SEGNO_SESION_BUDGET", "1");
    insta::assert_snapshot!(
        "config_unknown",
        env.show_all(&[&["config", "get", "ls.limit"], &["config", "get", "ls.limit", "--json"]])
    );
}

#[test]
fn wrong_variables_and_flags_are_named() {
    let mut env = TestEnv::new();
    let flag = env.show(&["--store", "http://x", "config", "show"]);
    env.set("SEGNO_LS_LIMIT", "many");
    let variable = env.show(&["config", "show"]);
    insta::assert_snapshot!("config_variables", [flag, variable].join("\n"));
}

#[test]
fn passwords_are_not_shown() {
    let mut env = TestEnv::new();
    env.set("SEGNO_STORE", "postgres://me:hunter2@db/x");
    for args in [&["config", "show"][..], &["config", "show", "--origin"], &["config", "show", "--json"]] {
        let said = env.run(args);
        assert!(!said.stdout.contains("hunter2") && !said.stderr.contains("hunter2"), "{args:?}");
    }
    env.set("SEGNO_STORE", "mysql://me:hunter2@db/x");
    let said = env.run(&["config", "show"]);
    assert_eq!(said.code, 13);
    assert!(!said.stderr.contains("hunter2"), "{}", said.stderr);
}

#[test]
fn another_user_file() {
    let mut env = TestEnv::new();
    env.write("other.toml", "[ls]\nlimit = 3\n");
    let path = env.path("other.toml");
    env.set("SEGNO_CONFIG", path.to_str().unwrap());
    assert_eq!(env.run(&["config", "get", "ls.limit"]).stdout, "3\n");
    let missing = env.path("missing.toml");
    env.set("SEGNO_CONFIG", missing.to_str().unwrap());
    insta::assert_snapshot!("config_missing", env.show(&["config", "get", "ls.limit"]));
}
