//! Remembers sessions: a journal with a folded state and lists beside it, behind one trait.
//!
//! The trait says nothing of how a backend works. Every backend passes the same story (`tests/contract.rs`), and every
//! error says whether the write is known not to have happened.

pub mod chain;
mod codec;
mod error;
mod fold;
pub mod index;
mod opening;
mod rows;
pub mod sqlite;
mod types;
pub mod verify;

pub use codec::references;
pub use error::Certainty;
pub use error::Error;
pub use fold::state_at;
pub use opening::KeepWaiting;
pub use opening::OpenOptions;
pub use opening::Patience;
pub use opening::Purpose;
pub use rows::each_as_of;
pub use rows::from_journal;
pub use types::*;

use segno_core::List;
use segno_core::SessionId;
use segno_core::StoreId;
use std::collections::BTreeMap;
use std::time::Duration;

/// Which start of this machine it is; empty where that cannot be told.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or(String::new(), |id| id.trim().to_owned())
}

/// What every backend can do. Calls block; a long-lived process gives them a thread.
pub trait Store: Send + Sync {
    /// Where it is, for people.
    fn location(&self) -> String;

    /// Which store it is.
    fn identity(&self) -> Identity;

    /// Its id, which everything that is kept beside it carries.
    fn id(&self) -> StoreId {
        self.identity().id
    }

    /// Makes a copy a store of its own, with an id of its own.
    fn adopt(&self) -> Result<Identity, Error>;

    /// Whether processes on other machines use it too: one that cannot reach it for a while may be replaced unseen.
    fn is_shared(&self) -> bool;

    /// Makes a session: the first event and its state, durable when this returns.
    fn create(&self, create: Create) -> Result<Loaded, Error>;

    /// Writes a journal from elsewhere as it is: numbers, keys, times and, if nothing was changed in it, hashes. All of it
    /// is there when this returns, or nothing. Refused if the session is known.
    fn restore(&self, restore: Restore) -> Result<Loaded, Error>;

    /// Appends in order, each with its own result, durable when this returns.
    fn append(&self, batch: Vec<Append>) -> Vec<Result<Appended, Error>>;

    /// Like [`Store::append`], but comes back at once if the store can write beside its caller: nothing is known to be
    /// durable before the answer has been waited for. Appends are written in the order in which they were given.
    fn append_soon(&self, batch: Vec<Append>) -> Answer {
        let results = self.append(batch);
        Answer::new(move || results)
    }

    /// How long the newest append had to wait for other writers: whoever can do with fewer of them sees by it that others
    /// want to write too.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// A session's state at its newest event.
    fn load(&self, session: SessionId) -> Result<Loaded, Error>;

    /// Up to `limit` events after `after`, in order; damaged ones are told apart, never left out.
    fn events(&self, session: SessionId, after: u64, limit: usize) -> Result<Vec<EventRow>, Error>;

    /// The rows of a page of a list. Costs what the page costs, however long the list is.
    fn page(&self, session: SessionId, list: List, page: &Page) -> Result<Vec<Item>, Error>;

    /// Where the row of a list stands that exactly `newer` rows are newer than; none if there are not that many.
    fn position(&self, session: SessionId, list: List, newer: usize) -> Result<Option<ItemPosition>, Error>;

    /// The rows of a list that have these keys, in the order of the keys.
    fn rows(&self, session: SessionId, list: List, keys: &[String]) -> Result<Vec<Item>, Error>;

    /// A page of a list, and how long the list is.
    fn items(&self, session: SessionId, list: List, page: &Page) -> Result<Items, Error>;

    /// A text that was set aside.
    fn blob(&self, hash: &[u8; 32]) -> Result<String, Error>;

    /// What is known of a session beside its journal, if that can be read.
    fn known(&self, session: SessionId) -> Result<Option<Known>, Error>;

    /// The newest event of each session that is known, apart from the store's own files, to have been acknowledged.
    fn acknowledged(&self) -> Result<BTreeMap<SessionId, u64>, Error> {
        Ok(BTreeMap::new())
    }

    /// A session's summary as it is kept, JSON as text.
    fn kept_summary(&self, session: SessionId) -> Result<String, Error>;

    /// Sessions in short, the most recently changed first. Whatever is wrong with one, the others are listed.
    fn list(&self, filter: &Filter) -> Result<Listing, Error>;

    /// The sessions whose id ends so; at most `limit`.
    fn find(&self, suffix: &str, limit: usize) -> Result<Vec<SessionId>, Error>;

    /// Waits until the session has an event after `seq` or the time is over; answers with its newest `seq`.
    fn wait_after(&self, session: SessionId, seq: u64, timeout: Duration) -> Result<u64, Error>;

    /// A number that is another one after somebody else has written to the store, for whoever looks at it again and again.
    /// What this process writes itself may leave it as it is.
    fn change_mark(&self) -> Result<u64, Error>;

    /// Takes the right to drive. Refused with who holds it, unless that is the holding that `over` says is over.
    fn acquire(
        &self,
        session: SessionId,
        holder: &segno_core::event::Holder,
        over: Option<Over>,
    ) -> Result<Lease, Error>;

    /// Says that the holder of this epoch lives. Fails if somebody else took over.
    fn renew(&self, session: SessionId, epoch: u64) -> Result<(), Error>;

    /// Lets go. Letting go twice, or after somebody took over, is no error.
    fn release(&self, session: SessionId, epoch: u64) -> Result<(), Error>;

    /// What has to be known of other sessions, as it is now.
    fn others(&self, query: &OthersQuery) -> Result<OthersView, Error>;

    /// Who drives a session.
    fn lease(&self, session: SessionId) -> Result<Option<Lease>, Error>;

    /// Every session that somebody drives.
    fn leases(&self) -> Result<Vec<(SessionId, Lease)>, Error>;

    /// How much room each session takes in the store, as far as it can be read.
    fn usage(&self) -> Result<Vec<Usage>, Error>;

    /// Removes a session with everything that belongs to it. False if there was none. Refused with who drives it,
    /// unless that is the holding that `over` says is over.
    fn delete(&self, session: SessionId, over: Option<Over>) -> Result<bool, Error>;

    /// The same, if its newest event is still this one; otherwise a conflict, and nothing is removed.
    fn delete_at(&self, session: SessionId, seq: u64, over: Option<Over>) -> Result<bool, Error>;

    /// Replaces what is folded from the journal by a fresh fold of it.
    fn rebuild(&self, session: SessionId) -> Result<Loaded, Error>;

    /// Takes texts out of events that are there, and appends the event that tells of it. The events keep their numbers
    /// and hashes, and are sealed as they are now; everything that follows from them is folded anew.
    fn forget(&self, forget: Forget) -> Result<Loaded, Error>;

    /// Where what `holds` knows stands in the store: each place with how often. Rows are meant, not what is left of earlier
    /// ones on the disk.
    fn search(&self, holds: &Holds) -> Result<BTreeMap<String, u64>, Error>;

    /// Removes what was set apart if it holds that, and every trace of what was removed or replaced earlier: from free
    /// pages and from the log. Takes as long as writing the store anew. Busy if somebody reads old pages all the time.
    fn scrub(&self, holds: &Holds) -> Result<(), Error>;

    /// Removes texts that no session refers to any more.
    fn collect_garbage(&self) -> Result<Garbage, Error>;

    /// Looks for damage below the journal. An empty answer is a good one.
    fn integrity(&self, deep: bool) -> Result<Vec<String>, Error>;

    /// Notes a damaged event, with its bytes, so that it is known and set apart.
    fn quarantine(&self, session: SessionId, seq: u64, what: &str) -> Result<(), Error>;

    /// What was set apart so far.
    fn quarantined(&self) -> Result<Vec<Damage>, Error>;

    /// A moment for upkeep that may take a while. Nothing that is in a hurry calls it.
    fn maintain(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Writes a consistent copy while others go on writing. Fails if `to` exists.
    fn backup(&self, to: &std::path::Path) -> Result<u64, Error>;
}
