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
    /// Reads an item as trackers print it: an object, an array of which the most urgent open one is taken, or either of
    /// them under a name such as `issue` or `items`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|why| format!("it is not JSON: {why}"))?;
        let item = find(&value, 0)?.ok_or("there is no item with an id or a title in it")?;
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

type Fields = serde_json::Map<String, Value>;

fn find(value: &Value, depth: usize) -> Result<Option<&Fields>, String> {
    match value {
        Value::Array(items) if depth < 3 => {
            let mut found = Vec::new();
            for item in items {
                found.extend(find(item, depth + 1)?);
            }
            choose(&found)
        }
        Value::Object(fields) if ["id", "key", "title"].iter().any(|name| fields.contains_key(*name)) => {
            Ok(Some(fields))
        }
        Value::Object(fields) if depth < 3 => {
            const WRAPPERS: &[&str] =
                &["issue", "item", "bead", "task", "issues", "items", "beads", "tasks", "data", "result"];
            match WRAPPERS.iter().find_map(|name| fields.get(*name)) {
                Some(inside) => find(inside, depth + 1),
                None => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Of several the one to be done first: open and no epic, the most urgent, of these the oldest. One alone is meant
/// whatever it says of itself.
fn choose<'a>(items: &[&'a Fields]) -> Result<Option<&'a Fields>, String> {
    if let [only] = items {
        return Ok(Some(only));
    }
    let word = |item: &Fields, names: &[&str]| {
        names.iter().find_map(|name| item.get(*name)?.as_str().map(str::to_lowercase)).unwrap_or_default()
    };
    let is_open = |item: &&&Fields| {
        let done = ["closed", "done", "completed", "resolved", "cancelled", "canceled", "tombstone"];
        let epic = word(item, &["issue_type", "type"]) == "epic";
        !done.contains(&word(item, &["status", "state"]).as_str()) && !epic
    };
    let urgency = |item: &Fields| match item.get("priority") {
        Some(Value::Number(number)) => number.as_f64().unwrap_or(f64::MAX),
        // As in P1.
        Some(Value::String(text)) => text.trim_start_matches(['P', 'p']).parse().unwrap_or(f64::MAX),
        _ => f64::MAX,
    };
    let mut open: Vec<&Fields> = items.iter().filter(is_open).copied().collect();
    if open.is_empty() && !items.is_empty() {
        return Err("every item in it is done, or an epic".to_owned());
    }
    // Stable: those that say nothing stay in their order.
    open.sort_by(|a, b| {
        urgency(a).total_cmp(&urgency(b)).then_with(|| {
            let made = |item: &Fields| word(item, &["created_at", "created"]);
            let (a, b) = (made(a), made(b));
            if a.is_empty() || b.is_empty() { std::cmp::Ordering::Equal } else { a.cmp(&b) }
        })
    });
    Ok(open.first().copied())
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
    fn the_most_urgent_open_one_is_taken() {
        let taken = |text: &str| WorkItem::parse(text).map(|item| item.id);
        let list = r#"[{"id":"a","status":"closed"},{"id":"b","priority":2},{"id":"c","priority":"P1"},{"id":"d","priority":1}]"#;
        assert_eq!(taken(list).unwrap(), "c");
        assert_eq!(taken(r#"[{"id":"a"},{"id":"b"}]"#).unwrap(), "a", "nothing says otherwise");
        assert_eq!(taken(r#"[{"id":"a","status":"closed"}]"#).unwrap(), "a", "one alone is meant");
        assert!(taken(r#"[{"id":"a","status":"done"},{"id":"b","issue_type":"epic"}]"#).is_err());
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
