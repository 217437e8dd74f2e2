//! Whether the hooks in settings do what they are there for.

use std::path::Path;
use std::path::PathBuf;

use segno_agents::watching::Form;
use segno_agents::watching::MARK;
use segno_agents::watching::Plugins;
use segno_agents::watching::Runs;
use segno_agents::watching::Standing;
use segno_agents::watching::Watching;
use serde::Serialize;
use serde_json::Value;

use super::InstallError;
use super::Installer;
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
                            "missing or different: {}; segno init repairs them",
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
        problems.extend(here.plugin_problem(agent));
        problems.extend(here.kept_from_running(agent, &settings, project));
        problems.extend(here.plugin_too(agent));
        Some(Health { agent: agent.to_owned(), settings, problems })
    }

    fn is_noted(&self, agent: &str, path: &Path) -> bool {
        let target = self.target(path).unwrap_or_else(|_| path.to_owned());
        super::record::path(&self.state, agent, &target).exists()
    }

    /// Settings may name a plug-in that is not there any more.
    fn plugin_problem(&self, agent: &str) -> Option<String> {
        if !matches!(watching(agent).ok()?.form, Form::Plugin) {
            return None;
        }
        let path = self.plugin_path();
        let user = Self { scope: Scope::User, ..self.clone() };
        let what = match user.read(&path) {
            Ok(Some(text)) if text == self.plugin_text(agent) => return None,
            Ok(Some(_)) => "was changed, or is of another version".to_owned(),
            Ok(None) => "is not there, and nothing is recorded".to_owned(),
            Err(why) => format!("cannot be read ({why})"),
        };
        Some(format!("its plug-in {} {what}; segno init repairs it", path.display()))
    }

    /// What keeps an agent from running hooks that are there.
    fn kept_from_running(&self, agent: &str, settings: &Path, project: &Self) -> Option<String> {
        let watching = watching(agent).ok()?;
        let own = project.settings_path(agent).ok()?;
        // What is a project's may be in a file that its person alone has, too.
        let files = [settings.to_owned(), own.clone(), own.with_extension("local.json")];
        match watching.runs {
            Runs::Always => None,
            Runs::Unless(key) => {
                let off = files.iter().find(|file| self.setting(file, &[key]) == Some(Value::Bool(true)))?;
                Some(format!("switched off: {key} is set in {}", off.display()))
            }
            Runs::Configured(object) => {
                let is_off =
                    |file: &&PathBuf| self.setting(file, &[object, "enabled"]) == Some(Value::Bool(false));
                if let Some(off) = files.iter().find(is_off) {
                    return Some(format!("switched off: {object}.enabled is false in {}", off.display()));
                }
                let lists = |file: &&PathBuf| match self.setting(file, &[object, "disabled"]) {
                    Some(Value::Array(names)) => {
                        names.iter().filter_map(Value::as_str).any(|name| name.contains(MARK))
                    }
                    _ => false,
                };
                let off = files.iter().find(lists)?;
                Some(format!("switched off: they are among {object}.disabled in {}", off.display()))
            }
            Runs::Trusted { config, how } => self.distrusted(agent, &watching, settings, config, how),
        }
    }

    /// One setting of a file, whosever it is.
    fn setting(&self, file: &Path, path: &[&str]) -> Option<Value> {
        let user = Self { scope: Scope::User, ..self.clone() };
        segno_agents::watching::setting(&user.read(file).ok()??, path)
    }

    /// A plug-in of ours that the vendor installed tells everything once more.
    fn plugin_too(&self, agent: &str) -> Option<String> {
        let user = Self { scope: Scope::User, ..self.clone() };
        let watching = watching(agent).ok()?;
        let folder = user.folder(&watching).ok()?;
        let is_on = match watching.plugins {
            Plugins::None => false,
            Plugins::Settings(object) => match self.setting(&user.settings_path(agent).ok()?, &[object]) {
                Some(Value::Object(all)) => {
                    all.iter().any(|(name, on)| is_ours(name) && *on == Value::Bool(true))
                }
                _ => false,
            },
            Plugins::Toml(file, table) => {
                let text = user.read(&folder.join(file)).ok().flatten().unwrap_or_default();
                let config: toml::Table = toml::from_str(&text).unwrap_or_default();
                let is_off =
                    |entry: &toml::Value| entry.get("enabled").and_then(toml::Value::as_bool) == Some(false);
                let plugins = config.get(table).and_then(toml::Value::as_table);
                plugins.is_some_and(|all| all.iter().any(|(name, entry)| is_ours(name) && !is_off(entry)))
            }
            Plugins::Folder(path) => folder.join(path).exists(),
        };
        is_on.then(|| {
            format!("a plug-in of segno is installed too, and everything is told twice; segno uninit {agent}, or remove the plug-in")
        })
    }

    /// Such an agent runs no hook that a person has not looked at, and notes in its own configuration which were.
    fn distrusted(
        &self,
        agent: &str,
        watching: &Watching,
        settings: &Path,
        config: &str,
        how: &str,
    ) -> Option<String> {
        let user = Self { scope: Scope::User, ..self.clone() };
        let path = user.folder(watching).ok()?.join(config);
        let unknown =
            |why: String| Some(format!("whether they are trusted is not known: its {config} {why}"));
        let text = match user.read(&path) {
            Ok(text) => text.unwrap_or_default(),
            Err(why) => return unknown(format!("cannot be read ({why})")),
        };
        let noted = match toml::from_str::<toml::Table>(text.trim_start_matches('\u{feff}')) {
            Ok(noted) => noted,
            Err(why) => return unknown(format!("is no TOML ({})", why.message())),
        };
        let hooks = noted.get("hooks").and_then(toml::Value::as_table);
        if noted.get("features").and_then(|features| features.get("hooks")).and_then(toml::Value::as_bool)
            == Some(false)
        {
            return Some(format!("switched off: features.hooks is false in its {config}"));
        }
        let state = hooks.and_then(|hooks| hooks.get("state")).and_then(toml::Value::as_table);
        // An entry names the file, the event and which hook of it is meant. What its hash is taken of only the agent knows.
        let file = settings.to_string_lossy();
        let entries = |event: &str| {
            let of_event = format!("{file}:{}:", snake_case(event));
            state
                .into_iter()
                .flatten()
                .filter(move |(key, _)| key.contains(&of_event))
                .map(|(_, entry)| entry)
        };
        let mut events = self.hooks(agent).ok()?.events();
        let all = events.len();
        if let Some(off) = events.iter().find(|event| {
            entries(event).any(|entry| entry.get("enabled").and_then(toml::Value::as_bool) == Some(false))
        }) {
            return Some(format!("switched off: its {config} has one of {off} that is not enabled"));
        }
        events.retain(|event| !entries(event).any(|entry| entry.get("trusted_hash").is_some()));
        match events.len() {
            0 => None,
            left if left == all => Some(format!("installed, not yet trusted: {how} and look at them once")),
            _ => Some(format!("not yet trusted: {}; {how} and look at them once", events.join(", "))),
        }
    }
}

/// `PreToolUse` as `pre_tool_use`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Whether a plug-in, by its name and its marketplace, is ours.
fn is_ours(name: &str) -> bool {
    name == "segno" || name.starts_with("segno@")
}
