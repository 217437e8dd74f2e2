//! A document as YAML text, as a person would write it.

use std::fmt::Write as _;

use super::Node;

/// Lines of folded text are at most about this long.
const WIDTH: usize = 100;

/// How moments are written.
#[derive(Clone, Copy)]
enum Moments {
    /// As a person would write them.
    Plain,
    /// As text, which every reader takes for what it is: without quotes some make dates of them.
    Quoted,
}

/// The document as YAML text.
pub fn to_yaml(node: &Node) -> String {
    document(node, Moments::Plain)
}

/// The same for readers that want moments as texts.
pub fn to_yaml_with_quoted_moments(node: &Node) -> String {
    document(node, Moments::Quoted)
}

fn document(node: &Node, moments: Moments) -> String {
    let mut out = String::new();
    match node {
        Node::Map(members) if !members.is_empty() => map(&mut out, members, 0, false, moments),
        Node::List(items) if !items.is_empty() => list(&mut out, items, 0, moments),
        other => {
            scalar(&mut out, other, 0, moments);
            out.push('\n');
        }
    }
    out
}

/// One row of a list that is a member of a document.
pub fn row(item: &Node) -> String {
    let mut out = String::new();
    list(&mut out, std::slice::from_ref(item), 1, Moments::Plain);
    out
}

/// The name that such rows stand under; one that none follow is an empty list.
pub fn name_of_rows(name: &str, is_empty: bool) -> String {
    let mut out = String::new();
    key(&mut out, name, 0);
    out.push_str(if is_empty { ": []\n" } else { ":\n" });
    out
}

fn map(out: &mut String, members: &[(String, Node)], depth: usize, mut started: bool, moments: Moments) {
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
                map(out, inner, depth + 1, false, moments);
            }
            Node::List(items) if !items.is_empty() => {
                out.push('\n');
                list(out, items, depth + 1, moments);
            }
            other => {
                out.push(' ');
                scalar(out, other, depth + 1, moments);
                out.push('\n');
            }
        }
    }
}

fn list(out: &mut String, items: &[Node], depth: usize, moments: Moments) {
    for item in items {
        indent(out, depth);
        out.push_str("- ");
        match item {
            Node::Map(inner) if !inner.is_empty() => map(out, inner, depth + 1, true, moments),
            Node::List(inner) if !inner.is_empty() => {
                // A list in a list starts on the line below its dash.
                out.pop();
                out.push('\n');
                list(out, inner, depth + 1, moments);
            }
            other => {
                scalar(out, other, depth + 1, moments);
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
    if name.len() <= WIDTH && is_plain(name, Moments::Plain) {
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

fn scalar(out: &mut String, node: &Node, depth: usize, moments: Moments) {
    match node {
        Node::Null => out.push_str("null"),
        Node::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Node::Number(number) => out.push_str(number),
        Node::Text(text) => text_scalar(out, text, depth, moments),
        Node::List(_) => out.push_str("[]"),
        Node::Map(_) => out.push_str("{}"),
    }
}

fn text_scalar(out: &mut String, text: &str, depth: usize, moments: Moments) {
    if text.len() <= WIDTH && is_plain(text, moments) {
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
fn is_plain(text: &str, moments: Moments) -> bool {
    let safe = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '_' | '-' | '.' | '/' | ' ' | '+' | '@' | ',' | '(' | ')' | '=' | '~')
    };
    let Some(first) = text.chars().next() else { return false };
    if !(first.is_ascii_alphabetic() || first == '_' || first == '/') || text.ends_with(' ') {
        return matches!(moments, Moments::Plain) && is_moment(text);
    }
    let special = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"];
    text.chars().all(safe) && !special.iter().any(|word| word.eq_ignore_ascii_case(text))
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
