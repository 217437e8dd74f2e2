//! What every command gets: who asks, where, with which settings, and a way to answer.

use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;

use jiff::Timestamp;
use segno_engine::core::RunId;
use segno_engine::core::id::BadId;
use segno_engine::redact::Redactor;

use crate::cli::Command;
use crate::cli::GlobalArgs;
use crate::commands::args::SessionRef;
use crate::config::Config;
use crate::config::Loaded;
use crate::config::Paths;
use crate::config::Project;
use crate::config::TimeStyle;
use crate::config::Topic;
use crate::config::env::Environment;
use crate::config::env::{self};
use crate::config::{self};
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::Printer;
use crate::output::Text;
use crate::output::pager;
use crate::output::printer::Manner;
use crate::output::units;

/// The surroundings of one command.
#[derive(Debug)]
pub struct Context {
    /// Flags that every command takes.
    pub global: GlobalArgs,
    /// The environment as it was at the start.
    pub environment: Environment,
    /// The user's directories.
    pub paths: Paths,
    /// The project.
    pub project: Project,
    /// Where words go.
    pub printer: Printer,
    /// When the command started.
    pub now: Timestamp,
    loaded: Result<Loaded, config::Error>,
    /// What keeps secrets out of words, once there is one.
    redactor: OnceLock<Arc<Redactor>>,
}

/// The driver's marks on a command that runs under an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderRun {
    /// The run, from `SEGNO_RUN`.
    pub run: RunId,
    /// The fencing number, from `SEGNO_EPOCH`.
    pub epoch: Option<u64>,
    /// The session of that run, from `SEGNO_SESSION`.
    pub session: Option<segno_engine::core::SessionId>,
}

impl Context {
    /// Looks around. A broken configuration is not yet an error here: some commands do not need one, and some are
    /// there to repair it.
    ///
    /// # Errors
    /// If the project that was named is not there.
    pub fn new(
        global: GlobalArgs,
        environment: Environment,
        paths: Paths,
        directory: &Path,
        now: Timestamp,
    ) -> Outcome<Self> {
        let project = match (&global.project, environment.non_empty(env::PROJECT)) {
            (Some(named), _) => Project::named(&directory.join(named))?,
            (None, Some(named)) => Project::named(&directory.join(named))?,
            (None, None) => Project::search(directory, &paths.home)?,
        };
        let loaded = config::load(&paths, &project, &environment, &flags(&global), now);
        let mut manner = manner(&global, &environment);
        if let Ok(loaded) = &loaded {
            manner.color = loaded.config.ui.color;
        }
        let printer = Printer::new(manner, &environment);
        Ok(Self { global, environment, paths, project, printer, now, loaded, redactor: OnceLock::new() })
    }

    /// From now on this keeps secrets out of what is said about errors.
    pub fn speak_through(&self, redactor: Arc<Redactor>) {
        // The first one is as good as any.
        crate::log_file::redact_with(Arc::clone(&redactor));
        let _ = self.redactor.set(redactor);
    }

    /// A text without secrets, for what changes it before it is recorded: a changed secret may not be known any more.
    pub fn redacted(&self, text: &str) -> String {
        self.redactor.get().map_or_else(|| text.to_owned(), |redactor| redactor.text(text).into_owned())
    }

    /// An error as it may be shown: others than the one who asked may read it.
    pub fn fit(&self, error: CommandError) -> CommandError {
        // Where no store was opened, there is none yet.
        let redactor = self.redactor.get_or_init(|| Arc::new(self.first_redactor()));
        error.map_words(|text| redactor.text(text).into_owned())
    }

    /// The configuration.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn config(&self) -> Outcome<&Config> {
        Ok(&self.loaded()?.config)
    }

    /// The configuration with its origins, and how the project stands.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn loaded(&self) -> Outcome<&Loaded> {
        self.loaded.as_ref().map_err(CommandError::from)
    }

    /// Reads the configuration again, after a file was changed.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn reload(&self) -> Outcome<Loaded> {
        Ok(config::load(&self.paths, &self.project, &self.environment, &flags(&self.global), self.now)?)
    }

    /// Says what there is to say about the configuration, as far as it matters to a command.
    pub fn give_notices(&self, command: &Command) {
        let matters = |topic| match command {
            // It says all this itself.
            Command::Trust(_) => topic != Topic::Untrusted,
            // These have nothing to do with settings.
            Command::Completions(_) | Command::Man(_) => topic == Topic::Problem,
            _ => true,
        };
        if let Ok(loaded) = &self.loaded {
            for notice in loaded.notices.iter().filter(|notice| matters(notice.topic)) {
                self.printer.warn_with(notice.message.as_str(), &notice.hints);
            }
        }
    }

    /// The session a command is about: its argument, `--session`, or `SEGNO_SESSION`. `None` means the command has to
    /// find the session of the project.
    ///
    /// # Errors
    /// If `SEGNO_SESSION` is not the name of a session.
    pub fn session(&self, argument: Option<&SessionRef>) -> Outcome<Option<SessionRef>> {
        if let Some(named) = argument.or(self.global.session.as_ref()) {
            return Ok(Some(named.clone()));
        }
        let Some(text) = self.environment.non_empty(env::SESSION) else { return Ok(None) };
        text.parse().map(Some).map_err(|problem: String| {
            CommandError::config("config_invalid", format!("${} is not right: {problem}", env::SESSION))
                .hint(format!("unset {}", env::SESSION))
        })
    }

    /// The run this command belongs to, if an agent under a driver started it.
    ///
    /// # Errors
    /// If `SEGNO_RUN` is not the id of a run, or `SEGNO_EPOCH` not a number.
    pub fn under_run(&self) -> Outcome<Option<UnderRun>> {
        let Some(run) = self.environment.non_empty(env::RUN) else { return Ok(None) };
        let run = run.parse().map_err(|bad: BadId| {
            CommandError::config("config_invalid", format!("${} is {bad}", env::RUN))
                .hint(format!("unset {}", env::RUN))
        })?;
        let epoch = self.environment.non_empty(env::EPOCH).map(str::parse).transpose().map_err(|_| {
            CommandError::config("config_invalid", format!("${} is not a number", env::EPOCH))
        })?;
        let session = self.environment.non_empty(env::SESSION).and_then(|id| id.parse().ok());
        Ok(Some(UnderRun { run, epoch, session }))
    }

    /// Refuses what is only for a person, or for a program of theirs, when an agent asks for it.
    ///
    /// # Errors
    /// If this process is below a run, or that cannot be told.
    pub fn refuse_below_run(&self, what: &str) -> Outcome {
        use segno_engine::run::ancestry::Below;
        use segno_engine::run::ancestry::below_run;
        let marked = self.environment.non_empty(env::RUN).is_some();
        let why = match below_run() {
            _ if marked => format!("an agent cannot {what}"),
            Below::Nobody => return Ok(()),
            Below::Run => format!("an agent cannot {what}: this was started inside a run"),
            Below::Unknown => {
                format!("cannot tell whether an agent wants to {what}: /proc does not say who started this")
            }
        };
        let error = CommandError::new(crate::exit::ExitCode::Refused, "refused_below_run", why);
        Err(error.hint("type it in a terminal of your own, outside of the run"))
    }

    /// Shows a text that may be longer than the screen, through the user's pager if there is one.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn page(&self, text: &Text) -> Outcome {
        let pager = self.loaded.as_ref().map_or("", |loaded| loaded.config.ui.pager.as_str());
        pager::show(&self.printer, &self.environment, pager, text)
    }

    /// A time from a journal as the user wants to see it.
    pub fn moment(&self, at: segno_engine::core::Timestamp) -> String {
        let text = at.to_string();
        text.parse().map_or(text, |at| self.time(at))
    }

    /// The user's time zone.
    pub fn zone(&self) -> jiff::tz::TimeZone {
        segno_engine::zones::local(self.environment.get("TZ"))
    }

    /// A time from a journal among others: the time of day, and the day where that is not today.
    pub fn clock(&self, at: segno_engine::core::Timestamp) -> String {
        let style = self.loaded.as_ref().map_or(TimeStyle::Relative, |loaded| loaded.config.ui.time);
        let (TimeStyle::Relative, Ok(at)) = (style, Timestamp::from_microsecond(at.as_micros())) else {
            return self.moment(at);
        };
        let zone = self.zone();
        let (today, at) = (self.now.to_zoned(zone.clone()).date(), at.to_zoned(zone));
        let form = if at.date() == today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
        at.strftime(form).to_string()
    }

    /// A time as the user wants to see it.
    pub fn time(&self, time: Timestamp) -> String {
        let style = self.loaded.as_ref().map_or(TimeStyle::Relative, |loaded| loaded.config.ui.time);
        match style {
            TimeStyle::Iso => format!("{time:.0}"),
            TimeStyle::Relative => {
                let seconds = self.now.as_second().saturating_sub(time.as_second());
                match units::age(std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0))) {
                    now if now == "now" => now,
                    age => format!("{age} ago"),
                }
            }
        }
    }
}

/// The manner that can be known before any file was read.
pub fn manner(global: &GlobalArgs, environment: &Environment) -> Manner {
    let named = environment.non_empty("SEGNO_COLOR");
    let choice = named.and_then(|name| <_ as clap::ValueEnum>::from_str(name, false).ok());
    Manner {
        json: global.json,
        quiet: global.quiet,
        verbose: global.verbose,
        color: global.color.or(choice).unwrap_or_default(),
    }
}

/// The settings made by global flags: key, flag, value.
fn flags(global: &GlobalArgs) -> Vec<(&'static str, &'static str, String)> {
    let mut flags = Vec::new();
    if let Some(url) = &global.store {
        flags.push(("store.url", "--store", url.clone()));
    }
    if let Some(choice) = global.color.as_ref().and_then(clap::ValueEnum::to_possible_value) {
        flags.push(("ui.color", "--color", choice.get_name().to_owned()));
    }
    flags
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
