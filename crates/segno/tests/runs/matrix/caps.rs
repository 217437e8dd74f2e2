//! Caps: turns, money, tokens.

use rstest::rstest;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Sh;
use segno_testkit::model::Then;
use segno_testkit::model::Track;
use segno_testkit::model::Turn;
use segno_testkit::model::Usage;
use segno_testkit::model::When;
use segno_testkit::recipe::Patience;
use serde_json::Value;

use super::Real;

#[rstest]
fn a_cap_on_turns(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
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
        let last = calls[1]["call"].clone();
        let is_last = |event: &Value| event["body"]["call"] == last;
        // The last call was announced and neither ran nor got a result. Whether Claude Code still asks for leave before
        // it is stopped is its own affair: one that asked was told no.
        let of_hooks = |event: &Value| event["body"]["source"] == "hook";
        let denied =
            real.lab.journal(Some("tool_ended")).iter().any(|event| of_hooks(event) && is_last(event));
        let open: &[&str] = if denied { &[] } else { &["Bash"] };
        assert_eq!(states, ["completed", if denied { "denied" } else { "in_doubt" }]);
        let told = result["open_calls"].as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap());
        assert_eq!(told.collect::<Vec<_>>(), open, "{result}");
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
fn a_budget_that_is_used_up_before(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some(real) = Real::with(agent, ["never asked".into()]) else { return };
    let id = real.lab.run(&["new", "--budget", "100"]).text().trim().to_owned();
    real.lab.run(&["tokens", "--session", &id, "150"]);
    let said = real.run(&["--session", &id]);
    assert_eq!(said.code, Some(8), "{}", said.stderr);
    assert!(real.model.requests().is_empty(), "the model was not asked");
    real.lab.assert_nothing_left();
}

/// What was only launched when a cap stopped the run is not done: nobody knows how far it came.
#[rstest]
#[case::claude("claude", false, &["--budget", "2000"], "budget")]
#[case::claude_helper("claude", true, &["--budget", "2000"], "budget")]
#[case::codex("codex", false, &["--budget", "2000"], "budget")]
#[case::gemini("gemini", false, &["--max-turns", "3"], "max_turns")]
fn what_was_launched_is_in_doubt_when_a_cap_stops(
    #[case] agent: &'static str,
    #[case] helper: bool,
    #[case] cap: &[&str],
    #[case] outcome: &str,
) {
    let late = "echo begun; sleep 40; echo late > late.txt";
    let launch = if helper {
        let extra = serde_json::json!({ "run_in_background": true }).as_object().unwrap().clone();
        Op::Task { prompt: "helper: take your time".to_owned(), description: None, agent: None, extra }
    } else {
        let timeout_ms = (agent == "codex").then_some(500);
        Op::Sh(Sh { command: late.to_owned(), timeout_ms, background: true })
    };
    let much = Usage { input: 400, output: 100, ..Usage::default() };
    let again = Turn { delay_ms: 400, ..Turn::sh("echo again").usage(much) };
    let script = Script::new([Turn::ops([launch]), again]).then(Then::Repeat);
    let script = script.track("helper", When::first_user("helper: take"), [Turn::sh(late), "done".into()]);
    let Some(real) = Real::new(agent, script, Patience::default()) else { return };
    let said = real.run(cap);
    assert_eq!(said.result()["outcome"], outcome, "{}", said.stderr);
    let calls = real.lab.tools();
    assert_eq!(calls[0]["state"], "in_doubt", "{calls:#?}");
    assert!(!real.file("late.txt").exists());
    real.lab.assert_nothing_left();
}

/// What a sub-agent uses counts while it works: a cap stops the agent that waits for it.
#[rstest]
#[case::claude("claude")]
#[case::codex("codex")]
#[case::opencode("opencode")]
fn a_cap_counts_sub_agents(#[case] agent: &'static str) {
    let wait = Op::Tool {
        name: "wait_agent".to_owned(),
        input: serde_json::json!({
            "targets": ["${last:agent_id[^0-9a-f]*([0-9a-f-]{36})}"], "timeout_ms": 60_000,
        }),
        namespace: Some("multi_agent_v1".to_owned()),
        id: None,
    };
    let mut turns = vec![Turn::ops([Op::task("count the files please")])];
    turns.extend((agent == "codex").then(|| Turn::ops([wait])));
    turns.push("never said".into());
    let much = Usage { input: 400, output: 100, ..Usage::default() };
    let helper = Track {
        name: "helper".to_owned(),
        when: When::first_user("count the files"),
        turns: vec![Turn { delay_ms: 300, ..Turn::sh("ls | wc -l").usage(much) }],
        then: Then::Repeat,
        ..Track::default()
    };
    let mut script = Script::new(turns);
    script.tracks.push(helper);
    let Some(real) = Real::new(agent, script, Patience::default()) else { return };
    let said = real.run(&["--budget", "3000"]);
    let result = said.result();
    assert_eq!((&result["outcome"], said.code), (&"budget".into(), Some(8)), "{}", said.stderr);
    let used = real.lab.state()["budget"]["tokens_used"].as_u64().unwrap();
    assert!(used >= 3_000, "{used}");
    let told = &result["tokens"];
    let sum: u64 = ["input", "output"].iter().filter_map(|kind| told[*kind].as_u64()).sum();
    // opencode's output tells only what its own answers used, and none was whole.
    let of_run = if agent == "opencode" { 0 } else { used };
    assert_eq!(sum, of_run, "the run has what the session has: {result}");
    assert!(real.model.requests().len() < 25, "it was stopped soon");
    real.lab.assert_nothing_left();
}
