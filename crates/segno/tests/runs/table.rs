//! The table in `docs/agents.md`: what is promised there is what the tests see.

use std::path::Path;

/// The columns after the first.
const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// The rows of the first table of the page: scenario, then a cell for each agent.
fn rows() -> Vec<Vec<String>> {
    rows_after("")
}

/// The rows of the first table after a heading.
fn rows_after(heading: &str) -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
    let text = std::fs::read_to_string(page).unwrap_or_default();
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    text.lines()
        .skip_while(|line| !line.starts_with(heading))
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .filter(|row| row.len() == 1 + AGENTS.len())
        .collect()
}

/// The page says of this scenario that the run of this agent ends so: `outcome`, session `status`.
pub(crate) fn says(agent: &str, scenario: &str, outcome: &str, status: &str) {
    let column = 1 + AGENTS.iter().position(|name| *name == agent).unwrap();
    let rows = rows();
    let row = rows.iter().find(|row| row[0] == scenario);
    let row = row.unwrap_or_else(|| panic!("docs/agents.md has no row {scenario:?}"));
    let expected = format!("{outcome}, {status}");
    let said = &row[column];
    assert!(
        *said == expected || said.starts_with(&format!("{expected} ")),
        "docs/agents.md says {said:?} of {agent}, {scenario}; it is {expected:?}"
    );
}

/// The page says so of what is recorded of an agent that is started by hand.
pub(crate) fn watched(agent: &str, what: &str, expected: &str) {
    let column = 1 + AGENTS.iter().position(|name| *name == agent).unwrap();
    let rows = rows_after("## Started by hand");
    let row = rows.iter().find(|row| row[0] == what);
    let said = &row.unwrap_or_else(|| panic!("docs/agents.md has no row {what:?}"))[column];
    assert!(
        said.starts_with(expected),
        "docs/agents.md says {said:?} of {agent}, {what}; it is {expected:?}"
    );
}

#[test]
fn every_row_has_a_cell_for_each_agent() {
    let rows = rows();
    assert!(rows.len() > 20, "{rows:?}");
    assert!(rows.iter().flatten().all(|cell| !cell.is_empty()), "{rows:?}");
}
