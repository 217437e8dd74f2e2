//! Making sessions.

use segno_core::Command;
use segno_core::Event;
use segno_core::Refusal;
use segno_core::Status;
use segno_core::event::Maker;
use segno_store::Error;

use crate::Backend;
use crate::common::*;

on_every_backend![
    a_session_begins_with_its_first_events,
    a_taken_name_moves_by_a_microsecond,
    one_session_at_a_time_names_the_open_one,
    an_ended_session_or_one_of_a_run_is_no_hindrance,
    an_identity_is_made_once,
    making_it_twice_with_one_key_makes_it_once,
    a_refused_or_senseless_beginning_leaves_nothing,
];

fn a_session_begins_with_its_first_events(backend: &dyn Backend) {
    let store = backend.open();
    let mut create = to_create(1, 1, PROJECT, Maker::New);
    let mut first = create.first;
    create.first = Box::new(move |id| {
        let mut events = first(id)?;
        events.push(note("second"));
        events.push(note("third"));
        Ok(events)
    });
    let made = store.create(create).unwrap();
    assert_eq!(made.notices, Vec::<String>::new());
    assert_eq!(made.state.session_id.to_string(), "session_20260101_000001_000000");
    assert_eq!((made.state.seq, made.state.status), (3, Status::Active));
    let other = backend.open();
    assert_eq!(assert_whole(&*other, made.state.session_id), made);
    assert_eq!(keys(&*other, made.state.session_id), ["create-1", "create-1/1", "create-1/2"]);
}

fn a_taken_name_moves_by_a_microsecond(backend: &dyn Backend) {
    let (one, two) = (backend.open(), backend.open());
    let mut names = Vec::new();
    for number in 0..6 {
        let store = if number % 2 == 0 { &one } else { &two };
        let made = store.create(to_create(5, number, PROJECT, Maker::Run)).unwrap();
        let [event] = &journal(&**store, made.state.session_id)[..] else { panic!() };
        let Event::SessionCreated(created) = event.event().unwrap() else { panic!() };
        assert_eq!(created.id, made.state.session_id, "the event carries the name that was free");
        names.push(made.state.session_id.to_string());
    }
    let wanted: Vec<_> = (0..6).map(|micros| format!("session_20260101_000005_{micros:06}")).collect();
    assert_eq!(names, wanted);
}

fn one_session_at_a_time_names_the_open_one(backend: &dyn Backend) {
    let store = backend.open();
    let alone = |number: u32, project: &str| {
        let mut create = to_create(number.into(), number.into(), project, Maker::New);
        create.alone_in = Some(project.to_owned());
        create
    };
    let first = store.create(alone(1, "/a")).unwrap().state.session_id;
    let again = backend.open().create(alone(2, "/a"));
    assert!(matches!(again, Err(Error::AlreadyOpen(who)) if who == first), "{again:?}");
    assert_eq!(ids(&*store), [first]);
    // Another project is another matter, and so is one who does not ask to be alone.
    store.create(alone(3, "/b")).unwrap();
    store.create(to_create(4, 4, "/a", Maker::New)).unwrap();
}

fn an_ended_session_or_one_of_a_run_is_no_hindrance(backend: &dyn Backend) {
    let store = backend.open();
    let ended = make_in(&*store, 1, "/a", Maker::New);
    append(&*store, command(ended, "end", Command::Complete { summary: None })).unwrap();
    make_in(&*store, 2, "/a", Maker::Run);
    let mut create = to_create(3, 3, "/a", Maker::New);
    create.alone_in = Some("/a".to_owned());
    store.create(create).unwrap();
}

fn an_identity_is_made_once(backend: &dyn Backend) {
    let store = backend.open();
    let first = make(&*store, 1);
    let mut create = to_create(9, 1, PROJECT, Maker::Run);
    create.key = key("another-key");
    let again = backend.open().create(create);
    assert!(matches!(again, Err(Error::AlreadyOpen(who)) if who == first), "{again:?}");
    assert_eq!(ids(&*store), [first]);
}

fn making_it_twice_with_one_key_makes_it_once(backend: &dyn Backend) {
    let store = backend.open();
    let create = || {
        let mut create = to_create(1, 1, PROJECT, Maker::New);
        create.alone_in = Some(PROJECT.to_owned());
        create
    };
    let made = store.create(create()).unwrap();
    jot(&*store, made.state.session_id, "later");
    // Whoever did not hear the answer asks again, and must not be told that somebody else was first.
    let again = backend.open().create(create()).unwrap();
    assert_eq!(again.state.session_id, made.state.session_id);
    assert_eq!(again.state.seq, 2);
    assert_eq!(ids(&*store).len(), 1);
}

fn a_refused_or_senseless_beginning_leaves_nothing(backend: &dyn Backend) {
    let store = backend.open();
    let mut create = to_create(1, 1, PROJECT, Maker::Run);
    create.first = Box::new(|_| Err(Refusal::Already("no".into())));
    assert!(matches!(store.create(create), Err(Error::Refused(Refusal::Already(_)))));

    let mut create = to_create(1, 1, PROJECT, Maker::Run);
    create.first = Box::new(|_| Ok(Vec::new()));
    assert!(matches!(store.create(create), Err(Error::SessionDamaged { .. })));

    let mut create = to_create(1, 1, PROJECT, Maker::Run);
    create.first = Box::new(|_| Ok(vec![note("no beginning")]));
    assert!(matches!(store.create(create), Err(Error::SessionDamaged { .. })));

    // A name other than the one that was free would make two names for one session.
    let mut create = to_create(1, 1, PROJECT, Maker::Run);
    let mut first = create.first;
    create.first = Box::new(move |id| first(id.next()));
    assert!(matches!(store.create(create), Err(Error::SessionDamaged { .. })));

    assert_eq!(ids(&*backend.open()), []);
}
