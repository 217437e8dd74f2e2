//! The writer thread of a long-lived process: appends that arrive together are committed together.

use std::sync::mpsc;
use std::thread::JoinHandle;

use super::Direct;
use super::append;
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
    Append(Vec<Append>, mpsc::SyncSender<Results>),
    Other(Box<dyn FnOnce(&mut Direct) + Send>),
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
        let thread = std::thread::Builder::new()
            .name("segno-writer".to_owned())
            .spawn(move || work(&mut direct, &inbox))
            .map_err(|why| Error::Failed {
                location: location.clone(),
                what: format!("no thread to write with: {why}"),
                certainty: Certainty::NotWritten,
            })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), location })
    }

    pub(super) fn append(&self, batch: Vec<Append>) -> Results {
        self.append_soon(batch).wait()
    }

    pub(super) fn append_soon(&self, batch: Vec<Append>) -> Answer {
        let count = batch.len();
        let location = self.location.clone();
        let lost =
            move |certainty| -> Results { (0..count).map(|_| Err(gone(&location, certainty))).collect() };
        let (reply, answer) = mpsc::sync_channel(1);
        if self.send(Job::Append(batch, reply)).is_err() {
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
        // Closing the channel lets the thread finish what it has.
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

fn work(direct: &mut Direct, inbox: &mpsc::Receiver<Job>) {
    let mut kept: Option<Job> = None;
    loop {
        let job = match kept.take() {
            Some(job) => job,
            None => match inbox.recv() {
                Ok(job) => job,
                Err(_) => return,
            },
        };
        match job {
            Job::Other(run) => {
                guarded(direct, run);
            }
            Job::Append(batch, reply) => {
                let mut replies = vec![(batch.len(), reply)];
                let mut all = batch;
                // What has arrived meanwhile goes along; nothing is waited for.
                while all.len() < MOST {
                    match inbox.try_recv() {
                        Ok(Job::Append(more, reply)) => {
                            replies.push((more.len(), reply));
                            all.extend(more);
                        }
                        Ok(other) => {
                            kept = Some(other);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                let Some(results) = guarded(direct, |direct| append::append(direct, &mut all)) else {
                    continue;
                };
                let mut results = results.into_iter();
                for (count, reply) in replies {
                    let _ = reply.send(results.by_ref().take(count).collect());
                }
            }
        }
    }
}
