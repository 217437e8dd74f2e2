//! Opening files beneath a directory, never through a symbolic link.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::Context as _;
use crate::error::Error;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The top of a working tree, held open: it stays the same directory whatever its path comes to mean.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    path: PathBuf,
}

impl Root {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let fd = rustix::fs::open(path, DIRECTORY, Mode::empty()).context("cannot open", path)?;
        Ok(Self { fd, path: path.to_owned() })
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// The whole path, for messages.
    pub(crate) fn absolute(&self, path: &[u8]) -> PathBuf {
        self.path.join(as_path(path))
    }

    /// A directory; the empty path is the top.
    pub(crate) fn dir(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_beneath(if path.is_empty() { b"." } else { path }, DIRECTORY)
    }

    /// A file for reading. A pipe does not make this wait.
    pub(crate) fn file(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_beneath(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC)
    }

    /// The directory that holds a path, and the last part of it.
    pub(crate) fn parent<'p>(&self, path: &'p [u8]) -> Result<(OwnedFd, &'p [u8]), Errno> {
        let (parent, name) = split(path);
        Ok((self.dir(parent)?, name))
    }

    fn open_beneath(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), resolve) {
                // An old kernel, a filter that does not know the call, a path too long for one call, a race with a
                // rename: step by step works too.
                Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG | Errno::AGAIN) => {}
                opened => return opened,
            }
        }
        self.open_by_steps(path, flags)
    }

    fn open_by_steps(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let last = parts.pop().unwrap_or(b".");
        let mut at = self.fd.try_clone().map_err(|_| Errno::MFILE)?;
        for part in parts {
            if part == b".." {
                return Err(Errno::XDEV);
            }
            at = rustix::fs::openat(&at, part, DIRECTORY, Mode::empty())?;
        }
        if last == b".." {
            return Err(Errno::XDEV);
        }
        rustix::fs::openat(&at, last, flags, Mode::empty())
    }
}

/// A path of bytes as one of the system.
pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// A path of the system as bytes.
pub(crate) fn as_bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_os_str().as_bytes()
}

/// What is above a path, and its last part.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (path.get(..slash).unwrap_or_default(), path.get(slash + 1..).unwrap_or_default()),
        None => (b"", path),
    }
}

/// A path one part longer.
pub(crate) fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(path.len() + 1 + name.len());
    joined.extend_from_slice(path);
    if !path.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// Whether `path` is `top` or beneath it.
pub(crate) fn is_under(path: &[u8], top: &[u8]) -> bool {
    path.strip_prefix(top).is_some_and(|rest| top.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
}

/// What the names of files that are being put in place begin with. They are never captured.
pub(crate) const STAGED: &[u8] = b".segno-tmp-";

/// Whether a name is never captured and never restored: git's own, ours, and what is being put in place.
pub(crate) fn is_reserved(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git") || name == b".segno" || name.starts_with(STAGED)
}

/// Whether a path from a tree object can be restored. Trees may come from elsewhere.
pub(crate) fn is_sound(path: &[u8]) -> bool {
    !path.contains(&0)
        && path
            .split(|byte| *byte == b'/')
            .all(|part| !part.is_empty() && part != b"." && part != b".." && !is_reserved(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_opened_through_a_link_or_outside() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("root");
        std::fs::create_dir_all(inside.join("a/b")).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::fs::write(inside.join("a/b/file"), "f").unwrap();
        std::os::unix::fs::symlink("a", inside.join("link")).unwrap();
        std::os::unix::fs::symlink("../secret", inside.join("out")).unwrap();
        let root = Root::open(&inside).unwrap();
        type Open = fn(&Root, &[u8], OFlags) -> Result<OwnedFd, Errno>;
        for open in [Root::open_beneath as Open, Root::open_by_steps as Open] {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW;
            assert!(open(&root, b"a/b/file", flags).is_ok());
            for bad in [&b"link/b/file"[..], b"out", b"../secret", b"a/../../secret"] {
                assert!(open(&root, bad, flags).is_err(), "{}", String::from_utf8_lossy(bad));
            }
        }
    }

    #[test]
    fn unsound_paths_are_told_apart() {
        for good in ["a", "a/b", ".gitignore", "..."] {
            assert!(is_sound(good.as_bytes()), "{good}");
        }
        for bad in
            ["", "/a", "a//b", "a/", "../a", "a/./b", "a/.git/hooks/x", ".GIT/config", ".segno/x", "a\0b"]
        {
            assert!(!is_sound(bad.as_bytes()), "{bad}");
        }
        assert!(
            is_under(b"a/b", b"a") && is_under(b"a", b"a") && is_under(b"a", b"") && !is_under(b"ab", b"a")
        );
    }
}
