//! Limits of the provider, as the real agents tell them: the class, and when the limit ends.

use rstest::rstest;
use segno_testkit::model::Fault;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;
use serde_json::Value;
use serde_json::json;

use super::Real;

/// 2030-01-03, 02:00 UTC: far from any day on which this runs, so that agents name the day.
const RESETS: i64 = 1_893_636_000;

/// An error with this body, again and again.
fn refuses(status: u16, body: Value) -> Script {
    let fault =
        Fault::Error { status, kind: None, message: None, headers: Default::default(), body: Some(body) };
    Script::new([Turn::from(fault)]).then(Then::Repeat)
}

/// The limit in the journal is the one in the result, with its time as a moment.
fn recorded(real: &Real, class: &str, resets_at: Option<i64>) {
    let ended = real.lab.journal(Some("run_ended")).pop().unwrap()["body"]["limit"].take();
    assert_eq!((&ended["class"], &ended["agent"]), (&json!(class), &json!(real.agent)), "{ended}");
    assert_eq!(ended["resets_at"].as_i64(), resets_at, "{ended}");
    let state = real.lab.state();
    assert_eq!(state["run"]["limit"], ended, "{state}");
}

#[test]
fn claude_whose_window_is_used_up() {
    let mut turn = Turn::error(429);
    for (name, value) in [
        ("status", "rejected"),
        ("reset", "1893636000"),
        ("representative-claim", "five_hour"),
        ("5h-status", "rejected"),
        ("5h-utilization", "1.02"),
        ("5h-reset", "1893636000"),
    ] {
        turn = turn.header(&format!("anthropic-ratelimit-unified-{name}"), value);
    }
    // Windows are a subscription's.
    let subscribed = |mut recipe: segno_testkit::recipe::Recipe| {
        recipe.env.remove("ANTHROPIC_API_KEY");
        recipe.env.insert("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "dummy".to_owned());
        recipe
    };
    let script = Script::new([turn]).then(Then::Repeat);
    let Some(real) = Real::prepared("claude", script, Patience::default(), subscribed) else { return };
    let result = real.ended("plan used up", &real.run(&[]), "limit", "paused");
    let limit = &result["limit"];
    assert_eq!((&limit["class"], &limit["window"]), (&json!("plan"), &json!("five_hour")), "{limit}");
    assert_eq!(
        (&limit["resets_at"], &limit["resets_text"]),
        (&json!(RESETS), &json!("Jan 3, 2030, 2am (UTC)"))
    );
    assert_eq!(real.asked().len(), 1, "it does not try again");
    recorded(&real, "plan", Some(RESETS));
    let mark = &real.lab.state()["limits"]["claude:five_hour"];
    assert_eq!(
        (&mark["status"], &mark["resets_at"]),
        (&json!("rejected"), &json!("2030-01-03T02:00:00.000000Z")),
        "{mark}"
    );
}

/// The output has only words; the windows are in the rollout.
#[test]
fn codex_whose_window_is_used_up() {
    let body = json!({ "error": { "type": "usage_limit_reached", "message": "no", "plan_type": "plus", "resets_at": RESETS } });
    let fault = Fault::Error {
        status: 429,
        kind: None,
        message: None,
        headers: [
            ("x-codex-primary-used-percent", "100"),
            ("x-codex-primary-window-minutes", "300"),
            ("x-codex-primary-reset-at", "1893636000"),
            ("x-codex-secondary-used-percent", "41.5"),
            ("x-codex-secondary-window-minutes", "10080"),
            ("x-codex-secondary-reset-at", "1893736000"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        body: Some(body),
    };
    let script = Script::new([Turn::from(fault)]).then(Then::Repeat);
    let Some(real) = Real::new("codex", script, Patience::default()) else { return };
    let result = real.ended("plan used up", &real.run(&[]), "limit", "paused");
    let limit = &result["limit"];
    assert_eq!((&limit["class"], &limit["window"]), (&json!("plan"), &json!("5h")), "{limit}");
    assert_eq!(
        (&limit["resets_at"], &limit["resets_text"]),
        (&json!(RESETS), &json!("Jan 3rd, 2030 2:00 AM"))
    );
    assert_eq!(
        limit["windows"][1],
        json!({ "name": "weekly", "utilization": 0.415, "resets_at": 1_893_736_000 })
    );
    recorded(&real, "plan", Some(RESETS));
}

#[test]
fn gemini_whose_day_is_used_up() {
    let body = json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your quota.",
        "details": [{
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{ "quotaMetric": "m", "quotaId": "GenerateRequestsPerDayPerProjectPerModel" }],
        }] } });
    let Some(real) = Real::new("gemini", refuses(429, body), Patience::default()) else { return };
    let result = real.ended("plan used up", &real.run(&[]), "limit", "paused");
    assert_eq!(
        (&result["limit"]["class"], &result["agent_exit_code"]),
        (&json!("plan"), &json!(173)),
        "{result}"
    );
    recorded(&real, "plan", None);
}

#[rstest]
#[case::claude("claude", None)]
#[case::codex("codex", None)]
#[case::gemini("gemini", None)]
#[case::opencode("opencode", Some(20))]
fn told_to_wait_too_often(#[case] agent: &'static str, #[case] after: Option<u64>) {
    let turn = Turn::error(429).header("retry-after-ms", "20");
    let script = Script::new([turn]).then(Then::Repeat);
    let Some(real) = Real::new(agent, script, Patience::default()) else { return };
    let result = real.ended("429 to the end", &real.run(&[]), "limit", "paused");
    let limit = &result["limit"];
    assert_eq!((&limit["class"], limit["retry_after_ms"].as_u64()), (&json!("transient"), after), "{limit}");
    if agent == "opencode" {
        assert_eq!(real.asked().len(), 6, "it tries five times more, as the provider asks, and gives up");
    }
}

#[rstest]
#[case::claude(
    "claude",
    400,
    json!({ "type": "error", "error": { "type": "invalid_request_error",
        "message": "Your credit balance is too low to access the Anthropic API." } })
)]
#[case::codex("codex", 429, json!({ "error": { "type": "usage_not_included", "message": "no", "plan_type": "free" } }))]
#[case::gemini(
    "gemini",
    429,
    json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded, limit: 0",
        "details": [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "cloudcode-pa.googleapis.com",
            "reason": "INSUFFICIENT_G1_CREDITS_BALANCE" }] } })
)]
#[case::opencode(
    "opencode",
    402,
    json!({ "error": { "code": "insufficient_quota", "type": "insufficient_quota", "message": "Insufficient balance." } })
)]
fn nothing_left_to_pay_with(#[case] agent: &'static str, #[case] status: u16, #[case] body: Value) {
    let Some(real) = Real::new(agent, refuses(status, body), Patience::default()) else { return };
    let result = real.ended("nothing to pay with", &real.run(&[]), "failed", "paused");
    assert_eq!(
        (&result["limit"]["class"], &result["error"]["class"]),
        (&json!("pay"), &json!("billing")),
        "{result}"
    );
    recorded(&real, "pay", None);
}
