//! From a command's output to events, by the rules of its configuration.

use serde_json::Value;

use super::config::{Format, Rule, RuleKind};
use crate::classify::classify;
use crate::event::{AgentEvent, By, ChangeKind};
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::reader::{Machine, Stamp};
use crate::tokens::{Baseline, TokenCounts};

#[derive(Debug)]
pub(super) struct Reduce {
    format: Format,
    rules: Vec<Rule>,
    total: Option<TokenCounts>,
    cost: Option<f64>,
}

impl Reduce {
    pub(super) fn new(format: Format, rules: Vec<Rule>, baseline: Baseline) -> Self {
        Self { format, rules, total: baseline.counts(), cost: Some(0.0) }
    }

    fn apply(&mut self, at: usize, value: &Value) -> AgentEvent {
        let rule = &self.rules[at];
        let text = |name: &str| text(rule, name, value);
        let must = |name: &str| text(name).unwrap_or_default();
        let number = |name: &str| find(rule, name, value).and_then(Value::as_i64);
        let raw = |name: &str| find(rule, name, value).map_or_else(Raw::null, Raw::from_value);
        match rule.kind {
            RuleKind::SessionStarted => AgentEvent::SessionStarted {
                native_id: must("native_id"),
                model: text("model"),
                cwd: text("cwd"),
                version: text("version"),
                permission_mode: None,
                tools: Vec::new(),
            },
            RuleKind::Text => AgentEvent::Text {
                message_id: text("message_id"),
                text: must("text"),
                parent: text("parent"),
            },
            RuleKind::Thinking => AgentEvent::Thinking {
                message_id: text("message_id"),
                text: must("text"),
                parent: text("parent"),
            },
            RuleKind::ToolStarted => AgentEvent::ToolStarted {
                call_id: must("call_id"),
                tool: must("tool"),
                input: raw("input"),
                message_id: text("message_id"),
                parent: text("parent"),
            },
            RuleKind::ToolFinished => AgentEvent::ToolFinished {
                call_id: must("call_id"),
                tool: text("tool"),
                output: raw("output"),
                exit_code: number("exit_code"),
                duration_ms: None,
                background: None,
                parent: text("parent"),
            },
            RuleKind::ToolFailed => AgentEvent::ToolFailed {
                call_id: must("call_id"),
                tool: text("tool"),
                error: must("error"),
                exit_code: number("exit_code"),
                duration_ms: None,
                interrupted: false,
                parent: text("parent"),
            },
            RuleKind::ToolDenied => AgentEvent::ToolDenied {
                call_id: must("call_id"),
                tool: text("tool"),
                reason: must("reason"),
                by: By::Unknown,
                parent: text("parent"),
            },
            RuleKind::FileChanged => AgentEvent::FileChanged {
                path: must("path"),
                change: ChangeKind::Modified,
                call_id: text("call_id"),
                moved_to: None,
            },
            RuleKind::Notice => AgentEvent::Notice {
                level: text("level").unwrap_or_else(|| "info".to_owned()),
                text: must("text"),
            },
            RuleKind::Progress => AgentEvent::Progress {
                call_id: text("call_id"),
                what: text("what"),
                elapsed_seconds: None,
                heartbeat: false,
            },
            RuleKind::Error => error(must("message")),
            RuleKind::Result => result(rule, value),
            RuleKind::Tokens => {
                let (cumulative, model) = (rule.cumulative, text("model"));
                let counts = counts(rule, value);
                self.tokens(counts, cumulative, model)
            }
            RuleKind::Cost => {
                let usd = find(rule, "usd", value).and_then(Value::as_f64);
                let cumulative = rule.cumulative;
                self.cost(usd, cumulative)
            }
        }
    }

    fn tokens(&mut self, counts: TokenCounts, cumulative: bool, model: Option<String>) -> AgentEvent {
        if !cumulative {
            return AgentEvent::Tokens { model, delta: Some(counts), total: None };
        }
        let delta = self.total.map(|before| counts.since(before));
        self.total = Some(counts);
        AgentEvent::Tokens { model, delta, total: Some(counts) }
    }

    fn cost(&mut self, usd: Option<f64>, cumulative: bool) -> AgentEvent {
        let Some(usd) = usd.filter(|_| cumulative) else {
            return AgentEvent::Cost { delta_usd: usd, total_usd: None };
        };
        let delta_usd = self.cost.map(|before| (usd - before).max(0.0));
        self.cost = Some(usd);
        AgentEvent::Cost { delta_usd, total_usd: Some(usd) }
    }
}

impl Machine for Reduce {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> Stamp {
        let fitting = serde_json::from_str::<Value>(json)
            .ok()
            .and_then(|value| Some((self.rules.iter().position(|rule| fits(rule, &value))?, value)));
        let event = match fitting {
            Some((at, value)) => self.apply(at, &value),
            None => Raw::parse(json).map_or_else(
                |_| AgentEvent::Noise { text: json.to_owned() },
                |raw| AgentEvent::Unknown { raw },
            ),
        };
        out.push(event);
        Stamp::default()
    }

    fn text(&mut self, text: &str, out: &mut Vec<AgentEvent>) {
        out.push(match self.format {
            Format::Text => AgentEvent::Text { message_id: None, text: text.to_owned(), parent: None },
            Format::Json => AgentEvent::Noise { text: text.to_owned() },
        });
    }

    fn speaks_json(&self) -> bool {
        self.format == Format::Json
    }

    fn knows(&self, _event_type: &str) -> bool {
        false
    }
}

fn fits(rule: &Rule, value: &Value) -> bool {
    rule.when.iter().all(|(path, wanted)| path.get(value) == Some(wanted))
}

fn find<'a>(rule: &Rule, name: &str, value: &'a Value) -> Option<&'a Value> {
    rule.fields.get(name)?.get(value).filter(|found| !found.is_null())
}

fn text(rule: &Rule, name: &str, value: &Value) -> Option<String> {
    find(rule, name, value).map(|found| found.as_str().map_or_else(|| found.to_string(), str::to_owned))
}

fn counts(rule: &Rule, value: &Value) -> TokenCounts {
    let count = |name: &str| find(rule, name, value).and_then(Value::as_u64).unwrap_or(0);
    TokenCounts {
        input: count("input"),
        cache_read: count("cache_read"),
        cache_write: count("cache_write"),
        output: count("output"),
        reasoning: count("reasoning"),
    }
}

fn error(message: String) -> AgentEvent {
    AgentEvent::Error { class: classify(None, None, &message), message, api_status: None }
}

fn result(rule: &Rule, value: &Value) -> AgentEvent {
    let reason = text(rule, "error", value);
    let ok = find(rule, "ok", value).and_then(Value::as_bool).unwrap_or(reason.is_none());
    AgentEvent::Result {
        verdict: if ok { OutcomeKind::Completed } else { OutcomeKind::Failed },
        text: text(rule, "text", value),
        reason: reason.filter(|_| !ok),
        api_status: None,
    }
}
