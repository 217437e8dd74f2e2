//! A session that went through every feature, and whole sets of foreign files.

use std::collections::BTreeMap;

use segno_core::List;
use segno_core::Mark;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::TokenBudget;
use segno_core::event::Maker;
use segno_core::event::Metric;
use segno_core::event::Project;
use segno_core::event::RestoreKind;
use segno_core::event::SessionCreated;
use segno_core::event::Workflow;
use segno_core::state::AgentMark;
use segno_core::state::Breakpoint;
use segno_core::state::OpenCall;
use segno_core::state::OutputMark;
use segno_core::state::Position;
use segno_core::state::Reason;
use segno_core::state::RestoreMark;
use segno_layouts::FileSet;
use segno_layouts::Snapshot;
use serde_json::Value;
use serde_json::json;

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// When everything is read.
pub(crate) fn now() -> Timestamp {
    at("2026-02-01T12:00:00Z")
}

/// A session that was made and nothing else.
pub(crate) fn fresh() -> State {
    let made = at("2026-01-16T13:00:00.000001Z");
    let created = SessionCreated {
        id: SessionId::at(made),
        uid: "0194712f-5a00-7000-8000-00000000abcd".parse().unwrap(),
        made_by: Maker::New,
        topic: Some("login form".to_owned()),
        intent: Some("make the login form work".into()),
        project: Project {
            path: "/home/me/shop".to_owned(),
            name: "shop".to_owned(),
            kind: Some("rust".to_owned()),
        },
        workflow: Some(Workflow {
            name: "prp".to_owned(),
            phases: ["RED", "GREEN", "REFACTOR", "DOCUMENT"].map(ToOwned::to_owned).to_vec(),
        }),
        phase: Some("RED".to_owned()),
        budget: TokenBudget::default(),
        cost: Default::default(),
        continues: None,
        cap_from: None,
        file: Some("prp/login.md".to_owned()),
    };
    State::begin(&Mark { seq: 1, at: made, run: None }, &created.into()).unwrap()
}

/// One that went through every feature that a family has a place for.
pub(crate) fn full() -> State {
    let mut state = fresh();
    state.seq = 412;
    state.status = Status::Interrupted;
    state.reason = Some(Reason { what: "crash".to_owned(), details: None });
    state.updated_at = at("2026-01-16T13:45:00Z");
    state.phase = Some("GREEN".to_owned());
    state.phase_since = at("2026-01-16T13:20:00Z");
    (state.step, state.of) = (Some(2), Some(4));
    state.iteration = 5;
    state.attempt = 2;
    state.outputs.insert("spec".to_owned(), OutputMark { kind: Default::default(), bytes: 12 });
    state.phases_completed = vec!["RED".to_owned()];
    state.budget.tokens_used = 84_200;
    state.metrics = BTreeMap::from([
        ("build_pass".to_owned(), Metric::Flag(true)),
        ("tests_passing".to_owned(), Metric::Number(6.0)),
        ("tests_total".to_owned(), Metric::Number(10.0)),
    ]);
    state.phase_metrics = BTreeMap::from([(
        "RED".to_owned(),
        BTreeMap::from([("tests_generated".to_owned(), Metric::Number(10.0))]),
    )]);
    state.agent = Some("go-coder-agent".to_owned());
    state.agents = BTreeMap::from([
        ("go-coder-agent".to_owned(), AgentMark { active: true, state: json!({ "file": "auth.go" }) }),
        ("reviewer".to_owned(), AgentMark { active: true, state: Value::Null }),
        ("planner".to_owned(), AgentMark { active: false, state: Value::Null }),
    ]);
    state.position = Some(Position { file: "internal/service/auth_service.go".to_owned(), line: Some(45) });
    state.last_action = Some("Implementing service layer".to_owned());
    state.breakpoint = Some(Breakpoint { name: "review".to_owned(), since: at("2026-01-16T13:44:00Z") });
    state.branch = Some("go-team/session-abc123".to_owned());
    state.tasks.added = 2;
    state.tasks.open = BTreeMap::from([(1, "Complete repository".to_owned()), (2, "Wire DI".to_owned())]);
    state.cache = BTreeMap::from([("docs".to_owned(), json!("cached"))]);
    state.errors.count = 1;
    state.calls.total = 2;
    state.calls.completed = 1;
    state.calls.in_doubt = BTreeMap::from([(
        "toolu_2".to_owned(),
        OpenCall {
            tool: "Bash".to_owned(),
            seq: 410,
            at: at("2026-01-16T13:44:30Z"),
            write_ahead: true,
            input: "cargo sqlx migrate run".to_owned(),
        },
    )]);
    state.decisions.count = 1;
    state.counts.checkpoints = 2;
    state.counts.runs = 7;
    state.actions = 40;
    state.actions_since_checkpoint = 15;
    state.tree.restored = [RestoreMark {
        to: 1,
        seq: 300,
        at: at("2026-01-16T13:30:00Z"),
        kind: RestoreKind::Rollback,
        whole: true,
    }]
    .into();
    state.looping = Some(Box::new(serde_json::from_value(looping()).unwrap()));
    state
}

/// Where its loop stands.
fn looping() -> Value {
    json!({
        "plan": {
            "workflow": "prp",
            "phases": [{ "name": "RED" }, { "name": "GREEN" }, { "name": "REFACTOR" }, { "name": "DOCUMENT" }],
            "own": { "calls_per_hour": 50 },
        },
        "started_at": "2026-01-16T13:00:00Z",
        "phase": "GREEN",
        "phases": [
            { "name": "RED", "started_at": "2026-01-16T13:00:00Z", "ended_at": "2026-01-16T13:20:00Z",
              "end": "passed", "iterations": 2 },
            { "name": "GREEN", "started_at": "2026-01-16T13:20:00Z", "iterations": 5 },
            { "name": "REFACTOR" },
            { "name": "DOCUMENT" },
        ],
        "total": 7,
        "breaker": { "state": "HALF_OPEN", "no_progress": 2, "same_error": 1, "last_error": "abc" },
        "breaker_changes": [{
            "at": "2026-01-16T13:40:00Z", "iteration": 6, "from": "CLOSED", "to": "HALF_OPEN",
            "reason": "two iterations without progress",
        }],
        "gate": {
            "conditions": [{
                "name": "failing tests", "wanted": "0", "value": "4", "holds": false, "acceptable": false,
            }],
            "gate_1": false, "gate_2": false, "can_exit": false, "tree": null, "runs": 0, "warnings": [],
        },
        "tests": { "total": 10, "passed": 6, "failed": 4, "skipped": 0, "build_failed": false, "runner": "cargo test" },
        "line": "6 of 10 tests pass",
        "hour": { "start": "2026-01-16T13:30:00Z", "calls": 7, "tokens": 1000 },
    })
}

/// The lists of that session.
pub(crate) fn lists() -> BTreeMap<List, Vec<Value>> {
    let row = |value: Value| vec![value];
    BTreeMap::from([
        (
            List::History,
            vec![
                json!({ "timestamp": "2026-01-16T13:00:00.000001Z", "action": "session_created", "phase": "RED" }),
                json!({
                    "timestamp": "2026-01-16T13:20:00.000000Z", "action": "phase_advanced", "phase": "GREEN",
                    "details": "from RED to GREEN",
                }),
            ],
        ),
        (
            List::Artifacts,
            row(json!({
                "path": "src/auth/mod.rs", "artifact_type": "modified",
                "timestamp": "2026-01-16T13:21:00.000000Z", "phase": "GREEN",
            })),
        ),
        (
            List::Errors,
            row(json!({
                "timestamp": "2026-01-16T13:30:00.000000Z", "phase": "GREEN", "iteration": 3, "fingerprint": "abc",
                "message": "TypeError: Cannot read property 'x' of undefined",
            })),
        ),
        (
            List::Tools,
            vec![
                json!({
                    "call": "toolu_1", "tool": "Edit", "state": "completed",
                    "input": { "file_path": "src/auth/mod.rs" }, "output": "ok",
                    "started_at": "2026-01-16T13:21:00.000000Z", "ended_at": "2026-01-16T13:21:01.000000Z",
                }),
                json!({
                    "call": "toolu_2", "tool": "Bash", "state": "in_doubt", "input": { "command": "migrate" },
                    "started_at": "2026-01-16T13:44:30.000000Z",
                }),
            ],
        ),
        (
            List::Files,
            vec![
                json!({ "path": "internal/handler/auth.go", "change": "created", "changed_at": "2026-01-16T13:21:00.000000Z" }),
                json!({ "path": "internal/handler/auth_test.go", "change": "created", "changed_at": "2026-01-16T13:21:00.000000Z" }),
                json!({ "path": "cmd/main.go", "change": "modified", "changed_at": "2026-01-16T13:22:00.000000Z" }),
                json!({ "path": "old.go", "change": "deleted", "changed_at": "2026-01-16T13:23:00.000000Z" }),
            ],
        ),
        (
            List::Decisions,
            row(json!({
                "decision": 1, "branch": "main", "question": "which database", "choice": "sqlite",
                "reason": "one file", "alternatives": ["postgres"], "decided_at": "2026-01-16T13:10:00.000000Z",
            })),
        ),
        (
            List::Memory,
            vec![
                json!({ "timestamp": "2026-01-16T13:11:00.000000Z", "usage": "query", "source": "hindsight", "query": "auth" }),
                json!({ "timestamp": "2026-01-16T13:12:00.000000Z", "usage": "lookup", "source": "context7", "query": "axum" }),
            ],
        ),
        (
            List::Outputs,
            row(
                json!({ "name": "spec", "kind": "text", "content": "a login form", "recorded_at": "2026-01-16T13:05:00.000000Z" }),
            ),
        ),
        (
            List::Checkpoints,
            vec![
                json!({
                    "id": "cp-01-init", "ordinal": 1, "name": "init", "reason": "phase_complete", "seq": 100,
                    "created_at": "2026-01-16T13:19:59.000000Z", "phase": "RED", "step": 1, "of": 4,
                    "tool_count": 20, "progress": 25, "ready": true, "valid": true, "checksum": "aa",
                    "head": { "commit": "0123456789abcdef0123456789abcdef01234567", "branch": "refs/heads/main" },
                }),
                json!({
                    "id": "cp-02-tool-20", "ordinal": 2, "name": "tool-20", "reason": "tools", "seq": 200,
                    "created_at": "2026-01-16T13:25:00.000000Z", "phase": "GREEN", "step": 2, "of": 4,
                    "tool_count": 40, "progress": 25, "ready": true, "valid": false, "invalidated_by": 1, "checksum": "bb",
                }),
            ],
        ),
    ])
}

/// A session to be written.
pub(crate) fn snapshot(state: &State) -> Snapshot<'_> {
    Snapshot {
        state,
        lists: lists(),
        save_trigger: "action".to_owned(),
        record: None,
        branch: None,
        then: Default::default(),
        changed: 0,
        ultra_create: Default::default(),
    }
}

pub(crate) fn text(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap()
}

/// The sample of the PRP document, with the files that its siblings define.
pub(crate) fn prp() -> FileSet {
    let files = [
        (
            "loop-state.json",
            json!({
                "session_id": "a1b2c3d4-0000-4000-8000-000000000001",
                "prp_file": "prp/autonomous-loop-engine-dashboard.md",
                "started_at": "2026-01-16T10:00:00-03:00",
                "current_phase": "GREEN",
                "current_iteration": 5,
                "last_activity": "2026-01-16T10:45:00-03:00",
                "status": "running",
                "halt_reason": null,
                "phases_completed": ["RED"],
                "error_history": [{
                    "timestamp": "2026-01-16T10:30:00-03:00", "phase": "GREEN", "iteration": 3,
                    "error": "TypeError: Cannot read property 'x' of undefined", "hash": "sha256-hash",
                }],
                "green_model": "opus",
                "dashboard": { "theme": "dark" },
            }),
        ),
        (
            "circuit-breaker.json",
            json!({
                "state": "HALF_OPEN", "no_progress_count": 2, "same_error_count": 1,
                "last_progress_metric": { "GREEN": { "tests_passing": 6 } }, "last_error_hash": "abc",
                "opened_at": null, "open_reason": null, "history": [], "color": "yellow",
            }),
        ),
        (
            "metrics.json",
            json!({
                "session_id": "a1b2c3d4-0000-4000-8000-000000000001", "prp_file": "prp/x.md",
                "started_at": "2026-01-16T10:00:00-03:00", "current_phase": "GREEN",
                "phases": {
                    "RED": { "started_at": "2026-01-16T10:00:00-03:00", "completed_at": "2026-01-16T10:20:00-03:00",
                             "iterations": 2, "final_metrics": { "tests_generated": 10 }, "history": [] },
                    "GREEN": { "started_at": "2026-01-16T10:20:00-03:00", "completed_at": null, "iterations": 5,
                               "current_metrics": { "tests_total": 10, "tests_passing": 6 },
                               "history": [{ "iteration": 4, "timestamp": "2026-01-16T10:40:00-03:00", "tests_passing": 5 }] },
                    "REFACTOR": null, "DOCUMENT": null,
                },
            }),
        ),
        (
            "rate-limit.json",
            json!({
                "hourly": { "calls_made": 12, "limit": 100, "window_start": "2026-01-16T10:00:00-03:00",
                            "next_reset": "2026-01-16T11:00:00-03:00" },
                "anthropic_5h": { "detected": false, "detected_at": null, "resume_at": null, "waiting": false },
                "paused": false, "pause_reason": null, "paused_at": null,
            }),
        ),
        (
            "dual-gate.json",
            json!({
                "phase": "GREEN", "iteration": 5,
                "gate_1": { "satisfied": false, "condition": "tests_failing==0", "values": { "tests_failing": 4 } },
                "gate_2": { "satisfied": false, "source": "none" }, "can_exit": false,
                "evaluated_at": "2026-01-16T10:45:00-03:00",
            }),
        ),
    ];
    let mut set: FileSet = files.iter().map(|(name, value)| (*name, text(value))).collect();
    set.insert(
        "phase-status.log",
        "---PRP_PHASE_STATUS---\nTIMESTAMP: 2026-01-16T10:20:00-03:00\nPHASE: RED\nSTATUS: COMPLETE\nITERATION: 2\n\
         PROGRESS_PERCENT: 100\nTESTS:\n  TOTAL: 10\n  PASSING: 0\n  FAILING: 10\n  SKIPPED: 0\n\
         ---END_PRP_PHASE_STATUS---\n",
    );
    set
}

/// A session of AgentForge as its code writes it, with an id of six hexadecimal digits and moments without an offset.
pub(crate) fn agentforge() -> FileSet {
    let yaml = "session_id: session_20251230_101530_a1b2c3
state: paused
workflow_type: spec
current_phase: design
attempt_number: 2
created_at: '2025-12-30T10:15:30.123456'
updated_at: '2025-12-30T11:00:00'
completed_at: null
token_budget:
  total_budget: 50000
  tokens_used: 41000
  reserve: 100
artifacts:
- path: specification.yaml
  artifact_type: created
  timestamp: '2025-12-30T10:20:00'
  phase: intake
history:
- timestamp: '2025-12-30T10:15:30.123456'
  action: session_created
  phase: intake
  details: null
- timestamp: '2025-12-30T10:30:00'
  action: phase_advanced
  phase: design
  details: from intake to design
- timestamp: '2025-12-30T11:00:00'
  action: session_paused
  phase: design
  details: null
owner: alice
";
    FileSet::from_iter([("session_20251230_101530_a1b2c3/session.yaml", yaml)])
}

/// The sample of the go-team document.
pub(crate) fn go_team() -> FileSet {
    let files = [
        (
            "sessions.json",
            json!({
                "version": "1.0.0",
                "sessions": [
                    {
                        "id": "session-abc123", "topic": "user-authentication-service", "status": "interrupted",
                        "created_at": "2025-12-28T21:00:00Z", "updated_at": "2025-12-28T21:45:00Z",
                        "current_step": 4, "current_checkpoint": "cp-04-implementation",
                        "progress": { "steps_completed": 4, "total_steps": 9, "percentage": 44 },
                        "git_branch": "go-team/session-abc123", "resumable": true, "owner": "alice",
                    },
                    {
                        "id": "session-def456", "topic": "payment-gateway", "status": "paused",
                        "created_at": "2025-12-27T21:00:00Z", "updated_at": "2025-12-27T21:45:00Z",
                        "current_step": 6, "resumable": true,
                    },
                ],
                "last_active_session": "session-abc123",
            }),
        ),
        (
            "session-abc123/manifest.json",
            json!({
                "session_id": "session-abc123", "topic": "user-authentication-service",
                "created_at": "2025-12-28T21:00:00Z", "updated_at": "2025-12-28T21:45:00Z",
                "checkpoints": [], "current_checkpoint": "cp-04-implementation", "current_step": 4, "rollback_history": [],
            }),
        ),
        (
            "session-abc123/state.json",
            json!({
                "session_id": "session-abc123", "saved_at": "2025-12-28T21:45:30Z", "save_trigger": "auto",
                "state": {
                    "topic": "user-authentication-service", "phase": "implementation", "current_step": 4,
                    "current_agent": "go-coder-agent", "iteration_count": 0, "breakpoint_active": false,
                    "metrics": { "build_pass": true, "test_coverage": 0, "lint_clean": false, "race_free": false },
                },
                "context": {
                    "last_action": "Implementing service layer", "pending_tasks": ["Complete repository", "Wire DI"],
                    "current_file": "internal/service/auth_service.go", "current_line": 45,
                },
                "outputs": {
                    "spec": "the spec", "architecture": "layers", "code_files": ["cmd/main.go"], "partial_output": "…",
                },
                "recovery_point": {
                    "checkpoint": "cp-03-architecture", "actions_since_checkpoint": 15, "can_resume_from_action": true,
                },
            }),
        ),
        (
            "session-abc123/recovery.json",
            json!({
                "session_id": "session-abc123", "interrupted_at": "2025-12-28T21:45:00Z", "interrupt_reason": "timeout",
                "last_known_state": { "step": 4, "agent": "go-coder-agent", "action": "Writing file" },
                "recovery_options": [], "recommended": "checkpoint", "auto_resume_enabled": true,
            }),
        ),
        (
            "session-abc123/cp-03-architecture.json",
            json!({
                "id": "cp-03-architecture", "session_id": "session-abc123", "step_number": 3,
                "step_name": "architecture", "created_at": "2025-12-28T21:30:00Z",
                "state": {}, "outputs": {}, "files": { "created": [], "modified": [] },
                "git": { "enabled": true, "branch": "go-team/session-abc123", "commit_hash": "abc" },
                "checksum": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            }),
        ),
    ];
    files.iter().map(|(name, value)| (*name, text(value))).collect()
}

/// A session of ultra-create, written from its interfaces.
pub(crate) fn ultra_create() -> FileSet {
    let current = json!({
        "session_id": "5f0c1d2e-0000-4000-8000-0000000000aa",
        "created_at": "2026-01-11T00:00:00.000Z", "updated_at": "2026-01-11T01:00:00.000Z", "status": "active",
        "project": { "path": "/home/me/shop", "name": "shop", "type": "node", "team": "blue" },
        "context": { "user_intent": "build the shop", "current_phase": "backend", "progress_percent": 40 },
        "agents": { "active": ["coder", "tester"], "states": { "coder": {}, "tester": { "runs": 3 } } },
        "tools": {
            "history": [{ "tool": "Write", "input": { "file_path": "a.ts" }, "output": "ok", "timestamp": "2026-01-11T00:10:00.000Z" }],
            "pending": [{ "tool": "Bash", "input": { "command": "npm test" }, "output": null, "timestamp": "2026-01-11T00:59:00.000Z" }],
        },
        "decisions": { "tree": [{ "type": "db", "decision": "sqlite", "reason": "small" }], "current_branch": "main" },
        "memory": { "hindsight_queries": ["auth"], "context7_lookups": [{ "library": "react" }], "local_cache": { "k": 1 } },
        "files": { "created": ["a.ts"], "modified": [], "deleted": [] },
        "errors": { "count": 1, "log": [{ "message": "boom", "timestamp": "2026-01-11T00:20:00.000Z" }] },
        "checkpoints": [{
            "id": "checkpoint_1768090000000", "reason": "phase_complete", "timestamp": "2026-01-11T00:06:40.000Z",
            "tool_count": 20, "progress": 20,
        }],
        "theme": "dark",
    });
    let checkpoint = json!({
        "id": "checkpoint_1768091000000", "reason": "milestone", "timestamp": "2026-01-11T00:23:20.000Z",
        "tool_count": 40, "progress": 30,
    });
    FileSet::from_iter([
        ("current-session.json", text(&current)),
        ("checkpoint_1768091000000.json", text(&checkpoint)),
    ])
}

/// A project of Ralph, written from the facts about its files.
pub(crate) fn ralph() -> FileSet {
    let files = [
        (
            ".ralph_session",
            json!({
                "session_id": "ralph-1768500000-4242", "created_at": "2026-01-15T18:00:00+00:00",
                "last_used": "2026-01-15T19:00:00+00:00", "reset_at": "", "reset_reason": "",
            }),
        ),
        (
            ".claude_session_id",
            json!({ "session_id": "11111111-2222-4333-8444-555555555555", "timestamp": "2026-01-15T19:00:00+00:00" }),
        ),
        (
            ".circuit_breaker_state",
            json!({
                "state": "OPEN", "last_change": "2026-01-15T19:00:00+00:00", "consecutive_no_progress": 3,
                "consecutive_same_error": 0, "consecutive_permission_denials": 0, "last_progress_loop": 4,
                "total_opens": 1, "reason": "No progress in 3 loops", "current_loop": 7,
            }),
        ),
        (
            "status.json",
            json!({
                "timestamp": "2026-01-15T19:00:00+00:00", "loop_count": 7, "calls_made_this_hour": 7,
                "max_calls_per_hour": 100, "last_action": "executing", "status": "running", "exit_reason": "",
                "next_reset": "20:00:00",
            }),
        ),
    ];
    let mut set: FileSet = files.iter().map(|(name, value)| (*name, text(value))).collect();
    set.insert("PROMPT.md", "# Build the parser\n\nWrite a parser for the little language.\n");
    set.insert("fix_plan.md", "# Plan\n- [x] lexer\n- [ ] parser\n- [2026-01-15] a date\n* [ ] errors\n");
    set
}

/// A state of atari, version 2.
pub(crate) fn atari() -> FileSet {
    let state = json!({
        "version": 2, "status": "working", "iteration": 9, "current_bead": "bd-7",
        "history": {
            "bd-1": { "id": "bd-1", "status": "completed", "attempts": 1, "last_attempt": "2026-01-10T10:00:00Z",
                      "last_error": "", "last_session_id": "aaaa" },
            "bd-7": { "id": "bd-7", "status": "working", "attempts": 2, "last_attempt": "2026-01-10T11:00:00Z",
                      "last_error": "exit 1", "last_session_id": "bbbb" },
        },
        "total_cost": 1.25, "total_turns": 30, "updated_at": "2026-01-10T11:05:00Z",
        "active_top_level": "bd-epic", "active_top_level_title": "Parser",
    });
    FileSet::from_iter([("state.json", text(&state))])
}
