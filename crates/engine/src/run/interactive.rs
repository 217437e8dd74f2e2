//! A run with a person at the agent's own terminal.
//!
//! The agent gets our terminal itself, in our process group: keys, sizes, Ctrl-C, Ctrl-Z and hang-ups reach it as they
//! would without us. Nothing is written there while it has it. What it does is known from its hooks and its own log.

use std::io::IsTerminal;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use rustix::process::Signal;
use rustix::process::WaitId;
use rustix::process::WaitIdOptions;
use rustix::termios;
use rustix::termios::OptionalActions;
use rustix::termios::Termios;
use segno_agents::Agent;
use segno_agents::LaunchSpec;
use segno_agents::StopStep;

use super::Request;
use super::Stop;
use super::log_copy::InteractiveRun;
use super::log_copy::LogCopy;
use super::tree;
use super::tree::Member;
use super::tree::Tree;

/// What a program that was killed may have left switched on: another screen, a hidden cursor, reports of the mouse, of
/// the focus and of keys, marked pastes, colours. The cursor stays where it is.
const RESET: &[u8] =
    b"\x1b[?1047l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\
\x1b[?2026l\x1b[<u\x1b[>4m\x1b[0m\r\n";

/// What such a run has beside all others.
pub(super) struct InteractiveTerminal {
    log: Option<LogCopy>,
    terminal: Option<LentTerminal>,
}

/// A terminal that an agent is given: where it reads keys, and where it draws.
#[derive(Debug)]
pub struct Terminal {
    /// Where it reads.
    pub input: OwnedFd,
    /// Where it draws.
    pub output: OwnedFd,
}

/// The terminal as it was before the agent had it.
struct LentTerminal {
    terminal: Terminal,
    modes: Termios,
}

/// What is noted of such a run; none for others.
pub(super) fn interactive_run(request: &Request, spec: &LaunchSpec, now: &str) -> Option<InteractiveRun> {
    if !request.launch.interactive {
        return None;
    }
    let variable = |name: &str| {
        let inherited = request.environment.iter().find(|(known, _)| known == name);
        let inherited = inherited.filter(|_| !spec.env_remove.iter().any(|removed| removed == name));
        let value = spec.env_set.get(name).map(Into::into).or_else(|| inherited.map(|(_, v)| v.clone()));
        value.filter(|value| !value.is_empty()).and_then(|value| value.to_str().map(ToOwned::to_owned))
    };
    let location = request.agent.conversation_log().and_then(|log| log.location());
    let records = location.and_then(|location| Some(request.directory.join(location.root(&variable)?)));
    Some(InteractiveRun { since: now.to_owned(), records })
}

impl InteractiveTerminal {
    /// Before the agent is started.
    pub(super) fn acquire(
        agent: &dyn Agent,
        run: &InteractiveRun,
        capture: &std::path::Path,
        terminal: Option<&Terminal>,
    ) -> Self {
        Self { log: LogCopy::open(agent, run, capture), terminal: terminal.and_then(LentTerminal::new) }
    }

    /// For an agent that was started by somebody who died: its terminal is not ours.
    pub(super) fn detached(agent: &dyn Agent, run: &InteractiveRun, capture: &std::path::Path) -> Self {
        Self { log: LogCopy::open(agent, run, capture), terminal: None }
    }

    /// Copies what is new in the log. What cannot be read now is read later.
    pub(super) fn pump(&mut self, native_id: Option<&str>, tree: &Tree) {
        if let Some(log) = &mut self.log {
            let _ = log.pump(native_id, tree);
        }
    }

    /// Copies the rest of the log.
    pub(super) fn finish(&mut self, native_id: Option<&str>, tree: &Tree) -> std::io::Result<()> {
        match &mut self.log {
            Some(log) => log.finish(native_id, tree),
            None => Ok(()),
        }
    }

    /// An agent that stops itself (Ctrl-Z) gives the terminal back to the shell, which waits for us: so we stop too.
    /// When the shell lets its job go on, the agent gets that signal as well; when somebody lets only us go on, we
    /// pass it on.
    pub(super) fn follow_job(&self, member: Member, stop: &Stop) {
        if self.terminal.is_none() {
            return;
        }
        if stop.take_continued() {
            member.signal(Signal::CONT);
        }
        let Some(pid) = tree::pid(member.pid) else { return };
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let stopped = rustix::process::waitid(WaitId::Pid(pid), options);
        if stopped.is_ok_and(|status| status.is_some_and(|status| status.stopped())) {
            // Without a shell that could let us go on, the system does not stop us.
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::TSTP);
        }
    }

    /// The terminal as it was, whatever the agent left it like.
    pub(super) fn restore(&self, killed: bool) {
        if let Some(terminal) = &self.terminal {
            terminal.restore(killed);
        }
    }
}

impl LentTerminal {
    fn new(terminal: &Terminal) -> Option<Self> {
        if !terminal.input.is_terminal() {
            return None;
        }
        let modes = termios::tcgetattr(terminal.input.as_fd()).ok()?;
        let (input, output) = (terminal.input.try_clone().ok()?, terminal.output.try_clone().ok()?);
        Some(Self { terminal: Terminal { input, output }, modes })
    }

    fn restore(&self, killed: bool) {
        let Terminal { input, output } = &self.terminal;
        // In the background the terminal is somebody else's.
        let ours = termios::tcgetpgrp(input.as_fd()).is_ok_and(|group| group == rustix::process::getpgrp());
        if !ours {
            return;
        }
        let _ = termios::tcsetattr(input.as_fd(), OptionalActions::Drain, &self.modes);
        if killed
            && output.is_terminal()
            && let Ok(output) = output.try_clone()
        {
            let _ = std::fs::File::from(output).write_all(RESET);
        }
    }
}

/// The way down for an agent whose person is not to be asked twice: Ctrl-C means something else in its interface.
pub(super) fn ladder(steps: &[StopStep]) -> Vec<StopStep> {
    steps.iter().copied().filter(|step| step.signal != segno_agents::Signal::Interrupt).collect()
}
