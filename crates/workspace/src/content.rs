//! Reads one file or link for a snapshot.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::time::SystemTime;

use rustix::fs::AtFlags;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::beneath::Root;
use crate::error::Context as _;
use crate::error::Error;
use crate::id::Hasher;
use crate::id::Kind;
use crate::id::ObjectId;
use crate::manifest::Reason;
use crate::objects::Sink;
use crate::stat::Stat;

/// Files up to here are read into memory.
const IN_MEMORY: u64 = 8 << 20;
/// A file that changes under our hands is read so often.
const TRIES: usize = 3;

/// What became of a file.
pub(crate) enum Outcome {
    /// It is in the store.
    Held {
        id: ObjectId,
        /// As it was when it was read.
        stat: Stat,
        /// Whether equal marks mean equal content from now on.
        settled: bool,
        /// Whether it held still.
        stable: bool,
    },
    /// It went away.
    Gone,
    /// It cannot be held.
    LeftOut(Reason, u64),
}

/// Puts a file or a link into the store.
pub(crate) fn hold(root: &Root, path: &[u8], largest: u64, sink: &Sink) -> Result<Outcome, Error> {
    for attempt in 1..=TRIES {
        let now = SystemTime::now();
        let read = match read_once(root, path, largest, sink)? {
            Ok(read) => read,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Outcome::Gone),
            Err(_) => return Ok(Outcome::LeftOut(Reason::Unreadable, 0)),
        };
        match read {
            Read::Other(reason, size) => return Ok(Outcome::LeftOut(reason, size)),
            Read::Content { id, before, after } => {
                let stable = before == after;
                if stable || attempt == TRIES {
                    let settled = stable && before.is_settled(now);
                    return Ok(Outcome::Held { id, stat: before, settled, stable });
                }
            }
            Read::Moving => {}
        }
    }
    Ok(Outcome::LeftOut(Reason::Unstable, 0))
}

enum Read {
    Content {
        id: ObjectId,
        before: Stat,
        after: Stat,
    },
    /// It changed between two looks at it.
    Moving,
    Other(Reason, u64),
}

/// What the system refuses is an inner error: it concerns this file alone.
fn read_once(root: &Root, path: &[u8], largest: u64, sink: &Sink) -> Result<Result<Read, Errno>, Error> {
    let fd = match root.file(path) {
        Ok(fd) => fd,
        Err(Errno::LOOP) => return read_link(root, path, sink),
        Err(Errno::NXIO) => return Ok(Ok(Read::Other(Reason::Socket, 0))),
        Err(why) => return Ok(Err(why)),
    };
    let before = match rustix::fs::fstat(&fd) {
        Ok(stat) => Stat::from(&stat),
        Err(why) => return Ok(Err(why)),
    };
    match before.kind() {
        FileType::RegularFile if before.size > largest => Ok(Ok(Read::Other(Reason::TooLarge, before.size))),
        FileType::RegularFile => read_file(root, path, fd, before, sink),
        FileType::Fifo => Ok(Ok(Read::Other(Reason::Fifo, 0))),
        // A directory took its place. The next snapshot sees it.
        FileType::Directory => Ok(Err(Errno::NOENT)),
        _ => Ok(Ok(Read::Other(Reason::Device, 0))),
    }
}

fn read_link(root: &Root, path: &[u8], sink: &Sink) -> Result<Result<Read, Errno>, Error> {
    let read = || {
        let (parent, name) = root.parent(path)?;
        let look =
            || rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| Stat::from(&stat));
        let before = look()?;
        let target = rustix::fs::readlinkat(&parent, name, Vec::new())?;
        Ok((before, target, look()?))
    };
    match read() {
        Ok((before, target, after)) => {
            let id = sink.put(Kind::Blob, target.to_bytes())?;
            Ok(Ok(Read::Content { id, before, after }))
        }
        // It is a link no more, or on the way to it there is one now.
        Err(Errno::INVAL) => Ok(Ok(Read::Moving)),
        Err(why) => Ok(Err(why)),
    }
}

fn open_plain(root: &Root, path: &[u8]) -> Result<OwnedFd, Errno> {
    let fd = root.file(path)?;
    let stat = Stat::from(&rustix::fs::fstat(&fd)?);
    if stat.kind() == FileType::RegularFile { Ok(fd) } else { Err(Errno::NOENT) }
}

fn read_file(
    root: &Root,
    path: &[u8],
    fd: OwnedFd,
    before: Stat,
    sink: &Sink,
) -> Result<Result<Read, Errno>, Error> {
    let mut file = std::fs::File::from(fd);
    let id = if before.size <= IN_MEMORY {
        let mut data = Vec::with_capacity(usize::try_from(before.size).unwrap_or(0) + 1);
        // It may have grown: what is read is limited, and the marks tell.
        match file.by_ref().take(IN_MEMORY * 2).read_to_end(&mut data) {
            Ok(_) => sink.put(Kind::Blob, &data)?,
            Err(why) => return Ok(Err(errno(&why))),
        }
    } else {
        let id = match hash_blob(&mut file.by_ref().take(before.size), before.size) {
            Ok(id) => id,
            Err(why) => return Ok(Err(errno(&why))),
        };
        let mut again = match open_plain(root, path) {
            Ok(fd) => std::fs::File::from(fd).take(before.size),
            Err(why) => return Ok(Err(why)),
        };
        if !sink.stream(id, before.size, &mut again)? {
            return Ok(Ok(Read::Moving));
        }
        id
    };
    let after = rustix::fs::fstat(file.as_fd()).context("cannot look at", &root.absolute(path))?;
    Ok(Ok(Read::Content { id, before, after: Stat::from(&after) }))
}

/// The id that a blob of this size has. A file that turns out shorter gets an id that nothing else has.
pub(crate) fn hash_blob(from: &mut impl std::io::Read, size: u64) -> std::io::Result<ObjectId> {
    let mut hasher = Hasher::object(Kind::Blob, size);
    let mut buffer = vec![0; 1 << 17];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
}

fn errno(why: &std::io::Error) -> Errno {
    Errno::from_io_error(why).unwrap_or(Errno::IO)
}
