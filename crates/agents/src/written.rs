//! What a recorded call says that it wrote to files.

use serde_json::Value;

/// What a call wrote to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWrite {
    /// Where, as the call says it.
    pub path: String,
    /// Where the file went, if it was moved too.
    pub moved_to: Option<String>,
    /// What.
    pub what: Written,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// All of it is this now.
    Whole {
        /// The content.
        content: String,
        /// The call says that the file is new.
        is_new: bool,
    },
    /// Parts of it.
    Parts(Vec<Part>),
    /// It is gone.
    Removed,
    /// The call does not say.
    Untold,
}

/// A text in the place of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// What stood there.
    pub old: String,
    /// What stands there now.
    pub new: String,
    /// Wherever it stood.
    pub all: bool,
    /// Whole lines.
    pub whole_lines: bool,
}

/// Members that name a file, as agents call them.
const PATHS: &[&str] = &["file_path", "filePath", "absolute_path", "notebook_path", "path", "target_file"];

/// What a call wrote, by what it was given. Empty for one that is not about writing to a file it names.
pub fn file_writes(tool: &str, input: &Value) -> Vec<FileWrite> {
    if let Some(patch) = patch_in(input) {
        return patched(patch);
    }
    if let Some(changes) = input.get("changes") {
        return changed(changes);
    }
    let Some(path) = named_file(input) else { return Vec::new() };
    let one = |what| vec![FileWrite { path: path.to_owned(), moved_to: None, what }];
    let text = |value: &Value, names: [&str; 2]| {
        names.iter().find_map(|name| value.get(*name)?.as_str()).map(str::to_owned)
    };
    let part = |value: &Value| {
        let all =
            ["replace_all", "replaceAll"].iter().any(|name| value.get(*name) == Some(&Value::Bool(true)));
        let many = value.get("expected_replacements").and_then(Value::as_u64).is_some_and(|count| count > 1);
        Some(Part {
            old: text(value, ["old_string", "oldString"])?,
            new: text(value, ["new_string", "newString"])?,
            all: all || many,
            whole_lines: false,
        })
    };
    let says_write = ["write", "edit", "replace", "create", "patch"]
        .iter()
        .any(|word| tool.to_ascii_lowercase().contains(word));
    if let Some(edits) = input.get("edits").and_then(Value::as_array) {
        let parts: Option<Vec<Part>> = edits.iter().map(part).collect();
        return one(parts.map_or(Written::Untold, Written::Parts));
    }
    if let Some(part) = part(input) {
        return one(Written::Parts(vec![part]));
    }
    match text(input, ["content", "file_text"]) {
        Some(content) if says_write => one(Written::Whole { content, is_new: false }),
        _ if says_write => one(Written::Untold),
        _ => Vec::new(),
    }
}

/// The file that a call names.
pub fn named_file(input: &Value) -> Option<&str> {
    PATHS.iter().find_map(|name| input.get(*name)?.as_str())
}

/// Files of which nothing is told but how they changed.
fn changed(changes: &Value) -> Vec<FileWrite> {
    let one = |path: &str, kind: Option<&str>| FileWrite {
        path: path.to_owned(),
        moved_to: None,
        what: if kind == Some("delete") { Written::Removed } else { Written::Untold },
    };
    match changes {
        Value::Array(all) => all
            .iter()
            .filter_map(|change| {
                Some(one(change.get("path")?.as_str()?, change.get("kind").and_then(Value::as_str)))
            })
            .collect(),
        Value::Object(all) => all.iter().map(|(path, _)| one(path, None)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

const BEGIN: &str = "*** Begin Patch";

fn patch_in(input: &Value) -> Option<&str> {
    let text = match input {
        Value::String(text) => Some(text.as_str()),
        Value::Object(_) => {
            ["patch", "input", "command", "patchText"].iter().find_map(|name| match input.get(*name)? {
                Value::String(text) => Some(text.as_str()),
                Value::Array(words) => words.last()?.as_str(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }?;
    // A command that only speaks of a patch is none.
    text.trim_start().starts_with(BEGIN).then_some(text)
}

/// The files of a patch in Codex's own format.
fn patched(patch: &str) -> Vec<FileWrite> {
    let mut writes: Vec<FileWrite> = Vec::new();
    for line in patch.lines() {
        if let Some((word, path)) = line.strip_prefix("*** ").and_then(|header| header.split_once(": ")) {
            let path = path.trim().to_owned();
            match word {
                "Add File" => writes.push(FileWrite {
                    path,
                    moved_to: None,
                    what: Written::Whole { content: String::new(), is_new: true },
                }),
                "Update File" => {
                    writes.push(FileWrite { path, moved_to: None, what: Written::Parts(Vec::new()) })
                }
                "Delete File" => writes.push(FileWrite { path, moved_to: None, what: Written::Removed }),
                "Move to" => {
                    if let Some(last) = writes.last_mut() {
                        last.moved_to = Some(path);
                    }
                }
                _ => {}
            }
            continue;
        }
        match writes.last_mut().map(|write| &mut write.what) {
            Some(Written::Whole { content, .. }) => {
                if let Some(line) = line.strip_prefix('+') {
                    content.push_str(line);
                    content.push('\n');
                }
            }
            Some(Written::Parts(parts)) => hunk_line(parts, line),
            Some(Written::Removed | Written::Untold) | None => {}
        }
    }
    for write in &mut writes {
        if let Written::Parts(parts) = &mut write.what {
            for part in parts.iter_mut() {
                part.old.pop();
                part.new.pop();
            }
            parts.retain(|part| part.old != part.new);
        }
    }
    writes
}

fn hunk_line(parts: &mut Vec<Part>, line: &str) {
    if line.starts_with("@@") {
        parts.push(Part { whole_lines: true, ..Part::default() });
        return;
    }
    if line.starts_with("***") {
        return;
    }
    if parts.is_empty() {
        parts.push(Part { whole_lines: true, ..Part::default() });
    }
    let Some(part) = parts.last_mut() else { return };
    let mut put = |text: &str, old: bool, new: bool| {
        if old {
            part.old.push_str(text);
            part.old.push('\n');
        }
        if new {
            part.new.push_str(text);
            part.new.push('\n');
        }
    };
    match (line.strip_prefix('-'), line.strip_prefix('+')) {
        (Some(text), _) => put(text, true, false),
        (_, Some(text)) => put(text, false, true),
        // An empty line of context often has lost its space.
        (None, None) => put(line.strip_prefix(' ').unwrap_or(line), true, true),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(old: &str, new: &str) -> Part {
        Part { old: old.to_owned(), new: new.to_owned(), ..Part::default() }
    }

    #[test]
    fn each_agent_s_way_of_writing() {
        let what = |tool: &str, input: Value| {
            file_writes(tool, &input).into_iter().map(|write| write.what).collect::<Vec<_>>()
        };
        let whole = |content: &str| vec![Written::Whole { content: content.to_owned(), is_new: false }];
        assert_eq!(what("Write", json!({ "file_path": "/w/a", "content": "x\n" })), whole("x\n"));
        assert_eq!(what("write_file", json!({ "file_path": "/w/a", "content": "x\n" })), whole("x\n"));
        assert_eq!(what("write", json!({ "filePath": "/w/a", "content": "x\n" })), whole("x\n"));
        let edit = vec![Written::Parts(vec![part("a", "b")])];
        assert_eq!(what("Edit", json!({ "file_path": "/w/a", "old_string": "a", "new_string": "b" })), edit);
        assert_eq!(what("edit", json!({ "filePath": "/w/a", "oldString": "a", "newString": "b" })), edit);
        let many = json!({ "file_path": "/w/a", "edits": [{ "old_string": "a", "new_string": "b" }, { "old_string": "c", "new_string": "d", "replace_all": true }] });
        let all = Part { all: true, ..part("c", "d") };
        assert_eq!(what("MultiEdit", many), vec![Written::Parts(vec![part("a", "b"), all])]);
        assert_eq!(
            what("NotebookEdit", json!({ "notebook_path": "n.ipynb", "new_source": "x" })),
            vec![Written::Untold]
        );
        assert_eq!(
            what("apply_patch", json!({ "changes": [{ "path": "a", "kind": "update" }] })),
            vec![Written::Untold]
        );
        assert_eq!(what("Read", json!({ "file_path": "/w/a" })), vec![]);
        assert_eq!(what("Bash", json!({ "command": "grep 'x' a" })), vec![]);
        assert_eq!(what("Bash", json!({ "command": "echo '*** Begin Patch' > a" })), vec![]);
    }

    #[test]
    fn a_patch_in_parts() {
        let patch = "*** Begin Patch\n*** Add File: new.txt\n+one\n+\n*** Update File: old.txt\n*** Move to: other.txt\n@@ fn a\n keep\n-gone\n+come\n@@\n last\n+more\n*** Delete File: d.txt\n*** End Patch\n";
        let writes = file_writes("apply_patch", &json!({ "patch": patch }));
        let lines = |old: &str, new: &str| Part { whole_lines: true, ..part(old, new) };
        assert_eq!(
            writes,
            [
                FileWrite {
                    path: "new.txt".into(),
                    moved_to: None,
                    what: Written::Whole { content: "one\n\n".into(), is_new: true }
                },
                FileWrite {
                    path: "old.txt".into(),
                    moved_to: Some("other.txt".into()),
                    what: Written::Parts(vec![
                        lines("keep\ngone", "keep\ncome"),
                        lines("last", "last\nmore")
                    ]),
                },
                FileWrite { path: "d.txt".into(), moved_to: None, what: Written::Removed },
            ]
        );
    }
}
