//! Codex's rollout while it is written: every call once, and tokens as they are used.

use segno_agents::AgentEvent;
use segno_agents::Baseline;
use segno_agents::Envelope;
use segno_agents::ExitInfo;
use segno_agents::LogUse;
use segno_agents::Outcome;
use segno_agents::OutcomeKind;
use segno_agents::ReaderOptions;
use segno_agents::TokenCounts;
use segno_agents::by_name;
use serde_json::Value;
use serde_json::json;

fn read(lines: &[String], options: &ReaderOptions, chunk: usize) -> (Vec<Envelope>, Outcome) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut reader =
        by_name("codex").unwrap().conversation_log().unwrap().reader(options, LogUse::BesideOutput).unwrap();
    let mut events = Vec::new();
    text.as_bytes().chunks(chunk).for_each(|part| reader.feed(part, &mut |event| events.push(event)));
    let outcome = reader.finish(&ExitInfo::code(0), &mut |event| events.push(event));
    (events, outcome)
}

fn line(kind: &str, payload: Value) -> String {
    json!({ "timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload }).to_string()
}

fn call(id: &str, name: &str, arguments: Value) -> String {
    let arguments = arguments.to_string();
    let call = json!({ "type": "function_call", "name": name, "arguments": arguments, "call_id": id });
    line("response_item", call)
}

fn patch(id: &str, input: &str) -> String {
    let call = json!({ "type": "custom_tool_call", "name": "apply_patch", "input": input, "call_id": id });
    line("response_item", call)
}

fn answer(id: &str, output: &str) -> String {
    line("response_item", json!({ "type": "function_call_output", "call_id": id, "output": output }))
}

fn item(item: Value) -> String {
    line("event_msg", json!({ "type": "item_completed", "item": item }))
}

fn tokens(input: u64, cached: u64, output: u64) -> Value {
    json!({ "input_tokens": input, "cached_input_tokens": cached, "output_tokens": output })
}

/// How each call ended, in the order of the ends.
fn ends(events: &[Envelope]) -> Vec<(String, &'static str)> {
    events
        .iter()
        .filter_map(|envelope| match &envelope.event {
            AgentEvent::ToolFinished { call_id, .. } => Some((call_id.clone(), "finished")),
            AgentEvent::ToolFailed { call_id, interrupted: true, .. } => Some((call_id.clone(), "cut off")),
            AgentEvent::ToolFailed { call_id, .. } => Some((call_id.clone(), "failed")),
            AgentEvent::ToolDenied { call_id, .. } => Some((call_id.clone(), "denied")),
            _ => None,
        })
        .collect()
}

#[test]
fn every_call_starts_once_and_ends_once() {
    let ran = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nProcess exited with code 9\n";
    let failed = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 3\nOutput:\nno\n";
    let running = "Chunk ID: 1\nWall time: 0.5 seconds\nProcess running with session ID 7\nOutput:\n";
    let lines = [
        call("shown", "exec_command", json!({ "cmd": "ls" })),
        item(
            json!({ "type": "CommandExecution", "id": "shown", "status": "completed", "aggregated_output": "a\n", "exit_code": 0 }),
        ),
        answer("shown", ran),
        // Commands that the sandbox stops are not shown to people.
        call("well", "exec_command", json!({ "cmd": "ls" })),
        answer("well", ran),
        call("badly", "exec_command", json!({ "cmd": "touch /x" })),
        answer("badly", failed),
        call("no-args", "exec_command", json!({ "x": 1 })),
        answer("no-args", "failed to parse function arguments: missing field `cmd`"),
        call("escalated", "exec_command", json!({ "cmd": "ls", "sandbox_permissions": "require_escalated" })),
        answer("escalated", "approval policy is Never; reject command \u{2014} you cannot ask"),
        patch("refused", "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"),
        answer(
            "refused",
            "patch rejected: writing outside of the project; rejected by user approval settings",
        ),
        patch("unfit", "*** Begin Patch"),
        answer("unfit", "apply_patch verification failed: no such file"),
        call("unknown", "no_such_tool", json!({ "x": 1 })),
        answer("unknown", "unsupported call: no_such_tool"),
        // It goes on after its call was answered; writing to it is a call of its own.
        call("long", "exec_command", json!({ "cmd": "sleep 9" })),
        answer("long", running),
        call("poke", "write_stdin", json!({ "session_id": 7 })),
        answer("poke", running),
        item(
            json!({ "type": "CommandExecution", "id": "long", "status": "failed", "aggregated_output": "", "exit_code": -1 }),
        ),
        patch("patched", "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch"),
        item(
            json!({ "type": "FileChange", "id": "patched", "status": "completed", "changes": { "/w/b": { "type": "add" } }, "stdout": "ok" }),
        ),
        answer("patched", "Exit code: 0\nWall time: 0 seconds\nOutput:\nok"),
        call("stopped", "exec_command", json!({ "cmd": "sleep 9" })),
        answer("stopped", "Wall time: 0.7 seconds\naborted by user"),
        item(json!({ "type": "CommandExecution", "id": "stopped", "status": "failed", "exit_code": -1 })),
        line(
            "response_item",
            json!({ "type": "web_search_call", "id": "web", "status": "completed", "action": { "query": "q" } }),
        ),
        call("open", "exec_command", json!({ "cmd": "sleep 99" })),
    ];
    let (events, outcome) = read(&lines, &ReaderOptions::default(), usize::MAX);
    let expected = [
        ("shown", "finished"),
        ("well", "finished"),
        ("badly", "failed"),
        ("no-args", "failed"),
        ("escalated", "denied"),
        ("refused", "denied"),
        ("unfit", "failed"),
        ("unknown", "failed"),
        ("poke", "finished"),
        ("patched", "finished"),
        ("stopped", "cut off"),
        ("web", "finished"),
    ];
    assert_eq!(ends(&events), expected.map(|(id, end)| (id.to_owned(), end)));
    let starts = events.iter().filter(|event| matches!(event.event, AgentEvent::ToolStarted { .. })).count();
    assert_eq!((starts, outcome.tool_calls), (14, 14));
    let open: Vec<&str> = outcome.open_calls.iter().map(|call| call.call_id.as_str()).collect();
    // What went on and was cut off has no end: how far it came, nobody knows.
    assert_eq!(open, ["long", "open"]);
    assert_eq!(outcome.denials.len(), 2);
    let (tool, input) = events
        .iter()
        .find_map(|event| match &event.event {
            AgentEvent::ToolStarted { tool, input, .. } => Some((tool.as_str(), input.get())),
            _ => None,
        })
        .unwrap();
    assert_eq!((tool, input), ("shell", r#"{"command":"ls"}"#));
    let files: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::FileChanged { path, call_id, .. } => Some((path.as_str(), call_id.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(files, [("/w/b", Some("patched"))]);
    // However it is cut, the same events have the same places.
    for chunk in [1, 7, 1000] {
        assert_eq!(read(&lines, &ReaderOptions::default(), chunk).0, events);
    }
}

#[test]
fn tokens_are_counted_as_they_are_used_and_once() {
    let used = |last: Value, thread: Value| {
        line("token_usage_record", json!({ "thread_id": "t", "usage": last, "thread_token_usage": thread }))
    };
    let count = |total: Value, last: Value| {
        let info = json!({ "total_token_usage": total, "last_token_usage": last });
        line("event_msg", json!({ "type": "token_count", "info": info }))
    };
    let deltas = |events: &[Envelope]| -> Vec<u64> {
        let delta = |envelope: &Envelope| match &envelope.event {
            AgentEvent::Tokens { delta, .. } => delta.map(|delta| delta.total()),
            _ => None,
        };
        events.iter().filter_map(delta).collect()
    };
    // Another run used 1000 before; nobody but the file knows.
    let lines = [
        used(tokens(100, 40, 10), tokens(1100, 40, 10)),
        count(tokens(1100, 40, 10), tokens(100, 40, 10)),
        count(tokens(1100, 40, 10), tokens(100, 40, 10)),
        used(tokens(200, 0, 20), tokens(1300, 40, 30)),
        count(tokens(1300, 40, 30), tokens(200, 0, 20)),
    ];
    for baseline in [Baseline::Fresh, Baseline::Unknown, Baseline::Known(TokenCounts::default())] {
        let options = ReaderOptions { baseline, start_offset: 5000, ..ReaderOptions::default() };
        let (events, outcome) = read(&lines, &options, usize::MAX);
        assert_eq!(deltas(&events), [110, 220], "{baseline:?}");
        assert_eq!((outcome.tokens.input, outcome.tokens.cache_read, outcome.tokens.output), (260, 40, 30));
        assert!(events.iter().all(|event| event.offset >= 5000));
    }
    // Older versions have only the counts.
    let (events, _) =
        read(&lines[1..3], &ReaderOptions { baseline: Baseline::Unknown, ..Default::default() }, 9);
    assert_eq!(deltas(&events), [110]);
}

/// What was asked last, with its answer, against the window that Codex tells with the count or when the turn begins.
#[test]
fn how_full_the_context_is() {
    let begun = |window: u64| {
        line("event_msg", json!({ "type": "task_started", "turn_id": "u", "model_context_window": window }))
    };
    let used = |last: Value| line("token_usage_record", json!({ "thread_id": "t", "usage": last }));
    let count = |last: Value, window: Option<u64>| {
        let info =
            json!({ "total_token_usage": last, "last_token_usage": last, "model_context_window": window });
        line("event_msg", json!({ "type": "token_count", "info": info }))
    };
    let full = |lines: &[String]| {
        let (_, outcome) = read(lines, &ReaderOptions::default(), usize::MAX);
        outcome.context.map(|fill| (fill.used.unwrap(), fill.window.unwrap()))
    };
    assert_eq!(
        full(&[begun(272_000), used(tokens(100, 40, 10)), used(tokens(300, 0, 20))]),
        Some((320, 272_000))
    );
    assert_eq!(full(&[count(tokens(100, 40, 10), Some(1_000))]), Some((110, 1_000)));
    assert_eq!(full(&[begun(500), count(tokens(100, 40, 10), None)]), Some((110, 500)));
    assert_eq!(full(&[count(tokens(100, 40, 10), None)]), None);
    assert_eq!(full(&[begun(0), used(tokens(1, 0, 1))]), None);
}

#[test]
fn what_is_not_of_this_thread_or_not_whole_is_passed_over() {
    let numbered = |ordinal: u64, line: String| {
        let mut value: Value = serde_json::from_str(&line).unwrap();
        value["ordinal"] = ordinal.into();
        value.to_string()
    };
    let lines = [
        numbered(7, line("session_meta", json!({ "id": "t", "forked_from_id": "u" }))),
        numbered(2, call("copied", "exec_command", json!({ "cmd": "old" }))),
        numbered(8, call("own", "exec_command", json!({ "cmd": "new" }))),
        numbered(
            9,
            line(
                "token_usage_record",
                json!({ "thread_id": "helper", "usage": tokens(5, 0, 5), "thread_token_usage": tokens(5, 0, 5) }),
            ),
        ),
        "not json at all".to_owned(),
        r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_com"#.to_owned(),
    ];
    let (events, outcome) = read(&lines, &ReaderOptions::default(), usize::MAX);
    let calls: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::ToolStarted { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(calls, ["own"]);
    assert!(outcome.tokens.is_zero());
}

#[test]
fn a_refusal_with_nothing_after_it_is_giving_up() {
    let refused =
        [call("a", "exec_command", json!({ "cmd": "x" })), answer("a", "`x` rejected: blocked by policy")];
    let (_, outcome) = read(&refused, &ReaderOptions::default(), usize::MAX);
    assert_eq!(outcome.outcome, OutcomeKind::Denied);
    let worked = [
        call("b", "exec_command", json!({ "cmd": "y" })),
        answer("b", "Process exited with code 0\nOutput:\nreject command; rejected by user"),
    ];
    let both: Vec<String> = refused.into_iter().chain(worked).collect();
    let (_, outcome) = read(&both, &ReaderOptions::default(), usize::MAX);
    assert_eq!((outcome.outcome, outcome.denials.len()), (OutcomeKind::Completed, 1));
}
