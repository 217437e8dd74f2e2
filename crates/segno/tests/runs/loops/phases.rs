//! All phases of a workflow, from tests that fail to what is written about it.

use rstest::rstest;
use serde_json::json;

use super::Loop;
use super::project::Project;
use super::table::Scenario;

/// The phases of `prp` when each took one iteration.
pub(super) fn straight() -> Vec<(String, u64, String)> {
    ["RED", "GREEN", "REFACTOR", "DOCUMENT"].map(|name| (name.to_owned(), 1, "passed".to_owned())).into()
}

#[rstest]
#[case(Scenario::Rust, Project::Rust)]
#[case(Scenario::Python, Project::Python)]
fn all_of_them(
    #[values("claude", "codex")] agent: &'static str,
    #[case] scenario: Scenario,
    #[case] project: Project,
) {
    let Some(the) = Loop::new(agent, project, project.mind()) else { return };
    let said = the.run(&["--workflow", "prp"]);
    let result = the.ended(scenario, &said, "completed", "completed");
    assert_eq!(the.phases(), straight());
    assert_eq!(the.verdicts(), ["next_phase", "next_phase", "next_phase", "complete"]);
    assert_eq!(result["iterations"], 4);
    let tests = &result["tests"];
    assert_eq!((&tests["passed"], &tests["total"], &tests["failed"]), (&json!(3), &json!(3), &json!(0)));
}
