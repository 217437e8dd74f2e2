//! Numbers about all sessions for programs that watch: how many, how long, how much, and what runs did.
//!
//! They are read from what the store has folded already (states and rows), and of each session only when it has changed: looking
//! again costs what is new.

mod collect;
mod schema;
mod traces;

pub use self::collect::Collector;
pub use self::schema::ALL;
pub use self::schema::Family;
pub use self::schema::Kind;
pub use self::schema::Name;
pub use self::schema::Number;
pub use self::schema::SUM;
pub use self::schema::attribute;
pub use self::traces::RunTrace;
