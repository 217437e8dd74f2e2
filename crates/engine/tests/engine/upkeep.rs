//! Clearing away, looking after, finding.

use std::path::Path;

use segno_core::Command;
use segno_core::SessionId;
use segno_core::event::Project;
use segno_engine::Choice;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::NewSession;
use segno_engine::doctor;
use segno_engine::doctor::examine;
use segno_store::Store as _;

use crate::common::Room;
use crate::common::note;
use crate::common::notes;
use crate::common::store_at;

fn ended(engine: &Engine, new: NewSession) -> SessionId {
    let id = engine.create(new).unwrap().state.session_id;
    engine.act(id, Command::Complete { summary: None }).unwrap();
    id
}

fn ids(removals: Vec<segno_engine::Removal>) -> Vec<SessionId> {
    removals.into_iter().map(|removal| removal.summary.session_id).collect()
}

#[test]
fn age_counts_from_the_end_not_from_the_last_word() {
    let room = Room::new();
    let engine = room.quiet();
    let id = ended(&engine, room.new_session());
    room.clock.advance(29 * 86_400);
    engine.act(id, note("a late word")).unwrap();
    assert_eq!(ids(engine.old_sessions(30, None, None).unwrap()), []);
    room.clock.advance(86_400);
    let removals = engine.old_sessions(30, None, None).unwrap();
    assert_eq!(removals[0].why, "completed more than 30 days ago");
    assert_eq!(ids(removals), [id], "thirty days to the second are enough");
}

#[test]
fn open_sessions_are_never_old() {
    let room = Room::new();
    let engine = room.quiet();
    let paused = engine.create(room.new_session()).unwrap().state.session_id;
    engine.act(paused, Command::Pause { reason: Default::default(), details: None }).unwrap();
    let halted = engine.create(room.new_session()).unwrap().state.session_id;
    engine.act(halted, Command::Halt { reason: "no progress".into() }).unwrap();
    engine.create(room.new_session()).unwrap();
    room.clock.advance(1_000 * 86_400);
    assert_eq!(ids(engine.old_sessions(0, Some(0), None).unwrap()), []);
}

#[test]
fn beyond_the_newest_and_of_one_project() {
    let room = Room::new();
    let engine = room.quiet();
    let mut made = Vec::new();
    for _ in 0..3 {
        room.clock.advance(10);
        made.push(ended(&engine, room.new_session()));
    }
    let removals = engine.old_sessions(30, Some(2), None).unwrap();
    assert_eq!(removals[0].why, "beyond the newest 2");
    assert_eq!(ids(removals), [made[0]]);
    let elsewhere = Project { path: "/elsewhere".to_owned(), name: "e".to_owned(), kind: None };
    let other = ended(&engine, NewSession { project: elsewhere, ..room.new_session() });
    assert_eq!(ids(engine.old_sessions(0, None, Some(Path::new("/elsewhere"))).unwrap()), [other]);
}

#[test]
fn cleanup_goes_on_past_a_session_that_is_still_held() {
    let room = Room::new();
    let mut manager = room.manager();
    let engine = room.quiet();
    let held = engine.create(room.new_session()).unwrap().state.session_id;
    let driver = engine.drive(held, "driver").unwrap();
    driver.act(Command::Complete { summary: None }).unwrap();
    let free = ended(&engine, room.new_session());
    room.clock.advance(31 * 86_400);
    assert_eq!(manager.cleanup_old_sessions(30, false).unwrap(), [free.to_string()]);
    drop(driver);
    assert_eq!(manager.cleanup_old_sessions(30, false).unwrap(), [held.to_string()]);
}

/// A copy of the room's store in which some bytes were changed, as a bad disk would.
fn damaged_copy(room: &Room, engine: &Engine, from: &str, to: &str) -> Engine {
    assert_eq!(from.len(), to.len());
    let path = room.path().join("copy.db");
    engine.back_up(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let mut found = 0;
    for start in 0..bytes.len() - from.len() {
        if bytes[start..].starts_with(from.as_bytes()) {
            bytes[start..start + to.len()].copy_from_slice(to.as_bytes());
            found += 1;
        }
    }
    assert!(found > 0, "{from} is not in the store");
    std::fs::write(&path, bytes).unwrap();
    // A copy beside its store is left alone; without it, it is the store.
    std::fs::remove_file(room.store_path()).unwrap();
    let options = EngineOptions { clock: room.clock.clone(), ..EngineOptions::default() };
    let copy = store_at(&path, std::time::Duration::from_secs(20));
    copy.adopt().unwrap();
    Engine::new(Box::new(copy), options)
}

#[test]
fn a_healthy_store_is_well() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    engine.act(id, note("fine")).unwrap();
    let mut seen = Vec::new();
    let diagnosis = examine(&engine, true, false, |done, total| seen.push((done, total))).unwrap();
    assert!(diagnosis.is_well(), "{diagnosis:?}");
    assert_eq!((diagnosis.report.sessions, diagnosis.report.events), (1, 2));
    assert_eq!(seen, [(1, 1)]);
    assert!(examine(&engine, false, true, |_, _| {}).unwrap().is_well());
}

#[test]
fn a_damaged_event_is_told_set_apart_and_costs_no_other() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    for text in ["before", "MARKER-aaaa", "after"] {
        engine.act(id, note(text)).unwrap();
    }
    let other = engine.create(room.new_session()).unwrap().state.session_id;
    let damaged = damaged_copy(&room, &engine, "MARKER-aaaa", "MARKER-zzzz");

    let looked = examine(&damaged, true, false, |_, _| {}).unwrap();
    assert!(!looked.is_well());
    assert_eq!(looked.remains.len(), 1, "{:?}", looked.remains);
    assert!(looked.remains[0].starts_with(&format!("session {id} event 3: ")), "{:?}", looked.remains);
    assert_eq!((looked.mended.len(), looked.quarantined.len()), (0, 0), "looking changes nothing");

    let mended = examine(&damaged, true, true, |_, _| {}).unwrap();
    assert!(mended.remains[0].contains("its bytes are kept in quarantine"), "{:?}", mended.remains);
    assert_eq!(mended.quarantined.len(), 1);
    assert_eq!(
        (mended.quarantined[0].session.as_str(), mended.quarantined[0].seq),
        (id.to_string().as_str(), Some(3))
    );
    assert!(mended.quarantined[0].bytes > 0);
    assert_eq!(examine(&damaged, true, true, |_, _| {}).unwrap().quarantined.len(), 1, "once");
    // Both sessions go on.
    damaged.act(id, note("more")).unwrap();
    damaged.act(other, note("more")).unwrap();
    let found = notes(&damaged, id);
    assert!(found.contains(&"before".to_owned()) && found.contains(&"after".to_owned()), "{found:?}");
}

#[test]
fn a_damaged_summary_hides_no_session_and_is_mended() {
    let room = Room::new();
    let engine = room.quiet();
    let state = engine.create(room.new_session()).unwrap().state;
    let id = state.session_id;
    let other = engine.create(room.new_session()).unwrap().state.session_id;
    let good = format!(
        "{{\"session_id\":\"{id}\",\"uid\":\"{}\",\"topic\":\"boats\",\"status\":\"active\"",
        state.uid
    );
    let bad = good.replace("\"active\"", "\"actXve\"");
    let damaged = damaged_copy(&room, &engine, &good, &bad);
    let mut listed: Vec<_> =
        damaged.list(&Default::default()).unwrap().into_iter().map(|summary| summary.session_id).collect();
    listed.sort();
    assert_eq!(listed, [id, other]);

    let looked = examine(&damaged, true, false, |_, _| {}).unwrap();
    assert!(!looked.is_well());
    let mended = examine(&damaged, true, true, |_, _| {}).unwrap();
    assert!(mended.is_well() && mended.mended.len() == 1, "{mended:?}");
    let again = examine(&damaged, true, false, |_, _| {}).unwrap();
    assert!(again.is_well() && again.report.is_clean(), "{again:?}");
}

#[test]
fn what_waits_and_who_died_is_told() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    std::fs::create_dir_all(room.spool()).unwrap();
    std::fs::write(room.spool().join("x.json"), "{}").unwrap();
    let mut helper = crate::child::Helper::start("drive", &room.store_path(), &id.to_string());
    helper.hear().unwrap();
    helper.kill();
    let diagnosis = examine(&engine, false, false, |_, _| {}).unwrap();
    assert_eq!(diagnosis.spooled, 1);
    assert_eq!(diagnosis.settled, [id.to_string()]);
}

#[test]
fn a_store_that_is_no_database_is_moved_aside() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    engine.act(id, note("kept")).unwrap();
    let copy = room.path().join("copy.db");
    engine.back_up(&copy).unwrap();
    doctor::salvage_store(&copy.clone().into(), "20260116").unwrap();
    let options = EngineOptions { clock: room.clock.clone(), ..EngineOptions::default() };
    let saved = Engine::new(Box::new(store_at(&copy, std::time::Duration::from_secs(20))), options);
    assert_eq!(notes(&saved, id), ["kept"]);
}

#[test]
fn sessions_are_found_by_id_ending_and_last() {
    let room = Room::new();
    let engine = room.quiet();
    let one = engine.create(room.new_session()).unwrap().state.session_id;
    room.clock.advance(1);
    let two = engine.create(room.new_session()).unwrap().state.session_id;
    assert_eq!(engine.find(&one.to_string(), None).unwrap(), one);
    assert_eq!(engine.find("last", None).unwrap(), two);
    assert_eq!(engine.find("100001_000000", None).unwrap(), two);
    assert_eq!(engine.find("…100001_000000", None).unwrap(), two);
    let error = engine.find("000000", None).unwrap_err();
    assert_eq!(error.code(), "ambiguous");
    assert!(error.to_string().contains(&one.to_string()) && error.to_string().contains(&two.to_string()));
    for text in ["", "%", "'; drop", "nothing", "../x"] {
        assert_eq!(engine.find(text, None).unwrap_err().code(), "session_not_found", "{text}");
    }
    assert!(
        matches!(engine.open_session(&room.project()).unwrap(), Choice::Several(both) if both.len() == 2)
    );
    engine.act(one, Command::Abort { reason: None }).unwrap();
    assert!(matches!(engine.open_session(&room.project()).unwrap(), Choice::One(id) if id == two));
    assert!(matches!(engine.open_session(Path::new("/nowhere")).unwrap(), Choice::None));
}
