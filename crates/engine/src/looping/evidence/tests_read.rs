//! How the tests of an evidence command came out.

use std::collections::BTreeMap;

use segno_core::looping::TestCounts;
use segno_core::looping::TestEnd;
use segno_evidence::Exit;
use segno_evidence::Outcome;
use segno_evidence::Runner;

use super::command::Cut;
use super::command::Shown;

/// The tests that a command tells of, and each by its name if all that ran are named. Nothing if it tells of none: then
/// its exit status counts.
pub(crate) fn read(output: &str, shown: &Shown) -> Option<(TestCounts, BTreeMap<String, TestEnd>)> {
    let exit = match (shown.cut, shown.exit, shown.signal) {
        (Some(Cut::TimedOut | Cut::Stopped), ..) => Exit::TimedOut,
        (None, Some(code), _) => Exit::Code(code),
        (None, None, Some(signal)) => Exit::Signal(signal),
        (None, None, None) => Exit::Unknown,
    };
    let report = segno_evidence::read(output, exit).filter(|report| report.runner != Runner::ExitStatus)?;
    let runners: Vec<&str> = report.runners.iter().map(|runner| runner.name()).collect();
    let counts = TestCounts {
        total: report.total(),
        passed: report.passed,
        failed: report.failed,
        skipped: report.skipped,
        build_failed: report.build_failed,
        runner: runners.join(" + "),
    };
    // What was left out of a long output would look like tests that are gone.
    let named = report.named && shown.left_out == 0;
    let end = |outcome: Outcome| match outcome {
        Outcome::Passed => TestEnd::Passed,
        Outcome::Failed => TestEnd::Failed,
        Outcome::Skipped => TestEnd::Skipped,
    };
    let names = report.tests.into_iter().filter(|_| named).map(|test| (test.name, end(test.outcome)));
    Some((counts, names.collect()))
}
