//! Which sessions went into a commit.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::Timestamp;
use segno_workspace::PastContent;
use serde::Serialize;

use crate::Engine;
use crate::Error;

/// Of a larger commit not all files are looked at.
const MOST_FILES: usize = 300;

/// A file that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommittedFile {
    /// Where, from the top of the project.
    pub path: PathBuf,
    /// How many lines it has that the commit before had not.
    pub added: usize,
    /// How many of them are credited to which session.
    pub by_session: BTreeMap<SessionId, usize>,
    /// How many are credited to none.
    pub not_recorded: usize,
}

/// Which sessions went into a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitOrigins {
    /// The commit.
    pub commit: String,
    /// Its first line.
    pub subject: String,
    /// The files, in the order of their names.
    pub files: Vec<CommittedFile>,
    /// Lines that were added, by the session that wrote them.
    pub by_session: BTreeMap<SessionId, usize>,
    /// What these sessions are about.
    pub topics: BTreeMap<SessionId, Option<String>>,
    /// Lines that no recorded call is known to have written.
    pub not_recorded: usize,
    /// Files that were not looked at: too many, or no texts.
    pub left_out: usize,
}

impl Engine {
    /// Which sessions went into a commit of the project's repository; nothing if there is no such commit.
    ///
    /// # Errors
    /// If the record or the repository cannot be read.
    pub fn why_commit(&self, root: &Path, name: &str) -> Result<Option<CommitOrigins>, Error> {
        let past = self.past(root)?;
        let own;
        let workspace = match (&past.workspace, past.stories.iter().find(|story| story.project == past.root))
        {
            (Some(workspace), _) => workspace,
            (None, Some(story)) => {
                own = self.workspace(&self.load(story.session)?.state)?;
                &own
            }
            (None, None) => return Ok(None),
        };
        let Some(commit) = workspace.find_commit(name)? else { return Ok(None) };
        let mut found = CommitOrigins {
            commit: commit.id.clone(),
            subject: commit.subject,
            files: Vec::new(),
            by_session: BTreeMap::new(),
            topics: BTreeMap::new(),
            not_recorded: 0,
            left_out: commit.files.len().saturating_sub(MOST_FILES),
        };
        // A commit is told to the second.
        let until = Timestamp::from_micros(commit.committed.saturating_add(1).saturating_mul(1_000_000));
        for path in commit.files.iter().take(MOST_FILES) {
            let (before, after) = workspace.committed_contents(&commit.id, path)?;
            let text = |content: PastContent| match content {
                PastContent::Bytes(bytes) => String::from_utf8(bytes).ok(),
                PastContent::Absent | PastContent::Unknown => None,
            };
            let Some(after) = text(after) else {
                found.left_out += 1;
                continue;
            };
            let before = text(before).unwrap_or_default();
            let mut known: HashMap<&str, usize> = HashMap::new();
            for line in before.lines() {
                *known.entry(line).or_default() += 1;
            }
            let origins = self.origins(&past, path, Some(&after), Some(until))?;
            let mut file =
                CommittedFile { path: path.clone(), added: 0, by_session: BTreeMap::new(), not_recorded: 0 };
            for line in &origins.lines {
                if let Some(count) = known.get_mut(line.text.as_str()).filter(|count| **count > 0) {
                    *count -= 1;
                    continue;
                }
                file.added += 1;
                match line.writer.and_then(|writer| origins.writers.get(writer)) {
                    Some(writer) => {
                        *file.by_session.entry(writer.session_id).or_default() += 1;
                        *found.by_session.entry(writer.session_id).or_default() += 1;
                        found.topics.insert(writer.session_id, writer.topic.clone());
                    }
                    None => file.not_recorded += 1,
                }
            }
            found.not_recorded += file.not_recorded;
            found.files.push(file);
        }
        Ok(Some(found))
    }
}
