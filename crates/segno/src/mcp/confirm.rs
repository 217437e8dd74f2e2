//! What a person is asked before something is done that only they decide, and the mark by which their answer is known.

use serde_json::Value;

/// Equal for the same plan while the files that it is about are as they were.
pub(crate) fn mark(plan: &Value, question: &str, root: &std::path::Path) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let mut hasher = blake3::Hasher::new();
    hasher.update(plan.to_string().as_bytes());
    hasher.update(question.as_bytes());
    for name in ["writes", "removes"] {
        let paths = plan.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for path in paths {
            let there = std::fs::symlink_metadata(root.join(path)).ok();
            let seen = there
                .map(|it| (it.ino(), it.size(), it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()));
            hasher.update(format!("{path:?} {seen:?}").as_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

/// What a person is asked before files are put back.
pub(crate) fn files(plan: &Value) -> String {
    let list = |name: &str| -> Vec<&str> {
        plan.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let (writes, removes) = (list("writes"), list("removes"));
    let to = plan.get("to").and_then(Value::as_str).unwrap_or("a checkpoint");
    let mut text = format!(
        "Put the files of this project back to {to}? {} would be written, {} removed. What is there now is kept first.",
        writes.len(),
        removes.len()
    );
    for (verb, paths) in [("write", writes), ("remove", removes)] {
        for path in paths.iter().take(20) {
            text.push_str(&format!("\n{verb} {}", path.escape_debug()));
        }
        if paths.len() > 20 {
            text.push_str(&format!("\n… and {} more to {verb}", paths.len() - 20));
        }
    }
    text
}

/// What a person is asked before a question of another agent is answered in their name.
pub(super) fn answer(question: &Value, said: &str) -> String {
    let text = |name: &str| question.get(name).and_then(Value::as_str).unwrap_or_default();
    let topic = text("topic").escape_debug();
    let mut asked = format!(
        "Answer \"{}\" in your name?\n{} {} of session {} ({topic}): {}",
        said.escape_debug(),
        text("kind"),
        text("id"),
        text("session_id"),
        text("text").escape_debug()
    );
    if let Some(input) = question.get("input").and_then(Value::as_str) {
        asked.push_str(&format!("\nAll of it: {}", input.escape_debug()));
    }
    asked
}

/// What a person is asked before a loop begins: everything that will run without an agent's own rules of permission.
pub(super) fn looping(document: &Value) -> String {
    let plan = document.get("plan").unwrap_or(&Value::Null);
    let phases = plan.get("phases").and_then(Value::as_array).into_iter().flatten();
    let mut commands: Vec<&str> = Vec::new();
    for phase in phases {
        let list = |name: &str| phase.get(name).and_then(Value::as_array).into_iter().flatten();
        let measures = list("evidence").filter_map(|one| one.get("command")?.as_str());
        let around = ["on_start", "on_complete", "on_error"].into_iter().flat_map(list);
        for command in measures.chain(around.filter_map(Value::as_str)) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
    }
    let told = document.get("prompt").and_then(Value::as_str).unwrap_or_default();
    let told = segno_engine::core::text::shorten(told, 2_000);
    let mut asked =
        "Begin a loop in the background? An agent works until it is done, and segno runs these commands \
                     as you would, again and again:"
            .to_owned();
    for command in commands {
        asked.push_str(&format!("\n  {}", command.escape_debug()));
    }
    asked.push_str(&format!("\nThe agent is told: {}", told.escape_debug()));
    asked
}
