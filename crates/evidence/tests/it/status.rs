//! What agents say of their own work.

use segno_evidence::ClaimedFiles;
use segno_evidence::ClaimedTests;
use segno_evidence::Family;
use segno_evidence::StatusBlock;
use segno_evidence::TestsStatus;
use segno_evidence::WorkStatus;
use segno_evidence::last_complete;
use segno_evidence::status_blocks;

fn ralph(keys: &str) -> String {
    format!("---RALPH_STATUS---\n{keys}\n---END_RALPH_STATUS---\n")
}

fn signal(text: &str) -> Option<bool> {
    last_complete(text).and_then(|block| block.exit_signal)
}

/// Each of these was read wrong by a loop that people use.
#[test]
fn signals_that_others_get_wrong() {
    let with = |value: &str| ralph(&format!("STATUS: COMPLETE\nEXIT_SIGNAL: {value}"));
    for (text, expected) in [
        (with("true") + &with("true"), Some(true)),
        (with("false") + &with("true"), Some(true)),
        (with("true") + &with("false"), Some(false)),
        (with("True"), Some(true)),
        (with("TRUE"), Some(true)),
        (with("\"true\""), Some(true)),
        (with("true # all of it"), Some(true)),
        (format!("I set EXIT_SIGNAL: true at the end.\n{}", with("true")), Some(true)),
        (format!("I set EXIT_SIGNAL: true at the end.\n{}", with("false")), Some(false)),
        (format!("{}EXIT_SIGNAL: true\n", with("false")), Some(false)),
        (ralph("STATUS: COMPLETE"), None),
        (ralph("STATUS: COMPLETE\nTESTS_STATUS: PASSING"), None),
        (ralph("TESTS_STATUS: PASSING\nSTATUS: COMPLETE"), None),
        ("EXIT_SIGNAL: true".to_owned(), None),
        ("The block would say STATUS: COMPLETE and EXIT_SIGNAL: true.".to_owned(), None),
        (with("true").replace('\n', "\r\n"), Some(true)),
        (with("maybe"), None),
        (with("true or false"), None),
    ] {
        assert_eq!(signal(&text), expected, "{text}");
    }
}

#[test]
fn the_last_complete_block_counts() {
    let whole = ralph("STATUS: IN_PROGRESS\nEXIT_SIGNAL: false");
    let cut = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n";
    assert_eq!(signal(&format!("{whole}{cut}")), Some(false));
    assert_eq!(signal(&format!("{cut}{whole}")), Some(false));
    assert_eq!(signal(cut), None);
    let complete: Vec<bool> =
        status_blocks(&format!("{cut}{whole}{cut}")).iter().map(|block| block.complete).collect();
    assert_eq!(complete, [false, true, false]);
    // The end of another family ends nothing.
    assert_eq!(signal(&format!("{cut}---END_PRP_PHASE_STATUS---\n")), None);
    assert_eq!(signal("---END_RALPH_STATUS---\n"), None);
    assert_eq!(last_complete(&ralph("")), None);
    assert_eq!(last_complete(&ralph("just words")), None);
}

#[test]
fn places_in_which_a_block_may_stand() {
    let block = ralph("EXIT_SIGNAL: true");
    let quoted: String = block.lines().map(|line| format!("> {line}\n")).collect();
    let indented: String = block.lines().map(|line| format!("   {line}\n")).collect();
    for (text, expected) in [
        (format!("```\n{block}```\n"), Some(true)),
        (format!("```yaml\n{block}```\n"), Some(true)),
        (indented, Some(true)),
        (quoted, None),
        ("```\n---RALPH_STATUS---\nEXIT_SIGNAL: true\n```\n---END_RALPH_STATUS---\n".to_owned(), None),
        ("see ---RALPH_STATUS--- below\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---\n".to_owned(), None),
        (block.to_lowercase(), Some(true)),
        (format!("\u{1b}[1m{block}\u{1b}[0m"), Some(true)),
    ] {
        assert_eq!(signal(&text), expected, "{text}");
    }
}

/// What stands for no blocker at all does not take the signal back.
#[test]
fn nothing_blocks_in_many_words() {
    for none in
        ["none", "None.", "(none)", "NONE", "**None**", "`none`.", "n/a", "(N/A).", "[]", "[none]", ""]
    {
        for keys in [
            format!("EXIT_SIGNAL: true\nBLOCKERS: {none}"),
            format!("EXIT_SIGNAL: true\nBLOCKERS:\n  - {none}"),
        ] {
            let block = last_complete(&ralph(&keys)).unwrap();
            assert!(block.blockers.is_empty() && block.contradictions.is_empty(), "{keys}: {block:?}");
        }
    }
    for some in ["none of the keys is there", "no key.", "(no key)"] {
        let block = last_complete(&ralph(&format!("EXIT_SIGNAL: true\nBLOCKERS: {some}"))).unwrap();
        assert_eq!((block.blockers.len(), block.contradictions.len()), (1, 1), "{some}");
    }
}

#[test]
fn delimiters_that_stand_out() {
    let block = ralph("EXIT_SIGNAL: true");
    let each = |mark: &str| block.lines().map(|line| format!("{mark}{line}{mark}\n")).collect::<String>();
    for text in
        [each("**"), each("`"), each("*"), block.replace("---RALPH_STATUS---", "**---RALPH_STATUS---**")]
    {
        assert_eq!(signal(&text), Some(true), "{text}");
    }
    for header in ["**RALPH_STATUS:**", "**RALPH_STATUS**:", "`RALPH_STATUS`:"] {
        assert_eq!(signal(&format!("{header}\n  EXIT_SIGNAL: true\n")), Some(true), "{header}");
    }
    // In the middle of a sentence it is still only a word.
    assert_eq!(signal("say **---RALPH_STATUS---** first\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---\n"), None);
}

#[test]
fn the_form_without_an_end() {
    for (text, expected) in [
        ("RALPH_STATUS:\n  STATUS: COMPLETE\n  EXIT_SIGNAL: true\n", Some(true)),
        ("Done.\n\nRALPH_STATUS:\n  EXIT_SIGNAL: true\nThat is all.\n", Some(true)),
        ("  RALPH_STATUS:\n    EXIT_SIGNAL: true\n  EXIT_SIGNAL: false\n", Some(true)),
        ("```yaml\nPRP_PHASE_STATUS:\n  EXIT_SIGNAL: true\n```\n", Some(true)),
        ("RALPH_STATUS:\n  EXIT_SIGNAL: true\n\n  EXIT_SIGNAL: false\n", Some(true)),
        ("RALPH_STATUS:\n\tSTATUS: COMPLETE\n\tEXIT_SIGNAL: true\n", Some(true)),
        ("\tRALPH_STATUS:\n\t\tEXIT_SIGNAL: true\n\tEXIT_SIGNAL: false\n", Some(true)),
        ("  RALPH_STATUS:\n\tEXIT_SIGNAL: true\n", Some(true)),
        ("RALPH_STATUS:\nEXIT_SIGNAL: true\n", None),
        ("The RALPH_STATUS:\n  EXIT_SIGNAL: true\n", None),
        ("RALPH_STATUS:\n", None),
        ("RALPH_STATUS:\n  NOTE: nothing else\n", None),
    ] {
        assert_eq!(signal(text), expected, "{text}");
    }
    let tabs = "PRP_PHASE_STATUS:\n\texit_signal: false\n\ttests:\n\t\ttotal: 3\n\t\tpassing: 3\n\t\tfailing: 0\n\tblockers:\n\t\t- no key\n";
    let block = last_complete(tabs).unwrap();
    assert_eq!((block.tests.total, block.blockers.as_slice()), (Some(3), ["no key".to_owned()].as_slice()));
    let nested = "PRP_PHASE_STATUS:\n  status: in_progress\n  tests:\n    total: 3\n    passing: 2\n    failing: 1\n  blockers:\n    - no key\n  exit_signal: false\n";
    let block = last_complete(nested).unwrap();
    assert_eq!(block.tests.total, Some(3));
    assert_eq!(block.blockers, ["no key"]);
    assert_eq!((block.exit_signal, block.family), (Some(false), Family::Prp));
}

const WHOLE: &str = "---PRP_PHASE_STATUS---
RECOMMENDATION: go on with issue # 12: the parser
EXIT_SIGNAL: false   # not yet
TIMESTAMP: 2026-01-29T10:00:00Z
phase: green
Status: In_Progress
ITERATION: 3
PROGRESS_PERCENT: 60%
TESTS:
  TOTAL: 10
  PASSING: 6
  FAILING: 3
  SKIPPED: 1
FILES:
  CREATED: 2
  MODIFIED: 1
  DELETED: 0
CIRCUIT_BREAKER:
  STATE: CLOSED
  NO_PROGRESS_COUNT: 0
DUAL_GATE:
  GATE_1: false
  GATE_2: false
  CAN_EXIT: false
  GATE_1_DETAIL: 3 tests fail
RATE_LIMIT:
  HOURLY: 5/100
  5H_LIMIT: OK
BLOCKERS:
  - the database is down
  - no key: ask for one
PATTERNS_APPLIED:
  - strategy
  - factory
COMPLEXITY_SCORE: 4.5
HAS_ADR: true
---END_PRP_PHASE_STATUS---
";

#[test]
fn every_key_of_a_phase() {
    let block = last_complete(WHOLE).unwrap();
    assert_eq!(block.family, Family::Prp);
    assert_eq!(block.phase.as_deref(), Some("GREEN"));
    assert_eq!(block.status, Some(WorkStatus::InProgress));
    assert_eq!((block.iteration, block.progress), (Some(3), Some(60)));
    let tests = ClaimedTests { total: Some(10), passing: Some(6), failing: Some(3), skipped: Some(1) };
    assert_eq!(block.tests, tests);
    assert_eq!(block.files, ClaimedFiles { created: Some(2), modified: Some(1), deleted: Some(0) });
    assert_eq!(block.exit_signal, Some(false));
    assert_eq!(block.blockers, ["the database is down", "no key: ask for one"]);
    assert_eq!(block.recommendation.as_deref(), Some("go on with issue # 12: the parser"));
    assert_eq!(block.fields["circuit_breaker.state"], "CLOSED");
    assert_eq!(block.fields["rate_limit.hourly"], "5/100");
    assert_eq!(block.fields["dual_gate.gate_1_detail"], "3 tests fail");
    assert_eq!(block.metrics["tests.passing"], 6.0);
    assert_eq!(block.metrics["complexity_score"], 4.5);
    assert_eq!(block.metrics["patterns_applied"], 2.0);
    assert_eq!(block.metrics["circuit_breaker.no_progress_count"], 0.0);
    assert!(!block.metrics.contains_key("rate_limit.hourly"));
    assert_eq!((block.flag("has_adr"), block.flag("dual_gate.can_exit")), (Some(true), Some(false)));
    assert_eq!(block.flag("phase"), None);
    assert_eq!(block.problems, [""; 0]);
}

#[test]
fn the_order_of_keys_does_not_matter() {
    let groups: Vec<&str> = "STATUS: BLOCKED|EXIT_SIGNAL: true|TESTS:\n  TOTAL: 1\n  PASSING: 1|ITERATION: 2"
        .split('|')
        .collect();
    let expected = last_complete(&ralph(&groups.join("\n"))).unwrap();
    for shift in 1..groups.len() {
        let mut turned = groups.clone();
        turned.rotate_left(shift);
        assert_eq!(last_complete(&ralph(&turned.join("\n"))).unwrap(), expected);
    }
}

#[test]
fn the_keys_of_the_other_family_and_of_a_check() {
    let block = last_complete(&ralph(
        "STATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 2\nFILES_MODIFIED: 5\nTESTS_STATUS: not_run\nWORK_TYPE: testing\nEXIT_SIGNAL: true\nRECOMMENDATION: none",
    ))
    .unwrap();
    assert_eq!((block.tasks_completed, block.files.modified), (Some(2), Some(5)));
    assert_eq!(block.tests_status, Some(TestsStatus::NotRun));
    assert_eq!(block.work_type.as_deref(), Some("TESTING"));
    assert_eq!(block.status, Some(WorkStatus::Complete));
    let check = "---PRP_PHASE_STATUS---\nPHASE: QA\nSTATUS: COMPLETE\nQA_METRICS:\nCHECKS_TOTAL: 9\nBLOCKING_ISSUES: 0\nVERDICT: approve\nATTEMPT: 2\nMEMORY_CONTEXT: {BUGS_FOUND: 1, FILES_REVIEWED: 4}\n---END_PRP_PHASE_STATUS---\n";
    let block = last_complete(check).unwrap();
    assert_eq!(block.verdict.as_deref(), Some("APPROVE"));
    assert_eq!(block.metrics["qa_metrics.blocking_issues"], 0.0);
    assert_eq!(block.metrics["memory_context.files_reviewed"], 4.0);
    assert_eq!(block.metrics["attempt"], 2.0);
}

#[test]
fn blockers_in_every_form() {
    for (keys, expected) in [
        ("STATUS: BLOCKED\nBLOCKERS:\n  - none", vec![]),
        ("STATUS: BLOCKED\nBLOCKERS:\n- a\n- b", vec!["a", "b"]),
        ("STATUS: BLOCKED\nBLOCKERS: none", vec![]),
        ("STATUS: BLOCKED\nBLOCKERS: []", vec![]),
        ("STATUS: BLOCKED\nBLOCKERS: [a, b]", vec!["a", "b"]),
        ("STATUS: BLOCKED\nBLOCKERS: the disk is full", vec!["the disk is full"]),
        ("STATUS: BLOCKED\nBLOCKERS:\nEXIT_SIGNAL: false", vec![]),
    ] {
        assert_eq!(last_complete(&ralph(keys)).unwrap().blockers, expected, "{keys}");
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let problems = |keys: &str| -> Vec<String> {
        let block: StatusBlock = last_complete(&ralph(keys)).unwrap();
        block.problems
    };
    for (keys, expected) in [
        (
            "STATUS: COMPLETE\nTESTS:\n  TOTAL: 10\n  PASSING: 6\n  FAILING: 3",
            "TESTS: 6 passing, 3 failing and 0 skipped are not 10 in total",
        ),
        ("STATUS: DONE", "STATUS is neither IN_PROGRESS nor BLOCKED nor COMPLETE: \"DONE\""),
        ("EXIT_SIGNAL: soon", "EXIT_SIGNAL is neither true nor false: \"soon\""),
        ("STATUS: COMPLETE\nITERATION: many", "ITERATION is no number: \"many\""),
        ("STATUS: COMPLETE\nPROGRESS_PERCENT: 120", "PROGRESS_PERCENT is more than 100: 120"),
        ("STATUS: BLOCKED\nSTATUS: COMPLETE", "STATUS is there twice; the first was \"BLOCKED\""),
        (
            "STATUS: COMPLETE\nDUAL_GATE:\n  GATE_1: false\n  GATE_2: true\n  CAN_EXIT: true",
            "DUAL_GATE: CAN_EXIT is true, and one of the gates is not",
        ),
        (
            "STATUS: COMPLETE\nTESTS_STATUS: GOOD",
            "TESTS_STATUS is neither PASSING nor FAILING nor NOT_RUN: \"GOOD\"",
        ),
    ] {
        assert_eq!(problems(keys), [expected], "{keys}");
    }
    // Too large to be added up.
    let huge = format!("STATUS: COMPLETE\nTESTS:\n  TOTAL: 1\n  PASSING: {0}\n  FAILING: {0}", u64::MAX);
    assert_eq!(problems(&huge).len(), 1);
}

/// A block that contradicts itself is taken for no signal by whoever reads it; it says why.
#[test]
fn what_contradicts_itself() {
    for (keys, expected) in [
        ("STATUS: BLOCKED\nEXIT_SIGNAL: true", Some("STATUS is BLOCKED, and EXIT_SIGNAL is true")),
        ("status: blocked\nexit_signal: True", Some("STATUS is BLOCKED, and EXIT_SIGNAL is true")),
        (
            "STATUS: COMPLETE\nBLOCKERS:\n  - no key\nEXIT_SIGNAL: true",
            Some("BLOCKERS names \"no key\", and EXIT_SIGNAL is true"),
        ),
        (
            "STATUS: COMPLETE\nDUAL_GATE:\n  GATE_1: false\n  CAN_EXIT: false\nEXIT_SIGNAL: true",
            Some("DUAL_GATE: CAN_EXIT is false, and EXIT_SIGNAL is true"),
        ),
        (
            "STATUS: COMPLETE\nTESTS:\n  TOTAL: 10\n  PASSING: 6\n  FAILING: 3\nEXIT_SIGNAL: true",
            Some("TESTS: 6 passing, 3 failing and 0 skipped are not 10 in total"),
        ),
        (
            "STATUS: COMPLETE\nEXIT_SIGNAL: false\nEXIT_SIGNAL: true",
            Some("EXIT_SIGNAL is there twice; the first was \"false\""),
        ),
        ("STATUS: COMPLETE\nEXIT_SIGNAL: true\nEXIT_SIGNAL: true", None),
        ("STATUS: BLOCKED\nEXIT_SIGNAL: false", None),
        ("STATUS: BLOCKED\nBLOCKERS: no key", None),
        ("STATUS: IN_PROGRESS\nEXIT_SIGNAL: true", None),
        ("STATUS: COMPLETE\nBLOCKERS: none\nEXIT_SIGNAL: true", None),
        ("STATUS: DONE\nEXIT_SIGNAL: true", None),
    ] {
        for (family, text) in [
            (Family::Ralph, ralph(keys)),
            (Family::Prp, ralph(keys).replace("RALPH_STATUS", "PRP_PHASE_STATUS")),
            (Family::Ralph, format!("RALPH_STATUS:\n{}", indented(keys))),
            (Family::Prp, format!("PRP_PHASE_STATUS:\n{}", indented(keys))),
        ] {
            let block = last_complete(&text).unwrap();
            assert_eq!(block.family, family, "{text}");
            assert_eq!(block.contradictions.first().map(String::as_str), expected, "{text}");
        }
    }
}

fn indented(keys: &str) -> String {
    keys.lines().map(|line| format!("  {line}\n")).collect()
}
