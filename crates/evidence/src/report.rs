//! What a test command told.

use std::collections::HashMap;

use serde::Deserialize;
use serde::Serialize;

/// The most tests a report names. Of more only the number is kept.
pub const MOST_TESTS: usize = 20_000;

/// Who ran the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// `cargo test`.
    CargoTest,
    /// `cargo nextest run`.
    Nextest,
    /// `pytest`.
    Pytest,
    /// `python -m unittest`.
    Unittest,
    /// `go test`.
    GoTest,
    /// `jest`.
    Jest,
    /// `vitest`.
    Vitest,
    /// `mocha`.
    Mocha,
    /// `node --test`, as it writes for people.
    NodeTest,
    /// Any runner that prints a JUnit document.
    JunitXml,
    /// Any runner that prints the Test Anything Protocol.
    Tap,
    /// Nobody that is known here: only the exit status tells.
    ExitStatus,
}

impl Runner {
    /// The name that people use.
    pub fn name(self) -> &'static str {
        match self {
            Self::CargoTest => "cargo test",
            Self::Nextest => "cargo nextest",
            Self::Pytest => "pytest",
            Self::Unittest => "unittest",
            Self::GoTest => "go test",
            Self::Jest => "jest",
            Self::Vitest => "vitest",
            Self::Mocha => "mocha",
            Self::NodeTest => "node --test",
            Self::JunitXml => "JUnit XML",
            Self::Tap => "TAP",
            Self::ExitStatus => "exit status",
        }
    }
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It took too long and was ended.
    TimedOut,
    /// Nobody knows: the text came from elsewhere.
    Unknown,
}

impl Exit {
    /// Whether it ended by itself and said that all is well.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// Whether it ended by itself, so that nothing of its output is missing at the end.
    pub fn is_by_itself(self) -> bool {
        matches!(self, Self::Code(_))
    }
}

/// What became of one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran and passed.
    Passed,
    /// It was left out, or its failure is expected.
    Skipped,
    /// It failed, or could not be run.
    Failed,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TestCase {
    /// Its full name as the runner tells it: with file, module, class or package.
    pub name: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// What a test command told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// The first runner that was recognised.
    pub runner: Runner,
    /// Every runner, in the order in which they came.
    pub runners: Vec<Runner>,
    /// How many tests passed.
    pub passed: u64,
    /// How many failed or could not be run.
    pub failed: u64,
    /// How many were left out, or failed as expected.
    pub skipped: u64,
    /// The tests that were named, sorted by name: at most [`MOST_TESTS`].
    pub tests: Vec<TestCase>,
    /// Whether every test that passed or failed is in `tests`.
    pub named: bool,
    /// Whether every test that failed is in `tests`.
    pub failures_named: bool,
    /// Whether every runner that began also told its result.
    pub complete: bool,
    /// Whether tests could not be run because they, or what they test, could not be built or loaded.
    pub build_failed: bool,
    /// How the command ended.
    pub exit: Exit,
}

/// What a report comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Tests ran, all of them passed, and the command ended with success. Where only the exit status tells, that alone.
    Passed,
    /// A test failed, or the command says that something else did.
    Failed,
    /// The tests could not be built or loaded.
    BuildFailed,
    /// No test ran. That is never a pass.
    NoTests,
    /// The output ends before the result.
    Incomplete,
}

impl TestReport {
    /// What it comes to. The worst that is known decides.
    pub fn verdict(&self) -> Verdict {
        if self.build_failed {
            return Verdict::BuildFailed;
        }
        if self.failed > 0 {
            return Verdict::Failed;
        }
        if !self.complete || !self.exit.is_by_itself() {
            return Verdict::Incomplete;
        }
        if self.runner != Runner::ExitStatus && self.passed == 0 {
            return Verdict::NoTests;
        }
        if self.exit.is_success() { Verdict::Passed } else { Verdict::Failed }
    }

    /// How many tests it tells of.
    pub fn total(&self) -> u64 {
        self.passed.saturating_add(self.failed).saturating_add(self.skipped)
    }

    /// The names of those with this outcome.
    pub fn names(&self, outcome: Outcome) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(move |test| test.outcome == outcome).map(|test| test.name.as_str())
    }

    /// What is known if no runner is: how the command ended.
    pub(crate) fn of_exit(exit: Exit) -> Self {
        Self {
            runner: Runner::ExitStatus,
            runners: vec![Runner::ExitStatus],
            passed: 0,
            failed: 0,
            skipped: 0,
            tests: Vec::new(),
            named: false,
            failures_named: false,
            complete: exit.is_by_itself(),
            build_failed: false,
            exit,
        }
    }

    /// The parts of an output as one report.
    pub(crate) fn of_parts(parts: Vec<Part>, exit: Exit) -> Self {
        let mut report = Self::of_exit(exit);
        (report.runners, report.named, report.failures_named) = (Vec::new(), true, true);
        let mut complete = true;
        for mut part in parts {
            part.settle();
            if !report.runners.contains(&part.runner) {
                report.runners.push(part.runner);
            }
            report.passed = report.passed.saturating_add(part.passed);
            report.failed = report.failed.saturating_add(part.failed);
            report.skipped = report.skipped.saturating_add(part.skipped);
            complete &= part.complete;
            report.build_failed |= part.build_failed;
            let failures_named = part.count(Outcome::Failed).saturating_add(part.unloaded) == part.failed;
            report.named &= part.count(Outcome::Passed) == part.passed && failures_named && !part.unnamed;
            report.failures_named &= failures_named;
            report.tests.append(&mut part.tests);
        }
        report.runner = report.runners.first().copied().unwrap_or(Runner::ExitStatus);
        report.complete = complete;
        number_equal_names(&mut report.tests);
        if report.tests.len() > MOST_TESTS {
            report.tests.truncate(MOST_TESTS);
            (report.named, report.failures_named) = (false, false);
        }
        report
    }
}

/// Sorts by name; of several with one name, the second becomes `name #2`.
fn number_equal_names(tests: &mut [TestCase]) {
    // Stable: those of one name stay in the order in which they came.
    tests.sort_by(|a, b| a.name.cmp(&b.name));
    let mut first = 0;
    for at in 1..tests.len() {
        if tests[at].name == tests[first].name {
            let name = format!("{} #{}", tests[at].name, at - first + 1);
            tests[at].name = name;
        } else {
            first = at;
        }
    }
    tests.sort_by(|a, b| a.name.cmp(&b.name));
}

/// One run of one runner within an output.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) runner: Runner,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) tests: Vec<TestCase>,
    /// The summary was seen, so that the counts are the runner's own.
    pub(crate) complete: bool,
    pub(crate) build_failed: bool,
    /// Files or packages that count as failed because they could not be built or loaded. They are no tests: their tests
    /// have names of their own once they can be.
    pub(crate) unloaded: u64,
    /// Stands before each name, if it is known.
    pub(crate) prefix: Option<String>,
    /// Some tests that belong to the run have no name here, whatever the counts say.
    pub(crate) unnamed: bool,
    /// Where in `tests` a name is, for those that may come again.
    indexes: HashMap<String, usize>,
}

impl Part {
    pub(crate) fn new(runner: Runner) -> Self {
        Self {
            runner,
            passed: 0,
            failed: 0,
            skipped: 0,
            tests: Vec::new(),
            complete: false,
            build_failed: false,
            unloaded: 0,
            prefix: None,
            unnamed: false,
            indexes: HashMap::new(),
        }
    }

    pub(crate) fn add(&mut self, name: impl Into<String>, outcome: Outcome) {
        self.tests.push(TestCase { name: name.into(), outcome });
    }

    /// Adds a test, or lets the worse outcome stand if it is there.
    pub(crate) fn worsen(&mut self, name: &str, outcome: Outcome) {
        match self.indexes.get(name).and_then(|&index| self.tests.get_mut(index)) {
            Some(test) => test.outcome = test.outcome.max(outcome),
            None => {
                self.indexes.insert(name.to_owned(), self.tests.len());
                self.add(name, outcome);
            }
        }
    }

    /// Adds a test, or lets the later outcome stand if it is there.
    pub(crate) fn put(&mut self, name: &str, outcome: Outcome) {
        self.worsen(name, outcome);
        if let Some(test) = self.indexes.get(name).and_then(|&index| self.tests.get_mut(index)) {
            test.outcome = outcome;
        }
    }

    pub(crate) fn count(&self, outcome: Outcome) -> u64 {
        self.tests.iter().filter(|test| test.outcome == outcome).count() as u64
    }

    /// Takes the named tests for the counts.
    pub(crate) fn count_names(&mut self) {
        self.passed = self.count(Outcome::Passed);
        self.failed = self.count(Outcome::Failed).saturating_add(self.unloaded);
        self.skipped = self.count(Outcome::Skipped);
    }

    /// Without a summary the named tests are all that is known.
    fn settle(&mut self) {
        if !self.complete {
            self.count_names();
            self.unnamed = true;
        }
        if let Some(prefix) = self.prefix.take() {
            for test in &mut self.tests {
                test.name.insert_str(0, &prefix);
            }
        }
    }
}
