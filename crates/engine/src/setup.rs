//! From plain settings to an engine on an open store.
//!
//! Whoever has settings (a configuration, flags, a test) puts them into a [`Setup`] as values. Nothing is read here of
//! the environment, the home directory or a terminal; what is read and written lies where the settings say.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use segno_core::SessionId;
use segno_core::StoreId;
use segno_core::day::DayCaps;
use segno_files::Access;
use segno_files::Links;
use segno_redact::Redactor;
use segno_store::Patience;
pub use segno_store::Purpose;
use segno_store::Standing;

use crate::Actor;
use crate::Engine;
use crate::EngineOptions;
use crate::Error;
use crate::StoreLocation;
use crate::busy_start::BusyStart;
pub use crate::busy_start::TellWaiting;
use crate::cost::PriceList;
use crate::hook_file::HookFile;
use crate::redaction::Redaction;
use crate::spool::TakenIn;
use crate::tree::TreeOptions;
use crate::view;

/// What an engine is made from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where the store is.
    pub store: StoreLocation,
    /// How long a store that somebody else writes to is waited for.
    pub busy: Duration,
    /// Where what lasts is kept: the key of redaction tags and, unless `tree` says otherwise, snapshots.
    pub data: PathBuf,
    /// Where the spool and what agents print are kept.
    pub state: PathBuf,
    /// What is kept out of the record.
    pub redaction: Redaction,
    /// Whether and how the human-readable view is kept in projects.
    pub view: view::Options,
    /// Which file families of other session managers are kept current.
    pub layout: crate::layout::Options,
    /// Whether and how checkpoints hold the files of the working tree.
    pub tree: Option<TreeOptions>,
    /// Variables that say where agents keep their own records, for runs that recorded none.
    pub variables: BTreeMap<String, String>,
    /// The longest line of an agent, in bytes, that is kept whole.
    pub line_limit: usize,
    /// The user's own prices of models; the file need not be there.
    pub prices: Option<PathBuf>,
    /// What all sessions of a project may use in a day.
    pub day: DayCaps,
    /// Whether an import keeps the agents' own transcripts as they are.
    pub keep_transcripts: bool,
    /// Which tools ask memories.
    pub memory: crate::memory::MemoryTools,
    /// The zone whose days they are.
    pub zone: crate::zones::LocalZone,
}

/// What a store is opened for, and by whom.
#[derive(Clone, Debug)]
pub struct Opening {
    /// For a short command, or for a process that stays.
    pub purpose: Purpose,
    /// Whether to make it if there is none.
    pub create: bool,
    /// Under whom this process acts.
    pub actor: Actor,
    /// For whoever begins something: the store is waited for, however long somebody else writes to it, and this says so.
    pub waits: Option<TellWaiting>,
    /// However often the store is waited for, all of it together takes at most this long.
    pub at_most: Option<Duration>,
}

impl Setup {
    /// Opens the store and puts an engine on it.
    ///
    /// # Errors
    /// If somebody else may write to our directories, a rule is not right, or the store cannot be opened.
    pub fn open(&self, opening: Opening) -> Result<Engine, Error> {
        self.check_directories()?;
        let Opening { purpose, create, actor, waits, at_most } = opening;
        let patience = at_most.map_or_else(Patience::default, Patience::at_most);
        let at_start = waits.map(|tell| BusyStart::new(patience.clone(), tell));
        let store =
            self.store.open(segno_store::OpenOptions { purpose, create, busy: self.busy, patience })?;
        let options = EngineOptions {
            actor,
            view: self.view.clone(),
            layout: crate::layout::Options { pasts: Some(self.state.join("layouts")), ..self.layout.clone() },
            spool: Some(self.spool()),
            captures: Some(self.captures()),
            tree: self.tree.clone(),
            variables: self.variables.clone(),
            line_limit: self.line_limit,
            prices: self.prices.clone().map(PriceList::with_file).unwrap_or_default(),
            day: self.day,
            keep_transcripts: self.keep_transcripts,
            memory: self.memory.clone(),
            zone: self.zone.clone(),
            at_start,
            ..EngineOptions::new(Arc::new(self.redactor()?))
        };
        Ok(Engine::new(store, options))
    }

    /// What the hooks of a run need to know. With an id, another store at the same place is not written to.
    pub fn hook_file(&self, store_id: Option<StoreId>) -> HookFile {
        let tag_key = tag_key(&self.data);
        let secrets = self.redaction.secrets();
        HookFile {
            store: self.store.absolute(),
            store_id,
            spool: self.spool(),
            tag_key,
            known_secrets: secrets
                .iter()
                .map(|(_, secret)| segno_redact::fingerprint(&tag_key, secret))
                .collect(),
            secrets_of_environment: self.redaction.keeps_environment,
            rules: self.redaction.rules.clone(),
            tree: self.tree.clone(),
            day: self.day,
        }
    }

    /// What takes secrets out.
    pub(crate) fn redactor(&self) -> Result<Redactor, Error> {
        self.redaction.redactor(tag_key(&self.data))
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.state.join("spool")
    }

    fn captures(&self) -> PathBuf {
        self.state.join("runs")
    }

    /// Whoever can write to our directories can make us believe what they like. So can whoever owns them.
    fn check_directories(&self) -> Result<(), Error> {
        for directory in [&self.data, &self.state, &self.spool(), &self.captures()] {
            segno_files::check_ours(directory)
                .map_err(|why| Error::NotPrivate { path: directory.clone(), why: why.to_string() })?;
        }
        Ok(())
    }
}

/// The key that makes redaction tags recognisable to this user and to nobody else. Made on first use; if it can be
/// neither read nor kept, tags are only less useful, never less safe.
fn tag_key(data: &Path) -> [u8; 32] {
    let path = data.join("redact.key");
    if let Ok(Some(bytes)) = segno_files::read_bounded(&path, 64, Links::Refuse)
        && let Ok(key) = <[u8; 32]>::try_from(bytes.as_slice())
    {
        return key;
    }
    let mut key = [0; 32];
    let random = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut key));
    if random.is_ok() && segno_files::private_directory(data).is_ok() && !path.exists() {
        let _ = segno_files::replace(&path, &key, Access::Private);
    }
    key
}

/// How much is done about what happened while nobody looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatchUp {
    /// Everything: runs of dead drivers are brought to their end.
    Whole,
    /// Only that a driver died is noted, for somebody who waits for an answer. [`Engine::settle`] does the rest.
    Mark,
}

/// What was found when a store was opened.
#[derive(Debug)]
pub struct CaughtUp {
    /// Whether the store is the one whose id it has. For a copy nothing else is done.
    pub standing: Standing,
    /// What was taken in from the spool.
    pub spool: Result<TakenIn, Error>,
    /// The sessions whose driver had died.
    pub interrupted: Result<Vec<SessionId>, Error>,
}

impl Engine {
    /// There is no daemon: whoever opens the store takes in what waits and settles what died.
    pub fn catch_up(&self, how: CatchUp) -> CaughtUp {
        let standing = self.standing();
        if matches!(standing, Standing::Copy { .. }) {
            return CaughtUp { standing, spool: Ok(TakenIn::default()), interrupted: Ok(Vec::new()) };
        }
        let spool = self.take_in_spool();
        let interrupted = match how {
            CatchUp::Whole => self.settle(),
            CatchUp::Mark => self.mark_interrupted(),
        };
        CaughtUp { standing, spool, interrupted }
    }
}
