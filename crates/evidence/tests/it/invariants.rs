//! What holds for every input. The fuzzer checks it too.

use segno_evidence::Exit;
use segno_evidence::Runner;
use segno_evidence::TestReport;
use segno_evidence::Verdict;
use segno_evidence::read;

/// Reads an output and looks whether the report can be true.
pub(crate) fn check(text: &str, exit: Exit) -> Option<TestReport> {
    let report = read(text, exit)?;
    let lines = text.lines().count() + text.matches("<testcase").count();
    assert!(report.tests.len() <= lines, "{} tests in {lines} lines", report.tests.len());
    assert!(report.runners.contains(&report.runner));
    if report.verdict() == Verdict::Passed {
        assert!(exit.is_success() && report.complete && report.failed == 0 && !report.build_failed);
        assert!(report.passed > 0 || report.runner == Runner::ExitStatus);
    }
    Some(report)
}
