//! Work to be done: what trackers print as JSON, and checklists.

mod checklist;
mod time;
mod tracker;

use serde::Deserialize;
use serde::Serialize;

pub use checklist::ChecklistItem;
pub use checklist::OPTIONAL_SECTIONS;
pub use checklist::checklist;
pub use tracker::work_items;

/// A piece of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkItem {
    /// The tracker's id.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// What is to be done.
    pub description: String,
    /// How urgent it is: the lower, the sooner. `P1` is 1.
    pub priority: Option<f64>,
    /// The tracker's word for how it stands, in lower case.
    pub status: Option<String>,
    /// The tracker's word for its kind, in lower case.
    pub issue_type: Option<String>,
    /// When it was made, as the tracker says it.
    pub created_at: Option<String>,
    /// Its labels.
    pub labels: Vec<String>,
    /// The item it belongs to.
    pub parent: Option<String>,
    /// Items that must be done before it.
    pub blocked_by: Vec<String>,
}

/// Why an item is not to be taken up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// It is done: the tracker's word for it.
    Closed(String),
    /// It is put off: the tracker's word for it.
    PutOff(String),
    /// It waits for others. Where the tracker does not say for which, the list is empty.
    Blocked(Vec<String>),
    /// It only holds others together.
    Epic,
    /// It has no id by which it could be told again.
    NoId,
}

impl std::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed(word) | Self::PutOff(word) => f.write_str(word),
            Self::Blocked(by) if by.is_empty() => f.write_str("blocked"),
            Self::Blocked(by) => write!(f, "blocked by {}", by.join(", ")),
            Self::Epic => f.write_str("an epic"),
            Self::NoId => f.write_str("it has no id"),
        }
    }
}

/// What a tracker printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkList {
    /// What can be taken up: the most urgent first, of these the oldest, of these by id.
    pub ready: Vec<WorkItem>,
    /// What cannot, in the tracker's order.
    pub skipped: Vec<(WorkItem, SkipReason)>,
}

/// Why no list could be made of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkError {
    /// It is not JSON: what the parser says.
    NotJson(String),
    /// There is no list or item in it.
    NoItems,
    /// The tracker says that something is wrong.
    Tracker(String),
}

impl std::fmt::Display for WorkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotJson(why) => write!(f, "it is not JSON: {why}"),
            Self::NoItems => f.write_str("there is no item with an id or a title in it"),
            Self::Tracker(why) => write!(f, "the tracker says: {why}"),
        }
    }
}

impl std::error::Error for WorkError {}
