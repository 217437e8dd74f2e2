//! Progress, from evidence alone.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::observation::Observation;
use super::observation::SinceStart;
use super::observation::TestChanges;
use super::observation::TestCounts;
use super::observation::TestEnd;
use super::observation::line;
use super::plan::GateRule;
use super::plan::MetricRule;
use super::state::LoopState;
use crate::limits;

/// Whether an iteration brought something that can be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Whether it did.
    pub made: bool,
    /// Whether tests, numbers or open items moved, not only files.
    pub measured: bool,
    /// What moved.
    pub why: Vec<String>,
    /// What was compared, in words.
    pub compared: String,
}

impl Progress {
    /// The same within bounds, whoever made it.
    pub(crate) fn bounded(mut self) -> Self {
        self.why.truncate(limits::LOOP_NAMES);
        self.why.iter_mut().for_each(line);
        line(&mut self.compared);
        self
    }
}

/// Numbers that are better when they are larger.
const MORE: &[&str] = &[
    "patterns_applied",
    "docs_generated",
    "diagrams_valid",
    "has_adr",
    "has_openapi",
    "checks_passing",
    "criteria_covered",
    "tests_generated",
    "coverage",
];
/// Those of them that are 0 when a phase begins.
const NOTHING_AT_FIRST: &[&str] = &["patterns_applied", "docs_generated", "has_adr", "has_openapi"];
/// Numbers that are better when they are smaller.
const LESS: &[&str] =
    &["complexity", "complexity_score", "duplication", "duplication_count", "blocking_issues"];

/// What an iteration brought, compared with what was measured before it.
pub fn measure(state: &LoopState, seen: &Observation) -> Progress {
    let tests = tests_moved(state, seen);
    let numbers = numbers_moved(state, seen);
    let items = items_fell(state, seen);
    let measured = tests.is_some() || !numbers.is_empty() || items.is_some();
    let files = files_moved(state, seen);
    let why: Vec<String> = tests.into_iter().chain(numbers).chain(items).chain(files).collect();
    Progress { made: !why.is_empty(), measured, why, compared: compared(state, seen) }.bounded()
}

/// The tree is one that this loop has not seen yet, or it was committed. A tree that comes back is no progress, nor is
/// another commit of one that was committed before.
fn files_moved(state: &LoopState, seen: &Observation) -> Option<String> {
    let committed =
        |tree: &String| state.recent.iter().any(|one| one.committed && one.tree.as_ref() == Some(tree));
    if seen.commits > 0 && !seen.tree_after.as_ref().is_some_and(committed) {
        return Some(things(seen.commits, "commit"));
    }
    match (&seen.tree_before, &seen.tree_after) {
        (Some(before), Some(after)) => {
            let came_before = seen_before(state, after).is_some();
            (before != after && !came_before).then(|| things(seen.files_changed.max(1), "file"))
        }
        (Some(_) | None, _) => (seen.files_changed > 0).then(|| things(seen.files_changed, "file")),
    }
}

/// The iteration that left the same tree, or 0 for the beginning of the phase.
fn seen_before(state: &LoopState, tree: &str) -> Option<u64> {
    let baseline = state.baseline.as_ref().filter(|mark| mark.tree.as_deref() == Some(tree));
    let recent = state.recent.iter().find(|recent| recent.tree.as_deref() == Some(tree));
    recent.map(|recent| recent.iteration).or(baseline.map(|_| 0))
}

/// More tests pass than ever in this phase, there are new ones, or they build at last. What differs on the same tree
/// is chance, not progress; and a test that is skipped does not fail, but that is no progress either.
fn tests_moved(state: &LoopState, seen: &Observation) -> Option<String> {
    let now = seen.tests.as_ref().filter(|_| !seen.flaky)?;
    let before = state.tests.as_ref();
    if before.is_some_and(|before| before.build_failed) && !now.build_failed && now.total > 0 {
        return Some("the tests build".to_owned());
    }
    let new = seen.changes.new_failing.count.saturating_add(seen.changes.new_passing.count);
    if new > state.new_tests {
        return Some(things(new - state.new_tests, "new test"));
    }
    let here = state.recent.iter().filter(|recent| recent.phase == state.phase);
    let best = here.filter_map(|recent| recent.tests.map(|(passed, _)| passed)).max();
    let at_first = state.baseline.as_ref().map(|mark| mark.tests.passed);
    let best = best.max(at_first).max(before.map(|tests| tests.passed)).unwrap_or(0);
    (now.passed > best).then(|| format!("{} more", things(now.passed - best, "passing test")))
}

fn items_fell(state: &LoopState, seen: &Observation) -> Option<String> {
    let (before, now) = (state.open_items?, seen.open_items?);
    (now < before).then(|| format!("{} fewer", things(before - now, "open item")))
}

fn numbers_moved(state: &LoopState, seen: &Observation) -> Vec<String> {
    let gate = state.phase_plan().map(|plan| &plan.gate);
    let rules = if let Some(GateRule::Metrics(rules)) = gate { rules.as_slice() } else { &[] };
    let moved = seen.metrics.iter().filter(|(name, now)| {
        let rule = rules.iter().find(|rule| rule.name == **name);
        match state.metrics.get(*name) {
            Some(before) => is_better(name, rule, *before, **now),
            // The first measurement says nothing, except of what was not there before.
            None => **now > 0.0 && NOTHING_AT_FIRST.contains(&name.as_str()),
        }
    });
    moved.map(|(name, now)| format!("{name} {now}")).collect()
}

fn is_better(name: &str, rule: Option<&MetricRule>, before: f64, now: f64) -> bool {
    if let Some(rule) = rule {
        if let Some(wanted) = rule.equals {
            return (now - wanted).abs() < (before - wanted).abs();
        }
        let up = rule.at_least.is_some_and(|least| before < least) && now > before;
        let down = rule.at_most.is_some_and(|most| before > most) && now < before;
        return up || down;
    }
    MORE.contains(&name) && now > before || LESS.contains(&name) && now < before
}

/// What was compared, in words.
fn compared(state: &LoopState, seen: &Observation) -> String {
    let mut parts = Vec::new();
    if let (Some(before), Some(after)) = (&seen.tree_before, &seen.tree_after) {
        let again = seen_before(state, after).filter(|_| before != after);
        parts.push(match again {
            Some(0) => format!("tree {} as at the beginning of the phase", brief(after)),
            Some(iteration) => format!("tree {} as after iteration {iteration}", brief(after)),
            None if before == after => format!("tree {} unchanged", brief(after)),
            None => format!("tree {} with {}", brief(before), brief(after)),
        });
    }
    if let Some(now) = &seen.tests {
        let then = state.tests.as_ref().map_or("none".to_owned(), TestCounts::fraction);
        parts.push(format!("tests {then} with {}", now.fraction()));
    }
    if let (Some(before), Some(now)) = (state.open_items, seen.open_items) {
        parts.push(format!("open items {before} with {now}"));
    }
    for (name, now) in seen.metrics.iter().take(4) {
        let before = state.metrics.get(name).map_or("none".to_owned(), f64::to_string);
        parts.push(format!("{name} {before} with {now}"));
    }
    if parts.is_empty() { "nothing was measured".to_owned() } else { parts.join("; ") }
}

/// Which tests changed how since a baseline.
pub fn changes(before: &BTreeMap<String, TestEnd>, now: &BTreeMap<String, TestEnd>) -> TestChanges {
    let mut changes = TestChanges::default();
    for (name, end) in now {
        let list = match (before.get(name), end) {
            (None, TestEnd::Failed) => &mut changes.new_failing,
            (None, TestEnd::Passed) => &mut changes.new_passing,
            (Some(TestEnd::Passed), TestEnd::Failed) => &mut changes.newly_failing,
            (Some(TestEnd::Failed), TestEnd::Passed) => &mut changes.newly_passing,
            (Some(TestEnd::Failed), TestEnd::Failed) => &mut changes.still_failing,
            (Some(TestEnd::Passed | TestEnd::Failed), TestEnd::Skipped) => &mut changes.newly_skipped,
            // A test that was skipped and runs now was not there before, for all we know.
            (Some(TestEnd::Skipped), TestEnd::Failed) => &mut changes.new_failing,
            (Some(TestEnd::Skipped), TestEnd::Passed) => &mut changes.new_passing,
            (Some(TestEnd::Passed), TestEnd::Passed) => continue,
            (None | Some(TestEnd::Skipped), TestEnd::Skipped) => continue,
        };
        list.add(name);
    }
    for name in before.keys().filter(|name| !now.contains_key(*name)) {
        changes.removed.add(name);
    }
    changes
}

/// The same, in short, against the baseline of the loop's beginning.
pub fn since_start(before: &BTreeMap<String, TestEnd>, now: &BTreeMap<String, TestEnd>) -> SinceStart {
    let changes = changes(before, now);
    SinceStart {
        new: changes.new_failing.count.saturating_add(changes.new_passing.count),
        removed: changes.removed.count,
        old_failing: changes.still_failing.count,
    }
}

impl TestCounts {
    /// How many of how many pass, such as `8/10`.
    pub fn fraction(&self) -> String {
        if self.build_failed { "no build".to_owned() } else { format!("{}/{}", self.passed, self.total) }
    }

    /// Those that ran.
    pub fn ran(&self) -> u64 {
        self.passed.saturating_add(self.failed)
    }
}

/// The beginning of a hash, enough to tell it from others.
fn brief(tree: &str) -> String {
    tree.chars().take(8).collect()
}

/// A number of things, such as `1 file` or `3 files`.
pub(crate) fn things(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}
