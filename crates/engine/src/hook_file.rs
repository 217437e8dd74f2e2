//! What the hooks of a run need, and how one call of a hook is answered.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use segno_agents::Agent;
use segno_core::RunId;
use segno_core::SessionId;
use segno_core::StoreId;
use segno_core::day::DayCaps;
use segno_redact::Redactor;
use segno_redact::fingerprint;
use segno_store::Store;
use serde::Deserialize;
use serde::Serialize;

use crate::Actor;
use crate::Clock as _;
use crate::Engine;
use crate::EngineOptions;
use crate::StoreLocation;
use crate::SystemClock;
use crate::fresh_key;
use crate::hook::HookAnswer;
use crate::hook::HookCall;
use crate::hook::SpoolTarget;
use crate::redaction::Redaction;
use crate::redaction::Rule;
use crate::run::hook_server;
use crate::run::hook_server::HookRequest;
use crate::tree::TreeOptions;
use crate::view;

/// Agents give a hook ten seconds; a busy store gets less, and then the spool takes the fact.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// How long a hook waits for a checkpoint that the driver makes before a risky call, within the agents' ten seconds.
const CHECKPOINT: Duration = Duration::from_secs(7);

/// What a hook needs, written by the driver for the hooks of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookFile {
    /// Where the store is.
    pub store: StoreLocation,
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
    pub tree: Option<TreeOptions>,
    /// What all sessions of the project may use in a day.
    #[serde(default)]
    pub day: DayCaps,
}

impl HookFile {
    /// Reads one as the driver wrote it; none if it is no such file.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// As it is written for hooks.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether the driver would take out everything that this hook would. An agent may have given its hooks more.
    fn driver_knows(&self, secrets: &[(String, String)]) -> bool {
        let known = |secret: &String| self.known_secrets.contains(&fingerprint(&self.tag_key, secret));
        !self.secrets_of_environment || secrets.iter().all(|(_, secret)| known(secret))
    }
}

/// One call of a hook, with what its process was given.
pub struct HookVisit {
    /// The agent that calls.
    pub agent: Box<dyn Agent>,
    /// In which session.
    pub session: SessionId,
    /// In which run, if a driver started it.
    pub run: Option<RunId>,
    /// The driver's epoch.
    pub epoch: Option<u64>,
    /// What the agent says.
    pub payload: Vec<u8>,
    /// What a hook needs.
    pub file: HookFile,
    /// Where the driver listens. Only with a file of the driver's own: otherwise nobody knows which secrets it knows.
    pub socket: Option<PathBuf>,
    /// Names and values of the environment's variables that look like secrets.
    pub secrets: Vec<(String, String)>,
}

impl HookVisit {
    /// Records what the agent says, durably, and says what to answer: through the driver's hook server if it listens,
    /// else in the store, and if that cannot be opened, in the spool.
    ///
    /// # Errors
    /// If it could be kept nowhere.
    pub fn answer(self) -> Result<HookAnswer, String> {
        let key = fresh_key();
        if let Some(socket) = &self.socket
            && self.payload.len() <= hook_server::LARGEST
            && self.file.driver_knows(&self.secrets)
        {
            let request = HookRequest {
                agent: self.agent.name().to_owned(),
                session: self.session,
                store: self.file.store_id,
                key: key.clone(),
                bytes: self.payload.len(),
            };
            if let Some(answer) = hook_server::send(socket, &request, &self.payload, PATIENCE, CHECKPOINT) {
                return Ok(answer);
            }
        }
        let Self { agent, session, run, epoch, payload, file, secrets, .. } = self;
        let run = run.map(|run| run.to_string());
        let redactor = Arc::new(redactor(&file, secrets)?);
        let call = HookCall::read(agent.as_ref(), run.as_deref(), &payload, key, &redactor);
        let actor = Actor { run, epoch, ..Actor::default() };
        match open(&file) {
            Ok(store) => {
                let options = EngineOptions {
                    actor,
                    view: view::Options { enabled: false, ..view::Options::default() },
                    spool: Some(file.spool),
                    tree: file.tree,
                    day: file.day,
                    ..EngineOptions::new(redactor)
                };
                let engine = Engine::new(store, options);
                engine.hear_hook(session, call).map_err(|why| why.to_string())
            }
            Err(why) => {
                let at = SystemClock.now();
                let target = SpoolTarget { dir: &file.spool, store: file.store_id, begins: None };
                let spooled = call.spool(&redactor, target, at, session, &actor);
                spooled.map_err(|failed| format!("{why}; and the spool: {failed}"))
            }
        }
    }
}

fn redactor(file: &HookFile, secrets: Vec<(String, String)>) -> Result<Redactor, String> {
    let redaction = Redaction {
        rules: file.rules.clone(),
        keeps_environment: file.secrets_of_environment,
        environment: secrets,
        given: Vec::new(),
    };
    redaction.redactor(file.tag_key).map_err(|why| why.to_string())
}

fn open(file: &HookFile) -> Result<Box<dyn Store>, String> {
    let options = segno_store::OpenOptions { create: false, busy: PATIENCE, ..Default::default() };
    let store = file.store.open(options).map_err(|why| why.to_string())?;
    match file.store_id.is_none_or(|id| id == store.id()) {
        true => Ok(store),
        false => Err(format!("another store is at {}", file.store)),
    }
}
