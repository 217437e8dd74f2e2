//! Facts that the store could not take, kept in private files until the next command takes them in.
//!
//! A spooled fact is synced to disk before it is acknowledged. It carries its key, so taking it in twice is
//! harmless; what cannot be taken in is set apart and reported, never dropped.

mod line;

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use segno_core::Event;
use segno_core::EventKey;
use segno_core::FactEvent;
use segno_core::SessionId;
use segno_core::StoreId;
use segno_core::Timestamp;
use segno_redact::Redacted;
use segno_redact::Redactor;
use segno_store::Append;
use segno_store::What;

use crate::Engine;
use crate::Error;
use crate::fault::Guard;
use crate::fault::broken;
use crate::files::Access;
use crate::files::Draft;
use crate::watch::Beginning;
use line::Entry;
pub(crate) use line::Line;

/// Where spooled facts come from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// For which store; none if nobody could tell.
    pub store: Option<StoreId>,
    /// For which session.
    pub session: SessionId,
    /// Their key.
    pub key: EventKey,
    /// When they happened.
    pub at: Timestamp,
    /// The run they belong to.
    pub run: Option<String>,
    /// The driver's epoch they came with.
    pub epoch: Option<u64>,
    /// How the conversation began, if no store knows it yet.
    pub(crate) begins: Option<Box<Beginning>>,
}

/// What taking the spool in brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenIn {
    /// How many facts were taken in.
    pub facts: u64,
    /// How many files were left where they are: they are another store's, or only a newer segno can read them.
    pub left: u64,
    /// Files that were set apart, with the reason.
    pub set_apart: Vec<(PathBuf, String)>,
}

/// What became of one file.
enum Taken {
    /// So many facts were new.
    Facts(u64),
    /// It is not ours to take in.
    Left,
}

/// A fact that is fit for the record: all that a spool takes.
#[derive(Clone, Debug)]
pub struct FitFact(Redacted);

impl FitFact {
    /// Takes the secrets out of a fact.
    ///
    /// # Errors
    /// If it cannot be recorded.
    pub fn new(redactor: &Redactor, fact: FactEvent) -> Result<Self, Error> {
        redactor.record(fact.into_event()).map(Self).map_err(crate::engine::unrecordable)
    }
}

/// Keeps facts in a new file of the spool. They are on disk when this returns.
pub fn put(dir: &Path, origin: &Origin, facts: &[FitFact]) -> Result<(), Error> {
    let fail = |why: std::io::Error| Error::file(dir, why);
    crate::files::private_directory(dir).map_err(fail)?;
    let entries = facts
        .iter()
        .map(|FitFact(redacted)| Entry {
            kind: redacted.event().kind().to_owned(),
            version: redacted.event().version(),
            body: redacted.event().to_value(),
            blobs: redacted.blobs().iter().map(|blob| blob.content.clone()).collect(),
        })
        .collect();
    let line = Line {
        store: origin.store,
        session: origin.session,
        key: origin.key.clone(),
        at: origin.at,
        // A run that is none of ours is not worth losing the fact for.
        run: origin.run.as_deref().and_then(|run| run.parse().ok()),
        epoch: origin.epoch,
        begins: origin.begins.clone(),
        events: entries,
    };
    let text = line.to_bytes().map_err(|why| Error::file(dir, why))?;
    // Version 7 names sort by time, so facts are taken in in the order they happened.
    let name = uuid::Uuid::now_v7().simple().to_string();
    let mut draft = Draft::begin(&dir.join(format!("{name}.json")), Access::Private).map_err(fail)?;
    draft.file().write_all(&text).map_err(fail)?;
    draft.finish_new().map(drop).map_err(fail)
}

/// The files that wait in a spool, oldest first.
pub fn waiting(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files
}

impl Engine {
    /// Takes the spool in, if there is one. A store that is still busy leaves it where it is.
    pub fn take_in_spool(&self) -> Result<TakenIn, Error> {
        let mut taken = TakenIn::default();
        let Some(dir) = self.options.spool.clone().filter(|_| !self.is_copy()) else { return Ok(taken) };
        for path in waiting(&dir) {
            match self.take_in(&path) {
                Ok(Taken::Left) => taken.left += 1,
                Ok(Taken::Facts(facts)) => {
                    tracing::info!(file = %path.display(), facts, "spooled facts are taken in");
                    taken.facts += facts;
                    // It may be gone: another process took it in at the same time.
                    gone_or(std::fs::remove_file(&path)).map_err(|why| Error::file(&path, why))?;
                }
                // Another process took it in just now.
                Err(Error::File { .. }) if !path.exists() => {}
                Err(
                    Error::Store(
                        segno_store::Error::Busy { .. }
                        | segno_store::Error::Newer { .. }
                        | segno_store::Error::DriversAlive { .. }
                        | segno_store::Error::ReadOnly { .. },
                    )
                    | Error::WriteError { .. },
                ) => break,
                Err(why) => {
                    tracing::warn!(file = %path.display(), %why, "a spooled file is set apart");
                    if let Some(to) = set_apart(&dir, &path)? {
                        taken.set_apart.push((to, why.to_string()));
                    }
                }
            }
        }
        Ok(taken)
    }

    /// Whether facts are this store's to take in. Those of programs that knew no ids of stores are, if the session and
    /// the run that they name are in it.
    pub(crate) fn is_ours(&self, line: &Line) -> Result<bool, Error> {
        if let Some(store) = line.store {
            return Ok(store == self.store_id() || broken(Guard::Spool));
        }
        if let Some(beginning) = &line.begins {
            return Ok(self.is_beginning_ours(beginning));
        }
        let known = match &line.run {
            Some(run) => self.is_recorded(line.session, run.as_str()),
            None => self.load(line.session).map(|_| true),
        };
        match known {
            Err(Error::Store(segno_store::Error::NotFound(_)) | Error::SessionNotFound { .. }) => Ok(false),
            other => other,
        }
    }

    fn take_in(&self, path: &Path) -> Result<Taken, Error> {
        let corrupted = |why: String| Error::SessionCorrupted {
            session_id: "?".to_owned(),
            details: format!("{}: {why}", path.display()),
        };
        let text = std::fs::read(path).map_err(|why| Error::file(path, why))?;
        let line = Line::read(&text).map_err(corrupted)?;
        if !self.is_ours(&line)? {
            return Ok(Taken::Left);
        }
        let mut events = Vec::with_capacity(line.events.len());
        let mut late = Vec::with_capacity(line.events.len());
        for entry in line.events {
            let body = restore_blobs(entry.body, &entry.blobs).to_string();
            let event =
                Event::decode(&entry.kind, entry.version, &body).map_err(|why| corrupted(why.to_string()))?;
            if matches!(event, Event::Unknown(_)) {
                return Ok(Taken::Left);
            }
            let Some(fact) = FactEvent::new(event.clone()) else {
                return Err(corrupted(format!("{} is nothing that a spool may tell of", entry.kind)));
            };
            if let Some(epoch) = line.epoch {
                late.push(self.late(epoch, &event)?);
            }
            events.push(FitFact::new(&self.redactor(), fact).map_err(|why| corrupted(why.to_string()))?.0);
        }
        let facts = events.len() as u64;
        let (session, run) = match &line.begins {
            Some(beginning) => self.make_spooled(line.session, beginning)?,
            None => (line.session, line.run),
        };
        let append = Append {
            run: run.map(|run| run.to_string()),
            epoch: line.epoch,
            // Its driver may have been replaced while it waited here.
            if_late: line.epoch.map(|_| late),
            ..Append::new(session, line.key, line.at, What::Facts(events))
        };
        match self.store().append(vec![append]).pop() {
            Some(Ok(appended)) if appended.repeated => Ok(Taken::Facts(0)),
            Some(Ok(_)) => Ok(Taken::Facts(facts)),
            Some(Err(why)) => Err(why.into()),
            None => Ok(Taken::Facts(0)),
        }
    }
}

/// Moves a file that cannot be taken in where it is in nobody's way. None if another process did.
fn set_apart(dir: &Path, path: &Path) -> Result<Option<PathBuf>, Error> {
    let apart = dir.join("set-apart");
    crate::files::private_directory(&apart).map_err(|why| Error::file(&apart, why))?;
    let to = apart.join(path.file_name().unwrap_or_default());
    let there = !gone_or(std::fs::rename(path, &to)).map_err(|why| Error::file(path, why))?;
    Ok(there.then_some(to))
}

/// True if the file was gone already, which is as good.
fn gone_or(done: std::io::Result<()>) -> std::io::Result<bool> {
    match done {
        Ok(()) => Ok(false),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(why) => Err(why),
    }
}

/// Puts texts back in place of their references, so that recording sets them aside again.
fn restore_blobs(value: serde_json::Value, blobs: &[String]) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(members) if members.contains_key(segno_core::text::BLOB_MEMBER) => {
            let hash = members.get(segno_core::text::BLOB_MEMBER).and_then(Value::as_str).unwrap_or_default();
            let found = blobs.iter().find(|text| blake3::hash(text.as_bytes()).to_hex().as_str() == hash);
            let json = members.get("json").and_then(Value::as_bool).unwrap_or(false);
            match found {
                Some(text) if json => serde_json::from_str(text).unwrap_or(Value::Object(members)),
                Some(text) => Value::String(text.clone()),
                None => Value::Object(members),
            }
        }
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (name, restore_blobs(member, blobs))).collect()
        }
        Value::Array(items) => items.into_iter().map(|item| restore_blobs(item, blobs)).collect(),
        other => other,
    }
}
