use proptest::prelude::*;
use rstest::rstest;

use super::*;

#[rstest]
#[case::colour("\u{1b}[31mred", "\\e[31mred")]
#[case::clipboard("\u{1b}]52;c;QUJD\u{7}", "\\e]52;c;QUJD\\x07")]
#[case::link("\u{1b}]8;;http://x\u{1b}\\y", "\\e]8;;http://x\\e\\y")]
#[case::title("\u{1b}]0;t\u{9c}", "\\e]0;t<U+009C>")]
#[case::request("\u{1b}P$q\"p\u{1b}\\", "\\eP$q\"p\\e\\")]
#[case::application("\u{1b}_Gx\u{1b}\\", "\\e_Gx\\e\\")]
#[case::csi_8bit("\u{9b}2J", "<U+009B>2J")]
#[case::bidi("a\u{202e}b", "a<U+202E>b")]
#[case::zero_width("a\u{200b}b\u{feff}", "a<U+200B>b<U+FEFF>")]
#[case::tag("\u{e0041}", "<U+E0041>")]
#[case::overwrite("safe\revil", "safe\\revil")]
#[case::crlf("one\r\ntwo", "one\ntwo")]
#[case::kept("naïve 日本 ●\n\tok", "naïve 日本 ●\n\tok")]
fn blocks(#[case] from: &str, #[case] to: &str) {
    assert_eq!(block(from), to);
}

#[test]
fn lines_have_no_newline_and_no_tab() {
    assert_eq!(line("a\nb\tc\r\nd"), "a\\nb c\\nd");
}

#[test]
fn clean_text_is_not_copied() {
    assert!(matches!(block("plain\n"), Cow::Borrowed(_)));
}

#[test]
fn marks_surround_only_what_was_made_visible() {
    assert_eq!(block_marked("a\u{1b}b", ("<", ">")), "a<\\e>b");
}

#[test]
fn bytes_that_are_not_text_are_harmless() {
    assert_eq!(block_bytes(b"a\x9b2Jb\x1b"), "a\u{fffd}2Jb\\e");
}

/// Strings in which the dangerous characters are as likely as the others.
fn hostile() -> impl Strategy<Value = String> {
    let dangerous = prop_oneof![
        any::<char>(),
        proptest::char::range('\0', '\u{a0}'),
        proptest::char::range('\u{2000}', '\u{2070}'),
        Just('\u{1b}'),
        Just('\r'),
        Just('\n'),
    ];
    proptest::collection::vec(dangerous, 0..64).prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #[test]
    fn nothing_commands_the_terminal(text in hostile()) {
        let shown = block(&text);
        prop_assert!(!shown.chars().any(is_unsafe));
        prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        let shown = line(&text);
        prop_assert!(!shown.chars().any(|c| c.is_control()));
    }

    #[test]
    fn cleaning_twice_changes_nothing(text in hostile()) {
        let once = block(&text).into_owned();
        prop_assert_eq!(block(&once), once.as_str());
    }
}
