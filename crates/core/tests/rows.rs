//! Rows and summaries as 0.1.0 wrote them, in every shape that it wrote, read as today's values.
//!
//! `rows/0.1.0.jsonl` was made by that program: what its projection makes of a sample of every event, step by step, and
//! what lay in the stores that it left behind. One line is one shape: which fields are there, and of what kind.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use segno_core::List;
use segno_core::Summary;
use segno_core::rows::*;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

const WRITTEN: &str = include_str!("rows/0.1.0.jsonl");

/// How many shapes there are of each list.
const SHAPES: [(&str, usize); 13] = [
    ("artifacts", 2),
    ("checkpoints", 15),
    ("decisions", 3),
    ("errors", 3),
    ("files", 3),
    ("history", 6),
    ("memory", 2),
    ("milestones", 2),
    ("outputs", 2),
    ("runs", 8),
    ("tasks", 2),
    ("tools", 9),
    ("verifications", 2),
];
/// How many of summaries.
const SUMMARIES: usize = 27;

/// One row as it was kept.
struct Kept {
    list: String,
    row: Map<String, Value>,
}

fn kept() -> Vec<Kept> {
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let list = line["list"].as_str().unwrap().to_owned();
        let Value::Object(row) = line["row"].take() else { panic!("{list}") };
        Kept { list, row }
    };
    WRITTEN.lines().map(line).collect()
}

fn written(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value).unwrap() {
        Value::Object(fields) => fields,
        other => panic!("{other}"),
    }
}

/// What was written is there, to the letter; what was not has the value that stands for it.
fn assert_holds(kept: &Kept, read: &Map<String, Value>, default: &Map<String, Value>) {
    for (name, value) in &kept.row {
        assert_eq!(read.get(name), Some(value), "{} {name}", kept.list);
    }
    for (name, value) in read {
        if !kept.row.contains_key(name) {
            assert_eq!(Some(value), default.get(name), "{} {name} was not written", kept.list);
        }
    }
}

fn read_row<T: Row + Serialize + PartialEq + std::fmt::Debug>(kept: &Kept) {
    assert_eq!(kept.list, T::LIST.as_str());
    let whole = Value::Object(kept.row.clone());
    let read = T::read(&whole).unwrap_or_else(|| panic!("{} {whole}", kept.list));
    assert_eq!(T::read_any(&whole), read);
    assert_holds(kept, &written(&read), &written(&T::default()));
    for name in kept.row.keys() {
        assert!(T::FIELDS.contains(&name.as_str()), "{} has no field {name} any more", kept.list);
    }
}

fn read_list(list: List, kept: &Kept) {
    match list {
        List::History => read_row::<HistoryRow>(kept),
        List::Artifacts => read_row::<ArtifactRow>(kept),
        List::Outputs => read_row::<OutputRow>(kept),
        List::Tasks => read_row::<TaskRow>(kept),
        List::Decisions => read_row::<DecisionRow>(kept),
        List::Tools => read_row::<ToolRow>(kept),
        List::Files => read_row::<FileRow>(kept),
        List::Errors => read_row::<ErrorRow>(kept),
        List::Memory => read_row::<MemoryRow>(kept),
        List::Milestones => read_row::<MilestoneRow>(kept),
        List::Checkpoints => read_row::<CheckpointRow>(kept),
        List::Verifications => read_row::<VerificationRow>(kept),
        List::Runs => read_row::<RunRow>(kept),
    }
}

#[test]
fn every_shape_of_every_list_of_0_1_0_is_read() {
    let mut shapes: BTreeMap<&str, usize> = BTreeMap::new();
    let all = kept();
    for list in List::ALL {
        for kept in all.iter().filter(|kept| kept.list == list.as_str()) {
            read_list(list, kept);
            *shapes.entry(list.as_str()).or_default() += 1;
        }
    }
    // The file holds all of them: a line that is lost is noticed.
    let expected = BTreeMap::from(SHAPES);
    assert_eq!(shapes, expected);
    assert_eq!(shapes.len(), List::ALL.len(), "every list");
}

#[test]
fn every_shape_of_the_summaries_of_0_1_0_is_read() {
    let all = kept();
    let summaries: Vec<&Kept> = all.iter().filter(|kept| kept.list == "summary").collect();
    assert_eq!(summaries.len(), SUMMARIES);
    for kept in summaries {
        let read: Summary = serde_json::from_value(Value::Object(kept.row.clone())).unwrap();
        assert_holds(kept, &written(&read), &written(&Summary::default()));
    }
}
