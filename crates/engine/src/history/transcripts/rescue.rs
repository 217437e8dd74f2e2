//! Puts transcripts back that an agent's vendor deleted, or that were torn, so that the agent can go on with them.
//!
//! A file is replaced only if every whole line that it has is in what takes its place, only as it was looked at, and never
//! while somebody is at work in it; what was there is kept beside it.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_store::Filter;
use serde::Serialize;

use super::About;
use super::census::Candidate;
use super::census::Census;
use super::census::each_block;
use super::frames::Frames;
use super::is_inside;
use super::open;
use crate::Engine;
use crate::Error;
use crate::files::Access;
use crate::files::Draft;
use crate::files::Replaced;
use crate::history::find::Place;
use crate::history::find::place;

/// Names that are tried for what was there before.
const NAMES: u32 = 1_000;

/// What is to be put back.
#[derive(Clone, Debug, Default)]
pub struct RescueWish {
    /// The conversations of this session; of all if neither is named.
    pub session: Option<SessionId>,
    /// The agent's own conversation.
    pub conversation: Option<String>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// How a transcript stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is there and whole.
    #[default]
    Whole,
    /// It is not there any more.
    Gone,
    /// A part of it is damaged or was cut off.
    Torn,
    /// It is whole, and has less than what is kept: somebody may have wanted that.
    Shorter,
    /// It is damaged, and what is kept does not have all that is in it.
    Differs,
    /// It was kept for a directory that the agent does not use now.
    Elsewhere,
    /// Somebody is at work in it.
    AtWork,
    /// What is kept of it cannot be read.
    Damaged,
}

/// A transcript, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rescue {
    /// Whose it is.
    pub agent: String,
    /// The agent's own id of the conversation.
    pub conversation: String,
    /// Where it belongs.
    pub path: PathBuf,
    /// How it was found.
    pub standing: Standing,
    /// How many whole lines what is kept has.
    pub lines: u64,
    /// How many of them the file lacked.
    pub missing: u64,
    /// It was put back.
    pub done: bool,
    /// Where what was there before is.
    pub beside: Option<PathBuf>,
    /// Why it was not put back, or what is lost all the same.
    pub why: Option<String>,
}

/// What a file looked like when it was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Seen {
    fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

/// What is known of those who are at work.
#[derive(Default)]
struct AtWork {
    conversations: HashSet<(String, String)>,
    open: HashSet<PathBuf>,
}

impl Engine {
    /// Looks at the transcripts that are kept, and puts back what is gone or torn.
    ///
    /// # Errors
    /// If a session is named that cannot be read. What cannot be put back is told in what came of it.
    pub fn rescue(&self, wish: &RescueWish) -> Result<Vec<Rescue>, Error> {
        let mut named = wish.conversation.is_some();
        let mut places = match &wish.conversation {
            Some(conversation) => segno_agents::CODING
                .iter()
                .flat_map(|agent| self.transcripts_of(agent, conversation))
                .collect(),
            None => Vec::new(),
        };
        match wish.session {
            Some(session) => {
                named = true;
                for (agent, conversation) in self.conversations_of(session)? {
                    places.extend(self.transcripts_of(&agent, &conversation));
                }
            }
            None if !named => places = self.all_transcripts(),
            None => {}
        }
        let at_work = self.at_work()?;
        Ok(places.iter().filter_map(|path| self.rescue_one(path, wish.dry_run, named, &at_work)).collect())
    }

    /// None if it is not to be kept.
    fn rescue_one(&self, kept: &Path, dry_run: bool, named: bool, at_work: &AtWork) -> Option<Rescue> {
        let unreadable = |why: String| Rescue {
            path: kept.to_owned(),
            standing: Standing::Damaged,
            why: Some(why),
            ..Rescue::default()
        };
        let frames = match open(kept, false).and_then(Frames::read) {
            Ok(frames) => frames,
            Err(why) => return Some(unreadable(why.to_string())),
        };
        let about: About = match serde_json::from_slice(&frames.about) {
            Ok(about) => about,
            Err(_) => return Some(unreadable("it does not say what it is of".to_owned())),
        };
        if about.forgotten {
            return None;
        }
        let mut rescue = Rescue {
            agent: about.agent.clone(),
            conversation: about.conversation.clone(),
            path: Path::new(&about.root).join(&about.path),
            ..Rescue::default()
        };
        if !frames.damage.is_empty() {
            rescue.why = Some(format!("what is kept of it is damaged: {}", frames.damage.join("; ")));
        }
        let judged = self.judge_transcript(&about, &frames, &mut rescue, at_work);
        let (root, candidate, file) = match judged {
            Ok(Some(judged)) => judged,
            Ok(None) => return Some(rescue),
            Err(why) => {
                rescue.why = Some(why.to_string());
                rescue.standing = Standing::Damaged;
                return Some(rescue);
            }
        };
        let is_wanted = match rescue.standing {
            Standing::Gone | Standing::Torn => true,
            Standing::Shorter => named,
            _ => false,
        };
        if is_wanted && !dry_run {
            match put(&root, &about, &frames, &candidate, file.as_ref()) {
                Ok(beside) => {
                    rescue.done = true;
                    rescue.beside = beside.map(|name| rescue.path.with_file_name(name));
                }
                Err(why) => rescue.why = Some(why.to_string()),
            }
        }
        Some(rescue)
    }

    /// How a transcript stands, and what is to take its place.
    fn judge_transcript(
        &self,
        about: &About,
        frames: &Frames,
        rescue: &mut Rescue,
        at_work: &AtWork,
    ) -> io::Result<Option<(PathBuf, Candidate, Option<File>)>> {
        let agent = segno_agents::CODING.iter().find(|agent| **agent == about.agent).copied();
        let root = match agent.and_then(|agent| place(self, agent)) {
            Some(Place::Files(_, root)) if root.to_str() == Some(&about.root) => root,
            _ => {
                rescue.standing = Standing::Elsewhere;
                rescue.why =
                    Some(format!("{} does not keep its transcripts in {} now", about.agent, about.root));
                return Ok(None);
            }
        };
        let is_transcript = Path::new(&about.path).extension().is_some_and(|ending| ending == "jsonl");
        if !is_inside(&about.path) || !is_transcript {
            return Err(io::Error::other("what is kept says that it belongs in another place"));
        }
        let file = open_there(&rescue.path)?;
        let own = match &file {
            Some(file) if is_as_kept(file, frames)? => {
                rescue.standing = Standing::Whole;
                return Ok(None);
            }
            Some(file) => Census::of(|take| each_block(file, 0, take))?,
            None => Census::default(),
        };
        let length = file.as_ref().map(File::metadata).transpose()?.map_or(0, |meta| meta.len());
        let best = best(frames, file.as_ref(), length, &own)?;
        let ends_in_a_line = ends_in_a_line(file.as_ref(), length)?;
        match best {
            Some((candidate, lines)) => {
                (rescue.lines, rescue.missing) = (lines, lines - own.lines());
                rescue.standing = match &file {
                    None => Standing::Gone,
                    Some(_) if own.is_damaged || !ends_in_a_line => Standing::Torn,
                    Some(_) => Standing::Shorter,
                };
                let busy = (about.agent.clone(), about.conversation.clone());
                if at_work.conversations.contains(&busy) || at_work.open.contains(&rescue.path) {
                    rescue.standing = Standing::AtWork;
                    return Ok(None);
                }
                Ok(Some((root, candidate, file)))
            }
            None => {
                rescue.standing = match (&file, own.is_damaged) {
                    (None, _) => Standing::Damaged,
                    (Some(_), true) => Standing::Differs,
                    // It has more than what is kept: the next import keeps that too.
                    (Some(_), false) => Standing::Whole,
                };
                rescue.lines = own.lines();
                Ok(None)
            }
        }
    }

    /// Who is at work in a conversation: drivers of sessions, and processes that have a transcript open.
    fn at_work(&self) -> Result<AtWork, Error> {
        let mut at_work = AtWork::default();
        for summary in self.listing(&Filter::default())?.sessions {
            let id = summary.session_id;
            if summary.status != segno_core::Status::Active {
                continue;
            }
            let lease = self.store().lease(id).ok().flatten();
            if lease.is_some_and(|lease| crate::lease::life(&lease).may_live()) {
                at_work.conversations.extend(self.conversations_of(id)?);
            }
        }
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let open = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            let files = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
            at_work.open.extend(files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")));
        }
        Ok(at_work)
    }
}

/// Opens a transcript, if it is there; a link in its place is none.
fn open_there(path: &Path) -> io::Result<Option<File>> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(None);
    };
    match crate::files::open_dir(parent).map_err(io::Error::from) {
        Ok(dir) => crate::files::open_in(&dir, name),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why),
    }
}

/// Whether a file is the newest state of what is kept.
fn is_as_kept(file: &File, frames: &Frames) -> io::Result<bool> {
    let Some(newest) = frames.versions.last() else { return Ok(false) };
    if file.metadata()?.len() != newest.length {
        return Ok(false);
    }
    let mut hasher = blake3::Hasher::new();
    each_block(file, 0, &mut |bytes| {
        hasher.update(bytes);
        Ok(())
    })?;
    let is_first = frames.versions.len() == 1;
    // A state that was kept after it was torn is what an earlier one is for.
    Ok(is_first && *hasher.finalize().as_bytes() == newest.hash)
}

/// Whether the last line is finished.
fn ends_in_a_line(file: Option<&File>, length: u64) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let (Some(file), true) = (file, length > 0) else { return Ok(false) };
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last == *b"\n")
}

/// What has most of all that has everything that the file has, and more; with how many lines.
fn best(
    frames: &Frames,
    file: Option<&File>,
    length: u64,
    own: &Census,
) -> io::Result<Option<(Candidate, u64)>> {
    let mut best: Option<(Candidate, u64)> = None;
    for version in frames.versions.iter().rev().filter(|version| version.length > 0) {
        let grown = (file.is_some() && length > version.length).then_some(Some(version.length));
        for tail in grown.into_iter().chain([None]) {
            let candidate = Candidate { version: version.clone(), tail };
            let census = match Census::of(|take| candidate.give(frames, file, take)) {
                Ok(census) => census,
                Err(why) if why.kind() == io::ErrorKind::InvalidData => continue,
                Err(why) => return Err(why),
            };
            let lines = census.lines();
            let is_better = best.as_ref().is_none_or(|(_, most)| lines > *most);
            if is_better && lines > own.lines() && census.has_all_of(own) {
                best = Some((candidate, lines));
            }
        }
    }
    Ok(best)
}

/// Puts a transcript into its place. Answers with the name of what was there before.
fn put(
    root: &Path,
    about: &About,
    frames: &Frames,
    candidate: &Candidate,
    judged: Option<&File>,
) -> io::Result<Option<String>> {
    crate::files::make_directory(root)?;
    let mut dir = crate::files::open_dir(root)?;
    let mut names: Vec<&str> = about.path.split('/').collect();
    let name = names.pop().unwrap_or_default();
    for folder in names {
        dir = crate::files::dir_in(&dir, folder, 0o700)?;
    }
    if !crate::files::lock(&dir) {
        return Err(io::Error::other("another process puts something back there"));
    }
    let seen = judged.map(Seen::of).transpose()?;
    let mut draft = Draft::begin_in(dir.try_clone()?, name.as_ref(), Access::Private)?;
    candidate.give(frames, judged, &mut |bytes| draft.file().write_all(bytes))?;
    // No more than the agent gave it, and the person can always read it.
    draft.file().set_permissions(std::fs::Permissions::from_mode(about.mode & 0o777 | 0o600))?;
    let Some(seen) = seen else {
        return match draft.finish_new() {
            Ok(_) => Ok(None),
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
                Err(io::Error::other("it is there again: somebody else wrote it meanwhile"))
            }
            Err(why) => Err(why),
        };
    };
    let changed = || io::Error::other("it changed while it was looked at: nothing was replaced");
    let now = crate::files::open_in(&dir, name)?.ok_or_else(changed)?;
    if Seen::of(&now)? != seen {
        return Err(changed());
    }
    let beside = keep_beside(&dir, name)?;
    match draft.finish_over_file(&|file| Ok(Seen::of(file)? == seen))? {
        Replaced::Done => Ok(Some(beside)),
        Replaced::Theirs => Err(changed()),
    }
}

/// Gives what is there a second name, which no agent takes for a transcript.
fn keep_beside(dir: &OwnedFd, name: &str) -> io::Result<String> {
    for number in 1..=NAMES {
        let other = format!("{name}.before-rescue-{number}");
        if crate::files::also_as(dir, name, &other)? {
            return Ok(other);
        }
    }
    Err(io::Error::other("there is no name left for what was there"))
}
