//! Checkpoints as they are listed, found by whatever people call them.

use segno_core::List;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::event::ConversationMark;
use segno_core::event::HeadMark;
use segno_core::event::SnapshotMark;
use serde::Deserialize;
use serde::Serialize;

use crate::Engine;
use crate::Error;

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its id.
    pub id: String,
    /// Its number.
    pub ordinal: u64,
    /// Its name.
    pub name: String,
    /// Why it was made.
    pub reason: String,
    /// The event that set it.
    pub seq: u64,
    /// When.
    pub created_at: Timestamp,
    /// The phase then.
    #[serde(default)]
    pub phase: Option<String>,
    /// The step then.
    #[serde(default)]
    pub step: Option<u32>,
    /// How much had been done in all, if that was counted then.
    #[serde(default)]
    pub actions: Option<u64>,
    /// Whether all of it is on disk.
    #[serde(default)]
    pub ready: bool,
    /// False after a rollback to an earlier one.
    #[serde(default = "yes")]
    pub valid: bool,
    /// The one that was rolled back to.
    #[serde(default)]
    pub invalidated_by: Option<u64>,
    /// Whether it stays whatever the rules say.
    #[serde(default)]
    pub pinned: bool,
    /// Whether it was made only so that a restore can be undone.
    #[serde(default)]
    pub aside: bool,
    /// The one that the tree was at before.
    #[serde(default)]
    pub parent: Option<u64>,
    /// The files.
    #[serde(default)]
    pub snapshot: Option<SnapshotMark>,
    /// The conversation.
    #[serde(default)]
    pub conversation: Option<ConversationMark>,
    /// The repository.
    #[serde(default)]
    pub head: Option<HeadMark>,
    /// Over all of it.
    #[serde(default)]
    pub checksum: String,
    /// Why it has no files.
    #[serde(default)]
    pub problem: Option<segno_core::Text>,
    /// Why its files were given up.
    #[serde(default)]
    pub dropped: Option<String>,
}

fn yes() -> bool {
    true
}

impl Checkpoint {
    /// Whether a turn can be taken back to it.
    pub(super) fn begins_a_turn(&self) -> bool {
        self.reason == "run_start"
    }
}

impl Engine {
    /// All checkpoints of a session, the oldest first.
    pub fn checkpoints(&self, session: SessionId) -> Result<Vec<Checkpoint>, Error> {
        let rows = self.items(session, List::Checkpoints)?;
        Ok(rows.into_iter().filter_map(|row| serde_json::from_value(row.body).ok()).collect())
    }

    /// The newest checkpoint that fits, among the newest `most`; the list is read from its end, page by page.
    pub(crate) fn newest_checkpoint(
        &self,
        session: SessionId,
        most: usize,
        page: usize,
        fits: impl Fn(&Checkpoint) -> bool,
    ) -> Result<Option<Checkpoint>, Error> {
        let mut after = None;
        let mut left = most;
        loop {
            let page = segno_store::Page { after, limit: page.min(left), newest_first: true };
            let rows = self.store().page(session, List::Checkpoints, &page)?;
            let Some(last) = rows.last() else { return Ok(None) };
            after = Some(segno_store::ItemPlace { seq: last.seq, key: last.key.clone() });
            left -= rows.len().min(left);
            let mut found = rows.into_iter().filter_map(|row| serde_json::from_value(row.body).ok());
            if let Some(checkpoint) = found.find(&fits) {
                return Ok(Some(checkpoint));
            }
            if left == 0 {
                return Ok(None);
            }
        }
    }

    /// The checkpoint that a text names: its id, its number, its name (the newest of several), or a moment (the last
    /// one before it).
    pub fn find_checkpoint(&self, session: SessionId, text: &str) -> Result<Checkpoint, Error> {
        let all = self.checkpoints(session)?;
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let moment: Option<Timestamp> = text.parse().ok();
        let found = all.iter().rev().find(|checkpoint| {
            checkpoint.id == text
                || (is_number && checkpoint.ordinal.to_string() == text)
                || checkpoint.name == text
                || (text == "last" && !checkpoint.aside)
                || moment.is_some_and(|moment| checkpoint.created_at <= moment)
        });
        found.cloned().ok_or_else(|| {
            Error::Refused(segno_core::Refusal::Unknown { what: "checkpoint", id: text.to_owned() })
        })
    }

    pub(crate) fn checkpoint_number(&self, session: SessionId, ordinal: u64) -> Result<Checkpoint, Error> {
        // As the list keeps them.
        let rows = self.store().rows(session, List::Checkpoints, &[format!("{ordinal:020}")])?;
        let found = rows.into_iter().next().and_then(|row| serde_json::from_value(row.body).ok());
        found.ok_or_else(|| {
            Error::Refused(segno_core::Refusal::Unknown { what: "checkpoint", id: ordinal.to_string() })
        })
    }
}
