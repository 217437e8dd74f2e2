//! `session.yaml`: a session as a person reads it, kept beside the work in `.segno/sessions/<id>/`.
//!
//! It is a picture of the journal, written anew after a change. Nothing is read back from it unless somebody
//! imports it; and if somebody edited it, their text is kept beside ours.

mod document;
pub(crate) mod pace;
mod read;

use std::ffi::OsStr;
use std::fs::File;
use std::io::BufWriter;
use std::io::Read as _;
use std::io::Seek as _;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::AtFlags;
use rustix::io::Errno;
use segno_core::Event;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;

pub(crate) use document::Sink;
pub(crate) use document::yaml;
pub(crate) use read::ArtifactRow;
pub(crate) use read::HistoryRow;
pub use read::MOST_BYTES;
pub use read::read;
pub use segno_layouts::node::Node;
pub use segno_layouts::node::to_yaml;

use crate::Engine;
use crate::Error;
use crate::files;
use crate::files::Access;
use crate::files::Draft;

/// Whether and how views are kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether they are.
    pub enabled: bool,
    /// The folder inside a project.
    pub folder: String,
    /// How many of the newest items of each list they show.
    pub most_items: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { enabled: true, folder: ".segno".to_owned(), most_items: 10_000 }
    }
}

/// A view that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Where.
    pub path: PathBuf,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// The view's name inside its session's folder.
const VIEW: &str = "session.yaml";

/// The first line of every view: what it is, and the digest of the rest.
const HEADER: &str = "# segno view 1 ";

/// Whether an event changes something that a view is rewritten for. Mere use of tokens is not: it would cost
/// every `segno tokens` two more syncs, and the next real change shows it. What an agent says is in no view at all.
pub fn shows(event: &Event) -> bool {
    !matches!(
        event,
        Event::TokensRecorded(_)
            | Event::CostRecorded(_)
            | Event::Said(_)
            | Event::Reported(_)
            | Event::ToolStarted(_)
            | Event::ToolEnded(_)
            | Event::FileChanged(_)
            | Event::MemoryUsed(_)
            | Event::LateRecorded(_)
            | Event::Unknown(_)
    )
}

/// Where a session's view is.
pub fn path(project: &Path, session: SessionId, options: &Options) -> PathBuf {
    project.join(&options.folder).join("sessions").join(session.to_string()).join(VIEW)
}

/// Writes a session's view: whole or not at all, never through a symbolic link.
pub fn write(engine: &Engine, state: &State) -> Result<Written, Error> {
    let options = &engine.options.view;
    let project = PathBuf::from(&state.project.path);
    let path = path(&project, state.session_id, options);
    let fail = |why: std::io::Error| Error::file(&path, why);
    let link = |why: Errno| match why {
        Errno::LOOP | Errno::NOTDIR => fail(std::io::Error::other(
            "a folder on the way is a symbolic link or a file, and is not followed",
        )),
        other => fail(other.into()),
    };
    let root = files::open_dir(&project).map_err(|why| fail(why.into()))?;
    let folder = files::dir_in(&root, &options.folder, 0o755).map_err(link)?;
    let sessions = files::dir_in(&folder, "sessions", 0o755).map_err(link)?;
    first_use(&folder, &sessions).map_err(fail)?;
    let dir = files::dir_in(&sessions, &state.session_id.to_string(), 0o755).map_err(link)?;
    if files::lock(&dir) {
        files::sweep(&dir, VIEW);
    }
    keep_ignored(&folder, &sessions, &dir).map_err(fail)?;
    // Whoever waited for the lock may know less by now than the one who had it: the newest state is shown.
    let newest = engine.store().load(state.session_id).ok().map(|loaded| loaded.state);
    let state = newest.as_ref().filter(|newest| newest.seq > state.seq).unwrap_or(state);
    let mut notices = Vec::new();
    if let Some(kept) = keep_edited(&dir, engine.now()).map_err(fail)? {
        notices.push(format!(
            "somebody edited {}; their text is kept beside it as {kept} and changes nothing (segno import reads views)",
            path.display()
        ));
    }
    // Others in the project may read what the repository shows them anyway, but a session is the user's own.
    let draft = dir.try_clone().and_then(|dir| Draft::begin_in(dir, OsStr::new(VIEW), Access::Mode(0o600)));
    let mut draft = draft.map_err(fail)?;
    put(engine, state, draft.file(), &fail)?;
    draft.finish().map_err(fail)?;
    Ok(Written { path, notices })
}

/// Writes a view into its file: the first line when the digest of the rest is known. One that nobody could read back is of
/// no use, so long lists are shown shorter.
fn put(
    engine: &Engine,
    state: &State,
    file: &mut File,
    fail: &dyn Fn(std::io::Error) -> Error,
) -> Result<(), Error> {
    let mut most = engine.options.view.most_items;
    loop {
        first_line(file, &[b'0'; DIGEST]).map_err(fail)?;
        let mut body = Body::new(BufWriter::new(&mut *file), if most == 0 { u64::MAX } else { MOST_BODY });
        let written = yaml(engine, state, most, &mut Sink { out: &mut body, fail });
        if body.is_too_long {
            drop(body);
            file.set_len(0).map_err(fail)?;
            most /= 4;
            continue;
        }
        written?;
        let digest = digest(&body.hasher);
        body.out.flush().map_err(fail)?;
        drop(body);
        return first_line(file, digest.as_bytes()).map_err(fail);
    }
}

/// How many digits of the digest stand in the first line.
const DIGEST: usize = 32;
/// How long the rest may be, so that the whole can be read back.
const MOST_BODY: u64 = MOST_BYTES - (HEADER.len() + DIGEST + 1) as u64;

fn first_line(file: &mut File, digest: &[u8]) -> std::io::Result<()> {
    file.rewind()?;
    file.write_all(&[HEADER.as_bytes(), digest, b"\n"].concat())
}

/// What follows the first line, on its way into the file: hashed and counted.
struct Body<W: Write> {
    out: W,
    hasher: blake3::Hasher,
    left: u64,
    is_too_long: bool,
}

impl<W: Write> Body<W> {
    fn new(out: W, left: u64) -> Self {
        Self { out, hasher: blake3::Hasher::new(), left, is_too_long: false }
    }
}

impl<W: Write> Write for Body<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            self.is_too_long = true;
            return Err(std::io::ErrorKind::FileTooLarge.into());
        };
        self.left = left;
        self.hasher.update(bytes);
        self.out.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// Reads the view of a session in a project, as bytes; nothing is followed on the way. None if there is none.
pub(crate) fn read_bytes(
    project: &Path,
    session: SessionId,
    options: &Options,
) -> std::io::Result<Option<Vec<u8>>> {
    let root = match files::open_dir(project) {
        Err(Errno::NOENT) => return Ok(None),
        other => other?,
    };
    match files::dir_below(&root, &[&options.folder, "sessions", &session.to_string()])? {
        Some(dir) => files::read_in(&dir, VIEW, MOST_BYTES),
        None => Ok(None),
    }
}

/// Removes a session's view, but not what somebody else put beside it, nor anything behind a symbolic link.
pub fn remove(project: &Path, session: SessionId, options: &Options) {
    let Ok(root) = files::open_dir(project) else { return };
    let Ok(Some(sessions)) = files::dir_below(&root, &[&options.folder, "sessions"]) else { return };
    let name = session.to_string();
    let Ok(Some(dir)) = files::dir_below(&sessions, &[&name]) else { return };
    files::sweep(&dir, VIEW);
    // A view that is gone already, or a folder with more in it, is nothing to complain about.
    let _ = rustix::fs::unlinkat(&dir, VIEW, AtFlags::empty());
    let _ = rustix::fs::unlinkat(&dir, ".gitignore", AtFlags::empty());
    let _ = rustix::fs::unlinkat(&sessions, name.as_str(), AtFlags::REMOVEDIR);
}

/// What a new `.segno/.gitignore` says.
const IGNORED: &[u8] =
    b"# What segno keeps here is yours alone. To share a file, add a line such as: !config.toml\n*\n";

/// Keeps the folder and all of its content out of the repository, so that a run leaves `git status` as it was; whoever
/// wants to share a file says so in the `.gitignore`. The `.gitkeep` comes last: it tells that all of this was done, so
/// that whoever removes the `.gitignore` later is left in peace.
fn first_use(folder: &OwnedFd, sessions: &OwnedFd) -> std::io::Result<()> {
    const KEEP: &str = ".gitkeep";
    const IGNORE: &str = ".gitignore";
    if rustix::fs::statat(sessions, KEEP, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Ok(());
    }
    if rustix::fs::statat(folder, IGNORE, AtFlags::SYMLINK_NOFOLLOW).is_err() {
        files::replace_in(folder, IGNORE, IGNORED, 0o644)?;
    }
    files::replace_in(sessions, KEEP, b"", 0o644)
}

/// A repository may bring rules of its own that take sessions in. The deepest rule counts, so then each session has one.
fn keep_ignored(folder: &OwnedFd, sessions: &OwnedFd, dir: &OwnedFd) -> std::io::Result<()> {
    const IGNORE: &str = ".gitignore";
    let opens = |dir: &OwnedFd| {
        let rules = files::read_in(dir, IGNORE, 64 * 1024).unwrap_or_default().unwrap_or_default();
        let rules = String::from_utf8_lossy(&rules).into_owned();
        rules.lines().map(str::trim).any(|rule| rule.starts_with('!') && rule != "!sessions/.gitkeep")
    };
    let known = rustix::fs::statat(dir, IGNORE, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    if !known && (opens(folder) || opens(sessions)) {
        files::replace_in(dir, IGNORE, b"*\n", 0o644)?;
    }
    Ok(())
}

/// If the present view is not as we wrote it, keeps it under another name and tells which.
fn keep_edited(dir: &OwnedFd, now: Timestamp) -> std::io::Result<Option<String>> {
    let Some(mut present) = files::open_in(dir, VIEW)? else { return Ok(None) };
    if is_ours(&mut present)? {
        return Ok(None);
    }
    for attempt in 0_i64.. {
        let kept = format!("session.edited-{}.yaml", now.as_micros() + attempt);
        match files::also_as(dir, VIEW, &kept) {
            Ok(true) => return Ok(Some(kept)),
            Ok(false) => {}
            // Not every file system knows second names.
            Err(_) => {
                let mut copy = Draft::begin_in(dir.try_clone()?, OsStr::new(&kept), Access::Mode(0o600))?;
                present.rewind()?;
                std::io::copy(&mut present, copy.file())?;
                copy.finish()?;
                return Ok(Some(kept));
            }
        }
    }
    Ok(None)
}

/// Whether a file is a view as we wrote it. It is read piece by piece.
fn is_ours(file: &mut File) -> std::io::Result<bool> {
    // Ours are never longer.
    if file.metadata()?.len() > MOST_BYTES {
        return Ok(false);
    }
    let mut first = [0; HEADER.len() + DIGEST + 1];
    match file.read_exact(&mut first) {
        Err(why) if why.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let known = first.strip_prefix(HEADER.as_bytes()).and_then(|line| line.strip_suffix(b"\n"));
    let Some(known) = known else { return Ok(false) };
    let mut rest = blake3::Hasher::new();
    rest.update_reader(file.take(MOST_BYTES))?;
    Ok(known == digest(&rest).as_bytes())
}

fn digest(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..DIGEST].to_owned()
}
