//! Asking a run to stop, and how far stopping has come.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use segno_agents::EndCause;
use segno_agents::StopStep;
use segno_core::event::Request as Asked;

/// How a run is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// The terminal went away.
    Hangup,
}

impl Ask {
    fn from_code(code: u8) -> Self {
        match code {
            2 => Self::Terminate,
            3 => Self::Hangup,
            _ => Self::Interrupt,
        }
    }

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupted at the terminal",
            Self::Terminate => "asked to end by a signal",
            Self::Hangup => "the terminal went away",
        }
    }
}

/// Asks a run to stop: once politely, twice at once. Cloning it gives the same one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    count: AtomicUsize,
    first: AtomicU8,
    continued: AtomicBool,
}

impl Stop {
    /// Asks once more.
    pub fn ask(&self, how: Ask) {
        let code = match how {
            Ask::Interrupt => 1,
            Ask::Terminate => 2,
            Ask::Hangup => 3,
        };
        let _ = self.0.first.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        self.0.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Says that this process was stopped and goes on again.
    pub fn continued(&self) {
        self.0.continued.store(true, Ordering::SeqCst);
    }

    /// Whether it went on again since this was last asked.
    pub(super) fn take_continued(&self) -> bool {
        self.0.continued.swap(false, Ordering::SeqCst)
    }

    /// How often it was asked, and how it was asked first.
    pub fn asked(&self) -> (usize, Ask) {
        let first = Ask::from_code(self.0.first.load(Ordering::SeqCst));
        (self.0.count.load(Ordering::SeqCst), first)
    }
}

/// Why a run is being stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Somebody at this process asked.
    Asked(Ask),
    /// Somebody elsewhere asked the driver.
    Request(Asked),
    /// No sign of life.
    Silence,
    /// Too long altogether.
    Wall,
    /// Too many turns.
    Turns,
    /// A budget is used up.
    Budget,
    /// Its processes use too much of something.
    Resources(String),
}

impl Cause {
    /// As those who judge outcomes know it.
    pub(super) fn end(&self) -> EndCause {
        match self {
            Self::Asked(_) | Self::Request(_) | Self::Turns | Self::Resources(_) => EndCause::Stopped,
            Self::Silence | Self::Wall => EndCause::TimedOut,
            Self::Budget => EndCause::Budget,
        }
    }

    /// In words.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Asked(ask) => ask.as_str().to_owned(),
            Self::Request(Asked::Kill) => "killed from elsewhere".to_owned(),
            Self::Request(_) => "asked to stop from elsewhere".to_owned(),
            Self::Silence => "no sign of life for too long".to_owned(),
            Self::Wall => "the time is up".to_owned(),
            Self::Turns => "the number of turns is used up".to_owned(),
            Self::Budget => "the budget is used up".to_owned(),
            Self::Resources(what) => what.clone(),
        }
    }

    /// The word that is recorded.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Asked(_) => "signal",
            Self::Request(_) => "request",
            Self::Silence => "silence",
            Self::Wall => "wall_time",
            Self::Turns => "turns",
            Self::Budget => "budget",
            Self::Resources(_) => "resources",
        }
    }
}

/// How far stopping has come.
pub(super) struct Stopping {
    pub(super) cause: Cause,
    step: usize,
    since: Instant,
}

impl Stopping {
    /// Begins, on the first step, or on the last one if that was asked for.
    pub(super) fn begin(cause: Cause, ladder: &[StopStep]) -> (Self, Option<StopStep>) {
        let last = ladder.len().saturating_sub(1);
        let step = if cause == Cause::Request(Asked::Kill) { last } else { 0 };
        (Self { cause, step, since: Instant::now() }, ladder.get(step).copied())
    }

    /// The next, harder step when the last one had its time, or the hardest at once. The last one is repeated.
    pub(super) fn next(&mut self, ladder: &[StopStep], grace: Duration, at_once: bool) -> Option<StopStep> {
        let last = ladder.len().saturating_sub(1);
        let due = self.since.elapsed() >= grace;
        if self.step < last && at_once {
            self.step = last;
        } else if !due {
            return None;
        } else {
            self.step = (self.step + 1).min(last);
        }
        self.since = Instant::now();
        ladder.get(self.step).copied()
    }
}

#[cfg(test)]
mod tests {
    use segno_agents::STOP_LADDER;
    use segno_agents::Signal;

    use super::*;

    #[test]
    fn the_way_down() {
        let signal = |step: Option<StopStep>| step.map(|step| step.signal);
        let (mut stopping, first) = Stopping::begin(Cause::Silence, &STOP_LADDER);
        assert_eq!(signal(first), Some(Signal::Interrupt));
        let long = Duration::from_secs(3600);
        assert_eq!(stopping.next(&STOP_LADDER, long, false), None);
        for expected in [Signal::Terminate, Signal::Kill, Signal::Kill] {
            assert_eq!(signal(stopping.next(&STOP_LADDER, Duration::ZERO, false)), Some(expected));
        }
        let (mut stopping, _) = Stopping::begin(Cause::Wall, &STOP_LADDER);
        assert_eq!(signal(stopping.next(&STOP_LADDER, long, true)), Some(Signal::Kill));
        assert_eq!(stopping.next(&STOP_LADDER, long, true), None);
        let (_, first) = Stopping::begin(Cause::Request(Asked::Kill), &STOP_LADDER);
        assert_eq!(signal(first), Some(Signal::Kill));
    }

    #[test]
    fn the_first_ask_is_remembered() {
        let stop = Stop::default();
        assert_eq!(stop.asked().0, 0);
        stop.clone().ask(Ask::Hangup);
        stop.ask(Ask::Interrupt);
        assert_eq!(stop.asked(), (2, Ask::Hangup));
    }
}
