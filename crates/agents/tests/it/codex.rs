//! Codex's stream.

use segno_agents::AgentEvent;
use segno_agents::Baseline;
use segno_agents::ExitInfo;
use segno_agents::OutcomeKind;
use segno_agents::ReaderOptions;
use segno_agents::TokenCounts;
use segno_agents::by_name;

use crate::support::read;
use crate::support::read_with;
use crate::support::shown;

const START: &str = "{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n{\"type\":\"turn.started\"}\n";

fn usage(input: u64, cached: u64, written: u64, output: u64) -> String {
    format!(
        r#"{{"type":"turn.completed","usage":{{"input_tokens":{input},"cached_input_tokens":{cached},"cache_write_input_tokens":{written},"output_tokens":{output},"reasoning_output_tokens":1}}}}"#
    )
}

#[test]
fn a_run_with_every_item() {
    let stream = [
        START.trim_end(),
        r#"{"type":"item.completed","item":{"id":"item_0","type":"error","message":"only a warning"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_1","type":"reasoning","text":"plan"}}"#,
        r#"{"type":"item.started","item":{"id":"item_2","type":"command_execution","command":"bash -lc ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"bash -lc ls","aggregated_output":"a\n","exit_code":0,"status":"completed"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_3","type":"command_execution","command":"false","aggregated_output":"no","exit_code":3,"status":"failed"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_4","type":"command_execution","command":"rm","aggregated_output":"","exit_code":null,"status":"declined"}}"#,
        r#"{"type":"item.started","item":{"id":"item_5","type":"file_change","changes":[{"path":"/w/a","kind":"add"}],"status":"in_progress"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_5","type":"file_change","changes":[{"path":"/w/a","kind":"add"},{"path":"/w/b","kind":"delete"}],"status":"completed"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_6","type":"collab_tool_call","tool":"spawn_agent","receiver_thread_ids":["t2"],"prompt":"dig","agents_states":{"t2":{"status":"pending_init","message":null}},"status":"completed"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_7","type":"collab_tool_call","tool":"wait","receiver_thread_ids":["t2"],"agents_states":{"t2":{"status":"completed","message":"gold"}},"status":"completed"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_8","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"a":1},"error":{"message":"broken"},"status":"failed"}}"#,
        r#"{"type":"item.updated","item":{"id":"item_9","type":"todo_list","items":[{"text":"one","completed":true}]}}"#,
        r#"{"type":"error","message":"Reconnecting... 1/5 (unexpected status 503 Service Unavailable)"}"#,
        r#"{"type":"item.completed","item":{"id":"item_10","type":"hologram","x":1}}"#,
        r#"{"type":"item.completed","item":{"id":"item_11","type":"agent_message","text":"done"}}"#,
        &usage(100, 30, 10, 7),
    ]
    .join("\n");
    insta::assert_snapshot!(shown("codex", &stream, &ExitInfo::code(0)));
}

#[test]
fn totals_of_a_thread_are_not_added_twice() {
    let stream =
        format!("{START}{}\n{{\"type\":\"turn.started\"}}\n{}\n", usage(300, 0, 0, 30), usage(500, 0, 0, 50));
    let known = TokenCounts { input: 200, output: 20, ..TokenCounts::default() };
    for (baseline, input, exact) in
        [(Baseline::Fresh, 500, true), (Baseline::Known(known), 300, true), (Baseline::Unknown, 200, false)]
    {
        let options = ReaderOptions { baseline, ..ReaderOptions::default() };
        let codex = by_name("codex").unwrap();
        let (_, outcome) = read_with(codex.as_ref(), &options, stream.as_bytes(), &ExitInfo::code(0));
        assert_eq!((outcome.tokens.input, outcome.tokens_exact), (input, exact), "{baseline:?}");
        assert_eq!(outcome.tokens_total.map(|total| total.input), Some(500));
    }
}

#[test]
fn only_a_failed_turn_is_final() {
    for (message, kind) in [
        ("You\u{2019}ve hit your usage limit. Try again at Jan 16th, 2030 3:51 AM.", OutcomeKind::Limit),
        ("exceeded retry limit, last status: 429 Too Many Requests", OutcomeKind::Limit),
        ("Quota exceeded. Check your plan and billing details.", OutcomeKind::Failed),
        ("stream disconnected before completion", OutcomeKind::Failed),
    ] {
        let error = format!("{{\"type\":\"error\",\"message\":\"{message}\"}}\n");
        let failed = format!("{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"{message}\"}}}}\n");
        let (_, outcome) = read("codex", &format!("{START}{error}"), &ExitInfo::code(1));
        assert_eq!(outcome.outcome, OutcomeKind::Interrupted, "an error line is not the end");
        let (_, outcome) = read("codex", &format!("{START}{error}{failed}"), &ExitInfo::code(1));
        assert_eq!(outcome.outcome, kind, "{message}");
        assert!(!outcome.tokens_exact, "a failed turn tells no tokens");
    }
}

#[test]
fn a_provider_answer_is_read_as_such() {
    let stream = format!(
        "{START}{}",
        r#"{"type":"turn.failed","error":{"message":"{\"error\": {\"message\": \"bad request\", \"code\": \"invalid_request_error\"}}"}}"#
    );
    let (_, outcome) = read("codex", &stream, &ExitInfo::code(1));
    assert_eq!(outcome.reason, "bad request");
}

#[test]
fn interruptions_and_refusals_to_start() {
    let started = r#"{"type":"item.started","item":{"id":"item_2","type":"command_execution","command":"sleep","status":"in_progress"}}"#;
    for exit in [ExitInfo::code(1), ExitInfo::signal(15), ExitInfo::signal(9), ExitInfo::code(101)] {
        let (_, outcome) = read("codex", &format!("{START}{started}\n"), &exit);
        assert_eq!(outcome.outcome, OutcomeKind::Interrupted, "{exit:?}");
        assert_eq!(outcome.open_calls[0].call_id, "item_2");
    }
    let exit = ExitInfo::code(1).with_stderr("Error: no rollout found for thread id t9");
    assert_eq!(read("codex", "", &exit).1.outcome, OutcomeKind::Failed);
}

#[test]
fn another_thread_than_asked_for_is_noticed() {
    let options = ReaderOptions { expected_native_id: Some("t0".into()), ..ReaderOptions::default() };
    let stream = format!("{START}{}\n", usage(1, 0, 0, 1));
    let codex = by_name("codex").unwrap();
    let (_, outcome) = read_with(codex.as_ref(), &options, stream.as_bytes(), &ExitInfo::code(0));
    assert_eq!(outcome.native_id.as_deref(), Some("t1"));
    assert_eq!(outcome.expected_native_id.as_deref(), Some("t0"));
}

#[test]
fn warnings_are_no_errors() {
    let stream = r#"{"type":"item.completed","item":{"id":"item_0","type":"error","message":"careful"}}"#;
    let (events, _) = read("codex", stream, &ExitInfo::code(0));
    assert!(matches!(events[0].event, AgentEvent::Notice { .. }));
}

#[test]
fn a_failure_without_a_word_still_has_a_reason() {
    for message in ["", " "] {
        let failed = format!("{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"{message}\"}}}}\n");
        let (_, outcome) = read("codex", &format!("{START}{failed}"), &ExitInfo::code(0));
        assert_eq!(
            (outcome.outcome, outcome.reason.as_str()),
            (OutcomeKind::Failed, "the agent reported an error")
        );
    }
}
