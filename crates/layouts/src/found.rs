//! What was found in the files of a family, the same for all of them; and the session that it makes.

use std::collections::BTreeMap;

use segno_core::CostBudget;
use segno_core::List;
use segno_core::Mark;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::TokenBudget;
use segno_core::Uid;
use segno_core::event::Maker;
use segno_core::event::Metric;
use segno_core::event::Project;
use segno_core::event::SessionCreated;
use segno_core::event::Workflow;
use segno_core::limits;
use segno_core::state::AgentMark;
use segno_core::state::Breakpoint;
use segno_core::state::LastKnown;
use segno_core::state::OpenCall;
use segno_core::state::Position;
use segno_core::state::Reason;
use segno_core::state::RecoveryMark;
use segno_core::state::RunMark;
use segno_core::text::shorten;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use sha2::Digest as _;

use crate::family::Family;

/// What a set of files holds.
#[derive(Clone, Debug)]
pub struct Imported {
    /// What it is.
    pub family: Family,
    /// Its sessions; those that are damaged are told of in the warnings.
    pub sessions: Vec<ImportedSession>,
    /// What is wrong with the set as a whole.
    pub warnings: Vec<String>,
}

/// What a file says that the session may use. Whether to believe it is the reader's choice.
pub type Claimed = (TokenBudget, CostBudget);

/// One session of a set of files.
#[derive(Clone, Debug)]
pub struct ImportedSession {
    /// Its name there.
    pub foreign_id: String,
    /// Its state.
    pub state: State,
    /// Its lists, oldest first.
    pub lists: Vec<(List, Vec<Value>)>,
    /// The caps it claims.
    pub claimed: Claimed,
    /// Files of the family that are not there.
    pub missing: Vec<String>,
    /// What was left out, and why.
    pub warnings: Vec<String>,
}

/// What was found of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub id: String,
    pub topic: Option<String>,
    pub intent: Option<String>,
    /// The word of the family for where it stands, and what that is here.
    pub status: Option<(String, Status)>,
    pub reason: Option<Reason>,
    pub project: Option<Project>,
    pub workflow: Option<Workflow>,
    pub phase: Option<String>,
    pub step: Option<u32>,
    pub of: Option<u32>,
    pub iteration: u64,
    pub attempt: Option<u64>,
    pub progress: Option<u8>,
    pub phases_completed: Vec<String>,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    /// When it stopped, if the files tell that apart from when they were written last.
    pub interrupted_at: Option<Timestamp>,
    pub file: Option<String>,
    pub metrics: BTreeMap<String, Metric>,
    pub phase_metrics: BTreeMap<String, BTreeMap<String, Metric>>,
    pub tokens_used: u64,
    pub total_budget: Option<u64>,
    pub cost_micros: u64,
    pub agent: Option<String>,
    pub agents: BTreeMap<String, AgentMark>,
    pub position: Option<Position>,
    pub last_action: Option<String>,
    pub breakpoint: bool,
    pub branch: Option<String>,
    pub tasks: Vec<String>,
    pub cache: BTreeMap<String, Value>,
    pub in_doubt: BTreeMap<String, OpenCall>,
    pub actions_since_checkpoint: u64,
    pub error_count: u64,
    /// The agent and its own id of a conversation that can be gone on with.
    pub conversation: Option<(String, String)>,
    pub rows: BTreeMap<List, Vec<Value>>,
    /// Foreign files, or what of them has no place in a session, by name.
    pub kept: Map<String, Value>,
    pub extension: Option<Value>,
    pub missing: Vec<String>,
    /// Checkpoints that are listed somewhere, by their ids.
    pub listed: Vec<String>,
    pub warnings: Vec<String>,
}

impl Found {
    /// Adds a row to a list.
    pub(crate) fn row(&mut self, list: List, row: Value) {
        self.rows.entry(list).or_default().push(row);
    }

    /// The session that this makes. `word` is how the family says where one of ours stands, `now` when it is read.
    pub(crate) fn session(
        mut self,
        family: Family,
        word: fn(Status) -> &'static str,
        now: Timestamp,
    ) -> ImportedSession {
        let created_at = self.created_at.or(self.updated_at).unwrap_or(now);
        let updated_at = self.updated_at.unwrap_or(created_at).max(created_at);
        let carried = self.carried();
        let state = match self.extension.take().map(|extension| from_extension(&extension)) {
            Some(Ok(state)) => self.over(state, word),
            Some(Err(why)) => {
                self.warnings.push(format!("the member {} is not believed: {why}", crate::EXTENSION));
                self.fresh(family, created_at, updated_at)
            }
            None => self.fresh(family, created_at, updated_at),
        };
        let mut state = state;
        if let Some(carried) = carried {
            self.keep(&mut state, family, carried);
        }
        let claimed = (
            TokenBudget {
                total_budget: self.total_budget.unwrap_or(state.budget.total_budget),
                ..state.budget
            },
            state.cost,
        );
        if self.rows.get(&List::History).is_none_or(Vec::is_empty) {
            let at = state.created_at;
            self.row(List::History, json!({ "timestamp": at, "action": "session_created", "phase": null }));
        }
        ImportedSession {
            foreign_id: self.id,
            state,
            lists: self.rows.into_iter().collect(),
            claimed,
            missing: self.missing,
            warnings: self.warnings,
        }
    }

    fn carried(&mut self) -> Option<Value> {
        let kept = std::mem::take(&mut self.kept);
        let kept: Map<String, Value> = kept.into_iter().filter(|(_, value)| !is_nothing(value)).collect();
        // One of ours has its name with it.
        let ours = self.extension.is_some() && kept.is_empty();
        (!ours).then(|| json!({ "id": self.id, "files": kept }))
    }

    /// What has no place in a session is kept with what its workflow keeps.
    fn keep(&mut self, state: &mut State, family: Family, carried: Value) {
        let mut all = match state.workflow_state.take() {
            Some(Value::Object(members)) => members,
            Some(other) => Map::from_iter([("value".to_owned(), other)]),
            None => Map::new(),
        };
        let mut carried = carried;
        state.workflow_state = Some(loop {
            all.insert(family.as_str().to_owned(), carried.clone());
            let whole = Value::Object(all.clone());
            match limits::json("workflow state", &whole) {
                Ok(()) => break whole,
                // What is largest goes first.
                Err(why) => match drop_largest(&mut carried) {
                    Some(file) => self.warnings.push(format!("{file} was not kept with the session: {why}")),
                    None => break Value::Null,
                },
            }
        });
    }

    /// One of ours that comes back: what the family says of it counts where somebody changed it.
    fn over(&mut self, mut state: State, word: fn(Status) -> &'static str) -> State {
        if let Some((said, status)) = self.status.take()
            && word(state.status) != said
        {
            state.status = status;
            state.reason = self.reason.take();
            state.completed_at = None;
        }
        if self.phase.is_some() && self.phase != state.phase && state.phase.is_some() {
            state.phase.clone_from(&self.phase);
        }
        state
    }

    fn fresh(&mut self, family: Family, created_at: Timestamp, updated_at: Timestamp) -> State {
        let wish = self.id.parse::<SessionId>().unwrap_or_else(|_| wish(family, &self.id, created_at));
        let uid = self.id.parse::<Uid>().unwrap_or_else(|_| uid(family, &self.id, created_at));
        let created = SessionCreated {
            id: wish,
            uid,
            made_by: Maker::Import,
            topic: self.topic.take().map(line).filter(|topic| !topic.is_empty()),
            intent: self.intent.take().map(Into::into),
            project: self.project.take().unwrap_or_default(),
            workflow: self.workflow.take(),
            phase: self.phase.take().map(name),
            // What a file claims grants nothing: the budget is the reader's own.
            budget: TokenBudget { tokens_used: self.tokens_used, ..TokenBudget::default() },
            cost: CostBudget { used_micros: self.cost_micros, ..CostBudget::default() },
            continues: None,
            cap_from: None,
            file: None,
        };
        let mark = Mark { seq: 1, at: created_at, run: None };
        let mut state = match State::begin(&mark, &created.into()) {
            Ok(state) => state,
            // Begin refuses only other kinds of events.
            Err(never) => unreachable!("{never}"),
        };
        state.updated_at = updated_at;
        state.status = self.status.take().map_or(Status::Active, |(_, status)| status);
        state.reason = self.reason.take();
        state.completed_at = self
            .completed_at
            .or(Some(updated_at))
            .filter(|_| state.status.is_terminal())
            .map(|at| at.max(created_at));
        (state.step, state.of) = (self.step.or(state.step), self.of.or(state.of));
        state.iteration = self.iteration;
        state.attempt = self.attempt.unwrap_or(1).max(1);
        let done = std::mem::take(&mut self.phases_completed).into_iter();
        state.phases_completed = done.take(limits::PHASES).map(name).collect();
        state.progress_set = self.progress.filter(|percent| state.progress() != Some(*percent));
        state.file = self.file.take().filter(|file| limits::line("file", file).is_ok());
        state.metrics = named(std::mem::take(&mut self.metrics), limits::ENTRIES);
        let phases = named(std::mem::take(&mut self.phase_metrics), limits::PHASES).into_iter();
        state.phase_metrics =
            phases.map(|(phase, metrics)| (phase, named(metrics, limits::PHASE_METRICS))).collect();
        state.agent = self.agent.take().map(name).filter(|agent| !agent.is_empty());
        state.agents = named(std::mem::take(&mut self.agents), limits::ENTRIES);
        state.position = self.position.take().map(|at| Position { file: line(at.file), line: at.line });
        state.last_action = self.last_action.take().map(line);
        state.breakpoint =
            self.breakpoint.then(|| Breakpoint { name: "breakpoint".to_owned(), since: updated_at });
        state.branch = self.branch.take().map(line);
        state.cache = named(std::mem::take(&mut self.cache), limits::ENTRIES);
        state.calls.in_doubt =
            std::mem::take(&mut self.in_doubt).into_iter().take(limits::OPEN_CALLS).collect();
        state.actions_since_checkpoint = self.actions_since_checkpoint;
        state.errors.count = self.error_count;
        if matches!(state.status, Status::Interrupted | Status::Paused | Status::Halted) {
            state.recovery = Some(Box::new(self.stopped(&state)));
        }
        if let Some((agent, conversation)) = self.conversation.take() {
            state.run = Some(run(agent, conversation, updated_at));
            state.counts.runs = 1;
        }
        for (index, text) in std::mem::take(&mut self.tasks).into_iter().take(limits::OPEN_TASKS).enumerate()
        {
            self.row(
                List::Tasks,
                json!({ "task": index + 1, "text": line(text), "state": "open", "added_at": updated_at }),
            );
        }
        state
    }
}

impl Found {
    /// How it stopped there: its age counts from then, not from when it was taken over.
    fn stopped(&self, state: &State) -> RecoveryMark {
        let reason = state.reason.as_ref().map(|reason| reason.what.clone());
        let otherwise = if state.status == Status::Interrupted { "crash" } else { "asked" };
        RecoveryMark {
            interrupted_at: self.interrupted_at.unwrap_or(state.updated_at).max(state.created_at),
            interrupt_reason: reason.unwrap_or_else(|| otherwise.to_owned()),
            last_known_state: LastKnown {
                phase: state.phase.clone(),
                step: state.step,
                iteration: state.iteration,
                agent: state.agent.clone(),
                action: state.last_action.clone(),
                error: None,
            },
            in_doubt: state.calls.in_doubt.len() as u64,
            settled: 0,
            offered: Vec::new(),
            recovery_type: None,
            target: None,
            recovered_at: None,
            attempts: 0,
        }
    }
}

/// Drops the largest of the files that were kept; answers which.
fn drop_largest(carried: &mut Value) -> Option<String> {
    let files = carried.get_mut("files")?.as_object_mut()?;
    let largest = files.iter().max_by_key(|(_, content)| content.to_string().len())?.0.clone();
    files.remove(&largest);
    Some(largest)
}

/// The state in an extension member.
fn from_extension(extension: &Value) -> Result<State, String> {
    let state = extension.get("state").ok_or("it has no state")?;
    serde_json::from_value(state.clone()).map_err(|why| why.to_string())
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// The same for the same foreign session.
fn hash(family: Family, id: &str, created_at: Timestamp) -> [u8; 16] {
    let mut hasher = sha2::Sha256::new();
    for part in [family.as_str(), id, &created_at.to_string()] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let hash: [u8; 32] = hasher.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes
}

/// The identity of a foreign session: the same files are the same session, so importing them twice is refused.
fn uid(family: Family, id: &str, created_at: Timestamp) -> Uid {
    Uid::new(uuid::Builder::from_custom_bytes(hash(family, id, created_at)).into_uuid())
}

/// The name that it gets here. People type its end, which is the same for all that are told in whole seconds: those get
/// another one from their own name.
fn wish(family: Family, id: &str, created_at: Timestamp) -> SessionId {
    const SECOND: i64 = 1_000_000;
    let micros = created_at.as_micros();
    if micros % SECOND != 0 {
        return SessionId::at(created_at);
    }
    let hash = u128::from_le_bytes(hash(family, id, created_at));
    let end = i64::try_from(hash % (SECOND as u128 - 1)).unwrap_or_default() + 1;
    SessionId::at(Timestamp::from_micros(micros + end))
}

/// The run that a conversation of another manager was in.
fn run(agent: String, conversation: String, at: Timestamp) -> RunMark {
    RunMark {
        id: "elsewhere".to_owned(),
        agent,
        version: None,
        model: None,
        native_id: Some(conversation),
        pid: 0,
        process_start: 0,
        adopted: None,
        ledger: Default::default(),
        directory: String::new(),
        interactive: false,
        seq: 1,
        started_at: at,
        ended_at: Some(at),
        outcome: Some("stopped".to_owned()),
        turns: 0,
        below: None,
        before: Default::default(),
        unpriced: Default::default(),
        list_micros: 0,
        elsewhere: true,
        limit: None,
    }
}

fn named<V>(all: BTreeMap<String, V>, most: usize) -> BTreeMap<String, V> {
    all.into_iter()
        .take(most)
        .map(|(key, value)| (name(key), value))
        .filter(|(key, _)| !key.is_empty())
        .collect()
}

/// A name as a session has it: on one line and not too long.
pub(crate) fn name(text: String) -> String {
    cut(text, limits::NAME)
}

/// A line as a session has it.
pub(crate) fn line(text: String) -> String {
    cut(text, limits::LINE)
}

fn cut(text: String, most: usize) -> String {
    let text = if text.chars().any(char::is_control) {
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    } else {
        text
    };
    shorten(text.trim(), most)
}

/// Numbers and flags of an object; what is neither stays in it.
pub(crate) fn metrics(members: &mut Map<String, Value>) -> BTreeMap<String, Metric> {
    let names: Vec<String> = members.keys().cloned().collect();
    let mut metrics = BTreeMap::new();
    for name in names {
        let metric = match members.get(&name) {
            Some(Value::Bool(flag)) => Metric::Flag(*flag),
            Some(Value::Number(number)) => match number.as_f64() {
                Some(number) => Metric::Number(number),
                None => continue,
            },
            _ => continue,
        };
        members.remove(&name);
        metrics.insert(name, metric);
    }
    metrics
}
