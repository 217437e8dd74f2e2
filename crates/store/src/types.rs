//! What goes into a store and what comes out.

use std::path::PathBuf;

use segno_core::Event;
use segno_core::EventKey;
use segno_core::Mark;
use segno_core::Refusal;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::StoreId;
use segno_core::Summary;
use segno_core::Timestamp;
use segno_core::Uid;
use segno_core::event::DecodeError;
use segno_core::event::Holder;
use segno_core::rows::Row;
use segno_redact::Redacted;
use serde::Serialize;
use serde_json::Value;

use crate::Error;

/// A session to be made.
pub struct Create {
    /// When.
    pub at: Timestamp,
    /// The key of its first event: making it twice with one key makes it once.
    pub key: EventKey,
    /// Gives the first events for the name that turned out to be free; called again if a name is taken.
    pub first: Box<dyn FnMut(SessionId) -> Result<Vec<Redacted>, Refusal> + Send>,
    /// The name it would like.
    pub wish: SessionId,
    /// Refuse if a session made by `new` is open in this project.
    pub alone_in: Option<String>,
}

/// A journal from elsewhere.
pub struct Restore {
    /// Whose it is.
    pub uid: Uid,
    /// The name it would like.
    pub wish: SessionId,
    /// Gives its pieces, one by one: every event in order, then the texts they refer to. An error leaves nothing.
    pub pieces: Pieces,
    /// Looks at the state now and then, so that a hostile journal is refused before it costs memory.
    pub check: Check,
    /// What the journal goes on with here, under the name that turned out to be free.
    pub last: Last,
    /// The key of that.
    pub key: EventKey,
    /// When that is.
    pub at: Timestamp,
}

/// Gives the pieces of a journal to whoever writes them.
pub type Pieces = Box<dyn FnOnce(&mut dyn FnMut(Piece) -> Result<(), Error>) -> Result<(), Error> + Send>;

/// A piece of a journal from elsewhere.
pub enum Piece {
    /// The next event.
    Event(RestoredEvent),
    /// A text that events before it refer to.
    Text(segno_redact::Blob),
}

/// An event of a journal from elsewhere.
pub struct RestoredEvent {
    /// Its key there.
    pub key: EventKey,
    /// When it happened.
    pub at: Timestamp,
    /// The run it belongs to.
    pub run: Option<String>,
    /// The driver's epoch it came with.
    pub epoch: Option<u64>,
    /// It.
    pub event: Redacted,
    /// Texts were taken out of it there: the hash it had before, which what follows is chained to.
    pub forgotten: Option<[u8; 32]>,
}

/// Texts to be taken out of a session's events, in one transaction.
pub struct Forget {
    /// The session.
    pub session: SessionId,
    /// Its newest event when it was looked at. With another one there, nothing is changed.
    pub at_seq: u64,
    /// What its events say from now on.
    pub events: Vec<Rewritten>,
    /// The event that tells of it.
    pub note: Redacted,
    /// The key of that.
    pub key: EventKey,
    /// When that is.
    pub at: Timestamp,
    /// The holding that is over, if there is one.
    pub over: Option<Over>,
}

/// An event without some of its texts.
pub struct Rewritten {
    /// Which.
    pub seq: u64,
    /// Its key from now on, if the old one must go too.
    pub key: Option<EventKey>,
    /// It.
    pub event: Redacted,
}

/// Whether bytes hold what is looked for.
pub type Holds = std::sync::Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Says why a state must not be taken in, if it must not.
pub type Check = Box<dyn Fn(&State) -> Result<(), String> + Send>;

/// Gives the events that follow a restored journal.
pub type Last = Box<dyn FnOnce(SessionId, &State) -> Result<Vec<Redacted>, Refusal> + Send>;

/// Decides on the newest state which events follow. It runs inside the store's transaction.
pub type Decider = Box<dyn FnMut(&State) -> Result<Vec<Redacted>, Refusal> + Send>;

/// The same for what other sessions have a say in: those that a filter finds, as they are in that transaction. They are
/// read there, so no two sessions decide on the same old picture of each other.
pub type DeciderAmong = Box<dyn FnMut(&State, &[Summary]) -> Result<Vec<Redacted>, Refusal> + Send>;

/// What to append.
pub enum What {
    /// These events, whatever the state.
    Facts(Vec<Redacted>),
    /// What follows from the newest state.
    Decide(Decider),
    /// What follows from the newest state, and from what these other sessions do. The limit of the filter is left out.
    DecideAmong(Filter, DeciderAmong),
}

/// One append.
pub struct Append {
    /// To which session.
    pub session: SessionId,
    /// The writer's key. If it is known already, nothing is written and the first answer is given again.
    pub key: EventKey,
    /// Another key under which the same may have been recorded before: it counts as known too.
    pub former_key: Option<EventKey>,
    /// When it happened.
    pub at: Timestamp,
    /// The run it belongs to.
    pub run: Option<String>,
    /// The epoch of the driver it comes from or under, if any.
    pub epoch: Option<u64>,
    /// What to write instead when that epoch is over; without it such an append is refused.
    pub if_late: Option<Vec<Redacted>>,
    /// Refuse unless the newest event is this one.
    pub expected_seq: Option<u64>,
    /// What.
    pub what: What,
    /// Whether the answer should carry the state.
    pub want_state: bool,
}

impl Append {
    /// A plain append with nothing expected.
    pub fn new(session: SessionId, key: EventKey, at: Timestamp, what: What) -> Self {
        Self {
            session,
            key,
            former_key: None,
            at,
            run: None,
            epoch: None,
            if_late: None,
            expected_seq: None,
            what,
            want_state: false,
        }
    }
}

/// How an append went.
#[derive(Clone, Debug, PartialEq)]
pub struct Appended {
    /// The first new event; the newest event if there was nothing to write.
    pub first: u64,
    /// The last new event.
    pub last: u64,
    /// The key was known: this is the first answer again.
    pub repeated: bool,
    /// It came from a driver that had been replaced, and was recorded as late.
    pub late: bool,
    /// The state after it, if it was wanted; the newest state if it is repeated.
    pub state: Option<Box<State>>,
    /// The events, if the state was wanted: the new ones, or those of the first time if it is repeated.
    pub events: Vec<Event>,
}

/// The results of appends that may still be under way, in order.
pub struct Answer(Wait);

type Results = Vec<Result<Appended, Error>>;
/// Waits at most so long, or as long as it takes.
type Wait = Box<dyn FnMut(Option<std::time::Duration>) -> Option<Results> + Send>;

impl Answer {
    /// One that is known when `results` returns.
    pub fn new(results: impl FnOnce() -> Vec<Result<Appended, Error>> + Send + 'static) -> Self {
        let mut results = Some(results);
        Self(Box::new(move |_| results.take().map(|results| results())))
    }

    /// One that comes through a channel; `lost` stands for it if whoever should answer is gone.
    pub(crate) fn coming(
        answer: std::sync::mpsc::Receiver<Results>,
        lost: impl Fn() -> Results + Send + 'static,
    ) -> Self {
        use std::sync::mpsc::RecvTimeoutError;
        Self(Box::new(move |most| match most {
            None => Some(answer.recv().unwrap_or_else(|_| lost())),
            Some(most) => match answer.recv_timeout(most) {
                Ok(results) => Some(results),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(lost()),
            },
        }))
    }

    /// The results, once they are durable.
    pub fn wait(mut self) -> Vec<Result<Appended, Error>> {
        (self.0)(None).unwrap_or_default()
    }

    /// The results if they are durable within so long. They are told once.
    pub fn within(&mut self, most: std::time::Duration) -> Option<Vec<Result<Appended, Error>>> {
        (self.0)(Some(most))
    }
}

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
    pub after: Option<ItemPlace>,
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
pub struct ItemPlace {
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

/// Which store it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its id, which no other store has.
    pub id: StoreId,
    /// Whether it is the store itself.
    pub standing: Standing,
}

/// Whether a database is the store whose id it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Original,
    /// It is now: it took the place of a file that is gone, such as a backup that was restored. Told once.
    Restored {
        /// The file that was the store before.
        from: PathBuf,
    },
    /// It is a copy, and the store is still there. Nothing is written to it.
    Copy {
        /// The store.
        of: PathBuf,
    },
}

/// The right to drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// The fencing number: every taking counts it up.
    pub epoch: u64,
    /// Who holds it.
    pub holder: Holder,
    /// Since when, by the store's clock.
    pub acquired_at: Timestamp,
    /// When the holder last said that it lives, by the store's clock.
    pub heartbeat_at: Timestamp,
    /// The store's clock when this was read.
    pub now: Timestamp,
    /// The same two moments by a clock that nobody sets and that stands still while the machine sleeps, in
    /// microseconds since it was started; none if the store has no such clock. They mean something to whoever is on
    /// the same machine and boot.
    #[serde(skip)]
    pub steady: Option<Steady>,
}

/// A heartbeat by a clock that nobody sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// The last heartbeat.
    pub heartbeat: u64,
    /// When this was read.
    pub now: u64,
}

impl Lease {
    /// For how long the holder has been silent, in microseconds, for a reader on this boot of a machine.
    pub fn silent_for(&self, boot_id: &str) -> u64 {
        let steady = self.steady.filter(|steady| {
            // In a namespace with a clock of its own the two cannot be compared.
            !boot_id.is_empty() && self.holder.boot_id == boot_id && steady.now >= steady.heartbeat
        });
        match steady {
            Some(steady) => steady.now - steady.heartbeat,
            None => self.now.micros_since(self.heartbeat_at),
        }
    }
}

/// How much room a session takes in a store, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Which.
    pub session: SessionId,
    /// Its project.
    pub project: String,
    /// How many events it has.
    pub events: u64,
    /// Their bodies and keys.
    pub journal: u64,
    /// The rows of its lists, and its state.
    pub lists: u64,
    /// The long texts that it refers to, as they are stored. One that two sessions refer to counts for both.
    pub texts: u64,
}

/// A holding of the right to drive that was found to be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// Its fencing number.
    pub epoch: u64,
    /// Its last heartbeat as it was seen: one that came since shows that the holder lives. Any if none.
    pub heartbeat_at: Option<Timestamp>,
}

impl Over {
    /// Whatever its heartbeat.
    pub fn epoch(epoch: u64) -> Self {
        Self { epoch, heartbeat_at: None }
    }

    /// Whether it is this lease that was found to be over, and nobody has been heard of since.
    pub(crate) fn is(self, lease: &Lease) -> bool {
        self.epoch == lease.epoch && self.heartbeat_at.is_none_or(|seen| seen >= lease.heartbeat_at)
    }
}

impl From<&Lease> for Over {
    fn from(lease: &Lease) -> Self {
        Self { epoch: lease.epoch, heartbeat_at: Some(lease.heartbeat_at) }
    }
}

/// What was cleared away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// How many texts.
    pub blobs: u64,
    /// How many bytes they had as stored.
    pub bytes: u64,
}

/// Something that was found damaged and set apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// In which session.
    pub session: String,
    /// Which event.
    pub seq: Option<u64>,
    /// When it was found.
    pub found_at: Timestamp,
    /// What is wrong.
    pub what: String,
    /// How many bytes were kept.
    pub bytes: u64,
}
