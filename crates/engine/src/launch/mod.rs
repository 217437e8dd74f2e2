//! What comes before an agent: which one is meant, whether it may be started at all, what the session is made of that it
//! works in, and what it is started with. An [`Intent`] says what somebody wants, [`LaunchSettings`] what holds for every
//! run; [`Engine::plan`](crate::Engine::plan) makes of them what [`Engine::start`](crate::Engine::start) runs.

mod arguments;
mod caps;
mod choose;
mod plan;
pub mod prompt;
mod session;
mod settings;
mod start;
mod successor;
mod versions;

pub use arguments::Overridden;
pub use choose::Chosen;
pub use choose::Who;
pub use plan::FreshSession;
pub use plan::Intent;
pub use plan::Launch;
pub use plan::RunIn;
pub use session::project_at;
pub(crate) use session::topic_of;
pub use settings::AgentSettings;
pub use settings::Common;
pub use settings::LaunchSettings;
