//! `segno config`: reading and changing settings.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::text::shorten;
use serde_json::json;
use toml::Value;

use crate::config::DEFAULT;
use crate::config::Loaded;
use crate::config::set::Target;
use crate::config::set::{self};
use crate::context::Context;
use crate::error::Outcome;
use crate::output::Column;
use crate::output::Meaning;
use crate::output::Table;
use crate::output::Text;

/// How much of a value is shown beside its origin: one long value must not push all origins away.
const LONGEST_VALUE: usize = 60;

/// Show and change settings
///
/// Settings come from defaults, your file, the project's file, variables and flags; later ones win.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno config set session.budget 200k")]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

impl Args {
    /// Whether it would change a file.
    pub const fn changes(&self) -> bool {
        matches!(self.command, Command::Set { .. } | Command::Unset { .. })
    }
}

/// What to do with settings.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Print the value of a setting
    Get {
        /// The setting, like session.budget
        key: String,
    },
    /// Change a setting in your file, keeping its comments
    Set {
        /// The setting, like session.budget
        key: String,
        /// The value
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Change the project's file instead of yours
        #[arg(long)]
        in_project: bool,
    },
    /// Remove a setting from your file
    Unset {
        /// The setting, like session.budget
        key: String,
        /// Change the project's file instead of yours
        #[arg(long)]
        in_project: bool,
    },
    /// Show all settings
    Show {
        /// Where each value comes from
        #[arg(long)]
        origin: bool,
        /// The defaults, with what they mean
        #[arg(long, conflicts_with = "origin")]
        default: bool,
    },
    /// Show where the files are
    Path,
}

/// Runs `segno config`.
///
/// # Errors
/// If a key is unknown, a value is wrong, or a file cannot be read or written.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        Command::Get { key } => get(context, key),
        Command::Set { key, value, in_project } => set(context, key, value, *in_project),
        Command::Unset { key, in_project } => unset(context, key, *in_project),
        Command::Show { default: true, .. } => context.printer.raw(DEFAULT.as_bytes()),
        Command::Show { origin, .. } => show(context, *origin),
        Command::Path => path(context),
    }
}

fn get(context: &Context, key: &str) -> Outcome {
    let key = set::key(key)?;
    let loaded = context.loaded()?;
    let value = loaded.layers.get(key.name).map(|setting| &setting.value);
    if context.printer.is_json() {
        return context.printer.json(&value);
    }
    context.printer.data(match value {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    })
}

fn target(context: &Context, in_project: bool) -> Target {
    Target::choose(&context.paths, in_project.then_some(&context.project))
}

fn set(context: &Context, key: &str, value: &str, in_project: bool) -> Outcome {
    let key = set::key(key)?;
    let was_trusted = context.loaded().is_ok_and(|loaded| loaded.trust.is_trusted());
    let target = target(context, in_project);
    let value = target.set(key, value)?;
    report(
        context,
        &json!({ "key": key.name, "value": masked(&value), "file": target.path().to_string_lossy() }),
    )?;
    context.printer.talk(
        Text::new()
            .plain(format!("set {} = {} in ", key.name, masked(&value)))
            .painted(Meaning::Dim, target.path().display().to_string()),
    );
    if in_project {
        after_project_change(context, was_trusted, key.class.needs_trust());
    } else if let Ok(loaded) = context.reload()
        && let Some(setting) = loaded.layers.get(key.name)
        && setting.value != value
    {
        // The file was changed, but something above it still decides.
        context.printer.warn(format!(
            "{} is still {} because of {}",
            key.name,
            masked(&setting.value),
            setting.origin
        ));
    }
    Ok(())
}

fn unset(context: &Context, key: &str, in_project: bool) -> Outcome {
    let key = set::key(key)?;
    let was_trusted = context.loaded().is_ok_and(|loaded| loaded.trust.is_trusted());
    let target = target(context, in_project);
    let removed = target.unset(key)?;
    report(
        context,
        &json!({ "key": key.name, "removed": removed, "file": target.path().to_string_lossy() }),
    )?;
    let said = if removed { "removed" } else { "was not set:" };
    context.printer.talk(
        Text::new()
            .plain(format!("{said} {} in ", key.name))
            .painted(Meaning::Dim, target.path().display().to_string()),
    );
    if in_project && removed {
        after_project_change(context, was_trusted, false);
    }
    Ok(())
}

/// Trust is about content, also when we changed it ourselves: an agent can run this command too.
fn after_project_change(context: &Context, was_trusted: bool, needs_trust: bool) {
    if was_trusted {
        context.printer.hint("the project's files have changed; to trust them again: segno trust");
    } else if needs_trust {
        context.printer.hint("this setting is ignored until: segno trust");
    }
}

fn report(context: &Context, value: &serde_json::Value) -> Outcome {
    if context.printer.is_json() { context.printer.json(value) } else { Ok(()) }
}

fn show(context: &Context, origin: bool) -> Outcome {
    let loaded = context.loaded()?;
    if context.printer.is_json() {
        return show_json(context, loaded, origin);
    }
    if !origin {
        return context.page(&as_file(loaded));
    }
    let mut table = Table::new([Column::left("key"), Column::left("value"), Column::left("origin")]);
    for setting in loaded.layers.iter() {
        let origin = setting.origin.to_string();
        let meaning = if origin == "default" { Meaning::Dim } else { Meaning::Plain };
        table.row([
            Text::from(setting.key.name),
            Text::from(shorten(&masked(&setting.value).to_string(), LONGEST_VALUE)),
            Text::new().painted(meaning, origin),
        ]);
    }
    context.printer.table(&table)
}

/// The settings in the form of a configuration file.
fn as_file(loaded: &Loaded) -> Text {
    let mut text = Text::new();
    let mut section = "";
    for setting in loaded.layers.iter() {
        let Some((new, name)) = setting.key.name.split_once('.') else {
            if let Value::Table(tables) = &setting.value {
                for (name, table) in tables {
                    let gap = if section.is_empty() { "" } else { "\n\n" };
                    let head = format!("[{}.{name}]", setting.key.name);
                    let body = toml::to_string(table).unwrap_or_default();
                    text = text
                        .plain(gap)
                        .painted(Meaning::Strong, head)
                        .plain("\n")
                        .plain(body.trim_end().to_owned());
                }
            }
            continue;
        };
        if new != section {
            let gap = if section.is_empty() { "" } else { "\n\n" };
            text = text.plain(gap).painted(Meaning::Strong, format!("[{new}]"));
            section = new;
        }
        text = text.plain(format!("\n{name} = {}", masked(&setting.value)));
    }
    text
}

fn show_json(context: &Context, loaded: &Loaded, origin: bool) -> Outcome {
    let settings = loaded.layers.iter();
    let object: serde_json::Map<String, serde_json::Value> = settings
        .map(|setting| {
            let value = json!(masked(&setting.value));
            let shown =
                if origin { json!({ "value": value, "origin": setting.origin.to_string() }) } else { value };
            (setting.key.name.to_owned(), shown)
        })
        .collect();
    context.printer.json(&object)
}

/// A value without the password of a URL: lists of settings are pasted into bug reports.
fn masked(value: &Value) -> Value {
    let hide = |text: &str| -> Option<String> {
        let (scheme, rest) = text.split_once("://")?;
        let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?***"));
        let Some((login, host)) = rest.rsplit_once('@') else {
            return Some(format!("{scheme}://{rest}{query}"));
        };
        let user = login.split_once(':').map_or(login.to_owned(), |(user, _)| format!("{user}:***"));
        Some(format!("{scheme}://{user}@{host}{query}"))
    };
    match value {
        Value::String(text) => Value::String(hide(text).unwrap_or_else(|| text.clone())),
        other => other.clone(),
    }
}

fn path(context: &Context) -> Outcome {
    let (paths, project) = (&context.paths, &context.project);
    let files = [
        ("user", paths.config.clone()),
        ("project", project.config()),
        ("root", project.root.clone()),
        ("data", paths.data.clone()),
        ("state", paths.state.clone()),
    ];
    if context.printer.is_json() {
        let object: serde_json::Map<String, serde_json::Value> = files
            .iter()
            .map(|(name, path)| {
                ((*name).to_owned(), json!({ "path": path.to_string_lossy(), "exists": path.exists() }))
            })
            .collect();
        return context.printer.json(&object);
    }
    let mut table =
        Table::new([Column::left("what"), Column::left("path"), Column::left("")]).without_titles();
    for (name, path) in files {
        let missing = if path.exists() { "" } else { "(not there)" };
        table.row([
            Text::from(name),
            Text::from(path.display().to_string()),
            Text::new().painted(Meaning::Dim, missing),
        ]);
    }
    context.printer.table(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_listed() {
        let shown = |text: &str| masked(&Value::String(text.to_owned())).as_str().map(str::to_owned).unwrap();
        assert_eq!(shown("postgres://me:p@ss@host/db"), "postgres://me:***@host/db");
        assert_eq!(shown("postgres://me@host/db"), "postgres://me@host/db");
        assert_eq!(shown("postgres://host/db?password=x"), "postgres://host/db?***");
        assert_eq!(shown("sqlite:/x"), "sqlite:/x");
    }
}
