//! What is said of a loop.

use super::*;
use crate::event::PauseReason;
use crate::event::Source;

fn next(story: &Story) -> String {
    loop_status(&story.state, at(0)).unwrap().next
}

#[test]
fn nothing_comes_next_by_itself_in_a_loop_that_stands_still() {
    let mut story = begun(simple());
    iterate(&mut story, moved(1));
    assert_eq!(next(&story), "one more iteration");
    story.ok(Command::Pause { reason: PauseReason::Asked, details: None });
    assert_eq!(next(&story), "nothing until you resume it; then: one more iteration");
}

#[test]
fn what_an_unfinished_iteration_used_is_seen() {
    let used = |story: &Story| loop_status(&story.state, at(0)).unwrap().tokens;
    let mut story = begun(simple());
    story.ok(Command::StartIteration);
    story.ok(crate::story::tokens(700, Source::Hand));
    assert_eq!(used(&story), 700);
    story.ok(Command::Pause { reason: PauseReason::Asked, details: None });
    assert_eq!(used(&story), 700, "also when it was cut short");
}

#[test]
fn what_ended_iterations_used_counts_once() {
    let mut story = begun(simple());
    story.ok(Command::StartIteration);
    story.ok(crate::story::tokens(700, Source::Hand));
    let moment = now(&story);
    end(&mut story, Observation { tokens: 700, ..moved(1) }, moment);
    assert_eq!(loop_status(&story.state, at(0)).unwrap().tokens, 700);
}

/// A note that is in the prompt of the present iteration does not wait for the next one; if that is cut short it does.
#[test]
fn a_note_that_was_told_does_not_wait_any_more() {
    let notes = |story: &Story| {
        let status = loop_status(&story.state, at(0)).unwrap();
        (status.notes, status.told_before)
    };
    let say = |text: &str| Command::Loop(Box::new(LoopCommand::Say { text: text.into() }));
    let mut story = begun(simple());
    story.ok(say("no tabs"));
    assert_eq!(notes(&story), (vec!["no tabs".to_owned()], 0));
    story.ok(Command::StartIteration);
    story.ok(say("no spaces"));
    assert_eq!(notes(&story), (vec!["no spaces".to_owned()], 0));
    let mut heard = Story::of(story.state.clone());
    story.ok(Command::Pause { reason: PauseReason::Asked, details: None });
    assert_eq!(notes(&story), (vec!["no tabs".to_owned(), "no spaces".to_owned()], 1));
    // An agent that had its say is measured, and not asked again.
    heard.ok(crate::story::start_run("r1"));
    heard.ok(crate::story::end_run("r1", "completed"));
    heard.ok(Command::Pause { reason: PauseReason::Asked, details: None });
    assert_eq!(notes(&heard), (vec!["no spaces".to_owned()], 0));
    let next = loop_status(&heard.state, at(0)).unwrap().next;
    assert_eq!(next, "nothing until you resume it; then: measures what its agent left");
}
