//! What a view shows, and in which order.

use std::io::Write;

use segno_core::List;
use segno_core::State;
use segno_layouts::node;
use segno_layouts::node::Node;
use segno_store::ItemPosition;
use segno_store::Page;
use serde_json::Value;
use serde_json::json;

use crate::Engine;
use crate::Error;

/// How many rows are read at once.
const PAGE: usize = 200;

/// Where a view goes, and what is said if it cannot.
pub(crate) struct Sink<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) fail: &'a dyn Fn(std::io::Error) -> Error,
}

impl Sink<'_> {
    fn put(&mut self, text: &str) -> Result<(), Error> {
        self.out.write_all(text.as_bytes()).map_err(self.fail)
    }
}

/// Writes the view of a session as YAML, with at most so many items of each list. A page of a list is read and written
/// before the next one is, so that a long session takes no more memory than a short one.
pub(crate) fn yaml(engine: &Engine, state: &State, most: usize, sink: &mut Sink<'_>) -> Result<(), Error> {
    let mut first = head(state);
    first.put("save_trigger", json!(engine.save_trigger(state)?));
    sink.put(&node::to_yaml(&Node::Map(first.0)))?;
    let mut totals = Vec::new();
    for list in List::ALL {
        totals.push((list.as_str(), json!(rows(engine, state, list, most, sink)?)));
    }
    let mut last = Members::default();
    last.put_members("totals", &totals);
    sink.put(&node::to_yaml(&Node::Map(last.0)))
}

/// Writes the newest rows of a list in the order they happened, and tells how many there are in all.
fn rows(engine: &Engine, state: &State, list: List, most: usize, sink: &mut Sink<'_>) -> Result<u64, Error> {
    let (store, session) = (engine.store(), state.session_id);
    let newest = store.items(session, list, &Page::newest(most.min(PAGE)))?;
    let shown = newest.total.min(most as u64);
    // The document's own lists are shown even when empty.
    if shown > 0 || matches!(list, List::History | List::Artifacts) {
        sink.put(&node::name_of_rows(list.as_str(), shown == 0))?;
    }
    let mut put = |body: Value| sink.put(&node::row(&Node::from(body)));
    if newest.items.len() as u64 == shown {
        newest.items.into_iter().rev().try_for_each(|item| put(item.body))?;
        return Ok(newest.total);
    }
    let mut after = match newest.total > shown {
        true => store.position(session, list, most)?,
        false => None,
    };
    let mut left = usize::try_from(shown).unwrap_or(most);
    while left > 0 {
        let items = store.page(session, list, &Page { after, limit: left.min(PAGE), newest_first: false })?;
        left -= items.len();
        // Rows may go meanwhile: the next view has the others.
        let Some(last) = items.last() else { break };
        after = Some(ItemPosition { seq: last.seq, key: last.key.clone() });
        items.into_iter().try_for_each(|item| put(item.body))?;
    }
    Ok(newest.total)
}

/// What stands before the lists.
fn head(state: &State) -> Members {
    let mut doc = Members::default();
    doc.put("session_id", json!(state.session_id));
    doc.put("uid", json!(state.uid));
    doc.put("topic", json!(state.topic));
    doc.put("state", json!(state.status));
    doc.put_some("reason", json!(state.reason));
    doc.put("workflow_type", json!(state.workflow.as_ref().map(|workflow| &workflow.name)));
    doc.put_some("phases", json!(state.workflow.as_ref().map(|w| &w.phases).filter(|p| !p.is_empty())));
    doc.put("current_phase", json!(state.phase));
    doc.put_some("step", json!(state.step));
    doc.put_some("of", json!(state.of));
    doc.put("attempt_number", json!(state.attempt));
    doc.put("iteration", json!(state.iteration));
    doc.put_some("phases_completed", non_empty(json!(state.phases_completed)));
    doc.put_some("verification", non_empty(json!(state.verification)));
    doc.put_some("progress_percent", json!(state.progress()));
    doc.put("created_at", json!(state.created_at));
    doc.put("updated_at", json!(state.updated_at));
    doc.put("completed_at", json!(state.completed_at));
    doc.put_some("intent", json!(state.intent));
    doc.put_some("continues", json!(state.continues));
    doc.put_members(
        "project",
        &[
            ("name", json!(state.project.name)),
            ("path", json!(state.project.path)),
            ("type", json!(state.project.kind)),
        ],
    );
    let budget = &state.budget;
    doc.put_members(
        "token_budget",
        &[
            ("total_budget", json!(budget.total_budget)),
            ("tokens_used", json!(budget.tokens_used)),
            ("tokens_remaining", json!(budget.tokens_remaining())),
            ("utilization_percent", json!(round(budget.utilization_percent()))),
            ("warn_percent", json!(budget.warn_percent)),
            ("hard", json!(budget.hard)),
            ("over_budget", json!(budget.is_over())),
        ],
    );
    doc.put_some("tokens_by_kind", non_empty(json!(state.tokens)));
    doc.put_members(
        "cost",
        &[
            ("used_micro_dollars", json!(state.cost.used_micros)),
            ("limit_micro_dollars", json!(state.cost.limit_micros)),
            ("hard", json!(state.cost.hard)),
        ],
    );
    doc.put_some("metrics", non_empty(json!(state.metrics)));
    doc.put_some("phase_metrics", non_empty(json!(state.phase_metrics)));
    doc.put_some("current_agent", json!(state.agent));
    doc.put_some("agents", non_empty(json!(state.agents)));
    doc.put_some("current_file", json!(state.position.as_ref().map(|position| &position.file)));
    doc.put_some("current_line", json!(state.position.as_ref().and_then(|position| position.line)));
    doc.put_some("last_action", json!(state.last_action));
    doc.put_some("milestone", json!(state.milestone));
    doc.put_some("breakpoint", json!(state.breakpoint));
    doc.put_some("pending_tasks", non_empty(json!(state.tasks.open)));
    doc.put_some(
        "decision_branch",
        json!(Some(&state.decisions.branch).filter(|_| state.decisions.count > 0)),
    );
    doc.put_some("pending_calls", non_empty(json!(state.calls.open)));
    doc.put_some("calls_in_doubt", non_empty(json!(state.calls.in_doubt)));
    doc.put_some("memory_cache", non_empty(json!(state.cache)));
    doc.put_some("workflow_state", json!(state.workflow_state));
    doc.put_some("current_checkpoint", json!(state.checkpoint.as_ref().map(|mark| &mark.id)));
    doc.put_some("work_file", json!(state.file));
    doc.put_some("recovery", json!(state.recovery));
    doc.put("actions", json!(state.actions));
    doc.put("actions_since_checkpoint", json!(state.actions_since_checkpoint));
    doc.put("journal_seq", json!(state.seq));
    doc
}

#[derive(Default)]
struct Members(Vec<(String, Node)>);

impl Members {
    fn put(&mut self, name: &str, value: Value) {
        self.0.push((name.to_owned(), Node::from(value)));
    }

    fn put_some(&mut self, name: &str, value: Value) {
        if !value.is_null() {
            self.put(name, value);
        }
    }

    fn put_members(&mut self, name: &str, members: &[(&str, Value)]) {
        let shown = members.iter().filter(|(_, value)| !value.is_null());
        let node =
            Node::Map(shown.map(|(name, value)| ((*name).to_owned(), Node::from(value.clone()))).collect());
        self.0.push((name.to_owned(), node));
    }
}

fn non_empty(value: Value) -> Value {
    match &value {
        Value::Object(members) if members.is_empty() => Value::Null,
        Value::Array(items) if items.is_empty() => Value::Null,
        _ => value,
    }
}

fn round(percent: f64) -> f64 {
    (percent * 10.0).round() / 10.0
}
