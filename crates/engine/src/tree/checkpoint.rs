//! Checkpoints as they are listed, found by whatever people call them.

use segno_core::List;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::event::CheckpointReason;
use segno_core::rows::Row as _;

use crate::Engine;
use crate::Error;

pub use segno_core::rows::CheckpointRow as Checkpoint;

/// How many of the newest checkpoints are looked through for one that can be used, and how many are read at once.
const NEWEST: usize = 1_000;
const PAGE: usize = 20;

/// A row as a checkpoint. Numbers begin at 1: a row without one is damaged.
pub(super) fn read_row(body: &serde_json::Value) -> Option<Checkpoint> {
    Checkpoint::read(body).filter(|checkpoint| checkpoint.ordinal > 0)
}

/// Nobody goes back to a checkpoint that came with a session: this record does not have what it held.
pub(crate) fn refuse_from_elsewhere(checkpoint: &Checkpoint) -> Result<(), Error> {
    match checkpoint.is_from_elsewhere() {
        false => Ok(()),
        true => Err(Error::NoTree(from_elsewhere(checkpoint))),
    }
}

/// What is said of one.
pub(super) fn from_elsewhere(checkpoint: &Checkpoint) -> String {
    format!(
        "{} came with the session: what it held is in the files that the session came from, and not in this record",
        checkpoint.id
    )
}

/// The key of a checkpoint's row, as the list keeps it.
pub(super) fn row_key(ordinal: u64) -> String {
    format!("{ordinal:020}")
}

impl Engine {
    /// All checkpoints of a session, the oldest first.
    pub fn checkpoints(&self, session: SessionId) -> Result<Vec<Checkpoint>, Error> {
        let rows = self.items(session, List::Checkpoints)?;
        let read: Option<Vec<Checkpoint>> = rows.iter().map(|row| read_row(&row.body)).collect();
        match read {
            Some(all) => Ok(all),
            // A damaged row must not make its checkpoint vanish: the journal still has it.
            None => {
                let rows = segno_store::from_journal(self.store(), session, List::Checkpoints)?;
                Ok(rows.iter().filter_map(|row| read_row(&row.body)).collect())
            }
        }
    }

    /// The newest checkpoint that can be gone back to. One that was made only to be safe, before a restore, is none.
    pub fn newest_usable_checkpoint(&self, session: SessionId) -> Result<Option<Checkpoint>, Error> {
        self.newest_checkpoint(session, NEWEST, PAGE, |found| {
            found.valid
                && !found.aside
                && !found.is_from_elsewhere()
                && !found.is_for(CheckpointReason::BeforeRestore)
        })
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
            after = Some(segno_store::ItemPosition { seq: last.seq, key: last.key.clone() });
            left -= rows.len().min(left);
            let mut found = rows.iter().filter_map(|row| read_row(&row.body));
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
        let rows = self.store().rows(session, List::Checkpoints, &[row_key(ordinal)])?;
        let found = rows.first().and_then(|row| read_row(&row.body));
        found.ok_or_else(|| {
            Error::Refused(segno_core::Refusal::Unknown { what: "checkpoint", id: ordinal.to_string() })
        })
    }
}
