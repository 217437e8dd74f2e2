//! Asking an agent how full the windows of its plan are, without a call of the model.

/// A question, as data: the program is started with these arguments and given this input, which stays open until a line
/// of its output is the answer.
#[derive(Debug, Clone)]
pub struct UsageQuestion {
    /// Its arguments.
    pub args: Vec<String>,
    /// What it is given.
    pub input: Vec<u8>,
    /// What a line says, if it is the answer.
    pub read: fn(&[u8]) -> Option<UsageAnswer>,
}

/// What an agent knows of its plan.
#[derive(Debug, Clone, PartialEq)]
pub enum UsageAnswer {
    /// Nothing: no plan, not logged in, or it could not find out.
    CannotTell,
    /// How full each window is.
    Windows(Vec<UsageWindow>),
}

/// One window.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageWindow {
    /// As the vendor names it.
    pub name: String,
    /// How much of it is used; 1 is all.
    pub used: f64,
    /// When it opens again, in seconds since 1970.
    pub resets_at: Option<i64>,
    /// The one model that it is for.
    pub model: Option<String>,
}

impl UsageAnswer {
    /// The window that keeps the whole account from working, if there is one: of several the one that opens last.
    pub fn used_up(&self) -> Option<&UsageWindow> {
        let Self::Windows(windows) = self else { return None };
        let full = windows.iter().filter(|window| window.model.is_none() && window.used >= 1.0);
        full.max_by_key(|window| window.resets_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name;

    fn read(agent: &str, line: &str) -> Option<UsageAnswer> {
        (by_name(agent).unwrap().usage_question().unwrap().read)(line.as_bytes())
    }

    fn window(name: &str, used: f64, resets_at: Option<i64>) -> UsageWindow {
        UsageWindow { name: name.into(), used, resets_at, model: None }
    }

    #[test]
    fn who_can_be_asked() {
        for name in crate::CODING {
            let agent = by_name(name).unwrap();
            assert_eq!(agent.capabilities().tells_usage, agent.usage_question().is_some(), "{name}");
            assert_eq!(agent.capabilities().tells_usage, ["claude", "codex"].contains(name), "{name}");
        }
    }

    #[test]
    fn claude() {
        let told = r#"{"type":"control_response","response":{"subtype":"success","request_id":"segno-usage","response":{"subscription_type":"max","rate_limits_available":true,"rate_limits":{"five_hour":{"utilization":100,"resets_at":"2026-11-18T04:00:00Z"},"seven_day":{"utilization":41.5,"resets_at":null},"seven_day_opus":{"utilization":100,"resets_at":"2026-11-20T00:00:00+00:00"},"model_scoped":[{"display_name":"Fable","utilization":12,"resets_at":null}],"extra_usage":{"is_enabled":false}}}}}"#;
        let answer = read("claude", told).unwrap();
        let full = window("five_hour", 1.0, Some(1_794_974_400));
        assert_eq!(
            answer.used_up(),
            Some(&full),
            "the window of one model keeps only that model from working"
        );
        let UsageAnswer::Windows(windows) = &answer else { panic!() };
        assert_eq!(windows.len(), 4);
        assert_eq!(windows[1], window("seven_day", 0.415, None));
        assert_eq!(windows[3].model.as_deref(), Some("Fable"));
        // More may be used for money: whether it is refused cannot be told.
        let more = told.replace(r#""is_enabled":false"#, r#""is_enabled":true"#);
        assert_eq!(read("claude", &more), Some(UsageAnswer::CannotTell));
        // As the real one answers without a subscription.
        let none = r#"{"type":"control_response","response":{"subtype":"success","request_id":"segno-usage","response":{"subscription_type":null,"rate_limits_available":false,"rate_limits":null,"behaviors":null}}}"#;
        assert_eq!(read("claude", none), Some(UsageAnswer::CannotTell));
        let refused = r#"{"type":"control_response","response":{"subtype":"error","request_id":"segno-usage","error":"no"}}"#;
        assert_eq!(read("claude", refused), Some(UsageAnswer::CannotTell));
        for other in [r#"{"type":"system","subtype":"init"}"#, "not json", &none.replace("segno-usage", "u1")]
        {
            assert_eq!(read("claude", other), None, "{other}");
        }
    }

    #[test]
    fn codex() {
        let told = r#"{"id":2,"result":{"rateLimits":{"limitId":"codex","primary":{"usedPercent":100,"windowDurationMins":300,"resetsAt":1794974400},"secondary":{"usedPercent":100,"windowDurationMins":10080,"resetsAt":1795207984},"credits":null,"rateLimitReachedType":"rate_limit_reached"}}}"#;
        let answer = read("codex", told).unwrap();
        assert_eq!(
            answer.used_up(),
            Some(&window("weekly", 1.0, Some(1_795_207_984))),
            "the later one counts"
        );
        let open = told.replace("\"usedPercent\":100", "\"usedPercent\":99");
        assert_eq!(read("codex", &open).unwrap().used_up(), None);
        // As the real one answers when nobody is logged in.
        let error = r#"{"error":{"code":-32600,"message":"codex account authentication required to read rate limits"},"id":2}"#;
        assert_eq!(read("codex", error), Some(UsageAnswer::CannotTell));
        for other in [r#"{"id":1,"result":{"userAgent":"x"}}"#, r#"{"method":"configWarning","params":{}}"#] {
            assert_eq!(read("codex", other), None, "{other}");
        }
    }
}
