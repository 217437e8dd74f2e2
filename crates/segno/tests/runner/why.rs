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
