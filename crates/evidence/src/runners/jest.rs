//! `jest`.
//!
//! Each file begins with `PASS path` or `FAIL path`; the tests follow as a tree up to an empty line, if they are shown.
//! What tests wrote to the console is indented below `console.log`, and so are the failures below `● name`. The end is
//! `Test Suites: …`, `Tests: …` and `Snapshots: …`, each from the first column, one after another.

use super::Before;
use super::Numbers;
use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;
use crate::text;

pub(crate) fn may_begin(line: &str, _: &Before) -> Option<Box<dyn Reader>> {
    let known = file(line).is_some() || suites(line).is_some() || is_nothing(line);
    known.then(|| Box::new(Run::new()) as _)
}

/// The path in `PASS ./other.test.js (5.1 s)`.
fn file(line: &str) -> Option<&str> {
    // In colours it is a badge, with a space before it.
    let line = line.strip_prefix(' ').unwrap_or(line);
    let path = line.strip_prefix("PASS ").or_else(|| line.strip_prefix("FAIL "))?.trim_start();
    let path = text::without_time(path);
    (path.contains('.') && !path.contains(": ")).then(|| path.strip_prefix("./").unwrap_or(path))
}

fn is_nothing(line: &str) -> bool {
    line.starts_with("No tests found, exiting with code ")
}

/// `1 failed, 1 skipped, 3 passed, 5 total`.
fn numbers(counts: &str) -> Option<Numbers> {
    let (mut numbers, mut total) = (Numbers::default(), None);
    for part in counts.split(", ") {
        // Some suites of those that there are: `1 of 2 total`.
        let (count, what) = text::counted(part)?;
        match what {
            "passed" => numbers.passed = count,
            "failed" => numbers.failed = count,
            "skipped" | "todo" => numbers.skipped = numbers.skipped.saturating_add(count),
            "total" => total = Some(count),
            _ if what.starts_with("of ") && what.ends_with(" total") => total = Some(count),
            _ => return None,
        }
    }
    let sum = numbers.passed.saturating_add(numbers.failed).saturating_add(numbers.skipped);
    (total.is_some_and(|total| total >= sum)).then_some(numbers)
}

fn suites(line: &str) -> Option<Numbers> {
    numbers(line.strip_prefix("Test Suites: ")?)
}

struct Run {
    part: Part,
    file: Option<String>,
    /// In the tree of tests of a file: titles with their indents.
    tree: Option<Vec<(usize, String)>>,
    /// `Test Suites:` was the line before, or `Tests:` after it.
    suites: bool,
    tests: Option<Numbers>,
    ended: bool,
}

impl Run {
    fn new() -> Self {
        let part = Part::new(Runner::Jest);
        Self { part, file: None, tree: None, suites: false, tests: None, ended: false }
    }

    fn end(&mut self, numbers: &Numbers) {
        (self.part.passed, self.part.failed, self.part.skipped) =
            (numbers.passed, numbers.failed, numbers.skipped);
        (self.part.complete, self.ended) = (true, true);
    }

    fn summary(&mut self, line: &str) -> bool {
        if let Some(numbers) = self.tests.take() {
            if line.starts_with("Snapshots: ") {
                self.end(&numbers);
                return true;
            }
        } else if self.suites {
            self.tests = line.strip_prefix("Tests: ").and_then(|counts| numbers(counts.trim_start()));
        }
        self.suites = line.strip_prefix("Test Suites: ").is_some_and(|counts| numbers(counts).is_some());
        self.suites || self.tests.is_some()
    }

    fn line(&mut self, line: &str) {
        if let Some(file) = file(line) {
            (self.file, self.tree) = (Some(file.to_owned()), Some(Vec::new()));
            return;
        }
        if line.is_empty() {
            self.tree = None;
            return;
        }
        let title = line.strip_prefix("  ● ");
        if let Some(title) = title {
            self.tree = None;
            self.part.build_failed |= title == "Test suite failed to run" && self.file.is_some();
            self.failure(title);
        }
        self.case(line);
    }

    /// A failure told below its file: `● sum › quotes a runner`.
    fn failure(&mut self, title: &str) {
        let Some(file) = &self.file else { return };
        if title != "Console" && title != "Test suite failed to run" {
            let name = format!("{file} > {}", title.replace(" › ", " > "));
            self.part.worsen(&name, Outcome::Failed);
        }
    }

    fn case(&mut self, line: &str) {
        let (Some(file), Some(titles)) = (&self.file, &mut self.tree) else { return };
        let (indent, text) = (text::indent(line), line.trim_start());
        titles.retain(|(other, _)| *other < indent);
        let Some((outcome, name)) = marked(text) else {
            if indent > 0 && titles.len() < 64 {
                titles.push((indent, text.to_owned()));
            }
            return;
        };
        let mut path = file.clone();
        for title in titles.iter().map(|(_, title)| title.as_str()).chain([name]) {
            path.push_str(" > ");
            path.push_str(title);
        }
        self.part.worsen(&path, outcome);
    }
}

fn marked(text: &str) -> Option<(Outcome, &str)> {
    let (mark, name) = text.split_once(' ')?;
    let outcome = match mark {
        "✓" | "√" => Outcome::Passed,
        "✕" | "×" => Outcome::Failed,
        "○" | "✎" => Outcome::Skipped,
        _ => return None,
    };
    let name = name.strip_prefix("skipped ").or_else(|| name.strip_prefix("todo ")).unwrap_or(name);
    Some((outcome, text::without_time(name)))
}

impl Reader for Run {
    fn take(&mut self, line: &str) -> bool {
        if self.ended {
            return line.starts_with("Time: ") || line.starts_with("Ran all test suites");
        }
        if is_nothing(line) {
            self.end(&Numbers::default());
        } else if !self.summary(line) {
            self.line(line);
        }
        true
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn finish(self: Box<Self>) -> Option<Part> {
        Some(self.part)
    }
}
