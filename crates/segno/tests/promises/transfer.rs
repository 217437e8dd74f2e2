//! Sessions travel whole: exports, archives, imports.

use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::TestEnv;

/// Lines of an agent that are long enough to be set aside, each different.
fn long_lines() -> Vec<String> {
    (0..5)
        .map(|number| {
            (0..2_500).map(|word| format!("w{number}{word:04} ")).collect::<String>().trim_end().to_owned()
        })
        .collect()
}

/// A finished session whose agent said these lines.
fn said_long_lines(env: &TestEnv) -> Vec<String> {
    let lines = long_lines();
    env.write("project/lines.txt", &(lines.join("\n") + "\n"));
    env.ok(&["run", "--", "/bin/cat", "lines.txt"]);
    lines
}

fn archives(env: &TestEnv) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(env.path("data/segno/archive")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn document(path: &Path) -> Value {
    let file = std::fs::File::open(path).unwrap();
    serde_json::from_reader(zstd::Decoder::new(file).unwrap()).unwrap()
}

/// The texts that were said, as an export gives them.
fn said(document: &Value) -> Vec<String> {
    let events = document["events"].as_array().unwrap();
    events
        .iter()
        .filter(|event| event["kind"] == "said")
        .map(|event| match &event["body"]["text"] {
            Value::String(text) => text.clone(),
            aside => document["texts"][aside["$blob"].as_str().unwrap()].as_str().unwrap().to_owned(),
        })
        .collect()
}

promise!(
    /// What `cleanup` removes is in the archive, every text to the byte.
    fn an_archive_holds_every_text() {
        let env = TestEnv::new();
        let lines = said_long_lines(&env);
        env.ok(&["cleanup", "--days", "0", "--yes"]);
        let [archive] = &archives(&env)[..] else { panic!("{:?}", archives(&env)) };
        assert_eq!(said(&document(archive)), lines);
        assert_eq!(env.json(&["ls", "--all"])["total"], 0);
    }
);

promise!(
    /// A text stands behind the journal of an export once, however often it was said, and every event has the hash
    /// that proves it.
    fn an_export_holds_each_text_once_and_every_hash() {
        let env = TestEnv::new();
        let line = long_lines().remove(0);
        env.write("project/lines.txt", &format!("{line}\n{line}\n{line}\n"));
        env.ok(&["run", "--", "/bin/cat", "lines.txt"]);
        let text = String::from_utf8(env.raw(&["export", "last"]).stdout).unwrap();
        let (_, journal) = text.split_once("\"events\":").unwrap();
        assert_eq!(journal.matches(&line).count(), 1);
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(said(&document), [line.clone(), line.clone(), line]);
        for event in document["events"].as_array().unwrap() {
            assert_eq!(event["hash"].as_str().map(str::len), Some(64), "{event}");
        }
    }
);

promise!(
    /// A session whose archive would lack something is not removed, and the others are.
    fn what_cannot_be_archived_whole_is_not_removed() {
        let env = TestEnv::new();
        said_long_lines(&env);
        let id = env.json(&["show", "last"])["session"]["session_id"].as_str().unwrap().to_owned();
        env.start(&["another"]);
        env.ok(&["complete"]);
        let store = rusqlite::Connection::open(env.path("data/segno/segno.db")).unwrap();
        store.execute("DELETE FROM blobs WHERE hash = (SELECT min(hash) FROM blobs)", []).unwrap();
        drop(store);
        let said = env.run(&["cleanup", "--days", "0", "--yes"]);
        assert_eq!(said.code, 10, "{}", said.stderr);
        assert!(
            said.stderr.contains("was not removed") && said.stderr.contains("missing"),
            "{}",
            said.stderr
        );
        let left = env.json(&["ls", "--all"]);
        assert_eq!((&left["total"], &left["sessions"][0]["session_id"]), (&1.into(), &id.as_str().into()));
        assert_eq!(archives(&env).len(), 1, "only a whole archive is kept");
    }
);

/// What was done to files, in order, by a command that must succeed; none if strace cannot be used here.
fn traced(env: &TestEnv, args: &[&str]) -> Option<Vec<String>> {
    let trace = env.path("trace");
    let calls = "--trace=fsync,fdatasync,rename,renameat,renameat2,link,linkat,pwrite64";
    let mut command = env.command("strace");
    command.args(["-f", "-y", "-o", trace.to_str().unwrap(), calls, crate::common::SEGNO]).args(args);
    let said = command.output().ok()?;
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let lines = std::fs::read_to_string(trace).unwrap();
    Some(lines.lines().map(ToOwned::to_owned).collect())
}

promise!(
    /// A session is removed only when its archive is on the disk, with the directory that names it; an export is there
    /// for good when the command says so.
    fn an_archive_is_on_the_disk_before_anything_is_removed() {
        let env = TestEnv::new();
        said_long_lines(&env);
        let synced = |line: &&String, what: &str| line.contains("sync(") && line.contains(what);
        let named = |line: &&String, end: &str| {
            (line.contains("rename") || line.contains("link")) && line.contains(end)
        };
        let Some(lines) = traced(&env, &["export", "last", "-o", "out.json"]) else {
            return crate::lab::skip("there is no strace");
        };
        let name = lines.iter().position(|line| named(&line, "out.json")).unwrap();
        assert!(lines[..name].iter().any(|line| synced(&line, "/project/")), "the file: {lines:#?}");
        assert!(lines[name..].iter().any(|line| synced(&line, "/project>")), "its directory: {lines:#?}");
        let lines = traced(&env, &["cleanup", "--days", "0", "--yes"]).unwrap();
        let name = lines.iter().position(|line| named(&line, ".zst")).unwrap();
        let directory = name + lines[name..].iter().position(|line| synced(&line, "/archive>")).unwrap();
        assert!(lines[..name].iter().any(|line| synced(&line, "/archive/")), "the file: {lines:#?}");
        let removed = lines.iter().rposition(|line| synced(&line, "segno.db-wal")).unwrap();
        assert!(removed > directory, "the session goes last: {lines:#?}");
        assert_eq!(env.json(&["ls", "--all"])["total"], 0);
    }
);

promise!(
    /// An archive never takes the place of an older one.
    fn an_archive_replaces_no_other() {
        let env = TestEnv::new();
        said_long_lines(&env);
        env.ok(&["cleanup", "--days", "0", "--yes"]);
        let first = archives(&env).remove(0);
        let before = std::fs::read(&first).unwrap();
        env.ok(&["import", first.to_str().unwrap()]);
        env.ok(&["cleanup", "--days", "0", "--yes"]);
        assert_eq!(archives(&env).len(), 2);
        assert!(std::fs::read(&first).unwrap() == before);
    }
);

/// The journal of a session, line by line.
fn journal(env: &TestEnv, session: &str) -> Vec<Value> {
    let said = env.raw(&["export", session]).stdout;
    let mut document: Value = serde_json::from_slice(&said).unwrap();
    match document["events"].take() {
        Value::Array(events) => events,
        other => panic!("{other}"),
    }
}

promise!(
    /// A session that was cleaned up comes back from its archive with every event as it was: number, key, time, hash.
    fn an_archive_brings_everything_back() {
        let env = TestEnv::new();
        let lines = said_long_lines(&env);
        let id = env.json(&["show", "last"])["session"]["session_id"].as_str().unwrap().to_owned();
        let before = journal(&env, &id);
        let kept = env.start(&["with a checkpoint"]);
        env.ok(&["checkpoint", "create", "one"]);
        env.ok(&["complete"]);
        let checkpoints = env.json(&["show", &kept, "--checkpoints"])["items"].take();
        assert!(!checkpoints.as_array().unwrap().is_empty());
        env.ok(&["cleanup", "--days", "0", "--yes"]);
        for archive in archives(&env) {
            env.ok(&["import", archive.to_str().unwrap()]);
        }
        let after = journal(&env, &id);
        assert_eq!(after[..before.len()], before);
        assert_eq!(after.len(), before.len() + 1);
        assert_eq!(after[before.len()]["kind"], "journal_imported");
        let document: Value = serde_json::from_slice(&env.raw(&["export", &id]).stdout).unwrap();
        assert_eq!(said(&document), lines);
        assert_eq!(env.json(&["show", &kept, "--checkpoints"])["items"], checkpoints);
        assert_eq!(env.run(&["doctor", "--deep"]).code, 0);
        let again = env.run(&["import", archives(&env)[0].to_str().unwrap()]);
        assert_eq!(again.code, 5, "{}", again.stderr);
        assert!(again.stderr.contains("is in this store already"), "{}", again.stderr);
        assert_eq!(env.json(&["ls", "--all"])["total"], 2);
    }
);

promise!(
    /// A hard cap is still one after the session went to another store, as an export and as a view.
    fn a_hard_cap_survives_import() {
        let from = TestEnv::new();
        from.start(&["capped", "--budget", "5000", "--cost", "2"]);
        from.ok(&["tokens", "4000"]);
        for name in ["capped.json", "capped.yaml"] {
            from.ok(&["export", "last", "-o", name]);
            let to = TestEnv::new();
            to.ok(&["import", from.path("project").join(name).to_str().unwrap()]);
            let budget = to.json(&["budget", "--session", "last"]);
            let state = &to.json(&["show", "last"])["state"];
            assert_eq!(state["budget"]["total_budget"], 5_000, "{name}: {budget}");
            assert_eq!(state["budget"]["hard"], true, "{name}: {budget}");
            assert_eq!(state["budget"]["tokens_used"], 4_000, "{name}: {budget}");
            assert_eq!(state["cost"]["limit_micros"], 2_000_000, "{name}: {budget}");
            assert_eq!(state["cost"]["hard"], true, "{name}: {budget}");
        }
    }
);

promise!(
    /// A file that was changed is not believed: its journal is left out, and that is said.
    fn a_changed_journal_is_not_taken_for_whole() {
        let from = TestEnv::new();
        from.start(&["honest"]);
        from.ok(&["note", "nothing was paid"]);
        from.ok(&["export", "-o", "a.json"]);
        let changed = from.read("project/a.json").replace("nothing was paid", "all of it was paid");
        let to = TestEnv::new();
        to.write("project/b.json", &changed);
        let said = to.run(&["import", "b.json"]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert!(
            said.stderr.contains("its journal was not taken in: event 2 is not what was recorded"),
            "{}",
            said.stderr
        );
        assert_eq!(journal(&to, "last")[0]["kind"], "session_imported");
    }
);

promise!(
    /// What this user calls a secret stays out of the record, also when a file brings it.
    fn a_secret_in_a_file_stays_out() {
        let from = TestEnv::new();
        let secret = "correct-horse-battery-4711-staple";
        from.start(&["leaky"]);
        from.ok(&["note", &format!("the value is {secret}")]);
        from.ok(&["note", "after it"]);
        from.ok(&["export", "-o", "a.json"]);
        assert!(from.read("project/a.json").contains(secret));
        let mut to = TestEnv::new();
        to.set("DEPLOY_TOKEN", secret);
        let said = to.run(&["import", from.path("project/a.json").to_str().unwrap()]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert!(said.stderr.contains("held a secret"), "{}", said.stderr);
        let text = String::from_utf8(to.raw(&["export", "last"]).stdout).unwrap();
        assert!(text.contains("after it") && !text.contains(secret));
        assert_eq!(journal(&to, "last")[0]["kind"], "session_created");
        assert_eq!(to.run(&["doctor", "--deep"]).code, 0);
    }
);

promise!(
    /// A small file does not take much memory, whatever it unpacks to.
    fn a_small_import_takes_little_memory() {
        let env = TestEnv::new();
        env.start(&["model"]);
        let good = String::from_utf8(env.raw(&["export"]).stdout).unwrap();
        env.ok(&["complete"]);
        let row = "{\"a\":0},".repeat(3 << 20);
        let many = "{\"key\":\"1\",\"body\":{\"timestamp\":\"2026-01-01T00:00:00Z\",\"action\":\"x\",\"phase\":null,\"details\":null}},".repeat(300_000);
        let deep = format!("{}1{}", "[".repeat(5 << 20), "]".repeat(5 << 20));
        let (rest, _) = good.split_once("\"events\":[").unwrap();
        let bombs = [
            good.replacen("\"history\":[", &format!("\"history\":[{{\"key\":\"0\",\"body\":[{row}0]}},"), 1),
            rest.replacen("\"history\":[", &format!("\"history\":[{many}"), 1) + "\"events\":[]}",
            good.replacen("\"events\":[", &format!("\"events\":[{{\"seq\":1,\"body\":{deep}}},"), 1),
            good.replacen(
                "\"topic\":\"model\"",
                &format!("\"topic\":\"model\",\"workflow_state\":[{row}0]"),
                1,
            ),
            format!("session_id: x\nhistory:\n{}", "- {a: 0}\n".repeat(2 << 20)),
            format!("session_id: x\nhistory: [{}]\n", "{a: 0},".repeat(2 << 20)),
        ];
        for (number, bomb) in bombs.iter().enumerate() {
            let file = env.path(&format!("bomb{number}.zst"));
            std::fs::write(&file, zstd::encode_all(bomb.as_bytes(), 3).unwrap()).unwrap();
            let size = std::fs::metadata(&file).unwrap().len();
            assert!(size < 100_000, "{number}: {size}");
            let said = env.shell(&format!("ulimit -v 500000; $SEGNO import ../bomb{number}.zst"));
            assert_eq!(said.code, 10, "{number}: {}", said.stderr);
            assert!(said.stderr.len() < 1_000, "{number}: {}", said.stderr);
        }
        assert_eq!(env.json(&["ls", "--all"])["total"], 1);
    }
);

promise!(
    /// JSON that is no session is called that, not a damaged session.
    fn foreign_json_is_not_called_corrupted() {
        let env = TestEnv::new();
        env.write("project/package.json", "{\"name\": \"mine\", \"version\": \"1.0.0\"}");
        let said = env.run(&["import", "package.json"]);
        assert_eq!(said.code, 5, "{}", said.stderr);
        assert!(
            said.stderr.contains("is no session") && !said.stderr.contains("corrupted"),
            "{}",
            said.stderr
        );
    }
);

promise!(
    /// A long text can be read back whole, for people and for programs.
    fn long_texts_can_be_read_whole() {
        let env = TestEnv::new();
        let lines = said_long_lines(&env);
        let text = long_lines().join(" / ");
        env.ok(&["note", &text, "--session", "last"]);
        for args in [
            &["history", "last", "--full"][..],
            &["show", "last", "--history", "--full"],
            &["log", "last", "--full"],
        ] {
            let said = env.ok(args);
            assert!(said.stdout.contains(&text), "{args:?}");
            let short = env.ok(&args[..args.len() - 1]);
            assert!(!short.stdout.contains(&text), "{args:?}");
            let json = env.ok(&[args, &["--json"]].concat());
            assert!(json.stdout.contains(&text), "{args:?}");
        }
        let log = env.ok(&["log", "last", "--full"]).stdout;
        assert!(lines.iter().all(|line| log.contains(line)));
    }
);

promise!(
    /// `cleanup` says of which projects it removes something, and can be told to stay in this one.
    fn cleanup_says_which_projects() {
        let env = TestEnv::new();
        env.start(&["here"]);
        env.ok(&["complete"]);
        let there = env.run_in("other/.segno/..", &["new", "there"]);
        assert_eq!(there.code, 0, "{}", there.stderr);
        assert_eq!(env.run_in("other", &["complete"]).code, 0);
        let all = env.run(&["cleanup", "--days", "0", "--dry-run"]);
        assert!(all.stdout.contains("$TEST/other"), "{}", all.stdout);
        assert!(all.stderr.contains("2 sessions of 2 projects would be removed"), "{}", all.stderr);
        let json = env.json(&["cleanup", "--days", "0", "--dry-run"]);
        assert_eq!(json["sessions"].as_array().unwrap().len(), 2, "{json}");
        let own = env.run(&["cleanup", "--days", "0", "--project", ".", "--yes"]);
        assert!(own.stderr.contains("removed 1 session"), "{}", own.stderr);
        let left = env.json(&["ls", "--all", "--everywhere"]);
        assert_eq!((&left["total"], &left["sessions"][0]["topic"]), (&1.into(), &"there".into()));
    }
);

promise!(
    /// `du` says what takes room: by place, by project and by session.
    fn du_says_what_takes_room() {
        let env = TestEnv::new();
        said_long_lines(&env);
        env.start(&["small"]);
        let usage = env.json(&["du"]);
        let sessions = usage["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 2, "{usage}");
        assert!(sessions[0]["texts"].as_u64() > Some(1_000) && sessions[1]["texts"] == 0, "{usage}");
        assert!(
            usage["store"].as_u64() > Some(0) && usage["total"].as_u64() >= usage["store"].as_u64(),
            "{usage}"
        );
        assert_eq!(usage["projects"][0]["sessions"], 2, "{usage}");
        let said = env.ok(&["du"]).stdout;
        assert!(said.contains("store") && said.contains("long texts"), "{said}");
    }
);

promise!(
    /// A store that has grown beyond what the user set is said to have, where something new begins.
    fn a_large_store_is_said_to_be_large() {
        let mut env = TestEnv::new();
        env.start(&["first"]);
        let large = "no two lines are the same ".to_owned() + &long_lines().join("\n");
        let noise: String =
            (0..400_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        assert!(env.feed(&["output", "set", "large", "-"], (large + &noise).as_bytes()).status.success());
        let quiet = env.run(&["new", "second", "--parallel"]);
        assert!(!quiet.stderr.contains("store.warn_mb"), "{}", quiet.stderr);
        env.set("SEGNO_STORE_WARN_MB", "1");
        let said = env.run(&["new", "third", "--parallel"]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert!(said.stderr.contains("store.warn_mb") && said.stderr.contains("segno du"), "{}", said.stderr);
    }
);

promise!(
    /// A session of which the project has only a view is not known, and what to do about it is said.
    fn a_view_without_its_session_says_how_to_import_it() {
        let from = TestEnv::new();
        let id = from.start(&["elsewhere"]);
        let view = from.read(&format!("project/.segno/sessions/{id}/session.yaml"));
        let to = TestEnv::new();
        to.start(&["own"]);
        to.write(&format!("project/.segno/sessions/{id}/session.yaml"), &view);
        let said = to.run(&["show", &id]);
        assert_eq!(said.code, 3, "{}", said.stderr);
        assert!(said.stderr.contains("a view of it: segno import"), "{}", said.stderr);
    }
);

promise!(
    /// The help promises no store that is refused.
    fn the_help_promises_no_other_store() {
        let env = TestEnv::new();
        for args in [&["--help"][..], &["new", "--help"], &["config", "show"]] {
            let said = env.run(args);
            assert!(!said.stdout.contains("postgres"), "{args:?}");
        }
    }
);

promise!(
    /// The files of checkpoints travel with an export when that is asked for, and are whole where it is imported.
    fn files_travel_with_an_export_when_asked() {
        let mut from = TestEnv::new();
        from.set("SEGNO_CHECKPOINT_FILES", "true");
        from.set("PATH", "/usr/bin:/bin");
        from.write("project/a.txt", "one\n");
        from.start(&["with files"]);
        from.ok(&["checkpoint", "create", "one"]);
        from.ok(&["export", "last", "--with-files", "-o", "whole.json.zst"]);
        let mut to = TestEnv::new();
        to.set("SEGNO_CHECKPOINT_FILES", "true");
        to.set("PATH", "/usr/bin:/bin");
        to.ok(&["import", from.path("project/whole.json.zst").to_str().unwrap()]);
        assert_eq!(to.json(&["checkpoint", "validate", "--session", "last"])["whole"], true);
    }
);
