//! Coming back: what can be gone on from, at what cost, and what the agent is told.

mod brief;
mod options;

pub use brief::Brief;
pub use brief::BriefLimits;
pub use options::Options;
pub use options::Recovery;
pub use options::Way;
