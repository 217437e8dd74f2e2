//! Which sessions went into a commit.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::Timestamp;
use segno_workspace::PastContent;
use serde::Serialize;

use super::FileOrigins;
use super::LineOrigin;
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

/// A commit that was looked at.
pub(super) struct Committed {
    pub(super) id: String,
    pub(super) subject: String,
    /// Files that were not looked at: too many, or no texts.
    pub(super) left_out: usize,
}

/// A file of a commit, and which of its lines the commit before had not.
pub(super) struct Added {
    pub(super) origins: FileOrigins,
    /// By the place of a line.
    is_new: Vec<bool>,
}

impl Added {
    /// Whether the commit added the line of this number.
    pub(super) fn is_new(&self, line: usize) -> bool {
        line.checked_sub(1).and_then(|at| self.is_new.get(at)).copied().unwrap_or(false)
    }

    /// The lines that the commit added.
    fn lines(&self) -> impl Iterator<Item = &LineOrigin> {
        self.origins.lines.iter().filter(|line| self.is_new(line.line))
    }
}

impl Engine {
    /// Which sessions went into a commit of the project's repository; nothing if there is no such commit.
    ///
    /// # Errors
    /// If the record or the repository cannot be read.
    pub fn why_commit(&self, root: &Path, name: &str) -> Result<Option<CommitOrigins>, Error> {
        let mut files = Vec::new();
        let mut by_session: BTreeMap<SessionId, usize> = BTreeMap::new();
        let mut topics = BTreeMap::new();
        let commit = self.each_committed(root, name, &mut |added| {
            let path = added.origins.path.clone();
            let mut file = CommittedFile { path, added: 0, by_session: BTreeMap::new(), not_recorded: 0 };
            for line in added.lines() {
                file.added += 1;
                match line.writer.and_then(|writer| added.origins.writers.get(writer)) {
                    Some(writer) => {
                        *file.by_session.entry(writer.session_id).or_default() += 1;
                        *by_session.entry(writer.session_id).or_default() += 1;
                        topics.insert(writer.session_id, writer.topic.clone());
                    }
                    None => file.not_recorded += 1,
                }
            }
            files.push(file);
            Ok(())
        })?;
        Ok(commit.map(|Committed { id, subject, left_out }| CommitOrigins {
            commit: id,
            subject,
            not_recorded: files.iter().map(|file| file.not_recorded).sum(),
            files,
            by_session,
            topics,
            left_out,
        }))
    }

    /// Looks at each file of a commit; nothing if there is no such commit.
    pub(super) fn each_committed(
        &self,
        root: &Path,
        name: &str,
        look: &mut dyn FnMut(&Added) -> Result<(), Error>,
    ) -> Result<Option<Committed>, Error> {
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
        let mut left_out = commit.files.len().saturating_sub(MOST_FILES);
        // A commit is told to the second.
        let until = Timestamp::from_micros(commit.committed.saturating_add(1).saturating_mul(1_000_000));
        for path in commit.files.iter().take(MOST_FILES) {
            let (before, after) = workspace.committed_contents(&commit.id, path)?;
            let text = |content: PastContent| match content {
                PastContent::Bytes(bytes) => String::from_utf8(bytes).ok(),
                PastContent::Absent | PastContent::Unknown => None,
            };
            let Some(after) = text(after) else {
                left_out += 1;
                continue;
            };
            let before = text(before).unwrap_or_default();
            let mut known: HashMap<&str, usize> = HashMap::new();
            for line in before.lines() {
                *known.entry(line).or_default() += 1;
            }
            let origins = self.origins(&past, path, Some(&after), Some(until))?;
            let is_new = |line: &LineOrigin| match known.get_mut(line.text.as_str()) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            };
            let is_new = origins.lines.iter().map(is_new).collect();
            look(&Added { origins, is_new })?;
        }
        Ok(Some(Committed { id: commit.id, subject: commit.subject, left_out }))
    }
}
