//! JUnit documents, as many runners write them.

use super::Reader;
use super::xml::Tag;
use super::xml::Tags;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;

pub(crate) fn begin(line: &str) -> Option<Box<dyn Reader>> {
    let line = line.trim_start();
    let known = ["<?xml ", "<testsuites", "<testsuite "].iter().any(|start| line.starts_with(start));
    known.then(|| {
        Box::new(Document { text: String::new(), root: None, depth: 0, ended: false, other: false }) as _
    })
}

/// The lines of a document, up to the end of its root.
struct Document {
    text: String,
    root: Option<&'static str>,
    /// How often the root's tag was opened and not closed, text and all.
    depth: isize,
    ended: bool,
    /// It is some other document.
    other: bool,
}

impl Reader for Document {
    fn take(&mut self, line: &str) -> bool {
        if self.ended {
            return false;
        }
        if self.root.is_none() {
            let at = ["<testsuites", "<testsuite"].into_iter().find(|root| line.contains(root));
            self.root = at.map(|root| root.get(1..).unwrap_or_default());
            let prologue = line.trim_start();
            // Before the root only declarations and comments stand.
            self.other = self.root.is_none()
                && !prologue.is_empty()
                && !prologue.starts_with("<?xml ")
                && !prologue.starts_with("<!--");
            if self.other
                || (self.root.is_none()
                    && prologue.starts_with("<?xml ")
                    && prologue.matches('<').count() > 1)
            {
                (self.other, self.ended) = (true, true);
                return false;
            }
        }
        self.text.push_str(line);
        self.text.push('\n');
        // The whole is looked at only where it may be the end: raw text may hold a closing tag.
        if let Some(root) = self.root {
            let opened = line.matches(&format!("<{root}")).count();
            let closed = line.matches(&format!("</{root}>")).count();
            let at_once = opened > 0 && line.ends_with("/>");
            self.depth = self.depth.saturating_add_unsigned(opened).saturating_sub_unsigned(closed);
            self.ended = (at_once || (closed > 0 && self.depth <= 0)) && Tags::new(&self.text).is_closed();
        }
        true
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn quoting(&self) -> bool {
        !self.ended
    }

    fn finish(self: Box<Self>) -> Option<Part> {
        if self.other || self.root.is_none() {
            return None;
        }
        let mut part = Part::new(Runner::JunitXml);
        part.complete = self.ended;
        let mut case: Option<(String, Outcome)> = None;
        for tag in Tags::new(&self.text) {
            match tag {
                Tag::Open { name: "testcase", attributes, closed } => {
                    let name = full_name(attributes);
                    if closed {
                        part.add(name, Outcome::Passed);
                    } else {
                        case = Some((name, Outcome::Passed));
                    }
                }
                Tag::Open { name: "failure" | "error", .. } => {
                    if let Some((_, outcome)) = &mut case {
                        *outcome = Outcome::Failed;
                    }
                }
                Tag::Open { name: "skipped", .. } => {
                    if let Some((_, outcome)) = &mut case {
                        *outcome = (*outcome).max(Outcome::Skipped);
                    }
                }
                Tag::Close { name: "testcase" } => {
                    if let Some((name, outcome)) = case.take() {
                        part.add(name, outcome);
                    }
                }
                Tag::Open { .. } | Tag::Close { .. } => {}
            }
        }
        part.count_names();
        Some(part)
    }
}

fn full_name(attributes: &str) -> String {
    let name = super::xml::attribute(attributes, "name").unwrap_or_default();
    let class = super::xml::attribute(attributes, "classname").unwrap_or_default();
    if class.is_empty() || name.starts_with(&class) { name } else { format!("{class}::{name}") }
}
