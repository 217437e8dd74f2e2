//! The agents' own records, followed while a person works: what is told of them, and what is not.

use segno_agents::AgentEvent;
use segno_agents::Baseline;
use segno_agents::ExitInfo;
use segno_agents::InputSource;
use segno_agents::Outcome;
use segno_agents::OutcomeKind;
use segno_agents::ReaderOptions;
use segno_agents::by_name;
use segno_agents::interactive_reader;
use serde_json::Value;
use serde_json::json;

const SINCE: &str = "2026-11-16T10:00:00.000000Z";

/// Reads lines, whole and byte by byte: both say the same.
fn read(agent: &str, lines: &[Value]) -> (Vec<AgentEvent>, Outcome) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let read = |size: usize| {
        let mut reader =
            interactive_reader(&*by_name(agent).unwrap(), &ReaderOptions::default(), Some(SINCE));
        let mut events = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            reader.feed(piece, &mut |envelope| events.push(envelope.event));
        }
        let exit = ExitInfo { code: Some(0), ..ExitInfo::default() };
        let outcome = reader.finish(&exit, &mut |envelope| events.push(envelope.event));
        (events, outcome)
    };
    let whole = read(usize::MAX);
    assert_eq!(read(1), whole);
    whole
}

fn kinds(events: &[AgentEvent]) -> Vec<String> {
    events.iter().map(|event| json!(event)["kind"].as_str().unwrap().to_owned()).collect()
}

/// A line of Claude Code's, at a second of the minute before or after the run began.
fn claude(kind: &str, at: &str, more: Value) -> Value {
    let mut line = json!({ "type": kind, "sessionId": "s1", "version": "2.1", "cwd": "/w", "timestamp": at,
        "isSidechain": false, "uuid": format!("u-{at}") });
    for (name, value) in more.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

fn message(id: &str, input: u64, content: Value) -> Value {
    json!({ "message": { "id": id, "model": "m1", "content": [content],
        "usage": { "input_tokens": input, "output_tokens": 5 } } })
}

fn cost(session: &str, dollars: f64, input: u64, output: u64) -> Value {
    json!({ "type": "cost-state", "sessionId": session, "totalCostUSD": dollars,
        "modelUsage": { "m1": { "inputTokens": input, "outputTokens": output } } })
}

#[test]
fn claude_tells_what_is_new_and_counts_it_once() {
    let (before, after) = ("2026-11-16T09:59:59.000Z", "2026-11-16T10:00:01.000Z");
    let call = json!({ "type": "tool_use", "id": "t1", "name": "Write", "input": { "file_path": "/w/a" } });
    let lines = [
        claude("user", before, json!({ "message": { "content": "old" } })),
        claude("assistant", before, message("m0", 1000, json!({ "type": "text", "text": "old" }))),
        cost("s1", 1.0, 1000, 5),
        json!({ "type": "mode", "mode": "normal", "sessionId": "s1" }),
        claude("user", after, json!({ "origin": { "kind": "human" }, "message": { "content": "do it" } })),
        claude("attachment", after, json!({ "attachment": { "systemPrompt": ["vendor's own words"] } })),
        claude("assistant", after, message("m1", 100, json!({ "type": "text", "text": "I will" }))),
        claude("assistant", after, message("m1", 100, call)),
        claude(
            "user",
            after,
            json!({ "toolUseResult": { "type": "create", "filePath": "/w/a" },
            "message": { "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "ok" }] } }),
        ),
        claude("assistant", after, message("m2", 50, json!({ "type": "text", "text": "Done." }))),
        claude("system", after, json!({ "subtype": "turn_duration", "durationMs": 763 })),
        // Sub-agents and side requests are only in the sum.
        cost("s1", 1.5, 1170, 20),
        cost("s1", 1.5, 1170, 20),
    ];
    let (events, outcome) = read("claude", &lines);
    assert_eq!(
        kinds(&events),
        [
            "session_started",
            "turn_started",
            "input",
            "session_started",
            "text",
            "tokens",
            "tool_started",
            "tool_finished",
            "file_changed",
            "text",
            "tokens",
            "turn_completed",
            "result",
            "tokens",
            "cost"
        ]
    );
    assert!(!json!(events).to_string().contains("vendor"), "what is only for the agent stays there");
    assert!(
        matches!(&events[2], AgentEvent::Input { source: InputSource::User, text, .. } if text == "do it")
    );
    assert_eq!((outcome.tokens.input, outcome.tokens.output), (170, 15));
    assert_eq!(outcome.cost_usd, Some(0.5));
    assert!(outcome.tokens_exact);
    assert_eq!((outcome.outcome, outcome.turns, outcome.tool_calls), (OutcomeKind::Completed, 2, 1));
    assert_eq!(outcome.native_id.as_deref(), Some("s1"));
}

#[test]
fn claude_tells_when_what_was_launched_has_ended() {
    let at = "2026-11-16T10:00:01.000Z";
    let call = json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "make" } });
    let told = "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>t1</tool-use-id>\n\
        <status>completed</status>\n<summary>made</summary>\n</task-notification>";
    let lines = [
        claude("assistant", at, message("m1", 10, call)),
        claude(
            "user",
            at,
            json!({ "toolUseResult": { "backgroundTaskId": "b1" },
            "message": { "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "started" }] } }),
        ),
        claude(
            "user",
            at,
            json!({ "origin": { "kind": "task-notification" }, "message": { "content": told } }),
        ),
    ];
    let (events, _) = read("claude", &lines);
    let launched = events.iter().any(
        |event| matches!(event, AgentEvent::ToolFinished { background: Some(task), .. } if task == "b1"),
    );
    assert!(launched, "{events:?}");
    assert!(events.contains(&AgentEvent::TaskStopped {
        task_id: "b1".to_owned(),
        call_id: Some("t1".to_owned()),
        status: "completed".to_owned(),
        summary: Some("made".to_owned()),
    }));
    assert!(!events.contains(&AgentEvent::TurnStarted), "nobody asked for it");
    // The same as evidence: without that line nothing is settled.
    let log = by_name("claude").unwrap().conversation_log().unwrap();
    let settled = |lines: &[Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        log.transcript(text.as_bytes()).calls[0].is_settled()
    };
    assert!(!settled(&lines[..2]) && settled(&lines));
}

#[test]
fn claude_goes_from_one_conversation_to_another() {
    let at = "2026-11-16T10:00:01.000Z";
    let text = |id: &str| message(id, 10, json!({ "type": "text", "text": "hi" }));
    let mut second = claude("assistant", at, text("m2"));
    second["sessionId"] = json!("s2");
    let lines =
        [claude("assistant", at, text("m1")), cost("s1", 0.25, 10, 5), second, cost("s2", 0.5, 10, 5)];
    let (_, outcome) = read("claude", &lines);
    assert_eq!(outcome.native_id.as_deref(), Some("s2"));
    assert_eq!((outcome.tokens.input, outcome.cost_usd), (20, Some(0.75)));
}

#[test]
fn claude_says_what_the_person_cut_off() {
    let at = "2026-11-16T10:00:01.000Z";
    let call = json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "sleep 9" } });
    let lines = [
        claude("assistant", at, message("m1", 10, call)),
        claude(
            "user",
            at,
            json!({ "toolUseResult": "User rejected tool use", "toolDenialKind": "user-rejected",
            "message": { "content": [
                { "type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": "rejected" }] } }),
        ),
        claude(
            "user",
            at,
            json!({ "message": { "content": [
            { "type": "text", "text": "[Request interrupted by user for tool use]" }] } }),
        ),
        claude("system", at, json!({ "subtype": "turn_duration", "durationMs": 7 })),
    ];
    let (events, outcome) = read("claude", &lines);
    assert!(events.iter().any(|event| matches!(event, AgentEvent::ToolFailed { interrupted: true, .. })));
    assert!(
        events.iter().any(|event| matches!(event, AgentEvent::Result { verdict: OutcomeKind::Stopped, .. }))
    );
    assert_eq!(outcome.outcome, OutcomeKind::Completed, "the person left afterwards, of their own will");
}

fn codex(kind: &str, at: &str, payload: Value) -> Value {
    json!({ "timestamp": at, "type": kind, "payload": payload })
}

fn usage(thread: &str, input: u64) -> Value {
    json!({ "thread_id": thread, "usage": { "input_tokens": input, "output_tokens": 5 } })
}

#[test]
fn codex_tells_what_is_new_and_counts_it_once() {
    let (before, after) = ("2026-11-16T09:59:59.000Z", "2026-11-16T10:00:01.000Z");
    let total = |input: u64| {
        let sum = json!({ "input_tokens": input, "output_tokens": 5 });
        json!({ "type": "token_count", "info": { "total_token_usage": sum } })
    };
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch";
    let lines = [
        codex("session_meta", before, json!({ "id": "t1", "timestamp": before, "cwd": "/w" })),
        codex("token_usage_record", before, usage("t1", 1000)),
        codex("event_msg", before, total(1000)),
        codex("event_msg", after, json!({ "type": "task_started" })),
        codex("turn_context", after, json!({ "model": "m1", "cwd": "/w" })),
        codex(
            "response_item",
            after,
            json!({ "type": "message", "role": "developer",
            "content": [{ "type": "input_text", "text": "vendor's own words" }] }),
        ),
        codex(
            "event_msg",
            after,
            json!({ "type": "item_completed", "thread_id": "t1",
            "item": { "type": "UserMessage", "content": [{ "type": "text", "text": "do it" }] } }),
        ),
        codex("event_msg", after, json!({ "type": "user_message", "message": "do it" })),
        codex(
            "response_item",
            after,
            json!({ "type": "function_call", "name": "exec_command",
            "arguments": "{\"cmd\": \"false\"}", "call_id": "c1" }),
        ),
        codex("token_usage_record", after, usage("t1", 100)),
        codex("token_usage_record", after, usage("sub-agent", 7)),
        codex(
            "response_item",
            after,
            json!({ "type": "function_call_output", "call_id": "c1",
            "output": "Wall time: 0\nProcess exited with code 1\nOutput:\n" }),
        ),
        codex("event_msg", after, total(1100)),
        codex(
            "response_item",
            after,
            json!({ "type": "custom_tool_call", "name": "apply_patch",
            "input": patch, "call_id": "c2" }),
        ),
        codex(
            "response_item",
            after,
            json!({ "type": "custom_tool_call_output", "call_id": "c2",
            "output": "Exit code: 0\nSuccess" }),
        ),
        codex(
            "response_item",
            after,
            json!({ "type": "function_call", "name": "none", "arguments": "{}",
            "call_id": "c3" }),
        ),
        codex(
            "response_item",
            after,
            json!({ "type": "function_call_output", "call_id": "c3",
            "output": "unsupported call: none" }),
        ),
        codex(
            "response_item",
            after,
            json!({ "type": "message", "role": "assistant", "id": "a1",
            "content": [{ "type": "output_text", "text": "Done." }] }),
        ),
        codex("event_msg", after, json!({ "type": "task_complete", "last_agent_message": "Done." })),
    ];
    let (events, outcome) = read("codex", &lines);
    assert_eq!(
        kinds(&events),
        [
            "turn_started",
            "session_started",
            "input",
            "tool_started",
            "tokens",
            "tool_failed",
            "tool_started",
            "tool_finished",
            "file_changed",
            "tool_started",
            "tool_failed",
            "text",
            "turn_completed",
            "result"
        ]
    );
    assert!(!json!(events).to_string().contains("vendor"));
    assert!(json!(events[3])["input"]["command"] == "false", "{:?}", events[3]);
    assert_eq!((outcome.tokens.input, outcome.tokens.output), (100, 5));
    assert_eq!((outcome.native_id.as_deref(), outcome.model.as_deref()), (Some("t1"), Some("m1")));
    assert_eq!(outcome.outcome, OutcomeKind::Completed);
}

#[test]
fn codex_without_single_answers_has_its_sums() {
    let at = "2026-11-16T10:00:01.000Z";
    let total = |input: u64| {
        let sum = json!({ "input_tokens": input, "output_tokens": 5 });
        codex("event_msg", at, json!({ "type": "token_count", "info": { "total_token_usage": sum } }))
    };
    let meta = codex("session_meta", at, json!({ "id": "t1", "timestamp": at }));
    let (_, outcome) = read("codex", &[meta, total(100), total(100), total(150)]);
    assert_eq!((outcome.tokens.input, outcome.tokens.output), (150, 5));
}

#[test]
fn records_of_sub_agents_are_not_those_of_the_person() {
    let codex = by_name("codex").unwrap();
    let log = codex.conversation_log().unwrap();
    let head =
        |payload: Value| json!({ "type": "session_meta", "payload": payload }).to_string().into_bytes();
    assert!(log.is_main(&head(json!({ "source": "cli", "thread_source": "user" }))));
    assert!(!log.is_main(&head(json!({ "source": { "subagent": "x" } }))));
    assert!(!log.is_main(&head(json!({ "source": "cli", "thread_source": "subagent" }))));
}

#[test]
fn whoever_ended_it_is_who_is_named() {
    let judge = |exit: ExitInfo| {
        let reader = interactive_reader(&*by_name("opencode").unwrap(), &ReaderOptions::default(), None);
        reader.finish(&exit, &mut |_| {}).outcome
    };
    let code = |code: i32| ExitInfo { code: Some(code), ..ExitInfo::default() };
    assert_eq!(judge(code(0)), OutcomeKind::Completed);
    assert_eq!(judge(code(2)), OutcomeKind::Failed);
    assert_eq!(judge(ExitInfo { signal: Some(9), ..ExitInfo::default() }), OutcomeKind::Interrupted);
    assert_eq!(judge(ExitInfo::default()), OutcomeKind::Interrupted);
    assert_eq!(judge(code(0).because(segno_agents::EndCause::Stopped)), OutcomeKind::Stopped);
    assert_eq!(judge(code(0).because(segno_agents::EndCause::Budget)), OutcomeKind::Budget);
}

#[test]
fn wherever_a_reader_begins_events_have_the_same_keys() {
    let at = |second: u32| format!("2026-11-16T10:00:{second:02}.000Z");
    let lines = [
        claude("user", &at(1), json!({ "message": { "role": "user", "content": "mend the door" } })),
        claude(
            "assistant",
            &at(2),
            message(
                "m-1",
                10,
                json!({ "type": "tool_use", "id": "c1", "name": "Bash", "input": { "command": "ls" } }),
            ),
        ),
        claude(
            "user",
            &at(3),
            json!({ "message": { "content": [{ "type": "tool_result", "tool_use_id": "c1", "content": "a" }] } }),
        ),
        claude("assistant", &at(4), message("m-2", 20, json!({ "type": "text", "text": "done" }))),
        claude("user", &at(5), json!({ "message": { "role": "user", "content": "and the window" } })),
        claude(
            "assistant",
            &at(6),
            message(
                "m-3",
                30,
                json!({ "type": "tool_use", "id": "c2", "name": "Bash", "input": { "command": "ls" } }),
            ),
        ),
    ];
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let keys = |from: usize| -> Vec<(String, String)> {
        let start_offset = lines[..from].iter().map(|line| line.len() as u64).sum();
        let options = ReaderOptions { start_offset, ..ReaderOptions::default() };
        let mut reader = interactive_reader(&*by_name("claude").unwrap(), &options, Some(SINCE));
        let mut keys = Vec::new();
        reader.feed(lines[from..].concat().as_bytes(), &mut |envelope| {
            let kind = json!(envelope.event)["kind"].as_str().unwrap().to_owned();
            if kind != "session_started" {
                keys.push((kind, envelope.key()));
            }
        });
        keys
    };
    let whole = keys(0);
    assert!(whole.len() >= 8, "{whole:?}");
    for from in 1..lines.len() {
        let part = keys(from);
        assert_eq!(part, whole[whole.len() - part.len()..], "from line {from}");
    }
}

/// What was used, with the key by which it counts once, of a log from one of its lines on.
fn used_from(agent: &str, lines: &[Value], first: usize) -> Vec<(String, AgentEvent)> {
    let text: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let start = text[..first].iter().map(|line| line.len() as u64).sum();
    // From the middle nobody knows what was used before.
    let baseline = if first > 0 { Baseline::Unknown } else { Baseline::Fresh };
    let options = ReaderOptions { start_offset: start, baseline, ..ReaderOptions::default() };
    let mut reader = interactive_reader(&*by_name(agent).unwrap(), &options, Some(SINCE));
    let mut used = Vec::new();
    let mut take = |envelope: segno_agents::Envelope| {
        if matches!(envelope.event, AgentEvent::Tokens { .. } | AgentEvent::Cost { .. }) {
            used.push((envelope.key(), envelope.event));
        }
    };
    reader.feed(text[first..].concat().as_bytes(), &mut take);
    reader.flush(&mut take);
    used
}

fn tokens_in(used: &[(String, AgentEvent)]) -> u64 {
    let tokens = |event: &AgentEvent| match event {
        AgentEvent::Tokens { delta: Some(delta), .. } => delta.total(),
        _ => 0,
    };
    used.iter().map(|(_, event)| tokens(event)).sum()
}

/// A log is read again and again, from where an earlier turn ended: what counts once in a whole reading counts once.
#[test]
fn what_was_used_is_the_same_wherever_reading_begins() {
    let (before, after) = ("2026-11-16T09:59:59.000Z", "2026-11-16T10:00:01.000Z");
    let text = |id: &str| message(id, 100, json!({ "type": "text", "text": "hi" }));
    let asked = || claude("user", after, json!({ "message": { "content": "next" } }));
    // Taken up again: what the account says is what all runs used.
    let resumed = [
        claude("assistant", before, text("m0")),
        cost("s1", 1.0, 710, 85),
        asked(),
        claude("assistant", after, text("m1")),
        claude("system", after, json!({ "subtype": "turn_duration", "durationMs": 7 })),
        asked(),
        claude("assistant", after, text("m2")),
        claude("system", after, json!({ "subtype": "turn_duration", "durationMs": 7 })),
        cost("s1", 1.5, 710 + 210, 85 + 10),
    ];
    let whole = used_from("claude", &resumed, 0);
    assert_eq!(tokens_in(&whole), 220, "two messages, and ten on the side: {whole:?}");
    let cost = |used: &[(String, AgentEvent)]| -> f64 {
        let told = used.iter().filter_map(|(_, event)| match event {
            AgentEvent::Cost { delta_usd, .. } => *delta_usd,
            _ => None,
        });
        told.sum()
    };
    assert!((cost(&whole) - 0.5).abs() < 1e-9, "{whole:?}");
    let usage = |input: u64| json!({ "input_tokens": input, "output_tokens": 0 });
    let record =
        |thread: u64| json!({ "thread_id": "t1", "usage": usage(100), "thread_token_usage": usage(thread) });
    let count = |total: u64| {
        json!({ "type": "token_count", "info": { "total_token_usage": usage(total), "last_token_usage": usage(100),
            "model_context_window": 1000 },
            "rate_limits": { "primary": { "used_percent": total, "window_minutes": 300, "resets_at": 1 } } })
    };
    let began = |turn: &str| {
        codex(
            "event_msg",
            after,
            json!({ "type": "task_started", "turn_id": turn, "model_context_window": 1000 }),
        )
    };
    let threads = [
        codex("session_meta", before, json!({ "id": "t1", "timestamp": before })),
        began("a"),
        codex("token_usage_record", after, record(300)),
        codex("event_msg", after, count(300)),
        codex("event_msg", after, json!({ "type": "task_complete", "turn_id": "a" })),
        began("b"),
        codex("event_msg", after, json!({ "type": "user_message", "message": "next" })),
        codex("token_usage_record", after, record(400)),
        codex("event_msg", after, count(400)),
        codex("event_msg", after, json!({ "type": "task_complete", "turn_id": "b" })),
    ];
    // Not between the lines that Codex writes of one answer: nobody begins there.
    let begins = [(1..9).collect::<Vec<usize>>(), vec![1, 2, 4, 5, 6, 7, 9]];
    for ((agent, lines), begins) in
        [("claude", &resumed[..]), ("codex", &threads[..])].into_iter().zip(begins)
    {
        let whole = used_from(agent, lines, 0);
        assert!(whole.len() >= 2, "{agent}: {whole:?}");
        for first in begins {
            for told in used_from(agent, lines, first) {
                assert!(whole.contains(&told), "{agent} from line {first}: {told:?} is not in {whole:?}");
            }
        }
    }
}
