//! Sessions out of a store and into another.

mod archive;
pub(crate) mod check;
mod document;
mod export;
mod exported;
mod files;
mod import;
mod journal;
pub(crate) mod kept;
mod markdown;
mod native;
mod packed;

pub use archive::archive_and_remove;
pub(crate) use document::hex;
pub use export::Format;
pub use export::event_json;
pub use export::export;
pub use export::inline;
pub use files::beside as files_beside;
pub use files::export_files;
pub use files::import_files;
pub use import::Imported;
pub use import::Options;
pub use import::import;
pub use import::import_from;
pub(crate) use import::take_over;
pub use markdown::escape as escape_markdown;
pub use native::Carried;
pub use native::Transferred;
pub use native::conversations_beside;
pub use native::export_conversations;
pub use native::import_conversations;
pub use packed::Packing;
pub use packed::Source;
pub use packed::write_file;
