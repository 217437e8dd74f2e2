//! The exit gate, phase by phase.

use rstest::rstest;

use super::*;

/// The names of the conditions that do not hold.
fn open(gate: &GateResult) -> Vec<&str> {
    gate.conditions.iter().filter(|one| !one.holds).map(|one| one.name.as_str()).collect()
}

fn at_phase(name: &str) -> Story {
    let mut story = begun(prp());
    let mut tries = 0;
    while looping(&story).phase != name {
        story.ok(say(LoopCommand::SkipPhase { by: "test".into() }));
        story.ok(say(LoopCommand::Advance));
        tries += 1;
        assert!(tries < 9);
    }
    baseline(&mut story, counts(6, 4), &[("old", TestEnd::Passed)]);
    story
}

fn gate(story: &Story, seen: &Observation) -> GateResult {
    evaluate(looping(story), seen, 1)
}

fn tests(passed: u64, failed: u64) -> Observation {
    Observation { tests: Some(counts(passed, failed)), ..done(1) }
}

fn changed(seen: Observation, change: impl FnOnce(&mut TestChanges)) -> Observation {
    let mut seen = seen;
    change(&mut seen.changes);
    seen
}

#[test]
fn red_wants_new_failing_tests_and_the_old_ones_as_before() {
    let story = at_phase("RED");
    let two = changed(tests(6, 2), |c| c.new_failing = named(2));
    assert!(gate(&story, &two).gate_1);
    let one = changed(tests(6, 1), |c| c.new_failing = named(1));
    assert_eq!(open(&gate(&story, &one)), ["new failing tests"]);
    let passing = changed(two.clone(), |c| c.new_passing = named(1));
    assert_eq!(open(&gate(&story, &passing)), ["new passing tests"]);
    let broken = changed(two.clone(), |c| c.newly_failing = named(1));
    assert_eq!(open(&gate(&story, &broken)), ["tests that passed before and fail"]);
    let removed = changed(two, |c| c.removed = named(1));
    assert_eq!(open(&gate(&story, &removed)), ["removed tests"]);
    assert_eq!(open(&gate(&story, &idle())), ["new failing tests"]);
}

/// A runner that names no tests: the numbers have to do.
#[test]
fn red_and_green_without_names() {
    let mut story = at_phase("RED");
    baseline(&mut story, counts(6, 1), &[]);
    assert!(gate(&story, &tests(6, 3)).gate_1);
    assert_eq!(open(&gate(&story, &tests(6, 2))), ["new failing tests"]);
    assert_eq!(open(&gate(&story, &tests(7, 3))), ["new passing tests"]);
    // Old ones that fail now are no new tests.
    assert_eq!(open(&gate(&story, &tests(4, 3))), ["new failing tests"]);
    iterate(&mut story, tests(6, 3));
    assert_eq!((looping(&story).phase.as_str(), looping(&story).promised), ("GREEN", 1));
    baseline(&mut story, counts(6, 3), &[]);
    // As many as when the loop began: the new ones are gone.
    let gone = Observation { measured: 2, ..tests(6, 0) };
    assert_eq!(open(&gate(&story, &gone)), ["new tests", "number of tests"]);
    assert!(gate(&story, &Observation { measured: 2, ..tests(9, 0) }).can_exit);
}

#[test]
fn red_counts_tests_that_do_not_build_yet() {
    let mut story = at_phase("RED");
    let build = TestCounts { build_failed: true, ..TestCounts::default() };
    let seen = Observation { tests: Some(build.clone()), ..done(1) };
    assert!(gate(&story, &seen).gate_1);
    // Not if nothing was changed, nor if they did not build before.
    let same = Observation { tree_after: Some("t0".into()), ..seen.clone() };
    assert!(!gate(&story, &same).gate_1);
    baseline(&mut story, build, &[]);
    assert!(!gate(&story, &seen).gate_1);
}

/// What did not build when the phase began says nothing of the tests that were there before it.
#[test]
fn green_is_compared_with_the_newest_tests_that_could_be_built() {
    let mut story = at_phase("GREEN");
    let build = TestCounts { build_failed: true, ..TestCounts::default() };
    baseline(&mut story, build, &[]);
    let fewer = Observation { measured: 2, ..tests(3, 0) };
    assert_eq!(open(&gate(&story, &fewer)), ["number of tests"]);
    assert!(gate(&story, &Observation { measured: 2, ..tests(6, 0) }).can_exit);
}

#[test]
fn green_wants_two_runs_in_a_row() {
    let mut story = at_phase("GREEN");
    let first = gate(&story, &tests(10, 0));
    assert_eq!((open(&first), first.runs), (vec!["passing runs in a row"], 1));
    iterate(&mut story, tests(10, 0));
    assert_eq!(looping(&story).green_runs, 1);
    let second = gate(&story, &tests(10, 0));
    assert!(second.can_exit);
    // A failure in between begins anew.
    let fails = gate(&story, &tests(9, 1));
    assert_eq!((open(&fails), fails.runs), (vec!["failing tests", "passing runs in a row"], 0));
    // Two measurements in one iteration are two runs.
    let twice = Observation { measured: 2, ..tests(10, 0) };
    assert!(gate(&at_phase("GREEN"), &twice).can_exit);
}

/// Deviation: 0 of 0 tests is not "all passing", and tests that were skipped did not run.
#[rstest]
#[case(counts(0, 0))]
#[case(TestCounts { total: 4, skipped: 4, ..TestCounts::default() })]
fn no_tests_never_pass(#[case] none: TestCounts) {
    for phase in ["GREEN", "REFACTOR"] {
        let story = at_phase(phase);
        let seen = Observation { tests: Some(none.clone()), measured: 2, ..done(1) };
        let gate = evaluate(looping(&story), &seen, 5);
        assert!(open(&gate).contains(&"tests"), "{phase}: {gate:?}");
    }
}

#[test]
fn flaky_tests_do_not_pass_green() {
    let story = at_phase("GREEN");
    let seen = Observation { flaky: true, measured: 2, ..tests(10, 0) };
    let gate = gate(&story, &seen);
    assert_eq!((open(&gate), gate.runs), (vec!["stable tests", "passing runs in a row"], 0));
    assert_eq!(gate.warnings, ["the tests came out differently on the same tree"]);
}

#[test]
fn what_failed_before_the_loop_does_not_block_green() {
    let story = at_phase("GREEN");
    let old = SinceStart { old_failing: 1, ..SinceStart::default() };
    let seen = Observation { measured: 2, since_start: Some(old), ..tests(9, 1) };
    let gate = gate(&story, &seen);
    assert!(gate.can_exit, "{gate:?}");
    assert_eq!(gate.conditions[1].value, "0 (and 1 that failed before)");
}

#[test]
fn weaker_tests_block_and_only_a_person_accepts_them() {
    let mut story = at_phase("GREEN");
    let seen = changed(Observation { measured: 2, ..tests(9, 0) }, |c| {
        c.removed = named(1);
        c.newly_skipped = named(1);
    });
    let weaker = gate(&story, &seen);
    assert_eq!(open(&weaker), ["removed tests", "newly skipped tests"]);
    assert_eq!(weaker.conditions.iter().filter(|one| one.acceptable && !one.holds).count(), 2);
    iterate(&mut story, seen.clone());
    let accept = |conditions: Vec<String>| {
        say(LoopCommand::AcceptGate { because: "they were wrong".into(), conditions, tree: None })
    };
    // What fails is never accepted.
    assert!(matches!(
        story.refused(accept(vec!["failing tests".into()])),
        crate::refusal::Refusal::Unknown { .. }
    ));
    story.ok(accept(Vec::new()));
    assert!(gate(&story, &seen).can_exit);
    let shown: Vec<_> =
        looping(&story).gate.as_ref().unwrap().conditions.iter().filter(|one| one.holds).collect();
    assert!(shown.iter().any(|one| one.value == "1: a (accepted: they were wrong)"), "{shown:?}");
    // Wherever else something changes, and in later iterations; not if another test is missing.
    let later = Observation { tree_after: Some("t2".into()), ..seen.clone() };
    assert!(gate(&story, &later).can_exit);
    let fails = Observation { tests: Some(counts(8, 1)), ..later.clone() };
    iterate(&mut story, fails);
    assert!(gate(&story, &later).can_exit);
    let other = changed(later.clone(), |c| c.removed = Named { count: 1, names: vec!["b".into()] });
    assert_eq!(open(&gate(&story, &other)), ["removed tests"]);
    // A phase that begins anew has accepted nothing.
    story.ok(say(LoopCommand::SkipPhase { by: "test".into() }));
    story.ok(say(LoopCommand::Advance));
    assert_eq!(looping(&story).accepted, None);
}

/// Names that are not all told could hide others: what is accepted is one tree then.
#[test]
fn what_cannot_be_told_whole_is_accepted_for_one_measurement() {
    let mut story = at_phase("GREEN");
    let many = Named { count: 12, ..named(10) };
    let seen = changed(Observation { measured: 2, ..tests(9, 0) }, |c| c.removed = many);
    iterate(&mut story, seen.clone());
    story.ok(say(LoopCommand::AcceptGate { because: "old".into(), conditions: vec![], tree: None }));
    assert!(gate(&story, &seen).can_exit);
    let later = Observation { tree_after: Some("t2".into()), ..seen.clone() };
    assert_eq!(open(&gate(&story, &later)), ["removed tests"]);
    iterate(&mut story, Observation { tests: None, ..later });
    assert_eq!(open(&gate(&story, &seen)), ["removed tests"]);
}

/// What could not be loaded when the phase began is not missed by its tests' names; it has to be there all the same.
#[rstest]
#[case("RED")]
#[case("GREEN")]
#[case("REFACTOR")]
#[case("DOCUMENT")]
#[case("QA")]
fn tests_that_could_not_be_loaded_may_not_go(#[case] phase: &str) {
    let mut story = at_phase(phase);
    let failed = if phase == "RED" { 2 } else { 0 };
    let mut seen =
        changed(Observation { measured: 2, ..tests(10, failed) }, |c| c.new_failing = named(failed));
    seen.claims.metrics =
        [("refactoring_complete", 1.0), ("blocking_issues", 0.0)].map(|(n, v)| (n.to_owned(), v)).into();
    seen.claims.verdict = Some("APPROVE".into());
    seen.metrics = [("docs_generated", 9.0), ("has_adr", 1.0)].map(|(n, v)| (n.to_owned(), v)).into();
    assert_eq!(open(&gate(&story, &seen)), [""; 0]);
    seen.lost = Named { count: 1, names: vec!["test_new.py".into()] };
    let result = gate(&story, &seen);
    assert_eq!(open(&result), ["tests that could not be loaded"]);
    assert_eq!(result.conditions.iter().find(|one| !one.holds).unwrap().value, "1: test_new.py");
    iterate(&mut story, seen.clone());
    story.ok(say(LoopCommand::AcceptGate { because: "it was wrong".into(), conditions: vec![], tree: None }));
    assert!(gate(&story, &seen).can_exit);
}

/// A baseline that could not be built has no names to compare with: what names its tests now passes.
#[test]
fn names_are_not_missed_where_nothing_could_be_loaded() {
    let build = TestCounts { build_failed: true, ..counts(0, 3) };
    for gate_rule in [GateRule::Green { runs: 2 }, GateRule::Until] {
        let story = begun_with(plan(vec![phase("work", gate_rule)]), build.clone());
        let seen = Observation { measured: 2, ..tests(2, 0) };
        assert_eq!(open(&gate(&story, &seen)), [""; 0]);
        let by_number = Observation { by_number: true, ..seen };
        let green = matches!(looping(&story).phase_plan().unwrap().gate, GateRule::Green { .. });
        assert_eq!(open(&gate(&story, &by_number)), if green { vec!["tests by name"] } else { vec![] });
    }
}

#[test]
fn fewer_tests_block_where_names_are_not_known() {
    let mut story = at_phase("GREEN");
    baseline(&mut story, counts(6, 4), &[]);
    let seen = Observation { measured: 2, ..tests(9, 0) };
    assert_eq!(open(&gate(&story, &seen)), ["number of tests"]);
}

/// What ends well before its first test shows none, whatever ends the phase.
#[rstest]
#[case("GREEN", &["tests", "passing runs in a row"])]
#[case("REFACTOR", &["tests"])]
#[case("DOCUMENT", &["tests"])]
#[case("QA", &["tests"])]
fn tests_that_were_seen_and_are_seen_no_more_block(#[case] phase: &str, #[case] wanted: &[&str]) {
    let story = at_phase(phase);
    let mut seen = Observation { measured: 2, evidence: vec![evidence(true)], ..done(1) };
    seen.tests = None;
    seen.claims.metrics =
        [("refactoring_complete", 1.0), ("blocking_issues", 0.0)].map(|(n, v)| (n.to_owned(), v)).into();
    seen.claims.verdict = Some("APPROVE".into());
    seen.metrics = [("docs_generated", 9.0), ("has_adr", 1.0)].map(|(n, v)| (n.to_owned(), v)).into();
    assert_eq!(open(&gate(&story, &seen)), wanted);
}

#[rstest]
#[case("RED", &["whole run"])]
#[case("GREEN", &["passing runs in a row", "whole run"])]
#[case("REFACTOR", &["whole run"])]
fn a_run_that_was_cut_short_passes_no_phase(#[case] phase: &str, #[case] wanted: &[&str]) {
    let story = at_phase(phase);
    let failed = if phase == "RED" { 2 } else { 0 };
    let cut = TestCounts { incomplete: true, ..counts(10, failed) };
    let mut seen =
        changed(Observation { tests: Some(cut), measured: 2, ..done(1) }, |c| c.new_failing = named(failed));
    seen.claims.metrics = [("refactoring_complete".to_owned(), 1.0)].into();
    assert_eq!(open(&gate(&story, &seen)), wanted);
}

#[test]
fn a_plain_command_that_shows_its_tests_no_more_blocks() {
    let silent = |runner: Option<&str>| {
        let mark = EvidenceMark { silent_runner: runner.map(str::to_owned), ..evidence(true) };
        Observation { tests: None, measured: 1, evidence: vec![mark], ..done(1) }
    };
    let mut story = begun_with(plan(vec![phase("work", GateRule::Until)]), TestCounts::default());
    assert!(gate(&story, &silent(None)).gate_1, "a command that never told of tests need not");
    let named = gate(&story, &silent(Some("pytest")));
    assert_eq!(open(&named), ["tests of tests"]);
    assert_eq!(named.conditions.iter().find(|one| !one.holds).unwrap().value, "none were seen of pytest");
    let build = TestCounts { build_failed: true, ..TestCounts::default() };
    let unbuilt = begun_with(plan(vec![phase("work", GateRule::Until)]), build);
    assert_eq!(open(&gate(&unbuilt, &silent(None))), ["tests"], "what does not build has tests");
    // Also those that came in an iteration since.
    let mut later = begun_with(plan(vec![phase("work", GateRule::Until)]), TestCounts::default());
    iterate(
        &mut later,
        Observation { tests: Some(counts(0, 2)), evidence: vec![evidence(false)], ..moved(1) },
    );
    assert_eq!(open(&gate(&later, &silent(None))), ["tests"]);
    baseline(&mut story, counts(2, 1), &[]);
    let lost = gate(&story, &silent(None));
    assert_eq!(open(&lost), ["tests"]);
    let told = lost.conditions.iter().find(|one| !one.holds).unwrap();
    assert_eq!((told.wanted.as_str(), told.acceptable), ("as they were seen before: 3", true));
}

/// A command beside the tests has its say, and so has what follows them in the same command; old failures are excused.
#[rstest]
#[case("GREEN")]
#[case("REFACTOR")]
#[case("DOCUMENT")]
fn every_command_of_a_phase_has_its_say(#[case] phase: &str) {
    let story = at_phase(phase);
    let lint = |passes| EvidenceMark { name: "lint".into(), ..evidence(passes) };
    let tests_mark = |passes: bool| EvidenceMark {
        tells_tests: true,
        failing_tests: 2 * u64::from(!passes),
        ..evidence(passes)
    };
    let seen = |marks: Vec<EvidenceMark>, failed: u64| {
        let mut seen =
            Observation { measured: 2, evidence: marks, tests: Some(counts(10, failed)), ..done(1) };
        seen.since_start = Some(SinceStart { old_failing: failed, ..SinceStart::default() });
        seen.claims.metrics = [("refactoring_complete".to_owned(), 1.0)].into();
        seen.metrics = [("docs_generated", 9.0), ("has_adr", 1.0)].map(|(n, v)| (n.to_owned(), v)).into();
        seen
    };
    assert!(gate(&story, &seen(vec![tests_mark(true), lint(true)], 0)).gate_1);
    assert_eq!(open(&gate(&story, &seen(vec![tests_mark(true), lint(false)], 0))), ["command lint"]);
    let alone = EvidenceMark { failing_tests: 0, ..tests_mark(false) };
    assert_eq!(open(&gate(&story, &seen(vec![alone.clone()], 0))), ["command tests"]);
    assert_eq!(
        open(&gate(&story, &seen(vec![tests_mark(false), alone], 2))),
        ["command tests"],
        "its own pass"
    );
    assert!(gate(&story, &seen(vec![tests_mark(false), lint(true)], 2)).gate_1, "those failed before");
    assert_eq!(open(&gate(&story, &seen(vec![tests_mark(false), lint(false)], 2))), ["command lint"]);
}

#[test]
fn a_changed_evidence_command_blocks() {
    let story = at_phase("GREEN");
    let other = EvidenceMark { command_hash: "c2".into(), ..evidence(true) };
    let seen = Observation { measured: 2, evidence: vec![other], ..tests(10, 0) };
    assert_eq!(open(&gate(&story, &seen)), ["evidence command tests"]);
}

/// Whatever ends a phase, what measures it may not change unnoticed; only a phase that writes tests may change their
/// settings.
#[rstest]
#[case("RED", &["evidence command tests"])]
#[case("GREEN", &["evidence command tests", "test settings of tests"])]
#[case("REFACTOR", &["evidence command tests", "test settings of tests"])]
#[case("DOCUMENT", &["evidence command tests", "test settings of tests"])]
#[case("QA", &["evidence command tests", "test settings of tests"])]
fn what_measures_is_what_it_was_in_every_phase(#[case] phase: &str, #[case] wanted: &[&str]) {
    let mut story = at_phase(phase);
    let mark = |hash: &str, settings: &str| EvidenceMark {
        command_hash: hash.into(),
        settings_hash: settings.into(),
        changed: vec!["check.sh".into()],
        changed_settings: vec!["conftest.py".into()],
        ..evidence(true)
    };
    let taken = LoopBaselineTaken {
        phase: phase.into(),
        tests: counts(6, 4),
        evidence: vec![mark("c1", "s1")],
        ..LoopBaselineTaken::default()
    };
    story.ok(say(LoopCommand::TakeBaseline(taken)));
    let seen = Observation { evidence: vec![mark("c2", "s2")], ..tests(10, 0) };
    let result = gate(&story, &seen);
    let changed: Vec<&str> = open(&result)
        .into_iter()
        .filter(|name| name.starts_with("evidence") || name.starts_with("test s"))
        .collect();
    assert_eq!(changed, wanted);
    let told = result.conditions.iter().find(|one| one.name == wanted[0]).unwrap();
    assert_eq!((told.value.as_str(), told.acceptable), ("changed: check.sh", true));
}

#[test]
fn a_metric_whose_script_changed_does_not_count() {
    let rule = MetricRule { name: "n".into(), at_least: Some(1.0), ..MetricRule::default() };
    let story = begun(plan(vec![phase("work", GateRule::Metrics(vec![rule]))]));
    let other = EvidenceMark { command_hash: "c2".into(), ..evidence(true) };
    let seen = Observation { metrics: [("n".to_owned(), 2.0)].into(), evidence: vec![other], ..moved(1) };
    assert_eq!(open(&gate(&story, &seen)), ["evidence command tests"]);
}

#[test]
fn protected_files_block_until_a_person_accepts_what_they_are_now() {
    let mut story = at_phase("GREEN");
    let protected = |hash: &str| {
        Some(ProtectedMark {
            hash: hash.into(),
            count: 2,
            changed: vec!["spec.md".into()],
            ..ProtectedMark::default()
        })
    };
    let taken = LoopBaselineTaken {
        phase: "GREEN".into(),
        tests: counts(6, 4),
        protected: protected("p1"),
        evidence: vec![evidence(true)],
        ..LoopBaselineTaken::default()
    };
    story.ok(say(LoopCommand::TakeBaseline(taken)));
    let seen = |hash: &str, tree: u32| Observation {
        protected: protected(hash),
        measured: 2,
        tests: Some(counts(10, 0)),
        ..done(tree)
    };
    assert!(gate(&story, &seen("p1", 1)).can_exit);
    let changed = gate(&story, &seen("p2", 1));
    assert_eq!(open(&changed), ["protected files"]);
    assert_eq!(changed.conditions.last().unwrap().value, "changed: spec.md");
    iterate(&mut story, seen("p2", 1));
    assert_eq!(looping(&story).phase, "GREEN");
    story.ok(say(LoopCommand::AcceptGate {
        because: "they were mine".into(),
        conditions: vec![],
        tree: None,
    }));
    // What was accepted are these files, also when others change; another change of theirs blocks again.
    assert!(gate(&story, &seen("p2", 2)).can_exit);
    assert_eq!(open(&gate(&story, &seen("p3", 2))), ["protected files"]);
}

#[test]
fn green_wants_the_tests_that_red_promised() {
    let mut story = at_phase("RED");
    let build = TestCounts { build_failed: true, ..TestCounts::default() };
    iterate(&mut story, Observation { tests: Some(build), ..done(1) });
    assert_eq!((looping(&story).phase.as_str(), looping(&story).promised), ("GREEN", 1));
    baseline(&mut story, counts(0, 0), &[]);
    // The new tests are gone: it builds, and passes, and is not done.
    let seen = Observation { measured: 2, since_start: Some(SinceStart::default()), ..tests(6, 0) };
    assert_eq!(open(&gate(&story, &seen)), ["new tests"]);
    let since_start = Some(SinceStart { new: 1, ..SinceStart::default() });
    assert!(gate(&story, &Observation { since_start, ..seen }).can_exit);
}

#[rstest]
#[case(4, None, &["refactored"])]
#[case(5, None, &[])]
#[case(1, Some("refactoring_complete"), &[])]
#[case(1, Some("no_improvements_found"), &[])]
fn refactor_ends_when_through_or_after_five(
    #[case] iteration: u64,
    #[case] says: Option<&str>,
    #[case] wanted: &[&str],
) {
    let story = at_phase("REFACTOR");
    let mut seen = tests(10, 0);
    seen.claims.metrics.extend(says.map(|name| (name.to_owned(), 1.0)));
    assert_eq!(open(&evaluate(looping(&story), &seen, iteration)), wanted);
    let failing = Observation { tests: Some(counts(9, 1)), ..seen };
    assert!(open(&evaluate(looping(&story), &failing, iteration)).contains(&"failing tests"));
}

#[rstest]
#[case(&[("docs_generated", 3.0), ("has_adr", 1.0)], &[])]
#[case(&[("docs_generated", 2.0), ("has_adr", 1.0)], &["docs_generated"])]
#[case(&[("docs_generated", 3.0), ("has_adr", 0.0)], &["has_adr"])]
#[case(&[("docs_generated", 3.0)], &["has_adr"])]
#[case(&[("docs_generated", 3.0), ("has_adr", 1.0), ("diagrams_total", 6.0), ("diagrams_valid", 5.0)], &["diagrams_valid"])]
fn document_wants_documents(#[case] metrics: &[(&str, f64)], #[case] wanted: &[&str]) {
    let story = at_phase("DOCUMENT");
    let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let mut seen = Observation { metrics, ..tests(10, 0) };
    assert_eq!(open(&gate(&story, &seen)), wanted);
    // What the agent says is no document.
    seen.claims.metrics = std::mem::take(&mut seen.metrics);
    assert!(!gate(&story, &seen).gate_1);
}

#[test]
fn qa_approves_only_what_the_numbers_do_not_contradict() {
    let story = at_phase("QA");
    let mut seen = tests(10, 0);
    seen.claims.verdict = Some("Approve".into());
    assert_eq!(open(&gate(&story, &seen)), ["blocking issues"]);
    seen.claims.metrics.insert("blocking_issues".into(), 0.0);
    assert!(gate(&story, &seen).can_exit);
    let contradicted =
        Observation { tests: Some(counts(9, 1)), evidence: vec![evidence(false)], ..seen.clone() };
    assert_eq!(open(&gate(&story, &contradicted)), ["command tests", "failing tests"]);
    seen.claims.verdict = Some("REJECT".into());
    assert_eq!(open(&gate(&story, &seen)), ["verdict of the review"]);
}

#[test]
fn until_wants_every_command_to_succeed() {
    assert!(gate(&begun(simple()), &done(1)).can_exit);
    let mut story = begun_with(simple(), TestCounts::default());
    assert!(gate(&story, &Observation { tests: None, ..done(1) }).can_exit);
    assert_eq!(open(&gate(&story, &Observation { evidence: vec![], tests: None, ..done(1) })), ["evidence"]);
    let failed = Observation { evidence: vec![evidence(true), evidence(false)], tests: None, ..done(1) };
    assert_eq!(open(&gate(&story, &failed)), ["command tests"]);
    // A runner that ran nothing succeeds at nothing.
    let none = Observation { tests: Some(counts(0, 0)), ..done(1) };
    assert_eq!(open(&gate(&story, &none)), ["tests"]);
    baseline(&mut story, counts(6, 0), &[]);
    assert_eq!(open(&gate(&story, &none)), ["tests", "number of tests"]);
}

#[test]
fn both_gates_in_the_same_iteration() {
    let mut plan = simple();
    plan.signal = true;
    let mut story = begun(plan);
    let says = |signal: Option<bool>, seen: Observation| {
        let claims = Claims { exit_signal: signal, ..Claims::default() };
        Observation { claims, ..seen }
    };
    let early = gate(&story, &says(Some(true), moved(1)));
    assert_eq!((early.gate_1, early.gate_2, early.can_exit), (false, Some(true), false));
    assert_eq!(early.warnings, ["the agent says that it is done, but what is measured says otherwise"]);
    iterate(&mut story, says(Some(true), moved(1)));
    // The signal of the iteration before does not count.
    let late = gate(&story, &says(None, done(2)));
    assert_eq!((late.gate_1, late.gate_2, late.can_exit), (true, Some(false), false));
    assert!(gate(&story, &says(Some(true), done(2))).can_exit);
    // Words are no signal.
    let words = Claims { status: Some("COMPLETE".into()), ..Claims::default() };
    assert!(!gate(&story, &Observation { claims: words, ..done(2) }).can_exit);
}

#[rstest]
#[case(GateRule::Signal, Some(true), true)]
#[case(GateRule::Signal, None, false)]
fn a_step_without_measure_ends_by_the_signal(
    #[case] rule: GateRule,
    #[case] exit_signal: Option<bool>,
    #[case] passes: bool,
) {
    let story = begun(plan(vec![phase("spec", rule)]));
    let claims = Claims { exit_signal, ..Claims::default() };
    assert_eq!(gate(&story, &Observation { claims, ..moved(1) }).can_exit, passes);
}

#[rstest]
#[case(MetricRule { at_least: Some(80.0), ..MetricRule::default() }, 80.0, true)]
#[case(MetricRule { at_least: Some(80.0), ..MetricRule::default() }, 79.9, false)]
#[case(MetricRule { at_most: Some(3.0), ..MetricRule::default() }, 4.0, false)]
#[case(MetricRule { equals: Some(0.0), ..MetricRule::default() }, 0.0, true)]
fn measured_numbers(#[case] rule: MetricRule, #[case] value: f64, #[case] passes: bool) {
    let rule = MetricRule { name: "n".into(), ..rule };
    let story = begun(plan(vec![phase("work", GateRule::Metrics(vec![rule]))]));
    let seen = Observation { metrics: [("n".to_owned(), value)].into(), ..moved(1) };
    assert_eq!(gate(&story, &seen).can_exit, passes);
    assert_eq!(gate(&story, &moved(1)).conditions[0].value, "not measured");
}

/// Numbers alone pass nothing that asks for tests; a person may accept them. A plain command that never named its tests
/// passes with a warning, one whose tests lost their names does not.
#[rstest]
#[case::red("RED", false, true)]
#[case::green("GREEN", false, true)]
#[case::refactor("REFACTOR", false, true)]
#[case::until("WORK", false, false)]
#[case::until_that_named_them("WORK", true, true)]
fn tests_without_names_are_compared_by_number_and_pass_nothing(
    #[case] phase: &str,
    #[case] named_before: bool,
    #[case] blocks: bool,
) {
    let mut story = if phase == "WORK" { begun(simple()) } else { at_phase(phase) };
    let names: &[(&str, TestEnd)] = if named_before { &[("a", TestEnd::Passed)] } else { &[] };
    baseline(&mut story, counts(1, 0), names);
    let seen = Observation { by_number: true, measured: 2, ..tests(3, 0) };
    let gate = gate(&story, &seen);
    let by_name: Vec<_> = gate.conditions.iter().filter(|one| one.name == "tests by name").collect();
    assert_eq!(
        by_name.iter().map(|one| (one.holds, one.acceptable)).collect::<Vec<_>>(),
        match blocks {
            true => vec![(false, true)],
            false => vec![],
        }
    );
    let warned = gate.warnings.iter().filter(|text| text.contains("compared by their numbers only"));
    assert_eq!(warned.count(), 1, "{:?}", gate.warnings);
}

/// The advice is about the runner that was seen, also where one's name is a part of another's.
#[rstest]
#[case("cargo test", "cargo test without -q names them")]
#[case("go test", "go test -v names them")]
#[case("something", "a verbose run of the tests may name them")]
fn who_names_no_tests_is_told_how(#[case] runner: &str, #[case] advice: &str) {
    let mut seen = Observation { by_number: true, measured: 2, ..tests(3, 0) };
    seen.tests.as_mut().unwrap().runner = runner.to_owned();
    let warnings = gate(&begun(simple()), &seen).warnings;
    assert!(warnings[0].ends_with(&format!("; {advice}")), "{warnings:?}");
}

/// A gate that is measured by hand asks nobody: what the agent said last stays said.
#[test]
fn a_look_by_hand_leaves_the_signal_as_it_was() {
    let mut story = at_phase("GREEN");
    looping_mut(&mut story).plan.signal = true;
    let mut seen = tests(6, 2);
    seen.claims.exit_signal = Some(true);
    iterate(&mut story, seen);
    assert_eq!(looping(&story).gate.as_ref().unwrap().gate_2, Some(true));
    let phase = looping(&story).phase.clone();
    let result = GateResult { gate_1: true, gate_2: Some(false), ..GateResult::default() };
    story.ok(say(LoopCommand::MeasureGate { phase, result, by_hand: true }));
    let gate = looping(&story).gate.clone().unwrap();
    assert_eq!((gate.gate_1, gate.gate_2, gate.can_exit), (true, Some(true), true));
}
