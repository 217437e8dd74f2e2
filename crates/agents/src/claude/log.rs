//! Claude Code's transcripts: its own log of a conversation, one file for each, and one for each sub-agent beside it.
//!
//! It holds much that is only for Claude Code itself (what it was told, what it sent), which is left there.

use std::collections::HashMap;
use std::collections::VecDeque;

use serde::Deserialize;

use super::content::Calls;
use super::content::text_of;
use super::wire::Message;
use super::wire::ModelUsage;
use super::wire::PermissionDecision;
use super::wire::ResultMeta;
use super::wire::User;
use crate::bounds::is_short;
use crate::classify::understand;
use crate::conversation_log::ConversationLog;
use crate::conversation_log::Lineage;
use crate::conversation_log::Live;
use crate::conversation_log::LogLocation;
use crate::conversation_log::LogUse;
use crate::event::AgentEvent;
use crate::event::CompactionPhase;
use crate::event::InputSource;
use crate::keeping::Arrival;
use crate::keeping::ConversationFile;
use crate::keeping::Keeping;
use crate::keeping::KeptFiles;
use crate::keeping::only_letters;
use crate::outcome::OutcomeKind;
use crate::raw::Raw;
use crate::reader::LineMeta;
use crate::reader::Reader;
use crate::reader::ReaderOptions;
use crate::reader::StreamParser;
use crate::tally::Ending;
use crate::tally::Tally;
use crate::tokens::TokenCounts;

/// Messages whose numbers are remembered: each is written once per block.
const MESSAGES: usize = 64;
/// Calls in the log of a sub-agent do not say whose it is.
const SUB_AGENT: &str = "sub-agent";
/// Conversations in one process, more than anybody opens.
const CONVERSATIONS: usize = 1_000;

/// Where transcripts lie and how they read.
#[derive(Debug)]
pub(super) struct TranscriptLog;

impl ConversationLog for TranscriptLog {
    fn location(&self) -> Option<LogLocation> {
        Some(LogLocation {
            variable: "CLAUDE_CONFIG_DIR",
            home: ".claude",
            below: "projects",
            // One folder for each directory it was started in; resumed elsewhere, a conversation stays in the first.
            depth: 1,
            prefix: "",
            kept_open: false,
            sub_agents: Some("subagents"),
        })
    }

    fn keeping(&self) -> Option<Keeping> {
        let target = |arrival: &Arrival<'_>| {
            let (directories, file) = (vec![only_letters(arrival.project)], format!("{}.jsonl", arrival.id));
            Some(ConversationFile { directories, file, owner: None })
        };
        Some(Keeping::Files(KeptFiles { location: self.location()?, named_by: None, target }))
    }

    fn reader(&self, options: &ReaderOptions, usage: LogUse<'_>) -> Option<Reader> {
        let history = usage == LogUse::History;
        let (since, whole) = match usage {
            LogUse::Alone { since } => (since, false),
            LogUse::Whole | LogUse::History => (None, true),
            // Its output tells all that is in there.
            LogUse::BesideOutput | LogUse::SubAgent { .. } => return None,
        };
        let ending = if whole { Ending::Silent } else { Ending::Interactive };
        let from_middle = options.start_offset > 0;
        let parser =
            Transcript { live: Live::new(since), whole, history, from_middle, ..Transcript::default() };
        Some(Reader::new(Box::new(parser), options, Tally::new(ending, options)))
    }

    fn lineage(&self, head: &[u8]) -> Lineage {
        let mut lineage = Lineage::default();
        for line in head.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<First>(line) else { continue };
            lineage.id = lineage.id.or(line.session_id);
            lineage.cwd = lineage.cwd.or(line.cwd);
            if matches!(line.r#type.as_deref(), Some("user" | "assistant")) && line.uuid.is_some() {
                lineage.root = line.uuid.filter(|uuid| is_short(uuid));
                break;
            }
        }
        lineage
    }

    /// Here each message counts as it is last written, also those of sub-agents, which have logs of their own.
    fn used_since(&self, bytes: &[u8], since: &str) -> Option<TokenCounts> {
        let mut live = Live::new(Some(since));
        let mut used: HashMap<String, TokenCounts> = HashMap::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
            if !live.look(line.timestamp.as_deref()) {
                continue;
            }
            let message = line.message.filter(|_| line.is_api_error_message != Some(true));
            if let Some((id, usage)) = message.and_then(|message| message.id.zip(message.usage)) {
                used.insert(id, usage.counts());
            }
        }
        (!used.is_empty())
            .then(|| used.values().fold(TokenCounts::default(), |sum, counts| sum.plus(*counts)))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Line {
    r#type: Option<String>,
    subtype: Option<String>,
    uuid: Option<String>,
    timestamp: Option<String>,
    session_id: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
    is_sidechain: bool,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_api_error_message: Option<bool>,
    api_error_status: Option<u16>,
    error: Option<String>,
    message: Option<Message>,
    origin: Option<Origin>,
    attachment: Option<Attachment>,
    tool_use_result: Option<Raw>,
    tool_denial_kind: Option<String>,
    permission_decision: Option<PermissionDecision>,
    permission_mode: Option<String>,
    duration_ms: Option<u64>,
    #[serde(rename = "totalCostUSD")]
    total_cost_usd: Option<f64>,
    model_usage: Option<HashMap<String, ModelUsage>>,
}

/// What tells where a transcript comes from.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct First {
    r#type: Option<String>,
    uuid: Option<String>,
    session_id: Option<String>,
    cwd: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Origin {
    kind: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Attachment {
    prompt: Option<Raw>,
}

/// What one conversation has used, as its record tells it.
#[derive(Debug, Default)]
struct Account {
    /// Before this run.
    tokens_before: TokenCounts,
    cost_before: f64,
    /// Already told.
    tokens: TokenCounts,
    cost: f64,
}

/// What must be remembered from line to line.
#[derive(Debug, Default)]
struct Transcript {
    live: Live,
    /// Sub-agents too.
    whole: bool,
    /// For another record: tokens have their model, and the account is told as a total.
    history: bool,
    /// It begins in the middle of the log. What a whole conversation has used says nothing there: what of it was before, or
    /// was told already, stands in lines that are not read.
    from_middle: bool,
    calls: Calls,
    accounts: HashMap<String, Account>,
    messages: VecDeque<(String, TokenCounts)>,
    /// The conversation and model that were told last.
    told: (Option<String>, Option<String>),
    turns: u64,
    steps: u64,
    last_text: Option<String>,
    verdict: Option<(OutcomeKind, String)>,
}

impl Transcript {
    fn line(&mut self, line: Line, out: &mut Vec<AgentEvent>) {
        let live = self.live.look(line.timestamp.as_deref());
        if line.r#type.as_deref() == Some("cost-state") {
            return self.account(&line, live, out);
        }
        // What sub-agents do is in logs of their own; hooks tell of their calls.
        if !live || (line.is_sidechain && !self.whole) {
            return;
        }
        match (line.r#type.as_deref(), line.subtype.as_deref()) {
            (Some("user"), _) => self.user(line, out),
            (Some("assistant"), _) => self.assistant(line, out),
            (Some("attachment"), _) => {
                let prompt = line.attachment.and_then(|attachment| attachment.prompt);
                out.extend(prompt.and_then(|prompt| ended_task(&text_of(Some(&prompt)))));
            }
            (Some("system"), Some("turn_duration")) => self.turn(line.duration_ms, out),
            (Some("system"), Some("compact_boundary")) => out.push(AgentEvent::Compaction {
                phase: CompactionPhase::Finished,
                trigger: None,
                tokens_before: None,
                tokens_after: None,
            }),
            _ => {}
        }
    }

    /// Says who speaks when that is news.
    fn opened(&mut self, line: &Line, model: Option<&String>, out: &mut Vec<AgentEvent>) {
        let Some(id) = line.session_id.as_ref().filter(|_| !line.is_sidechain) else { return };
        let same = self.told.0.as_ref() == Some(id);
        let model = model.filter(|model| *model != "<synthetic>");
        if same && model.is_none_or(|model| self.told.1.as_ref() == Some(model)) {
            return;
        }
        self.told.0 = Some(id.clone());
        self.told.1 = model.cloned().or_else(|| self.told.1.take().filter(|_| same));
        out.push(AgentEvent::SessionStarted {
            native_id: id.clone(),
            model: model.cloned(),
            cwd: line.cwd.clone(),
            version: line.version.clone(),
            permission_mode: line.permission_mode.clone(),
            tools: Vec::new(),
        });
    }

    fn user(&mut self, line: Line, out: &mut Vec<AgentEvent>) {
        self.opened(&line, None, out);
        let from_person = line.is_meta != Some(true)
            && line.is_compact_summary != Some(true)
            && line.origin.is_none_or(|origin| origin.kind.as_deref() == Some("human"));
        let message = line.message.unwrap_or_default();
        // The line is about one call; in the output such facts stand in a list.
        let meta = ResultMeta {
            id: call_of(&message),
            non_execution_kind: line.tool_denial_kind,
            permission_decision: line.permission_decision,
        };
        let user = User {
            message,
            parent_tool_use_id: line.is_sidechain.then(|| SUB_AGENT.to_owned()),
            tool_use_result: line.tool_use_result,
            tool_result_meta: Some(vec![meta]),
            is_synthetic: line.is_meta,
            is_replay: None,
        };
        let before = out.len();
        if self.calls.user(&user, out).is_none() {
            out.truncate(before);
        }
        let tasks: Vec<AgentEvent> = out[before..]
            .iter()
            .filter_map(|event| match event {
                AgentEvent::Input { text, .. } => ended_task(text),
                _ => None,
            })
            .collect();
        out.extend(tasks);
        let mut begins = false;
        for event in &mut out[before..] {
            let AgentEvent::Input { source, text, .. } = event else { continue };
            if line.is_sidechain {
                continue;
            }
            if text.starts_with("[Request interrupted by user") {
                self.verdict = Some((OutcomeKind::Stopped, "interrupted by the person".to_owned()));
            } else if from_person && !text.starts_with("<command-") && !text.starts_with("<local-command-") {
                *source = InputSource::User;
                begins = true;
            }
        }
        if begins {
            (self.verdict, self.last_text, self.steps) = (None, None, 0);
            out.insert(before, AgentEvent::TurnStarted);
        }
    }

    fn assistant(&mut self, line: Line, out: &mut Vec<AgentEvent>) {
        let Some(message) = &line.message else { return };
        if line.is_api_error_message == Some(true) {
            let text = text_of(message.content.as_ref());
            let meaning = understand(line.api_error_status, line.error.as_deref(), &text);
            self.verdict = Some((meaning.verdict(), text.clone()));
            out.push(meaning.event(text, line.api_error_status));
            return;
        }
        if message.model.as_deref() == Some("<synthetic>") {
            return;
        }
        self.opened(&line, message.model.as_ref(), out);
        let before = out.len();
        let parent = line.is_sidechain.then_some(SUB_AGENT);
        if self.calls.assistant(message, parent, out).is_none() {
            out.truncate(before);
        }
        if let Some(AgentEvent::Text { text, .. }) = out[before..].last() {
            self.last_text = Some(text.clone());
        }
        if let (Some(id), Some(usage)) = (&message.id, &message.usage) {
            let model = message.model.clone().filter(|_| self.history);
            self.used(line.session_id.as_deref(), id, model, usage.counts(), out);
        }
    }

    /// A message is complete when it is written, so what it used is no estimate.
    fn used(
        &mut self,
        session: Option<&str>,
        id: &str,
        model: Option<String>,
        counts: TokenCounts,
        out: &mut Vec<AgentEvent>,
    ) {
        let known = self.messages.iter_mut().find(|(known, _)| known == id);
        let news = match known {
            Some((_, before)) if *before == counts => return,
            Some((_, before)) => {
                let news = counts.since(*before);
                *before = counts;
                news
            }
            None => {
                self.steps += 1;
                if is_short(id) {
                    self.messages.push_back((id.to_owned(), counts));
                }
                if self.messages.len() > MESSAGES {
                    self.messages.pop_front();
                }
                counts
            }
        };
        if let Some(account) = self.account_of(session) {
            account.tokens = account.tokens.plus(news);
        }
        out.push(AgentEvent::Tokens { model, delta: Some(news), total: None });
    }

    fn account_of(&mut self, session: Option<&str>) -> Option<&mut Account> {
        let session = session.filter(|session| is_short(session))?;
        if !self.accounts.contains_key(session) && self.accounts.len() >= CONVERSATIONS {
            return None;
        }
        Some(self.accounts.entry(session.to_owned()).or_default())
    }

    /// What the whole conversation has used: with sub-agents and side requests, and over all its runs.
    fn account(&mut self, line: &Line, live: bool, out: &mut Vec<AgentEvent>) {
        let models = line.model_usage.iter().flat_map(HashMap::values);
        let tokens = models.fold(TokenCounts::default(), |sum, usage| sum.plus(usage.counts()));
        let cost = line.total_cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0);
        if self.history {
            return out.push(AgentEvent::Tokens { model: None, delta: None, total: Some(tokens) });
        }
        if self.from_middle {
            return;
        }
        let Some(account) = self.account_of(line.session_id.as_deref()) else { return };
        if !live {
            account.tokens_before = tokens;
            account.cost_before = cost.unwrap_or(account.cost_before);
            return;
        }
        let used = tokens.since(account.tokens_before);
        let news = TokenCounts {
            input: used.input.saturating_sub(account.tokens.input),
            cache_read: used.cache_read.saturating_sub(account.tokens.cache_read),
            cache_write: used.cache_write.saturating_sub(account.tokens.cache_write),
            output: used.output.saturating_sub(account.tokens.output),
            reasoning: used.reasoning.saturating_sub(account.tokens.reasoning),
        };
        if news.total() > 0 {
            account.tokens = account.tokens.plus(news);
            out.push(AgentEvent::Tokens { model: None, delta: Some(news), total: None });
        }
        if let Some(total) = cost {
            let news = total - account.cost_before - account.cost;
            if news > 0.0 {
                account.cost += news;
                out.push(AgentEvent::Cost { delta_usd: Some(news), total_usd: Some(total) });
            }
        }
    }

    fn turn(&mut self, duration_ms: Option<u64>, out: &mut Vec<AgentEvent>) {
        self.turns += 1;
        out.push(AgentEvent::TurnCompleted {
            turn: self.turns,
            steps: Some(std::mem::take(&mut self.steps)),
            duration_ms,
            api_duration_ms: None,
            stop_reason: None,
        });
        let (verdict, reason) = match self.verdict.take() {
            Some((verdict, reason)) => (verdict, Some(reason)),
            None => (OutcomeKind::Completed, None),
        };
        out.push(AgentEvent::Result { verdict, text: self.last_text.take(), reason, api_status: None });
    }
}

/// What went on in the background has ended: the model is told so as if by a person.
fn ended_task(text: &str) -> Option<AgentEvent> {
    let body = text.trim_start().strip_prefix("<task-notification>")?;
    let tag = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(value, _)| value.trim().to_owned())
    };
    Some(AgentEvent::TaskStopped {
        task_id: tag("task-id")?,
        call_id: tag("tool-use-id"),
        status: tag("status")?,
        summary: tag("summary"),
    })
}

impl StreamParser for Transcript {
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> LineMeta {
        // A shape that is not known here is Claude Code's own affair.
        let Ok(mut line) = serde_json::from_str::<Line>(json) else { return LineMeta::default() };
        let sub_agent = line.is_sidechain;
        let meta = LineMeta { session_id: None, event_id: line.uuid.take(), at: line.timestamp.clone() };
        self.line(line, out);
        // Only what the model said can be gone back to.
        let said = out.iter().any(|event| {
            matches!(
                event,
                AgentEvent::Text { .. } | AgentEvent::Thinking { .. } | AgentEvent::ToolStarted { .. }
            )
        });
        // For another record a line is known by its id wherever it is repeated.
        let keeps = self.history || (said && !sub_agent);
        LineMeta { event_id: meta.event_id.filter(|_| keeps), ..meta }
    }

    fn introduces(&self) -> bool {
        true
    }

    fn knows(&self, _event_type: &str) -> bool {
        false
    }

    fn line_starts(&self) -> &'static [&'static str] {
        if self.history { &["{\"parentUuid\":", "{\"type\":\"cost-state\""] } else { &[] }
    }
}

/// The call whose result a line is.
fn call_of(message: &Message) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Answer {
        tool_use_id: Option<String>,
    }
    let blocks: Vec<Answer> = message.content.as_ref()?.read()?;
    blocks.into_iter().find_map(|block| block.tool_use_id)
}
