//! Codex.

mod hook;
mod interactive;
mod items;
mod launch;
mod limits;
mod log;
mod log_calls;
mod log_wire;
mod parser;
mod patch;
mod usage;
mod wire;

pub use launch::BYPASS_FLAGS;
pub use launch::hook_settings;
pub use log::fork_at;

use crate::agent::Agent;
use crate::capabilities::Capabilities;
use crate::conversation_log::ConversationLog;
use crate::hook::HookError;
use crate::hook::HookReport;
use crate::launch::LaunchError;
use crate::launch::LaunchRequest;
use crate::launch::LaunchSpec;
use crate::probe::Probe;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::tally::Ending;
use crate::tally::Tally;
use crate::usage::UsageQuestion;
use crate::watching::Commands;
use crate::watching::Form;
use crate::watching::Invocation;
use crate::watching::Plugins;
use crate::watching::Runs;
use crate::watching::ServerFile;
use crate::watching::Servers;
use crate::watching::Watching;

/// Codex, run with `exec --json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Codex;

impl Agent for Codex {
    fn name(&self) -> &str {
        "codex"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            hooks: true,
            tells_calls: true,
            call_ids_recur: true,
            log_beside_output: true,
            tells_usage: true,
            counts_conversation: true,
            provider: Some("openai"),
            ..Capabilities::default()
        }
    }

    fn usage_question(&self) -> Option<UsageQuestion> {
        Some(usage::question())
    }

    fn conversation_log(&self) -> Option<&'static dyn ConversationLog> {
        Some(&log::RolloutLog)
    }

    fn probe(&self) -> Probe {
        Probe {
            programs: vec!["codex".to_owned()],
            version_args: vec!["--version".to_owned()],
            install_hint: "install it with: npm install -g @openai/codex".to_owned(),
        }
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
        if request.interactive { interactive::launch(request) } else { launch::launch(request) }
    }

    fn reader(&self, options: &ReaderOptions) -> Reader {
        let parser = parser::CodexParser::new(options.baseline);
        Reader::new(Box::new(parser), options, Tally::new(Ending::Announced, options))
    }

    fn watching(&self) -> Option<Watching> {
        Some(Watching {
            variable: "CODEX_HOME",
            below_variable: "",
            home: ".codex",
            files: &["hooks.json"],
            project_files: &[".codex/hooks.json"],
            form: Form::Hooks(launch::hook_settings_line),
            runs: Runs::Trusted { config: "config.toml", how: "type /hooks in codex" },
            plugins: Plugins::Toml("config.toml", "plugins"),
            status_line: false,
            servers: Servers {
                file: ServerFile::Toml("config.toml", ".codex/config.toml"),
                member: "mcp_servers",
                make: crate::watching::stdio_server,
            },
            commands: Commands {
                folder: "skills",
                project_folder: ".agents/skills",
                taken: &[],
                form: Invocation::Skill,
            },
        })
    }

    fn hook(&self, payload: &[u8]) -> Result<HookReport, HookError> {
        hook::read(payload)
    }

    fn bypass_flags(&self) -> &[&str] {
        BYPASS_FLAGS
    }
}
