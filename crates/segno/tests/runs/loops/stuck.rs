//! Loops that get nowhere, whatever the agent says: none of them ends as completed.

use rstest::rstest;
use serde_json::Value;
use serde_json::json;

use super::Loop;
use super::mind::Act;
use super::mind::Mind;
use super::project::Project;
use super::table::Scenario;

/// The conditions of the gate that do not hold.
fn open(result: &Value) -> Vec<String> {
    let conditions = result["gate"]["conditions"].as_array().unwrap().iter();
    let open = conditions.filter(|one| one["holds"] == false);
    open.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

/// Tests that fail, as a phase before left them.
fn with_failing_tests(agent: &'static str, mind: Mind) -> Option<Loop> {
    let the = Loop::new(agent, Project::Python, mind)?;
    the.real.lab.write(the.real.file("test_slug.py"), super::project::TEST_SLUG_PY);
    Some(the)
}

/// It says so every time, and changes something every time: only what is measured counts.
#[rstest]
fn claims_success_with_failing_tests(#[values("claude", "codex")] agent: &'static str) {
    let act = Act {
        command: "echo '# step @N' >> words.py",
        words: "All tests pass. The project is complete, nothing is left to do.",
        done: true,
        more: "TESTS:\n  TOTAL: 3\n  PASSING: 3\n  FAILING: 0\n  SKIPPED: 0\n",
    };
    let Some(the) = with_failing_tests(agent, Mind::default().phase("WORK", act)) else { return };
    let said = the.run(&["--max-iterations", "3"]);
    let result = the.ended(Scenario::Claims, &said, "max_iterations", "paused");
    assert_eq!(the.verdicts(), ["continue", "continue", "cap"]);
    let missed = "tests that could not be loaded";
    assert_eq!(open(&result), ["command until", "tests", "failing tests", missed]);
    let warnings = result["gate"]["warnings"].to_string();
    assert!(warnings.contains("the agent says that it is done, but what is measured says otherwise"));
}

#[rstest]
fn claims_success_and_does_nothing(#[values("claude", "codex")] agent: &'static str) {
    let act = Act { words: "It is complete.", done: true, ..Act::default() };
    let Some(the) = with_failing_tests(agent, Mind::default().phase("WORK", act)) else { return };
    let said = the.run(&[]);
    let result = the.ended(Scenario::Idle, &said, "halted", "halted");
    assert_eq!(the.verdicts(), ["continue", "continue", "halt"]);
    assert_eq!(result["breaker"]["cause"], "no_progress", "{result}");
}

/// In GREEN the easiest way is to delete what fails.
#[rstest]
fn deletes_the_failing_test(#[values("claude", "codex")] agent: &'static str) {
    let green = Act {
        command: "mv test_slug.py ../gone 2>/dev/null; echo '# step @N' >> words.py",
        words: "All tests pass now.",
        done: true,
        more: "",
    };
    let red = Act { command: &Project::Python.red(), words: "They fail.", done: true, more: "" };
    let mind = Mind::default().phase("RED", red).phase("GREEN", green);
    let Some(the) = Loop::new(agent, Project::Python, mind) else { return };
    let said = the.run(&["--workflow", "prp", "--max-iterations", "3"]);
    let result = the.ended(Scenario::Deletes, &said, "max_iterations", "paused");
    assert_eq!(the.verdicts(), ["next_phase", "continue", "cap"]);
    assert_eq!((&result["phase"], &result["tests"]["passed"]), (&json!("GREEN"), &json!(1)), "{result}");
    assert_eq!(open(&result), ["new tests", "tests that could not be loaded"]);
}

/// The same, where the tests were there and had names before the loop began.
#[rstest]
fn deletes_an_old_test(#[values("claude", "codex")] agent: &'static str) {
    let act = Act { command: "mv test_slug.py ../gone", words: "All tests pass.", done: true, more: "" };
    let Some(the) = with_failing_tests(agent, Mind::default().phase("WORK", act)) else { return };
    the.real.lab.write(the.real.file("words.py"), super::project::HALF_PY);
    let said = the.run(&["--max-iterations", "1"]);
    let result = the.ended(Scenario::DeletesOld, &said, "max_iterations", "paused");
    assert_eq!(open(&result), ["removed tests"]);
    let value = result["gate"]["conditions"].as_array().unwrap().iter();
    let value = value.filter(|one| one["name"] == "removed tests").map(|one| one["value"].clone());
    let gone = "2: test_slug.Slug.test_case, test_slug.Slug.test_spaces";
    assert_eq!(value.collect::<Vec<_>>(), [json!(gone)]);
}

/// Something changes every time, but what is wrong does not.
#[rstest]
fn the_same_error_again_and_again(#[values("claude", "codex")] agent: &'static str) {
    let green = Act { command: "echo '# step @N' >> words.py", words: "I changed it.", ..Act::default() };
    let red = Act { command: &Project::Python.red(), words: "They fail.", done: true, more: "" };
    let mind = Mind::default().phase("RED", red).phase("GREEN", green);
    let Some(the) = Loop::new(agent, Project::Python, mind) else { return };
    let said = the.run(&["--workflow", "prp"]);
    let result = the.ended(Scenario::SameError, &said, "halted", "halted");
    assert_eq!(the.verdicts(), ["next_phase", "continue", "continue", "halt"]);
    let breaker = &result["breaker"];
    assert_eq!((&breaker["cause"], &breaker["same_error"]), (&json!("same_error"), &json!(3)), "{breaker}");
    let reason = breaker["reason"].as_str().unwrap();
    let wanted = "the same error 3 times in a row: ImportError: ";
    assert!(reason.starts_with(wanted), "{reason}");
}

#[rstest]
fn questions_for_ever(#[values("claude", "codex")] agent: &'static str) {
    let words =
        "I looked at words.py.\n\nShould I replace spaces with dashes, or would you prefer underscores?";
    let act = Act { words, ..Act::default() };
    let Some(the) = Loop::new(agent, Project::Python, Mind::default().phase("WORK", act)) else { return };
    let said = the.run(&[]);
    let result = the.ended(Scenario::Questions, &said, "halted", "halted");
    assert_eq!(the.verdicts(), ["continue", "continue", "halt"]);
    let breaker = &result["breaker"];
    assert_eq!((&breaker["cause"], &breaker["questions"]), (&json!("questions"), &json!(3)), "{breaker}");
    // From the second time on it is told that nobody answers.
    let asked = the.real.model.requests();
    let told = |n: usize| asked[n].last_user.contains("Nobody is there to answer");
    assert_eq!([told(0), told(1), told(2)], [false, true, true]);
}
