//! Prompts: templates with the variables of a work item, expanded once.

use serde_json::Value;

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
    /// Reads an item as trackers print it: an object, an array whose first element it is, or either of them under a
    /// name such as `issue` or `items`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|why| format!("it is not JSON: {why}"))?;
        let item = find(&value, 0).ok_or("there is no item with an id or a title in it")?;
        let text = |names: &[&str]| {
            names.iter().find_map(|name| item.get(*name).and_then(as_text)).unwrap_or_default()
        };
        let labels = ["labels", "label", "tags"].iter().find_map(|name| item.get(*name)).map(labels);
        Ok(Self {
            id: text(&["id", "key", "number"]),
            title: text(&["title", "summary", "name"]),
            description: text(&["description", "body", "text"]),
            label: labels.unwrap_or_default(),
            parent: item.get("parent").and_then(reference).unwrap_or_default(),
        })
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

fn find(value: &Value, depth: usize) -> Option<&serde_json::Map<String, Value>> {
    match value {
        Value::Array(items) => items.first().filter(|_| depth < 3).and_then(|item| find(item, depth + 1)),
        Value::Object(fields) if ["id", "key", "title"].iter().any(|name| fields.contains_key(*name)) => {
            Some(fields)
        }
        Value::Object(fields) if depth < 3 => {
            const WRAPPERS: &[&str] =
                &["issue", "item", "bead", "task", "issues", "items", "beads", "tasks", "data", "result"];
            WRAPPERS.iter().find_map(|name| find(fields.get(*name)?, depth + 1))
        }
        _ => None,
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A name, or an object that has one.
fn reference(value: &Value) -> Option<String> {
    as_text(value).or_else(|| as_text(value.get("id").or_else(|| value.get("name"))?))
}

fn labels(value: &Value) -> String {
    match value {
        Value::Array(labels) => labels.iter().filter_map(reference).collect::<Vec<_>>().join(","),
        other => as_text(other).unwrap_or_default(),
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
