//! `python -m unittest`.
//!
//! The end is a rule of seventy dashes, `Ran 7 tests in 0.001s`, an empty line, and `OK` or `FAILED (failures=2)`. Before
//! it stands a section for each failure, below a rule of seventy `=`; what tests printed stands in these sections or
//! among the dots, never between the rule and its `Ran`.

use super::Before;
use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;
use crate::text;

/// What stands for the tests of a file that could not be imported.
const NOT_LOADED: &str = "unittest.loader._FailedTest";

pub(crate) fn may_begin(line: &str, before: &Before) -> Option<Box<dyn Reader>> {
    // Somebody may have cut off all but the last three lines.
    let cut = before.is_nothing() && ran(line).is_some();
    (cut || is_rule(line, b'-') || is_rule(line, b'=') || case(line).is_some() || begun(line)).then(|| {
        let part = Part::new(Runner::Unittest);
        let section = if cut { Section::Rule { captured: false } } else { Section::Running };
        let failures = Vec::new();
        Box::new(Run { section, described: None, ran: 0, failures, told: false, part }) as _
    })
}

/// The number in `Ran 7 tests in 0.001s`.
fn ran(line: &str) -> Option<u64> {
    let (count, time) = line.strip_prefix("Ran ")?.split_once(" in ")?;
    let (_, thousandths) = time.strip_suffix('s')?.split_once('.')?;
    let (count, _) = count.split_once(" test")?;
    text::number(count).filter(|_| thousandths.len() == 3)
}

fn is_rule(line: &str, mark: u8) -> bool {
    line.len() == 70 && line.bytes().all(|b| b == mark)
}

/// `test_adds (test_unit.TestSums.test_adds)` as one name; before Python 3.11 the last part was left out.
fn full_name(text: &str) -> Option<String> {
    let (name, class) = text.split_once(" (")?;
    let (class, _) = class.split_once(')')?;
    if name.contains(' ') || class.is_empty() || class.contains(' ') {
        return None;
    }
    let is_whole = class.rsplit('.').next() == Some(name);
    Some(if is_whole { class.to_owned() } else { format!("{class}.{name}") })
}

/// The first line of a test whose result stands further down: it has a documentation, or something is printed before.
fn begun(line: &str) -> bool {
    let name = line.split(" ... ").next().unwrap_or(line);
    line.starts_with("test")
        && full_name(name).is_some_and(|name| name.contains('.'))
        && (name.len() == line.len() || line.contains(") ... "))
}

/// `test_adds (test_unit.TestSums.test_adds) ... ok`.
fn case(line: &str) -> Option<(String, Outcome)> {
    let (name, result) = line.split_once(" ... ")?;
    Some((full_name(name)?, outcome(result)?))
}

fn outcome(result: &str) -> Option<Outcome> {
    Some(match result {
        "ok" => Outcome::Passed,
        "FAIL" | "ERROR" | "unexpected success" => Outcome::Failed,
        "expected failure" | "skipped" => Outcome::Skipped,
        _ if result.starts_with("skipped ") => Outcome::Skipped,
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Running,
    /// After a rule of `=`.
    Failure,
    /// In the text of a failure.
    Captured,
    /// After a rule of dashes. It may also have been printed by a test.
    Rule {
        captured: bool,
    },
    /// After `Ran 7 tests`.
    Ran,
    Ended,
}

struct Run {
    section: Section,
    /// A test that tells its first line of documentation before its result.
    described: Option<String>,
    ran: u64,
    failures: Vec<String>,
    /// A test stood there with its result.
    told: bool,
    part: Part,
}

impl Run {
    fn running(&mut self, line: &str) {
        if let Some((name, outcome)) = case(line) {
            self.part.put(&name, outcome);
            self.described = None;
            self.told = true;
        } else if let Some(name) = self.described.take() {
            if let Some(outcome) = line.rsplit_once(" ... ").and_then(|(_, result)| outcome(result)) {
                self.part.put(&name, outcome);
            } else if let Some(outcome) = outcome(line) {
                self.part.put(&name, outcome);
            } else if full_name(line).is_none() {
                // Its output is in between.
                self.described = Some(name);
            }
        }
        if line.ends_with(')') || line.contains(") ... ") {
            let name = full_name(line.split(" ... ").next().unwrap_or(line));
            if case(line).is_none() && name.is_some() && !line.starts_with(' ') {
                self.described = name;
            }
        }
    }

    /// `FAIL: test_parts (test_unit.TestSums.test_parts) (i=1)`.
    fn failure(&mut self, line: &str) -> bool {
        let Some(rest) =
            ["FAIL: ", "ERROR: ", "UNEXPECTED SUCCESS: "].iter().find_map(|w| line.strip_prefix(w))
        else {
            return false;
        };
        let Some(name) = full_name(rest) else { return false };
        self.part.build_failed |= name.contains(NOT_LOADED);
        self.failures.push(name);
        true
    }

    /// `FAILED (failures=2, errors=1, skipped=1)`, `OK (skipped=1)`, `NO TESTS RAN`.
    fn result(&mut self, line: &str) -> bool {
        let (word, counts) = line.split_once(" (").unwrap_or((line, ""));
        if !["OK", "FAILED", "NO TESTS RAN"].contains(&word) {
            return false;
        }
        let (mut failed, mut skipped) = (0_u64, 0_u64);
        for part in counts.trim_end_matches(')').split(", ").filter(|part| !part.is_empty()) {
            let Some((what, count)) = part.split_once('=') else { return false };
            let Some(count) = text::number(count) else { return false };
            match what {
                "failures" | "errors" | "unexpected successes" => failed = failed.saturating_add(count),
                _ => skipped = skipped.saturating_add(count),
            }
        }
        // One test may fail in several of its parts.
        if self.failures.len() as u64 == failed {
            self.failures.sort();
            self.failures.dedup();
            failed = self.failures.len() as u64;
        }
        self.part.passed = self.ran.saturating_sub(failed.saturating_add(skipped));
        (self.part.failed, self.part.skipped) = (failed, skipped);
        self.part.complete = true;
        self.section = Section::Ended;
        true
    }
}

impl Reader for Run {
    fn take(&mut self, line: &str) -> bool {
        if self.section == Section::Ended {
            return false;
        }
        if is_rule(line, b'=') {
            self.section = Section::Failure;
            return true;
        }
        match self.section {
            Section::Running if is_rule(line, b'-') => self.section = Section::Rule { captured: false },
            Section::Running => self.running(line),
            Section::Failure => {
                self.section = if self.failure(line) { Section::Captured } else { Section::Running };
            }
            Section::Captured if is_rule(line, b'-') => self.section = Section::Rule { captured: true },
            Section::Captured => {}
            Section::Rule { captured } => match ran(line) {
                Some(ran) => (self.ran, self.section) = (ran, Section::Ran),
                None => self.section = if captured { Section::Captured } else { Section::Running },
            },
            Section::Ran if line.is_empty() => {}
            Section::Ran => {
                if !self.result(line) {
                    self.section = Section::Running;
                }
            }
            Section::Ended => {}
        }
        true
    }

    fn ended(&self) -> bool {
        self.section == Section::Ended
    }

    fn is_certain(&self) -> bool {
        self.told
    }

    fn quoting(&self) -> bool {
        matches!(self.section, Section::Captured)
    }

    fn finish(mut self: Box<Self>) -> Option<Part> {
        for name in std::mem::take(&mut self.failures) {
            self.part.put(&name, Outcome::Failed);
        }
        let told = self.part.tests.len();
        self.part.tests.retain(|test| !test.name.contains(NOT_LOADED));
        self.part.unloaded = (told - self.part.tests.len()) as u64;
        Some(self.part)
    }
}
