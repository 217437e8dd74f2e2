//! Acceptance: tokens and artifacts.

use rstest::rstest;
use segno_core::event::Change;

use crate::common::Room;
use crate::common::moment;

#[test]
fn ac_013_recorded_tokens_are_used_and_remaining() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    assert_eq!(manager.record_tokens(50_000).unwrap(), None);
    let budget = manager.current().unwrap().budget;
    assert_eq!((budget.tokens_used, budget.tokens_remaining()), (50_000, 50_000));
    assert!((budget.utilization_percent() - 50.0).abs() < f64::EPSILON);
}

#[test]
fn ac_014_at_80_percent_the_warning_is_given() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    assert_eq!(manager.record_tokens(79_999).unwrap(), None);
    let warning = manager.record_tokens(1).unwrap().unwrap();
    assert_eq!((warning.used, warning.total, warning.over), (80_000, 100_000, false));
    assert!((warning.utilization_percent - 80.0).abs() < f64::EPSILON);
    assert!(manager.current().unwrap().budget.is_warning());
    // Every further use says so again, but the history has it once.
    assert!(manager.record_tokens(1).unwrap().is_some());
    let warnings = manager.history().unwrap().into_iter().filter(|entry| entry.action == "budget_warning");
    assert_eq!(warnings.count(), 1);
}

#[rstest]
#[case(5_000, true)]
#[case(5_001, false)]
#[case(10_000, false)]
fn ac_015_can_continue_is_false_when_it_would_exceed_the_budget(#[case] required: u64, #[case] fits: bool) {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    manager.record_tokens(95_000).unwrap();
    assert_eq!(manager.can_continue(required).unwrap(), fits);
    assert_eq!(manager.require_budget(required).is_ok(), fits);
}

#[test]
fn ac_016_extending_a_used_up_budget_lets_work_go_on() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    manager.record_tokens(100_000).unwrap();
    assert!(!manager.can_continue(1).unwrap());
    assert_eq!(manager.extend_budget(50_000).unwrap().budget.total_budget, 150_000);
    assert!(manager.can_continue(50_000).unwrap());
    let last = manager.history().unwrap().pop().unwrap();
    assert_eq!(
        (last.action.as_str(), last.details.unwrap().excerpt()),
        ("budget_extended", "added 50000 tokens")
    );
}

#[test]
fn ac_019_an_artifact_is_recorded_with_timestamp_and_phase() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, Some("implement"), None).unwrap();
    room.clock.advance(5);
    manager.add_artifact("src/foo.py", "created", Some("implement")).unwrap();
    manager.add_artifact("src/bar.py", "modified", None).unwrap();
    let artifacts = manager.get_artifacts(None).unwrap();
    assert_eq!(artifacts[0].path, "src/foo.py");
    assert_eq!(artifacts[0].artifact_type, Change::Created);
    assert_eq!(artifacts[0].timestamp, moment("2026-01-16T10:00:05Z"));
    assert_eq!(artifacts[0].phase.as_deref(), Some("implement"));
    assert_eq!(artifacts[1].artifact_type, Change::Modified);
    assert_eq!(artifacts[1].phase.as_deref(), Some("implement"), "the present phase, if none is named");
}

#[test]
fn ac_020_artifacts_can_be_asked_for_by_phase() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, Some("analyze"), None).unwrap();
    manager.add_artifact("notes.md", "created", None).unwrap();
    manager.advance_phase("implement").unwrap();
    manager.add_artifact("src/foo.py", "created", None).unwrap();
    manager.add_artifact("src/bar.py", "modified", None).unwrap();
    manager.advance_phase("review").unwrap();
    manager.add_artifact("review.md", "created", None).unwrap();
    let paths = |phase| -> Vec<String> {
        manager.get_artifacts(phase).unwrap().into_iter().map(|artifact| artifact.path).collect()
    };
    assert_eq!(paths(Some("implement")), ["src/foo.py", "src/bar.py"]);
    assert_eq!(paths(None), ["notes.md", "src/foo.py", "src/bar.py", "review.md"]);
    assert_eq!(paths(Some("never")), Vec::<String>::new());
}
