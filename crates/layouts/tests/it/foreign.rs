//! Whole foreign files into sessions.

use segno_core::List;
use segno_core::Status;
use segno_layouts::Family;
use segno_layouts::FileSet;
use segno_layouts::Imported;
use serde_json::json;

use crate::samples;
use crate::samples::at;
use crate::samples::now;

fn read(family: Family, files: &FileSet) -> Imported {
    assert_eq!(segno_layouts::recognise(files.names()), Some(family));
    segno_layouts::read(family, files, now()).unwrap()
}

#[test]
fn a_prp_session() {
    let read = read(Family::Prp, &samples::prp());
    let session = &read.sessions[0];
    assert_eq!(session.foreign_id, "a1b2c3d4-0000-4000-8000-000000000001");
    assert_eq!(session.warnings, Vec::<String>::new());
    assert_eq!(session.missing, Vec::<String>::new());
    let state = &session.state;
    assert_eq!(state.uid.to_string(), session.foreign_id);
    assert_eq!(state.session_id.to_string(), "session_20260116_130000_038885");
    assert_eq!((state.status, state.iteration), (Status::Active, 5));
    assert_eq!(state.phase.as_deref(), Some("GREEN"));
    assert_eq!((state.step, state.of), (Some(2), Some(4)));
    assert_eq!(state.file.as_deref(), Some("prp/autonomous-loop-engine-dashboard.md"));
    assert_eq!(state.updated_at, at("2026-01-16T13:45:00Z"));
    assert_eq!(json!(state.metrics), json!({ "tests_passing": 6, "tests_total": 10 }));
    let errors = &session.lists.iter().find(|(list, _)| *list == List::Errors).unwrap().1;
    assert_eq!(errors[0]["message"], "TypeError: Cannot read property 'x' of undefined");
    let history = &session.lists.iter().find(|(list, _)| *list == List::History).unwrap().1;
    let actions: Vec<_> = history.iter().map(|row| row["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["session_created", "phase_status"]);
}

#[test]
fn an_open_breaker_halts_the_session_that_it_belongs_to() {
    let mut files = samples::prp();
    files.insert("circuit-breaker.json", r#"{"state":"OPEN","open_reason":"no progress in 3 iterations"}"#);
    let read = read(Family::Prp, &files);
    let state = &read.sessions[0].state;
    assert_eq!(state.status, Status::Halted);
    assert_eq!(state.reason.as_ref().unwrap().details.as_deref(), Some("no progress in 3 iterations"));
}

#[test]
fn a_prp_session_without_its_main_file_is_what_the_metrics_say() {
    let mut files = samples::prp();
    files.remove("loop-state.json");
    files.remove("dual-gate.json");
    let read = read(Family::Prp, &files);
    let session = &read.sessions[0];
    assert_eq!(session.missing, ["dual-gate.json", "loop-state.json"]);
    assert_eq!(session.state.status, Status::Interrupted);
    assert_eq!(session.state.phase.as_deref(), Some("GREEN"));
}

#[test]
fn an_agentforge_session_with_the_id_that_its_code_makes() {
    let read = read(Family::AgentForge, &samples::agentforge());
    let session = &read.sessions[0];
    assert_eq!(session.warnings, Vec::<String>::new());
    let state = &session.state;
    assert_eq!(session.foreign_id, "session_20251230_101530_a1b2c3");
    assert_eq!(state.session_id.to_string(), "session_20251230_101530_123456");
    assert_eq!((state.status, state.attempt), (Status::Paused, 2));
    assert_eq!(state.workflow.as_ref().unwrap().name, "spec");
    assert_eq!(state.budget.tokens_used, 41_000);
    assert_eq!(session.claimed.0.total_budget, 50_000);
    let rows: Vec<_> = session.lists.iter().map(|(list, rows)| (*list, rows.len())).collect();
    assert_eq!(rows, [(List::History, 3), (List::Artifacts, 1)]);
}

#[test]
fn a_go_team_registry_with_two_sessions() {
    let read = read(Family::GoTeam, &samples::go_team());
    assert_eq!(read.warnings, Vec::<String>::new());
    let names: Vec<_> = read.sessions.iter().map(|session| session.foreign_id.as_str()).collect();
    assert_eq!(names, ["session-abc123", "session-def456"]);
    let (first, second) = (&read.sessions[0], &read.sessions[1]);
    assert_eq!(first.state.status, Status::Interrupted);
    assert_eq!(first.state.reason.as_ref().unwrap().what, "timeout");
    assert_eq!(first.state.phase.as_deref(), Some("implementation"));
    assert_eq!((first.state.step, first.state.of), (Some(4), Some(9)));
    assert_eq!(first.state.agent.as_deref(), Some("go-coder-agent"));
    assert_eq!(first.state.actions_since_checkpoint, 15);
    assert_eq!(
        json!(first.state.position),
        json!({ "file": "internal/service/auth_service.go", "line": 45 })
    );
    let tasks = &first.lists.iter().find(|(list, _)| *list == List::Tasks).unwrap().1;
    assert_eq!(tasks.len(), 2);
    assert_eq!(
        first.warnings,
        [
            "session-abc123/cp-03-architecture.json: Checksum mismatch: the documents do not say what it is over, so it proves nothing"
        ]
    );
    assert_eq!(second.state.status, Status::Paused);
    assert_eq!(
        second.missing,
        ["session-def456/manifest.json", "session-def456/state.json", "session-def456/recovery.json"]
    );
}

#[test]
fn the_folder_of_one_go_team_session_by_itself() {
    let all = samples::go_team();
    let own = all.iter().filter_map(|(name, bytes)| Some((name.strip_prefix("session-abc123/")?, bytes)));
    let files = FileSet::from_iter(own);
    let read = read(Family::GoTeam, &files);
    assert_eq!(read.warnings, ["sessions.json is missing; the folders tell what there is"]);
    assert_eq!(read.sessions[0].foreign_id, "session-abc123");
    assert_eq!(read.sessions[0].state.status, Status::Interrupted);
}

#[test]
fn an_ultra_create_session_plain_and_compressed() {
    let plain = samples::ultra_create();
    let packed = FileSet::from_iter([
        ("current-session.json.gz", segno_layouts::gzip(plain.get("current-session.json").unwrap())),
        ("checkpoint_1768091000000.json", plain.get("checkpoint_1768091000000.json").unwrap().to_vec()),
    ]);
    for files in [plain, packed] {
        let read = read(Family::UltraCreate, &files);
        assert_eq!(read.warnings, Vec::<String>::new());
        let session = &read.sessions[0];
        assert_eq!(session.warnings, Vec::<String>::new());
        let state = &session.state;
        assert_eq!(state.status, Status::Interrupted, "nobody has changed it for an hour");
        assert_eq!(state.project.name, "shop");
        assert_eq!(state.progress(), Some(40));
        assert_eq!(state.agents.iter().filter(|(_, mark)| mark.active).count(), 2);
        assert_eq!(state.calls.in_doubt.len(), 1);
        let count = |list: List| {
            session.lists.iter().find(|(known, _)| *known == list).map_or(0, |(_, rows)| rows.len())
        };
        let counts =
            [List::Tools, List::Decisions, List::Memory, List::Files, List::Errors, List::Checkpoints]
                .map(count);
        assert_eq!(counts, [1, 1, 2, 1, 1, 2]);
    }
}

#[test]
fn a_ralph_project() {
    let read = read(Family::Ralph, &samples::ralph());
    let session = &read.sessions[0];
    assert_eq!(session.warnings, Vec::<String>::new());
    let state = &session.state;
    assert_eq!(state.status, Status::Halted);
    assert_eq!(state.reason.as_ref().unwrap().details.as_deref(), Some("No progress in 3 loops"));
    assert_eq!(state.topic.as_deref(), Some("Build the parser"));
    assert_eq!(state.iteration, 7);
    let run = state.run.as_ref().unwrap();
    assert_eq!(
        (run.agent.as_str(), run.conversation()),
        ("claude", Some("11111111-2222-4333-8444-555555555555"))
    );
    let tasks = &session.lists.iter().find(|(list, _)| *list == List::Tasks).unwrap().1;
    let states: Vec<_> =
        tasks.iter().map(|row| (row["text"].as_str().unwrap(), row["state"].as_str().unwrap())).collect();
    assert_eq!(states, [("lexer", "done"), ("parser", "open"), ("errors", "open")]);
}

#[test]
fn an_older_ralph_wrote_the_conversation_alone() {
    let mut files = samples::ralph();
    files.insert(".claude_session_id", "abc-123\n");
    let first = read(Family::Ralph, &files);
    assert_eq!(first.sessions[0].state.run.as_ref().unwrap().conversation(), Some("abc-123"));
    files.insert(".claude_session_id", "[INFO] starting\nabc-123\n");
    let second = read(Family::Ralph, &files);
    assert_eq!(second.sessions[0].state.run, None);
    assert_eq!(second.sessions[0].warnings, [".claude_session_id: it is no id of a conversation; left out"]);
}

#[test]
fn an_atari_state() {
    let read = read(Family::Atari, &samples::atari());
    let state = &read.sessions[0].state;
    assert_eq!(state.status, Status::Interrupted);
    assert_eq!(state.topic.as_deref(), Some("Parser"));
    assert_eq!(state.cost.used_micros, 1_250_000);
    assert_eq!(state.run.as_ref().unwrap().conversation(), Some("bbbb"));
}

#[test]
fn names_tell_the_family() {
    let known: [(&[&str], Option<Family>); 10] = [
        (&["loop-state.json"], Some(Family::Prp)),
        (&["circuit-breaker.json", "metrics.json"], Some(Family::Prp)),
        (&["session_20251230_101530_a1b2c3/session.yaml"], Some(Family::AgentForge)),
        (&["sessions.json"], Some(Family::GoTeam)),
        (&["manifest.json", "state.json"], Some(Family::GoTeam)),
        (&["current-session.json.gz"], Some(Family::UltraCreate)),
        (&["session_5f0c.json"], Some(Family::UltraCreate)),
        (&[".ralph_session", "status.json"], Some(Family::Ralph)),
        (&["state.json"], Some(Family::Atari)),
        (&["README.md", "package.json"], None),
    ];
    for (names, family) in known {
        assert_eq!(segno_layouts::recognise(names.iter().copied()), family, "{names:?}");
    }
}

/// People type the end of an id: sessions whose times are whole seconds must not all end alike.
#[test]
fn times_of_whole_seconds_give_ids_with_different_ends() {
    let entry = |id: &str| json!({ "id": id, "topic": "auth", "status": "paused", "current_step": 1, "created_at": "2025-12-28T21:00:00Z" });
    let registry = json!({ "sessions": [entry("session-abc123"), entry("session-def456")] }).to_string();
    let files = FileSet::from_iter([("sessions.json", registry.into_bytes())]);
    let ids = || {
        let read = read(Family::GoTeam, &files);
        read.sessions.iter().map(|session| session.state.session_id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(), ["session_20251228_210000_947251", "session_20251228_210000_676521"]);
    assert_eq!(ids(), ids(), "the same each time");
    assert_eq!(
        read(Family::GoTeam, &files).sessions[0].state.created_at,
        samples::at("2025-12-28T21:00:00Z")
    );
}

#[test]
fn a_registry_without_sessions_is_not_damaged() {
    let files = FileSet::from_iter([("sessions.json", br#"{"sessions":[]}"#.to_vec())]);
    let read = read(Family::GoTeam, &files);
    assert!(read.sessions.is_empty());
    assert_eq!(read.warnings, Vec::<String>::new());
}
