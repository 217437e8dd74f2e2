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
        // Of a long output the middle is left out, and with it results that were there.
        incomplete: !report.build_failed
            && (!exit.is_by_itself() || (!report.complete && shown.left_out == 0)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn incomplete_of(output: &str, (exit, cut): (Option<i32>, Option<Cut>), left_out: u64) -> Option<bool> {
        let output = output.to_owned();
        let shown =
            Shown { exit, signal: None, cut, output, left_out, took: std::time::Duration::ZERO, swept: 0 };
        read(&shown.output, &shown).map(|(counts, _)| counts.incomplete)
    }

    fn incomplete(output: &str, exit: Option<i32>, cut: Option<Cut>) -> Option<bool> {
        incomplete_of(output, (exit, cut), 0)
    }

    #[test]
    fn a_run_that_was_cut_is_not_whole() {
        let whole = "1..2\nok 1 - a\nok 2 - b\n";
        let cut = "1..3\nok 1 - a\nok 2 - b\n";
        let verbose = "test_a (t.T.test_a) ... ok\n";
        assert_eq!(incomplete(whole, Some(0), None), Some(false));
        assert_eq!(incomplete(whole, Some(1), None), Some(false));
        assert_eq!(incomplete(cut, Some(0), None), Some(true));
        assert_eq!(incomplete(verbose, Some(0), None), Some(true));
        // More may have come, whatever the last one of several runners said.
        assert_eq!(incomplete(whole, None, Some(Cut::TimedOut)), Some(true));
        // What does not build has no result, and says so.
        let broken = "error[E0425]: cannot find function `slug`\nerror: could not compile `words` (lib test) due to 1 previous error\n";
        assert_eq!(incomplete(broken, Some(101), None), Some(false));
        assert_eq!(incomplete("fine\n", Some(0), None), None);
        assert_eq!(incomplete_of(cut, (Some(0), None), 7), Some(false), "its middle was left out here");
    }
}
