//! Redaction of JSON values, where a member's name says what its value is.

use serde_json::Map;
use serde_json::Value;

use crate::guess;
use crate::names::Promise;
use crate::names::{self};
use crate::redactor::Redactor;
use crate::tag;

/// The rule id of a value that only its member's name gives away.
const MEMBER: &str = "named-member";

impl Redactor {
    /// Replaces the secrets in all strings of the value, names of members included; says whether anything changed.
    ///
    /// A member whose name promises a secret loses its value even when no pattern knows it, unless that is a
    /// placeholder. The shape of the value stays.
    pub fn json(&self, value: &mut Value) -> bool {
        self.walk(value, None)
    }

    fn walk(&self, value: &mut Value, promise: Option<Promise>) -> bool {
        match value {
            Value::String(text) => self.string(text, promise),
            // A list under a secret's name is a list of secrets.
            Value::Array(items) => {
                items.iter_mut().fold(false, |changed, item| self.walk(item, promise) | changed)
            }
            Value::Object(members) => self.members(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn members(&self, members: &mut Map<String, Value>) -> bool {
        let pair = paired(members).and_then(|(name, slot)| Some((names::promise(name)?, slot)));
        let mut changed = false;
        let mut renamed = Vec::new();
        for (name, value) in members.iter_mut() {
            let promise = match pair {
                Some((promise, slot)) if slot == name => Some(promise),
                _ => names::promise(name),
            };
            changed |= self.walk(value, promise);
            if let std::borrow::Cow::Owned(new) = self.text(name) {
                renamed.push((name.clone(), new));
            }
        }
        for (old, new) in renamed {
            if let Some(value) = members.remove(&old) {
                members.insert(new, value);
                changed = true;
            }
        }
        changed
    }

    fn string(&self, text: &mut String, promise: Option<Promise>) -> bool {
        if let std::borrow::Cow::Owned(new) = self.text(text) {
            *text = new;
            return true;
        }
        if promise.is_some_and(|promise| secret_member(text, promise)) {
            *text = self.tag_for(MEMBER, text);
            return true;
        }
        false
    }
}

fn secret_member(text: &str, promise: Promise) -> bool {
    if tag::present(text) || guess::placeholder(text) {
        return false;
    }
    match promise {
        Promise::Password => text.len() >= 4 && !text.contains(char::is_whitespace),
        // Header values have a scheme before the secret.
        Promise::Token => text.len() >= 8 && text.split_whitespace().count() <= 2,
        Promise::Key => guess::token(text, true),
        Promise::Perhaps => guess::random(text, true),
        Promise::Short => guess::told_password(text, true),
    }
}

/// `{"name": "DB_PASSWORD", "value": "…"}`: the name and the member that holds what it names.
fn paired(members: &Map<String, Value>) -> Option<(&str, &'static str)> {
    if members.len() > 6 {
        return None;
    }
    let name = ["name", "key", "Name", "Key"].iter().find_map(|key| members.get(*key)?.as_str())?;
    let slot = ["value", "Value"].into_iter().find(|key| members.get(*key).is_some_and(Value::is_string))?;
    Some((name, slot))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Options;
    use crate::Redactor;

    #[test]
    fn names_give_values_away() {
        let redactor = Redactor::new(Options::default());
        let mut value = json!({
            "password": "hunter2!", "token_count": 12345, "max_tokens": "4096", "key": "ArrowDown",
            "public_key": "ssh-ed25519 AAAA", "pwd": "/home/ann/work2", "pass": "yes", "monkey": "see monkey do", "api_key": "${API_KEY}",
            "env": [{"name": "DB_PASSWORD", "value": "swordfish"}, {"name": "EDITOR", "value": "vi"}],
            "headers": {"authorization": "Custom q8zt4lm2pw"},
        });
        let before = value.clone();
        assert!(redactor.json(&mut value));
        assert!(!redactor.json(&mut value.clone()), "a second pass changes nothing");
        for kept in ["token_count", "max_tokens", "key", "public_key", "monkey", "api_key", "pwd", "pass"] {
            assert_eq!(value[kept], before[kept], "{kept}");
        }
        assert_eq!(value["env"][1], before["env"][1]);
        for gone in [&value["password"], &value["env"][0]["value"], &value["headers"]["authorization"]] {
            assert!(gone.as_str().unwrap().starts_with("[redacted:named-member:"), "{gone}");
        }
    }
}
