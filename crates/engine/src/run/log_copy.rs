//! The agent's own log of a conversation, copied into the capture while a person works at its terminal.
//!
//! The copy has one line after the other with a place for each, however many conversations the person opens, and it
//! stays when the agent removes its own. What was copied from where is written down before a byte of it is copied,
//! so whoever takes the run over goes on at the right place.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use segno_agents::Agent;
use segno_agents::ConversationLog;
use segno_agents::LogLocation;
use serde::Deserialize;
use serde::Serialize;

use super::capture;
use super::log_find::find;
use super::log_tail::CHUNK;
use super::log_tail::LogTail;
use super::tree::Tree;

/// How often it is looked whether the agent writes another record by now.
const LOOK: Duration = Duration::from_millis(250);
/// How much of a record is read to tell whose it is.
const HEAD: u64 = 1024 * 1024;
/// How much of what was copied last is compared with the record.
const COMPARED: u64 = 4_096;
/// The file with what was copied from where.
const PARTS: &str = "records.json";

/// What whoever follows the record must know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InteractiveRun {
    /// When the run began: what is older in the record is no part of it.
    pub since: String,
    /// The directory that the agent's records are in.
    pub records: Option<PathBuf>,
}

/// A piece of the copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    /// The record.
    path: PathBuf,
    /// Where in it the copy begins.
    start: u64,
    /// Where that is in the copy.
    at: u64,
    /// Where in the record its last whole line ended, when the agent turned to another one.
    left: Option<u64>,
}

/// Copies the record as it grows.
pub(super) struct LogCopy {
    log: &'static dyn ConversationLog,
    location: LogLocation,
    root: PathBuf,
    dir: PathBuf,
    copy: File,
    parts: Vec<Part>,
    source: Option<LogTail>,
    /// The process that has records open.
    holder: Option<u32>,
    looked: Option<Instant>,
    buffer: Vec<u8>,
}

impl LogCopy {
    /// Follows the record of an agent into the capture in `dir`, from where an earlier follower got. None if this
    /// agent has no record that can be followed.
    pub(super) fn open(agent: &dyn Agent, interactive: &InteractiveRun, dir: &Path) -> Option<Self> {
        let log = agent.conversation_log()?;
        let location = log.location()?;
        let root = interactive.records.clone()?;
        let mut copy = File::options().append(true).open(dir.join("stdout")).ok()?;
        let parts = std::fs::read(dir.join(PARTS)).ok();
        let parts: Vec<Part> =
            parts.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        if let Some(part) = parts.last() {
            end_line(&mut copy, part.at).ok()?;
        }
        // One that is shorter than it was by now was written anew.
        let from_start = |part: &Part| LogTail::open(&part.path, 0).ok();
        let source = parts
            .last()
            .and_then(|part| LogTail::open(&part.path, part.start).ok().or_else(|| from_start(part)));
        let dir = dir.to_owned();
        Some(Self {
            log,
            location,
            root,
            dir,
            copy,
            parts,
            source,
            holder: None,
            looked: None,
            buffer: vec![0; CHUNK],
        })
    }

    /// Copies what is new. `native_id` is the conversation as far as it is known, `tree` the agent's processes.
    pub(super) fn pump(&mut self, native_id: Option<&str>, tree: &Tree) -> std::io::Result<()> {
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            self.look(native_id, tree)?;
            self.mind_rewriting()?;
            self.looked = Some(Instant::now());
        }
        self.copy_news(1)
    }

    /// Copies all there is by now.
    pub(super) fn finish(&mut self, native_id: Option<&str>, tree: &Tree) -> std::io::Result<()> {
        self.look(native_id, tree)?;
        self.mind_rewriting()?;
        self.copy_news(usize::MAX)
    }

    /// Agents may write a record anew, and shorter.
    fn mind_rewriting(&mut self) -> std::io::Result<()> {
        if self.is_rewritten()? { self.copy_unknown_lines() } else { Ok(()) }
    }

    /// Whether the record does not hold any more what was copied of it last.
    fn is_rewritten(&mut self) -> std::io::Result<bool> {
        let (Some(source), Some(part)) = (&self.source, self.parts.last()) else { return Ok(false) };
        let length = self.copy.metadata()?.len();
        let copied = length.saturating_sub(part.at);
        if source.length()? < part.start + copied {
            return Ok(true);
        }
        let mut ours = vec![0; usize::try_from(copied.min(COMPARED)).unwrap_or(0)];
        let from = copied - ours.len() as u64;
        let mut theirs = ours.clone();
        File::open(self.dir.join("stdout"))?.read_exact_at(&mut ours, part.at + from)?;
        source.read_exact_at(part.start + from, &mut theirs)?;
        Ok(ours != theirs)
    }

    /// Takes what a record that was written anew says and the copy does not, line by line, and goes on at its end. Done
    /// twice it is done once: what was copied before is known.
    fn copy_unknown_lines(&mut self) -> std::io::Result<()> {
        let Some(path) = self.parts.last().map(|part| part.path.clone()) else { return Ok(()) };
        let mut known = HashSet::new();
        each_line(&self.dir.join("stdout"), |line| {
            known.insert(blake3::hash(line.trim_ascii_end()));
            Ok(())
        })?;
        let at = self.copy.metadata()?.len();
        let torn = torn(&self.dir.join("stdout"), 0, at)?;
        end_line(&mut self.copy, at + u64::from(torn > 0))?;
        let copy = &mut self.copy;
        let end = each_line(&path, |line| match line.ends_with(b"\n") {
            true if !known.contains(&blake3::hash(line.trim_ascii_end())) => copy.write_all(line),
            _ => Ok(()),
        })?;
        tracing::info!(record = %path.display(), "an agent's record was written anew");
        let at = self.copy.metadata()?.len();
        self.source = Some(LogTail::open(&path, end)?);
        self.parts.push(Part { path, start: end, at, left: None });
        self.write_parts()
    }

    fn write_parts(&self) -> std::io::Result<()> {
        let text = serde_json::to_vec(&self.parts)?;
        capture::write_private(&self.dir, PARTS, &text).map(drop).map_err(std::io::Error::other)
    }

    /// Turns to another record if the agent did.
    fn look(&mut self, native_id: Option<&str>, tree: &Tree) -> std::io::Result<()> {
        let current = self.parts.last().map(|part| part.path.clone());
        let name = current.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
        if self.location.kept_open
            && let Some(path) = self.opened(tree)
        {
            return self.turn_to(path);
        }
        let Some(id) = native_id else { return Ok(()) };
        // One that is kept open is found by that; its id is only needed for one that is opened late.
        if name.is_some_and(|name| self.location.is_of(name, id) || self.location.kept_open) {
            return Ok(());
        }
        match find(&self.location, &self.root, id) {
            Some(path) => self.turn_to(path),
            None => Ok(()),
        }
    }

    /// The record that the agent wrote to last, of those that it has open, if that is not the one followed now. An
    /// agent may keep the records of several conversations open.
    fn opened(&mut self, tree: &Tree) -> Option<PathBuf> {
        let found = self.holder.map(|pid| self.open_in(pid)).filter(|found| !found.is_empty());
        let found = found.or_else(|| {
            let mut members = tree.members().into_iter().map(|member| (member.pid, self.open_in(member.pid)));
            let (pid, found) = members.find(|(_, found)| !found.is_empty())?;
            self.holder = Some(pid);
            Some(found)
        })?;
        let written = |path: &PathBuf| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        let current = self.parts.last().map(|part| &part.path);
        let newest = found.into_iter().max_by_key(written)?;
        let is_news = current.is_none_or(|current| *current != newest && written(current) < written(&newest));
        (is_news && self.log.is_main(&head(&newest))).then_some(newest)
    }

    /// The records that a process has open.
    fn open_in(&self, pid: u32) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .filter(|path| {
                let name = path.file_name().and_then(|name| name.to_str());
                path.starts_with(&self.root) && name.is_some_and(|name| self.location.is_log(name))
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }

    fn turn_to(&mut self, path: PathBuf) -> std::io::Result<()> {
        self.copy_news(usize::MAX)?;
        let mut at = self.copy.metadata()?.len();
        if let Some(last) = self.parts.last_mut() {
            let torn = torn(&self.dir.join("stdout"), last.at, at)?;
            last.left = Some(last.start + at.saturating_sub(last.at + torn));
            // A line that is not finished must not run into the first one of the next record.
            at += u64::from(torn > 0);
        }
        // A conversation that the person comes back to goes on where it was left, with a whole line.
        let known = self.parts.iter().rev().find(|part| part.path == path);
        let start = known.and_then(|part| part.left).unwrap_or(0);
        let source = LogTail::open(&path, start)?;
        self.parts.push(Part { path, start, at, left: None });
        self.write_parts()?;
        end_line(&mut self.copy, at)?;
        self.source = Some(source);
        Ok(())
    }

    fn copy_news(&mut self, mut most: usize) -> std::io::Result<()> {
        let (Some(source), Some(part)) = (&mut self.source, self.parts.last()) else { return Ok(()) };
        while most > 0 {
            most -= 1;
            // What is in the copy already says how far the record was read, also after a write that failed half-way.
            let length = self.copy.metadata()?.len();
            let from = part.start + length.saturating_sub(part.at);
            let count = source.read_at(from, &mut self.buffer)?;
            if count == 0 {
                return Ok(());
            }
            self.copy.write_all(&self.buffer[..count])?;
        }
        Ok(())
    }
}

/// The log that is followed into a capture, how long it is and when it was last written; none if none was found yet.
pub(crate) fn followed_log(dir: &Path) -> Option<(PathBuf, u64, SystemTime)> {
    let parts: Vec<Part> = serde_json::from_slice(&std::fs::read(dir.join(PARTS)).ok()?).ok()?;
    let path = parts.last()?.path.clone();
    let meta = std::fs::metadata(&path).ok()?;
    Some((path, meta.len(), meta.modified().ok()?))
}

/// Hands out each line of a file; says where the last whole one ends.
fn each_line(path: &Path, mut take: impl FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<u64> {
    let mut reader = BufReader::new(File::open(path)?);
    let (mut line, mut end) = (Vec::new(), 0);
    loop {
        line.clear();
        let count = reader.read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(end);
        }
        if line.ends_with(b"\n") {
            end += count as u64;
        }
        take(&line)?;
    }
}

/// Ends the last line before a part that begins at a place, if that was not done yet.
fn end_line(copy: &mut File, at: u64) -> std::io::Result<()> {
    if copy.metadata()?.len() < at { copy.write_all(b"\n") } else { Ok(()) }
}

/// How many bytes of the copy between two places come after its last line feed there.
fn torn(copy: &Path, from: u64, to: u64) -> std::io::Result<u64> {
    let mut file = File::open(copy)?;
    let mut buffer = vec![0; CHUNK];
    let mut end = to;
    while end > from {
        let begin = end.saturating_sub(CHUNK as u64).max(from);
        let piece = &mut buffer[..usize::try_from(end - begin).unwrap_or(CHUNK)];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(piece)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(to - (begin + at as u64 + 1));
        }
        end = begin;
    }
    Ok(to - from)
}

/// The beginning of a record.
fn head(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // What cannot be read tells nothing.
        let _ = file.take(HEAD).read_to_end(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::tree::Member;
    use super::*;

    struct World {
        _dir: tempfile::TempDir,
        records: PathBuf,
        capture: PathBuf,
        tree: Tree,
        agent: Box<dyn Agent>,
    }

    fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let (records, capture) = (dir.path().join("projects"), dir.path().join("capture"));
        for path in [records.join("-work"), capture.clone()] {
            std::fs::create_dir_all(path).unwrap();
        }
        std::fs::write(capture.join("stdout"), "").unwrap();
        let none = segno_core::RunId::new(uuid::Uuid::nil());
        let tree = Tree::new(&none, Member { pid: u32::MAX, start: u64::MAX }, false, None);
        World { _dir: dir, records, capture, tree, agent: segno_agents::by_name("claude").unwrap() }
    }

    impl World {
        fn open(&self) -> LogCopy {
            let interactive = InteractiveRun { since: String::new(), records: Some(self.records.clone()) };
            LogCopy::open(self.agent.as_ref(), &interactive, &self.capture).unwrap()
        }

        fn write(&self, id: &str, text: &str) {
            let path = self.records.join(format!("-work/{id}.jsonl"));
            File::options().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
        }

        fn finish(&self, copy: &mut LogCopy, id: &str) -> String {
            copy.finish(Some(id), &self.tree).unwrap();
            std::fs::read_to_string(self.capture.join("stdout")).unwrap()
        }
    }

    #[test]
    fn it_goes_on_where_it_was() {
        let world = world();
        let mut copy = world.open();
        assert_eq!(world.finish(&mut copy, "a"), "", "there is no record yet");
        world.write("a", "a1\na2\nhal");
        assert_eq!(world.finish(&mut copy, "a"), "a1\na2\nhal");
        world.write("a", "f\n");
        // Another follower, after the first one died, goes on at the same byte.
        let mut copy = world.open();
        assert_eq!(world.finish(&mut copy, "a"), "a1\na2\nhalf\n");
        assert_eq!(world.finish(&mut copy, "a"), "a1\na2\nhalf\n");
    }

    #[test]
    fn another_conversation_and_back() {
        let world = world();
        let mut copy = world.open();
        world.write("a", "a1\nhal");
        world.finish(&mut copy, "a");
        world.write("b", "b1\n");
        assert_eq!(world.finish(&mut copy, "b"), "a1\nhal\nb1\n", "each line stays a line");
        world.write("a", "f\na3\n");
        let mut copy = world.open();
        assert_eq!(world.finish(&mut copy, "a"), "a1\nhal\nb1\nhalf\na3\n");
        world.write("b", "b2\n");
        assert_eq!(world.finish(&mut copy, "b"), "a1\nhal\nb1\nhalf\na3\nb2\n");
    }

    #[test]
    fn a_record_that_is_written_anew_and_shorter() {
        let world = world();
        let path = world.records.join("-work/a.jsonl");
        let mut copy = world.open();
        world.write("a", "a1\na2\na3\n");
        world.finish(&mut copy, "a");
        // Two lines fewer, and a new one.
        std::fs::write(&path, "a1\nb1\n").unwrap();
        assert_eq!(world.finish(&mut copy, "a"), "a1\na2\na3\nb1\n");
        world.write("a", "b2\n");
        assert_eq!(world.finish(&mut world.open(), "a"), "a1\na2\na3\nb1\nb2\n");
        // By the time somebody looks it may be as long as it was, or longer.
        std::fs::write(&path, "a1\nc1\nc2 is a long line\nc3\nhal").unwrap();
        assert_eq!(
            world.finish(&mut world.open(), "a"),
            "a1\na2\na3\nb1\nb2\nc1\nc2 is a long line\nc3\nhal"
        );
        world.write("a", "f\n");
        assert!(world.finish(&mut world.open(), "a").ends_with("c3\nhalf\n"));
    }
}
