//! What sessions cost: each run once, by the agent's own word where it says one.

use segno_testkit::lines::claude;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;

/// An agent that used 1,000 tokens of input and 100 of output, and says what that cost, or not.
fn agent(model: &str, dollars: Option<f64>) -> Vec<Step> {
    let mut init = claude::init("${session}");
    init["model"] = json!(model);
    let mut result = claude::result("${session}", "done");
    result["usage"] = json!({ "input_tokens": 1000, "output_tokens": 100 });
    result["modelUsage"] = json!({ model: { "inputTokens": 1000, "outputTokens": 100 } });
    let fields = result.as_object_mut().unwrap();
    match dollars {
        Some(dollars) => fields.insert("total_cost_usd".to_owned(), json!(dollars)),
        None => fields.remove("total_cost_usd"),
    };
    vec![Step::Stdin(0), Step::Json(init), Step::Json(result)]
}

fn run(model: &str, dollars: Option<f64>) -> Lab {
    let mut lab = Lab::new();
    lab.stand_in("claude", &agent(model, dollars));
    let ran = lab.run(&["run", "--no-hooks", "--prompt", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    lab
}

fn costs(lab: &Lab, by: &str) -> Value {
    lab.json(&["cost", "--by", by])
}

#[test]
fn what_the_agent_says_is_what_it_cost() {
    let lab = run("gpt-5", Some(0.42));
    let costs = costs(&lab, "model");
    assert_eq!(costs["lines"][0]["name"], "gpt-5");
    assert_eq!(
        (&costs["total"]["micros"], &costs["total"]["by_list_price_micros"]),
        (&json!(420_000), &json!(0))
    );
    assert_eq!((&costs["prices_as_of"], &costs["total"]["unpriced_tokens"]), (&Value::Null, &json!(0)));
}

#[test]
fn list_prices_stand_in_and_say_so() {
    let lab = run("gpt-5", None);
    let total = costs(&lab, "session")["total"].clone();
    assert_eq!((&total["micros"], &total["by_list_price_micros"]), (&json!(2_250), &json!(2_250)));
    let said = lab.run(&["cost"]);
    assert!(
        said.text().contains("~$0.00") && said.stderr.contains("by list prices of 20"),
        "{} {}",
        said.text(),
        said.stderr
    );
}

#[test]
fn a_model_without_a_price_is_never_free() {
    let lab = run("nobody-knows-1", None);
    let total = costs(&lab, "session")["total"].clone();
    assert_eq!((&total["micros"], &total["unpriced_tokens"]), (&json!(0), &json!(1_100)));
    let said = lab.run(&["cost"]);
    assert!(
        said.text().contains("unpriced") && said.stderr.contains("prices.toml"),
        "{} {}",
        said.text(),
        said.stderr
    );
    // Somebody gives a price, a wrong one first.
    let prices = |text: &str| lab.write(lab.home.path().join(".config/segno/prices.toml"), text);
    prices("[models]\n\"nobody-knows*\" = { input = -1, output = 2 }\n");
    let refused = lab.run(&["cost"]);
    assert_eq!(refused.code, Some(13), "{}", refused.stderr);
    prices("[models]\n\"nobody-knows*\" = { input = 1, output = 2 }\n");
    assert_eq!(costs(&lab, "run")["total"]["micros"], 1_200);
}
