//! Many processes, none of them killed.

use std::collections::HashSet;
use std::path::Path;
use std::process::Child;
use std::process::Stdio;

use segno_core::event::Maker;
use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;

use crate::common::*;
use crate::home::Home;
use crate::home::again;
use crate::home::role;
use crate::is_full;

fn start(test: &str, role: &str) -> Child {
    again(test, role).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn assert_ends_well(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn purpose(number: u32) -> Purpose {
    if number.is_multiple_of(2) { Purpose::OneShot } else { Purpose::LongLived }
}

fn parts(role: &str) -> (&Path, u32, u32) {
    let mut parts = role.split('#');
    let mut next = || parts.next().unwrap();
    (Path::new(next()), next().parse().unwrap(), next().parse().unwrap())
}

#[test]
fn eight_processes_append_to_one_session() {
    const TEST: &str = "many::eight_processes_append_to_one_session";
    if let Some(role) = role() {
        let (dir, number, count) = parts(&role);
        let path = dir.join("segno.db");
        let options = OpenOptions { purpose: purpose(number), ..OpenOptions::default() };
        let mut store = SqliteStore::open(&path, options.clone()).unwrap();
        let session = ids(&store)[0];
        for n in 0..count {
            if n % 20 == 0 {
                store = SqliteStore::open(&path, options.clone()).unwrap();
            }
            let name = format!("p{number}-{n}");
            let done = append(&store, facts(session, &name, vec![note(&name)])).unwrap();
            assert!(!done.repeated);
        }
        return;
    }
    let home = Home::new();
    let session = make(&home.open(), 1);
    let children: Vec<_> =
        (0..8).map(|number| start(TEST, &format!("{}#{number}#200", home.dir().display()))).collect();
    children.into_iter().for_each(assert_ends_well);
    let store = home.open();
    assert_eq!(assert_whole(&store, session).state.seq, 1_601);
    for number in 0..8 {
        let prefix = format!("p{number}-");
        let own: Vec<String> =
            keys(&store, session).into_iter().filter(|key| key.starts_with(&prefix)).collect();
        let wanted: Vec<String> = (0..200).map(|n| format!("{prefix}{n}")).collect();
        assert_eq!(own, wanted, "each process's events are in its own order");
    }
}

#[test]
fn two_processes_make_sessions_at_the_same_moments() {
    const TEST: &str = "many::two_processes_make_sessions_at_the_same_moments";
    if let Some(role) = role() {
        let (dir, number, count) = parts(&role);
        let options = OpenOptions { purpose: purpose(number), ..OpenOptions::default() };
        let store = SqliteStore::open(&dir.join("segno.db"), options).unwrap();
        for n in 0..count {
            let identity = u128::from(number) << 64 | u128::from(n);
            store.create(to_create(i64::from(n), identity, PROJECT, Maker::Run)).unwrap();
        }
        return;
    }
    let count = if is_full() { 2_000 } else { 300 };
    // There is no store yet: they make it too.
    let home = Home::new();
    let children: Vec<_> =
        (0..2).map(|number| start(TEST, &format!("{}#{number}#{count}", home.dir().display()))).collect();
    children.into_iter().for_each(assert_ends_well);
    let ids = ids(&home.open());
    assert_eq!(ids.len(), 2 * count);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 2 * count);
}
