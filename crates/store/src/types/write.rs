//! What a store is given to write.

use segno_core::Event;
use segno_core::EventKey;
use segno_core::Refusal;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Summary;
use segno_core::Timestamp;
use segno_core::Uid;
use segno_core::lately::Used;
use segno_redact::Redacted;

use crate::Error;
use crate::Filter;
use crate::Over;

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

/// The same for what other sessions have a say in, as they are in that transaction. They are read there, so no two
/// sessions decide on the same old picture of each other.
pub type DeciderWithOthers = Box<dyn FnMut(&State, &OthersView) -> Result<Vec<Redacted>, Refusal> + Send>;

/// What has to be known of other sessions: it is read at the moment at which it is decided on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OthersQuery {
    /// The sessions that this finds, in short. Its limit is left out.
    pub sessions: Option<Filter>,
    /// What all sessions of this project used since this moment.
    pub project: Option<(String, Timestamp)>,
    /// The session whose cap this one goes on with.
    pub cap_from: Option<SessionId>,
}

/// What an [`OthersQuery`] found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OthersView {
    /// The sessions that were asked for.
    pub sessions: Vec<Summary>,
    /// What all sessions of the project used, each once.
    pub project: Used,
    /// The session whose cap is gone on with, if it is in this store.
    pub cap_from: Option<Box<State>>,
}

/// What to append.
pub enum What {
    /// These events, whatever the state.
    Facts(Vec<Redacted>),
    /// What follows from the newest state.
    Decide(Decider),
    /// What follows from the newest state, and from what other sessions do and have used.
    DecideWithOthers(OthersQuery, DeciderWithOthers),
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
