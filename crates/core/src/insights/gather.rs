//! Counting, session by session.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use serde_json::Value;

use super::CallNumbers;
use super::Insights;
use super::Numbers;
use super::Shares;
use super::findings;
use super::groups::Groups;
use super::groups::Place;
use super::groups::Sums;
use super::groups::telling_line;
use super::lifecycle::Life;
use super::repeats::Made;
use super::repeats::Repeats;
use super::repeats::Repetition;
use crate::call;
use crate::event::Channel;
use crate::event::Event;
use crate::event::Maker;
use crate::id::SessionId;
use crate::rows::ErrorRow;
use crate::rows::ToolRow;
use crate::state::Mark;
use crate::summary::Summary;
use crate::text::Text;
use crate::text::shorten;
use crate::time::Timestamp;

/// Longest name of a call, a rule or the like, in characters: longer ones are nobody's habit.
const NAME: usize = 120;
/// How many edits of a session are remembered, so that one of which two sources tell counts once.
const EDITS: usize = 64;
/// How many phases of a session are told apart.
const PHASES: usize = 100;
/// Kinds of events that are counted, or that have to be known to count others.
const KINDS: &[&str] = &[
    "budget_exceeded",
    "checkpoint_ready",
    "file_changed",
    "iteration_ended",
    "loop_parked",
    "loop_woken",
    "phase_advanced",
    "question_answered",
    "question_asked",
    "question_closed",
    "reported",
    "resume_attempted",
    "run_ended",
    "run_started",
    "said",
    "session_aborted",
    "session_failed",
    "session_halted",
    "session_interrupted",
    "session_paused",
    "session_resumed",
];
/// How many of the dearest sessions are kept.
const DEAREST: usize = 5;

/// What a run used, or what was recorded beside all runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent<'a> {
    /// Whether it was a run.
    pub is_run: bool,
    /// The model.
    pub model: Option<&'a str>,
    /// The phase that it began in.
    pub phase: Option<&'a str>,
    /// The day on which it began.
    pub day: &'a str,
    /// How it ended, if it has.
    pub outcome: Option<&'a str>,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// Money, in millionths of a dollar.
    pub micros: u64,
    /// Tokens whose price nobody knows.
    pub unpriced_tokens: u64,
    /// How long it took, if nobody sat at its terminal.
    pub ms: Option<u64>,
}

/// A dear session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Dear {
    pub(super) micros: u64,
    pub(super) session: SessionId,
    pub(super) topic: String,
}

/// Everything that is counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) numbers: Numbers,
    pub(super) errors: Groups,
    pub(super) denials: Groups,
    pub(super) questions: Groups,
    pub(super) repeats: Groups,
    pub(super) breakers: Groups,
    pub(super) limits: Groups,
    pub(super) budgets: Groups,
    pub(super) crashes: Groups,
    pub(super) calls: Groups,
    pub(super) files: Groups,
    pub(super) phases: Groups,
    pub(super) conditions: Groups,
    pub(super) resumes: Groups,
    pub(super) bare: Groups,
    pub(super) dearest: Vec<Dear>,
    /// What sessions used that used something: tokens that count, and money.
    pub(super) used: Vec<(u64, u64)>,
    projects: Sums,
    models: Sums,
    phase_sums: Sums,
    outcomes: Sums,
    days: Sums,
    tools: Sums,
}

/// What is known of the session that is looked at.
struct Present {
    session: SessionId,
    project: String,
    topic: Option<String>,
    /// Recorded while it went on, so that a checkpoint could have been made.
    is_own: bool,
    turn: u64,
    edits: VecDeque<u64>,
    changed: Option<(Place, String)>,
    phases: BTreeMap<String, u64>,
    checkpoints: u64,
    micros: u64,
    tokens: u64,
    run: Option<String>,
    repeats: Repeats,
    life: Life,
}

/// Counts what sessions have in common. One session is looked at at a time, and none is kept.
pub struct Gatherer {
    since: Option<Timestamp>,
    counted: Counted,
    now: Option<Present>,
}

impl Gatherer {
    /// One that counts what has happened since some moment, or ever.
    pub fn new(since: Option<Timestamp>) -> Self {
        Self { since, counted: Counted::default(), now: None }
    }

    /// The next session.
    pub fn begin(&mut self, summary: &Summary) {
        self.end();
        self.counted.numbers.sessions += 1;
        self.now = Some(Present {
            session: summary.session_id,
            project: summary.project.clone(),
            topic: summary.topic.clone(),
            is_own: summary.made_by != Maker::Import,
            turn: 0,
            edits: VecDeque::new(),
            changed: None,
            phases: BTreeMap::new(),
            checkpoints: 0,
            micros: 0,
            tokens: 0,
            run: None,
            repeats: Repeats::default(),
            life: Life::default(),
        });
    }

    /// A row of the session's ledger, in the order of the ledger; `seq` is the event that made it. `is_risky` says whether the
    /// call is one that may destroy something.
    pub fn call(&mut self, seq: u64, row: &ToolRow, is_risky: bool) {
        let Some(now) = &mut self.now else { return };
        let at = row.started_at.or(row.ended_at);
        if !is_since(self.since, at) {
            return;
        }
        let place = Place { session: now.session, seq, at };
        let counted = &mut self.counted;
        let input = row.input.as_ref().unwrap_or(&Value::Null);
        count_call(&mut counted.numbers.calls, &row.state);
        let head = call::head(&row.tool, input);
        let group = counted.calls.group(&head, || head.clone());
        group.of += 1;
        let output = row.output.as_ref().map_or("", Text::excerpt);
        let in_words = shorten(format!("{} {}", row.tool, call::subject(input)).trim(), NAME);
        match row.state.as_str() {
            "failed" => group.hit(place, now.turn, if output.trim().is_empty() { &in_words } else { output }),
            "denied" => {
                let rule = call::allow_rule(&row.tool, input);
                let is_rule = rule.chars().count() <= NAME;
                let name = if is_rule { rule } else { head };
                let group = counted.denials.group(&name, || name.clone());
                group.hit(place, now.turn, &in_words);
                // Nobody should be told to allow what may destroy something, or what no rule describes.
                group.special += u64::from(is_risky || !is_rule);
            }
            _ => {}
        }
        if let (Some(from), Some(to)) = (row.started_at, row.ended_at) {
            let ms = to.micros_since(from) / 1_000;
            counted.numbers.time.calls_ms = counted.numbers.time.calls_ms.saturating_add(ms);
            counted.tools.add(&row.tool, 0, 0, ms);
        }
        if now.run != row.run {
            now.run.clone_from(&row.run);
            repeated(&mut counted.repeats, now.repeats.end());
        }
        let result = (&row.tool, input.to_string(), output, row.output_bytes);
        let hash = crate::fnv::hash(format!("{result:?}").as_bytes());
        repeated(&mut counted.repeats, now.repeats.call(Made { hash, place, what: in_words }));
    }

    /// An error of the session.
    pub fn error(&mut self, seq: u64, row: &ErrorRow) {
        let Some(now) = &self.now else { return };
        if !is_since(self.since, row.timestamp) {
            return;
        }
        self.counted.numbers.errors += 1;
        let message = row.message.as_ref().map_or("", Text::excerpt);
        let kind = row.error_kind.as_deref().unwrap_or("unknown");
        // The kind is before the blank; what else an error says is not the same for the same error.
        let name = format!("{kind} {}", row.fingerprint);
        let group = self.counted.errors.group(&name, || format!("{kind} {}", first_line(message)));
        group.hit(Place { session: now.session, seq, at: row.timestamp }, now.turn, message);
    }

    /// Whether events of this kind say anything to it now. Those that do not need not even be parsed.
    pub fn wants(&self, kind: &str) -> bool {
        let waits = self.now.as_ref().is_some_and(|now| now.life.waits_for_work());
        KINDS.contains(&kind) || (waits && super::lifecycle::WORK.contains(&kind))
    }

    /// An event of the session, in order.
    pub fn event(&mut self, mark: &Mark, event: &Event) {
        let Some(now) = &mut self.now else { return };
        let is_new = is_since(self.since, Some(mark.at));
        let place = Place { session: now.session, seq: mark.seq, at: Some(mark.at) };
        now.life.take(&mut self.counted, place, mark, event, is_new);
        if matches!(event, Event::Said(said) if said.channel == Channel::Input && said.parent.is_none())
            || matches!(event, Event::RunStarted(_))
        {
            now.turn += 1;
        }
        if !is_new {
            return;
        }
        if let Event::FileChanged(e) = event {
            now.file(&mut self.counted, place, &e.path, e.call.as_deref());
        }
        if let Event::PhaseAdvanced(e) = event {
            now.phase(&mut self.counted, place, &e.to);
        }
        if let Event::IterationEnded(e) = event {
            iteration(&mut self.counted, place, e);
        }
        if let Event::CheckpointReady(e) = event
            && !e.safety_only
        {
            now.checkpoints += 1;
            let checkpoints = &mut self.counted.numbers.checkpoints;
            checkpoints.total += 1;
            checkpoints.of_own += u64::from(now.is_own);
        }
    }

    /// What a run of the session used.
    pub fn spent(&mut self, spent: &Spent<'_>) {
        let Some(now) = &mut self.now else { return };
        let counted = &mut self.counted;
        let numbers = &mut counted.numbers;
        let Spent { tokens, micros, .. } = *spent;
        numbers.tokens = numbers.tokens.saturating_add(tokens);
        numbers.micros = numbers.micros.saturating_add(micros);
        numbers.unpriced_tokens = numbers.unpriced_tokens.saturating_add(spent.unpriced_tokens);
        now.tokens = now.tokens.saturating_add(tokens);
        now.micros = now.micros.saturating_add(micros);
        let ms = spent.ms.unwrap_or(0);
        counted.projects.add(&now.project, tokens, micros, ms);
        counted.days.add(spent.day, tokens, micros, ms);
        if !spent.is_run {
            return;
        }
        numbers.runs += 1;
        numbers.time.runs_ms = numbers.time.runs_ms.saturating_add(ms);
        counted.models.add(spent.model.unwrap_or("(model not said)"), tokens, micros, ms);
        counted.phase_sums.add(spent.phase.unwrap_or("(no phase)"), tokens, micros, ms);
        counted.outcomes.add(spent.outcome.unwrap_or("(goes on)"), tokens, micros, ms);
        if let Some(outcome) = spent.outcome {
            numbers.runs_ended += 1;
            numbers.runs_completed += u64::from(outcome == "completed");
            if super::lifecycle::is_bad(outcome) {
                numbers.runs_bad += 1;
                numbers.micros_of_bad_ends = numbers.micros_of_bad_ends.saturating_add(micros);
            }
        }
    }

    /// What was found.
    pub fn finish(mut self) -> Insights {
        self.end();
        let Self { since, mut counted, .. } = self;
        let shares = Shares {
            projects: std::mem::take(&mut counted.projects).most_first(),
            models: std::mem::take(&mut counted.models).most_first(),
            phases: std::mem::take(&mut counted.phase_sums).most_first(),
            outcomes: std::mem::take(&mut counted.outcomes).most_first(),
            days: std::mem::take(&mut counted.days).by_name(),
            tools: std::mem::take(&mut counted.tools).most_first(),
        };
        findings::insights(since, counted, shares)
    }

    fn end(&mut self) {
        let Some(mut now) = self.now.take() else { return };
        let counted = &mut self.counted;
        repeated(&mut counted.repeats, now.repeats.end());
        now.life.end(counted);
        if now.is_own {
            let checkpoints = &mut counted.numbers.checkpoints;
            checkpoints.sessions += 1;
            if let Some((place, path)) = now.changed.filter(|_| now.checkpoints == 0) {
                checkpoints.without += 1;
                counted.bare.group("", String::new).hit(place, 0, &path);
            }
        }
        if now.tokens > 0 || now.micros > 0 {
            counted.used.push((now.tokens, now.micros));
        }
        if now.micros > 0 {
            let topic = now.topic.unwrap_or_default();
            counted.dearest.push(Dear { micros: now.micros, session: now.session, topic });
            counted.dearest.sort_by(|a, b| b.cmp(a));
            counted.dearest.truncate(DEAREST);
        }
    }
}

impl Present {
    fn file(&mut self, counted: &mut Counted, place: Place, path: &str, call: Option<&str>) {
        let inside = path.strip_prefix(self.project.as_str()).and_then(|rest| rest.strip_prefix('/'));
        let path = inside.unwrap_or(path);
        if let Some(call) = call {
            let edit = crate::fnv::hash(format!("{path}\n{call}").as_bytes());
            if self.edits.contains(&edit) {
                return;
            }
            self.edits.push_back(edit);
            if self.edits.len() > EDITS {
                self.edits.pop_front();
            }
        }
        let name = format!("{}\n{path}", self.project);
        let turn = self.turn;
        counted.files.group(&name, || path.to_owned()).hit(place, turn, path);
        if self.changed.is_none() {
            self.changed = Some((place, path.to_owned()));
        }
    }

    /// Counts a phase that is gone into again.
    fn phase(&mut self, counted: &mut Counted, place: Place, to: &str) {
        if self.phases.len() >= PHASES && !self.phases.contains_key(to) {
            return;
        }
        let times = self.phases.entry(to.to_owned()).or_default();
        *times += 1;
        if *times > 1 {
            let text = format!("gone into for the {times}. time");
            let group = counted.phases.group(to, || to.to_owned());
            group.hit(place, 0, &text);
            group.special += 1;
        }
    }
}

fn iteration(counted: &mut Counted, place: Place, ended: &crate::event::IterationEnded) {
    counted.numbers.iterations += 1;
    let group = counted.phases.group(&ended.phase, || ended.phase.clone());
    group.of += 1;
    group.amount = group.amount.max(ended.iteration);
    // The first one is no repetition.
    if ended.iteration > 1 {
        group.hit(place, ended.iteration, &ended.line);
    }
    for condition in ended.gate.conditions.iter().filter(|condition| !condition.holds) {
        let name = format!("{}\n{}", ended.phase, condition.name);
        let text = format!("{}: {} wanted, {}", condition.name, condition.wanted, condition.value);
        counted.conditions.group(&name, || name.clone()).hit(place, ended.iteration, &text);
    }
}

fn repeated(groups: &mut Groups, repetition: Option<Repetition>) {
    let Some(Repetition { what, place, times }) = repetition else { return };
    let group = groups.group(&what, || what.clone());
    group.hit(place, place.seq, &format!("{times} times in a row: {what}"));
    group.amount = group.amount.max(times);
    group.of += times;
}

fn count_call(calls: &mut CallNumbers, state: &str) {
    calls.total += 1;
    match state {
        "completed" => calls.completed += 1,
        "failed" => calls.failed += 1,
        "denied" => calls.denied += 1,
        "in_doubt" => calls.in_doubt += 1,
        _ => {}
    }
}

pub(super) fn is_since(since: Option<Timestamp>, at: Option<Timestamp>) -> bool {
    since.is_none_or(|since| at.is_some_and(|at| at >= since))
}

pub(super) fn first_line(text: &str) -> String {
    shorten(telling_line(text), NAME)
}
