//! Hands sessions that have ended to a memory outside: each once, without secrets.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use segno_core::Fact;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::Text;
use segno_core::rows::ArtifactRow;
use segno_core::rows::DecisionRow;
use segno_core::rows::ErrorRow;
use segno_core::rows::MemoryRow;
use segno_store::EventRow;
use segno_store::Filter;
use segno_store::Page;
use serde_json::Value;
use serde_json::json;

use crate::Engine;
use crate::Error;
use crate::file_lock::wait_for_lock;

/// How far back in a journal it is looked whether a session was handed over. Little is recorded after its end.
const TAIL: u64 = 2_000;
/// The newest entries of each list that are handed over.
const HANDED: usize = 200;
/// What the record of a hand-over is called.
const SYNCED: &str = "memory_synced";
/// How long the command may take for one session.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(10);
/// How long another who hands something over is waited for: longer than it may take for one session.
const TURN: Duration = Duration::from_secs(90);

/// What became of a session that was to be handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handing {
    /// The program has it now, and that is remembered.
    Taken,
    /// Somebody else has handed it over meanwhile.
    TakenBefore,
    /// The program did not take it, for this reason; nothing is remembered.
    Refused(String),
}

/// Who takes sessions: a program that reads one from its standard input, and ends with 0 when it has it.
pub struct MemoryCommand<'a> {
    /// The program and its arguments.
    pub words: &'a [String],
    /// Its environment.
    pub environment: &'a [(OsString, OsString)],
    /// Where it runs.
    pub directory: &'a Path,
}

impl Engine {
    /// The sessions that have ended and were not yet handed to this bank, the oldest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn sessions_to_sync(&self, bank: &str) -> Result<Vec<SessionId>, Error> {
        let statuses = vec![Status::Completed, Status::Aborted, Status::Failed];
        let mut ended = self.list(&Filter { statuses, ..Filter::default() })?;
        ended.reverse();
        let mut wanted = Vec::new();
        for session in ended {
            if !self.is_synced(session.session_id, session.seq, bank)? {
                wanted.push(session.session_id);
            }
        }
        Ok(wanted)
    }

    fn is_synced(&self, session: SessionId, seq: u64, bank: &str) -> Result<bool, Error> {
        let limit = usize::try_from(TAIL).unwrap_or(usize::MAX);
        let events = self.events(session, seq.saturating_sub(TAIL), limit)?;
        Ok(events.iter().any(|row| match row {
            EventRow::Whole(stored) => match stored.event() {
                Ok(segno_core::Event::Reported(told)) => told.what == SYNCED && told.body["bank"] == bank,
                _ => false,
            },
            EventRow::Damaged { .. } => false,
        }))
    }

    /// Remembers that a session was handed to this bank.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn note_synced(&self, session: SessionId, bank: &str) -> Result<(), Error> {
        let fact = Fact::Reported { what: SYNCED.to_owned(), body: json!({ "bank": bank }) };
        self.act(session, fact)?;
        Ok(())
    }

    /// A session as a memory outside gets it: what it was about, what was decided, made, asked and went wrong. All of it
    /// comes from the record, which holds no secrets.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub fn memory_document(&self, session: SessionId) -> Result<Value, Error> {
        self.note_memory(session)?;
        let state = self.load(session)?.state;
        let text = |text: &Option<Text>| text.as_ref().map(|text| text.excerpt().to_owned());
        let decisions = self.newest(session, |row: DecisionRow| {
            json!({ "question": text(&row.question), "choice": text(&row.choice), "because": text(&row.reason) })
        })?;
        let memory = self.newest(session, |row: MemoryRow| {
            json!({ "usage": row.usage, "source": row.source, "query": text(&row.query), "result": text(&row.result) })
        })?;
        let errors = self.newest(session, |row: ErrorRow| json!({ "message": text(&row.message) }))?;
        let artifacts = self.newest(session, |row: ArtifactRow| json!({ "path": row.path }))?;
        Ok(json!({
            "segno_memory": 1,
            "session_id": session,
            "topic": state.topic,
            "intent": state.intent,
            "task": self.task(&state)?,
            "project": state.project.name,
            "status": state.status,
            "reason": state.reason,
            "created_at": state.created_at,
            "completed_at": state.completed_at,
            "phases": state.phases_completed,
            "tokens_used": state.budget.tokens_used,
            "decisions": decisions,
            "artifacts": artifacts,
            "errors": errors,
            "memory": memory,
        }))
    }

    fn newest<T: segno_core::rows::Row>(
        &self,
        session: SessionId,
        shown: impl Fn(T) -> Value,
    ) -> Result<Vec<Value>, Error> {
        let mut rows = self.store().page(session, T::LIST, &Page::newest(HANDED))?;
        rows.reverse();
        Ok(rows.iter().map(|item| shown(item.row())).collect())
    }

    /// Gives a session to a program, and remembers that it has it. One at a time, so that of two who want to hand over the
    /// same session one does.
    ///
    /// # Errors
    /// If the session cannot be read, or what was done cannot be recorded.
    pub fn sync_memory(
        &self,
        session: SessionId,
        bank: &str,
        command: &MemoryCommand<'_>,
    ) -> Result<Handing, Error> {
        let Some(_turn) = self.turn_to_sync()? else {
            let why = format!("another segno memory sync is running, for {} s", TURN.as_secs());
            return Ok(Handing::Refused(why));
        };
        // Whoever had the turn before may have handed it over since it was listed.
        let seq = self.load(session)?.state.seq;
        if self.is_synced(session, seq, bank)? {
            return Ok(Handing::TakenBefore);
        }
        let document = self.memory_document(session)?;
        match give(command, bank, session, &document) {
            Ok(()) => self.note_synced(session, bank).map(|()| Handing::Taken),
            Err(why) => Ok(Handing::Refused(self.redactor().text(&why).into_owned())),
        }
    }

    /// The turn to hand something over, if it came in time. It goes with the file, so also when this process dies.
    fn turn_to_sync(&self) -> Result<Option<File>, Error> {
        let state = self.options.spool.as_deref().and_then(Path::parent).ok_or_else(|| {
            Error::file(Path::new("memory.lock"), std::io::Error::other("nothing says where state is kept"))
        })?;
        let path = state.join("memory.lock");
        let failed = |why| Error::file(&path, why);
        segno_files::private_directory(state).map_err(failed)?;
        let file = File::options().append(true).create(true).open(&path).map_err(failed)?;
        Ok(wait_for_lock(TURN, || file.try_lock()).map_err(failed)?.then_some(file))
    }
}

fn give(command: &MemoryCommand<'_>, bank: &str, session: SessionId, document: &Value) -> Result<(), String> {
    let (program, arguments) = command.words.split_first().ok_or("there is no command")?;
    let found =
        crate::run::find_program(program, command.environment).ok_or(format!("{program} is not there"))?;
    let mut child = std::process::Command::new(found)
        .args(arguments)
        .env_clear()
        .envs(command.environment.iter().cloned())
        .env("SEGNO_MEMORY_BANK", bank)
        .env("SEGNO_MEMORY_SESSION", session.to_string())
        .current_dir(command.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|why| format!("{program}: {why}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        let text = document.to_string();
        // One that does not read must not hold us up; whether it has what it needs is for its exit code to say.
        std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    }
    let until = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{program} ended with {status}")),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{program} took longer than {} s and was ended", PATIENCE.as_secs()));
            }
            Err(why) => return Err(format!("{program}: {why}")),
        }
    }
}
