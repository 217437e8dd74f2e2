//! Lines as agents write them, for scripted agents.
//!
//! Only what readers rely on: real lines have many more fields.

/// Claude Code's `stream-json`.
pub mod claude {
    use serde_json::Value;
    use serde_json::json;

    /// The first line.
    pub fn init(session: &str) -> Value {
        json!({
            "type": "system", "subtype": "init", "session_id": session, "uuid": id(),
            "model": "scripted", "cwd": "${cwd}", "tools": ["Bash", "Write"], "permissionMode": "default",
            "claude_code_version": "0.0.0",
        })
    }

    /// The model says something.
    pub fn text(session: &str, text: &str) -> Value {
        assistant(session, json!({ "type": "text", "text": text }))
    }

    /// The model calls a tool.
    pub fn tool_use(session: &str, call: &str, tool: &str, input: Value) -> Value {
        assistant(session, json!({ "type": "tool_use", "id": call, "name": tool, "input": input }))
    }

    /// A tool gave something back.
    pub fn tool_result(session: &str, call: &str, output: &str, is_error: bool) -> Value {
        let block =
            json!({ "type": "tool_result", "tool_use_id": call, "content": output, "is_error": is_error });
        json!({
            "type": "user", "session_id": session, "uuid": id(), "parent_tool_use_id": null,
            "message": { "role": "user", "content": [block] },
        })
    }

    /// The last line of a run that went well.
    pub fn result(session: &str, text: &str) -> Value {
        json!({
            "type": "result", "subtype": "success", "session_id": session, "uuid": id(), "is_error": false,
            "result": text, "num_turns": 1, "duration_ms": 1, "duration_api_ms": 1, "total_cost_usd": 0.01,
            "stop_reason": "end_turn", "terminal_reason": "completed", "permission_denials": [],
            "usage": { "input_tokens": 100, "output_tokens": 20 },
            "modelUsage": { "scripted": { "inputTokens": 100, "outputTokens": 20, "costUSD": 0.01 } },
        })
    }

    /// The last line of a run that was interrupted.
    pub fn interrupted(session: &str) -> Value {
        json!({
            "type": "result", "subtype": "error_during_execution", "session_id": session, "uuid": id(),
            "is_error": true, "num_turns": 1, "duration_ms": 1, "duration_api_ms": 1, "total_cost_usd": 0.01,
            "terminal_reason": "aborted_tools", "permission_denials": [], "errors": [],
            "usage": { "input_tokens": 100, "output_tokens": 20 }, "modelUsage": {},
        })
    }

    fn assistant(session: &str, block: Value) -> Value {
        json!({
            "type": "assistant", "session_id": session, "uuid": id(), "parent_tool_use_id": null,
            "message": {
                "id": format!("msg_{}", id()), "type": "message", "role": "assistant", "model": "scripted",
                "content": [block], "stop_reason": null, "usage": { "input_tokens": 100, "output_tokens": 1 },
            },
        })
    }

    fn id() -> String {
        uuid::Uuid::now_v7().to_string()
    }
}

/// Codex's `exec --json`.
pub mod codex {
    use serde_json::Value;
    use serde_json::json;

    /// The first line.
    pub fn thread_started(thread: &str) -> Value {
        json!({ "type": "thread.started", "thread_id": thread })
    }

    /// A turn begins.
    pub fn turn_started() -> Value {
        json!({ "type": "turn.started" })
    }

    /// The model says something.
    pub fn message(item: &str, text: &str) -> Value {
        json!({ "type": "item.completed", "item": { "id": item, "type": "agent_message", "text": text } })
    }

    /// A command begins.
    pub fn command_started(item: &str, command: &str) -> Value {
        json!({ "type": "item.started", "item": {
            "id": item, "type": "command_execution", "command": command, "aggregated_output": "",
            "exit_code": null, "status": "in_progress",
        } })
    }

    /// A command ended.
    pub fn command_completed(item: &str, command: &str, output: &str, exit_code: i32) -> Value {
        let status = if exit_code == 0 { "completed" } else { "failed" };
        json!({ "type": "item.completed", "item": {
            "id": item, "type": "command_execution", "command": command, "aggregated_output": output,
            "exit_code": exit_code, "status": status,
        } })
    }

    /// The last line of a run that went well.
    pub fn turn_completed() -> Value {
        json!({ "type": "turn.completed", "usage": {
            "input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 20, "reasoning_output_tokens": 0,
        } })
    }

    /// The last line of a run that failed.
    pub fn turn_failed(message: &str) -> Value {
        json!({ "type": "turn.failed", "error": { "message": message } })
    }
}
