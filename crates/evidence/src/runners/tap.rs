//! The Test Anything Protocol, versions 12 to 14.
//!
//! `1..N` says how many results there are, before or after them; `ok 1 - name` and `not ok 2 - name` are results. Tests
//! below a test are indented before its own result, or stand in braces after it; only tests without tests below them
//! are counted. Diagnostics between `---` and `...`, and comments, are not looked at. A failing test marked `TODO` is
//! expected to fail.

use super::Before;
use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;
use crate::text;

pub(crate) fn begin(line: &str) -> Option<Box<dyn Reader>> {
    let version = line.strip_prefix("TAP version ").and_then(text::number)?;
    (12..=14).contains(&version).then(|| Box::new(Stream::new(false)) as _)
}

pub(crate) fn may_begin(line: &str, _: &Before) -> Option<Box<dyn Reader>> {
    let first = Point::read(line).is_some_and(|point| point.number.is_none_or(|number| number == 1));
    (plan(line).is_some() || (first && text::indent(line) == 0)).then(|| Box::new(Stream::new(true)) as _)
}

/// The number in `1..7`, which may have a reason behind it.
fn plan(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("1..")?;
    text::number(rest.split_once(" #").map_or(rest, |(count, _)| count).trim_end())
}

/// One result.
struct Point<'a> {
    number: Option<u64>,
    name: &'a str,
    outcome: Outcome,
    opens: bool,
}

impl<'a> Point<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let line = line.trim_start_matches(' ');
        let (is_ok, rest) = match line.strip_prefix("not ok") {
            Some(rest) => (false, rest),
            None => (true, line.strip_prefix("ok")?),
        };
        if !rest.is_empty() && !rest.starts_with(' ') {
            return None;
        }
        let rest = rest.trim_start();
        let (number, rest) = match rest.split_once(' ').unwrap_or((rest, "")) {
            (number, rest) if text::number(number).is_some() => (text::number(number), rest),
            _ => (None, rest),
        };
        // "ok then" is a word, not a result.
        if number.is_none() && !rest.is_empty() && !rest.starts_with("- ") {
            return None;
        }
        let (rest, opens) = rest.strip_suffix('{').map_or((rest, false), |rest| (rest.trim_end(), true));
        let (name, directive) = split_directive(rest);
        let left_out = ["skip", "todo"]
            .iter()
            .any(|word| directive.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(word)));
        let outcome = match (left_out, is_ok) {
            (true, _) => Outcome::Skipped,
            (false, true) => Outcome::Passed,
            (false, false) => Outcome::Failed,
        };
        let name = name.trim();
        Some(Self { number, name: name.strip_prefix("- ").unwrap_or(name), outcome, opens })
    }
}

/// A name and what stands behind `#`, unless that is escaped.
fn split_directive(text: &str) -> (&str, &str) {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find('#')) {
        let at = from + at;
        if !text[..at].ends_with('\\') && (at == 0 || text[..at].ends_with(' ')) {
            return (&text[..at], text[at + 1..].trim());
        }
        from = at + 1;
    }
    (text, "")
}

/// A test without tests below it, or one whose result is not there yet.
struct Leaf {
    indent: usize,
    path: Vec<String>,
    outcome: Outcome,
}

struct Stream {
    /// It may be none.
    doubtful: bool,
    plan: Option<u64>,
    points: u64,
    /// A result had a number, as hardly anything else has.
    numbered: bool,
    leaves: Vec<Leaf>,
    /// Names of tests whose tests stand in braces, outermost first.
    open: Vec<String>,
    /// The indent of the diagnostics that are being passed over.
    diagnostics: Option<usize>,
    bailed: bool,
}

impl Stream {
    fn new(doubtful: bool) -> Self {
        Self {
            doubtful,
            plan: None,
            points: 0,
            numbered: false,
            leaves: Vec::new(),
            open: Vec::new(),
            diagnostics: None,
            bailed: false,
        }
    }

    fn point(&mut self, indent: usize, point: &Point<'_>) {
        let name = match (point.name, point.number) {
            ("", Some(number)) => number.to_string(),
            (name, _) => name.to_owned(),
        };
        if indent == 0 {
            self.points += 1;
            self.numbered |= point.number.is_some();
        }
        if point.opens {
            self.open.push(name);
            return;
        }
        // What was indented deeper belongs to this one.
        let below = self.leaves.iter().rposition(|leaf| leaf.indent <= indent).map_or(0, |at| at + 1);
        let children = self.leaves.get_mut(below..).unwrap_or_default();
        let explained = children.iter().any(|leaf| leaf.outcome == point.outcome);
        for leaf in children.iter_mut() {
            leaf.indent = indent;
            leaf.path.push(name.clone());
        }
        if children.is_empty() || (point.outcome == Outcome::Failed && !explained) {
            let path = std::iter::once(name).chain(self.open.iter().rev().cloned()).collect();
            self.leaves.push(Leaf { indent, path, outcome: point.outcome });
        }
    }

    fn is_in_diagnostics(&mut self, line: &str, indent: usize) -> bool {
        match self.diagnostics {
            Some(at) => {
                if indent <= at && line.trim() == "..." {
                    self.diagnostics = None;
                }
                // Whoever forgets the end does not swallow the results.
                let forgotten = indent < at && Point::read(line).is_some();
                if forgotten {
                    self.diagnostics = None;
                }
                !forgotten
            }
            None if indent > 0 && line.trim() == "---" => {
                self.diagnostics = Some(indent);
                true
            }
            None => false,
        }
    }
}

impl Reader for Stream {
    fn take(&mut self, line: &str) -> bool {
        if line.starts_with("TAP version ") {
            // Nothing of the protocol can stand before its first line.
            return self.points == 0 && self.plan.is_none();
        }
        let indent = text::indent(line);
        if self.is_in_diagnostics(line, indent) {
            return true;
        }
        if line.starts_with("Bail out!") {
            self.bailed = true;
            return true;
        }
        if let Some(count) = plan(line) {
            let first = self.plan.is_none();
            self.plan = self.plan.or(Some(count));
            return first;
        }
        if self.ended() {
            return line.starts_with('#') || (indent > 0 && line.trim() == "---");
        }
        if line.trim() == "}" {
            self.open.pop();
        } else if let Some(point) = Point::read(line) {
            self.point(indent, &point);
        }
        true
    }

    fn ended(&self) -> bool {
        self.open.is_empty() && self.plan == Some(self.points) && !self.bailed
    }

    fn is_certain(&self) -> bool {
        self.plan.is_some() && self.numbered
    }

    fn finish(self: Box<Self>) -> Option<Part> {
        let mut part = Part::new(Runner::Tap);
        part.complete = self.ended();
        for leaf in self.leaves {
            let path: Vec<String> = leaf.path.into_iter().rev().collect();
            part.add(path.join(" > "), leaf.outcome);
        }
        part.count_names();
        (part.complete || !self.doubtful || !part.tests.is_empty()).then_some(part)
    }
}
