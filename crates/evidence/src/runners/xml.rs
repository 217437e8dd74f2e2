//! As much of XML as a test report needs: tags and their attributes, without comments and raw text.

/// A tag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tag<'a> {
    /// `<name a="b">`, or `<name a="b"/>`, which is closed at once.
    Open { name: &'a str, attributes: &'a str, closed: bool },
    /// `</name>`.
    Close { name: &'a str },
}

/// The tags of a document, in their order.
pub(crate) struct Tags<'a> {
    rest: &'a str,
}

impl<'a> Tags<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Whether a first element was opened, and everything that was opened is closed.
    pub(crate) fn is_closed(&self) -> bool {
        let (mut depth, mut any) = (0_i64, false);
        for tag in Tags::new(self.rest) {
            any = true;
            match tag {
                Tag::Open { closed, .. } => depth += i64::from(!closed),
                Tag::Close { .. } => depth -= 1,
            }
        }
        any && depth == 0
    }

    fn skip_past(&mut self, end: &str) {
        self.rest = self.rest.find(end).and_then(|at| self.rest.get(at + end.len()..)).unwrap_or("");
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            self.rest = &self.rest[self.rest.find('<')?..];
            for (start, end) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")] {
                if self.rest.starts_with(start) {
                    self.skip_past(end);
                    break;
                }
            }
            if !self.rest.starts_with('<') || self.rest.starts_with("<!") || self.rest.starts_with("<?") {
                continue;
            }
            let end = tag_end(self.rest)?;
            let inside = &self.rest[1..end];
            self.rest = &self.rest[end + 1..];
            if let Some(name) = inside.strip_prefix('/') {
                return Some(Tag::Close { name: name.trim() });
            }
            let (inside, closed) = inside.strip_suffix('/').map_or((inside, false), |inside| (inside, true));
            let name_end = inside.find(char::is_whitespace).unwrap_or(inside.len());
            return Some(Tag::Open { name: &inside[..name_end], attributes: &inside[name_end..], closed });
        }
    }
}

/// Where the tag at the beginning ends: at a `>` that is not in a value.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, b) in text.bytes().enumerate() {
        match quote {
            Some(open) if b == open => quote = None,
            Some(_) => {}
            None if b == b'"' || b == b'\'' => quote = Some(b),
            None if b == b'>' => return Some(at),
            None => {}
        }
    }
    None
}

/// The value of an attribute, with its entities resolved.
pub(crate) fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start();
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| *c == '"' || *c == '\'')?;
        let (value, after) = after.get(1..)?.split_once(quote)?;
        if key.trim() == name {
            return Some(unescape(value));
        }
        rest = after;
    }
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = rest.find(';').and_then(|end| Some((rest.get(1..end)?, end)));
        match entity.and_then(|(entity, end)| Some((character(entity)?, end))) {
            Some((c, end)) => {
                plain.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                plain.push('&');
                rest = &rest[1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn character(entity: &str) -> Option<char> {
    Some(match entity {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_without_what_is_only_text() {
        let text = "<?xml version='1.0'?><!-- <a> --><r x=\"1 > 0\"><![CDATA[</r><b>]]>t<c y='&lt;&#65;&#x42;&no;&'/></r>";
        let tags: Vec<Tag<'_>> = Tags::new(text).collect();
        assert_eq!(
            tags,
            [
                Tag::Open { name: "r", attributes: " x=\"1 > 0\"", closed: false },
                Tag::Open { name: "c", attributes: " y='&lt;&#65;&#x42;&no;&'", closed: true },
                Tag::Close { name: "r" },
            ]
        );
        assert!(Tags::new(text).is_closed());
        assert!(!Tags::new("<a><b/>").is_closed() && !Tags::new("").is_closed());
        assert_eq!(attribute(" a='1' y='&lt;&#65;&#x42;&no;&'", "y").as_deref(), Some("<AB&no;&"));
        assert_eq!(attribute(" a b", "a"), None);
        for broken in ["<", "<a", "<!", "<!--", "<![CDATA[", "<?", "</", "<a b='", "<é>"] {
            let _ = Tags::new(broken).count();
        }
    }
}
