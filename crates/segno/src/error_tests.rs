use super::*;

fn refused() -> CommandError {
    CommandError::new(
        ExitCode::Refused,
        "invalid_transition",
        "session …804211 is paused; a paused session cannot change phase",
    )
    .hint("segno resume 804211   (or: segno abort 804211)")
}

#[test]
fn a_person_reads_what_happened_and_what_to_type() {
    assert_eq!(
        refused().human(Palette::plain(), false),
        "error: session …804211 is paused; a paused session cannot change phase\n  \
         hint: segno resume 804211   (or: segno abort 804211)"
    );
}

#[test]
fn a_program_reads_one_line() {
    let json = refused().json();
    assert!(!json.contains('\n'));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["error"]["code"], "invalid_transition");
    assert_eq!(value["error"]["exit"], 5);
    assert_eq!(value["error"]["hint"], "segno resume 804211   (or: segno abort 804211)");
}

#[test]
fn no_hint_is_null() {
    let value: serde_json::Value = serde_json::from_str(&CommandError::usage("no").json()).unwrap();
    assert!(value["error"]["hint"].is_null());
}

#[test]
fn text_from_outside_cannot_command_the_terminal() {
    let error = CommandError::failure("x", "bad \u{1b}]52;c;AAAA\u{7} name");
    assert!(!error.human(Palette::plain(), true).contains('\u{1b}'));
}

#[test]
fn causes_are_shown_once_and_only_when_asked() {
    let error = CommandError::io("cannot write x", io::Error::other("disk full"));
    assert_eq!(error.human(Palette::plain(), true), "error: cannot write x: disk full");
    let error = CommandError::failure("x", "no").caused_by(io::Error::other("disk full"));
    assert_eq!(error.human(Palette::plain(), false), "error: no");
    assert_eq!(error.human(Palette::plain(), true), "error: no\n  cause: disk full");
}

#[test]
fn permission_is_an_environment_problem() {
    let error = CommandError::io("cannot write x", io::Error::from(io::ErrorKind::PermissionDenied));
    assert_eq!(error.exit(), ExitCode::Environment);
}
