//! Sessions travel whole: exports, archives, imports.

use std::path::{Path, PathBuf};

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
