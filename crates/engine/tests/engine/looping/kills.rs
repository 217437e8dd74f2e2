//! A loop that is killed anywhere goes on to the same end.

use rstest::rstest;
use segno_core::Status;

use super::yard::Yard;
use crate::child::Helper;

/// Two iterations are needed: the hull first, then the sail.
const WORK: &str = "if [ -f hull ]; then echo cloth >> sail; else echo wood > hull; fi; finish done";

#[rstest]
#[case("loop begun", 2, 2)]
#[case("loop measured", 2, 2)]
#[case("loop decided", 2, 2)]
#[case("made", 2, 2)]
fn it_goes_on_after_a_kill(#[case] moment: &str, #[case] starts: u32, #[case] total: u64) {
    let yard = Yard::new();
    yard.always(WORK);
    let session = yard.begin("test -f sail", |_| {});
    let mut child = Helper::dying("loop", yard.base(), &session.to_string(), moment);
    assert_eq!(child.hear(), None, "it is killed before it is done");
    // Its pipe is closed a moment before it is gone.
    child.kill();
    let ended = yard.drive(session).unwrap();
    assert_eq!(ended.state.status, Status::Completed, "{}", ended.why);
    assert_eq!((yard.starts(), ended.state.looping.unwrap().total), (starts, total));
    assert_eq!(yard.read("sail"), "cloth\n", "nothing is done twice");
}
