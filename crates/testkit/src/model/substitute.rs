//! `${last:REGEX}` in what the model says.

use regex::Regex;
use serde_json::Value;

use super::op::Op;
use super::query::Query;

/// The same op with every reference to the conversation filled in.
pub(super) fn substitute(op: &Op, query: &Query) -> Result<Op, String> {
    let mut value = serde_json::to_value(op).map_err(|error| error.to_string())?;
    fill(&mut value, &query.conversation)?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn fill(value: &mut Value, conversation: &str) -> Result<(), String> {
    match value {
        Value::Array(list) => list.iter_mut().try_for_each(|item| fill(item, conversation)),
        Value::Object(fields) => fields.values_mut().try_for_each(|item| fill(item, conversation)),
        Value::String(text) => {
            if let Some(number) = whole_number(text, conversation)? {
                *value = number;
            } else if text.contains(LAST) {
                *text = fill_text(text, conversation)?;
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

const LAST: &str = "${last:";
const LAST_INT: &str = "${last_int:";

/// The number that a text of nothing but `${last_int:…}` stands for.
fn whole_number(text: &str, conversation: &str) -> Result<Option<Value>, String> {
    let Some(rest) = text.strip_prefix(LAST_INT) else { return Ok(None) };
    let Some(end) = closing(rest).filter(|end| end + 1 == rest.len()) else { return Ok(None) };
    let found = last_match(&rest[..end], conversation)?;
    let number: i64 = found.parse().map_err(|_| format!("{text}: {found:?} is no number"))?;
    Ok(Some(number.into()))
}

fn fill_text(text: &str, conversation: &str) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(LAST) {
        let end = closing(after).ok_or_else(|| format!("{text}: no closing brace"))?;
        filled.push_str(before);
        filled.push_str(&last_match(&after[..end], conversation)?);
        rest = &after[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Where the brace closes that was opened before `text`; expressions may hold braces of their own.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn last_match(pattern: &str, conversation: &str) -> Result<String, String> {
    let regex = Regex::new(pattern).map_err(|error| error.to_string())?;
    let found = regex.captures_iter(conversation).last().ok_or_else(|| {
        format!("{pattern:?} matches nothing in a conversation of {} bytes", conversation.len())
    })?;
    let group = found.get(1).or_else(|| found.get(0));
    Ok(group.map_or_else(String::new, |group| group.as_str().to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(mut value: Value) -> Result<Value, String> {
        fill(&mut value, "id=7 x{2}\nid=42 name:ab\n").map(|()| value)
    }

    #[test]
    fn references() {
        assert_eq!(filled(json!("kill ${last:id=(\\d+)}!")), Ok(json!("kill 42!")));
        assert_eq!(filled(json!({"n": ["${last_int:id=(\\d+)}"]})), Ok(json!({"n": [42]})));
        assert_eq!(filled(json!("${last:na[a-z]{2}}:${last:x\\{\\d\\}}")), Ok(json!("name:x{2}")));
        assert_eq!(filled(json!("${HOME} stays")), Ok(json!("${HOME} stays")));
        assert!(filled(json!("${last:nowhere}")).is_err());
        assert!(filled(json!("${last:(}")).is_err());
        assert!(filled(json!("${last:open")).is_err());
    }
}
