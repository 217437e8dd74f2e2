//! Gemini CLI, for real: how runs go and fail.

use segno_agents::AgentEvent;
use segno_agents::Conversation;
use segno_agents::ErrorClass;
use segno_agents::LaunchRequest;
use segno_agents::OutcomeKind;
use segno_agents::transcript::CallStatus;
use segno_testkit::model::End;
use segno_testkit::model::Fault;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::model::When;
use segno_testkit::recipe::Patience;

use crate::support::Lab;

fn lab(script: Script) -> Option<Lab> {
    Lab::new("gemini", script, Patience::default())
}

/// The agent's own record of the last conversation.
pub(crate) fn record(lab: &Lab) -> std::path::PathBuf {
    let chats = lab.home.path().join(".gemini/tmp/work/chats");
    let files = std::fs::read_dir(chats).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).max().unwrap()
}

#[test]
fn uses_tools() {
    let turns = [
        Turn::ops([Op::sh("echo from-the-shell"), Op::write("a.txt", "written\n")]),
        Turn::ops([
            Op::Read("a.txt".to_owned()),
            Op::Edit { path: "a.txt".to_owned(), old: "written".to_owned(), new: "edited".to_owned() },
        ]),
        Turn::sh("echo heard ${last:from-the-(\\w+)}"),
        Turn::text("all done"),
    ];
    let Some(lab) = lab(Script::new(turns)) else { return };
    let ran = lab.five_calls();
    let (started, _) = ran.calls();
    // Its own record has the same calls under the same ids.
    let record = lab.agent.conversation_log().unwrap().transcript(&std::fs::read(record(&lab)).unwrap());
    let recorded: Vec<&str> = record.calls.iter().map(|call| call.call_id.as_str()).collect();
    assert_eq!(recorded, started);
    assert_eq!((record.native_id, record.unparsed), (ran.outcome.native_id.clone(), 0));
    assert_eq!((record.prompts, record.tokens), (1, ran.outcome.tokens));
    assert_eq!(record.last_text.as_deref(), Some("all done"));
}

#[test]
fn tools_that_fail() {
    let fail = Turn::ops([Op::sh("echo broken; exit 3"), Op::Read("nowhere.txt".to_owned())]);
    let Some(lab) = lab(Script::new([fail, "I see".into()])) else { return };
    let ran = lab.prompt("work");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!(ran.calls().1.len(), 0);
    let failed: Vec<_> =
        ran.events().filter(|event| matches!(event, AgentEvent::ToolFailed { .. })).collect();
    assert_eq!(failed.len(), 1, "the stream takes the exit code of a command for a success");
    let record = lab.agent.conversation_log().unwrap().transcript(&std::fs::read(record(&lab)).unwrap());
    assert!(record.calls.iter().all(|call| call.status == CallStatus::Failed), "its record does not");
}

#[test]
fn a_call_that_a_rule_forbids() {
    let Some(lab) = lab(Script::new([Turn::sh("rm -rf nothing"), "then not".into()])) else { return };
    let rule = r#"[[rule]]
toolName = "run_shell_command"
commandPrefix = "rm"
decision = "deny"
priority = 200
"#;
    std::fs::write(lab.home.path().join(".gemini/policies/deny.toml"), rule).unwrap();
    let ran = lab.prompt("work");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Denied);
    assert_eq!((ran.outcome.denials.len(), ran.finished.code), (1, Some(0)));
    assert_eq!(ran.calls().1.len(), 0);
}

#[test]
fn nobody_to_ask() {
    let Some(lab) = lab(Script::new([Turn::sh("echo x")])) else { return };
    std::fs::remove_file(lab.home.path().join(".gemini/policies/all.toml")).unwrap();
    let ran = lab.prompt("work");
    let end = &lab.model.requests()[0].end;
    assert!(
        matches!(end, End::BadScript(why) if why.contains("run a command")),
        "the tool is not even offered"
    );
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
}

#[test]
fn a_sub_agent() {
    let answer = serde_json::json!({ "result": { "response": "none" } });
    let complete = Op::Tool { name: "complete_task".to_owned(), input: answer, namespace: None, id: None };
    let script = Script::new([Turn::ops([Op::task("count the files please")]), "told you".into()]).track(
        "helper",
        When::first_user("count the files"),
        [Turn::sh("ls | wc -l"), Turn::ops([complete])],
    );
    let Some(lab) = lab(script) else { return };
    let ran = lab.prompt("delegate");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert_eq!((ran.calls().0.len(), ran.outcome.open_calls.len()), (1, 0), "its own calls are not told");
    assert!(ran.events().any(|event| matches!(event, AgentEvent::SubAgentStarted { .. })));
    assert!(ran.events().any(|event| matches!(event, AgentEvent::SubAgentStopped { .. })));
    assert_eq!(ran.outcome.tokens.input, 400, "what it used is counted");
    let tracks: Vec<String> = lab.model.requests().into_iter().map(|request| request.track).collect();
    assert_eq!(tracks, ["main", "helper", "helper", "main"]);
}

#[test]
fn too_many_requests_to_the_end() {
    let script = Script::new([Turn::error(429)]).then(Then::Repeat);
    let patience = Patience { retries: 0, ..Patience::default() };
    let Some(lab) = Lab::new("gemini", script, patience) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Limit);
    assert_eq!(ran.outcome.error.unwrap().class, ErrorClass::Limit);
    assert_ne!(ran.finished.code, Some(0));
}

#[test]
fn no_key_at_all() {
    let Some(mut lab) = lab(Script::default()) else { return };
    lab.recipe.env.remove("GEMINI_API_KEY");
    let ran = lab.prompt("try");
    assert_eq!((ran.outcome.outcome, ran.finished.code), (OutcomeKind::Failed, Some(41)));
    assert_eq!(ran.outcome.error.unwrap().class, ErrorClass::Authentication);
    assert!(lab.model.requests().is_empty());
}

#[test]
fn a_stream_that_breaks() {
    let drop =
        Turn { text: Some("half of it".to_owned()), chunk: 3, ..Fault::Drop { after: Some(2) }.into() };
    let patience = Patience { retries: 0, ..Patience::default() };
    let Some(lab) = Lab::new("gemini", Script::new([drop]).then(Then::Repeat), patience) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert_eq!(ran.outcome.error.unwrap().class, ErrorClass::Network);
    assert!(!ran.outcome.tokens_exact);
}

/// Sends a signal in the middle of a call, then goes on with the conversation.
fn cut_off(signal: &str, code: Option<i32>, killed: Option<i32>) {
    let turns = [Turn::sh("echo one"), Turn::sh("touch started; sleep 30"), "never".into()];
    let Some(lab) = lab(Script::new(turns)) else { return };
    let ran = lab.run_signalled(&lab.request("work"), signal);
    assert_eq!((ran.finished.code, ran.finished.signal), (code, killed));
    assert_eq!(ran.outcome.outcome, OutcomeKind::Interrupted);
    let (started, open) = ran.calls();
    assert_eq!((started.len(), open.len()), (2, 1));
    assert!(!lab.home.processes().is_empty(), "the command goes on without it");
    lab.home.kill_processes();
    let resume = Conversation::Resume(ran.outcome.native_id.unwrap());
    let again = lab.run(&LaunchRequest { conversation: resume, ..lab.request("go on") });
    assert_eq!(again.outcome.outcome, OutcomeKind::Completed);
    let heard = lab.model.requests().pop().unwrap().conversation;
    assert!(heard.contains("echo one") && !heard.contains("touch started"), "it knows nothing of the call");
}

#[test]
fn an_interrupt() {
    cut_off("INT", Some(0), None);
}

#[test]
fn a_termination() {
    cut_off("TERM", Some(0), None);
}

#[test]
fn a_kill() {
    cut_off("KILL", None, Some(9));
}

#[test]
fn other_formats_are_no_streams() {
    let Some(lab) = lab(Script::new(["hello there".into()])) else { return };
    for args in [&["--output-format", "json"][..], &["--list-sessions"]] {
        let mut spec = lab.agent.launch(&lab.request("hi")).unwrap();
        spec.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let ran = lab.spec(&spec);
        assert_eq!(ran.finished.code, Some(0));
        // Nothing in it is an event, so nothing says that the work was done; every line is kept.
        assert_eq!(ran.outcome.outcome, OutcomeKind::Interrupted);
        assert!(ran.events().all(AgentEvent::is_unparsed) && ran.events().next().is_some());
    }
}

#[test]
fn an_answer_that_is_none() {
    let garbage =
        Fault::Raw { body: "data: {oops\n\n".to_owned(), content_type: "text/event-stream".to_owned() };
    let Some(lab) = lab(Script::new([garbage.into(), "never asked".into()])) else { return };
    let ran = lab.prompt("try");
    assert_eq!((ran.outcome.outcome, ran.finished.code), (OutcomeKind::Failed, Some(1)));
    assert_eq!(lab.model.requests().len(), 1, "it does not try again");
}
