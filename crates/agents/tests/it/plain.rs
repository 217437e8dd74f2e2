//! Plain commands.

use segno_agents::Agent;
use segno_agents::Conversation;
use segno_agents::ExitInfo;
use segno_agents::LaunchRequest;
use segno_agents::OutcomeKind;
use segno_agents::ReaderOptions;
use segno_agents::launch::LaunchError;
use segno_agents::launch::Unsupported;
use segno_agents::plain::Plain;
use segno_agents::plain::PlainConfig;

use crate::support::read_with;
use crate::support::show;
use crate::support::shown;

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

/// Cursor's agent: one line per message, and calls that are named by the only key of an object.
const CURSOR: &str = r#"{
    "name": "cursor", "command": ["cursor-agent", "--print", "--output-format", "stream-json", "{options}", "--"],
    "prompt": "argument", "resume": ["--resume", "{id}"], "model": ["--model", "{model}"],
    "format": "json", "native_id": "$.session_id", "version_args": ["--version"],
    "rules": [
        { "kind": "session_started", "when": { "$.type": "system", "$.subtype": "init" },
          "fields": { "native_id": "$.session_id", "model": "$.model", "cwd": "$.cwd" } },
        { "kind": "text", "when": { "$.type": "assistant", "@.type": "text" }, "each": "$.message.content",
          "fields": { "text": "@.text" } },
        { "kind": "tool_started", "when": { "$.type": "tool_call", "$.subtype": "started" },
          "fields": { "call_id": "$.call_id", "tool": "$.tool_call.~", "input": "$.tool_call.*.args" } },
        { "kind": "tool_finished", "when": { "$.type": "tool_call", "$.subtype": "completed", "$.tool_call.*.result.~": "success" },
          "fields": { "call_id": "$.call_id", "output": "$.tool_call.*.result.success", "exit_code": "$.tool_call.*.result.success.exitCode" } },
        { "kind": "tool_denied", "when": { "$.type": "tool_call", "$.subtype": "completed", "$.tool_call.*.result.~": "rejected" },
          "fields": { "call_id": "$.call_id", "reason": "$.tool_call.*.result.rejected.reason" } },
        { "kind": "tool_failed", "when": { "$.type": "tool_call", "$.subtype": "completed" },
          "fields": { "call_id": "$.call_id", "error": "$.tool_call.*.result.*" } },
        { "kind": "result", "when": { "$.type": "result" }, "fields": { "text": "$.result", "failed": "$.is_error" } },
        { "kind": "progress", "when": { "$.type": "user" } }
    ]
}"#;

const CURSOR_STREAM: &str = r#"{"type":"system","subtype":"init","apiKeySource":"login","cwd":"/w","session_id":"s-1","model":"big","permissionMode":"default"}
{"type":"user","message":{"role":"user","content":[{"type":"text","text":"do it"}]},"session_id":"s-1"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Looking."}]},"session_id":"s-1"}
{"type":"tool_call","subtype":"started","call_id":"c1","tool_call":{"readToolCall":{"args":{"path":"a.txt"}}},"session_id":"s-1"}
{"type":"tool_call","subtype":"completed","call_id":"c1","tool_call":{"readToolCall":{"args":{"path":"a.txt"},"result":{"success":{"content":"x","totalLines":1}}}},"session_id":"s-1"}
{"type":"tool_call","subtype":"started","call_id":"c2","tool_call":{"writeToolCall":{"args":{"path":"/etc/b"}}},"session_id":"s-1"}
{"type":"tool_call","subtype":"completed","call_id":"c2","tool_call":{"writeToolCall":{"args":{"path":"/etc/b"},"result":{"error":{"message":"no right"}}}},"session_id":"s-1"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Done."}]},"session_id":"s-1"}
"#;

#[test]
fn cursors_documented_stream() {
    let agent = config(CURSOR);
    let end = r#"{"type":"result","subtype":"success","duration_ms":9,"duration_api_ms":9,"is_error":false,"result":"Looking.Done.","session_id":"s-1"}"#;
    let stream = format!("{CURSOR_STREAM}{end}\n");
    let (events, outcome) =
        read_with(&agent, &ReaderOptions::default(), stream.as_bytes(), &ExitInfo::code(0));
    insta::assert_snapshot!(show(&events, &outcome));
    // A failure is documented to end the stream early, with the reason on stderr.
    let exit = ExitInfo::code(1).with_stderr("out of credit");
    let (_, outcome) = read_with(&agent, &ReaderOptions::default(), CURSOR_STREAM.as_bytes(), &exit);
    assert_eq!((outcome.outcome, outcome.native_id.as_deref()), (OutcomeKind::Interrupted, Some("s-1")));
}

/// Amp: messages made of blocks, tokens with each message, several words for the end.
const AMP: &str = r#"{
    "name": "amp", "command": ["amp", "{options}", "--execute", "--stream-json"], "prompt": "stdin",
    "resume": ["threads", "continue", "{id}"], "fork": ["threads", "fork", "{id}"],
    "format": "json", "native_id": "$.session_id",
    "rules": [
        { "kind": "session_started", "when": { "$.type": "system", "$.subtype": "init" },
          "fields": { "native_id": "$.session_id", "cwd": "$.cwd" } },
        { "kind": "text", "when": { "$.type": "assistant", "@.type": "text" }, "each": "$.message.content",
          "fields": { "text": "@.text", "parent": "$.parent_tool_use_id" } },
        { "kind": "thinking", "when": { "$.type": "assistant", "@.type": "thinking" }, "each": "$.message.content",
          "fields": { "text": "@.thinking", "parent": "$.parent_tool_use_id" } },
        { "kind": "tool_started", "when": { "$.type": "assistant", "@.type": "tool_use" }, "each": "$.message.content",
          "fields": { "call_id": "@.id", "tool": "@.name", "input": "@.input", "parent": "$.parent_tool_use_id" } },
        { "kind": "tool_failed", "when": { "@.type": "tool_result", "@.is_error": true }, "each": "$.message.content",
          "fields": { "call_id": "@.tool_use_id", "error": "@.content", "parent": "$.parent_tool_use_id" } },
        { "kind": "tool_finished", "when": { "@.type": "tool_result" }, "each": "$.message.content",
          "fields": { "call_id": "@.tool_use_id", "output": "@.content", "parent": "$.parent_tool_use_id" } },
        { "kind": "tokens", "when": { "$.type": "assistant" },
          "fields": { "input": "$.message.usage.input_tokens", "cache_read": "$.message.usage.cache_read_input_tokens",
                      "cache_write": "$.message.usage.cache_creation_input_tokens", "output": "$.message.usage.output_tokens" } },
        { "kind": "result", "when": { "$.type": "result" },
          "fields": { "text": "$.result", "error": "$.error", "failed": "$.is_error", "verdict": "$.subtype" },
          "verdicts": { "error_max_turns": "max_turns" } }
    ]
}"#;

const AMP_STREAM: &str = r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"T-1","tools":["Bash"],"mcp_servers":[]}
{"type":"assistant","message":{"type":"message","role":"assistant","content":[{"type":"text","text":"Two at once."},{"type":"tool_use","id":"c1","name":"Bash","input":{"cmd":"ls"}},{"type":"tool_use","id":"c2","name":"Bash","input":{"cmd":"false"}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":7}},"parent_tool_use_id":null,"session_id":"T-1"}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a.txt","is_error":false},{"type":"tool_result","tool_use_id":"c2","content":"exit 1","is_error":true}]},"parent_tool_use_id":null,"session_id":"T-1"}
{"type":"assistant","message":{"type":"message","role":"assistant","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":20,"output_tokens":3}},"parent_tool_use_id":null,"session_id":"T-1"}
"#;

#[test]
fn amps_documented_stream() {
    let agent = config(AMP);
    let end = |subtype: &str, rest: &str| {
        format!(
            "{AMP_STREAM}{{\"type\":\"result\",\"subtype\":\"{subtype}\",{rest},\"session_id\":\"T-1\"}}\n"
        )
    };
    let read =
        |stream: &str| read_with(&agent, &ReaderOptions::default(), stream.as_bytes(), &ExitInfo::code(0));
    let (events, outcome) = read(&end("success", r#""is_error":false,"result":"Done.""#));
    insta::assert_snapshot!(show(&events, &outcome));
    let failed = r#""is_error":true,"error":"no"#;
    for (subtype, kind) in
        [("error_during_execution", OutcomeKind::Failed), ("error_max_turns", OutcomeKind::MaxTurns)]
    {
        let (_, outcome) = read(&end(subtype, &format!("{failed} {subtype}\"")));
        assert_eq!((outcome.outcome, outcome.reason), (kind, format!("no {subtype}")));
    }
    assert_eq!(read(AMP_STREAM).1.outcome, OutcomeKind::Interrupted);
}

#[test]
fn command_lines() {
    let line = |json: &str, request: LaunchRequest| {
        let spec = config(json).launch(&request).unwrap();
        ([&[spec.program][..], &spec.args].concat().join(" "), spec.unsupported)
    };
    let request = |conversation: Conversation| LaunchRequest {
        prompt: "- do it".into(),
        conversation,
        model: Some("big".into()),
        extra_args: vec!["--force".into()],
        ..LaunchRequest::default()
    };
    let (cursor, missing) = line(CURSOR, request(Conversation::Resume("s-1".into())));
    let expected =
        "cursor-agent --print --output-format stream-json --resume s-1 --model big --force -- - do it";
    assert_eq!((cursor.as_str(), missing), (expected, vec![]));
    let fork = Conversation::Fork { from: "T-1".into(), id: None, at: Some("x".into()) };
    let (amp, missing) = line(AMP, request(fork));
    assert_eq!(amp, "amp threads fork T-1 --execute --stream-json --force");
    assert_eq!(missing, [Unsupported::ForkAt, Unsupported::Model]);
    let (_, missing) = line(AMP, request(Conversation::NewWithId("T-2".into())));
    assert_eq!(missing, [Unsupported::ChosenId, Unsupported::Model]);
    // The prompt as the value of an option.
    for (flag, expected) in [("--prompt", "tool --force --prompt=- do it"), ("-p", "tool --force -p - do it")]
    {
        let json = format!(
            r#"{{ "command": ["tool"], "prompt": {{ "flag": "{flag}" }}, "model": ["-m{{model}}"] }}"#
        );
        let (tool, missing) = line(&json, LaunchRequest { model: None, ..request(Conversation::New) });
        assert_eq!((tool.as_str(), missing), (expected, vec![]));
    }
    let bare = config(r#"{ "command": ["tool"], "prompt": "argument", "resume": ["{id}"] }"#);
    assert!(matches!(
        bare.launch(&request(Conversation::New)),
        Err(LaunchError::BadValue { what: "prompt", .. })
    ));
    let option = LaunchRequest { prompt: "do it".into(), ..request(Conversation::Resume("--last".into())) };
    assert!(matches!(bare.launch(&option), Err(LaunchError::BadValue { what: "session id", .. })));
}
