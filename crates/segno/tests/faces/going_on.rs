//! Going on from the page: what is asked before, and what is refused.

use serde_json::Value;
use serde_json::json;

use crate::agents::claude;
use crate::agents::question;
use crate::agents::until;
use crate::browser::furnished;
use crate::common::TestEnv;
use crate::server::Server;

/// An agent that works in the middle of a call until it is killed, and its driver with it.
const CUT_OFF: &str = r#"
cat > /dev/null
echo $$ > ../pid
printf '%s\n' '{"type":"hello","id":"talk-2","model":"scout-2"}'
printf '%s\n' '{"type":"call","id":"c8","tool":"Write","input":{"file_path":"built.txt","content":"half\n"}}'
printf 'half\n' > built.txt
printf '%s\n' '{"type":"done","id":"c8","output":"written"}'
printf '%s\n' '{"type":"call","id":"c9","tool":"Bash","input":{"command":"./slow-build"}}'
while :; do sleep 1; done
"#;

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// A session that was cut off in the middle of a call.
fn cut_off() -> (TestEnv, String) {
    let (env, _) = furnished();
    env.write("agent.sh", CUT_OFF);
    let mut run = env.command(crate::common::SEGNO);
    let run = run.args(["run", "--agent", "scout", "--topic", "a long build", "--prompt", "build it"]);
    let mut run =
        run.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    until("the build has begun", || env.path("project/built.txt").exists().then_some(()));
    let id = until("the call is recorded", || {
        let all = env.json(&["ls", "--everywhere"])["sessions"].as_array()?.clone();
        let it = all.into_iter().find(|it| it["topic"] == "a long build")?;
        let id = it["session_id"].as_str().unwrap().to_owned();
        let done = env.json(&["show", &id])["state"]["calls"]["completed"] == 1;
        (done && it["open_calls"] == 1).then_some(id)
    });
    run.kill().unwrap();
    run.wait().unwrap();
    kill(env.read("pid").trim().parse().unwrap());
    until("it is interrupted", || {
        (env.json(&["show", &id])["session"]["status"] == "interrupted").then_some(())
    });
    (env, id)
}

#[test]
fn with_a_call_in_doubt_it_is_asked_how_to_go_on() {
    let (env, id) = cut_off();
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let before = env.json(&["show", &id])["session"]["seq"].clone();
    let asked = browser.act(&id, "resume", &json!({}));
    assert_eq!((asked.status, asked.code().as_str()), (409, "in_doubt"), "{asked:?}");
    assert_eq!(env.json(&["show", &id])["session"]["seq"], before, "what was refused is not in the journal");
    // The page offers no other way than the question, which says what each answer loses.
    let page = browser.get(&format!("/s/{id}")).body;
    assert!(!page.contains("data-act=\"resume\""), "{page}");
    for words in [
        "last checkpoint cp-",
        "live state, every recorded event: loses nothing",
        "fresh start: gives this session up",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
    assert!(!page.contains("no, and why"), "words of one's own are no answer here");
    // Going back is shown first, and done only as it was shown.
    let question = browser.get("/api/v1/questions").json()["questions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["kind"] == "resume")
        .cloned()
        .unwrap();
    let ways: [(&str, Value); 2] = [
        ("resume", json!({ "from": "checkpoint" })),
        ("answer", json!({ "question": question["id"], "answer": "checkpoint" })),
    ];
    for (act, body) in ways {
        let shown = browser.act(&id, act, &body);
        assert_eq!(shown.status, 200, "{act} {shown:?}");
        let shown = shown.json();
        assert_eq!(shown["plan"]["removes"], json!(["built.txt"]), "{act} {shown}");
        assert!(shown["question"].as_str().unwrap().starts_with("Go on from checkpoint cp-"), "{shown}");
        assert_eq!(env.read("project/built.txt"), "half\n", "{act} does nothing before it was shown");
        let mut stale = body.clone();
        stale["mark"] = json!("0".repeat(64));
        assert_eq!(browser.act(&id, act, &stale).code(), "changed", "{act}");
    }
    assert_eq!(env.json(&["show", &id])["session"]["seq"], before);
    // Back to where it was before the call, and another agent's turn from there.
    env.write("agent.sh", "cat > /dev/null\necho '{\"type\":\"hello\",\"id\":\"talk-2\"}'\necho '{\"type\":\"end\",\"text\":\"done\"}'\n");
    let shown = browser.act(&id, "resume", &json!({ "from": "checkpoint" })).json();
    let done = browser.act(&id, "resume", &json!({ "from": "checkpoint", "mark": shown["mark"] }));
    assert_eq!(done.status, 200, "{done:?}");
    until("the files are back", || (!env.path("project/built.txt").exists()).then_some(()));
    until("its agent has ended", || {
        (env.json(&["show", &id])["state"]["run"]["outcome"] == "completed").then_some(())
    });
}

/// A halted loop whose breaker was closed goes on; an open one has to be closed first, and only an open one can be.
#[test]
fn a_loop_goes_on_when_its_breaker_is_closed() {
    let env = claude("cat > /dev/null; says='nothing new'");
    let args = ["loop", "--no-hooks", "--agent", "claude", "--prompt", "make c", "--until", "test -e c"];
    let halted = env.run(&args);
    assert_eq!(halted.code, 28, "{}", halted.stderr);
    assert_eq!(question(&env)["kind"], "breaker");
    let id = env.json(&["show", "last"])["session"]["session_id"].as_str().unwrap().to_owned();
    let server = Server::start(&env, &["--metrics"]);
    let browser = server.browser();
    let metrics = browser.get("/metrics").body;
    assert!(metrics.contains("segno_questions_waiting{project=\"project\",agent=\"claude\"} 1"), "{metrics}");
    assert_eq!(browser.act(&id, "resume", &json!({})).code(), "halted");
    let reset = browser.act(&id, "reset-breaker", &json!({ "because": "another try" }));
    assert_eq!(reset.status, 200, "{reset:?}");
    let again = browser.act(&id, "reset-breaker", &json!({}));
    assert_eq!((again.status, again.code().as_str()), (409, "no_breaker"));
    env.write("project/c", "");
    let done = browser.act(&id, "resume", &json!({}));
    assert_eq!(done.status, 200, "{done:?}");
    until("it has gone on", || {
        let state = env.json(&["show", &id])["state"].clone();
        (state["run"]["outcome"] == "completed" && state["looping"]["total"].as_u64()? > 3).then_some(())
    });
}

/// What nobody halted has no breaker to close: a paused session stays paused.
#[test]
fn closing_no_breaker_changes_nothing() {
    let env = TestEnv::new();
    let id = env.start(&["boats"]);
    env.ok(&["pause", &id]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let refused = browser.act(&id, "reset-breaker", &json!({}));
    assert_eq!((refused.status, refused.code().as_str()), (409, "no_breaker"), "{refused:?}");
    assert_eq!(env.json(&["show", &id])["session"]["status"], "paused");
    assert!(!env.ok(&["history", &id]).stdout.contains("breaker"));
}
