//! What is kept and what is removed: cleanup, rm, abandon, fail.

use std::fs;
use std::process::Stdio;

use crate::common::SEGNO;
use crate::common::TestEnv;

#[test]
fn it_cleans_up_by_itself_once_a_day_if_somebody_wants_that() {
    let mut env = TestEnv::new();
    let done = env.start(&["done"]);
    env.ok(&["complete", &done]);
    env.start(&["open"]);
    env.ok(&["ls"]);
    let all = |env: &TestEnv| env.json(&["ls", "--all"])["sessions"].as_array().unwrap().len();
    assert_eq!(all(&env), 2, "nobody asked for it");
    env.set("SEGNO_CLEANUP_AUTO", "on");
    env.set("SEGNO_CLEANUP_DAYS", "0");
    let said = env.ok(&["ls"]);
    assert!(said.stderr.contains("cleaned up 1 old session (cleanup.auto), archived in "), "{}", said.stderr);
    assert_eq!(all(&env), 1, "the open one stays");
    assert_eq!(std::fs::read_dir(env.path("data/segno/archive")).unwrap().count(), 1);
    // Once a day is enough.
    env.ok(&["complete", "last"]);
    assert!(!env.ok(&["ls"]).stderr.contains("cleaned up"));
    assert_eq!(all(&env), 1);
    env.write("state/segno/cleanup.last", "0");
    assert!(env.ok(&["ls"]).stderr.contains("cleaned up 1 old session"));
    assert_eq!(all(&env), 0);
}

#[test]
fn what_cannot_be_archived_stays_and_is_said() {
    let mut env = TestEnv::new();
    let done = env.start(&["done"]);
    env.ok(&["complete", &done]);
    env.write("data/segno/archive", "a file where the folder should be");
    env.set("SEGNO_CLEANUP_AUTO", "on");
    env.set("SEGNO_CLEANUP_DAYS", "0");
    let said = env.ok(&["ls"]);
    assert!(
        said.stderr.contains("1 old session could not be cleaned up (cleanup.auto), and stay as they are: "),
        "{}",
        said.stderr
    );
    assert_eq!(env.json(&["ls", "--all"])["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn of_several_commands_at_once_one_cleans_up() {
    let mut env = TestEnv::new();
    for topic in ["one", "two"] {
        let done = env.start(&[topic]);
        env.ok(&["complete", &done]);
    }
    env.set("SEGNO_CLEANUP_AUTO", "on");
    env.set("SEGNO_CLEANUP_DAYS", "0");
    let start = |_| {
        let mut command = env.command(SEGNO);
        command.arg("ls").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let commands: Vec<_> = (0..6).map(start).collect();
    let each = commands.into_iter().map(|command| command.wait_with_output().unwrap());
    let said: Vec<String> = each.map(|output| String::from_utf8(output.stderr).unwrap()).collect();
    let cleaned = said.iter().filter(|said| said.contains("cleaned up 2 old sessions")).count();
    assert_eq!(cleaned, 1, "{said:#?}");
    assert_eq!(fs::read_dir(env.path("data/segno/archive")).unwrap().count(), 2);
}

#[test]
fn cleaning_up() {
    let env = TestEnv::new();
    env.start(&["still open", "--parallel"]);
    for (topic, end) in [("done", "complete"), ("given up", "abandon"), ("gone wrong", "fail")] {
        let id = env.start(&[topic, "--parallel"]);
        env.ok(&["note", "worth keeping", "--session", &id]);
        env.ok(&[end, &id]);
    }
    insta::assert_snapshot!(
        "keep_cleanup",
        env.show_all(&[
            &["cleanup", "--dry-run"],
            &["cleanup", "--days", "0", "--dry-run"],
            &["cleanup", "--days", "0", "--dry-run", "--json"],
            &["cleanup", "--days", "0"],
            &["cleanup", "--days", "0", "--json"],
            &["cleanup", "--keep", "0", "--yes"],
            &["cleanup", "--keep", "2", "--yes"],
            &["ls", "--all"],
            &["cleanup", "--days", "0", "--yes"],
            &["ls", "--all"],
            &["cleanup", "--days", "0", "--yes"],
        ])
    );
    // What was removed can be had back.
    let archive = env.path("data/segno/archive");
    let files: Vec<_> = fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 3);
    for file in &files {
        env.ok(&["import", file.to_str().unwrap()]);
    }
    let sessions = env.json(&["ls", "--all"]);
    assert_eq!(sessions["total"], 4);
    assert_eq!(env.json(&["ls", "--status", "failed"])["sessions"][0]["topic"], "gone wrong");
    let history = env.run(&["ls", "--status", "aborted"]).stdout;
    assert!(history.contains("given up"), "{history}");
    env.write("config/segno/config.toml", "[cleanup]\narchive = false\n");
    fs::remove_dir_all(&archive).unwrap();
    env.ok(&["cleanup", "--days", "0", "--yes"]);
    assert!(!archive.exists());
}

#[test]
fn removing() {
    let env = TestEnv::new();
    let one = env.start(&["one", "--parallel"]);
    let two = env.start(&["two", "--parallel"]);
    let view = env.path("project/.segno/sessions").join(&one);
    assert!(view.exists());
    insta::assert_snapshot!(
        "keep_rm",
        env.show_all(&[
            &["rm", &one],
            &["rm", &one, "--json"],
            &["rm"],
            &["rm", &one, "session_20200101_000000_000000", "--yes"],
            &["ls"],
            &["rm", &one, &one, "--yes"],
            &["rm", &one, "--yes"],
            &["rm", &two, "--yes", "--json"],
            &["ls", "--all"],
        ])
    );
    assert!(!view.exists());
}

/// On a terminal the person is asked, and only a yes is a yes.
#[test]
fn a_person_is_asked() {
    let env = TestEnv::new();
    let id = env.start(&["asked for"]);
    let Some(no) = env.on_terminal(&format!("$SEGNO rm {id}"), "n\n") else {
        println!("skipped: there is no `script` to make a terminal with");
        return;
    };
    assert_eq!(no.status.code(), Some(14));
    assert!(
        env.normalise(&String::from_utf8_lossy(&no.stdout)).contains("remove 1 session for good"),
        "{no:?}"
    );
    assert_eq!(env.on_terminal(&format!("$SEGNO rm {id}"), "\n").unwrap().status.code(), Some(14));
    assert_eq!(env.json(&["ls"])["total"], 1);
    assert_eq!(env.on_terminal(&format!("$SEGNO rm {id}"), "y\n").unwrap().status.code(), Some(0));
    assert_eq!(env.json(&["ls"])["total"], 0);
}
