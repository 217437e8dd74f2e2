//! Reading objects of which a part has another shape than it should: the rest still counts.

use serde::de::DeserializeOwned;
use serde_json::Map;
use serde_json::Value;

use crate::event::AgentEvent;

/// Reads an object. A member of the wrong type counts as missing, and its name is added to `wrong`. `None` if it is no
/// object at all, or is nested too deeply to be taken apart.
pub(crate) fn read<T: DeserializeOwned>(json: &str, wrong: &mut Vec<String>) -> Option<T> {
    if let Ok(whole) = serde_json::from_str(json) {
        return Some(whole);
    }
    let Value::Object(members) = serde_json::from_str(json).ok()? else { return None };
    let fits = |value: Value| read_value::<T>(&value).is_some();
    let kept = sift(members, "", &fits, wrong);
    read_value(&Value::Object(kept))
}

/// What to tell of members that were left out, if any were.
pub(crate) fn notice(wrong: &mut Vec<String>) -> Option<AgentEvent> {
    if wrong.is_empty() {
        return None;
    }
    let names = std::mem::take(wrong).join(", ");
    let text = format!("not of the type it should be, and left out: {names}");
    Some(AgentEvent::Notice { level: "warning".to_owned(), text })
}

/// Through text, because members that are kept as they came can only be read from that.
fn read_value<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_str(&value.to_string()).ok()
}

/// The members that fit, each looked at alone; of objects and lists that do not fit, the parts that do.
fn sift(
    members: Map<String, Value>,
    path: &str,
    fits: &dyn Fn(Value) -> bool,
    wrong: &mut Vec<String>,
) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in members {
        let fits_here = |value: Value| fits(Value::Object(Map::from_iter([(name.clone(), value)])));
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if fits_here(value.clone()) {
            kept.insert(name, value);
            continue;
        }
        let part = match value {
            Value::Object(inner) => {
                let inner = Value::Object(sift(inner, &path, &fits_here, wrong));
                fits_here(inner.clone()).then_some(inner)
            }
            Value::Array(items) => {
                wrong.push(path.clone());
                let fit = items.into_iter().filter(|item| fits_here(Value::Array(vec![item.clone()])));
                let fit = Value::Array(fit.collect());
                fits_here(fit.clone()).then_some(fit)
            }
            _ => None,
        };
        match part {
            Some(part) => {
                kept.insert(name, part);
            }
            None if wrong.last() != Some(&path) => wrong.push(path),
            None => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::raw::Raw;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Outer {
        name: Option<String>,
        count: u64,
        raw: Option<Raw>,
        inner: Inner,
        list: Vec<Inner>,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Inner {
        a: u64,
        b: Option<String>,
    }

    #[test]
    fn what_has_another_type_is_left_out_and_named() {
        let json = r#"{"name":"x","count":"eight","raw":{"k":[1]},"inner":{"a":{},"b":"kept"},
            "list":[{"a":1},{"a":"no"},{"a":3}],"more":true}"#;
        let mut wrong = Vec::new();
        let read: Outer = read(json, &mut wrong).unwrap();
        assert_eq!((read.name.as_deref(), read.count), (Some("x"), 0));
        assert_eq!(read.raw.unwrap().get(), r#"{"k":[1]}"#);
        assert_eq!((read.inner.a, read.inner.b.as_deref()), (0, Some("kept")));
        assert_eq!(read.list.iter().map(|item| item.a).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(wrong, ["count", "inner.a", "list"]);
        assert!(
            matches!(notice(&mut wrong), Some(AgentEvent::Notice { text, .. }) if text.ends_with("inner.a, list"))
        );
        assert_eq!(notice(&mut wrong), None);
    }

    #[test]
    fn what_is_no_object_is_nothing() {
        for json in ["[1]", "7", "{", "\"x\""] {
            let mut wrong = Vec::new();
            assert!(read::<Outer>(json, &mut wrong).is_none() && wrong.is_empty(), "{json}");
        }
    }
}
