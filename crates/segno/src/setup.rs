//! The configuration and the environment as plain values for the engine.

use std::path::PathBuf;
use std::time::Duration;

use segno_engine::Actor;
use segno_engine::NewSession;
use segno_engine::StoreLocation;
use segno_engine::agents::Agent;
use segno_engine::agents::HookReport;
use segno_engine::launch::project_at;
use segno_engine::memory::MemoryTools;
use segno_engine::redact::Redactor;
use segno_engine::redaction::Redaction;
use segno_engine::run::tree::Member;
use segno_engine::setup::Opening;
use segno_engine::setup::Purpose;
use segno_engine::setup::Setup;
use segno_engine::tree::TreeOptions;
use segno_engine::view;
use segno_engine::watch::WatchVisit;

use crate::config::env;
use crate::context::Context;
use crate::error::Outcome;

impl Context {
    /// What the engine is made from.
    ///
    /// # Errors
    /// If the configuration is wrong.
    pub fn setup(&self) -> Outcome<Setup> {
        let config = self.config()?;
        Ok(Setup {
            store: self.store_location()?,
            busy: Duration::from_millis(config.store.busy_timeout_ms),
            data: self.paths.data.clone(),
            state: self.paths.state.clone(),
            redaction: self.redaction()?,
            view: view::Options {
                enabled: config.view.enabled,
                most_items: usize::try_from(config.view.max_items).unwrap_or(10_000),
                ..view::Options::default()
            },
            layout: self.layout()?,
            tree: self.tree()?,
            variables: std::iter::once("HOME")
                .chain(segno_engine::agents::keeping_variables())
                .filter_map(|name| Some((name.to_owned(), self.environment.non_empty(name)?.to_owned())))
                .collect(),
            line_limit: config.run.max_line_mb << 20,
            prices: Some(self.paths.config.with_file_name(crate::commands::cost::PRICES_FILE)),
            day: config.day_caps(),
            keep_transcripts: config.archive.native,
            memory: MemoryTools {
                queries: config.memory.tools.clone(),
                lookups: config.memory.lookups.clone(),
            },
            zone: segno_engine::zones::LocalZone::of(self.environment.get("TZ")),
        })
    }

    /// Which file families are kept current, and where they are.
    ///
    /// # Errors
    /// If the configuration is wrong.
    pub fn layout(&self) -> Outcome<segno_engine::layout::Options> {
        let config = &self.config()?.layout;
        Ok(segno_engine::layout::Options {
            // What is no family was refused when the configuration was read.
            families: config.families.iter().filter_map(|word| word.parse().ok()).collect(),
            prp_folder: self.prp_folder(),
            home: self.environment.non_empty("HOME").map(PathBuf::from),
            most_items: usize::try_from(config.max_items).unwrap_or(1_000),
            ultra_create: self.ultra_create()?,
            pasts: None,
        })
    }

    /// What ultra-create is told about its sessions.
    fn ultra_create(&self) -> Outcome<segno_engine::layout::UltraCreate> {
        let loaded = self.loaded()?;
        // A command of theirs that runs us must not run itself again.
        let inside = self.environment.non_empty(env::ULTRA_CREATE_EVENT).is_some();
        let hooks_trusted = loaded.hooks_trusted && !inside;
        Ok(segno_engine::layout::UltraCreate {
            config: loaded.session_config.as_ref().map(|found| found.config.clone()).unwrap_or_default(),
            hooks_trusted,
            environment: if hooks_trusted { env::Environment::inherited() } else { Vec::new() },
        })
    }

    /// The folder of a PRP session that a variable names.
    pub fn prp_folder(&self) -> Option<PathBuf> {
        self.environment.non_empty(env::PRP_SESSION_DIR).map(|folder| self.project.root.join(folder))
    }

    /// One call of a hook that stands in an agent's own settings.
    ///
    /// # Errors
    /// If the configuration is wrong.
    pub(crate) fn watch_visit(
        &self,
        agent: Box<dyn Agent>,
        report: HookReport,
        directory: PathBuf,
        caller: Option<Member>,
    ) -> Outcome<WatchVisit> {
        let config = self.config()?;
        Ok(WatchVisit {
            agent,
            report,
            setup: self.setup()?,
            new: NewSession {
                project: project_at(&self.project.root),
                budget: config.token_budget(None, false),
                cost: config.cost_budget(None, false),
                ..NewSession::default()
            },
            directory,
            caller,
            brief: config.watch.brief == "auto",
        })
    }

    /// How this command opens the store, as the run that it belongs to.
    ///
    /// # Errors
    /// If the variables that a driver sets are not right.
    pub fn opening(&self, create: bool, purpose: Purpose) -> Outcome<Opening> {
        let actor = match self.under_run()? {
            Some(under) => {
                Actor { run: Some(under.run.to_string()), epoch: under.epoch, session: under.session }
            }
            None => Actor::default(),
        };
        Ok(Opening { purpose, create, actor, waits: None, at_most: None })
    }

    /// Where the store is: as configured, or in the data directory.
    ///
    /// # Errors
    /// If the configuration is wrong.
    pub fn store_location(&self) -> Outcome<StoreLocation> {
        let url = &self.config()?.store.url;
        Ok(if url.is_empty() { StoreLocation::usual(&self.paths.data) } else { StoreLocation::parse(url)? })
    }

    /// What is known to be secret: variables of the environment whose names say so, and those that the configuration
    /// gives to agents.
    fn redaction(&self) -> Outcome<Redaction> {
        let config = self.config()?;
        let agents = config.agents.values();
        let given = agents.filter_map(|agent| agent.get("env").and_then(toml::Value::as_table)).flatten();
        // An agent must not loosen what a run of its own records.
        let below = || {
            use segno_engine::run::ancestry::Below;
            use segno_engine::run::ancestry::below_run;
            self.environment.non_empty(env::RUN).is_some() || below_run() != Below::Nobody
        };
        Ok(Redaction {
            rules: config.redact.rules.clone(),
            keeps_environment: config.redact.env || below(),
            environment: self.environment.secrets(),
            given: given
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect(),
        })
    }

    /// A redactor without a store: as much as the settings tell, if they can be read.
    pub(crate) fn first_redactor(&self) -> Redactor {
        let redaction = self.redaction().unwrap_or_else(|_| Redaction {
            environment: self.environment.secrets(),
            keeps_environment: true,
            ..Redaction::default()
        });
        redaction
            .redactor([0; 32])
            .unwrap_or_else(|_| Redactor::new(segno_engine::redact::Options::default()))
    }

    /// How checkpoints hold files.
    fn tree(&self) -> Outcome<Option<TreeOptions>> {
        let config = &self.config()?.checkpoint;
        if !config.files {
            return Ok(None);
        }
        let environment = &self.environment;
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
            never: vec![self.paths.data.clone(), self.paths.state.clone()],
            every_calls: config.every_calls,
            most: config.max,
            keep_on_success: config.keep_on_success,
            keep_on_failure: config.keep_on_failure,
            risky: config.risky.clone(),
            stop_on_failure: config.on_failure == "stop",
            ..TreeOptions::new(
                self.paths.data.join("snapshots"),
                segno_engine::workspace::git::find(std::ffi::OsStr::new(path)),
            )
        }))
    }
}
