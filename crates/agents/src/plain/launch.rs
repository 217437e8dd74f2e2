//! The command line of a plain command.

use super::config::{PlainConfig, PromptVia};
use crate::launch::{Conversation, LaunchError, LaunchRequest, LaunchSpec, Unsupported, extra_args};

pub(super) fn launch(config: &PlainConfig, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
    let mut command = config.command.iter();
    let configured = command.next();
    let program = request.program.as_ref().or(configured).ok_or(LaunchError::NoCommand)?;
    let mut spec = request.spec(program);
    spec.args = extra_args(&command.chain(&request.extra_args).cloned().collect::<Vec<_>>())?;
    match config.prompt {
        PromptVia::Stdin => spec.stdin = request.prompt.clone().into_bytes(),
        PromptVia::Argument => spec.args.extend(extra_args(std::slice::from_ref(&request.prompt))?),
        PromptVia::None => {}
    }
    if request.conversation != Conversation::New {
        spec.unsupported.push(Unsupported::Conversations);
    }
    spec.unsupported.extend(request.model.as_ref().map(|_| Unsupported::Model));
    spec.unsupported.extend(request.max_turns.map(|_| Unsupported::MaxTurns));
    spec.unsupported.extend(request.max_cost_usd.map(|_| Unsupported::MaxCost));
    spec.unsupported.extend(request.hook_command.as_ref().map(|_| Unsupported::ToolHooks));
    if let Some(tmp) = &request.private_tmp {
        spec.env_set.insert("TMPDIR".to_owned(), tmp.clone());
    }
    Ok(spec)
}
