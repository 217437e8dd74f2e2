//! Finding the value that a name is given: `name = "value"`, `name: value`, `<name>value</name>`,
//! `set("name", "value")`, `--name value` and their relatives.
//!
//! Written by hand because the name rules share it: one regex per service would make large automata that search the
//! same text again and again.

use std::ops::Range;

/// A value and how it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assigned {
    /// The whole name, as far as it is one word.
    pub(crate) name: Range<usize>,
    /// The value without quotes.
    pub(crate) value: Range<usize>,
    /// Whether the value stood in quotes.
    pub(crate) quoted: bool,
    /// What joins name and value.
    pub(crate) sign: Sign,
}

/// What joins name and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// `=` and its relatives.
    Equals,
    /// `:` or `=>`.
    Colon,
    /// `,` as between two arguments.
    Comma,
    /// `>` after a tag name.
    Angle,
    /// `(` before a quoted argument: `password("value")`.
    Call,
    /// Only white space after a command line option.
    Space,
    /// Only white space between two words.
    Word,
}

const NAME_MOST: usize = 48;
/// Longer than any token that is known by its name; bounds the work on text that is full of names.
const VALUE_MOST: usize = 2048;

/// The value assigned to the name around `keyword`.
pub(crate) fn assigned(text: &[u8], keyword: Range<usize>) -> Option<Assigned> {
    // The first letter of a word of another alphabet is not part of its keyword.
    let foreign = text[keyword.clone()].iter().any(|b| !b.is_ascii());
    let named = |b: &&u8| in_name(**b) || foreign && !b.is_ascii();
    let back = text[..keyword.start].iter().rev().take(NAME_MOST).take_while(named).count();
    let ahead = text[keyword.end..].iter().take(NAME_MOST).take_while(|b| in_name(**b)).count();
    let name = keyword.start - back..keyword.end + ahead;
    let option = text[name.clone()].starts_with(b"-") || text[..name.start].ends_with(b"-");
    let mut at = name.end;
    if let Some((range, quoted)) = argument(text, &name) {
        return Some(Assigned { name, value: range, quoted, sign: Sign::Comma });
    }
    // Words and types between name and sign: `var apiToken string = …`, `access token: …`.
    let words = text[at..].iter().take(32).take_while(|b| in_name(**b) || matches!(b, b' ' | b'\t')).count();
    let after_words = at + words;
    let mut closed = false;
    at = after_words;
    for _ in 0..4 {
        match text.get(at) {
            Some(b'"' | b'\'' | b'`' | b']') => closed = true,
            Some(b')' | b' ' | b'\t' | b'?' | b'!' | b'$' | b'.' | b'+') => {}
            Some(b'|') if text.get(at + 1) == Some(&b'|') => at += 1,
            _ => break,
        }
        at += 1;
    }
    at += if closed { subscript(text, at) } else { 0 };
    if at == name.end && text.get(at) == Some(&b'(') && matches!(text.get(at + 1), Some(b'"' | b'\'' | b'`'))
    {
        let (range, quoted) = value(text, at + 1, Sign::Call)?;
        return Some(Assigned { name, value: range, quoted, sign: Sign::Call });
    }
    let Some((sign, after)) = sign(text, at, closed) else {
        return (words > 0).then(|| spaced(text, name, option)).flatten();
    };
    if sign == Sign::Colon
        && let Some((range, quoted)) = after_type(text, after)
    {
        return Some(Assigned { name, value: range, quoted, sign: Sign::Equals });
    }
    let value = value(text, after, sign)?;
    // A number in JSON; anything in its place would have to be quoted.
    let number = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E');
    if closed && sign == Sign::Colon && !value.1 && text[value.0.clone()].iter().all(number) {
        return None;
    }
    if !value.1
        && let Some((range, quoted)) = otherwise(text, value.0.end)
    {
        return Some(Assigned { name, value: range, quoted, sign: Sign::Equals });
    }
    Some(Assigned { name, value: value.0, quoted: value.1, sign })
}

/// How long one more subscript is, with the space after it: `['password']['root'] = "value"`.
fn subscript(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    let quoted = rest.first() == Some(&b'[') && matches!(rest.get(1), Some(b'"' | b'\''));
    let inside = rest.iter().skip(2).take(NAME_MOST).take_while(|b| in_name(**b)).count();
    if !quoted || inside == 0 || rest.get(2 + inside) != rest.get(1) || rest.get(3 + inside) != Some(&b']') {
        return 0;
    }
    let space = rest[4 + inside..].iter().take(4).take_while(|b| **b == b' ').count();
    4 + inside + space
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// `password: &str = "value"`: what looks like the value is a type.
fn after_type(text: &[u8], at: usize) -> Option<(Range<usize>, bool)> {
    let is_type = |b: &u8| b.is_ascii_alphanumeric() || b" &_<>[].?|".contains(b);
    let length = text[at..].iter().take(48).take_while(|b| is_type(b)).count();
    let at = at + length;
    let assigns = length > 1 && text[at - 1] == b' ' && text.get(at) == Some(&b'=');
    (assigns && !matches!(text.get(at + 1), Some(b'=' | b'>')))
        .then(|| value(text, at + 1, Sign::Equals))
        .flatten()
}

/// `secret = process.env.SECRET || "value"`: what is taken when there is nothing else.
fn otherwise(text: &[u8], at: usize) -> Option<(Range<usize>, bool)> {
    let gap = text[at..].iter().take(3).take_while(|b| **b == b' ').count();
    let rest = &text[at + gap..];
    let sign = [&b"|| "[..], b"?? ", b"or ", b"?: "].into_iter().find(|sign| rest.starts_with(sign))?;
    let from = at + gap + sign.len();
    (gap > 0 && matches!(text.get(from), Some(b'"' | b'\'' | b'`')))
        .then(|| value(text, from, Sign::Equals))
        .flatten()
}

/// The argument after a quoted name, or after one in capitals: `"Stripe:ApiKey" "value"`, `OPT_PASSWORD, "value"`.
fn argument(text: &[u8], name: &Range<usize>) -> Option<(Range<usize>, bool)> {
    let is_quote = |at: usize| matches!(text.get(at), Some(b'"' | b'\''));
    let loud = text[name.clone()].iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_');
    let joined = is_quote(name.end) || loud && text.get(name.end) == Some(&b',');
    let gap = text[(name.end + 1).min(text.len())..].iter().take(4).take_while(|b| **b == b' ').count();
    let at = name.end + 1 + gap;
    (joined && gap > 0 && is_quote(at)).then(|| value(text, at, Sign::Comma)).flatten()
}

fn spaced(text: &[u8], name: Range<usize>, option: bool) -> Option<Assigned> {
    let gap = text[name.end..].iter().take(32).take_while(|b| matches!(b, b' ' | b'\t')).count();
    let sign = if option { Sign::Space } else { Sign::Word };
    let (range, quoted) = value(text, name.end + gap, sign)?;
    (gap > 0).then_some(Assigned { name, value: range, quoted, sign })
}

fn sign(text: &[u8], at: usize, closed: bool) -> Option<(Sign, usize)> {
    let length =
        text[at..].iter().take(4).take_while(|b| matches!(b, b'=' | b':' | b'>' | b'?' | b'~')).count();
    match &text[at..at + length] {
        b"" if closed && text.get(at) == Some(&b',') => Some((Sign::Comma, at + 1)),
        b"" if ["→", "：", "＝"].iter().any(|sign| text[at..].starts_with(sign.as_bytes())) => {
            Some((Sign::Colon, at + "→".len()))
        }
        b"" | b"?" | b"~" | b"::" => None,
        b">" => Some((Sign::Angle, at + 1)),
        b":" | b"=>" | b"?:" => Some((Sign::Colon, at + length)),
        _ => Some((Sign::Equals, at + length)),
    }
}

/// How long what stands before the text of a line is: `12:`, `src/x.sh:12:`, `   12<tab>`, the sign of a diff.
fn line_prefix(line: &[u8]) -> usize {
    if matches!(line.first(), Some(b'+' | b'-' | b'>' | b'|')) {
        return 1;
    }
    let indent = line.iter().take(8).take_while(|b| **b == b' ').count();
    let rest = &line[indent..];
    let path = rest.iter().take(160).take_while(|b| !b.is_ascii_whitespace() && **b != b':').count();
    let numbered = |from: usize| {
        let digits = rest[from..].iter().take(8).take_while(|b| b.is_ascii_digit()).count();
        let ends = matches!(rest.get(from + digits), Some(b':' | b'\t' | b'-'));
        (digits > 0 && ends).then_some(indent + from + digits + 1)
    };
    let after_path = (rest.get(path) == Some(&b':')).then_some(path + 1);
    numbered(0).or_else(|| numbered(after_path?)).unwrap_or(0)
}

/// The value that starts, after some space, at `at`, and whether it is quoted.
fn value(text: &[u8], mut at: usize, sign: Sign) -> Option<(Range<usize>, bool)> {
    let space = text[at..].iter().take(64).take_while(|b| b.is_ascii_whitespace()).count();
    let breaks = text[at..at + space].iter().filter(|b| **b == b'\n').count();
    let indented = space > 0 && text[at + space - 1] != b'\n';
    let first = *text.get(at + space)?;
    let quote = matches!(first, b'"' | b'\'' | b'`');
    // The same with a number or a sign at the beginning of the next line, as search tools and diffs show it.
    if breaks == 1 && sign == Sign::Angle && !quote {
        let line = at + text[at..].iter().take_while(|b| **b != b'\n').count() + 1;
        let prefix = line_prefix(&text[line..]);
        let gap = text[line + prefix..].iter().take(64).take_while(|b| matches!(b, b' ' | b'\t')).count();
        if prefix > 0 && gap > 0 {
            return value(text, line + prefix, Sign::Equals);
        }
    }
    // An empty value must not borrow the next line's name.
    if breaks > 1 || breaks == 1 && !(indented && (sign == Sign::Angle || quote)) {
        return None;
    }
    at += space;
    // String prefixes of several languages: b"…", f'…', @"…", and the beginning of a list.
    if matches!(first, b'b' | b'f' | b'r' | b'u' | b'@' | b'N' | b'L' | b'[' | b':')
        && matches!(text.get(at + 1), Some(b'"' | b'\''))
    {
        at += 1;
    }
    if matches!(text[at], b'"' | b'\'' | b'`') {
        let mark = text[at];
        // Tripled quotes and quotes within quotes.
        let marks = text[at..].iter().take(3).take_while(|b| **b == mark).count();
        at += if marks == 2 { return None } else { marks };
        let nested = matches!(text.get(at), Some(b'"' | b'\'')) && text.get(at) != Some(&mark);
        let mark = if nested { text[at] } else { mark };
        at += usize::from(nested);
        // The quote that ends a JSON string is no opening one: `["password = ",null]`.
        if mark == b'"' && matches!(text.get(at), Some(b',' | b':' | b']' | b'}')) {
            return None;
        }
        // A closing quote may be missing where output was cut; a double quote ends any value, lest a replacement
        // reach from one JSON string into another.
        let ends = |b: &u8| *b == mark || *b == b'\n' || *b == b'"';
        let length = text[at..].iter().take(VALUE_MOST).take_while(|b| !ends(b)).count();
        return (length > 0).then_some((at..at + length, true));
    }
    let ends = |b: &u8| {
        b.is_ascii_whitespace()
            || matches!(
                b,
                b'"' | b'\'' | b'`' | b';' | b',' | b'<' | b'>' | b'&' | b')' | b'}' | b']' | b'|' | b'\\'
            )
    };
    let mut length = text[at..].iter().take(VALUE_MOST).take_while(|b| !ends(b)).count();
    // A sign that ends a command is part of a value in a file of settings, where nothing follows but more of it.
    let joins: &[u8] = if sign == Sign::Equals { b";,&|<>)]}" } else { b";,&|<>" };
    let goes_on = text.get(at + length).is_some_and(|b| joins.contains(b));
    if length > 0 && goes_on && matches!(sign, Sign::Equals | Sign::Colon) {
        // In JSON, brackets after a number end what is around it.
        let stops = |b: &u8| {
            b.is_ascii_whitespace()
                || matches!(b, b'"' | b'\'' | b'`' | b'=' | b':' | b'{' | b'\\')
                || sign == Sign::Colon && matches!(b, b']' | b'}' | b'[')
        };
        let rest = text[at + length..].iter().take(256).take_while(|b| !stops(b)).count();
        if rest > 2 && matches!(text.get(at + length + rest), None | Some(b'\n' | b'\r' | b'"')) {
            length += rest;
        }
    }
    (length > 0).then_some((at..at + length, false))
}

#[cfg(test)]
mod tests {
    use super::assigned;

    fn value(text: &str) -> Option<&str> {
        let at = text.to_lowercase().find("token").unwrap();
        assigned(text.as_bytes(), at..at + 5).map(|a| &text[a.value])
    }

    #[test]
    fn all_the_ways_to_assign() {
        for text in [
            "myToken=VALUE",
            "my_token = \"VALUE\"",
            "my_token: 'VALUE'",
            "  \"myToken\" => \"VALUE\"",
            "var myToken string = \"VALUE\"",
            "$myToken .= \"VALUE\"",
            "my_TOKEN ::= `VALUE`",
            "my_TOKEN ?= VALUE",
            "set(\"MY_TOKEN\", \"VALUE\")",
            "<myToken>\n    VALUE\n</myToken>",
            "env['TOKEN'] = b'VALUE'",
            "tool --token VALUE --other",
            "+<myToken>\n+    VALUE\n+</myToken>",
            "3:<myToken>\n4:    VALUE\n5:</myToken>",
            "a/b.xml:3:<myToken>\na/b.xml:4:    VALUE\na/b.xml:5:</myToken>",
            "     3\t<myToken>\n     4\t    VALUE\n",
            "token: string = 'VALUE';",
            "?token=VALUE&more=1",
            "{\"token\": \"VALUE\"}",
            "builder.with_token(\"VALUE\")",
            "new token → VALUE",
            "set token VALUE",
            "secrets set \"My:Token\" \"VALUE\"",
            "setopt(c, OPT_TOKEN, \"VALUE\")",
            "TOKEN = N'VALUE'",
            "let token: &str = \"VALUE\";",
            "token: process.env.T || 'VALUE'",
            "token = token or 'VALUE'",
            "TOKEN=[\"VALUE\"]",
        ] {
            assert_eq!(value(text), Some("VALUE"), "{text}");
        }
    }

    #[test]
    fn no_value_is_borrowed_from_elsewhere() {
        assert_eq!(value("A_TOKEN=\nB_NAME=x"), None);
        assert_eq!(value("a token\nof thanks"), None);
        assert_eq!(value("token = \"\""), None);
        assert_eq!(value("[\"token = \",null]"), None);
        assert_eq!(value("{\"token\":1234567890123456}"), None);
    }
}
