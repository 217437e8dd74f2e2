//! What a document has that another one has not, read without keeping the rest of it.

use std::fmt;

use serde::Deserializer;
use serde::de::DeserializeSeed;
use serde::de::IgnoredAny;

use super::Node;

impl Node {
    /// What [`Self::adopt`] would take from a JSON document: members that `ours` has not, at its top and in the named inner
    /// objects. All that is known is passed over, so that a large document costs little. None if it is no JSON object.
    pub(crate) fn beyond(bytes: &[u8], ours: &Self, inner: &[&str]) -> Option<Self> {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let found = Beyond { ours, inner }.deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        found
    }
}

/// The members of a document that another one has not.
struct Beyond<'a> {
    ours: &'a Node,
    inner: &'a [&'a str],
}

impl<'de> DeserializeSeed<'de> for Beyond<'_> {
    type Value = Option<Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Node>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> serde::de::Visitor<'de> for Beyond<'_> {
    type Value = Option<Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document")
    }
    fn visit_unit<E>(self) -> Result<Option<Node>, E> {
        Ok(None)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Option<Node>, E> {
        Ok(None)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Option<Node>, E> {
        Ok(None)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Option<Node>, E> {
        Ok(None)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Option<Node>, E> {
        Ok(None)
    }
    fn visit_str<E>(self, _: &str) -> Result<Option<Node>, E> {
        Ok(None)
    }
    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Option<Node>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<Option<Node>, A::Error> {
        let mut found: Vec<(String, Node)> = Vec::new();
        while let Some(name) = members.next_key::<String>()? {
            let member = match self.ours.member(&name) {
                None => Some(members.next_value()?),
                Some(known) if self.inner.contains(&name.as_str()) => {
                    members.next_value_seed(Beyond { ours: known, inner: &[] })?
                }
                Some(_) => {
                    members.next_value::<IgnoredAny>()?;
                    None
                }
            };
            let Some(member) = member else { continue };
            // Whoever writes a member twice means the last one.
            match found.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = member,
                None => found.push((name, member)),
            }
        }
        Ok(Some(Node::Map(found)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Node;

    /// What is passed over is what would not have been taken.
    #[test]
    fn what_lies_beyond_is_what_is_taken() {
        let ours =
            Node::of(&json!({ "a": 1, "in": { "b": 2, "deep": { "c": 3 } }, "list": [1], "gone": {} }));
        let all = [
            json!({ "a": 2, "in": { "b": 3, "new": { "x": [1, null] }, "deep": { "theirs": 1 } }, "list": [1, 2], "z": -1.5 }),
            json!({ "in": 7, "gone": { "x": 1 }, "list": { "y": true } }),
            json!({ "in": { "new": 1 }, "gone": null, "first": "text" }),
            json!([1, 2]),
            json!("text"),
            json!({}),
        ];
        for theirs in all {
            let bytes = serde_json::to_vec_pretty(&theirs).unwrap();
            let (mut whole, mut less) = (ours.clone(), ours.clone());
            whole.adopt(&Node::read_json(&bytes).unwrap(), &["in", "gone"]);
            if let Some(beyond) = Node::beyond(&bytes, &ours, &["in", "gone"]) {
                less.adopt(&beyond, &["in", "gone"]);
            }
            assert_eq!(less, whole, "{theirs}");
        }
        let twice = br#"{"new": 1, "new": 2}"#;
        assert_eq!(Node::beyond(twice, &ours, &[]), Some(Node::of(&json!({ "new": 2 }))));
        assert_eq!(Node::beyond(b"{\"new\": 1} x", &ours, &[]), None);
        assert_eq!(Node::beyond(b"{\"new\": ", &ours, &[]), None);
    }
}
