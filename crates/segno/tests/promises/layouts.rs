//! Files of other session managers: what they say leads nowhere, and nothing of theirs is lost.

use serde_json::Value;
use serde_json::json;

use crate::common::TestEnv;
use crate::looping::agent;

/// The families whose files are in folders that are named by the session.
fn env_with(families: &str) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("SEGNO_LAYOUT_FAMILIES", families);
    env
}

/// Whoever writes the state of a workflow names the files that are kept for other tools. No such name leads out of
/// their folder: nothing there is read, replaced or removed.
#[test]
fn a_name_that_comes_with_a_session_leads_nowhere_else() {
    for up in ["../../../victim", "././../../../victim"] {
        let env = env_with(r#"["agentforge", "go-team"]"#);
        for file in ["session.yaml", "state.json", "manifest.json"] {
            env.write(&format!("victim/{file}"), "theirs");
        }
        env.ok(&["new", "t"]);
        let deeper = up.replace("../victim", "../../../../../victim");
        let names = json!({ "agentforge": { "id": up }, "go-team": { "id": deeper } }).to_string();
        env.ok(&["workflow-state", "set", &names]);
        let said = env.ok(&["note", "hi"]).stderr;
        assert!(said.contains("is no name of a file"), "{said}");
        env.run(&["layout", "write", "last"]);
        env.run(&["layout", "check", "last"]);
        env.run(&["layout", "remove", "last", "--family", "agentforge"]);
        env.run(&["layout", "remove", "last", "--family", "go-team"]);
        env.ok(&["abort", "--remove-files", "last"]);
        let left: Vec<_> =
            std::fs::read_dir(env.path("victim")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 3, "{left:?}");
        for file in ["session.yaml", "state.json", "manifest.json"] {
            assert_eq!(env.read(&format!("victim/{file}")), "theirs");
        }
    }
}

/// Files that another tool has there are left alone, also if they are not whole.
#[test]
fn files_of_another_tool_are_not_written_over() {
    let registry = ".claude/agents/microai/teams/go-team/checkpoints/sessions.json";
    let cases = [
        (r#"["prp"]"#, ".prp-session/circuit-breaker.json", r#"{"state": "OPEN"}"#),
        (r#"["prp"]"#, ".prp-session/metrics.json", r#"{"session_id": "theirs"}"#),
        (r#"["prp"]"#, ".prp-session/loop-state.json", r#"{"session_id": "th"#),
        (r#"["go-team"]"#, registry, r#"{"sessions": [{"id": "abc"#),
        (r#"["go-team"]"#, registry, r#"{"version": "2.0.0", "sessions": {"a": {"id": "a"}}}"#),
    ];
    for (families, file, theirs) in cases {
        let env = env_with(families);
        let path = format!("project/{file}");
        env.write(&path, theirs);
        let said = env.ok(&["new", "t", "--phases", "RED,GREEN"]).stderr;
        assert!(said.contains("were left alone"), "{file}: {said}");
        env.ok(&["phase", "GREEN"]);
        assert_eq!(env.read(&path), theirs, "{file}");
    }
}

/// A prompt is cut into a topic; a token in it goes before that.
#[test]
fn a_topic_of_an_imported_session_has_no_half_of_a_secret() {
    let env = TestEnv::new();
    let token = "ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5";
    env.write("project/.ralph/PROMPT.md", &format!("{} {token}\n", "word ".repeat(12)));
    env.write("project/.ralph/.call_count", "3");
    env.write("project/.ralph/.circuit_breaker_state", r#"{"state": "CLOSED"}"#);
    env.ok(&["import", ".ralph"]);
    let topic = env.json(&["state", "last"])["topic"].to_string();
    assert!(topic.contains("word") && !topic.contains("ghp_"), "{topic}");
}

/// A breaker that opened while its files could not be written, or were not kept, stays open: the old file says nothing. A
/// person who closes it in the file afterwards is obeyed.
#[test]
fn an_old_file_closes_no_breaker() {
    let lab = agent("true");
    let config = lab.home.path().join(".config/segno/config.toml");
    let agents = std::fs::read_to_string(&config).unwrap();
    let kept = format!("{agents}[layout]\nfamilies = [\"prp\"]\n");
    let breaker = lab.home.work().join(".prp-session/circuit-breaker.json");
    let state_of = || -> Value { serde_json::from_slice(&std::fs::read(&breaker).unwrap()).unwrap() };

    lab.write(&config, &kept);
    let until = ["--until", "false", "--max-iterations", "1"];
    lab.run(&[&["loop", "--no-hooks", "--workflow", "prp", "--prompt", "do"][..], &until].concat());
    assert_eq!(state_of()["state"], "CLOSED");
    lab.write(&config, &agents);
    lab.run(&["loop", "resume", "last", "--more", "10"]);
    assert_eq!((&lab.state()["status"], &state_of()["state"]), (&json!("halted"), &json!("CLOSED")));
    lab.write(&config, &kept);
    lab.run(&["note", "x"]);
    assert_eq!(lab.state()["looping"]["breaker"]["state"], "OPEN");
    assert_eq!((&lab.state()["status"], &state_of()["state"]), (&json!("halted"), &json!("OPEN")));

    let mut theirs = state_of();
    theirs["state"] = json!("CLOSED");
    lab.write(&breaker, &theirs.to_string());
    let said = lab.run(&["note", "y"]);
    assert!(said.stderr.contains("another program closed the breaker"), "{}", said.stderr);
    assert_eq!(lab.state()["looping"]["breaker"]["state"], "CLOSED");
}

fn file(env: &TestEnv, name: &str) -> Value {
    serde_json::from_str(&env.read(&format!("project/{name}"))).unwrap()
}

/// A session shows what it did itself, not what the one before it in the same folder did.
#[test]
fn a_session_does_not_inherit_the_past_of_another_one() {
    let env = env_with(r#"["prp"]"#);
    env.ok(&["new", "one", "--workflow", "prp"]);
    env.ok(&["metric", "set", "tests_total", "5"]);
    env.ok(&["iteration"]);
    let history = |name: &str| file(&env, ".prp-session/metrics.json")["phases"][name]["history"].clone();
    assert_eq!(history("RED").as_array().unwrap().len(), 1);
    env.ok(&["abort", "--reason", "x"]);
    env.ok(&["new", "two", "--workflow", "prp"]);
    assert_eq!(history("RED"), json!([]));
    assert_eq!(
        env.read("project/.prp-session/phase-status.log").matches("---PRP_PHASE_STATUS---").count(),
        1
    );

    env.ok(&["iteration"]);
    env.ok(&["phase", "GREEN"]);
    let read =
        || ["metrics.json", "phase-status.log"].map(|name| env.read(&format!("project/.prp-session/{name}")));
    let before = read();
    env.ok(&["layout", "remove", "last"]);
    env.ok(&["layout", "write", "last"]);
    assert_eq!(read(), before);
}

/// Every file of a set is guarded: what another program writes there is said, kept and changes nothing.
#[test]
fn a_change_in_any_file_is_noticed_and_kept() {
    let env = env_with(r#"["prp"]"#);
    env.ok(&["new", "one", "--workflow", "prp"]);
    let path = "project/.prp-session/metrics.json";
    let ours = env.read(path);
    env.write(path, &ours.replace("\"current_phase\": \"RED\"", "\"current_phase\": \"QA\""));
    let said = env.ok(&["ls"]).stderr;
    assert!(said.contains("another program changed") && said.contains("metrics.json"), "{said}");
    assert_eq!(env.read(path), ours);
    let folder = std::fs::read_dir(env.path("project/.prp-session")).unwrap();
    let kept: Vec<_> = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let kept: Vec<_> = kept.iter().filter(|name| name.starts_with("metrics.edited-")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(env.read(&format!("project/.prp-session/{}", kept[0])).contains("\"QA\""));
}

/// A file of ours that is damaged is put right, and what was there is kept.
#[test]
fn a_damaged_file_of_ours_is_healed() {
    let env = env_with(r#"["prp"]"#);
    env.ok(&["new", "one", "--workflow", "prp"]);
    env.write("project/.prp-session/loop-state.json", "{");
    let said = env.ok(&["note", "x"]).stderr;
    assert!(said.contains("loop-state.json"), "{said}");
    assert_eq!(file(&env, ".prp-session/loop-state.json")["current_phase"], "RED");
    assert!(env.ok(&["layout", "check", "last"]).stdout.contains("current"));
    assert_eq!(env.ok(&["note", "y"]).stderr.matches("loop-state.json").count(), 0);
}

/// What a go-team session came with stays in its files until it has something of its own.
#[test]
fn what_came_with_a_go_team_session_stays_in_its_files() {
    let env = env_with(r#"["go-team"]"#);
    let at = "2026-01-16T10:00:00Z";
    env.write(
        "project/checkpoints/sessions.json",
        &json!({ "version": "1.0.0", "last_active_session": "session-abc123", "sessions": [{
            "id": "session-abc123", "topic": "auth", "status": "interrupted", "created_at": at, "updated_at": at,
            "current_step": 4, "current_checkpoint": "cp-04-implementation", "resumable": true,
            "progress": { "steps_completed": 4, "total_steps": 9, "percentage": 44 },
        }] })
        .to_string(),
    );
    env.write(
        "project/checkpoints/session-abc123/state.json",
        &json!({ "session_id": "session-abc123", "saved_at": at, "save_trigger": "auto",
            "state": { "topic": "auth", "phase": "implementation", "current_step": 4 },
            "recovery_point": { "checkpoint": "cp-03-architecture", "actions_since_checkpoint": 15 },
        })
        .to_string(),
    );
    let said = env.ok(&["import", "checkpoints"]).stderr;
    assert!(said.contains("cp-04-implementation.json"), "{said}");
    env.ok(&["note", "y"]);
    let entry = &file(&env, "checkpoints/sessions.json")["sessions"][0];
    assert_eq!(entry["current_checkpoint"], "cp-04-implementation");
    assert_eq!(entry["progress"], json!({ "steps_completed": 4, "total_steps": 9, "percentage": 44 }));
    let live = file(&env, "checkpoints/session-abc123/state.json");
    assert_eq!(live["recovery_point"]["checkpoint"], "cp-03-architecture");
    let options = &file(&env, "checkpoints/session-abc123/recovery.json")["recovery_options"];
    assert_eq!(
        (&options[0]["type"], &options[0]["target"]),
        (&json!("checkpoint"), &json!("cp-03-architecture"))
    );

    let mut registry = file(&env, "checkpoints/sessions.json");
    registry["sessions"] = json!([{ "id": "session-x", "topic": "t", "status": "paused", "created_at": at, "current_step": 12 }]);
    env.write("project/other/sessions.json", &registry.to_string());
    let refused = env.run(&["import", "other"]);
    assert!(refused.stderr.contains("Invalid current_step: 12 is not 1 to 9"), "{}", refused.stderr);
}

/// An observer names a session as the registry does, with or without how every name begins.
#[test]
fn an_observer_needs_no_beginning_of_a_name() {
    let env = env_with(r#"["go-team"]"#);
    env.ok(&["new", "one", "--workflow", "go-team"]);
    env.ok(&["pause"]);
    let registry = ".claude/agents/microai/teams/go-team/checkpoints/sessions.json";
    let id = file(&env, registry)["sessions"][0]["id"].as_str().unwrap().to_owned();
    let end = id.strip_prefix("session-").unwrap();
    assert!(env.ok(&["observe", &format!("*session-info:{end}")]).stdout.contains("one"));
    let missing = env.run(&["observe", "*resume:nothere"]);
    assert_eq!(missing.code, 3, "{}", missing.stderr);
    assert!(missing.stderr.contains("Session not found: nothere"), "{}", missing.stderr);
}

/// What came with an ultra-create session and has no place in ours stays in its files.
#[test]
fn what_came_with_an_ultra_create_session_stays_in_its_files() {
    let env = env_with(r#"["ultra-create"]"#);
    let at = "2026-01-16T10:00:00.000Z";
    let theirs = json!({
        "session_id": "5b6c7d8e-1111-4222-8333-999988887777", "created_at": at, "updated_at": at, "status": "paused",
        "project": { "path": "/home/x/p", "name": "p", "type": "web" },
        "context": { "user_intent": "make it", "current_phase": "build", "progress_percent": 40 },
        "tools": { "history": [], "pending": [
            { "tool": "Bash", "input": { "command": "npm test" }, "output": null, "timestamp": at }
        ] },
        "memory": { "hindsight_queries": [{ "q": "x" }], "context7_lookups": [], "local_cache": {} },
    });
    env.write("theirs/current-session.json", &theirs.to_string());
    env.ok(&["import", env.path("theirs").to_str().unwrap()]);
    env.ok(&["note", "x"]);
    let home = env.path("home");
    let found = std::fs::read(home.join(".ultra-create/sessions/current-session.json")).unwrap();
    let ours: Value = serde_json::from_slice(&found).unwrap();
    assert_eq!(ours["project"]["type"], "web");
    assert_eq!(ours["tools"]["pending"][0]["input"], json!({ "command": "npm test" }));
    assert_eq!(ours["memory"]["hindsight_queries"][0]["query"], json!({ "q": "x" }));
}

/// A command of ultra-create that fails is told of, also where a checkpoint is made with what happened; checkpoints that its
/// configuration does not name have no place in its files.
#[test]
fn a_command_that_fails_is_told_of_at_a_checkpoint_too() {
    let mut env = env_with(r#"["ultra-create"]"#);
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let config =
        json!({ "hooks": { "on_serialize": "exit 3" }, "checkpoints": { "triggers": ["phase_complete"] } });
    env.write("home/.ultra-create/config/session-config.json", &config.to_string());
    // What the program says is shown without hashes to tests.
    let said = String::from_utf8(env.raw(&["new", "t", "--phases", "a,b"]).stderr).unwrap();
    let hash = said.split("segno config set layout.hooks ").nth(1).unwrap();
    env.ok(&["config", "set", "layout.hooks", hash.split_whitespace().next().unwrap()]);
    let words = "the command on_serialize of ultra-create did not succeed: exit 3";
    for command in [&["agent", "switch", "bob"][..], &["phase", "b"]] {
        let said = env.ok(command).stderr;
        assert_eq!(said.matches(words).count(), 1, "{command:?}: {said}");
    }
    let found = env.read("home/.ultra-create/sessions/current-session.json");
    let ours: Value = serde_json::from_str(&found).unwrap();
    let reasons: Vec<_> = ours["checkpoints"].as_array().unwrap().iter().map(|one| &one["reason"]).collect();
    assert_eq!(reasons, ["phase_complete"]);
}

/// Reviews of a loop are in its files: how many there were, and what the last one said.
#[test]
fn reviews_of_a_loop_are_in_its_files() {
    let block = |lines: &str| {
        format!("bare=1; says=\"---RALPH_STATUS---\\\\nSTATUS: COMPLETE\\\\n{lines}---END_RALPH_STATUS---\"")
    };
    let work = format!(
        "case \"$prompt\" in\n\
         *'Phase RED,'*) mkdir -p tests; echo 'test -f sail' > tests/sail.sh;;\n\
         *'Phase GREEN,'*) echo $n > sail;;\n\
         *'Phase REFACTOR,'*) echo better >> sail; {};;\n\
         *'Phase DOCUMENT,'*) mkdir -p docs/adr; for f in use build adr/1; do echo $n > docs/$f.md; done;;\n\
         *'Phase QA,'*) cp .prp-session/qa-state.json ../qa-$n.json\n\
         if [ -e ../reviewed ]; then {}; else touch ../reviewed; {}; fi;;\n\
         esac",
        block("REFACTORING_COMPLETE: true\\\\n"),
        block("VERDICT: APPROVE\\\\nBLOCKING_ISSUES: 0\\\\n"),
        block("VERDICT: REJECT\\\\nBLOCKING_ISSUES: 1\\\\n"),
    );
    let mut lab = crate::looping::agent(&work);
    lab.env.insert("SEGNO_LAYOUT_FAMILIES".to_owned(), r#"["prp"]"#.into());
    lab.write(lab.home.work().join("check.sh"), CHECK);
    let said = lab.run(&[
        "loop",
        "--no-hooks",
        "--no-signal",
        "--prompt",
        "a sail",
        "--workflow",
        "prp",
        "--optional-phases",
        "--until",
        "sh check.sh",
        "--json",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.text());
    let read = |path: std::path::PathBuf| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let seen = |path: std::path::PathBuf| {
        let file = read(path);
        (file["attempt"].clone(), file["last_verdict"].clone())
    };
    // What was there when the second review began, and at the end.
    let first = std::fs::read_dir(lab.home.work().parent().unwrap()).unwrap();
    let mut kept: Vec<_> = first.map(|entry| entry.unwrap().path()).collect();
    kept.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("qa-"));
    kept.sort();
    let kept: Vec<_> = kept.into_iter().map(seen).collect();
    assert_eq!(kept, [(json!(0), Value::Null), (json!(1), json!("REJECT"))]);
    let end = seen(lab.home.work().join(".prp-session/qa-state.json"));
    assert_eq!(end, (json!(2), json!("APPROVE")));
    let log = std::fs::read_to_string(lab.home.work().join(".prp-session/phase-status.log")).unwrap();
    assert_eq!(log.matches("STATUS: BLOCKED").count(), 1, "{log}");
}

/// Tests as small scripts, told in TAP.
const CHECK: &str = "n=0; bad=0\n\
    for t in tests/*.sh; do [ -f \"$t\" ] || continue\n\
    n=$((n+1)); if sh \"$t\" >/dev/null 2>&1; then echo \"ok $n - $t\"; else echo \"not ok $n - $t\"; bad=1; fi; done\n\
    echo \"1..$n\"; exit $bad\n";

/// A log is only ever added to, also one that came with a session and is long.
#[test]
fn a_long_log_that_came_with_a_session_stays_whole() {
    let block = "---PRP_PHASE_STATUS---\nTIMESTAMP: 2026-01-16T10:45:00-03:00\nPHASE: GREEN\nSTATUS: IN_PROGRESS\n\
                 ITERATION: 5\nPROGRESS_PERCENT: 60\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_PRP_PHASE_STATUS---\n\n";
    for blocks in [1, 50, 90, 300] {
        let mut env = TestEnv::new();
        env.set("SEGNO_LAYOUT_FAMILIES", r#"["prp"]"#);
        let state = json!({
            "session_id": "a1b2c3d4-0000-4000-8000-000000000001", "prp_file": "prp/login.md",
            "started_at": "2026-01-16T10:00:00-03:00", "current_phase": "GREEN", "current_iteration": 5,
            "last_activity": "2026-01-16T10:45:00-03:00", "status": "running", "halt_reason": null,
            "phases_completed": ["RED"], "error_history": [],
        });
        env.write("project/.prp-session/loop-state.json", &state.to_string());
        let log = block.repeat(blocks);
        env.write("project/.prp-session/phase-status.log", &log);
        env.ok(&["import", ".prp-session"]);
        env.ok(&["note", "taken over"]);
        let now = env.read("project/.prp-session/phase-status.log");
        assert!(now.starts_with(log.trim_end()), "{blocks} blocks: {} of {} bytes", now.len(), log.len());
    }
}

/// A checkpoint file holds what the checkpoint held, whenever it is written.
#[test]
fn checkpoint_files_hold_what_the_checkpoint_held() {
    let mut env = env_with(r#"["go-team"]"#);
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env.ok(&["new", "t", "--phases", "RED,GREEN,REFACTOR"]);
    env.ok(&["output", "set", "spec", "the first"]);
    env.write("project/a.txt", "a");
    env.ok(&["checkpoint", "create", "one"]);
    env.ok(&["output", "set", "spec", "the second"]);
    env.ok(&["phase", "GREEN"]);
    env.ok(&["metric", "set", "build_pass", "true"]);
    let team = env.path("project/.claude/agents/microai/teams/go-team/checkpoints");
    let folders = std::fs::read_dir(team).unwrap().map(|entry| entry.unwrap().path());
    let own = { folders }.find(|path| path.is_dir()).unwrap();
    let all = || {
        let names = std::fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = names.filter(|path| path.to_string_lossy().contains("/cp-")).collect();
        all.sort();
        all.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    let before = all();
    let first: Value = serde_json::from_slice(&before[0].1).unwrap();
    assert_eq!((&first["outputs"]["spec"], &first["step_name"]), (&json!("the first"), &json!("RED")));
    env.ok(&["layout", "remove", "last"]);
    env.ok(&["layout", "write", "last"]);
    assert_eq!(all(), before);

    // What a rollback takes back is not in the live state either.
    env.ok(&["output", "set", "architecture", "later"]);
    let live =
        || -> Value { serde_json::from_slice(&std::fs::read(own.join("state.json")).unwrap()).unwrap() };
    assert_eq!(live()["outputs"]["architecture"], "later");
    env.ok(&["rollback", "1", "--yes"]);
    let outputs = &live()["outputs"];
    assert_eq!((&outputs["spec"], &outputs["architecture"]), (&json!("the first"), &Value::Null));
}

/// What is forgotten is forgotten in the files for other tools, too, and what stays with other tools is named.
#[test]
fn files_for_other_tools_forget_with_the_record() {
    let env = env_with(r#"["prp", "agentforge", "go-team", "ultra-create"]"#);
    let word = "plover-7391";
    env.ok(&["new", &format!("about {word}"), "--phases", "RED,GREEN"]);
    env.ok(&["note", &format!("{word} again")]);
    env.write("project/.prp-session/loop-state.edited-1.json", &format!("{{\"x\": \"{word}\"}}"));
    env.write("project/.prp-session/theirs.json", &format!("{{\"x\": \"{word}\"}}"));
    let output = env.feed(&["forget", "--yes"], word.as_bytes());
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("theirs.json"), "{said}");
    let mut left = Vec::new();
    let mut folders = vec![env.path("project"), env.path("home/.ultra-create")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false
                    if std::fs::read(&path).unwrap().windows(word.len()).any(|at| at == word.as_bytes()) =>
                {
                    left.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
                false => {}
            }
        }
    }
    assert_eq!(left, ["theirs.json"]);
    assert!(env.read("project/.prp-session/loop-state.json").contains("[forgotten]"));
}
