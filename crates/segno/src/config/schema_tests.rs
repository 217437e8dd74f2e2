use rstest::rstest;

use super::*;

#[test]
fn the_defaults_have_every_key_and_nothing_else_in_this_order() {
    let table: toml_edit::Document<&str> =
        toml_edit::Document::parse(crate::config::DEFAULT).expect("the defaults are TOML");
    let mut found = Vec::new();
    for (section, item) in table.iter() {
        let table = item.as_table().expect("sections only");
        if table.is_empty() {
            found.push(section.to_owned());
        }
        for (name, _) in table.iter() {
            found.push(format!("{section}.{name}"));
        }
    }
    let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(found, known);
}

#[test]
fn every_default_is_explained_and_says_who_may_set_it() {
    let mut comment = String::new();
    let mut section = "";
    for line in crate::config::DEFAULT.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            comment.clear();
        } else if let Some(text) = line.strip_prefix('#') {
            comment.push_str(text);
        } else if let Some((name, _)) = line.split_once(" = ") {
            let key = find(&format!("{section}.{name}")).unwrap();
            assert!(!comment.is_empty(), "{} has no explanation", key.name);
            assert_eq!(comment.contains("Needs trust."), key.class.needs_trust(), "{}", key.name);
            assert_eq!(comment.contains("Yours only."), key.class == Class::UserOnly, "{}", key.name);
            comment.clear();
        }
    }
}

#[rstest]
#[case("session.budget", "50k", Ok(Value::Integer(50_000)))]
#[case("session.budget", "-1", Err("must be a whole number of at least 0, not -1"))]
#[case("session.warn_percent", "101", Err("must be a whole number from 1 to 100, not 101"))]
#[case("session.hard", "yes", Err("must be true or false, not \"yes\""))]
#[case("session.hard", "true", Ok(Value::Boolean(true)))]
#[case("ui.color", "blue", Err("must be one of auto, always, never, not \"blue\""))]
#[case("store.url", "postgres://u:secret@h/d", Ok(Value::String("postgres://u:secret@h/d".into())))]
#[case("store.url", "http://secret", Err("must be empty or sqlite:PATH"))]
#[case("redact.rules", "1", Err("must be an array of rules, not a whole number"))]
#[case("redact.rules", "[{id = 'x'}]", Err("has a rule that is not right: missing field `regex`"))]
fn typed_values(#[case] key: &str, #[case] text: &str, #[case] expected: Result<Value, &str>) {
    assert_eq!(find(key).unwrap().parse(text), expected.map_err(str::to_owned));
}

#[rstest]
#[case("../../etc/passwd")]
#[case("-rf")]
#[case("a/b")]
#[case("a\u{202e}b")]
fn names_are_not_paths(#[case] text: &str) {
    assert!(find("session.workflow").unwrap().parse(text).is_err());
}

#[test]
fn rules_are_read_from_text() {
    let rules = find("redact.rules").unwrap().parse("[{ id = 'acme', regex = 'acme_[0-9]+' }]");
    assert!(rules.is_ok(), "{rules:?}");
}
