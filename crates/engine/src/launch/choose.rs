//! Which agent is meant, and whether its program is there.

use std::ffi::OsString;
use std::path::PathBuf;

use segno_agents::Agent;
use segno_agents::plain::Plain;
use segno_agents::plain::PlainConfig;
use segno_agents::plain::PromptVia;

use super::AgentSettings;
use super::LaunchSettings;
use crate::Error;
use crate::run::find_program;

/// Who shall work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The agent that the settings name.
    Usual,
    /// The agent of this name; `auto` is the first one that is installed.
    Named(String),
    /// A command as it was typed.
    Command {
        /// The words.
        words: Vec<String>,
        /// Whether it is given a prompt.
        prompted: bool,
    },
}

/// An agent whose program is there.
pub struct Chosen {
    /// What knows it.
    pub agent: Box<dyn Agent>,
    /// Its settings.
    pub settings: AgentSettings,
    /// Its description, for one that segno does not know by itself.
    pub plain: Option<PlainConfig>,
    /// The environment it inherits.
    pub environment: Vec<(OsString, OsString)>,
    /// Its program.
    pub program: PathBuf,
}

impl LaunchSettings {
    /// Finds the agent and its program, before anything is done for it.
    ///
    /// # Errors
    /// If no such agent is known, or it is not installed.
    pub fn choose(&self, who: &Who) -> Result<Chosen, Error> {
        let (name, agent, settings) = self.known(who)?;
        let environment = self.environment_of(&settings);
        let program = find(&name, agent.as_ref(), &settings, &environment)?;
        let plain = settings.plain.clone();
        Ok(Chosen { agent, settings, plain, environment, program })
    }

    /// What somebody has to know who wants a model of an agent that cannot be told which; nothing if it can.
    ///
    /// # Errors
    /// If no such agent is known.
    pub fn ignored_model(&self, who: &Who, model: &str) -> Result<Option<String>, Error> {
        let (name, _, settings) = self.known(who)?;
        let ignores = settings.plain.is_some_and(|plain| plain.model.is_empty());
        Ok(ignores.then(|| {
            format!(
                "{name} is not told to use {model}: its description, [agents.{name}], has no `model`, the arguments \
                 that choose one"
            )
        }))
    }

    /// The agent with the name by which people know it.
    fn known(&self, who: &Who) -> Result<(String, Box<dyn Agent>, AgentSettings), Error> {
        let name = match who {
            Who::Usual => &self.agent,
            Who::Named(name) => name,
            Who::Command { words, prompted } => {
                // A command as typed gets a prompt only if there is one.
                let prompt = if *prompted { PromptVia::Stdin } else { PromptVia::None };
                let plain = PlainConfig { command: words.clone(), prompt, ..PlainConfig::default() };
                let agent = Box::new(Plain::new(plain.clone()));
                let name = words.first().cloned().unwrap_or_default();
                return Ok((name, agent, AgentSettings { plain: Some(plain), ..AgentSettings::default() }));
            }
        };
        let found;
        let name = if name == "auto" {
            found = self.first_installed()?;
            &found
        } else {
            name
        };
        let settings = self.agents.get(name).cloned().unwrap_or_default();
        if let Some(plain) = settings.plain.clone() {
            return Ok((name.clone(), Box::new(Plain::new(plain)), settings));
        }
        match segno_agents::by_name(name).filter(|_| segno_agents::CODING.contains(&name.as_str())) {
            Some(agent) => Ok((name.clone(), agent, settings)),
            None => {
                // The settings may have words for one that is known anyway.
                let coding = || segno_agents::CODING.iter();
                let own = self.agents.keys().filter(|own| coding().all(|name| name != own));
                let known = coding().map(|name| (*name).to_owned()).chain(own.cloned()).collect();
                Err(Error::UnknownAgent { name: name.clone(), known })
            }
        }
    }

    /// The first agent that is there, in the order in which segno knows them, then those of the settings.
    fn first_installed(&self) -> Result<String, Error> {
        let coding = segno_agents::CODING.iter().map(|name| (*name).to_owned());
        let mut tried = Vec::new();
        for name in coding.chain(self.agents.keys().cloned()) {
            let own = self.agents.get(&name).cloned().unwrap_or_default();
            let agent: Box<dyn Agent> = match (&own.plain, segno_agents::by_name(&name)) {
                (Some(plain), _) => Box::new(Plain::new(plain.clone())),
                (None, Some(agent)) => agent,
                (None, None) => continue,
            };
            if find(&name, agent.as_ref(), &own, &self.environment_of(&own)).is_ok() {
                return Ok(name);
            }
            tried.push(name);
        }
        Err(Error::NoAgentInstalled { tried })
    }

    /// A variable that an agent gets, if it is set.
    pub(crate) fn variable_of(&self, agent: &str, name: &str) -> Option<String> {
        let settings = self.agents.get(agent).cloned().unwrap_or_default();
        let found = self.environment_of(&settings).into_iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
    }

    fn environment_of(&self, settings: &AgentSettings) -> Vec<(OsString, OsString)> {
        let mut environment = self.environment.clone();
        let extra = &settings.common.env;
        environment.retain(|(name, _)| name.to_str().is_none_or(|name| !extra.contains_key(name)));
        environment.extend(extra.iter().map(|(name, value)| (name.into(), value.into())));
        environment
    }
}

/// The program, or how to get it.
fn find(
    name: &str,
    agent: &dyn Agent,
    settings: &AgentSettings,
    environment: &[(OsString, OsString)],
) -> Result<PathBuf, Error> {
    let probe = agent.probe();
    let own = &settings.common.program;
    let names = if own.is_empty() { probe.programs } else { vec![own.clone()] };
    let found = names.iter().find_map(|name| find_program(name, environment));
    found.ok_or_else(|| Error::NotInstalled {
        agent: name.to_owned(),
        programs: names,
        how: probe.install_hint,
    })
}
