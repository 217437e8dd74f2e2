//! Paths into JSON, such as `$.message.parts[0].text`.
//!
//! `$` is the object of the line, `@` the element of its list that a rule is applied to. `*` is the first member of
//! an object or list whatever its name, and `~` at the end the name of that member: some agents say what a thing is by
//! what they call it.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

/// Where a value is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Path {
    root: Root,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Root {
    Line,
    Item,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Key(String),
    Index(usize),
    First,
    Name,
}

/// A path that is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a path such as $.message.text, $.items[0].name or @.id")]
pub struct PathError(String);

impl Path {
    /// The value at this path in the object of a line, or in the element of its list that is looked at.
    pub fn get(&self, line: &Value, item: &Value) -> Option<Value> {
        let root = match self.root {
            Root::Line => line,
            Root::Item => item,
        };
        let mut value = root;
        for step in &self.steps {
            value = match step {
                Step::Key(key) => value.get(key)?,
                Step::Index(index) => value.get(index)?,
                Step::First => match value {
                    Value::Object(members) => members.values().next()?,
                    other => other.get(0)?,
                },
                Step::Name => return value.as_object()?.keys().next().map(|name| name.as_str().into()),
            };
        }
        Some(value.clone())
    }
}

impl TryFrom<String> for Path {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        parse(&text).map(|(root, steps)| Self { root, steps }).ok_or(PathError(text))
    }
}

impl std::str::FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        text.to_owned().try_into()
    }
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.to_string()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.root {
            Root::Line => "$",
            Root::Item => "@",
        })?;
        self.steps.iter().try_for_each(|step| match step {
            Step::Key(key) => write!(f, ".{key}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::First => f.write_str(".*"),
            Step::Name => f.write_str(".~"),
        })
    }
}

fn parse(text: &str) -> Option<(Root, Vec<Step>)> {
    let line = text.strip_prefix('$').map(|rest| (Root::Line, rest));
    let (root, mut rest) = line.or_else(|| text.strip_prefix('@').map(|rest| (Root::Item, rest)))?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.last() == Some(&Step::Name) {
            return None;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            steps.push(match &after[..end] {
                "*" => Step::First,
                "~" => Step::Name,
                key => Step::Key(key.to_owned()),
            });
            rest = &after[end..];
        } else {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = after;
        }
    }
    Some((root, steps))
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn paths() {
        let value = serde_json::json!({ "a": { "b": [10, { "c": "x" }] } });
        let item = serde_json::json!({ "d": 7 });
        for (text, found) in [
            ("$.a.b[0]", Some("10")),
            ("$.a.b[1].c", Some("\"x\"")),
            ("$.a.b[2]", None),
            ("$.nope", None),
            ("$.*.b.*", Some("10")),
            ("$.a.~", Some("\"b\"")),
            ("$.a.b.~", None),
            ("@.d", Some("7")),
            ("@", Some("{\"d\":7}")),
        ] {
            let path: Path = text.parse().unwrap();
            assert_eq!(path.get(&value, &item).map(|value| value.to_string()).as_deref(), found, "{path}");
            assert_eq!(path.to_string(), text);
        }
        for bad in ["", "a.b", "$a", "$.", "$..a", "$[x]", "$[1", "$.a[", "$.~.a", "@a"] {
            assert!(bad.parse::<Path>().is_err(), "{bad}");
        }
    }
}
