//! What must hold for any bytes at all. The fuzz targets use this file too.

use std::collections::HashSet;

use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_agents::Decision;
use segno_agents::Envelope;
use segno_agents::ExitInfo;
use segno_agents::HookReport;
use segno_agents::Outcome;
use segno_agents::ReaderOptions;
use segno_agents::TokenCounts;
use segno_agents::plain::Plain;
use segno_agents::plain::PlainConfig;
use segno_agents::transcript::Transcript;

/// How a stream is read.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) line_limit: usize,
    /// The lengths of the pieces, over and over; the last of them takes what is left when it is 0.
    pub(crate) lengths: Vec<usize>,
    /// After which piece another reader takes over.
    pub(crate) takeover: usize,
    pub(crate) exit: ExitInfo,
}

/// A plain command with a rule of every kind, for lines as in `samples/streams/plain.jsonl`.
pub(crate) fn plain_json() -> Plain {
    const CONFIG: &str = r#"{
        "format": "json", "native_id": "$.session_id",
        "rules": [
            { "kind": "session_started", "when": { "$.event": "hello" }, "fields": { "native_id": "$.session.id" } },
            { "kind": "session_started", "when": { "$.subtype": "init" }, "fields": { "native_id": "$.session_id", "model": "$.model", "cwd": "$.cwd" } },
            { "kind": "text", "when": { "$.event": "say" }, "fields": { "text": "$.message.text", "message_id": "$.*" } },
            { "kind": "text", "when": { "@.type": "text" }, "each": "$.message.content", "fields": { "text": "@.text" } },
            { "kind": "thinking", "when": { "@.type": "thinking" }, "each": "$.message.content", "fields": { "text": "@.thinking" } },
            { "kind": "tool_started", "when": { "$.event": "run" }, "fields": { "call_id": "$.id", "tool": "$.args.~", "input": "$.args" } },
            { "kind": "tool_started", "when": { "@.type": "tool_use" }, "each": "$.message.content", "fields": { "call_id": "@.id", "tool": "@.name", "input": "@.input" } },
            { "kind": "tool_failed", "when": { "@.type": "tool_result", "@.is_error": true }, "each": "$.message.content", "fields": { "call_id": "@.tool_use_id", "error": "@.content" } },
            { "kind": "tool_finished", "when": { "@.type": "tool_result" }, "each": "$.message.content", "fields": { "call_id": "@.tool_use_id", "output": "@.content" } },
            { "kind": "tool_finished", "when": { "$.event": "ran" }, "fields": { "call_id": "$.id", "output": "$.out[0]", "exit_code": "$.code" }, "also": true },
            { "kind": "file_changed", "when": { "$.event": "ran" }, "fields": { "path": "$.id" } },
            { "kind": "tool_denied", "when": { "$.event": "no" }, "fields": { "call_id": "$.id", "reason": "$.out" } },
            { "kind": "tokens", "when": { "$.event": "usage" }, "fields": { "input": "$.in", "output": "$.out", "model": "$.model" }, "cumulative": true, "also": true },
            { "kind": "cost", "fields": { "usd": "$.usd" }, "cumulative": true },
            { "kind": "tokens", "when": { "$.type": "assistant" }, "fields": { "input": "$.message.usage.input_tokens", "output": "$.message.usage.output_tokens" } },
            { "kind": "notice", "when": { "$.event": "note" }, "fields": { "text": "$.text", "level": "$.level" } },
            { "kind": "progress", "when": { "$.type": "user" }, "fields": { "what": "$.type" } },
            { "kind": "error", "when": { "$.event": "error" }, "fields": { "message": "$.text" } },
            { "kind": "result", "when": { "$.event": "end" }, "fields": { "text": "$.text", "error": "$.error", "ok": "$.ok" } },
            { "kind": "result", "when": { "$.type": "result" }, "fields": { "text": "$.result", "failed": "$.is_error", "verdict": "$.subtype" }, "verdicts": { "error_max_turns": "max_turns" } }
        ]
    }"#;
    Plain::new(serde_json::from_str::<PlainConfig>(CONFIG).unwrap())
}

/// Reads a stream whole, in pieces, and from where a second reader would go on; returns its events.
pub(crate) fn stream(agent: &dyn Agent, bytes: &[u8], delivery: &Delivery) -> Vec<Envelope> {
    let options = ReaderOptions { line_limit: delivery.line_limit, ..ReaderOptions::default() };
    let (whole, outcome) = read(agent, bytes, &options, &delivery.exit);
    check_places(&whole, &outcome, bytes);
    check_outcome(&outcome);
    for envelope in &whole {
        check_json(&serde_json::to_string(envelope).unwrap());
        check_json(&serde_json::to_string(&envelope.event).unwrap());
    }

    let pieces = pieces(bytes, &delivery.lengths);
    let (mut reader, mut events) = (agent.reader(&options), Vec::new());
    let (mut fed, mut safe, mut takeover) = (0, 0, (0, 0));
    for (number, piece) in pieces.iter().enumerate() {
        reader.feed(piece, &mut |event| events.push(event));
        fed += piece.len() as u64;
        let now = reader.safe_offset();
        assert!(now <= fed, "safe offset {now} of {fed} bytes");
        assert!(now >= safe, "the safe offset went back from {safe} to {now}");
        safe = now;
        if number == delivery.takeover % pieces.len() {
            takeover = (safe, events.len());
        }
    }
    let told = outcome_json(&reader.finish(&delivery.exit, &mut |event| events.push(event)));
    assert_eq!(events, whole, "in pieces");
    assert_eq!(told, outcome_json(&outcome), "in pieces");

    let (start, seen) = takeover;
    let rest = &bytes[usize::try_from(start).unwrap()..];
    let (again, _) = read(agent, rest, &ReaderOptions { start_offset: start, ..options }, &delivery.exit);
    let again: HashSet<String> = again.iter().filter_map(gist).collect();
    for event in whole[seen..].iter().filter(|event| event.offset >= start) {
        if let Some(gist) = gist(event) {
            assert!(again.contains(&gist), "not told by a reader that begins at {start}: {gist}");
        }
    }
    assert!(whole[seen..].iter().all(|event| event.offset >= start), "missed by who begins at {start}");
    whole
}

/// Reads a hook payload; returns its report if it is one.
pub(crate) fn hook(agent: &dyn Agent, payload: &[u8]) -> Option<HookReport> {
    let report = agent.hook(payload).inspect_err(|why| assert!(!why.to_string().is_empty())).ok()?;
    check_json(&serde_json::to_string(&report).unwrap());
    let reason = || "no \"more\"\n".to_owned();
    for (decision, can) in [
        (Decision::Pass, false),
        (Decision::Deny(reason()), report.answers.deny),
        (Decision::Block(reason()), report.answers.block),
        (Decision::Context(reason()), report.answers.context),
        (Decision::Halt(reason()), report.answers.halt),
    ] {
        let answer = report.respond(&decision);
        assert_eq!(answer.is_some(), can, "{decision:?}");
        answer.iter().for_each(|answer| check_json(answer));
    }
    Some(report)
}

/// Follows an agent's own record as it grows: in pieces it says the same as whole.
fn follow(agent: &dyn Agent, bytes: &[u8]) {
    let options = ReaderOptions { line_limit: 64 * 1024, ..ReaderOptions::default() };
    let exit = ExitInfo { code: Some(0), ..ExitInfo::default() };
    for since in [None, Some("2026-11-15T12:00:00.000000Z")] {
        let read = |size: usize| {
            let (mut reader, mut events) =
                (segno_agents::interactive_reader(agent, &options, since), Vec::new());
            for piece in bytes.chunks(size) {
                reader.feed(piece, &mut |event| events.push(event));
            }
            let outcome = reader.finish(&exit, &mut |event| events.push(event));
            (events, outcome)
        };
        let (whole, outcome) = read(usize::MAX);
        check_places(&whole, &outcome, bytes);
        check_outcome(&outcome);
        for envelope in &whole {
            check_json(&serde_json::to_string(envelope).unwrap());
        }
        let (pieces, told) = read(7);
        assert_eq!(pieces, whole, "in pieces");
        assert_eq!(outcome_json(&told), outcome_json(&outcome), "in pieces");
    }
}

/// Reads an agent's own record, and follows it as it is written.
pub(crate) fn transcript(agent: &dyn Agent, bytes: &[u8]) -> Option<Transcript> {
    followed(agent, bytes);
    follow(agent, bytes);
    let transcript = agent.conversation_log()?.transcript(bytes);
    check_json(&serde_json::to_string(&transcript).unwrap());
    check_tokens(&transcript.tokens);
    assert!(transcript.unparsed <= transcript.lines.max(1));
    assert!(transcript.open_calls().count() <= transcript.calls.len());
    let length = bytes.len() as u64;
    assert!(transcript.calls.iter().all(|call| call.offset < length), "a call outside of the record");
    assert!(transcript.calls.is_sorted_by_key(|call| call.offset));
    if let Some(position) = &transcript.position {
        assert!(position.end <= length, "a position outside of the record");
        let cut = segno_agents::gemini::cut_at(bytes, position.end);
        assert!(cut.is_none_or(|cut| bytes.starts_with(&cut)));
        let id = transcript.native_id.as_deref().unwrap_or_default();
        let copy = segno_agents::codex::fork_at(bytes, position.end, id, &"x".repeat(id.len()));
        assert!(copy.is_none_or(|copy| copy.len() as u64 == position.end));
    }
    Some(transcript)
}

fn followed(agent: &dyn Agent, bytes: &[u8]) {
    let options = ReaderOptions { line_limit: 64 * 1024, ..ReaderOptions::default() };
    let follow = |lengths: &[usize]| {
        let (mut reader, mut events) =
            (agent.conversation_log()?.reader(&options, segno_agents::LogUse::BesideOutput)?, Vec::new());
        pieces(bytes, lengths).iter().for_each(|piece| reader.feed(piece, &mut |event| events.push(event)));
        let outcome = reader.finish(&ExitInfo::code(0), &mut |event| events.push(event));
        Some((events, outcome))
    };
    let Some((whole, outcome)) = follow(&[0]) else { return };
    check_places(&whole, &outcome, bytes);
    check_outcome(&outcome);
    let (events, told) = follow(&[7, 300, 1]).unwrap();
    assert_eq!((events, outcome_json(&told)), (whole, outcome_json(&outcome)), "in pieces");
}

fn read(
    agent: &dyn Agent,
    bytes: &[u8],
    options: &ReaderOptions,
    exit: &ExitInfo,
) -> (Vec<Envelope>, Outcome) {
    let (mut reader, mut events) = (agent.reader(options), Vec::new());
    reader.feed(bytes, &mut |event| events.push(event));
    reader.flush(&mut |event| events.push(event));
    assert_eq!(reader.safe_offset(), options.start_offset + bytes.len() as u64, "all was told");
    let outcome = reader.finish(exit, &mut |event| events.push(event));
    (events, outcome)
}

fn pieces<'a>(mut bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        let length = if *length == 0 { bytes.len() } else { bytes.len().min(*length) };
        let (piece, rest) = bytes.split_at(length);
        pieces.push(piece);
        bytes = rest;
        if bytes.is_empty() {
            break;
        }
    }
    pieces
}

/// Each event has a place in the input and a key of its own; a later line is further on.
fn check_places(events: &[Envelope], outcome: &Outcome, bytes: &[u8]) {
    let mut keys = HashSet::new();
    let mut positions: Vec<(u64, u64)> = Vec::new();
    for event in events {
        assert!(event.offset < bytes.len() as u64, "{} is outside of the input", event.offset);
        assert!((1..=outcome.lines).contains(&event.line));
        assert!(keys.insert(event.key()), "{} comes twice", event.key());
        positions.push((event.line, event.offset));
    }
    // Who speaks comes first and is counted last.
    for event in events.iter().filter(|event| event.index > 0) {
        assert!(keys.contains(&format!("{}.{}", event.offset, event.index - 1)), "a number is left out");
    }
    positions.sort_unstable();
    positions.dedup();
    assert!(positions.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "{positions:?}");
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    assert!(outcome.lines <= lines);
}

fn check_outcome(outcome: &Outcome) {
    check_json(&outcome_json(outcome));
    check_tokens(&outcome.tokens);
    outcome.tokens_total.iter().for_each(check_tokens);
    assert!(outcome.open_calls.len() as u64 <= outcome.tool_calls);
    assert!(!outcome.reason.is_empty());
}

/// Nothing wrapped around: no part is more than the sum.
fn check_tokens(tokens: &TokenCounts) {
    let parts = [tokens.input, tokens.cache_read, tokens.cache_write, tokens.output];
    assert!(parts.iter().all(|part| *part <= tokens.total()), "{tokens:?}");
    assert!(tokens.plus(*tokens).total() >= tokens.total());
}

fn check_json(json: &str) {
    assert!(!json.contains('\n'), "{json:?} is more than a line");
    assert!(serde_json::from_str::<&serde_json::value::RawValue>(json).is_ok(), "{json}");
}

fn outcome_json(outcome: &Outcome) -> String {
    serde_json::to_string(outcome).unwrap()
}

/// What an event says by itself, and where. Names, sums and verdicts that come from earlier lines are left out: a
/// reader that begins later cannot know them.
fn gist(envelope: &Envelope) -> Option<String> {
    let what = match &envelope.event {
        AgentEvent::FileChanged { .. }
        | AgentEvent::Progress { .. }
        | AgentEvent::SubAgentStopped { .. }
        | AgentEvent::TaskStarted { .. }
        | AgentEvent::TaskStopped { .. }
        | AgentEvent::TurnStarted => return None,
        AgentEvent::ToolFinished { call_id, .. } => format!("finished {call_id}"),
        AgentEvent::ToolFailed { call_id, .. } => format!("failed {call_id}"),
        AgentEvent::ToolDenied { call_id, .. } => format!("denied {call_id}"),
        AgentEvent::Tokens { model, .. } => format!("tokens {model:?}"),
        AgentEvent::Cost { .. } => "cost".to_owned(),
        AgentEvent::TurnCompleted { .. } => "turn completed".to_owned(),
        AgentEvent::Result { verdict, .. } => format!("result {verdict:?}"),
        event => serde_json::to_string(event).unwrap(),
    };
    Some(format!("{}: {what}", envelope.offset))
}
