//! Acceptance: keeping sessions, loading them, clearing old ones away.

use std::path::Path;

use segno_core::Status;
use segno_engine::Error;
use segno_engine::SessionManager;

use crate::child::Helper;
use crate::common::Dice;
use crate::common::Room;
use crate::common::files_below;
use crate::common::moment;
use crate::common::parse;

#[test]
fn ac_007_save_writes_every_field() {
    let room = Room::new();
    let mut manager = room.manager();
    let id = manager.create(Some("spec"), Some("analyze"), Some(50_000)).unwrap().session_id;
    manager.record_tokens(20_000).unwrap();
    manager.add_artifact("src/foo.py", "created", None).unwrap();
    manager.complete().unwrap();
    let path = manager.save().unwrap();
    assert_eq!(path, room.project().join(".segno/sessions").join(id.to_string()).join("session.yaml"));
    let view = parse(&std::fs::read_to_string(&path).unwrap());
    assert_eq!(view["session_id"], id.to_string());
    assert_eq!(view["state"], "completed");
    assert_eq!(view["workflow_type"], "spec");
    assert_eq!(view["current_phase"], "analyze");
    assert_eq!(view["attempt_number"], 1);
    for field in ["created_at", "updated_at", "completed_at"] {
        assert_eq!(view[field], "2026-01-16T10:00:00.000000Z", "{field}");
    }
    let budget = &view["token_budget"];
    assert_eq!(budget["total_budget"], 50_000);
    assert_eq!(budget["tokens_used"], 20_000);
    assert_eq!(budget["tokens_remaining"], 30_000);
    assert_eq!(view["artifacts"][0]["path"], "src/foo.py");
    assert_eq!(view["artifacts"][0]["artifact_type"], "created");
    assert_eq!(view["history"][0]["action"], "session_created");
}

/// Kills a process that saves in a loop, at moments that differ, and looks what is left.
fn kill_during_save(seed: u64, rounds: u32) {
    let room = Room::new();
    let folder = room.project();
    let mut manager = SessionManager::at(&folder).unwrap();
    let id = manager.create(Some("spec"), Some("analyze"), None).unwrap().session_id;
    let path = manager.save().unwrap();
    drop(manager);
    let mut dice = Dice(seed);
    let mut tokens = 0;
    for round in 0..rounds {
        let mut helper = Helper::start("save", &folder, &id.to_string());
        let mut acknowledged: u64 = helper.hear().unwrap().parse().unwrap();
        for _ in 0..dice.below(4) {
            acknowledged = helper.hear().unwrap().parse().unwrap();
        }
        // From here it may be anywhere in its next save.
        std::thread::sleep(std::time::Duration::from_micros(dice.below(9_000)));
        helper.kill();
        tokens += acknowledged * 10;

        let text = std::fs::read_to_string(&path).unwrap();
        let view = parse(&text);
        assert!(text.ends_with('\n'), "cut off in round {round}");
        assert_eq!(view["session_id"], id.to_string());
        let shown = view["token_budget"]["tokens_used"].as_u64().unwrap();
        assert!(shown >= tokens - 10, "round {round}: the view shows {shown}, {tokens} were acknowledged");

        let mut manager = SessionManager::at(&folder).unwrap();
        let state = manager.load(&id.to_string()).unwrap().unwrap();
        assert!(state.budget.tokens_used >= tokens, "an acknowledged change is lost in round {round}");
        tokens = state.budget.tokens_used;
        assert_eq!(manager.notices(), Vec::<String>::new());
        manager.save().unwrap();
        assert_no_leftovers(&folder);
    }
}

/// A killed writer leaves its temporary file; the next one clears it away.
fn assert_no_leftovers(folder: &Path) {
    let left: Vec<_> = files_below(&folder.join(".segno").join("sessions"))
        .into_iter()
        .filter(|path| !path.ends_with("session.yaml") && !path.ends_with(".gitkeep"))
        .collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
}

#[test]
fn ac_008_a_process_killed_while_saving_leaves_a_whole_view() {
    kill_during_save(0x5e60_0008, 6);
}

#[test]
fn ac_009_the_first_session_makes_the_directory_with_a_gitkeep() {
    let room = Room::new();
    let sessions = room.project().join(".segno").join("sessions");
    let mut manager = room.manager();
    assert!(!sessions.exists());
    manager.create(None, None, None).unwrap();
    assert!(sessions.join(".gitkeep").is_file());
}

#[test]
fn ac_010_load_restores_every_field() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(Some("tdflow"), Some("RED"), Some(70_000)).unwrap();
    manager.start_attempt().unwrap();
    manager.record_tokens(60_000).unwrap();
    manager.add_artifact("tests/foo.rs", "created", None).unwrap();
    room.clock.advance(90);
    manager.pause().unwrap();
    let (state, history) = (manager.current().unwrap().clone(), manager.history().unwrap());
    drop(manager);

    let mut another = room.manager();
    let loaded = another.load(&state.session_id.to_string()).unwrap().unwrap();
    assert_eq!(*loaded, state);
    assert_eq!(loaded.status, Status::Paused);
    assert_eq!(loaded.attempt, 2);
    assert_eq!(loaded.created_at, moment("2026-01-16T10:00:00Z"));
    assert_eq!(loaded.updated_at, moment("2026-01-16T10:01:30Z"));
    assert_eq!(another.history().unwrap(), history);
    assert_eq!(another.get_artifacts(None).unwrap().len(), 1);
}

#[test]
fn ac_011_loading_a_session_that_is_not_there_gives_none() {
    let room = Room::new();
    let mut manager = room.manager();
    for id in [
        "session_20250101_000000_000000",
        "",
        "nonsense",
        "../../etc/passwd",
        "session_20251399_000000_000000",
    ] {
        assert!(manager.load(id).unwrap().is_none(), "{id}");
        assert!(!manager.exists(id).unwrap(), "{id}");
    }
    assert!(manager.current().is_none());
}

#[test]
fn ac_012_loading_a_corrupted_view_is_an_error_that_says_why() {
    let room = Room::new();
    let mut manager = room.manager();
    let id = "session_20250101_000000_000000";
    let path = room.view_path(id.parse().unwrap());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "session_id: session_20250101_000000_000000\nstate: [active\n").unwrap();
    let error = manager.load(id).unwrap_err();
    let Error::SessionCorrupted { session_id, details } = &error else { panic!("{error:?}") };
    assert_eq!(session_id, id);
    assert!(details.starts_with("line "), "{details}");
    assert!(
        error.to_string().starts_with(&format!("Session {id} state file is corrupted: line ")),
        "{error}"
    );

    // The view of a session that the store has is only a picture: the session loads all the same.
    let id = manager.create(None, None, None).unwrap().session_id;
    std::fs::write(room.view_path(id), "state: [").unwrap();
    assert!(room.manager().load(&id.to_string()).unwrap().is_some());
}

#[test]
fn ac_025_cleanup_removes_only_ended_sessions_that_are_old() {
    let room = Room::new();
    let mut manager = room.manager();
    let make = |end: fn(&mut SessionManager)| {
        let mut manager = room.manager();
        let id = manager.create(None, None, None).unwrap().session_id.to_string();
        end(&mut manager);
        id
    };
    let old_completed = make(|manager| {
        manager.complete().unwrap();
    });
    let old_aborted = make(|manager| {
        manager.abort(None).unwrap();
    });
    let old_active = make(|_| {});
    room.clock.advance(31 * 86_400);
    let new_completed = make(|manager| {
        manager.complete().unwrap();
    });
    let mut removed = manager.cleanup_old_sessions(30, false).unwrap();
    removed.sort();
    assert_eq!(removed, [old_completed.clone(), old_aborted.clone()]);
    for gone in [&old_completed, &old_aborted] {
        assert!(!manager.exists(gone).unwrap());
        assert!(!room.view_path(gone.parse().unwrap()).parent().unwrap().exists());
    }
    for kept in [&old_active, &new_completed] {
        assert!(manager.exists(kept).unwrap());
        assert!(room.view_path(kept.parse().unwrap()).exists());
    }
}

#[test]
fn ac_026_a_paused_session_is_kept_however_old() {
    let room = Room::new();
    let mut manager = room.manager();
    let id = manager.create(None, None, None).unwrap().session_id.to_string();
    manager.pause().unwrap();
    room.clock.advance(60 * 86_400);
    assert_eq!(manager.cleanup_old_sessions(30, false).unwrap(), Vec::<String>::new());
    assert!(manager.exists(&id).unwrap());
}

#[test]
fn ac_027_a_dry_run_lists_and_deletes_nothing() {
    let room = Room::new();
    let mut manager = room.manager();
    let id = manager.create(None, None, None).unwrap().session_id.to_string();
    manager.complete().unwrap();
    room.clock.advance(31 * 86_400);
    let id = [id];
    assert_eq!(manager.cleanup_old_sessions(30, true).unwrap(), id);
    assert!(manager.exists(&id[0]).unwrap());
    assert_eq!(manager.cleanup_old_sessions(30, false).unwrap(), id);
}

#[test]
fn ac_028_a_process_killed_while_saving_loses_no_acknowledged_state() {
    kill_during_save(0x5e60_0028, 6);
}

#[test]
fn ac_029_the_view_is_readable_block_style_yaml() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(Some("spec"), Some("analyze"), None).unwrap();
    manager.add_artifact("src/foo.py", "created", None).unwrap();
    let text = std::fs::read_to_string(manager.save().unwrap()).unwrap();
    for line in text.lines() {
        assert!(!line.contains('{') && !line.contains('\t') && line.len() < 140, "{line}");
        assert!(!line.trim_start().starts_with('['), "{line}");
        let indent = line.len() - line.trim_start().len();
        assert_eq!(indent % 2, 0, "{line}");
    }
    assert!(text.contains("created_at: 2026-01-16T10:00:00.000000Z\n"), "{text}");
    assert!(text.contains("\nhistory:\n  - timestamp: "), "{text}");
}

#[test]
fn ac_030_everything_works_in_a_temporary_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut manager = SessionManager::at(dir.path()).unwrap();
    let id = manager.create(Some("spec"), Some("analyze"), None).unwrap().session_id.to_string();
    manager.advance_phase("implement").unwrap();
    manager.record_tokens(10).unwrap();
    manager.extend_budget(10).unwrap();
    manager.add_artifact("a.rs", "modified", None).unwrap();
    manager.checkpoint_session().unwrap();
    manager.pause().unwrap();
    drop(manager);
    let mut helper = Helper::start("load", dir.path(), &id);
    assert_eq!(helper.hear().as_deref(), Some("paused 10"), "another process sees the same");
    let mut manager = SessionManager::at(dir.path()).unwrap();
    manager.load(&id).unwrap().unwrap();
    manager.resume().unwrap();
    manager.complete().unwrap();
    assert_eq!(manager.list().unwrap().len(), 1);
    assert!(manager.delete(&id).unwrap());
    assert_eq!(manager.list().unwrap().len(), 0);
}
