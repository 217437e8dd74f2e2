//! The real agents in a loop that runs into limits: parked, woken, gone on, and nothing is done twice. And limits that
//! look like silence.

use std::time::Duration;

use rstest::rstest;
use segno_testkit::model::Fault;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;
use segno_testkit::recipe::Recipe;
use serde_json::Value;
use serde_json::json;

use super::Real;
use crate::lab::Said;

/// When the window opens again: in three days, in seconds since 1970. One that is further away than a week is not believed.
fn resets() -> i64 {
    jiff::Timestamp::now().as_second() + 3 * 86_400
}

/// An error with this body and these headers.
fn refuses(body: Value, headers: &[(&str, &str)]) -> Turn {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Turn::from(Fault::Error { status: 429, kind: None, message: None, headers, body: Some(body) })
}

/// How the provider of each agent says that a window of the plan is used up; and how often it is asked until the agent
/// gives up.
fn used_up(agent: &str, resets: i64) -> Turn {
    let reset = resets.to_string();
    match agent {
        "claude" => ["status", "5h-status"]
            .iter()
            .map(|name| (*name, "rejected"))
            .chain([("reset", reset.as_str()), ("5h-reset", &reset), ("representative-claim", "five_hour")])
            .fold(Turn::error(429), |turn, (name, value)| {
                turn.header(&format!("anthropic-ratelimit-unified-{name}"), value)
            }),
        "codex" => refuses(
            json!({ "error": { "type": "usage_limit_reached", "message": "no", "plan_type": "plus", "resets_at": resets } }),
            &[
                ("x-codex-primary-used-percent", "100"),
                ("x-codex-primary-window-minutes", "300"),
                ("x-codex-primary-reset-at", &reset),
            ],
        ),
        "gemini" => refuses(
            json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your quota.",
                "details": [{ "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [{ "quotaMetric": "m", "quotaId": "GenerateRequestsPerDayPerProjectPerModel" }] }] } }),
            &[],
        ),
        "opencode" => refuses(
            json!({ "error": { "type": "GoUsageLimitError",
                "message": "5 hour usage limit reached. It will reset in 2 hours 14 minutes." } }),
            &[("retry-after-ms", "20")],
        )
        .times(6),
        other => panic!("{other}"),
    }
}

/// Windows are a subscription's.
fn subscribed(agent: &str, mut recipe: Recipe) -> Recipe {
    if agent == "claude" {
        recipe.env.remove("ANTHROPIC_API_KEY");
        recipe.env.insert("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "dummy".to_owned());
    }
    recipe
}

/// Runs segno to its end, which may take a while: agents start slowly, and silence takes its time.
fn patiently(real: &Real, args: &[&str]) -> Said {
    let said = real.lab.start(args, None).finish_within(Duration::from_secs(240));
    real.describe(&said);
    said
}

/// It works, is refused in the middle of it, and goes on where it was: the calls that were done are not done again, the
/// refused one is no iteration, and the real agent was asked first whether its plan is open again.
#[rstest]
#[case::claude("claude", true)]
#[case::codex("codex", true)]
#[case::gemini("gemini", false)]
#[case::opencode("opencode", false)]
fn a_loop_that_is_refused_in_the_middle(#[case] agent: &'static str, #[case] tells: bool) {
    let resets = resets();
    let turns = [
        Turn::sh("echo one >> done"),
        used_up(agent, resets),
        Turn::sh("echo two >> done"),
        Turn::text("All is done."),
    ];
    let script = Script::new(turns);
    let Some(real) = Real::prepared(agent, script, Patience::default(), |recipe| subscribed(agent, recipe))
    else {
        return;
    };
    let args =
        ["loop", "--json", "--agent", agent, "--prompt", "go", "--until", "grep -q two done", "--no-signal"];
    let said = patiently(&real, &[&args[..], &["--no-wait"]].concat());
    let result = said.result();
    assert_eq!((said.code, &result["outcome"]), (Some(24), &json!("parked")), "{result}");
    let waits: jiff::Timestamp = result["waiting_until"].as_str().unwrap().parse().unwrap();
    // Codex and Claude Code name the end; it wakes a little later.
    assert_eq!((resets + 30..=resets + 90).contains(&waits.as_second()), tells, "{waits}");
    assert_eq!(std::fs::read_to_string(real.file("done")).unwrap(), "one\n");
    let parked = real.lab.journal(Some("loop_parked")).pop().unwrap()["body"].take();
    assert!(parked["account"].as_str().unwrap().starts_with(agent), "{parked}");
    assert_eq!(parked["class"], "plan", "{parked}");
    real.lab.assert_nothing_left();
    // Too early is refused without a trace; somebody who says "now" goes on.
    let seq = real.lab.state()["seq"].clone();
    let early = real.lab.run(&["loop", "resume", "last"]);
    assert_eq!((early.code, &real.lab.state()["seq"]), (Some(5), &seq), "{}", early.stderr);
    let asked = real.asked().len();
    let said = patiently(&real, &["loop", "resume", "last", "--now", "--json"]);
    let result = said.result();
    assert_eq!((said.code, &result["outcome"]), (Some(0), &json!("completed")), "{result}");
    assert_eq!(result["iterations"], 1, "what was refused is no iteration");
    assert_eq!(std::fs::read_to_string(real.file("done")).unwrap(), "one\ntwo\n", "nothing is done twice");
    assert_eq!(real.asked().len(), asked + 2, "one turn: a call and its end");
    assert_eq!(real.lab.journal(Some("loop_woken")).len(), 1);
    real.lab.assert_nothing_left();
}

/// opencode obeys `retry-after` without a word; its plug-in tells, so that it is a limit with its time and no hang.
#[test]
fn opencode_that_waits_without_a_word() {
    let turn = Turn::error(429).header("retry-after", "900");
    let script = Script::new([turn]).then(Then::Repeat);
    let Some(real) = Real::new("opencode", script, Patience::default()) else { return };
    let now = jiff::Timestamp::now().as_second();
    let said = patiently(&real, &real.args(&["--silence", "90s"]));
    let result = said.result();
    assert_eq!((said.code, &result["outcome"]), (Some(24), &json!("limit")), "{result}");
    assert_eq!(result["limit"]["class"], "transient", "{result}");
    let ends =
        real.lab.journal(Some("run_ended")).pop().unwrap()["body"]["limit"]["resets_at"].as_i64().unwrap();
    let (first, last) = (now + 900, jiff::Timestamp::now().as_second() + 900);
    assert!((first..=last).contains(&ends), "{first} {ends} {last}");
    assert_eq!(real.asked().len(), 1, "it waited all the time");
    real.lab.assert_nothing_left();
}

/// Gemini CLI does the same with a quota that ends in hours, and says so on standard error only.
#[test]
fn gemini_that_waits_without_a_word() {
    let body = json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED",
        "message": "You have exhausted your capacity on this model. Your quota will reset after 19h14m47s.",
        "details": [
            { "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "QUOTA_EXHAUSTED",
              "domain": "cloudcode-pa.googleapis.com", "metadata": { "quotaResetDelay": "68940s" } },
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "68940s" },
        ] } });
    let script = Script::new([refuses(body, &[])]).then(Then::Repeat);
    let Some(real) = Real::new("gemini", script, Patience::default()) else { return };
    let said = patiently(&real, &real.args(&["--silence", "60s"]));
    let result = said.result();
    assert_eq!((said.code, &result["outcome"]), (Some(24), &json!("limit")), "{result}");
    assert_eq!(result["limit"]["class"], "plan", "{result}");
    let limit = real.lab.journal(Some("run_ended")).pop().unwrap()["body"]["limit"].take();
    let left = limit["resets_at"].as_i64().unwrap() - jiff::Timestamp::now().as_second();
    // It waits up to a fifth longer than it was told to.
    assert!((68_000..=82_800).contains(&left), "{limit}");
    assert_eq!(real.asked().len(), 1, "it waited all the time");
    real.lab.assert_nothing_left();
}

/// Silence without such evidence stays what it is.
#[test]
fn a_hang_is_no_limit() {
    let Some(real) = Real::with("gemini", [Turn::stall(0)]) else { return };
    let said = patiently(&real, &real.args(&["--silence", "45s"]));
    let result = said.result();
    assert_eq!((said.code, &result["outcome"]), (Some(22), &json!("timed_out")), "{result}");
    assert!(result["limit"].is_null(), "{result}");
}
