//! Who answers when an agent asks whether a call may run: rules, a person at this terminal, or nobody.

use std::io::BufRead as _;
use std::io::IsTerminal as _;
use std::io::Write as _;
use std::time::Duration;

use clap::ValueEnum;
use segno_engine::agents::Agent;
use segno_engine::agents::PermissionRule;
use segno_engine::core::text::shorten;
use segno_engine::looping::Message;
use segno_engine::looping::Occasion;
use segno_engine::looping::Recipients;
use segno_engine::looping::tell_once;
use segno_engine::run::permission::Permissions;
use segno_engine::run::permission::Question;
use segno_engine::run::permission::Reply;
use segno_engine::run::permission::TellPerson;
use serde_json::Value;

use super::Args;
use crate::command_context::CommandContext;
use crate::commands::looping::notify::recipients;
use crate::config::env::Environment;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::sanitize;
use crate::output::units;

/// Most characters of an input that are shown; what is longer says so.
const SHOWN: usize = 8_000;

/// Who answers an agent's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Manner {
    /// The agent itself, by its own settings
    Agent,
    /// The rules of the configuration, then a person at this terminal
    Ask,
    /// The rules of the configuration; what none of them allows is refused
    Deny,
}

/// Who answers in this run; none leaves it to the agent.
///
/// # Errors
/// If this agent cannot ask, or a rule is not right.
pub(super) fn of_run(
    ctx: &CommandContext<'_>,
    args: &Args,
    agent: &dyn Agent,
    interactive: bool,
) -> Outcome<Option<Permissions>> {
    let context = ctx.context;
    let config = &context.config()?.run;
    let configured = Manner::from_str(&config.permissions, true).unwrap_or(Manner::Agent);
    let manner = args.permissions.unwrap_or(configured);
    if manner == Manner::Agent {
        return Ok(None);
    }
    if interactive {
        // Whoever sits at the agent's terminal is asked there.
        return match args.permissions {
            Some(_) => Err(CommandError::usage(
                "the agent asks at its own terminal; --permissions is for runs without one",
            )
            .hint("--prompt TEXT   runs it without its terminal")),
            None => Ok(None),
        };
    }
    if !agent.capabilities().asks_permission {
        let name = agent.name();
        let asks = |name: &&str| {
            let known = segno_engine::agents::by_name(name);
            known.is_some_and(|agent| agent.capabilities().asks_permission)
        };
        let others: Vec<&str> = segno_engine::agents::CODING.iter().copied().filter(asks).collect();
        let error = format!("{name} has no way to ask segno about its calls; only {} has", others.join(", "));
        return Err(
            CommandError::usage(error).hint("--permissions agent   leaves it to the agent's own settings")
        );
    }
    let rules = |texts: &[String], key: &str| {
        texts
            .iter()
            .map(|text| {
                PermissionRule::parse(text).map_err(|why| {
                    CommandError::config("config_invalid", format!("run.{key}: \"{text}\" {why}"))
                })
            })
            .collect::<Outcome<Vec<_>>>()
    };
    let there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let asks = manner == Manner::Ask;
    let patience = (config.ask_seconds > 0).then(|| Duration::from_secs(config.ask_seconds));
    if asks && !there {
        let waits = patience.map_or("until it is answered".to_owned(), units::duration);
        let hint = ["segno answer".to_owned()];
        let text =
            format!("there is no terminal to ask at: a call that no rule allows waits {waits} for an answer");
        context.printer.warn_with(text, &hint);
    }
    let otherwise = match manner {
        Manner::Ask => "nobody is there to be asked",
        _ => "no rule allows it, and nobody is asked",
    };
    Ok(Some(Permissions {
        allow: rules(&config.allow, "allow")?,
        deny: rules(&config.deny, "deny")?,
        person: (asks && there).then(|| Box::new(ask) as segno_engine::run::permission::AskPerson),
        otherwise: otherwise.to_owned(),
        waits: asks,
        tell: if asks { teller(ctx)? } else { None },
        patience,
        directory: context.project.root.clone(),
    }))
}

/// Tells whoever the settings name that a question waits.
fn teller(ctx: &CommandContext<'_>) -> Outcome<Option<TellPerson>> {
    let context = ctx.context;
    let recipients = recipients(context)?;
    if recipients == Recipients::default() {
        return Ok(None);
    }
    let environment = Environment::inherited();
    let directory = context.project.root.clone();
    let warn = context.printer.warns_from_elsewhere();
    let redactor = ctx.engine.redactor();
    Ok(Some(Box::new(move |question: &Question| {
        let id = question.id.as_deref().unwrap_or_default();
        let message = Message {
            occasion: Occasion::Question,
            session: question.session,
            topic: question.topic.clone(),
            text: format!("may it use {}?  segno answer {id}", question.tool),
            at: question.at,
        };
        for problem in tell_once(&recipients, &environment, &directory, redactor.clone(), &message) {
            warn(&problem);
        }
    })))
}

/// Puts a question to whoever sits there.
fn ask(question: &Question) -> Reply {
    let mut err = std::io::stderr().lock();
    let text = shown(question);
    let (first, more) = beginning(&text);
    let like = sanitize::line(&shorten(&question.like.to_string(), 60)).into_owned();
    // A terminal that is gone answers with an end of file, below.
    let _ = write!(err, "\n  may it?  {}\n{first}\n", sanitize::line(&question.tool));
    let stdin = std::io::stdin();
    // What was typed before the question was seen is no answer to it.
    let _ = rustix::termios::tcflush(&stdin, rustix::termios::QueueSelector::IFlush);
    let mut input = stdin.lock();
    loop {
        let all = if more { "   [v]iew all of it" } else { "" };
        let _ = write!(err, "  [y]es   [a]lways in this run, exactly: {like}{all}   [n]o, or no and why: ");
        let _ = err.flush();
        let mut line = String::new();
        match input.read_line(&mut line) {
            Ok(0) | Err(_) => return Reply::Gone,
            Ok(_) => {}
        }
        if more && matches!(line.trim().to_lowercase().as_str(), "v" | "view") {
            let _ = writeln!(err, "{text}");
            continue;
        }
        if let Some(reply) = understood(&line) {
            return reply;
        }
    }
}

/// As much of a long text as fits, and whether there is more.
fn beginning(text: &str) -> (String, bool) {
    let count = text.chars().count();
    if count <= SHOWN {
        return (text.to_owned(), false);
    }
    let first: String = text.chars().take(SHOWN).collect();
    (format!("{first}\n    … and {} more characters", count - SHOWN), true)
}

/// What was meant; none for what says neither yes nor no.
fn understood(line: &str) -> Option<Reply> {
    let line = line.trim();
    let (word, rest) = line.split_once([' ', ',', ':']).unwrap_or((line, ""));
    match word.to_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Some(Reply::Yes),
        "a" | "always" if rest.is_empty() => Some(Reply::Always),
        "n" | "no" => Some(Reply::No(Some(rest.trim().to_owned()).filter(|why| !why.is_empty()))),
        _ => None,
    }
}

/// The input in full: what is not seen cannot be judged. A command is shown as it would be typed, and whatever comes
/// with it below.
fn shown(question: &Question) -> String {
    let mut value: Value =
        question.input.read().unwrap_or_else(|| Value::String(question.input.get().to_owned()));
    let mut parts = Vec::new();
    if let Some(members) = value.as_object_mut()
        && let Some(Value::String(command)) = members.get("command").cloned()
    {
        members.remove("command");
        parts.push(command);
    }
    let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
    if !is_empty || parts.is_empty() {
        parts.push(serde_json::to_string_pretty(&value).unwrap_or_default());
    }
    let lines = parts
        .iter()
        .flat_map(|part| sanitize::block(part).lines().map(|line| format!("    {line}")).collect::<Vec<_>>());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use segno_engine::agents::Raw;
    use segno_engine::agents::SameCall;
    use serde_json::json;

    use super::*;

    #[test]
    fn answers() {
        for (line, reply) in [
            ("y\n", Some(Reply::Yes)),
            (" YES \n", Some(Reply::Yes)),
            ("a\n", Some(Reply::Always)),
            ("n\n", Some(Reply::No(None))),
            ("no, use make\n", Some(Reply::No(Some("use make".to_owned())))),
            ("n use make\n", Some(Reply::No(Some("use make".to_owned())))),
            ("\n", None),
            ("yes but only once\n", None),
            ("yolo\n", None),
        ] {
            assert_eq!(understood(line), reply, "{line:?}");
        }
    }

    #[test]
    fn what_is_shown_is_harmless_and_says_what_is_missing() {
        let question = |input: Value| Question {
            id: None,
            session: segno_engine::core::SessionId::at(segno_engine::core::Timestamp::from_micros(0)),
            topic: String::new(),
            at: segno_engine::core::Timestamp::from_micros(0),
            tool: "Bash".to_owned(),
            input: Raw::from_value(&input),
            like: SameCall::of("Bash", &Raw::from_value(&input)),
        };
        let text = shown(&question(json!({ "command": "echo \u{1b}[2J\nrm x" })));
        assert!(!text.contains('\u{1b}') && text.contains("    rm x"), "{text:?}");
        let long = shown(&question(json!({ "command": "x".repeat(SHOWN + 7) })));
        assert!(long.len() > SHOWN, "all of it can be seen");
        let (first, more) = beginning(&long);
        assert!(more && first.ends_with("more characters"), "{}", &first[first.len() - 80..]);
        let whole = shown(&question(json!({ "command": "make", "dangerouslyDisableSandbox": true })));
        assert!(whole.contains("    make") && whole.contains("dangerouslyDisableSandbox"), "{whole}");
        assert!(shown(&question(json!({ "file_path": "/a" }))).contains("\"file_path\": \"/a\""));
    }
}
