//! What a session came with: nothing of it is lost when its files are written, and what another program writes without our
//! member is told apart from it.

use std::collections::BTreeMap;

use segno_core::List;
use segno_core::State;
use segno_layouts::Came;
use segno_layouts::Family;
use segno_layouts::FileSet;
use segno_layouts::ForeignEdit;
use segno_layouts::ImportedSession;
use segno_layouts::Snapshot;
use serde_json::Value;
use serde_json::json;

use crate::samples;

fn taken_over(family: Family, files: &FileSet) -> ImportedSession {
    segno_layouts::read(family, files, samples::now()).unwrap().sessions.remove(0)
}

/// The rows as an import numbers and keeps them.
fn snapshot(session: &ImportedSession) -> Snapshot<'_> {
    let lists: BTreeMap<List, Vec<Value>> = session.lists.iter().cloned().collect();
    Snapshot { lists, record: None, ..samples::snapshot(&session.state) }
}

fn written(session: &ImportedSession, existing: &FileSet) -> FileSet {
    let main = segno_layouts::write(session_family(session), &snapshot(session), existing).unwrap();
    FileSet::from_iter(main)
}

fn session_family(session: &ImportedSession) -> Family {
    let kept = session.state.workflow_state.as_ref().unwrap();
    Family::ALL.into_iter().find(|family| kept.get(family.as_str()).is_some()).unwrap()
}

fn json_of(files: &FileSet, name: &str) -> Value {
    serde_json::from_slice(files.get(name).unwrap()).unwrap()
}

/// go-team's sample, with a checkpoint that was invalidated by going back.
fn gone_back() -> FileSet {
    let mut files = samples::go_team();
    let mut manifest = json_of(&files, "session-abc123/manifest.json");
    manifest["checkpoints"] = json!([{
        "id": "cp-03-architecture", "step": 3, "step_name": "architecture", "timestamp": "2025-12-28T21:30:00Z",
        "valid": false, "corrupted_at": "2025-12-28T22:00:00Z", "invalidated_by": "cp-01-init",
    }]);
    manifest["rollback_history"] =
        json!([{ "id": "rb-1", "timestamp": "2025-12-28T22:00:00Z", "to_step": 1 }]);
    files.insert("session-abc123/manifest.json", samples::text(&manifest));
    files
}

#[test]
fn a_checkpoint_file_that_came_is_never_made_again() {
    let files = samples::go_team();
    let came = "session-abc123/cp-03-architecture.json";
    assert!(files.get(came).is_some());
    let session = taken_over(Family::GoTeam, &files);
    let ours = written(&session, &files);
    assert_eq!(ours.get(came), None);
    let manifest = json_of(&ours, "session-abc123/manifest.json");
    let step = &manifest["checkpoints"][0];
    assert_eq!((&step["step"], &step["step_name"]), (&json!(3), &json!("architecture")));
    // Where its file did not come along, one says what is known, and nothing of today.
    let alone = json_of(&written(&session, &FileSet::default()), came);
    assert_eq!((&alone["step_name"], &alone["outputs"]["spec"]), (&json!("architecture"), &Value::Null));
    assert_eq!(alone["state"]["current_agent"], Value::Null);
}

#[test]
fn validity_and_going_back_come_with_a_go_team_session() {
    let files = gone_back();
    let session = taken_over(Family::GoTeam, &files);
    let checkpoints = &session.lists.iter().find(|(list, _)| *list == List::Checkpoints).unwrap().1;
    let row = &checkpoints[0];
    assert_eq!((&row["valid"], &row["phase"]), (&json!(false), &json!("architecture")));
    let ours = written(&session, &files);
    let manifest = json_of(&ours, "session-abc123/manifest.json");
    let one = &manifest["checkpoints"][0];
    assert_eq!(
        (&one["valid"], &one["corrupted_at"], &one["invalidated_by"]),
        (&json!(false), &json!("2025-12-28T22:00:00Z"), &json!("cp-01-init"))
    );
    assert_eq!(manifest["rollback_history"][0]["id"], "rb-1");
    assert_eq!(json_of(&ours, "session-abc123/rollback-history.json")["history"][0]["to_step"], 1);
}

#[test]
fn the_history_of_going_back_is_taken_from_its_own_file_too() {
    let mut files = samples::go_team();
    let history = json!({ "session_id": "session-abc123", "history": [{ "id": "rb-7", "to_step": 2 }] });
    files.insert("session-abc123/rollback-history.json", samples::text(&history));
    let mut manifest = json_of(&files, "session-abc123/manifest.json");
    manifest["rollback_history"] = json!([]);
    files.insert("session-abc123/manifest.json", samples::text(&manifest));
    let session = taken_over(Family::GoTeam, &files);
    let ours = json_of(&written(&session, &files), "session-abc123/rollback-history.json");
    assert_eq!(ours["history"], json!([{ "id": "rb-7", "to_step": 2 }]));
}

/// The origin compares its moments with `utcnow()` and reads them with `fromisoformat`: texts in quotes, without an offset.
#[test]
fn moments_of_agentforge_are_quoted_and_have_no_offset() {
    let state = samples::full();
    let snapshot = samples::snapshot(&state);
    let files = segno_layouts::write(Family::AgentForge, &snapshot, &FileSet::default()).unwrap();
    let text = String::from_utf8(files[0].1.clone()).unwrap();
    assert!(text.contains("\ncreated_at: \"2026-01-16T13:00:00.000001\"\n"), "{text}");
    let is_date = |line: &&str| line.contains("2026-01-16T");
    let bare: Vec<&str> = text.lines().filter(is_date).filter(|line| !line.contains('"')).collect();
    assert_eq!(bare, Vec::<&str>::new());
    let (own, _) = text.split_once("\nsegno:").unwrap();
    assert!(!own.lines().filter(is_date).any(|line| line.contains("Z\"")), "{own}");
}

/// A library that makes dates of texts and writes them in its own way has changed nothing.
#[test]
fn another_spelling_of_dates_is_no_change() {
    let state = samples::full();
    let snapshot = samples::snapshot(&state);
    let files = segno_layouts::write(Family::AgentForge, &snapshot, &FileSet::default()).unwrap();
    let (name, bytes) = &files[0];
    let text = String::from_utf8(bytes.clone()).unwrap();
    let spelled = text.replace("\"2026-01-16T13:45:00.000000Z\"", "2026-01-16T13:45:00+00:00");
    assert_ne!(spelled, text);
    let looked = |text: &str| segno_layouts::Facts::of(Family::AgentForge, name, text.as_bytes()).edit;
    assert_eq!(looked(&spelled), ForeignEdit::None);
    let paused = spelled.replacen("\nstate: paused", "\nstate: active", 1);
    assert_eq!(looked(&paused), ForeignEdit::Status("active".to_owned()));
}

/// What a program changes in the main file of a family, and what that is to us.
type Rewritten<'a> = (Family, &'a [(&'a str, Value)], ForeignEdit);

/// A manager that writes only the members that it knows drops ours. What it left out is no change; what it says may be.
#[test]
fn what_is_written_without_our_member_is_told_apart() {
    let state = samples::full();
    let cases: [Rewritten<'_>; 8] = [
        (Family::Prp, &[], ForeignEdit::None),
        (Family::Prp, &[("status", json!("paused"))], ForeignEdit::Status("paused".to_owned())),
        (
            Family::Prp,
            &[("status", json!("paused")), ("last_activity", json!("2026-01-16T14:00:00Z"))],
            ForeignEdit::Status("paused".to_owned()),
        ),
        (
            Family::Prp,
            &[("status", json!("paused")), ("current_phase", json!("REFACTOR"))],
            ForeignEdit::Other,
        ),
        (Family::Prp, &[("new", json!(1))], ForeignEdit::Other),
        (Family::GoTeam, &[("context", json!({ "pending_tasks": ["mine"] }))], ForeignEdit::Other),
        (Family::UltraCreate, &[("status", json!("paused"))], ForeignEdit::Status("paused".to_owned())),
        (Family::UltraCreate, &[("context", json!({ "user_intent": "theirs" }))], ForeignEdit::Other),
    ];
    for (family, changes, edit) in cases {
        let snapshot = samples::snapshot(&state);
        let files = FileSet::from_iter(segno_layouts::write(family, &snapshot, &FileSet::default()).unwrap());
        let main = segno_layouts::main_file(family, &snapshot);
        let ours = files.get(&main).unwrap();
        let mut theirs = json_of(&files, &main);
        theirs.as_object_mut().unwrap().remove("segno");
        for (name, value) in changes {
            theirs[*name] = value.clone();
        }
        let text = theirs.to_string();
        let looked = segno_layouts::look_bare(family, (&main, text.as_bytes()), ours, state.session_id, 1);
        let looked = looked.unwrap();
        assert_eq!(looked.edit, edit, "{family} {changes:?}");
        assert_eq!(looked.changed, 1);
    }
}

fn came(state: &State, files: &FileSet, name: &str) -> Option<Came> {
    segno_layouts::came(Family::Prp, state, name, files.get(name).unwrap())
}

#[test]
fn a_file_that_came_is_known_again_and_so_is_what_was_left_out() {
    let mut files = samples::prp();
    let mut metrics = json_of(&files, "metrics.json");
    metrics["session_id"] = json!("another");
    files.insert("metrics.json", samples::text(&metrics));
    let session = taken_over(Family::Prp, &files);
    assert_eq!(came(&session.state, &files, "loop-state.json"), Some(Came::Whole));
    assert_eq!(came(&session.state, &files, "metrics.json"), Some(Came::Partly));
    files.insert("metrics.json", "{}");
    assert_eq!(came(&session.state, &files, "metrics.json"), None);
    let own = samples::full();
    assert_eq!(came(&own, &files, "loop-state.json"), None, "a session of ours came with nothing");
}

/// What is left of a budget that was overdrawn is less than nothing, and who has ended has nobody at work.
#[test]
fn an_overdrawn_budget_and_an_ended_session_say_so() {
    let mut state = samples::full();
    state.budget.tokens_used = state.budget.total_budget + 400;
    state.status = segno_core::Status::Completed;
    let snapshot = samples::snapshot(&state);
    let of = |family: Family| segno_layouts::write(family, &snapshot, &FileSet::default()).unwrap();
    let yaml = String::from_utf8(of(Family::AgentForge).remove(0).1).unwrap();
    assert!(yaml.contains("\n  tokens_remaining: -400\n"), "{yaml}");
    let ultra = FileSet::from_iter(of(Family::UltraCreate));
    assert_eq!(json_of(&ultra, "current-session.json")["agents"]["active"], json!([]));
}
