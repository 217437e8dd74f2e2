//! When the view of a session is written while its run goes on.

use std::time::Duration;
use std::time::Instant;

use segno_core::State;

use super::Recorder;
use super::VIEW;
use super::VIEW_RESTS;

/// However little happens, the view shows it after so long.
const AUTO_SAVE: Duration = Duration::from_secs(30);

impl Recorder<'_> {
    /// The state that the view is to show now, if that is due. Whoever takes it writes it and says so.
    pub(in crate::run) fn view_to_write(&mut self) -> Option<State> {
        self.view_beside = true;
        if self.view_under_way || !self.view_is_due(false) {
            return None;
        }
        (self.view_due, self.view_stale, self.view_under_way) = (false, false, true);
        Some(self.state.clone())
    }

    /// Writes the view if it is due; `now` does not wait for its second.
    pub(in crate::run) fn refresh_view(&mut self, now: bool) {
        if (now || !self.view_beside) && self.view_is_due(now) {
            (self.view_due, self.view_stale) = (false, false);
            let begun = Instant::now();
            self.engine.refresh_view(&self.state, &mut self.notices);
            self.view_written = Some(Instant::now());
            self.view_rest = VIEW.max(begun.elapsed() * VIEW_RESTS);
        }
    }

    fn view_is_due(&self, now: bool) -> bool {
        let written = self.view_written.map(|written| written.elapsed());
        let rested = written.is_none_or(|ago| ago >= self.view_rest);
        let saves = self.view_stale && written.is_some_and(|ago| ago >= AUTO_SAVE);
        (self.view_due || saves || (now && self.view_stale)) && (now || rested)
    }
}
