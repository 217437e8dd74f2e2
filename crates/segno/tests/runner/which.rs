//! Which session is meant, and which names are none.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::common::SEGNO;
use crate::common::TestEnv;
use crate::common::another_uid;

#[test]
fn argument_flag_variable_project() {
    let mut env = TestEnv::new();
    let nothing = env.show_all(&[&["show"], &["note", "x"], &["resume"], &["log"], &["export"]]);
    let one = env.start(&["one"]);
    let alone = env.show(&["note", "there is only one"]);
    let two = env.start(&["two", "--parallel"]);
    let three = env.start(&["three", "--parallel"]);
    let several = env.show_all(&[&["note", "which?"], &["complete"], &["note", "which?", "--json"]]);
    let topic =
        |env: &TestEnv, args: &[&str]| env.json(args)["session"]["topic"].as_str().unwrap().to_owned();
    assert_eq!(topic(&env, &["show", &one]), "one");
    assert_eq!(topic(&env, &["show", "--session", &two]), "two");
    assert_eq!(topic(&env, &["show", &one, "--session", &two]), "one", "the argument is nearest");
    env.set("SEGNO_SESSION", &three);
    assert_eq!(topic(&env, &["show"]), "three");
    assert_eq!(topic(&env, &["show", "--session", &two]), "two");
    assert_eq!(topic(&env, &["show", &one[24..]]), "one");
    assert_eq!(topic(&env, &["show", &format!("…{}", &one[24..])]), "one");
    assert_eq!(topic(&env, &["show", &format!("...{}", &one[20..])]), "one");
    env.set("SEGNO_SESSION", "../../etc/passwd");
    let variable = env.show(&["show"]);
    env.set("SEGNO_SESSION", "");
    for id in [&one, &two, &three] {
        env.ok(&["complete", id]);
    }
    let ended = env.show_all(&[&["note", "x"], &["resume"], &["complete"], &["note", "x", "--json"]]);
    insta::assert_snapshot!("which_one", [nothing, alone, several, variable, ended].join("\n"));
}

#[test]
fn last_and_numbers() {
    let env = TestEnv::new();
    let topic = |name: &str| {
        let said = env.run(&["show", name, "--json"]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        serde_json::from_str::<serde_json::Value>(&said.stdout).unwrap()["session"]["topic"].clone()
    };
    for topic in ["one", "two", "three"] {
        env.start(&[topic, "--parallel"]);
    }
    let before = env.show_all(&[&["show", "1"], &["rm", "2", "--yes"]]);
    env.ok(&["ls"]);
    assert_eq!(topic("1"), "three");
    assert_eq!(topic("3"), "one");
    env.ok(&["note", "changes the order", "--session", "3"]);
    assert_eq!(topic("1"), "three", "numbers stay those of the list that was seen");
    assert_eq!(topic("last"), "one", "the most recently changed");
    env.ok(&["ls"]);
    assert_eq!(topic("1"), "one");
    env.ok(&["complete", "2"]);
    assert_eq!(env.json(&["show", "2"])["session"]["status"], "completed");
    env.run_in("other", &["new", "elsewhere"]);
    assert_eq!(topic("last"), "three", "the last one of this project");
    env.ok(&["rm", "1", "--yes"]);
    let after = env.show_all(&[&["show", "1"], &["show", "9"], &["show", "999"], &["show", "0"]]);
    let nowhere = {
        let said = env.run_in("empty", &["show", "last"]);
        format!("$ segno show last\n{}--- exit code {}\n", said.stderr, said.code)
    };
    insta::assert_snapshot!("which_numbers", [before, after, nowhere].join("\n"));
}

#[test]
fn unknown_and_ambiguous_endings() {
    let env = TestEnv::new();
    let id = env.start(&["original"]);
    env.ok(&["complete"]);
    let export = String::from_utf8(env.raw(&["export", &id]).stdout).unwrap();
    let uid = env.json(&["show", &id])["session"]["uid"].as_str().unwrap().to_owned();
    for (day, step) in [("01", 1), ("02", 2)] {
        let other = export
            .replace(&id, &format!("session_202601{day}_000000_777777"))
            .replace(&uid, &another_uid(&uid, step));
        env.write("other.json", &other);
        let file = env.path("other.json");
        let said = env.run(&["import", file.to_str().unwrap()]);
        assert_eq!(said.code, 0, "{}", said.stderr);
    }
    assert_eq!(env.json(&["show", "01_000000_777777"])["session"]["topic"], "original");
    insta::assert_snapshot!(
        "which_ending",
        env.show_all(&[
            &["show", "777777"],
            &["show", "777777", "--json"],
            &["show", "000000_777777"],
            &["show", "555555x"],
            &["show", "session_20200101_000000_000000"],
            &["rm", "session_20200101_000000_000000", "--yes"],
            &["export", "session_20200101_000000_000000"],
            &["note", "x", "--session", "session_20200101_000000_000000"],
        ])
    );
}

#[test]
fn hostile_names_touch_nothing() {
    let env = TestEnv::new();
    env.start(&["victim"]);
    let before = env.files();
    let long = "a".repeat(10_000);
    let hostile = [
        "",
        "..",
        ".",
        "a/b",
        "../../../etc/passwd",
        "%2e%2e%2f",
        &long,
        "ünïcödé",
        "\u{202e}last",
        "a b",
        "a\nb",
        "*",
        "$(id)",
        "'; DROP TABLE sessions; --",
    ];
    for id in hostile {
        for command in ["show", "resume", "rm", "complete", "log", "export"] {
            let said = env.run(&[command, id]);
            assert_eq!(said.code, 2, "{command} {id:?}: {}", said.stderr);
            assert_eq!(said.stdout, "");
            assert!(said.stderr.starts_with("error: invalid value"), "{}", said.stderr);
        }
        assert_eq!(env.run(&["note", "x", "--session", id]).code, 2);
    }
    for args in [&["show", "-rf"][..], &["rm", "-rf", "--yes"], &["show", "--session=-rf"]] {
        assert_eq!(env.run(args).code, 2, "{args:?}");
    }
    let unreadable = env.command(SEGNO).arg("show").arg(OsStr::from_bytes(b"\xff\xfe")).output().unwrap();
    assert_eq!(unreadable.status.code(), Some(2));
    // The system passes no NUL to a program; this is as near as one can get to it.
    assert!(segno::cli::command().try_get_matches_from(["segno", "show", "a\0b"]).is_err());
    assert!(env.files() == before, "something was touched");
}
