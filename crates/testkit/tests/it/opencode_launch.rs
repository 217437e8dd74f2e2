//! opencode, for real: conversations, and the plug-in that stands for hooks.

use segno_agents::AgentEvent;
use segno_agents::Conversation;
use segno_agents::Decision;
use segno_agents::LaunchRequest;
use segno_agents::OutcomeKind;
use segno_agents::opencode::plugin;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::model::When;
use segno_testkit::recipe::Patience;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::opencode::configure;
use crate::support::Lab;
use crate::support::names;

fn lab(turns: impl IntoIterator<Item = Turn>) -> Option<Lab> {
    Lab::new("opencode", Script::new(turns), Patience::default())
}

fn of<'a>(payloads: &'a [Value], event: &str) -> Vec<&'a Value> {
    payloads.iter().filter(|payload| payload["hook_event_name"] == event).collect()
}

/// What was heard when this was asked.
fn heard(lab: &Lab, prompt: &str) -> String {
    let requests = lab.model.requests().into_iter().filter(|request| request.track == "main");
    requests.filter(|request| request.last_user.contains(prompt)).last().unwrap().conversation
}

#[test]
fn an_unknown_conversation() {
    let Some(lab) = lab(["never asked".into()]) else { return };
    let resume = Conversation::Resume("ses_0000000000000000000000000".to_owned());
    let ran = lab.run(&LaunchRequest { conversation: resume, ..lab.request("again?") });
    assert_eq!((ran.outcome.outcome, ran.finished.code), (OutcomeKind::Failed, Some(1)));
    assert!(lab.model.requests().is_empty());
}

#[test]
fn hooks_see_everything() {
    let turns = [
        Turn::ops([Op::sh("echo one"), Op::write("a.txt", "x\n")]),
        Turn::ops([Op::sh("exit 4"), Op::Read("nowhere".to_owned()), Op::task("count the files please")]),
        Turn::sh("echo [$npm_config_fetch_retries]"),
        "end".into(),
    ];
    let helper = [Turn::sh("ls"), "none".into()];
    let script = Script::new(turns).track("helper", When::first_user("count the files"), helper);
    let Some(lab) = Lab::new("opencode", script, Patience::default()) else { return };
    let request = LaunchRequest {
        hook_command: Some(lab.recorder(&[])),
        env: [("SEGNO_RUN".to_owned(), "r1".to_owned())].into(),
        ..lab.request("work")
    };
    let ran = lab.run(&request);
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    let payloads = lab.payloads();
    for (event, count) in [
        ("session.created", 2),
        ("chat.message", 2),
        ("tool.execute.before", 7),
        ("tool.execute.after", 6),
        ("tool.execute.error", 1),
        ("session.idle", 2),
    ] {
        assert_eq!(of(&payloads, event).len(), count, "{event}: {:?}", names(&payloads));
    }
    // The same ids as in the stream: one call is one call. Those of the sub-agent are told here alone.
    let (mut started, mut ended, mut inside) = (Vec::new(), 0, 0);
    for payload in &payloads {
        let report = lab.agent.hook(payload.to_string().as_bytes()).unwrap();
        assert_eq!(report.native_id, ran.outcome.native_id, "{payload}");
        for event in report.events {
            match event {
                AgentEvent::ToolStarted { call_id, .. } if report.agent_id.is_none() => started.push(call_id),
                AgentEvent::ToolStarted { .. } => inside += 1,
                AgentEvent::ToolFinished { .. } | AgentEvent::ToolFailed { .. } => ended += 1,
                _ => {}
            }
        }
    }
    let mut streamed = ran.calls().0;
    streamed.sort_unstable();
    started.sort_unstable();
    assert_eq!(started, streamed);
    assert_eq!((inside, ended), (1, 7));
    assert!(
        lab.records().iter().all(|record| record["env"]["SEGNO_RUN"] == "r1"),
        "variables reach the hooks"
    );
    let last = lab.model.requests().into_iter().rfind(|request| request.track == "main").unwrap();
    assert!(last.conversation.contains("[]"), "what was set for the start does not reach the tools");
}

#[test]
fn a_hook_can_deny() {
    let turns = [Turn::sh("echo forbidden > f.txt"), Turn::sh("echo fine > g.txt"), "end".into()];
    let Some(lab) = lab(turns) else { return };
    let deny = lab.answer("tool.execute.before", "forbidden", &Decision::Deny("not here please".to_owned()));
    let ran = lab.run(&LaunchRequest { hook_command: Some(lab.recorder(&[deny])), ..lab.request("work") });
    assert!(!lab.home.work().join("f.txt").exists());
    assert!(lab.home.work().join("g.txt").exists());
    assert!(heard(&lab, "work").contains("not here please"), "the model reads the reason");
    assert_eq!((ran.outcome.denials.len(), ran.calls().1.len()), (1, 0));
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
}

#[test]
fn a_hook_that_breaks_stops_nothing() {
    let Some(lab) = lab([Turn::sh("touch one"), "end".into()]) else { return };
    let command = lab.recorder(&[Step::Print("not json".to_owned()), Step::Exit(1)]);
    let ran = lab.run(&LaunchRequest { hook_command: Some(command), ..lab.request("work") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert!(lab.home.work().join("one").exists());
}

#[test]
fn nor_does_one_that_is_not_there() {
    let Some(lab) = lab([Turn::sh("touch one"), "end".into()]) else { return };
    let gone = vec!["/nonexistent/segno".to_owned()];
    let ran = lab.run(&LaunchRequest { hook_command: Some(gone), ..lab.request("work") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert!(lab.home.work().join("one").exists());
}

#[test]
fn the_persons_own_plug_ins_run_too() {
    let Some(lab) = lab([Turn::sh("echo one"), "end".into()]) else { return };
    let theirs = lab.home.beside("own-plug-in.js");
    let marker = lab.home.beside("own-hook").to_str().unwrap().to_owned();
    std::fs::write(&theirs, plugin(&["touch".to_owned(), marker.clone()])).unwrap();
    configure(&lab, |config| config["plugin"] = json!([format!("file://{}", theirs.display())]));
    let ran = lab.run(&LaunchRequest { hook_command: Some(lab.recorder(&[])), ..lab.request("work") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert!(std::path::Path::new(&marker).exists(), "the person's own");
    assert!(names(&lab.payloads()).contains(&"tool.execute.before"), "and ours");
}
