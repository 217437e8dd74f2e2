//! Where commands meet the engine: opening the store, finding the session, doing something, saying what came of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use segno_engine::core::{Command, SessionId, State, StoreId, Summary, UserKey};
use segno_engine::redact::{self, Redactor};
use segno_engine::store::sqlite::{self, SqliteStore};
use segno_engine::tree::TreeOptions;
use segno_engine::{Acted, Actor, Choice, Engine, EngineOptions, Standing, view};
use serde_json::json;

use crate::commands::args::SessionRef;
use crate::config::Rule;
use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::exit::ExitCode;
use crate::hook::HookFile;
use crate::output::style::Meaning;
use crate::output::{Text, units};
use crate::recent;

/// An open store with everything a command needs around it.
pub struct Desk<'a> {
    /// The surroundings.
    pub context: &'a Context,
    /// The engine.
    pub engine: Engine,
}

impl<'a> Desk<'a> {
    /// Opens the store; it must be there.
    pub fn open(context: &'a Context) -> Outcome<Self> {
        Self::open_with(context, false)
    }

    /// Opens the store, making it if there is none.
    pub fn open_or_make(context: &'a Context) -> Outcome<Self> {
        Self::open_with(context, true)
    }

    /// Opens the store for a process that stays: what it writes is committed in groups.
    pub fn open_to_stay(context: &'a Context) -> Outcome<Self> {
        Self::open_for(context, true, sqlite::Purpose::LongLived)
    }

    /// Waits, with a word, for whoever writes to the store just now: a run is not refused for that.
    pub fn wait_for_store(&self) {
        let mut told = false;
        while self.engine.is_store_busy() {
            if !told {
                self.context.printer.warn("waiting for the store: somebody else writes to it");
            }
            told = true;
        }
    }

    /// Opens the store for somebody who waits for a list: that a driver died is said at once, and what takes longer is
    /// left to [`Desk::settle_rest`].
    pub fn open_to_list(context: &'a Context) -> Outcome<Self> {
        let desk = Self::assemble(context, false, sqlite::Purpose::OneShot)?;
        desk.look_around(Engine::mark_interrupted);
        Ok(desk)
    }

    /// After the answer has been given: brings the runs of dead drivers to their end, and says so.
    pub fn settle_rest(&self) {
        for id in self.engine.unsettled_sessions().unwrap_or_default() {
            self.context.printer.detail(1, format!("taking in what is left of the run of {}", short(id)));
        }
        if let Err(why) = self.engine.settle() {
            self.context.printer.detail(1, format!("leases were not settled: {why}"));
        }
    }

    fn open_with(context: &'a Context, create: bool) -> Outcome<Self> {
        Self::open_for(context, create, sqlite::Purpose::OneShot)
    }

    fn open_for(context: &'a Context, create: bool, purpose: sqlite::Purpose) -> Outcome<Self> {
        let desk = Self::assemble(context, create, purpose)?;
        desk.look_around(Engine::settle);
        Ok(desk)
    }

    fn assemble(context: &'a Context, create: bool, purpose: sqlite::Purpose) -> Outcome<Self> {
        let config = context.config()?;
        check_directories(context)?;
        let path = store_path(context)?;
        let options =
            sqlite::Options { purpose, create, busy: Duration::from_millis(config.store.busy_timeout_ms) };
        let store = SqliteStore::open(&path, options).map_err(segno_engine::Error::from)?;
        let actor = match context.under_run()? {
            Some(under) => {
                Actor { run: Some(under.run.to_string()), epoch: under.epoch, session: under.session }
            }
            None => Actor::default(),
        };
        let options = EngineOptions {
            redactor: redactor(context)?,
            actor,
            view: view::Options {
                enabled: config.view.enabled,
                most_items: usize::try_from(config.view.max_items).unwrap_or(10_000),
                ..view::Options::default()
            },
            spool: Some(context.paths.state.join("spool")),
            captures: Some(context.paths.state.join("runs")),
            tree: tree(context)?,
            variables: std::iter::once("HOME")
                .chain(segno_engine::agents::log_variables())
                .filter_map(|name| Some((name.to_owned(), context.environment.non_empty(name)?.to_owned())))
                .collect(),
            line_limit: config.run.max_line_mb << 20,
            ..EngineOptions::default()
        };
        let desk = Self { context, engine: Engine::new(Box::new(store), options) };
        context.speak_through(desk.engine.redactor());
        if create {
            desk.warn_size(&path, config.store.warn_mb);
        }
        Ok(desk)
    }

    /// Said where something new begins: a store that fills the disk stops all work on the machine.
    fn warn_size(&self, path: &Path, most_mb: u64) {
        let size = |suffix: &str| {
            let mut file = path.as_os_str().to_owned();
            file.push(suffix);
            std::fs::metadata(file).map_or(0, |meta| meta.len())
        };
        let bytes = size("") + size("-wal");
        if most_mb > 0 && bytes > most_mb.saturating_mul(1 << 20) {
            let text = format!("the store has {}, more than store.warn_mb = {most_mb}", units::bytes(bytes));
            let hint = "segno du   (or: segno cleanup, or: segno config set store.warn_mb N)".to_owned();
            self.context.printer.warn_with(text, &[hint]);
        }
    }

    /// The view of a session in this project that this store does not know.
    fn foreign_view(&self, text: &str) -> Option<PathBuf> {
        let root = &self.context.project.root;
        let fits = |id: &str| {
            id.parse::<SessionId>().is_ok()
                && (id == text || text.len() >= recent::SHORTEST_ENDING && id.ends_with(text))
        };
        let entries = std::fs::read_dir(root.join(".segno/sessions")).ok()?.flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| text == "last" || fits(name))
            .collect();
        names.sort();
        let path = root.join(".segno/sessions").join(names.pop()?).join("session.yaml");
        path.is_file().then_some(path)
    }

    /// There is no daemon: whoever opens the store takes in what waits and settles what died.
    fn look_around(&self, settle: fn(&Engine) -> Result<Vec<SessionId>, segno_engine::Error>) {
        let printer = &self.context.printer;
        match self.engine.standing() {
            Standing::Original => {}
            Standing::Restored { from } => printer.warn(format!(
                "this store has taken the place of {}, which is gone: it was moved or restored from a copy, and what \
                 came after that copy is not in it",
                from.display()
            )),
            Standing::Copy { of } => {
                let hint = ["segno doctor --adopt   makes it a store of its own".to_owned()];
                let text = format!(
                    "this store is a copy of {}: it is shown as it is, and nothing is changed, settled or taken in",
                    of.display()
                );
                return printer.warn_with(text, &hint);
            }
        }
        match self.engine.take_in_spool() {
            Ok(taken) => {
                if taken.facts > 0 {
                    printer
                        .detail(1, format!("took in {} from the spool", units::things(taken.facts, "fact")));
                }
                for (path, why) in taken.set_apart {
                    printer.warn(format!(
                        "a spooled fact could not be taken in ({why}); it is kept in {}",
                        path.display()
                    ));
                }
            }
            Err(why) => printer.warn(format!("the spool could not be taken in: {why}")),
        }
        match settle(&self.engine) {
            Ok(settled) => {
                for id in settled {
                    let hint = [format!("segno show {}", short(id))];
                    printer
                        .warn_with(format!("session {} was interrupted: its driver died", short(id)), &hint);
                }
            }
            // Looking is enough here: the command itself will say what is wrong with the store.
            Err(why) => printer.detail(1, format!("leases were not settled: {why}")),
        }
    }

    /// The session that a command is about which changes something: a named one, or the one that is open.
    pub fn session(&self, argument: Option<&SessionRef>) -> Outcome<SessionId> {
        match self.context.session(argument)? {
            Some(named) => self.named(&named),
            None => self.chosen(self.engine.open_session(&self.context.project.root)?),
        }
    }

    /// The session that a command is about which only looks: with none open, the newest.
    pub fn session_to_read(&self, argument: Option<&SessionRef>) -> Outcome<SessionId> {
        match self.context.session(argument)? {
            Some(named) => self.named(&named),
            None => self.chosen(self.engine.session_to_read(&self.context.project.root)?),
        }
    }

    fn chosen(&self, choice: Choice) -> Outcome<SessionId> {
        match choice {
            Choice::One(id) => Ok(id),
            Choice::None => Err(CommandError::new(
                ExitCode::SessionNotFound,
                "no_active_session",
                "No active session. Create or load a session first.",
            )
            .hint("segno new \"what it is about\"   (or: segno ls --all, then segno --session ID …)")),
            Choice::Several(sessions) => Err(self.choose(&sessions)),
        }
    }

    /// The session a text names: a number of the last list, an id, the end of one, or `last`.
    pub fn named(&self, named: &SessionRef) -> Outcome<SessionId> {
        let text = named.as_str();
        if let Some(id) = recent::numbered(&self.context.paths.state, text) {
            return Ok(id);
        }
        // A number that is not in the list must not fall through to whatever session happens to end in that digit.
        if text.len() < recent::SHORTEST_ENDING && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(CommandError::new(
                ExitCode::SessionNotFound,
                "session_not_found",
                format!("there is no number {text} in the last list on this terminal"),
            )
            .hint(format!(
                "segno ls   gives numbers   (or: at least {} digits of the end of the id)",
                recent::SHORTEST_ENDING
            )));
        }
        let found = self.engine.find_known(text, Some(&self.context.project.root));
        found.map_err(|error| match error {
            segno_engine::Error::SessionNotFound { .. } if self.foreign_view(text).is_some() => {
                let view = self.foreign_view(text).unwrap_or_default();
                CommandError::from(error)
                    .hint(format!("this project has a view of it: segno import {}", view.display()))
            }
            segno_engine::Error::SessionNotFound { .. } if text == "last" => CommandError::new(
                ExitCode::SessionNotFound,
                "session_not_found",
                "this project has no sessions yet",
            )
            .hint("segno new \"what it is about\"   (or: segno ls --all --everywhere)"),
            other => other.into(),
        })
    }

    fn choose(&self, sessions: &[Summary]) -> CommandError {
        let mut error = CommandError::new(
            ExitCode::Ambiguous,
            "ambiguous",
            format!("{} sessions are open in this project; say which one", sessions.len()),
        );
        for summary in sessions.iter().take(8) {
            let topic = summary.topic.as_deref().unwrap_or("");
            error =
                error.hint(format!("--session {}   {} {topic}", &tail(summary.session_id), summary.status));
        }
        error
    }

    /// Does something to a session.
    pub fn act(&self, session: SessionId, commands: Vec<Command>) -> Outcome<Acted> {
        Ok(self.engine.act_all(session, commands, self.key()?)?)
    }

    /// The key that was given, under which doing something twice does it once.
    pub fn key(&self) -> Outcome<Option<UserKey>> {
        let parse = |text: &String| {
            text.parse::<UserKey>().map_err(|bad| CommandError::usage(format!("bad --key: {}", bad.why)))
        };
        let key = self.context.global.key.as_ref().map(parse).transpose()?;
        Ok(key.map(|key| self.engine.fit_key(key)))
    }

    /// Says what came of a change: a document for programs, a line for people.
    pub fn report(&self, acted: &Acted, said: impl Into<Text>) -> Outcome {
        let printer = &self.context.printer;
        for notice in &acted.notices {
            printer.warn(notice.clone());
        }
        if printer.is_json() {
            let events: Vec<&str> = acted.events.iter().map(|event| event.kind()).collect();
            let checkpoint = acted.events.iter().find_map(|event| match event {
                segno_engine::core::Event::CheckpointCreated(created) => Some(&created.id),
                _ => None,
            });
            printer.json(&json!({
                "checkpoint": checkpoint,
                "session_id": acted.state.session_id,
                "seq": acted.seq,
                "status": acted.state.status,
                "events": events,
                "repeated": acted.repeated,
                "late": acted.late,
                "spooled": acted.spooled,
                "requested": acted.requested,
                "session": Summary::from(&acted.state),
            }))?;
        } else if acted.repeated {
            printer.talk(Text::new().plain("nothing to do: this key was recorded already"));
        } else if acted.late {
            printer.warn("recorded as late: another driver has taken over this session");
        } else if let Some(request) = acted.requested {
            let asked = format!("{request:?}").to_lowercase();
            printer.talk(
                Text::new().plain(format!("the session is being driven; its driver was asked to {asked}")),
            );
        } else if !acted.spooled {
            // What was typed is repeated here, and may be read by others than the one who typed it.
            printer.talk(said.into().map(|text| self.engine.redactor().text(text).into_owned()));
        }
        self.warn_budget(acted);
        self.finish();
        Ok(())
    }

    fn warn_budget(&self, acted: &Acted) {
        use segno_engine::core::Event;
        use segno_engine::core::event::Unit;
        for event in &acted.events {
            let (word, unit, used, total) = match event {
                Event::BudgetWarned(e) => ("runs low", e.unit, e.used, e.total),
                Event::BudgetExceeded(e) => ("exceeded", e.unit, e.used, e.total),
                _ => continue,
            };
            let message = match unit {
                Unit::Tokens => {
                    format!("token budget {word}: {} of {}", units::count(used), units::tokens(total))
                }
                Unit::Cost => {
                    format!("cost budget {word}: {} of {}", units::dollars(used), units::dollars(total))
                }
            };
            let extend = extend_hint(unit, None);
            self.context.printer.warn_with(message, &[format!("{extend}   (or: segno complete)")]);
        }
    }

    /// Upkeep that may take a while, after the answer has been given.
    pub fn finish(&self) {
        if let Err(why) = self.engine.tend_store() {
            self.context.printer.detail(1, format!("the store's log was not folded in: {why}"));
        }
    }

    /// The state of a session, with a warning for each thing that is wrong with its record.
    pub fn load(&self, session: SessionId) -> Outcome<State> {
        let loaded = self.engine.load(session)?;
        for notice in &loaded.notices {
            self.context.printer.warn_with(
                format!("session {}: {notice}", short(session)),
                &["segno doctor --repair".to_owned()],
            );
        }
        Ok(loaded.state)
    }
}

/// Whoever can write to our directories can make us believe what they like. So can whoever owns them.
fn check_directories(context: &Context) -> Outcome {
    let paths = &context.paths;
    let (spool, captures) = (paths.state.join("spool"), paths.state.join("runs"));
    for directory in [&paths.data, &paths.state, &spool, &captures] {
        crate::files::check_ours(directory).map_err(|why| {
            let place = directory.display();
            CommandError::new(ExitCode::Environment, "not_private", format!("{place} is not used: {why}"))
                .hint(format!("chmod go-w {place}   once you know what is in it"))
        })?;
    }
    Ok(())
}

/// The file of the embedded store.
pub fn store_path(context: &Context) -> Outcome<PathBuf> {
    let url = context.store_url()?;
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path);
        if path.is_empty() {
            return Err(
                CommandError::config("config_invalid", "sqlite: needs a path").hint("--store sqlite:PATH")
            );
        }
        return Ok(PathBuf::from(path));
    }
    let kind = url.split(':').next().unwrap_or_default();
    Err(CommandError::config(
        "unsupported_store",
        format!("this segno keeps sessions in SQLite only, not in {kind}:"),
    )
    .hint("--store sqlite:PATH"))
}

/// What the hooks of a run need to know.
pub fn hook_file(context: &Context, store_id: Option<StoreId>) -> Outcome<HookFile> {
    let config = context.config()?;
    let store = store_path(context)?;
    let tag_key = recent::tag_key(&context.paths.data);
    let secrets = known_secrets(context)?;
    Ok(HookFile {
        store: std::path::absolute(&store).unwrap_or(store),
        store_id,
        spool: context.paths.state.join("spool"),
        tag_key,
        known_secrets: secrets.iter().map(|(_, secret)| redact::fingerprint(&tag_key, secret)).collect(),
        secrets_of_environment: config.redact.env,
        rules: config.redact.rules.clone(),
        tree: tree(context)?,
    })
}

/// What is known to be secret: variables of the environment whose names say so, and those that the configuration gives
/// to agents, whose values may say so, too.
fn known_secrets(context: &Context) -> Outcome<Vec<(String, String)>> {
    let config = context.config()?;
    let mut secrets = if config.redact.env { context.environment.secrets() } else { Vec::new() };
    for agent in config.agents.values() {
        let given = agent.get("env").and_then(toml::Value::as_table).into_iter().flatten();
        let given = given.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        secrets.extend(given.filter(|(name, value)| redact::is_secret_setting(name, value)));
    }
    Ok(secrets)
}

/// How checkpoints hold files.
fn tree(context: &Context) -> Outcome<Option<TreeOptions>> {
    let config = &context.config()?.checkpoint;
    if !config.files {
        return Ok(None);
    }
    let environment = &context.environment;
    let path = environment.get("PATH").unwrap_or_default();
    let home = environment.non_empty("HOME").map(PathBuf::from);
    let git_config = environment.non_empty("XDG_CONFIG_HOME").map(PathBuf::from);
    let git_config = git_config.or_else(|| home.as_ref().map(|home| home.join(".config")));
    Ok(Some(TreeOptions {
        home,
        global_excludes: git_config.map(|config| config.join("git/ignore")).filter(|path| path.is_file()),
        largest_file: config.largest_file_mb.saturating_mul(1 << 20),
        quota: Some(config.quota_mb.saturating_mul(1 << 20)).filter(|quota| *quota > 0),
        include_ignored: config.include_ignored.clone(),
        never: vec![context.paths.data.clone(), context.paths.state.clone()],
        every_calls: config.every_calls,
        most: config.max,
        keep_on_success: config.keep_on_success,
        keep_on_failure: config.keep_on_failure,
        risky: config.risky.clone(),
        stop_on_failure: config.on_failure == "stop",
        ..TreeOptions::new(
            context.paths.data.join("snapshots"),
            segno_engine::workspace::git::find(std::ffi::OsStr::new(path)),
        )
    }))
}

fn redactor(context: &Context) -> Outcome<Redactor> {
    let config = context.config()?;
    let exact = known_secrets(context)?;
    let extra_rules = config.redact.rules.iter().map(Rule::spec).collect();
    let tag_key = recent::tag_key(&context.paths.data);
    redact::Redactor::try_new(redact::Options { extra_rules, exact, tag_key }).map_err(|why| {
        CommandError::config("config_invalid", format!("redact.rules: {why}"))
            .hint("segno config show --origin")
    })
}

/// How to allow more.
pub fn extend_hint(unit: segno_engine::core::event::Unit, session: Option<SessionId>) -> String {
    use segno_engine::core::event::Unit;
    let session = session.map_or(String::new(), |session| format!(" --session {}", tail(session)));
    match unit {
        Unit::Tokens => format!("segno budget extend 50k{session}"),
        Unit::Cost => format!("segno budget cost 5 --extend{session}"),
    }
}

/// The last part of an id, enough to tell sessions apart in daily use.
pub fn tail(id: SessionId) -> String {
    let text = id.to_string();
    text[text.len() - 6..].to_owned()
}

/// How an id is shown to people.
pub fn short(id: SessionId) -> String {
    format!("…{}", tail(id))
}

/// An id and what the session is about.
pub fn title(state: &State) -> Text {
    let text = Text::new().painted(Meaning::Dim, short(state.session_id));
    match &state.topic {
        Some(topic) => text.plain("  ").plain(topic.clone()),
        None => text,
    }
}

impl From<segno_engine::Error> for CommandError {
    fn from(error: segno_engine::Error) -> Self {
        use segno_engine::Error as E;
        use segno_engine::StoreError as S;
        use segno_engine::core::Refusal;
        use segno_engine::workspace::Error as W;
        let code = error.code();
        let message = error.to_string();
        let (exit, hint): (ExitCode, Option<String>) = match &error {
            E::SessionAlreadyActive { session } => (
                ExitCode::AlreadyActive,
                Some(format!(
                    "segno complete {0}   (or: segno abort {0}, or: segno new --parallel)",
                    tail(*session)
                )),
            ),
            E::NoActiveSession => (ExitCode::SessionNotFound, Some("segno new".to_owned())),
            E::InvalidStateTransition { .. } | E::InvalidStateForPhaseAdvance { .. } => {
                (ExitCode::Refused, None)
            }
            E::SessionNotFound { .. } => (
                ExitCode::SessionNotFound,
                Some("segno ls --all --everywhere   lists every session".to_owned()),
            ),
            E::SessionCorrupted { .. } => (ExitCode::StoreDamaged, Some("segno doctor".to_owned())),
            E::BudgetExceeded => (ExitCode::BudgetExhausted, Some("segno budget extend N".to_owned())),
            E::CapReached { session, unit, .. } => {
                (ExitCode::BudgetExhausted, Some(extend_hint(*unit, Some(*session))))
            }
            E::WriteError { .. } => {
                (ExitCode::Environment, Some("free some room or mend the disk, then try again".to_owned()))
            }
            E::Refused(Refusal::BadValue { .. } | Refusal::TooMany { .. }) => (ExitCode::Usage, None),
            E::Refused(Refusal::Unknown { what, .. }) => {
                let list = match *what {
                    "open task" => Some("segno task list"),
                    "decision" => Some("segno show --decisions"),
                    "checkpoint" => Some("segno checkpoint list"),
                    "cache entry" => Some("segno show --memory"),
                    _ => None,
                };
                (ExitCode::Refused, list.map(ToOwned::to_owned))
            }
            E::Refused(Refusal::AtBreakpoint { .. }) => {
                (ExitCode::Refused, Some("segno breakpoint continue".to_owned()))
            }
            E::Refused(_) => (ExitCode::Refused, None),
            E::Store(S::Held(_) | S::StaleEpoch { .. }) => (ExitCode::HeldElsewhere, None),
            E::Store(S::Busy { .. } | S::DriversAlive { .. }) => {
                (ExitCode::StoreBusy, Some("try again in a moment".to_owned()))
            }
            E::Store(S::Damaged { .. } | S::SessionDamaged { .. } | S::NoBlob(_)) => (
                ExitCode::StoreDamaged,
                Some(
                    "segno doctor --repair   moves the damaged file aside and saves what can be read"
                        .to_owned(),
                ),
            ),
            E::Store(S::Newer { .. }) => (ExitCode::StoreNewer, Some("update segno".to_owned())),
            E::Store(S::NoStore(_)) => {
                (ExitCode::SessionNotFound, Some("segno new \"what it is about\"".to_owned()))
            }
            E::Store(S::Copy { .. }) => (
                ExitCode::Refused,
                Some("segno doctor --adopt   makes the copy a store of its own".to_owned()),
            ),
            E::Store(S::ReadOnly { .. }) => (
                ExitCode::Environment,
                Some("its file and its directory must be writable, for looking too".to_owned()),
            ),
            E::Store(S::BadPlace { .. } | S::Full { .. }) => {
                (ExitCode::Environment, Some("--store sqlite:PATH   names another place".to_owned()))
            }
            E::Store(_) => (ExitCode::Failure, None),
            E::File { .. } => (ExitCode::Environment, None),
            E::Ambiguous(_) => (ExitCode::Ambiguous, Some("say more of the id".to_owned())),
            E::NotArchived { .. } => (
                ExitCode::StoreDamaged,
                Some("segno doctor   says what is wrong with it   (segno rm ID   removes it without an archive)".to_owned()),
            ),
            E::NotImportable(_) => (ExitCode::Refused, None),
            E::NotLaunched { .. } => (ExitCode::AgentMissing, None),
            E::AgentAlive { .. } => (
                ExitCode::HeldElsewhere,
                Some("segno attach   follows it   (or: segno kill   ends it)".to_owned()),
            ),
            E::OtherBranch { .. } => {
                (ExitCode::Refused, Some("segno resume --checkout-branch   (or: --any-branch)".to_owned()))
            }
            E::NotStarted(_) => (ExitCode::RunStopped, Some("segno resume   goes on".to_owned())),
            E::Replaced(_) => (ExitCode::HeldElsewhere, None),
            E::NoRun(_) | E::NoTree(_) | E::NotResumable { .. } => (ExitCode::Refused, None),
            E::TreeBusy { .. } => (
                ExitCode::HeldElsewhere,
                Some("wait until it is done, or: segno stop ID   (segno ls shows it)".to_owned()),
            ),
            E::Declined => (ExitCode::Cancelled, None),
            E::NobodyToAsk => {
                (ExitCode::Cancelled, Some("add --yes to do it without being asked".to_owned()))
            }
            E::RestorePending(_) | E::Workspace(W::Pending | W::Halfway(_)) => {
                let hint = "segno checkpoint pending --leave   keeps the files as they are   (or: --finish, --take-back)";
                (ExitCode::Refused, Some(hint.to_owned()))
            }
            E::Workspace(_) => (ExitCode::Environment, None),
        };
        let message = match &error {
            E::Store(S::NoStore(_)) => "there are no sessions yet".to_owned(),
            _ => message,
        };
        Self::new(exit, code, message).maybe_hint(hint)
    }
}
