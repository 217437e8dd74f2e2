//! The agent that calls a hook: the process that holds the session as long as it lives.

use segno_core::event::Holder;

use crate::life;
use crate::run::ancestry;
use crate::run::tree;
use crate::run::tree::Member;

/// Between an agent and its hook there are shells, and never many.
const MOST: usize = 16;
/// Programs that run a line for somebody else.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "env", "timeout"];

/// The nearest ancestor of this process that is no shell running the hook. None where the system does not tell.
pub fn caller() -> Option<Member> {
    let mut pid = rustix::process::getppid().and_then(|pid| u32::try_from(pid.as_raw_pid()).ok())?;
    for _ in 0..MOST {
        if pid <= 1 {
            return None;
        }
        if !runs_hook(pid) {
            return match life::look(pid) {
                life::Seen::Running(Some(start)) => Some(Member { pid, start }),
                life::Seen::Running(None) | life::Seen::Gone | life::Seen::Hidden => None,
            };
        }
        pid = tree::parent_of(pid)?;
    }
    None
}

/// Whether an agent has a driver that records it.
pub fn is_driven(agent: Member) -> bool {
    ancestry::is_marked(agent.pid)
}

/// Whether a person has an agent's terminal.
pub(super) fn is_interactive(agent: Member) -> bool {
    let input = std::fs::read_link(format!("/proc/{}/fd/0", agent.pid)).unwrap_or_default();
    input.starts_with("/dev/pts") || input.starts_with("/dev/tty")
}

/// A process as the holder of a lease.
pub(super) fn holder(agent: Member, name: &str) -> Holder {
    let here = life::here();
    Holder {
        host: here.host,
        pid_namespace: here.pid_namespace,
        boot_id: here.boot_id,
        pid: agent.pid,
        process_start: agent.start,
        what: name.to_owned(),
    }
}

/// The words that an agent was started with; of one that has a name (`--resume=ID`), what it is set to.
pub(super) fn caller_words(agent: Member) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{}/cmdline", agent.pid)).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let value = |word: String| match word.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => value.to_owned(),
        _ => word,
    };
    words.map(value).collect()
}

fn runs_hook(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    is_shell_of_hook(name.trim(), &line)
}

fn is_shell_of_hook(name: &str, line: &str) -> bool {
    SHELLS.contains(&name) && line.contains(segno_agents::watching::MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_that_run_the_hook_are_passed_over() {
        let line = "/bin/sh -c command -v segno >/dev/null 2>&1 && segno hook --watch claude || true";
        assert!(is_shell_of_hook("sh", line) && is_shell_of_hook("bash", line));
        // An agent that is asked about hooks, and the shell of the person who started it.
        assert!(!is_shell_of_hook("claude", "claude -p what does segno hook --watch claude do?"));
        assert!(!is_shell_of_hook("bash", "-bash"));
    }

    #[test]
    fn somebody_started_this_test() {
        let caller = caller().unwrap();
        assert!(caller.is_alive() && caller.pid != std::process::id());
    }
}
