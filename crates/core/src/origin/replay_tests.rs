use super::*;

const PERSON: &str = "a person's\n";

fn call(replay: &Replay, line: &str) -> Option<usize> {
    replay.result().iter().find(|(text, _)| *text == line).and_then(|(_, origin)| origin.call())
}

fn doubt(replay: &Replay, line: &str) -> Option<Doubt> {
    let found = replay.result().into_iter().find(|(text, _)| *text == line)?;
    match found.1 {
        Origin::Call(_) => None,
        Origin::Other { doubt, .. } => Some(doubt),
    }
}

fn edit(old: &str, new: &str) -> Vec<Replacement> {
    vec![Replacement { old: old.to_owned(), new: new.to_owned(), ..Replacement::default() }]
}

#[test]
fn a_new_file_is_the_call_s() {
    let mut replay = Replay::default();
    replay.content(0, None, None);
    replay.write(7, 0, "one\n}\n", Created::Yes);
    assert_eq!((call(&replay, "one"), doubt(&replay, "}")), (Some(7), Some(Doubt::Signs)));
    replay.content(1, Some("one\n}\nthree\n"), None);
    assert_eq!((call(&replay, "one"), doubt(&replay, "three")), (Some(7), Some(Doubt::Between)));
}

#[test]
fn what_stood_there_stays_what_it_was() {
    let mut replay = Replay::default();
    replay.content(0, Some(PERSON), None);
    replay.write(1, 0, "new\na person's\n", Created::No);
    assert_eq!((call(&replay, "new"), doubt(&replay, "a person's")), (Some(1), Some(Doubt::First)));
    // Moved by two edits, and indented.
    replay.replace(2, 0, &edit("a person's\n", ""));
    replay.replace(3, 0, &edit("new", "  a person's\nnew"));
    assert_eq!(doubt(&replay, "  a person's"), Some(Doubt::Stood));
    assert_eq!(call(&replay, "new"), Some(1));
}

#[test]
fn a_line_that_was_typed_unseen_and_written_again_is_not_the_call_s() {
    let write = |step: &dyn Fn(&mut Replay)| {
        let mut replay = Replay::default();
        replay.content(0, Some("old\n"), None);
        step(&mut replay);
        replay.write(1, 0, "old\ntyped meanwhile\nby the call\n", Created::No);
        (doubt(&replay, "typed meanwhile"), doubt(&replay, "by the call"))
    };
    let read = "     1→old\n     2→typed meanwhile\n";
    assert_eq!(write(&|replay| replay.shown(0, read, Of::File)), (Some(Doubt::Stood), None));
    assert_eq!(
        write(&|replay| replay.shown(0, "$ cat *\ntyped meanwhile", Of::Anything)),
        (Some(Doubt::Shown), None)
    );
    assert_eq!(write(&|replay| replay.unseen(0)), (Some(Doubt::Blind), Some(Doubt::Blind)));
    assert_eq!(write(&|replay| replay.told(0, "add this:\n> typed meanwhile")), (Some(Doubt::Prompt), None));
    assert_eq!(
        write(&|replay| replay.told(1, "typed meanwhile")),
        (None, None),
        "told to another conversation"
    );
}

#[test]
fn a_write_over_what_nobody_knows_is_nobody_s() {
    let mut replay = Replay::default();
    replay.write(1, 0, "x y\n", Created::Unsaid);
    assert_eq!(doubt(&replay, "x y"), Some(Doubt::NothingBefore));
    let mut replay = Replay::default();
    replay.content(0, None, None);
    replay.write(1, 0, "x y\n", Created::No);
    assert_eq!(doubt(&replay, "x y"), Some(Doubt::NothingBefore), "somebody made it meanwhile");
}

#[test]
fn an_edit_inside_of_a_line_and_everywhere() {
    let mut replay = Replay::default();
    replay.content(0, Some("let a = f(1);\nlet b = f(1) + f(1);\nend\n"), None);
    replay.replace(1, 0, &edit("b = f(1)", "b = g(2)"));
    assert_eq!(call(&replay, "let b = g(2) + f(1);"), Some(1));
    let all = Replacement { old: "f(1)".to_owned(), new: "h(3)".to_owned(), all: true, whole_lines: false };
    replay.replace(2, 0, &[all]);
    let lines = replay.result();
    assert_eq!(lines.iter().map(|(_, origin)| origin.call()).collect::<Vec<_>>(), [Some(2), Some(2), None]);
    assert_eq!(
        lines.iter().map(|(text, _)| *text).collect::<Vec<_>>(),
        ["let a = h(3);", "let b = g(2) + h(3);", "end"]
    );
}

#[test]
fn an_edit_at_a_place_that_is_not_known_counts_when_it_is_seen() {
    let mut replay = Replay::default();
    replay.content(0, Some("one\n"), None);
    // A person added "two"; the edit stands on it.
    replay.replace(1, 0, &edit("two\n", "two\nthree\n"));
    replay.content(1, Some("one\ntwo\nthree\n"), None);
    assert_eq!((call(&replay, "three"), doubt(&replay, "two")), (Some(1), Some(Doubt::Between)));
    // The same line twice: one of them may be the person's.
    let mut replay = Replay::default();
    replay.content(0, Some("one\n"), None);
    replay.replace(1, 0, &edit("two\n", "two\nthree\n"));
    replay.content(1, Some("one\ntwo\nthree\nfour\nthree\n"), None);
    assert_eq!(doubt(&replay, "three"), Some(Doubt::Between));
}

#[test]
fn what_a_shell_wrote_counts_if_it_was_at_work_all_the_time() {
    let mut replay = Replay::default();
    replay.content(0, Some("one\n"), None);
    replay.touch(4);
    replay.content(1, Some("one\ntwo\n"), None);
    assert_eq!(doubt(&replay, "two"), Some(Doubt::Perhaps));
    replay.content(2, Some("one\ntwo\nthree\n"), Some((5, 0)));
    assert_eq!((doubt(&replay, "two"), call(&replay, "three")), (Some(Doubt::Perhaps), Some(5)));
}

#[test]
fn lines_that_read_the_same_are_not_told_apart() {
    let mut replay = Replay::default();
    replay.content(0, Some("fn a() {\n}\n"), None);
    replay.write(1, 0, "fn a() {\n}\nfn b() {\n}\n", Created::No);
    let origins: Vec<Option<usize>> = replay.result().iter().map(|(_, origin)| origin.call()).collect();
    assert_eq!(origins, [None, None, Some(1), None]);
    // A person doubles a line of the call's.
    let mut replay = Replay::default();
    replay.content(0, None, None);
    replay.write(1, 0, "a a\nb b\n", Created::Yes);
    replay.content(1, Some("a a\na a\nb b\n"), None);
    let origins: Vec<Option<usize>> = replay.result().iter().map(|(_, origin)| origin.call()).collect();
    assert_eq!(origins, [None, None, Some(1)]);
}

fn origins(replay: &Replay) -> Vec<Option<usize>> {
    replay.result().iter().map(|(_, origin)| origin.call()).collect()
}

#[test]
fn a_copy_that_a_person_typed_and_moved_is_not_the_call_s() {
    let mut replay = Replay::default();
    replay.content(0, Some("one one\ntwo two\n"), None);
    replay.write(1, 0, "by the call\none one\ntwo two\n", Created::No);
    // A person types the same line below, and then moves it above the call's.
    replay.content(1, Some("by the call\none one\ntwo two\nby the call\n"), None);
    replay.content(2, Some("by the call\nby the call\none one\ntwo two\n"), None);
    assert_eq!(origins(&replay), [None; 4]);
    // An edit beside them does not make them the call's again.
    replay.replace(2, 0, &edit("one one\n", "one one\nby the call\nthree three\n"));
    assert_eq!(origins(&replay), [None, None, None, None, Some(2), None]);
}

#[test]
fn copies_that_cannot_be_told_apart_are_nobody_s_wherever_they_stand() {
    let mut replay = Replay::default();
    replay.content(0, None, None);
    replay.write(1, 0, "a a\nb b\nc c\n", Created::Yes);
    // The prompt has the line: the second one may be the person's.
    replay.told(0, "put\na a\nat the end");
    replay.replace(2, 0, &edit("c c\n", "c c\na a\n"));
    assert_eq!(origins(&replay), [None, Some(1), Some(1), None]);
    assert_eq!(doubt(&replay, "a a"), Some(Doubt::Unclear));
}

#[test]
fn a_copy_that_was_typed_unseen_and_written_again_is_not_the_call_s() {
    let written = |content: &str| {
        let mut replay = Replay::default();
        replay.content(0, None, None);
        replay.write(1, 0, "a a\nb b\n", Created::Yes);
        replay.content(1, Some("a a\nb b\n"), None);
        // A person doubles a line; the call reads it so, and writes it so.
        replay.shown(0, "     1→a a\n     2→a a\n     3→b b\n", Of::File);
        replay.write(2, 0, content, Created::No);
        origins(&replay)
    };
    assert_eq!(written("a a\na a\nb b\n"), [None, None, Some(1)]);
    assert_eq!(written("a a\na a\nb b\nc c\n"), [None, None, Some(1), Some(2)]);
    // Doubled by the call, for all that is known.
    let mut replay = Replay::default();
    replay.content(0, None, None);
    replay.write(1, 0, "a a\nb b\n", Created::Yes);
    replay.replace(2, 0, &edit("a a\n", "a a\na a\n"));
    assert_eq!(origins(&replay), [Some(1), Some(1), Some(1)]);
}

#[test]
fn what_comes_back_is_what_it_was_if_it_is_told() {
    let mut replay = Replay::default();
    replay.content(0, None, None);
    replay.write(1, 0, "by the call\n", Created::Yes);
    replay.content(1, Some("by the call\n"), None);
    replay.content(2, Some("a person's\n"), None);
    let mut undone = Replay::default();
    undone.content(0, None, None);
    undone.write(1, 0, "by the call\n", Created::Yes);
    undone.content(1, Some("by the call\n"), None);
    undone.content(2, Some("a person's\n"), None);
    undone.brought_back(1);
    undone.content(3, Some("by the call\n"), None);
    assert_eq!(call(&undone, "by the call"), Some(1));
    // Typed again by a person, for all that is known.
    replay.content(3, Some("by the call\n"), None);
    assert_eq!(doubt(&replay, "by the call"), Some(Doubt::Between));
}

#[test]
fn whole_lines_of_a_patch_are_found_as_lines() {
    let mut replay = Replay::default();
    replay.content(0, Some("xone\none\n"), None);
    let one = Replacement { old: "one".to_owned(), new: "two".to_owned(), all: false, whole_lines: true };
    replay.replace(1, 0, &[one]);
    assert_eq!(call(&replay, "two"), Some(1));
    assert_eq!(replay.result().len(), 2);
}
