//! Who writes next.
//!
//! SQLite lets in whoever asks at the right moment, and those who wait ask again and again. So writers take turns at a file
//! beside the database before they ask: the kernel wakes them one by one in the order in which they came, and lets go for
//! one that dies. The turn is a courtesy. What keeps the database whole is SQLite's own lock, which everybody takes as
//! well: a program that knows no turns, a file that cannot be had and a holder that is stopped cost time and nothing else.
//!
//! Those who are in no hurry stand in a queue of their own first, and only its first one asks for a turn: whoever is waited
//! for has at most one of them before it.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use std::time::Instant;

use super::busy;
use super::open;

/// The file at which turns are taken.
pub(super) const TURN: &str = ".turn";
/// The file at which those stand who are in no hurry.
const PATIENT: &str = ".turn-patient";
/// While nobody's turn comes for so long, its holder counts as stopped, and is waited for no longer.
pub(super) const STUCK: Duration = Duration::from_secs(1);
/// How often it is looked at whether to wait on.
const LOOK: Duration = Duration::from_millis(50);

/// A place at the head of a queue; dropping it lets go.
#[derive(Debug)]
pub(super) struct Turn {
    file: Option<File>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Closing it would do, were it not for a child that is just being started and has it open too.
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
    }
}

/// What a connection remembers of turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The holder was stopped when it was last waited for: until a turn can be had at once, nobody waits for one.
    stuck: Cell<bool>,
    /// The same of those who are in no hurry.
    patient_stuck: Cell<bool>,
}

impl Turns {
    /// Waits for the turn, at most as long as this thread waits for other writers, or until its holder seems stopped. Then
    /// nobody has it, and SQLite decides.
    pub(super) fn take(&self, path: &Path) -> Turn {
        let Some(file) = lock_file(path, TURN) else { return Turn { file: None } };
        if file.try_lock().is_ok() {
            self.stuck.set(false);
            return Turn::begun(file);
        }
        if self.stuck.get() {
            return Turn { file: None };
        }
        let began = Instant::now();
        let taken = self.wait(path, &file, began);
        busy::add_waited(began.elapsed());
        taken.map_or(Turn { file: None }, Turn::begun)
    }

    /// The turn if nobody has it and nobody waits for it.
    pub(super) fn take_idle(path: &Path) -> Option<Turn> {
        match lock_file(path, TURN) {
            None => Some(Turn { file: None }),
            Some(file) => file.try_lock().is_ok().then(|| Turn::begun(file)),
        }
    }

    fn wait(&self, path: &Path, seen: &File, began: Instant) -> Option<File> {
        let (mut number, mut changed) = (number(seen), began);
        let (comes, come) = mpsc::sync_channel::<File>(0);
        queue(path, TURN, move |file| drop(comes.send(file)))?;
        loop {
            match come.recv_timeout(LOOK) {
                Ok(file) => return Some(file),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = self::number(seen);
            if now != number {
                (number, changed) = (now, Instant::now());
            }
            if changed.elapsed() >= STUCK {
                self.stuck.set(true);
                return None;
            }
            if busy::left(busy::waited() + began.elapsed()).is_zero() {
                return None;
            }
        }
    }

    /// The place of the first of those who are in no hurry, if it is free; nobody stands there where that cannot be had.
    pub(super) fn take_patient(&self, path: &Path) -> Option<Turn> {
        let Some(file) = lock_file(path, PATIENT) else { return Some(Turn { file: None }) };
        if file.try_lock().is_ok() {
            self.patient_stuck.set(false);
            return Some(Turn { file: Some(file) });
        }
        self.patient_stuck.get().then_some(Turn { file: None })
    }

    /// The one who has it seems stopped.
    pub(super) fn patient_is_stuck(&self) {
        self.patient_stuck.set(true);
    }

    /// Stands in that queue beside the caller, who is told. If nobody can, nobody is told.
    pub(super) fn queue_patiently(path: &Path, tell: impl FnOnce(Turn) + Send + 'static) {
        let _ = queue(path, PATIENT, move |file| tell(Turn { file: Some(file) }));
    }
}

impl Turn {
    /// Those who wait see by the number that turns come and go.
    fn begun(file: File) -> Self {
        let _ = file.write_all_at(&number(&file).wrapping_add(1).to_ne_bytes(), 0);
        Self { file: Some(file) }
    }
}

/// The kernel's queue has no bell: a thread stands in it for whoever waits. If that one has gone, it lets go at once.
fn queue(path: &Path, name: &'static str, tell: impl FnOnce(File) + Send + 'static) -> Option<()> {
    let path = path.to_owned();
    let thread = std::thread::Builder::new().name("segno-turn".to_owned()).spawn(move || {
        if let Some(file) = lock_file(&path, name)
            && file.lock().is_ok()
        {
            tell(file);
        }
    });
    thread.ok().map(drop)
}

fn number(file: &File) -> u64 {
    let mut bytes = [0; 8];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => u64::from_ne_bytes(bytes),
        Err(_) => 0,
    }
}

/// The file of a queue, made if it is not there. Anything else in its place is left alone, and there is no queue.
fn lock_file(path: &Path, name: &str) -> Option<File> {
    let path = open::beside(path, name);
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let mut options = File::options();
    options.read(true).write(true).mode(0o600).custom_flags(flags.cast_signed());
    // One that cannot be written can be waited for all the same.
    let opened = options.clone().create(true).open(&path).or_else(|_| options.write(false).open(&path));
    let file = opened.ok()?;
    let meta = file.metadata().ok()?;
    (meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw()).then_some(file)
}
