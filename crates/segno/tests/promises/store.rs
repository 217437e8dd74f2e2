//! What was acknowledged is kept, whole and in order.

use std::fs;
use std::path::Path;
use std::time::Duration;
use std::time::SystemTime;

use rusqlite::Connection;
use serde_json::Value;

use crate::common::SEGNO;
use crate::common::TestEnv;
use crate::lab::Lab;
use crate::lab::skip;

fn database(env: &TestEnv) -> Connection {
    Connection::open(env.path("data/segno/segno.db")).unwrap()
}

fn doctor(env: &TestEnv, args: &[&str]) -> (i32, Value) {
    let all: Vec<&str> = ["doctor", "--json"].into_iter().chain(args.iter().copied()).collect();
    let said = env.raw(&all);
    let shown = serde_json::from_slice(&said.stdout).unwrap_or(Value::Null);
    (said.status.code().unwrap_or(-1), shown)
}

/// Three days pass for the snapshots in this directory: what is young is spared in any case. Those of a session may get
/// the names that an earlier version gave them.
fn days_pass(snapshots: &Path, rename: Option<&str>) {
    fn old(dir: &Path, rename: Option<&str>) {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                old(&path, rename);
                continue;
            }
            let then = SystemTime::now() - Duration::from_secs(3 * 86_400);
            fs::File::options().append(true).open(&path).unwrap().set_modified(then).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if let Some(session) = rename
                && path.parent().is_some_and(|parent| parent.ends_with(session))
                && let Some((short, _)) = name.split_once(".of-")
            {
                fs::rename(&path, path.with_file_name(short)).unwrap();
            }
        }
    }
    for entry in fs::read_dir(snapshots).unwrap().flatten() {
        old(&entry.path().join("git/refs/snapshots"), rename);
    }
}

promise!(
    /// A summary that an older program wrote, with a field fewer, is listed like any other, and nothing is wrong with it.
    fn a_summary_of_an_older_form_is_listed() {
        let env = TestEnv::new();
        let id = env.start(&["older"]);
        for field in ["in_doubt", "made_by", "updated_at", "cost_micros"] {
            database(&env)
                .execute("UPDATE sessions SET summary = json_remove(summary, ?1)", [format!("$.{field}")])
                .unwrap();
            let listed = env.json(&["ls"]);
            assert_eq!(listed["sessions"][0]["session_id"], id.as_str(), "without {field}: {listed}");
            assert!(env.ok(&["ls"]).stdout.contains("older"), "without {field}");
            let (code, shown) = doctor(&env, &[]);
            assert_eq!(code, 0, "without {field}: {shown}");
        }
        // One that cannot be read at all still does not hide its session.
        database(&env).execute("UPDATE sessions SET summary = '{'", []).unwrap();
        assert!(env.ok(&["ls"]).stdout.contains("older"));
        assert_eq!(doctor(&env, &[]).0, 10);
        assert_eq!(doctor(&env, &["--repair"]).0, 0);
        assert_eq!(doctor(&env, &[]).0, 0);
    }
);

promise!(
    /// A session whose first event is damaged can still be ended, removed and worked beside; and the others are settled.
    fn a_damaged_beginning_is_no_dead_end() {
        let env = TestEnv::new();
        let id = env.start(&["first"]);
        env.ok(&["note", "kept"]);
        let db = database(&env);
        db.execute(
            "UPDATE events SET body = replace(body, 'first', 'fir$t') WHERE kind = 'session_created'",
            [],
        )
        .unwrap();
        // As after a newer program with another fold, or a state that is damaged too.
        db.execute("DELETE FROM states", []).unwrap();
        drop(db);
        assert_eq!(doctor(&env, &[]).0, 10);
        assert!(env.ok(&["log", &id, "--json"]).stdout.contains("kept"));
        for args in [&["show", &id][..], &["note", "--session", &id, "on"], &["complete", &id]] {
            let said = env.run(args);
            assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        }
        env.start(&["second"]);
        env.ok(&["rm", &id, "--yes"]);
        assert_eq!(doctor(&env, &[]).0, 0);
    }
);

promise!(
    /// A damaged session whose driver died keeps nobody from settling the others that were cut off with it.
    fn a_damaged_session_does_not_hold_up_the_settling_of_others() {
        let lab = Lab::new();
        let mut ids = Vec::new();
        for name in ["one", "two", "three"] {
            let ready = lab.path(&format!("ready-{name}"));
            let script = format!("echo said; touch {ready}; exec sleep 600");
            let live = lab.start(&["run", "--topic", name, "--json", "--", "sh", "-c", &script], None);
            crate::lab::until("it has begun", || fs::exists(&ready).unwrap().then_some(()));
            let run = lab.running();
            ids.push(lab.state()["session_id"].as_str().unwrap().to_owned());
            live.signal(rustix::process::Signal::KILL);
            let pid = u32::try_from(run["pid"].as_u64().unwrap()).unwrap();
            crate::lab::signal(pid, rustix::process::Signal::KILL);
            live.finish();
        }
        lab.assert_no_process_left();
        let db = Connection::open(lab.home.path().join(".local/share/segno/segno.db")).unwrap();
        for change in [
            "UPDATE events SET body = replace(body, 'one', '0ne') WHERE kind = 'session_created' AND session = \
             (SELECT session FROM events WHERE kind = 'session_created' AND body LIKE '%\"one\"%')",
            "DELETE FROM states WHERE session = (SELECT session FROM events WHERE body LIKE '%0ne%')",
        ] {
            assert_eq!(db.execute(change, []).unwrap(), 1, "{change}");
        }
        drop(db);
        lab.run(&["ls"]);
        for id in &ids[1..] {
            let state = lab.json(&["show", id])["state"].take();
            assert_eq!(state["status"], "interrupted", "{state}");
            assert!(state["run"]["outcome"].is_string(), "{state}");
        }
    }
);

promise!(
    /// A row of a list that is not what the journal says is named, and mended from the journal.
    fn a_wrong_row_is_named_and_mended() {
        let changes = [
            "UPDATE items SET body = json_set(body, '$.action', 'nothing') WHERE list = 'history' AND key LIKE '%2'",
            "UPDATE items SET body = replace(body, 'action', 'acti0n')",
            "UPDATE items SET body = '{'",
            "DELETE FROM items WHERE list = 'history'",
            "UPDATE items SET key = '9' || key",
            "UPDATE items SET seq = seq + 1",
            "UPDATE sessions SET summary = json_set(summary, '$.topic', 'other')",
        ];
        let env = TestEnv::new();
        env.start(&["rows"]);
        env.ok(&["note", "one", "--json"]);
        env.ok(&["task", "add", "two"]);
        env.ok(&["checkpoint", "create"]);
        let items = || -> Vec<(String, String, String)> {
            let db = database(&env);
            let mut ask = db.prepare("SELECT list, key, body FROM items ORDER BY list, key").unwrap();
            let rows = ask.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
            rows.map(Result::unwrap).collect()
        };
        let before = items();
        assert_eq!(doctor(&env, &["--deep"]).0, 0);
        for change in changes {
            assert!(database(&env).execute(change, []).unwrap() > 0, "{change}");
            let (code, shown) = doctor(&env, &[]);
            assert_eq!(code, 10, "{change}: {shown}");
            let (code, shown) = doctor(&env, &["--repair"]);
            assert_eq!(code, 0, "{change}: {shown}");
            assert_eq!(items(), before, "{change}");
            assert_eq!(doctor(&env, &["--deep"]).0, 0, "{change}");
        }
    }
);

promise!(
    /// Texts that were set aside are checked too. One whose stored hash was damaged is found again, never cleared away.
    fn long_texts_are_checked_and_never_cleared_away_by_damage() {
        let env = TestEnv::new();
        let id = env.start(&["texts"]);
        let long = "many words ".repeat(2_000);
        env.ok(&["note", &long]);
        let texts = || {
            database(&env).query_row("SELECT count(*) FROM blobs", [], |row| row.get::<_, u64>(0)).unwrap()
        };
        assert_eq!((texts(), doctor(&env, &[]).0), (1, 0));

        database(&env).execute("UPDATE blobs SET hash = zeroblob(32)", []).unwrap();
        let (code, shown) = doctor(&env, &[]);
        assert!(code == 10 && shown.to_string().contains("text"), "{shown}");
        assert_eq!(doctor(&env, &["--repair"]).0, 0);
        assert_eq!((texts(), doctor(&env, &[]).0), (1, 0));

        // The note of who refers to it.
        database(&env).execute("UPDATE blob_refs SET hash = zeroblob(32)", []).unwrap();
        doctor(&env, &["--repair"]);
        assert_eq!((texts(), doctor(&env, &[]).0), (1, 0));

        // What cannot be mended is named, kept, and known from then on.
        database(&env).execute("UPDATE blobs SET content = zeroblob(length(content))", []).unwrap();
        assert_eq!(doctor(&env, &[]).0, 10);
        let (code, shown) = doctor(&env, &["--repair"]);
        assert!(code == 10 && shown.to_string().contains(&id), "{shown}");
        assert_eq!((texts(), doctor(&env, &[]).0), (1, 0));
    }
);

promise!(
    /// Events that were acknowledged and are gone from the log are missed: the doctor says which.
    fn a_log_that_lost_its_end_is_noticed() {
        let env = TestEnv::new();
        let id = env.start(&["log"]);
        for n in 0..6 {
            env.ok(&["note", &format!("note {n}")]);
        }
        let log = env.path("data/segno/segno.db-wal");
        let mut bytes = fs::read(&log).unwrap();
        let middle = bytes.len() * 3 / 4;
        bytes[middle] ^= 4;
        fs::write(&log, bytes).unwrap();
        let _ = fs::remove_file(env.path("data/segno/segno.db-shm"));
        let left = env.ok(&["log", &id, "--json"]).stdout.lines().count();
        assert!(left < 7, "the end of the log is gone");
        let (code, shown) = doctor(&env, &["--deep"]);
        let text = shown.to_string();
        assert!(code == 10 && text.contains("acknowledged") && text.contains(&id), "{shown}");
        // Nothing brings them back; once said, it is known.
        assert_eq!(doctor(&env, &["--repair"]).0, 10);
        let (code, shown) = doctor(&env, &["--deep"]);
        assert_eq!(code, 0, "{shown}");
    }
);

promise!(
    /// A wrong row does not cost files: what is collected is what the journal gives up.
    fn gc_believes_the_journal() {
        let lab = Lab::new();
        lab.write(lab.home.work().join("a.txt"), "before");
        let said = lab.run(&["run", "--", "sh", "-c", "echo after > a.txt"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let path = lab.home.path().join(".local/share/segno/segno.db");
        let db = Connection::open(path).unwrap();
        let changed = db
            .execute(
                "UPDATE items SET body = json_set(body, '$.ready', json('false')) WHERE list = 'checkpoints'",
                [],
            )
            .unwrap();
        assert!(changed > 0);
        drop(db);
        days_pass(&lab.home.path().join(".local/share/segno/snapshots"), None);
        assert_eq!(lab.json(&["checkpoint", "gc"])["dropped"], 0);
        let said = lab.run(&["doctor", "--repair"]);
        assert_eq!(said.code, Some(0), "{}{}", said.text(), said.stderr);
        let said = lab.run(&["undo", "--yes"]);
        assert_eq!(said.code, Some(0), "{}{}", said.text(), said.stderr);
        assert_eq!(fs::read_to_string(lab.home.work().join("a.txt")).unwrap(), "before");
    }
);

promise!(
    /// A copy is of one moment, and ends however busily others write.
    fn a_backup_ends_beside_a_busy_writer() {
        let env = TestEnv::new();
        let id = env.start(&["busy"]);
        let db = database(&env);
        db.execute(
            "INSERT INTO damage (session, found_us, what, content)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
             SELECT 'x', 0, 'x', zeroblob(1000000) FROM n",
            [],
        )
        .unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        let said = std::thread::scope(|scope| {
            let done = &done;
            scope.spawn(move || {
                db.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
                while !done.load(std::sync::atomic::Ordering::Acquire) {
                    db.execute("UPDATE leases SET epoch = epoch WHERE session = 0", []).unwrap();
                    db.execute("UPDATE damage SET found_us = found_us + 1 WHERE id = 1", []).unwrap();
                }
            });
            let mut command = env.command("timeout");
            let said = command.args(["60", crate::common::SEGNO, "backup", "../copy.db"]).output().unwrap();
            done.store(true, std::sync::atomic::Ordering::Release);
            said
        });
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let copy = Connection::open(env.path("copy.db")).unwrap();
        let found: String = copy.query_row("SELECT id FROM sessions", [], |row| row.get(0)).unwrap();
        assert_eq!(found, id);
    }
);

promise!(
    /// Two stores may keep snapshots of one project: collecting garbage in one takes nothing of the other's.
    fn gc_takes_nothing_of_another_store() {
        let mut env = TestEnv::new();
        env.set("SEGNO_CHECKPOINT_FILES", "true");
        env.set("PATH", "/usr/bin:/bin");
        env.write("project/a.txt", "one\n");
        env.start(&["first"]);
        env.ok(&["checkpoint", "create", "one"]);
        let first = env.json(&["show"])["state"]["session_id"].as_str().unwrap().to_owned();
        let other = format!("sqlite:{}", env.path("other.db").display());
        env.ok(&["--store", &other, "new", "second"]);
        env.ok(&["--store", &other, "checkpoint", "create", "two"]);
        for rename in [None, Some(first.as_str())] {
            days_pass(&env.path("data/segno/snapshots"), rename);
            assert_eq!(env.json(&["--store", &other, "checkpoint", "gc"])["dropped"], 0);
            if rename.is_none() {
                assert_eq!(env.json(&["checkpoint", "validate"])["whole"], true);
            }
        }
    }
);

promise!(
    /// On a file system with small blocks the memory that processes share is set aside only in part: where the disk is
    /// full, a command says so, and is not ended by a signal when it touches the rest.
    fn a_full_disk_with_small_blocks_is_an_error() {
        let env = TestEnv::on_disk();
        // How many KiB are free each time.
        let script = r#"
            truncate -s 4M ../image && mkfs.ext4 -q -F -b 1024 -m 0 ../image || exit 77
            mkdir -p "$XDG_DATA_HOME" && mount -o loop ../image "$XDG_DATA_HOME" || exit 77
            chmod 700 "$XDG_DATA_HOME"; disk="$XDG_DATA_HOME"; id=$("$SEGNO" new full -q) || echo none
            for free in 0 8 12 16 20 24 32 40 48 64 128 250 400; do
                rm -f "$disk/filler"; sync -f "$disk"
                had=$(df --output=avail -k "$disk" | tail -1)
                fallocate -l $((had - free))K "$disk/filler" || exit 78
                "$SEGNO" note "with $free" --session "$id" -q 2>../why; noted=$?
                "$SEGNO" ls >/dev/null 2>&1; listed=$?
                grep -q 'no room left' ../why && word=full || word=well
                echo "$free $noted $listed $word"
            done
            rm "$disk/filler"; "$SEGNO" log "$id" --json --kind history_noted | grep -o 'with [0-9]*'
        "#;
        let said = env
            .command("unshare")
            .env("SEGNO", SEGNO)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .args(["--mount", "sh", "-c", script])
            .output();
        let Ok(said) = said else { return skip("there is no unshare") };
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        if said.status.code() != Some(0) && text.is_empty() {
            return skip("no small file system can be mounted here");
        }
        let full = [0, 8, 12, 16, 20, 24, 32, 40, 48, 64, 128, 250].map(|free| format!("{free} 12 12 full"));
        let wanted = [&full[..], &["400 0 0 well".to_owned(), "with 400".to_owned()]].concat();
        assert_eq!(text.lines().collect::<Vec<_>>(), wanted, "{}", String::from_utf8_lossy(&said.stderr));
    }
);
