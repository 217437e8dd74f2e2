//! A loop with a queue that is killed anywhere goes on to the same end, and two of them do not take the same item.

use rstest::rstest;
use segno_core::Status;
use segno_core::event::ItemEnd;

use super::queue::HONEST;
use super::queue::begin;
use super::queue::item;
use super::queue::tracked;
use crate::child::Helper;

#[rstest]
#[case("item taken", 3)]
#[case("item session made", 3)]
#[case("loop begun", 3)]
#[case("loop measured", 3)]
#[case("loop decided", 3)]
#[case("item worked on", 3)]
#[case("item ended", 3)]
fn it_goes_on_after_a_kill(#[case] moment: &str, #[case] starts: u32) {
    let yard = tracked(HONEST);
    for id in ["a", "b", "c"] {
        item(&yard, id, "");
    }
    let session = begin(&yard, |_| {});
    let mut child = Helper::dying("loop", yard.base(), &session.to_string(), moment);
    assert_eq!(child.hear(), None, "it is killed before it is done");
    child.kill();
    let ended = yard.drive(session).unwrap();
    assert_eq!(ended.state.status, Status::Completed, "{}", ended.why);
    assert_eq!((yard.starts(), yard.read("made").as_str()), (starts, "a\nb\nc\n"), "nothing is done twice");
    let looping = ended.state.looping.unwrap();
    assert_eq!((looping.items_done, looping.total), (3, 3));
    let made = yard.engine().list(&segno_engine::Filter::default()).unwrap();
    assert_eq!(made.len(), 4, "one session for the loop and one for each item");
}

/// The item fails once, and the loop is killed around it: it has failed once all the same.
#[rstest]
#[case("item worked on")]
#[case("item failed")]
#[case("item ended")]
fn a_failure_counts_once(#[case] moment: &str) {
    let yard = tracked(
        "[ -e first ] || { echo $n > first; finish no; exit; }\nrm -f first; echo $item >> made; $DIR/br close $item; finish done",
    );
    item(&yard, "a", "");
    let session = begin(&yard, |new| {
        new.plan.phases[0].evidence[0].command = "test ! -e first".into();
        new.plan.phases[0].max_iterations = Some(1);
        new.plan.queue.as_mut().unwrap().max_failures = 1;
    });
    let mut child = Helper::dying("loop", yard.base(), &session.to_string(), moment);
    assert_eq!(child.hear(), None);
    child.kill();
    let ended = yard.drive(session).unwrap();
    let stand = &ended.state.looping.as_ref().unwrap().items["a"];
    assert_eq!((stand.end, stand.failures), (Some(ItemEnd::SetAside), 1), "{}", ended.why);
    assert_eq!(yard.starts(), 1);
}

/// It is had once, also by whoever goes on after a kill.
#[test]
fn a_follow_up_is_not_begun_twice() {
    let yard = tracked("echo $n >> made; finish done");
    item(&yard, "a", "");
    let session = begin(&yard, |new| new.plan.queue.as_mut().unwrap().max_failures = 1);
    let mut child = Helper::dying("loop", yard.base(), &session.to_string(), "follow-up begun");
    assert_eq!(child.hear(), None);
    child.kill();
    let ended = yard.drive(session).unwrap();
    let stand = &ended.state.looping.as_ref().unwrap().items["a"];
    assert_eq!((stand.end, stand.followed_up), (Some(ItemEnd::SetAside), true));
    assert_eq!(yard.starts(), 1);
}

#[test]
fn two_loops_do_not_take_the_same_item() {
    let yard = tracked(HONEST);
    for id in ["a", "b"] {
        item(&yard, id, "");
    }
    let first = begin(&yard, |_| {});
    let mut child = Helper::dying("loop", yard.base(), &first.to_string(), "item taken");
    assert_eq!(child.hear(), None);
    child.kill();
    let second = yard.drive(begin(&yard, |_| {})).unwrap();
    assert_eq!((second.state.status, yard.read("made").as_str()), (Status::Completed, "b\n"));
    assert!(second.why.contains("a in another loop's hands"), "{}", second.why);
    let first = yard.drive(first).unwrap();
    assert_eq!((first.state.status, yard.read("made").as_str()), (Status::Completed, "b\na\n"));
    assert_eq!(first.state.looping.unwrap().items_done, 1);
}

/// What one loop failed with waits for the other one too.
#[test]
fn two_loops_share_how_often_an_item_failed() {
    let yard = tracked("echo $n > bad; finish no");
    item(&yard, "a", "");
    let bad = |new: &mut segno_engine::looping::NewLoop| {
        new.plan.phases[0].evidence[0].command = "test ! -e bad".into();
        new.plan.phases[0].max_iterations = Some(1);
        new.plan.queue.as_mut().unwrap().max_failures = 3;
    };
    let first = yard.drive_without_waiting(begin(&yard, bad));
    assert_eq!((first.state.status, yard.starts()), (Status::Paused, 2), "it waits after the second time");
    let second = yard.drive_without_waiting(begin(&yard, bad));
    assert_eq!((second.state.status, yard.starts()), (Status::Paused, 2), "{}", second.why);
    yard.clock().advance(61);
    let second = yard.drive_without_waiting(second.state.session_id);
    let stand = &second.state.looping.as_ref().unwrap().items["a"];
    assert_eq!((stand.end, stand.failures, yard.starts()), (Some(ItemEnd::SetAside), 3, 3));
}
