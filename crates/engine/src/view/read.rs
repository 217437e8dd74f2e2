//! Reading a view that somebody wants imported. It comes from a project, so nothing in it is trusted.

use std::collections::BTreeMap;

use segno_core::CostBudget;
use segno_core::List;
use segno_core::Mark;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::TokenBudget;
use segno_core::TokenUse;
use segno_core::Uid;
use segno_core::event::Change;
use segno_core::event::Maker;
use segno_core::event::Metric;
use segno_core::event::Project;
use segno_core::event::SessionCreated;
use segno_core::event::Verdict;
use segno_core::event::Workflow;
use segno_core::state::AgentMark;
use segno_core::state::Breakpoint;
use segno_core::state::OpenCall;
use segno_core::state::Reason;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde_json::Value;

use crate::transfer::check::AHEAD_SECONDS;

/// A view larger than this is not read.
pub const MOST_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Deserialize)]
struct Shown {
    session_id: SessionId,
    uid: Option<Uid>,
    topic: Option<String>,
    #[serde(deserialize_with = "status")]
    state: Status,
    reason: Option<Reason>,
    workflow_type: Option<String>,
    #[serde(default)]
    phases: Vec<String>,
    current_phase: Option<String>,
    step: Option<u32>,
    of: Option<u32>,
    attempt_number: u64,
    #[serde(default)]
    iteration: u64,
    #[serde(default)]
    phases_completed: Vec<String>,
    #[serde(default)]
    verification: BTreeMap<String, Verdict>,
    progress_percent: Option<u8>,
    #[serde(deserialize_with = "moment")]
    created_at: Timestamp,
    #[serde(deserialize_with = "moment")]
    updated_at: Timestamp,
    #[serde(default, deserialize_with = "maybe_moment")]
    completed_at: Option<Timestamp>,
    intent: Option<String>,
    continues: Option<SessionId>,
    project: Option<ShownProject>,
    token_budget: ShownBudget,
    #[serde(default)]
    tokens_by_kind: TokenUse,
    cost: Option<ShownCost>,
    #[serde(default)]
    metrics: BTreeMap<String, Metric>,
    #[serde(default)]
    phase_metrics: BTreeMap<String, BTreeMap<String, Metric>>,
    current_agent: Option<String>,
    #[serde(default)]
    agents: BTreeMap<String, AgentMark>,
    current_file: Option<String>,
    current_line: Option<u64>,
    last_action: Option<String>,
    milestone: Option<String>,
    breakpoint: Option<Breakpoint>,
    decision_branch: Option<String>,
    #[serde(default)]
    pending_calls: BTreeMap<String, OpenCall>,
    #[serde(default)]
    calls_in_doubt: BTreeMap<String, OpenCall>,
    #[serde(default)]
    memory_cache: BTreeMap<String, Value>,
    workflow_state: Option<Value>,
    #[serde(default)]
    actions_since_checkpoint: u64,
    #[serde(default)]
    actions: u64,
    work_file: Option<String>,
    recovery: Option<Box<segno_core::state::RecoveryMark>>,
    artifacts: Vec<ArtifactRow>,
    history: Vec<HistoryRow>,
    #[serde(default)]
    outputs: Vec<Value>,
    #[serde(default)]
    tasks: Vec<Value>,
    #[serde(default)]
    decisions: Vec<Value>,
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default)]
    files: Vec<Value>,
    #[serde(default)]
    errors: Vec<Value>,
    #[serde(default)]
    memory: Vec<Value>,
    #[serde(default)]
    milestones: Vec<Value>,
    #[serde(default)]
    checkpoints: Vec<Value>,
    #[serde(default)]
    verifications: Vec<Value>,
}

/// A row of the history, as far as readers rely on it.
#[derive(Deserialize, Serialize)]
pub(crate) struct HistoryRow {
    #[serde(deserialize_with = "moment")]
    timestamp: Timestamp,
    action: String,
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    details: Option<Text>,
}

/// A row of the artifacts, the same way.
#[derive(Deserialize, Serialize)]
pub(crate) struct ArtifactRow {
    path: String,
    #[serde(deserialize_with = "artifact_type")]
    artifact_type: Change,
    #[serde(deserialize_with = "moment")]
    timestamp: Timestamp,
    #[serde(default)]
    phase: Option<String>,
}

#[derive(Deserialize)]
struct ShownProject {
    #[serde(default)]
    name: String,
    #[serde(default)]
    path: String,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct ShownBudget {
    total_budget: u64,
    tokens_used: u64,
    #[serde(default)]
    hard: bool,
}

#[derive(Deserialize)]
struct ShownCost {
    #[serde(default)]
    used_micro_dollars: u64,
    #[serde(default)]
    limit_micro_dollars: Option<u64>,
    #[serde(default)]
    hard: bool,
}

/// A session that was read from a view.
pub struct Read {
    /// Its state.
    pub state: State,
    /// Its lists.
    pub lists: Vec<(List, Vec<Value>)>,
    /// The caps it claims; whether to believe them is the reader's choice.
    pub claimed: (TokenBudget, CostBudget),
    /// Whether it had an identity of its own.
    pub had_uid: bool,
}

/// A view of ours with every list full must fit; one that unfolds into more than it says must not.
const MOST_NODES: usize = 3_000_000;

/// Reads a view. `now` tells future moments; `uid` is for a view that has none. Errors name line and reason.
pub fn read(text: &str, now: Timestamp, uid: Uid) -> Result<Read, String> {
    if text.trim().is_empty() {
        return Err("the file is empty".to_owned());
    }
    let shown: Shown = segno_layouts::yaml::read(text, MOST_NODES)?;
    check(&shown, text, now)?;
    Ok(build(shown, uid))
}

fn check(shown: &Shown, text: &str, now: Timestamp) -> Result<(), String> {
    let line_of = |name: &str| {
        let found = text.lines().position(|line| line.starts_with(name));
        found.map_or(String::new(), |index| format!("line {}: ", index + 1))
    };
    let latest = now.plus_seconds(AHEAD_SECONDS);
    let moments = [
        ("created_at", Some(shown.created_at)),
        ("updated_at", Some(shown.updated_at)),
        ("completed_at", shown.completed_at),
    ];
    for (name, at) in moments {
        if at.is_some_and(|at| at > latest) {
            return Err(format!("{}{name} lies in the future", line_of(name)));
        }
    }
    if shown.updated_at < shown.created_at {
        return Err(format!("{}updated_at is before created_at", line_of("updated_at")));
    }
    if shown.completed_at.is_some() && !shown.state.is_terminal() {
        return Err(format!(
            "{}a session that is {} has no completed_at",
            line_of("completed_at"),
            shown.state
        ));
    }
    if shown.token_budget.total_budget == 0 {
        return Err(format!("{}total_budget must be more than 0", line_of("token_budget")));
    }
    if shown.attempt_number == 0 {
        return Err(format!("{}attempt_number must be more than 0", line_of("attempt_number")));
    }
    if shown.history.is_empty() {
        return Err(format!("{}the history is empty", line_of("history")));
    }
    if shown.progress_percent.is_some_and(|percent| percent > 100) {
        return Err(format!("{}progress_percent is more than 100", line_of("progress_percent")));
    }
    Ok(())
}

fn build(shown: Shown, uid: Uid) -> Read {
    let project = shown.project.map_or_else(Project::default, |project| Project {
        path: project.path,
        name: project.name,
        kind: project.kind,
    });
    let workflow = shown.workflow_type.map(|name| Workflow { name, phases: shown.phases });
    let had_uid = shown.uid.is_some();
    let created = SessionCreated {
        id: shown.session_id,
        uid: shown.uid.unwrap_or(uid),
        made_by: Maker::Import,
        topic: shown.topic,
        intent: shown.intent.map(Into::into),
        project,
        workflow,
        phase: shown.current_phase,
        // What a file claims grants nothing: the budget is the reader's own.
        budget: TokenBudget { tokens_used: shown.token_budget.tokens_used, ..TokenBudget::default() },
        cost: CostBudget {
            used_micros: shown.cost.as_ref().map_or(0, |cost| cost.used_micro_dollars),
            ..CostBudget::default()
        },
        continues: shown.continues,
        cap_from: None,
        file: None,
    };
    let mark = Mark { seq: 1, at: shown.created_at, run: None };
    let lists = vec![
        (List::History, values(&shown.history)),
        (List::Artifacts, values(&shown.artifacts)),
        (List::Outputs, shown.outputs),
        (List::Tasks, shown.tasks),
        (List::Decisions, shown.decisions),
        (List::Tools, shown.tools),
        (List::Files, shown.files),
        (List::Errors, shown.errors),
        (List::Memory, shown.memory),
        (List::Milestones, shown.milestones),
        (List::Checkpoints, shown.checkpoints),
        (List::Verifications, shown.verifications),
    ];
    let mut state = match State::begin(&mark, &created.into()) {
        Ok(state) => state,
        // Begin refuses only other kinds of events.
        Err(never) => unreachable!("{never}"),
    };
    state.status = shown.state;
    state.reason = shown.reason;
    state.updated_at = shown.updated_at;
    state.completed_at = shown.completed_at.or(state.status.is_terminal().then_some(shown.updated_at));
    (state.step, state.of) = (shown.step.or(state.step), shown.of.or(state.of));
    state.attempt = shown.attempt_number;
    state.iteration = shown.iteration;
    state.phases_completed = shown.phases_completed;
    state.verification = shown.verification;
    // What follows from the steps must go on following from them.
    state.progress_set = shown.progress_percent.filter(|percent| state.progress() != Some(*percent));
    state.tokens = shown.tokens_by_kind;
    state.metrics = shown.metrics;
    let within = |metrics: BTreeMap<String, Metric>| {
        metrics.into_iter().take(segno_core::limits::PHASE_METRICS).collect()
    };
    let phases = shown.phase_metrics.into_iter().take(segno_core::limits::PHASES);
    state.phase_metrics = phases.map(|(phase, metrics)| (phase, within(metrics))).collect();
    state.agent = shown.current_agent;
    state.agents = shown.agents;
    state.position =
        shown.current_file.map(|file| segno_core::state::Position { file, line: shown.current_line });
    state.last_action = shown.last_action;
    state.milestone = shown.milestone;
    state.breakpoint = shown.breakpoint;
    if let Some(branch) = shown.decision_branch {
        state.decisions.branch = branch;
    }
    state.cache = shown.memory_cache;
    state.workflow_state = shown.workflow_state;
    state.actions_since_checkpoint = shown.actions_since_checkpoint;
    state.actions = shown.actions;
    state.file = shown.work_file.filter(|file| segno_core::limits::line("file", file).is_ok());
    state.recovery = shown.recovery.map(|mut recovery| {
        recovery.offered.truncate(segno_core::limits::WAYS);
        recovery
    });
    // Whoever ran these calls is not here to end them.
    state.calls.in_doubt = shown.calls_in_doubt;
    state.calls.in_doubt.extend(shown.pending_calls);
    let cost = shown.cost.as_ref();
    let claimed = (
        TokenBudget {
            total_budget: shown.token_budget.total_budget,
            hard: shown.token_budget.hard,
            ..state.budget
        },
        CostBudget {
            limit_micros: cost.and_then(|cost| cost.limit_micro_dollars),
            hard: cost.is_some_and(|cost| cost.hard),
            ..state.cost
        },
    );
    Read { state, lists, claimed, had_uid }
}

/// Rows as plain data; they are structs with string keys and always serialise.
fn values(rows: &[impl Serialize]) -> Vec<Value> {
    rows.iter().map(|row| serde_json::to_value(row).unwrap_or_default()).collect()
}

fn artifact_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Change, D::Error> {
    match Change::deserialize(deserializer)? {
        Change::Deleted => Err(serde::de::Error::custom("an artifact is created or modified")),
        change => Ok(change),
    }
}

fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Status, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

/// A moment with an offset, or without one, which then counts as UTC.
fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().or_else(|why| format!("{text}Z").parse().map_err(|_| serde::de::Error::custom(why)))
}

fn maybe_moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    match Option::<String>::deserialize(deserializer)? {
        None => Ok(None),
        Some(text) => text
            .parse()
            .or_else(|why| format!("{text}Z").parse().map_err(|_| serde::de::Error::custom(why)))
            .map(Some),
    }
}
