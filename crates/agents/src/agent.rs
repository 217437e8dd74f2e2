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
use crate::limit::Limit;
use crate::opencode::OpenCode;
use crate::permission::Permission;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::probe::{self};
use crate::raw::Raw;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::status_line::StatusInput;
use crate::stop::STOP_LADDER;
use crate::stop::Silence;
use crate::stop::StopStep;
use crate::usage::UsageQuestion;
use crate::watching::Watching;

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

    /// How its own settings are made to tell of sessions that nobody here starts. None for one that cannot.
    fn watching(&self) -> Option<Watching> {
        None
    }

    /// Reads what it tells the command of its status line. None for an agent that has no such line, and for what is no
    /// such thing.
    fn status_line(&self, _input: &[u8]) -> Option<StatusInput> {
        None
    }

    /// What to write to its standard input when it has asked. None for an agent that does not ask there.
    fn answer_permission(&self, _request_id: &str, _input: &Raw, _answer: &Permission) -> Option<Vec<u8>> {
        None
    }

    /// How to ask it how full the windows of its plan are. None for an agent that cannot be asked.
    fn usage_question(&self) -> Option<UsageQuestion> {
        None
    }

    /// The variables by which it waits for a limit itself, in a run without a person.
    fn own_waiting(&self) -> &[&'static str] {
        &[]
    }

    /// The limit that it waits for without a word on its output, as its standard error tells it. Only what was written
    /// last counts; whether that wait is over, nobody knows here.
    fn silent_wait(&self, _stderr: &str) -> Option<Limit> {
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

/// An agent that is known by its name.
struct Known {
    name: &'static str,
    make: fn() -> Box<dyn Agent>,
}

/// The name of whatever command a request names.
const COMMAND: &str = "plain";

/// Every agent that is known: the coding agents, then the command, which is last. All other lists follow from this one.
const KNOWN: [Known; 5] = [
    Known { name: "claude", make: || Box::new(Claude) },
    Known { name: "codex", make: || Box::new(Codex) },
    Known { name: "gemini", make: || Box::new(Gemini) },
    Known { name: "opencode", make: || Box::new(OpenCode) },
    Known { name: COMMAND, make: || Box::new(Plain::default()) },
];

const fn names<const N: usize>(known: &[Known; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = known[index].name;
        index += 1;
    }
    names
}

/// The names [`by_name`] knows.
pub const NAMES: &[&str] = &names(&KNOWN);

/// Those of them that are coding agents: all but `plain`, which is whatever command the request names.
pub const CODING: &[&str] = match NAMES.split_last() {
    Some((_command, coding)) => coding,
    None => &[],
};

/// The agent of that name. `plain` runs whatever command the request names.
pub fn by_name(name: &str) -> Option<Box<dyn Agent>> {
    KNOWN.iter().find(|known| known.name == name).map(|known| (known.make)())
}

/// Those whose own settings can have hooks of ours, so that they are recorded however they are started.
pub fn watched() -> Vec<&'static str> {
    let has_settings = |name: &&&'static str| by_name(name).is_some_and(|agent| agent.watching().is_some());
    CODING.iter().filter(has_settings).copied().collect()
}

/// Whether an agent of this name is known to tell of its tool calls. A plain command does not; of one that is described in
/// the configuration nobody knows beforehand.
pub fn tells_of_calls(name: &str) -> bool {
    by_name(name).is_some_and(|agent| agent.capabilities().tells_calls)
}

/// Whether a run under this name is that of a command as it was typed, which has no conversation to go on with.
pub fn is_command(name: &str) -> bool {
    name == COMMAND
}

/// The variable that says where an agent has its home, with its configuration and its login.
pub fn home_variable(name: &str) -> Option<&'static str> {
    let agent = by_name(name)?;
    let log = agent.conversation_log()?;
    log.location().map(|location| location.variable).or_else(|| Some(log.keeping()?.variable()))
}

/// The variables by which agents wait for limits themselves: whoever waits for them must not hand these on, or two wait.
pub fn own_waiting_variables() -> Vec<&'static str> {
    CODING.iter().filter_map(|name| by_name(name)).flat_map(|agent| agent.own_waiting().to_vec()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_of_agents_follow_from_one() {
        assert_eq!(NAMES, ["claude", "codex", "gemini", "opencode", "plain"]);
        assert_eq!(CODING, ["claude", "codex", "gemini", "opencode"]);
        for name in NAMES {
            assert_eq!(by_name(name).unwrap().name(), *name);
            assert_eq!(tells_of_calls(name), !is_command(name));
            assert_eq!(watched().contains(name), by_name(name).unwrap().watching().is_some());
        }
        assert!(by_name("aider").is_none() && !tells_of_calls("aider") && !is_command("aider"));
    }
}
