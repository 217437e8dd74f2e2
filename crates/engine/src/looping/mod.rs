//! The loop: an agent is asked again and again until the work is done by evidence, and stopped for the right reason
//! otherwise. What is decided is decided by [`segno_core`]; here it is measured, carried out and recorded.

mod driver;
mod evidence;
mod limits;
mod notify;
mod observe;
mod plan;
mod queue;

pub use driver::drive::LoopEnded;
pub use driver::drive::LoopHost;
pub use driver::news::LoopListener;
pub use driver::news::LoopNews;
pub use evidence::command::Cut;
pub use evidence::command::EvidenceCommand;
pub use evidence::command::HEAD;
pub use evidence::command::Shown;
pub use evidence::command::TAIL;
pub use evidence::command::run_evidence;
pub use evidence::receipt::Verified;
pub use limits::due::DueEnded;
pub use limits::due::DueStarter;
pub use limits::park::FakeSleeper;
pub use limits::park::Sleeper;
pub use limits::park::SystemSleeper;
pub use notify::Message;
pub use notify::Occasion;
pub use notify::Recipients;
pub use notify::Webhook;
pub use notify::tell_once;
pub use observe::measure::TreeDelta;
pub use plan::begin::NewLoop;
pub use plan::dry::first_prompt;
pub use plan::dry::first_prompt_for;
pub use plan::limits_file::LimitsFile;
pub use plan::workflow::ContextFile;
pub use plan::workflow::EvidenceFile;
pub use plan::workflow::GateFile;
pub use plan::workflow::NamedWorkflow;
pub use plan::workflow::PhaseFile;
pub use plan::workflow::RejectFile;
pub use plan::workflow::ThresholdsFile;
pub use plan::workflow::WorkflowError;
pub use plan::workflow::WorkflowFile;
pub use queue::list::ListedItem;
pub use queue::list::WorkList;
pub use queue::list::list_work;
