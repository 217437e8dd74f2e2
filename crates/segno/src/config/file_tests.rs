use proptest::prelude::*;
use rstest::rstest;

use super::*;

const PATH: &str = "config.toml";

fn user(text: &str) -> Result<FileLayer, Error> {
    read(Path::new(PATH), text.as_bytes(), Level::User)
}

fn messages(layer: &FileLayer) -> Vec<String> {
    layer.notices.iter().map(|notice| format!("{} ({})", notice.message, notice.hints.join(" "))).collect()
}

#[test]
fn unknown_keys_are_named_with_their_place() {
    let layer = user(
        "top = 1\n[session]\nbugdet = 1\n[sesion]\nbudget = 1\n[[redact.rules]]\nid = 'a'\nregex = 'x'\nrexeg = 1\n",
    )
    .unwrap();
    insta::assert_snapshot!(messages(&layer).join("\n"), @r"
    config.toml:6:10: there is no setting redact.rules.0.rexeg; it is ignored ()
    config.toml:4:2: there is no setting sesion; it is ignored (did you mean session?)
    config.toml:3:1: there is no setting session.bugdet; it is ignored (did you mean session.budget?)
    config.toml:1:1: there is no setting top; it is ignored ()
    ");
}

#[rstest]
#[case("[session]\nbudget = \"many\"\n", "config.toml:2:1: session.budget must be a whole number, not text")]
#[case(
    "[session]\nwarn_percent = 0\n",
    "config.toml:2:1: session.warn_percent must be a whole number from 1 to 100, not 0"
)]
#[case("session = 5\n", "config.toml:1:1: session is a section; write [session] and its settings below")]
#[case(
    "ui = { color = 'pink' }\n",
    "config.toml:1:8: ui.color must be one of auto, always, never, not \"pink\""
)]
#[case("a = 1\na = 2\n", "config.toml:2:1: duplicate key")]
#[case(
    "[redact]\nrules = [{ id = 'a' }]\n",
    "config.toml:2:1: redact.rules has a rule that is not right: missing field `regex`"
)]
fn wrong_values_have_a_place(#[case] text: &str, #[case] message: &str) {
    assert_eq!(user(text).unwrap_err().to_string(), message);
}

#[test]
fn bytes_that_are_not_text_have_a_place() {
    let error = read(Path::new(PATH), b"a = 1\nb = '\xff'", Level::User).unwrap_err();
    assert_eq!(error.to_string(), "config.toml:2:6: the file is not UTF-8 text");
}

#[test]
fn an_untrusted_project_sets_data_only() {
    let text =
        "[store]\nurl = 'postgres://evil/x'\n[ui]\npager = 'evil'\ntime = 'iso'\n[session]\nbudget = 9\n";
    let project = |trusted| read(Path::new(PATH), text.as_bytes(), Level::Project { trusted }).unwrap();
    let names = |layer: &FileLayer| layer.settings.iter().map(|s| s.key.name).collect::<Vec<_>>();
    let layer = project(false);
    assert_eq!(names(&layer), ["ui.time"]);
    insta::assert_snapshot!(messages(&layer).join("\n"), @r"
    config.toml:2:1: store.url is ignored: only your own configuration may set it (segno config set store.url …)
    config.toml: session.budget, ui.pager are ignored: this project is not trusted (segno trust --show, then: segno trust)
    ");
    let layer = project(true);
    assert_eq!(names(&layer), ["session.budget", "ui.pager", "ui.time"]);
    assert_eq!(layer.notices.len(), 1);
}

#[rstest]
#[case::brackets(format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)))]
#[case::open_brackets(format!("a = {}", "[".repeat(100_000)))]
#[case::braces("a = ".to_owned() + &"{ a = ".repeat(100_000))]
#[case::dots(format!("{}a = 1", "a.".repeat(100_000)))]
#[case::header(format!("[{}a]", "a.".repeat(100_000)))]
#[case::moderate(format!("{}a = 1", "a.".repeat(30)))]
#[case::moderate_arrays(format!("a = {}{}", "[".repeat(30), "]".repeat(30)))]
fn nesting_is_an_error_and_no_crash(#[case] text: String) {
    assert!(matches!(user(&text), Err(Error::Syntax { .. } | Error::TooDeep { .. })));
}

proptest! {
    #[test]
    fn nothing_in_a_file_makes_us_panic(
        pieces in proptest::collection::vec(
            prop_oneof![
                "\\PC{0,8}",
                prop::sample::select(vec![
                    "[session]", "[redact]", "[[redact.rules]]", "budget", "rules", " = ", "\n", "[", "]", "{", "}",
                    "'", "\"", ".", ",", "1", "true", "# ", "id = 'x'", "regex = '('",
                ])
                .prop_map(str::to_owned),
            ],
            0..24,
        ),
    ) {
        let text = pieces.concat();
        for level in [Level::User, Level::Project { trusted: false }, Level::Project { trusted: true }] {
            if let Err(error) = read(Path::new(PATH), text.as_bytes(), level) {
                prop_assert!(!error.to_string().is_empty());
                prop_assert!(!matches!(error, Error::Types(_)), "{}: {}", text, error);
            }
        }
    }
}
