//! What a queue does when something is left that it cannot take up, and what its end is worth.

use segno_core::Command;
use segno_core::Status;
use segno_core::day::DayCaps;
use segno_core::event::ItemEnd;
use segno_core::looping::CapKind;
use segno_core::looping::ItemStand;
use segno_core::looping::LoopVerdict;
use segno_core::looping::PersonNeed;
use segno_engine::looping::LoopEnded;

use super::queue::HONEST;
use super::queue::begin;
use super::queue::item;
use super::queue::queue;
use super::queue::tracked;

fn needs_a_decision(ended: &LoopEnded) -> bool {
    matches!(ended.verdict, Some(LoopVerdict::NeedsPerson { need: PersonNeed::Escalated, .. }))
}

fn stand(ended: &LoopEnded, id: &str) -> ItemStand {
    ended.state.looping.as_ref().unwrap().items[id].clone()
}

#[test]
fn items_that_cannot_be_taken_up_are_not_done() {
    let yard = tracked(HONEST);
    item(&yard, "a", "");
    std::fs::write(yard.base().join("items/x"), r#"{"id":"-rf","title":"X","status":"open"}"#).unwrap();
    std::fs::write(yard.base().join("items/y"), r#"{"title":"Y","status":"open"}"#).unwrap();
    let ended = yard.drive(begin(&yard, |_| {})).unwrap();
    assert!(needs_a_decision(&ended), "{:?}", ended.verdict);
    assert_eq!((ended.state.status, yard.read("made").as_str()), (Status::Paused, "a\n"));
    let left =
        "what is left is not done: cannot be worked on: -rf (its id begins with a dash), Y (it has no id)";
    assert!(ended.why.contains(left), "{}", ended.why);
}

/// Another loop took the item and was paused: it lies there until somebody goes on with that loop.
#[test]
fn what_another_loop_left_lying_is_not_done() {
    let yard = tracked(HONEST);
    item(&yard, "a", "");
    let shared = |new: &mut segno_engine::looping::NewLoop| queue(new).id = "shop".to_owned();
    let first = begin(&yard, shared);
    yard.remove_agent();
    // Its agent cannot be started: it stands still with the item in its hands.
    let stuck = yard.drive(first).unwrap();
    assert_eq!((stuck.state.status, stand(&stuck, "a").end), (Status::Paused, None));
    yard.restore_agent();
    let second = yard.drive(begin(&yard, shared)).unwrap();
    assert!(needs_a_decision(&second), "{:?}", second.verdict);
    let words = format!("begun by another loop that stands still: a in {first}");
    assert!(second.why.contains(&words), "{}", second.why);
    assert_eq!((second.state.status, yard.starts()), (Status::Paused, 0));
    // Somebody gives the other one up: the item is taken up.
    yard.engine().act(first, Command::Abort { reason: None }).unwrap();
    let done = yard.drive(second.state.session_id).unwrap();
    assert_eq!(
        (done.verdict.clone(), stand(&done, "a").end),
        (Some(LoopVerdict::Complete), Some(ItemEnd::Done))
    );
}

/// The first item uses up the day: the loop is paused for its budget, and nothing is an error.
#[test]
fn a_queue_at_the_end_of_its_day_is_paused_for_its_budget() {
    let mut yard = tracked(HONEST);
    yard.day = DayCaps { tokens: Some(110), ..DayCaps::default() };
    for id in ["a", "b"] {
        item(&yard, id, "");
    }
    let session = begin(&yard, |_| {});
    let ended = yard.drive(session).unwrap();
    assert!(
        matches!(ended.verdict, Some(LoopVerdict::Cap { which: CapKind::DayTokens, .. })),
        "{:?}",
        ended.verdict
    );
    let reason = ended.state.reason.clone().unwrap();
    assert_eq!((ended.state.status, reason.what.as_str()), (Status::Paused, "budget reached"));
    assert_eq!((stand(&ended, "a").end, yard.starts()), (Some(ItemEnd::Done), 1));
    yard.day = DayCaps::default();
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.verdict, yard.starts()), (Some(LoopVerdict::Complete), 2));
}

/// The same in the middle of an item: its work is done, and only its follow-up is left.
#[test]
fn a_follow_up_at_the_end_of_the_day_pauses_the_loop_and_is_had_later() {
    let mut yard = tracked(
        "case \"$(cat $DIR/prompt-$n)\" in *'still open in the tracker'*) $DIR/br close a; finish closed; exit;; esac\necho $item >> made; finish done",
    );
    yard.day = DayCaps { tokens: Some(110), ..DayCaps::default() };
    item(&yard, "a", "");
    let session = begin(&yard, |_| {});
    let ended = yard.drive(session).unwrap();
    assert!(
        matches!(ended.verdict, Some(LoopVerdict::Cap { which: CapKind::DayTokens, .. })),
        "{:?}",
        ended.verdict
    );
    assert_eq!((ended.state.status, stand(&ended, "a").end), (Status::Paused, None));
    yard.day = DayCaps::default();
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.verdict.clone(), yard.starts()), (Some(LoopVerdict::Complete), 2));
    assert_eq!((stand(&ended, "a").end, stand(&ended, "a").failures), (Some(ItemEnd::Done), 0));
}

/// The follow-up closes the item, and breaks what its gate had measured.
#[test]
fn a_follow_up_that_breaks_the_work_has_failed() {
    let yard = tracked(
        "case \"$(cat $DIR/prompt-$n)\" in *'still open in the tracker'*) rm made; $DIR/br close a; finish closed; exit;; esac\necho $item >> made; finish done",
    );
    item(&yard, "a", "");
    let session = begin(&yard, |new| {
        queue(new).max_failures = 1;
        new.plan.phases[0].evidence[0].command = "test -e made".to_owned();
    });
    let ended = yard.drive(session).unwrap();
    assert!(needs_a_decision(&ended), "{:?}", ended.verdict);
    let a = stand(&ended, "a");
    assert_eq!(a.end, Some(ItemEnd::SetAside));
    assert_eq!(a.why, "its follow-up changed files, and now until fails");
    assert!(ended.why.contains("item a is closed, but its follow-up changed files"), "{}", ended.why);
}

/// Somebody takes a failed item out of the list: that does not make it done.
#[test]
fn a_failed_item_that_is_taken_out_of_the_list_is_not_done() {
    let yard = tracked("rm -f $DIR/items/a; echo $n >> made; finish no");
    item(&yard, "a", "");
    let session = begin(&yard, |new| {
        // Nobody can be asked for a single item.
        queue(new).show = None;
        new.plan.phases[0].evidence[0].command = "false".to_owned();
        new.plan.phases[0].max_iterations = Some(1);
    });
    let ended = yard.drive(session).unwrap();
    assert!(needs_a_decision(&ended), "{:?}", ended.verdict);
    assert!(ended.why.contains("failed and are no longer in the list: a"), "{}", ended.why);
    assert_eq!((ended.state.status, stand(&ended, "a").end), (Status::Paused, Some(ItemEnd::SetAside)));
    // Who was told so and goes on wants to go on without it.
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, ended.verdict), (Status::Completed, Some(LoopVerdict::Complete)));
    assert_eq!(ended.why, "no item is left, 0 done; set aside: a");
}

/// A person closes an item in the tracker that had failed: the loop does not stand still for ever.
#[test]
fn a_failed_item_that_is_closed_in_its_tracker_holds_up_nobody_for_ever() {
    let yard = tracked("$DIR/br close a; echo $n >> made; finish no");
    item(&yard, "a", "");
    let session = begin(&yard, |new| {
        new.plan.phases[0].evidence[0].command = "false".to_owned();
        new.plan.phases[0].max_iterations = Some(1);
    });
    let ended = yard.drive(session).unwrap();
    assert!(needs_a_decision(&ended), "{:?}", ended.verdict);
    assert_eq!((ended.state.status, stand(&ended, "a").end), (Status::Paused, Some(ItemEnd::SetAside)));
    assert!(stand(&ended, "a").why.ends_with("and was closed or taken out of the list"));
    assert_eq!(yard.drive(session).unwrap().state.status, Status::Completed);
}
