//! Codex, for real: how runs go and fail.

use segno_agents::{AgentEvent, ErrorClass, OutcomeKind};
use segno_testkit::model::{End, Op, Script, Then, Turn, Usage, When};
use segno_testkit::recipe::Patience;

use crate::support::Lab;

fn lab(script: Script) -> Option<Lab> {
    Lab::new("codex", script, Patience::default())
}

#[test]
fn says_something() {
    let usage = Usage { input: 1000, output: 50, cache_read: 300, cache_write: 0 };
    let turn = Turn { thinking: Some("hm".to_owned()), ..Turn::text("hello there").usage(usage) };
    let Some(lab) = lab(Script::new([turn])) else { return };
    let ran = lab.prompt("say hello");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!(ran.outcome.text.as_deref(), Some("hello there"));
    let tokens = ran.outcome.tokens;
    assert_eq!((tokens.input, tokens.output, tokens.cache_read), (1000, 50, 300));
    assert!(ran.events().any(|event| matches!(event, AgentEvent::Thinking { text, .. } if text == "hm")));
    assert_eq!(ran.outcome.unparsed, 0);
}

#[test]
fn uses_tools() {
    let turns = [
        Turn::ops([Op::sh("echo from-the-shell"), Op::write("a.txt", "written\n")]),
        Turn::ops([
            Op::Read("a.txt".to_owned()),
            Op::Edit { path: "a.txt".to_owned(), old: "written".to_owned(), new: "edited".to_owned() },
        ]),
        Turn::sh("echo heard ${last:from-the-(\\w+)}"),
        Turn::text("all done"),
    ];
    let Some(lab) = lab(Script::new(turns)) else { return };
    let ran = lab.prompt("work");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!((ran.outcome.tool_calls, ran.outcome.open_calls.len()), (5, 0));
    assert_eq!(std::fs::read_to_string(lab.home.work().join("a.txt")).unwrap(), "edited\n");
    let last = lab.model.requests().pop().unwrap();
    assert!(last.conversation.contains("heard shell"), "results of tools reach the model");
    assert!(lab.home.processes().is_empty());
}

#[test]
fn a_tool_that_fails() {
    let Some(lab) = lab(Script::new([Turn::sh("echo broken; exit 3"), "I see".into()])) else { return };
    let ran = lab.prompt("work");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert!(ran.events().any(|event| matches!(event, AgentEvent::ToolFailed { exit_code: Some(3), .. })));
}

#[test]
fn a_sub_agent() {
    // The parent waits for its helper by the id that starting it gave back.
    let wait = Op::Tool {
        name: "wait_agent".to_owned(),
        input: serde_json::json!({ "targets": ["${last:agent_id[^0-9a-f]*([0-9a-f-]{36})}"] }),
        namespace: Some("multi_agent_v1".to_owned()),
        id: None,
    };
    let turns = [Turn::ops([Op::task("count the files please")]), Turn::ops([wait]), "told you".into()];
    let script = Script::new(turns).track(
        "helper",
        When::first_user("count the files"),
        [Turn::sh("ls | wc -l"), "none".into()],
    );
    let Some(lab) = lab(script) else { return };
    let ran = lab.prompt("delegate");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    let tracks: Vec<String> = lab.model.requests().into_iter().map(|request| request.track).collect();
    assert_eq!(tracks.iter().filter(|track| *track == "helper").count(), 2, "{tracks:?}");
    assert!(ran.events().any(|event| matches!(event, AgentEvent::SubAgentStarted { .. })));
}

#[test]
fn too_many_requests_then_success() {
    let limited = Turn::error(429).header("retry-after", "1");
    let Some(lab) = lab(Script::new([limited, "made it".into()])) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!(ran.outcome.text.as_deref(), Some("made it"));
}

#[test]
fn overloaded_to_the_end() {
    let Some(lab) = lab(Script::new([Turn::error(503)]).then(Then::Repeat)) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert!(ran.outcome.error.unwrap().class.is_transient());
    assert_eq!(ran.finished.code, Some(1));
}

#[test]
fn a_bad_key() {
    let Some(lab) = lab(Script::new([Turn::error(401)]).then(Then::Repeat)) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert_eq!(ran.outcome.error.unwrap().class, ErrorClass::Authentication);
}

#[test]
fn a_stream_that_stalls() {
    let script = Script::new([Turn::stall(3), "recovered".into()]);
    let Some(lab) = Lab::new("codex", script, Patience::short()) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!(ran.outcome.text.as_deref(), Some("recovered"));
    assert!(ran.events().any(|event| matches!(event, AgentEvent::Retry { .. })));
    assert_eq!(lab.model.requests()[0].end, End::ClientGone);
}

#[test]
fn a_stream_that_never_recovers() {
    let script = Script::new([Turn::stall(3)]).then(Then::Repeat);
    let Some(lab) = Lab::new("codex", script, Patience::short()) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert_eq!(ran.outcome.error.unwrap().class, ErrorClass::Network);
}
