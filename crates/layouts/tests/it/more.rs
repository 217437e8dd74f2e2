//! What the documents say of details: whose step a checkpoint is of, who wrote an entry, what ultra-create is told.

use segno_core::List;
use segno_core::Status;
use segno_layouts::Family;
use segno_layouts::FileSet;
use segno_layouts::ForeignEdit;
use segno_layouts::ultra_create::Config;
use serde_json::Value;
use serde_json::json;

use crate::samples;

fn json_of(files: &[(String, Vec<u8>)], name: &str) -> Value {
    let (_, bytes) = files.iter().find(|(file, _)| file.ends_with(name)).unwrap();
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn a_checkpoint_at_the_end_of_a_step_is_of_that_step() {
    let state = samples::fresh();
    let mut snapshot = samples::snapshot(&state);
    let row = |ordinal: u32, name: &str, reason: &str, phase: &str, step: u32| {
        json!({
            "id": format!("cp-{ordinal:02}-{name}"), "ordinal": ordinal, "name": name, "reason": reason, "phase": phase,
            "step": step, "ready": true, "valid": true, "created_at": state.created_at,
        })
    };
    let rows = vec![row(1, "by hand", "asked", "RED", 1), row(2, "RED", "phase_complete", "GREEN", 2)];
    snapshot.lists.insert(List::Checkpoints, rows);
    let files = segno_layouts::write(Family::GoTeam, &snapshot, &FileSet::default()).unwrap();
    let manifest = json_of(&files, "manifest.json");
    let steps: Vec<_> = manifest["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["step"], &one["step_name"]))
        .collect();
    assert_eq!(steps, [(&json!(1), &json!("RED")), (&json!(1), &json!("RED"))]);
    let file = json_of(&files, "cp-02-RED.json");
    assert_eq!((&file["step_number"], &file["step_name"]), (&json!(1), &json!("RED")));
}

#[test]
fn who_wrote_an_entry_of_the_registry_is_known() {
    let state = samples::full();
    let snapshot = samples::snapshot(&state);
    let files = segno_layouts::write(Family::GoTeam, &snapshot, &FileSet::default()).unwrap();
    let registry = json_of(&files, "sessions.json");
    let id = registry["sessions"][0]["id"].as_str().unwrap();
    let look = |registry: &Value| segno_layouts::look_entry(registry.to_string().as_bytes(), id);
    assert_eq!(look(&registry), Some(ForeignEdit::None), "however it is laid out");
    let changed = |name: &str, value: Value| {
        let mut registry = registry.clone();
        registry["sessions"][0][name] = value;
        look(&registry)
    };
    assert_eq!(changed("status", json!("paused")), Some(ForeignEdit::Status("paused".to_owned())));
    assert_eq!(changed("topic", json!("theirs")), Some(ForeignEdit::Other));
    assert_eq!(changed("segno", json!(null)), Some(ForeignEdit::Other));
    assert_eq!(segno_layouts::look_entry(b"{}", id), None);
    let others = json!({ "sessions": [{ "id": id, "status": "active" }] });
    assert_eq!(look(&others), None, "one that has nothing of ours");
}

#[test]
fn the_keys_of_session_config() {
    let whole = json!({
        "version": "27.17",
        "storage": { "state_dir": "~/x", "max_sessions": 3, "compression": false, "auto_prune_days": 9 },
        "serialization": {
            "interval_ms": 30000, "on_events": ["tool_call", "agent_switch", "error", "milestone"],
            "include": { "conversation_context": false, "tool_history": false, "agent_states": false,
                         "decision_tree": false, "memory_snapshots": false, "file_changes": false, "error_log": false },
            "exclude": { "sensitive_data": true, "large_file_contents": false, "binary_data": true },
        },
        "recovery": { "auto_resume": true, "resume_delay_ms": 1000, "max_resume_attempts": 3, "fallback_to_checkpoint": true },
        "checkpoints": { "auto_create": true, "triggers": ["phase_complete"], "max_checkpoints_per_session": 4,
                         "retention": { "keep_on_success": 2, "keep_on_failure": 6 } },
        "hooks": { "on_serialize": "a", "on_restore": null, "on_crash": " " },
    });
    let (config, warnings) = Config::read(whole.to_string().as_bytes()).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!((config.state_dir.as_deref(), config.max_sessions, config.prune_days), (Some("~/x"), 3, 9));
    assert!(!config.compression && !config.cut_large && !config.include.tool_history);
    assert_eq!(
        (config.checkpoints.max, config.checkpoints.keep_on_success, config.checkpoints.keep_on_failure),
        (4, 2, 6)
    );
    assert_eq!(
        (config.hooks.on_serialize.as_deref(), config.hooks.on_restore, config.hooks.on_crash),
        (Some("a"), None, None)
    );
    assert_eq!(Config::read(b"{}").unwrap().0, Config::default());
    assert_eq!(
        Config::read(b"[]").unwrap_err().to_string(),
        "session-config.json: JSON parse error: a list where an object should be"
    );
    let odd = json!({ "storage": [], "checkpoints": { "triggers": "all" }, "serialization": { "exclude": { "sensitive_data": false } } });
    let (config, warnings) = Config::read(odd.to_string().as_bytes()).unwrap();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert_eq!((config.max_sessions, config.checkpoints.triggers), (10, Vec::<String>::new()));
}

#[test]
fn what_is_left_out_of_the_files_of_ultra_create() {
    let mut state = samples::full();
    let text = json!({
        "storage": { "compression": false },
        "serialization": { "include": { "conversation_context": false, "tool_history": false, "agent_states": false,
            "decision_tree": false, "memory_snapshots": false, "file_changes": false, "error_log": false } },
        "checkpoints": { "auto_create": false, "retention": { "keep_on_success": 0 } },
    });
    let (config, _) = Config::read(text.to_string().as_bytes()).unwrap();
    let write = |state: &segno_core::State| {
        let mut snapshot = samples::snapshot(state);
        snapshot.ultra_create = config.clone();
        segno_layouts::write(Family::UltraCreate, &snapshot, &FileSet::default()).unwrap()
    };
    let files = write(&state);
    let present = json_of(&files, "current-session.json");
    assert_eq!(present["context"]["user_intent"], "");
    assert_eq!(present["tools"]["history"], json!([]));
    assert_eq!(present["agents"]["states"], json!({}));
    assert_eq!(present["decisions"]["tree"], json!([]));
    assert_eq!(
        present["memory"],
        json!({ "hindsight_queries": [], "context7_lookups": [], "local_cache": {} })
    );
    assert_eq!(present["files"], json!({ "created": [], "modified": [], "deleted": [] }));
    assert_eq!(present["errors"]["log"], json!([]));
    assert!(files.iter().all(|(name, _)| !name.ends_with(".gz")));
    state.status = Status::Completed;
    assert!(
        write(&state).iter().all(|(name, _)| !name.starts_with("checkpoint_")),
        "none stays when it is done"
    );
}
