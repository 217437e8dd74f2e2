//! Sessions out of a store and into another.

pub(crate) mod check;
mod export;
mod import;
mod markdown;

pub use export::Format;
pub use export::event_json;
pub use export::export;
pub use import::Imported;
pub use import::Options;
pub use import::import;
