//! The command line of a plain command.

use super::config::OPTIONS;
use super::config::PlainConfig;
use super::config::PromptVia;
use crate::launch::Conversation;
use crate::launch::LaunchError;
use crate::launch::LaunchRequest;
use crate::launch::LaunchSpec;
use crate::launch::Unsupported;
use crate::launch::extra_args;
use crate::launch::plain_value;

pub(super) fn launch(config: &PlainConfig, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
    let mut command = config.command.iter().cloned();
    let configured = command.next();
    let program = request.program.clone().or(configured).ok_or(LaunchError::NoCommand)?;
    let mut spec = request.spec(&program);
    for (name, value) in &config.env {
        spec.env_set.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let options = options(config, request, &mut spec)?;
    let mut command: Vec<String> = command.collect();
    // All options come before the mark after which nothing is one.
    let marked = command.pop_if(|arg| arg == "--");
    let at = command.iter().position(|arg| arg == OPTIONS);
    let (before, after) = match at {
        Some(at) => (&command[..at], &command[at + 1..]),
        None => (&command[..], &[][..]),
    };
    spec.args = extra_args(&[before, &options, after, &request.extra_args].concat())?;
    match &config.prompt {
        PromptVia::Stdin => spec.stdin = request.prompt.clone().into_bytes(),
        PromptVia::Argument => spec.args.extend(match marked {
            Some(mark) => extra_args(&[mark, request.prompt.clone()])?,
            // The command would take a first dash for an option.
            None => vec![plain_value("prompt", &request.prompt)?],
        }),
        PromptVia::Flag(flag) => {
            let words = extra_args(&[flag.clone(), request.prompt.clone()])?;
            match flag.starts_with("--") {
                true => spec.args.push(words.join("=")),
                false => spec.args.extend(words),
            }
        }
        PromptVia::None => {}
    }
    spec.unsupported.extend(request.max_cost_usd.map(|_| Unsupported::MaxCost));
    spec.unsupported.extend(request.hook_command.as_ref().map(|_| Unsupported::ToolHooks));
    if let Some(tmp) = &request.private_tmp {
        spec.env_set.insert("TMPDIR".to_owned(), tmp.clone());
    }
    Ok(spec)
}

/// The arguments for the conversation, the model and the cap on turns; what the command does not know is said.
fn options(
    config: &PlainConfig,
    request: &LaunchRequest,
    spec: &mut LaunchSpec,
) -> Result<Vec<String>, LaunchError> {
    let mut args = Vec::new();
    let mut missing = Vec::new();
    match &request.conversation {
        Conversation::New => {}
        Conversation::NewWithId(id) if config.begin.is_empty() => {
            // Without conversations there is no id to choose either.
            let none = config.resume.is_empty() && config.fork.is_empty();
            missing.push(if none { Unsupported::Conversations } else { Unsupported::ChosenId });
            plain_value("session id", id)?;
        }
        Conversation::NewWithId(id) => {
            args.extend(filled(&config.begin, "{id}", &plain_value("session id", id)?));
            spec.native_id = Some(id.clone());
        }
        Conversation::Resume(_) if config.resume.is_empty() => missing.push(Unsupported::Conversations),
        Conversation::Resume(id) => {
            args.extend(filled(&config.resume, "{id}", &plain_value("session id", id)?));
            spec.native_id = Some(id.clone());
        }
        Conversation::Fork { .. } if config.fork.is_empty() => missing.push(Unsupported::Conversations),
        Conversation::Fork { from, id, at } => {
            args.extend(filled(&config.fork, "{id}", &plain_value("session id", from)?));
            missing.extend(id.as_ref().map(|_| Unsupported::ChosenId));
            missing.extend(at.as_ref().map(|_| Unsupported::ForkAt));
        }
    }
    match &request.model {
        Some(_) if config.model.is_empty() => missing.push(Unsupported::Model),
        Some(model) => args.extend(filled(&config.model, "{model}", &plain_value("model", model)?)),
        None => {}
    }
    match request.max_turns {
        Some(_) if config.max_turns.is_empty() => missing.push(Unsupported::MaxTurns),
        Some(turns) => args.extend(filled(&config.max_turns, "{turns}", &turns.to_string())),
        None => {}
    }
    spec.unsupported.extend(missing);
    Ok(args)
}

fn filled(args: &[String], placeholder: &str, value: &str) -> Vec<String> {
    args.iter().map(|arg| arg.replace(placeholder, value)).collect()
}
