//! `phase-status.log`: blocks between two marks, one after the other, never changed.

use std::fmt::Write as _;

use segno_core::Timestamp;

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
pub(super) struct Entry<'a> {
    pub at: Timestamp,
    pub phase: &'a str,
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
    pub blockers: Vec<String>,
    pub recommendation: String,
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

/// The log with one more block, unless its last one says the same already: the same phase, status and iteration, and, of
/// an iteration that was measured, the same results.
pub(super) fn with(log: &str, entry: &Entry<'_>, measured: bool) -> String {
    // Only the end of a long log needs to be looked at.
    let tail = log.rfind(BEGIN).map_or("", |at| &log[at..]);
    let same = blocks(tail).0.last().is_some_and(|block| block.is(entry));
    if same && (!measured || results(tail) == results(&entry.text())) {
        return log.to_owned();
    }
    added(log, entry)
}

/// The log with a block about a phase that was left, unless it is there already.
pub(super) fn with_left(log: &str, entry: &Entry<'_>) -> String {
    match blocks(log).0.iter().any(|block| block.is(entry)) {
        true => log.to_owned(),
        false => added(log, entry),
    }
}

fn added(log: &str, entry: &Entry<'_>) -> String {
    let mut log = log.to_owned();
    if log.len() > MOST {
        let half = log.len() / 2;
        let cut = log.as_bytes()[half..].windows(BEGIN.len()).position(|window| window == BEGIN.as_bytes());
        log.drain(..cut.map_or(log.len(), |cut| half + cut));
    }
    if !log.is_empty() {
        log.push_str(if log.ends_with('\n') { "\n" } else { "\n\n" });
    }
    log.push_str(&entry.text());
    log
}

/// The lines of a block that say how an iteration came out.
fn results(block: &str) -> Vec<&str> {
    const THEIRS: [&str; 10] = [
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

impl Block {
    fn is(&self, entry: &Entry<'_>) -> bool {
        (self.phase.as_str(), self.status.as_str(), self.iteration)
            == (entry.phase, entry.status, entry.iteration)
    }
}

impl Entry<'_> {
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
        let [created, modified, deleted] = self.files;
        writeln!(out, "FILES:\n  CREATED: {created}\n  MODIFIED: {modified}\n  DELETED: {deleted}")?;
        let (state, count) = &self.breaker;
        writeln!(out, "CIRCUIT_BREAKER:\n  STATE: {state}\n  NO_PROGRESS_COUNT: {count}")?;
        let [first, second, exit] = self.gate;
        writeln!(out, "DUAL_GATE:\n  GATE_1: {first}\n  GATE_2: {second}\n  CAN_EXIT: {exit}")?;
        let (made, limit) = self.hourly;
        let five = if self.at_limit { "DETECTED" } else { "OK" };
        writeln!(out, "RATE_LIMIT:\n  HOURLY: {made}/{limit}\n  5H_LIMIT: {five}")?;
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
