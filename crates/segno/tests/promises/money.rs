//! Money: reckoned by list prices where an agent does not say, the same wherever one looks, and never free because nobody
//! knows. Caps on a day are shared by all sessions of a project, and seen by those that run at the same time.

use segno_testkit::lines::claude;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::Said;
use crate::lab::until;

/// The model says something, which used so much input.
fn message(model: &str, input: u64) -> Value {
    let mut line = claude::text("${session}", "at work");
    line["message"]["model"] = json!(model);
    line["message"]["usage"] = json!({ "input_tokens": input, "output_tokens": 0 });
    line
}

fn init(model: &str) -> Value {
    let mut line = claude::init("${session}");
    line["model"] = json!(model);
    line
}

/// The end, with what was used in all, and what that cost if the agent says so.
fn result(model: &str, input: u64, dollars: Option<f64>) -> Value {
    let mut line = claude::result("${session}", "done");
    line["usage"] = json!({ "input_tokens": input, "output_tokens": 0 });
    line["modelUsage"] = json!({ model: { "inputTokens": input, "outputTokens": 0 } });
    let fields = line.as_object_mut().unwrap();
    match dollars {
        Some(dollars) => fields.insert("total_cost_usd".to_owned(), json!(dollars)),
        None => fields.remove("total_cost_usd"),
    };
    line
}

fn agent(steps: Vec<Step>) -> Lab {
    let mut lab = Lab::new();
    lab.stand_in("claude", &[vec![Step::Stdin(0)], steps].concat());
    lab
}

fn run(lab: &Lab, more: &[&str]) -> Said {
    lab.run(&[&["run", "--no-hooks", "--grace", "100", "--prompt", "go"], more].concat())
}

/// An agent that uses so much input at once, and ends when `go` is there.
fn waits(lab: &mut Lab, input: u64) {
    let go = lab.path("go");
    let steps = [
        Step::Stdin(0),
        Step::Json(init("gpt-5")),
        Step::Json(message("gpt-5", input)),
        Step::WaitFor { path: go, seconds: 60 },
        Step::Json(result("gpt-5", input, None)),
    ];
    lab.stand_in("claude", &steps);
}

fn sessions(lab: &Lab) -> Vec<Value> {
    lab.json(&["ls", "--all"])["sessions"].as_array().unwrap().clone()
}

#[test]
fn a_list_price_is_recorded_and_every_place_shows_the_same() {
    let lab = agent(vec![Step::Json(init("gpt-5")), Step::Json(result("gpt-5", 1_000, None))]);
    assert_eq!(run(&lab, &[]).code, Some(0));
    let places = [
        lab.json(&["ls", "--all"])["sessions"][0]["cost_micros"].clone(),
        lab.json(&["show", "last"])["state"]["cost"]["used_micros"].clone(),
        lab.json(&["budget", "--session", "last"])["cost"]["used_micros"].clone(),
        lab.json(&["cost"])["total"]["micros"].clone(),
        lab.json(&["cost", "--by", "model"])["lines"][0]["by_list_price_micros"].clone(),
    ];
    assert_eq!(places, [1_250, 1_250, 1_250, 1_250, 1_250].map(|micros: u64| json!(micros)));
    let recorded = lab.journal(Some("cost_recorded"));
    assert_eq!(recorded[0]["body"]["list"]["model"], "gpt-5", "{recorded:#?}");
}

#[test]
fn what_the_agent_says_counts_instead_of_the_list() {
    let told = result("gpt-5", 1_000, Some(0.5));
    let lab = agent(vec![Step::Json(init("gpt-5")), Step::Json(message("gpt-5", 900)), Step::Json(told)]);
    // With a cap it is reckoned as it goes.
    assert_eq!(run(&lab, &["--cost", "9"]).code, Some(0));
    let recorded = lab.journal(Some("cost_recorded"));
    let listed: Vec<bool> = recorded.iter().map(|event| event["body"]["list"].is_object()).collect();
    assert_eq!(listed, [true, true, false], "{recorded:#?}");
    let total = lab.json(&["cost"])["total"].clone();
    assert_eq!((&total["micros"], &total["by_list_price_micros"]), (&json!(500_000), &json!(0)), "{total}");
    assert_eq!(lab.state()["cost"]["used_micros"], 500_000);
}

#[test]
fn a_cap_on_money_stops_by_the_list_while_the_agent_works() {
    let mut lab = Lab::new();
    waits(&mut lab, 1_000);
    let said = run(&lab, &["--cost", "0.001"]);
    assert_eq!(said.code, Some(8), "{}", said.stderr);
    assert!(said.stderr.contains("segno budget cost 5 --extend"), "{}", said.stderr);
    let state = lab.state();
    assert_eq!((&state["status"], &state["cost"]["used_micros"]), (&json!("paused"), &json!(1_250)));
    lab.assert_no_process_left();
}

#[test]
fn a_cap_of_one_run_stops_that_run_and_not_the_session() {
    let mut lab = Lab::new();
    waits(&mut lab, 1_000);
    for cap in [["--run-budget", "999"], ["--run-cost", "0.001"]] {
        let said = run(&lab, &cap);
        assert_eq!(said.code, Some(8), "{cap:?}: {}", said.stderr);
        assert!(said.stderr.contains("of one run is used up"), "{}", said.stderr);
    }
    std::fs::write(lab.path("go"), "").unwrap();
    assert_eq!(lab.run(&["resume", "last"]).code, Some(0), "the next run has as much again");
}

#[test]
fn under_a_cap_on_money_a_model_without_a_price_is_refused_at_the_start() {
    let mut lab = Lab::new();
    lab.stand_in("codex", &[Step::Stdin(0), Step::Exit(0)]);
    let args = ["run", "--agent", "codex", "--model", "nobody-knows-1", "--prompt", "go", "--cost", "1"];
    let said = lab.run(&args);
    assert_eq!(said.code, Some(8), "{}", said.stderr);
    assert!(said.stderr.contains("nobody-knows-1") && said.stderr.contains("prices.toml"), "{}", said.stderr);
    assert_eq!(lab.journal(Some("run_started")).len(), 0);
}

#[test]
fn under_a_cap_on_money_a_model_that_shows_to_have_no_price_is_stopped() {
    let lab = Lab::new();
    let line = lab.scripted(
        "counter",
        &[Step::Json(json!({ "used": 500 })), Step::WaitFor { path: lab.path("never"), seconds: 60 }],
    );
    lab.config(&format!(
        "[agents.counter]\ncommand = {line:?}\nprompt = \"none\"\nformat = \"json\"\n\
         [[agents.counter.rules]]\nkind = \"tokens\"\nfields = {{ input = \"$.used\" }}"
    ));
    let said = lab.run(&["run", "--agent", "counter", "--cost", "1", "--grace", "100"]);
    assert_eq!(said.code, Some(8), "{}", said.stderr);
    assert!(said.stderr.contains("costs is not known"), "{}", said.stderr);
    assert!(said.stderr.contains("prices.toml"), "{}", said.stderr);
    let listed = lab.run(&["ls", "--all"]).text();
    assert!(listed.contains("unpriced"), "{listed}");
    // Nothing starts while nobody knows what was spent.
    let again = lab.run(&["run", "--agent", "counter", "--session", "last"]);
    assert_eq!(again.code, Some(8), "{}", again.stderr);
    assert_eq!(lab.journal(Some("run_started")).len(), 1);
    lab.assert_no_process_left();
}

#[test]
fn a_price_that_is_given_later_lets_a_capped_session_go_on() {
    let mut lab = Lab::new();
    // It dies before it says what it cost.
    let steps = [
        Step::Stdin(0),
        Step::Json(init("new-model")),
        Step::Json(message("new-model", 1_000)),
        Step::Exit(1),
    ];
    lab.stand_in("claude", &steps);
    run(&lab, &["--cost", "1"]);
    let again = lab.run(&["run", "--no-hooks", "--session", "last", "--prompt", "go on"]);
    assert_eq!(again.code, Some(8), "{}", again.stderr);
    lab.write(
        lab.home.path().join(".config/segno/prices.toml"),
        "[models]\n\"new-model\" = { input = 2, output = 2 }\n",
    );
    lab.run(&["run", "--no-hooks", "--session", "last", "--prompt", "go on"]);
    assert_eq!(lab.journal(Some("run_started")).len(), 2);
    assert_eq!(lab.state()["cost"]["used_micros"], 4_000);
}

#[test]
fn a_cap_on_the_day_counts_every_session_of_the_project_once() {
    let mut lab = agent(vec![Step::Json(init("gpt-5")), Step::Json(result("gpt-5", 2_000, None))]);
    lab.config("[budget]\nday_tokens = 3000");
    assert_eq!((run(&lab, &[]).code, run(&lab, &[]).code), (Some(0), Some(0)));
    let day = lab.json(&["budget", "--session", "last"])["day"].clone();
    assert_eq!(
        (&day["tokens_used"], &day["tokens_most"], &day["used_up"]),
        (&json!(4_000), &json!(3_000), &json!(true))
    );
    let said = run(&lab, &[]);
    assert_eq!(said.code, Some(8), "{}", said.stderr);
    assert!(said.stderr.contains("segno config set budget.day_tokens 7000"), "{}", said.stderr);
    assert_eq!(sessions(&lab).len(), 2, "no session was made for it");
    let resumed = lab.run(&["run", "--no-hooks", "--continue-from", "last", "--prompt", "more"]);
    assert_eq!(resumed.code, Some(8), "{}", resumed.stderr);
    // It is one of this project and of this day only.
    lab.env.insert("SEGNO_BUDGET_DAY_TOKENS".to_owned(), "5000".to_owned());
    assert_eq!(run(&lab, &[]).code, Some(0), "more is allowed now");
}

#[test]
fn sessions_that_run_at_the_same_time_see_each_other_under_a_cap_on_the_day() {
    let mut lab = Lab::new();
    waits(&mut lab, 2_000);
    lab.config("[budget]\nday_tokens = 3000");
    let args = ["run", "--no-hooks", "--grace", "100", "--prompt", "go"];
    let first = lab.start(&args, None);
    until("the first has used its part", || {
        sessions(&lab).iter().any(|it| it["tokens_used"] == 2_000).then_some(())
    });
    // Alone it may go on; with the second it may not.
    let second = lab.start(&args, None);
    for (name, live) in [("first", first), ("second", second)] {
        let said = live.finish();
        assert_eq!(said.code, Some(8), "{name}: {}", said.stderr);
        assert!(said.stderr.contains("of today is used up"), "{name}: {}", said.stderr);
    }
    assert!(sessions(&lab).iter().all(|it| it["status"] == "paused"), "{:#?}", sessions(&lab));
    lab.assert_no_process_left();
}

#[test]
fn sessions_that_go_on_from_one_cap_at_the_same_time_see_each_other() {
    let mut lab = Lab::new();
    waits(&mut lab, 2_000);
    std::fs::write(lab.path("go"), "").unwrap();
    assert_eq!(run(&lab, &["--budget", "5000"]).code, Some(0));
    let first = lab.state()["session_id"].as_str().unwrap().to_owned();
    std::fs::remove_file(lab.path("go")).unwrap();
    let args =
        ["run", "--no-hooks", "--grace", "100", "--prompt", "more", "--continue-from", &first, "--fork"];
    let (one, two) = (lab.start(&args, None), lab.start(&args, None));
    for (name, live) in [("one", one), ("two", two)] {
        let said = live.finish();
        assert_eq!(said.code, Some(8), "{name}: {}", said.stderr);
    }
    lab.assert_no_process_left();
}

#[test]
fn a_loop_stands_still_at_the_end_of_a_day_and_goes_on_with_more() {
    let mut lab = agent(vec![Step::Json(init("gpt-5")), Step::Json(result("gpt-5", 2_000, None))]);
    lab.config("[budget]\nday_tokens = 3000");
    let args =
        ["loop", "--no-hooks", "--prompt", "go", "--until", "false", "--max-iterations", "3", "--json"];
    let said = lab.run(&args);
    assert_eq!((said.code, &said.result()["outcome"]), (Some(8), &json!("budget")), "{}", said.stderr);
    let ended = lab.journal(Some("iteration_ended"));
    let verdict = &ended[1]["body"]["verdict"];
    assert_eq!((ended.len(), &verdict["which"]), (2, &json!("day_tokens")), "{verdict}");
    assert_eq!(verdict["why"], "4000 of 3000 tokens today");
    // Nothing is started on the same day.
    assert_eq!(lab.run(&["loop", "resume", "last", "--json"]).code, Some(8));
    assert_eq!(lab.state()["status"], "paused");
    lab.env.insert("SEGNO_BUDGET_DAY_TOKENS".to_owned(), "100000".to_owned());
    assert_eq!(
        lab.run(&["loop", "resume", "last", "--json"]).code,
        Some(26),
        "and then its iterations are used up"
    );
}

#[test]
fn an_iteration_that_uses_more_than_it_may_is_stopped() {
    let mut lab = Lab::new();
    waits(&mut lab, 2_000);
    let args =
        ["loop", "--no-hooks", "--prompt", "go", "--until", "false", "--iteration-budget", "1000", "--json"];
    let said = lab.run(&args);
    assert_eq!((said.code, &said.result()["outcome"]), (Some(8), &json!("budget")), "{}", said.stderr);
    let ended = lab.journal(Some("iteration_ended"));
    assert_eq!(ended[0]["body"]["verdict"]["which"], "iteration_tokens");
    lab.assert_no_process_left();
}

/// A described agent that names its model only where it tells its tokens is held by a cap on money too.
#[test]
fn a_model_that_is_named_with_its_tokens_is_priced() {
    let lab = Lab::new();
    let steps = [
        Step::Json(json!({ "used": 1_000_000, "by": "new-model" })),
        Step::WaitFor { path: lab.path("never"), seconds: 60 },
    ];
    let line = lab.scripted("counter", &steps);
    lab.config(&format!(
        "[agents.counter]\ncommand = {line:?}\nprompt = \"none\"\nformat = \"json\"\n\
         [[agents.counter.rules]]\nkind = \"tokens\"\nfields = {{ input = \"$.used\", model = \"$.by\" }}"
    ));
    let prices = "[models]\n\"new-model\" = { input = 2, output = 2 }\n";
    lab.write(lab.home.path().join(".config/segno/prices.toml"), prices);
    let said = run(&lab, &["--agent", "counter", "--cost", "1"]);
    assert_eq!(said.code, Some(8), "{}", said.stderr);
    assert_eq!(lab.state()["cost"]["used_micros"], 2_000_000, "by the list, and not unknown");
}

/// Whoever is stopped because a price is missing goes on when it is given, also with an agent that names no conversation.
#[test]
fn a_price_that_is_given_later_ends_the_stop() {
    let lab = Lab::new();
    let steps = [Step::Json(json!({ "used": 1_000, "by": "odd-model" }))];
    let line = lab.scripted("counter", &steps);
    lab.config(&format!(
        "[agents.counter]\ncommand = {line:?}\nprompt = \"none\"\nformat = \"json\"\n\
         [[agents.counter.rules]]\nkind = \"tokens\"\nfields = {{ input = \"$.used\", model = \"$.by\" }}"
    ));
    let go = ["loop", "--no-hooks", "--agent", "counter", "--prompt", "x", "--until", "false", "--cost", "1"];
    let said = lab.run(&go);
    assert_eq!(said.code, Some(8), "{}", said.stderr);
    let said = lab.run(&["loop", "resume", "last"]);
    assert_eq!(said.code, Some(8), "{}", said.stderr);
    assert!(said.stderr.contains("what odd-model costs is not known"), "{}", said.stderr);
    let prices = "[models]\n\"odd-model\" = { input = 2, output = 2 }\n";
    lab.write(lab.home.path().join(".config/segno/prices.toml"), prices);
    let said = lab.run(&["loop", "resume", "last", "--more", "1"]);
    assert!(!said.stderr.contains("not known"), "{}", said.stderr);
    let by_model = lab.json(&["cost", "--by", "model"]);
    assert_eq!(by_model["lines"][0]["name"], "odd-model", "{by_model}");
}
