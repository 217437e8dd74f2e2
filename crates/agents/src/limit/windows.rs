//! What was last said of the windows of a plan, for an error that does not say it.

use super::Limit;
use super::LimitClass;
use super::Overage;
use super::ResetTime;
use crate::bounds::is_short;
use crate::event::AgentEvent;
use crate::event::LimitStatus;
use crate::event::LimitWindow;

/// More windows than any plan has are not remembered.
const MAX_WINDOWS: usize = 32;

/// The windows as they were last told.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// What refuses requests, if anything does.
    refuses: Option<Limit>,
    all: Vec<LimitWindow>,
    overage: Option<Overage>,
}

impl Windows {
    /// Takes note of what an event says of them.
    pub(crate) fn saw(&mut self, event: &AgentEvent) {
        let AgentEvent::Limit {
            status,
            class,
            window,
            resets_at,
            windows,
            model,
            overage,
            overage_disabled_reason,
            using_overage,
            ..
        } = event
        else {
            return;
        };
        let short = |name: &Option<String>| name.clone().filter(|name| is_short(name));
        self.refuses = class.filter(|_| *status == LimitStatus::Rejected).map(|class| Limit {
            window: short(window),
            model: short(model),
            resets: resets_at.map(ResetTime::At),
            ..Limit::new(class)
        });
        // What repeats an event before it may leave them out.
        if !windows.is_empty() {
            self.all =
                windows.iter().filter(|window| is_short(&window.name)).take(MAX_WINDOWS).cloned().collect();
        }
        self.overage = Overage {
            status: short(overage),
            disabled_reason: short(overage_disabled_reason),
            in_use: *using_overage,
        }
        .some();
    }

    /// What refuses requests, and until when, by the last word on it.
    pub(crate) fn standing_refusal(&self) -> Option<Limit> {
        let refuses = self.refuses.clone().filter(|limit| limit.resets.is_some())?;
        Some(self.complete(refuses))
    }

    /// A limit that an error tells of, with what is known of the windows.
    pub(crate) fn complete(&self, mut limit: Limit) -> Limit {
        if !matches!(limit.class, LimitClass::Plan | LimitClass::Transient | LimitClass::Pay) {
            return limit;
        }
        if let Some(refuses) = &self.refuses {
            limit.class = refuses.class;
            limit.window = refuses.window.clone().or(limit.window);
            limit.model = refuses.model.clone().or(limit.model);
            limit.resets = refuses.resets.clone().or(limit.resets);
        }
        limit.windows.clone_from(&self.all);
        limit.overage.clone_from(&self.overage);
        limit
    }
}
