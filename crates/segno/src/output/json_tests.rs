use proptest::prelude::*;

use super::*;

#[test]
fn what_a_terminal_obeys_is_escaped() {
    let value = serde_json::json!({ "a": "\u{9b}2J\u{202e}\u{1b}\u{7f}\u{e0041}" });
    assert_eq!(line(&value), r#"{"a":"\u009b2J\u202e\u001b\u007f\udb40\udc41"}"#);
}

proptest! {
    #[test]
    fn the_value_stays_the_same(text in any::<String>()) {
        let value = serde_json::json!({ "key": text });
        let written = document(&value).unwrap();
        prop_assert!(!written.chars().any(is_unsafe));
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value.clone());
        prop_assert!(!line(&value).contains('\n'));
    }
}
