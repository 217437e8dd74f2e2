//! The writer thread of a long-lived process: appends that arrive together are committed together.

use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::Instant;

use super::Direct;
use super::append;
use super::turn::STUCK;
use super::turn::Turn;
use super::turn::Turns;
use crate::Error;
use crate::error::Certainty;
use crate::types::Answer;
use crate::types::Append;
use crate::types::Appended;

/// How many appends one transaction takes at most: bounds what a crash can undo and how long others wait.
const MOST: usize = 512;
/// How many jobs may wait before callers do.
const QUEUE: usize = 1_024;

type Results = Vec<Result<Appended, Error>>;

enum Job {
    Append(Batch),
    Other(Box<dyn FnOnce(&mut Direct) + Send>),
    /// The place of the first of those who are in no hurry, for whom this thread stood in the queue.
    Comes(Turn),
    End,
}

struct Batch {
    appends: Vec<Append>,
    /// Nobody holds anything up until it is written.
    is_patient: bool,
    reply: mpsc::SyncSender<Results>,
}

/// A thread that owns the writing connection.
pub(super) struct Writer {
    jobs: Option<mpsc::SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    location: String,
}

impl Writer {
    pub(super) fn start(mut direct: Direct) -> Result<Self, Error> {
        let location = direct.location.clone();
        let (jobs, inbox) = mpsc::sync_channel(QUEUE);
        let own = jobs.clone();
        let thread = std::thread::Builder::new()
            .name("segno-writer".to_owned())
            .spawn(move || {
                Work { direct: &mut direct, inbox, jobs: own, kept: None, is_queued: false }.work()
            })
            .map_err(|why| Error::Failed {
                location: location.clone(),
                what: format!("no thread to write with: {why}"),
                certainty: Certainty::NotWritten,
            })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), location })
    }

    pub(super) fn append(&self, batch: Vec<Append>) -> Results {
        self.give(batch, false).wait()
    }

    pub(super) fn append_soon(&self, batch: Vec<Append>) -> Answer {
        self.give(batch, true)
    }

    fn give(&self, batch: Vec<Append>, is_patient: bool) -> Answer {
        let count = batch.len();
        let location = self.location.clone();
        let lost =
            move |certainty| -> Results { (0..count).map(|_| Err(gone(&location, certainty))).collect() };
        let (reply, answer) = mpsc::sync_channel(1);
        if self.send(Job::Append(Batch { appends: batch, is_patient, reply })).is_err() {
            return Answer::new(move || lost(Certainty::NotWritten));
        }
        Answer::coming(answer, move || lost(Certainty::Unknown))
    }

    pub(super) fn run<T, F>(&self, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Direct) -> Result<T, Error> + Send + 'static,
    {
        let (reply, answer) = mpsc::sync_channel(1);
        let job = Job::Other(Box::new(move |direct| {
            // Nobody listens any more: then nobody misses the answer.
            let _ = reply.send(job(direct));
        }));
        self.send(job).map_err(|()| gone(&self.location, Certainty::NotWritten))?;
        answer.recv().unwrap_or_else(|_| Err(gone(&self.location, Certainty::Unknown)))
    }

    fn send(&self, job: Job) -> Result<(), ()> {
        self.jobs.as_ref().ok_or(())?.send(job).map_err(|_| ())
    }
}

fn gone(location: &str, certainty: Certainty) -> Error {
    Error::Failed { location: location.to_owned(), what: "the writer thread is gone".to_owned(), certainty }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread finishes what it has. It may be gone already.
        let _ = self.send(Job::End);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A job that panics (a decider may) fails alone: those that wait for it hear of it, the thread goes on.
fn guarded<T>(direct: &mut Direct, job: impl FnOnce(&mut Direct) -> T) -> Option<T> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(direct)));
    if done.is_err() {
        direct.invalidate_connection();
    }
    done.ok()
}

struct Work<'a> {
    direct: &'a mut Direct,
    inbox: mpsc::Receiver<Job>,
    /// For the thread that stands in the queue of those who are in no hurry.
    jobs: mpsc::SyncSender<Job>,
    /// What came and is not to be done yet.
    kept: Option<Job>,
    /// Somebody stands in that queue for us already.
    is_queued: bool,
}

/// What is written together.
struct Lot {
    appends: Vec<Append>,
    replies: Vec<(usize, mpsc::SyncSender<Results>)>,
    is_patient: bool,
}

impl Lot {
    fn take(&mut self, batch: Batch) {
        self.is_patient &= batch.is_patient;
        self.replies.push((batch.appends.len(), batch.reply));
        self.appends.extend(batch.appends);
    }
}

impl Work<'_> {
    fn work(mut self) {
        loop {
            let job = match self.kept.take() {
                Some(job) => job,
                None => match self.inbox.recv() {
                    Ok(job) => job,
                    Err(_) => return,
                },
            };
            match job {
                Job::Other(run) => {
                    guarded(self.direct, run);
                }
                // It came too late: somebody was in a hurry meanwhile. Others may have it.
                Job::Comes(_) => self.is_queued = false,
                Job::End => return,
                Job::Append(batch) => self.append(batch),
            }
        }
    }

    fn append(&mut self, batch: Batch) {
        let mut lot = Lot { appends: Vec::new(), replies: Vec::new(), is_patient: true };
        lot.take(batch);
        // What has arrived meanwhile goes along; nothing is waited for.
        while lot.appends.len() < MOST {
            match self.inbox.try_recv() {
                Ok(Job::Append(more)) => lot.take(more),
                Ok(Job::Comes(_)) => self.is_queued = false,
                Ok(other) => {
                    self.kept = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let began = Instant::now();
        let place = self.place(&mut lot, began);
        self.direct.stood(began.elapsed());
        let Lot { mut appends, replies, .. } = lot;
        let Some(results) = guarded(self.direct, |direct| append::append(direct, &mut appends)) else {
            return;
        };
        drop(place);
        let mut results = results.into_iter();
        for (count, reply) in replies {
            let _ = reply.send(results.by_ref().take(count).collect());
        }
    }

    /// Lets others go first whom somebody waits for, as long as nobody waits for us. What comes meanwhile goes along.
    fn place(&mut self, lot: &mut Lot, began: Instant) -> Option<Turn> {
        if !lot.is_patient || self.kept.is_some() {
            return None;
        }
        if let Some(place) = self.direct.turns.take_patient(&self.direct.path) {
            return Some(place);
        }
        if !self.is_queued {
            self.is_queued = true;
            let jobs = self.jobs.clone();
            Turns::queue_patiently(&self.direct.path, move |turn| drop(jobs.send(Job::Comes(turn))));
        }
        while lot.is_patient && lot.appends.len() < MOST {
            match self.inbox.recv_timeout(STUCK.saturating_sub(began.elapsed())) {
                Ok(Job::Comes(place)) => {
                    self.is_queued = false;
                    return Some(place);
                }
                Ok(Job::Append(more)) => lot.take(more),
                Ok(other) => {
                    self.kept = Some(other);
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.direct.turns.patient_is_stuck();
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        None
    }
}
