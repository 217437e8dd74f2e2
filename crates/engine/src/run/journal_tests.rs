use segno_core::Event;
use segno_core::event::Channel;
use segno_store::Append;
use segno_store::EventRow;
use segno_store::Purpose;
use segno_store::What;
use segno_store::sqlite;

use super::*;
use crate::EngineOptions;
use crate::NewSession;
use crate::view;

fn said(text: &str) -> Fact {
    Fact::Said { channel: Channel::Text, text: text.into(), message: None, parent: None }
}

fn open(path: &std::path::Path, busy: Duration) -> Engine {
    let purpose = Purpose::LongLived;
    let options = segno_store::OpenOptions { purpose, create: true, busy, ..Default::default() };
    let store = sqlite::SqliteStore::open(path, options).unwrap();
    let view = view::Options { enabled: false, ..view::Options::default() };
    Engine::new(Box::new(store), EngineOptions { view, ..EngineOptions::default() })
}

/// What was said in a session, in the order of the journal.
fn heard(engine: &Engine, session: SessionId) -> Vec<String> {
    let rows = engine.store().events(session, 0, 10_000).unwrap();
    rows.into_iter()
        .filter_map(|row| match row {
            EventRow::Whole(stored) => match stored.event().unwrap() {
                Event::Said(said) => Some(engine.whole(&said.text).unwrap()),
                _ => None,
            },
            EventRow::Damaged { what, .. } => panic!("{what}"),
        })
        .collect()
}

#[test]
fn what_is_given_ahead_stays_in_order_whatever_the_store_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("segno.db");
    // Whoever holds the store up below has to get it first.
    let other = open(&path, Duration::from_secs(60));
    let engine = open(&path, Duration::from_millis(20));
    let state = other.create(NewSession::default()).unwrap().state;
    let session = state.session_id;
    let driver = engine.drive(session, "test").unwrap();
    let mut recorder = Recorder::new(
        &engine,
        &segno_agents::plain::Plain::default(),
        state,
        driver.epoch(),
        "r1",
        Feed::default(),
    );
    for number in 0..2_000 {
        recorder.note(said(&number.to_string()));
        if number % 700 == 0 {
            assert_eq!(recorder.advance().unwrap(), Flushed::All);
            assert!(recorder.is_behind(), "the last of it was not waited for");
        }
    }
    // Somebody else writes for as long as anybody here waits.
    let (began, is_begun) = std::sync::mpsc::channel();
    let (release, is_released) = std::sync::mpsc::channel::<()>();
    let busy = std::thread::spawn(move || {
        let hold = What::Decide(Box::new(move |_| {
            began.send(()).unwrap();
            is_released.recv().unwrap();
            Ok(Vec::new())
        }));
        other.append_one(Append::new(session, fresh_key(), other.now(), hold)).unwrap();
    });
    is_begun.recv().unwrap();
    recorder.advance().unwrap();
    recorder.note(said("2000"));
    assert!(matches!(recorder.flush().unwrap(), Flushed::NotYet(_)));
    assert!(recorder.is_behind());
    release.send(()).unwrap();
    busy.join().unwrap();
    assert_eq!(recorder.flush().unwrap(), Flushed::All);
    assert!(!recorder.is_behind());
    assert_eq!(recorder.state.seq, engine.load(session).unwrap().state.seq);
    let wanted: Vec<String> = (0..=2_000).map(|number| number.to_string()).collect();
    assert_eq!(heard(&engine, session), wanted);
}
