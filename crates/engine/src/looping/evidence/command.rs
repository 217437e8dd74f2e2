//! Commands whose results say how the work stands: run in the project, watched, bounded, and cleaned up after.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::PipeReader;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Signal;
use segno_core::RunId;
use segno_redact::Redactor;

use crate::Error;
use crate::run::cgroup;
use crate::run::guard::Guard;
use crate::run::resources::Resources;
use crate::run::tree;
use crate::run::tree::Member;
use crate::run::tree::Tree;

/// How much of the beginning of what a command prints is kept.
pub const HEAD: usize = 256 * 1024;
/// How much of its end.
pub const TAIL: usize = 1024 * 1024;
/// How much more is looked at for secrets: one may begin before the cut and end behind it.
const CONTEXT: usize = 64 * 1024;
/// How long a command that is told to end may take to do so by itself.
const GRACE: Duration = Duration::from_millis(300);
/// How often it is looked whether somebody wants it to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How long the pipe may take to be empty after everybody who could write is gone.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A command to be run for what it shows.
#[derive(Clone, Debug)]
pub struct EvidenceCommand<'a> {
    /// What is given to the shell.
    pub command: &'a str,
    /// Where it runs.
    pub directory: &'a Path,
    /// The environment it inherits; what only concerns a run is taken out.
    pub environment: &'a [(OsString, OsString)],
    /// How long it may take.
    pub timeout: Duration,
    /// What its processes may use together.
    pub resources: Resources,
    /// Whether orphans come to this process, which does nothing else meanwhile.
    pub adopts: bool,
    /// The program that ends its processes if this one is killed; empty for none.
    pub guard: &'a [OsString],
}

/// Why a command was ended before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It took too long.
    TimedOut,
    /// Somebody wanted it to stop.
    Stopped,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its exit code, if it exited.
    pub exit: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Why it was cut short, if it was.
    pub cut: Option<Cut>,
    /// What it printed, both streams in the order in which they came, without secrets; a large middle is left out.
    pub output: String,
    /// How many bytes were left out.
    pub left_out: u64,
    /// How long it took.
    pub took: Duration,
    /// Processes that were still there afterwards and were ended.
    pub swept: u64,
}

impl Shown {
    /// Whether it says that all is well.
    pub fn passes(&self) -> bool {
        self.exit == Some(0) && self.cut.is_none()
    }

    /// Its end in a few words.
    pub fn words(&self) -> String {
        match (self.cut, self.exit, self.signal) {
            (Some(Cut::TimedOut), ..) => "took too long".to_owned(),
            (Some(Cut::Stopped), ..) => "was stopped".to_owned(),
            (None, Some(code), _) => format!("exit {code}"),
            (None, None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None, None) => "ended".to_owned(),
        }
    }
}

/// Variables that tell a process which run it is part of. A command that looks at the work is part of none.
pub(crate) const OF_A_RUN: &[&str] =
    &["SEGNO_SESSION", "SEGNO_RUN", "SEGNO_EPOCH", crate::run::HOOK, crate::run::hook_server::VARIABLE];

/// Runs a command to its end, or until its time is up, or until somebody wants it to stop. Whatever it started is ended
/// when this returns.
///
/// # Errors
/// If it cannot be started.
pub fn run_evidence(
    wanted: &EvidenceCommand<'_>,
    redactor: &Redactor,
    stops: &dyn Fn() -> bool,
) -> Result<Shown, Error> {
    let started = Instant::now();
    let failed =
        |why: std::io::Error| Error::NotLaunched { agent: "the shell".to_owned(), why: why.to_string() };
    let (out, into) = std::io::pipe().map_err(failed)?;
    rustix::io::ioctl_fionbio(&out, true).map_err(|why| failed(why.into()))?;
    let id = RunId::new(uuid::Uuid::now_v7());
    let mut guard = Guard::start(wanted.guard, &id);
    // The first of them runs before any agent: what it leaves behind may not get away either.
    let adopts = wanted.adopts && tree::adopt_orphans();
    let mut child = spawn(wanted, &id, into).map_err(failed)?;
    let member = tree::just_started(child.id());
    let group = cgroup::make(&id, &wanted.resources).filter(|group| cgroup::enter(group, child.id()));
    if let Some(guard) = &mut guard {
        guard.tell(member, group.as_ref());
    }
    let mut processes = Tree::new(&id, member, adopts, group);
    processes.spare(guard.as_ref().map(Guard::pid));
    let mut printed = Printed::default();
    let watched = watch(&mut child, member, &out, &mut printed, wanted.timeout, stops);
    // What is left may hold the pipe, and would go on behind our back.
    let swept = processes.sweep();
    if let Some(guard) = guard {
        guard.dismiss();
    }
    let ended = child.wait().ok();
    printed.read_rest(&out);
    let (cut, status) = match watched {
        Watched::Ended(status) => (None, Some(status)),
        Watched::Cut(cut) => (Some(cut), ended),
    };
    let (output, left_out) = printed.fit(redactor);
    Ok(Shown {
        exit: status.and_then(|status| status.code()).filter(|_| cut.is_none()),
        signal: status.and_then(|status| status.signal()).filter(|_| cut.is_none()),
        cut,
        output,
        left_out,
        took: started.elapsed(),
        swept,
    })
}

fn spawn(wanted: &EvidenceCommand<'_>, id: &RunId, into: std::io::PipeWriter) -> std::io::Result<Child> {
    let inherited = wanted.environment.iter().find(|(name, _)| name == tree::MARK);
    let mark = tree::mark(inherited.and_then(|(_, value)| value.to_str()), id);
    let kept = wanted.environment.iter().filter(|(name, _)| OF_A_RUN.iter().all(|own| name != own));
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", wanted.command])
        .current_dir(wanted.directory)
        .env_clear()
        .envs(kept.cloned())
        .env(tree::MARK, mark)
        .stdin(Stdio::null())
        .stdout(into.try_clone()?)
        .stderr(into)
        // Ctrl-C on our terminal is for us.
        .process_group(0);
    command.spawn()
}

enum Watched {
    Ended(ExitStatus),
    Cut(Cut),
}

/// Reads what it prints until it has ended. One that is cut short is told first, and given a moment.
fn watch(
    child: &mut Child,
    member: Member,
    out: &PipeReader,
    printed: &mut Printed,
    timeout: Duration,
    stops: &dyn Fn() -> bool,
) -> Watched {
    let begun = Instant::now();
    let mut looked: Option<Instant> = None;
    let mut cut: Option<(Cut, Instant)> = None;
    loop {
        let open = printed.read(out);
        match (child.try_wait(), cut) {
            (Ok(Some(status)), None) => return Watched::Ended(status),
            (Ok(Some(_)) | Err(_), Some((cut, _))) => return Watched::Cut(cut),
            (Ok(None), Some((cut, since))) if since.elapsed() >= GRACE => return Watched::Cut(cut),
            (Err(_), None) => return Watched::Cut(Cut::Stopped),
            (Ok(None), _) => {}
        }
        if cut.is_none() {
            let due = looked.is_none_or(|looked| looked.elapsed() >= LOOK);
            let why = match () {
                () if begun.elapsed() >= timeout => Some(Cut::TimedOut),
                () if due && stops() => Some(Cut::Stopped),
                () => None,
            };
            if due {
                looked = Some(Instant::now());
            }
            if let Some(why) = why {
                cut = Some((why, Instant::now()));
                if let Some(group) = tree::pid(member.pid) {
                    let _ = rustix::process::kill_process_group(group, Signal::TERM);
                }
            }
        }
        rest(out, open);
    }
}

/// Waits until there is something to read, or for a moment.
fn rest(out: &PipeReader, open: bool) {
    let moment = crate::run::REST;
    if !open {
        // Nobody writes any more; there is nothing to wake us but the end.
        std::thread::sleep(moment);
        return;
    }
    let mut fds = [rustix::event::PollFd::from_borrowed_fd(out.as_fd(), rustix::event::PollFlags::IN)];
    let patience = rustix::event::Timespec { tv_sec: 0, tv_nsec: moment.subsec_nanos().into() };
    let _ = rustix::event::poll(&mut fds, Some(&patience));
}

/// The beginning and the end of what was printed, however much it was.
#[derive(Default)]
struct Printed {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// How much went by between them.
    lost: u64,
}

impl Printed {
    /// Takes in what is there; false when nothing can come any more.
    fn read(&mut self, mut out: &PipeReader) -> bool {
        let mut buffer = [0_u8; 64 * 1024];
        loop {
            match out.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.take(&buffer[..count]),
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                Err(why) => return why.kind() == std::io::ErrorKind::WouldBlock,
            }
        }
    }

    /// What was printed last, after everybody who could print is gone.
    fn read_rest(&mut self, out: &PipeReader) {
        let until = Instant::now() + LAST_WORDS;
        while self.read(out) && Instant::now() < until {
            rest(out, true);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = (HEAD + CONTEXT).saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(TAIL + CONTEXT);
        self.tail.drain(..over);
        self.lost += over as u64;
    }

    /// What is shown of it, and how much is not. Secrets go first: what is cut off may be half of one.
    fn fit(self, redactor: &Redactor) -> (String, u64) {
        let Self { mut head, tail, lost } = self;
        let tail: Vec<u8> = tail.into();
        if lost == 0 {
            head.extend_from_slice(&tail);
            let whole = redactor.text(&String::from_utf8_lossy(&head)).into_owned();
            return shortened(&whole, &whole, 0);
        }
        let head = redactor.text(&String::from_utf8_lossy(&head)).into_owned();
        let tail = redactor.text(&String::from_utf8_lossy(&tail)).into_owned();
        shortened(&head, &tail, lost)
    }
}

/// Whole lines of the beginning and of the end. Both are the same text if nothing went by.
fn shortened(head: &str, tail: &str, lost: u64) -> (String, u64) {
    if lost == 0 && head.len() <= HEAD + TAIL {
        return (head.to_owned(), 0);
    }
    let first = &head[..head.floor_char_boundary(HEAD.min(head.len()))];
    let first = first.rfind('\n').map_or(first, |end| &first[..=end]);
    let last = &tail[tail.ceil_char_boundary(tail.len().saturating_sub(TAIL))..];
    let last = last.find('\n').map_or(last, |begin| &last[begin + 1..]);
    let between = match lost {
        0 => head.len() - first.len() - last.len(),
        _ => head.len() - first.len() + tail.len() - last.len(),
    };
    let left_out = lost + between as u64;
    (format!("{first}… {left_out} bytes are left out here …\n{last}"), left_out)
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
