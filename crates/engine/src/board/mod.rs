//! What faces show of many sessions and of one: typed, in pages, and read without a change.
//!
//! A list of ten thousand sessions and a session of a hundred thousand events cost what is shown of them. Whoever shows them
//! (a page in a browser, a screen in a terminal, a file that is sent to somebody) reads them here.

mod course;
mod sessions;
mod timeline;

pub use self::course::Course;
pub use self::course::Point;
pub use self::sessions::Board;
pub use self::sessions::Changed;
pub use self::sessions::Need;
pub use self::sessions::Order;
pub use self::sessions::Row;
pub use self::sessions::SessionPage;
pub use self::sessions::SessionWish;
pub use self::timeline::CallLine;
pub use self::timeline::DiffLine;
pub use self::timeline::Moment;
pub use self::timeline::TimelinePage;
pub use self::timeline::TimelineWish;
pub use self::timeline::What;
pub use self::timeline::call_diff;

/// The version of these documents. It goes up when a member changes its meaning; a new member does not need it.
pub const VERSION: u32 = 1;
