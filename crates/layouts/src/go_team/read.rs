//! A go-team registry and its folders into sessions.

use std::collections::BTreeSet;

use segno_core::List;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::Workflow;
use segno_core::state::Position;
use segno_core::state::Reason;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::REGISTRY;
use super::checkpoint::checksum;
use super::word;
use crate::family::Family;
use crate::fields::Fields;
use crate::files::Damage;
use crate::files::FileSet;
use crate::found::Found;
use crate::found::Imported;
use crate::found::ImportedSession;
use crate::found::line;
use crate::found::metrics;
use crate::found::name;

/// The steps of the document's workflow, in order.
const STEPS: [&str; 9] = [
    "init",
    "requirements",
    "architecture",
    "implementation",
    "testing",
    "review",
    "optimization",
    "release",
    "synthesis",
];
/// Files of a session's folder that can be missing.
const FILES: [&str; 3] = ["manifest.json", "state.json", "recovery.json"];

/// Reads every session of a registry, or of one session's folder.
///
/// # Errors
/// If the registry is damaged, or the only session is.
pub fn read(files: &FileSet, now: Timestamp) -> Result<Imported, Damage> {
    let mut imported = Imported { family: Family::GoTeam, sessions: Vec::new(), warnings: Vec::new() };
    let mut entries: Vec<(String, Option<Map<String, Value>>)> = Vec::new();
    if let Some(registry) = files.object(REGISTRY)? {
        let mut fields = Fields::new(REGISTRY, registry, now);
        if !fields.has("sessions") {
            return Err(Damage::new(REGISTRY, "Missing required field: sessions"));
        }
        match fields.value("sessions") {
            Some(Value::Array(items)) => {
                for (index, item) in items.into_iter().enumerate() {
                    let id = item.get("id").and_then(Value::as_str).map(ToOwned::to_owned);
                    match (item, id) {
                        (Value::Object(entry), Some(id)) if is_name(&id) => entries.push((id, Some(entry))),
                        (Value::Object(_), Some(id)) => {
                            return Err(Damage::new(REGISTRY, format!("Invalid id: {}", name(id))));
                        }
                        (Value::Object(_), None) => {
                            return Err(Damage::new(
                                REGISTRY,
                                format!("Missing required field: sessions[{index}].id"),
                            ));
                        }
                        (other, _) => {
                            let why =
                                format!("sessions[{index}] is {}, not an object", crate::files::kind(&other));
                            return Err(Damage::new(REGISTRY, why));
                        }
                    }
                }
            }
            _ => return Err(Damage::new(REGISTRY, "Invalid sessions: it is not a list")),
        }
    } else {
        imported.warnings.push(format!("{REGISTRY} is missing; the folders tell what there is"));
    }
    // Folders that the registry does not know; and the folder of one session by itself.
    let known: BTreeSet<String> = entries.iter().map(|(id, _)| id.clone()).collect();
    let folders: BTreeSet<&str> =
        files.names().map(|name| name.rsplit_once('/').map_or("", |(folder, _)| folder)).collect();
    for folder in folders.into_iter().filter(|folder| !known.contains(*folder) && !folder.contains('/')) {
        let has = |file: &str| files.get(&path(folder, file)).is_some();
        if FILES.iter().any(|file| has(file))
            || (folder.is_empty() && !checkpoint_files(files, folder).is_empty())
        {
            entries.push((folder.to_owned(), None));
        }
    }
    let only = entries.len() == 1;
    for (id, entry) in entries {
        match session(files, id, entry, now) {
            Ok(session) => imported.sessions.push(session),
            Err(damage) if only => return Err(damage),
            Err(damage) => imported.warnings.push(format!("not imported: {damage}")),
        }
    }
    Ok(imported)
}

/// A name that can be a folder and nothing else.
fn is_name(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 200
        && id.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && !id.starts_with('.')
}

fn path(folder: &str, file: &str) -> String {
    if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") }
}

fn checkpoint_files(files: &FileSet, folder: &str) -> Vec<String> {
    let of = |path: &&str| {
        let (at, file) = path.rsplit_once('/').unwrap_or(("", path));
        at == folder && file.starts_with("cp-") && file.ends_with(".json")
    };
    files.names().filter(of).map(ToOwned::to_owned).collect()
}

fn session(
    files: &FileSet,
    folder: String,
    entry: Option<Map<String, Value>>,
    now: Timestamp,
) -> Result<ImportedSession, Damage> {
    let mut found = Found { id: folder.clone(), ..Found::default() };
    let in_registry = entry.is_some();
    if let Some(entry) = entry {
        registry_entry(&mut found, entry, now)?;
    }
    for file in FILES {
        if files.get(&path(&folder, file)).is_none() {
            found.missing.push(path(&folder, file));
        }
    }
    if let Some(content) = files.object(&path(&folder, "manifest.json"))? {
        manifest(&mut found, &path(&folder, "manifest.json"), content, in_registry, now)?;
    }
    if let Some(content) = files.object(&path(&folder, "state.json"))? {
        live(&mut found, &path(&folder, "state.json"), content, now)?;
    }
    if let Some(content) = files.object(&path(&folder, "recovery.json"))? {
        recovery(&mut found, &path(&folder, "recovery.json"), content, now)?;
    }
    if found.status.is_none() {
        // Nobody says so: a folder without an entry was left.
        found.status = Some(("interrupted".to_owned(), Status::Interrupted));
    }
    if let Some(content) = files.object(&path(&folder, "rollback-history.json"))? {
        rollbacks(&mut found, &path(&folder, "rollback-history.json"), content, now)?;
    }
    checkpoints(&mut found, files, &folder, now)?;
    let current = found.kept.get(REGISTRY).and_then(|entry| entry.get("current_checkpoint")?.as_str());
    let listed: BTreeSet<String> =
        found.listed.iter().cloned().chain(current.map(ToOwned::to_owned)).collect();
    for id in listed.iter().filter(|id| is_name(id)) {
        let file = path(&folder, &format!("{id}.json"));
        if files.get(&file).is_none() {
            found.missing.push(file);
        }
    }
    if found.id.is_empty() {
        found.id = "session".to_owned();
    }
    if let Some(phase) = &found.phase
        && let Some(step) = STEPS.iter().position(|step| phase.starts_with(step))
    {
        let phases = STEPS.iter().map(|step| (*step).to_owned()).collect();
        found.workflow = Some(Workflow { name: "go-team".to_owned(), phases });
        found.phase = Some(STEPS[step].to_owned());
    }
    Ok(found.session(Family::GoTeam, word, now))
}

fn status(file: &str, said: &str) -> Result<Status, Damage> {
    Ok(match said {
        "active" => Status::Active,
        "paused" => Status::Paused,
        "interrupted" => Status::Interrupted,
        "completed" => Status::Completed,
        "failed" => Status::Failed,
        "abandoned" => Status::Aborted,
        _ => return Err(Damage::new(file, format!("Invalid status: {}", name(said.to_owned())))),
    })
}

fn registry_entry(found: &mut Found, entry: Map<String, Value>, now: Timestamp) -> Result<(), Damage> {
    let ours = entry.contains_key(crate::EXTENSION);
    let told = entry.clone();
    for field in ["topic", "status", "created_at", "current_step"] {
        if !entry.contains_key(field) {
            return Err(Damage::new(REGISTRY, format!("Missing required field: {field} of {}", found.id)));
        }
    }
    let mut fields = Fields::new(REGISTRY, entry, now);
    let _ = fields.text("id");
    found.topic = fields.text("topic");
    let said = fields.text("status").unwrap_or_default();
    found.status = Some((said.clone(), status(REGISTRY, &said)?));
    if said == "paused" {
        found.reason = Some(Reason { what: "asked".to_owned(), details: None });
    }
    found.created_at = fields.moment("created_at")?;
    found.updated_at = fields.moment("updated_at")?;
    found.completed_at = fields.moment("completed_at")?;
    let at = fields.number("current_step");
    found.step = step(REGISTRY, at)?;
    if let Some(mut progress) = fields.object("progress") {
        found.of = progress.number("total_steps").and_then(|of| u32::try_from(of).ok()).filter(|of| *of > 0);
        found.progress =
            progress.number("percentage").and_then(|n| u8::try_from(n).ok()).filter(|n| *n <= 100);
        let _ = progress.number("steps_completed");
        fields.put_back("progress", progress);
    }
    let most = found.of.unwrap_or(STEPS.len() as u32);
    if let Some(at) = found.step.filter(|at| *at > most && !ours) {
        return Err(Damage::new(REGISTRY, format!("Invalid current_step: {at} is not 1 to {most}")));
    }
    found.branch = fields.text("git_branch");
    for known in ["resumable", "current_checkpoint", "recovery_type", crate::EXTENSION] {
        let _ = fields.value(known);
    }
    let (mut left, warnings) = fields.rest();
    found.warnings.extend(warnings);
    if !ours {
        // They count until the session has checkpoints and steps of its own.
        let told = |name: &&str| Some(((*name).to_owned(), told.get(*name)?.clone()));
        left.extend(["current_step", "current_checkpoint", "progress"].iter().filter_map(told));
    }
    found.kept.insert(REGISTRY.to_owned(), Value::Object(left));
    Ok(())
}

fn step(file: &str, step: Option<u64>) -> Result<Option<u32>, Damage> {
    match step.map(u32::try_from) {
        None => Ok(None),
        Some(Ok(step)) if (1..=1_000).contains(&step) => Ok(Some(step)),
        Some(_) => Err(Damage::new(file, format!("Invalid current_step: {}", step.unwrap_or(0)))),
    }
}

fn manifest(
    found: &mut Found,
    file: &str,
    content: Map<String, Value>,
    known: bool,
    now: Timestamp,
) -> Result<(), Damage> {
    let mut fields = Fields::new(file, content, now);
    let id =
        fields.text("session_id").ok_or_else(|| Damage::new(file, "Missing required field: session_id"))?;
    own(found, file, id)?;
    let (topic, created, updated) =
        (fields.text("topic"), fields.moment("created_at")?, fields.moment("updated_at")?);
    let at = step(file, fields.number("current_step"))?;
    if !known {
        (found.topic, found.created_at, found.updated_at, found.step) = (topic, created, updated, at);
    }
    let listed = fields.list("checkpoints");
    let history = fields.list("rollback_history");
    for one in &listed {
        found.listed.extend(one.get("id").and_then(Value::as_str).map(ToOwned::to_owned));
    }
    let ours = fields.value(crate::EXTENSION).is_some();
    let _ = fields.value("current_checkpoint");
    let (mut left, warnings) = fields.rest();
    found.warnings.extend(warnings);
    if !ours {
        // What it says of checkpoints and of going back stays true of what came.
        let came = [("checkpoints", listed), ("rollback_history", history)];
        let came = came.into_iter().filter(|(_, all)| !all.is_empty());
        left.extend(came.map(|(name, all)| (name.to_owned(), Value::Array(all))));
    }
    found.kept.insert("manifest.json".to_owned(), Value::Object(left));
    Ok(())
}

/// Files of one folder are about one session.
fn own(found: &mut Found, file: &str, id: String) -> Result<(), Damage> {
    if found.id.is_empty() && is_name(&id) {
        found.id = id;
        return Ok(());
    }
    if found.id == id {
        return Ok(());
    }
    Err(Damage::new(file, format!("Session mismatch: it is about {}, not {}", name(id), found.id)))
}

/// What a file says that is about this session and was written at the moment that a member names.
fn own_fields<'a>(
    found: &mut Found,
    file: &'a str,
    content: Map<String, Value>,
    now: Timestamp,
    written: &str,
) -> Result<(Fields<'a>, Option<Timestamp>), Damage> {
    let mut fields = Fields::new(file, content, now);
    let id =
        fields.text("session_id").ok_or_else(|| Damage::new(file, "Missing required field: session_id"))?;
    own(found, file, id)?;
    let written = fields.moment(written)?;
    found.updated_at = found.updated_at.max(written);
    found.created_at = found.created_at.or(written);
    Ok((fields, written))
}

fn live(found: &mut Found, file: &str, content: Map<String, Value>, now: Timestamp) -> Result<(), Damage> {
    let (mut fields, saved) = own_fields(found, file, content, now, "saved_at")?;
    let _ = fields.text("save_trigger");
    let Some(mut state) = fields.object("state") else {
        return Err(Damage::new(file, "Missing required field: state"));
    };
    let topic = state.text("topic");
    found.topic = found.topic.take().or(topic);
    found.phase = state.text("phase");
    let at = step(file, state.number("current_step"))?;
    found.step = at.or(found.step);
    found.agent = state.text("current_agent");
    found.iteration = state.number("iteration_count").unwrap_or(0);
    found.breakpoint = state.flag("breakpoint_active").unwrap_or(false);
    let _ = (state.value("date"), state.value("max_iterations"));
    if let Some(Value::Object(mut numbers)) = state.value("metrics") {
        found.metrics = metrics(&mut numbers);
    }
    fields.put_back("state", state);
    if let Some(mut context) = fields.object("context") {
        found.last_action = context.text("last_action");
        found.tasks = context.texts("pending_tasks");
        let at = context.number("current_line");
        found.position = context.text("current_file").map(|file| Position { file, line: at });
        fields.put_back("context", context);
    }
    if let Some(mut outputs) = fields.object("outputs") {
        output_rows(found, &mut outputs, saved);
        fields.put_back("outputs", outputs);
    }
    let mut checkpoint = None;
    if let Some(mut point) = fields.object("recovery_point") {
        found.actions_since_checkpoint = point.number("actions_since_checkpoint").unwrap_or(0);
        checkpoint = point.value("checkpoint");
        let _ = point.value("can_resume_from_action");
        fields.put_back("recovery_point", point);
    }
    let _ = fields.value("session");
    found.extension = fields.value(crate::EXTENSION);
    let (mut left, warnings) = fields.rest();
    found.warnings.extend(warnings);
    if let Some(checkpoint) = checkpoint.filter(|_| found.extension.is_none()) {
        left.insert("recovery_point".to_owned(), json!({ "checkpoint": checkpoint }));
    }
    found.kept.insert("state.json".to_owned(), Value::Object(left));
    Ok(())
}

fn output_rows(found: &mut Found, outputs: &mut Fields<'_>, at: Option<Timestamp>) {
    for known in ["spec", "architecture", "release_config", "partial_output"] {
        if let Some(text) = outputs.text(known) {
            found.row(
                List::Outputs,
                json!({ "name": known, "kind": "text", "content": text, "recorded_at": at }),
            );
        }
    }
    for known in ["code_files", "test_files", "review_comments", "optimizations"] {
        let texts = outputs.texts(known);
        if !texts.is_empty() {
            let text = texts.join("\n");
            found.row(
                List::Outputs,
                json!({ "name": known, "kind": "text", "content": text, "recorded_at": at }),
            );
        }
    }
}

fn recovery(
    found: &mut Found,
    file: &str,
    content: Map<String, Value>,
    now: Timestamp,
) -> Result<(), Damage> {
    let (mut fields, interrupted) = own_fields(found, file, content, now, "interrupted_at")?;
    found.interrupted_at = interrupted;
    let why = fields.text("interrupt_reason");
    if let Some(why) = &why
        && !["timeout", "crash", "disconnect", "error"].contains(&why.as_str())
    {
        return Err(Damage::new(file, format!("Invalid interrupt_reason: {}", name(why.clone()))));
    }
    if found.status.as_ref().is_none_or(|(_, status)| *status == Status::Interrupted) {
        found.reason = why.map(|why| Reason { what: line(why), details: None });
    }
    if let Some(mut last) = fields.object("last_known_state") {
        let action = last.text("action");
        found.last_action = found.last_action.take().or(action);
        let agent = last.text("agent");
        found.agent = found.agent.take().or(agent);
        let at = last.number("step").and_then(|at| u32::try_from(at).ok());
        found.step = found.step.or(at);
        let phase = last.text("step_name");
        found.phase = found.phase.take().or(phase);
        fields.put_back("last_known_state", last);
    }
    if let Some(mut git) = fields.object("git_state") {
        let branch = git.text("branch");
        found.branch = found.branch.take().or(branch);
        let _ = (git.value("last_commit"), git.value("uncommitted_changes"));
        fields.put_back("git_state", git);
    }
    for known in ["recovery_options", "recommended", "auto_resume_enabled", crate::EXTENSION] {
        let _ = fields.value(known);
    }
    let (left, warnings) = fields.rest();
    found.warnings.extend(warnings);
    found.kept.insert("recovery.json".to_owned(), Value::Object(left));
    Ok(())
}

/// Going back as the file of its own tells it. The manifest says the same, so it is only heard where that says nothing.
fn rollbacks(
    found: &mut Found,
    file: &str,
    content: Map<String, Value>,
    now: Timestamp,
) -> Result<(), Damage> {
    let mut fields = Fields::new(file, content, now);
    if let Some(session) = fields.text("session_id") {
        own(found, file, session)?;
    }
    let history = fields.list("history");
    if fields.value(crate::EXTENSION).is_some() || history.is_empty() {
        return Ok(());
    }
    found.warnings.extend(fields.rest().1);
    let kept = found.kept.entry("manifest.json").or_insert_with(|| json!({}));
    if let Value::Object(manifest) = kept {
        manifest.entry("rollback_history").or_insert(Value::Array(history));
    }
    Ok(())
}

/// What the manifest lists of a checkpoint.
fn listed_of(found: &Found, id: &str) -> Map<String, Value> {
    let all = found.kept.get("manifest.json").and_then(|manifest| manifest.get("checkpoints")?.as_array());
    let one = all.into_iter().flatten().find(|one| one.get("id").and_then(Value::as_str) == Some(id));
    one.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn checkpoints(found: &mut Found, files: &FileSet, folder: &str, now: Timestamp) -> Result<(), Damage> {
    let mut rows = Vec::new();
    for file in checkpoint_files(files, folder) {
        let Some(content) = files.object(&file)? else { continue };
        let ours = content.get(crate::EXTENSION).is_some();
        let said = content.get("checksum").and_then(Value::as_str).unwrap_or_default().to_owned();
        let matches = said == checksum(&content);
        let mut fields = Fields::new(&file, content, now);
        let id = fields.text("id").ok_or_else(|| Damage::new(&file, "Missing required field: id"))?;
        if let Some(session) = fields.text("session_id") {
            own(found, &file, session)?;
        }
        let at = fields.moment("created_at")?;
        let number = step(&file, fields.number("step_number"))?;
        // Going back marks a checkpoint in its own file, in the manifest, or in both.
        let listed = listed_of(found, &id).get("valid").and_then(Value::as_bool).unwrap_or(true);
        let mut valid = fields.flag("valid").unwrap_or(true) && listed;
        let step_name = fields.text("step_name");
        if !matches && ours {
            valid = false;
            found.warnings.push(format!("{file}: Checksum mismatch: it was changed, and counts as invalid"));
        } else if !matches {
            found.warnings.push(format!(
                "{file}: Checksum mismatch: the documents do not say what it is over, so it proves nothing"
            ));
        }
        let head = fields
            .object("git")
            .map(|mut git| json!({ "commit": git.text("commit_hash"), "branch": git.text("branch") }));
        let row = json!({
            "id": id,
            "name": step_name,
            "reason": "imported",
            "created_at": at.or(found.created_at).unwrap_or(now),
            "phase": step_name,
            "step": number,
            "ready": true,
            "valid": valid,
            "head": head,
            "checksum": said,
        });
        rows.push(row);
    }
    rows.sort_by_key(|row| row["created_at"].as_str().map(ToOwned::to_owned));
    for (index, mut row) in rows.into_iter().enumerate() {
        row["ordinal"] = json!(index + 1);
        found.row(List::Checkpoints, row);
    }
    Ok(())
}
