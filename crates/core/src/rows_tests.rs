use std::collections::BTreeSet;

use serde_json::Value;
use serde_json::json;

use super::*;
use crate::event::samples::full_state;
use crate::event::samples::samples;
use crate::story::Story;

/// Every row that the projection makes of the samples of all events.
fn rows_of<T: Row>() -> Vec<Map<String, Value>> {
    let mut story = Story::of(full_state());
    for event in samples() {
        story.record(&event);
    }
    story.list(T::LIST).into_iter().cloned().collect()
}

fn written<T: Row + Serialize>(row: &T) -> Map<String, Value> {
    match serde_json::to_value(row).unwrap() {
        Value::Object(fields) => fields,
        other => panic!("{other}"),
    }
}

/// What the projection writes is read back as it was written, with any field missing, odd, or added later.
fn holds<T: Row + Serialize + PartialEq + std::fmt::Debug>(lists: &mut BTreeSet<List>) {
    let list = T::LIST.as_str();
    lists.insert(T::LIST);
    let rows = rows_of::<T>();
    assert!(!rows.is_empty(), "no sample makes a row of {list}");
    for row in rows {
        let whole = Value::Object(row.clone());
        let read = T::read(&whole).unwrap_or_else(|| panic!("{list}: {row:?}"));
        assert_eq!(T::read_any(&whole), read);
        let again = written(&read);
        for (name, value) in &row {
            assert!(T::FIELDS.contains(&name.as_str()), "{list} has no field {name}");
            assert_eq!(again.get(name), Some(value), "{list} {name}");
        }
        for name in row.keys() {
            // A program that did not know it yet.
            let mut older = row.clone();
            older.remove(name);
            let older = T::read(&Value::Object(older)).unwrap_or_else(|| panic!("{list} without {name}"));
            let default = written(&T::default()).remove(name);
            assert_eq!(written(&older).get(name), default.as_ref(), "{list} {name}");
            // A damaged one, or one that somebody else made: the rest of it is still there.
            let mut odd = row.clone();
            odd.insert(name.clone(), json!({ "odd": [1] }));
            let odd = Value::Object(odd);
            let some = written(&T::read_any(&odd));
            if T::read(&odd).is_none() {
                assert_eq!(some, written(&older), "{list} {name}");
            }
        }
        // A newer program: what it added is carried along, also if it gave fields another meaning.
        let mut newer = row.clone();
        newer.insert("added_later".to_owned(), json!([1, { "a": null }]));
        newer.insert("row_version".to_owned(), json!(ROW_VERSION + 98));
        let read = T::read(&Value::Object(newer.clone())).unwrap_or_else(|| panic!("newer {list}"));
        let again = written(&read);
        for (name, value) in &newer {
            assert_eq!(again.get(name), Some(value), "newer {list} {name}");
        }
    }
    // What is no row is damaged, and has nothing to say.
    for nothing in [Value::Null, json!([1]), json!("x")] {
        assert!(T::read(&nothing).is_none());
        assert_eq!(T::read_any(&nothing), T::default());
    }
    assert_eq!(T::read(&json!({})), Some(T::default()));
    assert!(!written(&T::default()).contains_key("row_version"), "the first version is not written");
}

#[test]
fn rows_of_any_age_can_be_read() {
    let mut lists = BTreeSet::new();
    holds::<HistoryRow>(&mut lists);
    holds::<ArtifactRow>(&mut lists);
    holds::<OutputRow>(&mut lists);
    holds::<TaskRow>(&mut lists);
    holds::<DecisionRow>(&mut lists);
    holds::<ToolRow>(&mut lists);
    holds::<FileRow>(&mut lists);
    holds::<ErrorRow>(&mut lists);
    holds::<MemoryRow>(&mut lists);
    holds::<MilestoneRow>(&mut lists);
    holds::<CheckpointRow>(&mut lists);
    holds::<VerificationRow>(&mut lists);
    holds::<RunRow>(&mut lists);
    assert_eq!(lists, List::ALL.into_iter().collect(), "every list has a row");
}

/// A call that was given nothing is told apart from one of which only the end was heard.
#[test]
fn an_input_that_is_nothing_was_written() {
    let read = |body: Value| ToolRow::read(&body).unwrap().input;
    assert_eq!(read(json!({ "input": null })), Some(Value::Null));
    assert_eq!(read(json!({})), None);
}
