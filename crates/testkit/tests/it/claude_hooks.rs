//! Claude Code, for real: hooks given on the command line.

use segno_agents::AgentEvent;
use segno_agents::Conversation;
use segno_agents::Decision;
use segno_agents::LaunchRequest;
use segno_agents::OutcomeKind;
use segno_agents::claude::hook_settings;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::support::Lab;
use crate::support::names;

fn lab(turns: impl IntoIterator<Item = Turn>) -> Option<Lab> {
    Lab::new("claude", Script::new(turns), Patience::default())
}

fn of<'a>(payloads: &'a [Value], event: &str) -> Vec<&'a Value> {
    payloads.iter().filter(|payload| payload["hook_event_name"] == event).collect()
}

#[test]
fn hooks_see_what_the_output_does_not_tell_in_time() {
    let turns =
        [Turn::ops([Op::sh("echo one"), Op::write("a.txt", "x\n")]), Turn::sh("exit 4"), "end".into()];
    let Some(lab) = lab(turns) else { return };
    let id = uuid::Uuid::now_v7().to_string();
    let request = LaunchRequest {
        hook_command: Some(lab.recorder(&[])),
        conversation: Conversation::NewWithId(id.clone()),
        env: [("SEGNO_RUN".to_owned(), "r1".to_owned())].into(),
        ..lab.request("work")
    };
    let ran = lab.run(&request);
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    let payloads = lab.payloads();
    let mut seen = names(&payloads);
    seen.sort_unstable();
    let before = ["PreToolUse", "PreToolUse", "PreToolUse"];
    assert_eq!(seen, [&["PostToolUse", "PostToolUse", "PostToolUseFailure"][..], &before].concat());
    assert!(payloads.iter().all(|payload| payload["session_id"] == id.as_str()));
    let before = of(&payloads, "PreToolUse")[0];
    assert_eq!(before["tool_name"], "Bash");
    assert_eq!(before["tool_input"]["command"], "echo one");
    let after = of(&payloads, "PostToolUse");
    assert!(after.iter().any(|payload| payload["tool_use_id"] == before["tool_use_id"]));
    // The same ids as in the stream: one call is one call.
    let call = before["tool_use_id"].as_str().unwrap();
    assert!(
        ran.events().any(|event| matches!(event, AgentEvent::ToolStarted { call_id, .. } if call_id == call))
    );
    for payload in &payloads {
        lab.agent.hook(payload.to_string().as_bytes()).unwrap();
    }
    assert!(
        lab.records().iter().all(|record| record["env"]["SEGNO_RUN"] == "r1"),
        "variables reach the hooks"
    );
}

#[test]
fn a_hook_can_deny() {
    let turns = [Turn::sh("echo forbidden > f.txt"), Turn::sh("echo fine > g.txt"), "end".into()];
    let Some(lab) = lab(turns) else { return };
    let deny = lab.answer("PreToolUse", "forbidden", &Decision::Deny("not here please".to_owned()));
    let request = LaunchRequest { hook_command: Some(lab.recorder(&[deny])), ..lab.request("work") };
    let ran = lab.run(&request);
    assert!(!lab.home.work().join("f.txt").exists());
    assert!(lab.home.work().join("g.txt").exists());
    assert!(lab.model.requests()[1].conversation.contains("not here please"), "the model reads the reason");
    assert_eq!(ran.outcome.denials.len(), 1);
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!(of(&lab.payloads(), "PostToolUse").len(), 1, "none for the call that was denied");
}

#[test]
fn a_hook_can_deny_by_exit_code() {
    let Some(lab) = lab([Turn::sh("echo forbidden > f.txt"), "end".into()]) else { return };
    let refuse = vec![Step::Stderr("by exit code".to_owned()), Step::Exit(2)];
    let deny = Step::IfStdin { matches: "\"PreToolUse\".*forbidden".to_owned(), steps: refuse };
    let request = LaunchRequest { hook_command: Some(lab.recorder(&[deny])), ..lab.request("work") };
    let ran = lab.run(&request);
    assert!(!lab.home.work().join("f.txt").exists());
    assert!(lab.model.requests()[1].conversation.contains("by exit code"));
    assert_eq!(ran.outcome.denials.len(), 1);
}

#[test]
fn a_hook_that_breaks_stops_nothing() {
    let Some(lab) = lab([Turn::sh("echo fine > g.txt"), "end".into()]) else { return };
    let command = lab.recorder(&[Step::Print("not json".to_owned()), Step::Exit(1)]);
    let ran = lab.run(&LaunchRequest { hook_command: Some(command), ..lab.request("work") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert!(lab.home.work().join("g.txt").exists());
    let gone = vec!["/nonexistent/segno".to_owned()];
    let ran = lab.run(&LaunchRequest { hook_command: Some(gone), ..lab.request("again") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed, "nor does one that is not there");
}

#[test]
fn a_hook_can_end_the_run() {
    let Some(lab) = lab([Turn::sh("echo last"), "never asked".into()]) else { return };
    let halt = lab.answer("PostToolUse", "", &Decision::Halt("enough for today".to_owned()));
    let ran = lab.run(&LaunchRequest { hook_command: Some(lab.recorder(&[halt])), ..lab.request("work") });
    assert_eq!(lab.model.requests().len(), 1, "the model is not asked again");
    assert_eq!((ran.outcome.outcome, ran.finished.code), (OutcomeKind::Stopped, Some(0)));
}

#[test]
fn a_hook_can_add_context_and_keep_it_going() {
    let Some(lab) = lab(["first".into(), "second".into()]) else { return };
    let context = lab.answer("UserPromptSubmit", "", &Decision::Context("remember the milk".to_owned()));
    let block =
        lab.answer("Stop", ".*\"stop_hook_active\":false", &Decision::Block("one more thing".to_owned()));
    // These are not among the hooks of a run whose output is read; a person's settings may have them.
    let settings = hook_settings(&lab.recorder(&[context, block]));
    std::fs::write(lab.home.path().join(".claude/settings.json"), settings.to_string()).unwrap();
    let ran = lab.run(&lab.request("work"));
    let requests = lab.model.requests();
    assert!(requests[0].conversation.contains("remember the milk"));
    assert!(requests[1].conversation.contains("one more thing"));
    assert_eq!(ran.outcome.text.as_deref(), Some("second"));
}

#[test]
fn the_persons_own_hooks_run_too() {
    let Some(lab) = lab([Turn::sh("echo one"), "end".into()]) else { return };
    let marker = lab.home.beside("own-hook");
    let own = hook_settings(&["touch".to_owned(), marker.to_str().unwrap().to_owned()]);
    let mut settings = json!({ "permissions": { "allow": ["Bash"] } });
    settings["hooks"] = own["hooks"].clone();
    std::fs::write(lab.home.path().join(".claude/settings.json"), settings.to_string()).unwrap();
    let ran = lab.run(&LaunchRequest { hook_command: Some(lab.recorder(&[])), ..lab.request("work") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert!(marker.exists(), "the person's own");
    assert!(names(&lab.payloads()).contains(&"PreToolUse"), "and ours");
}

#[test]
fn where_its_sockets_lie() {
    let turns = [Turn::sh("true"), "one".into(), Turn::sh("true"), "two".into()];
    let Some(mut lab) = lab(turns) else { return };
    let socket = |lab: &Lab| {
        lab.run(&LaunchRequest { hook_command: Some(lab.recorder(&[])), ..lab.request("hi") });
        let records = lab.records();
        let last =
            records.iter().rev().find_map(|record| record["env"]["CLAUDE_CODE_MESSAGING_SOCKET"].as_str());
        last.unwrap().to_owned()
    };
    // The runtime directory of the user wins over the directory it is given for scratch files.
    assert!(socket(&lab).starts_with(lab.home.beside("run").to_str().unwrap()));
    lab.recipe.env.remove("XDG_RUNTIME_DIR");
    assert!(socket(&lab).starts_with(lab.home.tmp().to_str().unwrap()));
}
