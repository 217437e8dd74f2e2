//! What an agent prints goes to files first: it never waits for us, and what it printed outlives us.

use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use segno_agents::ExitInfo;
use serde::Deserialize;
use serde::Serialize;

use crate::Error;

/// How much is read at once.
const CHUNK: usize = 256 * 1024;
/// Space is given back in pieces of this size, behind what is journaled.
const HOLE: u64 = 16 * 1024 * 1024;
/// Where it is written down how the process ended, if that cannot be recorded at once; and the room for it, which is
/// taken when there is some.
const EXIT: &str = "exit";
/// Where it is written down from where on the output is not journaled yet.
pub(super) const JOURNALED: &str = "journaled";
/// Where it is noted how far the output was read, and after how much more of it that is noted again.
pub(super) const READ: &str = "read";
const NOTED: u64 = 256 * 1024;
const EXIT_ROOM: usize = 256;
/// Largest note beside the capture.
const NOTE: u64 = 1024 * 1024;

/// What whoever takes the capture over must know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Note {
    /// The session.
    pub session: segno_core::SessionId,
    /// The run.
    pub run: segno_core::RunId,
    /// The agent's name.
    pub agent: String,
    /// How to read it, for one that is described in the configuration.
    pub plain: Option<segno_agents::plain::PlainConfig>,
    /// The conversation it was told to open.
    pub expected_native_id: Option<String>,
    /// Whether that conversation was there before.
    pub resumed: bool,
    /// Whether the end of the run completes the session.
    pub completes: bool,
    /// When it is stopped, as it was started. Earlier programs did not say.
    #[serde(default)]
    pub limits: Option<super::Limits>,
    /// What its processes may use.
    #[serde(default)]
    pub resources: super::resources::Resources,
    /// The control group of its processes.
    pub cgroup: Option<PathBuf>,
    /// Scratch space to be removed in the end.
    pub scratch: Option<PathBuf>,
    /// Where the store is that the run is recorded in.
    #[serde(default)]
    pub store: String,
    /// Which store that is, wherever it is kept. Earlier programs did not say.
    #[serde(default)]
    pub store_id: Option<segno_core::StoreId>,
    /// The driver's number.
    #[serde(default)]
    pub epoch: u64,
    /// Where the agent's own records are, if it has any that are followed.
    #[serde(default)]
    pub record: Option<super::log_beside::LogDirectory>,
    /// What its calls and tokens are taken from.
    #[serde(default)]
    pub source: super::log_beside::Source,
    /// For a run with a person at the agent's terminal: what tells of it.
    #[serde(default, rename = "attended")]
    pub interactive: Option<super::log_copy::InteractiveRun>,
    /// Who started it. Pids mean something only where that was.
    #[serde(default)]
    pub holder: Option<segno_core::event::Holder>,
    /// Nobody here started it: its hooks and its own log tell of it.
    #[serde(default)]
    pub watched: bool,
}

/// The files of one run.
#[derive(Debug)]
pub struct Capture {
    dir: PathBuf,
    stdout: File,
    offset: u64,
    noted: u64,
    progress: Option<File>,
    punched: u64,
    buffer: Vec<u8>,
    others: Vec<Arc<AtomicU64>>,
}

/// How long ago the last output of a run came that is kept here.
pub(super) fn quiet_at(dir: &Path) -> Option<std::time::Duration> {
    std::fs::metadata(dir.join("stdout")).ok()?.modified().ok()?.elapsed().ok()
}

/// Taken by whoever brings a dead run to its end, so that nobody else does it at the same time. Waits for who does.
/// None if there is nothing to be taken.
pub(super) fn alone_at(dir: &Path) -> Option<File> {
    let dir = File::open(dir).ok()?;
    dir.lock().ok().map(|()| dir)
}

/// Where a run's files are.
pub fn directory(captures: &Path, run: &segno_core::RunId) -> PathBuf {
    captures.join(run.as_str())
}

/// How far the output was read, about: whoever keeps it is not to be far ahead. Nothing is lost if it is not known.
pub(super) fn read_so_far(dir: &Path) -> u64 {
    number_in(&dir.join(READ)).unwrap_or(0)
}

fn number_in(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl Capture {
    /// New private files for a run.
    pub fn create(captures: &Path, note: &Note) -> Result<Self, Error> {
        let dir = directory(captures, &note.run);
        let fail = |why: std::io::Error| Error::file(&dir, why);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(fail)?;
        let make = |name: &str| {
            let path = dir.join(name);
            std::fs::OpenOptions::new().append(true).create_new(true).mode(0o600).open(path).map_err(fail)
        };
        make("stdout")?;
        make("stderr")?;
        make(EXIT)?.write_all(&[b' '; EXIT_ROOM]).map_err(fail)?;
        write_note(&dir, note)?;
        Self::at(dir.clone(), 0).map_err(fail)
    }

    /// The files of a run whose driver died, from where the journal has them.
    pub(super) fn reopen(dir: &Path) -> Result<Self, Error> {
        let start = number_in(&dir.join(JOURNALED)).unwrap_or(0);
        Self::at(dir.to_owned(), start).map_err(|why| Error::file(dir, why))
    }

    fn at(dir: PathBuf, offset: u64) -> std::io::Result<Self> {
        let stdout = File::options().read(true).write(true).open(dir.join("stdout"))?;
        // Without it an agent that prints much is slowed down, and that is all.
        let progress =
            File::options().write(true).create(true).truncate(false).mode(0o600).open(dir.join(READ)).ok();
        let (buffer, others) = (vec![0; CHUNK], Vec::new());
        Ok(Self { dir, stdout, offset, noted: 0, progress, punched: offset, buffer, others })
    }

    /// Where reading goes on.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How much has been kept in all.
    pub fn kept(&self) -> u64 {
        self.stdout.metadata().map_or(0, |meta| meta.len()).saturating_add(self.stderr_bytes())
    }

    /// Reads what has been printed since, in order; false when there is nothing new.
    pub fn read(&mut self, mut feed: impl FnMut(&[u8])) -> std::io::Result<bool> {
        self.stdout.seek(SeekFrom::Start(self.offset))?;
        let count = self.stdout.read(&mut self.buffer)?;
        self.offset += count as u64;
        self.note_progress();
        feed(&self.buffer[..count]);
        Ok(count > 0)
    }

    fn note_progress(&mut self) {
        if self.offset < self.noted.saturating_add(NOTED) {
            return;
        }
        self.noted = self.offset;
        if let Some(file) = &self.progress {
            // Always as long, so that nobody reads half of it.
            let _ = file.write_all_at(format!("{:020}", self.offset).as_bytes(), 0);
        }
    }

    /// Another reader of the same output, with the place where it says how far it got: what it has not read yet is
    /// kept.
    pub fn share(&mut self) -> std::io::Result<(File, Arc<AtomicU64>)> {
        let position = Arc::new(AtomicU64::new(self.offset));
        self.others.push(Arc::clone(&position));
        Ok((File::open(self.dir.join("stdout"))?, position))
    }

    /// How long ago the last output came.
    pub(super) fn quiet_for(&self) -> Option<std::time::Duration> {
        self.stdout.metadata().ok()?.modified().ok()?.elapsed().ok()
    }

    /// Gives back the space of what is journaled.
    pub fn release(&mut self, journaled: u64) {
        let read =
            self.others.iter().map(|position| position.load(Ordering::Acquire)).min().unwrap_or(u64::MAX);
        let journaled = journaled.min(read);
        if journaled < self.punched.saturating_add(HOLE) {
            return;
        }
        // Whoever takes over must not read zeros: where to start is written down first.
        // It has to outlive a power cut as well as the holes do.
        let position = self.dir.join(JOURNALED);
        if segno_files::replace(&position, journaled.to_string().as_bytes(), segno_files::Access::Private)
            .is_err()
        {
            return;
        }
        let end = journaled / 4096 * 4096;
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        // A file system without holes keeps the space until the run has ended.
        if rustix::fs::fallocate(&self.stdout, flags, self.punched, end.saturating_sub(self.punched)).is_ok()
        {
            self.punched = end;
        }
    }

    /// The last of what went to standard error, at most `most` bytes.
    pub fn stderr_tail(&self, most: u64) -> String {
        let tail = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(self.dir.join("stderr"))?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
            let mut bytes = Vec::new();
            file.take(most).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        String::from_utf8_lossy(&tail().unwrap_or_default()).into_owned()
    }

    /// How many bytes of standard error there are: a sign of life.
    pub fn stderr_bytes(&self) -> u64 {
        std::fs::metadata(self.dir.join("stderr")).map_or(0, |meta| meta.len())
    }

    /// Removes the files: everything in them is journaled.
    pub fn discard(self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }

    /// Where they are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Writes down how the process ended, for whoever ends the run later. Needs no more room on the disk.
pub(super) fn write_exit(dir: &Path, exit: &ExitInfo) {
    let exit = ExitInfo { stderr: None, ..exit.clone() };
    let Ok(mut text) = serde_json::to_vec(&exit) else { return };
    text.resize(EXIT_ROOM.max(text.len()), b' ');
    if let Ok(file) = File::options().write(true).open(dir.join(EXIT)) {
        let _ = file.write_all_at(&text, 0);
    }
}

/// Takes back that the process ended.
pub(super) fn clear_exit(dir: &Path) {
    if let Ok(file) = File::options().write(true).open(dir.join(EXIT)) {
        let _ = file.write_all_at(&[b' '; EXIT_ROOM], 0);
    }
}

/// How the process ended, if its driver wrote that down.
pub(super) fn read_exit(dir: &Path) -> Option<ExitInfo> {
    let mut text = Vec::new();
    File::open(dir.join(EXIT)).ok()?.take(NOTE).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Writes the note anew.
pub fn write_note(dir: &Path, note: &Note) -> Result<(), Error> {
    let text = serde_json::to_vec(note).map_err(|why| Error::file(dir, why))?;
    write_private(dir, "note.json", &text).map(|_| ())
}

/// Writes a file that only the user may read, whole or not at all.
pub fn write_private(dir: &Path, name: &str, content: &[u8]) -> Result<PathBuf, Error> {
    let fail = |why: std::io::Error| Error::file(dir, why);
    let path = dir.join(name);
    crate::files::replace_lazily(&path, content).map_err(fail)?;
    Ok(path)
}

/// The note, on the disk when this returns: after a power cut it is the old one or the new one, whole.
pub(super) fn write_note_durably(dir: &Path, note: &Note) -> Result<(), Error> {
    let text = serde_json::to_vec(note).map_err(|why| Error::file(dir, why))?;
    let path = dir.join("note.json");
    crate::files::replace(&path, &text, crate::files::Access::Private).map_err(|why| Error::file(&path, why))
}

/// The note beside a capture.
pub fn read_note(dir: &Path) -> Result<Note, Error> {
    let path = dir.join("note.json");
    let mut text = Vec::new();
    let file = File::open(&path).map_err(|why| Error::file(&path, why))?;
    file.take(NOTE).read_to_end(&mut text).map_err(|why| Error::file(&path, why))?;
    serde_json::from_slice(&text).map_err(|why| Error::file(&path, why))
}
