//! Any command: a script, a test suite, an agent nobody has written an adapter for.

mod config;
mod launch;
mod parser;
mod path;

pub use config::Format;
pub use config::OPTIONS;
pub use config::PlainConfig;
pub use config::PromptVia;
pub use config::Rule;
pub use config::RuleKind;
pub use config::VerdictWord;
pub use path::Path;
pub use path::PathError;

use crate::agent::Agent;
use crate::agent::TextFlow;
use crate::capabilities::Capabilities;
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

/// A command read as text, or as JSON lines by rules.
#[derive(Debug, Clone, Default)]
pub struct Plain {
    config: PlainConfig,
}

impl Plain {
    /// The command of a configuration.
    pub fn new(config: PlainConfig) -> Self {
        Self { config }
    }

    /// A command as typed, without a prompt.
    pub fn command(command: Vec<String>) -> Self {
        Self::new(PlainConfig { command, prompt: PromptVia::None, ..PlainConfig::default() })
    }
}

impl Agent for Plain {
    fn name(&self) -> &str {
        if self.config.name.is_empty() { "plain" } else { &self.config.name }
    }

    fn capabilities(&self) -> Capabilities {
        let chooses_id = !self.config.begin.is_empty();
        Capabilities {
            call_ids_recur: true,
            chooses_id,
            chooses_id_at_terminal: chooses_id,
            tells_cost: self.config.rules.iter().any(|rule| rule.kind == RuleKind::Cost),
            counts_conversation: true,
            ..Capabilities::default()
        }
    }

    fn text_flow(&self) -> TextFlow {
        match self.config.format {
            Format::Text => TextFlow::Lines,
            Format::Json => TextFlow::Pieces,
        }
    }

    fn probe(&self) -> Probe {
        let program = self.config.command.first().cloned();
        Probe {
            install_hint: self
                .config
                .install_hint
                .clone()
                .unwrap_or_else(|| format!("no program called {}", program.as_deref().unwrap_or("(none)"))),
            programs: program.into_iter().collect(),
            version_args: self.config.version_args.clone(),
        }
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
        launch::launch(&self.config, request)
    }

    fn reader(&self, options: &ReaderOptions) -> Reader {
        let PlainConfig { format, rules, .. } = &self.config;
        let announced = *format == Format::Json && rules.iter().any(|rule| rule.kind == RuleKind::Result);
        let ending = if announced { Ending::Announced } else { Ending::Silent };
        let parser = parser::PlainParser::new(&self.config, options.baseline);
        Reader::new(Box::new(parser), options, Tally::new(ending, options))
    }

    fn hook(&self, _payload: &[u8]) -> Result<HookReport, HookError> {
        Err(HookError::NoHooks(self.name().to_owned()))
    }

    fn bypass_flags(&self) -> &[&str] {
        &[]
    }
}
