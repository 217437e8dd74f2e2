//! `cargo test`: one run for each test program.
//!
//! A program begins with `running 3 tests` and ends with `test result: …`, whose numbers add up to those announced. What
//! failing tests printed stands between `failures:` with `---- name stdout ----` and a second `failures:` with a list
//! of names; `--show-output` does the same under `successes:`.

use super::Before;
use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;
use crate::text;

/// The test program in `Running unittests src/lib.rs (target/debug/deps/calc-c6626fb655a8d231)` or `Doc-tests calc`.
pub(crate) fn program(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(library) = line.strip_prefix("Doc-tests ") {
        return Some(library.to_owned());
    }
    let path = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once(" (")?.1;
    let file = path.rsplit(['/', '\\']).next()?;
    let file = file.strip_suffix(".exe").unwrap_or(file);
    let (name, hash) = file.rsplit_once('-')?;
    hash.bytes().all(|b| b.is_ascii_hexdigit()).then(|| name.to_owned())
}

pub(crate) fn begin(line: &str, before: &mut Before) -> Option<Box<dyn Reader>> {
    announced(line)?;
    let mut program = Program::new();
    program.part.prefix = before.take_program().map(|name| format!("{name}::"));
    Some(Box::new(program))
}

/// The head of the output may be missing.
pub(crate) fn may_begin(line: &str, _: &Before) -> Option<Box<dyn Reader>> {
    (case(line).is_some() || Numbers::read(line).is_some()).then(|| Box::new(Program::new()) as _)
}

/// What is known of tests that could not be built.
pub(crate) fn not_built(runner: Runner) -> Part {
    let mut part = Part::new(runner);
    (part.build_failed, part.unnamed) = (true, true);
    part
}

/// The number in `running 3 tests`.
fn announced(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("running ")?;
    text::number(rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test"))?)
}

/// `test name ... ok`.
fn case(line: &str) -> Option<(&str, Option<Outcome>)> {
    let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    // With the time that it took, if that was asked for.
    let word = result.split_once(" <").map_or(result, |(word, _)| word);
    let outcome = match word {
        "ok" => Some(Outcome::Passed),
        "FAILED" => Some(Outcome::Failed),
        "ignored" => Some(Outcome::Skipped),
        _ if word.starts_with("ignored, ") => Some(Outcome::Skipped),
        // Measured, not tested.
        _ if word.starts_with("bench: ") => None,
        _ if word.starts_with("FAILED (") || word.starts_with("failed (") => Some(Outcome::Failed),
        _ => return None,
    };
    Some((name, outcome))
}

/// `test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`.
struct Numbers {
    passed: u64,
    failed: u64,
    ignored: u64,
    measured: u64,
}

impl Numbers {
    fn read(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("test result: ")?;
        let is_ok = rest.starts_with("ok. ");
        let rest = rest.strip_prefix("ok. ").or_else(|| rest.strip_prefix("FAILED. "))?;
        let mut counts = rest.split("; ").map(text::counted);
        let mut next = |word: &str| match counts.next() {
            Some(Some((count, what))) if what == word => Some(count),
            _ => None,
        };
        let numbers = Self {
            passed: next("passed")?,
            failed: next("failed")?,
            ignored: next("ignored")?,
            measured: next("measured")?,
        };
        next("filtered out")?;
        (is_ok == (numbers.failed == 0)).then_some(numbers)
    }

    fn total(&self) -> u64 {
        [self.failed, self.ignored, self.measured].iter().fold(self.passed, |sum, n| sum.saturating_add(*n))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Running,
    /// In what tests printed.
    Captured,
    /// In the list of names after it, if it is one.
    Names,
    Ended,
}

struct Program {
    announced: Option<u64>,
    section: Section,
    part: Part,
    /// Names of documentation tests, with the line they stand in.
    examples: Vec<(String, u64, Outcome)>,
    /// Names in the list after what tests printed.
    listed: Vec<String>,
}

impl Program {
    fn new() -> Self {
        Self {
            announced: None,
            section: Section::Running,
            part: Part::new(Runner::CargoTest),
            examples: Vec::new(),
            listed: Vec::new(),
        }
    }

    /// Takes the result, if it is this program's.
    fn result(&mut self, line: &str) -> bool {
        let listed = std::mem::take(&mut self.listed);
        let Some(numbers) = Numbers::read(line) else { return false };
        if self.announced.is_some_and(|announced| announced != numbers.total()) {
            return false;
        }
        (self.part.passed, self.part.failed, self.part.skipped) =
            (numbers.passed, numbers.failed, numbers.ignored);
        self.part.complete = true;
        self.section = Section::Ended;
        // The list names failures whose own lines were torn apart by other output.
        let named = self.part.count(Outcome::Failed) + self.failed_examples();
        if listed.len() as u64 == numbers.failed && named < numbers.failed {
            self.part.tests.retain(|test| test.outcome != Outcome::Failed);
            self.examples.retain(|(_, _, outcome)| *outcome != Outcome::Failed);
            listed.iter().for_each(|name| self.add(name, Outcome::Failed));
        }
        true
    }

    fn failed_examples(&self) -> u64 {
        self.examples.iter().filter(|(_, _, outcome)| *outcome == Outcome::Failed).count() as u64
    }

    fn case(&mut self, line: &str) {
        match case(line) {
            Some((name, Some(outcome))) => self.add(name, outcome),
            Some((_, None)) => {}
            // A test that prints between its name and its result: whose result comes next is anybody's guess.
            None => self.part.unnamed |= line.starts_with("test ") && line.contains(" ... "),
        }
    }

    fn add(&mut self, name: &str, outcome: Outcome) {
        let name = [" - should panic", " - compile fail", " - compile"]
            .iter()
            .fold(name, |name, kind| name.strip_suffix(kind).unwrap_or(name));
        // An example is known by the line it stands in, which changes with every line above it.
        let example = name.strip_suffix(')').and_then(|name| name.rsplit_once(" (line "));
        match example.and_then(|(name, line)| Some((name, text::number(line)?))) {
            Some((name, line)) => self.examples.push((name.to_owned(), line, outcome)),
            None => self.part.add(name, outcome),
        }
    }
}

impl Reader for Program {
    fn take(&mut self, line: &str) -> bool {
        let heading = line == "failures:" || line == "successes:";
        match self.section {
            // Only a program whose beginning was seen can say that the result so far was a quoted one.
            Section::Ended => return self.announced.is_some() && self.result(line),
            Section::Running if heading => self.section = Section::Captured,
            Section::Running => {
                if self.announced.is_none() && self.part.tests.is_empty() {
                    self.announced = announced(line);
                }
                if line.starts_with("error: test failed, to rerun pass `") {
                    // It ended without a result.
                    self.section = Section::Ended;
                } else if !self.result(line) {
                    self.case(line);
                }
            }
            Section::Captured if heading => self.section = Section::Names,
            Section::Captured => {}
            Section::Names if line.is_empty() => {}
            Section::Names if heading => self.listed.clear(),
            Section::Names if line.starts_with("    ") => self.listed.push(line.trim().to_owned()),
            Section::Names => {
                if !self.result(line) {
                    self.section = Section::Captured;
                }
            }
        }
        true
    }

    fn ended(&self) -> bool {
        self.section == Section::Ended
    }

    fn finish(mut self: Box<Self>) -> Option<Part> {
        // In the order of the file, so that a number behind equal names means the same one next time.
        self.examples.sort();
        for (name, _, outcome) in self.examples {
            self.part.add(name, outcome);
        }
        Some(self.part)
    }
}
