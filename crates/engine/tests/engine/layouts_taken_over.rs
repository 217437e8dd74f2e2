//! Files of other session managers that a session came with, and that those go on writing in their own way.

use std::path::Path;
use std::path::PathBuf;

use segno_core::Command;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::event::Recovery;
use segno_core::event::Workflow;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::NewSession;
use segno_engine::layout;
use segno_engine::layout::Family;
use segno_engine::view;
use serde_json::Value;
use serde_json::json;

use crate::common::Room;
use crate::common::note;

const TEAM: &str = ".claude/agents/microai/teams/go-team/checkpoints";

/// An engine that keeps these families current.
fn engine(room: &Room, families: &[Family]) -> Engine {
    let layout = layout::Options {
        families: families.to_vec(),
        most_items: 1_000,
        home: Some(room.path().join("home")),
        ..layout::Options::default()
    };
    std::fs::create_dir_all(room.path().join("home")).unwrap();
    let view = view::Options { enabled: false, ..view::Options::default() };
    Engine::new(Box::new(room.store()), EngineOptions { view, layout, ..room.options() })
}

fn begin(room: &Room, engine: &Engine) -> SessionId {
    let phases = ["RED", "GREEN", "REFACTOR"].map(str::to_owned).to_vec();
    let workflow = Some(Workflow { name: "prp".to_owned(), phases });
    let phase = Some("RED".to_owned());
    let wanted = NewSession { workflow, phase, ..room.new_session() };
    engine.create(wanted).unwrap().state.session_id
}

fn write(path: &Path, value: &Value) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, value.to_string()).unwrap();
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// What is kept beside a file.
fn copies(folder: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = all.filter(|path| path.to_string_lossy().contains(".edited-")).collect();
    all.sort();
    all
}

fn import(room: &Room, engine: &Engine, folder: &Path) -> SessionId {
    let project = Some(room.new_session().project);
    let options = segno_engine::transfer::Options { project, ..Default::default() };
    let mut taken = layout::import(engine, folder, &options).unwrap();
    taken.remove(0).sessions.remove(0).state.session_id
}

/// go-team's folder as its sample has it, with two checkpoints.
fn go_team(room: &Room) -> PathBuf {
    let folder = room.project().join(TEAM);
    let at = |minute: u32| format!("2025-12-28T21:{minute:02}:00Z");
    let registry = json!({ "version": "1.0.0", "last_active_session": "session-abc123", "sessions": [{
        "id": "session-abc123", "topic": "auth", "status": "interrupted", "created_at": at(0), "updated_at": at(45),
        "current_step": 2, "current_checkpoint": "cp-02-requirements", "resumable": true,
        "progress": { "steps_completed": 2, "total_steps": 9, "percentage": 22 },
    }] });
    write(&folder.join("sessions.json"), &registry);
    let own = folder.join("session-abc123");
    for (number, name, spec) in [(1, "init", Value::Null), (2, "requirements", json!("the spec of then"))] {
        let checkpoint = json!({
            "id": format!("cp-{number:02}-{name}"), "session_id": "session-abc123", "step_number": number,
            "step_name": name, "created_at": at(number * 15), "checksum": "sha256:00",
            "state": { "topic": "auth", "phase": name, "current_step": number, "current_agent": "pm-agent" },
            "outputs": { "spec": spec }, "files": { "created": ["docs/spec.md"], "modified": [] },
        });
        write(&own.join(format!("cp-{number:02}-{name}.json")), &checkpoint);
    }
    let state = json!({
        "session_id": "session-abc123", "saved_at": at(45), "save_trigger": "auto",
        "state": { "topic": "auth", "phase": "requirements", "current_step": 2 },
    });
    write(&own.join("state.json"), &state);
    own
}

#[test]
fn checkpoint_files_that_came_stay_to_the_byte() {
    let room = Room::new();
    let own = go_team(&room);
    let names = ["cp-01-init.json", "cp-02-requirements.json"];
    let look = || names.map(|name| std::fs::read(own.join(name)).unwrap());
    let before = look();
    let engine = engine(&room, &[Family::GoTeam]);
    let id = import(&room, &engine, &room.project().join(TEAM));
    let acted = engine.act(id, Command::Resume { reset_breaker: false, details: None }).unwrap();
    assert_eq!(acted.notices, Vec::<String>::new());
    engine.act(id, note("on")).unwrap();
    assert_eq!(look(), before);
    assert_eq!(copies(&own), Vec::<PathBuf>::new());
    assert_eq!(json_of(&own.join("state.json"))["segno"]["session_id"], id.to_string());
    let listed = json_of(&own.join("manifest.json"))["checkpoints"].clone();
    assert_eq!(
        (&listed[1]["id"], &listed[1]["step_name"]),
        (&json!("cp-02-requirements"), &json!("requirements"))
    );
    let state = engine.load(id).unwrap().state;
    engine.remove_layout(Family::GoTeam, &state).unwrap();
    assert_eq!(look(), before, "and they are not ours to remove");
}

/// Nobody goes back to what this record does not have: it is not offered, and refused before anything is recorded.
#[test]
fn a_checkpoint_that_came_is_neither_offered_nor_begun_with() {
    let room = Room::new();
    go_team(&room);
    let engine = engine(&room, &[]);
    let id = import(&room, &engine, &room.project().join(TEAM));
    let (_, options) = engine.recovery_options(id).unwrap();
    let ways: Vec<Recovery> = options.offered.iter().map(|one| one.recovery).collect();
    assert_eq!(ways, [Recovery::Live, Recovery::Fresh]);
    let before = engine.load(id).unwrap().state.seq;
    let found = engine.find_checkpoint(id, "cp-02-requirements").unwrap();
    assert_eq!(found.phase.as_deref(), Some("requirements"));
    let validation = engine.validate(id, &found).unwrap();
    let why = "cp-02-requirements came with the session: what it held is in the files that the session came from, \
               and not in this record";
    assert_eq!(validation.problems, [why]);
    let wishes = [
        segno_engine::resume::ResumeWish {
            from: Some(Recovery::Checkpoint),
            no_run: true,
            ..Default::default()
        },
        segno_engine::resume::ResumeWish {
            checkpoint: Some("cp-02-requirements".to_owned()),
            no_run: true,
            ..Default::default()
        },
    ];
    for (wish, said) in wishes.iter().zip(["this session has no checkpoint to go on from", why]) {
        let refused =
            engine.prepare_resume(id, wish, &segno_engine::frontend::Silent, &|_| Ok(())).unwrap_err();
        assert_eq!(refused.to_string(), said);
    }
    assert_eq!(engine.load(id).unwrap().state.seq, before, "nothing was recorded");
}

/// A file that import left out is kept beside ours before ours is written, and what was taken over is not.
#[test]
fn what_an_import_left_out_is_kept_beside() {
    let room = Room::new();
    let folder = room.project().join(".prp-session");
    let main = json!({
        "session_id": "a1b2c3d4-0000-4000-8000-0000000000aa", "prp_file": "prp.md", "status": "paused",
        "started_at": "2026-01-16T10:00:00Z", "current_phase": "GREEN", "current_iteration": 5,
        "phases_completed": ["RED"],
    });
    write(&folder.join("loop-state.json"), &main);
    let metrics = json!({ "session_id": "other", "phases": { "RED": { "iterations": 3 } } });
    write(&folder.join("metrics.json"), &metrics);
    let engine = engine(&room, &[Family::Prp]);
    let id = import(&room, &engine, &folder);
    let acted = engine.act(id, Command::Resume { reset_breaker: false, details: None }).unwrap();
    let kept = copies(&folder);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(kept[0].to_string_lossy().contains("metrics.edited-"), "{kept:?}");
    assert_eq!(json_of(&kept[0]), metrics);
    assert!(acted.notices[0].contains("metrics.json holds what was not taken over; it is kept beside it as"));
    assert_eq!(json_of(&folder.join("loop-state.json"))["status"], "running");
    engine.act(id, note("on")).unwrap();
    assert_eq!(copies(&folder), kept);
}

/// Writes a file again as a manager does that knows nothing of our member.
fn rewrite(path: &Path, changes: &[(&str, Value)]) {
    let mut file = json_of(path);
    file.as_object_mut().unwrap().remove("segno");
    for (name, value) in changes {
        file[*name] = value.clone();
    }
    std::fs::write(path, file.to_string()).unwrap();
}

/// A manager that writes only its own members is heard like any other: what it may ask for is obeyed, anything else is put
/// back with theirs beside it, and after three times its files are left to it.
#[test]
fn a_rewrite_without_our_member_is_a_change_like_any_other() {
    let room = Room::new();
    let project = room.project();
    let engine = engine(&room, &[Family::Prp, Family::UltraCreate]);
    let id = begin(&room, &engine);
    engine.act(id, note("on")).unwrap();
    let main = project.join(".prp-session/loop-state.json");
    let status = || engine.load(id).unwrap().state.status;

    rewrite(&main, &[]);
    assert_eq!(engine.hear_layouts(&project), Vec::<String>::new(), "what it left out is no change");
    assert_eq!(json_of(&main)["segno"]["session_id"], id.to_string());

    rewrite(&main, &[("status", json!("paused")), ("paused_at", json!("2026-01-16T10:00:00Z"))]);
    let said = engine.hear_layouts(&project);
    assert!(said[0].contains("set paused in the files of prp: obeyed"), "{said:?}");
    assert_eq!(status(), Status::Paused);
    let current = room.path().join("home/.ultra-create/sessions/current-session.json");
    rewrite(&current, &[("status", json!("active"))]);
    let said = engine.hear_layouts(&project);
    assert!(said[0].contains("set active in the files of ultra-create: obeyed"), "{said:?}");
    assert_eq!(status(), Status::Active);

    for times in 1..=3 {
        rewrite(&main, &[("status", json!("paused")), ("current_phase", json!("REFACTOR"))]);
        let said = engine.hear_layouts(&project);
        assert_eq!(status(), Status::Active);
        match times {
            3 => {
                assert!(said[0].contains("another program changed them 3 times"), "{said:?}");
                assert_eq!(json_of(&main)["current_phase"], "REFACTOR");
            }
            _ => {
                assert!(said[0].contains("its text is kept beside it as loop-state.edited-"), "{said:?}");
                assert_eq!(json_of(&main)["current_phase"], "RED");
            }
        }
        assert_eq!(copies(&project.join(".prp-session")).len(), times.min(2));
    }
}

/// The same of an entry in go-team's registry and of a `session.yaml`, which have nothing beside them that tells.
#[test]
fn a_rewritten_registry_and_a_rewritten_yaml_are_heard() {
    let room = Room::new();
    let project = room.project();
    let engine = engine(&room, &[Family::GoTeam, Family::AgentForge]);
    let id = begin(&room, &engine);
    let status = || engine.load(id).unwrap().state.status;
    let registry = project.join(TEAM).join("sessions.json");
    let mut file = json_of(&registry);
    file["sessions"][0].as_object_mut().unwrap().remove("segno");
    file["sessions"][0]["status"] = json!("paused");
    std::fs::write(&registry, file.to_string()).unwrap();
    let said = engine.hear_layouts(&project);
    assert!(said[0].contains("set paused in the files of go-team: obeyed"), "{said:?}");
    assert_eq!(status(), Status::Paused);

    let yaml = project.join(format!(".agentforge/sessions/{id}/session.yaml"));
    let text = std::fs::read_to_string(&yaml).unwrap();
    let (theirs, _) = text.split_once("\nsegno:").unwrap();
    let theirs =
        theirs.replace("\nstate: paused", "\nstate: active").replace("  tokens_remaining: 200000\n", "");
    assert!(theirs.contains("\nstate: active"), "{theirs}");
    std::fs::write(&yaml, theirs + "\n").unwrap();
    let said = engine.hear_layouts(&project);
    assert!(said[0].contains("set active in the files of agentforge: obeyed"), "{said:?}");
    assert_eq!(status(), Status::Active);
    assert!(std::fs::read_to_string(&yaml).unwrap().contains("\nsegno:"));
}

/// Files go with the session that they show, and the next one has room.
#[test]
fn the_files_of_a_removed_session_go_with_it() {
    let room = Room::new();
    let families = [Family::Prp, Family::AgentForge, Family::GoTeam, Family::UltraCreate];
    let engine = engine(&room, &families);
    let other = begin(&room, &engine);
    engine.act(other, Command::Abort { reason: None }).unwrap();
    let first = begin(&room, &engine);
    engine.act(first, note("on")).unwrap();
    let registry = room.project().join(TEAM).join("sessions.json");
    assert_eq!(json_of(&registry)["sessions"].as_array().unwrap().len(), 2);
    engine.act(first, Command::Abort { reason: None }).unwrap();
    assert!(engine.delete(first).unwrap());
    assert!(!room.project().join(".prp-session").exists());
    assert!(!room.project().join(format!(".agentforge/sessions/{first}")).exists());
    assert!(room.project().join(format!(".agentforge/sessions/{other}/session.yaml")).is_file());
    let left = json_of(&registry);
    assert_eq!(left["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(left["sessions"][0]["segno"]["session_id"], other.to_string());
    assert_eq!(left["last_active_session"], left["sessions"][0]["id"]);
    let current = room.path().join("home/.ultra-create/sessions/current-session.json");
    assert!(!current.exists());
    let next = begin(&room, &engine);
    let acted = engine.act(next, note("on")).unwrap();
    assert_eq!(acted.notices, Vec::<String>::new());
    assert_eq!(json_of(&current)["segno"]["session_id"], next.to_string());
}

/// Files that show a session of nobody are told of with what removes them; those of one that has ended make room.
#[test]
fn files_of_a_session_that_is_gone_can_be_removed() {
    let room = Room::new();
    let engine = engine(&room, &[Family::Prp]);
    let id = begin(&room, &engine);
    engine.act(id, note("on")).unwrap();
    let folder = room.project().join(".prp-session");
    let files = || -> Vec<(PathBuf, Vec<u8>)> {
        let all = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        all.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    };
    let put_back = |all: Vec<(PathBuf, Vec<u8>)>| {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        all.into_iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    };
    let open = files();
    engine.act(id, Command::Abort { reason: None }).unwrap();
    let ended = files();
    // The clock stands still here: the id of a removed session would be given again.
    let next = begin(&room, &engine);
    assert!(engine.delete(id).unwrap());
    put_back(open);
    let said = engine.act(next, note("on")).unwrap().notices;
    assert!(said[0].contains(&format!("segno layout remove {id} removes them")), "{said:?}");
    let removed = engine.remove_shown(Family::Prp, &room.project(), id).unwrap();
    assert!(removed.iter().any(|name| name == "phase-status.log") && !folder.exists(), "{removed:?}");
    put_back(ended);
    assert_eq!(engine.act(next, note("on")).unwrap().notices, Vec::<String>::new());
    assert_eq!(json_of(&folder.join("loop-state.json"))["segno"]["session_id"], next.to_string());
}
