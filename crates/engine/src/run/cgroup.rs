//! A control group of a run's own, where one can be had.

use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use segno_core::RunId;

use super::resources::Resources;

/// Makes a group below the present one; none if this process may not, or the system has none.
pub(crate) fn make(run: &RunId, resources: &Resources) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = own_group(&mounts, &own)?.join(name(run));
    std::fs::create_dir(&group).ok()?;
    // A group that cannot be killed as one is of no use.
    if !group.join("cgroup.kill").exists() {
        let _ = std::fs::remove_dir(&group);
        return None;
    }
    // The supervisor's watch holds the limits, and says why it stops a run. The kernel stands behind it with twice as
    // much, for what grows faster than anybody can watch.
    let backstop = |file: &str, limit: Option<u64>| {
        if let Some(limit) = limit {
            let _ = std::fs::write(group.join(file), limit.saturating_mul(2).to_string());
        }
    };
    backstop("memory.max", resources.memory);
    backstop("pids.max", resources.processes);
    Some(group)
}

fn name(run: &RunId) -> String {
    format!("segno-{run}")
}

/// Whether a path is the group that was made for a run: a real control group that bears the run's id.
pub(super) fn is_of(group: &Path, run: &RunId) -> bool {
    let Ok(mounts) = std::fs::read_to_string("/proc/self/mountinfo") else { return false };
    let Some((_, mount)) = hierarchy(&mounts) else { return false };
    let plain = group.components().all(|part| !matches!(part, Component::ParentDir | Component::CurDir));
    let named = group.file_name().and_then(|found| found.to_str()) == Some(name(run).as_str());
    // Below the mount there is nothing but control groups: no file there is a list of anybody's making.
    let real = || std::fs::canonicalize(group).is_ok_and(|real| real == group);
    plain && named && group.starts_with(&mount) && real()
}

/// Which part of the control groups is mounted, and where.
fn hierarchy(mounts: &str) -> Option<(String, String)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        after.starts_with("cgroup2 ").then(|| (unescape(root), unescape(mount)))
    })
}

/// Where this process's own group is, by the mounts and the membership that the kernel tells.
fn own_group(mounts: &str, own: &str) -> Option<PathBuf> {
    let (root, mount) = hierarchy(mounts)?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    // In a container only a part of the hierarchy is mounted, and paths are seen from its top.
    let below = own.strip_prefix(root.trim_end_matches('/')).unwrap_or(own);
    Some(Path::new(&mount).join(below.trim_start_matches('/')))
}

/// Blanks and backslashes are written as octal numbers there.
fn unescape(text: &str) -> String {
    ["\\040= ", "\\011=\t", "\\012=\n", "\\134=\\"].iter().fold(text.to_owned(), |text, pair| {
        let (code, plain) = pair.split_at(4);
        text.replace(code, &plain[1..])
    })
}

/// Puts a process into a group.
pub(crate) fn enter(group: &Path, pid: u32) -> bool {
    std::fs::write(group.join("cgroup.procs"), pid.to_string()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_this_process() {
        let line = |root: &str, mount: &str| {
            format!("35 24 0:30 {root} {mount} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n")
        };
        let other = "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
        for (root, mount, own, expected) in [
            ("/", "/sys/fs/cgroup", "0::/user.slice/a.scope\n", "/sys/fs/cgroup/user.slice/a.scope"),
            ("/", "/sys/fs/cgroup/unified", "1:name=systemd:/x\n0::/y\n", "/sys/fs/cgroup/unified/y"),
            ("/docker/abc", "/sys/fs/cgroup", "0::/docker/abc/z\n", "/sys/fs/cgroup/z"),
            ("/", "/mnt/a\\040b", "0::/\n", "/mnt/a b"),
        ] {
            assert_eq!(
                own_group(&(other.to_owned() + &line(root, mount)), own),
                Some(expected.into()),
                "{own}"
            );
        }
        assert_eq!(own_group(other, "0::/\n"), None);
        assert_eq!(own_group(&line("/", "/c"), "1:cpu:/\n"), None);
    }

    #[test]
    fn a_directory_that_only_looks_like_a_group_is_none() {
        let run = RunId::new(uuid::Uuid::from_u128(7));
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join(name(&run));
        std::fs::create_dir(&group).unwrap();
        assert!(!is_of(&group, &run), "it is not below the mount");
        assert!(!is_of(Path::new("/sys/fs/cgroup"), &run));
        assert!(!is_of(&Path::new("/sys/fs/cgroup/..").join(name(&run)), &run));
        if let Some(group) = make(&run, &Resources::default()) {
            assert!(is_of(&group, &run));
            assert!(!is_of(&group, &RunId::new(uuid::Uuid::from_u128(8))), "another run's");
            std::fs::remove_dir(group).unwrap();
        }
    }
}
