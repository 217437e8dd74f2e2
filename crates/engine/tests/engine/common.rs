//! What every test needs: a room of its own with a clock that stands still.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use segno_core::Fact;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_engine::Actor;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::ManagerOptions;
use segno_engine::NewSession;
use segno_engine::SessionManager;
use segno_engine::clock::FixedClock;
use segno_engine::launch::AgentSettings;
use segno_engine::launch::Common;
use segno_engine::launch::LaunchSettings;
use segno_engine::view;
use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::sqlite::SqliteStore;

/// A temporary place with a project, a store and a spool.
pub(crate) struct Room {
    dir: tempfile::TempDir,
    pub(crate) clock: Arc<FixedClock>,
    busy: Duration,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self::with(Duration::from_secs(20))
    }

    /// One whose stores wait so long for each other.
    pub(crate) fn with(busy: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("harbour")).unwrap();
        Self { dir, clock: Arc::new(FixedClock::new(moment("2026-01-16T10:00:00Z"))), busy }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn project(&self) -> PathBuf {
        std::fs::canonicalize(self.dir.path().join("harbour")).unwrap()
    }

    pub(crate) fn store_path(&self) -> PathBuf {
        self.dir.path().join("data").join("segno.db")
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.dir.path().join("state").join("spool")
    }

    pub(crate) fn store(&self) -> SqliteStore {
        store_at(&self.store_path(), self.busy)
    }

    pub(crate) fn options(&self) -> EngineOptions {
        EngineOptions { clock: self.clock.clone(), spool: Some(self.spool()), ..EngineOptions::default() }
    }

    pub(crate) fn engine(&self) -> Engine {
        Engine::new(Box::new(self.store()), self.options())
    }

    pub(crate) fn engine_as(&self, epoch: u64) -> Engine {
        let actor = Actor { run: Some("run-1".to_owned()), epoch: Some(epoch), ..Actor::default() };
        Engine::new(Box::new(self.store()), EngineOptions { actor, ..self.options() })
    }

    /// Without views, which most tests do not look at.
    pub(crate) fn quiet(&self) -> Engine {
        let view = view::Options { enabled: false, ..view::Options::default() };
        Engine::new(Box::new(self.store()), EngineOptions { view, ..self.options() })
    }

    pub(crate) fn manager(&self) -> SessionManager {
        let engine = self.options();
        SessionManager::open(ManagerOptions {
            project: self.project(),
            store: self.store_path().into(),
            engine,
        })
        .unwrap()
    }

    pub(crate) fn new_session(&self) -> NewSession {
        let path = self.project().display().to_string();
        let project = segno_core::event::Project { path, name: "harbour".to_owned(), kind: None };
        NewSession { topic: Some("boats".to_owned()), project, ..NewSession::default() }
    }

    pub(crate) fn view_path(&self, id: SessionId) -> PathBuf {
        view::path(&self.project(), id, &view::Options::default())
    }
}

pub(crate) fn store_at(path: &Path, busy: Duration) -> SqliteStore {
    let options = OpenOptions { purpose: Purpose::OneShot, busy, ..OpenOptions::default() };
    SqliteStore::open(path, options).unwrap()
}

pub(crate) fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn note(details: &str) -> Fact {
    Fact::HistoryNoted { action: "noted".to_owned(), phase: None, details: Some(details.into()) }
}

/// A session's history in short: its actions.
pub(crate) fn actions(manager: &SessionManager) -> Vec<String> {
    manager.history().unwrap().into_iter().map(|entry| entry.action).collect()
}

/// The details of notes, in order.
pub(crate) fn notes(engine: &Engine, id: SessionId) -> Vec<String> {
    let items = engine.items(id, segno_core::List::History).unwrap();
    let noted = items.into_iter().filter(|item| item.body["action"] == "noted");
    noted
        .map(|item| {
            let text: segno_core::Text = serde_json::from_value(item.body["details"].clone()).unwrap();
            engine.whole(&text).unwrap()
        })
        .collect()
}

/// Every file below a directory, links not followed.
pub(crate) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// The permission bits of a file or directory.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// A parsed view as plain data.
pub(crate) fn parse(yaml: &str) -> serde_json::Value {
    serde_saphyr::from_str(yaml).unwrap_or_else(|why| panic!("{why}\n{yaml}"))
}

/// Small, quick and always the same: for choosing moments, not for secrets.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Where programs are looked for.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How a face runs Claude Code, played by this program: as little as there can be.
pub(crate) fn launch_settings(
    program: &Path,
    home: &Path,
    project: PathBuf,
    state: PathBuf,
) -> LaunchSettings {
    let common = Common { program: program.display().to_string(), ..Common::default() };
    LaunchSettings {
        agent: "claude".to_owned(),
        agents: BTreeMap::from([("claude".to_owned(), AgentSettings { common, plain: None })]),
        environment: vec![("PATH".into(), PATH.into()), ("HOME".into(), home.into())],
        project,
        budget: Default::default(),
        cost: Default::default(),
        max_turns: 0,
        silence_seconds: 0,
        wall_seconds: 0,
        grace: Duration::from_secs(5),
        resources: Default::default(),
        hooks: false,
        hook_file: None,
        hook_program: PathBuf::new(),
        capture_command: Vec::new(),
        sole_process: false,
        scratch: None,
        state,
    }
}
