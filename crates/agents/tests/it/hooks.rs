//! Hook payloads and answers.

use segno_agents::AgentEvent;
use segno_agents::Decision;
use segno_agents::HookReport;
use segno_agents::by_name;

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
fn payloads_of_gemini_and_opencode() {
    let reports: Vec<String> = [
        ("gemini", r#"{"session_id":"g","transcript_path":"/t.jsonl","cwd":"/w","hook_event_name":"SessionStart","timestamp":"t","source":"startup"}"#),
        ("gemini", r#"{"session_id":"g","hook_event_name":"BeforeAgent","prompt":"do it"}"#),
        ("gemini", BEFORE),
        ("gemini", r#"{"session_id":"g","hook_event_name":"AfterTool","tool_name":"run_shell_command","tool_input":{"command":"ls"},"tool_response":{"llmContent":"Output: no\nExit Code: 3\n","returnDisplay":"no"}}"#),
        ("gemini", r#"{"session_id":"g","hook_event_name":"AfterTool","tool_name":"write_file","tool_input":{"file_path":"/w/a"},"tool_response":{"llmContent":"ok"}}"#),
        ("gemini", r#"{"session_id":"g","hook_event_name":"AfterTool","tool_name":"read_file","tool_input":{},"tool_response":{"llmContent":"x","error":{"message":"File not found","type":"file_not_found"}}}"#),
        ("gemini", r#"{"session_id":"g","hook_event_name":"PreCompress","trigger":"auto"}"#),
        ("gemini", r#"{"session_id":"g","hook_event_name":"PreCompress","trigger":"manual"}"#),
        ("gemini", r#"{"session_id":"g","hook_event_name":"SessionEnd","reason":"exit"}"#),
        ("opencode", r#"{"hook_event_name":"session.created","session_id":"o","cwd":"/w","version":"1.0.0"}"#),
        ("opencode", r#"{"hook_event_name":"session.created","session_id":"o2","parent_id":"o","cwd":"/w"}"#),
        ("opencode", r#"{"hook_event_name":"chat.message","session_id":"o","prompt":"do it"}"#),
        ("opencode", r#"{"hook_event_name":"tool.execute.before","session_id":"o2","parent_id":"o","tool_name":"bash","call_id":"c1","tool_input":{"command":"ls"}}"#),
        ("opencode", r#"{"hook_event_name":"tool.execute.after","session_id":"o","tool_name":"write","call_id":"c1","tool_input":{"filePath":"a"},"tool_output":"ok","metadata":{"filepath":"/w/a","exists":false}}"#),
        ("opencode", r#"{"hook_event_name":"tool.execute.after","session_id":"o","tool_name":"bash","call_id":"c1","tool_output":"no","metadata":{"exit":3}}"#),
        ("opencode", r#"{"hook_event_name":"tool.execute.error","session_id":"o","tool_name":"bash","call_id":"c1","error":"Error: refused by a hook: no"}"#),
        ("opencode", r#"{"hook_event_name":"session.error","session_id":"o","error":"Too many requests"}"#),
        ("opencode", r#"{"hook_event_name":"session.status","session_id":"o","attempt":2,"error":"Too many requests","delay_ms":1500.5}"#),
        ("opencode", r#"{"hook_event_name":"session.idle","session_id":"o"}"#),
    ]
    .iter()
    .map(|(agent, payload)| serde_json::to_string(&hook(agent, payload)).unwrap())
    .collect();
    insta::assert_snapshot!(reports.join("\n"));
}

const BEFORE: &str = r#"{"session_id":"g","transcript_path":"/t.jsonl","cwd":"/w","hook_event_name":"BeforeTool","timestamp":"t","tool_name":"run_shell_command","tool_input":{"command":"ls"}}"#;

#[test]
fn each_agent_hears_a_refusal_in_its_own_words() {
    let deny = Decision::Deny("not here".into());
    let gemini = hook("gemini", BEFORE);
    assert_eq!(gemini.respond(&deny).as_deref(), Some(r#"{"decision":"deny","reason":"not here"}"#));
    assert_eq!(gemini.respond(&Decision::Context("x".into())), None, "this hook cannot carry that");
    let before =
        r#"{"hook_event_name":"tool.execute.before","session_id":"o","call_id":"c1","tool_name":"bash"}"#;
    let opencode = hook("opencode", before).respond(&deny).unwrap();
    assert!(opencode.contains(r#""permissionDecision":"deny","permissionDecisionReason":"not here""#));
    assert_eq!(hook("opencode", before).respond(&Decision::Halt("x".into())), None);
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
    for agent in ["claude", "codex", "gemini", "opencode", "plain"] {
        assert!(by_name(agent).unwrap().hook(b"not json").is_err());
    }
}
