//! Prompts: templates with the variables of a work item, expanded once.

use segno_evidence::SkipReason;
use segno_evidence::WorkError;

/// What an agent is asked if nobody says anything else.
pub const DEFAULT: &str = "\
Go on with the work in this project. Look at the state of the tree, its notes and its open tasks, and at what was done \
so far. Choose the most important thing that is ready to be done, do it, check that it works, and say in the end what \
you did, what you left open, and what should come next. Do not start anything that you cannot finish.";

/// What an agent is asked to do with a work item if there is no template.
pub const DEFAULT_FOR_ITEM: &str = "\
Work on this item: {{.BeadTitle}} ({{.BeadID}})

{{.BeadDescription}}

Do it completely, check that it works, and say in the end what you did and what you left open.";

/// A piece of work from a tracker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkItem {
    /// The tracker's id.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// What is to be done.
    pub description: String,
    /// Its labels, joined by commas.
    pub label: String,
    /// The item it belongs to.
    pub parent: String,
}

impl WorkItem {
    /// Reads an item as trackers print it: one, or a list of which the most urgent one is taken that can be taken up. One
    /// alone is meant whatever it says of itself.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let list = segno_evidence::work_items(text).map_err(|why| why.to_string())?;
        let mut ready = list.ready;
        let alone = ready.len() + list.skipped.len() == 1;
        let without_id = |reason: &SkipReason| *reason == SkipReason::NoId;
        ready.extend(
            list.skipped.iter().filter(|(_, why)| alone || without_id(why)).map(|(item, _)| item.clone()),
        );
        match ready.into_iter().next() {
            Some(item) => Ok(item.into()),
            None if list.skipped.is_empty() => Err(WorkError::NoItems.to_string()),
            None => Err("every item in it is done, blocked, put off, or an epic".to_owned()),
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        Some(match name {
            "BeadID" | "ItemID" | "id" => &self.id,
            "BeadTitle" | "ItemTitle" | "title" => &self.title,
            "BeadDescription" | "ItemDescription" | "description" => &self.description,
            "Label" | "label" => &self.label,
            "BeadParent" | "ItemParent" | "parent" => &self.parent,
            _ => return None,
        })
    }
}

impl From<segno_evidence::WorkItem> for WorkItem {
    fn from(item: segno_evidence::WorkItem) -> Self {
        Self {
            id: item.id,
            title: item.title,
            description: item.description,
            label: item.labels.join(","),
            parent: item.parent.unwrap_or_default(),
        }
    }
}

impl From<segno_core::event::WorkItemMark> for WorkItem {
    fn from(item: segno_core::event::WorkItemMark) -> Self {
        Self { id: item.id, title: item.title, ..Self::default() }
    }
}

/// Fills in the variables of a template, once: what they bring is not looked at again. Also says which names it does
/// not know; they stay as they are.
pub fn expand(template: &str, item: &WorkItem) -> (String, Vec<String>) {
    let (mut text, mut unknown) = (String::with_capacity(template.len()), Vec::new());
    let mut rest = template;
    while let Some(start) = rest.find("{{") {
        let (before, from) = rest.split_at(start);
        text.push_str(before);
        let Some(end) = from.find("}}") else {
            rest = from;
            break;
        };
        let (variable, after) = from.split_at(end + 2);
        let name = variable[2..end].trim();
        match item.value(name.strip_prefix('.').unwrap_or(name)) {
            Some(value) => text.push_str(value),
            None => {
                unknown.push(name.strip_prefix('.').unwrap_or(name).to_owned());
                text.push_str(variable);
            }
        }
        rest = after;
    }
    text.push_str(rest);
    (text, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_as_trackers_print_them() {
        let item =
            r#"{"id":"ab-1","title":"Fix it","description":"Now.","labels":["bug","ui"],"parent":"ab-0"}"#;
        let expected = WorkItem {
            id: "ab-1".into(),
            title: "Fix it".into(),
            description: "Now.".into(),
            label: "bug,ui".into(),
            parent: "ab-0".into(),
        };
        let forms = [
            item.to_owned(),
            format!("[{item}]"),
            format!("{{\"issues\":[{item}]}}"),
            format!("{{\"issue\":{item}}}"),
        ];
        for text in forms {
            assert_eq!(WorkItem::parse(&text).as_ref(), Ok(&expected), "{text}");
        }
        let other = r#"{"number":7,"title":"T","body":"B","labels":[{"name":"x"}],"parent":{"id":3}}"#;
        let item = WorkItem::parse(other).unwrap();
        assert_eq!([item.id, item.description, item.label, item.parent], ["7", "B", "x", "3"]);
        for wrong in ["", "1", "[]", "{}", "{\"issues\":[]}", "[[[[{\"id\":1}]]]]"] {
            assert!(WorkItem::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_most_urgent_open_one_is_taken() {
        let taken = |text: &str| WorkItem::parse(text).map(|item| item.id);
        let list = r#"[{"id":"a","status":"closed"},{"id":"b","priority":2},{"id":"c","priority":"P1"},{"id":"d","priority":1}]"#;
        assert_eq!(taken(list).unwrap(), "c");
        assert_eq!(taken(r#"[{"id":"a"},{"id":"b"}]"#).unwrap(), "a", "nothing says otherwise");
        assert_eq!(taken(r#"[{"id":"a","status":"closed"}]"#).unwrap(), "a", "one alone is meant");
        assert!(taken(r#"[{"id":"a","status":"done"},{"id":"b","issue_type":"epic"}]"#).is_err());
        let waits = r#"[{"id":"a","priority":0,"blocked_by":["b"]},{"id":"b","priority":1}]"#;
        assert_eq!(taken(waits).unwrap(), "b", "the other one waits for it");
        assert_eq!(taken(r#"[{"title":"x"},{"title":"y"}]"#).unwrap(), "", "without ids the first one");
    }

    #[test]
    fn templates_are_expanded_once() {
        let item = WorkItem { id: "{{.BeadTitle}}".into(), title: "T".into(), ..WorkItem::default() };
        let (text, unknown) =
            expand("a {{.BeadID}} {{ title }} {{.ItemTitle}} {{.Nope}} {{ {{.Label}}", &item);
        assert_eq!(text, "a {{.BeadTitle}} T T {{.Nope}} {{ {{.Label}}");
        assert_eq!(unknown, ["Nope", "{{.Label"]);
        assert_eq!(expand("open {{ end", &item).0, "open {{ end");
        let (text, unknown) = expand(DEFAULT_FOR_ITEM, &item);
        assert!(text.contains("T ({{.BeadTitle}})") && unknown.is_empty());
    }
}
