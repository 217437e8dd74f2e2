//! A workflow with phases: each ends by what is measured.

use segno_core::Status;
use segno_core::looping::BreakerCause;
use segno_core::looping::GateResult;
use segno_core::looping::LoopVerdict;
use segno_core::looping::PhaseEnd;
use segno_engine::looping::NamedWorkflow;

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

/// A command that tells of no tests fails for another reason than a test that is to fail.
#[test]
fn the_same_error_counts_in_red_where_no_test_is_told() {
    let yard = Yard::new();
    yard.always("echo $n > sail$n; finish done");
    let crash = "echo 'TypeError: cannot read property x of undefined'; exit 1";
    let ended = yard.workflow_of("prp", crash, 9);
    assert_eq!(ended.state.status, Status::Halted, "{}", ended.why);
    let looping = ended.state.looping.unwrap();
    assert_eq!((looping.phase.as_str(), looping.total, looping.breaker.same_error), ("RED", 5, 5));
    assert_eq!(looping.breaker.cause, Some(BreakerCause::SameError));
}

/// Hooks of a phase run when it begins, and when its gate has passed or the loop stands still in it.
#[test]
fn hooks_of_a_phase_run_at_its_start_and_at_its_end() {
    let yard = Yard::new();
    yard.step(1, "echo cloth > sail; finish done");
    yard.always("echo $n > knots; finish done");
    let session = yard.begin("test -f sail", |new| {
        let phase = &mut new.plan.phases[0];
        let told = |what: &str| vec![format!("echo {what} >> ../hooks")];
        (phase.on_start, phase.on_complete) = (told("sew begins"), told("sew is done"));
        phase.on_error = told("sew fails");
        let mut second = phase.clone();
        second.name = "RIG".to_owned();
        second.evidence[0].command = "test -f mast".to_owned();
        // One that fails is said, and holds up nothing.
        second.on_start = vec!["false".to_owned(), "echo rig begins >> ../hooks".to_owned()];
        (second.on_complete, second.on_error) = (told("rig is done"), told("rig fails"));
        new.plan.phases.push(second);
        new.plan.caps.iterations = Some(3);
    });
    let (ended, heard) = yard.drive_heard(session);
    assert_eq!((ended.state.status, yard.starts()), (Status::Paused, 3), "{}", ended.why);
    let hooks = std::fs::read_to_string(yard.base().join("hooks")).unwrap();
    assert_eq!(hooks, "sew begins\nsew is done\nrig begins\nrig fails\n");
    assert!(heard.iter().any(|text| text.starts_with("false: ")), "{heard:?}");
}

/// Whoever judges is another model than whoever wrote, what it rejects goes back, and the same model writes again.
#[test]
fn quality_is_judged_by_the_other_model() {
    let yard = Yard::new();
    yard.model("claude-opus-4-1");
    let verdict = |word: &str, blocking: u32| {
        format!(
            "finish '---RALPH_STATUS---\\nSTATUS: COMPLETE\\nVERDICT: {word}\\nBLOCKING_ISSUES: {blocking}\\n---END_RALPH_STATUS---'"
        )
    };
    yard.step(1, "echo cloth > sail; finish done");
    yard.step(2, &verdict("REJECT", 1));
    yard.step(3, "echo better > sail; finish done");
    yard.step(4, &verdict("APPROVE", 0));
    let session = yard.begin("test -f sail", |new| {
        let all = NamedWorkflow::find("prp", &yard.project()).unwrap().phases(&[], true);
        let mut qa = all.into_iter().find(|phase| phase.name == "QA").unwrap();
        qa.on_reject.as_mut().unwrap().to = "WORK".to_owned();
        new.plan.phases.push(qa);
    });
    let ended = yard.drive(session).unwrap();
    assert_eq!(ended.state.status, Status::Completed, "{}", ended.why);
    let models = [1, 2, 3, 4].map(|n| {
        let args = yard.args(n);
        let mut words = args.split_whitespace().skip_while(|word| *word != "--model").skip(1);
        words.next().unwrap_or_default().to_owned()
    });
    assert_eq!(models, ["", "sonnet", "", "sonnet"]);
}
