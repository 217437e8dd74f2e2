//! Who a store is, who drives its sessions, and what is wrong with it.

use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::StoreId;
use segno_core::Timestamp;
use segno_core::event::Holder;
use serde::Serialize;

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
