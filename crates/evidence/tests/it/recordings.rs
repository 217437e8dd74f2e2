//! Real output of real runners, recorded from tiny projects. In each of them a failing test prints what looks like the
//! result of 500 passing tests.

use segno_evidence::Exit;
use segno_evidence::Outcome;
use segno_evidence::Runner;
use segno_evidence::TestReport;
use segno_evidence::Verdict;
use segno_evidence::read;

/// What of the tests is known by name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    All,
    Failures,
    None,
}
use Named::All;
use Named::Failures;

pub(crate) struct Recording {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) exit: i32,
    runner: Runner,
    counts: [u64; 3],
    named: Named,
    verdict: Verdict,
}

macro_rules! recordings {
    ($($file:literal $exit:literal $runner:ident $passed:literal $failed:literal $skipped:literal $named:path, $verdict:ident;)*) => {
        /// Every recording: file, exit code, runner, passed, failed, skipped, what is named, what it comes to.
        pub(crate) const RECORDINGS: &[Recording] = &[$(Recording {
            name: $file,
            text: include_str!(concat!("../recordings/", $file)),
            exit: $exit,
            runner: Runner::$runner,
            counts: [$passed, $failed, $skipped],
            named: $named,
            verdict: Verdict::$verdict,
        }),*];
    };
}

recordings! {
    "cargo_build_error.txt" 101 CargoTest 0 0 0 Failures, BuildFailed;
    "cargo_colour.txt" 101 CargoTest 5 1 2 All, Failed;
    "cargo_failing.txt" 101 CargoTest 5 1 2 All, Failed;
    "cargo_filtered.txt" 0 CargoTest 1 0 0 All, Passed;
    "cargo_none.txt" 0 CargoTest 0 0 0 All, NoTests;
    "cargo_passing.txt" 0 CargoTest 5 0 2 All, Passed;
    "cargo_quiet.txt" 101 CargoTest 5 1 2 Failures, Failed;
    "cargo_quoting_uncaptured.txt" 101 CargoTest 2 1 1 Failures, Failed;
    "go_build_error.txt" 2 GoTest 0 2 0 All, BuildFailed;
    "go_build_error_json.txt" 2 GoTest 4 2 1 All, BuildFailed;
    "go_cached.txt" 0 GoTest 1 0 0 All, Passed;
    "go_failing.txt" 1 GoTest 1 1 0 All, Failed;
    "go_json.txt" 1 GoTest 5 1 1 All, Failed;
    "go_none.txt" 0 GoTest 0 0 0 All, NoTests;
    "go_passing.txt" 0 GoTest 1 0 0 All, Passed;
    "go_passing_verbose.txt" 0 GoTest 4 0 0 All, Passed;
    "go_verbose.txt" 1 GoTest 5 1 1 All, Failed;
    "jest_colour.txt" 1 Jest 3 1 2 All, Failed;
    "jest_failing.txt" 1 Jest 3 1 2 Failures, Failed;
    "jest_none.txt" 1 Jest 0 0 0 All, NoTests;
    "jest_passing.txt" 0 Jest 1 0 0 All, Passed;
    "jest_suite_error.txt" 1 Jest 3 1 2 All, BuildFailed;
    "jest_verbose.txt" 1 Jest 3 1 2 All, Failed;
    "junit_nextest.xml" 100 JunitXml 4 1 0 All, Failed;
    "junit_pytest.xml" 1 JunitXml 6 2 2 All, Failed;
    "junit_vitest.xml" 1 JunitXml 3 1 2 All, Failed;
    "mocha_colour.txt" 1 Mocha 4 1 2 Failures, Failed;
    "mocha_dot.txt" 1 Mocha 4 1 2 Failures, Failed;
    "mocha_none.txt" 0 Mocha 0 0 0 All, NoTests;
    "mocha_passing.txt" 0 Mocha 2 0 0 All, Passed;
    "mocha_spec.txt" 1 Mocha 4 1 2 Failures, Failed;
    "mocha_tap.txt" 1 Tap 4 1 2 All, Failed;
    "nextest_build_error.txt" 101 Nextest 0 0 0 Failures, BuildFailed;
    "nextest_colour.txt" 100 Nextest 2 1 1 Failures, Failed;
    "nextest_failing.txt" 100 Nextest 4 1 1 All, Failed;
    "nextest_none.txt" 4 Nextest 0 0 6 All, NoTests;
    "nextest_passing.txt" 0 Nextest 4 0 2 All, Passed;
    "nextest_retries.txt" 100 Nextest 4 1 1 All, Failed;
    "node_spec.txt" 1 NodeTest 3 1 2 Failures, Failed;
    "node_tap.txt" 1 Tap 2 1 2 All, Failed;
    "node_tap_direct.txt" 1 Tap 2 1 2 All, Failed;
    "pytest_all_reasons.txt" 1 Pytest 6 2 2 All, Failed;
    "pytest_collection_error.txt" 2 Pytest 0 1 0 Named::None, BuildFailed;
    "pytest_colour.txt" 1 Pytest 6 2 2 All, Failed;
    "pytest_failing.txt" 1 Pytest 6 2 2 Failures, Failed;
    "pytest_first_failure.txt" 1 Pytest 1 1 0 Failures, Failed;
    "pytest_none.txt" 5 Pytest 0 0 0 All, NoTests;
    "pytest_passing.txt" 0 Pytest 4 0 0 Failures, Passed;
    "pytest_quiet.txt" 1 Pytest 6 2 2 Failures, Failed;
    "pytest_uncaptured.txt" 1 Pytest 1 1 0 All, Failed;
    "pytest_verbose.txt" 1 Pytest 6 2 2 All, Failed;
    "unittest_buffered.txt" 1 Unittest 2 3 2 All, Failed;
    "unittest_failing.txt" 1 Unittest 2 3 2 Failures, Failed;
    "unittest_import_error.txt" 1 Unittest 1 2 0 All, BuildFailed;
    "unittest_none.txt" 0 Unittest 0 0 0 All, NoTests;
    "unittest_passing.txt" 0 Unittest 1 0 1 All, Passed;
    "unittest_verbose.txt" 1 Unittest 2 3 2 All, Failed;
    "vitest_colour.txt" 1 Vitest 3 1 2 All, Failed;
    "vitest_failing.txt" 1 Vitest 3 1 2 Failures, Failed;
    "vitest_none.txt" 1 Vitest 0 0 0 All, NoTests;
    "vitest_passing.txt" 0 Vitest 1 0 0 Failures, Passed;
    "vitest_suite_error.txt" 1 Vitest 3 1 2 Failures, BuildFailed;
    "vitest_tap.txt" 1 Tap 3 1 2 All, Failed;
    "vitest_verbose.txt" 1 Vitest 3 1 2 All, Failed;
}

impl Recording {
    fn check(&self, text: &str, how: &str) {
        let report = read(text, Exit::Code(self.exit)).unwrap();
        let counts = [report.passed, report.failed, report.skipped];
        assert_eq!((report.runner, counts), (self.runner, self.counts), "{} {how}", self.name);
        assert_eq!(report.runners, [self.runner], "{} {how}", self.name);
        let named = match (report.named, report.failures_named) {
            (true, true) => Named::All,
            (false, true) => Named::Failures,
            (_, false) => Named::None,
        };
        assert_eq!(named, self.named, "{} {how}: {:?}", self.name, report.tests);
        assert!(report.complete, "{} {how}", self.name);
        assert_eq!(report.verdict(), self.verdict, "{} {how}", self.name);
    }
}

#[test]
fn counts_and_verdicts() {
    for recording in RECORDINGS {
        recording.check(recording.text, "as it is");
    }
}

#[test]
fn no_recording_is_forgotten() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let files =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.collect();
    files.sort();
    let known: Vec<&str> = RECORDINGS.iter().map(|recording| recording.name).collect();
    assert_eq!(files, known);
}

#[test]
fn line_ends_of_windows_and_colours_change_nothing() {
    for recording in RECORDINGS {
        recording.check(&recording.text.replace('\n', "\r\n"), "with carriage returns");
        let coloured: String =
            recording.text.lines().map(|line| format!("\u{1b}[1m{line}\u{1b}[0m\n")).collect();
        recording.check(&coloured, "in bold");
        recording.check(recording.text.trim_end(), "without the last line's end");
    }
}

fn report(name: &str) -> TestReport {
    let recording = RECORDINGS.iter().find(|recording| recording.name == name).unwrap();
    read(recording.text, Exit::Code(recording.exit)).unwrap()
}

fn names(report: &TestReport) -> Vec<(Outcome, &str)> {
    report.tests.iter().map(|test| (test.outcome, test.name.as_str())).collect()
}

#[test]
fn names_are_full_paths() {
    use Outcome::Failed;
    use Outcome::Passed;
    use Outcome::Skipped;
    assert_eq!(
        names(&report("cargo_failing.txt")),
        [
            (Passed, "calc::src/lib.rs - add"),
            (Skipped, "calc::src/lib.rs - add #2"),
            (Passed, "calc::tests::adds"),
            (Passed, "calc::tests::panics"),
            (Failed, "calc::tests::quotes_a_runner"),
            (Skipped, "calc::tests::slow"),
            (Passed, "whole::part"),
            (Passed, "whole::whole"),
        ]
    );
    assert_eq!(names(&report("cargo_quiet.txt")), [(Failed, "tests::quotes_a_runner")]);
    assert_eq!(
        names(&report("nextest_failing.txt")),
        [
            (Passed, "calc tests::adds"),
            (Passed, "calc tests::panics"),
            (Failed, "calc tests::quotes_a_runner"),
            (Passed, "calc::whole part"),
            (Passed, "calc::whole whole"),
        ]
    );
    assert_eq!(
        names(&report("pytest_verbose.txt")),
        [
            (Passed, "tests/test_calc.py::TestGroup::test_inside"),
            (Passed, "tests/test_calc.py::test_adds"),
            (Passed, "tests/test_calc.py::test_better"),
            (Skipped, "tests/test_calc.py::test_known"),
            (Passed, "tests/test_calc.py::test_many[1]"),
            (Passed, "tests/test_calc.py::test_many[a::b]"),
            (Passed, "tests/test_calc.py::test_many[x y]"),
            (Failed, "tests/test_calc.py::test_needs"),
            (Failed, "tests/test_calc.py::test_quotes_a_runner"),
            (Skipped, "tests/test_calc.py::test_slow"),
        ]
    );
    assert_eq!(
        names(&report("unittest_failing.txt")),
        [
            (Failed, "test_unit.TestSums.test_error"),
            (Failed, "test_unit.TestSums.test_parts"),
            (Failed, "test_unit.TestSums.test_quotes_a_runner"),
        ]
    );
    assert_eq!(
        names(&report("go_verbose.txt")),
        [
            (Passed, "example.com/calc/other.TestOther"),
            (Passed, "example.com/calc/sum.TestAdds"),
            (Passed, "example.com/calc/sum.TestMany"),
            (Passed, "example.com/calc/sum.TestMany/one"),
            (Passed, "example.com/calc/sum.TestMany/two_words"),
            (Failed, "example.com/calc/sum.TestQuotesARunner"),
            (Skipped, "example.com/calc/sum.TestSlow"),
        ]
    );
    let file_and_titles = [
        (Passed, "other.test.js > other"),
        (Passed, "sum.test.js > sum > adds"),
        (Passed, "sum.test.js > sum > inner > adds"),
        (Skipped, "sum.test.js > sum > later"),
        (Failed, "sum.test.js > sum > quotes a runner"),
        (Skipped, "sum.test.js > sum > slow"),
    ];
    for name in ["jest_verbose.txt", "jest_colour.txt", "vitest_verbose.txt", "vitest_tap.txt"] {
        assert_eq!(names(&report(name)), file_and_titles, "{name}");
    }
    assert_eq!(names(&report("mocha_passing.txt")), [(Passed, "sum > adds"), (Passed, "sum > inner > adds")]);
    assert_eq!(
        names(&report("node_tap.txt")),
        [
            (Passed, "outer > inner"),
            (Passed, "sum > adds"),
            (Skipped, "sum > later"),
            (Failed, "sum > quotes a runner"),
            (Skipped, "sum > slow"),
        ]
    );
    assert_eq!(
        names(&report("junit_nextest.xml")),
        [
            (Passed, "calc::tests::adds"),
            (Passed, "calc::tests::panics"),
            (Failed, "calc::tests::quotes_a_runner"),
            (Passed, "calc::whole::part"),
            (Passed, "calc::whole::whole"),
        ]
    );
}

/// What stands for a file or a package that could not be loaded is gone once it can be: that is no removed test.
#[test]
fn what_could_not_be_loaded_is_no_test() {
    use Outcome::Failed;
    use Outcome::Passed;
    let sums = [(Passed, "test_unit.TestSums.test_adds"), (Failed, "test_unit.TestSums.test_fails")];
    assert_eq!(names(&report("unittest_import_error.txt")), sums);
    assert_eq!(names(&report("go_build_error.txt")), [(Failed, "example.com/calc/sum")]);
    let json = report("go_build_error_json.txt");
    assert!(json.tests.iter().all(|test| test.name.starts_with("example.com/calc/sum.")), "{json:?}");
}

#[test]
fn the_same_tests_have_the_same_names_however_they_are_told() {
    assert_eq!(names(&report("go_json.txt")), names(&report("go_verbose.txt")));
    assert_eq!(names(&report("pytest_colour.txt")), names(&report("pytest_verbose.txt")));
    assert_eq!(names(&report("cargo_colour.txt")), names(&report("cargo_failing.txt")));
    assert_eq!(names(&report("unittest_buffered.txt")), names(&report("unittest_verbose.txt")));
    assert_eq!(names(&report("nextest_retries.txt")), names(&report("nextest_failing.txt")));
    assert_eq!(names(&report("node_tap_direct.txt")), names(&report("node_tap.txt")));
}

/// Every pair of runs, one after the other, comes to the sum of both.
#[test]
fn runs_after_one_another_are_added_up() {
    let mut wrong = Vec::new();
    for first in RECORDINGS {
        for second in RECORDINGS {
            let text = format!("{}\n{}", first.text, second.text);
            let report = read(&text, Exit::Code(second.exit)).unwrap();
            let sum: Vec<u64> = first.counts.iter().zip(second.counts).map(|(a, b)| a + b).collect();
            let mut runners = vec![first.runner, second.runner];
            runners.sort();
            runners.dedup();
            let mut told = report.runners.clone();
            told.sort();
            // What could not be built looks the same for both.
            let unbuilt = first.name.ends_with("t_build_error.txt")
                && second.name.ends_with("o_build_error.txt")
                || first.name.ends_with("o_build_error.txt") && second.name.ends_with("t_build_error.txt");
            let unbuilt = unbuilt && report.runners == [Runner::Nextest];
            if [report.passed, report.failed, report.skipped] != *sum || (told != runners && !unbuilt) {
                wrong.push(format!("{} and {}: {report:?}", first.name, second.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} pairs\n{}", wrong.len(), wrong.join("\n"));
}
