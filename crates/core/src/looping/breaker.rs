//! The circuit breaker of a loop: what it counts, and when it opens.

use serde::Deserialize;
use serde::Serialize;

use super::observation::Observation;
use super::observation::RunEnd;
use super::observation::line;
use super::observation::name;
use super::progress::Progress;
use super::thresholds::Thresholds;
use crate::time::Timestamp;

/// Where a breaker stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BreakerState {
    /// Work goes on.
    #[default]
    Closed,
    /// Work goes on, but the next iteration without progress may be the last.
    HalfOpen,
    /// Work stands still.
    Open,
}

impl BreakerState {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::HalfOpen => "HALF_OPEN",
            Self::Open => "OPEN",
        }
    }
}

/// What opened a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerCause {
    /// Nothing that can be measured moved.
    NoProgress,
    /// The same error again and again.
    SameError,
    /// The agent could not be started.
    StartFailures,
    /// The agent only asked.
    Questions,
    /// The agent made the same call again and again.
    IdenticalCalls,
    /// The agent went round in a circle.
    Cycles,
    /// Iterations that were much dearer than usual brought nothing.
    Spend,
}

/// What a breaker has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Breaker {
    /// Where it stands.
    pub state: BreakerState,
    /// Iterations without progress since there was some.
    pub no_progress: u32,
    /// Iterations in a row with the same error.
    pub same_error: u32,
    /// The fingerprint of that error.
    pub last_error: Option<String>,
    /// Iterations since there was progress in which all was denied.
    pub denials: u32,
    /// Starts in a row that failed.
    pub start_failures: u32,
    /// Iterations since there was progress that ended with a question.
    pub questions: u32,
    /// Iterations since there was progress with too many identical calls.
    pub identical: u32,
    /// Iterations since there was progress that went round in a circle.
    pub cycles: u32,
    /// Iterations since there was progress that were much dearer than usual.
    pub spend: u32,
    /// When it opened.
    pub opened_at: Option<Timestamp>,
    /// Why, in words.
    pub reason: Option<String>,
    /// Why, for programs.
    pub cause: Option<BreakerCause>,
    /// How often it has opened since there was progress or a person reset it.
    pub opens: u32,
    /// Whether one iteration is being tried after it was open.
    pub probing: bool,
    /// What was compared last, in words.
    pub compared: Option<String>,
}

impl Breaker {
    /// The same within bounds, whoever made it.
    pub(crate) fn bounded(mut self) -> Self {
        self.last_error.iter_mut().for_each(name);
        self.reason.iter_mut().for_each(line);
        self.compared.iter_mut().for_each(line);
        self
    }
}

/// Who moved a breaker outside an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerBy {
    /// A person.
    #[default]
    Person,
    /// The cool-down was over.
    Cooldown,
    /// What had opened it is gone.
    CauseGone,
}

impl BreakerBy {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "a person",
            Self::Cooldown => "the cool-down is over",
            Self::CauseGone => "its cause is gone",
        }
    }
}

/// One change of a breaker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerChange {
    /// When.
    pub at: Timestamp,
    /// The iteration, counted over all phases.
    pub iteration: u64,
    /// From where.
    pub from: BreakerState,
    /// To where.
    pub to: BreakerState,
    /// Why.
    pub reason: String,
}

/// Iterations with too many identical calls, circles or costs that open the breaker: the first one is a warning.
pub const REPEATS: u32 = 2;

impl Breaker {
    /// What the breaker has counted after an iteration. `usual` is what an iteration of this loop usually costs.
    ///
    /// Every iteration without progress raises a count that only progress takes back, so however they are mixed, a loop
    /// without progress ends: see [`bound`].
    pub fn step(
        &self,
        limits: &Thresholds,
        seen: &Observation,
        progress: &Progress,
        usual: Option<u64>,
        at: Timestamp,
    ) -> Self {
        let mut next = self.clone();
        match seen.end {
            // Neither a failure nor an iteration.
            RunEnd::Limited | RunEnd::Stopped => return next,
            RunEnd::StartFailed => next.start_failures = next.start_failures.saturating_add(1),
            RunEnd::Ran | RunEnd::CannotAct | RunEnd::Cut => {
                next.start_failures = 0;
                next.compared = Some(progress.compared.clone());
                next.note_error(seen, progress);
                if progress.made {
                    next.close();
                } else {
                    next.count(limits, seen, usual);
                }
            }
        }
        next.judge(self, limits, seen, progress, at);
        next.bounded()
    }

    /// The same error counts on, unless something that is measured got better meanwhile.
    fn note_error(&mut self, seen: &Observation, progress: &Progress) {
        match &seen.error {
            None => (self.same_error, self.last_error) = (0, None),
            Some(error) => {
                let same = self.last_error.as_ref() == Some(&error.fingerprint) && !progress.measured;
                self.same_error = if same { self.same_error.saturating_add(1) } else { 1 };
                self.last_error = Some(error.fingerprint.clone());
            }
        }
    }

    /// There was progress: all counts but those of errors begin anew.
    fn close(&mut self) {
        // One that is open stays so until somebody or something lets one iteration be tried.
        if self.state == BreakerState::Open {
            return;
        }
        *self = Self {
            same_error: self.same_error,
            last_error: self.last_error.take(),
            compared: self.compared.take(),
            ..Self::default()
        };
    }

    fn count(&mut self, limits: &Thresholds, seen: &Observation, usual: Option<u64>) {
        let one_more = |count: &mut u32, holds: bool| *count = count.saturating_add(u32::from(holds));
        // Nothing but denials or a question is told apart from doing nothing.
        let cannot_act = seen.end == RunEnd::CannotAct && limits.denials > 0;
        let asks = !cannot_act && seen.question.is_some() && limits.questions > 0;
        one_more(&mut self.denials, cannot_act);
        one_more(&mut self.questions, asks);
        one_more(&mut self.no_progress, !cannot_act && !asks);
        let reaches = |count: u32, limit: u32| limit > 0 && count >= limit;
        one_more(&mut self.identical, reaches(seen.repeated.identical, limits.identical_calls));
        one_more(&mut self.cycles, reaches(seen.repeated.cycle, limits.cycles));
        let dear = usual.is_some_and(|usual| {
            let most = usual.saturating_mul(u64::from(limits.spend_factor));
            most > 0 && seen.spend() > most
        });
        one_more(&mut self.spend, dear);
    }

    fn judge(
        &mut self,
        before: &Self,
        limits: &Thresholds,
        seen: &Observation,
        progress: &Progress,
        at: Timestamp,
    ) {
        if before.state == BreakerState::Open {
            return;
        }
        if let Some((cause, reason)) = self.cause_to_open(limits, seen) {
            self.open(cause, reason, before.opens, at);
        } else if before.probing && !progress.made {
            let cause = before.cause.unwrap_or(BreakerCause::NoProgress);
            let reason = before.reason.clone().unwrap_or_else(|| "no progress".to_owned());
            let again = "the iteration that was tried brought nothing; ";
            let reason = format!("{again}{}", reason.trim_start_matches(again));
            self.open(cause, reason, before.opens, at);
        } else if self.no_progress >= limits.half_open() || self.questions > 1 {
            self.state = BreakerState::HalfOpen;
        }
    }

    /// What opens it now; the more telling ones first.
    fn cause_to_open(&self, limits: &Thresholds, seen: &Observation) -> Option<(BreakerCause, String)> {
        let reached = |count: u32, limit: u32| limit > 0 && count >= limit;
        let text =
            |of: &Option<super::ErrorMark>| of.as_ref().map_or(String::new(), |e| format!(": {}", e.text));
        if reached(self.start_failures, limits.start_failures) {
            let why = format!("{} starts in a row failed{}", self.start_failures, text(&seen.error));
            return Some((BreakerCause::StartFailures, why));
        }
        if reached(self.same_error, limits.same_error) {
            let why = format!("the same error {} times in a row{}", self.same_error, text(&seen.error));
            return Some((BreakerCause::SameError, why));
        }
        let rest = [
            (self.identical, REPEATS, BreakerCause::IdenticalCalls, "with the same call again and again"),
            (self.cycles, REPEATS, BreakerCause::Cycles, "that went round in a circle"),
            (self.spend, REPEATS, BreakerCause::Spend, "that cost much more than usual"),
            (self.questions, limits.questions, BreakerCause::Questions, "that only asked"),
            (self.no_progress, limits.no_progress, BreakerCause::NoProgress, ""),
        ];
        let (count, _, cause, words) = rest.into_iter().find(|(count, limit, ..)| reached(*count, *limit))?;
        let words = if words.is_empty() { String::new() } else { format!(" {words}") };
        // Who may not do what the work needs does something else, and gets nowhere.
        let denied = seen.denied_in_words().map_or(String::new(), |denied| format!("; denied: {denied}"));
        Some((cause, format!("{count} iterations without progress{words}{denied}")))
    }

    fn open(&mut self, cause: BreakerCause, reason: String, opens: u32, at: Timestamp) {
        self.state = BreakerState::Open;
        self.probing = false;
        self.opens = opens.saturating_add(1);
        self.opened_at = Some(at);
        self.cause = Some(cause);
        self.reason = Some(reason);
    }

    /// When one iteration may be tried by itself; none if only a person can close it.
    pub fn probe_at(&self, limits: &Thresholds) -> Option<Timestamp> {
        let may = self.state == BreakerState::Open && self.opens <= limits.probes;
        let seconds = i64::try_from(limits.cooldown_seconds).unwrap_or(i64::MAX);
        self.opened_at.filter(|_| may).map(|at| at.plus_seconds(seconds))
    }

    /// Whether what opened it may be gone because of something that a person did meanwhile.
    pub fn is_cause_gone(&self, did: PersonDid) -> bool {
        if self.state != BreakerState::Open {
            return false;
        }
        match did {
            // Something new to go by helps against whatever kept the agent where it was.
            PersonDid::Noted | PersonDid::ChangedPlan | PersonDid::ChangedFiles => {
                self.cause != Some(BreakerCause::StartFailures) || did == PersonDid::ChangedPlan
            }
            // A login, a key, a program, a right: what a start needs.
            PersonDid::ChangedSetup => true,
        }
    }
}

/// What a person did since a breaker opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonDid {
    /// Left a note for the agent.
    Noted,
    /// Gave the loop another prompt or plan.
    ChangedPlan,
    /// Changed files of the project.
    ChangedFiles,
    /// Logged in, changed a key, trusted the project, installed something.
    ChangedSetup,
}

/// The most steps (iterations and starts that failed) that a loop takes in one phase without progress, with every probe
/// that is tried by itself.
///
/// Each iteration without progress raises `no_progress`, `questions` or `denials`, which only progress takes back; each
/// of them stops the loop at its threshold. Between two iterations at most `start_failures - 1` starts may fail. Then
/// each probe is one iteration, with as many starts before it.
pub fn bound(limits: &Thresholds) -> u64 {
    let before_open = [
        limits.no_progress.saturating_sub(1),
        limits.questions.saturating_sub(1),
        limits.denials.saturating_sub(1),
        1,
    ];
    let iterations: u64 = before_open.into_iter().map(u64::from).sum();
    let starts = u64::from(limits.start_failures.max(1));
    (iterations + u64::from(limits.probes)) * starts
}
