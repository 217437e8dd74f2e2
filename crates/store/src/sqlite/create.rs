//! Making a session.

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::TransactionBehavior;
use segno_core::Event;
use segno_core::Mark;
use segno_core::SessionId;
use segno_core::State;
use segno_core::event::Maker;

use super::Direct;
use super::check_form;
use super::fault;
use super::lists;
use super::session;
use super::session::Cache;
use super::session::Cached;
use super::session::Row;
use super::write::Inserted;
use super::write::Written;
use super::write::insert_event;
use super::write::write_event;
use super::write::write_folded;
use crate::Error;
use crate::chain;
use crate::types::Create;
use crate::types::Loaded;

pub(super) fn create(direct: &mut Direct, mut create: Create) -> Result<Loaded, Error> {
    let location = direct.location.clone();
    let path = direct.path.clone();
    let (connection, cache, file, turn) = direct.for_writing()?;
    let sql = |e| fault(&location, e);
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    check_form(&tx, &location, file)?;
    let id = free_name(&tx, &location, create.wish)?;
    let events = (create.first)(id)?;
    let Some((first, rest)) = events.split_first() else {
        return Err(Error::SessionDamaged { session: id, what: "it has no first event".to_owned() });
    };
    let uid = match first.event() {
        Event::SessionCreated(created) => created.uid,
        Event::SessionImported(imported) => imported.state.uid,
        other => {
            return Err(Error::SessionDamaged {
                session: id,
                what: format!("it begins with {}", other.kind()),
            });
        }
    };
    if let Some(known) = find_uid(&tx, &location, uid.as_bytes())? {
        return made_already(&tx, &location, cache, known, &create);
    }
    if let Some(project) = &create.alone_in {
        refuse_beside(&tx, &location, project)?;
    }
    let mark = Mark { seq: 1, at: create.at, run: None };
    let mut state = State::begin(&mark, first.event())
        .map_err(|why| Error::SessionDamaged { session: id, what: why.to_string() })?;
    if state.session_id != id {
        let what = format!("its first event calls it {}", state.session_id);
        return Err(Error::SessionDamaged { session: id, what });
    }
    tx.execute(
        "INSERT INTO sessions (id, uid, status, project, made_by, head_seq, head_hash, updated_us, summary)
         VALUES (?1, ?2, 'active', ?3, ?4, 0, zeroblob(32), 0, '{}')",
        (id.to_string(), uid.as_bytes(), &state.project.path, maker(state.made_by)),
    )
    .map_err(sql)?;
    let mut row = Row { pk: tx.last_insert_rowid(), uid, head_seq: 0, head_hash: chain::start(&uid) };
    let written = |part: usize| Written {
        key: create.key.part(part),
        at: create.at,
        run: None,
        epoch: None,
        forgotten: None,
    };
    let mut changes = lists::Changes::default();
    let mut inserted = vec![insert_event(&tx, &location, &mut row, &written(0), first)?];
    changes
        .add(&mark, segno_core::project(&state, &mark, first.event(), segno_core::state::Applied::Counted));
    for (index, event) in rest.iter().enumerate() {
        let written = written(index + 1);
        inserted.push(write_event(&tx, &location, &mut row, &mut state, &mut changes, &written, event)?);
    }
    if inserted.contains(&Inserted::KeyKnown) {
        let what = "two of its first events have one key".to_owned();
        return Err(Error::SessionDamaged { session: id, what });
    }
    changes.write(&tx, &location, row.pk)?;
    write_folded(&tx, &location, &row, &state, false)?;
    match tx.commit() {
        Ok(()) => {
            drop(turn);
            super::heads::note(&path, &[(id, row.head_seq)]);
            cache.put(row.pk, Cached { head_hash: row.head_hash, state: state.clone(), keep: false });
            Ok(Loaded { state, notices: Vec::new() })
        }
        Err(e) => Err(direct.commit_failed(e)),
    }
}

/// The identity is known. Whoever asks again with the key it was made with did not hear the first answer.
fn made_already(
    connection: &Connection,
    location: &str,
    cache: &Cache,
    known: SessionId,
    create: &Create,
) -> Result<Loaded, Error> {
    let row = session::find_row(connection, location, known)?;
    let key: Option<String> = connection
        .query_row("SELECT key FROM events WHERE id = ?1", [session::event_id(row.pk, 1)], |row| row.get(0))
        .optional()
        .map_err(|e| fault(location, e))?;
    if key.as_deref() != Some(create.key.as_str()) {
        return Err(Error::AlreadyOpen(known));
    }
    let newest = session::newest(connection, location, known, &row, cache)?;
    Ok(Loaded { state: newest.state, notices: newest.notices })
}

/// The stored word for how a session came to be.
pub(super) fn maker(maker: Maker) -> &'static str {
    match maker {
        Maker::New => "new",
        Maker::Run => "run",
        Maker::Import => "import",
        Maker::Loop => "loop",
    }
}

/// The other way round. What cannot be read was made by a person, to be on the safe side.
pub(super) fn maker_of(word: &str) -> Maker {
    [Maker::Run, Maker::Import, Maker::Loop].into_iter().find(|one| maker(*one) == word).unwrap_or(Maker::New)
}

fn refuse_beside(connection: &Connection, location: &str, project: &str) -> Result<(), Error> {
    let open: Option<String> = connection
        .query_row(
            "SELECT id FROM sessions WHERE project = ?1 AND made_by = 'new'
             AND status NOT IN ('completed', 'aborted', 'failed') LIMIT 1",
            [project],
            |row| row.get(0),
        )
        .optional()
        .map_err(|e| fault(location, e))?;
    match open.and_then(|id| id.parse().ok()) {
        Some(id) => Err(Error::AlreadyOpen(id)),
        None => Ok(()),
    }
}

pub(super) fn find_uid(
    connection: &Connection,
    location: &str,
    uid: &[u8; 16],
) -> Result<Option<SessionId>, Error> {
    let found: Option<String> = connection
        .query_row("SELECT id FROM sessions WHERE uid = ?1", [uid], |row| row.get(0))
        .optional()
        .map_err(|e| fault(location, e))?;
    Ok(found.and_then(|id| id.parse().ok()))
}

/// The wished name, or the next one that nobody has.
pub(super) fn free_name(
    connection: &Connection,
    location: &str,
    wish: SessionId,
) -> Result<SessionId, Error> {
    let mut taken = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)")
        .map_err(|e| fault(location, e))?;
    let mut id = wish;
    while taken.query_row([id.to_string()], |row| row.get::<_, bool>(0)).map_err(|e| fault(location, e))? {
        id = id.next();
    }
    Ok(id)
}
