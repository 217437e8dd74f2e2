//! `phase-status.log`: blocks between two marks, one after the other, never changed.

use std::fmt::Write as _;

use segno_core::Timestamp;
use serde_json::Value;

use crate::fields::moment;

const BEGIN: &str = "---PRP_PHASE_STATUS---";
const END: &str = "---END_PRP_PHASE_STATUS---";

/// When the log is longer than this, its oldest blocks go.
const MOST: usize = 4 * 1024 * 1024;

/// What a block says, as far as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub at: Timestamp,
    pub phase: String,
    pub status: String,
    pub iteration: u64,
    pub progress: u64,
}

/// One block to be written.
pub(super) struct Entry {
    pub at: Timestamp,
    pub phase: &'static str,
    pub status: &'static str,
    pub iteration: u64,
    pub progress: u8,
    /// Total, passing, failing, skipped.
    pub tests: [u64; 4],
    /// Created, modified, deleted.
    pub files: [u64; 3],
    pub breaker: (String, u64),
    /// Both gates, and whether the phase may end.
    pub gate: [bool; 3],
    pub hourly: (u64, u64),
    pub at_limit: bool,
    /// What the review found; only in its phase.
    pub review: Option<Review>,
    /// Which review it is; only in its phase.
    pub attempt: Option<u64>,
    pub blockers: Vec<String>,
    pub recommendation: String,
}

/// What a review found, as far as it said so.
#[derive(Default)]
pub(super) struct Review {
    pub total: usize,
    pub passing: usize,
    pub blocking: Option<Value>,
    pub warnings: Option<Value>,
    pub verdict: Option<String>,
}

/// The blocks of a log, and what is wrong with others.
pub(super) fn blocks(text: &str) -> (Vec<Block>, Vec<String>) {
    let (mut blocks, mut warnings) = (Vec::new(), Vec::new());
    let mut rest = text;
    let mut number = 0;
    while let Some(begin) = rest.find(BEGIN) {
        number += 1;
        let inner = &rest[begin + BEGIN.len()..];
        let Some(end) = inner.find(END) else {
            warnings.push(format!("phase-status.log: block {number} has no end; left out"));
            break;
        };
        match block(&inner[..end]) {
            Some(block) => blocks.push(block),
            None => warnings.push(format!("phase-status.log: block {number} cannot be read; left out")),
        }
        rest = &inner[end + END.len()..];
    }
    (blocks, warnings)
}

fn block(text: &str) -> Option<Block> {
    let value = |name: &str| {
        let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    Some(Block {
        at: moment(&value("TIMESTAMP")?)?,
        phase: value("PHASE")?,
        status: value("STATUS")?,
        iteration: value("ITERATION")?.parse().ok()?,
        progress: value("PROGRESS_PERCENT").and_then(|percent| percent.parse().ok()).unwrap_or(0),
    })
}

/// Adds a block to a log, unless its last one says the same already.
pub(super) fn add(log: &mut String, entry: &Entry) {
    // Only the end of a long log needs to be looked at.
    let tail = log.rfind(BEGIN).map_or("", |at| &log[at..]);
    let text = entry.text();
    if results(tail) == results(&text) {
        return;
    }
    if log.len() > MOST {
        let half = log.len() / 2;
        let cut = log.as_bytes()[half..].windows(BEGIN.len()).position(|window| window == BEGIN.as_bytes());
        log.drain(..cut.map_or(log.len(), |cut| half + cut));
    }
    join(log, &text);
}

/// Puts one log behind another.
pub(super) fn join(log: &mut String, more: &str) {
    if !log.is_empty() && !more.is_empty() {
        log.push_str(if log.ends_with('\n') { "\n" } else { "\n\n" });
    }
    log.push_str(more);
}

/// The newest blocks of a log that are no longer than this together; where there is no such block, its end.
pub(super) fn newest(log: &str, most: usize) -> &str {
    let mut from = log.len().saturating_sub(most);
    while !log.is_char_boundary(from) {
        from += 1;
    }
    let cut = if from == 0 { Some(0) } else { log[from..].find(BEGIN).map(|at| from + at) };
    &log[cut.unwrap_or(from)..]
}

/// The lines of a block that say which iteration it is and how it came out.
fn results(block: &str) -> Vec<&str> {
    const THEIRS: [&str; 15] = [
        "PHASE:",
        "STATUS:",
        "ITERATION:",
        "VERDICT:",
        "ATTEMPT:",
        "  TOTAL:",
        "  PASSING:",
        "  FAILING:",
        "  SKIPPED:",
        "  STATE:",
        "  NO_PROGRESS_COUNT:",
        "  GATE_1:",
        "  GATE_2:",
        "  CAN_EXIT:",
        "  5H_LIMIT:",
    ];
    block.lines().filter(|line| THEIRS.iter().any(|name| line.starts_with(name))).collect()
}

impl Entry {
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "{BEGIN}")?;
        writeln!(out, "TIMESTAMP: {}", self.at)?;
        writeln!(out, "PHASE: {}", self.phase)?;
        writeln!(out, "STATUS: {}", self.status)?;
        writeln!(out, "ITERATION: {}", self.iteration)?;
        writeln!(out, "PROGRESS_PERCENT: {}", self.progress)?;
        let [total, passing, failing, skipped] = self.tests;
        writeln!(
            out,
            "TESTS:\n  TOTAL: {total}\n  PASSING: {passing}\n  FAILING: {failing}\n  SKIPPED: {skipped}"
        )?;
        if let Some(review) = &self.review {
            let shown = |number: &Option<Value>| number.as_ref().map_or("0".to_owned(), Value::to_string);
            writeln!(
                out,
                "QA_METRICS:\n  CHECKS_TOTAL: {}\n  CHECKS_PASSING: {}",
                review.total, review.passing
            )?;
            writeln!(out, "  CHECKS_FAILING: {}", review.total - review.passing)?;
            writeln!(out, "  BLOCKING_ISSUES: {}", shown(&review.blocking))?;
            writeln!(out, "  WARNING_ISSUES: {}", shown(&review.warnings))?;
        }
        let [created, modified, deleted] = self.files;
        writeln!(out, "FILES:\n  CREATED: {created}\n  MODIFIED: {modified}\n  DELETED: {deleted}")?;
        let (state, count) = &self.breaker;
        writeln!(out, "CIRCUIT_BREAKER:\n  STATE: {state}\n  NO_PROGRESS_COUNT: {count}")?;
        let [first, second, exit] = self.gate;
        writeln!(out, "DUAL_GATE:\n  GATE_1: {first}\n  GATE_2: {second}\n  CAN_EXIT: {exit}")?;
        let (made, limit) = self.hourly;
        let five = if self.at_limit { "DETECTED" } else { "OK" };
        writeln!(out, "RATE_LIMIT:\n  HOURLY: {made}/{limit}\n  5H_LIMIT: {five}")?;
        if let Some(review) = &self.review {
            writeln!(out, "VERDICT: {}", one_line(review.verdict.as_deref().unwrap_or("none")))?;
        }
        if let Some(attempt) = self.attempt {
            writeln!(out, "ATTEMPT: {attempt}")?;
        }
        writeln!(out, "BLOCKERS:")?;
        if self.blockers.is_empty() {
            writeln!(out, "  - none")?;
        }
        for blocker in &self.blockers {
            writeln!(out, "  - {}", one_line(blocker))?;
        }
        writeln!(out, "EXIT_SIGNAL: {second}")?;
        writeln!(out, "RECOMMENDATION: {}", one_line(&self.recommendation))?;
        writeln!(out, "{END}")
    }
}

fn one_line(text: &str) -> String {
    crate::found::line(text.to_owned()).replace("---", "- - -")
}
