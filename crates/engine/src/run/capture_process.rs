//! What an agent prints goes through pipes to a capture process, which writes it to files.
//!
//! A file given to the agent itself could be taken back: whoever opens `/dev/stdout` for writing truncates it. A pipe
//! cannot. The capture process outlives the driver, so an agent whose driver died goes on
//! printing. It never drops anything: while there is no room for what is printed, the agent waits, and one that prints
//! faster than it can be recorded is slowed down. Whether it is still at work is told by a lock on the file, which it
//! inherits and which goes when it does.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::PipeReader;
use std::io::PipeWriter;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use super::capture::read_so_far;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;
/// More than this is not kept of standard error, and then only the last of it stays.
const ERRORS_MOST: u64 = 8 * 1024 * 1024;
const ERRORS_STAY: u64 = 1024 * 1024;
/// How long it waits before it tries again to write what there is no room for.
const RETRY: Duration = Duration::from_millis(100);
/// An agent that is further ahead of its driver than this is slowed down to a chunk in so long until that has caught up.
/// It is not stopped: its driver may be dead. What takes long to record is lines, a megabyte of short ones a hundred
/// megabytes; a few long ones slow nobody down. An agent that is about to end may not wait for what it has printed.
const AHEAD: u64 = 1024 * 1024;
const LINES_AHEAD: u64 = 4_000;
const ANY_AHEAD: u64 = 64 * 1024 * 1024;
const SLOWED: Duration = Duration::from_millis(100);
/// How often it is looked whether the driver has caught up.
const LOOK: Duration = Duration::from_millis(5);
/// When nothing came for so long though nobody is known to be left, somebody unknown holds the other end.
const IDLE: Duration = Duration::from_secs(2);

/// Keeps what an agent prints until all have closed their ends: `out` goes to `file`, `err` to the file of standard error
/// in `dir`.
pub fn keep_output(out: impl AsFd, file: impl AsFd, err: impl AsFd + Send, dir: &Path) {
    std::thread::scope(|scope| {
        scope.spawn(move || keep_errors(err, dir));
        // A keeper that takes over from one that died finds what that has kept.
        let kept = rustix::fs::fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        let mut printed = Printed { bytes: kept, ..Printed::default() };
        each(out, |bytes| {
            append(&file, bytes, dir);
            printed.take(bytes);
            slow_down(&mut printed, dir);
        });
    });
}

/// Waits for the driver, for a while, if it is far behind.
fn slow_down(printed: &mut Printed, dir: &Path) {
    if printed.bytes <= AHEAD {
        return;
    }
    let begun = Instant::now();
    while printed.is_far_ahead(read_so_far(dir)) && begun.elapsed() < SLOWED {
        std::thread::sleep(LOOK);
    }
}

/// What an agent has printed so far.
#[derive(Debug, Default)]
struct Printed {
    bytes: u64,
    lines: u64,
    /// How many lines there were after so many bytes, for what is not read yet: a mark for each chunk.
    marks: VecDeque<(u64, u64)>,
}

impl Printed {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let before = self.marks.iter().nth_back(1).map_or(0, |(bytes, _)| *bytes);
        if self.bytes - before <= CHUNK as u64 {
            self.marks.pop_back();
        }
        self.marks.push_back((self.bytes, self.lines));
    }

    /// Whether a driver that has read so much is too far behind.
    fn is_far_ahead(&mut self, read: u64) -> bool {
        while self.marks.get(1).is_some_and(|(bytes, _)| *bytes <= read) {
            self.marks.pop_front();
        }
        let known = self.marks.front().filter(|(bytes, _)| *bytes <= read).map_or(0, |(_, lines)| *lines);
        let ahead = self.bytes.saturating_sub(read);
        ahead > ANY_AHEAD || (ahead > AHEAD && self.lines - known > LINES_AHEAD)
    }
}

/// Reads to the end, piece by piece.
fn each(from: impl AsFd, mut take: impl FnMut(&[u8])) {
    let mut buffer = vec![0; CHUNK];
    loop {
        match rustix::io::read(&from, &mut buffer) {
            Ok(0) => return,
            Ok(count) => take(&buffer[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Writes all of it, however long that takes. While there is no room, that is told to whoever asks.
fn append(to: impl AsFd, mut bytes: &[u8], dir: &Path) {
    let mut waits = None;
    while !bytes.is_empty() {
        match rustix::io::write(&to, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => {
                waits = waits.or_else(|| tell_that_it_waits(dir));
                std::thread::sleep(RETRY);
            }
        }
    }
}

/// A lock needs no room on the disk. It goes with the file that is given back, or with the capture process.
fn tell_that_it_waits(dir: &Path) -> Option<File> {
    let file = File::open(dir.join("stderr")).ok()?;
    file.lock_shared().ok().map(|()| file)
}

/// Whether the capture process has something in hand for which there is no room.
fn waits_for_room(dir: &Path) -> bool {
    File::open(dir.join("stderr"))
        .is_ok_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// How much of what an agent printed is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// All, and nobody can print any more.
    All,
    /// All so far; somebody unknown holds the other end and could still print.
    SoFar,
    /// Not all: there is no room for what was printed last.
    NotYet,
}

fn keep_errors(from: impl AsFd, dir: &Path) {
    let file = File::options().read(true).append(true).create(true).open(dir.join("stderr"));
    let mut length = 0;
    each(from, |bytes| {
        let Ok(file) = &file else { return };
        append(file, bytes, dir);
        length += bytes.len() as u64;
        if length > ERRORS_MOST {
            length = shorten(file, dir).unwrap_or(0);
        }
    });
}

/// Leaves the last of a file.
fn shorten(file: &File, dir: &Path) -> std::io::Result<u64> {
    let length = file.metadata()?.len();
    let mut last = vec![0; usize::try_from(length.min(ERRORS_STAY)).unwrap_or(0)];
    file.read_exact_at(&mut last, length.saturating_sub(ERRORS_STAY))?;
    file.set_len(0)?;
    append(file, &last, dir);
    Ok(last.len() as u64)
}

/// The pipes of a run, seen from its driver.
pub(super) struct CaptureProcess {
    /// Held here too, so that an agent is not ended by a pipe that nobody reads if the capture process is killed.
    readers: [PipeReader; 2],
    command: Vec<OsString>,
    dir: PathBuf,
    process: Option<Child>,
    /// Since when the pipe was full of something, with how much had been kept then.
    waits: Option<(Instant, u64)>,
}

impl CaptureProcess {
    /// Starts the capture process. Answers with the ends for the agent. Without a command a thread of this process is the capture process,
    /// and then the agent cannot print any more when this process has ended.
    pub(super) fn start(command: &[OsString], dir: &Path) -> std::io::Result<(Self, PipeWriter, PipeWriter)> {
        let (out, to_out) = std::io::pipe()?;
        let (err, to_err) = std::io::pipe()?;
        let (command, dir) = (command.to_vec(), dir.to_owned());
        let mut capture = Self { readers: [out, err], command, dir, process: None, waits: None };
        capture.start_process()?;
        Ok((capture, to_out, to_err))
    }

    fn start_process(&mut self) -> std::io::Result<()> {
        let file = File::options().append(true).open(self.dir.join("stdout"))?;
        file.lock()?;
        let [out, err] = &self.readers;
        let (out, err) = (out.try_clone()?, err.try_clone()?);
        let Some((program, arguments)) = self.command.split_first() else {
            let dir = self.dir.clone();
            std::thread::spawn(move || keep_output(out, file, err, &dir));
            return Ok(());
        };
        let mut command = std::process::Command::new(program);
        command.args(arguments).arg(&self.dir).env_clear().current_dir("/").process_group(0);
        self.process = Some(command.stdin(out).stdout(file).stderr(Stdio::from(err)).spawn()?);
        Ok(())
    }

    /// Its pid.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Sees to it that there is a capture process. True when it has no room for what is printed. `kept` is how much it has kept.
    pub(super) fn tend(&mut self, kept: u64) -> bool {
        if let Some(process) = &mut self.process
            && let Ok(Some(status)) = process.try_wait()
        {
            self.process = None;
            // One that ended by itself has kept everything; one that was killed has not.
            if !status.success() {
                let _ = self.start_process();
            }
        }
        if self.unread() == 0 {
            self.waits = None;
            return false;
        }
        match self.waits {
            Some((since, before)) if before == kept => since.elapsed() >= IDLE,
            _ => {
                self.waits = Some((Instant::now(), kept));
                false
            }
        }
    }

    fn unread(&self) -> u64 {
        self.readers.iter().map(|reader| rustix::io::ioctl_fionread(reader).unwrap_or(0)).sum()
    }

    /// Waits until everything is kept, or it is known that it will not be.
    pub(super) fn finish(mut self, patience: Duration) -> Kept {
        let begun = Instant::now();
        let mut idle = Instant::now();
        while !is_kept(&self.dir) {
            let behind = self.unread() > 0 || waits_for_room(&self.dir);
            if behind {
                idle = Instant::now();
            }
            if idle.elapsed() >= IDLE || begun.elapsed() >= patience {
                return if behind { Kept::NotYet } else { Kept::SoFar };
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        if let Some(process) = &mut self.process {
            let _ = process.wait();
        }
        Kept::All
    }
}

/// Whether nobody keeps anything in these files any more.
pub(super) fn is_kept(dir: &Path) -> bool {
    match File::open(dir.join("stdout")) {
        Ok(file) => !matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)),
        Err(_) => true,
    }
}

/// Waits for the capture process of a run whose processes are gone, at most so long.
pub(super) fn wait_until_kept(dir: &Path, patience: Duration) -> Kept {
    let until = Instant::now() + patience;
    while !is_kept(dir) {
        if Instant::now() >= until {
            return if waits_for_room(dir) { Kept::NotYet } else { Kept::SoFar };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Kept::All
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_thread_keeps_everything_and_only_the_last_of_the_errors() {
        let dir = tempfile::tempdir().unwrap();
        File::create(dir.path().join("stdout")).unwrap();
        let (capture, mut out, mut err) = CaptureProcess::start(&[], dir.path()).unwrap();
        assert!(!is_kept(dir.path()));
        let line = [b'x'; 1000];
        for _ in 0..10_000 {
            err.write_all(&line).unwrap();
        }
        err.write_all(b"the end").unwrap();
        out.write_all(b"one\n").unwrap();
        drop((out, err));
        assert_eq!(capture.finish(Duration::from_secs(60)), Kept::All);
        assert_eq!(std::fs::read(dir.path().join("stdout")).unwrap(), b"one\n");
        let errors = std::fs::read(dir.path().join("stderr")).unwrap();
        assert!(errors.len() < 9_000_000 && errors.ends_with(b"the end"), "{}", errors.len());
    }

    #[test]
    fn who_prints_faster_than_it_is_read_is_slowed_down() {
        let far = u64::MAX.to_string();
        for read in [None, Some(far)] {
            let dir = tempfile::tempdir().unwrap();
            File::create(dir.path().join("stdout")).unwrap();
            if let Some(read) = &read {
                std::fs::write(dir.path().join(super::super::capture::READ), read).unwrap();
            }
            let (capture, mut out, err) = CaptureProcess::start(&[], dir.path()).unwrap();
            let chunk = b"yyyyyyy\n".repeat(CHUNK / 8);
            let begun = Instant::now();
            let ahead = AHEAD / CHUNK as u64;
            for _ in 0..ahead + 5 {
                out.write_all(&chunk).unwrap();
            }
            drop((out, err));
            assert_eq!(capture.finish(Duration::from_secs(60)), Kept::All);
            assert!(read.is_some() || begun.elapsed() >= 4 * SLOWED, "{:?}", begun.elapsed());
            let kept = std::fs::metadata(dir.path().join("stdout")).unwrap().len();
            assert_eq!(kept, AHEAD + 5 * CHUNK as u64, "and nothing of it is lost");
        }
    }

    #[test]
    fn many_lines_are_too_far_ahead_a_long_one_is_not() {
        let (short, long) = (b"short\n".repeat(10_000), vec![b'x'; 60_000]);
        let mut printed = Printed::default();
        for _ in 0..100 {
            printed.take(&long);
        }
        assert!(!printed.is_far_ahead(0), "6 MB of one line");
        for _ in 0..1_100 {
            printed.take(&long);
        }
        assert!(printed.is_far_ahead(0), "72 MB of one line");
        assert!(!printed.is_far_ahead(66_000_000));
        for _ in 0..20 {
            printed.take(&short);
        }
        assert!(printed.is_far_ahead(71_900_000), "1.3 MB ahead, 200,000 lines");
        assert!(!printed.is_far_ahead(72_900_000), "300 kB ahead");
        assert_eq!((printed.bytes, printed.lines), (73_200_000, 200_000));
        // However small the pieces are, a mark stands for a chunk.
        let mut printed = Printed::default();
        for _ in 0..100_000 {
            printed.take(b"a line of twenty by\n");
        }
        assert!(printed.marks.len() <= 2 + 2_000_000 / (CHUNK / 2), "{}", printed.marks.len());
        assert!(printed.is_far_ahead(900_000) && !printed.is_far_ahead(1_000_000));
    }

    #[test]
    fn somebody_who_keeps_an_end_holds_up_nobody_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        File::create(dir.path().join("stdout")).unwrap();
        let (capture, mut out, err) = CaptureProcess::start(&[], dir.path()).unwrap();
        out.write_all(b"one\n").unwrap();
        assert_eq!(capture.finish(Duration::from_secs(60)), Kept::SoFar);
        assert_eq!(std::fs::read(dir.path().join("stdout")).unwrap(), b"one\n");
        drop((out, err));
        assert_eq!(wait_until_kept(dir.path(), Duration::from_secs(60)), Kept::All);
    }
}
