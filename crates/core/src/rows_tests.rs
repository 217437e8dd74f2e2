use std::collections::BTreeMap;

use serde_json::Value;

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

/// What the projection writes is read back as it was written, with any field missing, and with one that came later.
fn holds<T: Row + Serialize>() {
    let rows = rows_of::<T>();
    assert!(!rows.is_empty(), "no sample makes a row of {:?}", T::LIST);
    for row in rows {
        let read = T::read(&Value::Object(row.clone())).unwrap_or_else(|| panic!("{:?}: {row:?}", T::LIST));
        let again = serde_json::to_value(&read).unwrap();
        let known: BTreeMap<&String, &Value> =
            row.iter().filter(|(name, _)| again.get(name.as_str()).is_some()).collect();
        assert!(!known.is_empty(), "{again}");
        for (name, value) in known {
            assert_eq!(&again[name.as_str()], value, "{:?} {name}", T::LIST);
        }
        for name in row.keys() {
            let mut older = row.clone();
            older.remove(name);
            older.insert("added_later".to_owned(), Value::from(1));
            assert!(T::read(&Value::Object(older)).is_some(), "{:?} without {name}", T::LIST);
        }
    }
    assert!(T::read(&Value::Null).is_none() && T::read(&Value::from(vec![1])).is_none());
    assert!(T::read(&Value::Object(Map::new())).is_some());
}

#[test]
fn rows_of_any_age_can_be_read() {
    holds::<ToolRow>();
    holds::<RunRow>();
    holds::<FileRow>();
    holds::<TaskRow>();
    holds::<CheckpointRow>();
}
