//! Facts that come while the store is busy. A binary of its own, because how long to wait for a busy store is one
//! setting for a whole process, and here nobody waits long.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "shared with the other tests, which need more of it")]
#[path = "engine/common.rs"]
mod common;

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use segno_core::Command;
use segno_core::Input;
use segno_core::SessionId;
use segno_engine::Engine;
use segno_engine::spool::waiting;
use segno_store::Append;
use segno_store::Store;
use segno_store::What;

use common::Room;
use common::files_below;
use common::mode;
use common::note;
use common::notes;

fn room() -> Room {
    Room::with(Duration::from_millis(200))
}

/// Another writer that keeps the store to itself: it hangs inside its transaction until it is let go.
struct Blocker {
    let_go: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Blocker {
    fn hold(room: &Room, session: SessionId) -> Self {
        let store = room.store();
        let (let_go, wait) = mpsc::channel();
        let (inside, started) = mpsc::channel();
        let decide = move |_: &segno_core::State| {
            inside.send(()).unwrap();
            // An end without a word is a let-go too.
            let _ = wait.recv();
            Err(segno_core::Refusal::Already("only here to hold the store".to_owned()))
        };
        let at = segno_core::Timestamp::EPOCH;
        let append = Append::new(session, "blocker".parse().unwrap(), at, What::Decide(Box::new(decide)));
        let thread = std::thread::spawn(move || {
            assert!(store.append(vec![append])[0].is_err());
        });
        started.recv().unwrap();
        Self { let_go, thread }
    }

    fn release(self) {
        self.let_go.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

/// A session with `count` notes in the spool, the store free again.
fn spooled(room: &Room, engine: &Engine, texts: &[&str]) -> SessionId {
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let blocker = Blocker::hold(room, id);
    for text in texts {
        let acted = engine.act(id, note(text)).unwrap();
        assert!(acted.spooled);
        assert!(acted.notices[0].contains("safe in the spool"), "{:?}", acted.notices);
    }
    blocker.release();
    id
}

#[test]
fn a_fact_for_a_busy_store_is_kept_privately_and_taken_in_once() {
    let room = room();
    let engine = room.quiet();
    let id = spooled(&room, &engine, &["one"]);
    let files = waiting(&room.spool());
    assert_eq!(files.len(), 1);
    assert_eq!(mode(&files[0]), 0o600);
    assert_eq!(mode(&room.spool()), 0o700);
    assert_eq!(notes(&engine, id), Vec::<String>::new());

    let copy = std::fs::read(&files[0]).unwrap();
    let taken = room.quiet().take_in_spool().unwrap();
    assert_eq!((taken.facts, taken.set_apart.len()), (1, 0));
    assert_eq!(waiting(&room.spool()).len(), 0);
    assert_eq!(notes(&engine, id), ["one"]);
    // Even if the file comes back, say because its removal did not survive a power cut.
    std::fs::write(&files[0], copy).unwrap();
    let again = engine.take_in_spool().unwrap();
    assert_eq!((again.facts, again.set_apart.len()), (0, 0));
    assert_eq!(notes(&engine, id), ["one"]);
    assert_eq!(engine.take_in_spool().unwrap(), Default::default());
}

#[test]
fn what_is_no_fact_is_not_spooled() {
    let room = room();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let blocker = Blocker::hold(&room, id);
    let complete = Command::Complete { summary: None };
    let error = engine.act(id, complete.clone()).unwrap_err();
    assert_eq!(error.code(), "store_busy");
    let error = engine.act_all(id, [Input::from(note("x")), complete.into()], None).unwrap_err();
    assert_eq!(error.code(), "store_busy");
    assert_eq!(waiting(&room.spool()).len(), 0);
    blocker.release();
}

#[test]
fn the_order_is_kept_and_the_time_is_when_it_happened() {
    let room = room();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let blocker = Blocker::hold(&room, id);
    let texts: Vec<String> = (0..3).map(|number| format!("note {number}")).collect();
    for text in &texts {
        room.clock.advance(1);
        engine.act(id, note(text)).unwrap();
    }
    blocker.release();
    room.clock.advance(1_000);
    assert_eq!(engine.take_in_spool().unwrap().facts, 3);
    assert_eq!(notes(&engine, id), texts);
    let history = engine.items(id, segno_core::List::History).unwrap();
    assert_eq!(history[1].body["timestamp"], "2026-01-16T10:00:01.000000Z");
}

#[test]
fn two_that_take_in_at_once_take_each_fact_once() {
    let room = room();
    let engine = room.quiet();
    let id = spooled(&room, &engine, &["a", "b", "c", "d"]);
    let facts: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let engine = room.quiet();
                let spool = room.spool();
                scope.spawn(move || {
                    let mut facts = 0;
                    // Whoever finds the store busy leaves the rest for the next time.
                    while !waiting(&spool).is_empty() {
                        let taken = engine.take_in_spool().unwrap();
                        assert_eq!(taken.set_apart, []);
                        facts += taken.facts;
                    }
                    facts
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(facts, 4);
    assert_eq!(notes(&engine, id), ["a", "b", "c", "d"]);
    assert_eq!(waiting(&room.spool()).len(), 0);
}

#[test]
fn a_long_text_survives_the_spool() {
    let room = room();
    let engine = room.quiet();
    let long = "lots of words, ".repeat(5_000);
    let id = spooled(&room, &engine, &[&long]);
    engine.take_in_spool().unwrap();
    assert_eq!(notes(&engine, id), [long]);
    assert!(segno_store::verify::verify(&room.store(), true, |_, _| {}).unwrap().is_clean());
}

#[test]
fn what_cannot_be_read_is_set_apart_and_reported() {
    let room = room();
    let engine = room.quiet();
    let id = spooled(&room, &engine, &["good"]);
    let good = waiting(&room.spool()).remove(0);
    let text = std::fs::read_to_string(&good).unwrap();
    let bad = [
        ("00-empty.json", String::new()),
        ("01-cut.json", text[..text.len() / 2].to_owned()),
        ("02-garbage.json", "\u{0}\u{1}garbage".to_owned()),
        ("03-kind.json", text.replace("\"action\":\"noted\"", "\"action\":7")),
        ("04-gone.json", text.replace("session_2026", "session_2025")),
    ];
    for (name, text) in &bad {
        std::fs::write(room.spool().join(name), text).unwrap();
    }
    let taken = engine.take_in_spool().unwrap();
    assert_eq!(taken.facts, 1, "the good one is taken in all the same");
    assert_eq!(taken.set_apart.len(), bad.len());
    for ((path, why), (name, text)) in taken.set_apart.iter().zip(&bad) {
        assert!(path.ends_with(name), "{}", path.display());
        assert!(!why.is_empty());
        assert_eq!(&std::fs::read_to_string(path).unwrap(), text, "its bytes are kept");
    }
    assert_eq!(mode(&room.spool().join("set-apart")), 0o700);
    assert_eq!(notes(&engine, id), ["good"]);
    assert_eq!(engine.take_in_spool().unwrap(), Default::default(), "reported once");
}

#[test]
fn a_store_that_is_still_busy_leaves_the_spool_alone() {
    let room = room();
    let engine = room.quiet();
    let id = spooled(&room, &engine, &["waits"]);
    let blocker = Blocker::hold(&room, id);
    assert_eq!(room.quiet().take_in_spool().unwrap(), Default::default());
    assert_eq!(waiting(&room.spool()).len(), 1);
    blocker.release();
    assert_eq!(engine.take_in_spool().unwrap().facts, 1);
}

#[test]
fn a_fact_of_a_driver_that_was_replaced_meanwhile_is_late() {
    let room = room();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let driver = engine.drive(id, "first").unwrap();
    let blocker = Blocker::hold(&room, id);
    assert!(driver.act(note("from the first")).unwrap().spooled);
    blocker.release();
    room.store()
        .acquire(id, &segno_engine::lease::here("second"), Some(segno_store::Over::epoch(driver.epoch())))
        .unwrap();
    assert_eq!(engine.take_in_spool().unwrap().facts, 1);
    assert_eq!(notes(&engine, id), Vec::<String>::new());
    assert_eq!(engine.load(id).unwrap().state.late, 1);
}

#[test]
fn spooled_and_late_facts_hold_no_secrets_either() {
    let room = room();
    let engine = room.engine();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    // Put together here, so that no scanner takes this file for a leak.
    let secret = &format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    let blocker = Blocker::hold(&room, id);
    let acted = engine.act(id, note(&format!("push with {secret}"))).unwrap();
    assert!(acted.spooled);
    let file = waiting(&room.spool()).remove(0);
    assert!(!std::fs::read_to_string(file).unwrap().contains(secret));
    blocker.release();
    engine.take_in_spool().unwrap();
    let late = room.engine_as(7).act(id, note(&format!("again {secret}"))).unwrap();
    assert!(late.late);
    drop(engine);
    for path in files_below(room.path()) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{}", path.display());
    }
}
