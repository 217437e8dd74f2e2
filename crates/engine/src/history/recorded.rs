//! What segno recorded of conversations itself.

use std::collections::HashMap;
use std::collections::HashSet;

use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::rows::RunRow;

use super::take::Window;
use super::take::is_imported;

/// How long before we heard of a run its agent may have begun its log, in seconds.
const BEFORE: i64 = 2;

/// What segno itself recorded of conversations.
#[derive(Default)]
pub(super) struct Recorded {
    windows: HashMap<(String, String), Vec<Window>>,
    /// Which conversation is a copy of which.
    copies: HashMap<(String, String), String>,
}

impl Recorded {
    /// When segno recorded a conversation, or one that it is a copy of.
    pub(super) fn windows_of(&self, agent: &str, conversation: &str) -> Vec<Window> {
        let mut windows = Vec::new();
        let mut id = conversation.to_owned();
        let mut seen = HashSet::new();
        while seen.insert(id.clone()) && seen.len() < 100 {
            let key = (agent.to_owned(), id);
            windows.extend(self.windows.get(&key).into_iter().flatten().copied());
            match self.copies.get(&key) {
                Some(origin) => id = origin.clone(),
                None => break,
            }
        }
        windows
    }

    /// Takes a run into account.
    pub(super) fn note(&mut self, session: SessionId, run: RunRow, now: Timestamp) {
        let (Some(native), Some(from)) = (run.native_id, run.started_at) else { return };
        if is_imported(&run.run) {
            return;
        }
        let to = run.ended_at.unwrap_or(now);
        let key = (run.agent.clone(), native.clone());
        if let Some(resumed) = run.resumed.filter(|resumed| *resumed != native) {
            self.copies.insert(key.clone(), resumed);
        }
        self.windows.entry(key).or_default().push(Window { session, from: from.plus_seconds(-BEFORE), to });
    }
}
