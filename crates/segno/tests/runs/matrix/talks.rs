//! A model that fails, and conversations that go on.

use rstest::rstest;
use segno_testkit::model::End;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;

use super::Real;
use crate::lab::until;

#[rstest]
fn too_many_requests_then_success(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let limited = Turn::error(429).header("retry-after", "1");
    let Some(real) = Real::with(agent, [limited, "made it".into()]) else { return };
    let said = real.run(&[]);
    let result = real.ended("429 then success", &said, "completed", "completed");
    assert_eq!(result["text"], "made it");
    assert_eq!(real.asked().len(), 2, "it asked again");
    if agent == "claude" {
        let retries = real.lab.journal(Some("reported"));
        let told = retries
            .iter()
            .any(|event| event["body"]["what"] == "retry" && event["body"]["body"]["api_status"] == 429);
        assert!(told, "what it waits for is an event: {retries:#?}");
    }
}

#[rstest]
#[case::claude("claude", 529)]
#[case::codex("codex", 503)]
#[case::gemini("gemini", 503)]
fn overloaded_to_the_end(#[case] agent: &'static str, #[case] status: u16) {
    let script = Script::new([Turn::error(status)]).then(Then::Repeat);
    let Some(real) = Real::new(agent, script, Patience::default()) else { return };
    let said = real.run(&[]);
    let result = real.ended("overload to the end", &said, "failed", "paused");
    assert!(result["error"]["text"].is_string(), "{result}");
    assert_eq!(result["error"]["class"], "overloaded", "{result}");
    assert_eq!(result["limit"]["class"], "overload", "{result}");
    if agent == "claude" {
        assert_eq!(result["error"]["api_status"], 529, "{result}");
        assert_eq!(real.asked().len(), 3, "one request and two retries");
    }
}

/// opencode tries six times, which takes it more than a minute; it can be stopped meanwhile.
#[test]
fn overloaded_without_end() {
    let script = Script::new([Turn::error(503)]).then(Then::Repeat);
    let Some(real) = Real::new("opencode", script, Patience::default()) else { return };
    let live = real.start(&[]);
    until("it has tried again", || (real.asked().len() > 1).then_some(()));
    let stop = real.lab.run(&["stop", "last"]);
    assert_eq!(stop.code, Some(0), "{}", stop.stderr);
    real.settled("overload to the end", live, "stopped", "paused");
}

#[rstest]
fn a_bad_key(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let script = Script::new([Turn::error(401)]).then(Then::Repeat);
    let Some(real) = Real::new(agent, script, Patience::default()) else { return };
    let said = real.run(&[]);
    let result = real.ended("bad key", &said, "failed", "paused");
    assert_eq!(result["error"]["class"], "authentication", "{result}");
    assert_eq!(result["limit"]["class"], "auth", "{result}");
    assert!(real.asked().iter().all(|request| request.end == End::Error(401)));
    // Gemini CLI's is the status, as far as an exit code can hold it.
    let code = if agent == "gemini" { 145 } else { 1 };
    assert_eq!(result["agent_exit_code"], code, "{result}");
}

#[rstest]
#[case::claude("claude", 4)]
#[case::codex("codex", 3)]
#[case::opencode("opencode", 2)]
fn a_stream_that_stalls_and_recovers(#[case] agent: &'static str, #[case] after: usize) {
    let script = Script::new([Turn::stall(after), "recovered".into()]);
    let Some(real) = Real::new(agent, script, Patience::short()) else { return };
    let said = real.run(&[]);
    let result = real.ended("stalled stream, the agent's own timer", &said, "completed", "completed");
    assert_eq!(result["text"], "recovered");
    assert_eq!(real.asked()[0].end, End::ClientGone, "it hung up by itself");
}

#[rstest]
#[case::claude("claude", 4)]
#[case::codex("codex", 3)]
#[case::gemini("gemini", 1)]
#[case::opencode("opencode", 2)]
fn a_stream_that_stalls_until_segno_loses_patience(#[case] agent: &'static str, #[case] after: usize) {
    let script = Script::new([Turn::stall(after)]).then(Then::Repeat);
    let Some(real) = Real::new(agent, script, Patience::default()) else { return };
    // On a busy machine these two say nothing for many seconds when they start.
    let silence = match agent {
        "gemini" => "12s",
        "opencode" => "20s",
        _ => "4s",
    };
    let said = real.run(&["--silence", silence]);
    assert!(!real.model.requests().is_empty(), "it was the model that said nothing");
    let result = real.ended("stalled stream, --silence", &said, "timed_out", "paused");
    assert!(result["reason"].as_str().unwrap().contains("no sign of life"), "{result}");
    let watched = real.lab.journal(Some("reported"));
    assert!(watched.iter().any(|event| event["body"]["what"] == "watchdog"), "what it did is an event");
}

#[rstest]
fn a_conversation_goes_on(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let turns = [Turn::sh("echo one"), "the word is plum".into(), Turn::sh("echo two"), "as I said".into()];
    let Some(real) = Real::with(agent, turns) else { return };
    let first = real.run(&[]).result();
    let said = real.run(&["--continue-from", "last"]);
    let second = real.ended("resume", &said, "completed", "completed");
    assert_eq!(second["native_id"], first["native_id"], "the same conversation");
    assert_ne!(second["session_id"], first["session_id"], "in a new session");
    assert!(real.asked()[2].conversation.contains("the word is plum"));
    assert_eq!(real.lab.state()["continues"], first["session_id"]);
    real.ledger(&["completed"]);
    let used = |session: &serde_json::Value| {
        let shown = real.lab.json(&["show", session.as_str().unwrap()]);
        shown["state"]["budget"]["tokens_used"].as_u64().unwrap()
    };
    assert_eq!(used(&first["session_id"]), used(&second["session_id"]), "each run counts its own tokens");
}

#[rstest]
#[case::claude("claude")]
#[case::codex("codex")]
#[case::opencode("opencode")]
fn a_conversation_is_copied(#[case] agent: &'static str) {
    let Some(real) = Real::with(agent, ["the word is plum".into(), "a copy".into()]) else { return };
    let first = real.run(&[]).result();
    let said = real.run(&["--continue-from", "last", "--fork"]);
    let second = real.ended("fork", &said, "completed", "completed");
    assert!(second["native_id"].is_string() && second["native_id"] != first["native_id"]);
    assert!(real.asked()[1].conversation.contains("the word is plum"));
    real.ledger(&[]);
}

/// Agents number their calls anew in each run; two calls are two, all the same.
#[rstest]
fn two_runs_in_one_session(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let turns = [Turn::sh("echo one"), "first".into(), Turn::sh("exit 3"), "second".into()];
    let Some(real) = Real::with(agent, turns) else { return };
    let new = real.lab.run(&["new"]);
    assert_eq!(new.code, Some(0), "{}", new.stderr);
    let session = new.text().trim().to_owned();
    let first = real.run(&["--session", &session]);
    assert_eq!(first.result()["outcome"], "completed");
    let said = real.run(&["--session", &session]);
    real.ended("second run in a session", &said, "completed", "active");
    real.ledger(&["completed", "failed"]);
}
