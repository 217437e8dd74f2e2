//! How agents are run, as settings say it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use segno_agents::plain::PlainConfig;
use segno_core::CostBudget;
use segno_core::TokenBudget;
use serde::Deserialize;

use crate::hook_file::HookFile;
use crate::run::resources::Resources;

/// One agent's settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSettings {
    /// The settings that every agent has.
    pub common: Common,
    /// The description of a command that segno does not know by itself.
    pub plain: Option<PlainConfig>,
}

/// The settings that every agent has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Common {
    /// The program instead of the one that is looked up.
    pub program: String,
    /// The model.
    pub model: String,
    /// More arguments.
    pub extra_args: Vec<String>,
    /// More variables.
    pub env: BTreeMap<String, String>,
    /// A cap on turns; 0 is none.
    pub max_turns: u32,
    /// A cap on dollars in one run; 0 is none.
    pub max_cost_usd: f64,
    /// Seconds without a sign of life; absent is what the settings for all say.
    pub silence_seconds: Option<u64>,
}

impl LaunchSettings {
    /// The same for runs whose driver waits for limits: agents do not wait for them too.
    pub(crate) fn without_own_waiting(&self) -> Self {
        let own = segno_agents::own_waiting_variables();
        let mut settings = self.clone();
        settings.environment.retain(|(name, _)| own.iter().all(|own| name != own));
        for agent in settings.agents.values_mut() {
            agent.common.env.retain(|name, _| !own.contains(&name.as_str()));
        }
        settings
    }
}

/// What every run is given unless somebody says otherwise.
#[derive(Clone, Debug)]
pub struct LaunchSettings {
    /// The agent: a name, or `auto` for the first one that is installed.
    pub agent: String,
    /// The settings of each agent that has any.
    pub agents: BTreeMap<String, AgentSettings>,
    /// The environment that agents inherit.
    pub environment: Vec<(OsString, OsString)>,
    /// The project that new sessions are made in.
    pub project: PathBuf,
    /// What a new session may use.
    pub budget: TokenBudget,
    /// What a new session may cost.
    pub cost: CostBudget,
    /// A cap on turns; 0 is none.
    pub max_turns: u32,
    /// Seconds without a sign of life; 0 is never.
    pub silence_seconds: u64,
    /// Seconds altogether; 0 is no end.
    pub wall_seconds: u64,
    /// How long each step of stopping waits.
    pub grace: Duration,
    /// What the processes of a run may use.
    pub resources: Resources,
    /// Whether agents report their calls before they run.
    pub hooks: bool,
    /// What hooks need to know.
    pub hook_file: Option<HookFile>,
    /// The program that agents call as their hook, with `hook` and their name behind it.
    pub hook_program: PathBuf,
    /// The program that keeps what agents print, with its arguments; see [`Request`](crate::run::Request). Called with
    /// [`GUARD`](crate::run::GUARD) instead, it ends what outlives a process that was killed.
    pub capture_command: Vec<OsString>,
    /// Whether this process does nothing but drive one run.
    pub sole_process: bool,
    /// Where sockets and scratch files may be.
    pub scratch: Option<PathBuf>,
    /// Where versions of programs are remembered.
    pub state: PathBuf,
}
impl LaunchSettings {
    /// The program that guards the commands of a loop; empty if there is none.
    pub(crate) fn guard(&self) -> Vec<OsString> {
        self.capture_command
            .first()
            .map(|program| vec![program.clone(), crate::run::GUARD.into()])
            .unwrap_or_default()
    }
}
