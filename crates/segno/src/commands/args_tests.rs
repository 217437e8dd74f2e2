use rstest::rstest;

use super::*;

#[rstest]
#[case("session_20260131_143512_804211", Some("session_20260131_143512_804211"))]
#[case("…804211", Some("804211"))]
#[case("...804211", Some("804211"))]
#[case("last", Some("last"))]
#[case("3", Some("3"))]
#[case("", None)]
#[case("…", None)]
#[case("../x", None)]
#[case("%2e%2e", None)]
#[case("a\0b", None)]
#[case("-rf", None)]
#[case("ü", None)]
fn session_references(#[case] text: &str, #[case] expected: Option<&str>) {
    assert_eq!(text.parse::<SessionRef>().ok().as_ref().map(SessionRef::as_str), expected);
}

#[test]
fn long_references_are_refused() {
    assert!("a".repeat(10_000).parse::<SessionRef>().is_err());
}

#[test]
fn text_from_everywhere() {
    let parse = |text: &str| text.parse::<TextSource>().unwrap();
    assert_eq!(parse("-"), TextSource::Stdin);
    assert_eq!(parse("@x"), TextSource::File("x".into()));
    assert_eq!(parse("@"), TextSource::Inline("@".into()));
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("f");
    std::fs::write(&file, "abc").unwrap();
    assert_eq!(TextSource::File(file.clone()).read(3).unwrap(), "abc");
    assert!(TextSource::File(file).read(2).is_err());
    assert!(TextSource::File(temp.path().join("none")).read(2).is_err());
}
