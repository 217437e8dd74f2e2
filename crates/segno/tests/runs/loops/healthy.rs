//! Loops that are slow, dear or unlucky, and come to their end all the same.

use rstest::rstest;
use serde_json::Value;
use serde_json::json;

use super::Loop;
use super::mind::Act;
use super::mind::Mind;
use super::project::Project;
use super::project::write;
use super::table::Scenario;

/// A budget that is used up in the third of four iterations.
#[rstest]
fn over_budget(#[values("claude", "codex")] agent: &'static str) {
    // The last words of the third iteration do not come before it is stopped.
    let mind = Project::Python.mind().held("REFACTOR", 1, "held");
    let Some(the) = Loop::new(agent, Project::Python, mind) else { return };
    let said = the.run(&["--workflow", "prp", "--budget", "560"]);
    let result = the.ended(Scenario::Budget, &said, "budget", "paused");
    assert_eq!(the.verdicts(), ["next_phase", "next_phase", "cap"], "{result}");
    let refused = the.real.lab.run(&["resume", "last", "--json"]);
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    the.real.model.open_gate("held");
    assert_eq!(the.real.lab.run(&["budget", "extend", "10k"]).code, Some(0));
    let said = the.real.lab.run(&["resume", "last", "--json"]);
    the.describe(&said);
    assert_eq!((said.code, &said.result()["outcome"]), (Some(0), &json!("completed")), "{}", said.stderr);
    assert_eq!(the.verdicts(), ["next_phase", "next_phase", "cap", "next_phase", "complete"]);
    the.real.lab.assert_nothing_left();
}

const PLANNED: &str = r#"description = "Plan at length, then work."

[[phase]]
name = "PLAN"
prompt = "Write a plan of the work into PLAN.md, a section at a time. Write no code."
gate = "signal"

[[phase]]
name = "WORK"
prompt = "Follow PLAN.md."
gate = "until"
"#;

/// A plan that grows by one section in each of seven iterations, with nothing else to show for it.
#[rstest]
fn a_slow_plan(#[values("claude", "codex")] agent: &'static str) {
    let section = Act {
        command: "echo '## Section @N' >> PLAN.md",
        words: "One section more; there is more to think about.",
        ..Act::default()
    };
    let last = Act { words: "The plan is whole.", done: true, ..section };
    let work = Act { command: Project::Python.green(), words: "It is done.", done: true, more: "" };
    let mind = Mind::default().iteration("PLAN", 7, last).phase("PLAN", section).phase("WORK", work);
    let Some(the) = Loop::new(agent, Project::Python, mind) else { return };
    the.real.lab.write(the.real.file("test_slug.py"), super::project::TEST_SLUG_PY);
    the.real.lab.write(the.real.file(".segno/workflows/planned.toml"), PLANNED);
    the.trust();
    let said = the.run(&["--workflow", "planned"]);
    the.ended(Scenario::SlowPlan, &said, "completed", "completed");
    assert_eq!(the.phases(), [("PLAN".into(), 7, "passed".into()), ("WORK".into(), 1, "passed".into())]);
    let ended = the.real.lab.journal(Some("iteration_ended"));
    assert!(ended.iter().all(|event| event["body"]["breaker"]["state"] == "CLOSED"), "{ended:#?}");
}

/// Passes every other time; how often it ran is kept beside the project.
const FLAKY: &str = "import unittest\n\nfrom words import slug\n\n\nclass Slug(unittest.TestCase):\n    \
    def test_spaces(self):\n        self.assertEqual(slug(\"a b\"), \"a-b\")\n\n    \
    def test_luck(self):\n        with open('../runs', 'a+') as runs:\n            runs.write('x')\n            \
    self.assertEqual(runs.tell() % 2, 1)\n";
const STEADY: &str = "import unittest\n\nfrom words import slug\n\n\nclass Slug(unittest.TestCase):\n    \
    def test_spaces(self):\n        self.assertEqual(slug(\"a b\"), \"a-b\")\n\n    \
    def test_luck(self):\n        self.assertEqual(slug(\"\"), \"\")\n";

/// A test that passes every other time is no progress, and no end; once it is mended the loop goes on.
#[rstest]
fn a_flaky_test(#[values("claude", "codex")] agent: &'static str) {
    let (red, steady) = (write("test_slug.py", FLAKY), write("test_slug.py", STEADY));
    let act = |command, words| Act { command, words, done: true, more: "" };
    let mind = Mind::default()
        .phase("RED", act(&red, "They fail."))
        .iteration("GREEN", 1, act(Project::Python.green(), "They pass."))
        .iteration("GREEN", 2, act("", "They pass, I ran them."))
        .phase("GREEN", act(&steady, "It was a matter of luck."));
    let Some(the) = Loop::new(agent, Project::Python, mind) else { return };
    let said = the.run(&["--workflow", "prp", "--max-iterations", "4"]);
    the.ended(Scenario::Flaky, &said, "max_iterations", "paused");
    assert_eq!(the.verdicts(), ["next_phase", "continue", "continue", "next_phase"]);
    let ended = the.real.lab.journal(Some("iteration_ended"));
    let of = |n: usize, pointer: &str| ended[n].pointer(pointer).cloned().unwrap_or(Value::Null);
    // The first measurement after a change of the code makes Python write its cache beside it: the files differ, so it
    // is measured again, and what came out then is compared from the next iteration on.
    let flaky: Vec<Value> = (0..4).map(|n| of(n, "/body/observation/flaky")).collect();
    assert_eq!(flaky, [json!(false), json!(false), json!(true), json!(false)]);
    assert_eq!(of(2, "/body/progress/made"), false, "what comes out differently on the same tree is chance");
}
