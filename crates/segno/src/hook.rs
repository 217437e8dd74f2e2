//! `segno hook AGENT`: takes one payload of an agent's hook, records it durably, and lets the agent go on.
//!
//! It is called before and after every tool call, so it builds no command tree and reads no configuration: whoever
//! started the agent has put what it needs into one file. It never breaks the agent: whatever goes wrong, it ends
//! with 0, and a fact that the store cannot take now is kept in the spool.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use segno_engine::core::{RunId, SessionId, StoreId};
use segno_engine::hook::{HookAnswer, HookCall};
use segno_engine::redact::{self, Redactor, fingerprint};
use segno_engine::run::door::{self, Knock};
use segno_engine::store::Store as _;
use segno_engine::store::sqlite::{self, SqliteStore};
use segno_engine::{Actor, Clock as _, Engine, EngineOptions, SystemClock, fresh_key, view};
use serde::{Deserialize, Serialize};

use crate::cli::GlobalArgs;
use crate::config::env::{self, Environment};
use crate::config::{Paths, Rule};
use crate::context::Context;
use crate::desk;
use crate::exit::ExitCode;

/// The variable that names the file with what a hook needs.
pub const VARIABLE: &str = segno_engine::run::HOOK;
/// Agents give a hook ten seconds; a busy store gets less, and then the spool takes the fact.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// How long a hook waits for a checkpoint that the driver makes before a risky call, within the agents' ten seconds.
const CHECKPOINT: Duration = Duration::from_secs(7);
/// Largest payload that is read.
const LARGEST: u64 = 64 * 1024 * 1024;

/// What a hook needs, written by the driver for the hooks of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookFile {
    /// The store's file.
    pub store: PathBuf,
    /// Which store that is: another one at the same place is not written to.
    #[serde(default)]
    pub store_id: Option<StoreId>,
    /// Where facts are kept while the store cannot take them.
    pub spool: PathBuf,
    /// The key of redaction tags.
    pub tag_key: [u8; 32],
    /// Whether secrets of the environment are kept out.
    pub secrets_of_environment: bool,
    /// More rules.
    pub rules: Vec<Rule>,
    /// What the driver's own redactor knows of the environment's secrets, by fingerprint.
    #[serde(default)]
    pub known_secrets: Vec<u64>,
    /// How checkpoints before risky calls are made.
    #[serde(default)]
    pub tree: Option<segno_engine::tree::TreeOptions>,
}

impl HookFile {
    /// Whether the driver would take out everything that this hook would. An agent may have given its hooks more.
    fn driver_knows_secrets_of(&self, environment: &Environment) -> bool {
        let known = |secret: &String| self.known_secrets.contains(&fingerprint(&self.tag_key, secret));
        !self.secrets_of_environment || environment.secrets().iter().all(|(_, secret)| known(secret))
    }
}

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
    // Outside of a session that segno keeps there is nothing to record.
    let Some(session) = environment.non_empty(env::SESSION) else { return Ok(HookAnswer::default()) };
    let session: SessionId = session.parse().map_err(|_| format!("${} is no session", env::SESSION))?;
    let name = arguments.first().and_then(|name| name.to_str()).ok_or("which agent? segno hook AGENT")?;
    let agent = segno_engine::agents::by_name(name).ok_or_else(|| format!("no agent is called {name}"))?;
    let payload = match arguments.get(1) {
        // Some agents give the payload as an argument.
        Some(payload) => payload.as_encoded_bytes().to_vec(),
        None => {
            let mut payload = Vec::new();
            let read = std::io::stdin().lock().take(LARGEST).read_to_end(&mut payload);
            read.map_err(|why| format!("the payload could not be read: {why}"))?;
            payload
        }
    };
    let run = environment.non_empty(env::RUN).and_then(|run| run.parse::<RunId>().ok());
    let run = run.map(|run| run.to_string());
    let epoch = environment.non_empty(env::EPOCH).and_then(|epoch| epoch.parse().ok());
    let written = driver_file(&environment);
    let told = written.is_some();
    let file = written.map_or_else(|| configured(&environment), Ok)?;
    let key = fresh_key();
    // Without the driver's own word nobody knows which secrets it knows.
    if let Some(door) = environment.non_empty(door::DOOR).filter(|_| told)
        && payload.len() <= door::LARGEST
        && file.driver_knows_secrets_of(&environment)
    {
        let knock = Knock {
            agent: name.to_owned(),
            session,
            store: file.store_id,
            key: key.clone(),
            bytes: payload.len(),
        };
        if let Some(answer) = door::knock(Path::new(door), &knock, &payload, PATIENCE, CHECKPOINT) {
            return Ok(answer);
        }
    }
    let call = HookCall::read(agent.as_ref(), run.as_deref(), &payload, key);
    let exact = if file.secrets_of_environment { environment.secrets() } else { Vec::new() };
    let extra_rules = file.rules.iter().map(Rule::spec).collect();
    let options = redact::Options { extra_rules, exact, tag_key: file.tag_key };
    let redactor = Redactor::try_new(options).map_err(|why| why.to_string())?;
    let options = sqlite::Options { purpose: sqlite::Purpose::OneShot, create: false, busy: PATIENCE };
    let opened = SqliteStore::open(&file.store, options).map_err(|why| why.to_string()).and_then(|store| {
        let is_ours = file.store_id.is_none_or(|id| id == store.id());
        if is_ours { Ok(store) } else { Err(format!("another store is at {}", file.store.display())) }
    });
    match opened {
        Ok(store) => {
            let options = EngineOptions {
                redactor,
                actor: Actor { run, epoch, ..Actor::default() },
                view: view::Options { enabled: false, ..view::Options::default() },
                spool: Some(file.spool),
                tree: file.tree,
                ..EngineOptions::default()
            };
            Engine::new(Box::new(store), options).hear_hook(session, call).map_err(|why| why.to_string())
        }
        Err(why) => {
            let actor = Actor { run, epoch, ..Actor::default() };
            let spooled =
                call.spool(&redactor, &file.spool, SystemClock.now(), session, &actor, file.store_id);
            spooled.map_err(|failed| format!("{why}; and the spool: {failed}"))
        }
    }
}

/// What the driver wrote down.
fn driver_file(environment: &Environment) -> Option<HookFile> {
    let bytes = std::fs::read(environment.non_empty(VARIABLE)?).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// What the configuration says.
fn configured(environment: &Environment) -> Result<HookFile, String> {
    let paths = Paths::find(environment).map_err(|why| why.to_string())?;
    let directory = std::env::current_dir().map_err(|why| why.to_string())?;
    let context =
        Context::new(GlobalArgs::default(), environment.clone(), paths, &directory, Timestamp::now())
            .map_err(|why| why.to_string())?;
    desk::hook_file(&context, None).map_err(|why| why.to_string())
}
