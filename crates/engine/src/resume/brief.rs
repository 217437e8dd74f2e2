//! What a resumed agent is told: where it was, what is in doubt, what the tree really looks like.

use std::fmt::Write as _;

use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
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
        let doubt = self.in_doubt(&state)?;
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
    fn in_doubt(&self, state: &State) -> Result<Vec<String>, Error> {
        let rows = self.items(state.session_id, List::Tools)?;
        let mut lines = Vec::new();
        for row in rows.iter().rev().filter(|row| text(&row.body, "state").as_deref() == Some("in_doubt")) {
            let tool = text(&row.body, "tool").unwrap_or_default();
            let input = row.body.get("input").cloned().unwrap_or_default();
            let subject = ["command", "file_path", "notebook_path", "path", "cmd"]
                .iter()
                .find_map(|name| input.get(*name).and_then(Value::as_str).map(ToOwned::to_owned))
                .unwrap_or_else(|| input.to_string());
            let mut line = format!("{tool}: {}", shorten(&subject, 400));
            let path =
                ["file_path", "notebook_path", "path"].iter().find_map(|name| input.get(*name)?.as_str());
            if let Some(path) = path {
                line.push_str(&observed(
                    &state.project.path,
                    path,
                    input.get("content").and_then(Value::as_str),
                ));
            }
            lines.push(line);
        }
        Ok(lines)
    }

    fn done(&self, session: SessionId, limits: BriefLimits) -> Result<Vec<String>, Error> {
        self.rows(session, List::Tools, limits, |row| {
            let state = text(row, "state")?;
            if !matches!(state.as_str(), "completed" | "failed") {
                return None;
            }
            let input = row.get("input")?;
            let subject = ["command", "file_path", "notebook_path", "path", "cmd", "description"]
                .iter()
                .find_map(|name| input.get(*name).and_then(Value::as_str))
                .map_or_else(|| input.to_string(), ToOwned::to_owned);
            Some(format!("{} {} ({state})", text(row, "tool")?, shorten(&subject.replace('\n', " "), 120)))
        })
    }

    /// The newest rows of a list, as lines.
    fn rows(
        &self,
        session: SessionId,
        list: List,
        limits: BriefLimits,
        line: impl Fn(&Value) -> Option<String>,
    ) -> Result<Vec<String>, Error> {
        let page = segno_store::Page { after: None, limit: limits.entries * 3, newest_first: true };
        let rows = self.store().items(session, list, &page)?.items;
        Ok(rows.iter().filter_map(|row| line(&row.body)).take(limits.entries).collect())
    }

    /// What is different from the last checkpoint that has files, if that can be told.
    fn tree_changes(&self, state: &State, limits: BriefLimits) -> Vec<String> {
        let changes = || -> Result<Vec<String>, Error> {
            let Some(at) = state.tree.at else { return Ok(Vec::new()) };
            let checkpoint = self.find_checkpoint(state.session_id, &at.to_string())?;
            let compared = self.compare(state.session_id, &checkpoint, None, false)?;
            Ok(compared
                .files
                .iter()
                .take(limits.entries)
                .map(|change| format!("{} ({:?})", change.path.display(), change.kind).to_lowercase())
                .collect())
        };
        changes().unwrap_or_default()
    }
}

/// What can be seen of a file that a call was about.
fn observed(project: &str, path: &str, content: Option<&str>) -> String {
    let whole = std::path::Path::new(project).join(path);
    match (std::fs::metadata(&whole), content) {
        (Err(_), _) => " — the file is not there".to_owned(),
        (Ok(meta), Some(content)) if meta.len() == content.len() as u64 => {
            match std::fs::read(&whole).is_ok_and(|bytes| bytes == content.as_bytes()) {
                true => " — the file is there with exactly that content: it was done".to_owned(),
                false => " — the file is there with other content".to_owned(),
            }
        }
        (Ok(meta), Some(_)) => format!(" — the file is there with other content ({} bytes)", meta.len()),
        (Ok(meta), None) => format!(" — the file is there ({} bytes)", meta.len()),
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
        assert!(observed(project, "a", Some("same")).contains("it was done"));
        assert!(observed(project, "a", Some("else")).contains("other content"));
        assert!(observed(project, "a", None).contains("(4 bytes)"));
        assert!(observed(project, "b", Some("x")).contains("not there"));
    }
}
