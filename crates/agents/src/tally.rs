//! Keeps count of what a run did, from its events alone.

use std::collections::BTreeSet;
use std::collections::VecDeque;

use crate::bounds::excerpt;
use crate::bounds::is_short;
use crate::bounds::short_name;
use crate::event::AgentEvent;
use crate::limit::Limit;
use crate::limit::Windows;
use crate::outcome::ContextFill;
use crate::outcome::Denial;
use crate::outcome::ExitInfo;
use crate::outcome::Failure;
use crate::outcome::OpenCall;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::reader::ReaderOptions;
use crate::tokens::TokenCounts;

/// Caps on what is remembered, so that a run of any length fits in memory.
const MAX_DENIALS: usize = 1000;
const MAX_OPEN: usize = 10_000;
const MAX_MESSAGES: usize = 64;
const MAX_MODELS: usize = 1000;
/// Inputs are only wanted for refusals, which follow soon.
const MAX_INPUTS: usize = 256;

/// Whether an agent promises an event at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It does: without one the run was interrupted.
    Announced,
    /// It does not: the exit code is all there is.
    Silent,
    /// A person at its terminal decides when it is over, whatever it said last.
    Interactive,
}

#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) ending: Ending,
    pub(crate) expected_id: Option<String>,
    pub(crate) native_id: Option<String>,
    pub(crate) model: Option<String>,
    /// Anything that shows that the agent got to work.
    pub(crate) began: bool,
    pub(crate) turn_open: bool,
    /// Something other than winding up happened after the last result.
    pub(crate) stirred: bool,
    pub(crate) last: Option<Verdict>,
    pub(crate) last_text: Option<String>,
    pub(crate) results: u64,
    pub(crate) steps: u64,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) api_duration_ms: Option<u64>,
    pub(crate) tokens: TokenCounts,
    pub(crate) tokens_exact: bool,
    /// Tokens were told since the last result: a turn that ends without has used an unknown number.
    pub(crate) tokens_told: bool,
    pub(crate) total: Vec<(Option<String>, TokenCounts)>,
    /// Messages since the last result, whose cost no result has told yet.
    pub(crate) untold: VecDeque<(String, TokenCounts)>,
    pub(crate) untold_sum: TokenCounts,
    pub(crate) untold_messages: u64,
    pub(crate) context: ContextFill,
    pub(crate) cost: Option<f64>,
    pub(crate) cost_total: Option<f64>,
    pub(crate) tool_calls: u64,
    pub(crate) open: Vec<(OpenCall, Option<Raw>)>,
    pub(crate) denials: Vec<Denial>,
    pub(crate) worked_since_denial: bool,
    pub(crate) background: BTreeSet<String>,
    pub(crate) error: Option<Failure>,
    /// The limit behind that error.
    pub(crate) limit: Option<Limit>,
    pub(crate) worked_since_error: bool,
    pub(crate) windows: Windows,
    /// What the way in which the process ended says of a limit.
    pub(crate) hint: fn(&ExitInfo) -> Option<Limit>,
    pub(crate) unparsed: u64,
}

#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) kind: OutcomeKind,
    pub(crate) reason: Option<String>,
}

impl Tally {
    pub(crate) fn new(ending: Ending, options: &ReaderOptions) -> Self {
        Self {
            ending,
            expected_id: options.expected_native_id.clone(),
            native_id: None,
            model: None,
            // A reader that starts in the middle has missed the beginning, not the work.
            began: options.start_offset > 0,
            turn_open: false,
            stirred: false,
            last: None,
            last_text: None,
            results: 0,
            steps: 0,
            duration_ms: None,
            api_duration_ms: None,
            tokens: TokenCounts::default(),
            tokens_exact: options.start_offset == 0,
            tokens_told: false,
            total: Vec::new(),
            untold: VecDeque::new(),
            untold_sum: TokenCounts::default(),
            untold_messages: 0,
            context: ContextFill::default(),
            cost: None,
            cost_total: None,
            tool_calls: 0,
            open: Vec::new(),
            denials: Vec::new(),
            worked_since_denial: false,
            background: BTreeSet::new(),
            error: None,
            limit: None,
            worked_since_error: false,
            windows: Windows::default(),
            hint: |_| None,
            unparsed: 0,
        }
    }

    /// With a way to tell from the end of the process which limit it ran into.
    pub(crate) fn hinted(mut self, hint: fn(&ExitInfo) -> Option<Limit>) -> Self {
        self.hint = hint;
        self
    }

    pub(crate) fn saw_session(&mut self, id: &str) {
        if self.native_id.as_deref() != Some(id) {
            self.native_id = Some(id.to_owned());
        }
    }

    pub(crate) fn observe(&mut self, event: &AgentEvent) {
        if event.is_unparsed() {
            self.unparsed += 1;
        }
        self.stirred |= !winds_up(event);
        match event {
            AgentEvent::SessionStarted { native_id, model, .. } => {
                self.saw_session(native_id);
                if model.is_some() {
                    self.model.clone_from(model);
                }
                self.open_turn();
            }
            AgentEvent::TurnStarted => self.open_turn(),
            AgentEvent::Text { text, parent: None, .. } => {
                self.last_text = Some(text.clone());
                self.open_turn();
            }
            AgentEvent::Thinking { parent: None, .. } => self.open_turn(),
            AgentEvent::ToolStarted { call_id, tool, input, parent, .. } => {
                self.tool_calls += 1;
                if self.open.len() < MAX_OPEN && is_short(call_id) && is_short(tool) {
                    let call = OpenCall { call_id: call_id.clone(), tool: tool.clone() };
                    // A big one is not worth holding.
                    let wanted = self.open.len() < MAX_INPUTS && input.get().len() <= 16 * 1024;
                    let input = wanted.then(|| input.clone());
                    self.open.push((call, input));
                }
                if parent.is_none() {
                    self.open_turn();
                }
            }
            AgentEvent::ToolFinished { call_id, .. } => {
                self.close(call_id);
                self.worked_since_denial = true;
            }
            AgentEvent::ToolFailed { call_id, .. } => {
                self.close(call_id);
            }
            AgentEvent::ToolDenied { call_id, tool, reason, .. } => {
                self.denied(call_id, tool.as_deref(), reason)
            }
            AgentEvent::TaskStarted { task_id: id, background: true, .. }
            | AgentEvent::SubAgentStarted { agent_id: id, background: true, .. }
                if self.background.len() < MAX_OPEN && is_short(id) =>
            {
                self.background.insert(id.clone());
            }
            AgentEvent::TaskStopped { task_id: id, .. }
            | AgentEvent::SubAgentStopped { agent_id: id, .. } => {
                self.background.remove(id);
            }
            AgentEvent::Background { tasks } => {
                self.background = tasks.iter().filter(|id| is_short(id)).take(MAX_OPEN).cloned().collect();
            }
            AgentEvent::Limit { .. } => self.windows.saw(event),
            AgentEvent::MessageUsage { message_id, tokens } => self.message(message_id, *tokens),
            AgentEvent::Context { used, window } => {
                self.context.used = used.or(self.context.used);
                self.context.window = window.or(self.context.window);
            }
            AgentEvent::Tokens { model, delta, total } => self.count(model.as_deref(), *delta, *total),
            AgentEvent::Cost { delta_usd, total_usd } => {
                self.cost = delta_usd.map(|delta| self.cost.unwrap_or(0.0) + delta).or(self.cost);
                self.cost_total = total_usd.or(self.cost_total);
            }
            AgentEvent::Error { message, class, api_status, limit } => {
                self.error = Some(Failure { text: message.clone(), class: *class, api_status: *api_status });
                self.limit = limit.as_deref().cloned();
                self.worked_since_error = false;
            }
            AgentEvent::TurnCompleted { steps, duration_ms, api_duration_ms, .. } => {
                self.steps = self.steps.saturating_add(steps.unwrap_or(1));
                self.duration_ms = duration_ms
                    .map(|ms| self.duration_ms.unwrap_or(0).saturating_add(ms))
                    .or(self.duration_ms);
                // Agents report this one as a running sum.
                self.api_duration_ms = api_duration_ms.or(self.api_duration_ms);
            }
            AgentEvent::Result { verdict, text, reason, .. } => {
                self.results += 1;
                self.tokens_exact &= std::mem::take(&mut self.tokens_told);
                self.began = true;
                self.turn_open = false;
                self.stirred = false;
                self.last = Some(Verdict { kind: *verdict, reason: reason.clone() });
                if let Some(text) = text {
                    self.last_text = Some(text.clone());
                }
                self.untold.clear();
                self.untold_sum = TokenCounts::default();
                self.untold_messages = 0;
                if *verdict == OutcomeKind::Completed {
                    (self.error, self.limit) = (None, None);
                }
            }
            _ => {}
        }
    }

    fn open_turn(&mut self) {
        self.began = true;
        self.turn_open = true;
        self.worked_since_error = true;
    }

    fn close(&mut self, call_id: &str) -> Option<(OpenCall, Option<Raw>)> {
        let at = self.open.iter().rposition(|(call, _)| call.call_id == call_id)?;
        Some(self.open.remove(at))
    }

    fn denied(&mut self, call_id: &str, tool: Option<&str>, reason: &str) {
        let closed = self.close(call_id);
        let call_id = short_name(call_id);
        if self.denials.iter().any(|denial| denial.call_id == call_id) {
            // Agents tell a refusal up to three times: when it happens, as the call's result, and at the end.
            return;
        }
        self.worked_since_denial = false;
        if self.denials.len() < MAX_DENIALS {
            let (call, input) = closed.map_or((None, None), |(call, input)| (Some(call), input));
            self.denials.push(Denial {
                call_id: call_id.to_owned(),
                tool: tool.map(|tool| short_name(tool).to_owned()).or(call.map(|call| call.tool)),
                input,
                reason: (!reason.is_empty()).then(|| excerpt(reason).to_owned()),
            });
        }
    }

    fn message(&mut self, id: &str, tokens: TokenCounts) {
        if let Some((_, known)) = self.untold.iter_mut().find(|(known, _)| known == id) {
            *known = tokens;
            return;
        }
        self.untold_messages += 1;
        if !is_short(id) {
            self.untold_sum = self.untold_sum.plus(tokens);
            return;
        }
        self.untold.push_back((id.to_owned(), tokens));
        if self.untold.len() > MAX_MESSAGES
            && let Some((_, oldest)) = self.untold.pop_front()
        {
            self.untold_sum = self.untold_sum.plus(oldest);
        }
    }

    fn count(&mut self, model: Option<&str>, delta: Option<TokenCounts>, total: Option<TokenCounts>) {
        self.tokens_told = true;
        match delta {
            Some(delta) => self.tokens = self.tokens.plus(delta),
            None => self.tokens_exact = false,
        }
        if let Some(total) = total {
            let room = self.total.len() < MAX_MODELS && model.is_none_or(is_short);
            match self.total.iter_mut().find(|(known, _)| known.as_deref() == model) {
                Some((_, known)) => *known = total,
                None if room => self.total.push((model.map(str::to_owned), total)),
                None => {}
            }
        }
    }
}

/// Events that follow a result although no more work does.
fn winds_up(event: &AgentEvent) -> bool {
    match event {
        AgentEvent::Hook { .. }
        | AgentEvent::Notice { .. }
        | AgentEvent::Limit { .. }
        | AgentEvent::Context { .. } => true,
        AgentEvent::State { state } => state != "running",
        _ => false,
    }
}
