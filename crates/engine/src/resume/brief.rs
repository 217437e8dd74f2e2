//! What a resumed agent is told: where it was, what is in doubt, what the tree really looks like.

use std::fmt::Write as _;

use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::call;
use segno_core::call::subject;
use segno_core::text::shorten;
use serde_json::Value;

use crate::Engine;
use crate::Error;

/// How long a brief may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BriefLimits {
    /// In tokens, four characters each.
    pub tokens: usize,
    /// Most entries of each list.
    pub entries: usize,
}

impl Default for BriefLimits {
    fn default() -> Self {
        Self { tokens: 2_000, entries: 12 }
    }
}

/// How many pages of a list are looked through for lines.
const PAGES: usize = 4;
/// Calls in doubt are told of this many times as generously as anything else.
const DOUBTS: usize = 4;

/// A brief, in parts that can be left out from the end when it is too long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    parts: Vec<String>,
}

impl Brief {
    /// As text, the most important first, not longer than allowed.
    pub fn text(&self, limits: BriefLimits) -> String {
        let most = limits.tokens.saturating_mul(4);
        let mut text = String::new();
        let mut left_out = 0;
        for part in &self.parts {
            if text.len() + part.len() > most && !text.is_empty() {
                left_out += 1;
                continue;
            }
            text.push_str(&shorten(part, most));
            text.push('\n');
        }
        if left_out > 0 {
            text.push_str("(More is in the record: segno show, segno log.)\n");
        }
        text
    }

    fn part(&mut self, title: &str, lines: &[String]) {
        if !lines.is_empty() {
            let mut part = format!("{title}\n");
            for line in lines {
                // Writing to a String cannot fail.
                let _ = writeln!(part, "- {line}");
            }
            self.parts.push(part);
        }
    }
}

impl Engine {
    /// The brief of a session as it stands. Everything in it comes from the record, which holds no secrets.
    pub fn brief(&self, session: SessionId, limits: BriefLimits) -> Result<Brief, Error> {
        let state = self.load(session)?.state;
        let mut brief = Brief::default();
        brief.parts.push(self.opening(&state));
        let doubt = self.in_doubt(&state, limits)?;
        brief.part(
            "IN DOUBT: these calls were started, and nobody recorded how they ended. Find out what they did before you \
             do anything like them again:",
            &doubt,
        );
        let done = self.done(session, limits)?;
        brief.part("Done already; do not repeat these calls (newest first):", &done);
        let files = self.rows(session, List::Files, limits, |row| {
            Some(format!("{} {}", text(row, "change")?, text(row, "path")?))
        })?;
        brief.part("Files changed in this session:", &files);
        brief.part("Since the last checkpoint the tree differs in:", &self.tree_changes(&state, limits));
        let tasks: Vec<String> = state
            .tasks
            .open
            .iter()
            .take(limits.entries)
            .map(|(number, text)| format!("{number}: {text}"))
            .collect();
        brief.part("Still to do:", &tasks);
        let decisions = self.rows(session, List::Decisions, limits, |row| {
            Some(format!("{} → {}", text(row, "question")?, text(row, "choice")?))
        })?;
        brief.part("Decided:", &decisions);
        let outputs: Vec<String> = state.outputs.keys().take(limits.entries).cloned().collect();
        brief.part("Outputs there are (segno output get NAME):", &outputs);
        Ok(brief)
    }

    fn opening(&self, state: &State) -> String {
        let mut text = String::from(
            "You are resuming work that was interrupted. This is what is known; trust the files over your memory.\n",
        );
        let mut line = |label: &str, value: Option<String>| {
            if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
                let _ = writeln!(text, "{label}: {value}");
            }
        };
        line("Task", state.intent.clone().or_else(|| state.topic.clone()));
        line("Phase", state.phase_label());
        line("Iteration", (state.iteration > 0).then(|| state.iteration.to_string()));
        let why = state.reason.as_ref().map(|reason| match &reason.details {
            Some(details) => format!("{}: {details}", reason.what),
            None => reason.what.clone(),
        });
        line("Stopped because", why);
        line("Last action", state.last_action.clone());
        line("Project", Some(state.project.path.clone()));
        text
    }

    /// Each call in doubt, and what can be observed of it now.
    fn in_doubt(&self, state: &State, limits: BriefLimits) -> Result<Vec<String>, Error> {
        // An open call that nobody drives is as good as in doubt. The newest first.
        let mut calls: Vec<_> = state.calls.in_doubt.iter().chain(&state.calls.open).collect();
        calls.sort_by_key(|(_, call)| std::cmp::Reverse(call.seq));
        let most = limits.entries.saturating_mul(DOUBTS);
        let keys: Vec<String> = calls.iter().take(most).map(|(key, _)| (*key).clone()).collect();
        let rows = self.store().rows(state.session_id, List::Tools, &keys)?;
        let mut lines: Vec<String> =
            rows.iter().map(|row| self.doubtful(&state.project.path, &row.body)).collect();
        let more = (calls.len() - keys.len()) as u64 + state.calls.open_beyond;
        if more > 0 {
            lines.push(format!("and {more} more: segno show --tools"));
        }
        Ok(lines)
    }

    fn doubtful(&self, project: &str, row: &Value) -> String {
        let tool = text(row, "tool").unwrap_or_default();
        let input = row.get("input").cloned().unwrap_or_default();
        let mut line = format!("{tool}: {}", shorten(&subject(&input), 400));
        if let Some(path) = call::file(&input) {
            line.push_str(&observed(project, path, &self.meant(&input)));
        }
        line
    }

    /// What a call was to make of its file, as far as its input says so.
    fn meant(&self, input: &Value) -> Meant {
        let whole = |name: &str| {
            let text: segno_core::Text = serde_json::from_value(input.get(name)?.clone()).ok()?;
            self.whole(&text).ok()
        };
        match (whole("content"), whole("old_string"), whole("new_string")) {
            (Some(content), ..) => Meant::Content(content),
            (None, Some(old), Some(new)) if !old.is_empty() && old != new => Meant::Replaced { old, new },
            _ => Meant::Unknown,
        }
    }

    fn done(&self, session: SessionId, limits: BriefLimits) -> Result<Vec<String>, Error> {
        self.rows(session, List::Tools, limits, |row| {
            let state = text(row, "state")?;
            if !matches!(state.as_str(), "completed" | "failed") {
                return None;
            }
            let subject = subject(row.get("input")?);
            // How it ended was found out afterwards.
            let found = text(row, "evidence").map_or(String::new(), |where_| format!(", says {where_}"));
            let subject = shorten(&subject.replace('\n', " "), 120);
            Some(format!("{} {subject} ({state}{found})", text(row, "tool")?))
        })
    }

    /// The newest rows of a list that have something to say, as lines. However long the list is, only so many of its
    /// newest rows are looked at.
    fn rows(
        &self,
        session: SessionId,
        list: List,
        limits: BriefLimits,
        line: impl Fn(&Value) -> Option<String>,
    ) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        let mut after = None;
        for _ in 0..PAGES {
            let page = segno_store::Page { after, limit: limits.entries, newest_first: true };
            let rows = self.store().page(session, list, &page)?;
            lines.extend(rows.iter().filter_map(|row| line(&row.body)));
            let full = rows.len() == limits.entries;
            after = rows.last().map(|row| segno_store::ItemPlace { seq: row.seq, key: row.key.clone() });
            if lines.len() >= limits.entries || !full || after.is_none() {
                break;
            }
        }
        lines.truncate(limits.entries);
        Ok(lines)
    }

    /// What is different from the last checkpoint that has files, and whether the repository moved since, if that can
    /// be told.
    fn tree_changes(&self, state: &State, limits: BriefLimits) -> Vec<String> {
        let changes = || -> Result<Vec<String>, Error> {
            let Some(at) = state.tree.at else { return Ok(Vec::new()) };
            let checkpoint = self.checkpoint_number(state.session_id, at)?;
            let mut lines = Vec::new();
            let before = checkpoint.head.as_ref().and_then(|head| head.commit.clone());
            let now = self.workspace(state)?.head()?;
            let branch = now.as_ref().and_then(|head| head.branch.clone());
            let commit = now.and_then(|head| head.commit);
            if let Some(commit) = commit.filter(|commit| Some(commit) != before.as_ref()) {
                let before = before.map_or("nothing".to_owned(), |before| shorten(&before, 12));
                let branch = branch.map_or(String::new(), |branch| format!(" on {branch}"));
                lines.push(format!("HEAD, which moved from {before} to {}{branch}", shorten(&commit, 12)));
            }
            let changed = self.changed_files(state, &checkpoint)?;
            lines.extend(changed.iter().take(limits.entries).map(|change| {
                let kind = format!("{:?}", change.kind).to_lowercase();
                format!("{} ({kind})", change.path.display())
            }));
            Ok(lines)
        };
        changes().unwrap_or_default()
    }
}

/// What a call was to make of its file.
enum Meant {
    /// This content.
    Content(String),
    /// The same with a piece replaced.
    Replaced { old: String, new: String },
    /// Nobody can tell.
    Unknown,
}

/// Larger files are not read to see what became of them.
const LARGEST: u64 = 16 << 20;

/// What can be seen of a file that a call was about.
fn observed(project: &str, path: &str, meant: &Meant) -> String {
    let whole = std::path::Path::new(project).join(path);
    let Ok(meta) = std::fs::metadata(&whole) else { return " — the file is not there".to_owned() };
    let bytes = meta.len();
    let read = || std::fs::read(&whole).ok().filter(|_| meta.is_file() && bytes <= LARGEST);
    match meant {
        Meant::Content(content) if bytes == content.len() as u64 => {
            match read().is_some_and(|bytes| bytes == content.as_bytes()) {
                true => " — the file is there with exactly that content: it was done".to_owned(),
                false => " — the file is there with other content".to_owned(),
            }
        }
        Meant::Content(_) => format!(" — the file is there with other content ({bytes} bytes)"),
        Meant::Replaced { old, new } => {
            let text = read().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            // The old piece may be a part of the new one.
            let has_new = !new.is_empty() && text.contains(new.as_str());
            let has_old = text.replace(new.as_str(), "").contains(old.as_str());
            match (has_new, has_old) {
                (true, false) => " — the file has the new text: it was done".to_owned(),
                (false, true) => " — the file still has the old text: it was not done".to_owned(),
                _ => format!(" — the file is there ({bytes} bytes)"),
            }
        }
        Meant::Unknown => format!(" — the file is there ({bytes} bytes)"),
    }
}

fn text(row: &Value, name: &str) -> Option<String> {
    match row.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Object(aside) => aside.get("excerpt").and_then(Value::as_str).map(ToOwned::to_owned),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_is_cut_from_the_end() {
        let mut brief = Brief::default();
        brief.parts.push("opening\n".to_owned());
        brief.part("first:", &["x".repeat(100)]);
        brief.part("second:", &["y".repeat(100)]);
        brief.part("nothing:", &[]);
        let whole = brief.text(BriefLimits { tokens: 1_000, entries: 1 });
        assert!(whole.contains("second:") && !whole.contains("nothing:"));
        let cut = brief.text(BriefLimits { tokens: 40, entries: 1 });
        assert!(cut.contains("first:") && !cut.contains("second:") && cut.contains("segno show"), "{cut}");
    }

    #[test]
    fn what_can_be_seen_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().to_str().unwrap();
        std::fs::write(dir.path().join("a"), "same").unwrap();
        let content = |text: &str| Meant::Content(text.to_owned());
        let replaced = |old: &str, new: &str| Meant::Replaced { old: old.to_owned(), new: new.to_owned() };
        assert!(observed(project, "a", &content("same")).contains("it was done"));
        assert!(observed(project, "a", &content("else")).contains("other content"));
        assert!(observed(project, "a", &content("longer")).contains("other content (4 bytes)"));
        assert!(observed(project, "a", &Meant::Unknown).contains("(4 bytes)"));
        assert!(observed(project, "b", &content("x")).contains("not there"));
        assert!(observed(project, "a", &replaced("other", "same")).contains("it was done"));
        assert!(observed(project, "a", &replaced("am", "same")).contains("it was done"), "part of the new");
        assert!(observed(project, "a", &replaced("same", "other")).contains("it was not done"));
        assert!(observed(project, "a", &replaced("x", "y")).contains("(4 bytes)"));
    }
}
