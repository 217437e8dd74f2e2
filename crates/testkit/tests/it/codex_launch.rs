//! Codex, for real: notes, hooks and conversations.

use segno_agents::Conversation;
use segno_agents::Decision;
use segno_agents::LaunchRequest;
use segno_agents::OutcomeKind;
use segno_agents::codex::hook_settings;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;
use segno_testkit::scripted::Step;

use crate::support::Lab;
use crate::support::names;

fn lab(turns: impl IntoIterator<Item = Turn>) -> Option<Lab> {
    Lab::new("codex", Script::new(turns), Patience::default())
}

/// Adds to the person's configuration.
fn configure(lab: &Lab, text: &str) {
    let path = lab.home.path().join(".codex/config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{text}\n{config}")).unwrap();
}

/// Hooks need not be trusted one by one for this run. Only for tests.
const BYPASS: &str = "--dangerously-bypass-hook-trust";

#[test]
fn the_note_at_the_end_of_a_turn() {
    let Some(lab) = lab(["end".into()]) else { return };
    let theirs = lab.home.beside("own-note");
    configure(&lab, &format!("notify = [\"touch\", {:?}]", theirs.to_str().unwrap()));
    let ran = lab.run(&LaunchRequest { hook_command: Some(lab.recorder(&[])), ..lab.request("work") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    let payloads = lab.payloads();
    assert_eq!(payloads.len(), 1);
    assert_eq!(payloads[0]["type"], "agent-turn-complete");
    assert_eq!(payloads[0]["thread-id"].as_str(), ran.outcome.native_id.as_deref());
    assert_eq!(payloads[0]["last-assistant-message"], "end");
    assert!(!theirs.exists(), "ours takes the place of theirs");
}

#[test]
fn no_note_when_a_turn_fails() {
    let Some(lab) = lab([Turn::error(400)]) else { return };
    let ran = lab.run(&LaunchRequest { hook_command: Some(lab.recorder(&[])), ..lab.request("work") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert!(lab.payloads().is_empty());
}

/// Options that send these hooks to a command, for this run alone: no file of the person is touched.
fn hook_options(command: &[String]) -> Vec<String> {
    let hooks = hook_settings(command);
    let option = |event: &str| {
        let line = &hooks["hooks"][event][0]["hooks"][0]["command"];
        let entry = format!("[{{hooks=[{{type=\"command\",command={line},timeout=10}}]}}]");
        ["-c".to_owned(), format!("hooks.{event}={entry}")]
    };
    ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
        .into_iter()
        .flat_map(option)
        .collect()
}

fn work() -> [Turn; 4] {
    let write = Turn::ops([Op::write("a.txt", "x\n")]);
    [Turn::sh("echo one"), Turn::sh("echo forbidden > f.txt"), write, "end".into()]
}

#[test]
fn hooks_nobody_reviewed_do_not_run() {
    let Some(lab) = lab(work()) else { return };
    let extra_args = hook_options(&lab.recorder(&[]));
    let ran = lab.run(&LaunchRequest { extra_args, ..lab.request("work") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert!(lab.payloads().is_empty(), "and nothing in the stream says so");
}

#[test]
fn hooks_of_one_run() {
    let Some(lab) = lab(work()) else { return };
    let deny = lab.answer("PreToolUse", "forbidden", &Decision::Deny("not here please".to_owned()));
    let mut extra_args = hook_options(&lab.recorder(&[deny]));
    extra_args.push(BYPASS.to_owned());
    let ran = lab.run(&LaunchRequest { extra_args, ..lab.request("work") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert!(!lab.home.work().join("f.txt").exists() && lab.home.work().join("a.txt").exists());
    assert!(lab.model.requests()[2].conversation.contains("not here please"), "the model reads the reason");
    let payloads = lab.payloads();
    let expected = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreToolUse"];
    assert_eq!(names(&payloads)[..5], expected);
    assert_eq!(names(&payloads)[5..], ["PreToolUse", "PostToolUse", "Stop"]);
    for payload in &payloads {
        lab.agent.hook(payload.to_string().as_bytes()).unwrap();
        assert_eq!(payload["session_id"].as_str(), ran.outcome.native_id.as_deref());
    }
}

#[test]
fn a_hook_can_deny_by_exit_code() {
    let Some(lab) = lab([Turn::sh("echo forbidden > f.txt"), "end".into()]) else { return };
    let refuse = vec![Step::Stderr("by exit code".to_owned()), Step::Exit(2)];
    let deny = Step::IfStdin { matches: "\"PreToolUse\"".to_owned(), steps: refuse };
    let mut extra_args = hook_options(&lab.recorder(&[deny]));
    extra_args.push(BYPASS.to_owned());
    lab.run(&LaunchRequest { extra_args, ..lab.request("work") });
    assert!(!lab.home.work().join("f.txt").exists());
    assert!(lab.model.requests()[1].conversation.contains("by exit code"));
}

#[test]
fn an_unknown_conversation() {
    let Some(lab) = lab(["never asked".into()]) else { return };
    let resume = Conversation::Resume(uuid::Uuid::now_v7().to_string());
    let ran = lab.run(&LaunchRequest { conversation: resume, ..lab.request("again?") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert_eq!((ran.finished.code, lab.model.requests().len()), (Some(1), 0));
}
