//! What others have used meanwhile of the caps that a run shares with them.

use std::time::Duration;
use std::time::Instant;

use segno_core::Fact;
use segno_core::event::Unit;
use segno_core::refusal::cap_words;
use serde_json::json;

use super::Recorder;

/// How often it is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What is known of it.
#[derive(Default)]
pub(super) struct SharedCaps {
    looked: Option<Instant>,
    /// What this session had used then: tokens and money.
    used: (u64, u64),
    reached: Option<String>,
    warned: bool,
}

impl Recorder<'_> {
    /// The shared cap that is used up, in words, as it was last seen.
    pub(in crate::run) fn shared_cap(&self) -> Option<String> {
        self.shared.reached.clone()
    }

    /// Looks at the caps that are shared: at once when this session used more, and now and then for what others use. What
    /// cannot be read now is looked at again soon.
    pub(in crate::run) fn look_at_shared_caps(&mut self) {
        let used = (self.state.tokens.total(), self.state.cost.used_micros);
        let is_fresh = self.shared.looked.is_some_and(|looked| looked.elapsed() < LOOK);
        if is_fresh && self.shared.used == used {
            return;
        }
        self.shared.looked = Some(Instant::now());
        self.shared.used = used;
        match self.engine.check_shared(&self.state) {
            Ok(()) => self.shared.reached = None,
            Err(crate::Error::DayCapReached { unit, used, total, .. }) => {
                self.shared.reached = Some(format!("{} of today is used up", cap_words(unit, used, total)));
            }
            Err(crate::Error::CapReached { unit, used, total, .. }) => {
                let words = cap_words(unit, used, total);
                self.shared.reached = Some(format!("{words} that sessions go on with together is used up"));
            }
            Err(_) => return,
        }
        self.warn_of_day();
    }

    /// Says once that the day runs low.
    fn warn_of_day(&mut self) {
        if self.shared.warned || !self.engine.day_caps().is_set() {
            return;
        }
        let Ok(day) = self.engine.day_stand(&self.state.project.path) else { return };
        let Some((unit, used, total)) = day.caps.low(&day.used) else { return };
        self.shared.warned = true;
        let what = match unit {
            Unit::Tokens => "tokens",
            Unit::Cost => "cost",
        };
        let body = json!({ "unit": what, "used": used, "total": total, "until": day.until.to_string() });
        self.note(Fact::Reported { what: "day_budget_low".to_owned(), body });
        self.warn(format!("{} of today runs low in this project", cap_words(unit, used, total)));
    }
}
