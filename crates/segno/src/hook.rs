//! `segno hook AGENT`: takes one payload of an agent's hook and prints what the engine answers.
//!
//! It is called before and after every tool call, so it builds no command tree and reads no configuration: whoever
//! started the agent has put what it needs into one file. It never breaks the agent: whatever goes wrong, it ends
//! with 0, and a fact that the store cannot take now is kept in the spool.

use std::ffi::OsString;
use std::io::Read as _;
use std::io::Write as _;
use std::path::PathBuf;

use jiff::Timestamp;
use segno_engine::core::RunId;
use segno_engine::core::SessionId;
use segno_engine::hook::HookAnswer;
use segno_engine::hook_file::HookFile;
use segno_engine::hook_file::HookVisit;
use segno_engine::run::hook_server;
use segno_engine::watch;

use crate::cli::GlobalArgs;
use crate::config::Paths;
use crate::config::env::Environment;
use crate::config::env::{self};
use crate::context::Context;
use crate::exit::ExitCode;

/// The variable that names the file with what a hook needs.
pub const VARIABLE: &str = segno_engine::run::HOOK;
/// Largest payload that is read.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Runs `segno hook` with the arguments after those two words.
pub fn run(arguments: &[OsString]) -> ExitCode {
    match attempt(arguments) {
        Ok(answer) => {
            if let Some(text) = answer.print {
                let mut out = std::io::stdout().lock();
                // An agent that does not listen any more gets no answer.
                let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            }
        }
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "segno hook: {why}");
        }
    }
    ExitCode::Ok
}

fn attempt(arguments: &[OsString]) -> Result<HookAnswer, String> {
    let environment = Environment::capture();
    if arguments.first().is_some_and(|word| word == "--watch") {
        return watch(&environment, &arguments[1..]);
    }
    if let Ok(paths) = Paths::find(&environment) {
        crate::log_file::start(&environment, &paths.state, 0);
    }
    // Outside of a session that segno keeps there is nothing to record.
    let Some(session) = environment.non_empty(env::SESSION) else { return Ok(HookAnswer::default()) };
    let session: SessionId = session.parse().map_err(|_| format!("${} is no session", env::SESSION))?;
    let name = arguments.first().and_then(|name| name.to_str()).ok_or("which agent? segno hook AGENT")?;
    let agent = segno_engine::agents::by_name(name).ok_or_else(|| format!("no agent is called {name}"))?;
    let payload = payload(arguments)?;
    let (file, socket) = match driver_file(&environment) {
        Some(file) => (file, environment.non_empty(hook_server::VARIABLE).map(PathBuf::from)),
        None => (configured(&environment)?, None),
    };
    let visit = HookVisit {
        agent,
        session,
        run: environment.non_empty(env::RUN).and_then(|run| run.parse::<RunId>().ok()),
        epoch: environment.non_empty(env::EPOCH).and_then(|epoch| epoch.parse().ok()),
        payload,
        file,
        socket,
        secrets: environment.secrets(),
    };
    visit.answer()
}

/// A hook that stands in the agent's own settings. In a run that has a driver it says nothing: the driver gave that run
/// hooks of its own, or reads its output.
fn watch(environment: &Environment, arguments: &[OsString]) -> Result<HookAnswer, String> {
    if environment.non_empty(env::RUN).is_some() {
        return Ok(HookAnswer::default());
    }
    if environment.non_empty(env::SESSION).is_some() {
        return attempt(arguments);
    }
    let paths = Paths::find(environment).map_err(|why| why.to_string())?;
    crate::log_file::start(environment, &paths.state, 0);
    let name =
        arguments.first().and_then(|name| name.to_str()).ok_or("which agent? segno hook --watch AGENT")?;
    let agent = segno_engine::agents::by_name(name).ok_or_else(|| format!("no agent is called {name}"))?;
    let payload = payload(arguments)?;
    let caller = watch::caller();
    // Some agents hide the environment from their hooks.
    if caller.is_some_and(watch::is_driven) {
        return Ok(HookAnswer::default());
    }
    let report = agent.hook(&payload).map_err(|why| why.to_string())?;
    drop(payload);
    let directory = match report.cwd.as_deref().map(PathBuf::from).filter(|cwd| cwd.is_absolute()) {
        Some(cwd) => cwd,
        None => std::env::current_dir().map_err(|why| why.to_string())?,
    };
    let context =
        Context::new(GlobalArgs::default(), environment.clone(), paths, &directory, Timestamp::now())
            .map_err(|why| why.to_string())?;
    let visit = context.watch_visit(agent, report, directory, caller);
    visit.map_err(|why| why.to_string())?.answer()
}

fn payload(arguments: &[OsString]) -> Result<Vec<u8>, String> {
    match arguments.get(1) {
        // Some agents give the payload as an argument.
        Some(payload) => Ok(payload.as_encoded_bytes().to_vec()),
        None => {
            let mut payload = Vec::new();
            let read = std::io::stdin().lock().take(LARGEST).read_to_end(&mut payload);
            read.map_err(|why| format!("the payload could not be read: {why}"))?;
            Ok(payload)
        }
    }
}

/// What the driver wrote down.
fn driver_file(environment: &Environment) -> Option<HookFile> {
    HookFile::parse(&std::fs::read(environment.non_empty(VARIABLE)?).ok()?)
}

/// What the configuration says.
fn configured(environment: &Environment) -> Result<HookFile, String> {
    let paths = Paths::find(environment).map_err(|why| why.to_string())?;
    let directory = std::env::current_dir().map_err(|why| why.to_string())?;
    let context =
        Context::new(GlobalArgs::default(), environment.clone(), paths, &directory, Timestamp::now())
            .map_err(|why| why.to_string())?;
    context.setup().map(|setup| setup.hook_file(None)).map_err(|why| why.to_string())
}
