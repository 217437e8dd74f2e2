//! Whether the hooks in settings do what they are there for.

use std::path::Path;
use std::path::PathBuf;

use segno_agents::watching::Runs;
use segno_agents::watching::Standing;
use segno_agents::watching::Watching;
use segno_files::Links;
use serde::Serialize;

use super::InstallError;
use super::Installer;
use super::LARGEST;
use super::Scope;
use super::watching;

/// The hooks of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// The agent.
    pub agent: String,
    /// The file that they stand in.
    pub settings: PathBuf,
    /// `installed`, or what is wrong.
    pub problems: Vec<String>,
}

impl Installer {
    /// What there is to say about hooks, for each agent that has some; the second installer is that of the project.
    pub fn health(&self, project: &Self) -> Vec<Health> {
        segno_agents::CODING.iter().filter_map(|agent| self.health_of(agent, project)).collect()
    }

    fn health_of(&self, agent: &str, project: &Self) -> Option<Health> {
        let (own, theirs) = (self.standing(agent), project.standing(agent));
        let is_there = |found: &Result<(PathBuf, Standing), InstallError>| {
            matches!(found, Ok((_, Standing::Complete | Standing::Changed(_))))
        };
        let was_there = self.settings_path(agent).is_ok_and(|path| self.is_noted(agent, &path));
        if !is_there(&own) && !is_there(&theirs) && !was_there {
            return None;
        }
        let (here, found) =
            if is_there(&own) || !is_there(&theirs) { (self, &own) } else { (project, &theirs) };
        let mut problems = Vec::new();
        let settings = match found {
            Ok((path, standing)) => {
                match standing {
                    Standing::Complete => {}
                    Standing::Missing => problems
                        .push("they were taken out by somebody else; segno init puts them back".to_owned()),
                    Standing::Changed(events) => {
                        problems.push(format!(
                            "missing or different: {}; segno init mends them",
                            events.join(", ")
                        ));
                    }
                }
                path.clone()
            }
            Err(why) => {
                problems.push(why.to_string());
                here.settings_path(agent).ok()?
            }
        };
        if is_there(&own) && is_there(&theirs) {
            let other = project.settings_path(agent).unwrap_or_default();
            problems.push(format!(
                "they are in {} too, and run twice; segno uninit --project DIR",
                other.display()
            ));
        }
        problems.extend(here.kept_from_running(agent, &settings));
        Some(Health { agent: agent.to_owned(), settings, problems })
    }

    fn is_noted(&self, agent: &str, path: &Path) -> bool {
        let target = self.target(path).unwrap_or_else(|_| path.to_owned());
        super::record::path(&self.state, agent, &target).exists()
    }

    /// What keeps an agent from running hooks that are there.
    fn kept_from_running(&self, agent: &str, settings: &Path) -> Option<String> {
        let watching = watching(agent).ok()?;
        match watching.runs {
            Runs::Always => None,
            Runs::Unless(key) => {
                let text = self.read(settings).ok()??;
                let off = segno_agents::watching::is_true(&text, &[key]);
                off.then(|| format!("switched off: {key} is set in the same file"))
            }
            Runs::Trusted { config, how } => self.distrusted(&watching, settings, config, how),
        }
    }

    /// Such an agent runs no hook that a person has not looked at, and notes in its own configuration which were.
    fn distrusted(&self, watching: &Watching, settings: &Path, config: &str, how: &str) -> Option<String> {
        let user = Self { scope: Scope::User, ..self.clone() };
        let path = user.folder(watching).ok()?.join(config);
        let bytes = segno_files::read_bounded(&path, LARGEST, Links::Follow).ok().flatten();
        let text = String::from_utf8(bytes.unwrap_or_default()).ok()?;
        let noted: toml::Table = toml::from_str(&text).ok()?;
        let hooks = noted.get("hooks").and_then(toml::Value::as_table);
        if noted.get("features").and_then(|features| features.get("hooks")).and_then(toml::Value::as_bool)
            == Some(false)
        {
            return Some(format!("switched off: features.hooks is false in its {config}"));
        }
        let state = hooks.and_then(|hooks| hooks.get("state")).and_then(toml::Value::as_table);
        let file = settings.to_string_lossy();
        let is_trusted = state.is_some_and(|state| {
            state
                .iter()
                .any(|(key, entry)| key.contains(file.as_ref()) && entry.get("trusted_hash").is_some())
        });
        (!is_trusted).then(|| format!("installed, not yet trusted: {how} and look at them once"))
    }
}
