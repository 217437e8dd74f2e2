//! Where things stand in a JSON file, so that a piece can be put in or taken out while every other byte stays.
//!
//! Files of settings are written by hand: comments, trailing commas, a byte order mark and any kind of line end are taken
//! as they are.

use serde_json::Value;

/// Deeper than any settings.
const DEEPEST: usize = 64;

/// A value and where it stands, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

/// What a value is, as far as it is needed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Plain,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) start: usize,
    pub(super) value: Node,
}

impl Node {
    /// The member of this name that counts: of several, programs take the last.
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        match &self.kind {
            Kind::Object(members) => members.iter().rfind(|member| member.key == key),
            Kind::Array(_) | Kind::Plain => None,
        }
    }

    /// Where each child stands.
    pub(super) fn children(&self) -> Vec<(usize, usize)> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|member| (member.start, member.value.end)).collect(),
            Kind::Array(items) => items.iter().map(|item| (item.start, item.end)).collect(),
            Kind::Plain => Vec::new(),
        }
    }

    /// The value itself, without comments.
    pub(super) fn value(&self, text: &str) -> Value {
        match &self.kind {
            Kind::Object(members) => {
                members.iter().map(|member| (member.key.clone(), member.value.value(text))).collect()
            }
            Kind::Array(items) => items.iter().map(|item| item.value(text)).collect(),
            Kind::Plain => text
                .get(self.start..self.end)
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default(),
        }
    }
}

/// The one value of a file. An error says what is wrong where.
pub(super) fn parse(text: &str) -> Result<Node, String> {
    let mut parser = Parser { text, at: 0 };
    if text.starts_with('\u{feff}') {
        parser.at = '\u{feff}'.len_utf8();
    }
    parser.skip()?;
    let node = parser.value(0)?;
    parser.skip()?;
    if parser.at < text.len() { Err(parser.wrong("something follows the value")) } else { Ok(node) }
}

/// The first place at or after `at` that is neither blank nor in a comment. The text is one that could be parsed.
pub(super) fn next_token(text: &str, at: usize) -> usize {
    let mut parser = Parser { text, at };
    let _ = parser.skip();
    parser.at
}

/// The end of a comment that begins on the line of `at`, with nothing but blanks before it; else `at` itself.
pub(super) fn end_of_remark(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let remark = &rest[blanks..];
    if remark.starts_with("//") {
        let line = remark.find(['\n', '\r']).unwrap_or(remark.len());
        return at + blanks + line;
    }
    match remark.strip_prefix("/*").and_then(|inner| inner.find("*/")) {
        Some(length) => at + blanks + length + 4,
        None => at,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self, what: &str) -> String {
        let before = &self.text[..self.text.floor_char_boundary(self.at)];
        let line = before.matches('\n').count() + 1;
        format!("line {line}: {what}")
    }

    /// Passes blanks and comments.
    fn skip(&mut self) -> Result<(), String> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            if blank > 0 {
                self.at += blank;
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(inner) = rest.strip_prefix("/*") {
                let Some(length) = inner.find("*/") else { return Err(self.wrong("a comment has no end")) };
                self.at += length + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, String> {
        if depth > DEEPEST {
            return Err(self.wrong("it is nested too deeply"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.object(depth)?),
            Some(b'[') => Kind::Array(self.array(depth)?),
            Some(b'"') => {
                self.string()?;
                Kind::Plain
            }
            Some(_) => {
                let rest = &self.text[self.at..];
                let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                if length == 0 || serde_json::from_str::<Value>(&rest[..length]).is_err() {
                    return Err(self.wrong("there is no value here"));
                }
                self.at += length;
                Kind::Plain
            }
            None => return Err(self.wrong("it ends in the middle")),
        };
        Ok(Node { start, end: self.at, kind })
    }

    fn string(&mut self) -> Result<String, String> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a name is missing"));
        }
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => return Err(self.wrong("a text has no end")),
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        let string = self.text.get(start..self.at).and_then(|text| serde_json::from_str(text).ok());
        string.ok_or_else(|| self.wrong("a text is not written as JSON wants it"))
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Member>, String> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.close(b'}') {
                return Ok(members);
            }
            let start = self.at;
            let key = self.string()?;
            self.skip()?;
            if !self.close(b':') {
                return Err(self.wrong("a colon is missing"));
            }
            self.skip()?;
            let value = self.value(depth + 1)?;
            members.push(Member { key, start, value });
            if self.comma_or(b'}')? {
                return Ok(members);
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Node>, String> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.close(b']') {
                return Ok(items);
            }
            items.push(self.value(depth + 1)?);
            if self.comma_or(b']')? {
                return Ok(items);
            }
        }
    }

    fn close(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    /// Passes what stands between two children; true at the end.
    fn comma_or(&mut self, end: u8) -> Result<bool, String> {
        self.skip()?;
        if self.close(b',') {
            return Ok(false);
        }
        if self.close(end) { Ok(true) } else { Err(self.wrong("a comma or an end is missing")) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_as_people_write_them() {
        let text = "\u{feff}// mine\r\n{ /* a */ \"a\": [1, -2.5e3, \"x\\\"y\",], // b\r\n \"b\": {\"c\": null},\r\n}\r\n";
        let node = parse(text).unwrap();
        assert_eq!(node.value(text), json!({ "a": [1, -2.5e3, "x\"y"], "b": { "c": null } }));
        let twice = "{\"a\":1,\"a\":2}";
        assert_eq!(parse(twice).unwrap().member("a").unwrap().value.value(twice), json!(2));
    }

    #[test]
    fn what_is_broken_is_said_with_its_line() {
        for (text, wrong) in [
            ("", "line 1: it ends in the middle"),
            ("{\n \"a\": 1\n \"b\": 2}", "line 3: a comma or an end is missing"),
            ("{\"a\": tru}", "line 1: there is no value here"),
            ("{a: 1}", "line 1: a name is missing"),
            ("{} x", "line 1: something follows the value"),
            ("{ /* ", "line 1: a comment has no end"),
            ("{\"a", "line 1: a text has no end"),
            ("{\"\\q\": 1}", "line 1: a text is not written as JSON wants it"),
        ] {
            assert_eq!(parse(text).unwrap_err(), wrong, "{text}");
        }
        assert!(parse(&"[".repeat(100)).unwrap_err().contains("too deeply"));
        assert!(parse("{\"a\\").is_err() && parse("\u{e9}").is_err());
    }
}
