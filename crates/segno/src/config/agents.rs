//! The sections `[agents.NAME]`: how an agent is run, and for any other command how it is read.

use segno_engine::agents::plain::PlainConfig;
pub use segno_engine::launch::AgentSettings;
pub use segno_engine::launch::Common;
use toml::Table;
use toml::Value;

/// The keys of [`Common`].
const COMMON: &[&str] =
    &["program", "model", "extra_args", "env", "max_turns", "max_cost_usd", "silence_seconds"];

/// The settings of one agent; none of its own if there is no such section.
///
/// # Errors
/// What is wrong with the section.
pub fn settings(agents: &Table, name: &str) -> Result<AgentSettings, String> {
    match agents.get(name) {
        None => Ok(AgentSettings::default()),
        Some(Value::Table(section)) => read(name, section),
        Some(_) => Err(format!("has {name}, which is no section: write [agents.{name}]")),
    }
}

/// Checks every section.
///
/// # Errors
/// What is wrong with the first one that is not right.
pub fn check(agents: &Table) -> Result<(), String> {
    for name in agents.keys() {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            return Err(format!("has a name that is not made of letters, digits, `-` and `_`: {name:?}"));
        }
        settings(agents, name)?;
    }
    Ok(())
}

fn read(name: &str, section: &Table) -> Result<AgentSettings, String> {
    let wrong = |why: toml::de::Error| format!("has [agents.{name}], which is not right: {}", why.message());
    // For a described command `model` and `max_turns` may also be the arguments that set them.
    let (common, own): (Table, Table) = section.clone().into_iter().partition(|(key, value)| {
        let arguments = matches!(key.as_str(), "model" | "max_turns") && value.is_array();
        COMMON.contains(&key.as_str()) && !arguments
    });
    let common: Common = Value::Table(common).try_into().map_err(wrong)?;
    if common.max_cost_usd < 0.0 || !common.max_cost_usd.is_finite() {
        return Err(format!("has [agents.{name}], whose max_cost_usd is no amount"));
    }
    if own.is_empty() {
        return Ok(AgentSettings { common, plain: None });
    }
    let mut plain: PlainConfig = Value::Table(own).try_into().map_err(wrong)?;
    if plain.command.is_empty() && common.program.is_empty() {
        return Err(format!("has [agents.{name}] without a command"));
    }
    plain.name = name.to_owned();
    Ok(AgentSettings { common, plain: Some(plain) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_known_agent_and_a_described_one() {
        let agents = table(
            r#"
            [claude]
            model = "opus"
            extra_args = ["--add-dir", "x"]
            silence_seconds = 9
            [mine]
            command = ["my-agent", "--json"]
            model = ["--model", "{model}"]
            resume = ["--resume", "{id}"]
            format = "json"
            max_turns = 3
            [[mine.rules]]
            kind = "text"
            when = { "$.type" = "message" }
            fields = { text = "$.message.text" }
            "#,
        );
        check(&agents).unwrap();
        let claude = settings(&agents, "claude").unwrap();
        assert_eq!((claude.common.model.as_str(), claude.common.silence_seconds), ("opus", Some(9)));
        assert!(claude.plain.is_none());
        let mine = settings(&agents, "mine").unwrap();
        assert_eq!(mine.common.max_turns, 3);
        assert_eq!(mine.plain.unwrap().name, "mine");
        assert_eq!(settings(&agents, "other").unwrap(), AgentSettings::default());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("claude = 1", "no section"),
            ("[a]\nformat = \"json\"", "without a command"),
            ("[a]\ncommand = [\"x\"]\nmodell = \"y\"", "modell"),
            ("[a]\nmodel = 1", "not right"),
            ("[\"a b\"]\nmodel = \"x\"", "letters"),
            ("[a]\nmax_cost_usd = -1.0", "no amount"),
        ] {
            let why = check(&table(text)).unwrap_err();
            assert!(why.contains(says), "{text}: {why}");
        }
    }
}
