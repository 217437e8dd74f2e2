//! What Claude Code tells the command of its status line.

use serde::Deserialize;

use crate::bounds::is_short;
use crate::event::LimitWindow;
use crate::status_line::StatusInput;

/// The object on standard input, as far as it is looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input {
    session_id: Option<String>,
    cwd: Option<String>,
    model: Option<Model>,
    workspace: Option<Workspace>,
    version: Option<String>,
    context_window: Option<ContextWindow>,
    rate_limits: Option<RateLimits>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Model {
    display_name: Option<String>,
    id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Workspace {
    current_dir: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContextWindow {
    used_percentage: Option<f64>,
}

/// The windows of a plan; somebody who pays by use has none. What an account may spend is no window of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RateLimits {
    five_hour: Option<Window>,
    seven_day: Option<Window>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Window {
    used_percentage: Option<f64>,
    resets_at: Option<f64>,
}

pub(super) fn read(input: &[u8]) -> Option<StatusInput> {
    let text = std::str::from_utf8(input).ok()?;
    // A list would do for the members of an object, in their order.
    if !text.trim_start().starts_with('{') {
        return None;
    }
    // A member that has another shape by now must not cost the others.
    let input: Input = crate::lenient::read(text, &mut Vec::new())?;
    let short = |text: Option<String>| text.filter(|text| is_short(text));
    let model = input.model.unwrap_or_default();
    let limits = input.rate_limits.unwrap_or_default();
    let windows = [("five_hour", limits.five_hour), ("seven_day", limits.seven_day)];
    Some(StatusInput {
        native_id: short(input.session_id),
        directory: input.workspace.and_then(|workspace| workspace.current_dir).or(input.cwd),
        model: short(model.display_name).or(short(model.id)),
        version: short(input.version),
        context_percent: input.context_window.and_then(|window| percent(window.used_percentage)),
        windows: windows.into_iter().filter_map(|(name, window)| window_of(name, window?)).collect(),
    })
}

fn window_of(name: &str, window: Window) -> Option<LimitWindow> {
    let used = window.used_percentage.filter(|used| used.is_finite() && (0.0..=1000.0).contains(used))?;
    let resets_at = window.resets_at.filter(|at| at.is_finite() && *at > 0.0).map(|at| at as i64);
    Some(LimitWindow { name: name.to_owned(), utilization: Some(used / 100.0), resets_at })
}

fn percent(told: Option<f64>) -> Option<u8> {
    told.filter(|told| (0.0..=100.0).contains(told)).map(|told| told.round() as u8)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_it_tells_is_read() {
        let input = json!({
            "hook_event_name": "Status", "session_id": "c-1", "cwd": "/p", "version": "2.1.325",
            "model": { "id": "claude-opus", "display_name": "Opus" },
            "workspace": { "current_dir": "/p/sub", "project_dir": "/p" },
            "context_window": { "used_percentage": 8.4, "context_window_size": 200_000 },
            "rate_limits": {
                "five_hour": { "used_percentage": 23.5, "resets_at": 1_800_000_000 },
                "seven_day": { "used_percentage": 41, "resets_at": 1_800_500_000 },
                "spend_limit": { "used_percentage": 1, "resets_at": 1 },
            },
        });
        let read = read(input.to_string().as_bytes()).unwrap();
        assert_eq!((read.native_id.as_deref(), read.model.as_deref()), (Some("c-1"), Some("Opus")));
        assert_eq!((read.directory.as_deref(), read.context_percent), (Some("/p/sub"), Some(8)));
        let windows: Vec<_> = read
            .windows
            .iter()
            .map(|window| (window.name.as_str(), window.utilization, window.resets_at))
            .collect();
        let expected =
            [("five_hour", Some(0.235), Some(1_800_000_000)), ("seven_day", Some(0.41), Some(1_800_500_000))];
        assert_eq!(windows, expected);
    }

    #[test]
    fn what_has_another_shape_costs_nothing_else() {
        let input = r#"{"session_id":"c-1","model":"opus","rate_limits":{"five_hour":{"used_percentage":"much"},"seven_day":{"used_percentage":5}}}"#;
        let told = read(input.as_bytes()).unwrap();
        assert_eq!((told.native_id.as_deref(), told.model), (Some("c-1"), None));
        assert_eq!(told.windows.len(), 1);
        for wrong in [&b""[..], b"[]", b"\xff", b"{", b"nothing"] {
            assert_eq!(read(wrong), None);
        }
    }
}
