//! The newest event of each session, noted apart from the database.
//!
//! SQLite leaves out the end of a log that does not fit its checksums, without a word: after a crash that is right, after
//! a flipped bit acknowledged events are gone. So every commit adds a line to a small file of its own, after the commit
//! is on the disk. The file is never ahead of the database, is believed by nobody but who looks for damage, and may be
//! lost without harm.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use segno_core::SessionId;

use super::open;

/// What the file is called.
const HEADS: &str = ".heads";
/// A longer file is written anew with one line for each session.
const LONG: u64 = 1024 * 1024;

/// Notes sessions' newest events; 0 for a session that was removed. Nothing depends on it, so an error is none.
pub(super) fn note(path: &Path, heads: &[(SessionId, u64)]) {
    if heads.is_empty() {
        return;
    }
    let mut text = String::new();
    for (session, seq) in heads {
        line(&mut text, *session, *seq);
    }
    // One write: lines of several processes do not mix.
    let _ =
        open::private_file(&open::beside(path, HEADS)).and_then(|mut file| file.write_all(text.as_bytes()));
}

fn line(text: &mut String, session: SessionId, seq: u64) {
    let what = format!("{session} {seq}");
    let _ = writeln!(text, "{what} {}", sum(&what));
}

fn sum(what: &str) -> String {
    blake3::hash(what.as_bytes()).to_hex().chars().take(8).collect()
}

/// What was noted. A line that is not what was written counts for nothing.
pub(super) fn read(path: &Path) -> BTreeMap<SessionId, u64> {
    let text = std::fs::read(open::beside(path, HEADS)).unwrap_or_default();
    let mut heads = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Some((what, found)) = std::str::from_utf8(line).ok().and_then(|line| line.rsplit_once(' '))
        else {
            continue;
        };
        let Some((session, seq)) = what.split_once(' ').filter(|_| sum(what) == found) else { continue };
        let (Ok(session), Ok(seq)) = (session.parse::<SessionId>(), seq.parse::<u64>()) else { continue };
        if seq == 0 {
            heads.remove(&session);
        } else {
            let newest = heads.entry(session).or_insert(seq);
            // Processes that commit one after the other may write their lines the other way round.
            *newest = seq.max(*newest);
        }
    }
    heads
}

/// Writes a long file anew. A line that another process adds meanwhile may be lost; the next one says more.
pub(super) fn shorten(path: &Path) {
    let file = open::beside(path, HEADS);
    if std::fs::metadata(&file).map_or(0, |meta| meta.len()) < LONG {
        return;
    }
    let mut text = String::new();
    for (session, seq) in read(path) {
        line(&mut text, session, seq);
    }
    let draft = open::beside(path, &format!("{HEADS}-{}", std::process::id()));
    let written = open::private_file(&draft).and_then(|mut file| file.write_all(text.as_bytes()));
    if written.is_err() || std::fs::rename(&draft, &file).is_err() {
        let _ = std::fs::remove_file(&draft);
    }
}
