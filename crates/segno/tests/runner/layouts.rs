//! The file families of other session managers: taken over, found, kept current, and read by programs that were written
//! from their documents.

use std::fs;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;
use serde_json::json;

use crate::common::TestEnv;
use crate::going_back::world;

const READERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers");

/// A reader that polls a folder, until it is told to stop.
struct Poll {
    child: Child,
    stop: std::path::PathBuf,
}

impl Poll {
    fn start(env: &TestEnv, family: &str, folder: &str) -> Self {
        let stop = env.path(&format!("stop-{family}"));
        #[expect(clippy::disallowed_methods, reason = "the reader is a program of its own")]
        let mut command = Command::new("python3");
        let child = command
            .args(["-B", &format!("{READERS}/poll.py"), family])
            .arg(env.path(folder))
            .arg(&stop)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, stop }
    }

    /// The statuses that were seen, in order; every look must have been fine.
    fn end(self) -> String {
        fs::write(&self.stop, "").unwrap();
        let output = self.child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{wrong}");
        let mut lines = said.lines();
        assert!(!lines.next().unwrap().ends_with("found 0"), "{said}");
        lines.next().unwrap().to_owned()
    }
}

/// The folders of all families.
const FOLDERS: [(&str, &str); 4] = [
    ("prp", "project/.prp-session"),
    ("agentforge", "project/.agentforge/sessions"),
    ("go_team", "project/.claude/agents/microai/teams/go-team/checkpoints"),
    ("ultra_create", "home/.ultra-create/sessions"),
];

/// Every family is read by the second readers, which check more than can be checked while files are written.
fn read_by_others(env: &TestEnv, when: &str) {
    for (family, folder) in FOLDERS {
        #[expect(clippy::disallowed_methods, reason = "the reader is a program of its own")]
        let mut command = Command::new("python3");
        let reader = format!("{READERS}/second/{family}.py");
        let output = command.args(["-B", &reader]).arg(env.path(folder)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.trim(), "ok", "{family}, {when}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

const LOOP_STATE: &str = r#"{
  "session_id": "a1b2c3d4-0000-4000-8000-000000000001", "prp_file": "prp/login.md",
  "started_at": "2026-01-16T10:00:00-03:00", "current_phase": "GREEN", "current_iteration": 5,
  "last_activity": "2026-01-16T10:45:00-03:00", "status": "paused", "halt_reason": null,
  "phases_completed": ["RED"], "error_history": [], "dashboard": {"theme": "dark"}
}"#;

#[test]
fn a_prp_session_of_another_tool_is_found_and_taken_over() {
    let env = TestEnv::new();
    env.write("project/.prp-session/loop-state.json", LOOP_STATE);
    let found = env.json(&["detect", "--file", "prp/login.md"]);
    assert_eq!(found["action"], "offer_resume");
    assert_eq!(found["foreign"]["session_id"], "a1b2c3d4-0000-4000-8000-000000000001");
    let other = env.json(&["detect", "--file", "prp/other.md"]);
    assert_eq!(other["action"], "create_new");
    assert_eq!(other["reason"], "PRP mismatch: session=prp/login.md, requested=prp/other.md");
    assert_eq!(other["foreign"]["action"], "create_new");

    let said = env.ok(&["import", ".prp-session"]);
    assert!(said.stderr.contains(".prp-session is a PRP session"), "{}", said.stderr);
    assert!(
        said.stderr.contains(
            "not there: metrics.json, circuit-breaker.json, rate-limit.json, dual-gate.json, phase-status.log; \
             what is there was imported"
        ),
        "{}",
        said.stderr
    );
    assert_eq!(env.read("project/.prp-session/loop-state.json"), LOOP_STATE, "nothing was changed");
    let state = env.json(&["state"]);
    assert_eq!((&state["status"], &state["phase"]), (&json!("paused"), &json!("GREEN")));
    assert_eq!(state["iteration"], 5);
    // The same files are the same session.
    let again = env.run(&["import", ".prp-session"]);
    assert_ne!(again.code, 0);
    assert!(again.stderr.contains("is in this store already"), "{}", again.stderr);
    // It goes on here, and is written back where it came from, with what segno does not know.
    env.ok(&["resume", "last", "--no-run"]);
    env.ok(&["layout", "write", "last", "--family", "prp"]);
    let back: Value = serde_json::from_str(&env.read("project/.prp-session/loop-state.json")).unwrap();
    assert_eq!(back["status"], "running");
    assert_eq!(back["session_id"], "a1b2c3d4-0000-4000-8000-000000000001");
    assert_eq!(back["dashboard"], json!({ "theme": "dark" }));
    Poll::start(&env, "prp", "project/.prp-session").end();
}

#[test]
fn the_folder_that_a_variable_names_is_looked_at() {
    let mut env = TestEnv::new();
    env.write("elsewhere/loop-state.json", LOOP_STATE);
    let folder = env.path("elsewhere").to_str().unwrap().to_owned();
    assert_eq!(env.json(&["detect"])["found"], false);
    env.set("PRP_SESSION_DIR", &folder);
    assert_eq!(env.json(&["detect"])["foreign"]["folder"], folder);
}

#[test]
fn whole_foreign_files_are_named_and_damaged_ones_are_left_as_they_are() {
    let env = TestEnv::new();
    let entry = r#"{"id":"session-abc123","topic":"auth","status":"interrupted","created_at":"2025-12-28T21:00:00Z","current_step":4}"#;
    env.write("project/checkpoints/sessions.json", &format!(r#"{{"version":"1.0.0","sessions":[{entry}]}}"#));
    let said = env.ok(&["import", "checkpoints/sessions.json"]);
    assert!(said.stderr.contains("checkpoints is a go-team registry"), "{}", said.stderr);
    assert!(!said.stderr.contains("corrupted"), "{}", said.stderr);
    let broken = r#"{"session_id":"x","prp_file":"a.md","started_at":"2026-01-16T10:00:00Z","current_phase":"BLUE","status":"running"}"#;
    env.write("project/.prp-session/loop-state.json", broken);
    let refused = env.run(&["import", ".prp-session"]);
    assert!(
        refused.stderr.contains("loop-state.json state file is corrupted: Invalid phase: BLUE"),
        "{}",
        refused.stderr
    );
    assert_eq!(env.read("project/.prp-session/loop-state.json"), broken);
    fs::create_dir_all(env.path("project/empty")).unwrap();
    let nothing = env.run(&["import", "empty"]);
    assert!(
        nothing.stderr.contains("empty is no session: it holds no files of segno, PRP"),
        "{}",
        nothing.stderr
    );
}

/// Every family at once, while a session goes through its life by commands and by a driven run; each read a hundred times a
/// second by a program that was written from its document.
#[test]
fn readers_written_from_the_documents_accept_every_moment() {
    let mut env = TestEnv::new();
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["prp", "agentforge", "go-team", "ultra-create"]"#);
    env.write("project/login.md", "make the login form work\n");
    let polls = FOLDERS.map(|(family, folder)| Poll::start(&env, family, folder));
    env.ok(&["new", "login form", "--phases", "RED,GREEN,REFACTOR,DOCUMENT"]);
    env.ok(&["metric", "set", "tests_generated", "10"]);
    env.ok(&["checkpoint", "create", "init"]);
    env.ok(&["phase", "GREEN"]);
    env.ok(&["error", "TypeError: x of undefined"]);
    env.ok(&["task", "add", "wire it"]);
    env.ok(&["decide", "which database?", "--choice", "sqlite"]);
    env.ok(&["artifact", "add", "login.md", "created"]);
    read_by_others(&env, "in its second phase");
    env.ok(&[
        "run",
        "--session",
        "last",
        "--",
        "/bin/sh",
        "-c",
        "for i in 1 2 3; do echo $i; sleep 0.2; done",
    ]);
    env.ok(&["pause"]);
    read_by_others(&env, "paused");
    env.ok(&["resume", "last", "--no-run"]);
    read_by_others(&env, "resumed");
    env.ok(&["phase", "REFACTOR"]);
    env.ok(&["phase", "DOCUMENT"]);
    env.ok(&["complete", "last"]);
    read_by_others(&env, "completed");
    let seen = polls.map(Poll::end);
    for statuses in &seen {
        assert!(statuses.ends_with(" completed"), "{seen:?}");
        assert!(statuses.contains(" paused "), "{seen:?}");
    }
    let stands = env.json(&["layout", "list", "last"]);
    for family in stands["families"].as_array().unwrap() {
        assert_eq!(family["standing"], "current", "{stands}");
    }
    env.ok(&["layout", "check", "last"]);
    let names = |folder: &str| {
        let mut names: Vec<String> = fs::read_dir(env.path(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(
        names("project/.prp-session"),
        [
            ".gitignore",
            "circuit-breaker.json",
            "dual-gate.json",
            "loop-state.json",
            "metrics.json",
            "phase-status.log",
            "rate-limit.json",
        ]
    );
    env.ok(&["layout", "remove", "last"]);
    assert!(!env.path("project/.prp-session").exists());
    assert_eq!(env.run(&["layout", "check", "last"]).code, 1);
}

#[test]
fn an_observer_of_a_go_team_finds_its_commands() {
    let env = TestEnv::new();
    let entry = |id: &str, topic: &str, status: &str, step: u32| {
        json!({
            "id": id, "topic": topic, "status": status, "created_at": "2025-12-28T21:00:00Z",
            "updated_at": "2025-12-28T21:45:00Z", "current_step": step,
            "progress": { "steps_completed": step, "total_steps": 9, "percentage": 44 }, "resumable": true,
        })
    };
    let sessions = [
        entry("session-def456", "payment-gateway", "paused", 6),
        entry("session-abc123", "user-auth-service", "interrupted", 4),
    ];
    let registry =
        json!({ "version": "1.0.0", "sessions": sessions, "last_active_session": "session-abc123" });
    env.write("project/checkpoints/sessions.json", &registry.to_string());
    let nothing = env.run(&["observe", "*sessions"]);
    assert_ne!(nothing.code, 0, "there is no store yet");
    env.ok(&["import", "checkpoints"]);
    let said = env.ok(&["observe", "*sessions"]);
    insta::assert_snapshot!("observe_sessions", said.stdout);
    // By its number, and by the name that it had there.
    let shown = env.ok(&["observe", "*session-info:1"]);
    assert!(shown.stdout.contains("user-auth-service"), "{}", shown.stdout);
    let shown = env.ok(&["observe", "*session-info:def456"]);
    assert!(shown.stdout.contains("payment-gateway"), "{}", shown.stdout);
    env.ok(&["observe", "*abandon:def456"]);
    let left = env.json(&["observe", "*sessions"]);
    assert_eq!(left["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(left["sessions"][0]["topic"], "user-auth-service");
    let wrong = env.run(&["observe", "*sesions"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean *sessions?"), "{}", wrong.stderr);
    assert_eq!(env.run(&["observe"]).code, 2, "nothing is asked without a terminal");
}

/// A registry of sessions that were all made in the same second.
fn registry(env: &TestEnv, sessions: &[(&str, &str)]) {
    let entries: Vec<Value> = sessions
        .iter()
        .map(|(id, status)| {
            json!({ "id": id, "topic": id, "status": status, "current_step": 2, "created_at": "2025-12-28T21:00:00Z" })
        })
        .collect();
    let registry = json!({ "version": "1.0.0", "sessions": entries });
    env.write("project/checkpoints/sessions.json", &registry.to_string());
}

#[test]
fn sessions_of_one_second_can_each_be_named_by_their_end() {
    let env = TestEnv::new();
    registry(
        &env,
        &[("session-aaaa01", "paused"), ("session-aaaa02", "paused"), ("session-aaaa03", "completed")],
    );
    let said = env.ok(&["import", "checkpoints"]);
    // The last one that can be resumed, though another came after it.
    assert_eq!(said.stderr.matches("segno resume").count(), 1, "{}", said.stderr);
    let listed = env.json(&["ls", "--all"]);
    let ids: Vec<String> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["session_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 3);
    for id in &ids {
        let end = &id[id.len() - 6..];
        assert_ne!(end, "000000");
        assert_eq!(env.json(&["state", end])["session_id"], json!(id));
    }
    registry(&env, &[("session-bbbb01", "completed")]);
    let ended = env.ok(&["import", "checkpoints"]);
    assert!(!ended.stderr.contains("segno resume"), "{}", ended.stderr);
    registry(&env, &[]);
    let empty = env.run(&["import", "checkpoints"]);
    assert_eq!(empty.code, 5, "{}", empty.stderr);
    assert!(
        empty
            .stderr
            .contains("checkpoints is a go-team registry without sessions: there is nothing to import"),
        "{}",
        empty.stderr
    );
    assert!(!empty.stderr.contains("corrupted"), "{}", empty.stderr);
}

#[test]
fn names_in_the_files_of_others_are_known_whatever_became_of_the_session() {
    let mut env = TestEnv::new();
    registry(
        &env,
        &[("session-done01", "completed"), ("session-fail01", "failed"), ("session-open01", "paused")],
    );
    env.ok(&["import", "checkpoints"]);
    for (id, said) in
        [("session-done01", "Session already completed"), ("fail01", "Session failed and cannot be resumed")]
    {
        let refused = env.run(&["observe", &format!("*resume:{id}")]);
        assert_ne!(refused.code, 0);
        assert!(refused.stderr.contains(said), "{id}: {}", refused.stderr);
        let shown = env.ok(&["observe", &format!("*session-info:{id}")]);
        assert!(shown.stdout.contains(id), "{}", shown.stdout);
    }
    assert_eq!(env.json(&["state", "session-fail01"])["topic"], "session-fail01");
    env.ok(&["observe", "*abandon:open01"]);
    assert_eq!(env.json(&["state", "session-open01"])["status"], "aborted");
    // The name that we write ourselves.
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["go-team"]"#);
    env.ok(&["new", "of ours"]);
    let written: Value = serde_json::from_str(&env.read("project/checkpoints/sessions.json")).unwrap();
    let ours = written["sessions"].as_array().unwrap().iter().find(|entry| entry["topic"] == "of ours");
    let name = ours.unwrap()["id"].as_str().unwrap().to_owned();
    let shown = env.ok(&["observe", &format!("*session-info:{name}")]);
    assert!(shown.stdout.contains("of ours"), "{}", shown.stdout);
    env.ok(&["observe", &format!("*abandon:{name}")]);
    assert_eq!(env.json(&["state", &name])["status"], "aborted");
    let nobody = env.run(&["show", "session-nobody"]);
    assert_eq!(nobody.code, 3, "{}", nobody.stderr);
    let same = env.run(&["show", "01"]);
    assert_ne!(same.code, 0, "too short for a name");
}

#[test]
fn a_refused_branch_names_the_session_in_what_to_type() {
    let env = world();
    let git = |args: &[&str]| {
        let mut git = env.command("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args);
        let output = git.env("PATH", "/usr/bin:/bin:/usr/local/bin").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    let entry = json!({
        "id": "session-abc123", "topic": "auth", "status": "paused", "created_at": "2025-12-28T21:00:00Z", "current_step": 2,
        "git_branch": "feature/auth",
    });
    env.write("project/checkpoints/sessions.json", &json!({ "sessions": [entry] }).to_string());
    env.ok(&["import", "checkpoints"]);
    env.ok(&["new", "another one", "--parallel"]);
    let id = env.json(&["state", "session-abc123"])["session_id"].as_str().unwrap().to_owned();
    let refused = env.raw(&["observe", "*resume:abc123"]);
    assert_eq!(refused.status.code(), Some(5));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains(&format!("segno resume {id} --checkout-branch   (or: --any-branch)")), "{said}");
}

#[test]
fn an_observer_exports_one_checkpoint_and_not_into_the_project() {
    let env = world();
    env.write("project/a.txt", "one\n");
    env.start(&["login form"]);
    env.ok(&["checkpoint", "create", "first"]);
    env.write("project/a.txt", "two\n");
    env.ok(&["checkpoint", "create", "second"]);
    let names = || {
        let entries = fs::read_dir(env.path("project")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let made = env.json(&["observe", "*cp-export:1"]);
    assert_eq!(made["checkpoint"]["ordinal"], 1);
    let file = std::path::PathBuf::from(made["file"].as_str().unwrap());
    assert!(file.is_file() && !file.starts_with(env.path("project")), "{made}");
    assert_eq!(env.json(&["observe", "*cp-export"])["checkpoint"]["ordinal"], 2);
    let again = env.json(&["observe", "*cp-export:1"]);
    assert_ne!(again["file"], made["file"], "nothing is replaced");
    let wrong = env.run(&["observe", "*cp-export:99"]);
    assert_ne!(wrong.code, 0);
    assert_eq!(names(), before, "the project is as it was");
    let kept = fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(kept, 3, "what went wrong left nothing behind");
    // It is the checkpoint that was asked for.
    env.ok(&["checkpoint", "import", file.to_str().unwrap(), "--name", "back"]);
    env.ok(&["checkpoint", "restore", "back", "--yes"]);
    assert_eq!(env.read("project/a.txt"), "one\n");
}

#[test]
fn what_asks_can_be_told_yes_and_nothing_else() {
    let env = world();
    env.write("project/a.txt", "one\n");
    env.start(&["login form"]);
    env.ok(&["checkpoint", "create", "first"]);
    env.write("project/a.txt", "two\n");
    let asked = env.run(&["observe", "*rollback:first"]);
    assert_eq!(asked.code, 14, "{}", asked.stderr);
    assert!(asked.stderr.contains("add --yes"), "{}", asked.stderr);
    env.ok(&["observe", "*rollback:first", "--yes"]);
    assert_eq!(env.read("project/a.txt"), "one\n");
    let refused = env.run(&["observe", "*sessions", "--yes"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("*sessions asks nothing, so it takes no --yes"), "{}", refused.stderr);
}

#[test]
fn what_cannot_be_imported_is_not_offered_for_it() {
    let env = TestEnv::new();
    env.write("project/.prp-session/loop-state.json", &LOOP_STATE[..100]);
    let said = env.ok(&["detect"]);
    assert!(said.stdout.starts_with("offer_reset"), "{}", said.stdout);
    assert!(!said.stderr.contains("segno import"), "{}", said.stderr);
    assert_ne!(env.run(&["import", ".prp-session"]).code, 0);
}

#[test]
fn who_only_looks_hears_of_a_change_too() {
    let mut env = TestEnv::new();
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["prp"]"#);
    env.start(&["login form", "--phases", "RED,GREEN"]);
    edit(&env, MAIN, "\"status\": \"running\"", "\"status\": \"paused\"");
    let said = env.ok(&["ls"]);
    assert!(
        said.stderr.contains("another program set paused in the files of prp: obeyed"),
        "{}",
        said.stderr
    );
}

fn edit(env: &TestEnv, file: &str, from: &str, to: &str) {
    let text = env.read(file);
    assert!(text.contains(from), "{from} is not in {text}");
    env.write(file, &text.replacen(from, to, 1));
}

const MAIN: &str = "project/.prp-session/loop-state.json";

#[test]
fn a_pause_and_a_resume_in_the_files_are_obeyed() {
    let mut env = TestEnv::new();
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["prp"]"#);
    env.start(&["login form", "--phases", "RED,GREEN"]);
    edit(&env, MAIN, "\"status\": \"running\"", "\"status\": \"paused\"");
    let said = env.ok(&["show", "last", "--json"]);
    assert!(
        said.stderr.contains("another program set paused in the files of prp: obeyed"),
        "{}",
        said.stderr
    );
    assert_eq!(env.json(&["state", "last"])["status"], "paused");
    edit(&env, MAIN, "\"status\": \"paused\"", "\"status\": \"running\"");
    assert_eq!(env.json(&["state", "last"])["status"], "active");
    let state: Value = serde_json::from_str(&env.read(MAIN)).unwrap();
    assert_eq!(state["status"], "running");
}

#[test]
fn other_changes_are_put_back_and_kept_until_it_is_three_times() {
    let mut env = TestEnv::new();
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["prp"]"#);
    env.start(&["login form", "--phases", "RED,GREEN"]);
    let kept = || {
        let names = fs::read_dir(env.path("project/.prp-session")).unwrap();
        names.filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().contains(".edited-")).count()
    };
    for round in 1..=2 {
        edit(&env, MAIN, "\"current_phase\": \"RED\"", "\"current_phase\": \"DOCUMENT\"");
        let said = env.ok(&["note", "something happens"]);
        assert!(said.stderr.contains("another program changed"), "{}", said.stderr);
        assert!(env.read(MAIN).contains("\"current_phase\": \"RED\""), "ours is back");
        assert_eq!(kept(), round, "theirs is kept");
    }
    edit(&env, MAIN, "\"current_phase\": \"RED\"", "\"current_phase\": \"DOCUMENT\"");
    let said = env.ok(&["note", "something happens"]);
    assert!(said.stderr.contains("another program changed them 3 times"), "{}", said.stderr);
    assert!(env.read(MAIN).contains("\"current_phase\": \"DOCUMENT\""), "it is left to them");
    env.ok(&["layout", "write", "last"]);
    assert!(env.read(MAIN).contains("\"current_phase\": \"RED\""), "somebody asked for ours");
    assert_eq!(kept(), 3);
}

#[test]
fn what_is_written_shows_neither_in_the_repository_nor_twice() {
    let mut env = TestEnv::new();
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["prp", "agentforge"]"#);
    let git = |args: &[&str]| {
        let output =
            env.command("git").args(args).env("PATH", "/usr/bin:/bin:/usr/local/bin").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    env.start(&["login form", "--phases", "RED,GREEN"]);
    assert_eq!(git(&["status", "--porcelain"]), "");
    let first = env.json(&["layout", "write", "last"]);
    assert_eq!(first["families"][0]["written"], json!([]), "all of it was there already");
}

#[test]
fn files_of_another_tool_are_never_replaced() {
    let mut env = TestEnv::new();
    env.write("project/.prp-session/loop-state.json", LOOP_STATE);
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["prp"]"#);
    let said = env.ok(&["new", "something else", "--phases", "RED,GREEN"]);
    assert!(
        said.stderr.contains("the files of prp were left alone: they are of session [uid] of another tool"),
        "{}",
        said.stderr
    );
    assert_eq!(env.read("project/.prp-session/loop-state.json"), LOOP_STATE);
    let stands = env.json(&["layout", "list", "--family", "prp"]);
    assert_eq!(stands["families"][0]["standing"], "not ours");
}

#[test]
fn a_folder_that_cannot_be_written_stops_nobody_and_is_healed() {
    let mut env = TestEnv::new();
    env.write("project/.prp-session", "a file where the folder should be");
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["prp"]"#);
    let said = env.ok(&["new", "login form", "--phases", "RED,GREEN"]);
    assert!(
        said.stderr.contains("the change is recorded, but the files of prp were not written"),
        "{}",
        said.stderr
    );
    fs::remove_file(env.path("project/.prp-session")).unwrap();
    env.ok(&["phase", "GREEN"]);
    let state: Value = serde_json::from_str(&env.read("project/.prp-session/loop-state.json")).unwrap();
    assert_eq!(state["current_phase"], "GREEN");
}

#[test]
fn aborting_can_take_the_files_along() {
    let mut env = TestEnv::new();
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["prp"]"#);
    env.start(&["login form", "--phases", "RED,GREEN"]);
    assert!(env.path("project/.prp-session/loop-state.json").exists());
    env.ok(&["abort", "--remove-files"]);
    assert!(!env.path("project/.prp-session").exists());
    assert_eq!(env.json(&["state", "last"])["status"], "aborted");
}
