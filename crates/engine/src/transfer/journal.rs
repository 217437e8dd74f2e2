//! Taking in a whole journal: every event with its number, key, time and hash, and the texts they refer to.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use segno_core::Refusal;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::event::InterruptReason;
use segno_core::event::JournalImported;
use segno_core::event::SessionInterrupted;
use segno_redact::Redactor;
use segno_store::Piece;
use segno_store::Restore;
use segno_store::RestoredEvent;

use super::document;
use super::document::Entry;
use super::document::ExportedRow;
use super::document::Listener;
use super::document::ReadError;
use super::exported::Journal;
use super::import::Imported;
use super::import::Options;
use super::packed::Source;
use crate::Engine;
use crate::Error;

/// Longest name of a run. Ours have 32 digits.
const RUN: usize = 64;

pub(super) fn restore(
    engine: &Engine,
    source: &Source,
    there: State,
    journal: Journal,
    options: &Options,
    mut notices: Vec<String>,
) -> Result<Imported, Error> {
    let wish = there.session_id;
    let missing = journal.missing;
    let (budget, cost) = super::import::caps((there.budget, there.cost), options, &mut notices);
    let project = options.project.clone().unwrap_or_else(|| there.project.clone());
    let redacted = Arc::new(AtomicU64::new(0));
    let pieces = {
        let (source, redactor) = (source.clone(), engine.redactor());
        let redacted = Arc::clone(&redacted);
        Box::new(move |take: &mut dyn FnMut(Piece) -> Result<(), segno_store::Error>| {
            feed(&source, &redactor, &journal, &redacted, take).map_err(|why| match why {
                Stop::Store(why) => why,
                Stop::Document(what) => segno_store::Error::SessionDamaged { session: wish, what },
            })
        })
    };
    let check = {
        let now = engine.now();
        Box::new(move |state: &State| {
            run_name(state.run.as_ref().map(|run| run.id.as_str()))?;
            super::check::check(state, now)
        })
    };
    let last = {
        let (redactor, redacted) = (engine.redactor(), Arc::clone(&redacted));
        let source = options.source.clone();
        Box::new(move |id: SessionId, state: &State| {
            let imported = JournalImported {
                id,
                renamed_from: (state.session_id != id).then_some(state.session_id),
                source,
                project,
                budget,
                cost,
                redacted: redacted.load(Ordering::Relaxed),
            };
            let worked_on = state.driver.is_some() || state.run.as_ref().is_some_and(|run| run.is_running());
            let interrupted = (worked_on && state.status == Status::Active).then(|| {
                let details = Some("it was being worked on when it was exported".into());
                SessionInterrupted { reason: InterruptReason::Unknown, details, at: Some(state.updated_at) }
                    .into()
            });
            std::iter::once(imported.into())
                .chain(interrupted)
                .map(|event| crate::engine::record(&redactor, event))
                .collect::<Result<Vec<_>, Refusal>>()
        })
    };
    let key = crate::fresh_key();
    let restore = Restore { uid: there.uid, wish, pieces, check, last, key, at: engine.now() };
    let loaded = engine.store().restore(restore).map_err(|why| match why {
        segno_store::Error::AlreadyOpen(known) => {
            Error::NotImportable(format!("{} is in this store already, as {known}", options.source))
        }
        segno_store::Error::SessionDamaged { what, .. } => {
            Error::SessionCorrupted { session_id: options.source.clone(), details: what }
        }
        other => other.into(),
    })?;
    if loaded.state.session_id != wish {
        notices.push(format!("the name {wish} was taken, so it is {} here", loaded.state.session_id));
    }
    let redacted = redacted.load(Ordering::Relaxed);
    if redacted > 0 {
        notices.push(format!(
            "{redacted} of its events held a secret, which was taken out; their hashes are new"
        ));
    }
    if missing > 0 {
        notices.push(format!("{missing} of its long texts were not in the file; their beginnings are there"));
    }
    Ok(Imported { state: loaded.state, notices })
}

/// Why the feeding ended.
enum Stop {
    Store(segno_store::Error),
    Document(String),
}

/// Reads the file once more and hands on what belongs to the journal.
fn feed(
    source: &Source,
    redactor: &Redactor,
    journal: &Journal,
    redacted: &AtomicU64,
    take: &mut dyn FnMut(Piece) -> Result<(), segno_store::Error>,
) -> Result<(), Stop> {
    let file = source.open().map_err(|why| Stop::Document(why.to_string()))?;
    let mut feeder = Feeder { redactor, journal, redacted, take, failed: None };
    let read = document::read(file, &mut feeder);
    match (feeder.failed, read) {
        (Some(why), _) => Err(Stop::Store(why)),
        (None, Ok(())) => Ok(()),
        (None, Err(ReadError::Bad(why))) => Err(Stop::Document(why)),
        (None, Err(ReadError::Foreign | ReadError::Form(_))) => {
            Err(Stop::Document("it changed while it was read".to_owned()))
        }
    }
}

struct Feeder<'a> {
    redactor: &'a Redactor,
    journal: &'a Journal,
    redacted: &'a AtomicU64,
    take: &'a mut dyn FnMut(Piece) -> Result<(), segno_store::Error>,
    failed: Option<segno_store::Error>,
}

impl Feeder<'_> {
    fn give(&mut self, piece: Piece) -> Result<(), String> {
        (self.take)(piece).map_err(|why| {
            let said = why.to_string();
            self.failed = Some(why);
            said
        })
    }
}

impl Listener for Feeder<'_> {
    fn session(&mut self, _: State) -> Result<(), String> {
        Ok(())
    }

    fn row(&mut self, _: &str, _: usize, _: ExportedRow) -> Result<(), String> {
        // Rows follow from events.
        Ok(())
    }

    fn entry(&mut self, entry: Entry) -> Result<(), String> {
        let Entry::Event(event) = entry else { return Err("it changed while it was read".to_owned()) };
        let bad = |why: String| format!("event {}: {why}", event.seq);
        run_name(event.run.as_deref()).map_err(bad)?;
        let (recorded, changed) = self
            .redactor
            .record_again(&event.kind, event.version, event.body.get(), &self.journal.renamed)
            .map_err(|why| bad(why.to_string()))?;
        self.redacted.fetch_add(u64::from(changed), Ordering::Relaxed);
        let key = event.key.parse().map_err(|why: segno_core::id::BadId| bad(why.to_string()))?;
        let sealed = event.seal.as_ref().and(event.hash.as_ref());
        let forgotten = sealed.and_then(|hash| crate::engine::parse_hash(hash));
        let (at, run, epoch) = (event.at, event.run, event.epoch);
        self.give(Piece::Event(RestoredEvent { key, at, run, epoch, event: recorded, forgotten }))
    }

    fn text(&mut self, _: &str, text: String) -> Result<(), String> {
        let (blob, _) = self.redactor.text_again(text);
        self.give(Piece::Text(blob))
    }
}

/// A run's name becomes the name of a directory: it must be nothing else.
fn run_name(run: Option<&str>) -> Result<(), String> {
    let fits = |run: &str| {
        !run.is_empty()
            && run.len() <= RUN
            && !run.starts_with('.')
            && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    match run {
        Some(run) if !fits(run) => Err("the name of its run is none".to_owned()),
        _ => Ok(()),
    }
}
