//! Hooks in an agent's own settings, for sessions that a person starts by hand: where the settings are, what is put into
//! them, and how it is found and taken out again. Everything is a text that comes in and a text that goes out.

mod block;
mod commands;
mod edit;
mod jsonc;
mod plugin;
mod wanted;

use std::ops::Range;

use serde_json::Value;
use thiserror::Error;

pub use block::Block;
pub use commands::CommandFile;
pub use commands::Commands;
pub use commands::Invocation;
use edit::Edited;
use jsonc::Kind;
use jsonc::Node;
pub use plugin::plugin_files;
pub use wanted::Wanted;
use wanted::is_our_hook;

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
    /// Where it is seen that a plug-in of ours is installed, too.
    pub plugins: Plugins,
    /// Whether the settings may name a command that draws its status line.
    pub status_line: bool,
    /// Where it looks for servers of the Model Context Protocol.
    pub servers: Servers,
    /// Where it looks for commands of the person's own.
    pub commands: Commands,
}

/// When an agent runs the hooks in its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// Always.
    Always,
    /// Unless this is true in the settings, the person's or the project's.
    Unless(&'static str),
    /// Unless this object of the settings has `enabled` as false, or names them in its list `disabled`.
    Configured(&'static str),
    /// Once the person has looked at them, and has not switched them off. Both is noted in another file of the folder.
    Trusted {
        /// That file, a TOML one.
        config: &'static str,
        /// What the person does to look at them.
        how: &'static str,
    },
}

/// Where it is seen which plug-ins an agent has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugins {
    /// Nowhere: a plug-in is named in the settings.
    None,
    /// In this object of the settings, by name.
    Settings(&'static str),
    /// In this table of another file of the folder, by name.
    Toml(&'static str, &'static str),
    /// It is there if this is, in the folder.
    Folder(&'static str),
}

/// Where an agent names the servers of the Model Context Protocol that it uses.
#[derive(Debug, Clone, Copy)]
pub struct Servers {
    /// The file.
    pub file: ServerFile,
    /// The member of the settings that holds them by name.
    pub member: &'static str,
    /// The entry of a server, from the program that it is.
    pub make: fn(&str) -> Value,
}

/// The file in which servers are named.
#[derive(Debug, Clone, Copy)]
pub enum ServerFile {
    /// The settings.
    Settings,
    /// Another one in JSON: its name in the folder that the variable names, without the variable in the home directory; and
    /// its path in a project.
    Json(&'static str, &'static str),
    /// Another one in TOML: its name in the folder of settings, and its path in a project.
    Toml(&'static str, &'static str),
}

/// What is put into settings.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// Commands by event; the function makes the settings from one line for a shell.
    Hooks(fn(&str) -> Value),
    /// The name of a plug-in's file.
    Plugin,
}

/// A server that is a program with two streams, as most agents name it.
pub(crate) fn stdio_server(program: &str) -> Value {
    serde_json::json!({ "command": program, "args": [wanted::SERVER.0] })
}

/// The line of a shell that hooks run. Without this program it ends with 0 at once: some agents take anything else for a
/// refusal.
pub fn hook_line(program: &str, agent: &str) -> String {
    format!("command -v {program} >/dev/null 2>&1 && {program} {MARK} {agent} || true")
}

/// The line of a shell that draws the status line. Without this program it ends with 0 at once.
pub fn status_line(program: &str) -> String {
    format!("command -v {program} >/dev/null 2>&1 && {program} {} || true", wanted::STATUS_LINE)
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
    for setting in &wanted.settings {
        let path = setting.path();
        let there = find(&root, &path).map(|node| node.value(text));
        let ours: Vec<&Value> = match &there {
            Some(value) if setting.is_member() => {
                Some(value).filter(|value| setting.is_ours(value)).into_iter().collect()
            }
            Some(Value::Array(entries)) => entries.iter().filter(|entry| setting.is_ours(entry)).collect(),
            Some(_) | None => Vec::new(),
        };
        found |= !ours.is_empty();
        if ours != [&setting.value] {
            wrong.push(setting.name().to_owned());
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
    for setting in &wanted.settings {
        let path = setting.path();
        let root = parse(&edited.text)?;
        if !matches!(root.kind, Kind::Object(_)) {
            return Err(SettingsError::Unexpected("it holds no object of settings".to_owned()));
        }
        // A member is put into its object, an entry into its list.
        let parent = if setting.is_member() { &path[..path.len() - 1] } else { &path[..] };
        let missing = (0..parent.len()).find(|depth| find(&root, &parent[..=*depth]).is_none());
        let depth = missing.unwrap_or(parent.len());
        let at = find(&root, &parent[..depth]).unwrap_or(&root);
        check(at, &parent[..depth], !setting.is_member() && depth == parent.len())?;
        let entry = match setting.is_member() {
            true => object(path[path.len() - 1], setting.value.clone()),
            false => Value::from(vec![setting.value.clone()]),
        };
        match missing {
            None if setting.is_member() => edited.append(at, path.last().copied(), &setting.value),
            None => edited.append(at, None, &setting.value),
            Some(depth) => {
                // The list or object is made with its entry in it, and so are the objects around it.
                let inner = parent[depth + 1..].iter().rev().fold(entry, |value, key| object(key, value));
                made.extend((depth..parent.len()).map(|end| parent[..=end].join(".")));
                edited.append(at, Some(parent[depth]), &inner);
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
    for setting in &wanted.settings {
        let path = setting.path();
        while let Some(shorter) = take_out_one(&text, setting)? {
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

/// The places whose member is somebody else's, by name. Theirs stays.
///
/// # Errors
/// If the settings cannot be read.
pub fn taken(text: &str, wanted: &Wanted) -> Result<Vec<String>, SettingsError> {
    if text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty() {
        return Ok(Vec::new());
    }
    let root = parse(text)?;
    let members = wanted.settings.iter().filter(|setting| setting.is_member());
    let theirs = members.filter(|setting| {
        find(&root, &setting.path()).is_some_and(|node| !setting.is_ours(&node.value(text)))
    });
    Ok(theirs.map(|setting| setting.name().to_owned()).collect())
}

fn object(key: &str, value: Value) -> Value {
    Value::Object(std::iter::once((key.to_owned(), value)).collect())
}

/// A setting, if it is there and the settings can be read.
pub fn setting(text: &str, path: &[&str]) -> Option<Value> {
    let root = parse(text).ok()?;
    find(&root, path).map(|node| node.value(text))
}

fn take_out_one(text: &str, setting: &wanted::Setting) -> Result<Option<String>, SettingsError> {
    let root = parse(text)?;
    let path = setting.path();
    if setting.is_member() {
        let (key, parent) = path.split_last().map_or(("", &path[..]), |(key, parent)| (*key, parent));
        let Some(parent) = find(&root, parent) else { return Ok(None) };
        let is_ours = parent.member(key).is_some_and(|member| setting.is_ours(&member.value.value(text)));
        let index = index_of(parent, key).filter(|_| is_ours);
        return Ok(index.map(|index| edit::remove_child(text, parent, index)));
    }
    let Some(list) = find(&root, &path) else { return Ok(None) };
    let Kind::Array(entries) = &list.kind else { return Ok(None) };
    let Some(index) = entries.iter().position(|entry| setting.is_ours(&entry.value(text))) else {
        return Ok(None);
    };
    let entry = &entries[index];
    // Somebody may have put a hook of their own beside ours.
    if let (Some(agent), Some(hooks)) = (setting.hook_of(), entry.member("hooks"))
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
