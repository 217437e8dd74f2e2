//! What can go wrong in a store, and whether the write may have happened all the same.

use segno_core::Refusal;
use segno_core::SessionId;

use crate::types::Lease;

/// Whether a write that failed is known not to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It is not there.
    NotWritten,
    /// It may be there: append again with the same key to find out.
    Unknown,
}

/// A store that could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such session.
    #[error("Session {0} not found.")]
    NotFound(SessionId),
    /// The rules do not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A session made by `new` is open in the project already.
    #[error("A session is already active. Complete or abort it first.")]
    AlreadyOpen(SessionId),
    /// Another event came first.
    #[error("the session is at event {actual}, not {expected}")]
    Conflict {
        /// What was expected.
        expected: u64,
        /// What is.
        actual: u64,
    },
    /// The driver that this comes from has been replaced.
    #[error("epoch {given} is over: the session is driven under epoch {current}")]
    StaleEpoch {
        /// The epoch it came with.
        given: u64,
        /// The epoch now.
        current: u64,
    },
    /// Somebody else drives.
    #[error("the session is driven by {} (pid {} on {})", .0.holder.what, .0.holder.pid, .0.holder.host)]
    Held(Box<Lease>),
    /// No such text.
    #[error("no text with hash {0} in the store")]
    NoBlob(String),
    /// A session's record is damaged.
    #[error("the record of session {session} is damaged: {what}")]
    SessionDamaged {
        /// Which session.
        session: SessionId,
        /// What is wrong.
        what: String,
    },
    /// The store itself is damaged.
    #[error("the store {location} is damaged: {what}")]
    Damaged {
        /// Where it is.
        location: String,
        /// What is wrong.
        what: String,
    },
    /// A newer segno has changed the store's form.
    #[error("the store {location} has form {found}, this segno knows {known}: it may read but not write")]
    Newer {
        /// Where it is.
        location: String,
        /// The form it has.
        found: u32,
        /// The newest form known here.
        known: u32,
    },
    /// The store must be brought to a newer form, and somebody still works with the old one.
    #[error("the store {location} must be brought to form {to}, but {drivers} session(s) are being driven")]
    DriversAlive {
        /// Where it is.
        location: String,
        /// The form it would get.
        to: u32,
        /// How many sessions are driven.
        drivers: u64,
    },
    /// Others kept the store busy for too long.
    #[error("the store {location} is busy")]
    Busy {
        /// Where it is.
        location: String,
    },
    /// There is no store yet.
    #[error("there is no store at {0}")]
    NoStore(String),
    /// The place cannot hold a store.
    #[error("{location} cannot hold a store: {why}")]
    UnusableLocation {
        /// Where.
        location: String,
        /// Why not.
        why: String,
    },
    /// The store was opened for reading only.
    #[error("the store {location} is open for reading only")]
    ReadOnly {
        /// Where it is.
        location: String,
    },
    /// The store is a copy of another that is still there.
    #[error("the store {location} is a copy of {of}, and is not changed")]
    Copy {
        /// Where it is.
        location: String,
        /// Where the store is that it is a copy of.
        of: String,
    },
    /// No room, and nothing was written.
    #[error("no room left for the store {location}")]
    Full {
        /// Where it is.
        location: String,
    },
    /// Anything else.
    #[error("the store {location} failed: {what}")]
    Failed {
        /// Where it is.
        location: String,
        /// What happened.
        what: String,
        /// Whether the write may be there.
        certainty: Certainty,
    },
}

impl Error {
    /// Whether the write is known not to be there.
    pub fn certainty(&self) -> Certainty {
        match self {
            Self::Failed { certainty, .. } => *certainty,
            _ => Certainty::NotWritten,
        }
    }

    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "session_not_found",
            Self::Refused(refusal) => refusal.code(),
            Self::AlreadyOpen(_) => "session_already_active",
            Self::Conflict { .. } => "conflict",
            Self::StaleEpoch { .. } => "stale_epoch",
            Self::Held(_) => "held",
            Self::NoBlob(_) => "no_blob",
            Self::SessionDamaged { .. } => "session_corrupted",
            Self::Damaged { .. } => "store_damaged",
            Self::Newer { .. } => "store_newer",
            Self::DriversAlive { .. } => "drivers_alive",
            Self::Busy { .. } => "store_busy",
            Self::NoStore(_) => "no_store",
            Self::UnusableLocation { .. } => "bad_place",
            Self::ReadOnly { .. } => "read_only",
            Self::Copy { .. } => "store_is_copy",
            Self::Full { .. } => "no_room",
            Self::Failed { .. } => "write_error",
        }
    }
}
