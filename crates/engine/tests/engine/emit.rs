//! Whatever a session holds, its view says the same when it is read.

use proptest::prelude::*;
use rstest::rstest;
use segno_engine::view::Node;
use segno_engine::view::to_yaml;
use serde_json::Value;
use serde_json::json;

use crate::common::parse;

/// Texts that mean something else in some version of YAML, or that break careless writers.
const ODD: &[&str] = &[
    "",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "\r",
    "\r\n",
    "null",
    "Null",
    "~",
    "true",
    "True",
    "yes",
    "NO",
    "on",
    "y",
    "n",
    "1",
    "-1",
    "+1",
    "1.5",
    ".5",
    "1e3",
    "1E-3",
    "0x1f",
    "0o17",
    "017",
    "1_000",
    "0b101",
    ".inf",
    "-.INF",
    ".nan",
    "nan",
    "inf",
    "Infinity",
    "2026-11-15",
    "2026-11-15T10:00:00Z",
    "2026-11-15T10:00:00.000000Z",
    "12:30:45",
    "1:2",
    "=",
    "<<",
    "-",
    "--",
    "---",
    "...",
    "- a",
    "-a",
    "?",
    "? a",
    ":",
    ": a",
    "a:",
    "a: b",
    "a :b",
    "a #b",
    "#a",
    "# a",
    "a#b",
    "[",
    "]",
    "{",
    "}",
    "[]",
    "{}",
    "[a, b]",
    "{a: b}",
    ",",
    "&a",
    "*a",
    "!a",
    "!!str a",
    "|",
    "|-",
    ">",
    ">+",
    "@a",
    "`a`",
    "%a",
    "%YAML 1.2",
    "'",
    "\"",
    "'a'",
    "\"a\"",
    "a'b",
    "a\"b",
    "\\",
    "\\n",
    "a\\",
    " a",
    "a ",
    "\ta",
    "a\t",
    "a\tb",
    "a\n",
    "a\n\n",
    "a\n\n\n",
    "\na",
    "\n\na",
    " \n a",
    "a\n b",
    "a\n  b\nc",
    "a \nb",
    "a\n \nb",
    "a\n\tb",
    "  a\nb",
    "a\n# b",
    "a\n---\nb",
    "---\na",
    "a\n...\nb",
    "- a\n- b",
    "a: b\nc: d",
    "\u{0}",
    "a\u{0}b",
    "\u{7}",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{80}",
    "\u{85}",
    "a\u{85}b",
    "\u{a0}",
    "\u{2028}",
    "a\u{2029}b",
    "\u{feff}",
    "a\u{feff}",
    "\u{200b}",
    "\u{202e}",
    "\u{e000}",
    "\u{fffd}",
    "\u{fffe}",
    "\u{ffff}",
    "a\u{ffff}\nb",
    "🦀",
    "\u{10ffff}",
    "äöü",
    "日本語",
    "${HOME}",
    "$(id)",
    "<<: *a",
    "!include /etc/passwd",
    "\u{d7ff}",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => proptest::sample::select(ODD).prop_map(ToOwned::to_owned),
        3 => proptest::string::string_regex("(?s).{0,30}").unwrap(),
        2 => proptest::string::string_regex("[ \n\t#:'\"a-c-]{0,40}").unwrap(),
        // Long enough to be folded, with words of every length between.
        2 => proptest::string::string_regex("([a-z#:.-]{1,30}[ ]{1,2}){10,30}[a-z]?").unwrap(),
        1 => proptest::string::string_regex("([a-zé ]{1,150}\n{1,3}){1,5}").unwrap(),
        1 => proptest::collection::vec(proptest::sample::select(ODD), 2..6).prop_map(|parts| parts.concat()),
        1 => (proptest::sample::select(ODD), 1_usize..300).prop_map(|(part, times)| part.repeat(times)),
    ]
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => text().prop_map(Value::String),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => any::<i64>().prop_map(|number| json!(number)),
        1 => any::<u64>().prop_map(|number| json!(number)),
        1 => proptest::num::f64::NORMAL.prop_map(|number| json!(number)),
        1 => Just(json!(0.0)),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map(text(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Members that are null are left out of a view.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Object(members) => members
            .iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name.clone(), without_nulls(member)))
            .collect(),
        other => other.clone(),
    }
}

fn assert_comes_back(value: &Value) {
    let yaml = to_yaml(&Node::from(value.clone()));
    let read: Value = serde_saphyr::from_str(&yaml).unwrap_or_else(|why| panic!("{why}\n{yaml:?}\n{value}"));
    assert_eq!(read, without_nulls(value), "{yaml:?}");
    assert!(yaml.ends_with('\n'), "{yaml:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_comes_back_as_it_was(value in document()) {
        assert_comes_back(&value);
    }
}

/// Each odd text where a text can stand: alone, as a member, as a name, in lists and below them.
#[test]
fn odd_texts_come_back_from_every_place() {
    for odd in ODD {
        let odd = *odd;
        for value in [
            json!(odd),
            json!({ "a": odd, "b": 1 }),
            json!({ odd: 1, "zz": odd }),
            json!({ odd: { odd: [odd] } }),
            json!([odd, odd]),
            json!([[odd], [[odd], odd]]),
            json!([{ odd: odd, "zz": [odd] }, odd]),
            json!({ "a": [[{ "b": odd }]], "c": odd }),
            json!(format!("{odd}{odd}")),
            json!({ "a": format!("x{odd}x"), "b": odd.repeat(200) }),
            json!({ "a": format!("{} {odd} {}", "word ".repeat(30), "word ".repeat(30)), "b": odd }),
            json!({ "a": format!("first\n{odd}\n{odd}last"), "b": odd }),
        ] {
            assert_comes_back(&value);
        }
    }
}

#[rstest]
#[case(json!({}), "{}\n")]
#[case(json!([]), "[]\n")]
#[case(json!(null), "null\n")]
#[case(json!({ "a": {}, "b": [], "c": null }), "a: {}\nb: []\n")]
#[case(json!({ "a": { "b": [1, { "c": 2, "d": [3] }, [4, 5]] } }),
    "a:\n  b:\n    - 1\n    - c: 2\n      d:\n        - 3\n    -\n      - 4\n      - 5\n")]
#[case(json!({ "path": "src/main.rs", "note": "it works", "yes": "yes", "n": "1" }),
    "path: src/main.rs\n\"n\": \"1\"\nnote: it works\n\"yes\": \"yes\"\n")]
#[case(json!({ "a": "one\ntwo\n" }), "a: |\n  one\n  two\n")]
#[case(json!({ "at": "2026-01-16T10:00:00.000000Z" }), "at: 2026-01-16T10:00:00.000000Z\n")]
fn it_looks_as_a_person_would_write_it(#[case] value: Value, #[case] yaml: &str) {
    assert_eq!(to_yaml(&Node::from(value.clone())), yaml);
    assert_comes_back(&value);
}

#[test]
fn long_text_is_folded_between_words() {
    let text = "The harbour master counts the boats every morning and writes their names down. ".repeat(5);
    let yaml = to_yaml(&Node::from(json!({ "details": text.trim() })));
    assert!(yaml.starts_with("details: >-\n  The harbour"), "{yaml}");
    assert!(yaml.lines().all(|line| line.len() <= 104), "{yaml}");
    assert_eq!(parse(&yaml)["details"], text.trim());
}

#[test]
fn names_longer_than_a_simple_key_may_be_come_back() {
    for length in [100, 101, 1_000, 1_023, 1_024, 1_025, 5_000] {
        assert_comes_back(&json!({ "a": { "k".repeat(length): { "x".repeat(length): [1] } }, "z": 1 }));
        assert_comes_back(&json!([{ "ä".repeat(length): "v", "z": "w" }]));
        assert_comes_back(&json!([{ "ä".repeat(length): ["v"], "z": { "y": "w" } }]));
    }
}
