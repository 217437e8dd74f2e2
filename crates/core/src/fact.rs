//! What can be told of a session: that something happened.

use serde_json::Value;

use crate::budget::TokenUse;
use crate::event::CallEnd;
use crate::event::Change;
use crate::event::Channel;
use crate::event::MemoryUse;
use crate::event::RecoveryChosen;
use crate::event::ResumeAttempted;
use crate::event::RunNamed;
use crate::event::Source;
use crate::event::TurnCompleted;
use crate::text::Text;

/// One thing that happened. Nobody can refuse it, whatever the state of the session: only a value that can never be
/// recorded, such as a name without end, is sent back.
///
/// A fact may wait in a file until a store can take it. Such a file is believed less than the journal, for nobody
/// decided on it: so a fact never starts, ends or drives anything, raises a budget, or says what files and checkpoints
/// are. That is a [`crate::Command`]. The variants have the names of the events that follow.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the event that follows, documented there")]
pub enum Fact {
    /// A driver let go.
    DriverDetached { epoch: u64 },
    /// The session was named.
    TopicSet { topic: String },
    /// Tokens were used.
    TokensRecorded { tokens: TokenUse, estimated: bool, source: Source },
    /// Money was spent.
    CostRecorded { micros: u64, source: Source },
    /// A file changed.
    FileChanged { path: String, change: Change, call: Option<String> },
    /// A line of history.
    HistoryNoted { action: String, phase: Option<String>, details: Option<Text> },
    /// A tool call began.
    ToolStarted { call: String, tool: String, input: Value, write_ahead: bool, source: Source },
    /// A tool call ended.
    ToolEnded { call: String, tool: Option<String>, end: CallEnd, output: Option<Text>, source: Source },
    /// A memory was asked.
    MemoryUsed { usage: MemoryUse, source: Option<String>, query: Text, result: Option<Text> },
    /// Something went wrong.
    ErrorRecorded { message: Text, error_kind: Option<String> },
    /// An agent said who it is.
    RunNamed(RunNamed),
    /// An agent said something.
    Said { channel: Channel, text: Text, message: Option<String>, parent: Option<String> },
    /// An agent finished with a prompt.
    TurnCompleted(TurnCompleted),
    /// An agent, or whoever watches it, reported something else.
    Reported { what: String, body: Value },
    /// Somebody chose how to go on.
    RecoveryChosen(Box<RecoveryChosen>),
    /// An agent that died was started again without being asked.
    ResumeAttempted(ResumeAttempted),
}

impl Fact {
    /// Whether something that follows depends on the state: a warning about a budget, the phase that an error is in.
    /// All others can be made ready before a store is asked.
    pub fn depends_on_state(&self) -> bool {
        match self {
            Self::TokensRecorded { .. } | Self::CostRecorded { .. } | Self::ErrorRecorded { .. } => true,
            Self::DriverDetached { .. }
            | Self::TopicSet { .. }
            | Self::FileChanged { .. }
            | Self::HistoryNoted { .. }
            | Self::ToolStarted { .. }
            | Self::ToolEnded { .. }
            | Self::MemoryUsed { .. }
            | Self::RunNamed(_)
            | Self::Said { .. }
            | Self::TurnCompleted(_)
            | Self::Reported { .. }
            | Self::RecoveryChosen(_)
            | Self::ResumeAttempted(_) => false,
        }
    }

    /// What recording it is called, as a verb like those of commands.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::DriverDetached { .. } => "be let go",
            Self::TopicSet { .. } => "be renamed",
            Self::TokensRecorded { .. } => "record tokens",
            Self::CostRecorded { .. } => "record costs",
            Self::FileChanged { .. } => "record files",
            Self::HistoryNoted { .. } => "take notes",
            Self::ToolStarted { .. } | Self::ToolEnded { .. } => "record tool calls",
            Self::MemoryUsed { .. } => "use memory",
            Self::ErrorRecorded { .. } => "record errors",
            Self::RunNamed(_) => "record runs",
            Self::Said { .. } | Self::TurnCompleted(_) | Self::Reported { .. } => "record what agents say",
            Self::RecoveryChosen(_) | Self::ResumeAttempted(_) => "be resumed",
        }
    }
}
