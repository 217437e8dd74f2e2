//! What can be asked of a session.

use serde_json::Value;

use crate::budget::Counting;
use crate::budget::TokenUse;
use crate::event::CallEnd;
use crate::event::Change;
use crate::event::CheckpointReady;
use crate::event::CheckpointReason;
use crate::event::FilesRestored;
use crate::event::Holder;
use crate::event::InterruptReason;
use crate::event::Metric;
use crate::event::OutputKind;
use crate::event::PauseReason;
use crate::event::Project;
use crate::event::QuestionAnswered;
use crate::event::QuestionAsked;
use crate::event::QuestionClosed;
use crate::event::Request;
use crate::event::RunEnded;
use crate::event::RunStarted;
use crate::event::Unit;
use crate::event::Verdict;
use crate::event::Workflow;
use crate::rates::Rates;
use crate::text::Text;
use crate::time::Timestamp;

/// One thing asked of a session, which may be refused: [`crate::decide()`] answers on the newest state, inside the
/// store's transaction. What merely happened is a [`crate::Fact`].
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the event that follows, documented there")]
pub enum Command {
    /// Stop, to go on later.
    Pause { reason: PauseReason, details: Option<Text> },
    /// Go on.
    Resume { reset_breaker: bool, details: Option<Text> },
    /// The driver died.
    Interrupt { reason: InterruptReason, details: Option<Text>, at: Option<Timestamp> },
    /// The breaker opened.
    Halt { reason: Text },
    /// The work is done.
    Complete { summary: Option<Text> },
    /// Give up.
    Abort { reason: Option<Text> },
    /// Beyond resuming.
    Fail { reason: Option<Text> },

    /// Somebody drives from now on.
    AttachDriver { epoch: u64, holder: Holder },
    /// Ask the driver for something.
    MakeRequest { request: Request, details: Option<Text> },
    /// The driver's answer.
    AnswerRequest { request: u64, obeyed: bool, details: Option<Text> },
    /// A run waits for a person's answer.
    AskQuestion(Box<QuestionAsked>),
    /// A person's answer.
    AnswerQuestion(QuestionAnswered),
    /// The run does not wait any more.
    CloseQuestion(QuestionClosed),

    /// Put it in its place among many: its topic, tags, whether it is pinned, whether lists leave it out.
    Arrange(crate::event::SessionArranged),
    /// Write down what the user wants.
    SetIntent { intent: Text },
    /// Correct what it works on.
    SetProject { project: Project },
    /// The branch of the project's repository that it works on.
    SetGitBranch { branch: Option<String>, commit: Option<String> },
    /// Follow a workflow.
    SetWorkflow { workflow: Workflow },
    /// Go into a phase.
    AdvancePhase { to: String, step: Option<u32>, of: Option<u32> },
    /// Count the step by hand.
    SetStep { step: u32, of: Option<u32> },
    /// One more turn of the loop.
    StartIteration,
    /// One more try.
    StartAttempt,
    /// A check of the phase came out.
    VerifyPhase { phase: Option<String>, check: String, verdict: Verdict, details: Option<Text> },
    /// Keep something for the workflow.
    SetWorkflowState { state: Value },
    /// Say how far the work has come.
    SetProgress { percent: u8 },

    /// Set a budget; what is not said stays.
    SetBudget {
        unit: Unit,
        total: Option<u64>,
        hard: Option<bool>,
        warn_percent: Option<u8>,
        count: Option<Counting>,
    },
    /// What a run of another session, started by an agent of this one, has used so far.
    CountBelow { run: String, tokens: TokenUse, micros: u64 },
    /// Reckon by a price list what tokens of runs cost whose cost nobody has told.
    PriceByList { rates: Rates },
    /// Allow more.
    ExtendBudget { unit: Unit, added: u64 },

    /// A result file.
    RecordArtifact { path: String, artifact_type: Change, phase: Option<String> },
    /// A named output.
    RecordOutput { name: String, kind: OutputKind, content: Text },
    /// A number or flag.
    SetMetric { name: String, value: Metric },
    /// Something to do.
    AddTask { text: Text },
    /// Done, or dropped.
    EndTask { task: u64, done: bool },
    /// Another agent works.
    SwitchAgent { to: String },
    /// What an agent keeps.
    SetAgentState { agent: String, active: bool, state: Value },
    /// Where work is.
    SetPosition { file: Option<String>, line: Option<u64> },
    /// A milestone.
    ReachMilestone { name: String, details: Option<Text> },
    /// Wait for somebody to look.
    ReachBreakpoint { name: String, details: Option<Text> },
    /// Somebody looked.
    ContinueBreakpoint { details: Option<Text> },
    /// A decision.
    Decide {
        question: Text,
        choice: Text,
        reason: Option<Text>,
        alternatives: Vec<Text>,
        parent: Option<u64>,
        branch: Option<String>,
    },
    /// Another branch of decisions.
    SwitchBranch { branch: String, from: Option<u64> },

    /// How a call in doubt ended was found out.
    SettleCall { call: String, end: CallEnd, output: Option<Text>, evidence: String },
    /// Put into the cache.
    SetCache { key: String, value: Value },
    /// Take out of the cache.
    RemoveCache { key: String },

    /// Make a checkpoint.
    CreateCheckpoint { name: Option<String>, reason: CheckpointReason },

    /// A checkpoint is on disk.
    ReadyCheckpoint(Box<CheckpointReady>),
    /// It has no snapshot.
    FailCheckpoint { ordinal: u64, why: Text },
    /// Keep it whatever the rules say, or not any more.
    PinCheckpoint { ordinal: u64, pinned: bool },
    /// Its snapshot was given up.
    DropCheckpoint { ordinal: u64, why: String },
    /// Those after it count no more.
    InvalidateCheckpoints { after: u64 },
    /// Files were brought somewhere.
    RecordRestore(FilesRestored),
    /// Take the plan and values of a checkpoint again.
    RestoreState { to: u64, state: Box<crate::state::State> },

    /// An agent was started.
    StartRun(Box<RunStarted>),
    /// Another driver follows it.
    AdoptRun { run: String, epoch: u64 },
    /// It ended.
    EndRun(Box<RunEnded>),

    /// Something of its loop.
    Loop(Box<crate::looping::LoopCommand>),
}

/// What a command needs of the session's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A step of the status machine, to this status.
    Step(crate::status::Status),
    /// An active session: it moves the work itself.
    Active,
    /// A session that has not ended: it belongs to the work.
    Open,
    /// Nothing: it says how something ended that was begun, and is recorded whenever it arrives, as facts are.
    Nothing,
}

impl Command {
    /// What it needs of the status.
    pub fn need(&self) -> Need {
        use crate::status::Status;
        match self {
            Self::Loop(command) => command.need(),
            Self::Pause { .. } => Need::Step(Status::Paused),
            Self::Resume { .. } => Need::Step(Status::Active),
            Self::Interrupt { .. } => Need::Step(Status::Interrupted),
            Self::Halt { .. } => Need::Step(Status::Halted),
            Self::Complete { .. } => Need::Step(Status::Completed),
            Self::Abort { .. } => Need::Step(Status::Aborted),
            Self::Fail { .. } => Need::Step(Status::Failed),
            Self::AdvancePhase { .. }
            | Self::SetStep { .. }
            | Self::StartIteration
            | Self::StartAttempt
            | Self::SwitchAgent { .. }
            | Self::ReachBreakpoint { .. }
            | Self::StartRun(_) => Need::Active,
            // Files of a session that has ended can still be taken back.
            Self::CreateCheckpoint { reason: CheckpointReason::BeforeRestore, .. } => Need::Nothing,
            Self::AttachDriver { .. }
            | Self::MakeRequest { .. }
            | Self::AskQuestion(_)
            | Self::AnswerQuestion(_)
            | Self::SetWorkflow { .. }
            | Self::VerifyPhase { .. }
            | Self::SetWorkflowState { .. }
            | Self::SetProgress { .. }
            | Self::SetBudget { .. }
            | Self::ExtendBudget { .. }
            | Self::SetIntent { .. }
            | Self::RecordArtifact { .. }
            | Self::RecordOutput { .. }
            | Self::SetMetric { .. }
            | Self::AddTask { .. }
            | Self::EndTask { .. }
            | Self::SetAgentState { .. }
            | Self::SetPosition { .. }
            | Self::ReachMilestone { .. }
            | Self::ContinueBreakpoint { .. }
            | Self::Decide { .. }
            | Self::SwitchBranch { .. }
            | Self::SetCache { .. }
            | Self::RemoveCache { .. }
            | Self::InvalidateCheckpoints { .. }
            | Self::RestoreState { .. }
            | Self::CreateCheckpoint { .. } => Need::Open,
            Self::AnswerRequest { .. }
            | Self::CloseQuestion(_)
            | Self::Arrange(_)
            | Self::SetProject { .. }
            | Self::SetGitBranch { .. }
            | Self::CountBelow { .. }
            | Self::PriceByList { .. }
            | Self::SettleCall { .. }
            | Self::ReadyCheckpoint(_)
            | Self::FailCheckpoint { .. }
            | Self::PinCheckpoint { .. }
            | Self::DropCheckpoint { .. }
            | Self::RecordRestore(_)
            | Self::AdoptRun { .. }
            | Self::EndRun(_) => Need::Nothing,
        }
    }

    /// Whether it takes the work further: what a breakpoint stops.
    pub fn moves_on(&self) -> bool {
        if let Self::Loop(command) = self {
            return command.moves_on();
        }
        matches!(
            self,
            Self::AdvancePhase { .. }
                | Self::SetStep { .. }
                | Self::StartIteration
                | Self::StartAttempt
                | Self::SwitchAgent { .. }
        )
    }

    /// What it does, as a verb for messages such as "a session that is paused cannot …".
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Pause { .. } => "pause",
            Self::Resume { .. } => "resume",
            Self::Interrupt { .. } => "be interrupted",
            Self::Halt { .. } => "be halted",
            Self::Complete { .. } => "complete",
            Self::Abort { .. } => "be aborted",
            Self::Fail { .. } => "fail",
            Self::AttachDriver { .. } => "be driven",
            Self::MakeRequest { .. } | Self::AnswerRequest { .. } => "take requests",
            Self::AskQuestion(_) | Self::AnswerQuestion(_) | Self::CloseQuestion(_) => "wait for answers",
            Self::Arrange(_) => "be put in order",
            Self::SetIntent { .. } => "change its intent",
            Self::SetProject { .. } => "change its project",
            Self::SetGitBranch { .. } => "change its branch",
            Self::SetWorkflow { .. } => "change its workflow",
            Self::AdvancePhase { .. } => "change phase",
            Self::SetStep { .. } => "change step",
            Self::StartIteration => "start an iteration",
            Self::StartAttempt => "start an attempt",
            Self::VerifyPhase { .. } => "be verified",
            Self::SetWorkflowState { .. } => "change its workflow state",
            Self::SetProgress { .. } => "change its progress",
            Self::CountBelow { .. } => "record tokens",
            Self::PriceByList { .. } => "record costs",
            Self::SetBudget { .. } | Self::ExtendBudget { .. } => "change its budget",
            Self::RecordArtifact { .. } => "take artifacts",
            Self::RecordOutput { .. } => "take outputs",
            Self::SetMetric { .. } => "change metrics",
            Self::AddTask { .. } | Self::EndTask { .. } => "change tasks",
            Self::SwitchAgent { .. } => "switch agents",
            Self::SetAgentState { .. } => "change agents",
            Self::SetPosition { .. } => "move on",
            Self::ReachMilestone { .. } => "reach milestones",
            Self::ReachBreakpoint { .. } | Self::ContinueBreakpoint { .. } => "wait at breakpoints",
            Self::Decide { .. } | Self::SwitchBranch { .. } => "take decisions",
            Self::SettleCall { .. } => "record tool calls",
            Self::Loop(_) => "loop",
            Self::SetCache { .. } | Self::RemoveCache { .. } => "use memory",
            Self::CreateCheckpoint { .. } => "be checkpointed",
            Self::ReadyCheckpoint(_)
            | Self::FailCheckpoint { .. }
            | Self::PinCheckpoint { .. }
            | Self::DropCheckpoint { .. }
            | Self::InvalidateCheckpoints { .. } => "change checkpoints",
            Self::RecordRestore(_) => "record a restore",
            Self::RestoreState { .. } => "take an earlier state",
            Self::StartRun(_) => "run an agent",
            Self::AdoptRun { .. } | Self::EndRun(_) => "record runs",
        }
    }
}
