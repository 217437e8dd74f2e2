//! Starting sessions: one at a time unless asked otherwise, with the phases of a trusted project.

use crate::common::TestEnv;

#[test]
fn one_at_a_time() {
    let env = TestEnv::new();
    let first = env.start(&["first"]);
    let refused = env.show_all(&[&["new", "second"], &["new", "second", "--json"]]);
    assert_eq!(env.json(&["ls", "--all"])["total"], 1);
    let said = env.run_in("elsewhere", &["new", "another project"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let parallel = env.show_all(&[&["new", "beside it", "--parallel"], &["new", "third"], &["ls"]]);
    env.ok(&["pause", &first]);
    let paused = env.show(&["new", "a paused one is open too"]);
    env.ok(&[
        "abort",
        env.json(&["ls", "--status", "active"])["sessions"][0]["session_id"].as_str().unwrap(),
    ]);
    let paused = [paused, env.show(&["new", "only the paused one is left"])].join("\n");
    insta::assert_snapshot!("new_alone", [refused, parallel, paused].join("\n"));
}

#[test]
fn another_after_the_end() {
    let env = TestEnv::new();
    for end in ["complete", "abort", "fail"] {
        let id = env.start(&[end]);
        env.ok(&[end, &id]);
    }
    env.start(&["after all of them"]);
    assert_eq!(env.json(&["ls", "--all"])["total"], 4);
}

#[test]
fn what_a_new_session_has() {
    let env = TestEnv::new();
    insta::assert_snapshot!(
        "new_forms",
        env.show_all(&[
            &["new", "--parallel"],
            &["new", "advisory", "--parallel", "--budget", "5k", "--advisory"],
            &["new", "phases", "--parallel", "--phases", "a,b", "--phase", "b", "--intent", "done"],
            &["new", "json", "--parallel", "--json"],
            &["new", "-q", "quiet", "--parallel"],
            &["new", "", "--parallel"],
            &["new", "two\nlines", "--parallel"],
            &["new", "x", "--phases", "a,,b", "--parallel"],
            &["new", "x", "--budget", "lots", "--parallel"],
            &["new", "x", "--cost", "-1", "--parallel"],
        ])
    );
}

#[test]
fn phases_of_a_trusted_project_only() {
    let env = TestEnv::new();
    env.write("project/.segno/workflows/tdd.toml", "phases = [\"red\", \"green\", \"refactor\"]\n");
    let untrusted = env.show(&["new", "untrusted", "--workflow", "tdd"]);
    assert!(env.json(&["phase"])["phase"].is_null());
    env.ok(&["complete"]);
    env.trust();
    let trusted = env.show(&["new", "trusted", "--workflow", "tdd"]);
    assert_eq!(env.json(&["phase"])["workflow"]["phases"], serde_json::json!(["red", "green", "refactor"]));
    env.ok(&["complete"]);
    let own = env.show(&["new", "own phases", "--workflow", "tdd", "--phases", "x,y"]);
    env.ok(&["complete"]);
    let missing = env.show(&["new", "missing", "--workflow", "none"]);
    env.ok(&["complete"]);
    let outside = env.show(&["new", "outside", "--workflow", "../../secret"]);
    env.run(&["complete"]);
    env.write("project/.segno/workflows/tdd.toml", "phases = 3\n");
    env.trust();
    let broken = env.show(&["new", "broken", "--workflow", "tdd"]);
    insta::assert_snapshot!("new_workflow", [untrusted, trusted, own, missing, outside, broken].join("\n"));
}

/// A process that holds what it made, and the session's id.
fn holding(env: &TestEnv, topic: &str) -> (std::process::Child, String) {
    use std::io::BufRead as _;
    let mut child = env
        .command(crate::common::SEGNO)
        .args(["new", topic, "--hold", "--parallel"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut id = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut id).unwrap();
    (child, id.trim().to_owned())
}

#[test]
fn who_holds_a_session_is_missed() {
    let env = TestEnv::new();
    let status = |id: &str| {
        let session = env.json(&["show", id])["session"].clone();
        (session["status"].as_str().unwrap().to_owned(), session["reason"]["what"].clone())
    };
    let (mut killed, id) = holding(&env, "killed");
    assert_eq!(status(&id).0, "active");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(status(&id).0, "interrupted");

    let (mut asked, id) = holding(&env, "asked to end");
    let pid = rustix::process::Pid::from_child(&asked);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(asked.wait().unwrap().success());
    assert_eq!(status(&id).0, "paused");

    let (mut through, id) = holding(&env, "through");
    env.ok(&["complete", &id]);
    assert!(through.wait().unwrap().success());
    assert_eq!(status(&id).0, "completed");
}

/// What `segno workflow list` shows can be followed by hand too.
#[test]
fn phases_of_the_workflows_that_are_built_in() {
    let phases = |env: &TestEnv, name: &str| {
        env.ok(&["new", name, "--workflow", name, "--parallel"]);
        let session = env.json(&["show", "last"])["state"].clone();
        assert_eq!(session["phase"], session["workflow"]["phases"][0], "{name}");
        session["workflow"]["phases"].clone()
    };
    let env = TestEnv::new();
    assert_eq!(phases(&env, "simple"), serde_json::json!(["WORK"]));
    assert_eq!(phases(&env, "prp"), serde_json::json!(["RED", "GREEN", "REFACTOR", "DOCUMENT"]));
    for name in ["tdflow", "spec", "go-team"] {
        assert_eq!(phases(&env, name), env.json(&["workflow", "show", name])["phases"], "{name}");
    }
    // A project's own one in the form that loops use, once it is trusted.
    let own = "[[phase]]\nname = \"ONLY\"\nprompt = \"go\"\ngate = \"signal\"\n";
    env.write("project/.segno/workflows/prp.toml", own);
    env.trust();
    assert_eq!(phases(&env, "prp"), serde_json::json!(["ONLY"]));
}
