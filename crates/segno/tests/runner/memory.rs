//! Sessions are handed to a memory outside, each once, and what memories said is found again.

use serde_json::Value;
use serde_json::json;

use crate::common::TestEnv;

#[test]
fn sessions_are_handed_over_once() {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let new = |topic: &str| env.json(&["new", topic])["session_id"].as_str().unwrap().to_owned();
    let first = new("shop");
    env.ok(&["decide", "db?", "--choice", "sqlite", "--because", "small"]);
    env.ok(&["memory", "query", "how do we deploy?", "--result", "with make", "--source", "hindsight"]);
    let secret = format!("ghp_{}", "16C7e42F292c6912E7710c838347Ae178B4a");
    env.ok(&["memory", "lookup", "the key?", "--result", &format!("it is {secret}")]);
    env.ok(&["complete", &first]);
    let second = new("other");
    let sync = |more: &[&str]| {
        let words = ["memory", "sync", "--bank", "sessions", "--json"].iter().chain(more).copied();
        env.raw(&words.collect::<Vec<_>>())
    };
    let listed = |said: std::process::Output| -> Vec<String> {
        let document: Value = serde_json::from_slice(&said.stdout).unwrap();
        document["sessions"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(sync(&["--dry-run"])), [first.as_str()], "one has not ended");
    // Who refuses it gets it again.
    let refused = sync(&["--", "sh", "-c", "exit 3"]);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{words}");
    assert!(words.contains("exit status: 3"), "{words}");
    let take =
        ["--", "sh", "-c", "cat >> taken.jsonl; echo \"$SEGNO_MEMORY_BANK $SEGNO_MEMORY_SESSION\" >> names"];
    assert_eq!(listed(sync(&take)), [first.as_str()]);
    assert_eq!(listed(sync(&take)), Vec::<String>::new(), "each once");
    env.ok(&["complete", &second]);
    assert_eq!(listed(sync(&take)), [second.as_str()]);
    assert_eq!(env.read("project/names"), format!("sessions {first}\nsessions {second}\n"));
    let taken = env.read("project/taken.jsonl");
    assert!(taken.contains("the key?") && !taken.contains(&secret), "{taken}");
    let mut documents = serde_json::Deserializer::from_str(&taken).into_iter::<Value>();
    let document = documents.next().unwrap().unwrap();
    assert_eq!((&document["topic"], &document["status"]), (&"shop".into(), &"completed".into()));
    let decided = json!([{ "question": "db?", "choice": "sqlite", "because": "small" }]);
    assert_eq!(document["decisions"], decided);
    assert_eq!(document["memory"][0]["result"], "with make");
    // Another bank has none of them.
    let other = env.json(&["memory", "sync", "--bank", "another", "--dry-run"]);
    assert_eq!(other["sessions"], json!([first, second]));

    let found = env.json(&["memory", "find", "Deploy"]);
    assert_eq!(found["found"][0]["result"], "with make");
    assert_eq!(found["found"][0]["session_id"], first.as_str());
    assert_eq!(env.json(&["memory", "find", "nothing of it"])["found"], json!([]));
}

/// Waits until something is so.
#[cfg(target_os = "linux")]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 60, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn two_who_hand_memory_over_at_once_hand_each_session_over_once() {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let sessions: Vec<String> = ["first", "second"]
        .map(|topic| {
            let id = env.json(&["new", topic])["session_id"].as_str().unwrap().to_owned();
            env.ok(&["complete", &id]);
            id
        })
        .into();
    let begin = || {
        let take = "echo \"$SEGNO_MEMORY_SESSION\" >> names; while [ ! -e go ]; do sleep 0.02; done";
        let mut command = env.command(crate::common::SEGNO);
        command.args(["memory", "sync", "--bank", "sessions", "--json", "--", "sh", "-c", take]);
        command.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let names = || std::fs::read_to_string(env.path("project/names")).unwrap_or_default();
    let one = begin();
    until("the command of the first runs", || names().lines().count() == 1);
    let other = begin();
    // It has its list by now, with both sessions, and either waits for its turn or has begun to hand one over.
    let files = format!("/proc/{}/fd", other.id());
    until("the second wants its turn", || {
        let open = std::fs::read_dir(&files).unwrap().flatten();
        let mut targets = open.filter_map(|file| std::fs::read_link(file.path()).ok());
        targets.any(|target| target.ends_with("memory.lock"))
    });
    std::fs::write(env.path("project/go"), "").unwrap();
    let mut handed: Vec<String> = Vec::new();
    for child in [one, other] {
        let said = child.wait_with_output().unwrap();
        assert!(said.status.success());
        let document: Value = serde_json::from_slice(&said.stdout).unwrap();
        handed.extend(
            document["sessions"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()),
        );
    }
    handed.sort();
    let mut wanted = sessions.clone();
    wanted.sort();
    assert_eq!(handed, wanted, "each by one of them");
    let mut taken: Vec<String> = names().lines().map(str::to_owned).collect();
    taken.sort();
    assert_eq!(taken, wanted);
}

#[test]
fn without_a_store_no_memory_was_asked() {
    let env = TestEnv::new();
    assert_eq!(env.json(&["memory", "find", "anything"]), json!({ "found": [] }));
}
