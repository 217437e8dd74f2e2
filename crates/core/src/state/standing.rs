//! Where a session stands, and what is remembered of how it stopped.

use super::LastKnown;
use super::Reason;
use super::RecoveryMark;
use super::State;
use super::apply::Mark;
use crate::limits;
use crate::status::Status;
use crate::text::Text;
use crate::time::Timestamp;

impl State {
    pub(super) fn stand(&mut self, status: Status, mark: &Mark, what: Option<&str>, details: Option<&Text>) {
        self.status = status;
        let details = details.map(|text| text.short(limits::NAME));
        self.reason = match (what, details) {
            (None, None) => None,
            (what, details) => Some(Reason { what: what.unwrap_or("").to_owned(), details }),
        };
        if status.is_terminal() {
            self.completed_at = Some(mark.at.max(self.created_at));
            self.driver = None;
            self.requests.clear();
            self.questions.clear();
        }
    }

    /// Work stopped in a way that it can be taken up after. How often that was tried counts on until somebody asks.
    pub(super) fn stop_at(&mut self, at: Timestamp, reason: &str) {
        let attempts = self.recovery.as_ref().map_or(0, |before| before.attempts);
        self.recovery = Some(Box::new(RecoveryMark {
            interrupted_at: at,
            interrupt_reason: reason.to_owned(),
            last_known_state: LastKnown {
                phase: self.phase.clone(),
                step: self.step,
                iteration: self.iteration,
                agent: self.run.as_ref().map(|run| run.agent.clone()).or_else(|| self.agent.clone()),
                action: self.last_action.clone(),
                error: self.errors.message.clone(),
            },
            in_doubt: (self.calls.in_doubt.len() + self.calls.open.len()) as u64,
            settled: 0,
            offered: Vec::new(),
            recovery_type: None,
            target: None,
            recovered_at: None,
            attempts,
        }));
    }
}
