//! Portable ops become calls of the tools that a request declares.

use serde_json::Value;
use serde_json::json;

use super::answer::Piece;
use super::op::Op;
use super::op::Sh;
use super::query::Query;

/// Where Codex keeps its tools for sub-agents.
const SUB_AGENTS: &str = "multi_agent_v1";

/// The piece of an answer that `op` is, for the agent that asks. `unique` makes the call's id.
pub(super) fn resolve(op: Op, query: &Query, unique: &str) -> Result<Piece, String> {
    let tools = Tools { query, unique };
    match op {
        Op::Text(text) => Ok(Piece::Text(text)),
        Op::Thinking(text) => Ok(Piece::Thinking(text)),
        Op::Fill(length) => Ok(Piece::Text(filler(length))),
        Op::Sh(sh) => tools.sh(&sh),
        Op::Write { path, content } => tools.write(&path, &content),
        Op::Edit { path, old, new } => tools.edit(&path, &old, &new),
        Op::Read(path) => tools.read(&path),
        Op::Task { prompt, description, agent, extra } => {
            let description = description.unwrap_or_else(|| "a task".to_owned());
            tools.task(&prompt, &description, agent.as_deref(), extra)
        }
        Op::Tool { name, input, namespace, id } => Ok(tools.call_with(&name, input, namespace, id)),
        Op::Custom { name, input } => Ok(tools.custom(&name, input)),
    }
}

struct Tools<'a> {
    query: &'a Query,
    unique: &'a str,
}

impl Tools<'_> {
    /// The first of `names` that is declared.
    fn first(&self, what: &str, names: &[&'static str]) -> Result<&'static str, String> {
        names.iter().copied().find(|name| self.query.tools.contains_key(*name)).ok_or_else(|| {
            let declared: Vec<&str> = self.query.tools.keys().map(String::as_str).collect();
            format!("no tool to {what} among {}", declared.join(", "))
        })
    }

    fn call(&self, name: &str, input: Value) -> Piece {
        self.call_with(name, input, None, None)
    }

    fn call_with(&self, name: &str, input: Value, namespace: Option<String>, id: Option<String>) -> Piece {
        let declared = || self.query.tools.get(name).and_then(|tool| tool.namespace.clone());
        let namespace = namespace.or_else(declared);
        let id = id.unwrap_or_else(|| format!("call_{}", self.unique));
        Piece::Call { id, name: name.to_owned(), namespace, input }
    }

    fn custom(&self, name: &str, input: String) -> Piece {
        Piece::Custom { id: format!("call_{}", self.unique), name: name.to_owned(), input }
    }

    fn sh(&self, sh: &Sh) -> Result<Piece, String> {
        let name = self.first(
            "run a command",
            &["Bash", "exec_command", "shell_command", "shell", "bash", "run_shell_command"],
        )?;
        let command = &sh.command;
        let mut input = match name {
            "exec_command" => json!({ "cmd": command }),
            "shell_command" => json!({ "command": command }),
            "shell" => json!({ "command": ["bash", "-c", command] }),
            _ => json!({ "command": command, "description": "Run a command" }),
        };
        let timeout = match name {
            "exec_command" => "yield_time_ms",
            "shell_command" | "shell" => "timeout_ms",
            _ => "timeout",
        };
        if let Some(ms) = sh.timeout_ms {
            input[timeout] = ms.into();
        }
        match name {
            "Bash" if sh.background => input["run_in_background"] = true.into(),
            "run_shell_command" if sh.background => input["is_background"] = true.into(),
            _ => {}
        }
        Ok(self.call(name, input))
    }

    fn write(&self, path: &str, content: &str) -> Result<Piece, String> {
        if let Ok(name) = self.first("write", &["Write", "write", "write_file"]) {
            let field = if name == "write" { "filePath" } else { "file_path" };
            return Ok(self.call(name, json!({ field: path, "content": content })));
        }
        if self.query.tools.contains_key("apply_patch") {
            return Ok(self.patch(&format!("*** Add File: {path}\n{}", marked('+', content))));
        }
        // A tool to run commands can write too.
        let script = format!("cat > {} <<'END_OF_FILE'\n{content}\nEND_OF_FILE", quoted(path));
        self.sh(&Sh::from(script))
    }

    fn edit(&self, path: &str, old: &str, new: &str) -> Result<Piece, String> {
        let name = self.first("edit a file", &["Edit", "edit", "replace", "apply_patch"])?;
        Ok(match name {
            "apply_patch" => {
                self.patch(&format!("*** Update File: {path}\n@@\n{}{}", marked('-', old), marked('+', new)))
            }
            "edit" => self.call(name, json!({ "filePath": path, "oldString": old, "newString": new })),
            "replace" => self.call(
                name,
                json!({ "file_path": path, "old_string": old, "new_string": new, "instruction": "Replace" }),
            ),
            _ => self.call(name, json!({ "file_path": path, "old_string": old, "new_string": new })),
        })
    }

    fn patch(&self, hunks: &str) -> Piece {
        let patch = format!("*** Begin Patch\n{hunks}*** End Patch\n");
        if self.query.tools.get("apply_patch").is_some_and(|tool| tool.custom) {
            self.custom("apply_patch", patch)
        } else {
            self.call("apply_patch", json!({ "input": patch }))
        }
    }

    fn read(&self, path: &str) -> Result<Piece, String> {
        match self.first("read", &["Read", "read", "read_file"]) {
            Ok("read") => Ok(self.call("read", json!({ "filePath": path }))),
            Ok(name) => Ok(self.call(name, json!({ "file_path": path }))),
            Err(_) => self.sh(&Sh::from(format!("cat {}", quoted(path)))),
        }
    }

    fn task(
        &self,
        prompt: &str,
        description: &str,
        agent: Option<&str>,
        extra: serde_json::Map<String, Value>,
    ) -> Result<Piece, String> {
        let name = self.first(
            "start a sub-agent",
            &["Agent", "Task", "task", "invoke_agent", "spawn_agent", "tool_search"],
        )?;
        let mut input = match name {
            "spawn_agent" | "tool_search" => json!({ "message": prompt }),
            "invoke_agent" => json!({ "agent_name": agent.unwrap_or("generalist"), "prompt": prompt }),
            _ => {
                let agent = agent.unwrap_or(if name == "task" { "general" } else { "general-purpose" });
                json!({ "prompt": prompt, "description": description, "subagent_type": agent })
            }
        };
        if let Some(fields) = input.as_object_mut() {
            fields.extend(extra);
        }
        if name == "tool_search" {
            // Codex does not declare this tool until it is searched for, but takes calls of it all the same.
            let namespace = Some(SUB_AGENTS.to_owned());
            return Ok(self.call_with("spawn_agent", input, namespace, None));
        }
        Ok(self.call(name, input))
    }
}

/// Each line of `text` behind a mark, as patches have them.
fn marked(mark: char, text: &str) -> String {
    text.lines().map(|line| format!("{mark}{line}\n")).collect()
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Text of so many characters in numbered lines, not all of them plain letters.
fn filler(length: usize) -> String {
    let lines = (0_u32..).flat_map(|number| {
        format!("line {number:07} abcdefghij \u{e9}\u{4e2d}\u{1f600}\n").chars().collect::<Vec<_>>()
    });
    lines.take(length).collect()
}
