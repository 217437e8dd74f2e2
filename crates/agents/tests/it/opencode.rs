//! opencode's stream.

use segno_agents::AgentEvent;
use segno_agents::ErrorClass;
use segno_agents::ExitInfo;
use segno_agents::OutcomeKind;
use segno_agents::ReaderOptions;
use segno_agents::by_name;

use crate::support::read;
use crate::support::shown;

fn line(kind: &str, part: &str) -> String {
    format!(
        "{{\"type\":\"{kind}\",\"timestamp\":1794766769308,\"sessionID\":\"ses_1\",\"part\":{{\"id\":\"prt_1\",\"messageID\":\"msg_1\",{part}}}}}\n"
    )
}

fn call(id: &str, tool: &str, state: &str) -> String {
    line("tool_use", &format!(r#""type":"tool","tool":"{tool}","callID":"{id}","state":{{{state}}}"#))
}

fn step(reason: &str) -> String {
    let tokens = r#"{"total":160,"input":70,"output":40,"reasoning":10,"cache":{"read":30,"write":10}}"#;
    line("step_start", r#""type":"step-start""#)
        + &line(
            "step_finish",
            &format!(r#""type":"step-finish","reason":"{reason}","tokens":{tokens},"cost":0.25"#),
        )
}

#[test]
fn a_run_with_everything() {
    let stream = [
        line("step_start", r#""type":"step-start""#),
        line("reasoning", r#""type":"reasoning","text":"hm""#),
        line("text", r#""type":"text","text":"One moment.""#),
        call("c1", "bash", r#""status":"completed","input":{"command":"ls"},"output":"a\n","metadata":{"exit":0},"time":{"start":10,"end":25}"#),
        call("c2", "bash", r#""status":"completed","input":{"command":"false"},"output":"no","metadata":{"exit":3}"#),
        call("c3", "write", r#""status":"completed","input":{"filePath":"a"},"output":"ok","metadata":{"filepath":"/w/a","exists":false}"#),
        call("c4", "edit", r#""status":"completed","input":{"filePath":"/w/a"},"output":"ok","metadata":{}"#),
        call("c5", "read", r#""status":"error","input":{"filePath":"b"},"error":"File not found: b""#),
        call("c6", "invalid", r#""status":"completed","input":{"tool":"x"},"output":"not there","metadata":{}"#),
        call("c7", "task", r#""status":"completed","input":{"description":"count","subagent_type":"general"},"output":"3","metadata":{"sessionId":"ses_2"}"#),
        call("c8", "todowrite", r#""status":"completed","input":{"todos":[{"content":"one","status":"completed"}]},"output":"","metadata":{}"#),
        call("c9", "bash", r#""status":"error","input":{},"error":"refused by a hook: not here""#),
        r#"{"type":"hologram","sessionID":"ses_1","x":1}"#.to_owned() + "\n",
        step("tool-calls"),
        line("text", r#""type":"text","text":"Done.""#),
        step("stop"),
    ]
    .concat();
    insta::assert_snapshot!(shown("opencode", &stream, &ExitInfo::code(0)));
}

#[test]
fn the_last_step_decides() {
    use OutcomeKind as Kind;
    for (steps, code, kind) in [
        (vec!["stop"], 0, Kind::Completed),
        (vec!["tool-calls", "stop"], 0, Kind::Completed),
        (vec!["unknown", "stop"], 0, Kind::Completed),
        (vec!["tool-calls"], 0, Kind::Interrupted),
        (vec!["unknown"], 0, Kind::Interrupted),
        (vec!["length"], 0, Kind::Failed),
        (vec!["content-filter"], 0, Kind::Failed),
        (vec!["stop", "tool-calls"], 0, Kind::Interrupted),
        (vec!["stop"], 1, Kind::Failed),
    ] {
        let stream: String = steps.iter().map(|reason| step(reason)).collect();
        let (_, outcome) = read("opencode", &stream, &ExitInfo::code(code));
        assert_eq!(outcome.outcome, kind, "{steps:?}");
    }
}

#[test]
fn a_rejection_ends_the_run_without_a_word() {
    let rejected = call(
        "c1",
        "bash",
        r#""status":"error","input":{},"error":"The user rejected permission to use this specific tool call.""#,
    );
    let (events, outcome) =
        read("opencode", &format!("{rejected}{}", step("tool-calls")), &ExitInfo::code(0));
    assert_eq!((outcome.outcome, outcome.denials.len()), (OutcomeKind::Denied, 1));
    assert!(events.iter().any(|event| matches!(event.event, AgentEvent::ToolDenied { .. })));
    // If it goes on all the same, what comes after counts.
    let done = call("c2", "bash", r#""status":"completed","input":{},"output":"","metadata":{"exit":0}"#);
    let stream = format!("{rejected}{}{done}{}", step("tool-calls"), step("stop"));
    assert_eq!(read("opencode", &stream, &ExitInfo::code(0)).1.outcome, OutcomeKind::Completed);
    // A rule that forbids does not end the run.
    let forbidden = rejected.replace(
        "The user rejected permission to use",
        "The user has specified a rule which prevents you from using",
    );
    let (_, outcome) = read("opencode", &format!("{forbidden}{}", step("tool-calls")), &ExitInfo::signal(9));
    assert_eq!((outcome.outcome, outcome.denials.len()), (OutcomeKind::Interrupted, 1));
}

#[test]
fn errors() {
    for (name, data, kind, class) in [
        (
            "APIError",
            r#"{"message":"bad key","statusCode":401}"#,
            OutcomeKind::Failed,
            ErrorClass::Authentication,
        ),
        ("APIError", r#"{"message":"slow down","statusCode":429}"#, OutcomeKind::Limit, ErrorClass::Limit),
        ("ProviderAuthError", r#"{"message":"no"}"#, OutcomeKind::Failed, ErrorClass::Authentication),
        ("ContextOverflowError", r#"{"message":"no"}"#, OutcomeKind::Failed, ErrorClass::Context),
        ("MessageAbortedError", "{}", OutcomeKind::Interrupted, ErrorClass::Unknown),
    ] {
        let stream = format!(
            "{{\"type\":\"error\",\"sessionID\":\"ses_1\",\"error\":{{\"name\":\"{name}\",\"data\":{data}}}}}\n"
        );
        let (_, outcome) = read("opencode", &stream, &ExitInfo::code(1));
        assert_eq!((outcome.outcome, outcome.native_id.as_deref()), (kind, Some("ses_1")), "{name}");
        assert_eq!(outcome.error.unwrap().class, class, "{name}");
    }
    let exit = ExitInfo::code(1).with_stderr("Error: Session not found");
    let (_, outcome) = read("opencode", "", &exit);
    assert_eq!((outcome.outcome, outcome.error.unwrap().class), (OutcomeKind::Failed, ErrorClass::Setup));
}

#[test]
fn tokens_and_money_add_up() {
    let stream = format!("{}{}", step("tool-calls"), step("stop"));
    let (_, outcome) = read("opencode", &stream, &ExitInfo::code(0));
    let tokens = outcome.tokens;
    assert_eq!((tokens.input, tokens.cache_read, tokens.cache_write), (140, 60, 20));
    assert_eq!((tokens.output, tokens.reasoning, tokens.total()), (100, 20, 320));
    assert_eq!((outcome.cost_usd, outcome.turns, outcome.tokens_exact), (Some(0.5), 2, true));
}

#[test]
fn a_line_nobody_understands_begins_nothing() {
    let text = line("text", r#""type":"text","text":"hi""#);
    for unknown in ["{\"type\":\"hologram\",\"sessionID\":\"ses_1\"}\n".to_owned(), line("text", r#""x":1"#)]
    {
        let (events, outcome) = read("opencode", &format!("{unknown}{text}"), &ExitInfo::code(0));
        let kinds: Vec<bool> =
            events.iter().map(|event| matches!(event.event, AgentEvent::SessionStarted { .. })).collect();
        assert_eq!(kinds, [false, true, false], "told by the first line that is understood");
        assert_eq!(outcome.native_id.as_deref(), Some("ses_1"));
    }
    let done = line("step_finish", r#""type":"step-finish","reason":"stop""#);
    let unknown = "{\"type\":\"hologram\",\"sessionID\":\"ses_1\"}\n";
    let (events, _) = read("opencode", &format!("{text}{done}{unknown}{text}"), &ExitInfo::code(0));
    assert_eq!(events.iter().filter(|event| event.event == AgentEvent::TurnStarted).count(), 1);
}

#[test]
fn who_takes_over_knows_of_a_rejection() {
    let rejected = call("c1", "bash", r#""status":"error","error":"The user rejected permission to use it""#);
    let mut reader = by_name("opencode").unwrap().reader(&ReaderOptions::default());
    reader.feed(rejected.as_bytes(), &mut |_| {});
    assert_eq!(reader.safe_offset(), 0);
    reader.feed(step("tool-calls").as_bytes(), &mut |_| {});
    assert!(reader.safe_offset() > rejected.len() as u64);
}
