//! Asking a run to stop, and how far stopping has come.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use segno_agents::EndCause;
use segno_core::event::Request as Asked;
use segno_core::state::OpenRequest;

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
    Request(OpenRequest),
    /// No sign of life.
    Silence,
    /// Too long altogether.
    MaxDuration,
    /// Too many turns.
    Turns,
    /// A budget is used up, or cannot be held; in words.
    Budget(String),
    /// Its processes use too much of something.
    Resources(String),
    /// Its driver has no right to drive any more.
    Replaced(String),
}

impl Cause {
    /// As those who judge outcomes know it.
    pub(super) fn end(&self) -> EndCause {
        match self {
            Self::Asked(_) | Self::Request(_) | Self::Turns | Self::Resources(_) | Self::Replaced(_) => {
                EndCause::Stopped
            }
            Self::Silence | Self::MaxDuration => EndCause::TimedOut,
            Self::Budget(_) => EndCause::Budget,
        }
    }

    /// In words.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Asked(ask) => ask.as_str().to_owned(),
            Self::Request(open) if open.request == Asked::Kill => "killed from elsewhere".to_owned(),
            Self::Request(_) => "asked to stop from elsewhere".to_owned(),
            Self::Silence => "no sign of life for too long".to_owned(),
            Self::MaxDuration => "the time is up".to_owned(),
            Self::Turns => "the number of turns is used up".to_owned(),
            Self::Budget(what) | Self::Resources(what) | Self::Replaced(what) => what.clone(),
        }
    }

    /// The word that is recorded.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Asked(_) => "signal",
            Self::Request(_) => "request",
            Self::Silence => "silence",
            Self::MaxDuration => "wall_time",
            Self::Turns => "turns",
            Self::Budget(_) => "budget",
            Self::Resources(_) => "resources",
            Self::Replaced(_) => "replaced",
        }
    }

    /// Whether nobody is to be asked politely first.
    pub(super) fn is_kill(&self) -> bool {
        matches!(self, Self::Request(open) if open.request == Asked::Kill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ask_is_remembered() {
        let stop = Stop::default();
        assert_eq!(stop.asked().0, 0);
        stop.clone().ask(Ask::Hangup);
        stop.ask(Ask::Interrupt);
        assert_eq!(stop.asked(), (2, Ask::Hangup));
    }
}
