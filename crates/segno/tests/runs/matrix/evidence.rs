//! A result that only the agent's own record has.

use rustix::process::Signal;
use segno_testkit::model::Turn;
use serde_json::json;

use super::Real;
use super::WAITS;
use super::waits;
use crate::lab::signal;
use crate::lab::until;

/// Whether Claude Code's own record has the result of a call, to the end of its line.
fn recorded(real: &Real, call: &str) -> bool {
    let result = format!("\"tool_use_id\":\"{call}\"");
    let Ok(projects) = std::fs::read_dir(real.lab.home.path().join(".claude/projects")) else { return false };
    let files = projects.flatten().filter_map(|project| std::fs::read_dir(project.path()).ok()).flatten();
    files.flatten().any(|file| {
        let text = std::fs::read_to_string(file.path()).unwrap_or_default();
        text.find(&result).is_some_and(|at| text[at..].contains('\n'))
    })
}

/// The driver sleeps while the call ends, then everything dies, and what the agent had printed is lost with the
/// machine's memory. The agent's own record is not.
#[test]
fn a_call_in_doubt_is_settled_by_the_agents_own_record() {
    let turns = [waits(), waits(), Turn::text("the end")];
    let Some(real) = Real::with("claude", turns) else { return };
    let live = real.start(&["--no-hooks"]);
    real.wait_file("begun");
    until("the call is recorded", || (real.lab.tools().len() == 1).then_some(()));
    let call = real.lab.tools()[0]["call"].as_str().unwrap().to_owned();
    let pid = u32::try_from(real.lab.running()["pid"].as_u64().unwrap()).unwrap();
    live.signal(Signal::STOP);
    std::fs::write(real.file("go"), "").unwrap();
    until("the result is in its record", || recorded(&real, &call).then_some(()));
    live.signal(Signal::KILL);
    signal(pid, Signal::KILL);
    live.finish();
    // Whoever looks while it is still dying leaves it for the next.
    until("the agent is gone", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
    let captures = real.lab.home.path().join(".local/state/segno/runs");
    for capture in std::fs::read_dir(&captures).unwrap().flatten() {
        let stream = std::fs::read_dir(capture.path()).unwrap().flatten();
        for file in
            stream.filter(|file| file.file_name().to_str().is_some_and(|name| !name.ends_with("json")))
        {
            let _ = std::fs::remove_file(file.path());
        }
    }
    until("the session is interrupted", || (real.lab.state()["status"] == "interrupted").then_some(()));
    let state = real.lab.state();
    let tools = real.lab.tools();
    assert_eq!(tools[0]["state"], "completed", "{tools:#?}");
    assert!(tools[0]["evidence"].as_str().unwrap().starts_with("claude's own record"), "{tools:#?}");
    let recovery = &state["recovery"];
    assert_eq!((&recovery["in_doubt"], &recovery["settled"]), (&json!(1), &json!(1)), "{recovery}");
    let ended = real.lab.journal(Some("tool_ended"));
    assert_eq!(ended.iter().filter(|event| event["body"]["evidence"].is_string()).count(), 1, "{ended:#?}");
    let brief = real.lab.run(&["resume", "--show-brief"]).text();
    assert!(!brief.contains("IN DOUBT") && brief.contains("(completed, says claude's own record"), "{brief}");
    assert!(brief.contains(WAITS.split(';').next().unwrap()), "{brief}");
}
