use rstest::rstest;

use super::*;

#[rstest]
#[case::terminal(Choice::Auto, &[], true, true)]
#[case::pipe(Choice::Auto, &[], false, false)]
#[case::no_color(Choice::Auto, &[("NO_COLOR", "1")], true, false)]
#[case::no_color_empty_counts_as_unset(Choice::Auto, &[("NO_COLOR", "")], true, true)]
#[case::forced(Choice::Auto, &[("CLICOLOR_FORCE", "1")], false, true)]
#[case::not_forced(Choice::Auto, &[("CLICOLOR_FORCE", "0")], false, false)]
#[case::no_color_beats_force(Choice::Auto, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true, false)]
#[case::dumb(Choice::Auto, &[("TERM", "dumb")], true, false)]
#[case::asked(Choice::Always, &[("NO_COLOR", "1")], false, true)]
#[case::declined(Choice::Never, &[("CLICOLOR_FORCE", "1")], true, false)]
fn colour(
    #[case] choice: Choice,
    #[case] vars: &[(&str, &str)],
    #[case] terminal: bool,
    #[case] expected: bool,
) {
    assert_eq!(choice.decide(&Environment::of(vars), terminal), expected);
}

#[rstest]
#[case(&[], true)]
#[case(&[("LANG", "en_US.UTF-8")], true)]
#[case(&[("LANG", "C")], false)]
#[case(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "POSIX")], false)]
#[case(&[("LC_ALL", ""), ("LC_CTYPE", "de_DE.utf8")], true)]
fn symbols_follow_the_locale(#[case] vars: &[(&str, &str)], #[case] unicode: bool) {
    let palette = Palette::of(Choice::Never, &Environment::of(vars), true);
    assert_eq!(palette.symbol(Symbol::Running), if unicode { "●" } else { "*" });
}

#[test]
fn no_colour_means_no_escape() {
    assert_eq!(Palette::plain().marks(Meaning::Lost), (String::new(), String::new()));
    assert!(Palette::new(true, true).marks(Meaning::Lost).0.starts_with('\u{1b}'));
}
