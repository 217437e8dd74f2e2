//! `vitest`.
//!
//! It begins with ` RUN  v4.1.12 /project`. What tests wrote stands below `stdout | file > test` up to an empty line. Only
//! the verbose reporter names every test; the failures are named below their heading. The end is ` Test Files  …` and
//! `      Tests  …`; of several of these the last one counts, since the others were printed by tests.

use super::Before;
use super::Numbers;
use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;
use crate::text;

pub(crate) fn begin(line: &str) -> Option<Box<dyn Reader>> {
    let version =
        line.trim_start().strip_prefix("RUN  v").or_else(|| line.trim_start().strip_prefix("DEV  v"))?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| Box::new(Run::new()) as _)
}

/// The head of the output may be missing.
pub(crate) fn may_begin(line: &str, _: &Before) -> Option<Box<dyn Reader>> {
    is_files(line).then(|| Box::new(Run::new()) as _)
}

fn is_files(line: &str) -> bool {
    line.strip_prefix(" Test Files  ").is_some_and(|counts| numbers(counts).is_some())
}

/// `1 failed | 3 passed | 1 skipped | 1 todo (6)`.
fn numbers(counts: &str) -> Option<Numbers> {
    let mut numbers = Numbers::default();
    if counts == "no tests" {
        return Some(numbers);
    }
    let (counts, total) = counts.strip_suffix(')')?.rsplit_once(" (")?;
    for part in counts.split(" | ") {
        match text::counted(part)? {
            (count, "passed") => numbers.passed = count,
            (count, "failed") => numbers.failed = count,
            (count, "skipped" | "todo") => numbers.skipped = numbers.skipped.saturating_add(count),
            // Expected failures are told beside what passed and failed.
            (_, "expected fail") => {}
            _ => return None,
        }
    }
    let sum = numbers.passed.saturating_add(numbers.failed).saturating_add(numbers.skipped);
    (text::number(total)? >= sum).then_some(numbers)
}

struct Run {
    part: Part,
    captured: bool,
    files: bool,
    ended: bool,
}

impl Run {
    fn new() -> Self {
        Self { part: Part::new(Runner::Vitest), captured: false, files: false, ended: false }
    }

    fn end(&mut self, numbers: &Numbers) {
        (self.part.passed, self.part.failed, self.part.skipped) =
            (numbers.passed, numbers.failed, numbers.skipped);
        (self.part.complete, self.ended) = (true, true);
    }

    fn summary(&mut self, line: &str) -> bool {
        let tests = line.strip_prefix("      Tests  ").filter(|_| self.files);
        self.files = is_files(line);
        match tests.and_then(numbers) {
            Some(numbers) => self.end(&numbers),
            None => return self.files,
        }
        true
    }

    fn case(&mut self, line: &str) -> Option<()> {
        if let Some(failure) = line.strip_prefix(" FAIL  ") {
            // A file that could not be loaded is told as `bad.test.js [ bad.test.js ]`.
            match failure.strip_suffix(" ]").and_then(|failure| failure.split_once(" [ ")) {
                Some((file, again)) if file == again => self.part.build_failed = true,
                _ => self.part.worsen(failure, Outcome::Failed),
            }
            return Some(());
        }
        let (mark, name) = line.strip_prefix(' ')?.split_once(' ')?;
        let outcome = match mark {
            "✓" => Outcome::Passed,
            "×" => Outcome::Failed,
            "↓" | "□" => Outcome::Skipped,
            _ => return None,
        };
        let name =
            name.rsplit_once(' ').filter(|(_, time)| text::is_time(time)).map_or(name, |(name, _)| name);
        // A file alone is no test.
        name.contains(" > ").then(|| self.part.worsen(name.trim_end(), outcome))
    }
}

impl Reader for Run {
    fn take(&mut self, line: &str) -> bool {
        // Not every summary that a test wrote can be told by its place; but the runner's own comes last.
        if !self.captured && self.summary(line) {
            return true;
        }
        if line.starts_with("No test files found") && !self.captured {
            self.end(&Numbers::default());
            return true;
        }
        let output = ["stdout | ", "stderr | "].iter().any(|stream| line.starts_with(stream));
        let mine = self.case_or_output(line, output);
        !self.ended || mine
    }

    fn ended(&self) -> bool {
        self.ended && !self.captured
    }

    fn quoting(&self) -> bool {
        self.captured
    }

    fn finish(self: Box<Self>) -> Option<Part> {
        Some(self.part)
    }
}

impl Run {
    fn case_or_output(&mut self, line: &str, output: bool) -> bool {
        if output || line.is_empty() {
            self.captured = output;
            return output;
        }
        !self.captured && self.case(line).is_some()
    }
}
