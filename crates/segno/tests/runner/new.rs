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
