//! What to run, and how it went.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use segno_agents::Agent;
use segno_agents::Baseline;
use segno_agents::LaunchRequest;
use segno_agents::Outcome;
use segno_agents::plain::PlainConfig;
use segno_core::SessionId;
use segno_core::State;
use segno_core::event::WorkItemMark;
use serde::Deserialize;
use serde::Serialize;

use super::Feed;
use super::Stop;
use super::permission::Permissions;
use super::resources::Resources;

/// An agent to be run in a session.
pub struct Request {
    /// The session.
    pub session: SessionId,
    /// Whether the completion of this run completes the session.
    pub completes: bool,
    /// What knows the agent.
    pub agent: Box<dyn Agent>,
    /// Its description, for one that comes from the configuration.
    pub plain: Option<PlainConfig>,
    /// The program, found.
    pub program: PathBuf,
    /// Its version, if it said one.
    pub version: Option<String>,
    /// What to launch.
    pub launch: LaunchRequest,
    /// Arguments among those that somebody gave by hand for this run alone.
    pub given_args: Vec<String>,
    /// The file that says what is to be done.
    pub file: Option<String>,
    /// The item of a tracker that it works on.
    pub work_item: Option<WorkItemMark>,
    /// The session whose agent asks for this run; the engine knows it by itself.
    pub below: Option<SessionId>,
    /// Whether the prompt only tells where work stands.
    pub briefed: bool,
    /// What the conversation had used before.
    pub baseline: Baseline,
    /// Where it works.
    pub directory: PathBuf,
    /// The environment it inherits.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of variables whose values may be recorded.
    pub recorded_environment: Vec<String>,
    /// What its hooks need to know: written to a private file that the variable [`HOOK`](super::HOOK) names.
    pub hook_file: Option<Vec<u8>>,
    /// The program that keeps what the agent prints, with its arguments; the directory comes last, and it calls
    /// [`keep_output`](super::keep_output). If there is none, a thread of this process keeps it, and an agent that
    /// outlives this process cannot print any more.
    pub capture_command: Vec<OsString>,
    /// This process does nothing but drive this run. Then every orphan that comes to it is the agent's. In a process that
    /// has other children or other runs, processes are the agent's by their mark and their control group only.
    pub sole_process: bool,
    /// Where the agent's sockets and scratch files may be. The path should be short: socket names have a limit.
    pub scratch: Option<PathBuf>,
    /// When to stop it.
    pub limits: Limits,
    /// What its processes may use.
    pub resources: Resources,
    /// How the caller asks to stop.
    pub stop: Stop,
    /// Who answers when the agent asks whether a call may run; none leaves it to the agent.
    pub permissions: Option<Permissions>,
    /// Who listens.
    pub feed: Feed,
    /// The terminal that the agent inherits from this process, for a person at it: it is put in order afterwards.
    pub terminal: Option<super::Terminal>,
    /// Where the agent's own output goes as it came, if anybody wants it.
    pub raw: Option<Box<dyn std::io::Write + Send>>,
}

/// When a run is stopped whatever it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// After so long without a sign of life.
    pub silence: Option<Duration>,
    /// After so long altogether.
    pub max_duration: Option<Duration>,
    /// How long each step of stopping waits before the next, harder one.
    pub grace: Duration,
    /// After so many tool calls, for an agent that has no cap on turns of its own.
    pub turns: Option<u32>,
    /// After it has used more than so many tokens, counted as its session counts them.
    pub tokens: Option<u64>,
    /// After it has cost more than so many millionths of a dollar.
    pub micros: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Claude Code's own timers for a stalled provider are five and six minutes.
            silence: Some(Duration::from_secs(600)),
            max_duration: None,
            grace: Duration::from_secs(5),
            turns: None,
            tokens: None,
            micros: None,
        }
    }
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// The run's id.
    pub run: String,
    /// The agent's own account, and ours.
    pub outcome: Outcome,
    /// The session afterwards.
    pub state: State,
    /// Processes that were still there and were ended.
    pub swept: u64,
    /// How long it took.
    pub took: Duration,
    /// The last of what it said on standard error, without secrets.
    pub stderr: String,
    /// What the user should know.
    pub notices: Vec<String>,
    /// The capture, if it could not be journaled whole and is kept.
    pub kept_capture: Option<PathBuf>,
}
