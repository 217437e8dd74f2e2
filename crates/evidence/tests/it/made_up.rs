//! Output that the recordings do not have: cut off, torn apart, quoted, or of other versions.

use segno_evidence::Exit;
use segno_evidence::Outcome;
use segno_evidence::Runner;
use segno_evidence::TestReport;
use segno_evidence::Verdict;
use segno_evidence::read;

fn ended(text: &str, code: i32) -> TestReport {
    read(text, Exit::Code(code)).unwrap()
}

fn counts(report: &TestReport) -> [u64; 3] {
    [report.passed, report.failed, report.skipped]
}

#[test]
fn without_a_runner_the_exit_status_tells() {
    let noise = "✓ linted\n  ✔ formatted\nok 1 - then\nPASS\n5 passed the door\n- [x] done\nTests: fine\n";
    for text in ["", "all good\n", noise] {
        for (exit, verdict) in [(Exit::Code(0), Verdict::Passed), (Exit::Code(3), Verdict::Failed)] {
            let report = read(text, exit).unwrap();
            assert_eq!(
                (report.runner, report.total(), report.verdict()),
                (Runner::ExitStatus, 0, verdict),
                "{text}"
            );
        }
    }
    for exit in [Exit::Signal(9), Exit::TimedOut] {
        assert_eq!(read("", exit).unwrap().verdict(), Verdict::Incomplete);
    }
    assert_eq!(read("", Exit::Unknown), None);
}

#[test]
fn a_sentence_about_tests_is_no_result() {
    for text in [
        "It says test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        "> test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        "I saw that 5 passed in 0.1s, good\n",
        "Ran 5 tests in 0.1s\n\nOK\n",
        "the Tests: 5 passed, 5 total\n",
        "      Tests  5 passed (5)\n",
        "we have 4 passing (12ms)\n",
        "1..\nok\n",
    ] {
        assert_eq!(ended(text, 0).runner, Runner::ExitStatus, "{text}");
    }
}

const RESULT: &str = "0 ignored; 0 measured; 0 filtered out; finished in 0.00s";

#[test]
fn cargo_results_alone_are_added_up() {
    let text = format!(
        "test result: ok. 5 passed; 0 failed; {RESULT}\ntest result: ok. 2 passed; 0 failed; {RESULT}\n"
    );
    let report = ended(&text, 0);
    assert_eq!((counts(&report), report.verdict(), report.named), ([7, 0, 0], Verdict::Passed, false));
    // A result that contradicts itself is none.
    for wrong in ["ok. 5 passed; 1 failed", "FAILED. 5 passed; 0 failed", "great. 5 passed; 0 failed"] {
        assert_eq!(ended(&format!("test result: {wrong}; {RESULT}\n"), 0).runner, Runner::ExitStatus);
    }
}

#[test]
fn a_cargo_program_that_dies_has_no_result() {
    let text = format!(
        "     Running unittests src/lib.rs (target/debug/deps/calc-c6626fb655a8d231)\n\nrunning 2 tests\n\
         test a ... ok\nerror: test failed, to rerun pass `--lib`\n\nCaused by:\n  process didn't exit successfully\n\
         \u{20}    Running tests/whole.rs (target/debug/deps/whole-e2eb4c16849cc6e4)\n\nrunning 1 test\ntest b ... ok\n\n\
         test result: ok. 1 passed; 0 failed; {RESULT}\n"
    );
    let report = ended(&text, 101);
    assert_eq!((counts(&report), report.complete, report.verdict()), ([2, 0, 0], false, Verdict::Incomplete));
    let names: Vec<&str> = report.names(Outcome::Passed).collect();
    assert_eq!(names, ["calc::a", "whole::b"]);
}

#[test]
fn cargo_programs_whose_names_came_apart_from_their_output() {
    let running = "     Running unittests src/lib.rs (target/debug/deps/calc-c6626fb655a8d231)\n";
    let other = "     Running tests/whole.rs (target/debug/deps/whole-e2eb4c16849cc6e4)\n";
    let tests = |name: &str| {
        format!("\nrunning 1 test\ntest {name} ... ok\n\ntest result: ok. 1 passed; 0 failed; {RESULT}\n")
    };
    let apart = ended(&format!("{running}{other}{}{}", tests("a"), tests("b")), 0);
    assert_eq!(apart.names(Outcome::Passed).collect::<Vec<_>>(), ["a", "b"]);
    let together = ended(&format!("{running}{}{other}{}", tests("a"), tests("b")), 0);
    assert_eq!(together.names(Outcome::Passed).collect::<Vec<_>>(), ["calc::a", "whole::b"]);
}

#[test]
fn the_names_of_examples_do_not_change_with_the_lines_above_them() {
    let text = |first: u64, second: u64| {
        format!(
            "running 2 tests\ntest src/lib.rs - add (line {second}) ... FAILED\n\
             test src/lib.rs - add (line {first}) ... ok\n\nfailures:\n\nfailures:\n    src/lib.rs - add (line {second})\n\n\
             test result: FAILED. 1 passed; 1 failed; {RESULT}\n"
        )
    };
    let report = ended(&text(3, 9), 101);
    assert_eq!(report.names(Outcome::Passed).collect::<Vec<_>>(), ["src/lib.rs - add"]);
    assert_eq!(report.names(Outcome::Failed).collect::<Vec<_>>(), ["src/lib.rs - add #2"]);
    assert_eq!(ended(&text(103, 109), 101), report);
}

/// A failing test prints a whole run, with as many tests as the real one.
#[test]
fn a_quoted_run_of_the_same_size_is_not_the_result() {
    let quoted = format!(
        "running 2 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok. 2 passed; 0 failed; {RESULT}\n"
    );
    let text = format!(
        "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\n{quoted}\n\n\
         failures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; {RESULT}\n"
    );
    let report = ended(&text, 101);
    assert_eq!((counts(&report), report.verdict()), ([1, 1, 0], Verdict::Failed));
    let cut = text.split("failures:\n    b").next().unwrap();
    let report = ended(cut, 101);
    assert_eq!((counts(&report), report.complete), ([1, 1, 0], false));
}

#[test]
fn a_runner_that_is_quoted_by_another_one() {
    let pytest = "============================= test session starts ==============================\n\
                  collected 1 item\n\nt.py F                                     [100%]\n\n\
                  =================================== FAILURES ===================================\n";
    let end = "=========================== short test summary info ============================\n\
               FAILED t.py::test_x - assert 1 == 2\n\
               ============================== 1 failed in 0.01s ===============================\n";
    for quoted in [
        format!("running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; {RESULT}\n"),
        "TAP version 13\nok 1 - a\n1..1\n".to_owned(),
        "ok  \texample.com/a\t0.01s\n".to_owned(),
        format!("{}\nRan 5 tests in 0.1s\n\nOK\n", "-".repeat(70)),
        "<testsuite name=\"a\"><testcase name=\"b\"/></testsuite>\n".to_owned(),
        "\n  5 passing (1ms)\n".to_owned(),
        " RUN  v4.1.12 /p\n Test Files  1 passed (1)\n      Tests  5 passed (5)\n".to_owned(),
        "=== 5 passed in 0.01s ===\n".to_owned(),
        "5 passed in 0.01s\n".to_owned(),
        "PASS a.test.js\nTest Suites: 1 passed, 1 total\nTests:       5 passed, 5 total\nSnapshots:   0 total\n".to_owned(),
        "error[E0425]: no\nerror: could not compile `calc` (lib) due to 1 previous error\n".to_owned(),
    ] {
        let report = ended(&format!("{pytest}{quoted}{end}"), 1);
        assert_eq!((counts(&report), report.runners.len()), ([0, 1, 0], 1), "{quoted}");
        assert_eq!(report.verdict(), Verdict::Failed, "{quoted}");
    }
}

#[test]
fn pytest_in_other_words() {
    let report = ended("....                  [100%]\n4 passed, 2 warnings in 65.12s (0:01:05)\n", 0);
    assert_eq!((counts(&report), report.verdict()), ([4, 0, 0], Verdict::Passed));
    let report = ended("no tests ran in 0.01s\n", 5);
    assert_eq!((report.runner, report.verdict()), (Runner::Pytest, Verdict::NoTests));
    let workers = "[gw0] [ 50%] PASSED t.py::a \n[gw1] [100%] FAILED t.py::b[x - y] \n\
                   =========================== short test summary info ============================\n\
                   FAILED t.py::b[x - y] - assert 1 == 2\n\
                   ========================= 1 failed, 1 passed in 0.03s ==========================\n";
    let report = ended(workers, 1);
    assert_eq!(report.names(Outcome::Failed).collect::<Vec<_>>(), ["t.py::b[x - y]"]);
    let twice = "============================= test session starts ==============================\n\
                 t.py::a PASSED                                                           [100%]\n\
                 t.py::a ERROR                                                            [100%]\n\
                 ========================== 1 passed, 1 error in 0.03s ==========================\n";
    let report = ended(twice, 1);
    assert_eq!((counts(&report), report.named), ([0, 1, 0], true), "one test, which could not be cleaned up");
}

#[test]
fn unittest_in_other_words() {
    let end = |ran: &str, result: &str| format!("{}\n{ran} in 0.000s\n\n{result}\n", "-".repeat(70));
    let report = ended(&end("Ran 0 tests", "NO TESTS RAN"), 5);
    assert_eq!((report.runner, report.verdict()), (Runner::Unittest, Verdict::NoTests));
    let old = format!(
        "test_a (t.T) ... ok\ntest_b (t.T) ... skipped 'x'\n\n{}",
        end("Ran 2 tests", "OK (skipped=1)")
    );
    let report = ended(&old, 0);
    assert_eq!(report.names(Outcome::Passed).collect::<Vec<_>>(), ["t.T.test_a"]);
    let rule = "=".repeat(70);
    let broken = format!(
        "E\n{rule}\nERROR: test_bad (unittest.loader._FailedTest.test_bad)\n{}\nImportError: no\n\n\n{}",
        "-".repeat(70),
        end("Ran 1 test", "FAILED (errors=1)")
    );
    assert_eq!(ended(&broken, 1).verdict(), Verdict::BuildFailed);
    // Rules that other programs draw are not the beginning of anything.
    let cargo = format!(
        "{rule}\nBuilding\n{}\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; {RESULT}\n",
        "-".repeat(70)
    );
    assert_eq!((ended(&cargo, 0).runner, ended(&cargo, 0).passed), (Runner::CargoTest, 1));
}

#[test]
fn go_packages() {
    let panicked = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\npanic: boom\n\ngoroutine 1 [running]:\n\
                    exit status 2\nFAIL\texample.com/a\t0.010s\nFAIL\n";
    let report = ended(panicked, 1);
    assert_eq!((counts(&report), report.complete), ([1, 1, 0], true));
    let here = "some words\nPASS\nok  \texample.com/a\t0.010s\tcoverage: 80.0% of statements\n";
    assert_eq!(counts(&ended(here, 0)), [1, 0, 0]);
    let cut = "ok  \texample.com/a\t0.010s\n=== RUN   TestB\n";
    let report = ended(cut, 0);
    assert_eq!((counts(&report), report.verdict()), ([1, 0, 0], Verdict::Incomplete));
}

#[test]
fn tap_of_every_version() {
    for (text, expected, verdict, code) in [
        ("1..2\nok 1 - a\nok 2 - b\n", [2, 0, 0], Verdict::Passed, 0),
        ("ok 1 - a\nnot ok 2 - b\n1..2\n", [1, 1, 0], Verdict::Failed, 1),
        (
            "TAP version 14\n1..3\nok 1 - a # SKIP no\nnot ok 2 - b # TODO later\nok 3\n",
            [1, 0, 2],
            Verdict::Passed,
            0,
        ),
        ("1..0 # SKIP nothing here\n", [0, 0, 0], Verdict::NoTests, 0),
        ("TAP version 13\n1..3\nok 1 - a\n", [1, 0, 0], Verdict::Incomplete, 0),
        ("TAP version 13\n1..3\nok 1 - a\nBail out! no disk\n", [1, 0, 0], Verdict::Incomplete, 0),
        ("TAP version 13\nok 1 - a\nok 2 - b\n", [2, 0, 0], Verdict::Incomplete, 0),
        ("1..3\nok 1 - a\nok 2 - b\n", [2, 0, 0], Verdict::Incomplete, 0),
        ("1..2\nok 1 - a\nok 2 - b\n1..2\nok 1 - c\n", [3, 0, 0], Verdict::Incomplete, 0),
        (
            "TAP version 14\n1..1\n    1..2\n    ok 1 - x\n    not ok 2 - y\nnot ok 1 - a\n",
            [1, 1, 0],
            Verdict::Failed,
            1,
        ),
        ("TAP version 14\n1..1\n    1..1\n    ok 1 - x\nnot ok 1 - a\n", [1, 1, 0], Verdict::Failed, 1),
        (
            "TAP version 13\n1..1\nnot ok 1 - a \\# b\n  ---\n  message: |\n    ok 1 - z\n    1..9\n  ...\n",
            [0, 1, 0],
            Verdict::Failed,
            1,
        ),
        ("TAP version 13\n1..1\nok 1 - a\n  ---\n  never closed\nok 2 - b\n", [1, 0, 0], Verdict::Passed, 0),
    ] {
        let report = ended(text, code);
        assert_eq!(
            (report.runner, counts(&report), report.verdict()),
            (Runner::Tap, expected, verdict),
            "{text}"
        );
    }
    let nested = "TAP version 14\n1..1\n    1..2\n    ok 1 - x\n    ok 2 - y\nok 1 - a\n";
    assert_eq!(ended(nested, 0).names(Outcome::Passed).collect::<Vec<_>>(), ["a > x", "a > y"]);
}

/// Output that a pipe cut, and that ended well all the same.
#[test]
fn a_run_without_its_result_is_none() {
    for (runner, text) in [
        (
            Runner::Pytest,
            "t.py::test_a PASSED                [ 33%]\nt.py::test_b PASSED                [ 66%]\n",
        ),
        (
            Runner::Pytest,
            "============================= test session starts ==============================\ncollected 3 items\n\n\
             t.py::test_a PASSED                [ 33%]\nt.py::test_b PASSED                [ 66%]\n",
        ),
        (Runner::Pytest, "[gw0] [ 33%] PASSED t.py::test_a \n[gw1] [ 66%] PASSED t.py::test_b \n"),
        (Runner::Unittest, "test_a (t.T.test_a) ... ok\ntest_b (t.T.test_b) ... ok\n"),
        (
            Runner::GoTest,
            "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- PASS: TestB (0.00s)\n",
        ),
        (Runner::CargoTest, "\nrunning 3 tests\ntest a ... ok\ntest b ... ok\n"),
    ] {
        for code in [0, 1] {
            let report = ended(text, code);
            let told = (report.runner, counts(&report), report.verdict(), report.named);
            assert_eq!(told, (runner, [2, 0, 0], Verdict::Incomplete, false), "{text}");
        }
    }
    // What looks a little like one is none.
    for text in ["1..3\nok\n", "1..3\n", "Checked (all)\nok\n", "a.rs::b PASSED\n", "--- PASS: x (0.00s)\n"] {
        assert_eq!(ended(text, 0).runner, Runner::ExitStatus, "{text}");
    }
}

#[test]
fn names_of_node_may_have_any_mark() {
    let text = "✔ issue # 5 works (0.6ms)\n✔ a # b # c (1.25ms)\n﹣ later # 2 (0.1ms) # SKIP\n\
                ✖ todo (0.2ms) # TODO\n✔ off (0.2ms) # see issue # 7\nℹ tests 5\nℹ suites 0\nℹ pass 2\nℹ fail 0\n\
                ℹ cancelled 0\nℹ skipped 2\nℹ todo 1\nℹ duration_ms 8.5\n";
    let report = ended(text, 0);
    assert_eq!((report.runner, counts(&report), report.named), (Runner::NodeTest, [2, 0, 3], true));
    assert_eq!(report.names(Outcome::Passed).collect::<Vec<_>>(), ["a # b # c", "issue # 5 works"]);
    assert_eq!(report.names(Outcome::Skipped).collect::<Vec<_>>(), ["later # 2", "off", "todo"]);
}

#[test]
fn junit_documents() {
    let one = "<testsuite name=\"s\"><testcase name=\"a\" classname=\"c\"/><testcase name=\"b\"><failure>no</failure></testcase></testsuite>";
    let report = ended(one, 1);
    assert_eq!((counts(&report), report.complete), ([1, 1, 0], true));
    assert_eq!(report.names(Outcome::Passed).collect::<Vec<_>>(), ["c::a"]);
    let raw = "<testsuites>\n<testsuite>\n<testcase name=\"a\"><system-out><![CDATA[\n</testcase></testsuite></testsuites>\n\
               <testcase name=\"made up\"/>\n]]></system-out><error/></testcase>\n</testsuite>\n</testsuites>\n";
    let report = ended(raw, 1);
    assert_eq!((counts(&report), report.complete), ([0, 1, 0], true));
    let cut = ended("<testsuites>\n<testsuite>\n<testcase name=\"a\"/>\n", 0);
    assert_eq!((counts(&cut), cut.verdict()), ([1, 0, 0], Verdict::Incomplete));
    let other = format!(
        "<?xml version=\"1.0\"?>\n<project/>\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; {RESULT}\n"
    );
    assert_eq!(ended(&other, 0).runners, [Runner::CargoTest]);
    assert_eq!(ended("<testsuites/>\n", 0).verdict(), Verdict::NoTests);
}

#[test]
fn what_was_cut_off_tells_what_it_had() {
    let mocha = "\n  sum\n    ✔ adds\n    1) fails\n";
    let report = read(mocha, Exit::TimedOut).unwrap();
    assert_eq!((report.runner, counts(&report), report.complete), (Runner::Mocha, [1, 1, 0], false));
    // The failure is known, so that it counts.
    assert_eq!(report.verdict(), Verdict::Failed);
    let report = read("running 3 tests\ntest a ... ok\n", Exit::Signal(9)).unwrap();
    assert_eq!((counts(&report), report.verdict()), ([1, 0, 0], Verdict::Incomplete));
}

#[test]
fn success_needs_the_exit_status_too() {
    let text = format!("running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; {RESULT}\n");
    for (exit, verdict) in [
        (Exit::Code(0), Verdict::Passed),
        (Exit::Code(1), Verdict::Failed),
        (Exit::Signal(6), Verdict::Incomplete),
        (Exit::TimedOut, Verdict::Incomplete),
        (Exit::Unknown, Verdict::Incomplete),
    ] {
        assert_eq!(read(&text, exit).unwrap().verdict(), verdict, "{exit:?}");
    }
    // Skipped tests did not run.
    let skipped = "running 1 test\ntest a ... ignored\n\ntest result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    assert_eq!(ended(skipped, 0).verdict(), Verdict::NoTests);
}

#[test]
fn more_tests_than_are_kept_are_counted_and_not_named() {
    let mut text = "running 20001 tests\n".to_owned();
    for number in 0..20_001 {
        text.push_str(&format!("test t{number:06} ... ok\n"));
    }
    text.push_str("\ntest result: ok. 20001 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n");
    let report = ended(&text, 0);
    assert_eq!((report.passed, report.tests.len(), report.named), (20_001, 20_000, false));
}

/// The first test says what it is for, or prints something, before its result: it still begins the run.
#[test]
fn a_unittest_whose_first_result_stands_on_a_line_of_its_own() {
    let rule = "-".repeat(70);
    let name = "test_m.N.test_f";
    for (lead, more) in [
        ("f gives one. ... ok\n", 0),
        (" ... WARNING:root:look\nok\n", 0),
        (" ... hello\nworld\nok\ntest_g (test_m.N.test_g) ... ok\n", 1),
    ] {
        let lead = if lead.starts_with(' ') { lead.to_owned() } else { format!("\n{lead}") };
        let ran = 1 + more;
        let text = format!("test_f ({name}){lead}\n{rule}\nRan {ran} tests in 0.001s\n\nOK\n");
        let report = ended(&text, 0);
        assert_eq!((counts(&report), report.named), ([ran, 0, 0], true), "{text}");
        assert_eq!(report.tests[0].name, name, "{text}");
    }
}

/// What a Go test prints without a new line stands before its result.
#[test]
fn a_go_result_behind_what_its_test_printed() {
    let run = "=== RUN   TestA\nhello--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- PASS: TestB (0.00s)\n";
    let report = ended(&format!("{run}PASS\nok  \tx/y\t0.01s\n"), 0);
    assert_eq!((counts(&report), report.complete, report.named), ([2, 0, 0], true, true));
    // A test that has its result has no other one, and one that was never announced has none.
    let said = "=== RUN   TestA\n--- FAIL: TestA (0.00s)\nsays --- PASS: TestA (0.00s)\nsays --- PASS: TestC (0.00s)\n";
    let report = ended(&format!("{said}FAIL\nFAIL\tx/y\t0.01s\n"), 1);
    assert_eq!(counts(&report), [0, 1, 0]);
}

/// Of a run of unittest somebody may show the last three lines alone.
#[test]
fn the_end_of_unittest_alone() {
    let failed = ended("Ran 2 tests in 0.001s\n\nFAILED (failures=1)\n", 0);
    assert_eq!((counts(&failed), failed.verdict(), failed.named), ([1, 1, 0], Verdict::Failed, false));
    let passed = ended("Ran 2 tests in 0.001s\n\nOK\n", 0);
    assert_eq!((counts(&passed), passed.verdict()), ([2, 0, 0], Verdict::Passed));
    // Not where something stood before it: then it was printed by what ran.
    assert_eq!(ended("hello\nRan 2 tests in 0.001s\n\nOK\n", 0).runner, Runner::ExitStatus);
}
