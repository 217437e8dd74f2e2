//! The table in `docs/loop.md`: what is promised there is what the tests see.

use std::path::Path;

/// The columns after the first.
const AGENTS: [&str; 2] = ["claude", "codex"];

/// What is tried with each agent. One that no test uses does not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    Rust,
    Python,
    Claims,
    Idle,
    Deletes,
    DeletesOld,
    SameError,
    Questions,
    Waits,
    HandsOver,
    Killed,
    KilledAtGate,
    Budget,
    SlowPlan,
    Flaky,
    Queue,
    Checklist,
}

impl Scenario {
    const ALL: &[Self] = &[
        Self::Rust,
        Self::Python,
        Self::Claims,
        Self::Idle,
        Self::Deletes,
        Self::DeletesOld,
        Self::SameError,
        Self::Questions,
        Self::Waits,
        Self::HandsOver,
        Self::Killed,
        Self::KilledAtGate,
        Self::Budget,
        Self::SlowPlan,
        Self::Flaky,
        Self::Queue,
        Self::Checklist,
    ];

    /// Its row.
    fn row(self) -> &'static str {
        match self {
            Self::Rust => "all phases of `prp`, a Rust crate",
            Self::Python => "all phases of `prp`, a Python module",
            Self::Claims => "says that it is done while tests fail, and changes something each time",
            Self::Idle => "says that it is done while tests fail, and does nothing",
            Self::Deletes => "deletes the failing tests of the phase before",
            Self::DeletesOld => "deletes a failing test that was there",
            Self::SameError => "the same error again and again, with other files each time",
            Self::Questions => "asks again and again",
            Self::Waits => "a window of the plan is used up for some seconds",
            Self::HandsOver => "a window of the plan is used up, and the other agent takes over",
            Self::Killed => "`kill -9` of driver and agent, in every phase",
            Self::KilledAtGate => "`kill -9` of the driver while the gate is measured",
            Self::Budget => "the budget is used up",
            Self::SlowPlan => "a plan that takes seven iterations",
            Self::Flaky => "a test that passes every other time",
            Self::Queue => {
                "two items of a tracker, `br` and `bd`; one is left open and closed by its follow-up"
            }
            Self::Checklist => "the items of a checklist",
        }
    }
}

/// The rows of the table: scenario, then a cell for each agent.
fn rows() -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/loop.md");
    let text = std::fs::read_to_string(page).unwrap_or_default();
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let head: Vec<String> = ["what happens", "Claude Code", "Codex"].map(str::to_owned).into();
    text.lines()
        .map(cells)
        .skip_while(|row| *row != head)
        .skip(2)
        .take_while(|row| row.len() == 1 + AGENTS.len())
        .collect()
}

/// The page says of this scenario that the loop of this agent ends so: `outcome`, session `status`.
pub(crate) fn says(agent: &str, scenario: Scenario, outcome: &str, status: &str) {
    let column = 1 + AGENTS.iter().position(|name| *name == agent).unwrap();
    let rows = rows();
    let row = rows.iter().find(|row| row[0] == scenario.row());
    let row = row.unwrap_or_else(|| panic!("docs/loop.md has no row {:?}", scenario.row()));
    let expected = format!("{outcome}, {status}");
    assert_eq!(row[column], expected, "docs/loop.md of {agent}, {scenario:?}");
}

#[test]
fn the_page_has_the_scenarios_that_are_tested_and_no_others() {
    let told: Vec<String> = rows().into_iter().map(|row| row[0].clone()).collect();
    let tested: Vec<&str> = Scenario::ALL.iter().map(|scenario| scenario.row()).collect();
    assert_eq!(told, tested);
}
