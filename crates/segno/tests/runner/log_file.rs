//! The log of the program's own decisions.

use std::os::unix::fs::PermissionsExt as _;

use crate::common::TestEnv;

#[test]
fn nothing_is_logged_that_nobody_asked_for() {
    let env = TestEnv::new();
    env.start(&["x"]);
    env.ok(&["note", "words"]);
    env.ok(&["complete"]);
    assert!(!env.path("state/segno/segno.log").exists());
}

#[test]
fn decisions_are_in_a_private_file_that_doctor_names() {
    let mut env = TestEnv::new();
    env.set("SEGNO_LOG", "info");
    let said = env.run(&["run", "--", "/bin/sh", "-c", "true"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(!said.stderr.contains("lease taken"), "{}", said.stderr);
    let path = env.path("state/segno/segno.log");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.lines().any(|line| line.contains(" info [") && line.contains("lease taken")), "{text}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(env.ok(&["doctor"]).stdout.contains("state/segno/segno.log"));
    assert_eq!(env.json(&["doctor"])["log"].as_str().unwrap(), path.to_str().unwrap());
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let mut env = TestEnv::new();
    env.set("SEGNO_LOG", "trace,nonsense=?,=,");
    std::fs::create_dir_all(env.path("state/segno/segno.log")).unwrap();
    let said = env.run(&["run", "--", "/bin/sh", "-c", "true"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
}

#[test]
fn asked_to_say_more_it_says_it_aloud() {
    let env = TestEnv::new();
    let said = env.run(&["run", "-v", "--", "/bin/sh", "-c", "true"]);
    assert_eq!(said.code, 0);
    assert!(said.stderr.contains("lease taken"), "{}", said.stderr);
}
