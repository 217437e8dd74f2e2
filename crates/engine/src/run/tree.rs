//! Every process that an agent started, however it tried to get away.
//!
//! Agents start shells in sessions of their own, so killing a process group does not reach them. Three ways lead to
//! them: a control group where one can be had, adoption (this process is the reaper of orphans below it), and a mark
//! in the environment that children inherit.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Pid;
use rustix::process::PidfdFlags;
use rustix::process::Signal;
use segno_core::RunId;

use crate::life;
use crate::life::Life;

/// The variable that marks the processes of a run: the ids of all runs that it is part of, joined by `:`. An agent
/// that runs segno itself has descendants of two.
pub const MARK: &str = "SEGNO_TREE";

/// Has orphans of what this process starts come to it, so that none gets away and none stays a zombie. For a process that
/// does nothing else meanwhile; false if the system cannot do it.
pub fn adopt_orphans() -> bool {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
}

/// How often a sweep looks before it gives up on processes that cannot be killed.
const LOOKS: u32 = 400;
/// A look that finds nobody is repeated: a process that is just being born shows its environment a moment later.
const QUIET_LOOKS: u32 = 2;

/// The processes of one run.
#[derive(Debug)]
pub struct Tree {
    run: RunId,
    root: u32,
    since: u64,
    adopts: bool,
    /// A child of ours that is none of the agent's.
    spared: Option<u32>,
    cgroup: Option<PathBuf>,
}

/// A process, told apart from a later one with the same pid by when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Its pid.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

/// What the living members use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processes.
    pub processes: u64,
    /// Resident memory in bytes.
    pub memory: u64,
    /// Processor time in clock ticks.
    pub ticks: u64,
}

/// The mark for the processes of a run, given the mark that this process itself carries.
pub fn mark(inherited: Option<&str>, run: &RunId) -> String {
    match inherited.filter(|inherited| !inherited.is_empty() && inherited.len() < 4_096) {
        Some(inherited) => format!("{inherited}:{run}"),
        None => run.to_string(),
    }
}

/// Whether a process bears the mark of a run.
pub(super) fn is_marked(pid: u32, run: &RunId) -> bool {
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|variable| {
        let mark = variable.strip_prefix(MARK.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        mark.is_some_and(|mark| mark.split(|byte| *byte == b':').any(|one| one == run.as_str().as_bytes()))
    })
}

/// The parent of a process; 0 if that is none that can be seen.
pub fn parent_of(pid: u32) -> Option<u32> {
    Some(stat(pid)?.parent)
}

/// When a process started. None for one that is gone or only a zombie.
pub fn start_of(pid: u32) -> Option<u64> {
    Some(stat(pid)?.member.start)
}

/// A child that was just started. One that has ended already gets a start that no process has.
pub(crate) fn just_started(pid: u32) -> Member {
    let start = match life::look(pid) {
        life::Seen::Running(Some(start)) => start,
        life::Seen::Gone => NEVER,
        life::Seen::Running(None) | life::Seen::Hidden => 0,
    };
    Member { pid, start }
}

/// The first tick after boot: no agent is that old.
const NEVER: u64 = 1;

impl Tree {
    /// The tree below `root`, whose environment carries the run's id in its mark. `adopts` says that orphans of it
    /// come to this process.
    pub fn new(run: &RunId, root: Member, adopts: bool, cgroup: Option<PathBuf>) -> Self {
        Self { run: run.clone(), root: root.pid, since: root.start, adopts, spared: None, cgroup }
    }

    /// Leaves out a child that this process has for itself.
    pub(crate) fn spare(&mut self, pid: Option<u32>) {
        self.spared = pid.or(self.spared);
    }

    /// The process that all others come from.
    pub(super) fn root(&self) -> Member {
        Member { pid: self.root, start: self.since }
    }

    /// The processes that live now, the root included.
    pub fn members(&self) -> BTreeSet<Member> {
        let mut found = BTreeSet::new();
        if let Some(cgroup) = &self.cgroup {
            let listed = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
            found.extend(listed.lines().filter_map(|pid| Some(stat(pid.parse().ok()?)?.member)));
        }
        let own = std::process::id();
        let own_group = stat(own).map_or(0, |own| own.group);
        // What started before the run cannot be part of it, whatever its number says.
        let processes: Vec<Process> =
            processes().into_iter().filter(|process| process.member.start >= self.since).collect();
        // Once the root is gone its number may be anybody's.
        let root = self.root();
        let mut below: BTreeSet<u32> =
            processes.iter().filter(|process| process.member == root).map(|_| self.root).collect();
        if self.adopts {
            // Our own children stay in our process group; an orphan that came to us never was in it.
            let adopted = processes
                .iter()
                .filter(|p| p.parent == own && p.group != own_group && Some(p.member.pid) != self.spared);
            below.extend(adopted.map(|p| p.member.pid));
        }
        loop {
            let before = below.len();
            for process in &processes {
                if below.contains(&process.parent) {
                    below.insert(process.member.pid);
                }
            }
            if below.len() == before {
                break;
            }
        }
        for process in &processes {
            let pid = process.member.pid;
            if pid != own && (below.contains(&pid) || is_marked(pid, &self.run)) {
                found.insert(process.member);
            }
        }
        let apart = apart(&processes, &found);
        found.retain(|member| !apart.contains(&member.pid));
        found
    }

    /// The agent itself, by its mark: it leads a process group of its own and was there before its children.
    pub fn eldest(&self) -> Option<Member> {
        let leads = |member: &Member| stat(member.pid).is_some_and(|process| process.group == member.pid);
        self.members().into_iter().filter(leads).min_by_key(|member| (member.start, member.pid))
    }

    /// What its members use.
    pub fn usage(&self) -> Usage {
        let page = rustix::param::page_size() as u64;
        self.members().iter().filter_map(|member| stat(member.pid)).fold(Usage::default(), |sum, process| {
            Usage {
                processes: sum.processes + 1,
                memory: sum.memory.saturating_add(process.pages.saturating_mul(page)),
                ticks: sum.ticks.saturating_add(process.ticks),
            }
        })
    }

    /// Ends everything that is left, again and again until nothing is. Answers with how many there were beside the root.
    pub fn sweep(&self) -> u64 {
        let mut ended = BTreeSet::new();
        let mut quiet = 0;
        for _ in 0..LOOKS {
            // Who is there is asked first: those that the group ends are counted and waited for like the others.
            let members = self.members();
            if let Some(cgroup) = self.cgroup.as_ref().filter(|cgroup| releases_background(cgroup)) {
                // One write ends the whole group at once, forks in flight included.
                let _ = std::fs::write(cgroup.join("cgroup.kill"), "1");
            }
            quiet = if members.is_empty() { quiet + 1 } else { 0 };
            if quiet >= QUIET_LOOKS {
                break;
            }
            for member in &members {
                member.signal(Signal::KILL);
            }
            ended.extend(members);
            std::thread::sleep(Duration::from_millis(3));
            self.reap(&ended);
        }
        self.reap(&ended);
        if let Some(cgroup) = &self.cgroup {
            let _ = std::fs::remove_dir(cgroup);
        }
        ended.iter().filter(|member| member.pid != self.root).count() as u64
    }

    /// Orphans that came to us stay as zombies until they are waited for. The root has its own waiter.
    fn reap(&self, members: &BTreeSet<Member>) {
        for member in members.iter().filter(|member| member.pid != self.root) {
            if let Some(pid) = pid(member.pid) {
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
            }
        }
    }
}

/// Waits for orphans that came to this process and ended. Only those found dead twice in a row: a child that somebody
/// in this process started is waited for by them, and at once.
#[derive(Debug, Default)]
pub struct OrphanReaper {
    seen: BTreeSet<Member>,
}

impl OrphanReaper {
    /// Looks once. These have waiters of their own.
    pub fn look(&mut self, waited_for: &[Option<u32>]) {
        let own = std::process::id();
        let dead: BTreeSet<Member> = all()
            .into_iter()
            .filter(|process| {
                process.zombie && process.parent == own && !waited_for.contains(&Some(process.member.pid))
            })
            .map(|process| process.member)
            .collect();
        for member in self.seen.intersection(&dead) {
            if let Some(pid) = pid(member.pid) {
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
            }
        }
        self.seen = dead;
    }
}

impl Member {
    /// Sends a signal if this is still the same process. The number is pinned first, so that it cannot pass to
    /// another process between the look and the signal.
    pub fn signal(self, signal: Signal) {
        let Some(pid) = pid(self.pid) else { return };
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pinned) if stat(self.pid).is_some_and(|process| process.member == self) => {
                let _ = rustix::process::pidfd_send_signal(pinned, signal);
            }
            Err(rustix::io::Errno::NOSYS) if stat(self.pid).is_some_and(|p| p.member == self) => {
                let _ = rustix::process::kill_process(pid, signal);
            }
            _ => {}
        }
    }

    /// Whether it lives, for one that was started in our namespace.
    pub fn life(self) -> Life {
        life::judge_process(self.start, life::look(self.pid))
    }

    /// Whether it still lives, or may.
    pub fn is_alive(self) -> bool {
        self.life().may_live()
    }
}

/// The flags of this program's own runs in the background.
const BACKGROUND: [&[u8]; 2] = [b"--tell", b"--background"];

/// Whether a process is this program with a run of its own in the background: that has a session, a driver and caps, is
/// listed, and can be stopped there. Its end is not that of whoever began it.
fn is_background_run(pid: u32) -> bool {
    let own = super::ancestry::own_program();
    let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let words = line.split(|byte| *byte == 0).skip(1);
    // What stands behind this belongs to the agent that it runs.
    let mut words = words.take_while(|word| *word != b"--");
    // The program is told by its file, not by its name, which anybody can take.
    words.any(|word| BACKGROUND.contains(&word)) && own.is_some() && super::ancestry::program_of(pid) == own
}

/// Of the processes found, those of other runs that were begun in the background, and everything below them.
fn apart(processes: &[Process], found: &BTreeSet<Member>) -> BTreeSet<u32> {
    let own = std::process::id();
    let mut apart: BTreeSet<u32> =
        found.iter().map(|member| member.pid).filter(|pid| *pid != own && is_background_run(*pid)).collect();
    loop {
        let before = apart.len();
        for process in processes {
            if apart.contains(&process.parent) {
                apart.insert(process.member.pid);
            }
        }
        if apart.len() == before {
            return apart;
        }
    }
}

/// Takes runs in the background out of a control group that is about to be ended. False if one stays in it.
fn releases_background(cgroup: &Path) -> bool {
    let inside = || -> BTreeSet<u32> {
        let listed = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
        let listed: BTreeSet<u32> = listed.lines().filter_map(|pid| pid.parse().ok()).collect();
        let processes = processes();
        let members = processes.iter().map(|process| process.member);
        apart(&processes, &members.filter(|member| listed.contains(&member.pid)).collect())
            .intersection(&listed)
            .copied()
            .collect()
    };
    let Some(above) = cgroup.parent() else { return inside().is_empty() };
    for pid in inside() {
        super::cgroup::enter(above, pid);
    }
    inside().is_empty()
}

/// A pid as the system wants it.
pub fn pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)
}

struct Process {
    member: Member,
    parent: u32,
    group: u32,
    zombie: bool,
    pages: u64,
    ticks: u64,
}

fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| read_stat(entry.ok()?.file_name().to_str()?.parse().ok()?)).collect()
}

fn processes() -> Vec<Process> {
    all().into_iter().filter(|process| !process.zombie).collect()
}

fn stat(pid: u32) -> Option<Process> {
    read_stat(pid).filter(|process| !process.zombie)
}

fn read_stat(pid: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses; the fields start after the last one.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    Some(Process {
        member: Member { pid, start: number(19).map(|at| life::as_everybody_counts(at).unwrap_or(at))? },
        parent: u32::try_from(number(1)?).ok()?,
        group: number(2).and_then(|group| u32::try_from(group).ok()).unwrap_or(0),
        zombie: matches!(*fields.first()?, "Z" | "X"),
        pages: number(21).unwrap_or(0),
        // Its own, and that of the children it has waited for.
        ticks: (11..=14).filter_map(number).fold(0, u64::saturating_add),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u128) -> RunId {
        RunId::new(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn marks_add_up() {
        let run = run(1);
        assert_eq!(mark(None, &run), run.as_str());
        assert_eq!(mark(Some("a"), &run), format!("a:{run}"));
        assert_eq!(mark(Some(""), &run), run.as_str());
    }

    #[test]
    fn a_marked_process_is_found_and_ended_and_no_other() {
        let spawn =
            |value: &str| std::process::Command::new("sleep").arg("60").env(MARK, value).spawn().unwrap();
        let id = RunId::new(uuid::Uuid::now_v7());
        let (mut ours, mut other) = (spawn(&format!("outer:{id}")), spawn(&format!("{id}b")));
        let nobody = Member { pid: u32::MAX, start: 0 };
        let tree = Tree::new(&id, nobody, false, None);
        while tree.members().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(tree.members().iter().map(|member| member.pid).collect::<Vec<_>>(), [ours.id()]);
        assert_eq!(tree.usage().processes, 1);
        assert_eq!(tree.sweep(), 1);
        // The sweep has waited for it already, or we do.
        let _ = ours.wait();
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn another_process_with_the_same_number_is_left_alone() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let real = Member { pid: child.id(), start: start_of(child.id()).unwrap() };
        let before = Member { start: real.start - 1, ..real };
        before.signal(Signal::KILL);
        assert!(!before.is_alive() && real.is_alive());
        real.signal(Signal::KILL);
        child.wait().unwrap();
        assert!(!real.is_alive());
    }
}
