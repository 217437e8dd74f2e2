//! In which conversation the next iteration is.

use rstest::rstest;

use super::*;

#[rstest]
#[case(Context::Same, Some(99), true)]
#[case(Context::Fresh, Some(1), false)]
#[case(Context::Fresh, None, false)]
#[case(Context::Auto { percent: 60 }, Some(59), true)]
#[case(Context::Auto { percent: 60 }, Some(60), false)]
#[case(Context::Auto { percent: 60 }, Some(100), false)]
// Nobody knows how full it is: the agent itself sees to that.
#[case(Context::Auto { percent: 60 }, None, true)]
fn conversations(#[case] context: Context, #[case] full: Option<u8>, #[case] same: bool) {
    assert_eq!(in_same_conversation(context, full), same);
}

#[test]
fn what_is_known_of_it_is_kept_until_something_else_is() {
    let mut story = begun(simple());
    let full = |story: &Story| looping(story).context_percent;
    let with = |tree, context_percent| Observation { context_percent, ..moved(tree) };
    iterate(&mut story, with(1, Some(44)));
    assert_eq!(full(&story), Some(44));
    // A start that failed says nothing of the conversation.
    iterate(&mut story, Observation { end: RunEnd::StartFailed, ..idle() });
    assert_eq!(full(&story), Some(44));
    iterate(&mut story, with(2, Some(71)));
    assert_eq!(full(&story), Some(71));
    // Another agent has a conversation of its own.
    story.ok(say(LoopCommand::HandOver { to: "codex".into(), why: "x".into() }));
    assert_eq!(full(&story), None);
    iterate(&mut story, with(3, Some(50)));
    iterate(&mut story, with(4, None));
    assert_eq!(full(&story), None, "nobody knows any more");
}
