//! What every agent can be asked.

use std::time::Duration;

use crate::capabilities::Capabilities;
use crate::claude::Claude;
use crate::codex::Codex;
use crate::conversation_log::ConversationLog;
use crate::gemini::Gemini;
use crate::hook::HookError;
use crate::hook::HookReport;
use crate::launch::LaunchError;
use crate::launch::LaunchRequest;
use crate::launch::LaunchSpec;
use crate::opencode::OpenCode;
use crate::permission::Permission;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::probe::{self};
use crate::raw::Raw;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::stop::STOP_LADDER;
use crate::stop::Silence;
use crate::stop::StopStep;

/// How the texts of an agent follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFlow {
    /// Each is a text of its own.
    Whole,
    /// Each is a line of one text.
    Lines,
    /// Each may be a piece of a text, cut anywhere.
    Pieces,
}

/// Knows one kind of agent. Answers are data; nothing here touches the world.
pub trait Agent: std::fmt::Debug + Send + Sync {
    /// The name used in commands and records.
    fn name(&self) -> &str;

    /// How to find out whether it is there.
    fn probe(&self) -> Probe;

    /// The version in what the probe printed.
    fn version(&self, output: &str) -> Option<String> {
        probe::parse_version(output)
    }

    /// How to start it.
    fn launch(&self, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError>;

    /// A reader for the output of one process.
    fn reader(&self, options: &ReaderOptions) -> Reader;

    /// The log that it keeps of its conversations.
    fn conversation_log(&self) -> Option<&'static dyn ConversationLog> {
        None
    }

    /// What it can do.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Reads one hook payload. A well-formed payload of a hook nobody knows is a report without answers.
    fn hook(&self, payload: &[u8]) -> Result<HookReport, HookError>;

    /// What to write to its standard input when it has asked. None for an agent that does not ask there.
    fn answer_permission(&self, _request_id: &str, _input: &Raw, _answer: &Permission) -> Option<Vec<u8>> {
        None
    }

    /// How the texts that it says follow each other.
    fn text_flow(&self) -> TextFlow {
        TextFlow::Whole
    }

    /// How to end it.
    fn stop_ladder(&self) -> &[StopStep] {
        &STOP_LADDER
    }

    /// How long it may be silent without being stuck.
    fn silence(&self) -> Silence {
        Silence { at_least: Duration::from_secs(7 * 60), heartbeats: false }
    }

    /// Arguments that would switch off its permissions or its sandbox. Never used here; configuration that is not
    /// trusted must not bring them in either.
    fn bypass_flags(&self) -> &[&str];
}

/// The agent of that name. `plain` runs whatever command the request names.
pub fn by_name(name: &str) -> Option<Box<dyn Agent>> {
    match name {
        "claude" => Some(Box::new(Claude)),
        "codex" => Some(Box::new(Codex)),
        "gemini" => Some(Box::new(Gemini)),
        "opencode" => Some(Box::new(OpenCode)),
        "plain" => Some(Box::new(Plain::default())),
        _ => None,
    }
}

/// Whether an agent of this name is known to tell of its tool calls. A plain command does not; of one that is described
/// in the configuration nobody knows beforehand.
pub fn tells_of_calls(name: &str) -> bool {
    matches!(name, "claude" | "codex" | "gemini" | "opencode")
}

/// The names [`by_name`] knows.
pub const NAMES: &[&str] = &["claude", "codex", "gemini", "opencode", "plain"];

/// Those of them that are coding agents: all but `plain`, which is whatever command the request names.
pub const CODING: &[&str] = &["claude", "codex", "gemini", "opencode"];

/// Whether a run under this name is that of a command as it was typed, which has no conversation to go on with.
pub fn is_command(name: &str) -> bool {
    name == "plain"
}

/// The variables that say where agents keep their logs.
pub fn log_variables() -> Vec<&'static str> {
    let logs = CODING.iter().filter_map(|name| by_name(name)?.conversation_log()?.location());
    logs.map(|location| location.variable).collect()
}

/// The variables that say where agents keep their conversations, whether they are logs that can be followed or not.
pub fn keeping_variables() -> Vec<&'static str> {
    let kept = CODING.iter().filter_map(|name| by_name(name)?.conversation_log()?.keeping());
    kept.map(|keeping| keeping.variable()).collect()
}
