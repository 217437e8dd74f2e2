//! Claude Code.

mod content;
mod hook;
mod interactive;
mod launch;
mod limits;
mod log;
mod parser;
mod permission;
mod result;
mod status_line;
mod system;
mod usage;
mod wire;
mod wire_system;

pub use launch::BYPASS_FLAGS;
pub use launch::hook_settings;

use std::time::Duration;

use crate::agent::Agent;
use crate::capabilities::Capabilities;
use crate::conversation_log::ConversationLog;
use crate::hook::HookError;
use crate::hook::HookReport;
use crate::launch::LaunchError;
use crate::launch::LaunchRequest;
use crate::launch::LaunchSpec;
use crate::permission::Permission;
use crate::probe::Probe;
use crate::raw::Raw;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::status_line::StatusInput;
use crate::stop::Silence;
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

/// Claude Code, run with `-p` and its `stream-json` output.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claude;

impl Agent for Claude {
    fn name(&self) -> &str {
        "claude"
    }

    fn probe(&self) -> Probe {
        Probe {
            programs: vec!["claude".to_owned()],
            version_args: vec!["--version".to_owned()],
            install_hint: "install it with: npm install -g @anthropic-ai/claude-code".to_owned(),
        }
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
        if request.interactive { interactive::launch(request) } else { launch::launch(request) }
    }

    fn reader(&self, options: &ReaderOptions) -> Reader {
        Reader::new(Box::<parser::ClaudeParser>::default(), options, Tally::new(Ending::Announced, options))
    }

    fn watching(&self) -> Option<Watching> {
        Some(Watching {
            variable: "CLAUDE_CONFIG_DIR",
            below_variable: "",
            home: ".claude",
            files: &["settings.json"],
            project_files: &[".claude/settings.json"],
            form: Form::Hooks(launch::hook_settings_line),
            runs: Runs::Unless("disableAllHooks"),
            plugins: Plugins::Settings("enabledPlugins"),
            status_line: true,
            servers: Servers {
                file: ServerFile::Json(".claude.json", ".mcp.json"),
                member: "mcpServers",
                make: crate::watching::stdio_server,
            },
            commands: Commands {
                folder: "commands",
                project_folder: ".claude/commands",
                taken: &["session", "resume", "checkpoint", "undo"],
                form: Invocation::Markdown { grants: true },
            },
        })
    }

    fn hook(&self, payload: &[u8]) -> Result<HookReport, HookError> {
        hook::read(payload)
    }

    fn status_line(&self, input: &[u8]) -> Option<StatusInput> {
        status_line::read(input)
    }

    fn conversation_log(&self) -> Option<&'static dyn ConversationLog> {
        Some(&log::TranscriptLog)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            hooks: true,
            tells_calls: true,
            asks_permission: true,
            chooses_id: true,
            chooses_id_at_terminal: true,
            goes_back_to_message: true,
            tells_cost: true,
            caps_turns: true,
            tells_usage: true,
            models: &["sonnet", "opus"],
            provider: Some("anthropic"),
            ..Capabilities::default()
        }
    }

    /// Its own timers are 300 s inside an answer and 360 s before one; a running tool beats every 30 s.
    fn silence(&self) -> Silence {
        Silence { at_least: Duration::from_secs(7 * 60), heartbeats: true }
    }

    /// The setting `autoContinueAtUsageLimit` is for a person's terminal only.
    fn own_waiting(&self) -> &[&'static str] {
        &["CLAUDE_CODE_RETRY_WATCHDOG"]
    }

    fn usage_question(&self) -> Option<UsageQuestion> {
        Some(usage::question())
    }

    fn answer_permission(&self, request_id: &str, input: &Raw, answer: &Permission) -> Option<Vec<u8>> {
        Some(permission::answer(request_id, input, answer))
    }

    fn bypass_flags(&self) -> &[&str] {
        BYPASS_FLAGS
    }
}
