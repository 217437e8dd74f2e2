//! What holds for any text.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::Generator;
use common::redactor;
use proptest::prelude::*;
use segno_redact::Options;
use segno_redact::Pieces;
use segno_redact::Redactor;
use serde_json::Value;

/// Pieces of text that are likely to meet in odd ways.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[ -~\\n]{0,40}",
        2 => prop::sample::select(vec![
            "password = ", "token: ", "Authorization: Bearer ", "\"", "'", "\\\"", "\\n", "\n", " ", "://u:", "@h/", "%3D", "\u{1b}[31m",
            "\u{1b}[m", "[redacted:", "[redacted:jwt:00ff]", "-----BEGIN RSA PRIVATE KEY-----\n", "-----END RSA PRIVATE KEY-----",
            "key=", "eyJ", ".", "ghp_", "\\u001b[1m", "é", "漢", "=", "curl -u a:",
        ]).prop_map(str::to_owned),
        2 => (0u64..1000).prop_map(|seed| Generator::new(&seed.to_string()).value("alnum", 36)),
        2 => (0u64..1000, prop::sample::select(vec![
            "ghp_{alnum:36}", "xoxb-{digits:12}-{digits:12}-{alnum:24}", "sk-ant-api03-{alnum:93}AA", "AKIA{b32:16}", "postgres://u:{alnum:12}@h/d",
            "API_TOKEN=\"{alnum:32}\"", "npm_{alnum:36}", "password: '{alnum:14}'",
        ])).prop_map(|(seed, template)| Generator::new(&seed.to_string()).expand(template).0),
        1 => "\\PC{0,20}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(part(), 0..24).prop_map(|parts| parts.concat())
}

/// Words and secrets with space between: what the promise of `Pieces` speaks of.
fn stream() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        12 => "[a-z]{1,12}( [a-z]{1,9}){0,40}",
        2 => (0u64..500).prop_map(|seed| Generator::new(&seed.to_string()).expand("ghp_{alnum:36}").0),
        2 => (0u64..500).prop_map(|seed| Generator::new(&seed.to_string()).expand("DB_PASSWORD={alnum:20}").0),
        1 => (0u64..500).prop_map(|seed| {
            Generator::new(&seed.to_string())
                .expand("-----BEGIN RSA PRIVATE KEY-----\n{b64:64}\n{b64:64}\n{b64:64}\n-----END RSA PRIVATE KEY-----").0
        }),
        1 => (0u64..500).prop_map(|seed| {
            let (secret, _) = Generator::new(&seed.to_string()).expand("token glpat-{alnum:20} inside");
            common::base64(secret.as_bytes())
        }),
    ];
    prop::collection::vec((word, prop::sample::select(vec![" ", "\n", "\t", "\\n"])), 0..60)
        .prop_map(|words| words.into_iter().map(|(word, gap)| word + gap).collect())
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let name = prop_oneof!["[a-z_]{1,10}", Just("password".to_owned()), Just("api_key".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn same_shape(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_shape(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same_shape(a, b))
        }
        (Value::String(_), Value::String(_)) => true,
        (a, b) => a == b,
    }
}

fn in_pieces(redactor: &Redactor, text: &str, cuts: &[usize]) -> String {
    let mut pieces = Pieces::new();
    let mut out = String::new();
    let mut rest = text;
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let wanted = *cuts.next().unwrap();
        let cut = rest.char_indices().nth(wanted).map_or(rest.len(), |(at, _)| at);
        pieces.push(&rest[..cut], "", ());
        out.extend(pieces.give(redactor).into_iter().map(|(_, text)| text));
        rest = &rest[cut..];
    }
    out.extend(pieces.finish(redactor).into_iter().map(|(_, text)| text));
    out
}

/// The words of a text that another text does not have. What opens a key is no secret, and may be given out before
/// anything shows that there is a key.
fn taken_out<'t>(text: &'t str, redacted: &str) -> Vec<&'t str> {
    let words =
        text.split([' ', '\n', '\t', '\\', '=']).filter(|word| word.len() > 8 && !word.contains("---"));
    words.filter(|word| !redacted.contains(word)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redacting_twice_changes_nothing(text in text()) {
        let redactor = redactor();
        let once = redactor.text(&text).into_owned();
        prop_assert_eq!(redactor.text(&once), once.as_str());
    }

    #[test]
    fn unsuspected_text_is_unchanged(text in text()) {
        let redactor = redactor();
        if !redactor.suspects(&text) {
            prop_assert_eq!(redactor.text(&text), text.as_str());
        }
    }

    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        let redactor = redactor();
        redactor.text(&text);
        redactor.suspects(&text);
    }

    #[test]
    fn values_keep_their_shape(value in json()) {
        let redactor = redactor();
        let mut new = value.clone();
        let changed = redactor.json(&mut new);
        prop_assert!(same_shape(&value, &new));
        prop_assert_eq!(changed, value != new);
        prop_assert!(!redactor.json(&mut new.clone()), "a second time changes nothing");
    }

    #[test]
    fn serialised_json_stays_json(value in json()) {
        let redactor = redactor();
        let line = value.to_string();
        let out = redactor.text(&line);
        prop_assert!(serde_json::from_str::<Value>(&out).is_ok(), "{} became {}", line, out);
    }
}

proptest! {
    // Every line is looked at together with what came before it, which takes its time.
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cutting_hides_nothing(text in stream(), cuts in prop::collection::vec(1usize..900, 1..8)) {
        let redactor = redactor();
        let (pieces, whole) = (in_pieces(&redactor, &text, &cuts), redactor.text(&text));
        prop_assert_eq!(taken_out(&text, &pieces), taken_out(&text, &whole));
    }
}

#[test]
fn exact_values_are_found_in_disguise() {
    let value = "Tr0ub4dor&3-horse";
    let redactor = Redactor::new(Options {
        exact: vec![("MY_LOGIN".into(), value.into()), ("FLAG".into(), "true".into())],
        ..Options::default()
    });
    let quoted = serde_json::json!({"out": format!("it is \"{value}\" true")}).to_string();
    for text in [format!("so {value} it is"), quoted, common::coloured(value), common::percent(value), {
        common::base64(format!("login: {value} is the one").as_bytes())
    }] {
        let out = redactor.text(&text);
        assert!(out.contains("[redacted:known-my-login:") && !out.contains(value), "{out}");
    }
    assert_eq!(redactor.text("true TR0UB4DOR&3-HORSE"), "true TR0UB4DOR&3-HORSE");
}

#[test]
fn extra_rules_are_checked_and_used() {
    let rule = |regex: &str| segno_redact::RuleSpec {
        id: "house-key".into(),
        keywords: vec!["hk_".into()],
        regex: regex.into(),
        ..Default::default()
    };
    let with = |regex: &str| Options { extra_rules: vec![rule(regex)], ..Options::default() };
    let error = Redactor::try_new(with("hk_(")).unwrap_err();
    assert!(error.to_string().starts_with("redaction rule `house-key`: "), "{error}");
    let redactor = Redactor::try_new(with("hk_[a-z]{4}")).unwrap();
    assert!(redactor.text("use hk_abcd").starts_with("use [redacted:house-key:"));
    let mut bare = with("ticket [0-9]{6}");
    bare.extra_rules[0].keywords.clear();
    let redactor = Redactor::try_new(bare).unwrap();
    assert!(redactor.suspects("see ticket 123456") && !redactor.suspects("see ticket 12345x"));
    assert!(redactor.text("see ticket 123456").starts_with("see [redacted:house-key:"));
}

#[test]
fn a_redactor_can_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Redactor>();
}

#[test]
fn equal_secrets_have_equal_tags_in_every_wrapping() {
    let redactor = redactor();
    let (token, _) = Generator::new("equal").expand("ghp_{alnum:36}");
    let plain = redactor.text(&token).into_owned();
    assert!(redactor.text(&common::coloured(&token)).contains(&plain));
    let (other, _) = Generator::new("other").expand("ghp_{alnum:36}");
    assert_ne!(redactor.text(&other), plain);
}
