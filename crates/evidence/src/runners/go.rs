//! `go test`, as it writes for people.
//!
//! A package ends with `ok  \tpackage\t0.01s` or `FAIL\tpackage\t0.01s`. With `-v` each test is announced by `=== RUN`,
//! and has a line such as `--- PASS: TestAdds (0.00s)`; without it only packages are told, and each counts as one test.
//! Nothing marks what tests print. A result counts only for a test that was announced, and an `ok` only where every
//! announced test has its result; without `-v` a package that passes prints nothing, so that an `ok` after other text
//! and before a `FAIL` is part of the failing package's output.

use std::collections::BTreeMap;

use super::Before;
use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;
use crate::report::TestCase;
use crate::text;

pub(crate) fn may_begin(line: &str, _: &Before) -> Option<Box<dyn Reader>> {
    let known = End::read(line).is_some() || line.starts_with("=== RUN   ") || result(line).is_some();
    known.then(|| Box::new(Packages::new()) as _)
}

/// The last line of a package.
enum End<'a> {
    Passed(&'a str),
    Failed(&'a str),
    NotBuilt,
    NoTests,
}

impl<'a> End<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut columns = line.split('\t');
        let (word, package, rest) = (columns.next()?, columns.next()?, columns.next().unwrap_or(""));
        let (package, mark) = package.split_once(' ').unwrap_or((package, ""));
        if package.is_empty() {
            return None;
        }
        let is_end = rest == "(cached)" || text::is_time(rest.split(' ').next().unwrap_or(""));
        let no_tests = line.ends_with("[no tests to run]") || line.ends_with("[no test files]");
        match word.trim_end() {
            "ok" if no_tests && is_end_of_empty(rest) => Some(Self::NoTests),
            "ok" if is_end => Some(Self::Passed(package)),
            "?" if no_tests => Some(Self::NoTests),
            "FAIL" if mark == "[build failed]" || mark == "[setup failed]" => Some(Self::NotBuilt),
            "FAIL" if is_end => Some(Self::Failed(package)),
            _ => None,
        }
    }
}

fn is_end_of_empty(rest: &str) -> bool {
    rest.starts_with("(cached)") || text::is_time(rest.split([' ', '[']).next().unwrap_or(""))
}

/// `    --- PASS: TestMany/one (0.00s)`.
fn result(line: &str) -> Option<(&str, Outcome)> {
    let (word, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    let outcome = match word {
        "PASS" => Outcome::Passed,
        "FAIL" => Outcome::Failed,
        "SKIP" => Outcome::Skipped,
        _ => return None,
    };
    let (name, time) = rest.strip_suffix(')')?.rsplit_once(" (")?;
    (text::is_time(time) && !name.contains(' ')).then_some((name, outcome))
}

struct Packages {
    part: Part,
    /// The tests that were announced in this package, with their results.
    announced: BTreeMap<String, Option<Outcome>>,
    /// Something else was printed since the last end of a package.
    noise: bool,
    /// Packages that passed, if it was not a test that said so.
    doubtful: Vec<TestCase>,
    any_end: bool,
}

impl Packages {
    fn new() -> Self {
        let part = Part::new(Runner::GoTest);
        Self { part, announced: BTreeMap::new(), noise: false, doubtful: Vec::new(), any_end: false }
    }

    fn end(&mut self, end: &End<'_>) -> bool {
        let waits = self.announced.values().any(Option::is_none);
        match end {
            // A test said so.
            End::Passed(_) | End::NoTests if waits => return false,
            End::Passed(package) if !self.announced.is_empty() => self.tell(package, Outcome::Passed),
            End::Passed(package) => {
                let case = TestCase { name: (*package).to_owned(), outcome: Outcome::Passed };
                let list = if self.noise { &mut self.doubtful } else { &mut self.part.tests };
                list.push(case);
            }
            End::NoTests => {}
            End::Failed(package) => {
                self.doubtful.clear();
                self.tell(package, Outcome::Failed);
            }
            End::NotBuilt => {
                self.part.build_failed = true;
                self.part.unloaded = self.part.unloaded.saturating_add(1);
            }
        }
        self.any_end = true;
        // After a doubtful one, what comes may still be the output of one package.
        self.noise = !self.doubtful.is_empty();
        true
    }

    /// A result behind what its test printed without a new line: only of a test that has none yet.
    fn glued<'a>(&self, line: &'a str) -> Option<(&'a str, Outcome)> {
        let (name, outcome) = result(&line[line.rfind("--- ")?..])?;
        self.announced.get(name).is_some_and(Option::is_none).then_some((name, outcome))
    }

    /// The tests of a package that ended; the package itself if it names none that failed.
    fn tell(&mut self, package: &str, outcome: Outcome) {
        let tests = std::mem::take(&mut self.announced);
        let mut shown = false;
        for (name, result) in tests {
            // A test without a result was running when the package came to its end.
            let result = result.unwrap_or(Outcome::Failed);
            shown |= result == outcome;
            self.part.add(format!("{package}.{name}"), result);
        }
        if !shown && outcome == Outcome::Failed {
            self.part.add(package, outcome);
        }
    }
}

impl Reader for Packages {
    fn take(&mut self, line: &str) -> bool {
        if let Some(end) = End::read(line)
            && self.end(&end)
        {
            return true;
        }
        if let Some(name) = line.strip_prefix("=== RUN   ") {
            self.announced.entry(name.to_owned()).or_insert(None);
            return true;
        }
        if let Some((name, outcome)) = result(line).or_else(|| self.glued(line)) {
            if let Some(known) = self.announced.get_mut(name) {
                *known = (*known).max(Some(outcome));
            }
            self.noise = true;
            return true;
        }
        let starts = ["=== PAUSE ", "=== CONT  ", "=== NAME  ", "coverage: ", "testing: warning: "];
        if line == "PASS" || line == "FAIL" || starts.iter().any(|own| line.starts_with(own)) {
            return true;
        }
        // Before what could not be built stands which package it was.
        if line.starts_with("# ") {
            return false;
        }
        self.noise |= !line.is_empty();
        false
    }

    fn ended(&self) -> bool {
        self.any_end && self.announced.is_empty()
    }

    fn is_certain(&self) -> bool {
        !self.announced.is_empty()
    }

    fn quoting(&self) -> bool {
        self.announced.values().any(Option::is_none)
    }

    fn finish(mut self: Box<Self>) -> Option<Part> {
        self.part.complete = self.ended();
        self.part.tests.append(&mut self.doubtful);
        for (name, result) in std::mem::take(&mut self.announced) {
            if let Some(outcome) = result {
                self.part.add(name, outcome);
            }
        }
        self.part.count_names();
        Some(self.part)
    }
}
