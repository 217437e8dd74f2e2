//! Codex's command line.

use serde_json::Value;
use serde_json::json;

use crate::launch::Conversation;
use crate::launch::LaunchError;
use crate::launch::LaunchRequest;
use crate::launch::LaunchSpec;
use crate::launch::Unsupported;
use crate::launch::extra_args;
use crate::launch::hooks_for;
use crate::launch::shell_line;
use crate::launch::uuid;

/// Flags that switch off the sandbox, the approvals or the review of hooks. Never passed by us; offered so that
/// callers can refuse them in configuration they do not trust.
pub const BYPASS_FLAGS: &[&str] =
    &["--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "--yolo"];

const HOOK_EVENTS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Interrupt",
    "Stop",
    "SessionEnd",
];

/// A hook that hangs must not hang the agent. Seconds.
const HOOK_TIMEOUT: u64 = 10;

pub(super) fn launch(request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
    let mut spec = request.spec("codex");
    spec.stdin = request.prompt_bytes()?;
    let mut args = vec!["exec".to_owned()];
    // The person's options come before ours: one that takes many values would otherwise swallow the subcommand.
    args.extend(extra_args(&request.extra_args)?);
    args.push("--json".to_owned());
    if request.outside_git {
        args.push("--skip-git-repo-check".to_owned());
    }
    conversation(request, &mut spec, &mut args)?;
    // The prompt is on stdin.
    args.push("-".to_owned());
    spec.unsupported.extend(request.max_turns.map(|_| Unsupported::MaxTurns));
    spec.unsupported.extend(request.max_cost_usd.map(|_| Unsupported::MaxCost));
    spec.args = args;
    Ok(spec)
}

/// The model, the note at the end of a turn, and which conversation: the same with a person at the terminal and without.
pub(super) fn conversation(
    request: &LaunchRequest,
    spec: &mut LaunchSpec,
    args: &mut Vec<String>,
) -> Result<(), LaunchError> {
    args.extend(request.model_args()?);
    if let Some(command) = &request.hook_command {
        // Hooks run only after a review by the person; the note at the end of a turn always does.
        args.extend(["-c".to_owned(), format!("notify={}", json!(command))]);
        spec.unsupported.push(Unsupported::ToolHooks);
    }
    match &request.conversation {
        Conversation::New => {}
        Conversation::NewWithId(_) => spec.unsupported.push(Unsupported::ChosenId),
        Conversation::Resume(id) => {
            // Anything but an id is taken for a name, and an unknown name silently opens a new thread.
            args.extend(["resume".to_owned(), uuid(id)?]);
            spec.native_id = Some(id.clone());
        }
        Conversation::Fork { from, id, at } => {
            args.extend(["fork".to_owned(), uuid(from)?]);
            spec.only_whole_copies(id.as_ref(), at.as_ref());
        }
    }
    Ok(())
}

/// The content of a `hooks.json` that sends every hook to `command`. Codex runs it only once the person has reviewed
/// and trusted it; until then it is silently ignored.
pub fn hook_settings(command: &[String]) -> Value {
    hook_settings_line(&shell_line(command))
}

/// The same for a line of a shell.
pub(super) fn hook_settings_line(line: &str) -> Value {
    hooks_for(HOOK_EVENTS, line, HOOK_TIMEOUT)
}
