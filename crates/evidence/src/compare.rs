//! What changed between two test runs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use crate::report::Outcome;
use crate::report::TestCase;
use crate::report::TestReport;

/// How two reports could be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Test by test: both name every test that ran.
    Names,
    /// Both name the failures, but not what passed. A failure that is new may be a new test, and one that is gone may
    /// have been deleted.
    Failures,
    /// Only the numbers are known.
    Counts,
}

/// The numbers of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// How many passed.
    pub passed: u64,
    /// How many failed.
    pub failed: u64,
    /// How many were skipped.
    pub skipped: u64,
}

impl Counts {
    /// Those that ran.
    pub fn ran(self) -> u64 {
        self.passed.saturating_add(self.failed)
    }
}

/// What changed since a baseline. Lists that the [`Basis`] cannot tell are empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// What it rests on.
    pub basis: Basis,
    /// The numbers before.
    pub before: Counts,
    /// The numbers now.
    pub now: Counts,
    /// Tests that were not there before, with their outcome.
    pub new: Vec<TestCase>,
    /// Tests that are no longer named. A runner that does not name what it skips may have skipped them.
    pub removed: Vec<String>,
    /// Tests that were there, did not fail, and fail now.
    pub newly_failing: Vec<String>,
    /// Tests that were there, did not pass, and pass now.
    pub newly_passing: Vec<String>,
    /// Tests that ran before and are skipped now.
    pub newly_skipped: Vec<String>,
    /// Tests that failed before and fail now.
    pub still_failing: Vec<String>,
}

impl Comparison {
    /// Whether fewer tests ran than before.
    pub fn ran_fewer(&self) -> bool {
        self.now.ran() < self.before.ran()
    }

    /// In one line, for people.
    pub fn says(&self) -> String {
        let counts = format!(
            "{} passed, {} failed, {} skipped; before {}, {}, {}",
            self.now.passed,
            self.now.failed,
            self.now.skipped,
            self.before.passed,
            self.before.failed,
            self.before.skipped
        );
        let how = match self.basis {
            Basis::Names => "compared by name",
            Basis::Failures => "compared by the names of the failures, the rest by counts",
            Basis::Counts => "compared by counts: the output does not name the tests",
        };
        format!("{counts} ({how})")
    }
}

/// Compares a run with an earlier one: by name where both name their tests, by counts where they do not.
pub fn compare(baseline: &TestReport, now: &TestReport) -> Comparison {
    let counts = |report: &TestReport| Counts {
        passed: report.passed,
        failed: report.failed,
        skipped: report.skipped,
    };
    let basis = if baseline.named && now.named {
        Basis::Names
    } else if baseline.failures_named && now.failures_named {
        Basis::Failures
    } else {
        Basis::Counts
    };
    let mut comparison = Comparison {
        basis,
        before: counts(baseline),
        now: counts(now),
        new: Vec::new(),
        removed: Vec::new(),
        newly_failing: Vec::new(),
        newly_passing: Vec::new(),
        newly_skipped: Vec::new(),
        still_failing: Vec::new(),
    };
    match basis {
        Basis::Names => by_name(&mut comparison, baseline, now),
        Basis::Failures => by_failures(&mut comparison, baseline, now),
        Basis::Counts => {}
    }
    comparison
}

fn outcomes(report: &TestReport) -> BTreeMap<&str, Outcome> {
    report.tests.iter().map(|test| (test.name.as_str(), test.outcome)).collect()
}

fn by_name(comparison: &mut Comparison, baseline: &TestReport, now: &TestReport) {
    let (before, after) = (outcomes(baseline), outcomes(now));
    for (&name, &outcome) in &after {
        let Some(&was) = before.get(name) else {
            comparison.new.push(TestCase { name: name.to_owned(), outcome });
            continue;
        };
        let list = match (was, outcome) {
            (Outcome::Failed, Outcome::Failed) => &mut comparison.still_failing,
            (Outcome::Passed | Outcome::Skipped, Outcome::Failed) => &mut comparison.newly_failing,
            (Outcome::Failed | Outcome::Skipped, Outcome::Passed) => &mut comparison.newly_passing,
            (Outcome::Passed | Outcome::Failed, Outcome::Skipped) => &mut comparison.newly_skipped,
            (Outcome::Passed, Outcome::Passed) | (Outcome::Skipped, Outcome::Skipped) => continue,
        };
        list.push(name.to_owned());
    }
    comparison.removed =
        before.keys().filter(|name| !after.contains_key(*name)).map(|&name| name.to_owned()).collect();
}

fn by_failures(comparison: &mut Comparison, baseline: &TestReport, now: &TestReport) {
    let before = outcomes(baseline);
    for name in now.names(Outcome::Failed) {
        let failed = before.get(name) == Some(&Outcome::Failed);
        let list = if failed { &mut comparison.still_failing } else { &mut comparison.newly_failing };
        list.push(name.to_owned());
    }
}
