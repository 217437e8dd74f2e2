//! `cargo nextest run`.
//!
//! It begins with `Starting 5 tests across 2 binaries`; a result is a status that ends in the twelfth column, a time, and
//! since some versions a counter such as `(2/5)`. What tests printed is indented below `stdout ───`, or stands below
//! `--- STDOUT: … ---`. At the end stands a summary, and the failures once more.

use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;
use crate::text;

pub(crate) fn begin(line: &str) -> Option<Box<dyn Reader>> {
    let announced = starting(line)?;
    Some(Box::new(Run { announced, ended: false, part: Part::new(Runner::Nextest) }))
}

/// The number in `    Starting 5 tests across 2 binaries (1 test skipped)`.
fn starting(line: &str) -> Option<u64> {
    let (count, rest) = line.strip_prefix("    Starting ")?.split_once(' ')?;
    rest.trim_start_matches("tests").trim_start_matches("test").strip_prefix(" across ")?;
    text::number(count)
}

struct Run {
    announced: u64,
    ended: bool,
    part: Part,
}

impl Run {
    /// `     Summary [   0.394s] 5 tests run: 4 passed (1 slow), 1 failed, 1 skipped`.
    fn summary(&mut self, line: &str) -> Option<()> {
        let rest = line.trim_start().strip_prefix("Summary [")?;
        let (run, counts) = rest.split_once("] ")?.1.split_once(" run: ")?;
        let run = run.strip_suffix(" tests").or_else(|| run.strip_suffix(" test"))?;
        // Where it was stopped early: `3/5 tests run`.
        let (run, all) = match run.split_once('/') {
            Some((run, all)) => (text::number(run)?, text::number(all)?),
            None => (text::number(run)?, text::number(run)?),
        };
        if all != self.announced {
            return None;
        }
        let (mut passed, mut failed, mut skipped) = (0_u64, 0_u64, 0_u64);
        for part in without_brackets(counts).split(", ") {
            match text::counted(part)? {
                (count, "passed") => passed = count,
                (count, "skipped") => skipped = count,
                // Failed, timed out, could not be executed.
                (count, _) => failed = failed.saturating_add(count),
            }
        }
        (self.part.passed, self.part.failed, self.part.skipped) = (passed, failed, skipped);
        (self.part.complete, self.ended) = (true, true);
        self.part.unnamed = run < all;
        Some(())
    }

    /// `        PASS [   0.032s] (1/5) calc tests::adds`.
    fn case(&mut self, line: &str) -> Option<()> {
        let (status, rest) = line.split_once(" [")?;
        let (time, rest) = rest.split_once("] ")?;
        if status.chars().count() != 12 || !text::is_time(time.trim_start_matches([' ', '>'])) {
            return None;
        }
        let name = match rest.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            Some((counter, name)) => {
                self.is_counter(counter)?;
                name
            }
            None => rest.trim_start(),
        };
        let status = status.trim_start();
        let status =
            status.strip_prefix("TRY ").map_or(status, |tried| tried.split_once(' ').map_or("", |t| t.1));
        let is = |names: &[&str]| names.iter().any(|name| status.starts_with(name));
        let outcome =
            if is(&["LEAK-FAIL", "LKFAIL", "FAIL", "FL+", "FLKY", "ABORT", "TIMEOUT", "TMT", "XFAIL", "SIG"])
            {
                Outcome::Failed
            } else if is(&["PASS", "LEAK", "FLAKY", "TMPASS"]) {
                Outcome::Passed
            } else {
                // Still running, and whatever else is told in between.
                return None;
            };
        // A later try decides.
        self.part.put(name, outcome);
        Some(())
    }

    /// `2/5` of as many as were announced, or dashes for a try that is not the last.
    fn is_counter(&self, counter: &str) -> Option<()> {
        let is_mine = match counter.split_once('/') {
            Some((_, all)) => text::number(all.trim()) == Some(self.announced),
            None => counter.chars().all(|c| !c.is_alphanumeric()),
        };
        is_mine.then_some(())
    }
}

fn without_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    let kept = text.chars().filter(|c| {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    });
    kept.collect()
}

impl Reader for Run {
    fn take(&mut self, line: &str) -> bool {
        if self.summary(line).is_some() {
            return true;
        }
        if self.ended {
            // The failures are told once more.
            return line.split_once(" [").is_some_and(|(status, _)| status.chars().count() == 12);
        }
        self.case(line);
        true
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn finish(self: Box<Self>) -> Option<Part> {
        Some(self.part)
    }
}
