//! Agents that are shell scripts: one that asks whether it may, and one that makes no progress.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::common::TestEnv;

/// A world in which `claude` is this script. `$id` is its conversation.
pub(crate) fn claude(work: &str) -> TestEnv {
    let mut env = TestEnv::on_disk();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let script = format!(
        r#"#!/bin/sh
case "$*" in *--version*) echo "2.1.325 (Claude Code)"; exit 0;; esac
id=none; while [ $# -gt 0 ]; do case "$1" in --session-id|--resume) id=$2;; esac; shift; done
printf '{{"type":"system","subtype":"init","session_id":"%s","model":"gpt-5","tools":[]}}\n' "$id"
{work}
printf '{{"type":"result","subtype":"success","is_error":false,"session_id":"%s","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0.01,"usage":{{"input_tokens":100,"output_tokens":10}},"result":"%s"}}\n' "$id" "${{says:-done}}"
"#
    );
    env.write("claude", &script);
    std::fs::set_permissions(env.path("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    env.set("SEGNO_AGENTS", &format!("[claude]\nprogram = {:?}\n", env.path("claude").display().to_string()));
    env
}

/// It asks whether it may do these, one after the other, and writes down what it is answered.
pub(crate) fn asking(commands: &[&str]) -> TestEnv {
    let ask = |(n, command): (usize, &&str)| {
        let request = format!(
            r#"{{"type":"control_request","request_id":"r{n}","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{{"command":"{command}"}},"tool_use_id":"c{n}"}}}}"#
        );
        format!(
            "printf '%s\\n' '{request}'\nwhile read -r line; do case \"$line\" in *control_response*) printf '%s\\n' \"$line\" >> ../answered; break;; esac; done\n"
        )
    };
    let env = claude(&commands.iter().enumerate().map(ask).collect::<String>());
    env.ok(&["run", "--detach", "--agent", "claude", "--permissions", "ask", "--prompt", "go"]);
    question(&env);
    env
}

/// What waits, once something does.
pub(crate) fn question(env: &TestEnv) -> Value {
    until("a question waits", || env.json(&["answer"])["questions"].as_array()?.first().cloned())
}

/// Waits for something to be there.
pub(crate) fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(120), "{what}");
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
}
