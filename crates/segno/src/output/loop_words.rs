//! The events of a loop in words.

use segno_engine::core::Timestamp;
use segno_engine::core::event::BreakerChanged;
use segno_engine::core::event::GateAccepted;
use segno_engine::core::event::GateMeasured;
use segno_engine::core::event::GatePassed;
use segno_engine::core::event::HandedOver;
use segno_engine::core::event::ItemEnd;
use segno_engine::core::event::ItemEnded;
use segno_engine::core::event::ItemTaken;
use segno_engine::core::event::IterationEnded;
use segno_engine::core::event::LoopBaselineTaken;
use segno_engine::core::event::LoopParked;
use segno_engine::core::event::LoopStarted;
use segno_engine::core::event::LoopWoken;
use segno_engine::core::event::PhaseSkipped;
use segno_engine::core::event::QueueListed;
use segno_engine::core::looping::BreakerState;
use segno_engine::core::looping::GateResult;
use segno_engine::core::looping::LoopVerdict;
use segno_engine::core::looping::TestCounts;

use super::event_words::Line;
use super::event_words::colored;
use super::event_words::line;
use super::event_words::noted;
use super::style::Meaning;

pub(super) fn started(e: &LoopStarted) -> Line {
    let phases = e.plan.phase_names().join(", ");
    noted("loop", format!("workflow {}", e.plan.workflow), phases)
}

pub(super) fn baseline(e: &LoopBaselineTaken) -> Line {
    colored(Meaning::Dim, noted("baseline", format!("of {}", e.phase), tests(&e.tests)))
}

fn tests(tests: &TestCounts) -> String {
    if tests.build_failed {
        return "the tests do not build".to_owned();
    }
    if tests.total == 0 {
        return String::new();
    }
    format!("{} of {} tests pass", tests.passed, tests.total)
}

pub(super) fn iteration_ended(e: &IterationEnded) -> Line {
    colored(verdict_meaning(&e.verdict), line("iteration ended", e.line.clone()))
}

/// What a verdict means for whoever reads it.
pub fn verdict_meaning(verdict: &LoopVerdict) -> Meaning {
    match verdict {
        LoopVerdict::Complete | LoopVerdict::NextPhase { .. } => Meaning::Done,
        LoopVerdict::Continue { .. } | LoopVerdict::HandOver { .. } | LoopVerdict::Stopped { .. } => {
            Meaning::Plain
        }
        LoopVerdict::BackTo { .. }
        | LoopVerdict::Cap { .. }
        | LoopVerdict::Park { .. }
        | LoopVerdict::BackOff { .. }
        | LoopVerdict::NeedsPerson { .. } => Meaning::Waiting,
        LoopVerdict::Halt { .. } => Meaning::Lost,
    }
}

pub(super) fn breaker(e: &BreakerChanged) -> Line {
    let meaning = if e.to == BreakerState::Open { Meaning::Lost } else { Meaning::Plain };
    let what = format!("{} to {}", e.from.as_str(), e.to.as_str());
    colored(meaning, noted("breaker", what, e.reason.clone()))
}

pub(super) fn measured(e: &GateMeasured) -> Line {
    noted("gate", format!("of {}: {}", e.phase, result(&e.result)), if e.by_hand { "by hand" } else { "" })
}

fn result(gate: &GateResult) -> String {
    if gate.can_exit {
        return "passes".to_owned();
    }
    let open: Vec<&str> =
        gate.conditions.iter().filter(|one| !one.holds).map(|one| one.name.as_str()).collect();
    if open.is_empty() { "waits for the signal".to_owned() } else { format!("fails: {}", open.join(", ")) }
}

pub(super) fn accepted(e: &GateAccepted) -> Line {
    let what = format!("of {}: {} accepted", e.phase, e.conditions.join(", "));
    colored(Meaning::Waiting, noted("gate", what, e.because.short(80)))
}

pub(super) fn passed(e: &GatePassed) -> Line {
    colored(Meaning::Done, noted("gate", format!("of {} passed", e.phase), tests(&e.receipt.counts)))
}

pub(super) fn parked(e: &LoopParked) -> Line {
    let until = e.until.map(|until| format!("until {}", moment(until))).unwrap_or_default();
    colored(Meaning::Waiting, noted("parked", e.words.clone(), until))
}

pub(super) fn woken(e: &LoopWoken) -> Line {
    noted("woken", format!("by {}", e.how.as_str()), if e.early { "early" } else { "" })
}

pub(super) fn skipped(e: &PhaseSkipped) -> Line {
    colored(Meaning::Waiting, noted("phase", format!("{} is skipped", e.phase), format!("by {}", e.by)))
}

pub(super) fn handed_over(e: &HandedOver) -> Line {
    noted("hand-over", format!("to {}", e.to_agent), e.why.clone())
}

pub(super) fn item_taken(e: &ItemTaken) -> Line {
    let session = e.session.map(|session| session.to_string()).unwrap_or_default();
    let what = if e.follow_up { "follow-up for " } else { "" };
    noted("item", format!("{what}{} {}", e.item.id, e.item.title), session)
}

pub(super) fn item_ended(e: &ItemEnded) -> Line {
    let meaning = match e.end {
        ItemEnd::Done => Meaning::Done,
        ItemEnd::Failed | ItemEnd::Skipped => Meaning::Waiting,
        ItemEnd::SetAside => Meaning::Lost,
    };
    let again = e.retry_at.map(|at| format!("again at {}", moment(at))).unwrap_or_default();
    let note = if e.why.is_empty() { again } else { e.why.clone() };
    colored(meaning, noted("item", format!("{} {}", e.item.id, e.end.as_str()), note))
}

pub(super) fn queue_listed(e: &QueueListed) -> Line {
    let skipped = if e.skipped > 0 { format!("{} skipped", e.skipped) } else { String::new() };
    colored(Meaning::Dim, noted("work", format!("{} ready", e.total), skipped))
}

/// In UTC, to the minute.
fn moment(at: Timestamp) -> String {
    let (_, month, day, hour, minute, _, _) = at.parts();
    format!("{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}
