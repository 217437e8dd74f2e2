//! Calls that only repeat themselves: the same call with the same result, or a round of a few calls.

use super::groups::Place;

/// The longest round that is looked for, in calls.
const LONGEST: usize = 4;
/// So many times the same in a row is a repetition.
const TIMES: u64 = 3;

/// One call, as far as it is compared.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// The same for the same tool, input and result.
    pub(super) hash: u64,
    pub(super) place: Place,
    /// What it was, for people.
    pub(super) what: String,
}

/// A stretch in which nothing new happened.
#[derive(Clone, Debug)]
pub(super) struct Repetition {
    /// What was repeated.
    pub(super) what: String,
    /// Where it began.
    pub(super) place: Place,
    /// How many times.
    pub(super) times: u64,
}

/// Follows the calls of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeats {
    /// The newest calls, the newest last.
    lately: Vec<Made>,
    /// For rounds of one to four calls: how many calls in a row were the same as the one a round before.
    same: [u64; LONGEST],
    /// Where each of these began, and what it was.
    began: [Option<(Place, String)>; LONGEST],
}

impl Repeats {
    /// One more call. Answers with what ended by it.
    pub(super) fn call(&mut self, made: Made) -> Option<Repetition> {
        let mut goes_on = [false; LONGEST];
        for (at, goes_on) in goes_on.iter_mut().enumerate() {
            let round = at + 1;
            let Some(before) = self.lately.len().checked_sub(round).and_then(|at| self.lately.get(at)) else {
                continue;
            };
            // One call again and again is no round of several.
            let differs = round == 1
                || self.lately.windows(2).rev().take(round - 1).any(|two| two[0].hash != two[1].hash);
            *goes_on = before.hash == made.hash && differs;
        }
        let ended = self.ended(goes_on);
        for (at, goes_on) in goes_on.into_iter().enumerate() {
            if !goes_on {
                (self.same[at], self.began[at]) = (0, None);
                continue;
            }
            if self.same[at] == 0 {
                self.began[at] = self.round(at + 1);
            }
            self.same[at] += 1;
        }
        self.lately.push(made);
        if self.lately.len() > LONGEST {
            self.lately.remove(0);
        }
        ended
    }

    /// The run is over.
    pub(super) fn end(&mut self) -> Option<Repetition> {
        let ended = self.ended([false; LONGEST]);
        *self = Self::default();
        ended
    }

    /// The shortest round that does not go on, if it went on for long enough. A round of two is one of four as well.
    fn ended(&mut self, goes_on: [bool; LONGEST]) -> Option<Repetition> {
        let mut found = None;
        for (at, goes_on) in goes_on.into_iter().enumerate() {
            let times = self.same[at] / (at as u64 + 1) + 1;
            if goes_on || times < TIMES {
                continue;
            }
            let began = self.began[at].take();
            if found.is_none() {
                found = began.map(|(place, what)| Repetition { what, place, times });
            }
            self.same[at] = 0;
        }
        found
    }

    /// The last calls of a round: where it began, and what it is.
    fn round(&self, round: usize) -> Option<(Place, String)> {
        let calls = self.lately.get(self.lately.len().checked_sub(round)?..)?;
        let words: Vec<&str> = calls.iter().map(|made| made.what.as_str()).collect();
        Some((calls.first()?.place, words.join(" → ")))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::id::SessionId;
    use crate::time::Timestamp;

    #[rstest]
    #[case("", "")]
    #[case("a a", "")]
    #[case("a a a", "a*3@1")]
    #[case("b a a a a c", "a*4@2")]
    #[case("a a a b b b", "a*3@1 b*3@4")]
    #[case("a b a b", "")]
    #[case("a b a b a b", "a → b*3@1")]
    #[case("x a b a b a b y", "a → b*3@2")]
    #[case("a b c a b c a b c", "a → b → c*3@1")]
    #[case("a b c a d c", "")]
    fn repetitions(#[case] calls: &str, #[case] expected: &str) {
        let session = SessionId::at(Timestamp::EPOCH);
        let mut repeats = Repeats::default();
        let mut found = Vec::new();
        for (at, word) in calls.split_whitespace().enumerate() {
            let place = Place { session, seq: at as u64 + 1, at: None };
            let hash = crate::fnv::hash(word.as_bytes());
            found.extend(repeats.call(Made { hash, place, what: word.to_owned() }));
        }
        found.extend(repeats.end());
        let said: Vec<String> =
            found.iter().map(|one| format!("{}*{}@{}", one.what, one.times, one.place.seq)).collect();
        assert_eq!(said.join(" "), expected);
        assert!(repeats.end().is_none(), "said once");
    }
}
