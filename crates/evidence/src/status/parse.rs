//! Finds blocks, and their keys and lists.

use super::Family;
use super::StatusBlock;
use super::fields::Raw;
use crate::text;

/// The most keys that are read in a block.
const MOST_KEYS: usize = 200;
/// The most blocks that are read in a text: the last ones.
const MOST_BLOCKS: usize = 100;

/// Every block of a text, in its order, also those that are not complete.
pub fn status_blocks(text: &str) -> Vec<StatusBlock> {
    let text = text::plain(text);
    let mut blocks = Vec::new();
    let mut open: Option<Open> = None;
    for line in text.lines() {
        let mark = Mark::read(line);
        if let Some(block) = &mut open {
            match block.take(line, mark.as_ref()) {
                Took::Line => continue,
                Took::End => {
                    close(&mut blocks, open.take());
                    continue;
                }
                Took::Nothing => close(&mut blocks, open.take()),
            }
        }
        open = match mark {
            Some(Mark::Begin(family)) => Some(Open::new(family, None)),
            Some(Mark::Header(family)) => Some(Open::new(family, Some(indent(line)))),
            Some(Mark::End(_)) | None => None,
        };
    }
    close(&mut blocks, open);
    blocks
}

fn close(blocks: &mut Vec<StatusBlock>, open: Option<Open>) {
    let Some(open) = open else { return };
    // Keys that are indented are the form without an end; where none follow it was only a name.
    if open.header.is_some() && open.raw.is_empty() {
        return;
    }
    let has_end = open.ended || open.header.is_some();
    if blocks.len() == MOST_BLOCKS {
        blocks.remove(0);
    }
    blocks.push(open.raw.into_block(open.family, has_end));
}

/// A line that begins or ends a block.
enum Mark {
    Begin(Family),
    End(Family),
    Header(Family),
}

impl Mark {
    fn read(line: &str) -> Option<Self> {
        // Agents like to make it stand out.
        let line = line.trim();
        let line = if line.starts_with("```") { line } else { undecorated(line) };
        if let Some(header) = line.strip_suffix(':') {
            return family(header).map(Self::Header);
        }
        let name = line.strip_prefix("---")?.strip_suffix("---")?;
        let end = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("END_"));
        if end { family(name.get(4..)?).map(Self::End) } else { family(name).map(Self::Begin) }
    }
}

fn family(name: &str) -> Option<Family> {
    let name = undecorated(name);
    [Family::Prp, Family::Ralph].into_iter().find(|family| family.name().eq_ignore_ascii_case(name))
}

/// Without what makes it bold or code.
fn undecorated(text: &str) -> &str {
    text.trim().trim_matches(['*', '`']).trim()
}

/// How deep a line is; agents also indent by tabs.
fn indent(line: &str) -> usize {
    let blank = line.chars().take_while(|c| [' ', '\t'].contains(c));
    blank.map(|c| if c == '\t' { 8 } else { 1 }).sum()
}

enum Took {
    Line,
    End,
    Nothing,
}

/// A block that is being read.
struct Open {
    family: Family,
    /// The indent of its name, if it has no end of its own.
    header: Option<usize>,
    ended: bool,
    raw: Raw,
    /// The key whose list or keys follow, and its indent.
    group: Option<(String, usize)>,
}

impl Open {
    fn new(family: Family, header: Option<usize>) -> Self {
        Self { family, header, ended: false, raw: Raw::default(), group: None }
    }

    fn take(&mut self, line: &str, mark: Option<&Mark>) -> Took {
        let indent = indent(line);
        match (mark, self.header) {
            (Some(Mark::End(family)), None) if *family == self.family => {
                self.ended = true;
                return Took::End;
            }
            // Another block, or the end of the fence it began in.
            (Some(_), _) => return Took::Nothing,
            (None, _) if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") => {
                return Took::Nothing;
            }
            (None, Some(header)) if !line.trim().is_empty() && indent <= header => return Took::Nothing,
            // A paragraph that is indented by chance is not part of it.
            (None, Some(_)) if line.trim().is_empty() && !self.raw.is_empty() => return Took::Nothing,
            (None, _) => {}
        }
        self.line(line, indent);
        Took::Line
    }

    fn line(&mut self, line: &str, indent: usize) {
        let text = line.trim().trim_matches(['*', '`']).trim();
        if text.is_empty() || self.raw.len() >= MOST_KEYS {
            return;
        }
        let item = text.strip_prefix("- ").or_else(|| (text == "-").then_some(""));
        if let (Some(item), Some((group, _))) = (item, &self.group) {
            return self.raw.item(group, item.trim());
        }
        let Some((key, value)) = key_and_value(item.unwrap_or(text)) else { return };
        let group = self.group.as_ref().filter(|(group, at)| indent > *at || belongs(group, &key));
        match group {
            Some((group, _)) => self.raw.set(format!("{group}.{key}"), value),
            None => {
                self.group = None;
                if value.is_empty() || value.starts_with('#') {
                    self.raw.group(&key);
                    self.group = Some((key, indent));
                } else if let Some(inside) = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'))
                {
                    for (inner, value) in inside.split(',').filter_map(key_and_value) {
                        self.raw.set(format!("{key}.{inner}"), value);
                    }
                } else {
                    self.raw.set(key, value);
                }
            }
        }
    }
}

/// `KEY: value` with the key in lower case.
fn key_and_value(text: &str) -> Option<(String, &str)> {
    let (key, value) = text.split_once(':')?;
    let key = key.trim().trim_matches(['*', '`', '"']);
    let is_key = !key.is_empty()
        && key.len() <= 60
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    is_key.then(|| (key.to_ascii_lowercase().replace('-', "_"), value.trim().trim_start_matches('*').trim()))
}

/// Keys that belong to the group above them even if they are not indented.
fn belongs(group: &str, key: &str) -> bool {
    let keys: &[&str] = match group {
        "tests" => &["total", "passing", "failing", "skipped"],
        "files" => &["created", "modified", "deleted"],
        "circuit_breaker" => &["state", "no_progress_count"],
        "dual_gate" => &["gate_1", "gate_2", "can_exit", "gate_1_detail"],
        "qa_metrics" => {
            &["checks_total", "checks_passing", "checks_failing", "blocking_issues", "warning_issues"]
        }
        "rate_limit" => &["hourly", "5h_limit"],
        _ => return false,
    };
    keys.contains(&key)
}
