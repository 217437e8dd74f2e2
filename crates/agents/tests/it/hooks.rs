//! Hook payloads and answers.

use segno_agents::{AgentEvent, Decision, HookReport, by_name};

fn hook(agent: &str, payload: &str) -> HookReport {
    by_name(agent).unwrap().hook(payload.as_bytes()).unwrap()
}

const PRE: &str = r#"{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c1"}"#;

#[test]
fn payloads() {
    let reports: Vec<String> = [
        ("claude", PRE),
        ("claude", r#"{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Write","tool_input":{"file_path":"/w/a"},"tool_response":{"type":"create","filePath":"/w/a"},"tool_use_id":"c1","duration_ms":17}"#),
        ("claude", r#"{"hook_event_name":"PostToolUseFailure","session_id":"s","tool_name":"Bash","tool_use_id":"c1","error":"Exit code 3\nx","is_interrupt":false,"duration_ms":2.5}"#),
        ("claude", r#"{"hook_event_name":"SubagentStop","session_id":"s","agent_id":"a1","agent_type":""}"#),
        ("claude", r#"{"hook_event_name":"Stop","session_id":"s","background_tasks":[{"id":"t1","status":"running"}]}"#),
        ("claude", r#"{"hook_event_name":"StopFailure","session_id":"s","error":"rate_limit","last_assistant_message":"no more"}"#),
        ("claude", r#"{"hook_event_name":"SomethingNew","session_id":"s","x":1}"#),
        ("codex", r#"{"hook_event_name":"PostToolUse","session_id":"t","tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Add File: a.txt\n+x\n*** Update File: b.txt\n*** Move to: c.txt\n*** Delete File: d.txt\n*** End Patch\n"},"tool_response":"ok","tool_use_id":"c1"}"#),
        ("codex", r#"{"type":"agent-turn-complete","thread-id":"t","last-assistant-message":"bye"}"#),
    ]
    .iter()
    .map(|(agent, payload)| serde_json::to_string(&hook(agent, payload)).unwrap())
    .collect();
    insta::assert_snapshot!(reports.join("\n"));
}

#[test]
fn a_call_can_be_refused_before_it_runs() {
    let deny = Decision::Deny("not here".into());
    let refusal = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not here"}}"#;
    for agent in ["claude", "codex"] {
        let report = hook(agent, PRE);
        assert!(matches!(&report.events[0], AgentEvent::ToolStarted { call_id, .. } if call_id == "c1"));
        assert_eq!(report.respond(&deny).as_deref(), Some(refusal));
        assert_eq!(report.respond(&Decision::Pass), None);
        assert_eq!(report.respond(&Decision::Block("x".into())), None, "this hook cannot carry that");
    }
}

#[test]
fn other_answers() {
    let stop = hook("claude", r#"{"hook_event_name":"Stop","session_id":"s"}"#);
    assert_eq!(
        stop.respond(&Decision::Block("go on".into())).as_deref(),
        Some(r#"{"decision":"block","reason":"go on"}"#)
    );
    assert_eq!(
        stop.respond(&Decision::Halt("enough".into())).as_deref(),
        Some(r#"{"continue":false,"stopReason":"enough"}"#)
    );
    let start = hook("claude", r#"{"hook_event_name":"SessionStart","session_id":"s","source":"startup"}"#);
    assert_eq!(
        start.respond(&Decision::Context("hello".into())).as_deref(),
        Some(r#"{"hookSpecificOutput":{"additionalContext":"hello","hookEventName":"SessionStart"}}"#)
    );
    let end = hook("claude", r#"{"hook_event_name":"SessionEnd","session_id":"s","reason":"other"}"#);
    assert_eq!(end.respond(&Decision::Halt("x".into())), None);
}

#[test]
fn malformed_payloads_are_errors() {
    for agent in ["claude", "codex", "plain"] {
        assert!(by_name(agent).unwrap().hook(b"not json").is_err());
    }
}
