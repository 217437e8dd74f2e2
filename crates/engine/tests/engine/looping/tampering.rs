//! What measures the work stays what it was, or a person says that it may be another.

use rstest::rstest;
use segno_core::Command;
use segno_core::Status;
use segno_core::looping::CapKind;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopVerdict;

use super::yard::Yard;

fn open(yard: &Yard, session: segno_core::SessionId) -> Vec<(String, String)> {
    let gate = yard.engine().load(session).unwrap().state.looping.unwrap().gate.unwrap();
    let open = gate.conditions.into_iter().filter(|one| !one.holds);
    open.map(|one| (one.name, one.value)).collect()
}

/// The agent makes the measurement easier instead of doing the work; it does not get out, however it is reached.
#[rstest]
#[case("timeout 30 sh verify.sh", "verify.sh")]
#[case("env A=1 ./verify.sh", "verify.sh")]
#[case("bash -c 'sh verify.sh'", "verify.sh")]
#[case(". ./verify.sh", "verify.sh")]
#[case("sh outer.sh", "verify.sh")]
#[case("make check", "verify.sh")]
fn an_easier_measurement_is_noticed_however_it_is_reached(#[case] command: &str, #[case] changed: &str) {
    let yard = Yard::new();
    yard.write("verify.sh", "#!/bin/sh\ntest -f sail\n");
    // One that may not be run measures nothing, and is refused before the first iteration.
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(yard.project().join("verify.sh"), executable).unwrap();
    yard.write("outer.sh", "#!/bin/sh\nset -e\n. ./verify.sh\n");
    yard.write("Makefile", "check:\n\t@sh verify.sh\n");
    yard.always("chmod +x verify.sh; printf '#!/bin/sh\\ntrue\\n' > verify.sh; echo $n >> log; signal");
    let session = yard.begin(command, |new| new.plan.caps.iterations = Some(2));
    let ended = yard.drive(session).unwrap();
    let capped = matches!(ended.verdict, Some(LoopVerdict::Cap { which: CapKind::Iterations, .. }));
    assert!(capped, "{:?}", ended.verdict);
    let told = ("evidence command until".to_owned(), format!("changed: {changed}"));
    assert_eq!(open(&yard, session), [told]);
}

#[test]
fn what_a_person_accepts_is_measured_with_from_then_on() {
    let yard = Yard::new();
    yard.write("verify.sh", "test -f sail && test -f mast\n");
    yard.always("echo 'test -f sail' > verify.sh; echo $n >> log; finish done");
    yard.step(3, "echo sail > sail; finish done");
    let session = yard.begin("sh verify.sh", |new| new.plan.caps.iterations = Some(2));
    yard.drive(session).unwrap();
    let accept =
        LoopCommand::AcceptGate { because: "a mast is none of it".into(), conditions: vec![], tree: None };
    yard.engine().act(session, Command::Loop(Box::new(accept))).unwrap();
    let mut plan = yard.engine().load(session).unwrap().state.looping.unwrap().plan;
    plan.caps.iterations = Some(3);
    yard.engine().loop_replan(session, plan).unwrap();
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 3), "{}", ended.why);
}

#[test]
fn protected_files_may_not_change() {
    let yard = Yard::new();
    yard.write("expected.txt", "three\n");
    yard.write("out.txt", "two\n");
    yard.always("cp out.txt expected.txt; echo $n >> log; finish done");
    let session = yard.begin("cmp expected.txt out.txt", |new| {
        new.plan.caps.iterations = Some(2);
        new.plan.phases[0].protect = vec!["expected*".to_owned()];
    });
    yard.drive(session).unwrap();
    let told = ("protected files".to_owned(), "changed: expected.txt".to_owned());
    assert_eq!(open(&yard, session), [told]);
}

#[test]
fn who_is_blocked_is_not_done() {
    let yard = Yard::new();
    let block = |status: &str| {
        format!(
            "finish '---PRP_PHASE_STATUS---\\nSTATUS: {status}\\nEXIT_SIGNAL: true\\n---END_PRP_PHASE_STATUS---'"
        )
    };
    yard.step(1, &format!("echo sail > sail; {}", block("BLOCKED")));
    yard.step(2, &format!("echo more > sail; {}", block("COMPLETE")));
    let session = yard.begin("test -f sail", |new| new.plan.signal = true);
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 2), "{}", ended.why);
    let told = "its status block contradicts itself: STATUS is BLOCKED, and EXIT_SIGNAL is true";
    assert!(yard.prompt(2).contains(told), "{}", yard.prompt(2));
}
