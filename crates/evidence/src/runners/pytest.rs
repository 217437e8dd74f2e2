//! `pytest`.
//!
//! Headings are titles between rules of `=`, all of one width: `==== FAILURES ====`. What failing tests printed stands
//! below such a heading, up to `short test summary info` or the last line, `==== 1 failed, 5 passed in 0.05s ====`. With
//! `-q` there is no first heading, and the last line stands there without its rules.

use super::Before;
use super::Numbers;
use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;
use crate::text;

pub(crate) fn begin(line: &str) -> Option<Box<dyn Reader>> {
    let title = heading(line)?;
    let known = title == "test session starts" || is_captured(title) || title == SHORT || title == WARNINGS;
    known.then(|| Box::new(Session::new(Some(line.chars().count()), title == "test session starts")) as _)
}

/// With `-q`, or if only the end is there.
pub(crate) fn may_begin(line: &str, _: &Before) -> Option<Box<dyn Reader>> {
    (is_progress(line) || case(line).is_some() || numbers(line).is_some())
        .then(|| Box::new(Session::new(None, false)) as _)
}

const SHORT: &str = "short test summary info";
const WARNINGS: &str = "warnings summary";

fn heading(line: &str) -> Option<&str> {
    text::between_rules(line, '=').filter(|_| line.starts_with("===") || line.ends_with("==="))
}

fn is_captured(title: &str) -> bool {
    ["ERRORS", "FAILURES", "PASSES", "XPASSES", "XFAILURES"].contains(&title)
}

/// `.F..sx   [100%]`, with or without a file before it.
fn is_progress(line: &str) -> bool {
    let Some((marks, percent)) = line.strip_suffix("%]").and_then(|line| line.rsplit_once('[')) else {
        return false;
    };
    let marks = marks.trim_end();
    let marks = marks.rsplit_once(' ').map_or(marks, |(_, marks)| marks);
    text::number(percent.trim()).is_some_and(|percent| percent <= 100)
        && !marks.is_empty()
        && marks.bytes().all(|mark| b".FEsxXR".contains(&mark))
}

/// `tests/test_calc.py::test_adds PASSED   [ 10%]`, or as several workers tell it, `[gw0] [ 10%] PASSED tests/…`.
fn case(line: &str) -> Option<(&str, Outcome, bool)> {
    if let Some(rest) = line.strip_prefix("[gw") {
        let (_, rest) = rest.split_once("] [")?;
        let (percent, rest) = rest.split_once("%] ")?;
        text::number(percent.trim())?;
        let (word, name) = rest.split_once(' ')?;
        return Some((is_name(name.trim())?, outcome(word)?, true));
    }
    let (line, counted) = match line.strip_suffix("%]").and_then(|line| line.rsplit_once(" [")) {
        Some((line, percent)) if text::number(percent.trim()).is_some() => (line.trim_end(), true),
        _ => (line, false),
    };
    // The word is the last one that is a status, before a reason in brackets.
    let without_reason = match line.strip_suffix(')') {
        Some(_) => {
            line.find(" SKIPPED (").or_else(|| line.find(" XFAIL (")).or_else(|| line.find(" XPASS ("))
        }
        None => None,
    };
    let line = match without_reason {
        Some(at) => line.get(..at + line.get(at..)?.find(" (")?)?,
        None => line,
    };
    let (name, word) = line.rsplit_once(' ')?;
    Some((is_name(name)?, outcome(word)?, counted))
}

fn is_name(name: &str) -> Option<&str> {
    let (file, test) = name.split_once("::")?;
    (!file.is_empty() && !file.contains(' ') && !test.is_empty()).then_some(name)
}

fn outcome(word: &str) -> Option<Outcome> {
    Some(match word {
        "PASSED" | "XPASS" => Outcome::Passed,
        "FAILED" | "ERROR" => Outcome::Failed,
        "SKIPPED" | "XFAIL" => Outcome::Skipped,
        _ => return None,
    })
}

/// A line of the short summary: `FAILED tests/test_calc.py::test_adds - assert 1 == 2`.
fn reason(line: &str) -> Option<(&str, Outcome)> {
    let (word, rest) = line.split_once(' ')?;
    let outcome = outcome(word)?;
    // What stands in brackets is of the test's making.
    let from = rest.find('[').filter(|open| rest.find(" - ").is_none_or(|dash| open < &dash));
    let from = from.and_then(|open| rest.get(open..)?.find("] - ").map(|close| open + close)).unwrap_or(0);
    let end = rest.get(from..)?.find(" - ").map_or(rest.len(), |at| from + at);
    Some((is_name(rest.get(..end)?)?, outcome))
}

/// `1 failed, 5 passed, 1 error in 0.05s`.
fn numbers(line: &str) -> Option<Numbers> {
    let mut numbers = Numbers::default();
    let line = heading(line).unwrap_or(line);
    let (counts, time) = line.rsplit_once(" in ")?;
    let time = time.split_once(" (").map_or(time, |(time, _)| time);
    if !text::is_time(time) {
        return None;
    }
    if counts == "no tests ran" {
        return Some(numbers);
    }
    for part in counts.split(", ") {
        let (count, what) = text::counted(part)?;
        let sum = match what {
            "passed" | "xpassed" => &mut numbers.passed,
            "failed" | "error" | "errors" => &mut numbers.failed,
            "skipped" | "xfailed" => &mut numbers.skipped,
            "deselected" | "warning" | "warnings" | "rerun" | "reruns" | "subtests passed" => continue,
            _ => return None,
        };
        *sum = sum.saturating_add(count);
    }
    Some(numbers)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Running,
    Captured,
    Short,
    Ended,
}

struct Session {
    /// How wide its headings are.
    width: Option<usize>,
    section: Section,
    /// Its first heading was seen.
    begun: bool,
    part: Part,
    /// A test whose name stands there and whose result does not, since its output is shown as it comes.
    open: Option<String>,
    /// Tests that were told twice, such as one that passed and could not be cleaned up.
    twice: u64,
}

impl Session {
    fn new(width: Option<usize>, begun: bool) -> Self {
        let part = Part::new(Runner::Pytest);
        Self { width, section: Section::Running, begun, part, open: None, twice: 0 }
    }

    fn add(&mut self, name: &str, outcome: Outcome) {
        let before = self.part.tests.len();
        self.part.worsen(name, outcome);
        self.twice += u64::from(before == self.part.tests.len());
    }

    /// Whether this heading is one of the runner's own: they are all of one width, unless the title needs more.
    fn is_mine(&mut self, line: &str, title: &str) -> bool {
        let (wide, needed) = (line.chars().count(), title.chars().count() + 4);
        let width = *self.width.get_or_insert(wide);
        wide == width || (needed >= width && wide <= needed + 2)
    }

    fn running(&mut self, line: &str) {
        if let Some(name) = self.open.clone()
            && let Some(outcome) = outcome(line.trim())
        {
            self.open = None;
            return self.add(&name, outcome);
        }
        match case(line) {
            // While a test runs, only a line with its place in the whole can be the runner's.
            Some((name, outcome, counted)) if counted || self.open.is_none() => {
                self.open = None;
                self.add(name, outcome);
            }
            Some(_) => {}
            None => {
                let name = line.split_once(' ').map_or(line, |(name, _)| name);
                if self.open.is_none() && is_name(name).is_some() && name.contains(".py::") {
                    self.open = Some(name.to_owned());
                }
            }
        }
        self.part.build_failed |= line.starts_with("collected ") && line.contains(" error");
    }

    fn ends(&mut self, line: &str) -> bool {
        let Some(numbers) = numbers(line) else { return false };
        if let Some(title) = heading(line)
            && !self.is_mine(line, title)
        {
            return false;
        }
        (self.part.passed, self.part.failed, self.part.skipped) =
            (numbers.passed, numbers.failed, numbers.skipped);
        self.part.complete = true;
        self.section = Section::Ended;
        true
    }

    fn heading(&mut self, line: &str) -> bool {
        let Some(title) = heading(line) else { return false };
        let section = match title {
            SHORT => Section::Short,
            WARNINGS => Section::Captured,
            _ if is_captured(title) => Section::Captured,
            _ => return false,
        };
        if !self.is_mine(line, title) {
            return false;
        }
        self.section = section;
        true
    }
}

impl Reader for Session {
    fn take(&mut self, line: &str) -> bool {
        if self.section == Section::Ended {
            // Another last line without a new beginning: the first was quoted. So was what came before more headings.
            return self.begun && heading(line).is_some() && self.ends(line);
        }
        if self.heading(line) {
            return true;
        }
        match self.section {
            Section::Running => {
                // A quoted last line has other numbers than there are tests; but of those the runner is the judge, and
                // comes last.
                let shown = self.open.is_some() && heading(line).is_none();
                if shown || !self.ends(line) {
                    self.running(line);
                }
            }
            // The last line with rules can only be told by its width.
            Section::Captured => {
                if heading(line).is_some() {
                    self.ends(line);
                }
            }
            Section::Short => {
                if !self.ends(line) {
                    self.part.build_failed |= line.contains(" during collection !!!");
                    if let Some((name, outcome)) = reason(line) {
                        let (twice, name) = (self.twice, name.to_owned());
                        self.add(&name, outcome);
                        self.twice = twice;
                    }
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
        self.part.tests.iter().any(|test| test.name.contains(".py::"))
    }

    fn quoting(&self) -> bool {
        self.section == Section::Captured
    }

    fn finish(mut self: Box<Self>) -> Option<Part> {
        let part = &mut self.part;
        // A test that passed and failed at its end is one test, and a failed one.
        let named = part.tests.len() as u64;
        if part.complete && self.twice > 0 && named + self.twice == part.passed + part.failed + part.skipped {
            part.count_names();
        }
        Some(self.part)
    }
}
