//! Numbers for programs that watch: what was done stays counted, and looking again costs what is new.

use segno_core::Fact;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_core::event::Source;
use segno_engine::Engine;
use segno_engine::metrics::Collector;
use segno_engine::metrics::Name;

use crate::common::Room;

fn make(engine: &Engine, room: &Room) -> SessionId {
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    room.clock.advance(1);
    id
}

fn uses(engine: &Engine, id: SessionId, tokens: u64) {
    let tokens = TokenUse { input: tokens, ..TokenUse::default() };
    engine.act(id, Fact::TokensRecorded { tokens, estimated: false, source: Source::Hand }).unwrap();
}

fn all(collector: &mut Collector, engine: &Engine, name: Name) -> u64 {
    collector.refresh(engine).unwrap();
    let numbers = collector.numbers(engine.now());
    numbers.iter().filter(|number| number.name == name).map(|number| number.value).sum()
}

#[test]
fn only_what_changed_is_read_again() {
    let room = Room::new();
    let engine = room.quiet();
    let [one, two] = [0, 1].map(|_| make(&engine, &room));
    let mut collector = Collector::default();
    assert_eq!(all(&mut collector, &engine, Name::Sessions), 2);
    let mut changed = collector.take_changed(Timestamp::EPOCH);
    changed.sort();
    assert_eq!(changed, [one, two]);
    uses(&engine, two, 30);
    assert_eq!(all(&mut collector, &engine, Name::Tokens), 30);
    assert_eq!(collector.take_changed(Timestamp::EPOCH), [two]);
    assert_eq!(all(&mut collector, &engine, Name::Tokens), 30);
    assert!(collector.take_changed(Timestamp::EPOCH).is_empty());
}

#[test]
fn what_was_done_stays_counted() {
    let room = Room::new();
    let engine = room.quiet();
    let [one, two] = [0, 1].map(|_| make(&engine, &room));
    uses(&engine, one, 100);
    uses(&engine, two, 20);
    let mut collector = Collector::default();
    assert_eq!(all(&mut collector, &engine, Name::Tokens), 120);
    engine.delete(one).unwrap();
    uses(&engine, two, 1);
    assert_eq!(all(&mut collector, &engine, Name::Tokens), 121);
    assert_eq!(all(&mut collector, &engine, Name::Sessions), 1);
    // Another process goes on from what was told last.
    let mut next = Collector::new(collector.told());
    assert_eq!(all(&mut next, &engine, Name::Tokens), 121);
    uses(&engine, two, 4);
    assert_eq!(all(&mut next, &engine, Name::Tokens), 125);
    // One that knows nothing of it counts what is there.
    assert_eq!(all(&mut Collector::default(), &engine, Name::Tokens), 25);
}

#[test]
fn names_that_others_choose_are_bounded() {
    let room = Room::new();
    let engine = room.quiet();
    for number in 0..2_100 {
        let mut new = room.new_session();
        new.project.path = format!("/srv/{number}");
        engine.create(new).unwrap();
        room.clock.advance(1);
    }
    let mut collector = Collector::default();
    collector.refresh(&engine).unwrap();
    let numbers = collector.numbers(engine.now());
    let sessions: Vec<_> = numbers.iter().filter(|number| number.name == Name::Sessions).collect();
    assert_eq!(sessions.len(), 2_001);
    let other = sessions.iter().find(|number| number.labels[0] == "other").unwrap();
    assert_eq!(other.value, 100);
}
