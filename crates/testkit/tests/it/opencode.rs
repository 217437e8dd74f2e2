//! opencode, for real: how runs go and fail.

use std::time::Duration;

use segno_agents::AgentEvent;
use segno_agents::Conversation;
use segno_agents::LaunchRequest;
use segno_agents::OutcomeKind;
use segno_agents::opencode::export_args;
use segno_agents::transcript::CallStatus;
use segno_agents::transcript::Transcript;
use segno_testkit::model::Fault;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::model::When;
use segno_testkit::recipe::Patience;
use segno_testkit::run::run;

use crate::support::Lab;

fn lab(script: Script) -> Option<Lab> {
    Lab::new("opencode", script, Patience::default())
}

/// The agent's own record of a conversation.
fn record(lab: &Lab, id: &str) -> Transcript {
    let mut export = lab.recipe.command(export_args(id).unwrap());
    let printed = run(&mut export, &[], Duration::from_secs(15)).unwrap();
    lab.agent.conversation_log().unwrap().transcript(&printed.stdout)
}

/// Changes the person's configuration.
pub(crate) fn configure(lab: &Lab, change: impl FnOnce(&mut serde_json::Value)) {
    let path = lab.home.path().join(".config/opencode/opencode.json");
    let mut config = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut config);
    std::fs::write(path, config.to_string()).unwrap();
}

#[test]
fn uses_tools() {
    let turns = [
        Turn::ops([Op::sh("echo from-the-shell"), Op::write("a.txt", "written\n")]),
        Turn::ops([Op::Read("a.txt".to_owned())]),
        Turn::ops([Op::Edit {
            path: "a.txt".to_owned(),
            old: "written".to_owned(),
            new: "edited".to_owned(),
        }]),
        Turn::sh("echo heard ${last:from-the-(\\w+)}"),
        Turn::text("all done"),
    ];
    let Some(lab) = lab(Script::new(turns)) else { return };
    let ran = lab.five_calls();
    let (mut started, _) = ran.calls();
    // Its own record has the same calls under the same ids.
    let record = record(&lab, ran.outcome.native_id.as_deref().unwrap());
    let mut recorded: Vec<&str> = record.calls.iter().map(|call| call.call_id.as_str()).collect();
    started.sort_unstable();
    recorded.sort_unstable();
    assert_eq!(recorded, started);
    assert_eq!((record.prompts, record.tokens, record.unparsed), (1, ran.outcome.tokens, 0));
    assert_eq!((record.last_text.as_deref(), record.model.as_deref()), (Some("all done"), Some("scripted")));
}

#[test]
fn tools_that_fail() {
    let nothing =
        Op::Tool { name: "nothing".to_owned(), input: serde_json::json!({}), namespace: None, id: None };
    let fail = Turn::ops([Op::sh("echo broken; exit 3"), Op::Read("nowhere.txt".to_owned()), nothing]);
    let Some(lab) = lab(Script::new([fail, "I see".into()])) else { return };
    let ran = lab.prompt("work");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!(ran.calls().1.len(), 0);
    assert!(ran.events().any(|event| matches!(event, AgentEvent::ToolFailed { exit_code: Some(3), .. })));
    let failed = ran.events().filter(|event| matches!(event, AgentEvent::ToolFailed { .. })).count();
    assert_eq!(failed, 3);
}

#[test]
fn a_call_that_a_rule_forbids() {
    let Some(lab) = lab(Script::new([Turn::sh("touch made"), "then not".into()])) else { return };
    configure(&lab, |config| config["permission"] = serde_json::json!({ "bash": { "touch *": "deny" } }));
    let ran = lab.prompt("work");
    assert_eq!((ran.outcome.outcome, ran.outcome.denials.len()), (OutcomeKind::Denied, 1));
    assert_eq!(ran.outcome.text.as_deref(), Some("then not"), "the model goes on");
}

#[test]
fn a_sub_agent() {
    let script = Script::new([Turn::ops([Op::task("count the files please")]), "told you".into()]).track(
        "helper",
        When::first_user("count the files"),
        [Turn::sh("ls | wc -l"), "none".into()],
    );
    let Some(lab) = lab(script) else { return };
    let ran = lab.prompt("delegate");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!((ran.calls().0.len(), ran.outcome.open_calls.len()), (1, 0), "its own calls are not told");
    let child = ran.events().find_map(|event| match event {
        AgentEvent::SubAgentStarted { agent_id, .. } => Some(agent_id.clone()),
        _ => None,
    });
    assert_eq!(
        (ran.outcome.tokens.input, ran.outcome.tokens_exact),
        (200, false),
        "what it used is not told"
    );
    let record = record(&lab, &child.unwrap());
    assert_eq!((record.calls.len(), record.calls[0].sub_agent, record.tokens.input), (1, true, 200));
}

#[test]
fn a_stream_that_breaks() {
    let drop =
        Turn { text: Some("half of it".to_owned()), chunk: 3, ..Fault::Drop { after: Some(2) }.into() };
    let Some(lab) = lab(Script::new([drop, "whole".into()])) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed, "it tries again and says nothing");
    assert_eq!(ran.outcome.text.as_deref(), Some("whole"));
}

/// Sends a signal in the middle of a call.
fn cut_off(signal: &str, killed: i32) -> Option<(Lab, String)> {
    let turns = [Turn::sh("echo one"), Turn::sh("touch started; sleep 30"), "went on".into()];
    let lab = lab(Script::new(turns))?;
    let ran = lab.run_signalled(&lab.request("work"), signal);
    assert_eq!((ran.finished.code, ran.finished.signal), (None, Some(killed)));
    assert_eq!(ran.outcome.outcome, OutcomeKind::Interrupted);
    assert_eq!(ran.calls().0.len(), 1, "the call that was cut off is not told");
    assert!(!lab.home.processes().is_empty(), "the command goes on without it");
    lab.home.kill_processes();
    let id = ran.outcome.native_id.unwrap();
    let known = record(&lab, &id);
    assert_eq!(known.calls.len(), 2, "its own record has it");
    assert_eq!(known.calls[1].status, CallStatus::Open);
    Some((lab, id))
}

#[test]
fn an_interrupt() {
    cut_off("INT", 2);
}

#[test]
fn a_termination() {
    cut_off("TERM", 15);
}

#[test]
fn a_kill() {
    let Some((lab, id)) = cut_off("KILL", 9) else { return };
    let resume = Conversation::Resume(id);
    let again = lab.run(&LaunchRequest { conversation: resume, ..lab.request("go on") });
    assert_eq!(again.outcome.outcome, OutcomeKind::Completed);
    let heard = lab.model.requests().pop().unwrap().conversation;
    assert!(heard.contains("touch started") && heard.contains("interrupted"));
}

#[test]
fn another_format_is_no_stream() {
    let Some(lab) = lab(Script::new(["hello there".into()])) else { return };
    let mut spec = lab.agent.launch(&lab.request("hi")).unwrap();
    spec.args = vec!["run".to_owned()];
    let ran = lab.spec(&spec);
    assert_eq!(ran.finished.code, Some(0));
    // Nothing in it is an event, so nothing says that the work was done; every line is kept.
    assert_eq!(ran.outcome.outcome, OutcomeKind::Interrupted);
    assert!(ran.events().all(|event| matches!(event, AgentEvent::Noise { .. })));
    assert!(ran.events().any(|event| matches!(event, AgentEvent::Noise { text } if text == "hello there")));
}
