//! The example is a program that works.

use std::path::PathBuf;
use std::process::Command;

/// Cargo builds examples along with tests, into the directory beside theirs.
fn example() -> Command {
    let here = std::env::current_exe().unwrap();
    let target: PathBuf = here.parent().and_then(|deps| deps.parent()).unwrap().join("examples");
    Command::new(target.join("initializer_worker"))
}

fn run(arguments: &[&str]) -> (bool, String, String) {
    let output = example().args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_two_roles_in_two_processes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    let (well, id, why) = run(&["initializer", folder]);
    assert!(well, "{why}");
    let id = id.trim_end();
    let mut manager = segno_engine::SessionManager::at(dir.path()).unwrap();
    let state = manager.load(id).unwrap().unwrap();
    assert_eq!((state.status.as_str(), state.phase.as_deref()), ("paused", Some("implement")));
    drop(manager);
    let (well, said, why) = run(&["worker", folder, id]);
    assert!(well, "{why}");
    assert_eq!(said, "completed from implement: 61000 of 75000 tokens, 2 files, 13 steps\n");
    // A second worker comes too late.
    let (well, _, why) = run(&["worker", folder, id]);
    assert!(!well);
    assert_eq!(why, "Cannot transition from completed to active.\n");
}

#[test]
fn without_arguments_it_plays_both() {
    let (well, said, why) = run(&[]);
    assert!(well, "{why}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("the initializer paused session_"), "{said}");
    assert!(lines[1].starts_with("the worker completed from implement: "), "{said}");
    let (well, _, why) = run(&["nonsense"]);
    assert!(!well && why.starts_with("want nothing"), "{why}");
}
