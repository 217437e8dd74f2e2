//! `node --test`, as it writes for people: a tree of marks, and at the end lines such as `ℹ pass 3`.

use super::Before;
use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;
use crate::text;

pub(crate) fn may_begin(line: &str, _: &Before) -> Option<Box<dyn Reader>> {
    let known = line.starts_with("▶ ") || marked(line).is_some() || count(line).is_some();
    known.then(|| {
        Box::new(Tree { part: Part::new(Runner::NodeTest), titles: Vec::new(), counts: [None; 6] }) as _
    })
}

const COUNTS: [&str; 6] = ["tests", "pass", "fail", "cancelled", "skipped", "todo"];

/// `ℹ pass 3` as the place in the list, and the number.
fn count(line: &str) -> Option<(usize, u64)> {
    let (what, count) = line.strip_prefix("ℹ ")?.split_once(' ')?;
    Some((COUNTS.iter().position(|name| *name == what)?, text::number(count)?))
}

/// `  ✔ adds (4.7ms)`.
fn marked(line: &str) -> Option<(Outcome, &str)> {
    let (mark, name) = line.trim_start().split_once(' ')?;
    let outcome = match mark {
        "✔" => Outcome::Passed,
        "✖" => Outcome::Failed,
        "﹣" => Outcome::Skipped,
        _ => return None,
    };
    // Why it was left out stands behind its time: before it, `#` is a part of the name.
    let timed = |name: &'_ str| text::without_time(name).len() < name.len();
    let reasons = name.match_indices(" # ").filter_map(|(at, _)| name.get(..at));
    let (name, outcome) = match reasons.into_iter().find(|name| timed(name)) {
        Some(name) => (name, Outcome::Skipped),
        None => (name, outcome),
    };
    timed(name).then(|| (outcome, text::without_time(name)))
}

struct Tree {
    part: Part,
    titles: Vec<(usize, String)>,
    counts: [Option<u64>; 6],
}

impl Reader for Tree {
    fn take(&mut self, line: &str) -> bool {
        if self.ended() {
            return false;
        }
        if let Some((index, number)) = count(line) {
            self.counts[index] = Some(number);
            return true;
        }
        let indent = text::indent(line);
        if let Some(title) = line.trim_start().strip_prefix("▶ ") {
            self.titles.retain(|(other, _)| *other < indent);
            if self.titles.len() < 64 {
                self.titles.push((indent, title.to_owned()));
            }
        } else if let Some((outcome, name)) = marked(line) {
            // A group is told once more when it ends.
            let group = self.titles.iter().any(|(other, title)| *other == indent && title == name);
            self.titles.retain(|(other, _)| *other < indent);
            if !group {
                let path: Vec<&str> =
                    self.titles.iter().map(|(_, title)| title.as_str()).chain([name]).collect();
                self.part.add(path.join(" > "), outcome);
            }
        }
        true
    }

    fn ended(&self) -> bool {
        self.counts.iter().all(Option::is_some)
    }

    fn finish(mut self: Box<Self>) -> Option<Part> {
        if let [Some(_), Some(pass), Some(fail), Some(cancelled), Some(skipped), Some(todo)] = self.counts {
            self.part.passed = pass;
            self.part.failed = fail.saturating_add(cancelled);
            self.part.skipped = skipped.saturating_add(todo);
            self.part.complete = true;
        }
        Some(self.part)
    }
}
