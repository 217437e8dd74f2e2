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
pub mod launch;
mod lenient;
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

pub use agent::{Agent, CODING, NAMES, TextFlow, by_name, is_command, log_variables, tells_of_calls};
pub use capabilities::Capabilities;
pub use conversation_log::{ConversationLog, LogLocation, LogUse, attended_reader, is_told_by_log};
pub use event::AgentEvent;
pub use event_parts::{
    By, ChangeKind, CompactionPhase, HookPhase, InputSource, LimitStatus, LimitWindow, PartialPart, PlanItem,
};
pub use hook::{Decision, HookReport};
pub use launch::{Conversation, LaunchRequest, LaunchSpec, PrivateFile};
pub use outcome::{
    Denial, EndCause, ErrorClass, ExitInfo, Failure, LimitHit, OpenCall, Outcome, OutcomeKind,
};
pub use permission::{Permission, PermissionRule, SameCall, plain_path};
pub use probe::{Probe, parse_version};
pub use raw::Raw;
pub use reader::{DEFAULT_LINE_LIMIT, Envelope, Reader, ReaderOptions};
pub use stop::{STOP_LADDER, Signal, Silence, StopStep};
pub use tokens::{Baseline, TokenCounts};
