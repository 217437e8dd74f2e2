//! Order among many sessions.

use rstest::rstest;

use crate::command::Command;
use crate::event::SessionArranged;
use crate::limits;
use crate::refusal::Refusal;
use crate::story::*;

fn tags(added: &[&str], removed: &[&str]) -> Command {
    let words = |list: &[&str]| list.iter().map(|tag| (*tag).to_owned()).collect();
    Command::Arrange(SessionArranged {
        tags_added: words(added),
        tags_removed: words(removed),
        ..SessionArranged::default()
    })
}

fn archive(archived: bool) -> Command {
    Command::Arrange(SessionArranged { archived: Some(archived), ..SessionArranged::default() })
}

#[test]
fn tags_come_and_go_and_nothing_is_recorded_twice() {
    let mut story = Story::told(inputs![tags(&["b", "a", "a"], &[]), tags(&["c", "a"], &["b"])]);
    assert_eq!(story.state.tags.iter().collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(story.refused(tags(&["a"], &[])).code(), "already");
    assert_eq!(story.refused(tags(&[], &["b"])), Refusal::Unknown { what: "tag", id: "b".to_owned() });
    assert_eq!(story.refused(tags(&["d"], &["d"])).to_string(), "bad tag: d is both added and removed");
    let many: Vec<String> = (0..limits::TAGS).map(|n| format!("t{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(story.refused(tags(&many, &[])).to_string(), "bad tag: a session has at most 32 tags");
    story.ok(tags(&many[2..], &[]));
    assert_eq!(story.state.tags.len(), limits::TAGS);
}

#[rstest]
#[case::blank("a b")]
#[case::comma("a,b")]
#[case::hash("a#b")]
#[case::flag("--all")]
fn a_tag_is_one_word(#[case] tag: &str) {
    let why = "bad tag: a tag is one word without blanks, commas, # and a leading -";
    assert_eq!(Story::new().refused(tags(&[tag], &[])).to_string(), why);
}

#[test]
fn tidying_up_makes_no_session_newer_and_going_on_brings_it_back() {
    let mut story = Story::told(inputs![pause()]);
    let changed = story.state.updated_at;
    story.ok(archive(true));
    story.ok(tags(&["a"], &[]));
    assert_eq!((story.state.archived, story.state.updated_at), (true, changed));
    story.ok(resume());
    assert!(!story.state.archived);
    assert_eq!(story.state.tags.len(), 1);
    story.ok(attach(1));
    assert_eq!(story.refused(archive(true)).to_string(), "bad archive: somebody drives the session");
}
