//! Whether this process was started by an agent.
//!
//! Variables can be unset by whoever starts a process; its ancestors cannot be changed. Orphans of a run come to its
//! driver, so an agent's processes stay below it as long as it lives.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::tree;

/// Longer lines of ancestors are not followed.
const MOST: usize = 1_024;

/// What the line of ancestors says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// An agent started it.
    Run,
    /// Nobody but a person or a program of theirs.
    Nobody,
    /// The system does not tell.
    Unknown,
}

/// Whether this process is below a run.
pub fn below_run() -> Below {
    let Some(mut parent) = tree::parent_of(std::process::id()) else { return Below::Unknown };
    if is_in_group() {
        return Below::Run;
    }
    let own = std::fs::metadata("/proc/self/exe").ok().map(|meta| (meta.dev(), meta.ino()));
    for _ in 0..MOST {
        if parent <= 1 {
            return Below::Nobody;
        }
        if is_marked(parent) || is_driver(parent, own) {
            return Below::Run;
        }
        // One that has just ended has left its children to another, whose line is followed then.
        match tree::parent_of(parent) {
            Some(next) => parent = next,
            None => return Below::Unknown,
        }
    }
    Below::Unknown
}

/// Whether a process was given the variables of a run.
pub(crate) fn is_marked(pid: u32) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let names: [&[u8]; 2] = [b"SEGNO_RUN=", b"SEGNO_TREE="];
    environment.split(|byte| *byte == 0).any(|variable| {
        names.iter().any(|name| variable.strip_prefix(*name).is_some_and(|value| !value.is_empty()))
    })
}

/// Whether a process is this program: only drivers have children that run it again.
fn is_driver(pid: u32, own: Option<(u64, u64)>) -> bool {
    let path = format!("/proc/{pid}/exe");
    let same = std::fs::metadata(&path).is_ok_and(|meta| Some((meta.dev(), meta.ino())) == own);
    let named = std::fs::read_link(&path).is_ok_and(|exe| {
        let name = Path::new(&exe).file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        name == b"segno" || name == b"segno (deleted)"
    });
    same || named
}

/// Whether it is in the control group of a run.
fn is_in_group() -> bool {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups.lines().flat_map(|line| line.split('/')).any(|part| {
        let run = part.strip_prefix("segno-").unwrap_or_default();
        run.len() == 32 && run.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
