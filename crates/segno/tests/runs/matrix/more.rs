//! Gemini CLI and opencode under `segno run`: the same record as for the others.

use rstest::rstest;
use segno_testkit::model::Op;
use segno_testkit::model::Turn;

use super::Real;

#[rstest]
#[case("gemini")]
#[case("opencode")]
fn says_something_and_works(#[case] agent: &'static str) {
    let turns =
        [Turn::sh("echo one >> done.txt"), Turn::ops([Op::write("a.txt", "written\n")]), "the end".into()];
    let Some(real) = Real::with(agent, turns) else { return };
    let said = real.run(&[]);
    let result = said.result();
    assert_eq!((&result["outcome"], &result["session_status"]), (&"completed".into(), &"completed".into()));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(result["text"].as_str().unwrap().contains("the end"), "{result}");
    assert!(result["native_id"].is_string() && result["tokens"]["input"].as_u64() > Some(0), "{result}");
    let tools = real.lab.tools();
    let states: Vec<&str> = tools.iter().map(|call| call["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["completed"; 2], "{tools:#?}");
    assert_eq!(std::fs::read_to_string(real.file("a.txt")).unwrap(), "written\n");
    real.lab.assert_nothing_left();
    // What it did is taken back like anybody's.
    let undone = real.lab.json(&["undo", "--session", "last", "--yes"]);
    assert!(!real.file("a.txt").exists() && !real.file("done.txt").exists(), "{undone}");
}
