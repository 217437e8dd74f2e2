//! Calling hooks as real agents do, and playing one.

use std::io::Write;
use std::io::{self};
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::children::write_whole;
use super::scene::Scene;

/// Calls the hooks of an event; says whether one of them refused.
pub(super) fn call(
    scene: &Scene,
    event: &str,
    payload: &Map<String, Value>,
    command: Option<&str>,
) -> io::Result<bool> {
    let cwd = std::env::current_dir()?.to_string_lossy().into_owned();
    let mut full = payload.clone();
    full.insert("hook_event_name".to_owned(), event.into());
    full.insert("session_id".to_owned(), scene.session.as_str().into());
    full.insert("cwd".to_owned(), cwd.into());
    let payload = Value::Object(full).to_string();
    let commands = command.map_or_else(|| configured(scene, event), |command| vec![command.to_owned()]);
    let mut refused = false;
    for command in commands {
        refused |= refuses(&command, &payload)?;
    }
    Ok(refused)
}

/// The commands that `--settings` names for an event.
fn configured(scene: &Scene, event: &str) -> Vec<String> {
    let at = scene.args.iter().position(|arg| arg == "--settings");
    let settings = at.and_then(|at| scene.args.get(at + 1)).map(String::as_str).unwrap_or_default();
    // A file or the settings themselves, as for the real agent.
    let text = std::fs::read_to_string(settings).unwrap_or_else(|_| settings.to_owned());
    let settings: Value = serde_json::from_str(&text).unwrap_or_default();
    let groups = settings["hooks"][event].as_array().into_iter().flatten();
    let hooks = groups.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
    hooks.filter_map(|hook| hook["command"].as_str().map(str::to_owned)).collect()
}

/// A hook refuses by exit code 2, or by saying so.
fn refuses(command: &str, payload: &str) -> io::Result<bool> {
    let mut hook =
        Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = hook.stdin.take() {
        // A hook need not read its payload.
        let _ = stdin.write_all(payload.as_bytes());
    }
    let done = hook.wait_with_output()?;
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
    Ok(done.status.code() == Some(2)
        || answer["decision"] == "block"
        || answer["hookSpecificOutput"]["permissionDecision"] == "deny")
}

/// Calls the program that `-c notify=[…]` names.
pub(super) fn notify(scene: &Scene, payload: &Value) -> io::Result<()> {
    let Some(list) = scene.args.iter().find_map(|arg| arg.strip_prefix("notify=")) else { return Ok(()) };
    let words: Vec<String> = serde_json::from_str(list)?;
    if let Some((program, args)) = words.split_first() {
        Command::new(program).args(args).arg(payload.to_string()).stdin(Stdio::null()).status()?;
    }
    Ok(())
}

/// Writes down how this process was called.
pub(super) fn record(scene: &Scene, directory: &str) -> io::Result<()> {
    let of_agent = |name: &str| {
        ["CLAUDE", "CODEX", "SEGNO"].iter().any(|prefix| name.starts_with(prefix))
            && !name.starts_with("SEGNO_TESTKIT")
    };
    let env: Map<String, Value> = std::env::vars()
        .filter(|(name, _)| of_agent(name))
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    let record = json!({ "args": scene.args, "stdin": scene.stdin(), "env": env });
    // Ids of this kind sort by time.
    let name = format!("{}.json", uuid::Uuid::now_v7());
    write_whole(&Path::new(directory).join(name), record.to_string().as_bytes())
}
