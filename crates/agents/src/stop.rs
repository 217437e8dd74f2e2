//! How to end an agent, as data.

use std::time::Duration;

/// The signals used, by name: their numbers are the operating system's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: agents take it as "stop cleanly and write down where you are".
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL, for the whole tree: a killed agent leaves its tools running.
    Kill,
}

/// One step down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopStep {
    /// What to send.
    pub signal: Signal,
    /// How long to wait for the end before the next step, still reading the output.
    pub grace: Duration,
}

/// The way down that loses least: only the first step makes agents report a final event.
pub const STOP_LADDER: [StopStep; 3] = [
    StopStep { signal: Signal::Interrupt, grace: Duration::from_secs(5) },
    StopStep { signal: Signal::Terminate, grace: Duration::from_secs(5) },
    StopStep { signal: Signal::Kill, grace: Duration::ZERO },
];

/// What silence of an agent means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// A shorter silence proves nothing: the agent itself waits this long for its provider before it tries again.
    pub at_least: Duration,
    /// Whether it gives signs of life while a tool runs. If not, silence during a call proves nothing at all.
    pub heartbeats: bool,
}
