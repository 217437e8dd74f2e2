//! No room left.

use std::path::Path;
use std::process::Command;

use segno_core::SessionId;
use segno_store::Error;
use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;
use segno_store::verify;

use crate::common::*;
use crate::home::Home;
use crate::home::again;
use crate::home::role;

/// Writes until there is no room, makes room, and writes on.
fn fill(dir: &Path, purpose: Purpose, is_expected: fn(&Error) -> bool, make_room: impl FnOnce()) {
    let path = dir.join(format!("{purpose:?}.db"));
    let store = SqliteStore::open(&path, OpenOptions { purpose, ..OpenOptions::default() }).unwrap();
    let session = make(&store, 1);
    let mut acked = Vec::new();
    let (failed, why) = (0..100_000)
        .find_map(|n| {
            let name = format!("n{n}");
            match append(&store, facts(session, &name, vec![note(&"x".repeat(3_000))])) {
                Ok(done) => {
                    acked.push((name, done.last));
                    None
                }
                Err(why) => Some((name, why)),
            }
        })
        .expect("the room never ran out");
    assert!(is_expected(&why), "{why:?}");
    assert!(acked.len() > 10, "only {} before {why:?}", acked.len());
    // Trying on does no harm, and what is there can be read.
    for _ in 0..5 {
        let _ = append(&store, facts(session, &failed, vec![note(&"x".repeat(3_000))]));
    }
    assert_there(&store, session, &acked);
    make_room();
    let done = append(&store, facts(session, &failed, vec![note(&"x".repeat(3_000))])).unwrap();
    acked.push((failed, done.last));
    acked.push(("after".to_owned(), jot(&store, session, "after")));
    let other = SqliteStore::open(&path, OpenOptions::default()).unwrap();
    assert_there(&other, session, &acked);
    assert_eq!(assert_whole(&other, session).state.seq, acked.len() as u64 + 1);
    assert!(verify::verify(&other, true, |_, _| {}).unwrap().is_clean());
}

fn assert_there(store: &dyn Store, session: SessionId, acked: &[(String, u64)]) {
    let there = journal(store, session);
    for (name, seq) in acked {
        assert_eq!(there[*seq as usize - 1].key, *name);
    }
}

#[test]
fn a_full_disk_loses_nothing() {
    const TEST: &str = "room::a_full_disk_loses_nothing";
    if let Some(dir) = role() {
        let dir = Path::new(&dir);
        for purpose in [Purpose::OneShot, Purpose::LongLived] {
            let ballast = dir.join("ballast");
            std::fs::write(&ballast, vec![1; 700_000]).unwrap();
            // Which of the two is chance: where a commit was already under way, nobody knows what of it is on the disk.
            let is_full = |why: &Error| match why {
                Error::Full { .. } => true,
                Error::Failed { certainty, .. } => *certainty == segno_store::Certainty::Unknown,
                _ => false,
            };
            fill(dir, purpose, is_full, || std::fs::remove_file(&ballast).unwrap());
            for entry in std::fs::read_dir(dir).unwrap() {
                std::fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
        return;
    }
    let home = Home::new();
    let child = again(TEST, home.dir().to_str().unwrap());
    // In a mount namespace of its own, which ends with the process.
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c"]);
    shell.arg("mount -t tmpfs -o size=2m,mode=0700 none \"$SEGNO_TEST_ROLE\" || exit 77; exec \"$0\" \"$@\"");
    shell.arg(child.get_program()).args(child.get_args()).env("SEGNO_TEST_ROLE", home.dir());
    match shell.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.status.code() == Some(101) => {
            panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        }
        other => println!("skipped: no small file system can be mounted here ({other:?})"),
    }
}

#[test]
fn a_limit_on_file_size_loses_nothing() {
    const TEST: &str = "room::a_limit_on_file_size_loses_nothing";
    if let Some(dir) = role() {
        let raise = || {
            use rustix::process::Resource;
            let mut limit = rustix::process::getrlimit(Resource::Fsize);
            limit.current = limit.maximum;
            rustix::process::setrlimit(Resource::Fsize, limit).unwrap();
        };
        let is_failed = |why: &Error| matches!(why, Error::Failed { .. });
        fill(Path::new(&dir), Purpose::LongLived, is_failed, raise);
        return;
    }
    let home = Home::quick();
    let child = again(TEST, home.dir().to_str().unwrap());
    let mut shell = Command::new("sh");
    // In blocks of 512 bytes. Without the trap the signal would end the process before the error is seen.
    shell.args(["-c", "trap '' XFSZ; ulimit -S -f 2000; exec \"$0\" \"$@\""]);
    shell.arg(child.get_program()).args(child.get_args()).env("SEGNO_TEST_ROLE", home.dir());
    let output = shell.output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
