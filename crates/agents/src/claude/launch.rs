//! Claude Code's command line.

use serde_json::Value;

use crate::launch::Conversation;
use crate::launch::LaunchError;
use crate::launch::LaunchRequest;
use crate::launch::LaunchSpec;
use crate::launch::Unsupported;
use crate::launch::extra_args;
use crate::launch::hooks_for;
use crate::launch::plain_value;
use crate::launch::shell_line;
use crate::launch::uuid;

/// Flags that switch off the agent's own permissions. Never passed by us; offered so that callers can refuse them in
/// configuration they do not trust.
pub const BYPASS_FLAGS: &[&str] = &["--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"];

/// Hook events that tell what the output of a run does not tell, or not before it happens. The others would cost the
/// agent a process each for nothing.
const BESIDE_OUTPUT: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
];

/// With a person at the terminal there is no output: these are worth a process too. `PostToolBatch` and the like say
/// nothing new.
const WITHOUT_OUTPUT: &[&str] = &["SessionStart", "UserPromptSubmit", "Stop", "StopFailure", "SessionEnd"];

/// A hook that hangs must not hang the agent. Seconds.
const HOOK_TIMEOUT: u64 = 10;

pub(super) fn launch(request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
    let mut spec = request.spec("claude");
    spec.stdin = request.prompt_bytes()?;
    // `--verbose` is not a choice: without it this output format is refused.
    let mut args: Vec<String> =
        ["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned).into();
    if request.forwards_permission_prompts {
        let more = ["--input-format", "stream-json", "--permission-prompt-tool", "stdio"];
        args.extend(more.map(str::to_owned));
        spec.stdin = super::permission::prompt(&request.prompt);
        spec.keeps_stdin = true;
    }
    conversation(request, &mut spec, &mut args)?;
    let mut option = |name: &str, value: String| args.extend([name.to_owned(), value]);
    if let Some(turns) = request.max_turns {
        option("--max-turns", turns.to_string());
    }
    if let Some(cost) = request.max_cost_usd.filter(|cost| cost.is_finite() && *cost > 0.0) {
        option("--max-budget-usd", cost.to_string());
    }
    if let Some(command) = &request.hook_command {
        option("--settings", hooks_for(BESIDE_OUTPUT, &shell_line(command), HOOK_TIMEOUT).to_string());
    }
    args.extend(extra_args(&request.extra_args)?);
    spec.args = args;
    if let Some(tmp) = &request.private_tmp {
        // Its sockets are otherwise shared by all sessions of the user, who could write to each other.
        spec.env_set.insert("CLAUDE_CODE_TMPDIR".to_owned(), tmp.clone());
    }
    Ok(spec)
}

/// Which conversation and which model: the same with a person at the terminal and without.
pub(super) fn conversation(
    request: &LaunchRequest,
    spec: &mut LaunchSpec,
    args: &mut Vec<String>,
) -> Result<(), LaunchError> {
    match &request.conversation {
        Conversation::New => {}
        Conversation::NewWithId(id) => spec.name_conversation(args, "--session-id", uuid(id)?, id),
        Conversation::Resume(id) => {
            spec.name_conversation(args, "--resume", plain_value("session id", id)?, id);
        }
        Conversation::Fork { from, id, at } => {
            args.extend(["--resume".to_owned(), plain_value("session id", from)?]);
            match at {
                // Going back inside a conversation is for runs without a person.
                Some(_) if request.interactive => spec.unsupported.push(Unsupported::ForkAt),
                Some(at) => {
                    args.extend(["--resume-session-at".to_owned(), plain_value("event id", at)?]);
                }
                None => {}
            }
            if let Some(id) = id {
                spec.name_conversation(args, "--session-id", uuid(id)?, id);
            }
            args.push("--fork-session".to_owned());
        }
    }
    args.extend(request.model_args()?);
    Ok(())
}

/// Settings that send every hook of interest to `command`. They add to the person's own settings.
pub fn hook_settings(command: &[String]) -> Value {
    hook_settings_line(&shell_line(command))
}

/// The same for a line of a shell.
pub(super) fn hook_settings_line(line: &str) -> Value {
    hooks_for(&[BESIDE_OUTPUT, WITHOUT_OUTPUT].concat(), line, HOOK_TIMEOUT)
}
