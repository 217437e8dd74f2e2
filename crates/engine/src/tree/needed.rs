//! Which snapshots a session still needs, as its journal tells it.
//!
//! Rows of lists can be wrong without anybody noticing; what is removed because of one is gone. So whoever removes asks
//! the journal, whose every event is checked.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use segno_core::Event;
use segno_core::List;
use segno_core::SessionId;
use segno_core::event::ImportedItem;
use segno_store::EventRow;

use crate::Engine;
use crate::Error;

/// How many events are read at once.
const PAGE: usize = 1_000;

/// The snapshots that a session needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// These and no others.
    Only(BTreeSet<String>),
    /// A part of the journal cannot be read, so it may be any.
    Unknown,
}

impl Needed {
    /// Whether a snapshot may be needed.
    pub(crate) fn may_need(&self, name: &str) -> bool {
        match self {
            Self::Only(names) => names.contains(name),
            Self::Unknown => true,
        }
    }
}

impl Engine {
    /// The snapshots that ready checkpoints of a session speak of. A session that is not there needs none.
    pub(crate) fn needed_snapshots(&self, session: SessionId) -> Result<Needed, Error> {
        let mut ready: BTreeMap<u64, String> = BTreeMap::new();
        let mut after = 0;
        loop {
            let rows = match self.store().events(session, after, PAGE) {
                Ok(rows) => rows,
                Err(segno_store::Error::NotFound(_)) => return Ok(Needed::Only(BTreeSet::new())),
                Err(segno_store::Error::Damaged { .. } | segno_store::Error::SessionDamaged { .. }) => {
                    return Ok(Needed::Unknown);
                }
                Err(why) => return Err(why.into()),
            };
            if rows.is_empty() {
                return Ok(Needed::Only(ready.into_values().collect()));
            }
            for row in rows {
                let EventRow::Whole(stored) = row else { return Ok(Needed::Unknown) };
                after = stored.seq;
                // Most events are none of these, and reading them would be most of the work.
                if !stored.kind.starts_with("checkpoint") && stored.kind != "items_imported" {
                    continue;
                }
                let Ok(event) = stored.event() else { return Ok(Needed::Unknown) };
                follow(&mut ready, event);
            }
        }
    }
}

fn follow(ready: &mut BTreeMap<u64, String>, event: Event) {
    match event {
        Event::CheckpointReady(ready_now) => match ready_now.snapshot {
            Some(snapshot) => {
                ready.insert(ready_now.ordinal, snapshot.name);
            }
            None => {
                ready.remove(&ready_now.ordinal);
            }
        },
        Event::CheckpointFailed(failed) => {
            ready.remove(&failed.ordinal);
        }
        Event::CheckpointDropped(dropped) => {
            ready.remove(&dropped.ordinal);
        }
        Event::ItemsImported(imported) if imported.list == List::Checkpoints => {
            ready.extend(imported.items.iter().filter_map(in_row));
        }
        _ => {}
    }
}

/// The snapshot of a checkpoint that came as a row. Only what is asked for is read: whatever else is odd about the row,
/// its files are needed.
fn in_row(item: &ImportedItem) -> Option<(u64, String)> {
    let name = item.body["snapshot"]["name"].as_str()?;
    Some((item.body["ordinal"].as_u64()?, name.to_owned()))
}
