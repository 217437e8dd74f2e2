//! A document whose members keep their order, as YAML as a person would write it (block style, plain words unquoted,
//! long text folded) and as indented JSON.

mod beyond;
mod of;
mod yaml;

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::ser::SerializeMap as _;
use serde_json::Value;

pub use yaml::name_of_rows;
pub use yaml::row;
pub use yaml::to_yaml;
pub use yaml::to_yaml_with_quoted_moments;

/// A document to be written, its members in the order they are shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Named members.
    Map(Vec<(String, Node)>),
}

/// Members that come first, in this order, wherever they occur; others follow by name.
fn rank(name: &str) -> u8 {
    match name {
        "id" => 0,
        "task" => 1,
        "decision" => 2,
        "call" => 3,
        "name" => 4,
        "path" => 5,
        "timestamp" => 6,
        "action" => 7,
        "tool" => 8,
        "state" => 9,
        "check" => 10,
        "verdict" => 11,
        "question" => 12,
        "choice" => 13,
        "reason" => 14,
        "kind" => 15,
        "artifact_type" => 16,
        "change" => 17,
        "message" => 18,
        _ => 19,
    }
}

impl From<Value> for Node {
    /// From JSON; members that are null are left out.
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                let present = members.into_iter().filter(|(_, member)| !member.is_null());
                let mut named: Vec<(String, Self)> =
                    present.map(|(name, member)| (name, Self::from(member))).collect();
                named.sort_by(|(a, _), (b, _)| (rank(a), a).cmp(&(rank(b), b)));
                Self::Map(named)
            }
        }
    }
}

impl Node {
    /// A document as it was written, with all of its members in their order.
    ///
    /// # Errors
    /// If it is no JSON.
    pub fn read_json(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// What a value is written as, with all of its members in their order.
    pub fn of(value: &impl Serialize) -> Self {
        // Everything that is given to it has texts for names, and is written without an error.
        of::node(value).unwrap_or(Self::Null)
    }

    /// The member of that name.
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(members) => members.iter().find(|(known, _)| known == name).map(|(_, member)| member),
            _ => None,
        }
    }

    /// The document as indented JSON, with a line break at its end.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = serde_json::to_vec_pretty(self).unwrap_or_default();
        out.push(b'\n');
        out
    }

    /// Writes the document as JSON in one line, members by name and without those at its top that are not wanted: the same
    /// for documents that differ in order and layout only.
    pub(crate) fn write_canonical(&self, out: &mut Vec<u8>, is_wanted: &dyn Fn(&str) -> bool) {
        match self {
            Self::Null => out.extend(b"null"),
            Self::Bool(flag) => out.extend(if *flag { b"true".as_slice() } else { b"false" }),
            Self::Number(number) => match number.parse::<serde_json::Number>() {
                Ok(number) => out.extend(number.to_string().as_bytes()),
                Err(_) => write_text(out, number),
            },
            Self::Text(text) => write_text(out, text),
            Self::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write_canonical(out, &|_| true);
                }
                out.push(b']');
            }
            Self::Map(members) => {
                let wanted = members.iter().filter(|(name, _)| is_wanted(name));
                let mut wanted: Vec<&(String, Self)> = wanted.collect();
                wanted.sort_by(|(a, _), (b, _)| a.cmp(b));
                out.push(b'{');
                for (index, (name, member)) in wanted.into_iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_text(out, name);
                    out.push(b':');
                    member.write_canonical(out, &|_| true);
                }
                out.push(b'}');
            }
        }
    }

    /// Members that only the other one has are taken over, here and in those inner objects that are named: what is in
    /// any other member is ours alone.
    pub fn adopt(&mut self, other: &Self, inner: &[&str]) {
        let (Self::Map(ours), Self::Map(theirs)) = (self, other) else { return };
        for (name, member) in theirs {
            match ours.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) if inner.contains(&name.as_str()) => known.adopt(member, &[]),
                Some(_) => {}
                None => ours.push((name.clone(), member.clone())),
            }
        }
    }
}

/// A text as it stands in JSON.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            // A number is kept as it was written; one that is none is text.
            Self::Number(number) => match number.parse::<serde_json::Number>() {
                Ok(number) => number.serialize(serializer),
                Err(_) => serializer.serialize_str(number),
            },
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, member) in members {
                    map.serialize_entry(name, member)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Node;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a document")
            }
            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }
            fn visit_none<E>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }
            fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Node, D::Error> {
                Node::deserialize(inner)
            }
            fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
                Ok(Node::Bool(flag))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
                Ok(Node::Number(number.to_string()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
                Ok(Node::Number(number.to_string()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
                Ok(serde_json::Number::from_f64(number).map_or(Node::Null, |n| Node::Number(n.to_string())))
            }
            fn visit_str<E>(self, text: &str) -> Result<Node, E> {
                Ok(Node::Text(text.to_owned()))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Node::List(list))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
                let mut map: Vec<(String, Node)> = Vec::new();
                while let Some((name, member)) = members.next_entry::<String, Node>()? {
                    // Whoever writes a member twice means the last one.
                    match map.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, known)) => *known = member,
                        None => map.push((name, member)),
                    }
                }
                Ok(Node::Map(map))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
