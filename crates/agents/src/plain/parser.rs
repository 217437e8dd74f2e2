//! From a command's output to events, by the rules of its configuration.

use serde_json::Value;

use super::config::Format;
use super::config::PlainConfig;
use super::config::Rule;
use super::config::RuleKind;
use super::config::VerdictWord;
use super::path::Path;
use crate::classify::understand;
use crate::event::AgentEvent;
use crate::event::By;
use crate::event::ChangeKind;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::reader::LineMeta;
use crate::reader::StreamParser;
use crate::tokens::Baseline;
use crate::tokens::TokenCounts;

#[derive(Debug)]
pub(super) struct PlainParser {
    format: Format,
    rules: Vec<Rule>,
    native_id: Option<Path>,
    total: Option<TokenCounts>,
    cost: Option<f64>,
}

/// What a rule looks at: the object of a line, and the element of one of its lists.
#[derive(Clone, Copy)]
struct Scope<'a> {
    line: &'a Value,
    item: &'a Value,
}

impl PlainParser {
    pub(super) fn new(config: &PlainConfig, baseline: Baseline) -> Self {
        Self {
            format: config.format,
            rules: config.rules.clone(),
            native_id: config.native_id.clone(),
            total: baseline.counts(),
            cost: Some(0.0),
        }
    }

    /// The elements of lists come first: they are what the object is made of.
    fn line(&mut self, line: &Value, out: &mut Vec<AgentEvent>) {
        let mut lists: Vec<Path> = Vec::new();
        for list in self.rules.iter().filter_map(|rule| rule.each.as_ref()) {
            if !lists.contains(list) {
                lists.push(list.clone());
            }
        }
        for list in lists {
            let items = list.get(line, line);
            for item in items.as_ref().and_then(Value::as_array).into_iter().flatten() {
                self.scope(Scope { line, item }, Some(&list), out);
            }
        }
        self.scope(Scope { line, item: line }, None, out);
    }

    /// The first rule that fits, and those after it as long as they allow that.
    fn scope(&mut self, scope: Scope<'_>, each: Option<&Path>, out: &mut Vec<AgentEvent>) {
        for at in 0..self.rules.len() {
            let rule = &self.rules[at];
            if rule.each.as_ref() == each && fits(rule, scope) {
                let also = rule.also;
                let odd = uncountable(rule, scope);
                out.push(self.apply(at, scope));
                out.extend(odd);
                if !also {
                    break;
                }
            }
        }
    }

    fn apply(&mut self, at: usize, value: Scope<'_>) -> AgentEvent {
        let rule = &self.rules[at];
        let text = |name: &str| text(rule, name, value);
        let must = |name: &str| text(name).unwrap_or_default();
        let number = |name: &str| find(rule, name, value).and_then(|found| found.as_i64());
        let raw =
            |name: &str| find(rule, name, value).map_or_else(Raw::null, |found| Raw::from_value(&found));
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
                change: change(text("change").as_deref(), text("moved_to").is_some()),
                call_id: text("call_id"),
                moved_to: text("moved_to"),
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
                let usd = find(rule, "usd", value).and_then(|found| quantity(&found));
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

impl StreamParser for PlainParser {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> LineMeta {
        let before = out.len();
        let mut meta = LineMeta::default();
        if let Ok(line) = serde_json::from_str::<Value>(json) {
            self.line(&line, out);
            let id = self.native_id.as_ref().and_then(|path| path.get(&line, &line));
            meta.session_id = id.filter(|id| !id.is_null()).map(|id| words(&id));
        }
        if out.len() == before {
            out.push(Raw::parse(json).map_or_else(
                |_| AgentEvent::Noise { text: json.to_owned() },
                |raw| AgentEvent::Unknown { raw },
            ));
        }
        meta
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

fn fits(rule: &Rule, scope: Scope<'_>) -> bool {
    let numbers = matches!(rule.kind, RuleKind::Tokens | RuleKind::Cost);
    rule.when.iter().all(|(path, wanted)| path.get(scope.line, scope.item).as_ref() == Some(wanted))
        && (!numbers || COUNTED.iter().any(|name| find(rule, name, scope).is_some()))
}

/// Fields that are numbers.
const COUNTED: [&str; 6] = ["input", "cache_read", "cache_write", "output", "reasoning", "usd"];

/// A use, however it is written: some agents tell whole numbers as fractions or as text.
fn quantity(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite() && *number >= 0.0)
}

/// What a rule should count and cannot: a cap must not be passed because of it without a word.
fn uncountable(rule: &Rule, scope: Scope<'_>) -> Option<AgentEvent> {
    let of_kind = matches!(rule.kind, RuleKind::Tokens | RuleKind::Cost);
    let found = COUNTED.iter().filter(|_| of_kind).filter_map(|name| find(rule, name, scope));
    let odd = found.into_iter().find(|value| quantity(value).is_none())?;
    let text = format!("the agent tells a use that could not be counted: {odd}");
    Some(AgentEvent::Notice { level: "warning".to_owned(), text })
}

fn find(rule: &Rule, name: &str, scope: Scope<'_>) -> Option<Value> {
    rule.fields.get(name)?.get(scope.line, scope.item).filter(|found| !found.is_null())
}

fn text(rule: &Rule, name: &str, scope: Scope<'_>) -> Option<String> {
    find(rule, name, scope).map(|found| words(&found))
}

/// The text of a string; anything else as JSON.
fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn counts(rule: &Rule, scope: Scope<'_>) -> TokenCounts {
    let count = |name: &str| find(rule, name, scope).and_then(|found| quantity(&found)).unwrap_or(0.0) as u64;
    TokenCounts {
        input: count("input"),
        cache_read: count("cache_read"),
        cache_write: count("cache_write"),
        output: count("output"),
        reasoning: count("reasoning"),
    }
}

fn error(message: String) -> AgentEvent {
    understand(None, None, &message).event(message, None)
}

fn result(rule: &Rule, scope: Scope<'_>) -> AgentEvent {
    let reason = text(rule, "error", scope);
    let flag = |name: &str| find(rule, name, scope).and_then(|found| found.as_bool());
    let word = text(rule, "verdict", scope);
    let told = word.as_ref().and_then(|word| rule.verdicts.get(word)).map(|word| verdict(*word));
    let failed = flag("failed").or(flag("ok").map(|ok| !ok)).unwrap_or(reason.is_some());
    let verdict = told.unwrap_or(if failed { OutcomeKind::Failed } else { OutcomeKind::Completed });
    AgentEvent::Result {
        verdict,
        text: text(rule, "text", scope),
        reason: reason.or(word).filter(|_| verdict != OutcomeKind::Completed),
        api_status: None,
    }
}

/// What happened to a file, in any of the words that agents have for it.
fn change(word: Option<&str>, moved: bool) -> ChangeKind {
    match word.map(str::to_ascii_lowercase).as_deref() {
        Some("created" | "create" | "added" | "add" | "new") => ChangeKind::Created,
        Some("deleted" | "delete" | "removed" | "remove") => ChangeKind::Deleted,
        Some("moved" | "move" | "renamed" | "rename") => ChangeKind::Moved,
        None if moved => ChangeKind::Moved,
        _ => ChangeKind::Modified,
    }
}

fn verdict(word: VerdictWord) -> OutcomeKind {
    match word {
        VerdictWord::Completed => OutcomeKind::Completed,
        VerdictWord::Failed => OutcomeKind::Failed,
        VerdictWord::Interrupted => OutcomeKind::Interrupted,
        VerdictWord::Stopped => OutcomeKind::Stopped,
        VerdictWord::Limit => OutcomeKind::Limit,
        VerdictWord::Budget => OutcomeKind::Budget,
        VerdictWord::Denied => OutcomeKind::Denied,
        VerdictWord::MaxTurns => OutcomeKind::MaxTurns,
    }
}
