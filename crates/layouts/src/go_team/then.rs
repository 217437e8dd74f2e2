//! A session as the files of go-team show it at one moment: now, or at a checkpoint.

use segno_core::List;
use segno_core::State;
use segno_core::event::Metric;
use segno_core::event::RestoreKind;
use segno_core::rows::FileRow;
use segno_core::rows::OutputRow;
use segno_core::rows::Row;
use serde_json::Value;

use super::wire;

/// The document's number, where a session has none of its own.
const ITERATIONS: u64 = 3;
/// The document's metrics, and what they are until somebody has measured them.
const METRICS: [(&str, Metric); 4] = [
    ("build_pass", Metric::Flag(false)),
    ("test_coverage", Metric::Number(0.0)),
    ("lint_clean", Metric::Flag(false)),
    ("race_free", Metric::Flag(false)),
];
/// How much of an output is shown.
const OUTPUT: usize = 20_000;

/// What a checkpoint held.
#[derive(Clone, Debug)]
pub struct Then {
    pub(super) state: wire::TeamState,
    pub(super) outputs: wire::Outputs,
    pub(super) files: wire::Files,
}

impl Then {
    /// The lists whose rows it is made of.
    pub const LISTS: [List; 2] = [List::Outputs, List::Files];

    /// From the state and the rows as they were.
    pub fn at(state: &State, outputs: &[Value], files: &[Value]) -> Self {
        let outputs: Vec<OutputRow> = outputs.iter().map(OutputRow::read_any).collect();
        let files: Vec<FileRow> = files.iter().map(FileRow::read_any).collect();
        Self::of(state, &outputs, &files)
    }

    pub(super) fn of(state: &State, rows: &[OutputRow], files: &[FileRow]) -> Self {
        Self {
            state: team_state(state),
            outputs: outputs(state, rows, files),
            files: wire::Files {
                created: changed(files, "created"),
                modified: changed(files, "modified"),
                deleted: changed(files, "deleted"),
            },
        }
    }

    /// Of one that came without its file nothing is known but whose it is.
    pub(super) fn unknown(state: &State) -> Self {
        let nothing = wire::TeamState {
            current_agent: None,
            iteration_count: 0,
            breakpoint_active: false,
            metrics: unmeasured().collect(),
            ..team_state(state)
        };
        Self { state: nothing, ..Self::of(state, &[], &[]) }
    }
}

fn unmeasured() -> impl Iterator<Item = (String, Metric)> {
    METRICS.into_iter().map(|(name, unknown)| (name.to_owned(), unknown))
}

/// Where a session stands, by its state alone.
pub(super) fn team_state(state: &State) -> wire::TeamState {
    let limit = state.looping.as_ref().and_then(|looping| looping.plan.caps.iterations);
    wire::TeamState {
        topic: state.topic.clone().unwrap_or_default(),
        date: state.created_at.to_string()[..10].to_owned(),
        phase: state.phase.clone(),
        current_step: state.step.unwrap_or(1),
        current_agent: state.agent.clone().or_else(|| state.run.as_ref().map(|run| run.agent.clone())),
        iteration_count: state.iteration,
        max_iterations: limit.unwrap_or(ITERATIONS),
        breakpoint_active: state.breakpoint.is_some(),
        metrics: unmeasured().chain(state.metrics.clone()).collect(),
    }
}

fn changed(files: &[FileRow], change: &str) -> Vec<String> {
    files.iter().filter(|row| row.change == change).map(|row| row.path.clone()).collect()
}

/// What a session has brought forth.
pub(super) fn outputs(state: &State, rows: &[OutputRow], files: &[FileRow]) -> wire::Outputs {
    // After a rollback the rows are still there of what was brought forth later; the session does not have it any more.
    let is_undone = state.tree.restored.iter().any(|mark| mark.kind == RestoreKind::Rollback);
    let has = |name: &str| !is_undone || state.outputs.contains_key(name);
    let of = |name: &str| rows.iter().find(|row| row.name == name && has(name));
    let text = |name: &str| of(name).and_then(|row| Some(row.content.as_ref()?.short(OUTPUT)));
    let list = |name: &str| text(name).map(|text| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>());
    let (tests, code): (Vec<_>, Vec<_>) = changed(files, "created")
        .into_iter()
        .chain(changed(files, "modified"))
        .partition(|path| path.contains("_test.") || path.contains("test_") || path.contains("/tests/"));
    wire::Outputs {
        spec: text("spec"),
        architecture: text("architecture"),
        code_files: list("code_files").unwrap_or(code),
        test_files: list("test_files").unwrap_or(tests),
        review_comments: list("review_comments").unwrap_or_default(),
        optimizations: list("optimizations").unwrap_or_default(),
        release_config: text("release_config"),
        partial_output: text("partial_output"),
    }
}
