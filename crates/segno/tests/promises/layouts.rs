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
    lab.run(&["loop", "--no-hooks", "--workflow", "prp", "--prompt", "do", "--max-iterations", "1"]);
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
