//! Codex with a person at its terminal.

use serde_json::json;

use crate::launch::{
    Conversation, LaunchError, LaunchRequest, LaunchSpec, Unsupported, extra_args, plain_value, uuid,
};

pub(super) fn launch(request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
    let mut spec = request.spec("codex");
    // The person's options come before ours: one that takes many values would otherwise swallow the subcommand.
    let mut args = extra_args(&request.extra_args)?;
    if let Some(model) = &request.model {
        args.extend(["--model".to_owned(), plain_value("model", model)?]);
    }
    if let Some(command) = &request.hook_command {
        // Hooks run only after a review by the person; the note at the end of a turn always does.
        args.extend(["-c".to_owned(), format!("notify={}", json!(command))]);
        spec.unsupported.push(Unsupported::ToolHooks);
    }
    match &request.conversation {
        Conversation::New => {}
        Conversation::NewWithId(_) => spec.unsupported.push(Unsupported::ChosenId),
        Conversation::Resume(id) => {
            // Anything but an id is taken for a name.
            args.extend(["resume".to_owned(), uuid(id)?]);
            spec.native_id = Some(id.clone());
        }
        Conversation::Fork { from, id, at } => {
            args.extend(["fork".to_owned(), uuid(from)?]);
            spec.unsupported.extend(id.as_ref().map(|_| Unsupported::ChosenId));
            spec.unsupported.extend(at.as_ref().map(|_| Unsupported::ForkAt));
        }
    }
    if let Some(prompt) = request.first_prompt()? {
        args.extend(["--".to_owned(), prompt]);
    }
    spec.unsupported.extend(request.max_turns.map(|_| Unsupported::MaxTurns));
    spec.unsupported.extend(request.max_cost_usd.map(|_| Unsupported::MaxCost));
    spec.args = args;
    Ok(spec)
}
