//! Where a path lies in a project.

use std::os::unix::fs::MetadataExt as _;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use segno_core::Refusal;
use segno_core::State;
use segno_core::Timestamp;

use crate::Error;

/// The system's marks of files and its clock differ by a tick.
const TICK: i64 = 20_000;

/// The path of a file of the project, from the project's root on. `path` is as somebody at `base` wrote it. None for
/// what lies elsewhere, also if a link in the project leads there, and for the root itself.
pub fn inside(root: &Path, base: &Path, path: &Path) -> Option<PathBuf> {
    let root = resolved(root);
    let whole = flat(&base.join(path));
    // The file itself may be a link: that is a file of the project wherever it leads.
    let whole = match (whole.parent(), whole.file_name()) {
        (Some(parent), Some(name)) => resolved(parent).join(name),
        _ => whole,
    };
    let found = whole.strip_prefix(&root).ok()?;
    (!found.as_os_str().is_empty()).then(|| found.to_owned())
}

/// Whether a file was changed, or removed, after a moment. Of one that is gone the folder tells, which may have got
/// other changes since.
pub(crate) fn changed_after(file: &Path, moment: Timestamp) -> bool {
    let there = file.ancestors().find_map(|path| std::fs::symlink_metadata(path).ok());
    there.is_some_and(|meta| {
        let micros =
            |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000);
        let changed = micros(meta.mtime(), meta.mtime_nsec()).max(micros(meta.ctime(), meta.ctime_nsec()));
        changed > moment.as_micros().saturating_add(TICK)
    })
}

/// Whether a file has come to be since a moment, as far as the file system tells: an edit in place leaves its birth as it
/// is.
pub(crate) fn born_after(file: &Path, moment: Timestamp) -> bool {
    let born = std::fs::symlink_metadata(file).and_then(|meta| meta.created()).ok();
    let since = born.and_then(|born| born.duration_since(std::time::UNIX_EPOCH).ok());
    since
        .and_then(|since| i64::try_from(since.as_micros()).ok())
        .is_some_and(|micros| micros.saturating_add(TICK) >= moment.as_micros())
}

/// The path of an artifact as it is recorded, from the root of the session's project on.
///
/// # Errors
/// If the file is none of the project.
pub fn artifact_path(state: &State, base: &Path, path: &str) -> Result<String, Error> {
    let root = Path::new(&state.project.path);
    if root.as_os_str().is_empty() {
        return Ok(path.to_owned());
    }
    let outside = || {
        let reason = format!("{path} is outside of the project {}", root.display());
        Error::Refused(Refusal::bad("path", reason))
    };
    let found = inside(root, base, Path::new(path)).ok_or_else(outside)?;
    found.to_str().map(ToOwned::to_owned).ok_or_else(outside)
}

/// Without `.` and `..`, by the names alone.
fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                flat.pop();
            }
            other => flat.push(other),
        }
    }
    flat
}

/// With the links of all directories that exist followed.
fn resolved(path: &Path) -> PathBuf {
    let path = flat(path);
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_the_project_is_inside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        std::os::unix::fs::symlink(&root, dir.path().join("alias")).unwrap();
        let at = |base: &Path, path: &str| inside(&root, base, Path::new(path));
        assert_eq!(at(&root, "a.rs"), Some("a.rs".into()));
        assert_eq!(at(&root.join("src"), "new/b.rs"), Some("src/new/b.rs".into()));
        assert_eq!(at(&root.join("src"), "../a.rs"), Some("a.rs".into()));
        assert_eq!(at(&dir.path().join("alias"), "a.rs"), Some("a.rs".into()));
        assert_eq!(at(Path::new("/"), root.join("x").to_str().unwrap()), Some("x".into()));
        // A link is a file like any other; what lies behind it is not.
        assert_eq!(at(&root, "link"), Some("link".into()));
        for outside in ["/etc/passwd", "../x", "../../x", "link/passwd", ".", "src/../../y"] {
            assert_eq!(at(&root, outside), None, "{outside}");
        }
    }
}
