//! What is said of a loop.

use super::*;
use crate::event::PauseReason;

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
