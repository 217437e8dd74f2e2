//! Everything the program says: data on standard output, talk on standard error.
//!
//! Nothing else in the program prints. Text goes out as [`text::Text`], whose pieces all pass the sanitizer, so text
//! that an agent or a project wrote can never command the terminal.

pub mod bell;
pub mod event_words;
pub mod json;
pub mod loop_words;
pub mod pager;
pub mod phase_words;
pub mod printer;
mod reported_words;
pub mod sanitize;
pub mod style;
pub mod table;
pub mod text;
pub mod units;

pub use bell::Bell;
pub use printer::Printer;
pub use style::Meaning;
pub use style::Palette;
pub use table::Column;
pub use table::Table;
pub use text::Text;
