//! Claude Code with a person at its terminal.

use super::launch::hook_settings;
use crate::launch::{
    Conversation, LaunchError, LaunchRequest, LaunchSpec, Unsupported, extra_args, plain_value, uuid,
};

pub(super) fn launch(request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
    let mut spec = request.spec("claude");
    let mut args: Vec<String> = Vec::new();
    let mut option = |name: &str, value: String| args.extend([name.to_owned(), value]);
    match &request.conversation {
        Conversation::New => {}
        Conversation::NewWithId(id) => {
            option("--session-id", uuid(id)?);
            spec.native_id = Some(id.clone());
        }
        Conversation::Resume(id) => {
            option("--resume", plain_value("session id", id)?);
            spec.native_id = Some(id.clone());
        }
        Conversation::Fork { from, id, at } => {
            option("--resume", plain_value("session id", from)?);
            // Going back inside a conversation is for runs without a person.
            spec.unsupported.extend(at.as_ref().map(|_| Unsupported::ForkAt));
            if let Some(id) = id {
                option("--session-id", uuid(id)?);
                spec.native_id = Some(id.clone());
            }
            args.push("--fork-session".to_owned());
        }
    }
    let mut option = |name: &str, value: String| args.extend([name.to_owned(), value]);
    if let Some(model) = &request.model {
        option("--model", plain_value("model", model)?);
    }
    if let Some(command) = &request.hook_command {
        option("--settings", hook_settings(command).to_string());
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
