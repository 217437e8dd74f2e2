//! Drivers that died, and how it is told.

use rstest::rstest;
use segno_core::Command;
use segno_core::Fact;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::event::Holder;
use segno_core::event::PauseReason;
use segno_core::event::Source;
use segno_engine::Engine;
use segno_engine::lease::here;
use segno_engine::lease::life;
use segno_engine::lease::silent_seconds;
use segno_engine::life::Death;
use segno_engine::life::Life;
use segno_store::Lease;
use segno_store::Store as _;

use crate::child::Helper;
use crate::common::Room;

/// A session that somebody with this description drives, with an open call.
fn driven_by(room: &Room, engine: &Engine, holder: Holder) -> SessionId {
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let lease = room.store().acquire(id, &holder, None).unwrap();
    let under = room.engine_as(lease.epoch);
    under.act(id, Command::AttachDriver { epoch: lease.epoch, holder }).unwrap();
    let (call, tool, input) = ("call-1".to_owned(), "Bash".to_owned(), serde_json::json!({}));
    under.act(id, Fact::ToolStarted { call, tool, input, write_ahead: true, source: Source::Hook }).unwrap();
    id
}

fn assert_interrupted(engine: &Engine, id: SessionId, what: &str) {
    let state = engine.load(id).unwrap().state;
    assert_eq!(state.status, Status::Interrupted);
    assert_eq!(state.reason.as_ref().unwrap().what, what);
    assert!(state.driver.is_none());
    assert!(state.calls.open.is_empty());
    assert_eq!(state.calls.in_doubt.keys().collect::<Vec<_>>(), ["call-1"]);
    let calls = engine.items(id, segno_core::List::Tools).unwrap();
    assert_eq!(calls[0].body["state"], "in_doubt");
    assert!(engine.lease(id).unwrap().is_none());
    assert_eq!(engine.settle().unwrap(), [], "said once");
}

#[test]
fn a_killed_driver_is_settled_and_its_calls_are_in_doubt() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let mut helper = Helper::start("drive", &room.store_path(), &id.to_string());
    assert_eq!(helper.hear().as_deref(), Some("driving"));
    assert_eq!(engine.settle().unwrap(), [], "it lives");
    let Err(error) = engine.drive(id, "second") else { panic!("two drivers") };
    assert!(error.to_string().contains(&format!("helper (pid {}", helper.pid())), "{error}");
    helper.kill();
    assert_eq!(engine.settle().unwrap(), [id]);
    assert_interrupted(&engine, id, "crash");
    let details = engine.load(id).unwrap().state.reason.unwrap().details.unwrap();
    assert!(details.starts_with(&format!("helper (pid {} on ", helper.pid())), "{details}");
    engine.act(id, Command::Resume { reset_breaker: false, details: None }).unwrap();
}

#[test]
fn a_zombie_does_not_drive() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let mut helper = Helper::start("drive", &room.store_path(), &id.to_string());
    assert_eq!(helper.hear().as_deref(), Some("driving"));
    // Dead, but nobody has collected it yet.
    let pid = rustix::process::Pid::from_raw(i32::try_from(helper.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(helper.hear(), None, "its end of the pipe is closed");
    while !std::fs::read_to_string(format!("/proc/{}/stat", helper.pid())).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let driver = engine.drive(id, "next").unwrap();
    assert_eq!(engine.load(id).unwrap().state.status, Status::Interrupted);
    assert_eq!(driver.epoch(), 2, "the settling took nobody's place");
}

#[rstest]
#[case::pid_used_again(|mut holder: Holder| { holder.process_start += 1; holder }, "crash")]
#[case::no_such_process(|mut holder: Holder| { holder.pid = u32::MAX; holder }, "crash")]
#[case::another_boot(|mut holder: Holder| { holder.boot_id = "before".to_owned(); holder }, "power loss")]
fn a_holder_that_is_no_more(#[case] change: fn(Holder) -> Holder, #[case] reason: &str) {
    let room = Room::new();
    let engine = room.quiet();
    let id = driven_by(&room, &engine, change(here("gone")));
    assert_eq!(engine.settle().unwrap(), [id]);
    assert_interrupted(&engine, id, reason);
}

#[test]
fn elsewhere_nobody_is_dead_and_silence_is_told_by_the_stores_clock() {
    let at = |seconds: i64| segno_core::Timestamp::from_micros(1_768_557_600_000_000).plus_seconds(seconds);
    let lease = |holder: Holder, silent: i64| Lease {
        epoch: 1,
        holder,
        acquired_at: at(-1_000),
        heartbeat_at: at(0),
        now: at(silent),
        steady: None,
    };
    let elsewhere = Holder { host: "another-host".to_owned(), ..here("far") };
    let contained = Holder { pid_namespace: "pid:[1]".to_owned(), pid: u32::MAX, ..here("contained") };
    for holder in [elsewhere, contained] {
        for (silent, expected) in [(0, None), (60, None), (61, Some(61)), (-5_000, None)] {
            let lease = lease(holder.clone(), silent);
            assert_eq!(life(&lease), Life::Unknown, "{} silent for {silent} s", holder.what);
            assert_eq!(silent_seconds(&lease), expected, "{} silent for {silent} s", holder.what);
        }
    }
    // On this machine the process decides, however long it was silent: a laptop may have slept.
    let near = lease(here("near"), 1_000_000);
    assert_eq!((life(&near), silent_seconds(&near)), (Life::Alive, None));
    let before = lease(Holder { boot_id: "before".to_owned(), ..here("near") }, 0);
    assert_eq!(life(&before), Life::Dead(Death::Rebooted));
}

/// The clock that people read is set back and forward; the one that counts for whoever shares the machine is not.
#[test]
fn a_clock_that_is_set_makes_nobody_die_and_nobody_live() {
    let at = |seconds: i64| segno_core::Timestamp::from_micros(1_768_557_600_000_000).plus_seconds(seconds);
    let second = 1_000_000;
    // Another namespace or another name of the machine, but the same boot of it.
    let contained = Holder { pid_namespace: "pid:[1]".to_owned(), pid: u32::MAX, ..here("contained") };
    let renamed = Holder { host: "another-name".to_owned(), ..contained.clone() };
    for holder in [contained, renamed] {
        for set in [-3_600, 0, 3_600] {
            for (silent, expected) in [(0, None), (30, None), (61, Some(61))] {
                let lease = Lease {
                    epoch: 1,
                    holder: holder.clone(),
                    acquired_at: at(-1_000),
                    heartbeat_at: at(0),
                    now: at(set + i64::from(silent)),
                    steady: Some(segno_store::Steady {
                        heartbeat: 500 * second,
                        now: (500 + u64::from(silent as u32)) * second,
                    }),
                };
                assert_eq!(silent_seconds(&lease), expected, "set by {set} s, silent for {silent} s");
            }
        }
    }
    // Of another machine, or with a clock that runs apart, only the time of day is known.
    let far = Holder { host: "another-host".to_owned(), boot_id: "its own".to_owned(), ..here("far") };
    let apart = Holder { pid_namespace: "pid:[1]".to_owned(), ..here("apart") };
    for (holder, heartbeat) in [(far, 0), (apart, 900 * second)] {
        let steady = Some(segno_store::Steady { heartbeat, now: 500 * second });
        let (acquired_at, heartbeat_at, now) = (at(-1_000), at(0), at(10));
        let lease = Lease { epoch: 1, holder, acquired_at, heartbeat_at, now, steady };
        assert_eq!(silent_seconds(&lease), None);
        assert_eq!(silent_seconds(&Lease { now: at(61), ..lease }), Some(61));
    }
}

#[test]
fn a_heartbeat_is_told_by_both_clocks() {
    let room = Room::new();
    let engine = room.quiet();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let driver = engine.drive(id, "near").unwrap();
    let beat = || engine.lease(id).unwrap().unwrap();
    let first = beat().steady.unwrap();
    assert!(first.now >= first.heartbeat);
    driver.heartbeat().unwrap();
    let second = beat();
    assert!(second.steady.unwrap().heartbeat > first.heartbeat);
    assert_eq!(second.holder, here("near"), "the holder is the same");
}

#[test]
fn a_driver_elsewhere_that_just_spoke_is_left_alone() {
    let room = Room::new();
    let engine = room.quiet();
    let elsewhere = Holder { host: "another-host".to_owned(), ..here("far") };
    let id = driven_by(&room, &engine, elsewhere);
    assert_eq!(engine.settle().unwrap(), []);
    let Err(error) = engine.drive(id, "near") else { panic!("two drivers") };
    assert!(error.to_string().contains("on another-host"), "{error}");
}

/// A look changes nothing for one that may live; whoever wants to drive takes its place.
#[test]
fn a_driver_elsewhere_that_fell_silent_is_not_marked_and_can_be_replaced() {
    let room = Room::new();
    let engine = room.quiet();
    let elsewhere = Holder { host: "another-host".to_owned(), ..here("far") };
    let id = driven_by(&room, &engine, elsewhere);
    let store = rusqlite::Connection::open(room.store_path()).unwrap();
    store.execute("UPDATE leases SET heartbeat_us = heartbeat_us - 70000000", []).unwrap();
    store.execute("UPDATE leases SET holder = json_set(holder, '$.boot_id', 'its own')", []).unwrap();
    assert_eq!(engine.settle().unwrap(), []);
    assert_eq!(engine.load(id).unwrap().state.status, Status::Active);
    assert_eq!(silent_seconds(&engine.lease(id).unwrap().unwrap()), Some(70));
    let driver = engine.drive(id, "near").unwrap();
    assert_eq!(driver.epoch(), 2);
    let state = engine.load(id).unwrap().state;
    assert_eq!((state.status, state.calls.in_doubt.len()), (Status::Active, 1));
    let late =
        room.engine_as(1).act(id, Fact::Reported { what: "x".to_owned(), body: serde_json::json!({}) });
    assert!(late.is_ok_and(|acted| acted.late), "what the other one still says is late");
}

#[test]
fn what_was_paused_before_its_driver_died_stays_paused_but_its_calls_are_in_doubt() {
    let room = Room::new();
    let engine = room.quiet();
    let id = driven_by(&room, &engine, Holder { pid: u32::MAX, ..here("gone") });
    let under = room.engine_as(1);
    // Its driver paused it and died before it let go.
    room.store().acquire(id, &here("alive"), Some(segno_store::Over::epoch(1))).unwrap();
    room.engine_as(2).act(id, Command::Pause { reason: PauseReason::Signal, details: None }).unwrap();
    room.store()
        .acquire(id, &Holder { pid: u32::MAX, ..here("gone") }, Some(segno_store::Over::epoch(2)))
        .unwrap();
    drop(under);
    assert_eq!(engine.settle().unwrap(), [], "nothing was interrupted");
    let state = engine.load(id).unwrap().state;
    assert_eq!((state.status, state.reason.unwrap().what.as_str()), (Status::Paused, "user interrupt"));
    assert!(state.driver.is_none());
    assert_eq!((state.calls.open.len(), state.calls.in_doubt.len()), (0, 1));
    assert!(engine.lease(id).unwrap().is_none());
}

#[test]
fn a_settling_that_was_cut_short_is_finished_by_the_next() {
    let room = Room::new();
    let engine = room.quiet();
    let gone = Holder { boot_id: "before".to_owned(), ..here("driver") };
    for settler in [here("segno settle"), Holder { pid: u32::MAX, ..here("segno settle") }] {
        let id = driven_by(&room, &engine, gone.clone());
        // It took the lease to say that the driver died, and said no more.
        room.store().acquire(id, &settler, Some(segno_store::Over::epoch(1))).unwrap();
        assert_eq!(engine.settle().unwrap(), [id]);
        assert_interrupted(&engine, id, "power loss");
        let details = engine.load(id).unwrap().state.reason.unwrap().details.unwrap();
        assert!(details.starts_with("driver (pid "), "{details}");
    }
}

#[test]
fn many_that_settle_at_once_say_it_once() {
    let room = Room::new();
    let engine = room.quiet();
    let id = driven_by(&room, &engine, Holder { pid: u32::MAX, ..here("gone") });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let engine = room.quiet();
            scope.spawn(move || engine.settle().unwrap());
        }
    });
    engine.settle().unwrap();
    assert_interrupted(&engine, id, "crash");
    let history = engine.items(id, segno_core::List::History).unwrap();
    let said = history.iter().filter(|item| item.body["action"] == "session_interrupted");
    assert_eq!(said.count(), 1);
}

#[test]
fn a_command_meets_a_dead_driver_and_settles_it_first() {
    let room = Room::new();
    let engine = room.quiet();
    let id = driven_by(&room, &engine, Holder { pid: u32::MAX, ..here("gone") });
    let acted = engine.act(id, Command::Abort { reason: Some("enough".into()) }).unwrap();
    assert_eq!((acted.requested, acted.state.status), (None, Status::Aborted));
    let history = engine.items(id, segno_core::List::History).unwrap();
    assert!(history.iter().any(|item| item.body["action"] == "session_interrupted"));
}

#[test]
fn a_session_whose_driver_died_can_be_removed() {
    let room = Room::new();
    let engine = room.quiet();
    let id = driven_by(&room, &engine, Holder { pid: u32::MAX, ..here("gone") });
    assert!(engine.delete(id).unwrap());
}
