//! The work queue, the prompt and the status.

use rstest::rstest;

use super::*;
use crate::event::ItemEnd;
use crate::event::PauseReason;
use crate::event::WorkItemMark;

fn item(id: &str, priority: Option<i64>, age: i64) -> QueueItem {
    QueueItem { id: id.into(), priority, created_at: Some(at(-age)), ..QueueItem::default() }
}

fn mark(id: &str) -> WorkItemMark {
    WorkItemMark { id: id.into(), title: "t".into() }
}

fn take(id: &str) -> LoopCommand {
    LoopCommand::TakeItem(crate::event::ItemTaken { item: mark(id), ..Default::default() })
}

fn ended(story: &mut Story, id: &str, end: ItemEnd, failures: u32, retry_at: Option<Timestamp>) {
    story.ok(say(LoopCommand::EndItem {
        item: mark(id),
        end,
        failures,
        retry_at,
        why: "x".into(),
        used: ItemUse::default(),
    }));
}

fn next(story: &Story, listed: &[QueueItem]) -> Option<String> {
    match next_item(looping(story), &[], listed, at(0)) {
        QueueStep::Take(item) => Some(item.id),
        QueueStep::Wait(_) | QueueStep::Empty(_) => None,
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
    assert_eq!(next_item(looping(&story), &[], &[], at(0)), QueueStep::Empty(LeftOver::default()));
}

#[test]
fn one_that_was_begun_comes_first_and_one_that_failed_waits() {
    let mut story = begun(simple());
    let listed = vec![item("a", Some(1), 0), item("b", Some(2), 0)];
    story.ok(say(take("b")));
    assert_eq!(next(&story, &listed).as_deref(), Some("b"));
    ended(&mut story, "b", ItemEnd::Failed, 2, Some(at(60)));
    ended(&mut story, "a", ItemEnd::Failed, 2, Some(at(30)));
    assert_eq!(next_item(looping(&story), &[], &listed, at(0)), QueueStep::Wait(at(30)));
    assert!(
        matches!(next_item(looping(&story), &[], &listed, at(30)), QueueStep::Take(item) if item.id == "a")
    );
    // Somebody wants it tried again at once.
    ended(&mut story, "b", ItemEnd::Failed, 0, None);
    assert_eq!(next(&story, &listed).as_deref(), Some("b"));
    ended(&mut story, "a", ItemEnd::SetAside, 5, None);
    ended(&mut story, "b", ItemEnd::Skipped, 0, None);
    let left = LeftOver { set_aside: vec!["a".into()], ..LeftOver::default() };
    assert_eq!(next_item(looping(&story), &[], &listed, at(0)), QueueStep::Empty(left));
    // One that was done and is listed again was opened again.
    ended(&mut story, "a", ItemEnd::Done, 0, None);
    assert_eq!(next(&story, &listed).as_deref(), Some("a"));
}

/// The plan of a loop with a queue that it shares.
fn queued(change: impl FnOnce(&mut QueuePlan)) -> Story {
    let mut plan = simple();
    let mut queue = QueuePlan { command: Some("br ready".into()), id: "shop".into(), ..QueuePlan::default() };
    change(&mut queue);
    plan.queue = Some(queue);
    begun(plan)
}

/// The summary of another session.
fn summary(story: &Story) -> crate::Summary {
    let session_id = crate::id::SessionId::at(at(900));
    crate::Summary { session_id, ..crate::Summary::from(&story.state) }
}

fn share(story: &Story) -> QueueShare {
    QueueShare::of(looping(story)).unwrap()
}

#[test]
fn what_another_loop_works_on_or_failed_with_holds_here_too() {
    let (own, mut other) = (queued(|_| {}), queued(|_| {}));
    let listed = [item("a", Some(1), 0), item("b", Some(2), 0), item("c", Some(3), 0)];
    let step = |own: &Story, other: &Story| next_item(looping(own), &[share(other)], &listed, at(0));
    other.ok(say(take("a")));
    assert!(matches!(step(&own, &other), QueueStep::Take(item) if item.id == "b"), "a is the other one's");
    ended(&mut other, "a", ItemEnd::Failed, 2, Some(at(60)));
    ended(&mut other, "b", ItemEnd::SetAside, 5, None);
    assert!(matches!(step(&own, &other), QueueStep::Take(item) if item.id == "c"), "a waits, b is out");
    ended(&mut other, "c", ItemEnd::Skipped, 0, None);
    assert_eq!(step(&own, &other), QueueStep::Wait(at(60)));
    assert_eq!(failures_of(looping(&own), &[share(&other)], "a"), Some(2));
}

/// One that stands still works on nothing: what it has begun lies there.
#[test]
fn what_lies_in_the_hands_of_a_loop_that_stands_still_is_told_apart() {
    let (own, mut other) = (queued(|_| {}), queued(|_| {}));
    let listed = [item("a", Some(1), 0)];
    other.ok(say(take("a")));
    let step =
        |other: &Story| next_item(looping(&own), &sharing(&own.state, &[summary(other)]), &listed, at(0));
    let elsewhere = LeftOver { elsewhere: vec!["a".into()], ..LeftOver::default() };
    assert_eq!(step(&other), QueueStep::Empty(elsewhere));
    other.ok(Command::Pause { reason: PauseReason::Asked, details: None });
    let lying = vec![("a".to_owned(), summary(&other).session_id)];
    assert_eq!(step(&other), QueueStep::Empty(LeftOver { left_lying: lying, ..LeftOver::default() }));
}

#[test]
fn the_newest_word_on_an_item_holds() {
    let (mut own, mut other) = (queued(|_| {}), queued(|_| {}));
    ended(&mut own, "a", ItemEnd::SetAside, 5, None);
    for _ in 0..3 {
        other.ok(say(LoopCommand::Say { text: "later".into() }));
    }
    ended(&mut other, "a", ItemEnd::Failed, 0, None);
    let listed = [item("a", None, 0)];
    let step = next_item(looping(&own), &[share(&other)], &listed, at(0));
    assert!(matches!(step, QueueStep::Take(_)), "{step:?}");
}

#[test]
fn only_open_loops_on_the_same_queue_share() {
    let own = queued(|_| {});
    let mut ended = queued(|_| {});
    ended.ok(Command::Abort { reason: None });
    let others = [
        queued(|_| {}).state,
        queued(|queue| queue.id = "other".into()).state,
        begun(simple()).state,
        ended.state,
    ];
    let of = |state: &crate::State| crate::Summary::from(state);
    // Every story has the same id of its session; only others count.
    assert_eq!(sharing(&own.state, &others.each_ref().map(of)).len(), 0);
    let others = others.map(|mut state| {
        state.session_id = crate::id::SessionId::at(at(900));
        of(&state)
    });
    assert_eq!(sharing(&own.state, &others).len(), 1);
    let alone = queued(|queue| queue.id.clear());
    assert_eq!(sharing(&alone.state, &others).len(), 0);
}

#[test]
fn with_a_branch_for_each_item_one_that_is_done_stays_done() {
    let mut story = queued(|queue| queue.branch = Some("segno/{item}".into()));
    ended(&mut story, "a", ItemEnd::Done, 0, None);
    let step = next_item(looping(&story), &[], &[item("a", None, 0)], at(0));
    assert_eq!(step, QueueStep::Empty(LeftOver::default()));
}

#[rstest]
#[case("shop-7", "segno/shop-7")]
#[case("a b~c^d:e", "segno/a-b-c-d-e-DIGITS")]
#[case("x", "segno/x")]
#[case("../../x", "segno/x-DIGITS")]
#[case("x.lock", "segno/x-DIGITS")]
#[case("#", "segno/item-DIGITS")]
#[case("größe", "segno/größe")]
fn branches_of_items(#[case] id: &str, #[case] branch: &str) {
    let queue = QueuePlan { branch: Some("segno/{item}".into()), ..QueuePlan::default() };
    let branch = branch.replace("DIGITS", &crate::fingerprint::digits_of(id)[..8]);
    assert_eq!(queue.branch_of(id), Some(branch));
}

#[test]
fn no_two_items_share_a_branch() {
    let queue = QueuePlan { branch: Some("segno/{item}".into()), ..QueuePlan::default() };
    let ids = ["x", "../../x", "x.lock", "x.", "/x", "x ", "x~", "x^", "-x", "#", "?", "item"];
    let branches: std::collections::BTreeSet<_> = ids.iter().map(|id| queue.branch_of(id)).collect();
    assert_eq!(branches.len(), ids.len(), "{branches:?}");
}

#[rstest]
#[case("br ready --json", Some("br show 'a'\\''; rm -rf x' --json"))]
#[case("/opt/bd --db x.db ready --json --limit 5", Some("/opt/bd --db x.db show 'a'\\''; rm -rf x' --json"))]
#[case("br ready --json | head", None)]
#[case("br list --json", None)]
#[case("gh issue list --json number", None)]
fn one_item_of_a_known_tracker(#[case] list: &str, #[case] shown: Option<&str>) {
    let queue = QueuePlan { show: show_for(list), ..QueuePlan::default() };
    assert_eq!(queue.show_command("a'; rm -rf x").as_deref(), shown);
}

#[test]
fn a_queue_has_one_source_and_a_branch_for_each_item() {
    let plan = |queue: QueuePlan| LoopPlan { queue: Some(queue), ..simple() };
    let command = || QueuePlan { command: Some("br ready".into()), ..QueuePlan::default() };
    assert_eq!(plan(command()).check(), Ok(()));
    assert!(plan(QueuePlan::default()).check().is_err());
    assert!(plan(QueuePlan { checklist: Some("TODO.md".into()), ..command() }).check().is_err());
    assert!(plan(QueuePlan { branch: Some("work".into()), ..command() }).check().is_err());
}

/// What the session of an item comes to, and what that means for the queue.
#[test]
fn how_an_item_stands() {
    let parent = queued(|_| {});
    let standing = |story: &Story, verdict| item_standing(looping(&parent), &story.state, Some(&verdict));
    let mut done = begun(simple());
    assert_eq!(item_standing(looping(&parent), &done.state, None), ItemStanding::Open);
    done.ok(Command::Complete { summary: None });
    assert_eq!(item_standing(looping(&parent), &done.state, None), ItemStanding::Passed);
    let mut stuck = begun(simple());
    for _ in 0..3 {
        iterate(&mut stuck, idle());
    }
    let why = "halted: 3 iterations without progress".to_owned();
    assert_eq!(item_standing(looping(&parent), &stuck.state, None), ItemStanding::Failed { why });
    let mut left = begun(simple());
    left.ok(Command::Abort { reason: Some("not now".into()) });
    let why = "not now".to_owned();
    assert_eq!(item_standing(looping(&parent), &left.state, None), ItemStanding::LeftOut { why });
    let mut waits = begun(simple());
    iterate(&mut waits, limited(LimitClass::Plan, Some(at(7_200))));
    assert!(matches!(item_standing(looping(&parent), &waits.state, None), ItemStanding::Waits(_)));
    let open = begun(simple());
    let cap = |which| LoopVerdict::Cap { which, why: "w".into() };
    for which in [CapKind::Budget, CapKind::DayMoney, CapKind::Seconds, CapKind::Plan] {
        assert_eq!(standing(&open, cap(which)), ItemStanding::Stops(cap(which)));
    }
    for which in [CapKind::PhaseIterations, CapKind::IterationMoney] {
        assert!(matches!(standing(&open, cap(which)), ItemStanding::Failed { .. }), "{which:?}");
    }
    let person = |need| LoopVerdict::NeedsPerson { need, why: "w".into() };
    for need in [PersonNeed::Pay, PersonNeed::Auth, PersonNeed::CannotAct, PersonNeed::Breakpoint] {
        assert_eq!(standing(&open, person(need)), ItemStanding::Stops(person(need)));
    }
    assert!(matches!(standing(&open, person(PersonNeed::Escalated)), ItemStanding::Failed { .. }));
}

#[test]
fn an_item_that_used_up_its_own_iterations_failed_and_one_that_used_up_all_stops() {
    let cap = LoopVerdict::Cap { which: CapKind::Iterations, why: "2 of 2 iterations".into() };
    let standing = |most: Option<u64>| {
        let mut parent = queued(|_| {});
        parent.state.looping.as_mut().unwrap().plan.caps.iterations = most;
        let mut item = begun(simple());
        iterate(&mut item, moved(1));
        iterate(&mut item, moved(2));
        parent.state.looping.as_mut().unwrap().total = 3;
        item_standing(looping(&parent), &item.state, Some(&cap))
    };
    let all = LoopVerdict::Cap { which: CapKind::Iterations, why: "5 of 5 iterations".into() };
    assert_eq!(standing(Some(5)), ItemStanding::Stops(all), "what the items before it took counts too");
    assert!(matches!(standing(Some(10)), ItemStanding::Failed { .. }));
    assert!(matches!(standing(None), ItemStanding::Failed { .. }));
}

#[test]
fn what_items_used_counts_for_the_loop_and_its_caps() {
    let mut story = queued(|_| {});
    story.state.looping.as_mut().unwrap().plan.caps.iterations = Some(5);
    story.ok(say(take("a")));
    assert_eq!(next_step(&story.state, at(0)), NextStep::Items);
    let used = ItemUse { iterations: 5, tokens: 70, micros: 9, hour: HourWindow::default() };
    let (item, end, why) = (mark("a"), ItemEnd::Done, String::new());
    story.ok(say(LoopCommand::EndItem { item, end, failures: 0, retry_at: None, why, used }));
    let state = looping(&story);
    assert_eq!((state.total, state.tokens, state.micros, state.items_done), (5, 70, 9, 1));
    assert!(matches!(
        next_step(&story.state, at(0)),
        NextStep::Capped(LoopVerdict::Cap { which: CapKind::Iterations, .. })
    ));
}

#[test]
fn a_second_try_has_a_session_of_its_own_and_its_own_follow_up() {
    let mut story = queued(|_| {});
    let first = Some(crate::id::SessionId::at(at(1)));
    let taken = |session, follow_up| {
        say(LoopCommand::TakeItem(crate::event::ItemTaken {
            item: mark("a"),
            session,
            group: Some("g".into()),
            follow_up,
            failures: None,
        }))
    };
    story.ok(taken(None, false));
    story.ok(taken(first, false));
    story.ok(taken(first, true));
    let stand = |story: &Story| looping(story).items["a"].clone();
    assert_eq!((stand(&story).session, stand(&story).follow_up), (first, first));
    assert!(stand(&story).followed_up && stand(&story).end.is_none());
    ended(&mut story, "a", ItemEnd::Failed, 1, None);
    story.ok(taken(None, false));
    let again = stand(&story);
    assert_eq!((again.session, again.followed_up, again.failures), (None, false, 1));
    assert_eq!(again.group.as_deref(), Some("g"));
}

#[test]
fn a_list_is_recorded_when_it_changes() {
    let mut story = queued(|_| {});
    let list = |id: &str| say(LoopCommand::ListItems { ready: vec![mark(id)], total: 1, skipped: 0 });
    assert_eq!(story.ok(list("a")).len(), 1);
    assert_eq!(story.ok(list("a")).len(), 0);
    assert_eq!(story.ok(list("b")).len(), 1);
}

#[test]
fn a_loop_that_waits_for_work_is_woken_by_work() {
    let mut story = queued(|_| {});
    let park = |class| {
        say(LoopCommand::Park(crate::event::LoopParked {
            until: Some(at(90_000)),
            class,
            words: "w".into(),
            ..crate::event::LoopParked::default()
        }))
    };
    let wake =
        || say(LoopCommand::Wake { how: crate::event::WokenHow::Foreground, at: at(0), others: Vec::new() });
    story.ok(park(ParkReason::Queue));
    story.ok(wake());
    story.ok(park(ParkReason::Hours));
    assert!(matches!(story.refused(wake()), crate::Refusal::Already(_)));
}

#[test]
fn the_status_lists_the_items() {
    let mut story = queued(|_| {});
    story.ok(say(LoopCommand::ListItems {
        ready: ["a", "b", "c", "d"].map(mark).to_vec(),
        total: 4,
        skipped: 1,
    }));
    ended(&mut story, "b", ItemEnd::Failed, 2, Some(at(1_060)));
    ended(&mut story, "a", ItemEnd::Done, 0, None);
    story.ok(say(take("c")));
    let status = loop_status(&story.state, at(1_000)).unwrap();
    let queue = status.queue.unwrap();
    let items: Vec<_> =
        queue.items.iter().map(|item| (item.id.as_str(), item.state, item.wait.as_deref())).collect();
    assert_eq!(items, [("b", "failed", Some("1m 0s")), ("a", "done", None), ("c", "works", None)]);
    assert_eq!((queue.open, queue.done, queue.listed, queue.skipped), (vec![mark("d")], 1, 4, 1));
    assert_eq!(status.next, "works on item c");
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
