//! What a snapshot must keep and git does not: exact permissions, directories without files, and what was left out.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::beneath::as_bytes;
use crate::beneath::as_path;
use crate::beneath::is_sound;
use crate::error::Error;

/// Why a file is not in a snapshot, or not quite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A socket.
    Socket,
    /// A named pipe.
    Fifo,
    /// A block or character device.
    Device,
    /// It could not be read.
    Unreadable,
    /// It is larger than the limit.
    TooLarge,
    /// It is in the snapshot, but it changed while it was read, every time.
    Unstable,
    /// It was taken out later, because somebody asked for it.
    Forgotten,
}

impl Reason {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Socket, "socket"),
        (Self::Fifo, "fifo"),
        (Self::Device, "device"),
        (Self::Unreadable, "unreadable"),
        (Self::TooLarge, "too-large"),
        (Self::Unstable, "unstable"),
        (Self::Forgotten, "forgotten"),
    ];

    /// One word.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(reason, _)| *reason == self).map_or("", |(_, word)| word)
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Socket => "a socket",
            Self::Fifo => "a named pipe",
            Self::Device => "a device",
            Self::Unreadable => "cannot be read",
            Self::TooLarge => "larger than the limit",
            Self::Unstable => "changed while it was read",
            Self::Forgotten => "forgotten on request",
        })
    }
}

/// A file that is not in a snapshot, or not quite, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exception {
    /// Where, from the top of the tree.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
    /// How large it was.
    pub size: u64,
}

/// Which default a path's permissions go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Sort {
    File,
    Executable,
    Directory,
}

impl Sort {
    const ALL: [(Self, &'static str, u32); 3] =
        [(Self::File, "f", 0o644), (Self::Executable, "x", 0o755), (Self::Directory, "d", 0o755)];

    fn letter(self) -> &'static str {
        Self::ALL.iter().find(|(sort, ..)| *sort == self).map_or("", |(_, letter, _)| letter)
    }
}

/// The part of a snapshot that git cannot hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The most common permissions of each sort; only what differs is listed.
    pub(crate) usual: BTreeMap<Sort, u32>,
    pub(crate) unusual: BTreeMap<Vec<u8>, (Sort, u32)>,
    /// Directories without any captured file in or below them.
    pub(crate) empty: BTreeSet<Vec<u8>>,
    pub(crate) exceptions: Vec<Exception>,
}

const HEAD: &[u8] = b"segno manifest 1";

impl Manifest {
    /// From the permissions of everything.
    pub(crate) fn new<'p>(
        permissions: impl Iterator<Item = (&'p [u8], Sort, u32)> + Clone,
        empty: BTreeSet<Vec<u8>>,
        mut exceptions: Vec<Exception>,
    ) -> Self {
        exceptions.sort();
        let mut counts: BTreeMap<(Sort, u32), usize> = BTreeMap::new();
        for (_, sort, mode) in permissions.clone() {
            *counts.entry((sort, mode)).or_default() += 1;
        }
        let mut usual = BTreeMap::new();
        for (sort, _, default) in Sort::ALL {
            let of_sort = counts.iter().filter(|((of, _), _)| *of == sort);
            let most = of_sort.max_by_key(|(_, count)| **count).map_or(default, |((_, mode), _)| *mode);
            usual.insert(sort, most);
        }
        let unusual = permissions.filter(|(_, sort, mode)| usual.get(sort) != Some(mode));
        let unusual = unusual.map(|(path, sort, mode)| (path.to_vec(), (sort, mode))).collect();
        Self { usual, unusual, empty, exceptions }
    }

    /// The permissions of a path that the snapshot holds.
    pub(crate) fn permissions(&self, path: &[u8], sort: Sort) -> u32 {
        let unusual = self.unusual.get(path).filter(|(of, _)| *of == sort).map(|(_, mode)| *mode);
        unusual.or_else(|| self.usual.get(&sort).copied()).unwrap_or(0o700)
    }

    /// Takes away what nobody else may decide: that a file runs as its owner or group, and that others may write it.
    /// False if there is nothing of the kind.
    pub(crate) fn make_harmless(&mut self) -> bool {
        let mut changed = false;
        for mode in self.usual.values_mut().chain(self.unusual.values_mut().map(|(_, mode)| mode)) {
            changed |= *mode & !0o755 != 0;
            *mode &= 0o755;
        }
        changed
    }

    /// Whether nothing in it runs as its owner or group, or may be written by everybody.
    pub(crate) fn is_harmless(&self) -> bool {
        let unusual = self.unusual.values().map(|(_, mode)| mode);
        self.usual.values().chain(unusual).all(|mode| mode & !0o775 == 0)
    }

    /// Every path that it names.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        let left = self.exceptions.iter().map(|exception| as_bytes(&exception.path));
        self.unusual.keys().chain(&self.empty).map(Vec::as_slice).chain(left)
    }

    /// Names these paths no more.
    pub(crate) fn leave_out(&mut self, gone: &dyn Fn(&[u8]) -> bool) {
        self.unusual.retain(|path, _| !gone(path));
        self.empty.retain(|path| !gone(path));
        self.exceptions.retain(|exception| !gone(as_bytes(&exception.path)));
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = HEAD.to_vec();
        out.push(0);
        let mut line = |head: String, path: &[u8]| {
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(path);
            out.push(0);
        };
        for (sort, mode) in &self.usual {
            line(format!("usual {} {mode:o} ", sort.letter()), b"");
        }
        for (path, (sort, mode)) in &self.unusual {
            line(format!("mode {} {mode:o} ", sort.letter()), path);
        }
        for path in &self.empty {
            line("empty - 0 ".to_owned(), path);
        }
        for exception in &self.exceptions {
            line(format!("left {} {} ", exception.reason.word(), exception.size), as_bytes(&exception.path));
        }
        out
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse(bytes).ok_or_else(|| Error::damaged("a snapshot's manifest", "it cannot be understood"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0);
        if lines.next()? != HEAD {
            return None;
        }
        let mut manifest = Self::default();
        for line in lines {
            let mut fields = line.splitn(4, |byte| *byte == b' ');
            let mut word = || fields.next().and_then(|field| std::str::from_utf8(field).ok());
            let (what, kind, number) = (word()?, word()?, word()?);
            let path = fields.next()?;
            if what != "usual" && !is_sound(path) {
                return None;
            }
            let sort = || Sort::ALL.iter().find(|(_, letter, _)| *letter == kind).map(|(sort, ..)| *sort);
            let mode = || u32::from_str_radix(number, 8).ok().filter(|mode| *mode <= 0o7777);
            match what {
                "usual" => drop(manifest.usual.insert(sort()?, mode()?)),
                "mode" => drop(manifest.unusual.insert(path.to_vec(), (sort()?, mode()?))),
                "empty" => drop(manifest.empty.insert(path.to_vec())),
                "left" => manifest.exceptions.push(Exception {
                    path: as_path(path).to_owned(),
                    reason: Reason::ALL.iter().find(|(_, word)| *word == kind).map(|(reason, _)| *reason)?,
                    size: number.parse().ok()?,
                }),
                _ => return None,
            }
        }
        Some(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_survives_writing_and_reading() {
        let permissions: [(&[u8], Sort, u32); 5] = [
            (b"a", Sort::File, 0o664),
            (b"b", Sort::File, 0o664),
            (b"odd \xff\nname", Sort::File, 0o600),
            (b"run", Sort::Executable, 0o775),
            (b"dir", Sort::Directory, 0o2775),
        ];
        let exceptions = vec![
            Exception { path: "pipe".into(), reason: Reason::Fifo, size: 0 },
            Exception { path: as_path(b"big \xfe").to_owned(), reason: Reason::TooLarge, size: 1 << 40 },
        ];
        let empty = BTreeSet::from([b"dir/empty one".to_vec()]);
        let manifest = Manifest::new(permissions.into_iter(), empty, exceptions);
        assert_eq!(manifest.unusual.len(), 1, "the usual permissions are not listed");
        assert_eq!(Manifest::read(&manifest.write()).unwrap(), manifest);
        assert_eq!(manifest.permissions(b"odd \xff\nname", Sort::File), 0o600);
        assert_eq!(manifest.permissions(b"a", Sort::File), 0o664);
        assert_eq!(manifest.permissions(b"dir", Sort::Directory), 0o2775);
    }

    #[test]
    fn what_is_not_a_manifest_is_refused() {
        let mut set_user = Manifest::read(b"segno manifest 1\0usual f 4755 \0mode x 6777 run\0").unwrap();
        assert!(set_user.make_harmless() && !set_user.make_harmless());
        assert_eq!(set_user.permissions(b"a", Sort::File), 0o755);
        assert_eq!(set_user.permissions(b"run", Sort::Executable), 0o755);
        for bad in [
            &b"segno manifest 1\0mode d 777 .git/hooks\0"[..],
            b"segno manifest 1\0empty - 0 sub/.git/x\0",
            b"segno manifest 1\0empty - 0 ../x\0",
            b"",
            b"\0",
            b"segno manifest 2\0",
            b"segno manifest 1\0mode f 77777 a\0",
            b"segno manifest 1\0x\0",
        ] {
            assert!(Manifest::read(bad).is_err());
        }
    }
}
