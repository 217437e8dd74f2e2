//! Calls that must not be allowed, however the store is.

use serde_json::Value;
use serde_json::json;

use super::World;
use crate::lab::Said;

/// How a hook finds the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Store {
    Free,
    Busy,
    Gone,
}

impl World {
    /// Whether a call of this session is denied.
    fn is_denied(&mut self, env: &[(&str, &str)], store: Store) -> bool {
        let input = json!({ "command": "echo hi" });
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "a", "cwd": "/", "tool_name": "Bash",
            "tool_use_id": format!("call-{}", self.count), "tool_input": input,
        });
        let ask = || -> Said {
            let mut command = self.lab.segno(&["hook", "claude"]);
            command.envs(env.iter().copied());
            self.lab.start_command(&mut command, Some(payload.to_string().as_bytes())).finish()
        };
        let said = match store {
            Store::Free => ask(),
            Store::Busy => {
                let store = rusqlite::Connection::open(self.data().join("segno.db")).unwrap();
                store.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
                store.execute_batch("BEGIN IMMEDIATE").unwrap();
                let said = ask();
                store.execute_batch("ROLLBACK").unwrap();
                said
            }
            Store::Gone => {
                let away = self.data().with_extension("away");
                std::fs::rename(self.data(), &away).unwrap();
                let said = ask();
                let _ = std::fs::remove_dir_all(self.data());
                std::fs::rename(&away, self.data()).unwrap();
                said
            }
        };
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let answer: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
        answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    }

    pub(super) fn call_under_used_up_cap(&mut self) {
        let Some(id) = self.used_up() else { return };
        let store = self.dice.one_of(&[Store::Free, Store::Busy]);
        assert!(self.is_denied(&[("SEGNO_SESSION", &id)], store), "a call was allowed under a used-up cap");
        self.lab.run(&["abort", &id]);
    }

    pub(super) fn call_of_replaced_driver(&mut self) {
        let id = self.new_session("replaced");
        let said = self.lab.run(&["run", "--session", &id, "--", "true"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let runs = self.lab.json(&["show", &id, "--runs"]);
        let run = runs["items"][0]["run"].as_str().or(runs["items"][0]["id"].as_str()).unwrap_or("gone");
        self.lab.run(&["run", "--session", &id, "--", "true"]);
        let env = [("SEGNO_SESSION", id.as_str()), ("SEGNO_RUN", run), ("SEGNO_EPOCH", "1")];
        let store = self.dice.one_of(&[Store::Free, Store::Busy, Store::Gone]);
        assert!(self.is_denied(&env, store), "a call was allowed in the name of a driver that was replaced");
    }
}
