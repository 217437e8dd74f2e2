//! Edge cases, and what session managers before this one got wrong.

use rstest::rstest;
use segno_core::Status;
use segno_engine::Error;
use segno_engine::SessionManager;

use crate::common::Room;
use crate::common::actions;
use crate::common::files_below;

fn begun(room: &Room) -> (SessionManager, String) {
    let mut manager = room.manager();
    let id = manager.create(None, Some("analyze"), None).unwrap().session_id.to_string();
    (manager, id)
}

#[test]
fn every_change_is_durable_without_a_save() {
    let room = Room::new();
    let (mut manager, id) = begun(&room);
    manager.record_tokens(1_500).unwrap();
    manager.extend_budget(25_000).unwrap();
    manager.add_artifact("src/lib.rs", "modified", None).unwrap();
    // Forgotten, not dropped: a process that dies does not get to tidy up.
    std::mem::forget(manager);
    let mut another = room.manager();
    let state = another.load(&id).unwrap().unwrap();
    assert_eq!(state.budget.tokens_used, 1_500);
    assert_eq!(state.budget.total_budget, 125_000);
    assert_eq!(another.get_artifacts(None).unwrap().len(), 1);
}

#[test]
fn another_managers_changes_count() {
    let room = Room::new();
    let (mut one, id) = begun(&room);
    let mut two = room.manager();
    two.load(&id).unwrap().unwrap();
    two.record_tokens(99_000).unwrap();
    assert!(!one.can_continue(2_000).unwrap(), "the first manager has not looked since");
    assert_eq!(one.record_tokens(500).unwrap().unwrap().used, 99_500);
    two.complete().unwrap();
    let error = one.pause().unwrap_err();
    assert!(matches!(error, Error::InvalidStateTransition { from: Status::Completed, .. }), "{error:?}");
    one.create(None, None, None).unwrap();
}

#[rstest]
#[case::completed(|manager: &mut SessionManager| { manager.complete().unwrap(); }, Status::Completed)]
#[case::aborted(|manager: &mut SessionManager| { manager.abort(None).unwrap(); }, Status::Aborted)]
#[case::paused(|manager: &mut SessionManager| { manager.pause().unwrap(); }, Status::Paused)]
fn phases_move_only_in_active_sessions(#[case] stop: fn(&mut SessionManager), #[case] expected: Status) {
    let room = Room::new();
    let (mut manager, _) = begun(&room);
    stop(&mut manager);
    let before = actions(&manager);
    let error = manager.advance_phase("implement").unwrap_err();
    assert!(
        matches!(error, Error::InvalidStateForPhaseAdvance { status } if status == expected),
        "{error:?}"
    );
    assert_eq!(error.code(), "invalid_state_for_phase_advance");
    assert_eq!(actions(&manager), before);
    assert_eq!(manager.current().unwrap().phase.as_deref(), Some("analyze"));
}

#[test]
fn one_session_at_a_time_and_another_after_its_end() {
    let room = Room::new();
    let (mut manager, id) = begun(&room);
    for pause in [false, true] {
        if pause {
            manager.pause().unwrap();
        }
        let error = manager.create(None, None, None).unwrap_err();
        let Error::SessionAlreadyActive { session } = error else { panic!("{error:?}") };
        assert_eq!(session.to_string(), id);
    }
    manager.resume().unwrap();
    manager.complete().unwrap();
    let next = manager.create(None, None, None).unwrap().session_id.to_string();
    assert_ne!(next, id);
    manager.abort(None).unwrap();
    manager.create(None, None, None).unwrap();
    // Another manager has a session of its own.
    room.manager().create(None, None, None).unwrap();
}

#[test]
fn a_session_that_somebody_removed_does_not_block_the_next() {
    let room = Room::new();
    let (mut manager, id) = begun(&room);
    assert!(room.manager().delete(&id).unwrap());
    assert!(matches!(manager.pause().unwrap_err(), Error::SessionNotFound { .. }));
    manager.create(None, None, None).unwrap();
}

#[test]
fn the_whole_table_of_transitions_holds() {
    type Step = fn(&mut SessionManager) -> Result<(), Error>;
    let steps: [(&str, Step); 4] = [
        ("pause", |manager| manager.pause().map(drop)),
        ("resume", |manager| manager.resume().map(drop)),
        ("complete", |manager| manager.complete().map(drop)),
        ("abort", |manager| manager.abort(None).map(drop)),
    ];
    let allowed = [
        (Status::Active, vec!["pause", "complete", "abort"]),
        (Status::Paused, vec!["resume", "abort"]),
        (Status::Completed, vec![]),
        (Status::Aborted, vec![]),
    ];
    let room = Room::new();
    for (status, may) in allowed {
        for (name, step) in &steps {
            let (mut manager, _) = begun(&room);
            match status {
                Status::Paused => {
                    manager.pause().unwrap();
                }
                Status::Completed => {
                    manager.complete().unwrap();
                }
                Status::Aborted => {
                    manager.abort(None).unwrap();
                }
                _ => {}
            }
            let result = step(&mut manager);
            assert_eq!(
                result.is_ok(),
                may.contains(name),
                "{name} of a session that is {status}: {result:?}"
            );
            if let Err(error) = result {
                assert_eq!(error.code(), "invalid_state_transition");
                assert_eq!(manager.current().unwrap().status, status);
            }
        }
    }
}

#[rstest]
fn what_is_no_id_removes_nothing(
    #[values("", ".", "..", "../x", "/", "*", "session_", "session_20260116_100000_000000/..", "%", "\0")] id: &str,
) {
    let room = Room::new();
    let (mut manager, kept) = begun(&room);
    std::fs::write(room.path().join("x"), "not ours").unwrap();
    let before = files_below(&room.project());
    assert!(!manager.delete(id).unwrap());
    assert!(manager.exists(&kept).unwrap());
    assert_eq!(files_below(&room.project()), before);
    assert!(room.path().join("x").exists());
}

#[test]
fn deleting_twice_answers_false_and_forgets_the_current_session() {
    let room = Room::new();
    let (mut manager, id) = begun(&room);
    assert!(manager.delete(&id).unwrap());
    assert!(manager.current().is_none());
    assert!(matches!(manager.pause().unwrap_err(), Error::NoActiveSession));
    assert!(!manager.delete(&id).unwrap(), "there is none any more, which is no error");
    assert!(!manager.exists(&id).unwrap());
}

#[rstest]
fn only_created_and_modified_are_artifact_types(
    #[values("", "deleted", "Created", "created ", "renamed", "x\ny")] word: &str,
) {
    let room = Room::new();
    let (mut manager, _) = begun(&room);
    let error = manager.add_artifact("a.rs", word, None).unwrap_err();
    assert_eq!(error.code(), "bad_value");
    assert_eq!(manager.get_artifacts(None).unwrap(), []);
}

#[rstest]
#[case::just_inside(8 * 1024)]
#[case::just_outside(8 * 1024 + 1)]
#[case::a_megabyte(1_000_000)]
fn very_long_details_are_kept_whole(#[case] bytes: usize) {
    let room = Room::new();
    let (mut manager, id) = begun(&room);
    let long: String = "lots of words, ".chars().cycle().take(bytes - 1).chain(['.']).collect();
    manager.add_history("noted", None, Some(&long)).unwrap();
    drop(manager);
    let mut manager = room.manager();
    manager.load(&id).unwrap().unwrap();
    let entry = manager.history().unwrap().pop().unwrap();
    assert_eq!(manager.engine().whole(&entry.details.unwrap()).unwrap(), long);
    let view = std::fs::metadata(manager.save().unwrap()).unwrap();
    assert!(view.len() < 20_000, "a view stays readable: {} bytes", view.len());
}

#[rstest]
fn odd_details_come_back_as_they_were(
    #[values("", " ", "\n", "a\r\nb", "\u{0}\u{1b}[31m", "🦀\u{202e}", "null", "- a: b # c", "\"'\\")]
    text: &str,
) {
    let room = Room::new();
    let (mut manager, _) = begun(&room);
    manager.add_history("noted", None, Some(text)).unwrap();
    let entry = manager.history().unwrap().pop().unwrap();
    assert_eq!(entry.details.unwrap().excerpt(), text);
    assert_eq!(manager.notices(), Vec::<String>::new());
    let view = crate::common::parse(&std::fs::read_to_string(manager.save().unwrap()).unwrap());
    assert_eq!(view["history"].as_array().unwrap().last().unwrap()["details"], text);
}

#[test]
fn going_over_the_budget_is_marked_not_refused() {
    let room = Room::new();
    let (mut manager, _) = begun(&room);
    assert!(matches!(manager.require_budget(100_001).unwrap_err(), Error::BudgetExceeded));
    let warning = manager.record_tokens(150_000).unwrap().unwrap();
    assert!(warning.over);
    assert!(manager.current().unwrap().is_over_budget());
    assert_eq!(manager.current().unwrap().budget.tokens_remaining(), 0);
    assert_eq!(manager.current().unwrap().status, Status::Active, "the default budget only warns");
    assert!(actions(&manager).contains(&"budget_exceeded".to_owned()));
    let view = crate::common::parse(&std::fs::read_to_string(manager.save().unwrap()).unwrap());
    assert_eq!(view["token_budget"]["over_budget"], true);
    manager.record_tokens(u64::MAX).unwrap();
    manager.extend_budget(u64::MAX).unwrap();
    assert_eq!(manager.current().unwrap().budget.total_budget, u64::MAX);
}

#[test]
fn budgets_are_more_than_nothing() {
    let room = Room::new();
    let mut manager = room.manager();
    assert_eq!(manager.create(None, None, Some(0)).unwrap_err().code(), "bad_value");
    assert!(manager.current().is_none());
    manager.create(None, None, None).unwrap();
    assert_eq!(manager.extend_budget(0).unwrap_err().code(), "bad_value");
}

#[test]
fn without_a_session_nothing_is_done() {
    let room = Room::new();
    let mut manager = room.manager();
    let no = |result: Result<(), Error>| assert!(matches!(result.unwrap_err(), Error::NoActiveSession));
    no(manager.pause().map(drop));
    no(manager.resume().map(drop));
    no(manager.complete().map(drop));
    no(manager.abort(None).map(drop));
    no(manager.advance_phase("x").map(drop));
    no(manager.record_tokens(1).map(drop));
    no(manager.extend_budget(1).map(drop));
    no(manager.can_continue(1).map(drop));
    no(manager.add_artifact("a", "created", None).map(drop));
    no(manager.get_artifacts(None).map(drop));
    no(manager.add_history("a", None, None).map(drop));
    no(manager.history().map(drop));
    no(manager.checkpoint_session().map(drop));
    no(manager.save().map(drop));
    assert!(!room.project().join(".segno").exists());
}

#[test]
fn the_messages_are_those_of_the_specification() {
    let room = Room::new();
    let mut manager = room.manager();
    assert_eq!(
        manager.pause().unwrap_err().to_string(),
        "No active session. Create or load a session first."
    );
    manager.create(None, None, None).unwrap();
    let already = manager.create(None, None, None).unwrap_err();
    assert_eq!(already.to_string(), "A session is already active. Complete or abort it first.");
    let budget = manager.require_budget(200_000).unwrap_err();
    assert_eq!(budget.to_string(), "Token budget exceeded. Consider extending budget or completing session.");
    manager.complete().unwrap();
    assert_eq!(manager.pause().unwrap_err().to_string(), "Cannot transition from completed to paused.");
    let missing = manager.engine().load("session_20250101_000000_000000".parse().unwrap()).unwrap_err();
    assert_eq!(missing.to_string(), "Session session_20250101_000000_000000 not found.");
    let corrupted = Error::SessionCorrupted { session_id: "X".to_owned(), details: "line 3: why".to_owned() };
    assert_eq!(corrupted.to_string(), "Session X state file is corrupted: line 3: why");
}

#[test]
fn cleanup_with_nothing_to_remove_is_empty() {
    let room = Room::new();
    let mut manager = room.manager();
    assert_eq!(manager.cleanup_old_sessions(0, false).unwrap(), Vec::<String>::new());
    manager.create(None, None, None).unwrap();
    assert_eq!(manager.cleanup_old_sessions(0, false).unwrap(), Vec::<String>::new());
}

#[test]
fn times_are_utc_and_do_not_run_backwards() {
    let room = Room::new();
    let (mut manager, _) = begun(&room);
    room.clock.advance(-3_600);
    let state = manager.pause().unwrap();
    assert!(state.created_at <= state.updated_at);
    let state = manager.abort(None).unwrap();
    assert!(state.completed_at.unwrap() >= state.created_at);
    let text = std::fs::read_to_string(manager.save().unwrap()).unwrap();
    assert!(text.contains("created_at: 2026-01-16T10:00:00.000000Z\n"), "{text}");
}
