//! One directory with a plug-in for each vendor, made from what stands in settings otherwise: hooks, the server of the Model
//! Context Protocol, and commands.

use serde_json::Value;
use serde_json::json;

use super::CommandFile;
use super::Form;
use super::MARK;
use super::PLUGIN;
use crate::agent::by_name;
use crate::agent::watched;
use crate::launch::shell_word;

const NAME: &str = "segno";
const ABOUT: &str =
    "Records every session: calls before they run, files, checkpoints, what is in doubt after a crash";

const LICENSE: &str = "MIT OR Apache-2.0";

/// All files of the directory, by their path in it.
pub fn plugin_files(program: &str, version: &str) -> Vec<CommandFile> {
    let file = |path: &str, text: String| CommandFile { path: path.to_owned(), text };
    let mut files = vec![
        file("README.md", readme()),
        file(
            ".claude-plugin/marketplace.json",
            pretty(&json!({
                "name": NAME,
                "description": ABOUT,
            "owner": { "name": NAME },
                "plugins": [{ "name": NAME, "source": "./claude", "description": ABOUT, "version": version }],
            })),
        ),
        file(
            ".agents/plugins/marketplace.json",
            pretty(&json!({
                "name": NAME,
                "plugins": [{ "name": NAME, "source": { "source": "local", "path": "./codex" } }],
            })),
        ),
        file(
            "claude/.claude-plugin/plugin.json",
            pretty(&json!({
                "name": NAME, "version": version, "description": ABOUT, "author": { "name": NAME }, "license": LICENSE,
            })),
        ),
        file(
            "codex/.codex-plugin/plugin.json",
            pretty(&json!({
                "name": NAME, "version": version, "description": ABOUT, "author": { "name": NAME }, "license": LICENSE,
                "skills": "./skills/", "mcpServers": "./.mcp.json", "hooks": "./hooks/hooks.json",
            })),
        ),
        file(
            "gemini/gemini-extension.json",
            pretty(&json!({
                "name": NAME, "version": version, "description": ABOUT, "mcpServers": server("gemini", program),
            })),
        ),
    ];
    for agent in ["claude", "codex"] {
        files.push(file(
            &format!("{agent}/.mcp.json"),
            pretty(&json!({ "mcpServers": server(agent, program) })),
        ));
    }
    for agent in &watched() {
        let Some(watching) = by_name(agent).and_then(|agent| agent.watching()) else { continue };
        match watching.form {
            Form::Hooks(make) => {
                let hooks = make(&super::hook_line(&shell_word(program), agent));
                files.push(file(&format!("{agent}/hooks/hooks.json"), pretty(&hooks)));
            }
            Form::Plugin => {
                let words = MARK.split(' ').map(ToOwned::to_owned);
                let command: Vec<String> =
                    std::iter::once(program.to_owned()).chain(words).chain([(*agent).to_owned()]).collect();
                files.push(file(&format!("{agent}/{PLUGIN}"), crate::opencode::watching_plugin(&command)));
            }
        }
        let folder = watching.commands.folder;
        for command in watching.commands.files(&shell_word(program)) {
            files
                .push(CommandFile { path: format!("{agent}/{folder}/{}", command.path), text: command.text });
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

fn server(agent: &str, program: &str) -> Value {
    let make = by_name(agent).and_then(|agent| agent.watching()).map(|watching| watching.servers.make);
    json!({ NAME: make.map_or(Value::Null, |make| make(program)) })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn readme() -> String {
    "# segno as a plug-in\n\n\
     Made by `segno init --plugin`; `segno uninit` removes what is as it was made. Use it instead of `segno init`, not beside it:\n\
     `segno doctor` says so if both are there. DIR is this directory.\n\n\
     - Claude Code: `claude plugin marketplace add DIR`, then `claude plugin install segno@segno`. A status line cannot come\n  \
       with a plug-in: `segno init claude --statusline` has that.\n\
     - Codex: `codex plugin marketplace add DIR`, then `codex plugin add segno@segno`. Look at its hooks once, with `/hooks`.\n\
     - Gemini CLI: `gemini extensions link DIR/gemini`\n\
     - opencode: name `file://DIR/opencode/segno-watch.js` under `plugin` in opencode.json, and link `DIR/opencode/command`.\n"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_hooks_and_commands_in_it() {
        let files = plugin_files("/opt/my tools/segno", "1.2.3");
        for agent in &watched() {
            let own: Vec<&CommandFile> =
                files.iter().filter(|file| file.path.starts_with(&format!("{agent}/"))).collect();
            let hooks = own.iter().any(|file| file.text.contains("--watch") && file.text.contains(agent));
            let command = own.iter().any(|file| file.text.contains("sessions"));
            assert!(hooks && command, "{agent}");
        }
        for file in files.iter().filter(|file| file.path.ends_with(".json")) {
            assert!(
                serde_json::from_str::<Value>(&file.text).is_ok_and(|value| value.is_object()),
                "{}",
                file.path
            );
            assert!(!file.text.contains(": null"), "{}", file.path);
        }
        let hook = files.iter().find(|file| file.path == "codex/hooks/hooks.json").unwrap();
        assert!(hook.text.contains("'/opt/my tools/segno' hook --watch codex || true"), "{}", hook.text);
    }
}
