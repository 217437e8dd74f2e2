//! `segno why` and `segno blame`, as somebody types them.

use crate::common::TestEnv;

#[test]
fn a_file_that_nobody_recorded_and_what_is_neither_file_nor_commit() {
    let mut env = TestEnv::new();
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env.ok(&["new", "shop"]);
    env.write("project/a.txt", "one\ntwo\n");
    let found = env.json(&["blame", "a.txt"]);
    assert_eq!(found["lines"].as_array().unwrap().len(), 2, "{found:#}");
    assert!(found["lines"][0]["writer"].is_null(), "{found:#}");
    let why = env.json(&["why", "a.txt:2"]);
    assert_eq!(
        (&why["text"], &why["credited"], &why["doubt"]),
        (&"two".into(), &false.into(), &"first".into())
    );
    let all = env.json(&["why", "a.txt"]);
    assert_eq!((&all["lines"], &all["by_session"][0]["lines"]), (&2.into(), &2.into()));
    let wrong = env.run(&["why", "a.txt:3"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("a.txt has 2 lines"), "{}", wrong.stderr);
    let wrong = env.run(&["why", "nothing.txt"]);
    assert_eq!(wrong.code, 5, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("neither a file nor a commit"), "{}", wrong.stderr);
}

#[test]
fn a_record_for_other_tools_is_printed_or_written_on_request_only() {
    let mut env = TestEnv::new();
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env.ok(&["new", "shop"]);
    env.write("project/a.txt", "one\ntwo\n");
    let record = env.json(&["why", "a.txt", "--agent-trace"]);
    assert_eq!((&record["version"], &record["tool"]["name"]), (&"0.1".into(), &"segno".into()), "{record:#}");
    assert_eq!(
        (&record["files"], &record["metadata"]["segno"]["not_recorded"]),
        (&Vec::<u8>::new().into(), &2.into())
    );
    // What is printed is what is written.
    assert_eq!(env.ok(&["why", "a.txt", "--agent-trace", "-o", "t.json"]).stdout, "");
    let written: serde_json::Value = serde_json::from_str(&env.read("project/t.json")).unwrap();
    assert_eq!((&written["id"], &written["files"]), (&record["id"], &record["files"]));
    let again = env.run(&["why", "a.txt", "--agent-trace", "-o", "t.json"]);
    assert_eq!(again.code, 5, "{}", again.stderr);
    let line = env.run(&["why", "a.txt:1", "--agent-trace"]);
    assert_eq!(line.code, 2, "{}", line.stderr);
    assert_eq!(env.run(&["why", "nothing.txt", "--agent-trace"]).code, 5);
    assert_eq!(env.run(&["why", "a.txt", "-o", "x.json"]).code, 2, "a file without a wish for a record");
}
