//! Long texts, set aside.

use segno_core::Event;
use segno_core::SessionId;
use segno_core::Text;
use segno_store::Error;
use segno_store::Store;

use crate::Backend;
use crate::common::*;

on_every_backend![
    a_long_text_is_set_aside_and_read_back,
    a_text_lives_as_long_as_somebody_refers_to_it,
    nothing_is_collected_that_is_needed,
];

fn long_text() -> String {
    (0..6_000).map(|n| format!("line {n} of the log\n")).collect()
}

/// The hash of the text that the session's newest event refers to.
fn newest_hash(store: &dyn Store, session: SessionId) -> [u8; 32] {
    let stored = journal(store, session).pop().unwrap();
    let Event::HistoryNoted(noted) = stored.event().unwrap() else { panic!() };
    let Some(Text::Aside(aside)) = noted.details else { panic!("{noted:?}") };
    let digits = aside.hash.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let bytes: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

fn a_long_text_is_set_aside_and_read_back(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    append(&*store, facts(session, "long", vec![note(&long_text())])).unwrap();
    let reader = backend.open();
    assert!(journal(&*reader, session)[1].body.len() < 4_000);
    assert_eq!(reader.blob(&newest_hash(&*reader, session)).unwrap(), long_text());
    assert!(matches!(reader.blob(&[7; 32]), Err(Error::NoBlob(hash)) if hash == "07".repeat(32)));
    assert_whole(&*reader, session);
}

fn a_text_lives_as_long_as_somebody_refers_to_it(backend: &dyn Backend) {
    let store = backend.open();
    let (one, two) = (make(&*store, 1), make(&*store, 2));
    for session in [one, two, two] {
        let name = format!("long-{}", store.load(session).unwrap().state.seq);
        append(&*store, facts(session, &name, vec![note(&long_text())])).unwrap();
    }
    let hash = newest_hash(&*store, one);
    assert_eq!(newest_hash(&*store, two), hash);
    assert!(store.delete(one, None).unwrap());
    store.collect_garbage().unwrap();
    assert_eq!(backend.open().blob(&hash).unwrap(), long_text());
    assert!(store.delete(two, None).unwrap());
    store.collect_garbage().unwrap();
    assert!(matches!(backend.open().blob(&hash), Err(Error::NoBlob(_))));
}

fn nothing_is_collected_that_is_needed(backend: &dyn Backend) {
    let store = backend.open();
    let session = make(&*store, 1);
    append(&*store, facts(session, "long", vec![note(&long_text())])).unwrap();
    assert_eq!(store.collect_garbage().unwrap(), segno_store::Garbage::default());
    store.rebuild(session).unwrap();
    assert_eq!(store.collect_garbage().unwrap(), segno_store::Garbage::default());
    assert_eq!(store.blob(&newest_hash(&*store, session)).unwrap(), long_text());
}
