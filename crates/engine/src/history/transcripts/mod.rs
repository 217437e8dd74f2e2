//! Insurance: the agents' own transcripts, byte by byte, kept beside the store for whoever asked for that.
//!
//! They are what agents wrote, secrets included, so they are private and compressed, and in nothing else that segno keeps. Each
//! transcript has a file of [`frames`], in a directory of its conversation.

mod census;
mod frames;
mod rescue;

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::OFlags;
use segno_core::List;
use segno_core::SessionId;
use segno_core::rows::RunRow;
use segno_store::Item;
use segno_store::index::FileNote;
use segno_store::index::Index;
use serde::Deserialize;
use serde::Serialize;

use self::frames::Frames;
use self::frames::Kept;
pub use self::rescue::Rescue;
pub use self::rescue::RescueWish;
pub use self::rescue::Standing;
use super::AgentImport;
use super::find::FoundFile;
use super::groups::grouped;
use crate::Engine;
use crate::Error;

/// How long another import that keeps the same transcript is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How the files are called.
const ENDING: &str = "frames";
/// Before the name of an agent in the notes of what was kept.
const NOTE: &str = "archive:";

/// What a kept transcript is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    agent: String,
    conversation: String,
    /// The directory below which the agent keeps its transcripts.
    root: String,
    /// The file in it.
    path: String,
    mode: u32,
    /// Somebody wanted something in it forgotten: it is not kept again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    forgotten: bool,
}

/// A directory's name for a conversation: its id, if that is a plain one.
fn folder_of(conversation: &str) -> String {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    match !conversation.is_empty() && conversation.len() <= 100 && conversation.bytes().all(fits) {
        true => conversation.to_owned(),
        false => format!("x-{}", &blake3::hash(conversation.as_bytes()).to_hex()[..32]),
    }
}

/// Whether a path leads from a directory to a file in it or below, and nowhere else.
fn is_inside(path: &str) -> bool {
    let mut parts = path.split('/');
    !path.is_empty() && parts.all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

impl Engine {
    /// Where transcripts are kept.
    pub fn transcripts_dir(&self) -> PathBuf {
        let mut name = self.store().location();
        name.push_str(".transcripts");
        PathBuf::from(name)
    }

    /// Keeps what is new in the transcripts of an agent. What cannot be kept is told; the import goes on.
    pub(super) fn keep_transcripts(
        &self,
        index: &Index,
        root: &Path,
        found: &[FoundFile],
        import: &mut AgentImport,
    ) -> Result<(), Error> {
        let mut stale = Vec::new();
        for file in found {
            let name = file.path.to_string_lossy();
            let note = index.file(&format!("{NOTE}{}", file.agent), &name)?;
            let same = note.is_some_and(|note| {
                let is_there = || std::fs::metadata(&note.used).is_ok_and(|kept| kept.len() == note.offset);
                (note.device, note.inode, note.size, note.modified_ns)
                    == (file.stat.device, file.stat.inode, file.stat.size, file.stat.modified_ns)
                    && is_there()
            });
            if !same {
                stale.push(file.clone());
            }
        }
        for conversation in grouped(stale) {
            let agent = import.agent.clone();
            if let Some(session) = index.session_of(&agent, &conversation.id)?
                && !session.is_empty()
                && session.parse().map_or(true, |session| self.load(session).is_err())
            {
                // What was removed here is not kept.
                continue;
            }
            for file in conversation.main.iter().chain(&conversation.subs) {
                match self.keep_transcript(root, &conversation.id, file) {
                    Ok(Some((note, kept))) => {
                        import.kept += u64::from(kept.bytes > 0);
                        import.kept_bytes += kept.bytes;
                        import.kept_packed += kept.packed;
                        if kept.is_shorter {
                            let words = "is shorter than what is kept of it: segno rescue --all --dry-run";
                            import.notices.push(format!("{} {words}", file.path.display()));
                        }
                        index.note_file(&format!("{NOTE}{agent}"), &file.path.to_string_lossy(), &note)?;
                    }
                    Ok(None) => {}
                    Err(why) => import.notices.push(format!("{} was not kept: {why}", file.path.display())),
                }
            }
        }
        Ok(())
    }

    /// Keeps one; none if it is not to be kept.
    fn keep_transcript(
        &self,
        root: &Path,
        conversation: &str,
        file: &FoundFile,
    ) -> io::Result<Option<(FileNote, Kept)>> {
        let path = file.path.strip_prefix(root).ok().and_then(Path::to_str).filter(|path| is_inside(path));
        let (Some(path), Some(root)) = (path, root.to_str()) else { return Ok(None) };
        let original = File::open(&file.path)?;
        let mode = original.metadata()?.mode() & 0o777;
        let about = About {
            agent: file.agent.to_owned(),
            conversation: conversation.to_owned(),
            root: root.to_owned(),
            path: path.to_owned(),
            mode,
            forgotten: false,
        };
        let place = self.transcript_place(&about);
        let folder = place.parent().unwrap_or(&place);
        for dir in [&self.transcripts_dir(), folder] {
            crate::files::private_directory(dir)?;
        }
        let is_new = !place.exists();
        let frames = open(&place, true)?;
        if is_new {
            crate::files::sync_parent(&place)?;
        }
        crate::file_lock::wait_for_lock(PATIENCE, || frames.try_lock())?
            .then_some(())
            .ok_or_else(|| io::Error::other("another process keeps it for too long"))?;
        let mut frames = Frames::read(frames)?;
        if serde_json::from_slice::<About>(&frames.about).is_ok_and(|about| about.forgotten) {
            return Ok(None);
        }
        frames.tell(&serde_json::to_vec(&about)?)?;
        let kept = frames.keep(&original)?;
        let note = FileNote {
            conversation: conversation.to_owned(),
            offset: frames.size,
            used: place.to_string_lossy().into_owned(),
            ..file.stat.note()
        };
        Ok(Some((note, kept)))
    }

    fn transcript_place(&self, about: &About) -> PathBuf {
        let name = blake3::hash(format!("{}\0{}", about.root, about.path).as_bytes());
        self.conversation_dir(&about.agent, &about.conversation)
            .join(format!("{}.{ENDING}", &name.to_hex()[..16]))
    }

    fn conversation_dir(&self, agent: &str, conversation: &str) -> PathBuf {
        self.transcripts_dir().join(folder_of(agent)).join(folder_of(conversation))
    }

    /// The names of the directories of an agent's conversations of which something is kept.
    pub(super) fn kept_conversations(&self, agent: &str) -> HashSet<String> {
        let entries = std::fs::read_dir(self.transcripts_dir().join(folder_of(agent)));
        let entries = entries.into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Whether something is kept of a conversation.
    pub(crate) fn keeps_transcript_of(&self, agent: &str, conversation: &str) -> bool {
        self.conversation_dir(agent, conversation).is_dir()
    }

    /// The agents' own conversations that a session had.
    pub(super) fn conversations_of(&self, session: SessionId) -> Result<Vec<(String, String)>, Error> {
        let mut all: Vec<(String, String)> = Vec::new();
        for run in self.items(session, List::Runs)?.iter().map(Item::row::<RunRow>) {
            let Some(native) = run.native_id.filter(|native| !native.is_empty() && native != "?") else {
                continue;
            };
            if !all.iter().any(|(agent, id)| (agent, id) == (&run.agent, &native)) {
                all.push((run.agent, native));
            }
        }
        Ok(all)
    }

    /// The kept transcripts of a conversation.
    pub(crate) fn transcripts_of(&self, agent: &str, conversation: &str) -> Vec<PathBuf> {
        files_in(&self.conversation_dir(agent, conversation))
    }

    /// The kept transcripts of a session's conversations.
    pub(crate) fn transcripts_of_session(&self, session: SessionId) -> Result<Vec<PathBuf>, Error> {
        let conversations = self.conversations_of(session)?;
        Ok(conversations.iter().flat_map(|(agent, id)| self.transcripts_of(agent, id)).collect())
    }

    /// All that are kept.
    pub(crate) fn all_transcripts(&self) -> Vec<PathBuf> {
        let folders = |dir: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            found.sort();
            found
        };
        let agents = folders(&self.transcripts_dir());
        let conversations = agents.iter().flat_map(|agent| folders(agent));
        conversations.flat_map(|conversation| files_in(&conversation)).collect()
    }

    /// What is wrong with the kept transcripts, in words.
    pub fn check_transcripts(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for path in self.all_transcripts() {
            let found = match open(&path, false).and_then(Frames::read) {
                Err(why) => vec![why.to_string()],
                Ok(frames) => {
                    let mut found = frames.damage.clone();
                    if serde_json::from_slice::<About>(&frames.about).is_err() {
                        found.push("it does not say what it is of".to_owned());
                    }
                    for version in &frames.versions {
                        if let Err(why) = frames.give(version, &mut |_| Ok(())) {
                            found.push(why.to_string());
                        }
                    }
                    found
                }
            };
            if !found.is_empty() {
                wrong.push(format!("{}: damaged: {}", path.display(), found.join("; ")));
            }
        }
        wrong
    }

    /// Removes what is kept of a session's conversations. Not for a copy of a store: what lies beside is the other's.
    pub(crate) fn drop_transcripts(&self, conversations: &[(String, String)]) {
        for (agent, conversation) in conversations {
            let dir = self.conversation_dir(agent, conversation);
            let gone = match std::fs::remove_dir_all(&dir) {
                Ok(()) => crate::files::sync_parent(&dir),
                Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(why) => Err(why),
            };
            if let Err(why) = gone {
                tracing::warn!(dir = %dir.display(), %why, "transcripts of a removed session are still there");
            }
        }
    }

    /// The sessions' conversations, as far as they can be read.
    pub(crate) fn conversations_before_removal(&self, session: SessionId) -> Vec<(String, String)> {
        self.conversations_of(session).unwrap_or_default()
    }

    /// Says for each of a removed session's conversations that it was removed, so that no import takes it in again.
    pub(crate) fn note_removed(&self, session: SessionId, conversations: &[(String, String)]) {
        if !self.index_file().exists() {
            return;
        }
        let noted = self.index().and_then(|index| {
            for (agent, conversation) in conversations {
                if index.session_of(agent, conversation)?.is_none_or(|session| session.is_empty()) {
                    index.note_conversation(agent, conversation, &session.to_string(), None)?;
                }
            }
            Ok(())
        });
        if let Err(why) = noted {
            tracing::warn!(%session, %why, "an import may take its conversation in again");
        }
    }

    /// Whether a kept transcript, in any of its states, holds something; none if it cannot be read.
    pub(crate) fn transcript_holds(&self, path: &Path, holds: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
        /// Nothing that is looked for is longer.
        const OVERLAP: usize = 1 << 20;
        let frames = open(path, false).and_then(Frames::read).ok()?;
        if !frames.damage.is_empty() {
            return None;
        }
        for version in &frames.versions {
            let (mut window, mut found) = (Vec::new(), false);
            frames
                .give(version, &mut |bytes| {
                    window.extend_from_slice(bytes);
                    found |= holds(&window);
                    window.drain(..window.len().saturating_sub(OVERLAP));
                    Ok(())
                })
                .ok()?;
            if found {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Takes everything out of a kept transcript but what it is of, and keeps nothing of it from now on: its original may
    /// still have what somebody wants forgotten.
    pub(crate) fn forget_transcript(&self, path: &Path) -> io::Result<()> {
        let about = open(path, false).and_then(Frames::read).map(|frames| frames.about).unwrap_or_default();
        let about = About { forgotten: true, ..serde_json::from_slice(&about).unwrap_or_default() };
        std::fs::remove_file(path)?;
        let mut frames = Frames::read(open(path, true)?)?;
        frames.tell(&serde_json::to_vec(&about)?)?;
        crate::files::sync_parent(path)
    }

    /// Whether there is anything in a kept transcript that could be forgotten.
    pub(crate) fn transcript_is_forgotten(&self, path: &Path) -> bool {
        let about = open(path, false).and_then(Frames::read).map(|frames| frames.about).unwrap_or_default();
        serde_json::from_slice::<About>(&about).is_ok_and(|about| about.forgotten)
    }
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .collect();
    found.sort();
    found
}

fn open(path: &Path, write: bool) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    File::options()
        .read(true)
        .write(write)
        .create(write)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
}
