//! What the end of a run does to its session.

use segno_agents::OutcomeKind;
use segno_core::Command;
use segno_core::Status;
use segno_core::Text;
use segno_core::event::InterruptReason;
use segno_core::event::PauseReason;
use segno_core::event::Request as Asked;
use segno_core::state::OpenRequest;

use crate::run::Ask;
use crate::run::stop::Cause;

/// How a run ended, as far as its session is concerned.
#[derive(Clone, Debug)]
pub(in crate::run) struct RunEnd<'a> {
    pub(in crate::run) outcome: OutcomeKind,
    /// In words.
    pub(in crate::run) reason: &'a str,
    pub(in crate::run) exit_code: Option<i32>,
    pub(in crate::run) exit_signal: Option<i32>,
    /// Why it was stopped, if it was.
    pub(in crate::run) cause: Option<&'a Cause>,
    /// What its driver was asked for first and has not answered, whatever it was stopped for.
    pub(in crate::run) asked: Option<&'a OpenRequest>,
    /// Whether the completion of this run completes the session.
    pub(in crate::run) completes: bool,
    /// A person who leaves their agent pauses the session.
    pub(in crate::run) pauses: bool,
    /// The run is one iteration of a loop, which judges it: only what somebody asked for moves the session.
    pub(in crate::run) in_loop: bool,
}

/// What follows for the session: an error is never its end, it can be resumed.
pub(in crate::run) fn session_after(status: Status, end: &RunEnd<'_>) -> Option<Command> {
    if status != Status::Active {
        return None;
    }
    let details = Some(Text::from(end.reason));
    let pause = |reason: PauseReason| Some(Command::Pause { reason, details: details.clone() });
    // That the agent came to its end meanwhile is no reason why the session is paused.
    let otherwise = details.clone().filter(|_| end.outcome != OutcomeKind::Completed);
    // Whoever asked for an end gets that end, whatever the agent made of it, and their own words are its reason.
    // One who asked while the run was being stopped for another cause hears no less.
    let ends = |open: &&OpenRequest| open.request.leads_to() != Status::Paused;
    let asked = match end.cause {
        Some(Cause::Request(open)) => Some(open),
        _ => end.asked.filter(ends),
    };
    if let Some(open) = asked {
        let words = open.details.as_deref().map(Text::from);
        match open.request {
            Asked::Complete => return Some(Command::Complete { summary: words }),
            Asked::Abort => return Some(Command::Abort { reason: words }),
            Asked::Pause => {
                return Some(Command::Pause { reason: PauseReason::Asked, details: words.or(otherwise) });
            }
            Asked::Stop | Asked::Kill => {}
        }
    }
    // The agent ended by itself before it could be stopped: the loop goes no further all the same.
    if let Some(open) = end.asked.filter(|_| end.in_loop) {
        let words = open.details.as_deref().map(Text::from);
        return Some(Command::Pause { reason: PauseReason::Asked, details: words.or(otherwise) });
    }
    if end.in_loop && !matches!((end.outcome, end.cause), (OutcomeKind::Stopped, Some(_))) {
        return None;
    }
    match end.outcome {
        OutcomeKind::Completed if end.pauses => pause(PauseReason::Ended),
        OutcomeKind::Completed => end.completes.then_some(Command::Complete { summary: None }),
        OutcomeKind::Interrupted => {
            let reason = match (end.exit_signal, end.exit_code) {
                (Some(_), _) => InterruptReason::Killed,
                (None, Some(_)) => InterruptReason::Crash,
                (None, None) => InterruptReason::Unknown,
            };
            Some(Command::Interrupt { reason, details, at: None })
        }
        OutcomeKind::TimedOut => pause(PauseReason::Timeout),
        OutcomeKind::Stopped => match end.cause {
            Some(Cause::Asked(how)) => pause(pause_reason(*how)),
            Some(Cause::Resources(_)) => pause(PauseReason::Limit),
            Some(
                Cause::Request(_)
                | Cause::Silence
                | Cause::MaxDuration
                | Cause::Turns
                | Cause::Budget(_)
                | Cause::Replaced(_),
            )
            | None => pause(PauseReason::Asked),
        },
        OutcomeKind::Limit => pause(PauseReason::Limit),
        OutcomeKind::Budget => pause(PauseReason::Budget),
        OutcomeKind::Failed | OutcomeKind::AgentMissing => pause(PauseReason::Error),
        OutcomeKind::Denied | OutcomeKind::MaxTurns => pause(PauseReason::Ended),
    }
}

/// What it is called when somebody at this process asked to stop.
pub(in crate::run) fn pause_reason(how: Ask) -> PauseReason {
    match how {
        Ask::Interrupt => PauseReason::Signal,
        Ask::Terminate => PauseReason::Terminated,
        Ask::Hangup => PauseReason::Hangup,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn end(outcome: OutcomeKind) -> RunEnd<'static> {
        RunEnd {
            outcome,
            reason: "why",
            exit_code: None,
            exit_signal: None,
            cause: None,
            asked: None,
            completes: true,
            pauses: false,
            in_loop: false,
        }
    }

    fn word(command: Option<Command>) -> String {
        match command {
            None => "stays".to_owned(),
            Some(Command::Complete { .. }) => "completed".to_owned(),
            Some(Command::Abort { reason }) => {
                format!("aborted {}", reason.map_or(String::new(), |r| r.short(99)))
            }
            Some(Command::Pause { reason, details }) => {
                format!("paused {} {}", reason.as_str(), details.map_or(String::new(), |text| text.short(99)))
            }
            Some(Command::Interrupt { reason, .. }) => format!("interrupted {}", reason.as_str()),
            Some(other) => format!("{other:?}"),
        }
    }

    #[rstest]
    #[case(OutcomeKind::Completed, "completed")]
    #[case(OutcomeKind::Failed, "paused error why")]
    #[case(OutcomeKind::AgentMissing, "paused error why")]
    #[case(OutcomeKind::TimedOut, "paused timed out why")]
    #[case(OutcomeKind::Stopped, "paused asked why")]
    #[case(OutcomeKind::Limit, "paused limit reached why")]
    #[case(OutcomeKind::Budget, "paused budget reached why")]
    #[case(OutcomeKind::Denied, "paused run ended why")]
    #[case(OutcomeKind::MaxTurns, "paused run ended why")]
    #[case(OutcomeKind::Interrupted, "interrupted unknown")]
    fn by_its_outcome(#[case] outcome: OutcomeKind, #[case] expected: &str) {
        assert_eq!(word(session_after(Status::Active, &end(outcome))), expected);
        assert_eq!(
            word(session_after(Status::Paused, &end(outcome))),
            "stays",
            "it stands where it was brought to"
        );
    }

    #[test]
    fn a_session_that_was_there_before_is_not_completed_by_a_run() {
        let open = RunEnd { completes: false, ..end(OutcomeKind::Completed) };
        assert_eq!(word(session_after(Status::Active, &open)), "stays");
        let left = RunEnd { pauses: true, ..open };
        assert_eq!(word(session_after(Status::Active, &left)), "paused run ended why");
    }

    #[rstest]
    #[case(OutcomeKind::Completed)]
    #[case(OutcomeKind::Failed)]
    #[case(OutcomeKind::AgentMissing)]
    #[case(OutcomeKind::TimedOut)]
    #[case(OutcomeKind::Limit)]
    #[case(OutcomeKind::Budget)]
    #[case(OutcomeKind::Denied)]
    #[case(OutcomeKind::MaxTurns)]
    #[case(OutcomeKind::Interrupted)]
    fn in_a_loop_only_somebodys_word_moves_the_session(#[case] outcome: OutcomeKind) {
        let one = RunEnd { in_loop: true, ..end(outcome) };
        assert_eq!(word(session_after(Status::Active, &one)), "stays");
        let cause = Cause::Asked(Ask::Interrupt);
        let stopped = RunEnd { cause: Some(&cause), in_loop: true, ..end(OutcomeKind::Stopped) };
        assert_eq!(word(session_after(Status::Active, &stopped)), "paused user interrupt why");
        let open = OpenRequest { seq: 1, request: Asked::Abort, details: Some("tea".to_owned()) };
        let cause = Cause::Request(open);
        let asked = RunEnd { cause: Some(&cause), in_loop: true, ..end(outcome) };
        assert_eq!(word(session_after(Status::Active, &asked)), "aborted tea");
    }

    #[rstest]
    #[case(Ask::Interrupt, "paused user interrupt why")]
    #[case(Ask::Terminate, "paused terminated why")]
    #[case(Ask::Hangup, "paused terminal closed why")]
    fn a_signal_is_called_what_it_is(#[case] how: Ask, #[case] expected: &str) {
        let cause = Cause::Asked(how);
        let stopped = RunEnd { cause: Some(&cause), ..end(OutcomeKind::Stopped) };
        assert_eq!(word(session_after(Status::Active, &stopped)), expected);
    }

    #[rstest]
    #[case(Asked::Pause, Some("tea"), OutcomeKind::Stopped, "paused asked tea")]
    #[case(Asked::Pause, None, OutcomeKind::Stopped, "paused asked why")]
    #[case(Asked::Pause, Some("tea"), OutcomeKind::Completed, "paused asked tea")]
    #[case(Asked::Pause, None, OutcomeKind::Completed, "paused asked ")]
    #[case(Asked::Stop, None, OutcomeKind::Completed, "completed")]
    #[case(Asked::Abort, Some("tea"), OutcomeKind::Completed, "aborted tea")]
    #[case(Asked::Complete, None, OutcomeKind::Failed, "completed")]
    #[case(Asked::Stop, None, OutcomeKind::Stopped, "paused asked why")]
    fn who_asked_gets_what_was_asked_for(
        #[case] request: Asked,
        #[case] details: Option<&str>,
        #[case] outcome: OutcomeKind,
        #[case] expected: &str,
    ) {
        let open = OpenRequest { seq: 1, request, details: details.map(ToOwned::to_owned) };
        let cause = Cause::Request(open);
        let ended = RunEnd { cause: Some(&cause), ..end(outcome) };
        assert_eq!(word(session_after(Status::Active, &ended)), expected);
    }

    #[rstest]
    #[case(Asked::Abort, "aborted tea")]
    #[case(Asked::Complete, "completed")]
    #[case(Asked::Pause, "paused budget reached why")]
    fn who_asked_while_it_was_being_stopped_gets_it_too(#[case] request: Asked, #[case] expected: &str) {
        let open = OpenRequest { seq: 1, request, details: Some("tea".to_owned()) };
        let cause = Cause::Budget("all of it".to_owned());
        let ended = RunEnd { cause: Some(&cause), asked: Some(&open), ..end(OutcomeKind::Budget) };
        assert_eq!(word(session_after(Status::Active, &ended)), expected);
    }
}
