//! Gemini CLI's command line.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

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

/// Flags that switch off the agent's own permissions or its trust in folders. Never passed by us; offered so that
/// callers can refuse them in configuration they do not trust.
pub const BYPASS_FLAGS: &[&str] = &[
    "--yolo",
    "-y",
    "--approval-mode",
    "--approval-mode=yolo",
    "--approval-mode=auto_edit",
    "--skip-trust",
    "--allowed-tools",
    "--policy",
    "--admin-policy",
];

/// Hook events worth a process each. Those around every request to the model carry the whole conversation.
const HOOK_EVENTS: &[&str] =
    &["SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "PreCompress", "AfterAgent", "SessionEnd"];

/// A hook that hangs must not hang the agent. Milliseconds, unlike in other agents.
const HOOK_TIMEOUT: u64 = 10_000;

/// The file of settings that stand below everything the person has set.
const DEFAULTS: &str = "gemini-defaults.json";

/// Variables that hooks need even where the agent hides its environment from them, as it does in some build systems.
const OURS: &str = "SEGNO_";

pub(super) fn launch(request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
    let mut spec = request.spec("gemini");
    let mut args: Vec<String> = if request.interactive {
        let prompt = request.first_prompt()?;
        prompt.into_iter().map(|prompt| format!("--prompt-interactive={prompt}")).collect()
    } else {
        spec.stdin = request.prompt_bytes()?;
        ["--output-format", "stream-json"].map(str::to_owned).into()
    };
    match &request.conversation {
        Conversation::New => {}
        Conversation::NewWithId(id) => spec.name_conversation(&mut args, "--session-id", uuid(id)?, id),
        // Anything but an id is taken for a number of its list.
        Conversation::Resume(id) => spec.name_conversation(&mut args, "--resume", uuid(id)?, id),
        Conversation::Fork { from, id, at } => {
            if !from.contains('/') {
                return Err(LaunchError::NotRecord { value: from.clone() });
            }
            args.extend(["--session-file".to_owned(), plain_value("record", from)?]);
            spec.only_whole_copies(id.as_ref(), at.as_ref());
        }
    }
    args.extend(request.model_args()?);
    args.extend(extra_args(&request.extra_args)?);
    spec.args = args;
    settings(request, &mut spec);
    // Otherwise it starts itself again as a child, and ignores the signals that its parent gets.
    spec.env_set.insert("GEMINI_CLI_NO_RELAUNCH".to_owned(), "true".to_owned());
    spec.unsupported.extend(request.max_cost_usd.map(|_| Unsupported::MaxCost));
    Ok(spec)
}

/// Hooks and the cap on turns go into a file of defaults, which is the one place that takes nothing away: settings of
/// the person and of the machine's administrator win over it, and hooks of all places run. The agent reads such a file
/// only if it and all directories above it belong to root and nobody else can write there, so this works for root (in
/// a container, say) and is passed over with a warning for everybody else; they have [`hook_settings`].
fn settings(request: &LaunchRequest, spec: &mut LaunchSpec) {
    let mut settings = json!({});
    if request.interactive {
        // A file that it passes over is a warning before the person's eyes, for hooks that name no calls.
        spec.unsupported.extend(request.hook_command.as_ref().map(|_| Unsupported::ToolHooks));
    } else if let Some(command) = &request.hook_command {
        settings = hook_settings(command);
        let ours = request.env.iter().filter(|(name, _)| name.starts_with(OURS));
        let ours: BTreeMap<&String, &String> = ours.collect();
        for entry in settings["hooks"].as_object_mut().into_iter().flat_map(|events| events.values_mut()) {
            entry[0]["hooks"][0]["env"] = json!(ours);
        }
        // Its hooks name no call by the id that the stream gives it.
        spec.unsupported.push(Unsupported::ToolHooks);
    }
    spec.unsupported.extend(request.max_turns.filter(|_| request.interactive).map(|_| Unsupported::MaxTurns));
    if let Some(turns) = request.max_turns.filter(|_| !request.interactive) {
        settings["model"] = json!({ "maxSessionTurns": turns });
        // The person may have set another number, which wins.
        spec.unsupported.push(Unsupported::MaxTurns);
    }
    if settings.as_object().is_some_and(|settings| !settings.is_empty())
        && let Some(path) = request.private_file(spec, DEFAULTS, settings.to_string())
    {
        spec.env_set.insert("GEMINI_CLI_SYSTEM_DEFAULTS_PATH".to_owned(), path);
    }
}

/// Settings that send every hook of interest to `command`, for a file of the person's such as
/// `~/.gemini/settings.json`. Hooks of all places run.
pub fn hook_settings(command: &[String]) -> Value {
    // A refusal is what the command writes. Its exit code must not be one: the agent takes any above 1 for it, also
    // that of a program which is not there.
    hook_settings_line(&format!("{} || true", shell_line(command)))
}

/// The same for a line of a shell, which must end with 0.
pub(super) fn hook_settings_line(line: &str) -> Value {
    hooks_for(HOOK_EVENTS, line, HOOK_TIMEOUT)
}
