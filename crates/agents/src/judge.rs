//! Judges the end of a run from what was counted and how the process exited.

use crate::classify;
use crate::limit::Limit;
use crate::limit::LimitClass;
use crate::outcome::ContextFill;
use crate::outcome::EndCause;
use crate::outcome::ErrorClass;
use crate::outcome::ExitInfo;
use crate::outcome::Failure;
use crate::outcome::Outcome;
use crate::outcome::OutcomeKind;
use crate::tally::Ending;
use crate::tally::Tally;
use crate::tokens::TokenCounts;

impl Tally {
    pub(crate) fn outcome(self, exit: &ExitInfo, lines: u64) -> Outcome {
        let (mut outcome, reason) = self.judge(exit);
        let untold = self.untold.iter().fold(self.untold_sum, |sum, (_, tokens)| sum.plus(*tokens));
        let mut error = self.failure(outcome, exit);
        let limit = self.limit_hit(outcome, error.as_ref(), exit);
        if let Some(limit) = &limit {
            outcome = limit.kind_of(outcome).unwrap_or(outcome);
            error.iter_mut().for_each(|error| error.class = limit.class.into());
        }
        let expected_native_id = self
            .expected_id
            .filter(|expected| self.native_id.as_ref().is_some_and(|actual| actual != expected));
        Outcome {
            outcome,
            reason,
            native_id: self.native_id,
            expected_native_id,
            model: self.model,
            text: self.last_text,
            results: self.results,
            turns: self.steps.saturating_add(self.untold_messages),
            duration_ms: self.duration_ms,
            api_duration_ms: self.api_duration_ms,
            tokens: self.tokens.plus(untold),
            tokens_exact: self.tokens_exact
                && !self.turn_open
                && untold.is_zero()
                && (self.results > 0 || self.tokens_told),
            tokens_total: (!self.total.is_empty())
                .then(|| self.total.iter().fold(TokenCounts::default(), |sum, (_, total)| sum.plus(*total))),
            context: Some(self.context).filter(|context| *context != ContextFill::default()),
            cost_usd: self.cost,
            cost_total_usd: self.cost_total,
            tool_calls: self.tool_calls,
            denials: self.denials,
            open_calls: self.open.into_iter().map(|(call, _)| call).collect(),
            background: self.background.into_iter().collect(),
            error,
            limit,
            lines,
            unparsed: self.unparsed,
            exit_code: exit.code,
            exit_signal: exit.signal,
        }
    }

    /// The rules, strongest first. See the documentation of [`OutcomeKind`] for what each word promises.
    fn judge(&self, exit: &ExitInfo) -> (OutcomeKind, String) {
        use OutcomeKind as Kind;
        let said = match self.ending {
            Ending::Interactive => attended(exit),
            _ => self.said(exit),
        };
        let asked = match exit.cause {
            EndCause::Own => None,
            EndCause::Missing => return (Kind::AgentMissing, "the program was not found".to_owned()),
            EndCause::Stopped => Some((Kind::Stopped, "stopped on request")),
            EndCause::TimedOut => Some((Kind::TimedOut, "ran out of time")),
            EndCause::Budget => Some((Kind::Budget, "the budget is used up")),
        };
        match asked {
            // It had finished before the request reached it, with all that it had launched.
            Some(_)
                if self.ending != Ending::Interactive
                    && self.open.is_empty()
                    && self.background.is_empty()
                    && matches!(said.0, Kind::Completed | Kind::Denied)
                    && exit.is_success() =>
            {
                said
            }
            Some((kind, reason)) => (kind, reason.to_owned()),
            None => said,
        }
    }

    /// What the events and the exit say, whoever caused the end.
    fn said(&self, exit: &ExitInfo) -> (OutcomeKind, String) {
        use OutcomeKind as Kind;
        if self.ending == Ending::Silent && self.last.is_none() {
            return match (exit.by_signal(), exit.is_success()) {
                (true, _) => (Kind::Interrupted, "ended by a signal".to_owned()),
                (_, true) => self.completed(),
                _ if exit.code.is_none() => (Kind::Interrupted, "nobody saw how it ended".to_owned()),
                _ => (Kind::Failed, exit_words(exit)),
            };
        }
        let Some(last) = self.last.as_ref().filter(|_| !self.turn_open) else {
            // A program that refused to start has interrupted no work: wrong arguments, unknown session, no login.
            if !self.began && !exit.by_signal() && exit.code.is_some_and(|code| code != 0) {
                return (Kind::Failed, exit_words(exit));
            }
            return (Kind::Interrupted, "ended without a final event".to_owned());
        };
        if last.kind != Kind::Completed {
            let told = [last.reason.as_ref(), self.error.as_ref().map(|error| &error.text)];
            let reason = told.into_iter().flatten().find(|reason| !reason.trim().is_empty());
            return (
                last.kind,
                reason.map_or_else(|| "the agent reported an error".to_owned(), Clone::clone),
            );
        }
        // The end of a background task begins another turn; so does a message. Killed on the way there is not done.
        if exit.by_signal() && (self.stirred || !self.background.is_empty()) {
            return (Kind::Interrupted, "ended by a signal after its last result".to_owned());
        }
        if !exit.by_signal() && exit.code.is_some_and(|code| code != 0) {
            return (Kind::Failed, exit_words(exit));
        }
        self.completed()
    }

    fn completed(&self) -> (OutcomeKind, String) {
        if self.denials.is_empty() || self.worked_since_denial {
            return (OutcomeKind::Completed, "completed".to_owned());
        }
        (OutcomeKind::Denied, format!("gave up after {} refused call(s)", self.denials.len()))
    }

    fn failure(&self, outcome: OutcomeKind, exit: &ExitInfo) -> Option<Failure> {
        if matches!(outcome, OutcomeKind::Completed | OutcomeKind::Denied) {
            return None;
        }
        self.error.clone().or_else(|| {
            let text = exit.stderr.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
            Some(Failure {
                text: text.to_owned(),
                class: classify::understand(None, None, text).class,
                api_status: classify::status_in(text),
            })
        })
    }

    /// The limit that the run ended for: one that its last error tells of, or its last words on standard error.
    fn limit_hit(&self, outcome: OutcomeKind, error: Option<&Failure>, exit: &ExitInfo) -> Option<Limit> {
        let by_itself = exit.cause == EndCause::Own;
        match outcome {
            OutcomeKind::Limit | OutcomeKind::Failed => {}
            OutcomeKind::Budget if by_itself => {
                let own = || Limit::new(LimitClass::Budget);
                return Some(self.limit.clone().unwrap_or_else(own).in_words(&error?.text));
            }
            // It broke off right after the error, without a final event.
            OutcomeKind::Interrupted if by_itself && exit.signal.is_none() && !self.worked_since_error => {}
            // It broke off while its plan refused to go on.
            OutcomeKind::Interrupted if by_itself && exit.signal.is_none() => return self.refused(error),
            _ => return None,
        }
        let hint = (self.hint)(exit);
        let told = match &self.error {
            Some(_) => self.limit.clone(),
            // What a plain command writes there may be anything that it read.
            None if self.ending == Ending::Silent => None,
            None => error
                .and_then(|error| classify::understand(None, None, &error.text).limit)
                .map(|limit| *limit),
        };
        let limit = match (told, hint) {
            (Some(told), Some(hint)) if told.resets.is_none() => Limit { resets: hint.resets, ..told },
            (Some(told), _) => told,
            (None, Some(hint)) if self.is_unexplained() => hint,
            // The agent itself calls it a limit; which one, its words may say.
            (None, _) if outcome == OutcomeKind::Limit => {
                let words = self.last.as_ref().and_then(|last| last.reason.as_deref()).unwrap_or_default();
                *classify::understand(None, Some("usage_limit_reached"), words).limit?
            }
            (None, _) => return self.refused(error),
        };
        Some(worded(self.windows.complete(limit), error))
    }

    /// The refusal that was the last word on the windows of the plan: what a run without an explanation ended for.
    fn refused(&self, error: Option<&Failure>) -> Option<Limit> {
        let alone = self.ending != Ending::Interactive && self.is_unexplained();
        alone.then(|| self.windows.standing_refusal()).flatten().map(|limit| worded(limit, error))
    }

    /// Whether the agent said nothing of what went wrong that could be understood.
    fn is_unexplained(&self) -> bool {
        self.error.as_ref().is_none_or(|error| error.class == ErrorClass::Unknown)
    }
}

fn worded(limit: Limit, error: Option<&Failure>) -> Limit {
    match error {
        Some(error) => limit.in_words(&error.text),
        None => limit,
    }
}

/// A person ended it, or something ended it for them.
fn attended(exit: &ExitInfo) -> (OutcomeKind, String) {
    match (exit.by_signal(), exit.code) {
        (true, _) => (OutcomeKind::Interrupted, "ended by a signal".to_owned()),
        (_, Some(0)) => (OutcomeKind::Completed, "ended at its terminal".to_owned()),
        (_, Some(_)) => (OutcomeKind::Failed, exit_words(exit)),
        (_, None) => (OutcomeKind::Interrupted, "nobody saw how it ended".to_owned()),
    }
}

fn exit_words(exit: &ExitInfo) -> String {
    let code = exit.code.map_or_else(|| "without a code".to_owned(), |code| format!("with code {code}"));
    match exit.stderr.as_deref().and_then(|text| text.lines().map(str::trim).rfind(|line| !line.is_empty())) {
        Some(line) => format!("exited {code}: {line}"),
        None => format!("exited {code}"),
    }
}
