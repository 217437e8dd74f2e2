//! The files of ultra-create into sessions.

use std::collections::BTreeMap;

use segno_core::List;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::Project;
use segno_core::state::AgentMark;
use segno_core::state::OpenCall;
use segno_core::text::shorten;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::CURRENT;
use super::word;
use crate::family::Family;
use crate::fields::Fields;
use crate::files::Damage;
use crate::files::FileSet;
use crate::files::object;
use crate::found::Found;
use crate::found::Imported;
use crate::found::line;
use crate::found::name;
use crate::packed::gunzip;

/// After so many seconds without a change an active session was left by whoever worked on it.
const LEFT: i64 = 3_600;

/// Reads the present session and the archived ones.
///
/// # Errors
/// If the only session is damaged.
pub fn read(files: &FileSet, now: Timestamp) -> Result<Imported, Damage> {
    let mut imported = Imported { family: Family::UltraCreate, sessions: Vec::new(), warnings: Vec::new() };
    let (files, damaged) = unpacked(files);
    let is_session =
        |name: &&str| *name == CURRENT || (name.starts_with("session_") && name.ends_with(".json"));
    let names: Vec<&str> = files.names().filter(is_session).collect();
    let mut damages = damaged;
    let mut all: Vec<(Found, &str)> = Vec::new();
    // The present one first: its archive says the same.
    let ordered =
        names.iter().filter(|name| **name == CURRENT).chain(names.iter().filter(|name| **name != CURRENT));
    for file in ordered {
        let read =
            object(file, files.get(file).unwrap_or_default()).and_then(|members| session(file, members, now));
        match read {
            Ok(found) if all.iter().any(|(known, _)| known.id == found.id) => {}
            Ok(found) => all.push((found, file)),
            Err(damage) => damages.push(damage),
        }
    }
    if all.is_empty() {
        return Err(damages
            .into_iter()
            .next()
            .unwrap_or_else(|| Damage::new(CURRENT, "Missing file: without it there is no session")));
    }
    imported.warnings.extend(damages.into_iter().map(|damage| format!("not imported: {damage}")));
    if !all.iter().any(|(_, file)| *file == CURRENT)
        && let Some((found, _)) = all.first_mut()
    {
        found.missing.push(CURRENT.to_owned());
    }
    checkpoints(&files, &mut all, &mut imported.warnings, now);
    imported.sessions =
        all.into_iter().map(|(found, _)| found.session(Family::UltraCreate, word, now)).collect();
    Ok(imported)
}

/// Every file as it is without compression; of two copies the plain one counts.
fn unpacked(files: &FileSet) -> (FileSet, Vec<Damage>) {
    let (mut plain, mut damages) = (FileSet::default(), Vec::new());
    for (name, bytes) in files.iter() {
        match name.strip_suffix(".gz") {
            None => plain.insert(name, bytes),
            Some(inner) if files.get(inner).is_some() => {}
            Some(inner) => match gunzip(name, bytes) {
                Ok(bytes) => plain.insert(inner, bytes),
                Err(damage) => damages.push(damage),
            },
        }
    }
    (plain, damages)
}

fn session(file: &str, members: Map<String, Value>, now: Timestamp) -> Result<Found, Damage> {
    for field in ["session_id", "created_at", "updated_at", "status"] {
        if !members.contains_key(field) {
            return Err(Damage::new(file, format!("Missing required field: {field}")));
        }
    }
    let mut found = Found::default();
    let is_foreign = !members.contains_key(crate::EXTENSION);
    let mut fields = Fields::new(file, members, now);
    found.id = fields.text("session_id").unwrap_or_default();
    if found.id.is_empty() {
        return Err(Damage::new(file, "Invalid session_id: it is empty"));
    }
    found.created_at = fields.moment("created_at")?;
    found.updated_at = fields.moment("updated_at")?;
    if found.updated_at < found.created_at {
        return Err(Damage::new(file, "updated_at is before created_at"));
    }
    let said = fields.text("status").unwrap_or_default();
    let status = match said.as_str() {
        // Nobody has worked on it for long: whoever did is gone.
        "active" if is_foreign && found.updated_at.is_some_and(|at| at.plus_seconds(LEFT) < now) => {
            Status::Interrupted
        }
        "active" => Status::Active,
        "paused" => Status::Paused,
        "completed" => Status::Completed,
        "crashed" => Status::Interrupted,
        _ => return Err(Damage::new(file, format!("Invalid status: {}", name(said)))),
    };
    found.status = Some((said, status));
    let mut kind = None;
    if let Some(mut project) = fields.object("project") {
        kind = project.text("type").map(name).filter(|kind| !kind.is_empty());
        found.project = Some(Project {
            path: line(project.text("path").unwrap_or_default()),
            name: line(project.text("name").unwrap_or_default()),
            kind: kind.clone(),
        });
        fields.put_back("project", project);
    }
    if let Some(mut context) = fields.object("context") {
        found.intent = context.text("user_intent").filter(|intent| !intent.is_empty());
        found.topic = found.intent.as_ref().map(|intent| shorten(&line(intent.clone()), 80));
        found.phase = context.text("current_phase").filter(|phase| !phase.is_empty());
        found.progress = context.number("progress_percent").and_then(|n| u8::try_from(n).ok());
        if found.progress.is_some_and(|percent| percent > 100) {
            return Err(Damage::new(file, "Invalid context.progress_percent: it is more than 100"));
        }
        fields.put_back("context", context);
    }
    agents(&mut found, &mut fields);
    tools(&mut found, &mut fields);
    if let Some(mut decisions) = fields.object("decisions") {
        for (index, mut node) in decisions.objects("tree").into_iter().enumerate() {
            let number = node.number("id").unwrap_or(index as u64 + 1);
            let choice = node.text("decision").or_else(|| node.text("choice"));
            let row = json!({
                "decision": number,
                "parent": node.number("parent"),
                "branch": node.text("branch").unwrap_or_else(|| "main".to_owned()),
                "question": node.text("question").or_else(|| node.text("type")),
                "choice": choice,
                "reason": node.text("reason"),
                "alternatives": node.texts("alternatives"),
                "decided_at": node.some_moment("timestamp"),
            });
            found.row(List::Decisions, row);
            decisions.hear(node);
        }
        let _ = decisions.text("current_branch");
        fields.put_back("decisions", decisions);
    }
    memory(&mut found, &mut fields);
    if let Some(mut files) = fields.object("files") {
        for change in ["created", "modified", "deleted"] {
            for path in files.texts(change) {
                found.row(
                    List::Files,
                    json!({ "path": path, "change": change, "changed_at": found.updated_at }),
                );
            }
        }
        fields.put_back("files", files);
    }
    if let Some(mut errors) = fields.object("errors") {
        found.error_count = errors.number("count").unwrap_or(0);
        for mut entry in errors.objects("log") {
            let message = entry.text("message").or_else(|| entry.text("error"));
            let row = json!({
                "timestamp": entry.some_moment("timestamp").or(found.updated_at),
                "message": message,
                "phase": entry.text("phase"),
            });
            found.row(List::Errors, row);
            errors.hear(entry);
        }
        fields.put_back("errors", errors);
    }
    for (index, mut checkpoint) in fields.objects("checkpoints").into_iter().enumerate() {
        let row = checkpoint_row(&mut checkpoint, index as u64 + 1, found.updated_at.unwrap_or(now));
        found.row(List::Checkpoints, row);
        fields.hear(checkpoint);
    }
    found.extension = fields.value(crate::EXTENSION);
    let (mut left, warnings) = fields.rest();
    found.warnings.extend(warnings);
    // A session works in the project of whoever takes it over; what kind of one it was is known only from here.
    if let Some(kind) = kind.filter(|_| found.extension.is_none())
        && let Some(project) = left.entry("project").or_insert_with(|| json!({})).as_object_mut()
    {
        project.insert("type".to_owned(), json!(kind));
    }
    found.kept.insert(CURRENT.to_owned(), Value::Object(left));
    Ok(found)
}

fn agents(found: &mut Found, fields: &mut Fields<'_>) {
    let Some(mut agents) = fields.object("agents") else { return };
    let mut all: BTreeMap<String, AgentMark> = BTreeMap::new();
    for agent in agents.texts("active") {
        found.agent.get_or_insert_with(|| agent.clone());
        all.entry(agent).or_default().active = true;
    }
    if let Some(Value::Object(states)) = agents.value("states") {
        for (agent, state) in states {
            let empty = state.as_object().is_some_and(Map::is_empty);
            all.entry(agent).or_default().state = if empty { Value::Null } else { state };
        }
    }
    found.agents = all;
    fields.put_back("agents", agents);
}

fn tools(found: &mut Found, fields: &mut Fields<'_>) {
    let Some(mut tools) = fields.object("tools") else { return };
    for (index, mut call) in tools.objects("history").into_iter().enumerate() {
        let at = call.some_moment("timestamp").or(found.updated_at);
        let row = json!({
            "call": call.text("id").unwrap_or_else(|| format!("imported-{}", index + 1)),
            "tool": call.text("tool").unwrap_or_default(),
            "input": call.value("input"),
            "state": call.text("state").unwrap_or_else(|| "completed".to_owned()),
            "started_at": at,
            "ended_at": at,
            "output": call.value("output").map(|output| match output {
                Value::String(text) => text,
                other => other.to_string(),
            }),
        });
        found.row(List::Tools, row);
        tools.hear(call);
    }
    for (index, mut call) in tools.objects("pending").into_iter().enumerate() {
        let id = name(call.text("id").unwrap_or_else(|| format!("pending-{}", index + 1)));
        let input = call.value("input").map_or_else(String::new, |input| match input {
            Value::String(text) => text,
            other => other.to_string(),
        });
        let open = OpenCall {
            tool: name(call.text("tool").unwrap_or_default()),
            seq: 1,
            at: call.some_moment("timestamp").or(found.updated_at).unwrap_or(Timestamp::EPOCH),
            write_ahead: false,
            input: line(input),
        };
        found.in_doubt.insert(id, open);
        tools.hear(call);
    }
    fields.put_back("tools", tools);
}

fn memory(found: &mut Found, fields: &mut Fields<'_>) {
    let Some(mut memory) = fields.object("memory") else { return };
    for (member, usage, source) in
        [("hindsight_queries", "query", "hindsight"), ("context7_lookups", "lookup", "context7")]
    {
        for asked in memory.list(member) {
            let text = |name: &str| asked.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
            let whole = asked.as_str().map(ToOwned::to_owned);
            let row = json!({
                "timestamp": text("timestamp").and_then(|at| crate::fields::moment(&at)).or(found.updated_at),
                "usage": usage,
                "source": text("source").unwrap_or_else(|| source.to_owned()),
                "query": text("query").or_else(|| text("library")).or(whole).unwrap_or_else(|| asked.to_string()),
                "result": text("result"),
            });
            found.row(List::Memory, row);
        }
    }
    if let Some(Value::Object(cache)) = memory.value("local_cache") {
        found.cache = cache.into_iter().collect();
    }
    fields.put_back("memory", memory);
}

fn checkpoint_row(checkpoint: &mut Fields<'_>, ordinal: u64, otherwise: Timestamp) -> Value {
    json!({
        "id": checkpoint.text("id").unwrap_or_default(),
        "ordinal": ordinal,
        "name": "imported",
        "reason": checkpoint.text("reason").unwrap_or_default(),
        "created_at": checkpoint.some_moment("timestamp").unwrap_or(otherwise),
        "tool_count": checkpoint.number("tool_count"),
        "progress": checkpoint.number("progress").filter(|percent| *percent <= 100),
        "ready": true,
        "valid": true,
    })
}

/// Whether a session lists a checkpoint.
fn lists(found: &Found, row: &Value) -> bool {
    found.rows.get(&List::Checkpoints).is_some_and(|rows| rows.iter().any(|known| known["id"] == row["id"]))
}

/// Checkpoints in files of their own that their session does not list. One that does not say whose it is belongs to the
/// session in whose time it was made.
fn checkpoints(files: &FileSet, all: &mut [(Found, &str)], warnings: &mut Vec<String>, now: Timestamp) {
    for file in files.names().filter(|name| name.starts_with("checkpoint_") && name.ends_with(".json")) {
        let members = match files.object(file) {
            Ok(Some(members)) => members,
            Ok(None) => continue,
            Err(damage) => {
                warnings.push(format!("not imported: {damage}"));
                continue;
            }
        };
        let mut fields = Fields::new(file, members, now);
        let owner = fields.text("session_id");
        let row = checkpoint_row(&mut fields, 0, now);
        let at = row["created_at"].as_str().and_then(|at| at.parse::<Timestamp>().ok()).unwrap_or(now);
        let of = all.iter_mut().map(|(found, _)| found).find(|found| match &owner {
            Some(owner) => *owner == found.id,
            None if lists(found, &row) => true,
            None => {
                found.created_at.is_some_and(|created| created <= at)
                    && found.updated_at.is_some_and(|end| at <= end)
            }
        });
        let Some(found) = of else {
            warnings.push(format!("{file}: it does not say which session it belongs to; left out"));
            continue;
        };
        let rows = found.rows.entry(List::Checkpoints).or_default();
        if rows.iter().all(|known| known["id"] != row["id"]) {
            let mut row = row;
            row["ordinal"] = json!(rows.len() + 1);
            rows.push(row);
        }
    }
}
