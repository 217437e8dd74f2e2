//! Claude Code, for real: how runs go and fail.

use std::time::Duration;

use segno_agents::{AgentEvent, ErrorClass, OutcomeKind};
use segno_testkit::model::{End, Op, Script, Then, Turn, Usage, When};
use segno_testkit::recipe::Patience;

use crate::support::Lab;

fn lab(script: Script) -> Option<Lab> {
    Lab::new("claude", script, Patience::default())
}

#[test]
fn says_something() {
    let usage = Usage { input: 1000, output: 50, cache_read: 300, cache_write: 200 };
    let turn = Turn { thinking: Some("hm".to_owned()), ..Turn::text("hello there").usage(usage) };
    let Some(lab) = lab(Script::new([turn])) else { return };
    let ran = lab.prompt("say hello");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!(ran.outcome.text.as_deref(), Some("hello there"));
    let tokens = ran.outcome.tokens;
    assert_eq!((tokens.input, tokens.output, tokens.cache_read, tokens.cache_write), (1000, 50, 300, 200));
    assert!(ran.outcome.cost_usd.is_some_and(|cost| cost > 0.0));
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
    let Some(lab) = lab(Script::new([Turn::sh("echo broken >&2; exit 3"), "I see".into()])) else { return };
    let ran = lab.prompt("work");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    let failed = ran.events().any(|event| {
        matches!(event, AgentEvent::ToolFailed { error, exit_code: Some(3), .. } if error.contains("broken"))
    });
    assert!(failed);
}

#[test]
fn a_sub_agent() {
    let script = Script::new([Turn::ops([Op::task("count the files please")]), "told you".into()]).track(
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
    assert!(ran.events().any(|event| matches!(event, AgentEvent::Retry { api_status: Some(429), .. })));
    assert!(ran.finished.took >= Duration::from_secs(1), "it waits as long as it was told");
}

#[test]
fn overloaded_to_the_end() {
    let Some(lab) = lab(Script::new([Turn::error(529)]).then(Then::Repeat)) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    let error = ran.outcome.error.unwrap();
    assert_eq!((error.class, error.api_status), (ErrorClass::Overloaded, Some(529)));
    assert_eq!(ran.finished.code, Some(1));
    assert_eq!(lab.model.requests().len(), 3, "one request and two retries");
}

#[test]
fn a_bad_key() {
    let Some(lab) = lab(Script::new([Turn::error(401)]).then(Then::Repeat)) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert_eq!(ran.outcome.error.unwrap().class, ErrorClass::Authentication);
    assert!(lab.model.requests().iter().all(|request| request.end == End::Error(401)));
}

#[test]
fn a_stream_that_stalls() {
    let script = Script::new([Turn::stall(4), "recovered".into()]);
    let Some(lab) = Lab::new("claude", script, Patience::short()) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!(ran.outcome.text.as_deref(), Some("recovered"));
    assert_eq!(lab.model.requests()[0].end, End::ClientGone);
}

#[test]
fn no_answer_at_all() {
    let fault = segno_testkit::model::Fault::Stall { after: None, ms: None };
    let script = Script::new([Turn::from(fault)]).then(Then::Repeat);
    let Some(lab) = Lab::new("claude", script, Patience::short()) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert_eq!(ran.outcome.error.unwrap().class, ErrorClass::Network);
    assert!(lab.model.requests().iter().all(|request| request.end == End::ClientGone));
}
