//! Hooks in an agent's own settings, for sessions that a person starts by hand: where the settings are, what is put into
//! them, and how it is found and taken out again. Everything is a text that comes in and a text that goes out.

mod edit;
mod jsonc;

use std::ops::Range;

use serde_json::Value;
use thiserror::Error;

use edit::Edited;
use jsonc::Kind;
use jsonc::Node;

/// What marks a hook as ours, before the agent's name.
pub const MARK: &str = "hook --watch";
/// The name of the plug-in's file.
pub const PLUGIN: &str = "segno-watch.js";

/// Where an agent reads settings, and what stands for hooks in them.
#[derive(Debug, Clone, Copy)]
pub struct Watching {
    /// The variable that says where the person's settings are.
    pub variable: &'static str,
    /// Where below that the folder is; empty if the variable names it.
    pub below_variable: &'static str,
    /// The folder below the home directory, without the variable.
    pub home: &'static str,
    /// The files in the folder that may hold the settings: the first that is there, else the first.
    pub files: &'static [&'static str],
    /// The same for a project, below its root.
    pub project_files: &'static [&'static str],
    /// What is put in.
    pub form: Form,
    /// What else has to be so that they run.
    pub runs: Runs,
}

/// When an agent runs the hooks in its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// Always.
    Always,
    /// Unless this is true in the same file.
    Unless(&'static str),
    /// Once the person has looked at them, and has not switched them off. Both is noted in another file of the folder.
    Trusted {
        /// That file, a TOML one.
        config: &'static str,
        /// What the person does to look at them.
        how: &'static str,
    },
}

/// What is put into settings.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// Commands by event; the function makes the settings from one line for a shell.
    Hooks(fn(&str) -> Value),
    /// The name of a plug-in's file.
    Plugin,
}

impl Watching {
    /// The folder of the person's settings. None without a home.
    pub fn folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let given = variable(self.variable).map(|given| match self.below_variable {
            "" => given,
            below => format!("{given}/{below}"),
        });
        given.or_else(|| Some(format!("{}/{}", variable("HOME")?, self.home)))
    }
}

/// What shall stand in a file of settings.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// For each event its entry, and the agent's name.
    Hooks {
        /// Whose hooks they are.
        agent: String,
        /// Events and their entries, in order.
        events: Vec<(String, Value)>,
    },
    /// A plug-in, by its address.
    Plugin(String),
}

impl Wanted {
    /// The hooks of an agent that run one line of a shell.
    pub fn hooks(agent: &str, make: fn(&str) -> Value, line: &str) -> Self {
        let events = match make(line)["hooks"].take() {
            Value::Object(events) => events.into_iter().map(|(event, entries)| (event, entries[0].clone())),
            _ => return Self::Hooks { agent: agent.to_owned(), events: Vec::new() },
        };
        Self::Hooks { agent: agent.to_owned(), events: events.collect() }
    }

    /// The lists that something is put into, from the root on, and what.
    fn places(&self) -> Vec<(Vec<&str>, Value)> {
        match self {
            Self::Hooks { events, .. } => {
                events.iter().map(|(event, entry)| (vec!["hooks", event.as_str()], entry.clone())).collect()
            }
            Self::Plugin(url) => vec![(vec!["plugin"], Value::from(url.as_str()))],
        }
    }

    /// Whether an entry of a list is ours, of whatever version.
    fn is_ours(&self, entry: &Value) -> bool {
        match self {
            Self::Hooks { agent, .. } => match entry["hooks"].as_array() {
                Some(hooks) => hooks.iter().any(|hook| is_our_hook(hook, agent)),
                None => is_our_hook(entry, agent),
            },
            Self::Plugin(_) => entry.as_str().is_some_and(|url| url.ends_with(&format!("/{PLUGIN}"))),
        }
    }
}

fn is_our_hook(hook: &Value, agent: &str) -> bool {
    let command = hook["command"].as_str().unwrap_or_default();
    command.split(&format!("{MARK} {agent}")).skip(1).any(|rest| {
        // Another agent's name may begin like this one.
        !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-')
    })
}

/// Why a file of settings is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// It is no JSON, not even with comments.
    #[error("it cannot be read: {0}")]
    Broken(String),
    /// Something else stands where ours should.
    #[error("{0}")]
    Unexpected(String),
}

/// A file of settings with our hooks in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The whole text.
    pub text: String,
    /// Where in it ours stands, in order.
    pub ranges: Vec<Range<usize>>,
    /// The lists and objects that were made for it, such as `hooks` and `hooks.Stop`.
    pub made: Vec<String>,
}

/// What a file of settings has of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Missing,
    /// All of it, as it should be.
    Complete,
    /// Something else than it should: these are missing or different.
    Changed(Vec<String>),
}

/// What the settings have of ours.
///
/// # Errors
/// If they cannot be read.
pub fn standing(text: &str, wanted: &Wanted) -> Result<Standing, SettingsError> {
    if text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty() {
        return Ok(Standing::Missing);
    }
    let root = parse(text)?;
    let (mut found, mut wrong) = (false, Vec::new());
    for (path, entry) in wanted.places() {
        let list = find(&root, &path).map(|node| node.value(text));
        let entries = list.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let ours: Vec<&Value> = entries.iter().filter(|entry| wanted.is_ours(entry)).collect();
        found |= !ours.is_empty();
        if ours != [&entry] {
            wrong.push(path.last().copied().unwrap_or_default().to_owned());
        }
    }
    Ok(match (found, wrong.is_empty()) {
        (_, true) => Standing::Complete,
        (false, false) => Standing::Missing,
        (true, false) => Standing::Changed(wrong),
    })
}

/// The settings with ours put in. The text must have nothing of ours yet; an empty one becomes a whole file.
///
/// # Errors
/// If they cannot be read, or something else stands where ours should.
pub fn put_in(text: &str, wanted: &Wanted) -> Result<Installed, SettingsError> {
    if text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty() {
        let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut whole = put_in("{}", wanted)?;
        whole.text = format!("{text}{}{line}", whole.text.replace('\n', line));
        let all = text.len()..whole.text.len();
        whole.ranges = vec![all];
        return Ok(whole);
    }
    let mut edited = Edited::new(text);
    let mut made = Vec::new();
    for (path, entry) in wanted.places() {
        let root = parse(&edited.text)?;
        if !matches!(root.kind, Kind::Object(_)) {
            return Err(SettingsError::Unexpected("it holds no object of settings".to_owned()));
        }
        let missing = path.iter().enumerate().find_map(|(depth, _)| match find(&root, &path[..=depth]) {
            None => Some(depth),
            Some(_) => None,
        });
        let depth = missing.unwrap_or(path.len());
        let at = find(&root, &path[..depth]).unwrap_or(&root);
        check(at, &path[..depth], depth == path.len())?;
        match missing {
            None => edited.append(at, None, &entry),
            Some(depth) => {
                // The list is made with its entry in it, and so are the objects around it.
                let inner = path[depth + 1..].iter().rev().fold(Value::from(vec![entry]), |value, key| {
                    Value::Object(std::iter::once(((*key).to_owned(), value)).collect())
                });
                made.extend((depth..path.len()).map(|end| path[..=end].join(".")));
                edited.append(at, Some(path[depth]), &inner);
            }
        }
    }
    let Edited { text, ranges } = edited;
    Ok(Installed { text, ranges, made })
}

/// The text as it was before ours was put in, if nobody changed it since.
pub fn undo(text: &str, ranges: &[Range<usize>]) -> Option<String> {
    edit::without(text, ranges)
}

/// The settings without anything of ours, whoever changed them since. Lists and objects that are empty then go too if they
/// were made for ours; without a list of those, all of them.
///
/// # Errors
/// If they cannot be read.
pub fn take_out(text: &str, wanted: &Wanted, made: Option<&[String]>) -> Result<String, SettingsError> {
    let mut text = text.to_owned();
    if standing(&text, wanted)? == Standing::Missing {
        return Ok(text);
    }
    for (path, _) in wanted.places() {
        while let Some(shorter) = take_out_one(&text, wanted, &path)? {
            text = shorter;
        }
        for depth in (0..path.len()).rev() {
            let root = parse(&text)?;
            let name = path[..=depth].join(".");
            let is_ours = made.is_none_or(|made| made.contains(&name));
            let (Some(parent), Some(node)) = (find(&root, &path[..depth]), find(&root, &path[..=depth]))
            else {
                continue;
            };
            let inside = text.get(node.start + 1..node.end.saturating_sub(1)).unwrap_or_default();
            let is_empty = node.kind != Kind::Plain && inside.trim().is_empty();
            if let (true, true, Some(index)) = (is_ours, is_empty, index_of(parent, path[depth])) {
                text = edit::remove_child(&text, parent, index);
            }
        }
    }
    Ok(text)
}

/// Whether a setting is there and true.
pub fn is_true(text: &str, path: &[&str]) -> bool {
    let node = parse(text).ok();
    node.as_ref().and_then(|root| find(root, path)).is_some_and(|node| node.value(text) == Value::Bool(true))
}

fn take_out_one(text: &str, wanted: &Wanted, path: &[&str]) -> Result<Option<String>, SettingsError> {
    let root = parse(text)?;
    let Some(list) = find(&root, path) else { return Ok(None) };
    let Kind::Array(entries) = &list.kind else { return Ok(None) };
    let Some(index) = entries.iter().position(|entry| wanted.is_ours(&entry.value(text))) else {
        return Ok(None);
    };
    let entry = &entries[index];
    // Somebody may have put a hook of their own beside ours.
    if let (Wanted::Hooks { agent, .. }, Some(hooks)) = (wanted, entry.member("hooks"))
        && let Kind::Array(hooks_in) = &hooks.value.kind
        && hooks_in.len() > 1
        && let Some(ours) = hooks_in.iter().position(|hook| is_our_hook(&hook.value(text), agent))
    {
        return Ok(Some(edit::remove_child(text, &hooks.value, ours)));
    }
    Ok(Some(edit::remove_child(text, list, index)))
}

fn parse(text: &str) -> Result<Node, SettingsError> {
    jsonc::parse(text).map_err(SettingsError::Broken)
}

fn find<'a>(root: &'a Node, path: &[&str]) -> Option<&'a Node> {
    path.iter().try_fold(root, |node, key| node.member(key).map(|member| &member.value))
}

fn index_of(parent: &Node, key: &str) -> Option<usize> {
    match &parent.kind {
        Kind::Object(members) => members.iter().rposition(|member| member.key == key),
        Kind::Array(_) | Kind::Plain => None,
    }
}

fn check(node: &Node, path: &[&str], is_list: bool) -> Result<(), SettingsError> {
    let fits = match &node.kind {
        Kind::Object(_) => !is_list,
        Kind::Array(_) => is_list,
        Kind::Plain => false,
    };
    let kind = if is_list { "list" } else { "object" };
    let wrong = || SettingsError::Unexpected(format!("`{}` is no {kind}", path.join(".")));
    if fits { Ok(()) } else { Err(wrong()) }
}

#[cfg(test)]
#[path = "watching_tests.rs"]
mod tests;
