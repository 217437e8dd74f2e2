//! What every test of the store needs: a clock that stands still, events, and the check that a session is whole.

use std::sync::OnceLock;

use segno_core::Event;
use segno_core::EventKey;
use segno_core::Input;
use segno_core::Refusal;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::Uid;
use segno_core::event::HistoryNoted;
use segno_core::event::Holder;
use segno_core::event::Maker;
use segno_core::event::Project;
use segno_core::event::SessionCreated;
use segno_redact::Redacted;
use segno_redact::Redactor;
use segno_store::Append;
use segno_store::Appended;
use segno_store::Create;
use segno_store::Error;
use segno_store::EventRow;
use segno_store::Loaded;
use segno_store::Store;
use segno_store::StoredEvent;
use segno_store::What;
use segno_store::chain;
use segno_store::state_at;

/// The project of sessions that name none.
pub(crate) const PROJECT: &str = "/home/kim/harbour";

/// So many seconds after a fixed moment.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000).plus_seconds(second)
}

/// The identity with this number.
pub(crate) fn uid(number: u128) -> Uid {
    Uid::new(uuid::Uuid::from_u128(number))
}

/// A key.
pub(crate) fn key(text: &str) -> EventKey {
    text.parse().unwrap()
}

/// An event made fit for the record.
pub(crate) fn fit(event: impl Into<Event>) -> Redacted {
    static REDACTOR: OnceLock<Redactor> = OnceLock::new();
    let redactor = REDACTOR.get_or_init(|| Redactor::new(segno_redact::Options::default()));
    redactor.record(event.into()).unwrap()
}

/// A line of history.
pub(crate) fn note(details: &str) -> Redacted {
    fit(HistoryNoted { action: "noted".into(), phase: None, details: Some(details.into()) })
}

/// A driver.
pub(crate) fn holder(what: &str) -> Holder {
    Holder { host: "quay".into(), pid: 4_711, what: what.into(), ..Holder::default() }
}

/// What a new session is to be.
pub(crate) fn creation(id: SessionId, uid: Uid, project: &str, made_by: Maker) -> SessionCreated {
    SessionCreated {
        topic: Some("boats".into()),
        project: Project { path: project.into(), name: "harbour".into(), kind: None },
        ..SessionCreated::new(id, uid, made_by)
    }
}

/// A session to be made at a second, with the identity of that number.
pub(crate) fn to_create(second: i64, number: u128, project: &str, made_by: Maker) -> Create {
    let (uid, project) = (uid(number), project.to_owned());
    Create {
        at: at(second),
        key: key(&format!("create-{number}")),
        first: Box::new(move |id| Ok(vec![fit(segno_core::create(creation(id, uid, &project, made_by))?)])),
        wish: SessionId::at(at(second)),
        alone_in: None,
    }
}

/// A session that is made at that second and has its number.
pub(crate) fn make(store: &dyn Store, second: u32) -> SessionId {
    make_in(store, second, PROJECT, Maker::Run)
}

/// A session of a project.
pub(crate) fn make_in(store: &dyn Store, second: u32, project: &str, made_by: Maker) -> SessionId {
    let made = store.create(to_create(second.into(), second.into(), project, made_by)).unwrap();
    made.state.session_id
}

/// Events to append under a key.
pub(crate) fn facts(session: SessionId, name: &str, events: Vec<Redacted>) -> Append {
    Append::new(session, key(name), at(1_000), What::Facts(events))
}

/// A command to decide on the newest state.
pub(crate) fn command(session: SessionId, name: &str, input: impl Into<Input> + 'static) -> Append {
    Append::new(session, key(name), at(1_000), What::Decide(Box::new(decider(input))))
}

/// Decides a command, or records a fact.
pub(crate) fn decider(
    input: impl Into<Input>,
) -> impl FnMut(&State) -> Result<Vec<Redacted>, Refusal> + Send {
    let input = input.into();
    move |state| Ok(segno_core::decide(state, input.clone())?.into_iter().map(fit).collect())
}

/// Appends one thing.
pub(crate) fn append(store: &dyn Store, append: Append) -> Result<Appended, Error> {
    let mut results = store.append(vec![append]);
    assert_eq!(results.len(), 1);
    results.pop().unwrap()
}

/// Appends a note under a key, and tells its number.
pub(crate) fn jot(store: &dyn Store, session: SessionId, name: &str) -> u64 {
    append(store, facts(session, name, vec![note(name)])).unwrap().last
}

/// Every event; none may be damaged.
pub(crate) fn journal(store: &dyn Store, session: SessionId) -> Vec<StoredEvent> {
    let rows = store.events(session, 0, usize::MAX).unwrap();
    let whole = |row| match row {
        EventRow::Whole(stored) => stored,
        EventRow::Damaged { seq, what } => panic!("event {seq} of {session}: {what}"),
    };
    rows.into_iter().map(whole).collect()
}

/// The keys of every event in order.
pub(crate) fn keys(store: &dyn Store, session: SessionId) -> Vec<String> {
    journal(store, session).into_iter().map(|stored| stored.key).collect()
}

/// Asserts what always holds of a session: no gap, no key twice, a whole chain, and a state that is the fold.
pub(crate) fn assert_whole(store: &dyn Store, session: SessionId) -> Loaded {
    let loaded = store.load(session).unwrap();
    assert_eq!(loaded.notices, Vec::<String>::new());
    let events = journal(store, session);
    let mut hash = chain::start(&loaded.state.uid);
    let mut seen = std::collections::HashSet::new();
    for (index, stored) in events.iter().enumerate() {
        assert_eq!(stored.seq, index as u64 + 1, "a gap in {session}");
        assert!(seen.insert(stored.key.clone()), "{} twice in {session}", stored.key);
        let link = chain::Link {
            seq: stored.seq,
            at_us: stored.at.as_micros(),
            key: &stored.key,
            run: stored.run.as_deref(),
            epoch: stored.epoch,
            kind: &stored.kind,
            version: stored.version,
            body: &stored.body,
        };
        hash = chain::next(&hash, &link);
        assert_eq!(hash, stored.hash, "the chain of {session} breaks at {}", stored.seq);
    }
    assert_eq!(loaded.state.seq, events.len() as u64);
    let (folded, notices) = state_at(store, session, loaded.state.seq).unwrap();
    assert_eq!(notices, Vec::<String>::new());
    assert_eq!(folded, loaded.state);
    loaded
}

/// Every session's id, the most recently changed first.
pub(crate) fn ids(store: &dyn Store) -> Vec<SessionId> {
    let listing = store.list(&segno_store::Filter::default()).unwrap();
    listing.sessions.iter().map(|summary| summary.session_id).collect()
}
