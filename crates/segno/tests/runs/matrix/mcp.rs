//! Real agents that keep their own session over MCP: one sets the work up, another context window does it.

use std::time::Duration;

use rstest::rstest;
use segno_testkit::agents::skip;
use segno_testkit::model::Op;
use segno_testkit::model::Turn;
use serde_json::Value;
use serde_json::json;

use super::Real;
use crate::lab::SEGNO;
use crate::lab::program;

/// A call of one of our tools, as the agent names them: Codex keeps the tools of a server apart.
fn tool(agent: &str, name: &str, input: Value) -> Turn {
    let (name, namespace) = match agent {
        "codex" => (name.to_owned(), Some("mcp__segno".to_owned())),
        _ => (format!("mcp__segno__{name}"), None),
    };
    Turn::ops([Op::Tool { name, input, namespace, id: None }])
}

impl Real {
    /// The agent as a person types it, with our server.
    fn with_server(&self, prompt: &str) {
        let mut command = program(self.agent);
        match self.agent {
            "claude" => {
                let config = json!({ "mcpServers": { "segno": { "command": SEGNO, "args": ["mcp"] } } });
                let file = self.file("../mcp.json");
                std::fs::write(&file, config.to_string()).unwrap();
                command.args(["-p", prompt, "--allowedTools", "mcp__segno"]);
                command.args(["--strict-mcp-config", "--mcp-config"]).arg(file);
            }
            "codex" => {
                let own = |name: &str| name.starts_with("XDG_") || name == "HOME" || name == "PATH";
                let env = self.lab.env.iter().filter(|(name, _)| own(name));
                let env: Vec<String> = env.map(|(name, value)| format!("{name}={value:?}")).collect();
                let server = format!(
                    "mcp_servers.segno={{command={SEGNO:?},args=[\"mcp\"],env={{{}}}}}",
                    env.join(",")
                );
                command.args(["exec", "--skip-git-repo-check", "-c", &server, prompt]);
            }
            other => panic!("{other}"),
        }
        command.env_clear().envs(&self.lab.env).current_dir(self.lab.home.work());
        // The scripted model does not look for tools first.
        command.env("ENABLE_TOOL_SEARCH", "false");
        let said = self.lab.start_command(&mut command, None).finish_within(Duration::from_secs(180));
        self.describe(&said);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }
}

#[rstest]
#[case::claude("claude")]
#[case::codex("codex")]
fn an_initializer_and_a_worker_in_two_context_windows(#[case] agent: &'static str) {
    let tool = |name: &str, input: Value| tool(agent, name, input);
    let turns = [
        tool("new", json!({ "topic": "shop", "intent": "it sells" })),
        tool("task", json!({ "add": "write the page" })),
        tool("decide", json!({ "question": "db?", "choice": "sqlite", "because": "small" })),
        tool("pause", json!({ "reason": "set up" })),
        Turn::text("It is set up."),
        tool("resume", json!({})),
        tool("brief", json!({})),
        tool("task", json!({ "done": 1 })),
        tool("complete", json!({ "summary": "it sells" })),
        Turn::text("It is done."),
    ];
    let Some(real) = Real::with(agent, turns) else { return };
    real.with_server("Set up a shop, and do none of it yet.");
    let state = real.lab.state();
    assert_eq!((&state["status"], &state["topic"]), (&"paused".into(), &"shop".into()), "{state:#}");
    assert_eq!(state["tasks"]["open"]["1"], "write the page", "{state:#}");
    real.with_server("Go on with the session that waits.");
    let state = real.lab.state();
    assert_eq!((&state["status"], &state["tasks"]["done"]), (&"completed".into(), &1.into()), "{state:#}");
    assert_eq!(state["decisions"]["count"], 1, "{state:#}");
    // The second window knew of the work by the brief alone.
    let asked = real.model.requests();
    let last = asked.last().unwrap();
    assert!(last.conversation.contains("write the page"), "{}", last.conversation);
    assert!(!last.conversation.contains("Set up a shop"), "{}", last.conversation);
    let sessions = real.lab.json(&["ls", "--all"]);
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(1), "{sessions}");
}

#[test]
fn the_official_conformance_client_finds_no_fault() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/mcp-conformance");
    let said = program(script).arg(SEGNO).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    if said.status.code() == Some(3) {
        return skip(&format!("the conformance client cannot be installed: {err}"));
    }
    assert!(said.status.success(), "{out}{err}");
    assert_eq!(out.lines().filter(|line| line.ends_with(": passed")).count(), 12, "{out}");
}
