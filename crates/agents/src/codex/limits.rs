//! What Codex knows of its plan's windows, and of the errors that end a turn.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::classify::Meaning;
use crate::classify::by_status;
use crate::classify::understand;
use crate::event::AgentEvent;
use crate::event::LimitStatus;
use crate::event::LimitWindow;
use crate::limit::Limit;
use crate::limit::LimitClass;
use crate::raw::Raw;

/// From here on Codex warns.
const NEAR: f64 = 75.0;
const FULL: f64 = 100.0;

/// A rollout's `rate_limits`, and what the app-server answers.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct RateLimits {
    limit_id: Option<String>,
    limit_name: Option<String>,
    primary: Option<RateWindow>,
    secondary: Option<RateWindow>,
    rate_limit_reached_type: Option<String>,
}

/// Which of the two it is says nothing: its length does.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
struct RateWindow {
    #[serde(alias = "usedPercent")]
    used_percent: f64,
    #[serde(alias = "windowDurationMins")]
    window_minutes: Option<u64>,
    #[serde(alias = "resetsAt")]
    resets_at: Option<i64>,
}

impl RateWindow {
    fn told(&self) -> LimitWindow {
        let used = Some(self.used_percent).filter(|used| used.is_finite());
        LimitWindow {
            name: self.name(),
            utilization: used.map(|used| used / 100.0),
            resets_at: self.resets_at,
        }
    }

    /// What Codex calls a window of this length.
    fn name(&self) -> String {
        let Some(minutes) = self.window_minutes else { return "unknown".to_owned() };
        let known =
            [(300, "5h"), (1_440, "daily"), (10_080, "weekly"), (43_200, "monthly"), (525_600, "annual")];
        let near = |length: u64| minutes.abs_diff(length).saturating_mul(20) <= length;
        let name = known.into_iter().find(|(length, _)| near(*length)).map(|(_, name)| name.to_owned());
        name.unwrap_or_else(|| format!("{minutes}m"))
    }
}

impl RateLimits {
    /// How full each window is.
    pub(super) fn told_windows(&self) -> Vec<LimitWindow> {
        self.windows().map(RateWindow::told).collect()
    }

    fn windows(&self) -> impl Iterator<Item = &RateWindow> {
        [&self.primary, &self.secondary].into_iter().flatten()
    }

    /// The window that refuses: a full one, and of two the one that opens later.
    fn full(&self) -> Option<&RateWindow> {
        self.windows().filter(|window| window.used_percent >= FULL).max_by_key(|window| window.resets_at)
    }

    /// What the account's state says beyond the windows.
    fn reached(&self) -> Option<LimitClass> {
        match self.rate_limit_reached_type.as_deref()? {
            "rate_limit_reached" => Some(LimitClass::Plan),
            kind if kind.starts_with("workspace_") => Some(LimitClass::Pay),
            _ => None,
        }
    }

    /// The one model that these windows are for.
    fn model(&self) -> Option<String> {
        self.limit_name.clone().filter(|_| self.limit_id.as_deref() != Some("codex"))
    }
}

/// What the rollout last said of the windows.
#[derive(Debug, Default)]
pub(super) struct Windows {
    last: Option<RateLimits>,
}

impl Windows {
    /// Takes note, and tells it if it is news.
    pub(super) fn told(&mut self, limits: RateLimits) -> Option<AgentEvent> {
        if limits.windows().next().is_none() || self.last.as_ref() == Some(&limits) {
            return None;
        }
        let fullest = limits.windows().max_by(|a, b| a.used_percent.total_cmp(&b.used_percent))?;
        let status = match (limits.reached(), fullest.used_percent >= NEAR) {
            (Some(_), _) => LimitStatus::Rejected,
            (None, true) => LimitStatus::Warning,
            (None, false) => LimitStatus::Allowed,
        };
        let (fullest, class) = (fullest.told(), limits.reached());
        let event = self::event(status, class, fullest, &limits);
        self.last = Some(limits);
        Some(event)
    }

    /// What an error that ended a turn means.
    pub(super) fn understand(&self, info: Option<&Raw>, text: &str) -> Meaning {
        let info = ErrorInfo::read(info);
        let meaning = understand(info.status, info.code.as_deref(), text);
        let meaning = match info.status.map(by_status) {
            // The words are about attempts and connections; the status says why they failed.
            Some(class) if meaning.limit.is_none() => Meaning::known(class, text),
            _ => meaning,
        };
        // One word for an empty window and an empty purse; the account's state tells them apart.
        let reached = self.last.as_ref().and_then(RateLimits::reached);
        match (meaning.limit.clone(), reached) {
            (Some(limit), Some(class)) if matches!(limit.class, LimitClass::Plan | LimitClass::Pay) => {
                Meaning::limited(Limit { class, ..*limit })
            }
            _ => meaning,
        }
    }

    /// That a turn ended because of the windows, told beside the output, which has no such field.
    pub(super) fn refused(&self, meaning: &Meaning) -> Option<AgentEvent> {
        let (limit, limits) = (meaning.limit.as_ref()?, self.last.as_ref()?);
        if !matches!(limit.class, LimitClass::Plan | LimitClass::Pay) {
            return None;
        }
        let full = limits.full().map(RateWindow::told);
        let none = || LimitWindow { name: String::new(), utilization: None, resets_at: None };
        let event = event(LimitStatus::Rejected, Some(limit.class), full.unwrap_or_else(none), limits);
        Some(event)
    }
}

fn event(
    status: LimitStatus,
    class: Option<LimitClass>,
    window: LimitWindow,
    limits: &RateLimits,
) -> AgentEvent {
    AgentEvent::Limit {
        status,
        class,
        window: Some(window.name).filter(|name| !name.is_empty()),
        utilization: window.utilization,
        resets_at: window.resets_at,
        windows: limits.windows().map(RateWindow::told).collect(),
        model: limits.model(),
        overage: None,
        overage_disabled_reason: None,
        using_overage: None,
    }
}

/// `codex_error_info`: a word, or a word with an HTTP status.
#[derive(Debug, Default)]
struct ErrorInfo {
    code: Option<String>,
    status: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    http_status_code: Option<u16>,
}

impl ErrorInfo {
    fn read(info: Option<&Raw>) -> Self {
        let Some(info) = info else { return Self::default() };
        if let Some(code) = info.read::<String>() {
            return Self { code: Some(code), status: None };
        }
        let object: BTreeMap<String, Option<Status>> = info.read().unwrap_or_default();
        let Some((code, status)) = object.into_iter().next() else { return Self::default() };
        Self { code: Some(code), status: status.and_then(|status| status.http_status_code) }
    }
}
