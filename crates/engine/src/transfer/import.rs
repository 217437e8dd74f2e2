//! A session from a view or an export. An export whose journal is whole is taken in as it is ([`super::journal`]);
//! anything else is a picture of a session, and becomes one that begins with how it was imported.

use std::io::Read as _;
use std::sync::Arc;

use segno_core::CostBudget;
use segno_core::Event;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::TokenBudget;
use segno_core::Uid;
use segno_core::event::ImportedItem;
use segno_core::event::ItemsImported;
use segno_core::event::Maker;
use segno_core::event::Project;
use segno_core::event::SessionImported;
use segno_core::rows::CheckpointRow;
use segno_core::rows::DecisionRow;
use segno_core::rows::OutputRow;
use segno_core::rows::Row;
use segno_core::rows::TaskRow;
use segno_core::rows::ToolRow;
use segno_redact::Redacted;
use segno_store::Create;
use serde_json::Value;

use super::document;
use super::document::ReadError;
use super::exported;
use super::packed::Source;
use crate::Engine;
use crate::Error;
use crate::engine::fresh_key;
use crate::view;

/// How to import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the file comes from, for messages and the record.
    pub source: String,
    /// The project the session works on from now on, if not the one it names.
    pub project: Option<Project>,
    /// Believe the budget that the file claims.
    pub keep_budget: bool,
    /// The budget it gets otherwise.
    pub budget: segno_core::TokenBudget,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The session now.
    pub state: State,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// How many blanks may stand at the beginning of a file.
const NOTHING: u64 = 64 << 10;
/// What the lists of a picture may take in memory.
pub(super) const LISTS_WEIGHT: u64 = 160 << 20;
/// Rows per event: events stay small.
const ROWS: usize = 100;

/// Takes in a view (YAML) or an export (JSON).
pub fn import(engine: &Engine, text: &str, options: &Options) -> Result<Imported, Error> {
    import_from(engine, &Source::text(text), options)
}

/// Takes in a view or an export, compressed or not. What cannot be read is left where it is, and costs no more memory
/// than a session may.
pub fn import_from(engine: &Engine, source: &Source, options: &Options) -> Result<Imported, Error> {
    let corrupted = |details: String| Error::SessionCorrupted { session_id: options.source.clone(), details };
    let mut notices = Vec::new();
    if !is_json(source).map_err(|why| corrupted(why.to_string()))? {
        let text = read_view(source).map_err(corrupted)?;
        let uid = Uid::new(uuid::Uuid::now_v7());
        let read = view::read(&text, engine.now(), uid).map_err(corrupted)?;
        if !read.had_uid {
            notices.push("it has no uid, so importing it twice would make two sessions".to_owned());
        }
        let lists: Vec<_> = read.lists.into_iter().map(|(list, rows)| (list, keyed(list, rows))).collect();
        return picture(engine, read.state, &lists, read.claimed, options, notices);
    }
    let exported = exported::read(engine, source).map_err(|why| match why {
        ReadError::Foreign => Error::NotImportable(format!(
            "{} is no session: it is JSON without the member segno_export",
            options.source
        )),
        ReadError::Form(form) => Error::NotImportable(format!(
            "{} is an export of form {form}, this segno reads form {}",
            options.source,
            document::FORM
        )),
        ReadError::Bad(why) => corrupted(why),
    })?;
    super::check::check(&exported.state, engine.now()).map_err(corrupted)?;
    match exported.journal {
        Ok(journal) => super::journal::restore(engine, source, exported.state, journal, options, notices),
        Err(why) => {
            if let Some(why) = why {
                notices.push(format!("its journal was not taken in: {why}"));
            }
            let lists = exported.lists.map_err(corrupted)?;
            let claimed = (exported.state.budget, exported.state.cost);
            picture(engine, exported.state, &lists, claimed, options, notices)
        }
    }
}

/// A session of another session manager becomes one of ours.
pub(crate) fn take_over(
    engine: &Engine,
    state: State,
    lists: Vec<(List, Vec<Value>)>,
    claimed: (TokenBudget, CostBudget),
    options: &Options,
    mut notices: Vec<String>,
) -> Result<Imported, Error> {
    let mut fit = Vec::new();
    for (list, rows) in lists {
        let count = rows.len();
        let rows: Vec<Value> = rows.into_iter().filter_map(|row| relied_on(list, row).ok()).collect();
        if rows.len() < count {
            notices.push(format!(
                "{} entries of its {} could not be read",
                count - rows.len(),
                list.as_str()
            ));
        }
        fit.push((list, keyed(list, rows)));
    }
    picture(engine, state, &fit, claimed, options, notices)
}

/// A picture of a session becomes a session.
fn picture(
    engine: &Engine,
    mut state: State,
    lists: &[(List, Vec<ImportedItem>)],
    claimed: (TokenBudget, CostBudget),
    options: &Options,
    mut notices: Vec<String>,
) -> Result<Imported, Error> {
    prepare(&mut state, lists, options, claimed, &mut notices);
    super::check::check(&state, engine.now())
        .map_err(|details| Error::SessionCorrupted { session_id: options.source.clone(), details })?;
    make(engine, state, lists, options, notices)
}

/// Whether its first word is that of JSON. What begins with so much nothing is none.
fn is_json(source: &Source) -> std::io::Result<bool> {
    let mut start = Vec::new();
    source.open()?.take(NOTHING).read_to_end(&mut start)?;
    Ok(start.trim_ascii_start().first() == Some(&b'{'))
}

fn read_view(source: &Source) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut reader = source.open().map_err(|why| why.to_string())?.take(view::MOST_BYTES + 1);
    reader.read_to_end(&mut bytes).map_err(|why| why.to_string())?;
    if bytes.len() as u64 > view::MOST_BYTES {
        return Err(format!("it unpacks to more than {} MB", view::MOST_BYTES >> 20));
    }
    let text = String::from_utf8(bytes).map_err(|why| format!("it is not UTF-8 text ({why})"))?;
    // As for exports: many small things take far more memory than they have bytes.
    let weight = text.lines().fold(0, |weight, line| {
        let line = line.trim();
        let braces = line.bytes().filter(|byte| *byte == b'{').count() as u64;
        let commas = line.bytes().filter(|byte| matches!(byte, b',' | b'[')).count() as u64;
        let opens = u64::from(line.starts_with('-')) + u64::from(line.ends_with(':'));
        weight + (braces + opens) * document::OBJECT + (commas + 1) * document::VALUE
    });
    if weight > LISTS_WEIGHT {
        return Err("its lists hold more than a view may".to_owned());
    }
    Ok(text)
}

/// The caps of a session that comes from elsewhere. A file can make them tighter than those of this store, and a hard
/// cap stays one; it can make them wider only if the user says so.
pub(super) fn caps(
    claimed: (TokenBudget, CostBudget),
    options: &Options,
    notices: &mut Vec<String>,
) -> (TokenBudget, CostBudget) {
    let (tokens, cost) = claimed;
    let total = tokens.total_budget.max(1);
    let mut budget = options.budget;
    match (tokens.hard, options.budget.hard) {
        (true, true) if !options.keep_budget => budget.total_budget = total.min(budget.total_budget),
        (true, _) => (budget.total_budget, budget.hard) = (total, true),
        (false, _) if options.keep_budget => budget.total_budget = total,
        (false, _) => {}
    }
    if total != budget.total_budget {
        notices.push(format!(
            "its budget of {total} tokens was not taken over (--keep-budget does); it has {}",
            budget.total_budget
        ));
    }
    // What was used was counted in that way.
    (budget.tokens_used, budget.count) = (tokens.tokens_used, tokens.count);
    let limit = cost.limit_micros.filter(|limit| *limit > 0 && (cost.hard || options.keep_budget));
    let cost = CostBudget {
        used_micros: cost.used_micros,
        limit_micros: limit,
        hard: cost.hard && limit.is_some(),
        ..CostBudget::default()
    };
    (budget, cost)
}

/// What a file says grants nothing here: no driver, no budget, no permission.
fn prepare(
    state: &mut State,
    lists: &[(List, Vec<ImportedItem>)],
    options: &Options,
    claimed: (TokenBudget, CostBudget),
    notices: &mut Vec<String>,
) {
    state.made_by = Maker::Import;
    state.driver = None;
    state.requests.clear();
    (state.budget, state.cost) = caps(claimed, options, notices);
    state.attempt = state.attempt.max(1);
    state.warned = Default::default();
    let open = std::mem::take(&mut state.calls.open);
    state.calls.in_doubt.extend(open);
    if let Some(project) = &options.project {
        state.project = project.clone();
    }
    for (list, items) in lists {
        let count = items.len() as u64;
        let counts = &mut state.counts;
        match list {
            List::History => counts.history = count,
            List::Artifacts => counts.artifacts = counts.artifacts.max(count),
            List::Milestones => counts.milestones = counts.milestones.max(count),
            List::Checkpoints => {
                let newest = rows::<CheckpointRow>(items).map(|row| row.ordinal).max();
                counts.checkpoints = counts.checkpoints.max(newest.unwrap_or(0));
            }
            List::Decisions => {
                let newest = rows::<DecisionRow>(items).map(|row| row.decision).max();
                state.decisions.count = state.decisions.count.max(newest.unwrap_or(0));
                take_heads(state, items);
            }
            List::Errors => state.errors.count = state.errors.count.max(count),
            List::Tasks => take_tasks(state, items),
            List::Outputs => take_outputs(state, items),
            List::Tools => take_calls(state, items),
            List::Runs => counts.runs = counts.runs.max(count),
            List::Files | List::Memory | List::Verifications => {}
        }
    }
}

/// Rows that somebody else made, as far as they can be read.
fn rows<T: Row>(items: &[ImportedItem]) -> impl Iterator<Item = T> {
    items.iter().map(|item| T::read_any(&item.body))
}

/// A view does not tell where each branch of decisions ends; its rows do.
fn take_heads(state: &mut State, items: &[ImportedItem]) {
    if !state.decisions.heads.is_empty() {
        return;
    }
    for row in rows::<DecisionRow>(items).filter(|row| row.decision > 0 && !row.branch.is_empty()) {
        let head = state.decisions.heads.entry(row.branch).or_default();
        *head = row.decision.max(*head);
    }
}

fn take_tasks(state: &mut State, items: &[ImportedItem]) {
    let ended = |word: &str| rows::<TaskRow>(items).filter(|row| row.state == word).count() as u64;
    state.tasks.done = state.tasks.done.max(ended("done"));
    state.tasks.dropped = state.tasks.dropped.max(ended("dropped"));
    for row in rows::<TaskRow>(items).filter(|row| row.task > 0) {
        state.tasks.added = state.tasks.added.max(row.task);
        if row.state == "open" && state.tasks.open.len() < segno_core::limits::OPEN_TASKS {
            let text = row.text.unwrap_or_default();
            state.tasks.open.insert(row.task, text.short(segno_core::limits::NAME));
        }
    }
}

fn take_outputs(state: &mut State, items: &[ImportedItem]) {
    for item in items.iter().take(segno_core::limits::ENTRIES) {
        let row = OutputRow::read_any(&item.body);
        let kind = serde_json::from_value(Value::from(row.kind)).ok();
        let bytes = row.content.map_or(0, |content| content.bytes());
        let mark = segno_core::state::OutputMark { kind: kind.unwrap_or_default(), bytes };
        state.outputs.insert(item.key.clone(), mark);
    }
}

fn take_calls(state: &mut State, items: &[ImportedItem]) {
    if state.calls.total == 0 {
        let count = |word: &str| rows::<ToolRow>(items).filter(|row| row.state == word).count() as u64;
        state.calls.completed = count("completed");
        state.calls.failed = count("failed");
        state.calls.denied = count("denied");
        state.calls.total = state.calls.completed
            + state.calls.failed
            + state.calls.denied
            + state.calls.in_doubt.len() as u64;
    }
}

fn make(
    engine: &Engine,
    state: State,
    lists: &[(List, Vec<ImportedItem>)],
    options: &Options,
    mut notices: Vec<String>,
) -> Result<Imported, Error> {
    let wish = state.session_id;
    let redactor = |event: Event| -> Result<Redacted, Error> {
        engine
            .redactor()
            .record(event)
            .map_err(|why| Error::NotImportable(format!("{}: {why}", options.source)))
    };
    let mut rows = Vec::new();
    for (list, items) in lists {
        // The rows of these have names of their own, and are read in the order of the events that made them.
        let rows_each = match list {
            List::Tools | List::Files | List::Outputs => 1,
            _ => ROWS,
        };
        for items in items.chunks(rows_each) {
            rows.push(redactor(ItemsImported { list: *list, items: items.to_vec() }.into())?);
        }
    }
    let first = {
        let state = Arc::new(state);
        let source = options.source.clone();
        let redactor = engine.redactor();
        move |id: SessionId| {
            let mut state = State::clone(&state);
            let renamed_from = (state.session_id != id).then_some(state.session_id);
            state.session_id = id;
            let event = SessionImported { state: Box::new(state), renamed_from, source: source.clone() };
            let first = redactor
                .record(event.into())
                .map_err(|why| segno_core::Refusal::bad("session", why.to_string()))?;
            Ok(std::iter::once(first).chain(rows.iter().cloned()).collect())
        }
    };
    let create = Create { at: engine.now(), key: fresh_key(), first: Box::new(first), wish, alone_in: None };
    let loaded = engine.store().create(create).map_err(|why| match why {
        segno_store::Error::AlreadyOpen(known) => {
            Error::NotImportable(format!("{} is in this store already, as {known}", options.source))
        }
        other => other.into(),
    })?;
    if loaded.state.session_id != wish {
        notices.push(format!("the name {wish} was taken, so it is {} here", loaded.state.session_id));
    }
    Ok(Imported { state: loaded.state, notices })
}

/// Readers rely on what these rows hold; a row that has less would be an error for ever.
pub(super) fn relied_on(list: List, body: Value) -> Result<Value, serde_json::Error> {
    match list {
        List::History => {
            serde_json::from_value::<view::HistoryRow>(body).and_then(|row| serde_json::to_value(&row))
        }
        List::Artifacts => {
            serde_json::from_value::<view::ArtifactRow>(body).and_then(|row| serde_json::to_value(&row))
        }
        _ => Ok(body),
    }
}

/// Rows of a view have no keys; they get the ones that their content gives them.
fn keyed(list: List, rows: Vec<Value>) -> Vec<ImportedItem> {
    let text = |row: &Value, name: &str| row.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let number = |row: &Value, name: &str| row.get(name).and_then(Value::as_u64).map(|n| format!("{n:020}"));
    rows.into_iter()
        .enumerate()
        .map(|(index, body)| {
            let own = match list {
                List::Tools => text(&body, "call"),
                List::Files => text(&body, "path"),
                List::Outputs => text(&body, "name"),
                List::Tasks => number(&body, "task"),
                List::Decisions => number(&body, "decision"),
                List::Checkpoints => number(&body, "ordinal"),
                List::Runs => text(&body, "run"),
                List::History
                | List::Artifacts
                | List::Errors
                | List::Memory
                | List::Milestones
                | List::Verifications => None,
            };
            // Imported rows of a log come before everything that happens here.
            row(own.unwrap_or_else(|| format!("{:020}", 0) + &format!(".{index:09}")), body)
        })
        .collect()
}

pub(super) fn row(key: String, body: Value) -> ImportedItem {
    let body = match flatten(body) {
        body @ Value::Object(_) => body,
        other => serde_json::json!({ "value": other }),
    };
    ImportedItem { key, body }
}

/// A text that was set aside elsewhere is not in this store: its beginning is kept, and that it was cut is said.
fn flatten(value: Value) -> Value {
    match value {
        Value::Object(members) if members.contains_key(segno_core::text::BLOB_MEMBER) => {
            let excerpt = members.get("excerpt").and_then(Value::as_str).unwrap_or("");
            let bytes = members.get("bytes").and_then(Value::as_u64).unwrap_or(0);
            Value::String(format!("{excerpt}… [{bytes} bytes, of which the import had only the beginning]"))
        }
        Value::Object(members) => members.into_iter().map(|(name, member)| (name, flatten(member))).collect(),
        Value::Array(items) => items.into_iter().map(flatten).collect(),
        other => other,
    }
}
