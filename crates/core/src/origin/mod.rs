//! Who wrote each line of a file, found by replaying what was recorded of it.
//!
//! A line is credited to a call only if it was not in the last content that is known from before the call, and is in what
//! the call is known to have written. Everything else is not by a recorded call, and [`Doubt`] says why. What cannot be told
//! is never an agent's: words that ever stood in the file by somebody else, that stood in a prompt, or that the session may
//! have been shown, stay what they were.
//!
//! Whoever replays gives the steps in the order of time: contents that were seen ([`Replay::content`]), calls
//! ([`Replay::write`], [`Replay::replace`], …), and what a session was told and shown in between.

mod align;
mod lines;
mod replay;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod truth_tests;

pub use self::replay::Created;
pub use self::replay::Of;
pub use self::replay::Replacement;
pub use self::replay::Replay;

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// From a call: its number.
    Call(usize),
    /// Not from a recorded call, as far as anybody can tell.
    Other {
        /// Why it is nobody's.
        doubt: Doubt,
        /// The call that may have to do with it.
        near: Option<usize>,
        /// The content in which it was first seen: its number.
        seen: Option<usize>,
    },
}

impl Origin {
    /// The call that wrote it.
    pub fn call(self) -> Option<usize> {
        match self {
            Self::Call(call) => Some(call),
            Self::Other { .. } => None,
        }
    }
}

/// Why a line is credited to no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// It stood in the first content that is known.
    First,
    /// It came between two contents that are known, and no recorded call is known to have written it.
    Between,
    /// It came while a call was open of which nobody knows what it wrote.
    Perhaps,
    /// The same words stood in the file before, and were not a call's.
    Stood,
    /// The words stood in what a person told the agent.
    Prompt,
    /// The agent had been shown the words before it wrote them.
    Shown,
    /// The agent had been shown something that was not recorded.
    Blind,
    /// Nobody knows what stood in the file before the call.
    NothingBefore,
    /// It has neither a letter nor a digit, and looks like many others: it goes with the lines around it.
    Signs,
    /// Several lines read the same, and which of them is which cannot be told.
    Unclear,
}

impl Doubt {
    /// The word that is shown and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Between => "between",
            Self::Perhaps => "perhaps",
            Self::Stood => "stood",
            Self::Prompt => "prompt",
            Self::Shown => "shown",
            Self::Blind => "blind",
            Self::NothingBefore => "nothing_before",
            Self::Signs => "signs",
            Self::Unclear => "unclear",
        }
    }
}
