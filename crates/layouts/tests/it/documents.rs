//! The rules of the documents themselves, transcribed: the two functions of the PRP document, and what go-team checks
//! before it resumes.

use segno_core::detect::Action;
use segno_core::detect::Expired;
use segno_layouts::FileSet;
use segno_layouts::prp;
use segno_layouts::prp::Detected;
use serde_json::Value;
use serde_json::json;

use crate::samples;
use crate::samples::now;

fn with(change: impl Fn(&mut Value)) -> FileSet {
    let mut files = samples::prp();
    let mut state: Value = serde_json::from_slice(files.get("loop-state.json").unwrap()).unwrap();
    change(&mut state);
    files.insert("loop-state.json", samples::text(&state));
    files
}

fn detect(files: &FileSet, wanted: Option<&str>) -> Detected {
    prp::detect(files, wanted, now()).unwrap()
}

const WANTED: Option<&str> = Some("prp/autonomous-loop-engine-dashboard.md");

#[test]
fn no_main_file_is_no_session() {
    assert_eq!(prp::detect(&FileSet::default(), WANTED, now()), None);
}

#[test]
fn a_valid_session_is_offered() {
    for status in ["running", "paused", "suspended"] {
        let found = detect(&with(|state| state["status"] = json!(status)), WANTED);
        assert_eq!(
            (found.action, found.reason, found.expired),
            (Action::OfferResume, None, None),
            "{status}"
        );
        assert_eq!(found.session_id.as_deref(), Some("a1b2c3d4-0000-4000-8000-000000000001"));
    }
}

#[test]
fn the_breaker_is_asked_first() {
    let mut files = with(|state| state["status"] = json!("completed"));
    files.insert("circuit-breaker.json", r#"{"state":"OPEN","open_reason":"same error 3 times"}"#);
    let found = detect(&files, Some("other.md"));
    assert_eq!(found.expired, Some(Expired::BreakerOpen));
    assert_eq!(found.reason.as_deref(), Some("Circuit Breaker OPEN: same error 3 times"));
    assert_eq!((found.action, found.document_action), (Action::OfferReset, Some("reset_or_abort")));
}

#[test]
fn then_completion_then_the_file_then_validation() {
    let done = detect(&with(|state| state["status"] = json!("completed")), Some("other.md"));
    assert_eq!(done.reason.as_deref(), Some("Session completed successfully"));
    assert_eq!((done.action, done.document_action), (Action::CreateNew, Some("no_resume")));
    let other = detect(&with(|state| state["current_phase"] = json!("BLUE")), Some("other.md"));
    assert_eq!(
        other.reason.as_deref(),
        Some("PRP mismatch: session=prp/autonomous-loop-engine-dashboard.md, requested=other.md")
    );
    assert_eq!((other.action, other.document_action), (Action::CreateNew, Some("create_new")));
}

#[test]
fn the_messages_of_validate_session() {
    let cases: [(&str, FileSet); 11] = [
        (
            "Missing required field: session_id",
            with(|state| drop(state.as_object_mut().unwrap().remove("session_id"))),
        ),
        (
            "Missing required field: started_at",
            with(|state| drop(state.as_object_mut().unwrap().remove("started_at"))),
        ),
        (
            "Missing required field: current_phase",
            with(|state| drop(state.as_object_mut().unwrap().remove("current_phase"))),
        ),
        (
            "Missing required field: status",
            with(|state| drop(state.as_object_mut().unwrap().remove("status"))),
        ),
        ("Invalid phase: BLUE", with(|state| state["current_phase"] = json!("BLUE"))),
        ("Session halted by Circuit Breaker", with(|state| state["status"] = json!("halted"))),
        ("Invalid status: asleep", with(|state| state["status"] = json!("asleep"))),
        (
            "Invalid current_iteration: -1 is not 0 to 100",
            with(|state| state["current_iteration"] = json!(-1)),
        ),
        (
            "Invalid current_iteration: 101 is not 0 to 100",
            with(|state| state["current_iteration"] = json!(101)),
        ),
        (
            "Future timestamp: started_at is 2030-01-01T00:00:00Z",
            with(|state| state["started_at"] = json!("2030-01-01T00:00:00Z")),
        ),
        (
            "Invalid started_at: \"soon\" is not a date and time",
            with(|state| state["started_at"] = json!("soon")),
        ),
    ];
    for (message, files) in cases {
        let found = detect(&files, WANTED);
        assert_eq!(found.reason.as_deref(), Some(format!("State corrupted: {message}").as_str()));
        assert_eq!((found.action, found.document_action), (Action::OfferReset, Some("reset")));
        assert_eq!(found.expired, Some(Expired::Corrupted));
    }
}

#[test]
fn what_is_written_passes_the_documents_own_checks() {
    let state = samples::full();
    let written =
        segno_layouts::write(segno_layouts::Family::Prp, &samples::snapshot(&state), &FileSet::default());
    let files = FileSet::from_iter(written.unwrap());
    let found = detect(&files, Some("prp/login.md"));
    assert_eq!((found.action, found.reason), (Action::OfferResume, None));
    assert_eq!(found.status.as_deref(), Some("suspended"));
}
