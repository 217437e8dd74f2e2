//! Gemini CLI, for real: caps, conversations, hooks.

use segno_agents::AgentEvent;
use segno_agents::Conversation;
use segno_agents::Decision;
use segno_agents::LaunchRequest;
use segno_agents::OutcomeKind;
use segno_agents::gemini::cut_at;
use segno_agents::gemini::hook_settings;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;
use segno_testkit::scripted::Step;
use serde_json::Value;

use crate::gemini::record;
use crate::support::Lab;
use crate::support::names;

fn lab(turns: impl IntoIterator<Item = Turn>) -> Option<Lab> {
    Lab::new("gemini", Script::new(turns), Patience::default())
}

fn id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Changes the person's settings.
fn configure(lab: &Lab, change: impl FnOnce(&mut Value)) {
    let path = lab.home.path().join(".gemini/settings.json");
    let mut settings: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut settings);
    std::fs::write(path, settings.to_string()).unwrap();
}

/// Hooks that the person installed.
fn install(lab: &Lab, command: &[String]) {
    configure(lab, |settings| settings["hooks"] = hook_settings(command)["hooks"].clone());
}

fn of<'a>(payloads: &'a [Value], event: &str) -> Vec<&'a Value> {
    payloads.iter().filter(|payload| payload["hook_event_name"] == event).collect()
}

#[test]
fn a_conversation_goes_on() {
    let Some(lab) = lab(["the word is plum".into(), "plum, as I said".into()]) else { return };
    let (begin, first, second) = lab.goes_on(id());
    assert_eq!(second.outcome.tokens, first.outcome.tokens, "each run counts its own");
    // The id is taken.
    let again = lab.run(&begin);
    assert_eq!((again.outcome.outcome, again.finished.code), (OutcomeKind::Failed, Some(42)));
    assert!(again.finished.stderr.contains("already exists"), "{}", again.finished.stderr);
}

#[test]
fn an_unknown_conversation() {
    let Some(lab) = lab(["never asked".into()]) else { return };
    let resume = LaunchRequest { conversation: Conversation::Resume(id()), ..lab.request("again?") };
    let ran = lab.run(&resume);
    assert_eq!((ran.outcome.outcome, ran.finished.code), (OutcomeKind::Failed, Some(42)));
    assert!(lab.model.requests().is_empty());
}

#[test]
fn a_conversation_is_copied() {
    let turns = ["one fish".into(), "two fish".into(), "red fish".into(), "blue fish".into()];
    let Some(lab) = lab(turns) else { return };
    let run = |conversation: Conversation, prompt: &str| {
        lab.run(&LaunchRequest { conversation, ..lab.request(prompt) })
    };
    let session = id();
    run(Conversation::NewWithId(session.clone()), "first");
    let original = record(&lab);
    let position = lab
        .agent
        .conversation_log()
        .unwrap()
        .transcript(&std::fs::read(&original).unwrap())
        .position
        .unwrap();
    run(Conversation::Resume(session.clone()), "second");
    let before = std::fs::read(&original).unwrap();
    let fork = |path: &std::path::Path| Conversation::Fork {
        from: path.to_str().unwrap().to_owned(),
        id: None,
        at: None,
    };
    let forked = run(fork(&original), "third");
    assert!(forked.outcome.native_id.as_ref().is_some_and(|id| *id != session));
    let heard = lab.model.requests()[2].conversation.clone();
    assert!(heard.contains("one fish") && heard.contains("two fish") && heard.contains("third"));
    // It has been seen to tidy its records up; where the original is still there, it is as it was.
    if let Ok(now) = std::fs::read(&original) {
        assert_eq!(now, before, "the original stays as it is");
    }
    // Back to the first answer: what came after it is gone from the copy.
    let cut = lab.home.beside("cut.jsonl");
    std::fs::write(&cut, cut_at(&before, position.end).unwrap()).unwrap();
    run(fork(&cut), "fourth");
    let heard = lab.model.requests()[3].conversation.clone();
    assert!(heard.contains("one fish") && heard.contains("fourth"));
    assert!(!heard.contains("two fish") && !heard.contains("third"));
}

#[test]
fn hooks_see_everything() {
    let turns =
        [Turn::ops([Op::sh("echo one"), Op::write("a.txt", "x\n")]), Turn::sh("exit 4"), "end".into()];
    let Some(lab) = lab(turns) else { return };
    install(&lab, &lab.recorder(&[]));
    let request =
        LaunchRequest { env: [("SEGNO_RUN".to_owned(), "r1".to_owned())].into(), ..lab.request("work") };
    let ran = lab.run(&request);
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    let payloads = lab.payloads();
    for (event, count) in
        [("SessionStart", 1), ("BeforeAgent", 1), ("BeforeTool", 3), ("AfterTool", 3), ("AfterAgent", 1)]
    {
        assert_eq!(of(&payloads, event).len(), count, "{event}: {:?}", names(&payloads));
    }
    assert_eq!(of(&payloads, "SessionEnd").len(), 1);
    assert!(
        payloads.iter().all(|payload| payload["session_id"].as_str() == ran.outcome.native_id.as_deref())
    );
    // No id ties these to the stream, but what comes before a call is tied to what comes after it.
    let mut calls = Vec::new();
    for payload in &payloads {
        for event in lab.agent.hook(payload.to_string().as_bytes()).unwrap().events {
            match event {
                AgentEvent::ToolStarted { call_id, .. } => calls.push(call_id),
                AgentEvent::ToolFinished { call_id, .. } | AgentEvent::ToolFailed { call_id, .. } => {
                    calls.retain(|call| *call != call_id);
                }
                _ => {}
            }
        }
    }
    assert!(calls.is_empty());
    let after =
        of(&payloads, "AfterTool").into_iter().find(|payload| payload["tool_input"]["command"] == "exit 4");
    let report = lab.agent.hook(after.unwrap().to_string().as_bytes()).unwrap();
    assert!(matches!(report.events[0], AgentEvent::ToolFailed { exit_code: Some(4), .. }));
    assert!(
        lab.records().iter().all(|record| record["env"]["SEGNO_RUN"] == "r1"),
        "variables reach the hooks"
    );
}

#[test]
fn a_hook_can_deny() {
    let turns = [Turn::sh("echo forbidden > f.txt"), Turn::sh("echo fine > g.txt"), "end".into()];
    let Some(lab) = lab(turns) else { return };
    let deny = lab.answer("BeforeTool", "forbidden", &Decision::Deny("not here please".to_owned()));
    install(&lab, &lab.recorder(&[deny]));
    let ran = lab.prompt("work");
    assert!(!lab.home.work().join("f.txt").exists());
    assert!(lab.home.work().join("g.txt").exists());
    assert!(lab.model.requests()[1].conversation.contains("not here please"), "the model reads the reason");
    assert_eq!(ran.outcome.denials.len(), 1);
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!(ran.calls().1.len(), 0);
}

#[test]
fn a_hook_that_breaks_stops_nothing() {
    let Some(lab) = lab([Turn::sh("touch one"), "end".into(), Turn::sh("touch two"), "end".into()]) else {
        return;
    };
    install(&lab, &lab.recorder(&[Step::Print("not json".to_owned()), Step::Exit(3)]));
    assert_eq!(lab.prompt("work").outcome.outcome, OutcomeKind::Completed);
    assert!(lab.home.work().join("one").exists());
    install(&lab, &["/nonexistent/segno".to_owned()]);
    assert_eq!(lab.prompt("again").outcome.outcome, OutcomeKind::Completed, "nor does one that is not there");
    assert!(lab.home.work().join("two").exists());
}

#[test]
fn a_hook_can_end_the_run() {
    let Some(lab) = lab([Turn::sh("echo last"), "never asked".into()]) else { return };
    let halt = lab.answer("AfterTool", "", &Decision::Halt("enough for today".to_owned()));
    install(&lab, &lab.recorder(&[halt]));
    let ran = lab.prompt("work");
    assert_eq!(lab.model.requests().len(), 1, "the model is not asked again");
    assert_eq!((ran.outcome.outcome, ran.finished.code), (OutcomeKind::Stopped, Some(0)));
}

#[test]
fn a_hook_can_add_context() {
    let Some(lab) = lab(["first".into()]) else { return };
    let context = lab.answer("BeforeAgent", "", &Decision::Context("remember the milk".to_owned()));
    install(&lab, &lab.recorder(&[context]));
    lab.prompt("work");
    assert!(lab.model.requests()[0].conversation.contains("remember the milk"));
}

/// The cap and the hooks of one run are in a file that the agent reads only where nobody but root can write.
#[test]
fn a_file_of_defaults() {
    let script = Script::new([Turn::sh("echo again")]).then(Then::Repeat);
    let Some(lab) = Lab::new("gemini", script, Patience::default()) else { return };
    let marker = lab.home.beside("own-hook");
    install(&lab, &["touch".to_owned(), marker.to_str().unwrap().to_owned()]);
    let request = |tmp: &std::path::Path| LaunchRequest {
        max_turns: Some(2),
        hook_command: Some(lab.recorder(&[])),
        private_tmp: Some(tmp.to_str().unwrap().to_owned()),
        ..lab.request("loop")
    };
    let ran = lab.run(&request(&lab.home.tmp()));
    assert!(ran.finished.stderr.contains("Security Warning"), "others can write to where this home is");
    assert_ne!(ran.outcome.outcome, OutcomeKind::MaxTurns);
    assert!(lab.payloads().is_empty() && marker.exists());
    // Beside the agents, which the person installed.
    let cache = segno_testkit::agents::directory(|name| std::env::var_os(name)).unwrap();
    let private = tempfile::tempdir_in(cache).unwrap();
    std::fs::remove_file(&marker).unwrap();
    let ran = lab.run(&request(private.path()));
    if ran.finished.stderr.contains("Security Warning") {
        assert_ne!(ran.outcome.outcome, OutcomeKind::MaxTurns);
        return;
    }
    assert_eq!((ran.outcome.outcome, ran.finished.code), (OutcomeKind::MaxTurns, Some(53)));
    assert!(names(&lab.payloads()).contains(&"BeforeTool"), "ours");
    assert!(marker.exists(), "and the person's own");
}

#[test]
fn it_ends_a_loop_by_itself() {
    let script = Script::new([Turn::sh("echo again")]).then(Then::Repeat);
    let Some(lab) = Lab::new("gemini", script, Patience::default()) else { return };
    let ran = lab.prompt("loop");
    assert_eq!((ran.outcome.outcome, ran.finished.code), (OutcomeKind::Failed, Some(0)));
    assert!(ran.outcome.reason.starts_with("Loop detected"), "{}", ran.outcome.reason);
}
