//! The disk says no at an exact moment. What errored is unknown, and a retry with the same key makes it certain.

use std::path::Path;

use segno_store::Certainty;
use segno_store::Error;
use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::sqlite::SqliteStore;
use segno_store::verify;

use crate::common::*;
use crate::home::Home;
use crate::home::role;
use crate::is_full;
use crate::trace;

const APPENDS: u64 = 6;

/// Appends with retries, and tells what went wrong on the way.
fn append_stubbornly(path: &Path, purpose: Purpose) -> Vec<String> {
    let options = || OpenOptions { purpose, ..OpenOptions::default() };
    // Opening may be what fails.
    let store = (0..5).find_map(|_| SqliteStore::open(path, options()).ok()).expect("it never opens");
    let session = ids(&store)[0];
    let mut errors = Vec::new();
    for n in 0..APPENDS {
        let name = format!("n{n}");
        let mut doubt = false;
        for attempt in 0.. {
            match append(&store, facts(session, &name, vec![note(&name)])) {
                Ok(done) => {
                    assert!(doubt || !done.repeated, "it was written although it was said not to be");
                    // Written anew it is synced as ever; found there, it must be made sure of.
                    if done.repeated {
                        assert_on_disk(path, &name);
                    }
                    break;
                }
                Err(why @ (Error::Full { .. } | Error::Failed { .. } | Error::UnusableLocation { .. }))
                    if attempt < 4 =>
                {
                    doubt |= why.certainty() == Certainty::Unknown;
                    errors.push(format!("{:?}: {why}", why.certainty()));
                }
                Err(why) => panic!("{why:?}"),
            }
        }
    }
    errors
}

/// What was in doubt is in the database's own file before it is acknowledged: the log's bytes may be on no disk.
fn assert_on_disk(path: &Path, name: &str) {
    let looking = OpenOptions { purpose: Purpose::Inspect, ..OpenOptions::default() };
    let store = SqliteStore::open(path, looking).unwrap();
    assert!(keys(&store, ids(&store)[0]).iter().any(|key| key == name), "{name} is only in the log");
}

#[test]
fn an_error_leaves_a_write_unknown_and_a_retry_settles_it() {
    const TEST: &str = "errors::an_error_leaves_a_write_unknown_and_a_retry_settles_it";
    if let Some(role) = role() {
        let (dir, purpose) = role.split_once('#').unwrap();
        let purpose = if purpose == "long" { Purpose::LongLived } else { Purpose::OneShot };
        for error in append_stubbornly(&Path::new(dir).join("segno.db"), purpose) {
            println!("errored {error}");
        }
        return;
    }
    if let Some(why) = trace::unavailable() {
        println!("skipped: strace cannot be used here ({why})");
        return;
    }
    let (mut faults, mut unknown, mut not_written) = (0, 0, 0);
    for (call, error) in [
        ("fsync,fdatasync", "EIO"),
        ("pwrite64", "EIO"),
        ("pwrite64", "ENOSPC"),
        ("ftruncate,fallocate", "EIO"),
    ] {
        for (index, purpose) in ["one", "long"].into_iter().enumerate() {
            let stride = if is_full() { 1 } else { 4 };
            for when in (1 + index..=24).step_by(stride) {
                let home = Home::quick();
                let session = make(&home.open(), 1);
                let fault = format!("{call}:error={error}:when={when}");
                let output = trace::run_with(&fault, TEST, &format!("{}#{purpose}", home.dir().display()));
                trace::assert_ended_well(&output, &fault);
                let said = String::from_utf8_lossy(&output.stdout);
                let errors = |word: &str| said.lines().filter(|line| line.contains(word)).count();
                faults += 1;
                unknown += errors("errored Unknown");
                not_written += errors("errored NotWritten");
                let store = home.open();
                assert_eq!(assert_whole(&store, session).state.seq, APPENDS + 1, "{fault}");
                let wanted: Vec<String> = std::iter::once("create-1".to_owned())
                    .chain((0..APPENDS).map(|n| format!("n{n}")))
                    .collect();
                assert_eq!(keys(&store, session), wanted, "{fault}");
                assert!(verify::verify(&store, true, |_, _| {}).unwrap().is_clean(), "{fault}");
            }
        }
    }
    println!("{faults} runs with a fault: {unknown} writes unknown, {not_written} known not to be written");
    assert!(unknown > 0, "no fault was ever seen in a commit");
}
