//! Trackers and checklists.

use segno_evidence::ChecklistItem;
use segno_evidence::OPTIONAL_SECTIONS;
use segno_evidence::WorkError;
use segno_evidence::WorkItem;
use segno_evidence::WorkList;
use segno_evidence::checklist;
use segno_evidence::work_items;

const ITEMS: &str = r#"[
  {"id":"ab-3","title":"Third","priority":2,"status":"open","issue_type":"task","created_at":"2026-01-03T00:00:00Z"},
  {"id":"ab-2","title":"Second","priority":"P1","status":"open","issue_type":"bug","created_at":"2026-01-02T09:00:00+02:00"},
  {"id":"ab-1","title":"First","description":"Now.","priority":1,"status":"open","issue_type":"task",
   "created_at":"2026-01-02T06:00:00Z","labels":["ui","now"],"parent":"ab-0"},
  {"id":"ab-0","title":"All of it","priority":0,"status":"open","issue_type":"epic"},
  {"id":"ab-4","title":"Done","priority":0,"status":"closed"},
  {"id":"ab-5","title":"Waits","priority":0,"status":"blocked"},
  {"id":"ab-6","title":"Waits for the third","priority":0,"status":"open",
   "dependencies":[{"id":"ab-3","status":"open","dependency_type":"blocks"}]},
  {"id":"ab-7","title":"Waits in other words","priority":0,"status":"open",
   "dependencies":[{"issue_id":"ab-7","depends_on_id":"ab-3","type":"blocks"}]},
  {"id":"ab-8","title":"Waited","priority":3,"status":"open","blocked_by":["ab-4"],
   "dependencies":[{"id":"ab-4","status":"closed","dependency_type":"blocks"},{"id":"ab-0","dependency_type":"parent-child"}]},
  {"id":"ab-9","title":"Later","priority":0,"status":"deferred"}
]"#;

fn ids(list: &WorkList) -> Vec<&str> {
    list.ready.iter().map(|item| item.id.as_str()).collect()
}

#[test]
fn the_most_urgent_comes_first_and_the_oldest_of_these() {
    let list = work_items(ITEMS).unwrap();
    assert_eq!(ids(&list), ["ab-1", "ab-2", "ab-3", "ab-8"]);
    let first = &list.ready[0];
    assert_eq!((first.title.as_str(), first.description.as_str()), ("First", "Now."));
    assert_eq!((first.priority, first.parent.as_deref()), (Some(1.0), Some("ab-0")));
    assert_eq!(first.labels, ["ui", "now"]);
    assert_eq!(first.issue_type.as_deref(), Some("task"));
    assert_eq!(list.ready[3].parent.as_deref(), Some("ab-0"), "told as a dependency");
    let skipped: Vec<(&str, String)> =
        list.skipped.iter().map(|(item, why)| (item.id.as_str(), why.to_string())).collect();
    let expected = [
        ("ab-0", "an epic"),
        ("ab-4", "closed"),
        ("ab-5", "blocked"),
        ("ab-6", "blocked by ab-3"),
        ("ab-7", "blocked by ab-3"),
        ("ab-9", "deferred"),
    ];
    assert_eq!(skipped, expected.map(|(id, why)| (id, why.to_owned())));
}

#[test]
fn every_form_in_which_trackers_print() {
    let item = r#"{"id":"a","title":"T"}"#;
    for text in [
        item.to_owned(),
        format!("[{item}]"),
        format!("{{\"issues\":[{item}],\"total\":1}}"),
        format!("{{\"items\":[{item}]}}"),
        format!("{{\"data\":{{\"issues\":[{item}]}}}}"),
        format!("{{\"ready\":[{item}]}}"),
        format!("warning: the database is old\n[note] really\n[{item}]\n"),
        format!("{item}\n"),
    ] {
        assert_eq!(ids(&work_items(&text).unwrap()), ["a"], "{text}");
    }
    let lines = format!("{item}\n{}\n", r#"{"id":"b","title":"T"}"#);
    assert_eq!(ids(&work_items(&lines).unwrap()), ["a", "b"]);
    for empty in ["[]", "null", "{\"issues\":[]}", "{\"issues\":null}", "note\n[]\n"] {
        assert_eq!(work_items(empty), Ok(WorkList::default()), "{empty}");
    }
}

#[test]
fn what_is_no_list_says_so() {
    for text in
        ["", "no issues", "[{\"id\":\"a\"},", "[\n{\"id\":\"a\"},\n{\"id\":\"b\"", "[{\"id\":1}] and more"]
    {
        assert!(matches!(work_items(text), Err(WorkError::NotJson(_))), "{text}");
    }
    for text in ["1", "{}", "true", "{\"count\":3}", "[[[[{\"id\":1}]]]]"] {
        assert_eq!(work_items(text), Err(WorkError::NoItems), "{text}");
    }
    let said = WorkError::Tracker("no database".to_owned());
    assert_eq!(work_items("{\"error\":\"no database\"}"), Err(said.clone()));
    assert_eq!(work_items("{\"error\":{\"message\":\"no database\"}}"), Err(said));
}

#[test]
fn who_says_nothing_comes_last_and_by_id() {
    let text = r#"[{"id":"c"},{"id":"b"},{"id":"a","created_at":"soon"},{"id":"z","priority":4},{"id":"y","created_at":"2026-01-01"}]"#;
    assert_eq!(ids(&work_items(text).unwrap()), ["z", "y", "a", "b", "c"]);
    let without = work_items(r#"[{"title":"x"},{"id":"b"}]"#).unwrap();
    assert_eq!((ids(&without), without.skipped[0].1.to_string().as_str()), (vec!["b"], "it has no id"));
}

const LIST: &str = "\
# Plan
- [ ] Write the parser
  - [x] Read the format
  - [ ] Write tests
* [x] Set up
1. [ ] Name it
2) [X] Number it
- [2026-01-29] not an item
- [link](x) not an item
- [ ]glued
- [] none
-[ ] none
text - [ ] none

```
- [ ] in code
```
~~~~
- [ ] in code
~~~
- [ ] still in code
~~~~
<!--
- [ ] in a comment
-->
## Optional
- [ ] Add colours
### Details
- [ ] Choose them
## Then
+ [ ] Write tests
## nice to have:
- [ ] A logo
";

#[test]
fn items_of_a_checklist() {
    let items = checklist(LIST, OPTIONAL_SECTIONS);
    let told: Vec<(&str, bool, bool, Option<&str>)> = items
        .iter()
        .map(|item| (item.id.as_str(), item.done, item.optional, item.parent.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            ("write-the-parser", false, false, None),
            ("read-the-format", true, false, Some("write-the-parser")),
            ("write-tests", false, false, Some("write-the-parser")),
            ("set-up", true, false, None),
            ("name-it", false, false, None),
            ("number-it", true, false, None),
            ("add-colours", false, true, None),
            ("choose-them", false, true, None),
            ("write-tests-2", false, false, None),
            ("a-logo", false, true, None),
        ]
    );
    assert_eq!((items[1].line, items[8].section.as_deref()), (3, Some("Then")));
    assert!(checklist(LIST, &[]).iter().all(|item| !item.optional));
    let item = WorkItem::from(&items[1]);
    assert_eq!((item.id.as_str(), item.title.as_str()), ("read-the-format", "Read the format"));
    assert_eq!((item.status.as_deref(), item.parent.as_deref()), (Some("closed"), Some("write-the-parser")));
}

#[test]
fn what_changes_elsewhere_renames_nothing() {
    let ids = |text: &str| -> Vec<String> {
        checklist(text, &[]).into_iter().map(|item: ChecklistItem| item.id).collect()
    };
    let changed = format!(
        "# New\n- [ ] Something new\n\n{}",
        LIST.replace("- [ ] Write the parser", "- [x] Write the parser")
    );
    assert_eq!(ids(&changed)[1..], ids(LIST));
    assert_eq!(ids("- [ ] A\n- [ ] a\n- [ ] A 2\n- [ ] !\n- [ ]\n"), ["a", "a-2", "a-2-2", "item", "item-2"]);
    assert_eq!(ids(&format!("- [ ] {}\n", "ä".repeat(500)))[0].chars().count(), 60);
    assert_eq!(ids("- [ ] one\r\n\t- [x] two\r\n"), ["one", "two"]);
}
