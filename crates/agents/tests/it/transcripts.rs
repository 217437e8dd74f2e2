//! The agents' own records.

use segno_agents::by_name;
use segno_agents::codex::fork_at;
use segno_agents::gemini::cut_at;
use segno_agents::transcript::Transcript;

fn read(agent: &str, lines: &[&str]) -> Transcript {
    by_name(agent).unwrap().conversation_log().unwrap().transcript(lines.join("\n").as_bytes())
}

#[test]
fn claude_transcript() {
    let transcript = read(
        "claude",
        &[
            r#"{"type":"mode","mode":"normal","sessionId":"s"}"#,
            r#"{"type":"user","uuid":"u1","sessionId":"s","cwd":"/w","version":"2.0.0","isSidechain":false,"message":{"role":"user","content":"do it"}}"#,
            r#"{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","isSidechain":false,"message":{"id":"m1","model":"x","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":10,"output_tokens":1}}}"#,
            r#"{"type":"assistant","uuid":"u3","sessionId":"s","isSidechain":false,"message":{"id":"m1","model":"x","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":10,"output_tokens":20}}}"#,
            r#"{"type":"user","uuid":"u4","sessionId":"s","isSidechain":false,"message":{"content":[{"type":"tool_result","tool_use_id":"c1","content":"Exit code 137","is_error":true}]}}"#,
            r#"{"type":"assistant","uuid":"u5","sessionId":"s","isSidechain":true,"message":{"id":"m2","model":"y","content":[{"type":"tool_use","id":"c2","name":"Read","input":{}}],"usage":{"input_tokens":5,"output_tokens":5}}}"#,
            r#"{"type":"user","uuid":"u6","sessionId":"s","isSidechain":false,"message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#,
            r#"{"type":"system","subtype":"compact_boundary","uuid":"u7","sessionId":"s"}"#,
            r#"{"type":"assistant","uuid":"u8","message":{"id":"m3","con"#,
        ],
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&transcript).unwrap());
    assert_eq!(transcript.open_calls().count(), 1);
}

const ROLLOUT: &[&str] = &[
    r#"{"timestamp":"t","type":"session_meta","payload":{"id":"t-1","cwd":"/w","cli_version":"0.1.0"}}"#,
    r#"{"timestamp":"t","type":"turn_context","payload":{"turn_id":"n1","cwd":"/w","model":"x"}}"#,
    r#"{"timestamp":"t","type":"event_msg","payload":{"type":"user_message","message":"do it"}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"call_1"}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"Process exited with code 0\nOutput:\na"}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch","call_id":"call_2","status":"completed"}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"call_2","output":{"content":"no such file","success":false}}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"done"}]}}"#,
    r#"{"timestamp":"t","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":9}}}}"#,
    r#"{"timestamp":"t","type":"event_msg","payload":{"type":"task_complete","turn_id":"n1"}}"#,
    r#"{"timestamp":"t","type":"compacted","payload":{"message":"short"}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"sleep\"}","call_id":"call_3"}}"#,
    r#"{"timestamp":"t","type":"brand_new","payload":{"x":1}}"#,
];

#[test]
fn codex_rollout() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&read("codex", ROLLOUT)).unwrap());
}

#[test]
fn a_rollout_can_be_cut_after_a_turn() {
    let whole = ROLLOUT.join("\n") + "\n";
    let end = read("codex", ROLLOUT).position.unwrap().end;
    let copy = fork_at(whole.as_bytes(), end, "t-1", "t-2").unwrap();
    let copy = by_name("codex").unwrap().conversation_log().unwrap().transcript(&copy);
    assert_eq!((copy.native_id.as_deref(), copy.lines, copy.open_calls().count()), (Some("t-2"), 10, 0));
    assert_eq!(fork_at(whole.as_bytes(), end - 1, "t-1", "t-2"), None, "not the end of a line");
    assert_eq!(fork_at(whole.as_bytes(), u64::MAX, "t-1", "t-2"), None);
}

const CHAT: &[&str] = &[
    r#"{"sessionId":"g1","projectHash":"x","startTime":"t","lastUpdated":"t","kind":"main"}"#,
    r#"{"$set":{"messages":[{"id":"u0","timestamp":"t","type":"user","content":[{"text":"<session_context>\nlinux"}]}],"lastUpdated":"t"}}"#,
    r#"{"id":"u1","timestamp":"t","type":"user","content":[{"text":"do it"}]}"#,
    r#"{"id":"m1","timestamp":"t","type":"gemini","content":"ok","thoughts":[],"tokens":{"input":100,"output":20,"cached":30,"thoughts":5,"tool":0,"total":125},"model":"x"}"#,
    r#"{"id":"m1","timestamp":"t","type":"gemini","content":"ok","tokens":{"input":100,"output":20,"cached":30,"thoughts":5},"model":"x","toolCalls":[{"id":"c1","name":"run_shell_command","args":{"command":"ls"},"result":[{"functionResponse":{"id":"c1","response":{"output":"Output: no\nExit Code: 3\n"}}}],"status":"success"},{"id":"c2","name":"read_file","args":{},"result":[{"functionResponse":{"id":"c2","response":{"output":"x"}}}],"status":"success"},{"id":"c3","name":"write_file","args":{},"result":[],"status":"cancelled"}]}"#,
    r#"{"id":"u2","timestamp":"t","type":"user","content":[{"functionResponse":{"id":"c1","response":{"output":"no"}}}]}"#,
    r#"{"id":"m2","timestamp":"t","type":"gemini","content":"done","tokens":{"input":10,"output":1},"model":"x"}"#,
    r#"{"$set":{"lastUpdated":"t"}}"#,
    r#"{"id":"m3","type":"gem"#,
];

#[test]
fn gemini_chat() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&read("gemini", CHAT)).unwrap());
}

#[test]
fn a_chat_can_be_cut_after_a_message() {
    let whole = CHAT.join("\n") + "\n";
    let end = read("gemini", &CHAT[..4]).position.unwrap().end + 1;
    let copy = by_name("gemini")
        .unwrap()
        .conversation_log()
        .unwrap()
        .transcript(&cut_at(whole.as_bytes(), end).unwrap());
    assert_eq!((copy.lines, copy.calls.len(), copy.last_text.as_deref()), (4, 0, Some("ok")));
    assert_eq!(cut_at(whole.as_bytes(), end - 1), None, "not the end of a line");
    assert_eq!(cut_at(whole.as_bytes(), u64::MAX), None);
}

#[test]
fn opencode_export() {
    let export = r#"{
  "info": { "id": "ses_1", "directory": "/w", "version": "1.0.0", "cost": 0.5,
    "tokens": { "input": 80, "output": 15, "reasoning": 5, "cache": { "read": 20, "write": 0 } } },
  "messages": [
    { "info": { "id": "msg_1", "role": "user" }, "parts": [{ "type": "text", "text": "do it" }] },
    { "info": { "id": "msg_2", "role": "assistant", "modelID": "x", "tokens": { "input": 80, "output": 15 } },
      "parts": [
        { "type": "text", "text": "ok" },
        { "type": "tool", "tool": "bash", "callID": "c1", "state": { "status": "completed", "input": { "command": "ls" }, "output": "a", "metadata": { "exit": 0 } } },
        { "type": "tool", "tool": "bash", "callID": "c2", "state": { "status": "completed", "input": {}, "output": "no", "metadata": { "exit": 3 } } },
        { "type": "tool", "tool": "read", "callID": "c3", "state": { "status": "error", "input": {}, "error": "File not found" } },
        { "type": "tool", "tool": "bash", "callID": "c4", "state": { "status": "running", "input": { "command": "sleep" } } } ] },
    { "info": 7 }
  ]
}"#;
    insta::assert_snapshot!(serde_json::to_string_pretty(&read("opencode", &[export])).unwrap());
    let cut = read("opencode", &[&export[..200]]);
    assert_eq!((cut.native_id, cut.unparsed), (None, 1), "one document: whole or not at all");
}

#[test]
fn where_records_are() {
    let variables = |pairs: &'static [(&str, &str)]| {
        move |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let home = variables(&[("HOME", "/home/ann")]);
    let own = variables(&[("HOME", "/home/ann"), ("CLAUDE_CONFIG_DIR", "/c/"), ("CODEX_HOME", "/x")]);
    let at = |agent: &str, variable: &dyn Fn(&str) -> Option<String>| {
        by_name(agent).unwrap().conversation_log()?.location()?.root(variable)
    };
    let found = |folder: &str| Some(folder.to_owned());
    assert_eq!(at("claude", &home), found("/home/ann/.claude/projects"));
    assert_eq!(at("claude", &own), found("/c/projects"));
    assert_eq!(at("codex", &home), found("/home/ann/.codex/sessions"));
    assert_eq!(at("codex", &own), found("/x/sessions"));
    assert_eq!(at("claude", &variables(&[])), None);
    assert_eq!(at("plain", &home), None);
    // An id that leads elsewhere names nothing.
    for agent in ["claude", "codex"] {
        let location = by_name(agent).unwrap().conversation_log().unwrap().location().unwrap();
        for id in ["", "../../etc/passwd", "a/b", "a.b"] {
            assert!(!location.is_of(&format!("{}x-{id}.jsonl", location.prefix), id), "{id}");
            assert!(!location.is_of(&format!("{id}.jsonl"), id), "{id}");
        }
    }
}

#[test]
fn a_result_that_says_that_there_is_none_settles_nothing() {
    let call = |agent: &str, output: &str| {
        let bytes = match agent {
            "claude" => format!(
                "{}\n{}\n",
                r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c","name":"Bash","input":{}}]}}"#,
                serde_json::json!({ "type": "user", "message": { "content": [
                    { "type": "tool_result", "tool_use_id": "c", "content": [{ "type": "text", "text": output }] } ] } }),
            ),
            _ => format!(
                "{}\n{}\n",
                r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c"}}"#,
                serde_json::json!({ "type": "response_item", "payload": {
                    "type": "function_call_output", "call_id": "c", "output": output } }),
            ),
        };
        let read =
            segno_agents::by_name(agent).unwrap().conversation_log().unwrap().transcript(bytes.as_bytes());
        // A call that goes on has none yet.
        let text = read.calls[0].output_text();
        assert!(text.as_deref().is_none_or(|text| text == output), "{text:?}");
        read.calls[0].is_settled()
    };
    assert!(call("claude", "all went well"));
    assert!(!call(
        "claude",
        "[Tool call interrupted: the session ended before this call's result was recorded]"
    ));
    assert!(call("codex", "Process exited with code 0\nOutput:\na"));
    assert!(call("codex", "Process exited with code 3\nOutput:\na"));
    assert!(!call("codex", "Chunk ID: 1\nProcess running with session ID 7\nOutput:\n"));
    assert!(!call("codex", "aborted"));
    assert!(!call("codex", "Wall time: 0.5 seconds\naborted by user"));
}
