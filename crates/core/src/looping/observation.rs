//! What one iteration showed, as plain numbers and short words. Everything is bounded.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::marks::EvidenceMark;
use super::marks::ProtectedMark;
use crate::limits;
use crate::text::shorten;
use crate::time::Timestamp;

/// How the run of an iteration ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// The agent answered and ended by itself.
    #[default]
    Ran,
    /// The agent could not be started: no iteration.
    StartFailed,
    /// Everything that the agent tried was denied, or nobody answered what it needed.
    CannotAct,
    /// The account was at a limit: no iteration, and no failure.
    Limited,
    /// Somebody asked for the end.
    Stopped,
    /// It was cut short: a crash, a timeout, silence.
    Cut,
}

impl RunEnd {
    /// Whether it counts as an iteration.
    pub fn counts(self) -> bool {
        match self {
            Self::Ran | Self::CannotAct | Self::Cut => true,
            Self::StartFailed | Self::Limited | Self::Stopped => false,
        }
    }

    /// The word that is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::StartFailed => "start failed",
            Self::CannotAct => "cannot act",
            Self::Limited => "limited",
            Self::Stopped => "stopped",
            Self::Cut => "cut short",
        }
    }
}

/// What one iteration showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// How the run ended.
    pub end: RunEnd,
    /// Its outcome, as the run's own record has it.
    pub outcome: String,
    /// What somebody asked for while it ran.
    pub asked: Option<Asked>,
    /// How many seconds it took.
    pub seconds: u64,
    /// Tool calls that the agent made.
    pub calls: u64,
    /// How many of them were denied.
    pub denials: u64,
    /// What was denied, in words.
    pub denied: Vec<String>,
    /// Rules that would allow it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The question that the answer ended with, if it did.
    pub question: Option<String>,
    /// What went wrong.
    pub error: Option<ErrorMark>,
    /// What the agent said of itself.
    pub claims: Claims,
    /// The tests, if some were measured.
    pub tests: Option<TestCounts>,
    /// What changed against the baseline of the phase, by name.
    pub changes: TestChanges,
    /// The same against the first baseline of the loop.
    pub since_start: Option<SinceStart>,
    /// Whether the tests could only be compared by their numbers, because not every one of them has a name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_number: bool,
    /// How many times in a row the evidence came out like this on this tree.
    pub measured: u32,
    /// Whether it came out differently on the same tree.
    pub flaky: bool,
    /// Files that changed each time that it was measured: nothing that was found is true of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restless: Vec<String>,
    /// Files of tests that could not be loaded when the phase began, and that have fewer tests now, or are gone.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub lost: Named,
    /// How each evidence command ended.
    pub evidence: Vec<EvidenceMark>,
    /// The files that the phase protects, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected: Option<ProtectedMark>,
    /// Measured numbers.
    pub metrics: BTreeMap<String, f64>,
    /// Items that are open in the tracker or checklist.
    pub open_items: Option<u64>,
    /// The tree before the iteration.
    pub tree_before: Option<String>,
    /// The tree as the agent left it.
    pub tree_after: Option<String>,
    /// The tree on which the evidence was measured, with what the evidence commands wrote themselves: that is no progress.
    pub measured_tree: Option<String>,
    /// Files that differ between the two.
    pub files_changed: u64,
    /// Commits that were made.
    pub commits: u64,
    /// Calls that repeat themselves.
    pub repeated: Repeated,
    /// Tokens that it used.
    pub tokens: u64,
    /// What it cost, in millionths of a dollar, if that is known.
    pub micros: Option<u64>,
    /// What all sessions that share the cap used today, this iteration included.
    pub day: DayUse,
    /// A budget of the session that is used up, in words.
    pub over_budget: Option<String>,
    /// The limit that was met.
    pub limit: Option<LimitMark>,
    /// How full the windows of the account are, as far as the agent tells.
    pub windows: Vec<PlanWindow>,
    /// How full the context is, in per cent.
    pub context_percent: Option<u8>,
    /// What a start of the agent depends on, as one hash, if it could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
}

/// What somebody asked a loop to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Pause, to go on later.
    Pause,
    /// Stop.
    Stop,
    /// Ctrl-C or another signal.
    Signal,
    /// Give up.
    Abort,
}

impl Asked {
    /// The word that is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Stop => "stop",
            Self::Signal => "signal",
            Self::Abort => "abort",
        }
    }
}

/// An error, by the fingerprint that tells it from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorMark {
    /// See [`crate::fingerprint()`].
    pub fingerprint: String,
    /// A short excerpt.
    pub text: String,
}

impl ErrorMark {
    /// The mark of an error message.
    pub fn of(message: &str) -> Self {
        let fingerprint = crate::fingerprint::fingerprint(message);
        Self { fingerprint, text: shorten(message, limits::LOOP_TEXT) }
    }
}

/// What the agent said of itself in its status block. None of it is evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// The explicit signal that it is done.
    pub exit_signal: Option<bool>,
    /// Its status, such as `IN_PROGRESS`.
    pub status: Option<String>,
    /// The verdict of a review, such as `APPROVE`.
    pub verdict: Option<String>,
    /// Numbers that it named.
    pub metrics: BTreeMap<String, f64>,
    /// What in the block contradicts itself or cannot be.
    pub problems: Vec<String>,
    /// Why the block says nothing: it contradicts itself. Then it is no signal, and nothing in its favour counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<String>,
    /// What it says comes next.
    pub recommendation: Option<String>,
}

/// How tests came out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestCounts {
    /// All of them.
    pub total: u64,
    /// Those that passed.
    pub passed: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were skipped.
    pub skipped: u64,
    /// Whether the tests could not be built.
    pub build_failed: bool,
    /// Whether the output ends before the result of the run: what is counted is not all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// What ran them, such as `cargo test`.
    pub runner: String,
}

/// How one test came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestEnd {
    /// It passed.
    #[default]
    Passed,
    /// It failed.
    Failed,
    /// It was skipped.
    Skipped,
}

/// Some tests: how many, and the names of the first few.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    /// How many.
    pub count: u64,
    /// The first few names.
    pub names: Vec<String>,
}

impl Named {
    /// One more of this name.
    pub fn add(&mut self, name: &str) {
        self.count = self.count.saturating_add(1);
        if self.names.len() < limits::LOOP_NAMES {
            self.names.push(shorten(name, limits::NAME));
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// What changed among the tests since a baseline, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestChanges {
    /// New, and they fail.
    pub new_failing: Named,
    /// New, and they pass.
    pub new_passing: Named,
    /// They passed before and fail now.
    pub newly_failing: Named,
    /// They failed before and pass now.
    pub newly_passing: Named,
    /// They are gone.
    pub removed: Named,
    /// They ran before and are skipped now.
    pub newly_skipped: Named,
    /// They failed before and still do.
    pub still_failing: Named,
}

/// What changed among the tests since the loop began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SinceStart {
    /// Tests that were not there then.
    pub new: u64,
    /// Tests that are gone.
    pub removed: u64,
    /// Tests that failed then and still do.
    pub old_failing: u64,
}

/// Calls that repeat themselves inside one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repeated {
    /// The most times in a row that a call was made with the same arguments and had the same result.
    pub identical: u32,
    /// The most calls in a row that only went round in a circle, with the same results.
    pub cycle: u32,
}

/// What was used in one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayUse {
    /// Tokens.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub micros: u64,
    /// The tokens that were allowed in all, by the settings then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_tokens: Option<u64>,
    /// The same of the money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_micros: Option<u64>,
}

/// What kind of limit it is, as far as that decides what to do next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitClass {
    /// A window of the plan is used up; it opens again at a time.
    #[default]
    Plan,
    /// Too many requests for a moment.
    Transient,
    /// The vendor is overloaded.
    Overload,
    /// Money is needed: waiting does not help.
    Pay,
    /// Nobody is logged in, or the key is refused: waiting does not help.
    Auth,
    /// A budget that the user gave the agent is used up.
    Budget,
    /// The agent is not set up to work here.
    Setup,
}

impl LimitClass {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Transient => "transient",
            Self::Overload => "overload",
            Self::Pay => "pay",
            Self::Auth => "auth",
            Self::Budget => "budget",
            Self::Setup => "setup",
        }
    }

    /// Whether the same attempt may succeed soon without anybody changing anything. A plan's window is no such thing:
    /// before it opens every attempt fails.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Transient | Self::Overload)
    }

    /// Whether it ends by itself, soon or at a time. What does not needs a person.
    pub fn ends_by_itself(self) -> bool {
        matches!(self, Self::Plan | Self::Transient | Self::Overload)
    }
}

/// A limit that was met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitMark {
    /// What kind.
    pub class: LimitClass,
    /// When it ends, if that is known.
    pub until: Option<Timestamp>,
    /// Which window, such as `five_hour`.
    pub window: Option<String>,
    /// The model it holds for, if it does not hold for all.
    pub model_only: Option<String>,
    /// Whose limit: the agent, its config home and the name it tells, never a credential.
    pub account: String,
    /// What the agent said, in short.
    pub words: String,
}

/// How full a window of the account is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanWindow {
    /// Its name, such as `seven_day`.
    pub name: String,
    /// How full, in per cent.
    pub used_percent: u8,
    /// When it is empty again.
    pub resets_at: Option<Timestamp>,
    /// Whether it is the longest one, that `leave_percent` speaks of.
    pub longest: bool,
}

impl Observation {
    /// The same within bounds, whoever made it.
    pub fn bounded(mut self) -> Self {
        line(&mut self.outcome);
        lines(&mut self.denied);
        lines(&mut self.allow);
        self.question.iter_mut().for_each(line);
        if let Some(error) = &mut self.error {
            name(&mut error.fingerprint);
            line(&mut error.text);
        }
        self.claims.bound();
        if let Some(tests) = &mut self.tests {
            name(&mut tests.runner);
        }
        self.changes.bound();
        self.lost.bound();
        lines(&mut self.restless);
        self.evidence.truncate(limits::EVIDENCE);
        self.evidence.iter_mut().for_each(EvidenceMark::bound);
        self.protected.iter_mut().for_each(ProtectedMark::bound);
        self.setup.iter_mut().for_each(name);
        numbers(&mut self.metrics);
        self.tree_before.iter_mut().for_each(name);
        self.tree_after.iter_mut().for_each(name);
        self.measured_tree.iter_mut().for_each(name);
        self.over_budget.iter_mut().for_each(line);
        if let Some(limit) = &mut self.limit {
            limit.window.iter_mut().for_each(name);
            limit.model_only.iter_mut().for_each(name);
            name(&mut limit.account);
            line(&mut limit.words);
        }
        self.windows.truncate(limits::LOOP_NAMES);
        self.windows.iter_mut().for_each(|window| name(&mut window.name));
        self
    }

    /// The tree that a gate is bound to.
    pub fn bound_to(&self) -> Option<&String> {
        self.measured_tree.as_ref().or(self.tree_after.as_ref())
    }

    /// What it cost, in money if that is known, else in tokens.
    pub fn spend(&self) -> u64 {
        self.micros.unwrap_or(self.tokens)
    }

    /// The first thing that was denied, and what would allow all of it; none if nothing was denied.
    pub fn denied_in_words(&self) -> Option<String> {
        let first = self.denied.first()?;
        let rules = self.allow.join(", ");
        Some(if rules.is_empty() {
            first.clone()
        } else {
            format!("{first}; it would be allowed by {rules}")
        })
    }
}

impl Claims {
    fn bound(&mut self) {
        self.status.iter_mut().for_each(name);
        self.verdict.iter_mut().for_each(name);
        self.recommendation.iter_mut().for_each(line);
        numbers(&mut self.metrics);
        lines(&mut self.problems);
        self.contradiction.iter_mut().for_each(line);
    }
}

impl TestChanges {
    fn bound(&mut self) {
        let all = [
            &mut self.new_failing,
            &mut self.new_passing,
            &mut self.newly_failing,
            &mut self.newly_passing,
            &mut self.removed,
            &mut self.newly_skipped,
            &mut self.still_failing,
        ];
        all.into_iter().for_each(Named::bound);
    }
}

impl Named {
    fn bound(&mut self) {
        self.names.truncate(limits::LOOP_NAMES);
        self.names.iter_mut().for_each(name);
    }
}

/// Keeps a text within the length of a name.
pub(crate) fn name(text: &mut String) {
    cut(text, limits::NAME);
}

/// Keeps a text within the length of an excerpt.
pub(crate) fn line(text: &mut String) {
    cut(text, limits::LOOP_TEXT);
}

fn cut(text: &mut String, max: usize) {
    if text.len() > max {
        *text = shorten(text, max);
    }
}

pub(crate) fn lines(texts: &mut Vec<String>) {
    texts.truncate(limits::LOOP_NAMES);
    texts.iter_mut().for_each(line);
}

/// Numbers that can be stored, as many as are kept.
fn numbers(numbers: &mut BTreeMap<String, f64>) {
    let mut kept = 0;
    numbers.retain(|key, value| {
        let keep = value.is_finite() && key.chars().count() <= limits::NAME && kept < limits::PHASE_METRICS;
        kept += usize::from(keep);
        keep
    });
}
