//! Puts files in place and takes them away, and notices if somebody else was quicker.
//!
//! A file is never overwritten: it is exchanged with the new one, looked at, and only then removed. If it is not what
//! was expected it goes back.

use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;

use rustix::fs::AtFlags;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use crate::beneath::Root;
use crate::beneath::STAGED;
use crate::beneath::as_path;
use crate::beneath::join;
use crate::beneath::split;
use crate::changes::Difference;
use crate::changes::Node;
use crate::content::hash_blob;
use crate::fault::step;
use crate::id::Kind;
use crate::id::checksum;
use crate::id::hash;
use crate::plan::Why;
use crate::stat::Stat;

/// What became of a step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// It was done.
    Yes,
    /// There was nothing to do.
    Already,
    /// Something else is there.
    Edited,
    /// Something else was there, and is now under the second name because a third thing took its place.
    Aside,
}

/// Works on one tree.
pub(crate) struct TreeWriter<'a> {
    root: &'a Root,
}

/// The name under which a file is prepared.
pub(crate) fn new_name(path: &[u8]) -> Vec<u8> {
    temporary(b"new-", path)
}

/// The name under which it is exchanged, and under which what was there is looked at.
pub(crate) fn old_name(path: &[u8]) -> Vec<u8> {
    temporary(b"old-", path)
}

/// Where the second name is, from the top of the tree.
pub(crate) fn beside(path: &[u8]) -> Vec<u8> {
    join(split(path).0, &old_name(path))
}

fn temporary(what: &[u8], path: &[u8]) -> Vec<u8> {
    let sum = checksum(path).to_string();
    [STAGED, what, sum.as_bytes().get(..32).unwrap_or_default()].concat()
}

/// Says why the system would not.
pub(crate) fn blocked(why: Errno) -> Why {
    match why {
        Errno::LOOP => Why::Blocked("the way leads through a link".to_owned()),
        Errno::NOTDIR => Why::Blocked("the way leads through a file".to_owned()),
        why => Why::Blocked(std::io::Error::from(why).to_string()),
    }
}

impl<'a> TreeWriter<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        Self { root }
    }

    /// What is at a path; nothing if the path or the way to it is missing.
    pub(crate) fn look(&self, path: &[u8]) -> Result<Option<Stat>, Errno> {
        match self.root.parent(path) {
            Ok((dir, name)) => look(&dir, name),
            Err(Errno::NOENT) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Why a step cannot be done, going by what is there now.
    pub(crate) fn refuse(&self, path: &[u8], step: &Difference) -> Option<Why> {
        match (self.look(path), step.from) {
            // What the way leads through may be taken away by another step.
            (Err(Errno::NOTDIR | Errno::LOOP), None) => None,
            (Err(why), _) => Some(blocked(why)),
            (Ok(None), None) => None,
            (Ok(None), Some(_)) => Some(Why::Edited),
            (Ok(Some(stat)), from) => match from.or(step.to) {
                // A directory that is there already does no harm.
                Some(Node::Directory { .. }) if stat.kind() == FileType::Directory => None,
                _ if from.is_none() => Some(Why::NotCaptured),
                Some(node) => (!self.is(path, &stat, &node)).then_some(Why::Edited),
                None => None,
            },
        }
    }

    /// Whether a path is this node: kind, permissions and content.
    pub(crate) fn is(&self, path: &[u8], stat: &Stat, node: &Node) -> bool {
        match node {
            Node::Directory { .. } => stat.kind() == FileType::Directory,
            Node::File { permissions, .. } if stat.permissions() != *permissions => false,
            _ => self.has_content(path, stat, node),
        }
    }

    fn has_content(&self, path: &[u8], stat: &Stat, node: &Node) -> bool {
        match (node, stat.kind()) {
            (Node::File { id, .. }, FileType::RegularFile) => {
                let Ok(fd) = self.root.file(path) else { return false };
                let same = |fd: &OwnedFd| rustix::fs::fstat(fd).is_ok_and(|now| Stat::from(&now) == *stat);
                if !same(&fd) {
                    return false;
                }
                let Ok(second) = fd.try_clone() else { return false };
                let mut file = std::fs::File::from(fd);
                hash_blob(&mut file, stat.size).is_ok_and(|found| found == *id) && same(&second)
            }
            (Node::Link { id }, FileType::Symlink) => {
                let Ok((dir, name)) = self.root.parent(path) else { return false };
                let target = rustix::fs::readlinkat(&dir, name, Vec::new());
                target.is_ok_and(|target| hash(Kind::Blob, target.to_bytes()) == *id)
            }
            _ => false,
        }
    }

    /// Opens a new file beside `path` for its coming content.
    pub(crate) fn prepare(&self, path: &[u8]) -> Result<std::fs::File, Errno> {
        let (dir, _) = self.root.parent(path)?;
        let name = new_name(path);
        step();
        remove_if_there(&dir, &name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&dir, name.as_slice(), flags, Mode::from_raw_mode(0o600))?;
        Ok(std::fs::File::from(fd))
    }

    /// Makes a new link beside `path`.
    pub(crate) fn prepare_link(&self, path: &[u8], target: &[u8]) -> Result<(), Errno> {
        let (dir, _) = self.root.parent(path)?;
        let name = new_name(path);
        step();
        remove_if_there(&dir, &name)?;
        rustix::fs::symlinkat(target, &dir, name.as_slice())
    }

    /// Throws a prepared file away.
    pub(crate) fn discard(&self, path: &[u8]) -> Result<(), Errno> {
        let (dir, _) = self.root.parent(path)?;
        step();
        remove_if_there(&dir, &new_name(path))
    }

    /// Puts the prepared file where `expected` is, or where nothing is.
    pub(crate) fn put(&self, path: &[u8], expected: Option<&Stat>) -> Result<Done, Errno> {
        let (dir, name) = self.root.parent(path)?;
        let (new, old) = (new_name(path), old_name(path));
        // From here on what is under the second name is whole: the content, or what was there before.
        step();
        rustix::fs::renameat(&dir, new.as_slice(), &dir, old.as_slice())?;
        step();
        let Some(expected) = expected else {
            return match move_to_free(&dir, &old, name) {
                Ok(()) => Ok(Done::Yes),
                Err(Errno::EXIST) => remove_if_there(&dir, &old).map(|()| Done::Edited),
                Err(why) => Err(why),
            };
        };
        match rustix::fs::renameat_with(&dir, old.as_slice(), &dir, name, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            // It has gone. Putting the content there would bring back what somebody removed.
            Err(Errno::NOENT) => return remove_if_there(&dir, &old).map(|()| Done::Edited),
            Err(why) if is_unsupported(why) => {
                if !look(&dir, name)?.is_some_and(|now| now.is_same_content(expected)) {
                    return remove_if_there(&dir, &old).map(|()| Done::Edited);
                }
                rustix::fs::renameat(&dir, old.as_slice(), &dir, name)?;
                return Ok(Done::Yes);
            }
            Err(why) => return Err(why),
        }
        if remove_if_same(&dir, &old, expected)? {
            return Ok(Done::Yes);
        }
        rustix::fs::renameat_with(&dir, old.as_slice(), &dir, name, RenameFlags::EXCHANGE)?;
        remove_if_there(&dir, &old)?;
        Ok(Done::Edited)
    }

    /// Takes a file away that is `expected`.
    pub(crate) fn take_away(&self, path: &[u8], expected: &Stat) -> Result<Done, Errno> {
        let (dir, name) = self.root.parent(path)?;
        let old = old_name(path);
        step();
        match move_to_free(&dir, name, &old) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Done::Already),
            Err(why) => return Err(why),
        }
        if remove_if_same(&dir, &old, expected)? {
            return Ok(Done::Yes);
        }
        // Back with it. If there is something new already, both stay.
        match move_to_free(&dir, &old, name) {
            Ok(()) => Ok(Done::Edited),
            Err(Errno::EXIST) => Ok(Done::Aside),
            Err(why) => Err(why),
        }
    }

    /// Clears up after a restore that died: what was prepared goes; what was exchanged goes if a snapshot holds it,
    /// and else goes back to where it was.
    pub(crate) fn settle(&self, path: &[u8], step: &Difference) -> Result<Option<Why>, Errno> {
        let (dir, name) = match self.root.parent(path) {
            Ok(found) => found,
            Err(_) => return Ok(None),
        };
        remove_if_there(&dir, &new_name(path))?;
        let old = old_name(path);
        let Some(stat) = look(&dir, &old)? else { return Ok(None) };
        let beside = beside(path);
        let known = |node: &Node| self.has_content(&beside, &stat, node);
        if step.from.iter().chain(&step.to).any(known) {
            remove_if_there(&dir, &old)?;
            return Ok(None);
        }
        match look(&dir, name)? {
            None => move_to_free(&dir, &old, name)?,
            Some(now) if step.from.iter().chain(&step.to).any(|node| self.is(path, &now, node)) => {
                rustix::fs::renameat_with(&dir, old.as_slice(), &dir, name, RenameFlags::EXCHANGE)?;
                remove_if_there(&dir, &old)?;
            }
            Some(_) => return Ok(Some(Why::Aside(as_path(&beside).to_owned()))),
        }
        Ok(Some(Why::Edited))
    }

    /// Makes a directory. It is private until its permissions are set.
    pub(crate) fn make_dir(&self, path: &[u8]) -> Result<Done, Errno> {
        let (dir, name) = self.root.parent(path)?;
        step();
        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => Ok(Done::Yes),
            Err(Errno::EXIST) => {
                let is_dir = look(&dir, name)?.is_some_and(|stat| stat.kind() == FileType::Directory);
                Ok(if is_dir { Done::Already } else { Done::Edited })
            }
            Err(why) => Err(why),
        }
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_dir(&self, path: &[u8]) -> Result<Done, Errno> {
        let (dir, name) = match self.root.parent(path) {
            Err(Errno::NOENT) => return Ok(Done::Already),
            found => found?,
        };
        step();
        match rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(Done::Yes),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Done::Already),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Done::Edited),
            Err(why) => Err(why),
        }
    }

    /// Sets permissions, of a file that is `expected` or of a directory.
    pub(crate) fn set_permissions(
        &self,
        path: &[u8],
        expected: Option<&Stat>,
        to: u32,
    ) -> Result<Done, Errno> {
        let fd = if expected.is_some() { self.root.file(path)? } else { self.root.dir(path)? };
        let now = Stat::from(&rustix::fs::fstat(&fd)?);
        if expected.is_some_and(|expected| !now.is_same_content(expected)) {
            return Ok(Done::Edited);
        }
        if now.permissions() == to {
            return Ok(Done::Already);
        }
        step();
        rustix::fs::fchmod(fd.as_fd(), Mode::from_raw_mode(to as _))?;
        Ok(Done::Yes)
    }
}

fn look(dir: &OwnedFd, name: &[u8]) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(Stat::from(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(why) => Err(why),
    }
}

/// Removes what was moved aside, if it is what was expected there. It may be opened and changed until it is looked at.
fn remove_if_same(dir: &OwnedFd, old: &[u8], expected: &Stat) -> Result<bool, Errno> {
    step();
    let is_same = look(dir, old)?.is_some_and(|was| was.is_same_content(expected));
    if is_same {
        step();
        remove_if_there(dir, old)?;
    }
    Ok(is_same)
}

fn remove_if_there(dir: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Renames to a name that nobody has.
fn move_to_free(dir: &OwnedFd, from: &[u8], to: &[u8]) -> Result<(), Errno> {
    match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
        Err(why) if is_unsupported(why) => {
            // A link fails where something is, too.
            rustix::fs::linkat(dir, from, dir, to, AtFlags::empty())?;
            remove_if_there(dir, from)
        }
        moved => moved,
    }
}

fn is_unsupported(why: Errno) -> bool {
    matches!(why, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}
