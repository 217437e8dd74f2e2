//! What a store is asked, and what it answers.

use segno_core::Event;
use segno_core::Mark;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Summary;
use segno_core::Timestamp;
use segno_core::event::DecodeError;
use segno_core::rows::Row;
use serde::Serialize;
use serde_json::Value;

/// A session as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// Its state.
    pub state: State,
    /// Anything that is wrong with it; the state is what could be saved.
    pub notices: Vec<String>,
}

/// One stored event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredEvent {
    /// Its number.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The writer's key.
    pub key: String,
    /// The run it belongs to.
    pub run: Option<String>,
    /// The driver's epoch it came with.
    pub epoch: Option<u64>,
    /// Its kind.
    pub kind: String,
    /// The version of its form.
    pub version: u32,
    /// Its body, JSON as text.
    #[serde(skip)]
    pub body: String,
    /// Its hash, chained to the one before.
    #[serde(skip)]
    pub hash: [u8; 32],
    /// Texts were taken out of it: its hash is that of what it said before, and this covers what it says now.
    #[serde(skip)]
    pub seal: Option<[u8; 32]>,
}

/// What a store knows of a session beside its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its identity.
    pub uid: segno_core::Uid,
    /// The path of its project.
    pub project: String,
    /// How it came to be.
    pub made_by: segno_core::event::Maker,
}

impl EventRow {
    /// Its number.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Whole(stored) => stored.seq,
            Self::Damaged { seq, .. } => *seq,
        }
    }
}

impl StoredEvent {
    /// What its hash covers.
    pub fn link(&self) -> crate::chain::Link<'_> {
        crate::chain::Link {
            seq: self.seq,
            at_us: self.at.as_micros(),
            key: &self.key,
            run: self.run.as_deref(),
            epoch: self.epoch,
            kind: &self.kind,
            version: self.version,
            body: &self.body,
        }
    }

    /// The event itself.
    pub fn event(&self) -> Result<Event, DecodeError> {
        Event::decode(&self.kind, self.version, &self.body)
    }

    /// Where it stands.
    pub fn mark(&self) -> Mark {
        Mark { seq: self.seq, at: self.at, run: self.run.clone() }
    }
}

/// A place in a journal.
#[derive(Clone, Debug, PartialEq)]
pub enum EventRow {
    /// An event, whole.
    Whole(StoredEvent),
    /// An event that is not what was written.
    Damaged {
        /// Its number.
        seq: u64,
        /// What is wrong.
        what: String,
    },
}

/// Which part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Start after this row.
    pub after: Option<ItemPosition>,
    /// At most so many.
    pub limit: usize,
    /// The newest first.
    pub newest_first: bool,
}

impl Page {
    /// The first `limit` rows.
    pub fn first(limit: usize) -> Self {
        Self { after: None, limit, newest_first: false }
    }

    /// The newest `limit` rows, newest first.
    pub fn newest(limit: usize) -> Self {
        Self { after: None, limit, newest_first: true }
    }
}

/// A row's place in its list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemPosition {
    /// The event that made the row.
    pub seq: u64,
    /// Its key.
    pub key: String,
}

/// One row of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Item {
    /// Its key.
    pub key: String,
    /// The event that made it.
    pub seq: u64,
    /// It.
    pub body: Value,
}

impl Item {
    /// It as a value, as far as it can be read.
    pub fn row<T: Row>(&self) -> T {
        T::read_any(&self.body)
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Items {
    /// The rows.
    pub items: Vec<Item>,
    /// How many rows the list has in all.
    pub total: u64,
}

/// Which sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this project.
    pub project: Option<String>,
    /// In one of these statuses; any if empty.
    pub statuses: Vec<Status>,
    /// Changed at or after.
    pub since: Option<Timestamp>,
    /// Changed before.
    pub until: Option<Timestamp>,
    /// Made by `new`, a run or an import; any if none.
    pub made_by: Option<segno_core::event::Maker>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// Pinned, or not; any if none.
    pub pinned: Option<bool>,
    /// Archived, or not; any if none.
    pub archived: Option<bool>,
    /// Pinned sessions come before all others.
    pub pinned_first: bool,
    /// At most so many; all if none.
    pub limit: Option<usize>,
}

impl Filter {
    /// Whether it finds a session of this summary; its limit says nothing of one.
    pub(crate) fn fits(&self, summary: &Summary) -> bool {
        self.project.as_ref().is_none_or(|project| *project == summary.project)
            && (self.statuses.is_empty() || self.statuses.contains(&summary.status))
            && self.since.is_none_or(|since| summary.updated_at >= since)
            && self.until.is_none_or(|until| summary.updated_at < until)
            && self.made_by.is_none_or(|made_by| made_by == summary.made_by)
            && self.tags.iter().all(|tag| summary.tags.contains(tag))
            && self.pinned.is_none_or(|pinned| pinned == summary.pinned)
            && self.archived.is_none_or(|archived| archived == summary.archived)
    }
}

/// A list of sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// Each session in short.
    pub sessions: Vec<Summary>,
    /// How many match in all.
    pub total: u64,
    /// Rows whose summary cannot be read, with what is wrong: what the list shows of such a session is the little that
    /// is known beside it. Without an id it is not in the list.
    pub unreadable: Vec<(Option<SessionId>, String)>,
}
