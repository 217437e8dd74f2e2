//! A document whose members keep their order, as YAML as a person would write it (block style, plain words unquoted,
//! long text folded) and as indented JSON.

use std::fmt;
use std::fmt::Write;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::ser::SerializeMap as _;
use serde_json::Value;

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
const FIRST: &[&str] = &[
    "id",
    "task",
    "decision",
    "call",
    "name",
    "path",
    "timestamp",
    "action",
    "tool",
    "state",
    "check",
    "verdict",
    "question",
    "choice",
    "reason",
    "kind",
    "artifact_type",
    "change",
    "message",
];

/// Lines of folded text are at most about this long.
const WIDTH: usize = 100;

impl Node {
    /// From JSON; members that are null are left out.
    pub fn from_json(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Value::Object(members) => {
                let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
                let mut named: Vec<(usize, &String, &Value)> = members
                    .iter()
                    .filter(|(_, member)| !member.is_null())
                    .map(|(name, member)| (rank(name), name, member))
                    .collect();
                named.sort_unstable_by(|(a, a_name, _), (b, b_name, _)| (a, a_name).cmp(&(b, b_name)));
                let named = named.into_iter();
                Self::Map(named.map(|(_, name, member)| (name.clone(), Self::from_json(member))).collect())
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
        let text = serde_json::to_vec(value).unwrap_or_default();
        // What was written a moment ago can be read.
        serde_json::from_slice(&text).unwrap_or(Self::Null)
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

    /// The document as JSON in one line, members by name and without those at its top that are not wanted: the same for
    /// documents that differ in order and layout only.
    pub(crate) fn canonical(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_canonical(&mut out, is_wanted);
        out
    }

    fn write_canonical(&self, out: &mut Vec<u8>, is_wanted: &dyn Fn(&str) -> bool) {
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

/// The document as YAML text.
pub fn to_yaml(node: &Node) -> String {
    let mut out = String::new();
    match node {
        Node::Map(members) if !members.is_empty() => map(&mut out, members, 0, false),
        Node::List(items) if !items.is_empty() => list(&mut out, items, 0),
        other => {
            scalar(&mut out, other, 0);
            out.push('\n');
        }
    }
    out
}

/// One row of a list that is a member of a document.
pub fn row(item: &Node) -> String {
    let mut out = String::new();
    list(&mut out, std::slice::from_ref(item), 1);
    out
}

/// The name that such rows stand under; one that none follow is an empty list.
pub fn name_of_rows(name: &str, is_empty: bool) -> String {
    let mut out = String::new();
    key(&mut out, name, 0);
    out.push_str(if is_empty { ": []\n" } else { ":\n" });
    out
}

fn map(out: &mut String, members: &[(String, Node)], depth: usize, mut started: bool) {
    for (name, member) in members {
        if !started {
            indent(out, depth);
        }
        started = false;
        key(out, name, depth);
        out.push(':');
        match member {
            Node::Map(inner) if !inner.is_empty() => {
                out.push('\n');
                map(out, inner, depth + 1, false);
            }
            Node::List(items) if !items.is_empty() => {
                out.push('\n');
                list(out, items, depth + 1);
            }
            other => {
                out.push(' ');
                scalar(out, other, depth + 1);
                out.push('\n');
            }
        }
    }
}

fn list(out: &mut String, items: &[Node], depth: usize) {
    for item in items {
        indent(out, depth);
        out.push_str("- ");
        match item {
            Node::Map(inner) if !inner.is_empty() => map(out, inner, depth + 1, true),
            Node::List(inner) if !inner.is_empty() => {
                // A list in a list starts on the line below its dash.
                out.pop();
                out.push('\n');
                list(out, inner, depth + 1);
            }
            other => {
                scalar(out, other, depth + 1);
                out.push('\n');
            }
        }
    }
}

fn indent(out: &mut String, depth: usize) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// Names longer than this, as they are written, are no simple keys any more and stand on a line of their own.
const SIMPLE_KEY: usize = 1_000;

fn key(out: &mut String, name: &str, depth: usize) {
    if is_plain(name) && name.len() <= WIDTH {
        out.push_str(name);
        return;
    }
    let mut written = String::new();
    quoted(&mut written, name);
    if written.chars().count() <= SIMPLE_KEY {
        out.push_str(&written);
    } else {
        out.push_str("? ");
        out.push_str(&written);
        out.push('\n');
        indent(out, depth);
    }
}

fn scalar(out: &mut String, node: &Node, depth: usize) {
    match node {
        Node::Null => out.push_str("null"),
        Node::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Node::Number(number) => out.push_str(number),
        Node::Text(text) => text_scalar(out, text, depth),
        Node::List(_) => out.push_str("[]"),
        Node::Map(_) => out.push_str("{}"),
    }
}

fn text_scalar(out: &mut String, text: &str, depth: usize) {
    if is_plain(text) && text.len() <= WIDTH {
        out.push_str(text);
    } else if can_be_block(text) && text.contains('\n') {
        literal(out, text, depth);
    } else if can_be_block(text) && text.len() > WIDTH && can_fold(text) {
        fold(out, text, depth);
    } else {
        quoted(out, text);
    }
}

/// Words that need no quotes and mean nothing else in any version of YAML.
fn is_plain(text: &str) -> bool {
    let safe = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '_' | '-' | '.' | '/' | ' ' | '+' | '@' | ',' | '(' | ')' | '=' | '~')
    };
    let Some(first) = text.chars().next() else { return false };
    if !(first.is_ascii_alphabetic() || first == '_' || first == '/') || text.ends_with(' ') {
        return is_moment(text);
    }
    let lower = text.to_ascii_lowercase();
    let special = matches!(
        lower.as_str(),
        "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "nan" | "inf" | "infinity"
    );
    text.chars().all(safe) && !special
}

/// Our own timestamps are readable without quotes.
fn is_moment(text: &str) -> bool {
    text.len() == 27 && text.ends_with('Z') && text.parse::<segno_core::Timestamp>().is_ok()
}

/// Block text takes any printable characters, but its lines may not begin with a space or end in one.
fn can_be_block(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || is_printable(c))
        && !text.starts_with(['\n', ' '])
        && text.split('\n').all(|line| !line.starts_with(' ') || !line.trim().is_empty())
        && text.split('\n').all(|line| !line.ends_with(' '))
        && !text.lines().next().unwrap_or("").starts_with(' ')
}

/// What YAML lets stand as it is, but for what some readers take for a line's end or for nothing.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Folding turns single spaces into line breaks; text with other spacing would come back changed.
fn can_fold(text: &str) -> bool {
    !text.contains("  ") && !text.contains('\t') && text.contains(' ') && !text.ends_with(' ')
}

fn literal(out: &mut String, text: &str, depth: usize) {
    // The mark after the bar says how many line breaks end the text.
    let ends = text.len() - text.trim_end_matches('\n').len();
    out.push_str(match ends {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    let body = if ends == 0 { text } else { &text[..text.len() - 1] };
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            indent(out, depth.max(1));
            out.push_str(line);
        }
    }
}

fn fold(out: &mut String, text: &str, depth: usize) {
    out.push_str(">-");
    let mut width = usize::MAX;
    for word in text.split(' ') {
        if width.saturating_add(word.len() + 1) > WIDTH {
            out.push('\n');
            indent(out, depth.max(1));
            width = 0;
        } else {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += word.chars().count();
    }
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| matches!(c, '"' | '\\') || !is_printable(c)) {
        out.push_str(&rest[..at]);
        let Some(c) = rest[at..].chars().next() else { break };
        rest = &rest[at + c.len_utf8()..];
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c => {
                let code = u32::from(c);
                // Writing to a string cannot fail.
                let _ =
                    if code <= 0xff { write!(out, "\\x{code:02x}") } else { write!(out, "\\u{code:04x}") };
            }
        }
    }
    out.push_str(rest);
    out.push('"');
}
