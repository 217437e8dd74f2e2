//! Claude Code with a person at its terminal.

use super::launch::conversation;
use super::launch::hook_settings;
use crate::launch::LaunchError;
use crate::launch::LaunchRequest;
use crate::launch::LaunchSpec;
use crate::launch::Unsupported;
use crate::launch::extra_args;

pub(super) fn launch(request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
    let mut spec = request.spec("claude");
    let mut args: Vec<String> = Vec::new();
    conversation(request, &mut spec, &mut args)?;
    if let Some(command) = &request.hook_command {
        args.extend(["--settings".to_owned(), hook_settings(command).to_string()]);
    }
    args.extend(extra_args(&request.extra_args)?);
    if let Some(prompt) = request.first_prompt()? {
        args.extend(["--".to_owned(), prompt]);
    }
    spec.unsupported.extend(request.max_turns.map(|_| Unsupported::MaxTurns));
    spec.unsupported.extend(request.max_cost_usd.map(|_| Unsupported::MaxCost));
    spec.args = args;
    if let Some(tmp) = &request.private_tmp {
        // Its sockets are otherwise shared by all sessions of the user, who could write to each other.
        spec.env_set.insert("CLAUDE_CODE_TMPDIR".to_owned(), tmp.clone());
    }
    Ok(spec)
}
