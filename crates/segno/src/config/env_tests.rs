use super::*;

#[test]
fn every_key_has_a_variable() {
    assert_eq!(variable_of("session.budget"), "SEGNO_SESSION_BUDGET");
    let mut names: Vec<String> = KEYS.iter().map(|key| variable_of(key.name)).collect();
    names.extend(VARIABLES.iter().map(|variable| variable.name.to_owned()));
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "two variables have the same name");
}

#[test]
fn variables_with_a_key_name_a_real_one() {
    for variable in VARIABLES {
        if let Some(key) = variable.key {
            assert!(schema::find(key).is_some(), "{key}");
            assert!(variable.name.starts_with(OWN), "{}: it would not be looked for", variable.name);
        }
    }
}

#[test]
fn empty_counts_as_unset_and_the_spelled_one_wins() {
    let environment = Environment::of(&[
        ("SEGNO_COLOR", "always"),
        ("SEGNO_UI_COLOR", "never"),
        ("SEGNO_LS_LIMIT", ""),
        ("SEGNO_SESSION", "x"),
    ]);
    let settings: Vec<_> =
        environment.settings().into_iter().map(|(key, name, value)| (key.name, name, value)).collect();
    assert_eq!(
        settings,
        [
            ("ui.color", "SEGNO_COLOR".to_owned(), "always"),
            ("ui.color", "SEGNO_UI_COLOR".to_owned(), "never")
        ]
    );
}

#[test]
fn slips_of_the_finger() {
    let environment =
        Environment::of(&[("SEGNO_SESION_BUDGET", "1"), ("SEGNO_TEST_THING", "1"), ("SEGNO_STORE", "x")]);
    assert_eq!(environment.slips(), [("SEGNO_SESION_BUDGET".to_owned(), "SEGNO_SESSION_BUDGET".to_owned())]);
}

#[test]
fn the_table_is_documentation() {
    insta::assert_snapshot!("environment", markdown());
}
