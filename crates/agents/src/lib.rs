//! Understands coding agents: bytes in, values out.
//!
//! An [`Agent`] says how to find, start and stop one kind of agent, reads what it writes, and judges how a run ended.
//! This crate is pure. It opens no file, starts no process and asks no clock: probes and launches are returned as
//! data, ids come in as arguments, and whoever uses it carries out the rest.
//!
//! ```
//! use segno_agents::{ExitInfo, OutcomeKind, ReaderOptions, by_name};
//!
//! let agent = by_name("codex").unwrap();
//! let mut reader = agent.reader(&ReaderOptions::default());
//! let mut events = Vec::new();
//! reader.feed(b"{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}\n", &mut |event| events.push(event));
//! let outcome = reader.finish(&ExitInfo::code(0), &mut |event| events.push(event));
//! assert_eq!(outcome.outcome, OutcomeKind::Interrupted, "no final event");
//! assert_eq!(outcome.native_id.as_deref(), Some("t-1"));
//! ```

mod agent;
mod bounds;
mod capabilities;
mod classify;
pub mod claude;
pub mod codex;
mod conversation_log;
mod event;
mod event_parts;
pub mod gemini;
pub mod hook;
mod judge;
mod keeping;
pub mod launch;
mod lenient;
pub mod limit;
mod lines;
pub mod opencode;
mod outcome;
mod permission;
pub mod plain;
mod probe;
mod raw;
mod reader;
mod splice;
mod stop;
mod tally;
mod tokens;
pub mod transcript;
mod usage;

pub use agent::Agent;
pub use agent::CODING;
pub use agent::NAMES;
pub use agent::TextFlow;
pub use agent::by_name;
pub use agent::home_variable;
pub use agent::is_command;
pub use agent::keeping_variables;
pub use agent::log_variables;
pub use agent::own_waiting_variables;
pub use agent::tells_of_calls;
pub use capabilities::Capabilities;
pub use conversation_log::ConversationLog;
pub use conversation_log::LogLocation;
pub use conversation_log::LogUse;
pub use conversation_log::interactive_reader;
pub use conversation_log::is_told_by_log;
pub use event::AgentEvent;
pub use event_parts::By;
pub use event_parts::ChangeKind;
pub use event_parts::CompactionPhase;
pub use event_parts::HookPhase;
pub use event_parts::InputSource;
pub use event_parts::LimitStatus;
pub use event_parts::LimitWindow;
pub use event_parts::PartialPart;
pub use event_parts::PlanItem;
pub use hook::Decision;
pub use hook::HookReport;
pub use keeping::Arrival;
pub use keeping::ConversationFile;
pub use keeping::Keeping;
pub use keeping::KeptDatabase;
pub use keeping::KeptFiles;
pub use launch::Conversation;
pub use launch::LaunchRequest;
pub use launch::LaunchSpec;
pub use launch::PrivateFile;
pub use limit::Limit;
pub use limit::LimitClass;
pub use limit::ResetTime;
pub use outcome::ContextFill;
pub use outcome::Denial;
pub use outcome::EndCause;
pub use outcome::ErrorClass;
pub use outcome::ExitInfo;
pub use outcome::Failure;
pub use outcome::OpenCall;
pub use outcome::Outcome;
pub use outcome::OutcomeKind;
pub use permission::Permission;
pub use permission::PermissionRule;
pub use permission::SameCall;
pub use permission::plain_path;
pub use probe::Probe;
pub use probe::parse_version;
pub use raw::Raw;
pub use reader::DEFAULT_LINE_LIMIT;
pub use reader::Envelope;
pub use reader::Reader;
pub use reader::ReaderOptions;
pub use stop::STOP_LADDER;
pub use stop::Signal;
pub use stop::Silence;
pub use stop::StopStep;
pub use tokens::Baseline;
pub use tokens::TokenCounts;
pub use usage::UsageAnswer;
pub use usage::UsageQuestion;
pub use usage::UsageWindow;
