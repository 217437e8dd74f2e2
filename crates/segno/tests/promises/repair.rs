//! Repair never makes it worse, and damage is named.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::common::SEGNO;
use crate::common::TestEnv;
use crate::lab::skip;

/// Three sessions with a few notes each, all in the database's own file.
pub(crate) fn three_sessions(env: &TestEnv) -> Vec<String> {
    let sessions: Vec<String> = (1..=3)
        .map(|n| {
            let id = env.start(&[&format!("work {n}"), "--parallel"]);
            for note in 0..4 {
                env.ok(&["note", "--session", &id, &format!("note {note} of {n}: {}", "x".repeat(300))]);
            }
            id
        })
        .collect();
    // A copy has no log beside it.
    env.ok(&["backup", "../copy.db"]);
    plant(env, &fs::read(env.path("copy.db")).unwrap());
    sessions
}

fn store(env: &TestEnv) -> std::path::PathBuf {
    env.path("data/segno/segno.db")
}

/// Puts a database in the place of the store.
fn plant(env: &TestEnv, bytes: &[u8]) {
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(env.path(&format!("data/segno/segno.db{suffix}")));
    }
    fs::write(store(env), bytes).unwrap();
}

/// The store without its first bytes: nothing opens it, and everything can be saved.
fn behead(env: &TestEnv) -> Vec<u8> {
    let mut bytes = fs::read(store(env)).unwrap();
    bytes[..100].fill(b'x');
    plant(env, &bytes);
    bytes
}

/// How many events each session has.
fn counts(env: &TestEnv, sessions: &[String]) -> Vec<usize> {
    sessions.iter().map(|id| env.ok(&["log", id, "--json"]).stdout.lines().count()).collect()
}

/// The program under strace, with a fault; none if strace cannot be used here.
fn with_fault(env: &TestEnv, fault: &str, args: &[&str]) -> Option<Output> {
    let calls = fault.split(':').next().unwrap();
    let inject = format!("inject={fault}");
    let trace = format!("trace={calls}");
    let mut command = env.command("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject, SEGNO]).args(args);
    command.output().ok()
}

/// Whatever a repair that met a fault said: either it saved everything, or nothing was touched and it did not say well.
fn assert_whole_or_untouched(
    env: &TestEnv,
    what: &str,
    said: &Output,
    broken: &[u8],
    sessions: &[String],
    before: &[usize],
) {
    let code = said.status.code();
    let text = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    let shown: Option<Value> = serde_json::from_slice(&said.stdout).ok();
    if code == Some(0) {
        assert_eq!(shown.unwrap()["well"], true, "{what}: {text}");
    } else {
        assert!(shown.is_none_or(|shown| shown["well"] != true), "{what}: {text}");
        // Cut short while the files change places: no store, and a mark that says so. Else it is as it was.
        if !env.path("data/segno/segno.db.salvaging").exists() && store(env).exists() {
            let now = fs::read(store(env)).unwrap();
            if now == broken {
                let apart = env.path("data/segno/quarantine");
                let left = fs::read_dir(apart).map_or(0, |entries| entries.count());
                assert_eq!(left, 0, "{what}: something was left behind: {text}");
            }
        }
        // Once the machine is well, repairing saves everything.
        let again = env.run(&["doctor", "--repair", "--json"]);
        assert_eq!(again.code, 0, "{what}: {text}\nthen: {}{}", again.stdout, again.stderr);
    }
    assert_eq!(counts(env, sessions), before, "{what}: {text}");
}

promise!(
    /// A store that can be saved whole is not replaced by an empty one because the disk failed for a moment: the repair
    /// ends, and the next one saves everything.
    fn an_error_of_the_disk_ends_a_repair_and_changes_nothing() {
        let faults = [
            ("fsync,fdatasync:error=ENOSPC", 14),
            ("fsync,fdatasync:error=EIO", 14),
            ("pwrite64:error=ENOSPC", 24),
            ("pread64:error=EIO", 24),
            ("openat:error=EMFILE", 30),
            ("rename,renameat2:error=EIO", 4),
        ];
        let env = TestEnv::new();
        let sessions = three_sessions(&env);
        let whole = fs::read(store(&env)).unwrap();
        let before = counts(&env, &sessions);
        let mut ended = 0;
        for (fault, most) in faults {
            for when in (1..=most).step_by(3) {
                let fault = format!("{fault}:when={when}");
                let _ = fs::remove_dir_all(env.path("data/segno/quarantine"));
                plant(&env, &whole);
                let broken = behead(&env);
                let Some(said) = with_fault(&env, &fault, &["doctor", "--repair", "--json"]) else {
                    return skip("there is no strace");
                };
                ended += usize::from(!said.status.success());
                assert_whole_or_untouched(&env, &fault, &said, &broken, &sessions, &before);
            }
        }
        assert!(ended > 5, "only {ended} repairs were cut short");
    }
);

promise!(
    /// Where there is no room for what can be saved, nothing is replaced and the repair says so.
    fn a_full_disk_ends_a_repair_and_changes_nothing() {
        let env = TestEnv::new();
        let sessions = three_sessions(&env);
        let before = counts(&env, &sessions);
        let broken = behead(&env);
        let size = broken.len() / 1024;
        let mut ended = 0;
        for room in [16, 64, size + 16, size + 100, 2 * size, 2 * size + 120, 3 * size, 5 * size, 20 * size] {
            let _ = fs::remove_dir_all(env.path("data/segno/quarantine"));
            plant(&env, &broken);
            let script = format!(
                "mount -t tmpfs -o size={}k,mode=0700 none \"$XDG_DATA_HOME\" || exit 77
                 mkdir -m 700 \"$XDG_DATA_HOME/segno\" && cp ../broken.db \"$XDG_DATA_HOME/segno/segno.db\"
                 \"$SEGNO\" doctor --repair --json; code=$?
                 rm -rf ../after; cp -r \"$XDG_DATA_HOME/segno\" ../after; exit $code",
                size + room
            );
            fs::write(env.path("broken.db"), &broken).unwrap();
            let mut command = env.command("unshare");
            let Ok(said) = command.env("SEGNO", SEGNO).args(["--mount", "sh", "-c", &script]).output() else {
                return skip("there is no unshare");
            };
            if said.status.code() == Some(77) || !env.path("after").exists() {
                return skip("no small file system can be mounted here");
            }
            ended += usize::from(!said.status.success());
            // On with what it left, where there is room.
            fs::remove_dir_all(env.path("data/segno")).unwrap();
            fs::rename(env.path("after"), env.path("data/segno")).unwrap();
            let what = format!("{room} KiB free");
            assert_whole_or_untouched(&env, &what, &said, &broken, &sessions, &before);
        }
        assert!((1..9).contains(&ended), "{ended} of 9 repairs were cut short");
    }
);

promise!(
    /// When something readable was left in the damaged file, the repair does not say that all is well.
    fn a_repair_that_leaves_something_behind_does_not_say_well() {
        let env = TestEnv::new();
        let sessions = three_sessions(&env);
        let mut bytes = fs::read(store(&env)).unwrap();
        bytes.truncate(bytes.len() / 4096 * 4096 / 2);
        plant(&env, &bytes);
        let said = env.run(&["doctor", "--repair", "--json"]);
        let shown: Value = serde_json::from_str(&said.stdout).unwrap();
        let lost = shown["salvaged"]["lost"].as_array().unwrap().len();
        let partly = shown["salvaged"]["partly"].as_array().unwrap().len();
        assert!(lost + partly > 0, "{shown}");
        assert_eq!((&shown["well"], said.code), (&Value::Bool(false), 10), "{shown}");
        drop(sessions);
    }
);

promise!(
    /// Damage in an index, which nothing but a deep look sees and the next new session may stumble on, is mended too.
    fn a_damaged_index_is_mended() {
        let env = TestEnv::new();
        let sessions = three_sessions(&env);
        let before = counts(&env, &sessions);
        let whole = fs::read(store(&env)).unwrap();
        // What was acknowledged then, and nothing of what is made between.
        let heads = env.path("data/segno/segno.db.heads");
        let acknowledged = fs::read(&heads).unwrap();
        let db = rusqlite::Connection::open(env.path("copy.db")).unwrap();
        let mut ask = db.prepare("SELECT name, rootpage FROM sqlite_master WHERE type = 'index'").unwrap();
        let rows = ask.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, usize>(1)?))).unwrap();
        let indexes: Vec<(String, usize)> = rows.map(Result::unwrap).collect();
        assert!(indexes.iter().any(|(name, _)| name == "sqlite_autoindex_sessions_2"), "{indexes:?}");
        let mut named = 0;
        for (name, page) in indexes {
            let mut damaged = whole.clone();
            // In the entry that was made first; a page that has none has nothing to damage there.
            damaged[page * 4096 - 22] ^= 0x1f;
            plant(&env, &damaged);
            fs::write(&heads, &acknowledged).unwrap();
            named += usize::from(env.run(&["doctor", "--deep", "--json"]).code == 10);
            let said = env.run(&["doctor", "--repair", "--json"]);
            assert_eq!(said.code, 0, "{name}: {}{}", said.stdout, said.stderr);
            assert_eq!(env.run(&["doctor", "--deep", "--json"]).code, 0, "{name}: {}", said.stdout);
            assert_eq!(counts(&env, &sessions), before, "{name}");
            env.start(&["life goes on", "--parallel"]);
        }
        assert!(named >= 3, "only {named} were damaged");
    }
);

promise!(
    /// A store that says that it has more events than there can be is looked at and repaired like any other.
    fn a_number_that_was_made_up_keeps_nobody_busy() {
        let env = TestEnv::new();
        let sessions = three_sessions(&env);
        let before = counts(&env, &sessions);
        let damaged = rusqlite::Connection::open(store(&env)).unwrap();
        damaged
            .execute("UPDATE sessions SET head_seq = 9223372036854775807 WHERE id = ?1", [&sessions[0]])
            .unwrap();
        drop(damaged);
        for how in ["--deep", "--repair"] {
            let said = env.command("timeout").args(["60", SEGNO, "doctor", how, "--json"]).output().unwrap();
            assert_eq!(said.status.code(), Some(10), "{how}: {}", String::from_utf8_lossy(&said.stderr));
        }
        let other = &sessions[1..];
        assert_eq!(counts(&env, other), before[1..], "the others are whole");
        let read = env.raw(&["log", &sessions[0], "--json"]);
        assert!(String::from_utf8_lossy(&read.stdout).contains("note 3 of 1"), "what is there can be read");
    }
);
