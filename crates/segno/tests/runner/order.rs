//! Order among many sessions: tags, names, pins and the archive.

use serde_json::Value;

use crate::common::TestEnv;

fn topics(list: &Value) -> Vec<&str> {
    list["sessions"].as_array().unwrap().iter().map(|one| one["topic"].as_str().unwrap()).collect()
}

#[test]
fn sessions_are_listed_by_how_somebody_arranged_them() {
    let env = TestEnv::new();
    let [one, two, three] = ["one", "two", "three"].map(|topic| env.start(&[topic, "--parallel"]));
    env.ok(&["complete", &one]);
    env.ok(&["tag", &one, "auth", "#old"]);
    env.ok(&["tag", &two, "auth"]);
    env.ok(&["pin", &one]);
    env.ok(&["rename", &two, "login", "form"]);
    env.ok(&["archive", &three]);

    // What is pinned comes first although it has ended, and nothing of this made a session newer.
    assert_eq!(topics(&env.json(&["ls"])), ["one", "login form"]);
    assert_eq!(topics(&env.json(&["ls", "--all"])), ["one", "three", "login form"]);
    assert_eq!(topics(&env.json(&["ls", "--tag", "auth"])), ["one", "login form"]);
    assert_eq!(topics(&env.json(&["ls", "--tag", "auth", "--tag", "#old"])), ["one"]);
    assert_eq!(topics(&env.json(&["ls", "--tag", "auth", "--status", "active"])), ["login form"]);
    assert_eq!(topics(&env.json(&["ls", "--pinned"])), ["one"]);
    assert_eq!(topics(&env.json(&["ls", "--archived"])), ["three"]);
    assert_eq!(topics(&env.json(&["ls", "--topic", "LOGIN"])), ["login form"]);
    assert_eq!(topics(&env.json(&["ls", "--tag", "aut"])), Vec::<&str>::new());
    assert_eq!(env.json(&["ls", "--limit", "1"])["sessions"][0]["tags"], serde_json::json!(["auth", "old"]));
    let tags = serde_json::json!([{"tag": "auth", "sessions": 2}, {"tag": "old", "sessions": 1}]);
    assert_eq!(env.json(&["tag"])["tags"], tags);
    let shown = env.ok(&["show", &one]).stdout;
    assert!(shown.contains("#auth #old") && shown.contains("pinned"), "{shown}");
    assert!(env.ok(&["ls"]).stdout.contains("one  pinned  #auth #old"));

    // No command takes an archived session for the one that is meant.
    env.ok(&["note", "for the open one"]);
    assert_eq!(env.json(&["show", &two])["session"]["seq"], 4);
    env.ok(&["unarchive", &three]);
    env.ok(&["pause", &three]);
    env.ok(&["archive", &three]);
    env.ok(&["resume", &three]);
    assert_eq!(topics(&env.json(&["ls", "--archived"])), Vec::<&str>::new());

    env.ok(&["tag", &one, "--remove", "old"]);
    assert_eq!(env.json(&["tag", &one])["tags"], serde_json::json!(["auth"]));
    let again = env.run(&["pin", &one]);
    assert!(again.code != 0 && again.stderr.contains("in that place already"), "{}", again.stderr);
    let both = env.json(&["pin", &one, &two]);
    assert_eq!(topics(&both), ["one", "login form"]);
    // The name is found.
    assert_eq!(env.json(&["search", "login", "form"])["hits"][0]["session_id"], two.as_str());
}

#[test]
fn what_is_pinned_is_never_cleaned_up() {
    let env = TestEnv::new();
    let [kept, gone] = ["kept", "gone"].map(|topic| env.start(&[topic, "--parallel"]));
    for id in [&kept, &gone] {
        env.ok(&["complete", id]);
    }
    env.ok(&["pin", &kept]);
    let removed = env.json(&["cleanup", "--days", "0", "--yes"]);
    assert_eq!(removed["removed"], serde_json::json!([gone]));
    assert_eq!(topics(&env.json(&["ls", "--all"])), ["kept"]);
    env.ok(&["unpin", &kept]);
    assert_eq!(env.json(&["cleanup", "--days", "0", "--yes"])["removed"], serde_json::json!([kept]));
}

#[test]
fn texts_that_are_forgotten_leave_tags_and_names_too() {
    let env = TestEnv::new();
    let id = env.start(&["one"]);
    env.ok(&["rename", &id, "about", "plumquartz"]);
    env.ok(&["tag", &id, "plumquartz"]);
    env.ok(&["forget", "--session", &id, "--yes"]);
    let shown = env.ok(&["show", &id, "--json"]).stdout;
    assert!(!shown.contains("plumquartz"), "{shown}");
    assert!(!env.ok(&["log", &id, "--json"]).stdout.contains("plumquartz"));
}
