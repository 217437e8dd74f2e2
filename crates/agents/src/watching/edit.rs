//! Putting a piece into a file of settings and taking it out again, with every other byte as it was.

use std::ops::Range;

use serde_json::Value;

use super::jsonc;
use super::jsonc::Node;

/// A file of settings with what was put into it.
#[derive(Debug, Clone)]
pub(super) struct Edited {
    pub(super) text: String,
    /// Where in the text what was put in stands, in order, never touching.
    pub(super) ranges: Vec<Range<usize>>,
}

impl Edited {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), ranges: Vec::new() }
    }

    fn insert(&mut self, at: usize, piece: &str) {
        self.text.insert_str(at, piece);
        let length = piece.len();
        let mut is_within = false;
        for range in &mut self.ranges {
            if range.start < at && at <= range.end {
                range.end += length;
                is_within = true;
            } else if range.start >= at {
                *range = range.start + length..range.end + length;
            }
        }
        if !is_within {
            self.ranges.push(at..at + length);
            self.ranges.sort_by_key(|range| range.start);
        }
    }

    /// Puts a child at the end of an object or array that stands in the text. Its own lines are indented like those of its
    /// neighbours.
    pub(super) fn append(&mut self, parent: &Node, key: Option<&str>, value: &Value) {
        let style = Style::of(&self.text);
        let inside = &self.text[parent.start + 1..parent.end - 1];
        let piece = |indent: &str| {
            let value = style.write(value, indent);
            key.map_or(value.clone(), |key| format!("{}: {value}", Value::from(key)))
        };
        let Some((start, end)) = parent.children().last().copied() else {
            let outer = line_indent(&self.text, parent.start);
            let inner = format!("{outer}{}", style.unit);
            // A remark in there stays before what is put in.
            let at = parent.end - 1 - (inside.len() - inside.trim_end().len());
            let rest = if inside.trim().is_empty() && inside.contains('\n') {
                String::new()
            } else {
                format!("{}{outer}", style.line)
            };
            let at = if inside.trim().is_empty() { parent.start + 1 } else { at };
            let piece = format!("{}{inner}{}{rest}", style.line, piece(&inner));
            self.insert(at, &piece);
            return;
        };
        let is_one_line = !inside.contains('\n');
        let comma = jsonc::next_token(&self.text, end);
        let has_comma = self.text[comma..].starts_with(',');
        if is_one_line {
            let compact = key.map_or(value.to_string(), |key| format!("{}: {value}", Value::from(key)));
            let (at, before) = if has_comma { (comma + 1, " ") } else { (end, ", ") };
            self.insert(at, &format!("{before}{compact}"));
            return;
        }
        let indent = line_indent(&self.text, start);
        let piece = format!("{}{indent}{}", style.line, piece(&indent));
        if has_comma {
            let at = jsonc::end_of_remark(&self.text, comma + 1);
            self.insert(at, &format!("{piece},"));
            return;
        }
        let at = jsonc::end_of_remark(&self.text, end);
        if at == end {
            self.insert(end, &format!(",{piece}"));
        } else {
            self.insert(at, &piece);
            self.insert(end, ",");
        }
    }
}

/// Takes pieces out whose places are known.
pub(super) fn without(text: &str, ranges: &[Range<usize>]) -> Option<String> {
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for range in ranges {
        rest.push_str(text.get(from..range.start)?);
        text.get(range.clone())?;
        from = range.end;
    }
    rest.push_str(text.get(from..)?);
    Some(rest)
}

/// Takes one child out of an object or array, with its comma and the blanks before it. Comments of others stay.
pub(super) fn remove_child(text: &str, parent: &Node, index: usize) -> String {
    let children = parent.children();
    let Some((start, end)) = children.get(index).copied() else { return text.to_owned() };
    let before = text[..start].trim_end().len();
    let next = jsonc::next_token(text, end);
    let own = before..end;
    let mut cuts = vec![own];
    if text[next..].starts_with(',') {
        cuts.push(next..next + 1);
    } else if let Some((_, previous)) = index.checked_sub(1).and_then(|index| children.get(index)) {
        let comma = jsonc::next_token(text, *previous);
        if text[comma..].starts_with(',') && comma < before {
            cuts.insert(0, comma..comma + 1);
        } else if comma < end {
            // The comma is the last thing before it.
            cuts[0] = comma..end;
        }
    }
    if children.len() == 1 {
        let inside = parent.start + 1..parent.end - 1;
        let rest = [&text[inside.start..before.max(inside.start)], &text[end..inside.end]].concat();
        if rest.trim_matches([' ', '\t', '\r', '\n', ',']).is_empty() {
            cuts = vec![inside];
        }
    }
    without(text, &cuts).unwrap_or_else(|| text.to_owned())
}

/// How a file is laid out.
struct Style {
    line: &'static str,
    unit: String,
}

impl Style {
    fn of(text: &str) -> Self {
        let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
        // The first line that is indented says by how much.
        let unit = text.lines().find_map(|line| {
            let blanks = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
            (!blanks.is_empty() && line.trim_start().starts_with('"')).then(|| blanks.to_owned())
        });
        Self { line, unit: unit.unwrap_or_else(|| "  ".to_owned()) }
    }

    /// A value on lines of its own, but short lists of one thing on one line.
    fn write(&self, value: &Value, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let (open, close, parts): (_, _, Vec<String>) = match value {
            Value::Object(members) if !members.is_empty() => {
                let part = |(key, value): (&String, &Value)| {
                    format!("{}: {}", Value::from(key.as_str()), self.write(value, &inner))
                };
                ('{', '}', members.iter().map(part).collect())
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                ('[', ']', items.iter().map(|item| self.write(item, &inner)).collect())
            }
            other => return other.to_string(),
        };
        let line = self.line;
        format!("{open}{line}{inner}{}{line}{indent}{close}", parts.join(&format!(",{line}{inner}")))
    }
}

/// The blanks that the line of a place begins with.
fn line_indent(text: &str, at: usize) -> String {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
    line[..line.len() - line.trim_start_matches([' ', '\t']).len()].to_owned()
}
