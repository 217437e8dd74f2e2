//! Beginning, pausing, ending; and who drives.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::budget::CostBudget;
use crate::budget::TokenBudget;
use crate::id::SessionId;
use crate::id::Uid;
use crate::project::List;
use crate::status::Status;
use crate::text::Text;
use crate::time::Timestamp;

/// What a session works on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Where it is, an absolute path on the machine that made the session.
    pub path: String,
    /// What people call it.
    pub name: String,
    /// What kind of project it is, such as `rust`, if known.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// How a session came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maker {
    /// By hand or by a library call.
    #[default]
    New,
    /// By a run of an agent.
    Run,
    /// By importing it from elsewhere.
    Import,
    /// By a loop: only its gate completes it.
    Loop,
}

/// A named list of phases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    /// Its name, such as `tdflow`.
    pub name: String,
    /// Its phases in order; empty if they are not known beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<String>,
}

/// The first event of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCreated {
    /// The name people see.
    pub id: SessionId,
    /// The identity across stores.
    pub uid: Uid,
    /// How it came to be.
    pub made_by: Maker,
    /// What it is about, in a few words.
    pub topic: Option<String>,
    /// What the user wants, in their words.
    pub intent: Option<Text>,
    /// What it works on.
    pub project: Project,
    /// The workflow it follows.
    pub workflow: Option<Workflow>,
    /// The phase it starts in.
    pub phase: Option<String>,
    /// Tokens it may use.
    pub budget: TokenBudget,
    /// Money it may cost.
    pub cost: CostBudget,
    /// The ended session that this one goes on from.
    pub continues: Option<SessionId>,
    /// The session whose cap this one goes on with: what is used here counts there too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_from: Option<SessionId>,
    /// The file that says what is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl SessionCreated {
    /// A session of which only this is known.
    pub fn new(id: SessionId, uid: Uid, made_by: Maker) -> Self {
        Self {
            id,
            uid,
            made_by,
            topic: None,
            intent: None,
            project: Project::default(),
            workflow: None,
            phase: None,
            budget: TokenBudget::default(),
            cost: CostBudget::default(),
            continues: None,
            cap_from: None,
            file: None,
        }
    }
}

/// The first event of a session that came from another store or a view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionImported {
    /// Its state there, as this program's fold understands it.
    pub state: Box<crate::state::State>,
    /// The name it had there, if it had to be renamed.
    pub renamed_from: Option<SessionId>,
    /// Where it came from, in words.
    pub source: String,
}

/// A whole journal came from another store: what stands before this event happened there, what comes after it here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalImported {
    /// The name people see here.
    pub id: SessionId,
    /// The name it had there, if it had to be renamed.
    pub renamed_from: Option<SessionId>,
    /// Where it came from, in words.
    pub source: String,
    /// What it works on here.
    pub project: Project,
    /// Tokens it may use here; what it has used counts on.
    pub budget: TokenBudget,
    /// Money it may cost here; what it has cost counts on.
    pub cost: CostBudget,
    /// How many events hold something else than there, because a secret was taken out; the hashes from the first of
    /// them on are new.
    #[serde(default)]
    pub redacted: u64,
}

/// Texts were taken out of earlier events because somebody asked for it: a secret, or all that a session was told and said.
/// Those events keep their numbers and hashes, and each is sealed as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextsForgotten {
    /// What was asked for.
    pub what: Forgotten,
    /// The events that something was taken out of.
    pub events: Vec<u64>,
}

/// What was to be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forgotten {
    /// A secret.
    Secret,
    /// Every text of the session.
    Texts,
}

/// A part of the lists that came along with an import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemsImported {
    /// Which list.
    pub list: List,
    /// The items in order, each with its key and content.
    pub items: Vec<ImportedItem>,
}

/// One item of an imported list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedItem {
    /// Its key within the list.
    pub key: String,
    /// Its content.
    pub body: Value,
}

/// Why a session is paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// Somebody asked for it.
    #[default]
    Asked,
    /// Ctrl-C.
    Signal,
    /// It was asked to end by a signal.
    Terminated,
    /// Its terminal went away.
    Hangup,
    /// A budget is used up.
    Budget,
    /// A rate or usage limit was hit.
    Limit,
    /// It took too long.
    Timeout,
    /// The run ended with an error.
    Error,
    /// The run ended without finishing the work.
    Ended,
}

impl PauseReason {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Signal => "user interrupt",
            Self::Terminated => "terminated",
            Self::Hangup => "terminal closed",
            Self::Budget => "budget reached",
            Self::Limit => "limit reached",
            Self::Timeout => "timed out",
            Self::Error => "error",
            Self::Ended => "run ended",
        }
    }
}

/// The session was paused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPaused {
    /// Why.
    pub reason: PauseReason,
    /// More about it.
    pub details: Option<Text>,
}

/// Work went on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionResumed {
    /// Whether the breaker was reset.
    pub breaker_reset: bool,
    /// More about it.
    pub details: Option<Text>,
}

/// Why a driver died.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptReason {
    /// It ended without a word.
    Crash,
    /// A signal killed it.
    Killed,
    /// It took too long.
    Timeout,
    /// Its connection was lost.
    Disconnect,
    /// The machine went down.
    PowerLoss,
    /// Nobody can tell.
    #[default]
    Unknown,
}

impl InterruptReason {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Killed => "killed",
            Self::Timeout => "timeout",
            Self::Disconnect => "disconnect",
            Self::PowerLoss => "power loss",
            Self::Unknown => "unknown",
        }
    }
}

/// The session's driver died.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInterrupted {
    /// Why, as far as can be told.
    pub reason: InterruptReason,
    /// More about it.
    pub details: Option<Text>,
    /// When it happened, as far as is known: the last sign of life. None: when it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// The circuit breaker opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHalted {
    /// Why.
    pub reason: Text,
}

/// The work is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCompleted {
    /// What came out of it.
    pub summary: Option<Text>,
}

/// The work was given up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAborted {
    /// Why.
    pub reason: Option<Text>,
}

/// The work is beyond resuming.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFailed {
    /// Why.
    pub reason: Option<Text>,
}

/// Who drives a session, as far as a reader on another machine can use it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The machine's name.
    pub host: String,
    /// Which pid namespace the pid belongs to.
    pub pid_namespace: String,
    /// Which boot of the machine.
    pub boot_id: String,
    /// The process.
    pub pid: u32,
    /// When that process started, in clock ticks since boot: pids are used again, pairs are not.
    pub process_start: u64,
    /// What it is, such as `segno run`.
    pub what: String,
}

/// A driver took the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverAttached {
    /// The fencing number.
    pub epoch: u64,
    /// Who.
    pub holder: Holder,
}

/// The driver let go of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverDetached {
    /// The fencing number it had.
    pub epoch: u64,
}

/// What somebody asks of a session's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Pause.
    Pause,
    /// Stop the run.
    Stop,
    /// End the run and all its processes at once.
    Kill,
    /// Complete the session.
    Complete,
    /// Abort the session.
    Abort,
}

impl Request {
    /// The verb for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Stop => "stop",
            Self::Kill => "kill",
            Self::Complete => "complete",
            Self::Abort => "abort",
        }
    }

    /// What the session is afterwards, if its driver does it.
    pub const fn leads_to(self) -> Status {
        match self {
            Self::Pause | Self::Stop | Self::Kill => Status::Paused,
            Self::Complete => Status::Completed,
            Self::Abort => Status::Aborted,
        }
    }

    /// Whether it asks for an end of the run only, whatever becomes of the session.
    pub const fn ends_the_run_only(self) -> bool {
        match self {
            Self::Stop | Self::Kill => true,
            Self::Pause | Self::Complete | Self::Abort => false,
        }
    }
}

/// Somebody asked the driver for something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestMade {
    /// What.
    pub request: Request,
    /// More about it.
    pub details: Option<Text>,
}

/// The driver obeyed, or said why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAnswered {
    /// The request's `seq`.
    pub request: u64,
    /// Whether it was obeyed.
    pub obeyed: bool,
    /// More about it.
    pub details: Option<Text>,
}

/// Something arrived from a driver that had already been replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LateRecorded {
    /// The fencing number it came with.
    pub epoch: u64,
    /// The kind of the event as it was sent.
    pub kind: String,
    /// Its version.
    pub version: u32,
    /// Its body.
    pub body: Value,
}
