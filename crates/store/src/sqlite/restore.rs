//! Writing a journal from elsewhere as it is.

use rusqlite::Connection;
use rusqlite::TransactionBehavior;
use segno_core::Mark;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Uid;
use segno_redact::Blob;
use segno_redact::Redacted;

use super::Direct;
use super::check_form;
use super::create;
use super::fault;
use super::lists;
use super::session::Row;
use super::write::Inserted;
use super::write::Written;
use super::write::insert_event;
use super::write::write_event;
use super::write::write_folded;
use crate::Error;
use crate::chain;
use crate::codec;
use crate::types::Loaded;
use crate::types::Piece;
use crate::types::Restore;

/// How many events go by between two looks at the state; rows that follow from them are written then too.
const LOOK_EVERY: u64 = 500;
/// Drivers are counted one by one: nobody has had so many.
const MOST_EPOCHS: u64 = 1 << 40;

pub(super) fn restore(direct: &mut Direct, restore: Restore) -> Result<Loaded, Error> {
    let Restore { uid, wish, pieces, check, last, key, at } = restore;
    let location = direct.location.clone();
    let (connection, _, file, _turn) = direct.for_writing()?;
    let sql = |e| fault(&location, e);
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    check_form(&tx, &location, file)?;
    if let Some(known) = create::find_uid(&tx, &location, uid.as_bytes())? {
        return Err(Error::AlreadyOpen(known));
    }
    let id = create::free_name(&tx, &location, wish)?;
    let mut journal = Journal::begin(&tx, &location, id, uid)?;
    pieces(&mut |piece| match piece {
        Piece::Event(event) => {
            let written = Written {
                key: event.key,
                at: event.at,
                run: event.run,
                epoch: event.epoch,
                forgotten: event.forgotten,
            };
            journal.write(&written, &event.event)?;
            match &journal.state {
                Some(state) if journal.row.head_seq.is_multiple_of(LOOK_EVERY) => journal.bad(check(state)),
                _ => Ok(()),
            }
        }
        Piece::Text(text) => journal.keep(&text),
    })?;
    let Some(state) = &journal.state else { return journal.bad(Err("it has no events".to_owned())) };
    if state.uid != uid {
        return journal.bad(Err(format!("its first event belongs to {}", state.uid)));
    }
    journal.bad(check(state))?;
    for (part, event) in last(id, state)?.iter().enumerate() {
        journal
            .write(&Written { key: key.part(part), at, run: None, epoch: None, forgotten: None }, event)?;
    }
    let state = journal.finish()?;
    match tx.commit() {
        Ok(()) => Ok(Loaded { state, notices: Vec::new() }),
        Err(e) => Err(direct.commit_failed(e)),
    }
}

/// A journal in the making.
struct Journal<'a> {
    connection: &'a Connection,
    location: &'a str,
    id: SessionId,
    row: Row,
    state: Option<State>,
    changes: lists::Changes,
    epoch: u64,
}

impl<'a> Journal<'a> {
    fn begin(connection: &'a Connection, location: &'a str, id: SessionId, uid: Uid) -> Result<Self, Error> {
        connection
            .execute(
                "INSERT INTO sessions
                 (id, uid, status, project, made_by, head_seq, head_hash, updated_us, summary)
                 VALUES (?1, ?2, 'active', '', 'import', 0, zeroblob(32), 0, '{}')",
                (id.to_string(), uid.as_bytes()),
            )
            .map_err(|e| fault(location, e))?;
        let pk = connection.last_insert_rowid();
        let row = Row { pk, uid, head_seq: 0, head_hash: chain::start(&uid) };
        Ok(Self { connection, location, id, row, state: None, changes: lists::Changes::default(), epoch: 0 })
    }

    /// What is wrong with a journal is wrong with the session it would become.
    fn bad<T>(&self, found: Result<T, String>) -> Result<T, Error> {
        found.map_err(|what| Error::SessionDamaged { session: self.id, what })
    }

    fn write(&mut self, written: &Written, event: &Redacted) -> Result<(), Error> {
        let epoch = written.epoch.unwrap_or(0);
        if epoch > MOST_EPOCHS {
            return self.bad(Err(format!("no driver has had the number {epoch}")));
        }
        self.epoch = self.epoch.max(epoch);
        let inserted = match &mut self.state {
            Some(state) => {
                let changes = &mut self.changes;
                write_event(self.connection, self.location, &mut self.row, state, changes, written, event)?
            }
            None => {
                let mark = Mark { seq: 1, at: written.at, run: written.run.clone() };
                let state = self.bad(State::begin(&mark, event.event()).map_err(|why| why.to_string()))?;
                let counted = segno_core::state::Applied::Counted;
                self.changes.add(&mark, segno_core::project(&state, &mark, event.event(), counted));
                self.state = Some(state);
                insert_event(self.connection, self.location, &mut self.row, written, event)?
            }
        };
        if inserted == Inserted::KeyKnown {
            return self.bad(Err(format!("two of its events have the key {}", written.key)));
        }
        for hash in codec::references(event.body()) {
            self.connection
                .prepare_cached("INSERT OR IGNORE INTO blob_refs (hash, session, seq) VALUES (?1, ?2, ?3)")
                .and_then(|mut insert| insert.execute((hash, self.row.pk, self.row.head_seq)))
                .map_err(|e| fault(self.location, e))?;
        }
        if self.row.head_seq.is_multiple_of(LOOK_EVERY) {
            self.changes.write(self.connection, self.location, self.row.pk)?;
        }
        Ok(())
    }

    /// Keeps a text that an event refers to; nobody would ever ask for another one.
    fn keep(&self, text: &Blob) -> Result<(), Error> {
        let seq: Option<u64> = self
            .connection
            .prepare_cached("SELECT min(seq) FROM blob_refs WHERE hash = ?1 AND session = ?2")
            .and_then(|mut ask| ask.query_row((text.hash, self.row.pk), |row| row.get(0)))
            .map_err(|e| fault(self.location, e))?;
        match seq {
            Some(seq) => lists::write_blob(self.connection, self.location, self.row.pk, seq, text),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<State, Error> {
        let sql = |e| fault(self.location, e);
        self.changes.write(self.connection, self.location, self.row.pk)?;
        let Some(state) = self.state else {
            return Err(Error::SessionDamaged { session: self.id, what: "it has no events".to_owned() });
        };
        if state.session_id != self.id {
            let what = format!("its events call it {}", state.session_id);
            return Err(Error::SessionDamaged { session: self.id, what });
        }
        // A driver here comes after all those there.
        self.connection
            .execute(
                "INSERT INTO leases (session, epoch, holder, acquired_us, heartbeat_us) VALUES (?1, ?2, NULL, 0, 0)",
                (self.row.pk, self.epoch),
            )
            .map_err(sql)?;
        write_folded(self.connection, self.location, &self.row, &state, false)?;
        self.connection
            .execute(
                "UPDATE sessions SET made_by = ?2 WHERE pk = ?1",
                (self.row.pk, create::maker(state.made_by)),
            )
            .map_err(sql)?;
        Ok(state)
    }
}
