use serde_json::json;

use super::*;

fn whole() -> Value {
    let id = "session_20260131_143512_804211".parse().unwrap();
    let summary = Summary { session_id: id, topic: Some("a".to_owned()), seq: 7, ..Summary::default() };
    serde_json::to_value(summary).unwrap()
}

/// A row of any earlier form had fewer fields; which ones does not matter.
#[test]
fn a_row_with_any_field_missing_can_be_read() {
    let whole = whole();
    let names: Vec<String> = whole.as_object().unwrap().keys().cloned().collect();
    for name in &names {
        let mut older = whole.clone();
        older.as_object_mut().unwrap().remove(name);
        let read: Summary =
            serde_json::from_value(older.clone()).unwrap_or_else(|why| panic!("{name}: {why}"));
        let again = serde_json::to_value(read).unwrap();
        assert_eq!(again.as_object().unwrap().keys().cloned().collect::<Vec<_>>(), names);
        assert!(is_form_of(older.as_object().unwrap(), whole.as_object().unwrap()), "{name}");
    }
}

#[test]
fn a_newer_row_can_be_read_and_a_changed_one_is_told_apart() {
    let mut newer = whole();
    newer["added_later"] = json!([1, 2]);
    assert_eq!(serde_json::to_value(serde_json::from_value::<Summary>(newer).unwrap()).unwrap(), whole());
    let mut changed = whole();
    changed["seq"] = json!(8);
    assert!(!is_form_of(changed.as_object().unwrap(), whole().as_object().unwrap()));
}
