//! What a tool call is about, from what it was given.

use serde_json::Value;

/// Members that say it best, the best first.
const NAMES: &[&str] = &[
    "command",
    "cmd",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
];

/// Members that name a file.
const FILES: &[&str] = &["file_path", "notebook_path", "path"];

/// What a call is about, in one text: its command, its file, what it looks for, or else all of its input.
pub fn subject(input: &Value) -> String {
    match NAMES.iter().find_map(|name| input.get(*name)) {
        Some(found) => words(found),
        None => match input {
            Value::Object(fields) if fields.is_empty() => String::new(),
            Value::Null => String::new(),
            other @ (Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_)) => words(other),
        },
    }
}

/// The file that a call is about.
pub fn file(input: &Value) -> Option<&str> {
    FILES.iter().find_map(|name| input.get(*name)?.as_str())
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(words) if words.iter().all(Value::is_string) => {
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        // A long text that was set aside.
        Value::Object(aside) if aside.contains_key(crate::text::BLOB_MEMBER) => {
            aside.get("excerpt").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_best_member_is_taken() {
        assert_eq!(subject(&json!({ "description": "tests", "command": "cargo test" })), "cargo test");
        assert_eq!(subject(&json!({ "cmd": ["ls", "-l"], "workdir": "/" })), "ls -l");
        assert_eq!(subject(&json!({ "file_path": "a.txt", "content": "x" })), "a.txt");
        assert_eq!(
            subject(&json!({ "command": { "$blob": "00", "bytes": 9000, "excerpt": "cat <<" } })),
            "cat <<"
        );
        assert_eq!(subject(&json!({ "todos": [1] })), "{\"todos\":[1]}");
        assert_eq!(subject(&json!("free text")), "free text");
        assert_eq!((subject(&json!({})), subject(&Value::Null)), (String::new(), String::new()));
        assert_eq!(file(&json!({ "notebook_path": "n.ipynb" })), Some("n.ipynb"));
        assert_eq!(file(&json!({ "command": "x" })), None);
    }
}
