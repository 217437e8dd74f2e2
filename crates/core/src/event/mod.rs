//! Facts that happened, in the past tense, and the form in which they are stored.
//!
//! The stored form is frozen: a kind, a version and a JSON body, apart from the Rust types. A field may be
//! added if older programs may ignore it; anything else is a new version of the kind. A kind or version that
//! this program does not know is kept as it came ([`Event::Unknown`]) and skipped by the fold.

mod budget;
mod checkpoint_events;
mod fact;
mod groups;
mod ledger;
mod lifecycle;
mod limit;
mod looping;
#[cfg(test)]
pub(crate) mod looping_samples;
mod plan;
mod question;
mod recovery;
mod run;
#[cfg(test)]
pub(crate) mod samples;
mod work;

pub use budget::*;
pub use checkpoint_events::*;
pub use fact::FactEvent;
pub(crate) use groups::history_only;
pub(crate) use groups::passing;
pub(crate) use groups::row_only;
pub(crate) use groups::state_only;
pub use ledger::*;
pub use lifecycle::*;
pub use limit::*;
pub use looping::*;
pub use plan::*;
pub use question::*;
pub use recovery::*;
pub use run::*;
pub use work::*;

/// The stored form of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// What happened, such as `phase_advanced`.
    pub kind: String,
    /// The version of the body's form.
    pub version: u32,
    /// The body, a JSON object as text.
    pub body: String,
}

/// An event from a newer segno, kept as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownEvent {
    /// Its kind.
    pub kind: String,
    /// Its version.
    pub version: u32,
    /// Its body.
    pub body: serde_json::Value,
}

/// A stored event that cannot be read although its kind and version are known.
#[derive(Debug, thiserror::Error)]
#[error("event {kind} v{version} cannot be read: {why}")]
pub struct DecodeError {
    /// Its kind.
    pub kind: String,
    /// Its version.
    pub version: u32,
    /// What is wrong with the body.
    pub why: String,
}

/// Reads a body by the names of its fields. The derived readers would also take a list of them in order.
fn object<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, serde_json::Error> {
    if !body.trim_start().starts_with('{') {
        return Err(serde::de::Error::custom("the body is no JSON object"));
    }
    serde_json::from_str(body)
}

/// Whether a body is whole, but has a word in it, such as a reason, that only a newer segno knows. Who adds a word to a list
/// raises no version, so this is how an older program notices.
fn is_newer_word(why: &serde_json::Error) -> bool {
    // The library has no other way to tell; a test keeps its words.
    why.is_data() && why.to_string().starts_with("unknown variant")
}

macro_rules! events {
    (@is fact) => { true };
    (@is decided) => { false };
    (@from fact $variant:ident) => {
        impl From<$variant> for FactEvent {
            fn from(body: $variant) -> Self {
                Self(Event::$variant(body))
            }
        }
    };
    (@from decided $variant:ident) => {};
    ($( $variant:ident = $kind:literal v $version:literal $made:ident, )*) => {
        /// One fact. The variants' names are the stored kinds in camel case.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event {
            $(
                #[doc = concat!("Stored as `", $kind, "`.")]
                $variant($variant),
            )*
            /// Something a newer segno recorded.
            Unknown(UnknownEvent),
        }

        /// Every kind this program knows, with the newest version it can read.
        pub const KINDS: &[(&str, u32)] = &[$(($kind, $version)),*];

        impl Event {
            /// The stored kind.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Unknown(unknown) => &unknown.kind,
                }
            }

            /// The version of the stored form.
            pub fn version(&self) -> u32 {
                match self {
                    $(Self::$variant(_) => $version,)*
                    Self::Unknown(unknown) => unknown.version,
                }
            }

            /// Whether a fact can make it. What is decided can only be made by a command.
            fn is_fact(&self) -> bool {
                match self {
                    $(Self::$variant(_) => events!(@is $made),)*
                    Self::Unknown(_) => false,
                }
            }

            /// The body as JSON.
            pub fn to_value(&self) -> serde_json::Value {
                match self {
                    // Bodies are plain structs with string keys and finite numbers; they always serialise.
                    $(Self::$variant(body) => serde_json::to_value(body).unwrap_or_default(),)*
                    Self::Unknown(unknown) => unknown.body.clone(),
                }
            }

            /// The stored form.
            pub fn encode(&self) -> Encoded {
                let body = match self {
                    $(Self::$variant(body) => serde_json::to_string(body).unwrap_or_default(),)*
                    Self::Unknown(unknown) => unknown.body.to_string(),
                };
                Encoded { kind: self.kind().to_owned(), version: self.version(), body }
            }

            /// Reads a stored form back. What a newer segno wrote is kept as it is.
            pub fn decode(kind: &str, version: u32, body: &str) -> Result<Self, DecodeError> {
                let fail = |why: serde_json::Error| DecodeError {
                    kind: kind.to_owned(),
                    version,
                    why: why.to_string(),
                };
                let why = match kind {
                    $($kind if version <= $version => match object(body) {
                        Ok(known) => return Ok(Self::$variant(known)),
                        Err(why) => Some(why),
                    },)*
                    _ => None,
                };
                match why {
                    Some(why) if !is_newer_word(&why) => Err(fail(why)),
                    _ => Ok(Self::Unknown(UnknownEvent {
                        kind: kind.to_owned(),
                        version,
                        body: serde_json::from_str(body).map_err(fail)?,
                    })),
                }
            }
        }

        $(impl From<$variant> for Event {
            fn from(body: $variant) -> Self {
                Self::$variant(body)
            }
        })*

        $(events!(@from $made $variant);)*
    };
}

// Each line says who makes the event: a fact, which may wait in a file beside the store, or only a command, which is
// decided inside the store's transaction. `CheckpointPinned` is a fact because spools of 0.1.0 hold it.
events! {
    SessionCreated = "session_created" v 1 decided,
    SessionImported = "session_imported" v 1 decided,
    ItemsImported = "items_imported" v 1 decided,
    JournalImported = "journal_imported" v 1 decided,
    TextsForgotten = "texts_forgotten" v 1 decided,
    SessionPaused = "session_paused" v 1 decided,
    SessionResumed = "session_resumed" v 1 decided,
    SessionInterrupted = "session_interrupted" v 1 decided,
    SessionHalted = "session_halted" v 1 decided,
    SessionCompleted = "session_completed" v 1 decided,
    SessionAborted = "session_aborted" v 1 decided,
    SessionFailed = "session_failed" v 1 decided,
    DriverAttached = "driver_attached" v 1 decided,
    DriverDetached = "driver_detached" v 1 fact,
    RequestMade = "request_made" v 2 decided,
    RequestAnswered = "request_answered" v 1 decided,
    LateRecorded = "late_recorded" v 1 decided,
    QuestionAsked = "question_asked" v 1 decided,
    QuestionAnswered = "question_answered" v 1 decided,
    QuestionClosed = "question_closed" v 1 decided,
    TopicSet = "topic_set" v 1 fact,
    SessionArranged = "session_arranged" v 1 decided,
    IntentSet = "intent_set" v 1 decided,
    ProjectSet = "project_set" v 1 decided,
    GitBranchSet = "git_branch_set" v 1 decided,
    WorkflowSet = "workflow_set" v 1 decided,
    PhaseAdvanced = "phase_advanced" v 1 decided,
    StepSet = "step_set" v 1 decided,
    IterationStarted = "iteration_started" v 1 decided,
    AttemptStarted = "attempt_started" v 1 decided,
    PhaseVerified = "phase_verified" v 1 decided,
    WorkflowStateSet = "workflow_state_set" v 1 decided,
    ProgressSet = "progress_set" v 1 decided,
    TokensRecorded = "tokens_recorded" v 1 fact,
    CostRecorded = "cost_recorded" v 1 fact,
    BudgetSet = "budget_set" v 1 decided,
    BudgetExtended = "budget_extended" v 1 decided,
    BudgetWarned = "budget_warned" v 1 fact,
    BudgetExceeded = "budget_exceeded" v 1 fact,
    ArtifactRecorded = "artifact_recorded" v 1 decided,
    FileChanged = "file_changed" v 1 fact,
    HistoryNoted = "history_noted" v 1 fact,
    OutputRecorded = "output_recorded" v 1 decided,
    MetricSet = "metric_set" v 1 decided,
    TaskAdded = "task_added" v 1 decided,
    TaskEnded = "task_ended" v 1 decided,
    AgentSwitched = "agent_switched" v 1 decided,
    AgentStateSet = "agent_state_set" v 1 decided,
    PositionSet = "position_set" v 1 decided,
    MilestoneReached = "milestone_reached" v 1 decided,
    BreakpointReached = "breakpoint_reached" v 1 decided,
    BreakpointContinued = "breakpoint_continued" v 1 decided,
    DecisionMade = "decision_made" v 1 decided,
    BranchSwitched = "branch_switched" v 1 decided,
    ToolStarted = "tool_started" v 1 fact,
    ToolEnded = "tool_ended" v 1 fact,
    MemoryUsed = "memory_used" v 1 fact,
    CacheSet = "cache_set" v 1 decided,
    CacheRemoved = "cache_removed" v 1 decided,
    ErrorRecorded = "error_recorded" v 1 fact,
    CheckpointCreated = "checkpoint_created" v 1 decided,
    CheckpointReady = "checkpoint_ready" v 1 decided,
    CheckpointFailed = "checkpoint_failed" v 1 decided,
    CheckpointPinned = "checkpoint_pinned" v 1 fact,
    CheckpointDropped = "checkpoint_dropped" v 1 decided,
    CheckpointsInvalidated = "checkpoints_invalidated" v 1 decided,
    FilesRestored = "files_restored" v 1 decided,
    StateRestored = "state_restored" v 1 decided,
    RunStarted = "run_started" v 1 decided,
    RunNamed = "run_named" v 1 fact,
    RunAdopted = "run_adopted" v 1 decided,
    RunEnded = "run_ended" v 1 decided,
    Said = "said" v 1 fact,
    TurnCompleted = "turn_completed" v 1 fact,
    Reported = "reported" v 1 fact,
    RecoveryChosen = "recovery_chosen" v 1 fact,
    ResumeAttempted = "resume_attempted" v 1 fact,
    LoopStarted = "loop_started" v 1 decided,
    LoopBaselineTaken = "loop_baseline_taken" v 1 decided,
    IterationEnded = "iteration_ended" v 1 decided,
    BreakerChanged = "breaker_changed" v 1 decided,
    GateMeasured = "gate_measured" v 1 decided,
    GateAccepted = "gate_accepted" v 1 decided,
    GatePassed = "gate_passed" v 1 decided,
    LoopParked = "loop_parked" v 1 decided,
    LoopWoken = "loop_woken" v 1 decided,
    OperatorNoted = "operator_noted" v 1 decided,
    PhaseSkipped = "phase_skipped" v 1 decided,
    HandedOver = "handed_over" v 1 decided,
    ItemTaken = "item_taken" v 1 decided,
    ItemEnded = "item_ended" v 1 decided,
    QueueListed = "queue_listed" v 1 decided,
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
