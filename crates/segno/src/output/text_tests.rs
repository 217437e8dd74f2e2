use super::*;

#[test]
fn every_piece_is_sanitized() {
    let text = Text::from("a\u{1b}[2J").painted(Meaning::Lost, "b\u{202e}");
    assert_eq!(text.render(Palette::plain()), "a\\e[2Jb<U+202E>");
}

#[test]
fn only_our_own_escapes_remain() {
    let text = Text::from("x").painted(Meaning::Done, "ok\u{1b}").plain("\u{7}");
    insta::assert_snapshot!(text.render(Palette::new(true, true)).replace('\u{1b}', "ESC"), @r"xESC[32mok\eESC[0mESC[2m\x07ESC[0m");
}

#[test]
fn one_line_stays_one_line() {
    assert_eq!(Text::from("a\nb").render_line(Palette::plain()), "a\\nb");
}

#[test]
fn what_is_cut_fits_and_says_so() {
    use unicode_width::UnicodeWidthStr as _;
    let text = || Text::new().plain("abc").painted(Meaning::Lost, "漢字").plain("def");
    assert_eq!(text().cut(10).to_line(), "abc漢字def");
    assert_eq!(
        (text().cut(9).to_line(), text().cut(5).to_line()),
        ("abc漢字d…".to_owned(), "abc…".to_owned())
    );
    assert!((0..12).all(|width| text().cut(width).to_line().width() <= width));
}

#[test]
fn lines_are_cut_between_words_and_lose_nothing() {
    assert_eq!(wrap("one two three", Some(8)), ["one two", "three"]);
    assert_eq!(wrap("abcdefghij", Some(4)), ["abcd", "efgh", "ij"]);
    assert_eq!(wrap("short", Some(8)), ["short"]);
    assert_eq!(wrap("as it is, however long", None), ["as it is, however long"]);
    assert_eq!(wrap("日本語の文", Some(6)), ["日本語", "の文"]);
}

/// A sentence is cut between words on a terminal, and goes on below its first word.
#[test]
fn a_message_behind_a_label_breaks_between_words() {
    let message = "one sentence that is longer than a narrow terminal";
    assert_eq!(
        behind("error:", message, Some(30)),
        "one sentence that is\n       longer than a narrow\n       terminal"
    );
    assert_eq!(behind("error:", message, None), message);
    assert_eq!(behind("error:", "two\nlines", Some(80)), "two\n       lines");
}
