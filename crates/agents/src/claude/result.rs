//! The `result` lines: several per process, failures inside of successes, sums over resumes.

use std::collections::BTreeMap;

use super::wire::ModelUsage;
use super::wire::ResultLine;
use super::wire::Usage;
use crate::bounds::is_short;
use crate::classify::Meaning;
use crate::classify::understand;
use crate::event::AgentEvent;
use crate::event::By;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::tokens::TokenCounts;

/// The sums of more models than this are not remembered.
const MAX_MODELS: usize = 1000;

/// What results need from before.
#[derive(Debug, Default)]
pub(super) struct Results {
    seen: u64,
    /// The last sum per model, for versions that do not report what is new.
    sums: BTreeMap<String, TokenCounts>,
    last_cost: Option<f64>,
    blocked: Option<String>,
    /// The model of the last message of the main conversation, and all tokens of its request and its answer.
    last_message: Option<(Option<String>, u64)>,
}

impl Results {
    /// A message of the main conversation: what it was asked with is what the context holds.
    pub(super) fn saw_message(&mut self, model: Option<&str>, tokens: u64) {
        let model = model.filter(|model| is_short(model)).map(str::to_owned);
        self.last_message = Some((model, tokens));
    }

    /// How full the context is: results tell how much fits into that of each model.
    fn context(&self, line: &ResultLine) -> Option<AgentEvent> {
        let (model, used) = self.last_message.as_ref()?;
        let models = line.model_usage.as_ref()?;
        let named = model.as_ref().and_then(|model| {
            let alike =
                || models.iter().find(|(name, _)| name.starts_with(model.as_str())).map(|(_, usage)| usage);
            models.get(model).or_else(alike)
        });
        let only = || models.values().next().filter(|_| models.len() == 1);
        let window = named.or_else(only)?.context_window.filter(|window| *window > 0)?;
        Some(AgentEvent::Context { used: Some(*used), window: Some(window) })
    }

    /// A hook refused the prompt: a result that still comes will be a success in which nothing happened.
    pub(super) fn prompt_blocked(&mut self, why: &str) -> AgentEvent {
        self.blocked = Some(why.to_owned());
        let reason = Some(why.to_owned());
        AgentEvent::Result { verdict: OutcomeKind::Denied, text: None, reason, api_status: None }
    }

    /// Whether a result that still comes will be judged by a refusal before it.
    pub(super) fn awaits_the_end_of_a_refused_prompt(&self) -> bool {
        self.blocked.is_some()
    }

    pub(super) fn line(&mut self, line: ResultLine, out: &mut Vec<AgentEvent>) {
        for denial in line.permission_denials.iter().flatten() {
            if let Some(call_id) = denial.tool_use_id.clone() {
                out.push(AgentEvent::ToolDenied {
                    call_id,
                    tool: denial.tool_name.clone(),
                    reason: String::new(),
                    by: By::Unknown,
                    parent: None,
                });
            }
        }
        let text = line.result.as_ref().map(words);
        let errors: Vec<String> = line.errors.iter().flatten().map(words).collect();
        let failed =
            line.is_error || line.subtype.as_deref().is_some_and(|subtype| subtype.starts_with("error"));
        let message = if errors.is_empty() { text.clone().unwrap_or_default() } else { errors.join("\n") };
        let meaning = understand(line.api_error_status, code(&line), &message);
        let mut verdict = verdict(&line, failed, &meaning);
        let mut reason = None;
        if verdict == OutcomeKind::Interrupted {
            // The error text of an abort is a diagnostic for the program's makers.
            reason.clone_from(&line.terminal_reason);
            out.push(AgentEvent::Notice { level: "diagnostic".to_owned(), text: message });
        } else if failed {
            reason = Some(message.clone());
            out.push(meaning.event(message, line.api_error_status));
        }
        self.spent(&line, out);
        out.extend(self.context(&line));
        out.push(AgentEvent::TurnCompleted {
            turn: line.result_index.unwrap_or(self.seen),
            steps: line.num_turns,
            duration_ms: line.duration_ms,
            api_duration_ms: line.duration_api_ms,
            stop_reason: line.stop_reason.clone(),
        });
        if let Some(why) = self.blocked.take()
            && verdict == OutcomeKind::Completed
        {
            verdict = OutcomeKind::Denied;
            reason = Some(why);
        }
        out.push(AgentEvent::Result { verdict, text, reason, api_status: line.api_error_status });
        self.seen += 1;
    }

    fn spent(&mut self, line: &ResultLine, out: &mut Vec<AgentEvent>) {
        let none = BTreeMap::new();
        let sums = line.model_usage.as_ref().unwrap_or(&none);
        let new = line.model_usage_since_last_result.as_ref();
        for (model, usage) in sums {
            let total = usage.counts();
            let delta = match new {
                Some(new) => new.get(model).map(ModelUsage::counts).unwrap_or_default(),
                // Nobody knows what of the first sum came from earlier runs; the turn's own usage is the best guess.
                None => match self.sums.get(model) {
                    Some(before) => total.since(*before),
                    None => {
                        line.usage.as_ref().filter(|_| sums.len() == 1).map_or(total, |usage| usage.counts())
                    }
                },
            };
            if self.sums.contains_key(model) || (self.sums.len() < MAX_MODELS && is_short(model)) {
                self.sums.insert(model.clone(), total);
            }
            out.push(AgentEvent::Tokens {
                model: Some(model.clone()),
                delta: Some(delta),
                total: Some(total),
            });
        }
        if sums.is_empty() {
            // An empty table says that no model was reached; a missing one that this version has none.
            let usage = line.usage.as_ref().filter(|_| line.model_usage.is_none());
            let delta = usage.map(Usage::counts).unwrap_or_default();
            out.push(AgentEvent::Tokens { model: None, delta: Some(delta), total: None });
        }
        if let Some(total) = line.total_cost_usd.or(line.total_cost).or(line.cost_usd) {
            let costs =
                new.filter(|new| new.is_empty() || new.values().any(|usage| usage.cost_usd.is_some()));
            let delta = match (costs, self.last_cost) {
                // From zero: the sum of no numbers at all is a negative zero.
                (Some(new), _) => new.values().filter_map(|usage| usage.cost_usd).fold(0.0, |a, b| a + b),
                (None, Some(before)) => (total - before).max(0.0),
                // A version that does not say what is new: a cap must not be passed because nobody knows how much of
                // it came from earlier runs.
                (None, None) => total,
            };
            self.last_cost = Some(total);
            out.push(AgentEvent::Cost { delta_usd: Some(delta), total_usd: Some(total) });
        }
    }
}

/// The most telling word for what went wrong.
fn code(line: &ResultLine) -> Option<&str> {
    let terminal = line.terminal_reason.as_deref().filter(|reason| *reason != "api_error");
    line.api_error.as_deref().or(line.api_error_type.as_deref()).or(terminal)
}

fn verdict(line: &ResultLine, failed: bool, meaning: &Meaning) -> OutcomeKind {
    match (line.subtype.as_deref(), line.terminal_reason.as_deref()) {
        (Some("error_max_turns"), _) | (_, Some("max_turns")) => OutcomeKind::MaxTurns,
        (Some("error_max_budget_usd"), _) | (_, Some("budget_exhausted")) => OutcomeKind::Budget,
        (_, Some("aborted_streaming" | "aborted_tools")) => OutcomeKind::Interrupted,
        (_, Some("hook_stopped" | "stop_hook_prevented")) => OutcomeKind::Stopped,
        _ if failed => meaning.verdict(),
        _ => OutcomeKind::Completed,
    }
}

/// The text of a JSON string; anything else as it came.
fn words(raw: &Raw) -> String {
    raw.read::<String>().unwrap_or_else(|| raw.get().to_owned())
}
