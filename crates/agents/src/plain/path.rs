//! Paths into JSON, such as `$.message.parts[0].text`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// Where a value is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Path {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Key(String),
    Index(usize),
}

/// A path that is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a path such as $.message.text or $.items[0].name")]
pub struct PathError(String);

impl Path {
    /// The value at this path.
    pub fn get<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.steps.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }
}

impl TryFrom<String> for Path {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        parse(&text).map(|steps| Self { steps }).ok_or(PathError(text))
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
        f.write_str("$")?;
        self.steps.iter().try_for_each(|step| match step {
            Step::Key(key) => write!(f, ".{key}"),
            Step::Index(index) => write!(f, "[{index}]"),
        })
    }
}

fn parse(text: &str) -> Option<Vec<Step>> {
    let mut rest = text.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            steps.push(Step::Key(after[..end].to_owned()));
            rest = &after[end..];
        } else {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = after;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn paths() {
        let value = serde_json::json!({ "a": { "b": [10, { "c": "x" }] } });
        for (path, found) in
            [("$.a.b[0]", Some("10")), ("$.a.b[1].c", Some("\"x\"")), ("$.a.b[2]", None), ("$.nope", None)]
        {
            let path: Path = path.parse().unwrap();
            assert_eq!(path.get(&value).map(ToString::to_string).as_deref(), found, "{path}");
        }
        for bad in ["", "a.b", "$a", "$.", "$..a", "$[x]", "$[1", "$.a["] {
            assert!(bad.parse::<Path>().is_err(), "{bad}");
        }
    }
}
