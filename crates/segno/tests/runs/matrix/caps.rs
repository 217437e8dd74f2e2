//! Caps: turns, money, tokens.

use rstest::rstest;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::model::Usage;
use segno_testkit::recipe::Patience;

use super::Real;

#[rstest]
#[case::claude("claude")]
#[case::codex("codex")]
#[case::gemini("gemini")]
#[case::opencode("opencode")]
fn a_cap_on_turns(#[case] agent: &'static str) {
    // Codex has no cap of its own: segno counts its calls and stops it.
    let turn = Turn { delay_ms: if agent == "codex" { 600 } else { 0 }, ..Turn::sh("echo again") };
    let script = Script::new([turn]).then(Then::Repeat);
    let Some(real) = Real::new(agent, script, Patience::default()) else { return };
    let said = real.run(&["--max-turns", "2"]);
    real.ended("max turns", &said, "max_turns", "paused");
    if agent == "claude" {
        assert_eq!(real.asked().len(), 2, "it counts for itself");
    }
    let calls = real.lab.tools();
    assert!((2..=4).contains(&calls.len()), "{calls:#?}");
    assert!(calls.iter().all(|call| call["state"] != "open"), "{calls:#?}");
}

/// Codex and Gemini CLI know no prices. What opencode tells is added up by segno.
#[rstest]
#[case::claude("claude")]
#[case::opencode("opencode")]
fn the_agents_own_budget(#[case] agent: &'static str) {
    let much = match agent {
        "claude" => Usage { input: 100_000, output: 10_000, ..Usage::default() },
        // A dollar or two for each million here.
        _ => Usage { input: 500_000, output: 100_000, ..Usage::default() },
    };
    let script = Script::new([Turn::sh("echo x >> ran.txt").usage(much)]).then(Then::Repeat);
    let Some(real) = Real::new(agent, script, Patience::default()) else { return };
    let said = real.run(&["--cost", "0.9"]);
    let result = real.ended("the agent's own budget", &said, "budget", "paused");
    assert!(result["cost_usd"].as_f64().unwrap() >= 0.9, "{result}");
    let calls = real.lab.tools();
    let states: Vec<&str> = calls.iter().map(|call| call["state"].as_str().unwrap()).collect();
    if agent == "claude" {
        // The last call was announced and neither ran nor got a result.
        assert_eq!(states, ["completed", "in_doubt"]);
        assert_eq!(std::fs::read_to_string(real.file("ran.txt")).unwrap(), "x\n");
        assert_eq!(real.asked().len(), 2, "0.60 each: it stops after the cap, not before");
    } else {
        assert!(!states.contains(&"open") && real.model.requests().len() < 10, "{calls:#?}");
    }
}

#[rstest]
#[case::claude("claude")]
#[case::codex("codex")]
#[case::opencode("opencode")]
fn a_hard_token_budget(#[case] agent: &'static str) {
    let much = Usage { input: 3_000, output: 1_000, ..Usage::default() };
    let turn = Turn { delay_ms: 400, ..Turn::sh("echo x >> ran.txt").usage(much) };
    let script = Script::new([turn]).then(Then::Repeat);
    let Some(real) = Real::new(agent, script, Patience::default()) else { return };
    let said = real.run(&["--budget", "8000"]);
    let result = real.ended("hard token budget", &said, "budget", "paused");
    let used = real.lab.state()["budget"]["tokens_used"].as_u64().unwrap();
    assert!(used >= 8_000, "{used}");
    let told = &result["tokens"];
    let sum: u64 =
        ["input", "output", "cache_read", "cache_write"].iter().filter_map(|kind| told[*kind].as_u64()).sum();
    assert_eq!(sum, used, "counted once: {result}");
    assert!(real.model.requests().len() < 10, "it was stopped soon");
    assert!(real.lab.tools().iter().all(|call| call["state"] != "open"));
    // It can go on only with a larger budget.
    let again = real.run(&["--session", "last"]);
    assert_eq!(again.code, Some(8), "{}", again.stderr);
}

/// Gemini CLI says what it used only in the end, so a budget cannot stop it in the middle; it stops the next run.
#[test]
fn a_hard_token_budget_of_an_agent_that_tells_late() {
    let much = Usage { input: 3_000, output: 1_000, ..Usage::default() };
    let work =
        [Turn::sh("echo x").usage(much), Turn::sh("echo y").usage(much), Turn::text("done").usage(much)];
    let Some(real) = Real::with("gemini", work) else { return };
    let said = real.run(&["--budget", "8000"]);
    real.ended("hard token budget", &said, "completed", "completed");
    real.ledger(&["completed"; 2]);
    assert!(real.lab.state()["budget"]["tokens_used"].as_u64().unwrap() >= 8_000);
}

/// A session whose budget is used up does not even start an agent.
#[rstest]
#[case::claude("claude")]
#[case::codex("codex")]
#[case::gemini("gemini")]
#[case::opencode("opencode")]
fn a_budget_that_is_used_up_before(#[case] agent: &'static str) {
    let Some(real) = Real::with(agent, ["never asked".into()]) else { return };
    let id = real.lab.run(&["new", "--budget", "100"]).text().trim().to_owned();
    real.lab.run(&["tokens", "--session", &id, "150"]);
    let said = real.run(&["--session", &id]);
    assert_eq!(said.code, Some(8), "{}", said.stderr);
    assert!(real.model.requests().is_empty(), "the model was not asked");
    real.lab.assert_nothing_left();
}
