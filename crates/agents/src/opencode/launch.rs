//! opencode's command line, and the plug-in that stands for hooks.

use serde_json::Value;
use serde_json::json;

use super::calls::BY_HOOK;
use crate::launch::Conversation;
use crate::launch::LaunchError;
use crate::launch::LaunchRequest;
use crate::launch::LaunchSpec;
use crate::launch::Unsupported;
use crate::launch::extra_args;
use crate::launch::plain_value;

/// The flag that approves everything that is not forbidden. Never passed by us; offered so that callers can refuse it
/// in configuration they do not trust.
pub const BYPASS_FLAGS: &[&str] = &["--auto", "--auto=true", "--dangerously-skip-permissions"];

/// Configuration for one run, which adds to that of the person.
const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

const PLUGIN: &str = "opencode-hooks.js";

/// What a line of the plug-in begins with that tells of a wait for the provider.
pub(super) const WAITS: &str = "segno-waits:";

pub(super) fn launch(request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
    let mut spec = request.spec("opencode");
    let mut args: Vec<String> = if request.interactive {
        let prompt = request.first_prompt()?;
        prompt.into_iter().map(|prompt| format!("--prompt={prompt}")).collect()
    } else {
        spec.stdin = request.prompt_bytes()?;
        ["run", "--format", "json"].map(str::to_owned).into()
    };
    match &request.conversation {
        Conversation::New => {}
        Conversation::NewWithId(_) => spec.unsupported.push(Unsupported::ChosenId),
        Conversation::Resume(id) => {
            spec.name_conversation(&mut args, "--session", plain_value("session id", id)?, id);
        }
        Conversation::Fork { from, id, at } => {
            args.extend(["--session".to_owned(), plain_value("session id", from)?, "--fork".to_owned()]);
            spec.only_whole_copies(id.as_ref(), at.as_ref());
        }
    }
    args.extend(request.model_args()?);
    args.extend(extra_args(&request.extra_args)?);
    spec.args = args;
    if let Some(command) = &request.hook_command
        && hooks(request, command, &mut spec).is_none()
    {
        spec.unsupported.push(Unsupported::ToolHooks);
    }
    spec.unsupported.extend(request.max_turns.map(|_| Unsupported::MaxTurns));
    spec.unsupported.extend(request.max_cost_usd.map(|_| Unsupported::MaxCost));
    Ok(spec)
}

/// Points this run to a plug-in file. Without a place for the file there are no hooks, nor with configuration for the
/// run that cannot be added to.
fn hooks(request: &LaunchRequest, command: &[String], spec: &mut LaunchSpec) -> Option<()> {
    let given = request.env.get(CONFIG).map_or("{}", String::as_str);
    let mut config: Value = serde_json::from_str(given).ok().filter(Value::is_object)?;
    let path = request.private_file(spec, PLUGIN, plugin(command))?;
    match config["plugin"].as_array_mut() {
        Some(plugins) => plugins.push(file_url(&path).into()),
        None => config["plugin"] = json!([file_url(&path)]),
    }
    spec.env_set.insert(CONFIG.to_owned(), config.to_string());
    // With any plug-in it first looks for packages of its own, and without a network tries that for two minutes.
    // The plug-in takes this away again before the agent's tools could see it.
    spec.env_set.entry("npm_config_fetch_retries".to_owned()).or_insert_with(|| "0".to_owned());
    Some(())
}

/// The text of a plug-in that sends what happens to `command`, one payload on stdin per call.
pub fn plugin(command: &[String]) -> String {
    plugin_text(command, false)
}

/// The text of a plug-in that stands in the person's own configuration. In a run that has a driver it does nothing: the
/// driver gave that run a plug-in of its own.
pub fn watching_plugin(command: &[String]) -> String {
    format!("// Made by `segno init`, taken away by `segno uninit`.\n{}", plugin_text(command, true))
}

fn plugin_text(command: &[String], watching: bool) -> String {
    format!(
        "const COMMAND = {};\nconst REFUSED = {};\nconst WAITS = {};\nconst WATCHING = {watching};\n{}",
        json!(command),
        json!(BY_HOOK),
        json!(WAITS),
        include_str!("plugin.js")
    )
}

/// Arguments that make the program print its own record of a conversation, which
/// its conversation log reads.
///
/// # Errors
/// The id cannot be an argument.
pub fn export_args(id: &str) -> Result<Vec<String>, LaunchError> {
    Ok(vec!["export".to_owned(), plain_value("session id", id)?])
}

/// An absolute path as a URL.
pub fn file_url(path: &str) -> String {
    let mut url = "file://".to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::file_url;

    #[test]
    fn urls() {
        assert_eq!(file_url("/run/a b/100%/\u{e9}.js"), "file:///run/a%20b/100%25/%C3%A9.js");
    }
}
