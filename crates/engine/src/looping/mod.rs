//! The loop: an agent is asked again and again until the work is done by evidence, and stopped for the right reason
//! otherwise. What is decided is decided by [`segno_core`]; here it is measured, carried out and recorded.

mod evidence;
mod measure;
mod notify;
mod workflow;

pub use evidence::Cut;
pub use evidence::EvidenceCommand;
pub use evidence::HEAD;
pub use evidence::Shown;
pub use evidence::TAIL;
pub use evidence::run_evidence;
pub use measure::TreeDelta;
pub use notify::Message;
pub use notify::Notifier;
pub use notify::Occasion;
pub use notify::Recipients;
pub use notify::Webhook;
pub use workflow::ContextFile;
pub use workflow::EvidenceFile;
pub use workflow::GateFile;
pub use workflow::NamedWorkflow;
pub use workflow::PhaseFile;
pub use workflow::RejectFile;
pub use workflow::ThresholdsFile;
pub use workflow::WorkflowError;
pub use workflow::WorkflowFile;
