//! Resources and prompts.

use rmcp::model::Prompt;
use rmcp::model::PromptArgument;
use rmcp::model::Resource;
use serde_json::Value;
use serde_json::json;

use super::tools;
use super::worker::Worker;
use crate::cli::Command;
use crate::commands::looping;
use crate::commands::resume;

/// How the resources of the dashboard that loops are known by begin.
const DASHBOARD: &str = "bp://dashboard/";
/// Parts of the dashboard, as that dashboard names them.
const PARTS: &[(&str, &str)] = &[
    ("status", "Where the loop stands"),
    ("circuit-breaker", "What the breaker has counted"),
    ("dual-gate", "The conditions of the phase's gate"),
    ("metrics", "What was measured"),
    ("rate-limit", "Windows and waiting"),
    ("history", "What happened, newest last"),
    ("all", "All of it"),
];

/// What can be read.
pub(super) fn resources() -> Vec<Resource> {
    let json = |uri: String, name: &str, about: &str| {
        Resource::new(uri, name.to_owned()).with_description(about).with_mime_type("application/json")
    };
    let own = [
        json("segno://session".to_owned(), "session", "Where the session stands"),
        json("segno://brief".to_owned(), "brief", "What to know before going on with the session"),
        json("segno://sessions".to_owned(), "sessions", "The sessions of this project"),
    ];
    let parts = PARTS.iter().map(|(part, about)| json(format!("{DASHBOARD}{part}"), part, about));
    own.into_iter().chain(parts).collect()
}

/// Reads a resource.
pub(super) fn read(worker: &Worker<'_, '_>, uri: &str) -> Result<Value, String> {
    let perform = |command: &Command| worker.perform(command).map_err(|error| error.to_string());
    match uri {
        "segno://session" => perform(&tools::status(None)),
        "segno://brief" => perform(&Command::Resume(resume::Args { show_brief: true, ..Default::default() })),
        "segno://sessions" => match tools::wanted("list", Default::default()) {
            Some(Ok(tools::Wanted::Command(list))) => perform(&list),
            _ => Err("the list cannot be made".to_owned()),
        },
        _ => match uri.strip_prefix(DASHBOARD) {
            Some(part) if PARTS.iter().any(|(name, _)| *name == part) => dashboard(worker, part),
            _ => Err(format!("there is no resource {uri}")),
        },
    }
}

/// One part of the dashboard. Where no loop is, it is idle: that is no error to whoever only looks.
fn dashboard(worker: &Worker<'_, '_>, part: &str) -> Result<Value, String> {
    let Ok(whole) = worker.perform(&looping::status_command()) else {
        return Ok(json!({ "status": "idle" }));
    };
    let member = |name: &str| whole.get(name).cloned().unwrap_or(Value::Null);
    Ok(match part {
        "circuit-breaker" => member("breaker"),
        "dual-gate" => member("gate"),
        "metrics" => json!({
            "phase": member("phase"), "tests": member("tests"), "recent": member("recent"), "tokens": member("tokens"),
            "cost_micros": member("cost_micros"), "unpriced": member("unpriced"),
        }),
        "rate-limit" => json!({
            "waiting_until": member("waiting_until"), "waiting_for": member("waiting_for"),
            "countdown": member("countdown"),
        }),
        "history" => {
            let show = tools::wanted("show", [("part".to_owned(), "history".into())].into_iter().collect());
            match show {
                Some(Ok(tools::Wanted::Command(show))) => {
                    worker.perform(&show).map_err(|error| error.to_string())?
                }
                _ => Value::Null,
            }
        }
        _ => whole,
    })
}

/// What a person can start with.
pub(super) fn prompts() -> Vec<Prompt> {
    let topic = PromptArgument::new("task").with_description("What is to be done").with_required(true);
    let session =
        PromptArgument::new("session").with_description("The session; the one that waits if none is given");
    vec![
        Prompt::new(
            "initializer",
            Some("Set up a long piece of work and pause it for a worker"),
            Some(vec![topic]),
        ),
        Prompt::new("worker", Some("Go on with a piece of work that somebody set up"), Some(vec![session])),
    ]
}

/// The words of a prompt; none if there is no such prompt.
pub(super) fn prompt(
    name: &str,
    argument: impl Fn(&str) -> Option<String>,
) -> Option<Result<String, String>> {
    match name {
        "initializer" => Some(match argument("task") {
            Some(task) => Ok(format!(
                "Set up this work, and do none of it yet: {task}\n\nCall the tool `new` with a topic and an intent. Look \
                 around until you know what is to be done, and record it: `task` for each step, `decide` for each \
                 choice with its reason, `output` for a plan. Make a `checkpoint`. Then call `pause`, and tell the id of \
                 the session."
            )),
            None => Err("the prompt needs the argument task".to_owned()),
        }),
        "worker" => Some(Ok({
            let which = argument("session").map_or_else(
                || "the session that waits (`list` shows it)".to_owned(),
                |id| format!("the session {id}"),
            );
            format!(
                "Go on with {which}. Call `resume`, then `brief`, and believe the files over your memory. Do one step \
                 after another: record what you did (`task` done, `artifact`, `decide`, `tokens`), make a `checkpoint` \
                 after each step, and ask `budget_check` before a large one. When all is done and checked, call \
                 `complete`; when you have to stop before that, call `pause` with the reason."
            )
        })),
        _ => None,
    }
}
