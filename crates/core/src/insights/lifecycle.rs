//! What happened to sessions and their runs: limits, budgets, questions, ends that nobody wanted, and what came of resumes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::gather::Counted;
use super::gather::first_line;
use super::groups::Place;
use crate::budget::dollars;
use crate::call;
use crate::event::CallEnd;
use crate::event::Channel;
use crate::event::Event;
use crate::event::LimitSeen;
use crate::event::PauseReason;
use crate::event::QuestionAsked;
use crate::event::RunEnded;
use crate::event::Unit;
use crate::looping::BreakerCause;
use crate::looping::LoopVerdict;
use crate::looping::ParkReason;
use crate::state::Mark;
use crate::text::Text;
use crate::time::Timestamp;

/// How many questions may wait at a time.
const QUESTIONS: usize = 256;
/// A longer rule, in characters, is nobody's: then the tool says what was asked about.
const LONGEST_RULE: usize = 120;

/// What is known of a session as it goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Life {
    /// It was taken up again here, and nothing was done yet.
    resumed: Option<Place>,
    /// It waits for a limit of this name since then.
    parked: Option<(Timestamp, String)>,
    /// What a rule for each question would be, and since when it waits.
    questions: BTreeMap<String, (Timestamp, String)>,
    /// The run whose limit was counted.
    limited: Option<String>,
    /// Its driver died, and its run was not ended yet: whoever finds that ends it, and it is one death.
    died: bool,
    /// Why the breaker of its loop opened.
    cause: Option<BreakerCause>,
}

/// Kinds of events that say only that something was done: nobody needs them but who waits for the first after a resume.
pub(super) const WORK: &[&str] = &[
    "artifact_recorded",
    "decision_made",
    "history_noted",
    "milestone_reached",
    "progress_set",
    "session_completed",
    "task_ended",
    "tool_ended",
    "turn_completed",
];

/// Whether a run that ended so did not do what it was to do, and nobody wanted that.
pub(super) fn is_bad(outcome: &str) -> bool {
    matches!(outcome, "failed" | "timed_out" | "interrupted" | "denied" | "max_turns" | "agent_missing")
}

impl Life {
    /// Whether a resume waits for the first thing that is done.
    pub(super) fn waits_for_work(&self) -> bool {
        self.resumed.is_some()
    }

    pub(super) fn take(
        &mut self,
        counted: &mut Counted,
        place: Place,
        mark: &Mark,
        event: &Event,
        is_new: bool,
    ) {
        // What happened before the time that is asked for is not counted, but has to be known.
        self.waits(counted, place, mark.at, event, is_new);
        if let Event::IterationEnded(e) = event {
            let halts = matches!(e.verdict, LoopVerdict::Halt { .. });
            self.cause = e.breaker.cause.filter(|_| halts);
        }
        if is_new {
            self.resumes(counted, place, event);
            self.ends(counted, place, mark, event);
        }
    }

    /// The session is over.
    pub(super) fn end(&mut self, counted: &mut Counted) {
        if self.resumed.take().is_some() {
            counted.numbers.resumes.undecided += 1;
        }
    }

    /// What waits, and for how long it did.
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing waits for the others")]
    fn waits(&mut self, counted: &mut Counted, place: Place, at: Timestamp, event: &Event, is_new: bool) {
        match event {
            Event::LoopParked(e) if is_limit(e.class) => {
                let account = e.account.as_deref().unwrap_or("an account");
                let name = match &e.window {
                    Some(window) => format!("{account}, {window}"),
                    None => account.to_owned(),
                };
                if is_new {
                    counted.limits.group(&name, || name.clone()).hit(place, 0, &e.words);
                }
                self.parked = Some((at, name));
            }
            Event::LoopWoken(_) => {
                let Some((since, name)) = self.parked.take().filter(|_| is_new) else { return };
                let ms = at.micros_since(since) / 1_000;
                let time = &mut counted.numbers.time.limits_ms;
                *time = time.saturating_add(ms);
                let group = counted.limits.group(&name, || name.clone());
                group.amount = group.amount.saturating_add(ms);
            }
            Event::QuestionAsked(e) => {
                let rule = rule_of(e);
                if is_new {
                    counted.questions.group(&rule, || rule.clone()).hit(place, 0, &rule);
                }
                if self.questions.len() < QUESTIONS {
                    self.questions.insert(e.id.clone(), (at, rule));
                }
            }
            Event::QuestionAnswered(e) => {
                self.answered(counted, &e.id, Some(e.allow), at, is_new);
            }
            Event::QuestionClosed(e) => {
                self.answered(counted, &e.id, None, at, is_new);
            }
            _ => {}
        }
    }

    fn answered(
        &mut self,
        counted: &mut Counted,
        id: &str,
        allow: Option<bool>,
        at: Timestamp,
        is_new: bool,
    ) {
        let Some((since, rule)) = self.questions.remove(id).filter(|_| is_new) else { return };
        let ms = at.micros_since(since) / 1_000;
        let time = &mut counted.numbers.time.questions_ms;
        *time = time.saturating_add(ms);
        let group = counted.questions.group(&rule, || rule.clone());
        group.amount = group.amount.saturating_add(ms);
        group.of += u64::from(allow == Some(true));
        group.special += u64::from(allow == Some(false));
    }

    /// Follows a resume until something is done, or it comes to nothing.
    fn resumes(&mut self, counted: &mut Counted, place: Place, event: &Event) {
        let numbers = &mut counted.numbers.resumes;
        if matches!(event, Event::SessionResumed(_) | Event::ResumeAttempted(_)) {
            // The same wish, told twice, is one resume.
            if self.resumed.is_none() {
                numbers.total += 1;
                self.resumed = Some(place);
            }
            return;
        }
        let Some(resumed) = self.resumed else { return };
        if is_work(event) {
            numbers.worked += 1;
            self.resumed = None;
        } else if let Some((what, why)) = came_to_nothing(event) {
            numbers.failed += 1;
            self.resumed = None;
            counted.resumes.group(&what, || what.clone()).hit(
                resumed,
                0,
                &format!("resumed here; then {why}"),
            );
        } else if matches!(event, Event::SessionPaused(_) | Event::SessionAborted(_)) {
            numbers.undecided += 1;
            self.resumed = None;
        }
    }

    /// Limits and budgets that were met, breakers that opened, and ends that nobody wanted.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others end nothing")]
    fn ends(&mut self, counted: &mut Counted, place: Place, mark: &Mark, event: &Event) {
        match event {
            Event::Reported(e) => {
                let seen = LimitSeen::of_report(&e.what, &e.body);
                if let Some(seen) = seen.filter(|seen| seen.status.as_deref() == Some("rejected")) {
                    self.limit(counted, place, mark.run.as_deref(), Some(&seen), "the agent was refused");
                }
            }
            Event::RunEnded(e) => self.run_ended(counted, place, e),
            Event::BudgetExceeded(e) => {
                let (what, said) = match e.unit {
                    Unit::Tokens => ("tokens", format!("{} of {} tokens used", e.used, e.total)),
                    Unit::Cost => ("money", format!("{} of {} used", dollars(e.used), dollars(e.total))),
                };
                counted.budgets.group(what, || what.to_owned()).hit(place, 0, &said);
            }
            Event::SessionHalted(e) => {
                let reason = e.reason.excerpt();
                let what =
                    self.cause.take().map_or_else(|| first_line(reason), |cause| words(cause).to_owned());
                counted.breakers.group(&what, || what.clone()).hit(place, 0, reason);
            }
            Event::SessionInterrupted(e) => {
                self.died = true;
                let what = format!("driver: {}", e.reason.as_str());
                let details = e.details.as_ref().map_or("", Text::excerpt);
                let said = format!("interrupted, {}. {details}", e.reason.as_str());
                counted.crashes.group(&what, || what.clone()).hit(place, 0, &said);
            }
            Event::SessionFailed(e) => {
                let said = e.reason.as_ref().map_or("the session failed", Text::excerpt);
                counted.crashes.group("session: failed", || "session: failed".to_owned()).hit(place, 0, said);
            }
            _ => {}
        }
    }

    fn run_ended(&mut self, counted: &mut Counted, place: Place, ended: &RunEnded) {
        if std::mem::take(&mut self.died) && ended.outcome == "interrupted" {
            return;
        }
        if ended.outcome == "limit" {
            let said = ended.reason.excerpt();
            self.limit(counted, place, Some(&ended.run), ended.limit.as_deref(), said);
        } else if is_bad(&ended.outcome) && ended.outcome != "denied" {
            let what = format!("run: {}", ended.outcome.replace('_', " "));
            let error = ended.error.as_ref().map(Text::excerpt).filter(|text| !text.trim().is_empty());
            let said = error.unwrap_or_else(|| ended.reason.excerpt());
            counted.crashes.group(&what, || what.clone()).hit(place, 0, said);
        }
    }

    /// A limit, once for each run that met it.
    fn limit(
        &mut self,
        counted: &mut Counted,
        place: Place,
        run: Option<&str>,
        seen: Option<&LimitSeen>,
        said: &str,
    ) {
        if run.is_some() && self.limited.as_deref() == run {
            return;
        }
        self.limited = run.map(ToOwned::to_owned);
        let agent = seen.and_then(|seen| seen.agent.as_deref()).unwrap_or("an agent");
        let window = seen.and_then(|seen| seen.window.as_deref().or(seen.class.as_deref()));
        let name = window.map_or_else(|| agent.to_owned(), |window| format!("{agent}, {window}"));
        counted.limits.group(&name, || name.clone()).hit(place, 0, said);
    }
}

/// Whether a loop that waits for this waits for a limit.
fn is_limit(class: ParkReason) -> bool {
    match class {
        ParkReason::Plan | ParkReason::Vendor | ParkReason::Own | ParkReason::Share => true,
        ParkReason::Hours | ParkReason::Queue | ParkReason::Held => false,
    }
}

/// Why a breaker opened, in words.
fn words(cause: BreakerCause) -> &'static str {
    match cause {
        BreakerCause::NoProgress => "nothing that is measured moved",
        BreakerCause::SameError => "the same error again and again",
        BreakerCause::StartFailures => "the agent could not be started",
        BreakerCause::Questions => "the agent only asked",
        BreakerCause::IdenticalCalls => "the same call again and again",
        BreakerCause::Cycles => "calls went round in a circle",
        BreakerCause::Spend => "dear iterations brought nothing",
    }
}

/// The rule that would answer a question.
fn rule_of(asked: &QuestionAsked) -> String {
    let input: Value = match &asked.input {
        Text::Whole(text) => serde_json::from_str(text).unwrap_or(Value::Null),
        Text::Aside(_) => Value::Null,
    };
    let rule = call::allow_rule(&asked.tool, &input);
    if rule.chars().count() > LONGEST_RULE { asked.tool.clone() } else { rule }
}

/// Whether something was done: said, called, changed, measured or recorded.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others are no work")]
fn is_work(event: &Event) -> bool {
    match event {
        Event::Said(e) => e.channel != Channel::Input,
        Event::ToolEnded(e) => matches!(e.end, CallEnd::Completed | CallEnd::Failed),
        Event::RunEnded(e) => e.outcome == "completed",
        Event::IterationEnded(e) => e.observation.end.counts(),
        Event::TurnCompleted(_)
        | Event::PhaseAdvanced(_)
        | Event::ProgressSet(_)
        | Event::FileChanged(_)
        | Event::ArtifactRecorded(_)
        | Event::TaskEnded(_)
        | Event::DecisionMade(_)
        | Event::MilestoneReached(_)
        | Event::HistoryNoted(_)
        | Event::SessionCompleted(_) => true,
        _ => false,
    }
}

/// What a resume ended with before anything was done, if nobody wished that end: its name, and more of it.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others end nothing")]
fn came_to_nothing(event: &Event) -> Option<(String, String)> {
    match event {
        Event::RunEnded(e) if is_bad(&e.outcome) || e.outcome == "limit" => {
            let outcome = e.outcome.replace('_', " ");
            Some((
                format!("the run ended: {outcome}"),
                format!("{outcome}: {}", first_line(e.reason.excerpt())),
            ))
        }
        Event::SessionInterrupted(e) => {
            Some(("interrupted again".to_owned(), format!("interrupted: {}", e.reason.as_str())))
        }
        Event::SessionPaused(e) => match e.reason {
            PauseReason::Limit | PauseReason::Timeout | PauseReason::Error => {
                let reason = e.reason.as_str();
                Some((format!("paused again: {reason}"), format!("paused: {reason}")))
            }
            PauseReason::Asked
            | PauseReason::Signal
            | PauseReason::Terminated
            | PauseReason::Hangup
            | PauseReason::Budget
            | PauseReason::Ended => None,
        },
        Event::SessionHalted(e) => Some(("halted again".to_owned(), first_line(e.reason.excerpt()))),
        Event::SessionFailed(_) => Some(("failed".to_owned(), "the session failed".to_owned())),
        _ => None,
    }
}
