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
    TakesOver,
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
        Self::TakesOver,
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
            Self::Waits => "a window of the plan is used up for 90 seconds; the test moves the clock",
            Self::HandsOver => "a window of the plan is used up, and the other agent takes over",
            Self::TakesOver => "the same with `--back`: the first agent takes over again",
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

    /// The test that shows it, below `crates/segno/tests/runs/loops`.
    fn test(self) -> &'static str {
        match self {
            Self::Rust | Self::Python => "phases::all_of_them",
            Self::Claims => "stuck::claims_success_with_failing_tests",
            Self::Idle => "stuck::claims_success_and_does_nothing",
            Self::Deletes => "stuck::deletes_the_failing_test",
            Self::DeletesOld => "stuck::deletes_an_old_test",
            Self::SameError => "stuck::the_same_error_again_and_again",
            Self::Questions => "stuck::questions_for_ever",
            Self::Waits => "waits::a_window_that_opens_soon",
            Self::HandsOver => "waits::the_other_agent_takes_over",
            Self::TakesOver => "waits::the_first_agent_takes_over_again",
            Self::Killed => "kills::in_every_phase",
            Self::KilledAtGate => "kills::at_the_gate",
            Self::Budget => "healthy::over_budget",
            Self::SlowPlan => "healthy::a_slow_plan",
            Self::Flaky => "healthy::a_flaky_test",
            Self::Queue => "queue::a_tracker",
            Self::Checklist => "queue::a_checklist",
        }
    }
}

/// The rows of the table: scenario, a cell for each agent, and the test.
fn rows() -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/loop.md");
    let text = std::fs::read_to_string(page).unwrap_or_default();
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let head: Vec<String> = ["what happens", "Claude Code", "Codex", "test"].map(str::to_owned).into();
    text.lines()
        .map(cells)
        .skip_while(|row| *row != head)
        .skip(2)
        .take_while(|row| row.len() == 2 + AGENTS.len())
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
    let told: Vec<(String, String)> =
        rows().into_iter().map(|row| (row[0].clone(), row[1 + AGENTS.len()].clone())).collect();
    let tested =
        Scenario::ALL.iter().map(|scenario| (scenario.row().to_owned(), format!("`{}`", scenario.test())));
    assert_eq!(told, tested.collect::<Vec<_>>());
    for scenario in Scenario::ALL {
        let (file, name) = scenario.test().split_once("::").unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/runs/loops/{file}.rs"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(&format!("\nfn {name}(")), "{} has no {name}", path.display());
        assert!(text.contains(&format!("Scenario::{scenario:?}")), "{name} shows another scenario");
    }
}
