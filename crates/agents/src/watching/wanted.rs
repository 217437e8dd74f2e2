//! What shall stand in a file of settings, and how ours is told from somebody else's.

use serde_json::Value;

use super::MARK;
use super::PLUGIN;

/// The word after the program's name that draws the status line.
pub(super) const STATUS_LINE: &str = "statusline";
/// The word after the program's name that serves the Model Context Protocol, and the name of the server.
pub(super) const SERVER: (&str, &str) = ("mcp", "segno");

/// What shall stand in a file of settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    pub(super) settings: Vec<Setting>,
}

/// One value and the path where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    path: Vec<String>,
    pub(super) value: Value,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// An entry of a list: commands of an event, of this agent.
    Hook(String),
    /// An entry of a list: the address of a plug-in.
    Plugin,
    /// A member: the command that draws the status line.
    StatusLine,
    /// A member: a server of the Model Context Protocol.
    Server,
}

impl Wanted {
    /// The hooks of an agent that run one line of a shell.
    pub fn hooks(agent: &str, make: fn(&str) -> Value, line: &str) -> Self {
        let Value::Object(events) = make(line)["hooks"].take() else { return Self::default() };
        let setting = |(event, entries): (String, Value)| Setting {
            path: vec!["hooks".to_owned(), event],
            value: entries[0].clone(),
            kind: Kind::Hook(agent.to_owned()),
        };
        Self { settings: events.into_iter().map(setting).collect() }
    }

    /// A plug-in, by its address.
    pub fn plugin(url: String) -> Self {
        let setting =
            Setting { path: vec!["plugin".to_owned()], value: Value::from(url), kind: Kind::Plugin };
        Self { settings: vec![setting] }
    }

    /// A command that draws the status line.
    pub fn status_line(line: &str) -> Self {
        let value = serde_json::json!({ "type": "command", "command": line });
        Self {
            settings: vec![Setting { path: vec!["statusLine".to_owned()], value, kind: Kind::StatusLine }],
        }
    }

    /// A server of the Model Context Protocol, in the member that holds them.
    pub fn server(member: &str, entry: Value) -> Self {
        let path = vec![member.to_owned(), SERVER.1.to_owned()];
        Self { settings: vec![Setting { path, value: entry, kind: Kind::Server }] }
    }

    /// This and the other.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.settings.extend(other.settings);
        self
    }

    /// The events that hooks are wanted of.
    pub fn events(&self) -> Vec<String> {
        let hooks = self.settings.iter().filter(|setting| setting.hook_of().is_some());
        hooks.map(|setting| setting.name().to_owned()).collect()
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// Without the settings of these names.
    #[must_use]
    pub fn without(mut self, names: &[String]) -> Self {
        self.settings.retain(|setting| !names.iter().any(|name| name == setting.name()));
        self
    }
}

impl Setting {
    /// From the root on: of a list, or of a member.
    pub(super) fn path(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// What it is called when something is said of it.
    pub(super) fn name(&self) -> &str {
        match self.kind {
            Kind::Hook(_) | Kind::Plugin => self.path.last().map_or("", String::as_str),
            Kind::StatusLine | Kind::Server => self.path.first().map_or("", String::as_str),
        }
    }

    pub(super) fn is_member(&self) -> bool {
        matches!(self.kind, Kind::StatusLine | Kind::Server)
    }

    /// Whose hook it is.
    pub(super) fn hook_of(&self) -> Option<&str> {
        match &self.kind {
            Kind::Hook(agent) => Some(agent),
            Kind::Plugin | Kind::StatusLine | Kind::Server => None,
        }
    }

    /// Whether what stands there is ours, of whatever version.
    pub(super) fn is_ours(&self, value: &Value) -> bool {
        match &self.kind {
            Kind::Hook(agent) => match value["hooks"].as_array() {
                Some(hooks) => hooks.iter().any(|hook| is_our_hook(hook, agent)),
                None => is_our_hook(value, agent),
            },
            Kind::Plugin => value.as_str().is_some_and(|url| url.ends_with(&format!("/{PLUGIN}"))),
            Kind::StatusLine => runs(value["command"].as_str().unwrap_or_default(), STATUS_LINE),
            Kind::Server => is_our_server(value),
        }
    }
}

pub(super) fn is_our_hook(hook: &Value, agent: &str) -> bool {
    let command = hook["command"].as_str().unwrap_or_default();
    command.split(&format!("{MARK} {agent}")).skip(1).any(|rest| {
        // Another agent's name may begin like this one.
        !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-')
    })
}

/// A program and its first argument, in one list or in two members.
fn is_our_server(value: &Value) -> bool {
    let words: Vec<&str> = [&value["command"], &value["args"]]
        .into_iter()
        .flat_map(|part| match part {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            other => other.as_str().into_iter().collect::<Vec<&str>>(),
        })
        .collect();
    words.windows(2).any(|pair| is_program(pair[0]) && pair[1] == SERVER.0)
}

/// Whether a line of a shell runs this program with this word.
fn runs(line: &str, word: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).any(|pair| is_program(pair[0].trim_matches(['\'', '"'])) && pair[1] == word)
}

fn is_program(word: &str) -> bool {
    word.rsplit('/').next() == Some("segno")
}
