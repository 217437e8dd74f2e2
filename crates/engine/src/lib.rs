//! Acts on sessions: the library behind every face of segno.
//!
//! [`SessionManager`] is the simple way in: one session at a time, every change durable when the call returns.
//! [`Engine`] is what it stands on: many sessions, every command of [`segno_core`].
//!
//! ```
//! # fn main() -> Result<(), segno_engine::Error> {
//! # let dir = tempfile::tempdir().unwrap();
//! use segno_engine::SessionManager;
//!
//! let mut manager = SessionManager::at(dir.path())?;
//! manager.create(Some("tdflow"), Some("RED"), None)?;
//! manager.advance_phase("GREEN")?;
//! if let Some(warning) = manager.record_tokens(85_000)? {
//!     assert_eq!(warning.used, 85_000);
//! }
//! manager.pause()?;
//! # Ok(())
//! # }
//! ```

mod act;
pub mod board;
mod busy_start;
mod capped;
pub mod clock;
pub mod conversation;
pub mod cost;
pub mod doctor;
pub mod drift;
mod engine;
mod error;
mod fault;
mod file_lock;
pub mod forget;
pub mod frontend;
pub mod history;
pub mod hook;
pub mod hook_file;
mod inside;
pub mod insights;
pub mod install;
pub mod installer;
pub mod launch;
pub mod layout;
pub mod lease;
pub mod left_alone;
pub mod life;
pub mod live;
pub mod looping;
mod manager;
pub mod memory;
pub mod metrics;
pub mod post;
mod reading;
pub mod redaction;
pub mod resume;
pub mod run;
pub mod schedule;
pub mod search;
mod select;
pub mod setup;
mod shared;
pub mod spool;
pub mod status_line;
mod store_location;
pub mod transfer;
pub mod tree;
pub mod usage;
pub mod view;
pub mod waiting;
pub mod watch;
pub mod why;
pub mod zones;

pub use clock::Clock;
pub use clock::SystemClock;
pub use engine::Acted;
pub use engine::Actor;
pub use engine::Engine;
pub use engine::EngineOptions;
pub use engine::NewSession;
pub use engine::Removal;
pub use engine::fresh_key;
pub use error::Error;
pub use inside::artifact_path;
pub use inside::inside;
pub use lease::Driver;
pub use manager::Artifact;
pub use manager::BudgetWarning;
pub use manager::HistoryEntry;
pub use manager::ManagerOptions;
pub use manager::SessionManager;
pub use select::Choice;
pub use select::SHORTEST_ENDING;
pub use shared::DayStand;
pub use store_location::StoreLocation;

pub use segno_agents as agents;
pub use segno_core as core;
pub use segno_files as files;
pub use segno_layouts as layouts;
pub use segno_redact as redact;
pub use segno_store::Certainty;
pub use segno_store::Error as StoreError;
pub use segno_store::EventRow;
pub use segno_store::Filter;
pub use segno_store::Item;
pub use segno_store::ItemPosition;
pub use segno_store::Items;
pub use segno_store::Lease;
pub use segno_store::Listing;
pub use segno_store::Loaded;
pub use segno_store::Page;
pub use segno_store::Standing;
pub use segno_store::StoredEvent;
pub use segno_workspace as workspace;
