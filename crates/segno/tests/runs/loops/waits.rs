//! Limits of the provider: waited for, or handed over, and never counted.

use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use rstest::rstest;
use segno_testkit::model::Api;
use segno_testkit::model::Fault;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;
use segno_testkit::recipe::Recipe;
use serde_json::json;

use super::Loop;
use super::mind::Act;
use super::mind::Mind;
use super::project::Project;
use super::table::Scenario;
use crate::lab::until;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// How a provider says that a window of the plan is used up until then.
fn used_up(agent: &str, resets_at: u64) -> Turn {
    let reset = resets_at.to_string();
    if agent == "claude" {
        let headers = [
            ("status", "rejected"),
            ("reset", &reset),
            ("representative-claim", "five_hour"),
            ("5h-status", "rejected"),
            ("5h-utilization", "1.02"),
            ("5h-reset", &reset),
        ];
        return headers.iter().fold(Turn::error(429), |turn, (name, value)| {
            turn.header(&format!("anthropic-ratelimit-unified-{name}"), value)
        });
    }
    let headers = [
        ("x-codex-primary-used-percent", "100"),
        ("x-codex-primary-window-minutes", "300"),
        ("x-codex-primary-reset-at", &reset),
    ];
    let body = json!({ "error": { "type": "usage_limit_reached", "message": "no", "plan_type": "plus",
        "resets_at": resets_at } });
    Turn::from(Fault::Error {
        status: 429,
        kind: None,
        message: None,
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        body: Some(body),
    })
}

fn api(agent: &str) -> Api {
    if agent == "claude" { Api::Anthropic } else { Api::Responses }
}

/// Windows are a subscription's.
fn subscribed(mut recipe: Recipe) -> Recipe {
    if recipe.env.remove("ANTHROPIC_API_KEY").is_some() {
        recipe.env.insert("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "dummy".to_owned());
    }
    recipe
}

/// Does it at once, but is refused before it has begun.
fn refused_at_first(agent: &'static str, resets_at: u64) -> Option<Loop> {
    let act = Act { command: Project::Python.green(), words: "Done.", done: true, more: "" };
    let mind = Mind::default().phase("WORK", act).at_first(Some(api(agent)), used_up(agent, resets_at));
    let the = Loop::prepared(agent, Project::Python, mind, subscribed)?;
    the.real.lab.write(the.real.file("test_slug.py"), super::project::TEST_SLUG_PY);
    Some(the)
}

/// A window of 90 seconds.
#[rstest]
fn a_window_that_opens_soon(#[values("claude", "codex")] agent: &'static str) {
    let begin = now();
    let resets_at = begin + 90;
    let Some(mut the) = refused_at_first(agent, resets_at) else { return };
    // What is waited is two to three minutes: the test moves the clock.
    let shift = the.real.lab.path("shift");
    std::fs::write(&shift, "0").unwrap();
    the.real.lab.env.insert("SEGNO_CLOCK_SHIFT".to_owned(), shift.clone());
    let mut live = the.start(&[]);
    let parked = until("it is parked", || {
        let said = the.real.lab.run(&["show", "last", "--json"]);
        let shown: serde_json::Value = serde_json::from_slice(&said.stdout).ok()?;
        let parked = shown["state"]["looping"]["parked"].clone();
        parked.is_object().then_some(parked)
    });
    assert_eq!(parked["class"], "plan", "{parked}");
    // It waits here, without an agent.
    until("the agent is gone", || (the.real.lab.processes().len() == 1).then_some(()));
    assert!(live.is_running());
    let asked = the.real.model.requests().len();
    assert_eq!(asked, 1, "it is not tried again");
    // Until the end that the provider names, and 30 to 90 seconds more.
    let waits_until: jiff::Timestamp = parked["until"].as_str().unwrap().parse().unwrap();
    let waits = waits_until.as_second() - i64::try_from(begin).unwrap();
    let so_far = i64::try_from(now() - begin).unwrap();
    assert!((120..=180 + so_far).contains(&waits), "{waits} seconds after the start: {parked}");
    let status = the.real.lab.json(&["loop", "status"]);
    assert_eq!(status["waiting_until"], parked["until"], "{status}");
    std::fs::write(&shift, "200").unwrap();
    let said = live.finish();
    the.describe(&said);
    let result = the.ended(Scenario::Waits, &said, "completed", "completed");
    assert_eq!(the.verdicts(), ["park", "complete"]);
    assert_eq!((&result["iterations"], the.phases()), (&json!(1), vec![("WORK".into(), 1, "passed".into())]));
    let count = |kind: &str| the.real.lab.journal(Some(kind)).len();
    assert_eq!((count("loop_parked"), count("loop_woken"), count("run_started")), (1, 1, 2));
}

#[rstest]
#[case("claude", "codex")]
#[case("codex", "claude")]
fn the_other_agent_takes_over(#[case] agent: &'static str, #[case] other: &'static str) {
    let Some(mut the) = refused_at_first(agent, now() + 3 * 3600) else { return };
    if the.real.also(other, Patience::default(), |recipe| recipe).is_none() {
        return;
    }
    let both = format!("{agent},{other}");
    let said = the.run(&["--agent", &both]);
    let result = the.ended(Scenario::HandsOver, &said, "completed", "completed");
    assert_eq!(the.verdicts(), ["hand_over", "complete"]);
    assert_eq!(result["iterations"], 1, "{result}");
    let runs = the.real.lab.json(&["show", "last", "--runs"]);
    let runs = runs["items"].as_array().unwrap().iter();
    let runs: Vec<_> = runs.map(|run| (run["agent"].clone(), run["outcome"].clone())).collect();
    assert_eq!(runs, [(json!(agent), json!("limit")), (json!(other), json!("completed"))]);
}

/// Refused, it hands over; when its window is open again, it takes over again, from what the other one did.
#[rstest]
#[case("claude", "codex")]
#[case("codex", "claude")]
fn the_first_agent_takes_over_again(#[case] agent: &'static str, #[case] other: &'static str) {
    let half = super::project::write("words.py", super::project::HALF_PY);
    let half = Act { command: &half, words: "Half of it.", done: false, more: "" };
    let whole = Act { command: Project::Python.green(), words: "Done.", done: true, more: "" };
    // The other one's answer is held until the window of the first one is open.
    let resets_at = now() + 600;
    // Claude Code sends the prompt that was refused along with the next one: the newer iteration is looked for first.
    let mind = Mind::default()
        .iteration("WORK", 2, whole)
        .iteration("WORK", 1, half)
        .held("WORK", 1, "held")
        .at_first(Some(api(agent)), used_up(agent, resets_at));
    let Some(mut the) = Loop::prepared(agent, Project::Python, mind, subscribed) else { return };
    if the.real.also(other, Patience::default(), |recipe| recipe).is_none() {
        return;
    }
    the.real.lab.write(the.real.file("test_slug.py"), super::project::TEST_SLUG_PY);
    let shift = the.real.lab.path("shift");
    std::fs::write(&shift, "0").unwrap();
    the.real.lab.env.insert("SEGNO_CLOCK_SHIFT".to_owned(), shift.clone());
    let both = format!("{agent},{other}");
    let live = the.start(&["--agent", &both, "--back"]);
    until("the other one works", || {
        std::fs::read_to_string(the.real.file("words.py"))
            .is_ok_and(|text| text.contains("slug"))
            .then_some(())
    });
    std::fs::write(&shift, "700").unwrap();
    the.real.model.open_gate("held");
    let said = live.finish();
    the.describe(&said);
    let result = the.ended(Scenario::TakesOver, &said, "completed", "completed");
    assert_eq!(the.verdicts(), ["hand_over", "continue", "complete"]);
    assert_eq!(result["iterations"], 2, "{result}");
    let runs = the.real.lab.json(&["show", "last", "--runs"]);
    let runs = runs["items"].as_array().unwrap().iter();
    let runs: Vec<_> = runs.map(|run| (run["agent"].clone(), run["outcome"].clone())).collect();
    let done = json!("completed");
    assert_eq!(runs, [(json!(agent), json!("limit")), (json!(other), done.clone()), (json!(agent), done)]);
}
