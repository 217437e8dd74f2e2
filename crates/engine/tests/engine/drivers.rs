//! One driver, every voice heard.

use segno_core::Command;
use segno_core::Fact;
use segno_core::Refusal;
use segno_core::Status;
use segno_core::event::PauseReason;
use segno_core::event::Request;
use segno_core::event::Source;
use segno_engine::Error;
use segno_engine::lease::here;
use segno_store::Error as StoreError;
use segno_store::Store as _;

use crate::common::Room;
use crate::common::note;
use crate::common::notes;

fn pause() -> Command {
    Command::Pause { reason: PauseReason::Asked, details: Some("lunch".into()) }
}

fn start(call: &str) -> Fact {
    let (call, tool, input) = (call.to_owned(), "Bash".to_owned(), serde_json::json!({ "command": "make" }));
    Fact::ToolStarted { call, tool, input, write_ahead: true, source: Source::Hook }
}

#[test]
fn a_second_driver_is_told_who_drives() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let driver = engine.drive(id, "first").unwrap();
    assert_eq!((driver.epoch(), driver.session()), (1, id));
    let state = engine.load(id).unwrap().state;
    assert_eq!(state.driver.unwrap().holder, here("first"));

    let another = room.quiet();
    let Err(error) = another.drive(id, "second") else { panic!("two drivers") };
    let Error::Store(StoreError::Held(lease)) = &error else { panic!("{error:?}") };
    let me = here("first");
    assert_eq!((lease.holder.pid, &lease.holder.host), (std::process::id(), &me.host));
    assert_eq!(error.to_string(), format!("the session is driven by first (pid {} on {})", me.pid, me.host));
    assert_eq!(another.delete(id).unwrap_err().code(), "held", "nor can it be removed");
    driver.heartbeat().unwrap();
    assert_eq!(another.settle().unwrap(), [], "it lives");
}

#[test]
fn a_driver_that_is_dropped_lets_go() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    drop(engine.drive(id, "first").unwrap());
    let state = engine.load(id).unwrap().state;
    assert!(state.driver.is_none());
    assert_eq!(state.status, Status::Active);
    assert!(engine.lease(id).unwrap().is_none());
    let second = engine.drive(id, "second").unwrap();
    assert_eq!(second.epoch(), 2, "every taking counts");
}

#[test]
fn a_session_that_has_ended_is_not_driven_and_stays_as_it_is() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let ended = engine.act(id, Command::Abort { reason: None }).unwrap().state;
    let Err(error) = engine.drive(id, "too late") else { panic!("driven") };
    assert_eq!(error.code(), "session_ended");
    assert_eq!(engine.load(id).unwrap().state, ended, "not even a word about it");
    assert!(engine.lease(id).unwrap().is_none());
}

#[test]
fn what_is_asked_of_a_driven_session_is_asked_of_its_driver() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let driver = engine.drive(id, "driver").unwrap();
    let outside = room.quiet();
    let requests = || engine.load(id).unwrap().state.requests;
    // The driver refuses two of them and obeys the last.
    for (command, request) in [
        (Command::Complete { summary: None }, Request::Complete),
        (Command::Abort { reason: None }, Request::Abort),
        (pause(), Request::Pause),
    ] {
        let acted = outside.act(id, command).unwrap();
        assert_eq!(acted.requested, Some(request));
        assert_eq!(acted.state.status, Status::Active, "nothing happens until the driver obeys");
        let open = requests();
        assert_eq!(open.iter().map(|open| open.request).collect::<Vec<_>>(), [request]);
        if request != Request::Pause {
            let details = Some("not done".into());
            driver.act(Command::AnswerRequest { request: open[0].seq, obeyed: false, details }).unwrap();
        }
    }
    let error = outside.act(id, Command::Abort { reason: None }).unwrap_err();
    assert!(
        matches!(error, Error::Refused(Refusal::AskedBefore { request: Request::Pause })),
        "another end than the one it was asked for: {error:?}"
    );
    let open = requests();
    let paused = driver.act(pause()).unwrap();
    assert_eq!((paused.requested, paused.state.status), (None, Status::Paused));
    let answered =
        driver.act(Command::AnswerRequest { request: open[0].seq, obeyed: true, details: None }).unwrap();
    assert_eq!(answered.state.requests.len(), 0);

    // A request that the status does not allow is refused at once.
    let error = outside.act(id, pause()).unwrap_err();
    assert!(
        matches!(error, Error::InvalidStateTransition { from: Status::Paused, to: Status::Paused }),
        "{error:?}"
    );
    // Facts are heard from everybody, and with no driver commands take effect at once.
    outside.act(id, note("from outside")).unwrap();
    drop(driver);
    let acted = outside.act(id, Command::Abort { reason: None }).unwrap();
    assert_eq!((acted.requested, acted.state.status), (None, Status::Aborted));
    assert_eq!(notes(&engine, id), ["from outside"]);
}

#[test]
fn several_at_once_are_asked_for_in_their_order() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    engine.act(id, pause()).unwrap();
    let _driver = engine.drive(id, "driver").unwrap();
    let resume = Command::Resume { reset_breaker: false, details: None };
    let acted = room.quiet().act_all(id, vec![resume, pause()], None).unwrap();
    assert_eq!(acted.requested, Some(Request::Pause));
    assert_eq!(acted.state.status, Status::Active);
}

#[test]
fn commands_under_the_drivers_epoch_act_for_it() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let driver = engine.drive(id, "driver").unwrap();
    let hook = room.engine_as(driver.epoch());
    let acted = hook.act(id, start("c1")).unwrap();
    assert!(!acted.late);
    let event = engine.events(id, acted.seq - 1, 1).unwrap().remove(0);
    let segno_store::EventRow::Whole(event) = event else { panic!() };
    assert_eq!((event.run.as_deref(), event.epoch), (Some("run-1"), Some(driver.epoch())));
    let acted = hook.act(id, Command::Complete { summary: None }).unwrap();
    assert_eq!((acted.requested, acted.state.status), (None, Status::Completed));
}

#[test]
fn a_replaced_driver_is_heard_as_late_and_obeyed_no_more() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let old = engine.drive(id, "old").unwrap();
    let taken = room.store().acquire(id, &here("new"), Some(segno_store::Over::epoch(old.epoch()))).unwrap();
    assert_eq!(taken.epoch, 2);
    let error = old.heartbeat().unwrap_err();
    assert_eq!(error.code(), "stale_epoch");
    let error = old.act(pause()).unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::StaleEpoch { given: 1, current: 2 })), "{error:?}");

    let long = "still here ".repeat(2_000);
    let acted = old.act(note(&long)).unwrap();
    assert!(acted.late);
    assert_eq!(acted.state.late, 1);
    assert_eq!(notes(&engine, id), Vec::<String>::new(), "it changes nothing else");
    let event = engine.events(id, acted.seq - 1, 1).unwrap().remove(0);
    let segno_store::EventRow::Whole(event) = event else { panic!() };
    assert_eq!(event.kind, "late_recorded");
    let body: serde_json::Value = serde_json::from_str(&event.body).unwrap();
    assert_eq!((&body["epoch"], &body["kind"]), (&1.into(), &"history_noted".into()));
    let text: segno_core::Text = serde_json::from_value(body["body"]["details"].clone()).unwrap();
    assert_eq!(engine.whole(&text).unwrap(), long, "a long text comes along");

    let seq = acted.seq;
    drop(old);
    assert_eq!(engine.load(id).unwrap().state.seq, seq, "it goes without a word");
    assert_eq!(engine.lease(id).unwrap().unwrap().epoch, 2, "and leaves the new one alone");
}

#[test]
fn a_driver_without_a_lease_is_nobody_to_ask() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let driver = engine.drive(id, "vanishes").unwrap();
    // As when its word that it lets go was lost.
    room.store().release(id, driver.epoch()).unwrap();
    std::mem::forget(driver);
    assert!(engine.load(id).unwrap().state.driver.is_some());
    let acted = room.quiet().act(id, pause()).unwrap();
    assert_eq!((acted.requested, acted.state.status), (None, Status::Paused));
}
