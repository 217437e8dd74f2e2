//! Whether a process lives, as far as it can be told from here.
//!
//! Three values, because two of them are acted on and the third must not be: a process is dead only when that is
//! known. What cannot be told (another machine, another namespace, no `/proc`, one that shows too little) counts as
//! alive.

use std::sync::OnceLock;

use segno_core::event::Holder;

use crate::fault::Guard;
use crate::fault::broken;

/// Whether a process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It does.
    Alive,
    /// It does not, and that is known.
    Dead(Death),
    /// It cannot be told from here. It counts as alive.
    Unknown,
}

/// How it is known that a process does not live any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// Its process is gone, or its pid belongs to another process now.
    Ended,
    /// The machine was started anew since.
    Rebooted,
}

impl Life {
    /// Whether nothing may be done that a living one would mind.
    pub fn may_live(self) -> bool {
        !matches!(self, Self::Dead(_))
    }
}

/// What a process knows of where it is. What it cannot see is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// The machine's name.
    pub host: String,
    /// Which boot of the machine.
    pub boot_id: String,
    /// Which pid namespace.
    pub pid_namespace: String,
}

/// What is seen of a pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A process that started then, in clock ticks since boot as everybody counts them; none if that is hidden.
    Running(Option<u64>),
    /// No process, or one that has ended and was not waited for yet.
    Gone,
    /// It cannot be seen.
    Hidden,
}

/// Decides from what is seen. `look` is only asked about pids that mean something here.
pub fn judge(holder: &Holder, here: &Here, look: impl FnOnce(u32) -> Seen) -> Life {
    match judged(holder, here, look) {
        Life::Unknown if broken(Guard::Life) => Life::Dead(Death::Ended),
        other => other,
    }
}

fn judged(holder: &Holder, here: &Here, look: impl FnOnce(u32) -> Seen) -> Life {
    let known = |own: &str, other: &str| !own.is_empty() && !other.is_empty();
    if holder.host != here.host || !known(&here.boot_id, &holder.boot_id) {
        return Life::Unknown;
    }
    if holder.boot_id != here.boot_id {
        return Life::Dead(Death::Rebooted);
    }
    if !known(&here.pid_namespace, &holder.pid_namespace) || holder.pid_namespace != here.pid_namespace {
        return Life::Unknown;
    }
    judge_process(holder.process_start, look(holder.pid))
}

/// The same for a process that is known to have been started here.
pub fn judge_process(start: u64, seen: Seen) -> Life {
    match seen {
        // A pid alone is not enough: it may have been given to another process.
        Seen::Running(Some(now)) if now == start => Life::Alive,
        // Nobody could tell when it started.
        Seen::Running(_) if start == 0 => Life::Unknown,
        Seen::Running(Some(_)) | Seen::Gone => Life::Dead(Death::Ended),
        Seen::Running(None) | Seen::Hidden => Life::Unknown,
    }
}

/// Where this process is.
pub fn here() -> Here {
    let ours = shows_ours();
    Here {
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        boot_id: segno_store::boot_id(),
        pid_namespace: std::fs::read_link("/proc/self/ns/pid")
            .ok()
            .filter(|_| ours)
            .map_or(String::new(), |link| link.to_string_lossy().into_owned()),
    }
}

/// Whether `/proc` shows the pids of our own namespace: another one may be mounted there.
fn shows_ours() -> bool {
    let own = std::fs::read_link("/proc/self").ok();
    own.is_some_and(|own| own.to_str() == Some(&std::process::id().to_string()))
}

/// Looks at a pid of this namespace.
pub fn look(pid: u32) -> Seen {
    let Some(number) = crate::run::tree::pid(pid) else { return Seen::Gone };
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => match Stat::parse(&stat) {
            Some(stat) if stat.ended => Seen::Gone,
            Some(stat) => Seen::Running(stat.start),
            None => Seen::Hidden,
        },
        // `/proc` may hide what is there; the system itself does not.
        Err(_) => match rustix::process::test_kill_process(number) {
            Err(rustix::io::Errno::SRCH) => Seen::Gone,
            _ => Seen::Hidden,
        },
    }
}

/// When this process started; 0 if that cannot be told.
pub fn own_start() -> u64 {
    match look(std::process::id()) {
        Seen::Running(Some(start)) if shows_ours() => start,
        _ => 0,
    }
}

/// What `/proc/PID/stat` says, as far as it is needed to tell processes apart.
struct Stat {
    ended: bool,
    start: Option<u64>,
}

impl Stat {
    fn parse(stat: &str) -> Option<Self> {
        // The name may hold spaces and parentheses; the fields start after the last one.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        let start = fields.nth(18)?.parse().ok()?;
        Some(Self { ended, start: as_everybody_counts(start) })
    }
}

/// Ticks since boot as the machine counts them, whatever our namespace adds. None if that cannot be told.
pub fn as_everybody_counts(start: u64) -> Option<u64> {
    let added = added_ticks()?;
    u64::try_from(i64::try_from(start).ok()?.checked_sub(added)?).ok()
}

/// What the time namespace of this process adds to the time since boot, in clock ticks. A process stays in its own.
fn added_ticks() -> Option<i64> {
    static ADDED: OnceLock<Option<i64>> = OnceLock::new();
    *ADDED.get_or_init(read_added_ticks)
}

fn read_added_ticks() -> Option<i64> {
    let link = |name: &str| std::fs::read_link(format!("/proc/self/ns/{name}")).ok();
    let text = match std::fs::read_to_string("/proc/self/timens_offsets") {
        Ok(text) => text,
        // A kernel without such namespaces.
        Err(_) => return Some(0),
    };
    // The file tells of children to come, and they may be counted differently.
    if link("time") != link("time_for_children") {
        return None;
    }
    // Hardly anybody is in such a namespace, and asking how long a tick is takes longer than the rest.
    match offset(&text, 1)? {
        0 => Some(0),
        _ => offset(&text, i64::try_from(rustix::param::clock_ticks_per_second()).ok()?),
    }
}

/// What is added according to a `timens_offsets` file.
fn offset(text: &str, ticks_per_second: i64) -> Option<i64> {
    let Some(line) = text.lines().find(|line| line.starts_with("boottime")) else { return Some(0) };
    let mut numbers = line.split_whitespace().skip(1).map(str::parse::<i64>);
    let seconds = numbers.next()?.ok()?;
    // A part of a second does not come out even.
    let rest = numbers.next()?.ok()?;
    (rest == 0).then(|| seconds.checked_mul(ticks_per_second)).flatten()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn holder() -> Holder {
        Holder {
            host: "h".to_owned(),
            pid_namespace: "n".to_owned(),
            boot_id: "b".to_owned(),
            pid: 7,
            process_start: 100,
            what: "test".to_owned(),
        }
    }

    fn there(host: &str, boot_id: &str, pid_namespace: &str) -> Here {
        Here { host: host.to_owned(), boot_id: boot_id.to_owned(), pid_namespace: pid_namespace.to_owned() }
    }

    #[rstest]
    #[case::here_and_running(there("h", "b", "n"), Seen::Running(Some(100)), Life::Alive)]
    #[case::the_number_is_anothers(there("h", "b", "n"), Seen::Running(Some(101)), Life::Dead(Death::Ended))]
    #[case::gone(there("h", "b", "n"), Seen::Gone, Life::Dead(Death::Ended))]
    #[case::hidden(there("h", "b", "n"), Seen::Hidden, Life::Unknown)]
    #[case::start_hidden(there("h", "b", "n"), Seen::Running(None), Life::Unknown)]
    #[case::another_boot(there("h", "c", "n"), Seen::Gone, Life::Dead(Death::Rebooted))]
    #[case::boot_hidden(there("h", "", "n"), Seen::Gone, Life::Unknown)]
    #[case::another_host(there("i", "b", "n"), Seen::Gone, Life::Unknown)]
    #[case::another_host_and_boot(there("i", "c", "n"), Seen::Gone, Life::Unknown)]
    #[case::another_namespace(there("h", "b", "m"), Seen::Gone, Life::Unknown)]
    #[case::namespace_hidden(there("h", "b", ""), Seen::Gone, Life::Unknown)]
    #[case::another_boot_wherever(there("h", "c", ""), Seen::Hidden, Life::Dead(Death::Rebooted))]
    fn dead_is_only_what_is_known_to_be(#[case] here: Here, #[case] seen: Seen, #[case] expected: Life) {
        assert_eq!(judge(&holder(), &here, |_| seen), expected);
    }

    #[test]
    fn what_did_not_know_itself_is_never_dead_for_others() {
        let blind =
            Holder { boot_id: String::new(), pid_namespace: String::new(), process_start: 0, ..holder() };
        assert_eq!(judge(&blind, &there("h", "b", "n"), |_| Seen::Gone), Life::Unknown);
        let no_start = Holder { process_start: 0, ..holder() };
        assert_eq!(judge(&no_start, &there("h", "b", "n"), |_| Seen::Running(Some(5))), Life::Unknown);
        assert_eq!(judge(&no_start, &there("h", "b", "n"), |_| Seen::Gone), Life::Dead(Death::Ended));
    }

    #[test]
    fn this_process_lives() {
        let me = Holder { pid: std::process::id(), process_start: own_start(), ..crate::lease::here("me") };
        assert_eq!(judge(&me, &here(), look), Life::Alive);
        assert_eq!(look(0), Seen::Gone);
        assert_eq!(look(u32::MAX), Seen::Gone);
    }

    #[rstest]
    #[case("monotonic           0         0\nboottime       100000         0\n", Some(10_000_000))]
    #[case("monotonic 5 0\nboottime -3 0\n", Some(-300))]
    #[case("boottime 5 7\n", None)]
    #[case("", Some(0))]
    fn what_a_time_namespace_adds(#[case] text: &str, #[case] expected: Option<i64>) {
        assert_eq!(offset(text, 100), expected);
    }
}
