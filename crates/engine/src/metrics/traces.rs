//! What a run did, as whoever follows traces wants to know it: names, times and numbers, never what was said.

use segno_core::List;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::rows::RunRow;
use segno_core::rows::ToolRow;
use segno_store::Item;

use crate::Engine;
use crate::Error;

/// At most so many calls of a run are told.
const CALLS: usize = 2_000;

/// A run that has ended, with its calls.
#[derive(Clone, Debug)]
pub struct RunTrace {
    /// Whose it is.
    pub session: SessionId,
    /// It.
    pub run: RunRow,
    /// Its calls with what the ledger calls them, the newest first.
    pub calls: Vec<(String, ToolRow)>,
}

impl Engine {
    /// The runs of a session that have ended since some moment, with their newest calls.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn runs_ended_since(&self, session: SessionId, since: Timestamp) -> Result<Vec<RunTrace>, Error> {
        let is_new = |item: &Item| {
            let run: RunRow = item.row();
            run.ended_at.is_none_or(|ended| ended > since)
        };
        let runs: Vec<RunRow> =
            self.newest_while(session, List::Runs, is_new)?.iter().map(Item::row).collect();
        let mut traces = Vec::new();
        for run in runs.into_iter().filter(|run| run.ended_at.is_some()) {
            let began = run.started_at.unwrap_or(since);
            let is_later = |item: &Item| {
                let call: ToolRow = item.row();
                call.started_at.is_none_or(|at| at >= began)
            };
            let later = self.newest_while(session, List::Tools, is_later)?;
            let calls = later.iter().map(|item| (item.key.clone(), item.row::<ToolRow>()));
            let calls = calls.filter(|(_, call)| call.run.as_ref() == Some(&run.run)).take(CALLS).collect();
            traces.push(RunTrace { session, run, calls });
        }
        traces.reverse();
        Ok(traces)
    }
}
