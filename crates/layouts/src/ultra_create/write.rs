//! A session as the files of ultra-create.

use segno_core::Status;
use segno_core::Timestamp;
use segno_core::rows::CheckpointRow;
use segno_core::rows::DecisionRow;
use segno_core::rows::ErrorRow;
use segno_core::rows::FileRow;
use segno_core::rows::MemoryRow;
use segno_core::rows::ToolRow;
use segno_core::text::shorten;
use serde_json::Value;
use serde_json::json;

use super::CURRENT;
use super::wire;
use super::word;
use crate::family::Family;
use crate::files::FileSet;
use crate::packed::gzip;
use crate::snapshot::Snapshot;

/// How much of what a tool was given and put out is shown: its configuration leaves out what is large.
const EXCERPT: usize = 500;
/// The same where its configuration does not leave that out.
const LARGE: usize = 20_000;

/// The files: checkpoints first, then the archive of a session that has ended, the present one last; each with its
/// compressed copy before it, so that whoever finds one finds no older other one.
pub fn write(snapshot: &Snapshot<'_>, existing: &FileSet) -> Vec<(String, Vec<u8>)> {
    let id = snapshot.name(Family::UltraCreate);
    let mut files = Vec::new();
    let checkpoints = checkpoints(snapshot);
    for checkpoint in with_files(snapshot, &checkpoints) {
        let name = checkpoint.file_name();
        let file = wire::CheckpointFile { checkpoint: checkpoint.clone(), session_id: id.clone() };
        files.push(snapshot.json((Family::UltraCreate, &name), &file, existing, &[]));
    }
    let inner = ["project", "context", "agents", "tools", "decisions", "memory", "files", "errors"];
    let present =
        snapshot.json((Family::UltraCreate, CURRENT), &session(snapshot, &id, checkpoints), existing, &inner);
    let packed = snapshot.ultra_create.compression.then(|| gzip(&present.1));
    for name in whole_sessions(snapshot, &id) {
        files.extend(packed.clone().map(|packed| (format!("{name}.gz"), packed)));
        files.push((name, present.1.clone()));
    }
    files
}

/// The names of the files that [`write()`] makes, without their content.
pub fn file_names(snapshot: &Snapshot<'_>) -> Vec<String> {
    let id = snapshot.name(Family::UltraCreate);
    let checkpoints = checkpoints(snapshot);
    let mut names: Vec<String> =
        with_files(snapshot, &checkpoints).iter().map(wire::Checkpoint::file_name).collect();
    for name in whole_sessions(snapshot, &id) {
        names.extend(snapshot.ultra_create.compression.then(|| format!("{name}.gz")));
        names.push(name);
    }
    names
}

/// The files that hold the whole session.
fn whole_sessions(snapshot: &Snapshot<'_>, id: &str) -> Vec<String> {
    let archive = snapshot.state.status.is_terminal().then(|| format!("session_{id}.json"));
    archive.into_iter().chain([CURRENT.to_owned()]).collect()
}

/// The checkpoints that have files of their own: the newest.
fn with_files<'a>(snapshot: &Snapshot<'_>, checkpoints: &'a [wire::Checkpoint]) -> &'a [wire::Checkpoint] {
    &checkpoints[checkpoints.len().saturating_sub(kept(snapshot))..]
}

/// How many checkpoints have files of their own, as the configuration says.
fn kept(snapshot: &Snapshot<'_>) -> usize {
    let config = &snapshot.ultra_create.checkpoints;
    match snapshot.state.status {
        Status::Completed => config.keep_on_success,
        Status::Aborted | Status::Failed => config.keep_on_failure,
        Status::Active | Status::Paused | Status::Interrupted | Status::Halted => config.max,
    }
}

/// How much of a text is shown.
fn excerpt(snapshot: &Snapshot<'_>) -> usize {
    if snapshot.ultra_create.cut_large { EXCERPT } else { LARGE }
}

fn session(snapshot: &Snapshot<'_>, id: &str, checkpoints: Vec<wire::Checkpoint>) -> wire::Session {
    let state = snapshot.state;
    let include = &snapshot.ultra_create.include;
    let files: Vec<FileRow> = if include.file_changes { snapshot.rows() } else { Vec::new() };
    let errors: Vec<ErrorRow> = if include.error_log { snapshot.rows() } else { Vec::new() };
    let changed =
        |change: &str| files.iter().filter(|row| row.change == change).map(|row| row.path.clone()).collect();
    wire::Session {
        session_id: id.to_owned(),
        created_at: state.created_at,
        updated_at: state.updated_at,
        status: word(state.status),
        project: wire::Project {
            path: state.project.path.clone(),
            name: state.project.name.clone(),
            kind: state.project.kind.clone().or_else(|| came_kind(snapshot)).unwrap_or_default(),
        },
        context: wire::Context {
            user_intent: state
                .intent
                .clone()
                .or_else(|| state.topic.clone())
                .filter(|_| include.conversation_context)
                .unwrap_or_default(),
            current_phase: state.phase.clone().unwrap_or_default(),
            progress_percent: state.progress().unwrap_or(0),
        },
        agents: wire::Agents {
            active: state
                .agents
                .iter()
                .filter(|(_, mark)| mark.active && !state.status.is_terminal())
                .map(|(name, _)| name.clone())
                .collect(),
            states: state
                .agents
                .iter()
                .filter(|_| include.agent_states)
                .map(|(name, mark)| {
                    (name.clone(), if mark.state.is_null() { json!({}) } else { mark.state.clone() })
                })
                .collect(),
        },
        tools: tools(snapshot),
        decisions: decisions(snapshot),
        memory: memory(snapshot),
        files: wire::Files {
            created: changed("created"),
            modified: changed("modified"),
            deleted: changed("deleted"),
        },
        errors: wire::Errors {
            count: state.errors.count,
            log: errors
                .into_iter()
                .map(|row| wire::ErrorEntry {
                    message: row.message.unwrap_or_default().short(excerpt(snapshot)),
                    phase: row.phase,
                    timestamp: row.timestamp,
                })
                .collect(),
        },
        checkpoints,
        segno: snapshot.extension(),
    }
}

/// The kind of project that the session came with.
fn came_kind(snapshot: &Snapshot<'_>) -> Option<String> {
    let project = snapshot.carried_file(Family::UltraCreate, CURRENT)?.get("project")?;
    project.get("type")?.as_str().map(ToOwned::to_owned)
}

/// A text that is a JSON object or list as such.
fn unfolded(text: &str, most: usize) -> Value {
    let is_folded = text.starts_with('{') || text.starts_with('[');
    let folded = is_folded.then(|| serde_json::from_str(text).ok()).flatten();
    folded.unwrap_or_else(|| json!(shorten(text, most)))
}

fn tools(snapshot: &Snapshot<'_>) -> wire::Tools {
    let state = snapshot.state;
    let most = excerpt(snapshot);
    let rows: Vec<ToolRow> =
        if snapshot.ultra_create.include.tool_history { snapshot.rows() } else { Vec::new() };
    let call = |row: ToolRow| wire::ToolCall {
        timestamp: row.started_at.or(row.ended_at).unwrap_or(state.created_at),
        input: row.input.map_or(Value::Null, |input| short(input, most)),
        output: row.output.map(|output| output.short(most)),
        tool: row.tool,
        id: row.call,
        state: row.state,
    };
    let history: Vec<wire::ToolCall> = rows.into_iter().filter(|row| row.state != "open").map(call).collect();
    // Of a call that came with the session nobody knows the end; it is in no list of ours.
    let in_doubt = state.calls.in_doubt.iter().filter(|(id, _)| history.iter().all(|call| call.id != **id));
    let open = state.calls.open.iter().map(|call| (call, "open"));
    let pending =
        open.chain(in_doubt.map(|call| (call, "in_doubt"))).map(|((id, open), how)| wire::ToolCall {
            tool: open.tool.clone(),
            input: unfolded(&open.input, most),
            output: None,
            timestamp: open.at,
            id: id.clone(),
            state: how.to_owned(),
        });
    let pending: Vec<wire::ToolCall> = pending.collect();
    wire::Tools { history, pending }
}

/// Input that is not long: texts in it are cut.
fn short(value: Value, most: usize) -> Value {
    match value {
        Value::String(text) => json!(shorten(&text, most)),
        Value::Array(items) => items.into_iter().map(|item| short(item, most)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (name, short(member, most))).collect()
        }
        other => other,
    }
}

fn decisions(snapshot: &Snapshot<'_>) -> wire::Decisions {
    let included = snapshot.ultra_create.include.decision_tree;
    let rows: Vec<DecisionRow> = if included { snapshot.rows() } else { Vec::new() };
    let most = excerpt(snapshot);
    let text = |text: Option<segno_core::Text>| text.map(|text| text.short(most));
    let tree = rows.into_iter().map(|row| wire::Decision {
        id: row.decision,
        parent: row.parent,
        branch: row.branch,
        question: text(row.question),
        decision: text(row.choice),
        reason: text(row.reason),
        alternatives: row.alternatives.into_iter().map(|one| one.short(most)).collect(),
        timestamp: row.decided_at,
    });
    wire::Decisions { tree: tree.collect(), current_branch: snapshot.state.decisions.branch.clone() }
}

fn memory(snapshot: &Snapshot<'_>) -> wire::Memory {
    let included = snapshot.ultra_create.include.memory_snapshots;
    let rows: Vec<MemoryRow> = if included { snapshot.rows() } else { Vec::new() };
    let most = excerpt(snapshot);
    let of = |lookups: bool| {
        let rows = rows.iter().filter(|row| (row.usage == "lookup") == lookups);
        rows.map(|row| wire::Asked {
            query: row.query.as_ref().map(|query| unfolded(&query.short(most), most)),
            source: row.source.clone(),
            result: row.result.as_ref().map(|result| result.short(most)),
            timestamp: row.timestamp,
        })
        .collect()
    };
    wire::Memory {
        hindsight_queries: of(false),
        context7_lookups: of(true),
        local_cache: if included { snapshot.state.cache.clone() } else { Default::default() },
    }
}

fn checkpoints(snapshot: &Snapshot<'_>) -> Vec<wire::Checkpoint> {
    let config = &snapshot.ultra_create;
    let shown = |row: &CheckpointRow| row.ready && row.valid && !row.aside && config.shows(&row.reason);
    let rows = snapshot.rows::<CheckpointRow>().into_iter().filter(shown);
    let mut last = Timestamp::EPOCH;
    rows.map(|row| {
        // Two of one millisecond would be one file.
        last = row.created_at.max(Timestamp::from_micros(last.as_micros() + 1_000));
        wire::Checkpoint {
            id: format!("checkpoint_{}", last.as_micros() / 1_000),
            reason: match row.reason.as_str() {
                "risky" => "pre_risky".to_owned(),
                other => other.to_owned(),
            },
            timestamp: row.created_at,
            tool_count: row.tool_count.unwrap_or(0),
            progress: row.progress.unwrap_or(0),
        }
    })
    .collect()
}
