//! Sessions in the files of other managers go on under segno with the real agent, and are written back for their own
//! readers.

use rstest::rstest;
use segno_testkit::model::Turn;

use super::Real;
use crate::readers;

const LOOP_STATE: &str = r#"{
  "session_id": "a1b2c3d4-0000-4000-8000-000000000001", "prp_file": "prp/login.md",
  "started_at": "2026-01-16T10:00:00-03:00", "current_phase": "GREEN", "current_iteration": 5,
  "last_activity": "2026-01-16T10:45:00-03:00", "status": "paused", "halt_reason": null,
  "phases_completed": ["RED"], "error_history": []
}"#;

const AGENTFORGE: &str = "session_id: session_20251230_101530_a1b2c3
state: paused
workflow_type: spec
current_phase: design
attempt_number: 1
created_at: '2025-12-30T10:15:30.123456'
updated_at: '2025-12-30T11:00:00'
completed_at: null
token_budget:
  total_budget: 100000
  tokens_used: 41000
artifacts: []
history:
- timestamp: '2025-12-30T10:15:30.123456'
  action: session_created
  phase: intake
  details: null
";

const REGISTRY: &str = r#"{"version": "1.0.0", "last_active_session": "session-abc123", "sessions": [{
  "id": "session-abc123", "topic": "user-authentication-service", "status": "interrupted",
  "created_at": "2025-12-28T21:00:00Z", "updated_at": "2025-12-28T21:45:00Z", "current_step": 4,
  "progress": {"steps_completed": 4, "total_steps": 9, "percentage": 44}, "git_branch": null, "resumable": true
}]}"#;

const RALPH: &str = r#"{"session_id": "ralph-1768500000-4242", "created_at": "2026-01-15T18:00:00+00:00",
  "last_used": "2026-01-15T19:00:00+00:00", "reset_at": "", "reset_reason": ""}"#;

const ULTRA_CREATE: &str = r#"{
  "session_id": "7d1c9f2e-0000-4000-8000-000000000004", "created_at": "2026-01-10T23:00:00.000Z",
  "updated_at": "2026-01-11T00:30:00.000Z", "status": "crashed",
  "project": {"path": "/home/me/shop", "name": "shop", "type": "web"},
  "context": {"user_intent": "a cart that remembers", "current_phase": "BUILD", "progress_percent": 40},
  "agents": {"active": ["frontend", "backend"], "states": {"frontend": {}, "backend": {}}},
  "tools": {"history": [{"tool": "Write", "input": {"file_path": "cart.ts"}, "output": "ok", "timestamp": "2026-01-11T00:10:00Z"}],
            "pending": [{"tool": "Bash", "input": {"command": "npm test"}, "output": null, "timestamp": "2026-01-11T00:30:00Z"}]},
  "decisions": {"tree": [], "current_branch": "main"},
  "memory": {"hindsight_queries": [], "context7_lookups": [], "local_cache": {}},
  "files": {"created": ["cart.ts"], "modified": [], "deleted": []},
  "errors": {"count": 0, "log": []}, "checkpoints": []
}"#;

#[rstest]
#[case::prp(".prp-session", "loop-state.json", LOOP_STATE, Some(("prp", "running")))]
#[case::agentforge(
    ".agentforge/sessions",
    "session_20251230_101530_a1b2c3/session.yaml",
    AGENTFORGE,
    Some(("agentforge", "active"))
)]
#[case::go_team("checkpoints", "sessions.json", REGISTRY, Some(("go_team", "active")))]
#[case::ultra_create(
    "~/.ultra-create/sessions",
    "current-session.json",
    ULTRA_CREATE,
    Some(("ultra_create", "active"))
)]
#[case::ralph(".ralph", ".ralph_session", RALPH, None)]
fn a_session_of_another_manager_goes_on(
    #[case] folder: &str,
    #[case] name: &str,
    #[case] content: &str,
    #[case] reader: Option<(&str, &str)>,
) {
    let Some(real) = Real::with("claude", [Turn::sh("echo done > result.txt"), "the end".into()]) else {
        return;
    };
    let folder = match folder.strip_prefix("~/") {
        Some(below) => std::path::Path::new(&real.lab.env["HOME"]).join(below),
        None => real.file(folder),
    };
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    let said = real.lab.run(&["import", folder.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), content, "an import changes nothing");
    let said = real.lab.run(&["resume", "last", "--agent", "claude", "--json"]);
    real.describe(&said);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(real.file("result.txt").exists(), "the agent has worked");
    let state = real.lab.state();
    assert_eq!(state["run"]["agent"], "claude");
    let Some((reader, status)) = reader else { return };
    let family = reader.replace('_', "-");
    let said = real.lab.run(&["layout", "write", "last", "--family", &family]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    // Its own reader accepts what it finds, at the place where it looks.
    assert_eq!(readers::status(reader, &folder), status);
    real.lab.assert_nothing_left();
}
