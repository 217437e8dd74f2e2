//! Files of other session managers beside programs that write them too, and the document's own banners.

use std::fs;

use serde_json::Value;
use serde_json::json;

use crate::common::TestEnv;
use crate::going_back::world;

const FOLDER: &str = "project/.claude/agents/microai/teams/go-team/checkpoints";

fn registry(env: &TestEnv) -> Value {
    serde_json::from_str(&env.read(&format!("{FOLDER}/sessions.json"))).unwrap()
}

/// Changes members of the only entry of the registry, as a person or another tool does.
fn set(env: &TestEnv, members: &[(&str, Value)]) {
    let mut whole = registry(env);
    for (name, value) in members {
        whole["sessions"][0][*name] = value.clone();
    }
    env.write(&format!("{FOLDER}/sessions.json"), &serde_json::to_string_pretty(&whole).unwrap());
}

fn kept(env: &TestEnv) -> usize {
    let entries = fs::read_dir(env.path(FOLDER)).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".edited-")).count()
}

#[test]
fn a_status_in_the_registry_is_obeyed_and_nothing_else_is() {
    let mut env = TestEnv::new();
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["go-team"]"#);
    env.start(&["login form"]);
    let later = json!("2030-01-01T00:00:00Z");
    set(&env, &[("status", json!("paused")), ("updated_at", later.clone()), ("resumable", json!(true))]);
    let said = env.ok(&["show", "last", "--json"]);
    let obeyed = "another program set paused in the files of go-team: obeyed";
    assert!(said.stderr.contains(obeyed), "{}", said.stderr);
    assert_eq!(env.json(&["state", "last"])["status"], "paused");
    assert_eq!(registry(&env)["sessions"][0]["status"], "paused");
    assert_ne!(registry(&env)["sessions"][0]["updated_at"], later, "the rest of it is ours again");
    set(&env, &[("status", json!("active"))]);
    assert_eq!(env.json(&["state", "last"])["status"], "active");
    // A session is not completed by a word in a file, nor is its topic another one.
    for (times, (name, theirs)) in
        [("status", json!("completed")), ("topic", json!("theirs"))].iter().enumerate()
    {
        set(&env, &[(*name, theirs.clone())]);
        let said = env.ok(&["note", "something happens"]);
        assert!(said.stderr.contains("sessions.json; its text is kept beside it as"), "{}", said.stderr);
        assert_eq!(kept(&env), times + 1);
        let entry = &registry(&env)["sessions"][0];
        assert_eq!((&entry["status"], &entry["topic"]), (&json!("active"), &json!("login form")));
    }
    // Entries of others are theirs to change.
    let mut whole = registry(&env);
    whole["sessions"].as_array_mut().unwrap().push(json!({ "id": "session-theirs", "status": "active" }));
    env.write(&format!("{FOLDER}/sessions.json"), &whole.to_string());
    env.ok(&["note", "something else"]);
    assert_eq!((kept(&env), registry(&env)["sessions"].as_array().unwrap().len()), (2, 2));
    assert_eq!(env.json(&["state", "last"])["status"], "active");
}

#[test]
fn what_a_killed_writer_left_goes_with_the_next_change() {
    let mut env = TestEnv::new();
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["prp", "go-team"]"#);
    env.start(&["login form", "--phases", "RED,GREEN"]);
    let session = registry(&env)["sessions"][0]["id"].as_str().unwrap().to_owned();
    let id = "0123456789abcdef0123456789abcdef";
    let left = [
        format!("project/.prp-session/.loop-state.json.{id}.tmp"),
        format!("{FOLDER}/.sessions.json.{id}.tmp"),
        format!("{FOLDER}/{session}/.state.json.{id}.tmp"),
    ];
    let theirs = ["project/.prp-session/.loop-state.json.mine.tmp", "project/.prp-session/.theirs.tmp"];
    for path in left.iter().map(String::as_str).chain(theirs) {
        env.write(path, "half");
    }
    env.ok(&["phase", "GREEN"]);
    for path in left {
        assert!(!env.path(&path).exists(), "{path}");
    }
    for path in theirs {
        assert_eq!(env.read(path), "half");
    }
}

/// The document's sample: a session that stopped in its fourth step.
fn import_sample(env: &TestEnv) {
    let entry = |id: &str, topic: &str, status: &str, step: u32| {
        json!({
            "id": id, "topic": topic, "status": status, "created_at": "2025-12-28T21:00:00Z",
            "updated_at": "2025-12-28T21:45:00Z", "current_step": step, "current_checkpoint": "cp-03-architecture",
            "progress": { "steps_completed": step, "total_steps": 9, "percentage": 44 }, "resumable": true,
        })
    };
    let sessions = [
        entry("session-abc123", "user-auth-service", "interrupted", 4),
        entry("session-old789", "old", "completed", 9),
    ];
    env.write(
        "project/checkpoints/sessions.json",
        &json!({ "version": "1.0.0", "sessions": sessions }).to_string(),
    );
    let state = json!({
        "session_id": "session-abc123", "saved_at": "2025-12-28T21:45:30Z", "save_trigger": "auto",
        "state": {
            "topic": "user-auth-service", "phase": "implementation", "current_step": 4,
            "current_agent": "go-coder-agent", "iteration_count": 0, "breakpoint_active": false,
            "metrics": { "build_pass": true, "test_coverage": 0, "lint_clean": false, "race_free": false },
        },
        "context": { "last_action": "Implementing service layer", "pending_tasks": ["Wire DI"] },
        "outputs": { "spec": "a spec", "architecture": "layers", "code_files": ["cmd/main.go"] },
        "recovery_point": { "checkpoint": "cp-03-architecture", "actions_since_checkpoint": 15 },
    });
    env.write("project/checkpoints/session-abc123/state.json", &state.to_string());
    let recovery = json!({
        "session_id": "session-abc123", "interrupted_at": "2025-12-28T21:45:00Z", "interrupt_reason": "timeout",
        "last_known_state": { "step": 4, "agent": "go-coder-agent", "action": "Writing file" },
        "recovery_options": [], "recommended": "checkpoint", "auto_resume_enabled": true,
    });
    env.write("project/checkpoints/session-abc123/recovery.json", &recovery.to_string());
    let checkpoint = json!({
        "id": "cp-03-architecture", "session_id": "session-abc123", "step_number": 3, "step_name": "architecture",
        "created_at": "2025-12-28T21:30:00Z", "state": {}, "outputs": {}, "files": {}, "git": { "enabled": false },
        "checksum": "sha256:00",
    });
    env.write("project/checkpoints/session-abc123/cp-03-architecture.json", &checkpoint.to_string());
    env.ok(&["import", "checkpoints"]);
}

#[test]
fn what_was_taken_over_keeps_its_times_and_steps() {
    let env = TestEnv::new();
    import_sample(&env);
    let state = env.json(&["state", "session-abc123"]);
    assert_eq!(state["recovery"]["interrupted_at"], "2025-12-28T21:45:00.000000Z", "{state}");
    assert_eq!(state["recovery"]["interrupt_reason"], "timeout");
    env.ok(&["layout", "write", "session-abc123", "--family", "go-team"]);
    let file = |name: &str| -> Value {
        serde_json::from_str(&env.read(&format!("project/checkpoints/session-abc123/{name}"))).unwrap()
    };
    let recovery = file("recovery.json");
    assert_eq!(recovery["interrupted_at"], "2025-12-28T21:45:00.000000Z");
    assert_eq!(
        (&recovery["interrupt_reason"], &recovery["recommended"]),
        (&json!("timeout"), &json!("checkpoint"))
    );
    assert_eq!(recovery["last_known_state"]["step"], 4);
    let manifest = file("manifest.json");
    let checkpoint = &manifest["checkpoints"][0];
    assert_eq!((&checkpoint["step"], &checkpoint["step_name"]), (&json!(3), &json!("architecture")));
    assert_eq!(file("cp-03-architecture.json")["step_number"], 3);
    // Nobody has had time to look at what was just taken over.
    let old = env.json(&["cleanup", "--dry-run"]);
    assert_eq!(old["removed"], json!([]), "{old}");
}

#[test]
fn the_banners_of_the_document() {
    let env = TestEnv::new();
    import_sample(&env);
    let said = |command: &str| {
        let said = env.run(&["observe", command]);
        // What follows a banner is the answer of the command itself.
        let end = said.stdout.rfind('═').map_or(0, |at| at + '═'.len_utf8());
        format!("$ segno observe '{command}'   exit {}\n{}\n", said.code, &said.stdout[..end])
    };
    let commands =
        ["*sessions", "*resume:abc123", "*session-info:old789", "*new:payment gateway", "*resume:old789"];
    insta::assert_snapshot!("observe_banners", commands.map(said).join("\n"));
    let made = env.json(&["state", "last"]);
    assert_eq!((&made["step"], &made["of"], &made["phase"]), (&json!(1), &json!(9), &json!("init")));
}

#[test]
fn the_prompt_of_a_prp_loop() {
    let env = TestEnv::new();
    let state = json!({
        "session_id": "a1b2c3d4-0000-4000-8000-000000000001", "prp_file": "prp/login.md",
        "started_at": "2026-01-16T10:00:00-03:00", "current_phase": "GREEN", "current_iteration": 5,
        "last_activity": "2026-01-16T10:45:00-03:00", "status": "paused", "pause_reason": "User interrupt",
        "halt_reason": null, "phases_completed": ["RED"], "error_history": [],
    });
    env.write("project/.prp-session/loop-state.json", &state.to_string());
    let metrics = json!({
        "session_id": "a1b2c3d4-0000-4000-8000-000000000001", "prp_file": "prp/login.md",
        "started_at": "2026-01-16T10:00:00-03:00", "current_phase": "GREEN",
        "phases": {
            "RED": { "final_metrics": { "tests_generated": 10 }, "history": [] },
            "GREEN": { "current_metrics": { "tests_passing": 6, "tests_total": 10 }, "history": [] },
        },
    });
    env.write("project/.prp-session/metrics.json", &metrics.to_string());
    let said = env.ok(&["detect", "--panel", "--file", "prp/login.md"]);
    // How long ago that was changes from day to day.
    let lines: Vec<&str> = said.stdout.lines().filter(|line| !line.contains("Last Active:")).collect();
    insta::assert_snapshot!("prp_prompt", lines.join("\n"));
    assert!(said.stdout.contains("║  Last Active: "), "{}", said.stdout);
    let other = env.ok(&["detect", "--panel", "--file", "prp/other.md"]);
    assert!(!other.stdout.contains('║'), "there is nothing to go on with: {}", other.stdout);
    assert_eq!(env.run(&["detect", "--panel", "--json"]).code, 2);
    // The same of a session of ours.
    env.ok(&["import", ".prp-session"]);
    let said = env.ok(&["detect", "--panel"]);
    assert!(said.stdout.contains("└── GREEN:    ⏳ In progress (6/10 tests passing)"), "{}", said.stdout);
}

const SESSIONS: &str = "home/.ultra-create/sessions";

fn ultra_create(config: &Value) -> TestEnv {
    let mut env = world();
    env.set("SEGNO_LAYOUT_FAMILIES", r#"["ultra-create"]"#);
    env.write("home/.ultra-create/config/session-config.json", &config.to_string());
    env
}

fn names(env: &TestEnv, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(env.path(folder)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_configuration_of_ultra_create_is_obeyed() {
    let env = ultra_create(&json!({
        "storage": { "state_dir": "~/elsewhere/sessions", "max_sessions": 2, "compression": false },
        "serialization": { "include": { "decision_tree": false, "error_log": false } },
        "recovery": { "auto_resume": false, "resume_delay_ms": 1000, "max_resume_attempts": 4 },
        "checkpoints": { "triggers": ["phase_complete"], "max_per_session": 2,
                         "retention": { "keep_on_success": 1, "keep_on_failure": 1 } },
    }));
    let folder = "home/elsewhere/sessions";
    env.start(&["login form", "--phases", "RED,GREEN,BLUE"]);
    env.ok(&["decide", "which database?", "--choice", "sqlite"]);
    env.ok(&["error", "TypeError"]);
    env.ok(&["milestone", "half-way"]);
    for phase in ["GREEN", "BLUE"] {
        env.ok(&["phase", phase]);
    }
    env.ok(&["checkpoint", "create", "asked for"]);
    let present: Value = serde_json::from_str(&env.read(&format!("{folder}/current-session.json"))).unwrap();
    assert_eq!(present["decisions"]["tree"], json!([]));
    assert_eq!((&present["errors"]["log"], &present["errors"]["count"]), (&json!([]), &json!(1)));
    let reasons: Vec<&str> = present["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["phase_complete", "phase_complete", "asked"]);
    let checkpoints =
        |env: &TestEnv| names(env, folder).iter().filter(|name| name.starts_with("checkpoint_")).count();
    assert_eq!(checkpoints(&env), 2);
    assert!(!names(&env, folder).iter().any(|name| name.ends_with(".gz")), "nothing is compressed");
    env.ok(&["complete", "last"]);
    assert_eq!(checkpoints(&env), 1, "one stays when it is done");
    let shown = env.json(&["config", "show"]);
    let said = ["resume.ask", "resume.attempts", "resume.delay_seconds"].map(|key| shown[key].clone());
    assert_eq!(said, [json!(false), json!(4), json!(1)]);
    for topic in ["two", "three"] {
        env.start(&[topic]);
        env.ok(&["complete", "last"]);
    }
    let archives: Vec<String> =
        names(&env, folder).into_iter().filter(|name| name.starts_with("session_")).collect();
    assert_eq!(archives.len(), 2, "the oldest archive went: {archives:?}");
    assert!(!env.path(SESSIONS).exists());
    assert_eq!(env.json(&["ls", "--all"])["sessions"].as_array().unwrap().len(), 3, "the record stays");
}

#[test]
fn commands_of_ultra_create_run_when_somebody_trusts_them() {
    let mut env = ultra_create(&json!({ "hooks": {
        "on_serialize": "echo serialize >> ../log",
        "on_restore": "echo restore $ULTRA_CREATE_STATUS >> ../log",
        "on_crash": "exit 3",
    } }));
    let log = |env: &TestEnv| fs::read_to_string(env.path("home/.ultra-create/log")).unwrap_or_default();
    let said = env.raw(&["new", "login form"]);
    assert!(said.status.success());
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("are not run: nobody trusts them yet"), "{said}");
    assert_eq!(log(&env), "");
    let hash = said.split("segno config set layout.hooks ").nth(1).unwrap();
    let hash = hash.split_whitespace().next().unwrap().to_owned();
    env.ok(&["config", "set", "layout.hooks", &hash]);
    env.ok(&["pause"]);
    env.ok(&["resume", "last", "--no-run"]);
    let ran = log(&env);
    assert_eq!(ran.matches("restore active").count(), 1, "{ran}");
    assert!(ran.starts_with("serialize\n"), "{ran}");
    // Another content is another trust.
    env.write(
        "home/.ultra-create/config/session-config.json",
        &json!({ "hooks": { "on_serialize": "echo changed >> ../log" } }).to_string(),
    );
    let said = env.run(&["note", "x"]);
    assert!(said.stderr.contains("it has changed since you trusted it"), "{}", said.stderr);
    assert_eq!(log(&env), ran);
    env.set("SEGNO_LAYOUT_FAMILIES", "[]");
    assert!(!env.run(&["note", "y"]).stderr.contains("trust"), "nobody asks where its files are not kept");
}
