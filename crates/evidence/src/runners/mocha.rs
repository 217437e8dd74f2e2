//! `mocha`, with the reporters `spec` and `dot`.
//!
//! The tests stand in a tree of titles, the end is `  4 passing (12ms)` after an empty line, then `  2 pending` and
//! `  1 failing`, then the failures with their full names. Nothing marks what tests print: where the tree does not fit
//! the numbers, the names are not taken for complete.

use super::Before;
use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;
use crate::text;

pub(crate) fn may_begin(line: &str, before: &Before) -> Option<Box<dyn Reader>> {
    let known = (passing(line).is_some() && before.is_blank()) || case(line).is_some();
    known.then(|| {
        let indent = text::indent(line);
        let titles =
            before.titles().iter().filter(|(other, _)| *other < indent && *other > 0).cloned().collect();
        let (part, blank) = (Part::new(Runner::Mocha), before.is_blank());
        Box::new(Run { part, titles, blank, ended: false, told: None, failing: Vec::new() }) as _
    })
}

/// The number in `  4 passing (12ms)`.
fn passing(line: &str) -> Option<u64> {
    let (count, time) = line.strip_prefix("  ")?.split_once(" passing (")?;
    text::is_time(time.strip_suffix(')')?).then(|| text::number(count))?
}

/// `    ✔ adds`, `    1) quotes a runner`, `    - slow`.
fn case(line: &str) -> Option<(Outcome, &str)> {
    if text::indent(line) < 2 {
        return None;
    }
    let (mark, name) = line.trim_start().split_once(' ')?;
    let outcome = match mark {
        "✔" | "✓" | "√" => Outcome::Passed,
        "-" => Outcome::Skipped,
        _ if mark.strip_suffix(')').and_then(text::number).is_some() => Outcome::Failed,
        _ => return None,
    };
    Some((outcome, text::without_time(name)))
}

struct Run {
    part: Part,
    titles: Vec<(usize, String)>,
    /// The line before was empty.
    blank: bool,
    ended: bool,
    /// A failure whose name is being told below the result.
    told: Option<Vec<String>>,
    failing: Vec<String>,
}

impl Run {
    fn tree(&mut self, line: &str) {
        let indent = text::indent(line);
        if line.is_empty() || indent == 0 {
            return;
        }
        self.titles.retain(|(other, _)| *other < indent);
        match case(line) {
            Some((outcome, name)) => {
                let path: Vec<&str> =
                    self.titles.iter().map(|(_, title)| title.as_str()).chain([name]).collect();
                let path = path.join(" > ");
                self.part.add(path, outcome);
            }
            None if self.titles.len() < 64 => self.titles.push((indent, line.trim().to_owned())),
            None => {}
        }
    }

    /// What stands after `4 passing`: more numbers, then the failures.
    fn after(&mut self, line: &str) -> bool {
        if let Some((count, what)) = text::counted(line).filter(|_| text::indent(line) == 2) {
            match what {
                "pending" => self.part.skipped = count,
                "failing" => self.part.failed = count,
                _ => return false,
            }
            return true;
        }
        let first = line.strip_prefix("  ").and_then(|line| line.split_once(") "));
        if let Some((_, title)) = first.filter(|(number, _)| text::number(number).is_some()) {
            self.told = Some(Vec::new());
            self.tell(title);
            return true;
        }
        if self.told.is_some() && line.starts_with("       ") {
            self.tell(line.trim());
            return true;
        }
        self.told = None;
        // The failures are told with what they printed, indented.
        self.part.failed > 0 && line.starts_with("      ")
    }

    fn tell(&mut self, title: &str) {
        let Some(titles) = &mut self.told else { return };
        match title.strip_suffix(':') {
            Some(last) => {
                titles.push(last.to_owned());
                self.failing.push(titles.join(" > "));
                self.told = None;
            }
            None if titles.len() < 64 => titles.push(title.to_owned()),
            None => self.told = None,
        }
    }
}

impl Reader for Run {
    fn take(&mut self, line: &str) -> bool {
        let blank = std::mem::replace(&mut self.blank, line.is_empty());
        if self.ended {
            return self.after(line);
        }
        match passing(line).filter(|_| blank) {
            Some(passed) => {
                self.part.passed = passed;
                (self.part.complete, self.ended) = (true, true);
            }
            None => self.tree(line),
        }
        true
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn finish(mut self: Box<Self>) -> Option<Part> {
        // The failures are known better from below the result.
        if self.failing.len() as u64 == self.part.failed && self.part.complete {
            self.part.tests.retain(|test| test.outcome != Outcome::Failed);
            for name in std::mem::take(&mut self.failing) {
                self.part.add(name, Outcome::Failed);
            }
        }
        Some(self.part)
    }
}
