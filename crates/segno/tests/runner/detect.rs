//! Which session is there, what to do about it, and what is said before a new one begins.

use crate::common::TestEnv;

fn detected(env: &TestEnv, more: &[&str]) -> serde_json::Value {
    env.json(&[&["detect"], more].concat())
}

#[test]
fn what_to_do_about_the_session_that_is_there() {
    let env = TestEnv::new();
    let none = detected(&env, &[]);
    assert_eq!((&none["found"], &none["action"]), (&false.into(), &"create_new".into()), "{none}");
    assert!(none["session"].is_null() && none["reason"].is_null());
    env.write("project/a.md", "do a");
    env.write("project/b.md", "do b");
    // An agent that ends without a final word.
    let said = env.raw(&["run", "--file", "a.md", "--", "/bin/sh", "-c", "kill -9 $$"]);
    assert_eq!(said.status.code(), Some(21));
    let found = detected(&env, &["--file", "a.md"]);
    assert_eq!((&found["found"], &found["action"]), (&true.into(), &"offer_resume".into()), "{found}");
    assert!(found["reason"].is_null() && found["session"]["session_id"].is_string(), "{found}");
    let other = detected(&env, &["--file", "b.md"]);
    assert_eq!(
        (&other["action"], &other["expired"]),
        (&"create_new".into(), &"other_work".into()),
        "{other}"
    );
    assert_eq!(other["reason"], "PRP mismatch: session=a.md, requested=b.md");
    let refused = env.raw(&["resume", "last", "--file", "b.md", "--no-run"]);
    assert_eq!(refused.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("PRP mismatch: session=a.md, requested=b.md"));
    env.ok(&["resume", "--file", "a.md", "--no-run"]);
    env.ok(&["complete", "last"]);
    let ended = detected(&env, &["--file", "a.md"]);
    assert_eq!((&ended["action"], &ended["expired"]), (&"create_new".into(), &"ended".into()), "{ended}");
    assert_eq!(ended["reason"], "Session completed successfully");
}

#[test]
fn what_waits_is_shown_before_something_new_begins() {
    let env = TestEnv::new();
    let first = env.start(&["login form", "--phases", "red,green,blue"]);
    env.ok(&["pause", &first]);
    let run = |more: &[&str]| {
        let said = env.raw(&[&["run"], more, &["--", "/bin/true"]].concat());
        String::from_utf8_lossy(&said.stderr).into_owned()
    };
    let said = run(&[]);
    for part in ["1 session of this project can be resumed", "login form", "1/3", "paused", "segno resume"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!run(&["--json"]).contains("can be resumed"), "programs are not told");
    env.ok(&["abandon", &first]);
    assert!(!run(&[]).contains("can be resumed"), "there is nothing to take up");
}

#[test]
fn names_that_others_use() {
    let env = TestEnv::new();
    let id = env.start(&["login form"]);
    assert_eq!(env.json(&["sessions"])["sessions"][0]["session_id"], id);
    let info = env.json(&["session-info", &id]);
    assert_eq!(info["session"]["session_id"], id);
    assert!(info["recovery"].is_null() && info["auto_resume_enabled"] == false, "{info}");
    env.ok(&["pause", &id]);
    let info = env.json(&["session-info", &id]);
    assert_eq!(info["recovery"]["interrupt_reason"], "asked");
    assert_eq!(info["recovery"]["recommended"], "live");
    assert_eq!(info["recovery"]["recovery_options"][0]["loses"], "loses nothing");
}
