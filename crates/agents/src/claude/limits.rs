//! The windows of Claude's plans: how full they are, and which one refuses.

use super::wire::RateLimitInfo;
use crate::event::AgentEvent;
use crate::event::LimitStatus;
use crate::event::LimitWindow;
use crate::limit::LimitClass;

/// More windows than any plan has are not told.
const MAX_WINDOWS: usize = 32;

/// What a line says of the windows.
pub(super) fn event(info: &RateLimitInfo) -> AgentEvent {
    // Only the status of the whole says whether requests are refused: a window may be full and paid beyond.
    let status = match info.status.as_deref() {
        Some("allowed") => LimitStatus::Allowed,
        Some("allowed_warning") => LimitStatus::Warning,
        Some("rejected") => LimitStatus::Rejected,
        _ => LimitStatus::Unknown,
    };
    let resets_at = info.resets_at.map(|seconds| seconds as i64);
    // Whatever may be said about money, a window with a time opens again.
    let refuses = status == LimitStatus::Rejected && resets_at.is_some();
    AgentEvent::Limit {
        status,
        class: refuses.then_some(LimitClass::Plan),
        window: info.rate_limit_type.clone(),
        utilization: info.utilization,
        resets_at,
        windows: windows(info),
        model: info.rate_limit_type.as_deref().and_then(model_of),
        overage: info.overage_status.clone(),
        overage_disabled_reason: info.overage_disabled_reason.clone(),
        using_overage: info.is_using_overage,
    }
}

fn windows(info: &RateLimitInfo) -> Vec<LimitWindow> {
    let windows = info.unified_windows.iter().flatten().take(MAX_WINDOWS);
    windows
        .map(|(name, window)| LimitWindow {
            name: name.clone(),
            utilization: window.utilization,
            resets_at: window.resets_at.map(|seconds| seconds as i64),
        })
        .collect()
}

/// `seven_day_opus` is one model's.
fn model_of(window: &str) -> Option<String> {
    let rest = window.strip_prefix("seven_day_").or_else(|| window.strip_prefix("five_hour_"))?;
    (!rest.is_empty() && !["overage_included", "oauth_apps"].contains(&rest)).then(|| rest.to_owned())
}
