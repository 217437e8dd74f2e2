//! Things that are counted by their name, each with a few places to look at. However much there is, memory is bounded.

use std::collections::BTreeMap;

use super::Evidence;
use super::Share;
use crate::id::SessionId;
use crate::text::shorten;
use crate::time::Timestamp;

/// How many different things of one kind are counted. When there are more, the rarest half is forgotten.
const MOST: usize = 4_000;
/// How many places to look at are kept of each.
const PLACES: usize = 3;
/// Longest text of a place, in characters.
const TEXT: usize = 160;
/// How many different names shares have; what comes later is together.
const NAMES: usize = 2_000;
const OTHERS: &str = "(others)";

/// A place in a journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) session: SessionId,
    pub(super) seq: u64,
    pub(super) at: Option<Timestamp>,
}

impl Place {
    pub(super) fn evidence(self, text: &str) -> Evidence {
        let line = telling_line(text);
        let Self { session, seq, at } = self;
        let look = format!("segno log {session} --after {} --limit 5", seq.saturating_sub(1));
        Evidence { session_id: session, seq, at, text: shorten(line, TEXT), look }
    }
}

/// The first line of a text that says what is wrong: that a command ended with some code is known anyway.
pub(super) fn telling_line(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let says_little = |line: &str| {
        let line = line.to_ascii_lowercase();
        ["exit code", "process exited", "wall time", "output:", "command exited"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    if !says_little(first) {
        return first;
    }
    lines.find(|line| !says_little(line)).unwrap_or(first)
}

/// Something that was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// What it is, for people.
    pub(super) what: String,
    pub(super) count: u64,
    /// Out of so many.
    pub(super) of: u64,
    pub(super) sessions: u64,
    /// In how many turns, iterations or the like.
    pub(super) parts: u64,
    /// What was waited, in microseconds, or the most that was seen at once.
    pub(super) amount: u64,
    /// How many of them are of a special kind: refused by a person, risky, …
    pub(super) special: u64,
    pub(super) evidence: Vec<Evidence>,
    last: Option<(SessionId, u64)>,
}

impl Group {
    /// Counts one more of it.
    pub(super) fn hit(&mut self, place: Place, part: u64, text: &str) {
        self.count += 1;
        let is_new = self.last.is_none_or(|(session, _)| session != place.session);
        self.sessions += u64::from(is_new);
        if is_new || self.last != Some((place.session, part)) {
            self.parts += 1;
        }
        self.last = Some((place.session, part));
        if self.evidence.len() < PLACES {
            self.evidence.push(place.evidence(text));
        } else if is_new
            && let Some(twice) = self.twice()
            && let Some(kept) = self.evidence.get_mut(twice)
        {
            // Places of different sessions show more.
            *kept = place.evidence(text);
        }
    }

    fn twice(&self) -> Option<usize> {
        (1..self.evidence.len()).rev().find(|at| {
            self.evidence.iter().take(*at).any(|one| one.session_id == self.evidence[*at].session_id)
        })
    }
}

/// Things of one kind, by their names.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    by_name: BTreeMap<String, Group>,
    most: usize,
    /// How many were forgotten because there were too many.
    pub(super) forgotten: u64,
}

impl Default for Groups {
    fn default() -> Self {
        Self::of(MOST)
    }
}

impl Groups {
    pub(super) fn of(most: usize) -> Self {
        Self { by_name: BTreeMap::new(), most, forgotten: 0 }
    }

    /// The group of this name; `what` says what it is if it is new.
    pub(super) fn group(&mut self, name: &str, what: impl FnOnce() -> String) -> &mut Group {
        if !self.by_name.contains_key(name) {
            if self.by_name.len() >= self.most {
                self.forget_rare();
            }
            let group = Group { what: what(), ..Group::default() };
            self.by_name.insert(name.to_owned(), group);
        }
        self.by_name.entry(name.to_owned()).or_default()
    }

    /// Those that are there, the most frequent first.
    pub(super) fn sorted(self) -> Vec<Group> {
        let mut all: Vec<Group> = self.by_name.into_values().collect();
        // The map is in order of names, and this keeps it among equals.
        all.sort_by_key(|group| std::cmp::Reverse((group.count, group.sessions, group.amount)));
        all
    }

    /// The names of those that are so.
    pub(super) fn those(&self, is_so: impl Fn(&Group) -> bool) -> std::collections::BTreeSet<String> {
        self.by_name.iter().filter(|(_, group)| is_so(group)).map(|(name, _)| name.clone()).collect()
    }

    fn forget_rare(&mut self) {
        let weight = |group: &Group| (group.count, group.sessions, group.of);
        let mut weights: Vec<_> = self.by_name.values().map(weight).collect();
        weights.sort_unstable();
        let Some(middle) = weights.get(weights.len() / 2).copied() else { return };
        let before = self.by_name.len();
        let mut left = before / 2;
        self.by_name.retain(|_, group| {
            let goes = left > 0 && weight(group) <= middle;
            left -= usize::from(goes);
            !goes
        });
        self.forgotten += (before - self.by_name.len()) as u64;
    }
}

/// Sums by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums(BTreeMap<String, Share>);

impl Sums {
    pub(super) fn add(&mut self, name: &str, tokens: u64, micros: u64, ms: u64) {
        let name = if self.0.len() >= NAMES && !self.0.contains_key(name) { OTHERS } else { name };
        let sum = self.0.entry(name.to_owned()).or_default();
        sum.count += 1;
        sum.tokens = sum.tokens.saturating_add(tokens);
        sum.micros = sum.micros.saturating_add(micros);
        sum.ms = sum.ms.saturating_add(ms);
    }

    /// By name.
    pub(super) fn by_name(self) -> Vec<Share> {
        self.0.into_iter().map(|(name, sum)| Share { name, ..sum }).collect()
    }

    /// The most first.
    pub(super) fn most_first(self) -> Vec<Share> {
        let mut all = self.by_name();
        all.sort_by_key(|share| std::cmp::Reverse((share.micros, share.ms, share.tokens, share.count)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(session: i64, seq: u64) -> Place {
        let session = SessionId::at(Timestamp::from_micros(session * 1_000_000));
        Place { session, seq, at: None }
    }

    #[rstest::rstest]
    #[case("", "")]
    #[case("\n\n  no such file\nx", "no such file")]
    #[case("Exit code 101\nerror[E0308]: mismatched", "error[E0308]: mismatched")]
    #[case("Process exited with code 1\nOutput:\n\n2 failed", "2 failed")]
    #[case("Exit code 1", "Exit code 1")]
    fn the_line_that_says_most(#[case] text: &str, #[case] line: &str) {
        assert_eq!(telling_line(text), line);
    }

    #[test]
    fn places_are_of_as_many_sessions_as_there_are() {
        let mut group = Group::default();
        for (session, seq) in [(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (3, 6), (4, 7)] {
            group.hit(place(session, seq), seq / 2, "x");
        }
        let seqs: Vec<u64> = group.evidence.iter().map(|one| one.seq).collect();
        assert_eq!(seqs, [1, 6, 5]);
        assert_eq!((group.count, group.sessions, group.parts), (7, 4, 6));
        assert!(group.evidence[0].look.ends_with(" --after 0 --limit 5"), "{}", group.evidence[0].look);
    }

    #[test]
    fn what_is_rare_is_forgotten_and_what_is_frequent_stays() {
        let mut groups = Groups::of(10);
        for round in 0..1_000 {
            groups.group("often", || "often".to_owned()).hit(place(1, round), 0, "");
            groups.group(&format!("once {round:04}"), String::new).hit(place(1, round), 0, "");
        }
        assert!(groups.by_name.len() <= 10, "{}", groups.by_name.len());
        assert!(groups.forgotten > 900);
        let first = groups.sorted().remove(0);
        assert_eq!((first.what.as_str(), first.count), ("often", 1_000));
    }

    #[test]
    fn sums_are_bounded_and_lose_nothing() {
        let mut sums = Sums::default();
        for name in 0..NAMES + 10 {
            sums.add(&format!("{name:05}"), 1, 2, 3);
        }
        let all = sums.most_first();
        assert_eq!(all.len(), NAMES + 1);
        assert_eq!((all[0].name.as_str(), all[0].micros), (OTHERS, 20));
        assert_eq!(all.iter().map(|share| share.tokens).sum::<u64>(), NAMES as u64 + 10);
    }
}
