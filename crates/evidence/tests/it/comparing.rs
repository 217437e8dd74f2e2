//! What changed between two runs.

use segno_evidence::Basis;
use segno_evidence::Counts;
use segno_evidence::Exit;
use segno_evidence::Outcome;
use segno_evidence::TestCase;
use segno_evidence::TestReport;
use segno_evidence::compare;
use segno_evidence::read;

fn verbose(cases: &[(&str, &str)]) -> TestReport {
    let count = |word: &str| cases.iter().filter(|(_, result)| *result == word).count();
    let mut text = format!("running {} tests\n", cases.len());
    for (name, result) in cases {
        text.push_str(&format!("test {name} ... {result}\n"));
    }
    let word = if count("FAILED") == 0 { "ok" } else { "FAILED" };
    text.push_str(&format!(
        "\ntest result: {word}. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        count("ok"),
        count("FAILED"),
        count("ignored")
    ));
    read(&text, Exit::Code(if count("FAILED") == 0 { 0 } else { 101 })).unwrap()
}

#[test]
fn by_name() {
    let before = verbose(&[
        ("breaks", "ok"),
        ("fixed", "FAILED"),
        ("gone", "ok"),
        ("left_out", "ok"),
        ("left_out_failing", "FAILED"),
        ("same", "ok"),
        ("still", "FAILED"),
        ("taken_up", "ignored"),
        ("ignored", "ignored"),
    ]);
    let now = verbose(&[
        ("breaks", "FAILED"),
        ("fixed", "ok"),
        ("left_out", "ignored"),
        ("left_out_failing", "ignored"),
        ("same", "ok"),
        ("still", "FAILED"),
        ("taken_up", "ok"),
        ("ignored", "ignored"),
        ("new_good", "ok"),
        ("new_bad", "FAILED"),
    ]);
    let comparison = compare(&before, &now);
    assert_eq!(comparison.basis, Basis::Names);
    let case = |name: &str, outcome| TestCase { name: name.to_owned(), outcome };
    assert_eq!(comparison.new, [case("new_bad", Outcome::Failed), case("new_good", Outcome::Passed)]);
    assert_eq!(comparison.removed, ["gone"]);
    assert_eq!(comparison.newly_failing, ["breaks"]);
    assert_eq!(comparison.newly_passing, ["fixed", "taken_up"]);
    assert_eq!(comparison.newly_skipped, ["left_out", "left_out_failing"]);
    assert_eq!(comparison.still_failing, ["still"]);
    assert_eq!(comparison.before, Counts { passed: 4, failed: 3, skipped: 2 });
    assert_eq!(comparison.now, Counts { passed: 4, failed: 3, skipped: 3 });
    assert!(!comparison.ran_fewer());
    assert!(comparison.says().ends_with("(compared by name)"), "{}", comparison.says());
    let same = compare(&now, &now);
    assert!(same.new.is_empty() && same.removed.is_empty() && same.newly_failing.is_empty());
}

#[test]
fn by_the_names_of_failures_where_nothing_else_is_named() {
    let quiet = |failures: &[&str], passed: u64| {
        let list: String = failures.iter().map(|name| format!("FAILED {name} - assert 1 == 2\n")).collect();
        let rule = "===================== short test summary info ======================";
        let text = format!("{rule}\n{list}{} failed, {passed} passed in 0.04s\n", failures.len());
        read(&text, Exit::Code(1)).unwrap()
    };
    let comparison = compare(&quiet(&["t.py::a", "t.py::b"], 5), &quiet(&["t.py::b", "t.py::c"], 4));
    assert_eq!(comparison.basis, Basis::Failures);
    assert_eq!(comparison.newly_failing, ["t.py::c"]);
    assert_eq!(comparison.still_failing, ["t.py::b"]);
    assert!(
        comparison.newly_passing.is_empty() && comparison.removed.is_empty() && comparison.new.is_empty()
    );
    assert!(comparison.ran_fewer());
}

#[test]
fn by_counts_and_says_so() {
    let count = |passed: u64, failed: u64| {
        read(&format!("\n  {passed} passing (3ms)\n  {failed} failing\n"), Exit::Code(1)).unwrap()
    };
    let comparison = compare(&count(5, 2), &count(5, 1));
    assert_eq!(comparison.basis, Basis::Counts);
    assert!(comparison.newly_failing.is_empty() && comparison.ran_fewer());
    assert_eq!(
        comparison.says(),
        "5 passed, 1 failed, 0 skipped; before 5, 2, 0 (compared by counts: the output does not name the tests)"
    );
    let by_status = read("", Exit::Code(0)).unwrap();
    assert_eq!(compare(&by_status, &count(1, 1)).basis, Basis::Counts);
}

#[test]
fn more_tests_than_are_kept_are_counted_and_not_compared_by_name() {
    let names: Vec<String> = (0..20_001).map(|number| format!("t{number:06}")).collect();
    let cases: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "ok")).collect();
    let report = verbose(&cases);
    assert_eq!((report.passed, report.tests.len(), report.named), (20_001, 20_000, false));
    assert_eq!(compare(&report, &report).basis, Basis::Counts);
}
