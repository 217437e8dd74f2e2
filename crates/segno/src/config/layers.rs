//! The layers of the configuration, merged in order, with the origin of every value.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize as _;
use toml::Table;
use toml::Value;

use super::Config;
use super::DEFAULT;
use super::error::Error;
use super::error::SourceSpan;
use super::schema::KEYS;
use super::schema::Key;
use super::schema::Kind;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The embedded defaults.
    Default,
    /// The user's file.
    User(SourceSpan),
    /// The project's file.
    Project(SourceSpan),
    /// The file of another session manager whose files are kept current.
    Layout(std::path::PathBuf),
    /// A variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(span) | Self::Project(span) => write!(f, "{}:{}", span.path.display(), span.line),
            Self::Layout(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One value and where it comes from.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The key.
    pub key: &'static Key,
    /// The value.
    pub value: Value,
    /// The layer that decided it.
    pub origin: Origin,
}

/// All layers laid over each other.
#[derive(Clone, Debug)]
pub struct Layers {
    settings: BTreeMap<&'static str, Setting>,
}

impl Layers {
    /// The defaults alone.
    ///
    /// # Errors
    /// Never, in a program whose tests passed.
    pub fn defaults() -> Result<Self, Error> {
        // Read at every start, so what a person's file needs (places, checks, notices) is left to a test, and so is most of
        // the language.
        let mut table = match plain(DEFAULT) {
            Some(table) => table,
            None => toml::from_str(DEFAULT).map_err(|error| Error::Types(error.message().to_owned()))?,
        };
        let mut take = |key: &'static Key| match key.name.split_once('.') {
            Some((section, name)) => table.get_mut(section)?.as_table_mut()?.remove(name),
            None => table.remove(key.name),
        };
        let settings = KEYS.iter().filter_map(|key| {
            let value = take(key)?;
            Some((key.name, Setting { key, value, origin: Origin::Default }))
        });
        Ok(Self { settings: settings.collect() })
    }

    /// Lays settings over what is there. Rules for secrets add up: no layer can take away what another one protects.
    pub fn lay(&mut self, settings: impl IntoIterator<Item = Setting>) {
        for mut setting in settings {
            if setting.key.kind == Kind::Rules
                && let Some(Setting { value: Value::Array(below), .. }) = self.settings.get(setting.key.name)
                && let Value::Array(added) = setting.value
            {
                setting.value = Value::Array(below.iter().cloned().chain(added).collect());
            }
            if setting.key.kind == Kind::Agents
                && let Some(Setting { value: Value::Table(below), .. }) = self.settings.get(setting.key.name)
                && let Value::Table(added) = &setting.value
            {
                setting.value = Value::Table(laid_over(below, added));
            }
            self.settings.insert(setting.key.name, setting);
        }
    }

    /// Lays a value given as text over what is there.
    ///
    /// # Errors
    /// If it is not right for the key.
    pub fn lay_text(&mut self, key: &'static Key, text: &str, origin: Origin) -> Result<(), Error> {
        let value = key.parse(text).map_err(|problem| Error::Invalid {
            origin: origin.to_string(),
            key: key.name.to_owned(),
            problem,
        })?;
        self.lay([Setting { key, value, origin }]);
        Ok(())
    }

    /// One setting.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.get(key)
    }

    /// All settings in the order of the defaults.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        KEYS.iter().filter_map(|key| self.settings.get(key.name))
    }

    /// The values as sections.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        for setting in self.iter() {
            let Some((section, name)) = setting.key.name.split_once('.') else {
                table.insert(setting.key.name.to_owned(), setting.value.clone());
                continue;
            };
            if let Value::Table(values) =
                table.entry(section.to_owned()).or_insert_with(|| Value::Table(Table::new()))
            {
                values.insert(name.to_owned(), setting.value.clone());
            }
        }
        table
    }

    /// The values with their types.
    ///
    /// # Errors
    /// Never, in a program whose tests passed.
    pub fn config(&self) -> Result<Config, Error> {
        Config::deserialize(Value::Table(self.table())).map_err(|error| Error::Types(error.to_string()))
    }
}

/// Reads a file that has only sections, comments, and keys with a word, a number, a text without escapes or a list of
/// such texts: many times as fast as one that may have anything. None if it has something else.
fn plain(text: &str) -> Option<Table> {
    let mut table = Table::new();
    let mut section: Option<&str> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            if !is_plain_name(name) || table.insert(name.to_owned(), Value::Table(Table::new())).is_some() {
                return None;
            }
            section = Some(name);
            continue;
        }
        let (key, value) = line.split_once(" = ").filter(|(key, _)| is_plain_name(key))?;
        let value = plain_value(value)?;
        let into = match section {
            Some(section) => table.get_mut(section)?.as_table_mut()?,
            None => &mut table,
        };
        if into.insert(key.to_owned(), value).is_some() {
            return None;
        }
    }
    Some(table)
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn plain_value(text: &str) -> Option<Value> {
    match text {
        "true" => return Some(Value::Boolean(true)),
        "false" => return Some(Value::Boolean(false)),
        "[]" => return Some(Value::Array(Vec::new())),
        _ => {}
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.split(", ").map(plain_text).collect::<Option<_>>().map(Value::Array);
    }
    if text.starts_with('"') {
        return plain_text(text);
    }
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = |text: &str| is_digits(text) && (text == "0" || !text.starts_with('0'));
    if is_whole(text) {
        return text.parse().ok().map(Value::Integer);
    }
    let (whole, part) = text.split_once('.')?;
    (is_whole(whole) && is_digits(part)).then(|| text.parse().ok().map(Value::Float)).flatten()
}

fn plain_text(text: &str) -> Option<Value> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.contains(['"', '\\'])).then(|| Value::String(inner.to_owned()))
}

/// Each agent's settings laid over those of the same agent.
fn laid_over(below: &Table, added: &Table) -> Table {
    let mut agents = below.clone();
    for (agent, settings) in added {
        match (agents.get_mut(agent), settings) {
            (Some(Value::Table(known)), Value::Table(settings)) => known.extend(settings.clone()),
            _ => {
                agents.insert(agent.clone(), settings.clone());
            }
        }
    }
    agents
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
