//! What earlier versions left behind is opened, listed, read, gone on with and undone by this one.
//!
//! `scripts/fixture` made the files, with the program of that version. They name paths, so they are unpacked to the
//! place where they were made, one test at a time.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use serde_json::Value;

use crate::common::SEGNO;

/// The home of an earlier version, as it left it.
struct Earlier {
    root: PathBuf,
    /// Nobody else unpacks it meanwhile.
    _turn: File,
}

impl Earlier {
    fn unpack(version: &str) -> Self {
        let root = PathBuf::from(format!("/tmp/segno-earlier-{version}"));
        let turn = File::create(root.with_extension("lock")).unwrap();
        rustix::fs::flock(&turn, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let _ = std::fs::remove_dir_all(&root);
        let archive = format!("{}/tests/earlier/{version}.tar.gz", env!("CARGO_MANIFEST_DIR"));
        let status =
            program("tar").args(["-C", "/tmp", "--no-same-owner", "-xpzf", &archive]).status().unwrap();
        assert!(status.success());
        let earlier = Self { root, _turn: turn };
        std::fs::create_dir(earlier.root.join("runtime")).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(earlier.root.join("runtime"), private).unwrap();
        earlier
    }

    /// This program, in one of the homes that were kept.
    fn segno_in(&self, home: &str, args: &[&str]) -> Output {
        program(SEGNO)
            .args(args)
            .env_clear()
            .env("HOME", self.root.join(home))
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.root.join("bin").display()))
            .env("XDG_RUNTIME_DIR", self.root.join("runtime"))
            .env("LANG", "C.UTF-8")
            .current_dir(self.root.join("project"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn ok_in(&self, home: &str, args: &[&str]) -> String {
        let output = self.segno_in(home, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stdout).unwrap()
    }

    fn ok(&self, args: &[&str]) -> String {
        self.ok_in("home", args)
    }

    fn expected(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join("expected").join(name)).unwrap()
    }

    /// Sessions as they were listed: topic → row.
    fn listed(&self) -> BTreeMap<String, Value> {
        rows(&self.expected("ls.json"))
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join("project").join(name)).ok()
    }
}

impl Drop for Earlier {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

#[expect(clippy::disallowed_methods, reason = "the program under test is a program")]
fn program(name: &str) -> Command {
    Command::new(name)
}

fn rows(text: &str) -> BTreeMap<String, Value> {
    let listed: Value = serde_json::from_str(text).unwrap();
    let sessions = listed["sessions"].as_array().unwrap();
    sessions.iter().map(|row| (row["topic"].as_str().unwrap().to_owned(), row.clone())).collect()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What stood in the old document and stands otherwise in the new one. New members are no difference.
fn differences(old: &Value, new: &Value, path: &str, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in old {
                let path = format!("{path}.{name}");
                match new.get(name) {
                    Some(other) => differences(value, other, &path, found),
                    None => found.push(format!("{path} is gone")),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                differences(old, new, &format!("{path}[{index}]"), found);
            }
        }
        _ if old == new => {}
        _ => found.push(format!("{path}: {old} → {new}")),
    }
}

fn assert_same(what: &str, old: &Value, new: &Value, but: &[&str]) {
    let mut found = Vec::new();
    differences(old, new, "", &mut found);
    found.retain(|difference| !but.iter().any(|but| difference.starts_with(but)));
    assert!(found.is_empty(), "{what}: {found:#?}");
}

#[test]
fn every_event_is_read_as_it_was_written() {
    let earlier = Earlier::unpack("0.1.0");
    for row in earlier.listed().values() {
        let id = row["session_id"].as_str().unwrap();
        let old = lines(&earlier.expected(&format!("{id}.log.jsonl")));
        let new = lines(&earlier.ok(&["log", id, "--json"]));
        // Looking at a session whose driver died adds events; those are of today.
        let before = old.iter().position(|event| event["kind"] == "session_interrupted").unwrap_or(old.len());
        let before = if row["status"] == "interrupted" { before.min(14) } else { before };
        assert!(new.len() >= before, "{id}: {} of {before} events", new.len());
        for (old, new) in old.iter().zip(&new).take(before) {
            assert_same(&format!("{id} event {}", old["seq"]), old, new, &[]);
        }
    }
}

#[test]
fn every_session_is_shown_as_before() {
    let earlier = Earlier::unpack("0.1.0");
    let new = rows(&earlier.ok(&["ls", "--all", "--json"]));
    for (topic, old) in earlier.listed() {
        let row = &new[&topic];
        // When it was looked at, and what looking added.
        let looked: &[&str] = match old["status"].as_str() {
            Some("interrupted") => {
                &[".updated_at", ".seq", ".checkpoint", ".reason", ".in_doubt", ".open_calls"]
            }
            _ => &[],
        };
        assert_same(&topic, &old, row, looked);
        let id = old["session_id"].as_str().unwrap();
        let shown: Value = serde_json::from_str(&earlier.ok(&["show", id, "--json"])).unwrap();
        if old["status"] != "interrupted" {
            let before: Value = serde_json::from_str(&earlier.expected(&format!("{id}.show.json"))).unwrap();
            assert_same(&topic, &before, &shown, &[]);
        }
    }
    // Tokens that waited in the spool were taken in, once.
    assert_eq!(new["login form"]["tokens_used"], 33_777);
    let doctor: Value = serde_json::from_str(&earlier.ok(&["doctor", "--deep", "--json"])).unwrap();
    assert_eq!(doctor["well"], true, "{doctor:#}");
}

#[test]
fn what_an_agent_did_is_undone_and_redone() {
    let earlier = Earlier::unpack("0.1.0");
    let id = earlier.listed()["write two files"]["session_id"].as_str().unwrap().to_owned();
    let list = earlier.ok(&["checkpoint", "list", "--session", &id, "--json"]);
    for name in ["cp-01", "cp-02-final"] {
        assert!(list.contains(name), "{list}");
    }
    // The tree as that run left it.
    std::fs::write(earlier.root.join("project/one.txt"), "one by the agent\n").unwrap();
    std::fs::write(earlier.root.join("project/base.txt"), "base, changed by the agent\n").unwrap();
    earlier.ok(&["checkpoint", "validate", "--session", &id]);
    // Times of files do not survive an archive, so who changed the one that no call names cannot be told any more.
    earlier.ok(&["undo", "--session", &id, "--all", "--yes"]);
    assert_eq!(earlier.read("one.txt"), None);
    assert_eq!(earlier.read("base.txt").as_deref(), Some("base\n"));
    earlier.ok(&["redo", "--session", &id, "--yes"]);
    assert_eq!(earlier.read("one.txt").as_deref(), Some("one by the agent\n"));
    assert_eq!(earlier.read("base.txt").as_deref(), Some("base, changed by the agent\n"));
}

#[test]
fn a_run_that_was_killed_goes_on() {
    let earlier = Earlier::unpack("0.1.0");
    // Nobody has looked since the kill: the capture of its output is still there.
    let rows = rows(&earlier.ok_in("home-killed", &["ls", "--all", "--json"]));
    let row = &rows["write two files, then die"];
    assert_eq!((&row["status"], &row["in_doubt"]), (&"interrupted".into(), &1.into()), "{row}");
    let id = row["session_id"].as_str().unwrap();
    let brief = earlier.ok_in("home-killed", &["resume", id, "--from", "live", "--show-brief"]);
    assert!(brief.contains("./migrate"), "{brief}");
    earlier.ok_in("home-killed", &["resume", id, "--from", "live"]);
    let shown: Value = serde_json::from_str(&earlier.ok_in("home-killed", &["show", id, "--json"])).unwrap();
    assert_eq!(shown["state"]["status"], "completed", "{shown:#}");
}

#[test]
fn a_run_whose_driver_lived_when_it_was_copied_is_found_interrupted() {
    let earlier = Earlier::unpack("0.1.0");
    let rows = rows(&earlier.ok(&["ls", "--all", "--json"]));
    let row = &rows["write two files, and stay"];
    assert_eq!((&row["status"], &row["in_doubt"]), (&"interrupted".into(), &1.into()), "{row}");
    assert_eq!(row["tokens_used"], 12_440);
    earlier.ok(&["resume", row["session_id"].as_str().unwrap(), "--from", "live"]);
}

#[test]
fn what_was_exported_is_taken_in() {
    let earlier = Earlier::unpack("0.1.0");
    earlier.ok_in("another", &["import", "../export.json"]);
    let rows = rows(&earlier.ok_in("another", &["ls", "--all", "--everywhere", "--json"]));
    assert_eq!(rows["write two files"]["status"], "completed");
    assert_eq!(rows["write two files"]["tokens_used"], 12_440);
    // The view in the project is enough too, on request.
    let by_hand = earlier.expected("by-hand").trim().to_owned();
    earlier.ok_in("a-third", &["import", &format!(".segno/sessions/{by_hand}/session.yaml")]);
    earlier.ok_in("home", &["checkpoint", "import", "../checkpoint.bundle", "--session", &by_hand]);
}

/// Streams that are understood better than before, and why.
const UNDERSTOOD_BETTER: &[(&str, &str)] = &[];

#[test]
fn every_sample_is_understood_as_before() {
    let temp = tempfile::tempdir().unwrap();
    let archive = format!("{}/tests/earlier/0.1.0-parse.tar.gz", env!("CARGO_MANIFEST_DIR"));
    let status = program("tar").args(["--no-same-owner", "-xzf", &archive, "-C"]).arg(temp.path()).status();
    assert!(status.unwrap().success());
    let samples = format!("{}/../agents/tests", env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    // One folder per agent, one file per sample, with the sample's path in its name.
    for agent in std::fs::read_dir(temp.path()).unwrap().flatten() {
        let agent = agent.file_name().into_string().unwrap();
        for file in std::fs::read_dir(temp.path().join(&agent)).unwrap().flatten() {
            let name = file.file_name().into_string().unwrap();
            let sample = format!("{samples}/{}", name.replace("__", "/"));
            let output =
                program(SEGNO).args(["parse", "--json", "--agent", &agent, &sample]).output().unwrap();
            let old = lines(&std::fs::read_to_string(file.path()).unwrap());
            let new = lines(&String::from_utf8(output.stdout).unwrap());
            let mut found = Vec::new();
            differences(&Value::Array(old), &Value::Array(new), &name, &mut found);
            match UNDERSTOOD_BETTER.iter().find(|(better, _)| *better == name) {
                Some((_, why)) => {
                    assert!(!found.is_empty(), "{name} is as it was; it should be better: {why}")
                }
                None => assert!(found.is_empty(), "{found:#?}"),
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}
