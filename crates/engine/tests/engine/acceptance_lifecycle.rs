//! Acceptance: making sessions, moving them through their states and phases, and the history of it.

use std::collections::HashSet;

use segno_core::List;
use segno_core::Status;
use segno_engine::Error;

use crate::common::Room;
use crate::common::actions;
use crate::common::moment;
use crate::common::parse;

#[test]
fn ac_001_create_without_parameters_gives_an_active_session_with_100k_tokens() {
    let room = Room::new();
    let mut manager = room.manager();
    let state = manager.create(None, None, None).unwrap();
    assert_eq!(state.session_id.to_string(), "session_20260116_100000_000000");
    assert_eq!(state.status, Status::Active);
    assert_eq!(state.budget.total_budget, 100_000);
    assert_eq!(state.budget.tokens_used, 0);
    assert_eq!(state.created_at, moment("2026-01-16T10:00:00Z"));
    assert_eq!((state.workflow.as_ref(), state.phase.as_ref(), state.attempt), (None, None, 1));
}

#[test]
fn ac_002_create_takes_workflow_type_and_token_budget() {
    let room = Room::new();
    let mut manager = room.manager();
    let state = manager.create(Some("spec"), Some("analyze"), Some(50_000)).unwrap();
    assert_eq!(state.workflow.as_ref().unwrap().name, "spec");
    assert_eq!(state.phase.as_deref(), Some("analyze"));
    assert_eq!(state.budget.total_budget, 50_000);
}

#[test]
fn ac_003_sessions_made_at_the_same_microsecond_have_different_ids() {
    let room = Room::new();
    let mut manager = room.manager();
    let mut ids = HashSet::new();
    for _ in 0..20 {
        ids.insert(manager.create(None, None, None).unwrap().session_id.to_string());
        manager.abort(None).unwrap();
    }
    assert_eq!(ids.len(), 20);
    assert!(ids.contains("session_20260116_100000_000019"), "moved on by a microsecond each: {ids:?}");
}

#[test]
fn ac_004_pause_moves_an_active_session_to_paused_and_records_it() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    room.clock.advance(60);
    assert_eq!(manager.pause().unwrap().status, Status::Paused);
    let entry = manager.history().unwrap().pop().unwrap();
    assert_eq!(entry.action, "session_paused");
    assert_eq!(entry.timestamp, moment("2026-01-16T10:01:00Z"));
}

#[test]
fn ac_005_resume_moves_a_paused_session_to_active_and_records_it() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    manager.pause().unwrap();
    room.clock.advance(60);
    assert_eq!(manager.resume().unwrap().status, Status::Active);
    let entry = manager.history().unwrap().pop().unwrap();
    assert_eq!((entry.action.as_str(), entry.timestamp), ("session_resumed", moment("2026-01-16T10:01:00Z")));
}

#[test]
fn ac_006_pausing_a_completed_session_is_an_invalid_transition() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    manager.complete().unwrap();
    let before = actions(&manager);
    let error = manager.pause().unwrap_err();
    assert!(
        matches!(error, Error::InvalidStateTransition { from: Status::Completed, to: Status::Paused }),
        "{error:?}"
    );
    assert_eq!(actions(&manager), before, "a refused command leaves no trace");
}

#[test]
fn ac_017_advance_phase_updates_the_phase_saves_a_checkpoint_and_records_history() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(Some("spec"), Some("analyze"), None).unwrap();
    let state = manager.advance_phase("implement").unwrap();
    assert_eq!(state.phase.as_deref(), Some("implement"));
    assert_eq!(state.checkpoint.as_ref().unwrap().id.as_str(), "cp-01-analyze");
    let history = manager.history().unwrap();
    let advanced = history.iter().find(|entry| entry.action == "phase_advanced").unwrap();
    assert_eq!(advanced.details.as_ref().unwrap().excerpt(), "from analyze to implement");
    assert_eq!(advanced.phase.as_deref(), Some("implement"));
}

#[test]
fn ac_018_every_transition_of_a_tdflow_is_checkpointed() {
    let room = Room::new();
    let mut manager = room.manager();
    let id = manager.create(Some("tdflow"), Some("RED"), None).unwrap().session_id;
    for phase in ["GREEN", "REFACTOR"] {
        manager.advance_phase(phase).unwrap();
        let view = parse(&std::fs::read_to_string(room.view_path(id)).unwrap());
        assert_eq!(view["current_phase"], phase);
        assert_eq!(view["checkpoints"].as_array().unwrap().last().unwrap()["phase"], phase);
    }
    let signs = manager.engine().items(id, List::Checkpoints).unwrap();
    let names: Vec<&str> = signs.iter().map(|item| item.body["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["cp-01-red", "cp-02-green"]);
}

#[test]
fn ac_021_after_advance_phase_the_view_and_the_store_have_the_new_phase() {
    let room = Room::new();
    let mut manager = room.manager();
    let id = manager.create(None, Some("A"), None).unwrap().session_id;
    manager.advance_phase("B").unwrap();
    drop(manager);
    let view = parse(&std::fs::read_to_string(room.view_path(id)).unwrap());
    assert_eq!(view["current_phase"], "B");
    let mut another = room.manager();
    assert_eq!(another.load(&id.to_string()).unwrap().unwrap().phase.as_deref(), Some("B"));
}

#[test]
fn ac_022_a_manual_checkpoint_persists_the_state_without_changing_the_phase() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, Some("A"), None).unwrap();
    manager.record_tokens(1_234).unwrap();
    room.clock.advance(60);
    let path = manager.checkpoint_session().unwrap();
    let view = parse(&std::fs::read_to_string(path).unwrap());
    assert_eq!(view["current_phase"], "A");
    assert_eq!(view["token_budget"]["tokens_used"], 1_234);
    assert_eq!(view["updated_at"], "2026-01-16T10:01:00.000000Z");
    assert_eq!(actions(&manager), ["session_created", "checkpoint"]);
}

#[test]
fn ac_023_a_new_session_has_a_session_created_entry_with_a_timestamp() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    let history = manager.history().unwrap();
    assert_eq!(history.len(), 1);
    assert_eq!(history[0].action, "session_created");
    assert_eq!(history[0].timestamp, moment("2026-01-16T10:00:00Z"));
}

#[test]
fn ac_024_the_history_has_every_transition_in_order() {
    let room = Room::new();
    let mut manager = room.manager();
    let step = |seconds| room.clock.advance(seconds);
    manager.create(Some("spec"), Some("analyze"), Some(1_000)).unwrap();
    step(1);
    manager.advance_phase("implement").unwrap();
    step(1);
    manager.extend_budget(500).unwrap();
    step(1);
    manager.pause().unwrap();
    step(1);
    manager.resume().unwrap();
    step(1);
    manager.checkpoint_session().unwrap();
    step(1);
    manager.complete().unwrap();
    let expected = [
        "session_created",
        "phase_advanced",
        "checkpoint",
        "budget_extended",
        "session_paused",
        "session_resumed",
        "checkpoint",
        "checkpoint",
        "session_completed",
    ];
    assert_eq!(actions(&manager), expected);
    let times: Vec<_> = manager.history().unwrap().into_iter().map(|entry| entry.timestamp).collect();
    assert!(times.is_sorted(), "{times:?}");

    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    manager.abort(Some("no use")).unwrap();
    let last = manager.history().unwrap().pop().unwrap();
    assert_eq!((last.action.as_str(), last.details.unwrap().excerpt()), ("session_aborted", "no use"));
}
