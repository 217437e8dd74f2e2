//! Gemini CLI.

mod calls;
mod failure;
mod history;
mod hook;
mod launch;
mod limits;
mod parser;
mod transcript;
mod wire;

pub use hook::hook_call_id;
pub use launch::BYPASS_FLAGS;
pub use launch::hook_settings;
pub use transcript::cut_at;

use crate::agent::Agent;
use crate::capabilities::Capabilities;
use crate::conversation_log::ConversationLog;
use crate::hook::HookError;
use crate::hook::HookReport;
use crate::launch::LaunchError;
use crate::launch::LaunchRequest;
use crate::launch::LaunchSpec;
use crate::limit::Limit;
use crate::probe::Probe;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::tally::Ending;
use crate::tally::Tally;
use crate::watching::Commands;
use crate::watching::Form;
use crate::watching::Invocation;
use crate::watching::Plugins;
use crate::watching::Runs;
use crate::watching::ServerFile;
use crate::watching::Servers;
use crate::watching::Watching;

/// Gemini CLI, run without a person and with its `stream-json` output.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gemini;

impl Agent for Gemini {
    fn name(&self) -> &str {
        "gemini"
    }

    fn probe(&self) -> Probe {
        Probe {
            programs: vec!["gemini".to_owned()],
            version_args: vec!["--version".to_owned()],
            install_hint: "install it with: npm install -g @google/gemini-cli".to_owned(),
        }
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
        launch::launch(request)
    }

    /// An end by a signal brings no result and yet the exit code 0: without a result it was interrupted.
    fn reader(&self, options: &ReaderOptions) -> Reader {
        let tally = Tally::new(Ending::Announced, options).hinted(limits::by_exit);
        Reader::new(Box::<parser::GeminiParser>::default(), options, tally)
    }

    fn watching(&self) -> Option<Watching> {
        Some(Watching {
            variable: "GEMINI_CLI_HOME",
            below_variable: ".gemini",
            home: ".gemini",
            files: &["settings.json"],
            project_files: &[".gemini/settings.json"],
            form: Form::Hooks(launch::hook_settings_line),
            runs: Runs::Configured("hooksConfig"),
            plugins: Plugins::Folder("extensions/segno"),
            status_line: false,
            servers: Servers {
                file: ServerFile::Settings,
                member: "mcpServers",
                make: crate::watching::stdio_server,
            },
            commands: Commands {
                folder: "commands",
                project_folder: ".gemini/commands",
                taken: &["session", "resume"],
                form: Invocation::Toml,
            },
        })
    }

    fn hook(&self, payload: &[u8]) -> Result<HookReport, HookError> {
        hook::read(payload)
    }

    fn conversation_log(&self) -> Option<&'static dyn ConversationLog> {
        Some(&transcript::ChatLog)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            hooks: true,
            tells_calls: true,
            chooses_id_at_terminal: true,
            tells_use_late: true,
            provider: Some("google"),
            ..Capabilities::default()
        }
    }

    fn silent_wait(&self, stderr: &str) -> Option<Limit> {
        limits::silent_wait(stderr)
    }

    fn bypass_flags(&self) -> &[&str] {
        BYPASS_FLAGS
    }
}
