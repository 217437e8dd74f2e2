//! Which session an agent's conversation is recorded in, and what its hooks have to know of it.

use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use segno_agents::TokenCounts;
use segno_core::SessionId;
use segno_core::StoreId;
use segno_core::Timestamp;
use segno_core::Uid;
use segno_files::Links;
use serde::Deserialize;
use serde::Serialize;

use crate::run::tree::Member;

/// Largest such note.
const LARGEST: u64 = 64 * 1024;
/// How long one hook waits for another of the same conversation.
const WAIT: Duration = Duration::from_millis(500);

/// What is known of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) native_id: String,
    /// The name of the session. Another session may have it when this one is made, and then it gets the next.
    pub(super) session: SessionId,
    /// The identity of the session, for one that began with this note: whoever makes it makes the same.
    #[serde(default)]
    pub(super) uid: Option<Uid>,
    /// The ended session that it goes on from.
    #[serde(default)]
    pub(super) continues: Option<SessionId>,
    /// The store that the session is in; none while it is not known to be made.
    pub(super) store: Option<StoreId>,
    pub(super) run: Option<String>,
    pub(super) epoch: Option<u64>,
    /// The agent's process.
    pub(super) pid: u32,
    pub(super) start: u64,
    /// The model is to be told what became of the work, when it next listens.
    #[serde(default)]
    pub(super) brief_due: bool,
    /// The conversation was shortened, and the model has not been told since what it was about.
    #[serde(default)]
    pub(super) shortened: bool,
    /// What the conversation was told to have used, for an agent whose log is read whole.
    #[serde(default)]
    pub(super) used: TokenCounts,
}

impl Entry {
    /// Of a conversation whose session has this name, whether it is made yet or not.
    pub(super) fn new(native_id: &str, session: SessionId) -> Self {
        Self {
            native_id: native_id.to_owned(),
            session,
            uid: None,
            continues: None,
            store: None,
            run: None,
            epoch: None,
            pid: 0,
            start: 0,
            brief_due: false,
            shortened: false,
            used: TokenCounts::default(),
        }
    }

    /// Of a conversation whose session is to be made.
    pub(super) fn beginning(native_id: &str, at: Timestamp) -> Self {
        Self { uid: Some(Uid::new(uuid::Uuid::now_v7())), ..Self::new(native_id, SessionId::at(at)) }
    }

    pub(super) fn is_of(&self, caller: Option<Member>, store: StoreId) -> bool {
        let process = Some(Member { pid: self.pid, start: self.start });
        self.store == Some(store) && self.epoch.is_some() && self.run.is_some() && process == caller
    }
}

/// The notes of all conversations.
pub(super) struct Entries {
    path: PathBuf,
}

impl Entries {
    /// The note of one conversation of an agent.
    pub(super) fn of(state: &Path, agent: &str, native_id: &str) -> Self {
        let name = blake3::hash(native_id.as_bytes()).to_hex();
        Self { path: state.join("watched").join(format!("{agent}-{}.json", &name[..32])) }
    }

    pub(super) fn read(&self, native_id: &str) -> Option<Entry> {
        let bytes = segno_files::read_bounded(&self.path, LARGEST, Links::Refuse).ok()??;
        serde_json::from_slice::<Entry>(&bytes).ok().filter(|entry| entry.native_id == native_id)
    }

    /// What is known of the conversation. If nothing is, its session gets a name and an identity now, from whoever comes
    /// first: a hook that makes it, or one that can only keep in the spool what it was told.
    pub(super) fn claim(
        &self,
        native_id: &str,
        at: Timestamp,
        continues: impl FnOnce() -> Option<SessionId>,
    ) -> std::io::Result<Entry> {
        if let Some(known) = self.read(native_id) {
            return Ok(known);
        }
        let entry = Entry { continues: continues(), ..Entry::beginning(native_id, at) };
        self.make_folder()?;
        if segno_files::create_lazily(&self.path, &serde_json::to_vec(&entry)?)? {
            return Ok(entry);
        }
        if let Some(first) = self.read(native_id) {
            return Ok(first);
        }
        // What is there is no note: a power cut spoilt it.
        self.write(&entry)?;
        Ok(entry)
    }

    pub(super) fn write(&self, entry: &Entry) -> std::io::Result<()> {
        self.make_folder()?;
        segno_files::replace_lazily(&self.path, &serde_json::to_vec(entry)?)
    }

    /// Keeps other hooks of this conversation waiting, for a while. It goes with the file.
    pub(super) fn lock(&self) -> Option<File> {
        self.make_folder().ok()?;
        let file = File::options().create(true).append(true).open(self.path.with_extension("lock")).ok()?;
        let until = Instant::now() + WAIT;
        while file.try_lock().is_err() {
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(file)
    }

    fn make_folder(&self) -> std::io::Result<()> {
        self.path.parent().map_or(Ok(()), segno_files::private_directory)
    }
}
