//! What can go wrong, in the words users see.

use segno_core::Refusal;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::Unit;
use segno_core::refusal::cap_words;
use segno_store::Certainty;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is one already.
    #[error("A session is already active. Complete or abort it first.")]
    SessionAlreadyActive {
        /// Which.
        session: SessionId,
    },
    /// There is none.
    #[error("No active session. Create or load a session first.")]
    NoActiveSession,
    /// The status machine has no such step.
    #[error("Cannot transition from {from} to {to}.")]
    InvalidStateTransition {
        /// The present status.
        from: Status,
        /// The status asked for.
        to: Status,
    },
    /// Phases move only while a session is active.
    #[error("a session that is {status} cannot change phase")]
    InvalidStateForPhaseAdvance {
        /// The present status.
        status: Status,
    },
    /// No such session.
    #[error("Session {session_id} not found.")]
    SessionNotFound {
        /// As it was asked for.
        session_id: String,
    },
    /// A session's record or view cannot be read.
    #[error("Session {session_id} state file is corrupted: {details}")]
    SessionCorrupted {
        /// Which, as far as it can be told.
        session_id: String,
        /// What is wrong, and where.
        details: String,
    },
    /// A hard budget has nothing left.
    #[error("Token budget exceeded. Consider extending budget or completing session.")]
    BudgetExceeded,
    /// A cap is used up, so nothing is started.
    #[error("{} of session {session} is used up; nothing was started", cap_words(*unit, *used, *total))]
    CapReached {
        /// Whose cap it is.
        session: SessionId,
        /// Tokens or money.
        unit: Unit,
        /// Used so far.
        used: u64,
        /// The allowance.
        total: u64,
    },
    /// All sessions of the project together have used up a cap on the day.
    #[error("{} of today is used up in this project; nothing was started", cap_words(*unit, *used, *total))]
    DayCapReached {
        /// Tokens or money.
        unit: Unit,
        /// Used so far today.
        used: u64,
        /// The allowance.
        total: u64,
        /// When the next day begins.
        until: Timestamp,
    },
    /// A cap on money cannot hold, because it is not known what is spent.
    #[error("a cap on money cannot hold: {}", match what.as_deref() {
        Some(model) => format!("what {model} costs is not known"),
        None => "it is not known which model was used, and what that costs".to_owned(),
    })]
    CostUnknown {
        /// The session, if there is one already.
        session: Option<SessionId>,
        /// Which model, if that is known.
        what: Option<String>,
    },
    /// The user's own prices cannot be used.
    #[error("{} cannot be used: {why}", path.display())]
    BadPrices {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It could not be written.
    #[error("the change could not be written: {details}")]
    WriteError {
        /// What happened.
        details: String,
        /// Whether it may be there all the same.
        certainty: Certainty,
    },
    /// The rules do not allow it.
    #[error(transparent)]
    Refused(Refusal),
    /// The store could not do it.
    #[error(transparent)]
    Store(segno_store::Error),
    /// A file could not be read or written.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: String,
        /// What happened.
        why: String,
    },
    /// The URL of the embedded store has no path.
    #[error("sqlite: needs a path")]
    NoStorePath,
    /// The URL names a kind of store that is not known here.
    #[error("this segno keeps sessions in SQLite only, not in {kind}:")]
    UnsupportedStore {
        /// Which.
        kind: String,
    },
    /// A directory that only its owner should write to belongs to somebody else, or others may write to it.
    #[error("{} is not used: {why}", path.display())]
    NotPrivate {
        /// Which.
        path: std::path::PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A rule of redaction is not right.
    #[error("redact.rules: {0}")]
    BadRule(String),
    /// A text names no session, or several.
    #[error("{0}")]
    Ambiguous(String),
    /// No agent has this name.
    #[error("no agent is called {name}")]
    UnknownAgent {
        /// The name.
        name: String,
        /// The names that are known.
        known: Vec<String>,
    },
    /// None of the agents that are known is installed.
    #[error("no agent is installed; looked for {}", tried.join(", "))]
    NoAgentInstalled {
        /// Those that were looked for.
        tried: Vec<String>,
    },
    /// The program of an agent is not there.
    #[error("{agent} is not installed: there is no {} in PATH", programs.join(" or "))]
    NotInstalled {
        /// Which agent.
        agent: String,
        /// The programs that were looked for.
        programs: Vec<String>,
        /// How to get it.
        how: String,
    },
    /// A command that measures the work cannot be run, so nothing was begun.
    #[error("the command that measures the work cannot be run: {command}: {words}; no agent was started")]
    CannotMeasure {
        /// As it is given to the shell.
        command: String,
        /// What came of it, and the end of what it printed.
        words: String,
    },
    /// Somebody still talks in the conversation that somebody else wants to go on with.
    #[error("an agent (pid {pid}) still talks in that conversation")]
    ConversationBusy {
        /// In which session.
        session: SessionId,
        /// The process of the agent.
        pid: u32,
    },
    /// There is no conversation to go on with.
    #[error("session {} has no conversation with {agent}", short(*session))]
    NoConversation {
        /// In which session.
        session: SessionId,
        /// With which agent.
        agent: String,
    },
    /// No agent is started before somebody closes the breaker.
    #[error("session {} is halted: its breaker is open", short(*session))]
    BreakerOpen {
        /// Of which session.
        session: SessionId,
    },
    /// The session has ended for good.
    #[error("session {} is {status}; an ended session cannot be resumed", short(*session))]
    Ended {
        /// Which.
        session: SessionId,
        /// How.
        status: Status,
    },
    /// The program that agents shall call cannot be written on a command line.
    #[error("the path of this program is not UTF-8")]
    ProgramNotText,
    /// An agent could not be started.
    #[error("{agent} could not be started: {why}")]
    NotLaunched {
        /// Which.
        agent: String,
        /// What happened.
        why: String,
    },
    /// The session's agent still runs, and nobody may start another one beside it.
    #[error("{agent} (pid {pid}) still runs in the session")]
    AgentAlive {
        /// Which.
        agent: String,
        /// Its process.
        pid: u32,
    },
    /// The session cannot be resumed.
    #[error("{why}")]
    NotResumable {
        /// Why, in the words of those who named the cases.
        why: &'static str,
        /// Where it stands.
        status: Status,
    },
    /// The repository is on another branch than the session.
    #[error("the session works on branch {branch}, and the repository is on {present}")]
    OtherBranch {
        /// The session.
        session: SessionId,
        /// The session's.
        branch: String,
        /// Where the repository is.
        present: String,
    },
    /// The working tree cannot be captured or brought anywhere.
    #[error("{0}")]
    NoTree(String),
    /// Somebody works in the same tree.
    #[error("{what} (pid {pid}) works in this tree, in session {session}")]
    TreeBusy {
        /// In which session.
        session: segno_core::SessionId,
        /// Who.
        what: String,
        /// Its process.
        pid: u32,
    },
    /// Somebody else went somewhere since it was looked at what going there would do.
    #[error("somebody else put files back since this was looked at; nothing was changed")]
    TreeMoved,
    /// The answer was no.
    #[error("nothing was changed")]
    Declined,
    /// Something had to be asked, and nobody could be.
    #[error("nothing was changed: there is nobody to ask")]
    NobodyToAsk,
    /// A restore was cut short, somebody worked on since, and nobody has decided what becomes of it.
    #[error("{0}")]
    RestorePending(String),
    /// Snapshots failed.
    #[error(transparent)]
    Workspace(#[from] segno_workspace::Error),
    /// Somebody wanted the run to stop before its agent was started.
    #[error("{0}; no agent was started")]
    NotStarted(String),
    /// This driver has no right to drive any more; its agent was stopped.
    #[error("{0}; its agent was stopped")]
    Replaced(String),
    /// There is no run to follow.
    #[error("{0}")]
    NoRun(String),
    /// An archive does not hold all of a session, so the session was not removed.
    #[error("session {session} was not removed: its archive is not whole ({why})")]
    NotArchived {
        /// Which.
        session: SessionId,
        /// What is missing or wrong.
        why: String,
    },
    /// Something could not be forgotten.
    #[error("{0}")]
    NotForgotten(String),
    /// What was looked for is nothing that can be.
    #[error("{0}")]
    Query(String),
    /// A file to be imported is none that can be.
    #[error("{0}")]
    NotImportable(String),
    /// No conversation can travel with an export.
    #[error("the export is there, but no conversation: {0}")]
    NotCarried(String),
}

impl Error {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SessionAlreadyActive { .. } => "session_already_active",
            Self::NoActiveSession => "no_active_session",
            Self::InvalidStateTransition { .. } => "invalid_state_transition",
            Self::InvalidStateForPhaseAdvance { .. } => "invalid_state_for_phase_advance",
            Self::SessionNotFound { .. } => "session_not_found",
            Self::SessionCorrupted { .. } => "session_corrupted",
            Self::BudgetExceeded => "budget_exceeded",
            Self::CapReached { .. } => "cap_reached",
            Self::DayCapReached { .. } => "day_cap_reached",
            Self::CostUnknown { .. } => "cost_unknown",
            Self::BadPrices { .. } => "bad_prices",
            Self::WriteError { .. } => "write_error",
            Self::Refused(refusal) => refusal.code(),
            Self::Store(error) => error.code(),
            Self::File { .. } => "file_error",
            Self::NoStorePath | Self::BadRule(_) => "config_invalid",
            Self::UnsupportedStore { .. } => "unsupported_store",
            Self::NotPrivate { .. } => "not_private",
            Self::Ambiguous(_) => "ambiguous",
            Self::NotArchived { .. } => "not_archived",
            Self::NotForgotten(_) => "not_forgotten",
            Self::NotImportable(_) => "not_importable",
            Self::Query(_) => "usage",
            Self::UnknownAgent { .. } => "usage",
            Self::NoAgentInstalled { .. } | Self::NotInstalled { .. } => "agent_missing",
            Self::ConversationBusy { .. } | Self::NoConversation { .. } | Self::NotCarried(_) => {
                "no_conversation"
            }
            Self::CannotMeasure { .. } => "cannot_measure",
            Self::BreakerOpen { .. } => "halted",
            Self::Ended { .. } => "ended",
            Self::ProgramNotText => "bad_path",
            Self::NotLaunched { .. } => "not_launched",
            Self::AgentAlive { .. } => "agent_alive",
            Self::NotResumable { .. } => "not_resumable",
            Self::OtherBranch { .. } => "other_branch",
            Self::NotStarted(_) => "run_stopped",
            Self::Replaced(_) => "replaced",
            Self::NoRun(_) => "no_run",
            Self::NoTree(_) => "no_tree",
            Self::TreeBusy { .. } => "tree_busy",
            Self::TreeMoved => "tree_moved",
            Self::Declined | Self::NobodyToAsk => "cancelled",
            Self::RestorePending(_) => "restore_pending",
            Self::Workspace(_) => "snapshot_failed",
        }
    }

    pub(crate) fn file(path: &std::path::Path, why: impl std::fmt::Display) -> Self {
        Self::File { path: path.display().to_string(), why: why.to_string() }
    }
}

/// An id as people are shown it: its end is enough to tell sessions apart.
fn short(id: SessionId) -> String {
    let text = id.to_string();
    format!("…{}", &text[text.len() - 6..])
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::InvalidTransition { from, to } => Self::InvalidStateTransition { from, to },
            Refusal::InvalidForPhaseAdvance { status } => Self::InvalidStateForPhaseAdvance { status },
            Refusal::SharedCap { session, unit, used, total } => {
                Self::CapReached { session, unit, used, total }
            }
            other => Self::Refused(other),
        }
    }
}

impl From<segno_store::Error> for Error {
    fn from(error: segno_store::Error) -> Self {
        use segno_store::Error as Store;
        match error {
            Store::NotFound(id) => Self::SessionNotFound { session_id: id.to_string() },
            Store::AlreadyOpen(session) => Self::SessionAlreadyActive { session },
            Store::Refused(refusal) => refusal.into(),
            Store::SessionDamaged { session, what } => {
                Self::SessionCorrupted { session_id: session.to_string(), details: what }
            }
            Store::Failed { what, certainty, .. } => Self::WriteError { details: what, certainty },
            full @ Store::Full { .. } => {
                Self::WriteError { details: full.to_string(), certainty: Certainty::NotWritten }
            }
            other => Self::Store(other),
        }
    }
}
