//! Coming back: what can be gone on from, at what cost, what is known of calls in doubt, and what the agent is told.

mod brief;
mod detect;
mod evidence;
mod options;
pub(crate) mod plan;
mod words;

pub use brief::Brief;
pub use brief::BriefLimits;
pub(crate) use brief::one_line;
pub use evidence::Settled;
pub use options::Options;
pub use options::RecoveryReport;
pub use plan::BranchWish;
pub use plan::ResumeWish;
pub use plan::ResumedAgent;
pub use plan::Resumption;
pub use segno_core::event::OptionOffered;
pub use segno_core::event::Recovery;
