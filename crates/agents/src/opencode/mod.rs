//! opencode.

mod answer;
mod calls;
mod history;
mod hook;
mod launch;
mod parser;
mod transcript;
mod waits;
mod wire;

pub use launch::BYPASS_FLAGS;
pub use launch::export_args;
pub use launch::file_url;
pub use launch::plugin;
pub use launch::watching_plugin;

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

/// opencode, run with `run --format json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenCode;

impl Agent for OpenCode {
    fn name(&self) -> &str {
        "opencode"
    }

    fn probe(&self) -> Probe {
        Probe {
            programs: vec!["opencode".to_owned()],
            version_args: vec!["--version".to_owned()],
            install_hint: "install it with: npm install -g opencode-ai".to_owned(),
        }
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
        launch::launch(request)
    }

    /// A step that ends a turn stands for the final event that there is not.
    fn reader(&self, options: &ReaderOptions) -> Reader {
        Reader::new(Box::<parser::OpencodeParser>::default(), options, Tally::new(Ending::Announced, options))
    }

    fn watching(&self) -> Option<Watching> {
        Some(Watching {
            variable: "XDG_CONFIG_HOME",
            below_variable: "opencode",
            home: ".config/opencode",
            files: &["opencode.json", "opencode.jsonc"],
            project_files: &["opencode.json", "opencode.jsonc"],
            form: Form::Plugin,
            runs: Runs::Always,
            plugins: Plugins::None,
            status_line: false,
            servers: Servers {
                file: ServerFile::Settings,
                member: "mcp",
                make: |program| serde_json::json!({ "type": "local", "command": [program, "mcp"], "enabled": true }),
            },
            commands: Commands {
                folder: "command",
                project_folder: ".opencode/command",
                taken: &["sessions", "session", "resume", "undo"],
                form: Invocation::Markdown { grants: false },
            },
        })
    }

    fn hook(&self, payload: &[u8]) -> Result<HookReport, HookError> {
        hook::read(payload)
    }

    /// Reads what [`export_args`] makes the program print.
    fn conversation_log(&self) -> Option<&'static dyn ConversationLog> {
        Some(&transcript::ExportLog)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { hooks: true, tells_calls: true, tells_cost: true, ..Capabilities::default() }
    }

    fn silent_wait(&self, stderr: &str) -> Option<Limit> {
        waits::silent_wait(stderr)
    }

    fn bypass_flags(&self) -> &[&str] {
        BYPASS_FLAGS
    }
}
