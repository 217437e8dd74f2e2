//! How often the view of a session is written by a driver that changes it again and again: writing it costs the more the
//! longer the session is, and nobody reads each of them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use segno_core::SessionId;
use segno_core::State;

use crate::Engine;

/// The shortest rest between two views.
pub(crate) const SHORTEST: Duration = Duration::from_secs(1);
/// A long view takes a while to write: it rests so many times as long, lest a run become the writing of its view.
pub(crate) const RESTS: u32 = 30;

/// The sessions whose views rest between two writes.
#[derive(Debug, Default)]
pub(crate) struct ViewPace(Mutex<BTreeMap<SessionId, Paced>>);

#[derive(Clone, Debug, Default)]
struct Paced {
    /// When the next one may be written.
    from: Option<Instant>,
    /// Whether something changed since the last one.
    stale: bool,
    /// What was said about it so far.
    said: BTreeSet<String>,
}

impl ViewPace {
    /// Whether the view of a session is not to be written now; then it is behind what happened.
    fn rests(&self, session: SessionId) -> bool {
        let mut paced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(one) = paced.get_mut(&session) else { return false };
        let rests = one.from.is_some_and(|from| Instant::now() < from);
        one.stale = rests;
        rests
    }

    /// Whether that is said of a session for the first time since its view rests.
    pub(crate) fn is_news(&self, session: SessionId, notice: &str) -> bool {
        let mut paced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paced.get_mut(&session).is_none_or(|one| one.said.insert(notice.to_owned()))
    }

    /// It was written, and that took so long.
    fn written(&self, session: SessionId, took: Duration) {
        let mut paced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = paced.get_mut(&session) {
            one.from = Some(Instant::now() + SHORTEST.max(took * RESTS));
        }
    }
}

/// As long as it is there the view of a session rests between two writes; at its end it is brought up to date.
pub(crate) struct PacedView<'a> {
    engine: &'a Engine,
    session: SessionId,
}

impl Engine {
    /// Lets the view of a session rest between two writes from now on.
    pub(crate) fn pace_view(&self, session: SessionId) -> PacedView<'_> {
        let mut paced = self.views.0.lock().unwrap_or_else(PoisonError::into_inner);
        paced.insert(session, Paced::default());
        PacedView { engine: self, session }
    }

    /// Writes the view, unless it rests. The copies for other tools do not rest where a phase, an iteration or the
    /// standing of a session changed: who follows them sees each of these.
    pub(crate) fn write_view_in_turn(&self, state: &State, at_once: bool, notices: &mut Vec<String>) {
        if self.views.rests(state.session_id) {
            if at_once {
                self.refresh_layouts(state, notices);
            }
            return;
        }
        let begun = Instant::now();
        self.write_view_now(state, notices);
        self.views.written(state.session_id, begun.elapsed());
    }
}

impl Drop for PacedView<'_> {
    fn drop(&mut self) {
        let paced = self.engine.views.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.session);
        if !paced.is_some_and(|paced| paced.stale) {
            return;
        }
        // The record is safe; whoever changes the session next writes its view.
        match self.engine.load(self.session) {
            Ok(loaded) => {
                let mut notices = Vec::new();
                self.engine.write_view_now(&loaded.state, &mut notices);
                for notice in notices {
                    tracing::warn!(session = %self.session, %notice, "the view at the end of a loop");
                }
            }
            Err(why) => tracing::warn!(session = %self.session, %why, "its view is behind"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(text: &str) -> SessionId {
        text.parse().unwrap()
    }

    #[test]
    fn a_paced_view_rests_after_it_was_written_and_any_other_does_not() {
        let (paced, other) =
            (session("session_20260101_000000_000001"), session("session_20260101_000000_000002"));
        let pace = ViewPace::default();
        assert!(!pace.rests(paced), "nobody asked for it");
        pace.0.lock().unwrap().insert(paced, Paced::default());
        assert!(!pace.rests(paced), "the first one is written at once");
        // As long as a test may take, and longer.
        pace.written(paced, Duration::from_secs(600));
        pace.written(other, Duration::from_secs(600));
        assert_eq!((pace.rests(paced), pace.rests(other)), (true, false));
        assert!(pace.0.lock().unwrap()[&paced].stale, "and is behind now");
        let news = [paced, paced, other, other].map(|of| pace.is_news(of, "left alone"));
        assert_eq!(news, [true, false, true, true], "what is said again and again in a loop is said once");
    }
}
