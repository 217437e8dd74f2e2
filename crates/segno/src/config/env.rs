//! Every environment variable the program reads, in one table.
//!
//! The environment is read once, at the start, into an [`Environment`]; everything else takes it as a value.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use segno_engine::core::suggest;

use super::schema::KEYS;
use super::schema::{self};

/// A variable with a name of its own.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The key of the configuration it sets, if any.
    pub key: Option<&'static str>,
    /// What it means.
    pub meaning: &'static str,
}

/// So many characters too many, too few or wrong are a slip of the finger.
const SLIP: usize = 2;

/// How the names of all variables begin that set a key.
const OWN: &str = "SEGNO_";

/// Names the configuration file of the user.
pub const CONFIG: &str = "SEGNO_CONFIG";
/// Names the project directory.
pub const PROJECT: &str = "SEGNO_PROJECT";
/// Names the session a command is about.
pub const SESSION: &str = "SEGNO_SESSION";
/// Names the run a command belongs to.
pub const RUN: &str = "SEGNO_RUN";
/// The fencing number of the driver.
pub const EPOCH: &str = "SEGNO_EPOCH";

/// What messages to a web address are signed with.
pub const NOTIFY_SECRET: &str = "SEGNO_NOTIFY_SECRET";

/// Names the folder of a PRP session; the PRP tools read it too.
pub const PRP_SESSION_DIR: &str = "PRP_SESSION_DIR";

/// Says to a command of ultra-create's hooks what happened; segno runs none of them below such a command.
pub const ULTRA_CREATE_EVENT: &str = "ULTRA_CREATE_EVENT";

/// Variables with a name of their own. Beside these, every key has one: see [`variable_of`].
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: CONFIG,
        key: None,
        meaning: "Your configuration file, in place of the one in $XDG_CONFIG_HOME/segno.",
    },
    Variable {
        name: PROJECT,
        key: None,
        meaning: "The project directory, in place of the search upward. Same as --project.",
    },
    Variable {
        name: "SEGNO_STORE",
        key: Some("store.url"),
        meaning: "Where sessions are kept. Same as --store.",
    },
    Variable {
        name: SESSION,
        key: None,
        meaning: "The session a command is about, if none is named. Set for agents by the program that drives them.",
    },
    Variable {
        name: NOTIFY_SECRET,
        key: None,
        meaning: "What messages to notify.webhook are signed with (HMAC-SHA256).",
    },
    Variable {
        name: RUN,
        key: None,
        meaning: "The run a command belongs to. Set for agents by the program that drives them.",
    },
    Variable {
        name: EPOCH,
        key: None,
        meaning: "The fencing number of the driver. Set for agents by the program that drives them.",
    },
    Variable {
        name: segno_engine::run::hook_server::VARIABLE,
        key: None,
        meaning: "Where the hooks of a run find its driver. Set for agents by the program that drives them.",
    },
    Variable {
        name: crate::hook::VARIABLE,
        key: None,
        meaning: "The file with what the hooks of a run need. Set for agents by the program that drives them.",
    },
    Variable {
        name: segno_engine::run::tree::MARK,
        key: None,
        meaning: "Marks the processes of a run, so that none is left behind. Set for agents by the program that drives them.",
    },
    Variable {
        name: crate::log_file::VARIABLE,
        key: None,
        meaning: "What goes to segno.log in $XDG_STATE_HOME/segno: off, error, warn (the default), info, debug or trace, \
                  and levels of parts, like warn,segno_engine::lease=debug. Secrets are taken out.",
    },
    Variable { name: "SEGNO_COLOR", key: Some("ui.color"), meaning: "When to use colour. Same as --color." },
];

/// Variables of others that the program respects.
pub const FOREIGN: &[(&str, &str)] = &[
    ("XDG_CONFIG_HOME", "Where configuration lives; ignored unless absolute."),
    ("XDG_DATA_HOME", "Where sessions and trust live; ignored unless absolute."),
    ("XDG_STATE_HOME", "Where captures and the spool live; ignored unless absolute."),
    (PRP_SESSION_DIR, "The folder of a PRP session, in place of .prp-session in the project."),
    (ULTRA_CREATE_EVENT, "Set for commands of ultra-create; segno runs none of them below one."),
    ("NO_COLOR", "No colour, unless asked for by --color, SEGNO_COLOR or ui.color."),
    ("CLICOLOR_FORCE", "Colour also in pipes, unless it is 0."),
    ("CLICOLOR", "No colour if it is 0."),
    ("TERM", "No colour if it is dumb."),
    ("LC_ALL, LC_CTYPE, LANG", "Plain symbols if the locale is not UTF-8; the … of shortened texts stays."),
];

/// The variable that sets a key: `session.budget` is `SEGNO_SESSION_BUDGET`.
pub fn variable_of(key: &str) -> String {
    format!("{OWN}{}", key.to_ascii_uppercase().replace('.', "_"))
}

/// The environment as it was when the program started.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// The real one. What is not UTF-8 is left out: none of our variables can mean anything then.
    pub fn capture() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        #[expect(clippy::disallowed_methods, reason = "this is the place where the environment is read")]
        let all = std::env::vars_os();
        Self { variables: all.filter_map(text).collect() }
    }

    /// All of the real one as it is, for a program that inherits it.
    pub fn inherited() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        #[expect(clippy::disallowed_methods, reason = "this is the place where the environment is read")]
        let all = std::env::vars_os();
        all.collect()
    }

    /// An environment with these variables only.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { variables: variables.iter().map(own).collect() }
    }

    /// The value of a variable, also if it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The value of a variable; an empty one counts as unset.
    pub fn non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Names and values of the variables that look like secrets.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let secret = |(name, value): &(&String, &String)| {
            !value.is_empty() && segno_engine::redact::is_secret_name(name)
        };
        let own = |(name, value): (&String, &String)| (name.clone(), value.clone());
        self.variables.iter().filter(secret).map(own).collect()
    }

    /// The settings made by variables: key, name of the variable, value. Where a key has two variables, the one that
    /// spells the key comes last and so wins.
    pub fn settings(&self) -> Vec<(&'static schema::Key, String, &str)> {
        if !self.has_own() {
            return Vec::new();
        }
        let named = VARIABLES.iter().filter_map(|variable| {
            let key = schema::find(variable.key?)?;
            Some((key, variable.name.to_owned(), self.non_empty(variable.name)?))
        });
        let spelled = KEYS.iter().filter_map(|key| {
            let name = variable_of(key.name);
            let value = self.non_empty(&name)?;
            Some((key, name, value))
        });
        named.chain(spelled).collect()
    }

    /// Whether there is any variable of ours. Most environments have none, and every process asks.
    fn has_own(&self) -> bool {
        self.variables.keys().any(|name| name.starts_with(OWN))
    }

    /// Variables that look like a slip of the finger, with what was probably meant. Others that start with `SEGNO_`
    /// are nobody's business: wrappers and tests use them too.
    pub fn slips(&self) -> Vec<(String, String)> {
        if !self.has_own() {
            return Vec::new();
        }
        let known: Vec<String> = VARIABLES
            .iter()
            .map(|variable| variable.name.to_owned())
            .chain(KEYS.iter().map(|key| variable_of(key.name)))
            .collect();
        self.variables
            .keys()
            .filter(|name| name.starts_with(OWN) && !known.contains(name))
            .filter_map(|name| {
                // What is longer or shorter by more is none: most names are settled by that.
                let like = |known: &&str| known.chars().count().abs_diff(name.chars().count()) <= SLIP;
                let meant = suggest::nearest(name, known.iter().map(String::as_str).filter(like))?;
                (suggest::distance(name, meant) <= SLIP).then(|| (name.clone(), meant.to_owned()))
            })
            .collect()
    }
}

/// All variables as Markdown, for the documentation.
pub fn markdown() -> String {
    let mut text = String::from("| variable | sets | meaning |\n|---|---|---|\n");
    // Writing to a String cannot fail.
    for variable in VARIABLES {
        let key = variable.key.map_or_else(|| "–".to_owned(), |key| format!("`{key}`"));
        let _ = writeln!(text, "| `{}` | {key} | {} |", variable.name, variable.meaning);
    }
    for key in KEYS {
        let _ = writeln!(text, "| `{}` | `{}` | {} |", variable_of(key.name), key.name, key.kind.noun());
    }
    for (name, meaning) in FOREIGN {
        let _ = writeln!(text, "| `{name}` | – | {meaning} |");
    }
    text
}

#[cfg(test)]
#[path = "env_tests.rs"]
mod tests;
