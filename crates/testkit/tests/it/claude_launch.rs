//! Claude Code, for real: caps and conversations.

use segno_agents::AgentEvent;
use segno_agents::Conversation;
use segno_agents::LaunchRequest;
use segno_agents::OutcomeKind;
use segno_testkit::model::Script;
use segno_testkit::recipe::Patience;

use crate::support::Lab;

fn lab(script: Script) -> Option<Lab> {
    Lab::new("claude", script, Patience::default())
}

fn id() -> String {
    uuid::Uuid::now_v7().to_string()
}

#[test]
fn a_conversation_goes_on() {
    let Some(lab) = lab(Script::new(["the word is plum".into(), "plum, as I said".into()])) else { return };
    let (begin, first, second) = lab.goes_on(id());
    let total = |ran: &crate::support::Ran| ran.outcome.cost_total_usd.unwrap();
    assert!(total(&second) > total(&first), "money adds up over the conversation");
    // The id is taken.
    let again = lab.run(&begin);
    assert_eq!(again.outcome.outcome, OutcomeKind::Failed);
    assert!(again.finished.stderr.contains("already in use"), "{}", again.finished.stderr);
}

#[test]
fn an_unknown_conversation() {
    let Some(lab) = lab(Script::new(["never asked".into()])) else { return };
    let resume = LaunchRequest { conversation: Conversation::Resume(id()), ..lab.request("again?") };
    let ran = lab.run(&resume);
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert_eq!((ran.finished.code, lab.model.requests().len()), (Some(1), 0));
}

#[test]
fn a_conversation_is_copied() {
    let turns = ["one fish".into(), "two fish".into(), "red fish".into(), "blue fish".into()];
    let Some(lab) = lab(Script::new(turns)) else { return };
    let (session, copy, cut) = (id(), id(), id());
    let run = |conversation: Conversation, prompt: &str| {
        lab.run(&LaunchRequest { conversation, ..lab.request(prompt) })
    };
    let first = run(Conversation::NewWithId(session.clone()), "first");
    run(Conversation::Resume(session.clone()), "second");
    let fork = |id: &str, at: Option<String>| Conversation::Fork {
        from: session.clone(),
        id: Some(id.to_owned()),
        at,
    };
    let forked = run(fork(&copy, None), "third");
    assert_eq!(forked.outcome.native_id.as_deref(), Some(copy.as_str()));
    let heard = lab.model.requests()[2].conversation.clone();
    assert!(heard.contains("one fish") && heard.contains("two fish") && heard.contains("third"));
    // Back to the first answer: what came after it is gone from the copy.
    let said =
        first.envelopes.iter().find(|envelope| matches!(envelope.event, AgentEvent::Text { .. })).unwrap();
    let back = run(fork(&cut, said.native_event_id.clone()), "fourth");
    assert_eq!(back.outcome.native_id.as_deref(), Some(cut.as_str()));
    let heard = lab.model.requests()[3].conversation.clone();
    assert!(heard.contains("one fish") && heard.contains("fourth"));
    assert!(!heard.contains("two fish") && !heard.contains("third"));
}

#[test]
fn a_copy_without_a_chosen_id() {
    let Some(lab) = lab(Script::new(["one".into(), "two".into()])) else { return };
    let session = id();
    let begin = Conversation::NewWithId(session.clone());
    lab.run(&LaunchRequest { conversation: begin, ..lab.request("first") });
    let fork = Conversation::Fork { from: session.clone(), id: None, at: None };
    let ran = lab.run(&LaunchRequest { conversation: fork, ..lab.request("second") });
    assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
    assert!(ran.outcome.native_id.is_some_and(|id| id != session));
}
