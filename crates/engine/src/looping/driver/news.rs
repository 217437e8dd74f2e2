//! What somebody who watches a loop hears, beside what the runs themselves publish.

use std::time::Duration;

use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::event::WorkItemMark;

use crate::looping::notify::Message;

/// Something that happened in a loop. What is a decision is in the journal before it is told.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopNews {
    /// A phase begins.
    PhaseBegan {
        /// Its name.
        phase: String,
        /// Which it is, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// A command is run for what it shows.
    Measuring {
        /// What it is called.
        name: String,
    },
    /// An agent is asked.
    IterationBegan {
        /// The phase.
        phase: String,
        /// Which iteration in it, from 1.
        iteration: u64,
    },
    /// An iteration is over, and it is decided what follows.
    Decided {
        /// In one line.
        line: String,
        /// The end of what the commands printed that failed and count no tests, if it is something else than before.
        printed: Vec<String>,
    },
    /// It waits for a time.
    Parked {
        /// Until when; none if only a person can go on.
        until: Option<Timestamp>,
        /// Why.
        words: String,
    },
    /// It still waits.
    Waiting {
        /// For so long.
        left: Duration,
    },
    /// It goes on.
    Woken,
    /// Work on an item begins, or goes on.
    ItemBegan {
        /// Which.
        item: WorkItemMark,
        /// The session that works on it.
        session: SessionId,
    },
    /// Work on an item is over for now.
    ItemEnded {
        /// Which.
        item: WorkItemMark,
        /// How it ended and why, in one line.
        line: String,
    },
    /// Something that somebody who is not looking should know. It is without secrets, and not said too often.
    Notice(Message),
    /// Something that somebody should know went wrong, and the loop goes on.
    Problem(String),
}

/// Somebody who watches.
pub trait LoopListener: Sync {
    /// Hears it. Whoever takes long here holds up the loop.
    fn hear(&self, news: &LoopNews);
}

/// Nobody.
impl LoopListener for () {
    fn hear(&self, _news: &LoopNews) {}
}
