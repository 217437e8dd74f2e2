//! Progress, from evidence alone.

use std::collections::BTreeMap;

use rstest::rstest;

use super::*;

fn progress(story: &Story, seen: &Observation) -> Progress {
    measure(looping(story), seen)
}

fn numbers(list: &[(&str, f64)]) -> BTreeMap<String, f64> {
    list.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[test]
fn files_and_commits_count_and_a_tree_that_comes_back_does_not() {
    let mut story = begun(simple());
    assert!(!progress(&story, &idle()).made);
    assert_eq!(progress(&story, &moved(1)).why, ["1 file"]);
    let commit = Observation { commits: 2, ..idle() };
    assert_eq!(progress(&story, &commit).why, ["2 commits"]);
    iterate(&mut story, moved(1));
    iterate(&mut story, moved(2));
    // There and back again.
    let back = Observation { tree_before: Some("t2".into()), tree_after: Some("t1".into()), ..moved(1) };
    let seen = progress(&story, &back);
    assert!(!seen.made);
    assert_eq!(seen.compared, "tree t1 as after iteration 1");
    let start = Observation { tree_before: Some("t2".into()), tree_after: Some("t0".into()), ..moved(1) };
    assert_eq!(progress(&story, &start).compared, "tree t0 as at the beginning of the phase");
}

/// A report that a test command writes anew every time is not what the agent did.
#[test]
fn what_the_evidence_commands_write_is_no_progress() {
    let mut story = begun(simple());
    for n in 0..3 {
        let seen = Observation { measured_tree: Some(format!("report {n}")), ..idle() };
        assert!(!progress(&story, &seen).made);
        iterate(&mut story, seen);
    }
    assert_eq!(story.state.status, crate::status::Status::Halted);
    // The gate is bound to what was measured.
    assert_eq!(looping(&story).gate.as_ref().unwrap().tree.as_deref(), Some("report 2"));
}

#[test]
fn words_and_numbers_that_the_agent_says_are_no_progress() {
    let story = begun(simple());
    let claims = Claims {
        exit_signal: Some(true),
        status: Some("COMPLETE".into()),
        metrics: numbers(&[("files_modified", 9.0), ("tests_passing", 99.0)]),
        ..Claims::default()
    };
    assert!(!progress(&story, &Observation { claims, ..idle() }).made);
}

#[rstest]
#[case(counts(7, 3), false, true)]
#[case(counts(6, 4), false, false)]
#[case(counts(5, 5), false, false)]
// Deviation: fewer that fail only because they are skipped is no progress.
#[case(TestCounts { total: 10, passed: 6, skipped: 4, ..TestCounts::default() }, false, false)]
// What differs on the same tree is chance.
#[case(counts(9, 1), true, false)]
fn tests_that_pass(#[case] tests: TestCounts, #[case] flaky: bool, #[case] made: bool) {
    let mut story = begun(simple());
    baseline(&mut story, counts(6, 4), &[]);
    let seen = Observation { tests: Some(tests), flaky, ..idle() };
    assert_eq!(progress(&story, &seen).made, made);
}

#[test]
fn ups_and_downs_are_progress_once() {
    let mut story = begun(simple());
    let with = |passed: u64| Observation { tests: Some(counts(passed, 4)), ..idle() };
    assert!(progress(&story, &with(7)).measured);
    iterate(&mut story, with(7));
    iterate(&mut story, with(5));
    assert!(!progress(&story, &with(7)).made);
    assert_eq!(progress(&story, &with(8)).why, ["1 passing test more"]);
}

#[test]
fn new_tests_and_a_build_count() {
    let mut story = begun(simple());
    let mut seen = Observation { tests: Some(counts(6, 2)), ..idle() };
    seen.changes.new_failing = named(2);
    assert_eq!(progress(&story, &seen).why, ["2 new tests"]);
    iterate(&mut story, seen.clone());
    assert!(!progress(&story, &seen).made);
    let broken = TestCounts { build_failed: true, ..TestCounts::default() };
    iterate(&mut story, Observation { tests: Some(broken), ..idle() });
    let seen = Observation { tests: Some(counts(2, 2)), ..idle() };
    assert_eq!(progress(&story, &seen).why, ["the tests build"]);
}

/// The metrics of each phase, as they are measured.
#[rstest]
#[case("criteria_covered", 1.0, 2.0, true)]
#[case("patterns_applied", 1.0, 2.0, true)]
#[case("patterns_applied", 2.0, 2.0, false)]
#[case("complexity_score", 9.0, 8.0, true)]
#[case("complexity_score", 8.0, 9.0, false)]
#[case("duplication_count", 3.0, 2.0, true)]
#[case("docs_generated", 1.0, 2.0, true)]
#[case("diagrams_valid", 4.0, 5.0, true)]
#[case("has_adr", 0.0, 1.0, true)]
#[case("checks_passing", 4.0, 5.0, true)]
#[case("blocking_issues", 2.0, 1.0, true)]
#[case("blocking_issues", 1.0, 2.0, false)]
#[case("weather", 1.0, 2.0, false)]
fn numbers_that_are_better(#[case] name: &str, #[case] before: f64, #[case] now: f64, #[case] made: bool) {
    let mut story = begun(simple());
    iterate(&mut story, Observation { metrics: numbers(&[(name, before)]), ..moved(1) });
    let idle = Observation { tree_before: Some("t1".into()), tree_after: Some("t1".into()), ..idle() };
    let seen = Observation { metrics: numbers(&[(name, now)]), ..idle };
    assert_eq!(progress(&story, &seen).made, made);
}

#[test]
fn open_items_that_fall_count() {
    let mut story = begun(simple());
    let with = |open: u64| Observation { open_items: Some(open), ..idle() };
    iterate(&mut story, with(5));
    assert!(!progress(&story, &with(5)).made);
    assert!(!progress(&story, &with(6)).made);
    assert_eq!(progress(&story, &with(3)).why, ["2 open items fewer"]);
}

#[test]
fn tests_are_compared_by_name() {
    use TestEnd::Failed;
    use TestEnd::Passed;
    use TestEnd::Skipped;
    let names = |list: &[(&str, TestEnd)]| -> BTreeMap<String, TestEnd> {
        list.iter().map(|(name, end)| ((*name).to_owned(), *end)).collect()
    };
    let before =
        names(&[("a", Passed), ("b", Failed), ("c", Passed), ("d", Failed), ("e", Passed), ("s", Skipped)]);
    let now = names(&[
        ("a", Failed),
        ("b", Passed),
        ("c", Skipped),
        ("d", Failed),
        ("n", Failed),
        ("o", Passed),
        ("s", Skipped),
    ]);
    let seen = changes(&before, &now);
    let is = |named: &Named, name: &str| {
        assert_eq!((named.count, named.names.as_slice()), (1, [name.to_owned()].as_slice()))
    };
    is(&seen.newly_failing, "a");
    is(&seen.newly_passing, "b");
    is(&seen.newly_skipped, "c");
    is(&seen.still_failing, "d");
    is(&seen.removed, "e");
    is(&seen.new_failing, "n");
    is(&seen.new_passing, "o");
    assert_eq!(since_start(&before, &now), SinceStart { new: 2, removed: 1, old_failing: 1 });
    let many: BTreeMap<String, TestEnd> = (0..500).map(|n| (format!("t{n}"), Failed)).collect();
    let seen = changes(&BTreeMap::new(), &many);
    assert_eq!((seen.new_failing.count, seen.new_failing.names.len()), (500, crate::limits::LOOP_NAMES));
}

/// Work is committed once: the same tree committed again, amended or emptied is nothing new, whatever lies between.
#[test]
fn a_tree_is_committed_once() {
    let mut story = begun(simple());
    let commit = |tree: u32| Observation { commits: 1, files_changed: 0, ..moved(tree) };
    let made = |story: &mut Story, seen: Observation| {
        iterate(story, seen);
        looping(story).recent.back().unwrap().progress
    };
    assert!(made(&mut story, moved(1)), "it was written");
    let same = |seen: Observation| Observation { tree_before: seen.tree_after.clone(), ..seen };
    assert!(made(&mut story, same(commit(1))), "and committed");
    assert!(!made(&mut story, same(commit(1))), "an empty commit");
    assert!(!made(&mut story, same(Observation { files_changed: 0, ..moved(1) })));
    assert!(!made(&mut story, same(commit(1))), "another one later");
}
