//! Checklists in Markdown.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use super::WorkItem;
use crate::text;

/// Sections whose items need not be done, unless somebody says otherwise.
pub const OPTIONAL_SECTIONS: &[&str] = &["Optional", "Future", "Future Enhancements", "Nice to Have"];

/// One item of a checklist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecklistItem {
    /// Made of its text, with a number behind it if there are more with the same one. What changes elsewhere in the file
    /// does not change it.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Whether it is ticked.
    pub done: bool,
    /// Whether it stands in a section that need not be done.
    pub optional: bool,
    /// The heading above it.
    pub section: Option<String>,
    /// The id of the item it is indented below.
    pub parent: Option<String>,
    /// Its line, counted from 1.
    pub line: usize,
}

impl From<&ChecklistItem> for WorkItem {
    fn from(item: &ChecklistItem) -> Self {
        WorkItem {
            id: item.id.clone(),
            title: item.text.clone(),
            status: Some(if item.done { "closed" } else { "open" }.to_owned()),
            labels: item.section.clone().into_iter().collect(),
            parent: item.parent.clone(),
            ..WorkItem::default()
        }
    }
}

/// The items of a checklist: `- [ ]`, `* [x]`, `1. [ ]`, at any depth, but not in code or comments. `optional` are the
/// titles of sections that need not be done, in any case; what stands below them goes with them.
pub fn checklist(markdown: &str, optional: &[&str]) -> Vec<ChecklistItem> {
    let plain = text::plain(markdown);
    let (mut items, mut above): (Vec<ChecklistItem>, Vec<(usize, String)>) = (Vec::new(), Vec::new());
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut hidden = Hidden::default();
    for (number, line) in plain.lines().enumerate() {
        if hidden.takes(line) {
            continue;
        }
        if let Some((level, title)) = heading(line) {
            headings.retain(|(other, _)| *other < level);
            headings.push((level, title.to_owned()));
            above.clear();
            continue;
        }
        let Some((done, text)) = tick_box(line) else { continue };
        let indent = width(line);
        above.retain(|(other, _)| *other < indent);
        let id = id_of(text, &mut seen);
        let is_optional = |title: &String| optional.iter().any(|name| is_section(title, name));
        items.push(ChecklistItem {
            id: id.clone(),
            text: text.to_owned(),
            done,
            optional: headings.iter().any(|(_, title)| is_optional(title)),
            section: headings.last().map(|(_, title)| title.clone()),
            parent: above.last().map(|(_, id)| id.clone()),
            line: number + 1,
        });
        above.push((indent, id));
    }
    items
}

/// Code and comments.
#[derive(Default)]
struct Hidden {
    fence: Option<(char, usize)>,
    comment: bool,
}

impl Hidden {
    fn takes(&mut self, line: &str) -> bool {
        let start = line.trim_start();
        if self.comment {
            self.comment = !line.contains("-->");
            return true;
        }
        let mark = start.chars().next().filter(|c| *c == '`' || *c == '~').unwrap_or(' ');
        let length = start.chars().take_while(|c| *c == mark && mark != ' ').count();
        match self.fence {
            Some((open, at_least)) => {
                if open == mark && length >= at_least && start.trim_end().chars().count() == length {
                    self.fence = None;
                }
                true
            }
            None if length >= 3 => {
                self.fence = Some((mark, length));
                true
            }
            None => {
                self.comment = start.starts_with("<!--") && !line.contains("-->");
                self.comment
            }
        }
    }
}

/// `## Title`.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let title = line.get(level..)?.strip_prefix(' ')?;
    ((1..=6).contains(&level)).then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

fn is_section(title: &str, name: &str) -> bool {
    let title = title.trim().trim_matches(['*', '_', ':']).trim();
    title.to_lowercase() == name.trim().to_lowercase()
}

/// `- [ ] text`, `* [x] text`, `1. [X] text`.
fn tick_box(line: &str) -> Option<(bool, &str)> {
    let start = line.trim_start();
    let rest = match start.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest,
        None => start
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .strip_prefix(['.', ')'])
            .filter(|_| start.starts_with(|c: char| c.is_ascii_digit()))?,
    };
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let (done, rest) = match rest.split_at_checked(3)? {
        ("[ ]", rest) => (false, rest),
        ("[x]" | "[X]", rest) => (true, rest),
        _ => return None,
    };
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (done, rest.trim()))
}

/// How far a line is indented; a tab is as wide as four spaces.
fn width(line: &str) -> usize {
    line.chars().take_while(|c| *c == ' ' || *c == '\t').map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

/// The longest part of a text that an id is made of.
const LONGEST_ID: usize = 60;

fn id_of(text: &str, seen: &mut BTreeSet<String>) -> String {
    let mut slug = String::new();
    for c in text.to_lowercase().chars() {
        if slug.chars().count() >= LONGEST_ID {
            break;
        }
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    let slug = match slug.trim_end_matches('-') {
        "" => "item".to_owned(),
        slug => slug.to_owned(),
    };
    let mut id = slug.clone();
    let mut number = 1;
    while !seen.insert(id.clone()) {
        number += 1;
        id = format!("{slug}-{number}");
    }
    id
}
