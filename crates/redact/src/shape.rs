//! What the beginning of a match looks like: a necessary condition that costs nothing to have ready.
//!
//! The build script derives it from the pattern of each rule. It may let through what the pattern will refuse, never
//! the other way round.

use crate::tables;

/// Longer runs without a stated end are not followed, which bounds the work on any text.
const FOLLOWED: usize = 1024;

/// One way for a match to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) edge: Edge,
    /// How many bytes, at least and at most, come before the keyword that every such beginning contains.
    pub(crate) before: (u16, u16),
    pub(crate) runs: &'static [Run],
}

/// What has to be true of the place before the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Nothing.
    Any,
    /// A word starts or ends there.
    Word,
    /// The text starts there.
    Start,
}

/// Bytes of one set in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Index of the set.
    pub(crate) set: u16,
    pub(crate) least: u16,
    /// The most there can be; [`u16::MAX`] stands for any number. Where this is more than `least`, the next run's set
    /// shares no byte with this one, so that only one length can be right.
    pub(crate) most: u16,
}

impl Shape {
    /// Whether a match may begin such that the keyword at `keyword` is the one of its beginning.
    pub(crate) fn fits_around(&self, text: &[u8], keyword: usize) -> bool {
        let (least, most) = (usize::from(self.before.0), usize::from(self.before.1));
        let Some(last) = keyword.checked_sub(least) else { return false };
        (keyword.saturating_sub(most)..=last).any(|at| self.fits(text, at))
    }

    /// Whether a match may begin here.
    pub(crate) fn fits(&self, text: &[u8], mut at: usize) -> bool {
        let edge = match self.edge {
            Edge::Any => true,
            Edge::Start => at == 0,
            Edge::Word => word(at.checked_sub(1).and_then(|i| text.get(i))) != word(text.get(at)),
        };
        if !edge {
            return false;
        }
        for run in self.runs {
            let set = &tables::SETS[usize::from(run.set)];
            let most = if run.most == u16::MAX { FOLLOWED } else { usize::from(run.most) };
            let length = text[at..].iter().take(most).take_while(|b| contains(set, **b)).count();
            if length < usize::from(run.least) {
                return false;
            }
            if run.most == u16::MAX && length == FOLLOWED {
                return true;
            }
            at += length;
        }
        true
    }
}

fn contains(set: &[u64; 4], byte: u8) -> bool {
    set[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
}

fn word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}
