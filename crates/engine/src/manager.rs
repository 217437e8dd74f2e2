//! One session at a time, the simple way.

use std::path::Path;
use std::path::PathBuf;

use segno_core::Command;
use segno_core::Fact;
use segno_core::Input;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Summary;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::TokenBudget;
use segno_core::TokenUse;
use segno_core::event::Change;
use segno_core::event::CheckpointReason;
use segno_core::event::PauseReason;
use segno_core::event::Project;
use segno_core::event::Source;
use segno_core::event::Unit;
use segno_core::event::Workflow;
use segno_store::Filter;

use crate::Engine;
use crate::EngineOptions;
use crate::Error;
use crate::NewSession;
use crate::StoreLocation;
use crate::view;

mod records;

/// Where a manager works.
pub struct ManagerOptions {
    /// The project's folder.
    pub project: PathBuf,
    /// Where the store is.
    pub store: StoreLocation,
    /// The rest.
    pub engine: EngineOptions,
}

/// Tokens run low, or have run out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetWarning {
    /// Used so far.
    pub used: u64,
    /// The allowance.
    pub total: u64,
    /// Used, in percent of it.
    pub utilization_percent: f64,
    /// Whether more was used than allowed.
    pub over: bool,
}

/// A file that a session created or modified.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Artifact {
    /// Where, relative to the project.
    pub path: String,
    /// Created or modified.
    pub artifact_type: Change,
    /// When it was recorded.
    pub timestamp: Timestamp,
    /// In which phase.
    #[serde(default)]
    pub phase: Option<String>,
}

/// A line of a session's history.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct HistoryEntry {
    /// When.
    pub timestamp: Timestamp,
    /// What, such as `session_paused`.
    pub action: String,
    /// In which phase.
    #[serde(default)]
    pub phase: Option<String>,
    /// More about it.
    #[serde(default)]
    pub details: Option<Text>,
}

/// Keeps one session: every change is durable when the call returns.
///
/// An *initializer* creates a session and pauses it; a *worker*, in another process and at another time, loads it
/// by its id and resumes. Any number of managers may work on one store.
pub struct SessionManager {
    engine: Engine,
    project: Project,
    current: Option<State>,
    notices: Vec<String>,
}

impl SessionManager {
    /// A manager with its own store inside the folder: for tests and for programs that keep to themselves.
    pub fn at(folder: &Path) -> Result<Self, Error> {
        Self::open(ManagerOptions {
            project: folder.to_owned(),
            store: StoreLocation::usual(&folder.join(".segno")),
            engine: EngineOptions::default(),
        })
    }

    /// A manager on a store.
    pub fn open(options: ManagerOptions) -> Result<Self, Error> {
        let path =
            std::fs::canonicalize(&options.project).map_err(|why| Error::file(&options.project, why))?;
        let store_options =
            segno_store::OpenOptions { purpose: segno_store::Purpose::LongLived, ..Default::default() };
        let store = options.store.open(store_options)?;
        let name = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        let project = Project { path: path.display().to_string(), name, kind: None };
        Ok(Self { engine: Engine::new(store, options.engine), project, current: None, notices: Vec::new() })
    }

    /// What it stands on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The session it works on, as this manager last saw it.
    pub fn current(&self) -> Option<&State> {
        self.current.as_ref()
    }

    /// Makes a session and works on it. `token_budget` is 100,000 unless said otherwise.
    pub fn create(
        &mut self,
        workflow_type: Option<&str>,
        initial_phase: Option<&str>,
        token_budget: Option<u64>,
    ) -> Result<&State, Error> {
        let budget = TokenBudget {
            total_budget: token_budget.unwrap_or(segno_core::budget::DEFAULT_TOKENS),
            ..TokenBudget::default()
        };
        self.create_from(NewSession {
            workflow: workflow_type.map(|name| Workflow { name: name.to_owned(), phases: Vec::new() }),
            phase: initial_phase.map(ToOwned::to_owned),
            budget,
            ..NewSession::default()
        })
    }

    /// Makes a session with everything that can be said of one.
    pub fn create_from(&mut self, new: NewSession) -> Result<&State, Error> {
        if let Some(session) = self.open_now()? {
            return Err(Error::SessionAlreadyActive { session });
        }
        let project = if new.project.path.is_empty() { self.project.clone() } else { new.project.clone() };
        let acted = self.engine.create(NewSession { project, ..new })?;
        self.notices = acted.notices;
        Ok(self.current.insert(acted.state))
    }

    /// The current session, unless it has ended or was removed; others may have done that meanwhile.
    fn open_now(&self) -> Result<Option<SessionId>, Error> {
        let Some(seen) = self.current.as_ref().filter(|state| state.status.is_open()) else {
            return Ok(None);
        };
        match self.engine.load(seen.session_id) {
            Ok(loaded) => Ok(loaded.state.status.is_open().then_some(seen.session_id)),
            Err(Error::SessionNotFound { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// What the user should know of the last change, such as a view that could not be written.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Works on a session that is there. None if there is none of that name.
    pub fn load(&mut self, session_id: &str) -> Result<Option<&State>, Error> {
        let id: SessionId = match session_id.parse() {
            Ok(id) => id,
            Err(_) => return Ok(None),
        };
        // One whose driver died is interrupted, whoever looks first: it can be resumed then.
        // What hinders that, loading it says.
        let settled = self.engine.settle_one(id).unwrap_or(false);
        match self.engine.load(id) {
            Ok(loaded) => {
                self.notices = loaded.notices;
                if settled {
                    self.notices.push("the session was interrupted: its driver died".to_owned());
                }
                Ok(Some(self.current.insert(loaded.state)))
            }
            Err(Error::SessionNotFound { .. }) => self.explain_view(id).map(|()| None),
            Err(other) => Err(other),
        }
    }

    /// A view without a session: it may be imported, but if it is damaged that is said at once.
    fn explain_view(&self, id: SessionId) -> Result<(), Error> {
        let corrupted = |details: String| Error::SessionCorrupted { session_id: id.to_string(), details };
        let found = view::read_bytes(Path::new(&self.project.path), id, &self.engine.options.view)
            .map_err(|why| corrupted(why.to_string()))?;
        let Some(bytes) = found else { return Ok(()) };
        let text = String::from_utf8(bytes).map_err(|why| {
            let bytes = why.as_bytes();
            let line = bytes[..why.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
            corrupted(format!("line {}: it is not UTF-8 text", line + 1))
        })?;
        let uid = segno_core::Uid::new(uuid::Uuid::now_v7());
        view::read(&text, self.engine.now(), uid).map(|_| ()).map_err(corrupted)
    }

    /// Whether there is a session of that name.
    pub fn exists(&self, session_id: &str) -> Result<bool, Error> {
        let Ok(id) = session_id.parse() else { return Ok(false) };
        match self.engine.load(id) {
            Ok(_) | Err(Error::SessionCorrupted { .. }) => Ok(true),
            Err(Error::SessionNotFound { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Removes a session. False if there is none of that name; a text that is no id removes nothing.
    pub fn delete(&mut self, session_id: &str) -> Result<bool, Error> {
        let Ok(id) = session_id.parse() else { return Ok(false) };
        let deleted = self.engine.delete(id)?;
        if deleted && self.current.as_ref().is_some_and(|state| state.session_id == id) {
            self.current = None;
        }
        Ok(deleted)
    }

    /// Writes the current session's view now. Everything else is saved already.
    pub fn save(&self) -> Result<PathBuf, Error> {
        self.engine.write_view(self.id()?)
    }

    /// Sets a sign to go back to, and writes the view.
    pub fn checkpoint_session(&mut self) -> Result<PathBuf, Error> {
        self.act(Command::CreateCheckpoint { name: None, reason: CheckpointReason::Asked })?;
        self.save()
    }

    /// Pauses the current session. If somebody drives it, its driver is only asked to: the session stays active until
    /// that has stopped its agent, and [`SessionManager::notices`] says so.
    pub fn pause(&mut self) -> Result<&State, Error> {
        self.act(Command::Pause { reason: PauseReason::Asked, details: None })
    }

    /// Goes on with the current session.
    pub fn resume(&mut self) -> Result<&State, Error> {
        self.act(Command::Resume { reset_breaker: false, details: None })
    }

    /// Ends the current session: the work is done.
    pub fn complete(&mut self) -> Result<&State, Error> {
        self.act(Command::Complete { summary: None })
    }

    /// Ends the current session: the work is given up.
    pub fn abort(&mut self, reason: Option<&str>) -> Result<&State, Error> {
        self.act(Command::Abort { reason: reason.map(Into::into) })
    }

    /// Goes into a phase; a checkpoint is set.
    pub fn advance_phase(&mut self, new_phase: &str) -> Result<&State, Error> {
        self.act(Command::AdvancePhase { to: new_phase.to_owned(), step: None, of: None })
    }

    /// Records tokens that were used; answers with a warning when they run low. Never refused for the budget.
    pub fn record_tokens(&mut self, tokens: u64) -> Result<Option<BudgetWarning>, Error> {
        let tokens = TokenUse::of(tokens);
        let state = self.act(Fact::TokensRecorded { tokens, estimated: false, source: Source::Hand })?;
        let budget = state.budget;
        Ok(budget.is_warning().then(|| BudgetWarning {
            used: budget.tokens_used,
            total: budget.total_budget,
            utilization_percent: budget.utilization_percent(),
            over: budget.is_over(),
        }))
    }

    /// Whether so many more tokens fit into the budget.
    pub fn can_continue(&self, required_tokens: u64) -> Result<bool, Error> {
        // Others may have used tokens since this manager last looked.
        Ok(self.engine.load(self.id()?)?.state.budget.can_continue(required_tokens))
    }

    /// An error if so many more tokens do not fit into the budget.
    pub fn require_budget(&self, required_tokens: u64) -> Result<(), Error> {
        if self.can_continue(required_tokens)? { Ok(()) } else { Err(Error::BudgetExceeded) }
    }

    /// Allows more tokens.
    pub fn extend_budget(&mut self, additional_tokens: u64) -> Result<&State, Error> {
        self.act(Command::ExtendBudget { unit: Unit::Tokens, added: additional_tokens })
    }

    /// Any other command of the core on the current session.
    pub fn act(&mut self, input: impl Into<Input>) -> Result<&State, Error> {
        let acted = self.engine.act(self.id()?, input)?;
        self.notices = acted.notices;
        if let Some(request) = acted.requested {
            let what = request.as_str();
            self.notices.push(format!("somebody drives the session: its driver was asked to {what}"));
        }
        Ok(self.current.insert(acted.state))
    }

    /// Every session of the store in short, the most recently changed first.
    pub fn list(&self) -> Result<Vec<Summary>, Error> {
        self.engine.list(&Filter::default())
    }

    /// Removes ended sessions older than `days`, or only says which. Open ones are never touched.
    pub fn cleanup_old_sessions(&mut self, days: u32, dry_run: bool) -> Result<Vec<String>, Error> {
        let mut removed = Vec::new();
        for removal in self.engine.old_sessions(days, None, None)? {
            let id = removal.summary.session_id.to_string();
            let gone = dry_run
                || match self.delete(&id) {
                    // Somebody works on it still, so it is not old after all.
                    Err(Error::Store(segno_store::Error::Held(_))) => false,
                    other => other?,
                };
            if gone {
                removed.push(id);
            }
        }
        Ok(removed)
    }

    fn id(&self) -> Result<SessionId, Error> {
        self.current.as_ref().map(|state| state.session_id).ok_or(Error::NoActiveSession)
    }

    fn rows<T: serde::de::DeserializeOwned>(&self, list: List) -> Result<Vec<T>, Error> {
        let id = self.id()?;
        let items = self.engine.items(id, list)?;
        items
            .into_iter()
            .map(|item| {
                serde_json::from_value(item.body).map_err(|why| Error::SessionCorrupted {
                    session_id: id.to_string(),
                    details: format!("a row of its {} cannot be read: {why}", list.as_str()),
                })
            })
            .collect()
    }
}
