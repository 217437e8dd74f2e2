//! The work queue, the prompt and the status.

use rstest::rstest;

use super::*;
use crate::event::ItemEnd;
use crate::event::WorkItemMark;

fn item(id: &str, priority: Option<i64>, age: i64) -> QueueItem {
    QueueItem { id: id.into(), priority, created_at: Some(at(-age)), ..QueueItem::default() }
}

fn mark(id: &str) -> WorkItemMark {
    WorkItemMark { id: id.into(), title: "t".into() }
}

fn ended(story: &mut Story, id: &str, end: ItemEnd, failures: u32, retry_at: Option<Timestamp>) {
    story.ok(say(LoopCommand::EndItem { item: mark(id), end, failures, retry_at, why: "x".into() }));
}

fn next(story: &Story, listed: &[QueueItem]) -> Option<String> {
    match next_item(looping(story), listed, at(0)) {
        QueueStep::Take(item) => Some(item.id),
        QueueStep::Wait(_) | QueueStep::Empty => None,
    }
}

#[test]
fn priority_then_age_and_no_epics() {
    let story = begun(simple());
    let listed = vec![
        item("young", Some(1), 1),
        item("old", Some(1), 9),
        item("none", None, 99),
        item("late", Some(2), 99),
        QueueItem { is_epic: true, ..item("epic", Some(0), 99) },
        QueueItem { is_blocked: true, ..item("blocked", Some(0), 99) },
    ];
    let mut left = listed.clone();
    let mut order = Vec::new();
    while let Some(id) = next(&story, &left) {
        left.retain(|item| item.id != id);
        order.push(id);
    }
    assert_eq!(order, ["old", "young", "late", "none"]);
    assert_eq!(next_item(looping(&story), &[], at(0)), QueueStep::Empty);
}

#[test]
fn one_that_was_begun_comes_first_and_one_that_failed_waits() {
    let mut story = begun(simple());
    let listed = vec![item("a", Some(1), 0), item("b", Some(2), 0)];
    story.ok(say(LoopCommand::TakeItem { item: mark("b"), session: None }));
    assert_eq!(next(&story, &listed).as_deref(), Some("b"));
    ended(&mut story, "b", ItemEnd::Failed, 2, Some(at(60)));
    ended(&mut story, "a", ItemEnd::Failed, 2, Some(at(30)));
    assert_eq!(next_item(looping(&story), &listed, at(0)), QueueStep::Wait(at(30)));
    assert!(matches!(next_item(looping(&story), &listed, at(30)), QueueStep::Take(item) if item.id == "a"));
    // Somebody wants it tried again at once.
    ended(&mut story, "b", ItemEnd::Failed, 0, None);
    assert_eq!(next(&story, &listed).as_deref(), Some("b"));
    ended(&mut story, "a", ItemEnd::SetAside, 5, None);
    ended(&mut story, "b", ItemEnd::Skipped, 0, None);
    assert_eq!(next_item(looping(&story), &listed, at(0)), QueueStep::Empty);
    // One that was done and is listed again was opened again.
    ended(&mut story, "a", ItemEnd::Done, 0, None);
    assert_eq!(next(&story, &listed).as_deref(), Some("a"));
}

#[rstest]
#[case(0, 0)]
#[case(1, 0)]
#[case(2, 60)]
#[case(3, 120)]
#[case(4, 240)]
#[case(8, 3_600)]
#[case(u32::MAX, 3_600)]
fn pauses(#[case] failures: u32, #[case] seconds: u64) {
    assert_eq!(pause_after(failures), seconds);
}

#[test]
fn five_failures_and_it_is_set_aside() {
    let ends: Vec<_> = (0..5).map(|before| after_failure(before, 5, at(0))).collect();
    assert_eq!(
        ends,
        [
            (ItemEnd::Failed, 1, Some(at(0))),
            (ItemEnd::Failed, 2, Some(at(60))),
            (ItemEnd::Failed, 3, Some(at(120))),
            (ItemEnd::Failed, 4, Some(at(240))),
            (ItemEnd::SetAside, 5, None),
        ]
    );
}

#[rstest]
#[case(true, true, false, ItemOutcome::Done)]
#[case(true, true, true, ItemOutcome::Done)]
#[case(true, false, false, ItemOutcome::FollowUp)]
#[case(true, false, true, ItemOutcome::Failed)]
#[case(false, true, false, ItemOutcome::Failed)]
#[case(false, false, false, ItemOutcome::Failed)]
fn done_is_passed_and_closed(
    #[case] passed: bool,
    #[case] closed: bool,
    #[case] followed_up: bool,
    #[case] outcome: ItemOutcome,
) {
    assert_eq!(item_outcome(passed, closed, followed_up), outcome);
}

#[test]
fn the_first_prompt() {
    let story = begun(simple());
    let texts =
        PromptTexts { work: "Make it work.".into(), phase: "Fix {phase}.".into(), ..PromptTexts::default() };
    let text = prompt(looping(&story), &texts, 1);
    let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(
        heads,
        ["## Work", "## Phase work, iteration 1", "## What was measured", "## At the end of your answer"]
    );
    assert!(text.contains("Fix work."));
    assert!(text.ends_with("---END_PRP_PHASE_STATUS---"));
}

#[test]
fn a_later_prompt_says_what_was_measured_and_what_stood_in_the_way() {
    let mut plan = simple();
    plan.signal = true;
    let mut story = begun(plan);
    let mut seen = Observation { tests: Some(counts(8, 2)), ..moved(1) };
    seen.changes.still_failing = Named { count: 1, names: vec!["cart::empty".into()] };
    seen.error = Some(ErrorMark::of("assertion failed\nin cart"));
    seen.question = Some("Which cart?".into());
    seen.denied = vec!["Bash(rm)".into()];
    iterate(&mut story, seen);
    let notes = vec!["use the other cart".to_owned()];
    let texts = PromptTexts { work: "Do it.".into(), notes, ..PromptTexts::default() };
    let text = prompt(looping(&story), &texts, 2);
    for wanted in [
        "- tests: 8/10 pass",
        "- not yet: failing tests is 2, and should be 0",
        "- still failing: cart::empty",
        "- error: assertion failed in cart",
        "- denied: Bash(rm); do not try it again, find another way",
        "- you asked: Which cart? Nobody is there to answer: decide yourself and say why",
        "- use the other cart",
        "EXIT_SIGNAL is true only when everything that this phase asks for is done.",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

/// What is put in is not looked at again.
#[test]
fn values_are_put_in_once() {
    let mut plan = simple();
    plan.phases[0].name = "w{item}".into();
    let mut story = Story::new();
    let item = Some(WorkItemMark { id: "{title}".into(), title: "{work}".into() });
    story.ok(say(LoopCommand::Start { plan: Box::new(plan), parent: None, item }));
    let phase = "{work}|{item}|{title}|{phase}|{iteration}|{other}|{".to_owned();
    let texts = PromptTexts { work: "a {nothing}".into(), phase, ..PromptTexts::default() };
    let text = prompt(looping(&story), &texts, 3);
    assert!(text.contains("a {nothing}|{title}|{work}|w{item}|3|{other}|{"), "{text}");
    assert!(!text.contains("## Work"), "it stands in the phase's own text");
}

#[test]
fn the_status_says_where_every_counter_stands() {
    let mut story = begun(prp());
    let mut seen = idle();
    seen.tests = Some(counts(6, 0));
    iterate(&mut story, seen.clone());
    iterate(&mut story, seen);
    story.ok(say(LoopCommand::Say { text: "hurry".into() }));
    let status = loop_status(&story.state, now(&story)).unwrap();
    assert_eq!((status.phase.as_str(), status.iteration, status.total, status.most), ("RED", 2, 2, Some(50)));
    let states: Vec<&str> = status.phases.iter().map(|phase| phase.state).collect();
    assert_eq!(states, ["now", "to come", "to come", "to come", "to come"]);
    assert_eq!(status.breaker.state, BreakerState::HalfOpen);
    let first = &status.breaker.counters[0];
    assert_eq!((first.name, first.value, first.limit), ("iterations without progress", 2, 3));
    assert_eq!(status.breaker.compared.as_deref(), Some("tree t0 unchanged; tests 6/6 with 6/6"));
    assert_eq!(status.breaker.would_count[1], "more than 6 passing tests, or a new test");
    assert_eq!(
        (status.notes.as_slice(), status.next.as_str()),
        (["hurry".to_owned()].as_slice(), "one more iteration")
    );
    let json = serde_json::to_value(&status).unwrap();
    assert_eq!(json["breaker"]["state"], "HALF_OPEN");
    assert_eq!(loop_status(&Story::new().state, at(0)), None);
}

#[test]
fn the_status_counts_down() {
    let mut story = begun(simple());
    iterate(&mut story, limited(LimitClass::Plan, Some(at(7_200))));
    let status = loop_status(&story.state, at(7_200 + 30 - 6_442)).unwrap();
    assert_eq!(status.countdown.as_deref(), Some("1h 47m 22s"));
    assert_eq!(status.next, "goes on in 1h 47m 22s");
    assert_eq!(status.status, "paused");
}
