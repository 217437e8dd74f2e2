//! Plain commands.

use segno_agents::plain::{Plain, PlainConfig};
use segno_agents::{ExitInfo, OutcomeKind, ReaderOptions};

use crate::support::{read_with, show, shown};

fn config(json: &str) -> Plain {
    Plain::new(serde_json::from_str::<PlainConfig>(json).unwrap())
}

#[test]
fn text() {
    insta::assert_snapshot!(shown("plain", "building\n{\"looks\":\"like json\"}\nok", &ExitInfo::code(0)));
}

#[test]
fn the_exit_code_decides() {
    for (exit, kind) in [
        (ExitInfo::code(0), OutcomeKind::Completed),
        (ExitInfo::code(2), OutcomeKind::Failed),
        (ExitInfo::signal(9), OutcomeKind::Interrupted),
        (ExitInfo::code(130), OutcomeKind::Interrupted),
        (ExitInfo::default(), OutcomeKind::Interrupted),
    ] {
        let (_, outcome) = read_with(&Plain::default(), &ReaderOptions::default(), b"x\n", &exit);
        assert_eq!(outcome.outcome, kind, "{exit:?}");
        assert!(!outcome.tokens_exact, "nobody told");
    }
}

const RULES: &str = r#"{
    "name": "mine", "command": ["mine"], "format": "json",
    "rules": [
        { "kind": "session_started", "when": { "$.event": "hello" }, "fields": { "native_id": "$.session.id" } },
        { "kind": "text", "when": { "$.event": "say" }, "fields": { "text": "$.message.text" } },
        { "kind": "tool_started", "when": { "$.event": "run" }, "fields": { "call_id": "$.id", "tool": "$.tool", "input": "$.args" } },
        { "kind": "tool_finished", "when": { "$.event": "ran" }, "fields": { "call_id": "$.id", "output": "$.out[0]", "exit_code": "$.code" } },
        { "kind": "tokens", "when": { "$.event": "usage" }, "fields": { "input": "$.in", "output": "$.out" }, "cumulative": true },
        { "kind": "cost", "when": { "$.event": "cost" }, "fields": { "usd": "$.usd" }, "cumulative": true },
        { "kind": "result", "when": { "$.event": "end" }, "fields": { "text": "$.text", "error": "$.error" } }
    ]
}"#;

const STREAM: &str = r#"{"event":"hello","session":{"id":7}}
{"event":"say","message":{"text":"hi"}}
{"event":"run","id":"1","tool":"sh","args":{"cmd":"ls"}}
{"event":"ran","id":"1","out":["a"],"code":0}
{"event":"usage","in":10,"out":1}
{"event":"cost","usd":0.5}
{"event":"usage","in":30,"out":2}
{"event":"cost","usd":0.75}
{"event":"what"}
oops
"#;

#[test]
fn json_by_rules() {
    let agent = config(RULES);
    let stream = format!("{STREAM}{{\"event\":\"end\",\"text\":\"bye\"}}\n");
    let (events, outcome) =
        read_with(&agent, &ReaderOptions::default(), stream.as_bytes(), &ExitInfo::code(0));
    insta::assert_snapshot!(show(&events, &outcome));
}

#[test]
fn an_end_that_is_promised_must_come() {
    let agent = config(RULES);
    for (end, kind) in [
        ("", OutcomeKind::Interrupted),
        ("{\"event\":\"end\",\"error\":\"no luck\"}\n", OutcomeKind::Failed),
        ("{\"event\":\"end\",\"error\":null}\n", OutcomeKind::Completed),
    ] {
        let stream = format!("{STREAM}{end}");
        let (_, outcome) =
            read_with(&agent, &ReaderOptions::default(), stream.as_bytes(), &ExitInfo::code(0));
        assert_eq!(outcome.outcome, kind);
    }
}

#[test]
fn configuration_mistakes_are_errors() {
    for bad in [
        r#"{"comand": ["x"]}"#,
        r#"{"rules": [{"kind": "text", "fields": {"text": "message"}}]}"#,
        r#"{"rules": [{"kind": "tekst"}]}"#,
    ] {
        assert!(serde_json::from_str::<PlainConfig>(bad).is_err(), "{bad}");
    }
}
