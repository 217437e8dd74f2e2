//! A workflow with phases: each ends by what is measured.

use segno_core::Status;
use segno_core::looping::GateResult;
use segno_core::looping::LoopVerdict;
use segno_core::looping::PhaseEnd;

use super::yard::Yard;

const RED: &str = "echo 'test -f sail' > tests/sail.sh; finish done";
const GREEN: &str = "echo cloth > sail; finish done";
const REFACTOR: &str = "echo better >> sail; \
    finish '---RALPH_STATUS---\\nSTATUS: COMPLETE\\nREFACTORING_COMPLETE: true\\n---END_RALPH_STATUS---'";
const DOCUMENT: &str =
    "mkdir -p docs/adr; echo a > docs/use.md; echo b > docs/build.md; echo c > docs/adr/1.md; finish done";

fn failing(gate: Option<GateResult>) -> Vec<String> {
    let conditions = gate.unwrap().conditions.into_iter();
    conditions.filter(|condition| !condition.holds).map(|condition| condition.name).collect()
}

#[test]
fn all_phases_of_prp_are_gone_through() {
    let yard = Yard::new();
    yard.test("hull", "true");
    for (n, script) in [(1, RED), (2, GREEN), (3, REFACTOR), (4, DOCUMENT)] {
        yard.step(n, script);
    }
    let ended = yard.workflow("prp", "sh check.sh");
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    let looping = ended.state.looping.unwrap();
    let phases: Vec<(&str, u64, Option<PhaseEnd>)> =
        looping.phases.iter().map(|phase| (phase.name.as_str(), phase.iterations, phase.end)).collect();
    let passed = Some(PhaseEnd::Passed);
    assert_eq!(
        phases,
        [("RED", 1, passed), ("GREEN", 1, passed), ("REFACTOR", 1, passed), ("DOCUMENT", 1, passed)]
    );
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 4));
    assert!(yard.prompt(2).contains("Make the failing tests pass"), "{}", yard.prompt(2));
}

#[test]
fn who_deletes_the_failing_test_is_blocked() {
    let yard = Yard::new();
    yard.test("hull", "true");
    yard.step(1, RED);
    yard.always("rm -f tests/sail.sh; echo wood >> hull; signal");
    let ended = yard.workflow_of("prp", "sh check.sh", 4);
    assert_eq!(ended.state.status, Status::Paused, "{}", ended.why);
    let looping = ended.state.looping.unwrap();
    assert_eq!((looping.phase.as_str(), looping.total), ("GREEN", 4));
    let failing = failing(looping.gate);
    assert!(failing.contains(&"removed tests".to_owned()), "{failing:?}");
}

#[test]
fn who_breaks_an_old_test_does_not_get_out_of_green() {
    let yard = Yard::new();
    yard.test("hull", "test ! -f leak");
    yard.step(1, RED);
    yard.step(2, "echo cloth > sail; touch leak; finish done");
    yard.step(3, "rm leak; finish done");
    yard.step(4, REFACTOR);
    yard.step(5, DOCUMENT);
    let ended = yard.workflow("prp", "sh check.sh");
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    let green = ended.state.looping.unwrap().phases[1].clone();
    assert_eq!((green.name.as_str(), green.iterations), ("GREEN", 2));
}

#[test]
fn a_flaky_test_is_told_apart() {
    let yard = Yard::new();
    yard.test("hull", "true");
    yard.step(1, RED);
    // Every other time it passes, whatever is done: the counter is no file of the project.
    let count = yard.base().join("flaky").display().to_string();
    let flaky = format!("echo x >> {count}; test -f sail && test $(( $(wc -l < {count}) % 2 )) = 1");
    yard.step(2, &format!("echo cloth > sail; echo '{flaky}' > tests/sail.sh; finish done"));
    yard.always("finish done");
    let ended = yard.workflow("prp", "sh check.sh");
    assert_eq!(ended.state.status, Status::Halted, "{}", ended.why);
    let looping = ended.state.looping.unwrap();
    assert_eq!(looping.phase, "GREEN");
    assert!(looping.last.unwrap().flaky);
}
