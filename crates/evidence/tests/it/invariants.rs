//! What holds for every input. The fuzzer checks it too.

use segno_evidence::Exit;
use segno_evidence::Runner;
use segno_evidence::TestReport;
use segno_evidence::Verdict;
use segno_evidence::asks_question;
use segno_evidence::checklist;
use segno_evidence::error_lines;
use segno_evidence::last_complete;
use segno_evidence::read;
use segno_evidence::status_blocks;
use segno_evidence::work_items;

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

/// Reads what an agent says, and looks whether a signal stands there in so many words.
pub(crate) fn claims(text: &str) {
    let blocks = status_blocks(text);
    assert!(blocks.len() <= text.lines().count());
    if let Some(block) = last_complete(text)
        && block.exit_signal.is_some()
    {
        assert!(text.to_ascii_lowercase().contains("exit_signal"));
        assert!(block.fields.contains_key("exit_signal"));
    }
    asks_question(text);
    let items = checklist(text, &[]);
    assert!(items.len() <= text.lines().count());
    let mut ids: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), items.len());
    let _ = work_items(text);
    error_lines(text);
}
