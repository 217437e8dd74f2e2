//! A small process that ends what a command started if whoever started it is gone.
//!
//! A command that measures the work belongs to the process that runs it. If that one is killed, nobody is left to end
//! the command: so a guard stands beside it. It holds one end of a pipe whose other end only the caller has; when that
//! closes without a word, the caller is dead, and the guard ends every process of the command.

use std::ffi::OsString;
use std::io::BufRead;
use std::io::BufReader;
use std::io::PipeWriter;
use std::io::Read;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Child;
use std::process::Stdio;

use segno_core::RunId;

use super::tree::Member;
use super::tree::Tree;

/// The word that makes a program the guard of a command; the id of the command's processes follows it.
pub const GUARD: &str = "guard-command";
/// What the caller says when there is nothing left to end.
const DONE: &str = "done";

/// Waits until the caller is done or dead, and ends what is left in the second case. `told` is the caller's end of the
/// pipe.
pub fn guard_command(id: &str, told: impl Read) {
    let Ok(id) = id.parse::<RunId>() else { return };
    // Nobody, until it is told who it is: then only those that bear the mark are found.
    let mut root = Member { pid: u32::MAX, start: 0 };
    let mut cgroup = None;
    for line in BufReader::new(told).lines() {
        let Ok(line) = line else { break };
        if line == DONE {
            return;
        }
        let mut words = line.splitn(3, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        if let (Some(pid), Some(start)) = (number().and_then(|pid| u32::try_from(pid).ok()), number()) {
            root = Member { pid, start };
        }
        cgroup = words.next().filter(|path| !path.is_empty()).map(PathBuf::from);
    }
    let cgroup = cgroup.filter(|group| super::cgroup::is_of(group, &id));
    Tree::new(&id, root, false, cgroup).sweep();
}

/// The guard, seen from the caller.
pub(crate) struct Guard {
    child: Child,
    pipe: Option<PipeWriter>,
}

impl Guard {
    /// Starts one with this command; none if there is no command, or it cannot be started.
    pub(crate) fn start(command: &[OsString], id: &RunId) -> Option<Self> {
        let (program, arguments) = command.split_first()?;
        let (reader, pipe) = std::io::pipe().ok()?;
        let mut command = std::process::Command::new(program);
        command.args(arguments).arg(id.as_str()).env_clear().current_dir("/").process_group(0);
        let child = command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        Some(Self { child, pipe: Some(pipe) })
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells it which process all others come from.
    pub(crate) fn tell(&mut self, root: Member, cgroup: Option<&PathBuf>) {
        let group = cgroup.map(|group| group.display().to_string()).unwrap_or_default();
        self.say(&format!("{} {} {group}", root.pid, root.start));
    }

    fn say(&mut self, words: &str) {
        // One that is gone guards nothing; the caller's own sweep is there all the same.
        if let Some(pipe) = &mut self.pipe {
            let _ = writeln!(pipe, "{words}");
        }
    }

    /// Nothing is left to end.
    pub(crate) fn dismiss(mut self) {
        self.say(DONE);
        drop(self.pipe.take());
        let _ = self.child.wait();
    }
}
