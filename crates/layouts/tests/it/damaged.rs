//! Damaged files of every family, with what is said about each. The files themselves are values here: nothing can be
//! written to them.

use segno_layouts::Family;
use segno_layouts::FileSet;
use serde_json::Value;
use serde_json::json;

use crate::samples;
use crate::samples::now;

/// What is wrong, and the files with it.
type Case = (String, FileSet);

/// The answer to each case, one per line.
fn table(family: Family, cases: Vec<Case>) -> String {
    let whole = cases.len();
    assert!(whole >= 50, "{family} has {whole} cases");
    let mut text = String::new();
    for (what, files) in cases {
        let before = files.clone();
        let answer = match segno_layouts::read(family, &files, now()) {
            Err(damage) => damage.to_string(),
            Ok(read) => {
                let own = read.sessions.iter().flat_map(|session| &session.warnings);
                let missing = read.sessions.iter().flat_map(|session| &session.missing);
                let missing = missing.map(|file| format!("missing {file}"));
                let said: Vec<String> = read.warnings.iter().chain(own).cloned().chain(missing).collect();
                assert!(!said.is_empty(), "{family}: {what} was accepted without a word");
                format!("imported; {}", said.join("; "))
            }
        };
        assert_eq!(before, files);
        text.push_str(&format!("{what}\n    {answer}\n"));
    }
    text
}

/// The file cut off at many places, with bytes that do not belong there, and with something else in it.
fn broken(files: &FileSet, name: &str, cases: &mut Vec<Case>) {
    let bytes = files.get(name).unwrap().to_vec();
    let mut put = |what: String, content: Vec<u8>| {
        let mut files = files.clone();
        files.insert(name, content);
        cases.push((format!("{name} {what}"), files));
    };
    for part in [1, 2, 4, 6, 8, 10, 12, 14] {
        let cut = bytes.len() * part / 16;
        put(format!("cut after {part}/16"), bytes[..cut].to_vec());
    }
    put("empty".to_owned(), Vec::new());
    put("of blanks".to_owned(), b"  \n\n".to_vec());
    put("of zeros".to_owned(), vec![0; 64]);
    put("a list".to_owned(), b"[1, 2]".to_vec());
    put("a text".to_owned(), b"\"hello\"".to_vec());
    put("a number".to_owned(), b"7".to_vec());
    put("no UTF-8".to_owned(), vec![0xff, 0xfe, b'{', b'}']);
    put("two documents".to_owned(), [bytes.as_slice(), b"\n{}"].concat());
}

/// One member after the other taken away, or made into something else.
fn members(
    files: &FileSet,
    name: &str,
    pointer: &str,
    fields: &[&str],
    values: &[Value],
    cases: &mut Vec<Case>,
) {
    let parsed: Value = serde_json::from_slice(files.get(name).unwrap()).unwrap();
    for field in fields {
        let mut put = |what: String, change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut value = parsed.clone();
            change(value.pointer_mut(pointer).unwrap().as_object_mut().unwrap());
            let mut files = files.clone();
            files.insert(name, samples::text(&value));
            cases.push((format!("{name}{pointer} {what}"), files));
        };
        if values.is_empty() {
            put(format!("without {field}"), &|members| drop(members.remove(*field)));
        }
        for wrong in values {
            put(format!("with {field} = {wrong}"), &|members| {
                members.insert((*field).to_owned(), wrong.clone());
            });
        }
    }
}

#[test]
fn prp() {
    let files = samples::prp();
    let mut cases = Vec::new();
    broken(&files, "loop-state.json", &mut cases);
    let main = "loop-state.json";
    members(
        &files,
        main,
        "",
        &["session_id", "prp_file", "started_at", "current_phase", "status"],
        &[],
        &mut cases,
    );
    members(
        &files,
        main,
        "",
        &["started_at", "last_activity"],
        &[json!("soon"), json!(7), json!("2031-01-01T00:00:00Z")],
        &mut cases,
    );
    members(
        &files,
        main,
        "",
        &["current_phase", "status"],
        &[json!("BLUE"), json!(null), json!(3), json!("")],
        &mut cases,
    );
    members(
        &files,
        main,
        "",
        &["current_iteration", "phases_completed", "error_history"],
        &[json!("five"), json!(-1)],
        &mut cases,
    );
    members(&files, main, "", &["phases_completed"], &[json!(["RED", "BLUE"]), json!([1])], &mut cases);
    members(
        &files,
        main,
        "",
        &["error_history"],
        &[json!(["x"]), json!([{ "timestamp": "soon", "error": 3 }])],
        &mut cases,
    );
    members(&files, main, "", &["segno"], &[json!({}), json!({ "state": 3 }), json!("x")], &mut cases);
    members(&files, "circuit-breaker.json", "", &["state"], &[json!("BROKEN")], &mut cases);
    for name in ["circuit-breaker.json", "metrics.json", "rate-limit.json", "dual-gate.json"] {
        let mut half = files.clone();
        half.insert(name, "{\"state\":");
        cases.push((format!("{name} cut off"), half));
        let mut without = files.clone();
        without.remove(name);
        cases.push((format!("without {name}"), without));
    }
    let mut log = files.clone();
    log.insert(
        "phase-status.log",
        "---PRP_PHASE_STATUS---\nPHASE: RED\n---END_PRP_PHASE_STATUS---\n---PRP_PHASE_STATUS---\n",
    );
    cases.push(("phase-status.log with a block that says nothing and one without an end".to_owned(), log));
    insta::assert_snapshot!(table(Family::Prp, cases));
}

#[test]
fn agentforge() {
    let files = samples::agentforge();
    let name = "session_20251230_101530_a1b2c3/session.yaml";
    let text = String::from_utf8(files.get(name).unwrap().to_vec()).unwrap();
    let mut cases = Vec::new();
    let mut put = |what: String, content: String| {
        cases.push((what, FileSet::from_iter([(name, content)])));
    };
    for field in ["session_id", "state", "created_at", "updated_at", "token_budget", "artifacts", "history"] {
        put(format!("{field} under another name"), text.replacen(&format!("{field}:"), "other:", 1));
    }
    for (from, to) in [
        ("state: paused", "state: asleep"),
        ("state: paused", "state: PAUSED"),
        ("state: paused", "state: null"),
        ("state: paused", "state: [a]"),
        ("state: paused", "state: ''"),
        ("session_20251230_101530_a1b2c3\n", "../../etc/passwd\n"),
        ("session_20251230_101530_a1b2c3\n", "session_20251230_101530\n"),
        ("session_20251230_101530_a1b2c3\n", "session_20251230_101530_zzzzzz\n"),
        ("session_20251230_101530_a1b2c3\n", "''\n"),
        ("session_20251230_101530_a1b2c3\n", "null\n"),
        ("session_20251230_101530_a1b2c3\n", "session_20251230_101530_ffffff\n"),
        ("attempt_number: 2", "attempt_number: 0"),
        ("attempt_number: 2", "attempt_number: many"),
        ("attempt_number: 2", "attempt_number: -1"),
        ("'2025-12-30T10:15:30.123456'\nupdated", "'yesterday'\nupdated"),
        ("'2025-12-30T10:15:30.123456'\nupdated", "'2031-01-01T00:00:00'\nupdated"),
        ("'2025-12-30T10:15:30.123456'\nupdated", "7\nupdated"),
        ("updated_at: '2025-12-30T11:00:00'", "updated_at: '2024-12-30T11:00:00'"),
        ("updated_at: '2025-12-30T11:00:00'", "updated_at: '2031-12-30T11:00:00'"),
        ("updated_at: '2025-12-30T11:00:00'", "updated_at: [1]"),
        ("completed_at: null", "completed_at: '2025-12-30T11:00:00'"),
        ("completed_at: null", "completed_at: 'never'"),
        ("total_budget: 50000", "total_budget: 0"),
        ("total_budget: 50000", "total_budget: -5"),
        ("total_budget: 50000", "total_budget: lots"),
        ("total_budget: 50000", "total: 50000"),
        ("tokens_used: 41000", "tokens_used: -3"),
        ("tokens_used: 41000", "tokens_used: some"),
        ("artifact_type: created", "artifact_type: deleted"),
        ("artifact_type: created", "artifact_type: null"),
        ("artifact_type: created", "kind: created"),
        ("timestamp: '2025-12-30T10:20:00'", "timestamp: 'soon'"),
        ("timestamp: '2025-12-30T10:20:00'", "timestamp: '2031-01-01T00:00:00'"),
        ("action: session_created", "action: ''"),
        ("action: session_created", "did: x"),
        ("timestamp: '2025-12-30T10:30:00'", "timestamp: 'soon'"),
        ("workflow_type: spec", "workflow_type: [spec]"),
        ("current_phase: design", "current_phase: {a: b}"),
        ("state: paused", "state: paused\n  odd: indentation"),
        ("state: paused", "\tstate: paused"),
        ("state: paused", "state: paused\nstate: active"),
        ("state: paused", "state: 'paused"),
        ("owner: alice", "segno: {}"),
        ("owner: alice", "segno: {state: 3}"),
    ] {
        assert!(text.contains(from), "{from}");
        put(format!("{from:?} as {to:?}"), text.replacen(from, to, 1));
    }
    put("empty".to_owned(), String::new());
    put("blanks".to_owned(), "\n \n".to_owned());
    put("a list".to_owned(), "- a\n- b\n".to_owned());
    put("a text".to_owned(), "hello\n".to_owned());
    put("cut".to_owned(), text[..text.len() / 2].to_owned());
    put("an empty history".to_owned(), text.split("history:").next().unwrap().to_owned() + "history: []\n");
    insta::assert_snapshot!(table(Family::AgentForge, cases));
}

#[test]
fn go_team() {
    let files = samples::go_team();
    let mut cases = Vec::new();
    broken(&files, "sessions.json", &mut cases);
    let (state, recovery) = ("session-abc123/state.json", "session-abc123/recovery.json");
    let first = "/sessions/0";
    members(&files, "sessions.json", "", &["sessions"], &[], &mut cases);
    members(
        &files,
        "sessions.json",
        "",
        &["sessions"],
        &[json!(null), json!({}), json!([]), json!([3])],
        &mut cases,
    );
    members(
        &files,
        "sessions.json",
        first,
        &["id", "topic", "status", "created_at", "current_step"],
        &[],
        &mut cases,
    );
    members(
        &files,
        "sessions.json",
        first,
        &["id"],
        &[json!("../x"), json!("a/b"), json!(""), json!(3)],
        &mut cases,
    );
    members(&files, "sessions.json", first, &["status"], &[json!("asleep"), json!(null)], &mut cases);
    members(
        &files,
        "sessions.json",
        first,
        &["current_step"],
        &[json!(0), json!("four"), json!(5000)],
        &mut cases,
    );
    members(
        &files,
        "sessions.json",
        first,
        &["created_at", "updated_at"],
        &[json!("soon"), json!("2031-01-01T00:00:00Z")],
        &mut cases,
    );
    members(&files, "sessions.json", first, &["progress"], &[json!("half")], &mut cases);
    members(&files, state, "", &["session_id", "state"], &[], &mut cases);
    members(&files, state, "", &["session_id"], &[json!("session-other")], &mut cases);
    members(&files, state, "", &["saved_at"], &[json!("soon"), json!("2031-01-01T00:00:00Z")], &mut cases);
    members(&files, state, "/context", &["pending_tasks"], &[json!("one"), json!([1])], &mut cases);
    members(&files, recovery, "", &["interrupt_reason"], &[json!("boredom")], &mut cases);
    members(&files, recovery, "", &["session_id"], &[json!("session-other")], &mut cases);
    let checkpoint = "session-abc123/cp-03-architecture.json";
    members(&files, checkpoint, "", &["id"], &[], &mut cases);
    members(&files, checkpoint, "", &["step_number"], &[json!(0)], &mut cases);
    for name in ["session-abc123/manifest.json", state, recovery, checkpoint] {
        let mut half = files.clone();
        half.insert(name, "{\"session_id\":");
        cases.push((format!("{name} cut off"), half));
    }
    insta::assert_snapshot!(table(Family::GoTeam, cases));
}

#[test]
fn ultra_create() {
    let files = samples::ultra_create();
    let mut cases = Vec::new();
    let main = "current-session.json";
    broken(&files, main, &mut cases);
    members(&files, main, "", &["session_id", "created_at", "updated_at", "status"], &[], &mut cases);
    members(&files, main, "", &["status"], &[json!("asleep"), json!(3), json!(null)], &mut cases);
    members(&files, main, "", &["session_id"], &[json!(""), json!([1])], &mut cases);
    members(
        &files,
        main,
        "",
        &["created_at", "updated_at"],
        &[json!("soon"), json!("2031-01-01T00:00:00Z"), json!(9)],
        &mut cases,
    );
    members(&files, main, "", &["updated_at"], &[json!("2020-01-01T00:00:00Z")], &mut cases);
    members(
        &files,
        main,
        "",
        &["project", "context", "agents", "tools", "decisions", "memory", "files", "errors", "checkpoints"],
        &[json!("x")],
        &mut cases,
    );
    members(&files, main, "/context", &["progress_percent"], &[json!(101), json!("half")], &mut cases);
    members(
        &files,
        main,
        "/tools",
        &["history", "pending"],
        &[json!([3]), json!([{ "timestamp": "soon" }])],
        &mut cases,
    );
    members(&files, main, "/errors", &["count"], &[json!("one")], &mut cases);
    members(&files, main, "", &["segno"], &[json!({ "state": 3 })], &mut cases);
    let packed = segno_layouts::gzip(files.get(main).unwrap());
    for part in [0, 1, 2, 3] {
        let cut = packed[..packed.len() * part / 4].to_vec();
        cases.push((
            format!("only a compressed copy, cut after {part}/4"),
            FileSet::from_iter([("current-session.json.gz", cut)]),
        ));
    }
    let mut odd = files.clone();
    odd.insert("checkpoint_1.json", "{");
    cases.push(("a checkpoint that is cut off".to_owned(), odd));
    let mut lost = files.clone();
    lost.insert("checkpoint_2.json", r#"{"id":"checkpoint_2","timestamp":"2020-01-01T00:00:00Z"}"#);
    cases.push(("a checkpoint of nobody".to_owned(), lost));
    insta::assert_snapshot!(table(Family::UltraCreate, cases));
}

#[test]
fn ralph() {
    let files = samples::ralph();
    let mut cases = Vec::new();
    broken(&files, ".ralph_session", &mut cases);
    broken(&files, "status.json", &mut cases);
    broken(&files, ".circuit_breaker_state", &mut cases);
    members(&files, ".circuit_breaker_state", "", &["state"], &[json!("BROKEN"), json!(1)], &mut cases);
    members(
        &files,
        ".ralph_session",
        "",
        &["created_at", "last_used"],
        &[json!("soon"), json!(3)],
        &mut cases,
    );
    for name in [
        ".ralph_session",
        ".claude_session_id",
        ".circuit_breaker_state",
        "status.json",
        "PROMPT.md",
        "fix_plan.md",
    ] {
        let mut without = files.clone();
        without.remove(name);
        cases.push((format!("without {name}"), without));
    }
    cases.push(("only .call_count".to_owned(), FileSet::from_iter([(".call_count", "3")])));
    insta::assert_snapshot!(table(Family::Ralph, cases));
}

#[test]
fn atari() {
    let files = samples::atari();
    let mut cases = Vec::new();
    broken(&files, "state.json", &mut cases);
    members(&files, "state.json", "", &["version", "status"], &[], &mut cases);
    members(
        &files,
        "state.json",
        "",
        &["version"],
        &[json!(0), json!(3), json!("two"), json!(null), json!(-1)],
        &mut cases,
    );
    members(
        &files,
        "state.json",
        "",
        &["status"],
        &[json!("asleep"), json!(1), json!(null), json!("")],
        &mut cases,
    );
    members(
        &files,
        "state.json",
        "",
        &["updated_at"],
        &[json!("soon"), json!("2031-01-01T00:00:00Z"), json!(1)],
        &mut cases,
    );
    members(&files, "state.json", "", &["total_cost"], &[json!("much"), json!(-1), json!(1e12)], &mut cases);
    members(&files, "state.json", "", &["iteration"], &[json!("nine"), json!(-1), json!([])], &mut cases);
    members(
        &files,
        "state.json",
        "",
        &["current_bead", "active_top_level_title"],
        &[json!([]), json!({}), json!(true)],
        &mut cases,
    );
    members(
        &files,
        "state.json",
        "/history",
        &["bd-1", "bd-7"],
        &[json!(3), json!("x"), json!([])],
        &mut cases,
    );
    members(
        &files,
        "state.json",
        "/history/bd-7",
        &["attempts", "last_attempt"],
        &[json!("x"), json!([])],
        &mut cases,
    );
    members(
        &files,
        "state.json",
        "/history/bd-7",
        &["last_error", "last_session_id"],
        &[json!([]), json!(true)],
        &mut cases,
    );
    cases.push(("no file".to_owned(), FileSet::from_iter([("other", "")])));
    insta::assert_snapshot!(table(Family::Atari, cases));
}
