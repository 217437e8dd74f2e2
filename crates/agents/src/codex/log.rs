//! Codex's rollout: its own log of a conversation, one file for each thread, written as it works.
//!
//! The output leaves out calls that Codex turns down by itself and tells tokens only at the end of a turn. Here every
//! call is announced before it runs, by the id that hooks use too, and ends as what it was: done, failed, cut off or
//! refused. With a person at the terminal this file is all there is.

use std::collections::HashSet;

use super::limits::Windows;
use super::log_calls::Calls;
use super::log_wire::Line;
use super::log_wire::Part;
use super::log_wire::Payload;
use super::wire::Usage;
use crate::bounds::is_short;
use crate::classify::status_in;
use crate::conversation_log::ConversationLog;
use crate::conversation_log::Lineage;
use crate::conversation_log::Live;
use crate::conversation_log::LogLocation;
use crate::conversation_log::LogUse;
use crate::conversation_log::is_told_by_log;
use crate::event::AgentEvent;
use crate::event::CompactionPhase;
use crate::event::InputSource;
use crate::keeping::Arrival;
use crate::keeping::ConversationFile;
use crate::keeping::Keeping;
use crate::keeping::KeptFiles;
use crate::lenient;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::reader::LineMeta;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::reader::StreamParser;
use crate::tally::Ending;
use crate::tally::Tally;
use crate::tokens::TokenCounts;

/// More threads than anybody opens in one process are not told apart.
const MAX_THREADS: usize = 10_000;

/// Where rollouts lie and how they read.
#[derive(Debug)]
pub(super) struct RolloutLog;

impl ConversationLog for RolloutLog {
    fn location(&self) -> Option<LogLocation> {
        Some(LogLocation {
            variable: "CODEX_HOME",
            home: ".codex",
            below: "sessions",
            // Year, month and day.
            depth: 3,
            prefix: "rollout-",
            kept_open: true,
            sub_agents: None,
        })
    }

    fn keeping(&self) -> Option<Keeping> {
        let target = |arrival: &Arrival<'_>| {
            let (day, time) = (arrival.began.get(..10)?, arrival.began.get(11..19)?.replace(':', "-"));
            let directories = day.split('-').map(ToOwned::to_owned).collect();
            let file = format!("rollout-{day}T{time}-{}.jsonl", arrival.id);
            Some(ConversationFile { directories, file, owner: None })
        };
        Some(Keeping::Files(KeptFiles { location: self.location()?, named_by: None, target }))
    }

    fn reader(&self, options: &ReaderOptions, usage: LogUse<'_>) -> Option<Reader> {
        let ending = match usage {
            LogUse::Alone { .. } => Ending::Interactive,
            LogUse::BesideOutput | LogUse::Whole | LogUse::History | LogUse::SubAgent { .. } => {
                Ending::Silent
            }
        };
        let parser = Rollout::new(options, usage);
        Some(Reader::new(Box::new(parser), options, Tally::new(ending, options)))
    }

    fn sub_agent_of(&self, event: &AgentEvent) -> Option<String> {
        let AgentEvent::ToolFinished { tool: Some(tool), output, .. } = event else { return None };
        if tool != "spawn_agent" {
            return None;
        }
        let text = output.read::<String>()?;
        serde_json::from_str::<Spawned>(&text).ok()?.agent_id.filter(|id| is_short(id))
    }

    fn lineage(&self, head: &[u8]) -> Lineage {
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Ok(text) = std::str::from_utf8(first) else { return Lineage::default() };
        let payload = lenient::read::<Line>(text, &mut Vec::new()).and_then(|line| line.payload);
        let Some(payload) = payload else { return Lineage::default() };
        let parent = payload.source.as_ref().and_then(Raw::read::<Spawn>).and_then(|source| source.parent());
        Lineage {
            sub_agent_of: parent,
            copy_of: payload.forked_from_id,
            id: payload.id.or(payload.session_id),
            root: None,
            cwd: payload.cwd,
        }
    }

    fn is_main(&self, head: &[u8]) -> bool {
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        // The beginning holds what Codex is told, so it may be longer than what was read; then the file counts.
        let Ok(line) = serde_json::from_slice::<Line>(first) else { return true };
        let Some(payload) = line.payload else { return true };
        let plain = payload.source.is_none_or(|source| source.read::<String>().is_some());
        plain && payload.thread_source.is_none_or(|source| source == "user")
    }
}

/// Where the thread of a sub-agent comes from.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Spawn {
    subagent: Option<Raw>,
}

impl Spawn {
    fn parent(&self) -> Option<String> {
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(default)]
        struct Kind {
            thread_spawn: Option<Parent>,
        }
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(default)]
        struct Parent {
            parent_thread_id: Option<String>,
        }
        self.subagent.as_ref()?.read::<Kind>()?.thread_spawn?.parent_thread_id
    }
}

/// What the model is told of a sub-agent that was started.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Spawned {
    agent_id: Option<String>,
}

/// What must be remembered from line to line.
#[derive(Debug)]
struct Rollout {
    /// How much fits into the context.
    window: Option<u64>,
    /// How full it is, as it was told last.
    context: Option<(u64, u64)>,
    live: Live,
    /// Only what this thread used.
    only: Option<String>,
    /// Only what the output does not tell better.
    beside: bool,
    /// For another record: tokens have their model.
    history: bool,
    /// Lines have the id of the turn that ends there.
    positions: bool,
    /// The number of the first line of a log that is gone on with: a copy repeats those before it.
    first: Option<u64>,
    /// The conversation that goes on, and all that were seen.
    thread: Option<String>,
    threads: HashSet<String>,
    model: Option<String>,
    calls: Calls,
    /// The thread's last known total.
    total: Option<TokenCounts>,
    /// Whether a line of this thread has told tokens: what was said of the time before does not count from then on.
    told: bool,
    turn: Option<String>,
    turns: u64,
    steps: u64,
    /// What the person asked last: some versions write it twice.
    asked: Option<String>,
    windows: Windows,
    failure: Option<(OutcomeKind, String)>,
    last_text: Option<String>,
}

impl Rollout {
    fn new(options: &ReaderOptions, usage: LogUse<'_>) -> Self {
        Self {
            window: None,
            context: None,
            live: Live::new(match usage {
                LogUse::Alone { since } => since,
                LogUse::BesideOutput | LogUse::Whole | LogUse::History | LogUse::SubAgent { .. } => None,
            }),
            only: match usage {
                LogUse::SubAgent { id } => Some(id.to_owned()),
                LogUse::Alone { .. } | LogUse::BesideOutput | LogUse::Whole | LogUse::History => None,
            },
            beside: matches!(usage, LogUse::BesideOutput),
            history: usage == LogUse::History,
            positions: matches!(usage, LogUse::Whole | LogUse::History),
            first: None,
            thread: None,
            threads: HashSet::new(),
            model: None,
            calls: Calls::default(),
            total: options.baseline.counts(),
            told: false,
            turn: None,
            turns: 0,
            steps: 0,
            asked: None,
            windows: Windows::default(),
            failure: None,
            last_text: None,
        }
    }

    /// Gives back the id of the turn that ended with this line.
    fn line(&mut self, line: Line, out: &mut Vec<AgentEvent>) -> Option<String> {
        let live = self.live.look(line.timestamp.as_deref());
        let payload = line.payload?;
        match line.r#type.as_deref() {
            Some("session_meta") => self.meta(payload, out),
            Some("turn_context") if live => self.context(payload, out),
            Some("response_item") if live => self.item(payload, out),
            Some("token_usage_record") => self.used(&payload, live, out),
            Some("event_msg") if payload.r#type.as_deref() == Some("token_count") => {
                self.count(payload, live, out);
            }
            Some("event_msg") if live => return self.event(payload, out),
            Some("compacted") if live => out.push(AgentEvent::Compaction {
                phase: CompactionPhase::Finished,
                trigger: None,
                tokens_before: None,
                tokens_after: None,
            }),
            _ => {}
        }
        None
    }

    fn meta(&mut self, payload: Payload, out: &mut Vec<AgentEvent>) {
        let Some(id) = payload.id.or(payload.session_id) else { return };
        // A copy begins with its own line and may repeat that of its origin, which is older than this run.
        if self.threads.len() < MAX_THREADS && is_short(&id) {
            self.threads.insert(id.clone());
        }
        let ours = self.live.is_bounded() && payload.timestamp.is_some_and(|at| self.live.covers(&at));
        if !ours && self.thread.is_some() {
            return;
        }
        self.thread = Some(id.clone());
        self.model = None;
        if ours {
            (self.total, self.told) = (Some(TokenCounts::default()), false);
        }
        if ours || !self.live.is_bounded() {
            out.push(started(id, None, payload.cwd, payload.cli_version));
        }
    }

    fn context(&mut self, payload: Payload, out: &mut Vec<AgentEvent>) {
        self.turn = payload.turn_id.or(self.turn.take());
        if payload.model.is_none() || payload.model == self.model {
            return;
        }
        self.model = payload.model;
        out.extend(self.thread.clone().map(|id| started(id, self.model.clone(), payload.cwd, None)));
    }

    fn item(&mut self, payload: Payload, out: &mut Vec<AgentEvent>) {
        match payload.r#type.as_deref() {
            Some("message") if payload.role.as_deref() == Some("assistant") => {
                let text = words(payload.content.as_ref());
                self.last_text = Some(text.clone());
                out.push(AgentEvent::Text { message_id: payload.id, text, parent: None });
            }
            Some("reasoning") => {
                let text = words(payload.summary.as_ref());
                if !text.is_empty() {
                    out.push(AgentEvent::Thinking { message_id: payload.id, text, parent: None });
                }
            }
            Some(kind) if kind.ends_with("_call_output") => {
                if let Some(call_id) = payload.call_id {
                    self.calls.answered(call_id, payload.output.unwrap_or_else(Raw::null), out);
                }
            }
            Some(kind) if kind.ends_with("_call") => {
                let kind = kind.to_owned();
                self.calls.called(&kind, payload, out);
            }
            _ => {}
        }
    }

    /// The tokens of one answer, and of the thread with it.
    fn used(&mut self, payload: &Payload, live: bool, out: &mut Vec<AgentEvent>) {
        // Those of sub-agents stand in rollouts of their own.
        let known =
            |thread: &String| self.only.is_some() || self.threads.is_empty() || self.threads.contains(thread);
        if !payload.thread_id.as_ref().is_none_or(known) {
            return;
        }
        let Some(usage) = payload.usage.as_ref().map(Usage::counts) else { return };
        if self.only.is_some() {
            if self.only == payload.thread_id {
                out.push(AgentEvent::Tokens { model: None, delta: Some(usage), total: None });
            }
            return;
        }
        let total = payload.thread_token_usage.as_ref().map(Usage::counts);
        let total = total.unwrap_or_else(|| self.total.unwrap_or_default().plus(usage));
        if !self.told {
            // Better than what anybody remembers: a run that died may have told nobody what it used.
            self.total = Some(total.minus(usage));
        }
        self.counted(total, live, out);
        self.fill(usage.total(), live, out);
    }

    /// What the thread has used altogether.
    fn count(&mut self, payload: Payload, live: bool, out: &mut Vec<AgentEvent>) {
        // It does not say whose it is.
        if let Some(info) = payload.info.filter(|_| self.only.is_none()) {
            self.window = info.model_context_window.or(self.window);
            let last = info.last_token_usage.as_ref().map(Usage::counts);
            if let Some(total) = info.total_token_usage.as_ref().map(Usage::counts) {
                self.total = self.total.or_else(|| Some(total.minus(last.unwrap_or_default())));
                self.counted(total, live, out);
            }
            if let Some(last) = last {
                self.fill(last.total(), live, out);
            }
        }
        let limits = payload.rate_limits.and_then(|limits| self.windows.told(limits));
        out.extend(limits.filter(|_| live));
    }

    /// What was asked last, with its answer, is what the context holds. Whether that is news depends on what was read before,
    /// so it comes behind what was used: that has the same number in its line, and counts once, wherever a reader begins.
    fn fill(&mut self, used: u64, live: bool, out: &mut Vec<AgentEvent>) {
        let Some(window) = self.window.filter(|window| *window > 0 && used > 0) else { return };
        if live && self.context != Some((used, window)) {
            self.context = Some((used, window));
            out.push(AgentEvent::Context { used: Some(used), window: Some(window) });
        }
    }

    fn counted(&mut self, total: TokenCounts, live: bool, out: &mut Vec<AgentEvent>) {
        let delta = self.total.map_or(total, |before| total.minus(before));
        if delta.is_zero() {
            return;
        }
        (self.told, self.total) = (true, Some(total));
        if live {
            self.steps += 1;
            let model = self.model.clone();
            out.push(AgentEvent::Tokens { model, delta: Some(delta), total: Some(total) });
        }
    }

    /// The person may go back to a conversation that they left.
    fn went_back(&mut self, thread: &str, out: &mut Vec<AgentEvent>) {
        if self.threads.contains(thread) && self.thread.as_deref() != Some(thread) {
            self.thread = Some(thread.to_owned());
            (self.total, self.told) = (None, false);
            out.push(started(thread.to_owned(), None, None, None));
        }
    }

    fn event(&mut self, payload: Payload, out: &mut Vec<AgentEvent>) -> Option<String> {
        if let Some(thread) = &payload.thread_id {
            self.went_back(thread, out);
        }
        match payload.r#type.as_deref() {
            Some("task_started" | "turn_started") => {
                self.window = payload.model_context_window.or(self.window);
                self.turn = payload.turn_id.or(self.turn.take());
                (self.asked, self.failure, self.last_text, self.steps) = (None, None, None, 0);
                out.push(AgentEvent::TurnStarted);
            }
            Some("user_message") => self.asked(payload.message.unwrap_or_default(), out),
            Some("item_completed") => {
                let item = payload.item.unwrap_or_default();
                if item.r#type.as_deref() == Some("UserMessage") {
                    self.asked(words(item.content.as_ref()), out);
                } else {
                    self.calls.completed(item, out);
                }
            }
            Some("error") => {
                self.failed(payload.message.unwrap_or_default(), payload.codex_error_info.as_ref(), out);
            }
            Some("task_complete" | "turn_complete") => {
                let text = payload.last_agent_message.or_else(|| self.last_text.take());
                // Newer versions have no line of its own for the error that ended the turn.
                if let Some(error) = payload.error {
                    self.failed(error.message.unwrap_or_default(), error.codex_error_info.as_ref(), out);
                }
                let (verdict, reason) = match self.failure.take() {
                    Some((verdict, why)) => (verdict, Some(why)),
                    None => (OutcomeKind::Completed, None),
                };
                self.ended(verdict, reason, text, payload.duration_ms, out);
                return Some(payload.turn_id.or(self.turn.take()).unwrap_or_default());
            }
            Some("turn_aborted") => {
                let reason = Some(payload.reason.unwrap_or_else(|| "interrupted".to_owned()));
                let text = self.last_text.take();
                self.ended(OutcomeKind::Stopped, reason, text, payload.duration_ms, out);
                return Some(payload.turn_id.or(self.turn.take()).unwrap_or_default());
            }
            _ => {}
        }
        None
    }

    fn failed(&mut self, message: String, info: Option<&Raw>, out: &mut Vec<AgentEvent>) {
        let meaning = self.windows.understand(info, &message);
        out.extend(self.windows.refused(&meaning));
        self.failure = Some((meaning.verdict(), message.clone()));
        let api_status = status_in(&message);
        out.push(meaning.event(message, api_status));
    }

    fn asked(&mut self, text: String, out: &mut Vec<AgentEvent>) {
        if text.is_empty() || self.asked.as_ref() == Some(&text) {
            return;
        }
        self.asked = Some(text.clone());
        out.push(AgentEvent::Input { source: InputSource::User, text, parent: None });
    }

    fn ended(
        &mut self,
        verdict: OutcomeKind,
        reason: Option<String>,
        text: Option<String>,
        duration_ms: Option<u64>,
        out: &mut Vec<AgentEvent>,
    ) {
        self.turns += 1;
        out.push(AgentEvent::TurnCompleted {
            turn: self.turns,
            steps: Some(std::mem::take(&mut self.steps)),
            duration_ms,
            api_duration_ms: None,
            stop_reason: None,
        });
        out.push(AgentEvent::Result { verdict, text, reason, api_status: None });
    }
}

impl StreamParser for Rollout {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> LineMeta {
        // A line that nobody understands is no loss: it is in the file, and Codex's own affair.
        let Some(line) = lenient::read::<Line>(json, &mut Vec::new()) else { return LineMeta::default() };
        if self.beside || self.history {
            let first = *self.first.get_or_insert(line.ordinal.unwrap_or(0));
            if line.ordinal.is_some_and(|ordinal| ordinal < first) {
                return LineMeta::default();
            }
        }
        let at = line.timestamp.clone();
        let before = out.len();
        let turn = self.line(line, out);
        if self.beside {
            let told: Vec<AgentEvent> = out.drain(before..).filter(is_told_by_log).collect();
            out.extend(told);
        }
        LineMeta { session_id: None, event_id: turn.filter(|_| self.positions), at }
    }

    fn text(&mut self, _text: &str, _out: &mut Vec<AgentEvent>) {}

    fn line_starts(&self) -> &'static [&'static str] {
        if self.history { &["{\"timestamp\":\""] } else { &[] }
    }

    fn knows(&self, event_type: &str) -> bool {
        matches!(event_type, "response_item" | "event_msg" | "session_meta" | "turn_context")
    }
}

fn started(
    native_id: String,
    model: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
) -> AgentEvent {
    AgentEvent::SessionStarted { native_id, model, cwd, version, permission_mode: None, tools: Vec::new() }
}

/// All the text in a list of parts.
fn words(parts: Option<&Raw>) -> String {
    let parts: Vec<Part> = parts.and_then(Raw::read).unwrap_or_default();
    let texts: Vec<String> = parts.into_iter().filter_map(|part| part.text).collect();
    texts.join("\n")
}

/// A copy of a rollout that ends after byte `end` under another thread id, so that the conversation can go on from
/// there while the original stays as it is. The copy belongs beside the original, with the new id in its name.
///
/// `None` when `end` is not the end of a line or the ids are not of the same length.
pub fn fork_at(rollout: &[u8], end: u64, old_id: &str, new_id: &str) -> Option<Vec<u8>> {
    let end = usize::try_from(end).ok().filter(|end| *end <= rollout.len())?;
    let kept = &rollout[..end];
    if !kept.ends_with(b"\n") || old_id.is_empty() || old_id.len() != new_id.len() {
        return None;
    }
    let mut copy = kept.to_vec();
    let mut at = 0;
    while at + old_id.len() <= copy.len() {
        if copy[at..].starts_with(old_id.as_bytes()) {
            copy[at..at + new_id.len()].copy_from_slice(new_id.as_bytes());
            at += new_id.len();
        } else {
            at += 1;
        }
    }
    Some(copy)
}
