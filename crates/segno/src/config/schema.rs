//! Every key of the configuration, in one table: its type, its limits, and who may set it.

use toml::Value;

use super::Rule;
use crate::output::units;

/// Who may set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Harmless data: a project may set it.
    Data,
    /// Names a program that would be run.
    Command,
    /// Names a host that would be talked to.
    Endpoint,
    /// Names a file outside the project.
    OutsidePath,
    /// Loosens something that protects the user: a cap, redaction, how long sessions are kept.
    Guard,
    /// Only the user may set it, never a project, trusted or not.
    UserOnly,
}

impl Class {
    /// Whether a project may set such a key only after `segno trust`.
    pub const fn needs_trust(self) -> bool {
        match self {
            Self::Command | Self::Endpoint | Self::OutsidePath | Self::Guard => true,
            Self::Data | Self::UserOnly => false,
        }
    }

    /// What such a key can do, for notices.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Data => "it is data",
            Self::Command => "it names a program to run",
            Self::Endpoint => "it names a host to talk to",
            Self::OutsidePath => "it names a file outside the project",
            Self::Guard => "it loosens a protection",
            Self::UserOnly => "only your own configuration may set it",
        }
    }
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text on one line.
    Text,
    /// Any text.
    Lines,
    /// A name: letters, digits, `-`, `_` and `.`; or nothing.
    Name,
    /// Where sessions are kept.
    StoreUrl,
    /// A web address; or nothing.
    Address,
    /// A whole number between two limits, both included.
    Integer {
        /// The smallest allowed value.
        min: i64,
        /// The largest allowed value.
        max: i64,
    },
    /// True or false.
    Flag,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// Rules for secrets.
    Rules,
    /// Several texts.
    Texts,
    /// Names of file families that are written.
    Families,
    /// Regular expressions.
    Patterns,
    /// Descriptions of agents: a whole section with one table each.
    Agents,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name, with its section: `session.budget`.
    pub name: &'static str,
    /// Who may set it.
    pub class: Class,
    /// What its value must be.
    pub kind: Kind,
}

const fn key(name: &'static str, class: Class, kind: Kind) -> Key {
    Key { name, class, kind }
}

const fn up_to(max: i64) -> Kind {
    Kind::Integer { min: 0, max }
}

/// Every key, in the order of the file of defaults.
pub const KEYS: &[Key] = &[
    key("store.url", Class::UserOnly, Kind::StoreUrl),
    key("store.busy_timeout_ms", Class::Data, up_to(600_000)),
    key("store.warn_mb", Class::Data, up_to(1_000_000)),
    key("session.budget", Class::Guard, up_to(i64::MAX)),
    key("session.warn_percent", Class::Data, Kind::Integer { min: 1, max: 100 }),
    key("session.hard", Class::Guard, Kind::Flag),
    key("session.workflow", Class::Data, Kind::Name),
    key("budget.count", Class::Guard, Kind::Choice(&["uncached", "all"])),
    key("budget.day_tokens", Class::Guard, up_to(i64::MAX)),
    key("budget.day_cost", Class::Guard, up_to(1_000_000_000)),
    key("view.enabled", Class::Data, Kind::Flag),
    key("view.max_items", Class::Data, up_to(10_000)),
    key("layout.families", Class::OutsidePath, Kind::Families),
    key("layout.max_items", Class::Data, up_to(10_000)),
    key("layout.hooks", Class::UserOnly, Kind::Text),
    key("cleanup.days", Class::Guard, up_to(36_500)),
    key("cleanup.keep", Class::Guard, up_to(1_000_000)),
    key("cleanup.auto", Class::Guard, Kind::Choice(&["off", "on", "agentforge", "ultra-create"])),
    key("cleanup.archive", Class::Guard, Kind::Flag),
    key("archive.native", Class::UserOnly, Kind::Flag),
    key("ls.limit", Class::Data, Kind::Integer { min: 1, max: 10_000 }),
    key("run.agent", Class::Command, Kind::Name),
    key("run.prompt_file", Class::OutsidePath, Kind::Text),
    key("run.prompt", Class::Guard, Kind::Lines),
    key("run.hooks", Class::Guard, Kind::Flag),
    key("run.silence_seconds", Class::Guard, up_to(31_536_000)),
    key("run.wall_seconds", Class::Guard, up_to(31_536_000)),
    key("run.max_turns", Class::Guard, up_to(1_000_000)),
    key("run.grace_ms", Class::Guard, up_to(600_000)),
    key("run.memory_mb", Class::Guard, up_to(1_073_741_824)),
    key("run.cpu_seconds", Class::Guard, up_to(31_536_000)),
    key("run.processes", Class::Guard, up_to(1_000_000)),
    key("run.record_mb", Class::Guard, up_to(1_073_741_824)),
    key("run.max_line_mb", Class::Guard, Kind::Integer { min: 1, max: 1_024 }),
    key("run.view_buffer", Class::Data, Kind::Integer { min: 16, max: 1_000_000 }),
    key("run.permissions", Class::Guard, Kind::Choice(&["agent", "ask", "deny"])),
    key("run.allow", Class::Guard, Kind::Texts),
    key("run.deny", Class::Guard, Kind::Texts),
    key("run.ask_seconds", Class::Guard, up_to(31_536_000)),
    key("resume.ask", Class::Data, Kind::Flag),
    key("resume.auto", Class::Guard, Kind::Flag),
    key("resume.attempts", Class::Guard, up_to(1_000)),
    key("resume.delay_seconds", Class::Data, up_to(86_400)),
    key("watch.brief", Class::Guard, Kind::Choice(&["off", "auto"])),
    key("memory.tools", Class::Data, Kind::Texts),
    key("memory.lookups", Class::Data, Kind::Texts),
    key("notify.terminal", Class::Data, Kind::Choice(&["auto", "bell", "osc9", "osc777", "off"])),
    key("notify.desktop", Class::Data, Kind::Flag),
    key("notify.webhook", Class::Endpoint, Kind::Text),
    key("notify.command", Class::Command, Kind::Text),
    key("otel.endpoint", Class::UserOnly, Kind::Address),
    key("otel.seconds", Class::UserOnly, Kind::Integer { min: 1, max: 3_600 }),
    key("checkpoint.files", Class::Guard, Kind::Flag),
    key("checkpoint.every_calls", Class::Guard, up_to(1_000_000)),
    key("checkpoint.max", Class::Guard, up_to(1_000_000)),
    key("checkpoint.keep_on_success", Class::Guard, up_to(1_000_000)),
    key("checkpoint.keep_on_failure", Class::Guard, up_to(1_000_000)),
    key("checkpoint.largest_file_mb", Class::Guard, up_to(1_048_576)),
    key("checkpoint.quota_mb", Class::Guard, up_to(1_073_741_824)),
    key("checkpoint.include_ignored", Class::Guard, Kind::Texts),
    key("checkpoint.risky", Class::Data, Kind::Patterns),
    key("checkpoint.on_failure", Class::Guard, Kind::Choice(&["continue", "stop"])),
    key("agents", Class::Command, Kind::Agents),
    key("redact.env", Class::Guard, Kind::Flag),
    key("redact.rules", Class::Guard, Kind::Rules),
    key("ui.color", Class::Data, Kind::Choice(&["auto", "always", "never"])),
    key("ui.pager", Class::Command, Kind::Text),
    key("ui.time", Class::Data, Kind::Choice(&["relative", "iso"])),
];

/// The key of that name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

impl Key {
    /// Checks a value that came from a file.
    ///
    /// # Errors
    /// What is wrong with it, as the second half of a sentence that starts with the key.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        match (self.kind, value) {
            (Kind::Text, Value::String(text)) => one_line(text),
            (Kind::Lines, Value::String(_)) => Ok(()),
            (Kind::Agents, Value::Table(agents)) => super::agents::check(agents),
            (Kind::Name, Value::String(text)) => name(text),
            (Kind::StoreUrl, Value::String(text)) => store_url(text),
            (Kind::Address, Value::String(text)) => address(text),
            (Kind::Integer { min, max }, Value::Integer(n)) if (min..=max).contains(n) => Ok(()),
            (Kind::Integer { min, max }, Value::Integer(n)) => Err(between(min, max, &n.to_string())),
            (Kind::Flag, Value::Boolean(_)) => Ok(()),
            (Kind::Choice(words), Value::String(text)) if words.contains(&text.as_str()) => Ok(()),
            (Kind::Choice(words), Value::String(text)) => {
                Err(format!("must be one of {}, not \"{text}\"", words.join(", ")))
            }
            (Kind::Rules, Value::Array(_)) => rules(value),
            (Kind::Texts, Value::Array(texts)) => match texts.iter().find(|text| !text.is_str()) {
                Some(other) => Err(format!("must be an array of texts, but has {}", type_name(other))),
                None => Ok(()),
            },
            (Kind::Families, Value::Array(texts)) => families(texts),
            (Kind::Patterns, Value::Array(texts)) => {
                for text in texts {
                    let Some(pattern) = text.as_str() else {
                        return Err(format!("must be an array of texts, but has {}", type_name(text)));
                    };
                    segno_engine::tree::risky::check(pattern)
                        .map_err(|why| format!("has {pattern:?}, which is no pattern: {why}"))?;
                }
                Ok(())
            }
            _ => Err(format!("must be {}, not {}", self.kind.noun(), type_name(value))),
        }
    }

    /// Reads a value from the text of a variable, a flag or `config set`.
    ///
    /// # Errors
    /// As [`Key::check`].
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let value = match self.kind {
            Kind::Text | Kind::Lines | Kind::Name | Kind::StoreUrl | Kind::Address | Kind::Choice(_) => {
                Value::String(text.to_owned())
            }
            Kind::Integer { min, max } => {
                let n = units::parse_count(text).map_err(|_| between(min, max, text))?;
                Value::Integer(i64::try_from(n).map_err(|_| between(min, max, text))?)
            }
            Kind::Flag => match text {
                "true" | "1" => Value::Boolean(true),
                "false" | "0" => Value::Boolean(false),
                _ => return Err(format!("must be true or false, not \"{text}\"")),
            },
            Kind::Agents => {
                let table: toml::Table =
                    toml::from_str(text).map_err(|_| "must be tables in TOML".to_owned())?;
                Value::Table(table)
            }
            Kind::Rules | Kind::Texts | Kind::Families | Kind::Patterns => {
                let table: toml::Table = toml::from_str(&format!("value = {text}"))
                    .map_err(|_| format!("must be {} in TOML", self.kind.noun()))?;
                table.get("value").filter(|_| table.len() == 1).cloned().ok_or("must be one value")?
            }
        };
        self.check(&value)?;
        Ok(value)
    }
}

impl Kind {
    /// The type as documentation names it.
    pub fn noun(self) -> String {
        match self {
            Self::Text | Self::Lines | Self::Name | Self::StoreUrl | Self::Address => "text".to_owned(),
            Self::Integer { .. } => "a whole number".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Rules => "an array of rules".to_owned(),
            Self::Texts => "an array of texts".to_owned(),
            Self::Families => "an array of prp, agentforge, go-team and ultra-create".to_owned(),
            Self::Patterns => "an array of regular expressions".to_owned(),
            Self::Agents => "one table for each agent".to_owned(),
        }
    }
}

fn families(texts: &[Value]) -> Result<(), String> {
    for text in texts {
        let Some(word) = text.as_str() else {
            return Err(format!("must be an array of texts, but has {}", type_name(text)));
        };
        let family: segno_engine::layouts::Family = word.parse().map_err(|why| format!("has {why}"))?;
        if !family.is_written() {
            return Err(format!("has {word}, which is only read"));
        }
    }
    Ok(())
}

fn between(min: i64, max: i64, found: &str) -> String {
    if max == i64::MAX {
        format!("must be a whole number of at least {min}, not {found}")
    } else {
        format!("must be a whole number from {min} to {max}, not {found}")
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number with decimals",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "an array",
        Value::Table(_) => "a table",
    }
}

fn one_line(text: &str) -> Result<(), String> {
    if text.chars().any(char::is_control) {
        return Err("must not contain control characters".to_owned());
    }
    Ok(())
}

fn name(text: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    // Names become parts of paths, so they may not climb and may not look like a flag.
    if text.len() > 64 || text.starts_with(['.', '-']) || !text.chars().all(fits) {
        return Err(
            "must be a name of up to 64 letters, digits, `-`, `_` or `.` that starts with a letter or digit"
                .to_owned(),
        );
    }
    Ok(())
}

fn store_url(text: &str) -> Result<(), String> {
    one_line(text)?;
    let known = ["sqlite:", "postgres://", "postgresql://"];
    if text.is_empty() || known.iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme)) {
        return Ok(());
    }
    // The value may hold a password, so it is not repeated.
    Err("must be empty or sqlite:PATH".to_owned())
}

fn address(text: &str) -> Result<(), String> {
    one_line(text)?;
    let host = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    if text.is_empty() || host.is_some_and(|host| !host.is_empty() && !host.contains([' ', '@', '?', '#'])) {
        return Ok(());
    }
    // The value may hold a password, so it is not repeated.
    Err("must be empty, or an address like http://127.0.0.1:4318 without a name, a password or a query"
        .to_owned())
}

fn rules(value: &Value) -> Result<(), String> {
    let rules: Vec<Rule> = value
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| format!("has a rule that is not right: {}", error.message()))?;
    for (index, rule) in rules.iter().enumerate() {
        if rule.id.is_empty() || name(&rule.id).is_err() {
            return Err(format!("has a rule (number {}) whose id is not a name", index + 1));
        }
        if rule.regex.is_empty() {
            return Err(format!("has a rule \"{}\" without a regex", rule.id));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
