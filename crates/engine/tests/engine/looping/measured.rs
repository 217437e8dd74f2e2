//! What counts as measured, as an error and as written, when things happen that nobody planned.

use segno_core::Status;
use segno_core::looping::BreakerCause;
use segno_core::looping::EvidencePlan;
use segno_core::looping::LoopVerdict;
use segno_core::looping::PersonNeed;
use segno_engine::looping::NamedWorkflow;
use segno_engine::resume::Recovery;

use super::yard::Yard;

/// Somebody saves a file while the command runs that has read it already: what it found is not true of that file.
#[test]
fn a_file_that_changes_while_it_is_measured_is_measured_again() {
    let yard = Yard::new();
    let base = yard.base().display().to_string();
    let script = format!(
        "seen=$(cat code)\n[ -e {base}/saved ] || {{ touch {base}/saved; echo broken > code; }}\n[ \"$seen\" = good ]\n"
    );
    std::fs::write(yard.base().join("measure.sh"), script).unwrap();
    yard.always("echo $n >> log; echo good > code; signal");
    // Not before the agent has written anything.
    yard.write("code", "nothing\n");
    std::fs::write(yard.base().join("saved"), "").unwrap();
    yard.step(1, "rm $DIR/saved; echo $n >> log; echo good > code; signal");
    let ended = yard.until(&format!("sh {base}/measure.sh"));
    assert_eq!((ended.verdict, yard.starts()), (Some(LoopVerdict::Complete), 2), "{}", ended.why);
    assert_eq!(yard.read("code"), "good\n", "what passed is what is there");
}

/// A command that writes a file of the project each time measures all the same.
#[test]
fn files_that_a_command_writes_each_time_are_its_own() {
    let yard = Yard::new();
    yard.always("echo x > made; signal");
    let command = "echo x >> runs; test -e made";
    let ended = yard.until(command);
    assert_eq!((ended.verdict, yard.starts()), (Some(LoopVerdict::Complete), 1), "{}", ended.why);
    // Before the phase, after the agent, and once more because a file had changed.
    assert_eq!(yard.read("runs").lines().count(), 3);
}

/// A report counts as what the command measured only if the command wrote it: what an agent put there, or an earlier run
/// left, says nothing, and what the command prints is no substitute.
#[test]
fn a_report_that_the_command_did_not_write_is_none() {
    let report = r#"<testsuite name="s" tests="1"><testcase classname="T" name="test_x"/></testsuite>"#;
    for (command, passes) in [("true", false), ("rm -f report.xml; echo ok 1 - a; echo 1..1", false)]
        .into_iter()
        .chain([("cp report.txt report.xml", true)])
    {
        let yard = Yard::new();
        yard.write("report.txt", report);
        yard.always(&format!("echo x >> log; echo '{report}' > report.xml; signal"));
        let ended = yard.until_with(command, |new| {
            new.plan.phases[0].evidence[0].report = Some("report.xml".to_owned());
            new.plan.caps.iterations = Some(2);
        });
        let gate = ended.state.looping.unwrap().gate.unwrap();
        let told =
            gate.conditions.iter().find(|one| one.name == "tests of until").map(|one| one.value.as_str());
        match passes {
            true => assert_eq!((ended.verdict, told), (Some(LoopVerdict::Complete), None), "{}", ended.why),
            false => {
                let cap = matches!(ended.verdict, Some(LoopVerdict::Cap { .. }));
                assert!(cap, "{command}: {:?}", ended.verdict);
                assert_eq!(told, Some("none were seen of report.xml, as this run wrote it"));
            }
        }
    }
}

/// What a run wrote that does not count, because it met a limit or was cut short, is work of the iteration that does.
#[test]
fn work_of_a_run_that_was_begun_again_is_progress() {
    let yard = Yard::new();
    let reset = yard.seconds(90);
    yard.always("finish done");
    yard.step(1, &format!("echo wood > boat; limit {reset}"));
    let ended = yard.until("test -f sail");
    // One that counts brings something, three bring nothing.
    assert_eq!((ended.state.status, yard.starts()), (Status::Halted, 1 + 1 + 3), "{}", ended.why);
    let recent = ended.state.looping.unwrap().recent;
    assert_eq!(recent.iter().map(|one| one.progress).collect::<Vec<_>>(), [true, false, false, false]);
}

/// A loop goes on by its plan: nothing else is offered, and so nothing else can be chosen in vain.
#[test]
fn a_loop_that_stands_still_is_offered_to_go_on_and_nothing_else() {
    let yard = Yard::new();
    yard.always("echo wood >> boat; finish done");
    let ended = yard.until_with("test -f sail", |new| new.plan.caps.iterations = Some(1));
    let (_, options) = yard.engine().recovery_options(ended.state.session_id).unwrap();
    let offered: Vec<_> = options.offered.iter().map(|one| (one.recovery, one.recommended)).collect();
    assert_eq!(offered, [(Recovery::Live, true)]);
}

/// Files that are others each time never rest: nothing that is measured on them holds.
#[test]
fn files_that_never_rest_pass_no_gate() {
    let yard = Yard::new();
    yard.always("echo x > made; signal");
    let ended = yard.until_with("mktemp -p . x.XXXXXX; test -e made", |new| {
        new.plan.caps.iterations = Some(1);
    });
    assert!(matches!(ended.verdict, Some(LoopVerdict::Cap { .. })), "{:?}", ended.verdict);
    assert!(ended.state.looping.unwrap().last.unwrap().flaky);
}

/// Tests that pass at last although nobody changed a file have not been mended: that is chance.
#[test]
fn tests_that_come_out_differently_on_the_same_files_pass_no_gate() {
    let yard = Yard::new();
    yard.test("hull", "true");
    let count = yard.base().join("runs").display().to_string();
    // It fails when it is written and when GREEN begins, and passes from then on.
    let luck = format!("echo x >> {count}; test $(wc -l < {count}) -gt 2");
    yard.step(1, &format!("echo '{luck}' > tests/luck.sh; finish done"));
    yard.always("finish done");
    let ended = yard.workflow("prp", "sh check.sh");
    assert_eq!((ended.state.status, yard.starts()), (Status::Halted, 3), "{}", ended.why);
    let looping = ended.state.looping.unwrap();
    assert_eq!(looping.phase, "GREEN");
    let first = looping.recent.iter().find(|recent| recent.phase == "GREEN").unwrap();
    assert_eq!(first.tests, Some((2, 2)), "all passed, and that was no progress");
}

/// An agent that dies each time in the same way halts its loop, whatever it wrote before.
#[test]
fn the_same_crash_again_and_again_is_the_same_error() {
    let yard = Yard::new();
    yard.always("say working; echo $n > part-$n; kill -9 $$");
    let ended = yard.until("false");
    assert_eq!(ended.state.status, Status::Halted, "{}", ended.why);
    let breaker = ended.state.looping.unwrap().breaker;
    assert_eq!((breaker.cause, breaker.same_error), (Some(BreakerCause::SameError), 5));
    assert!(breaker.reason.unwrap().contains("the agent was ended by signal 9"));
}

/// A call that is denied, as Claude Code tells it.
const DENIED: &str = r#"printf '{"type":"assistant","session_id":"%s","uuid":"%s","parent_tool_use_id":null,"message":{"id":"msg_d%s","type":"message","role":"assistant","model":"scripted","content":[{"type":"tool_use","id":"toolu_%s","name":"Bash","input":{"command":"cargo test --all"}}],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}\n' $id $(u 5) $n $n
printf '{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"toolu_%s","message":"it needs approval","session_id":"%s","uuid":"%s"}\n' $n $id $(u 7)
printf '{"type":"user","session_id":"%s","uuid":"%s","parent_tool_use_id":null,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%s","is_error":true,"content":"This command requires approval"}]}}\n' $id $(u 6) $n
printf '{"type":"result","subtype":"success","session_id":"%s","uuid":"%s","is_error":false,"result":"I may not.","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0.01,"permission_denials":[{"tool_name":"Bash","tool_use_id":"toolu_%s","tool_input":{"command":"cargo test --all"}}],"usage":{"input_tokens":100,"output_tokens":20},"modelUsage":{"scripted":{"inputTokens":100,"outputTokens":20,"costUSD":0.01}},"stop_reason":"end_turn","terminal_reason":"completed"}\n' $id $(u 3) $n"#;

/// Nothing but denials: a person is asked, and told what was denied and which rule would help.
#[test]
fn who_is_denied_everything_is_told_with_the_rule_that_would_help() {
    let yard = Yard::new();
    yard.always(DENIED);
    let ended = yard.until("false");
    assert!(
        matches!(ended.verdict, Some(LoopVerdict::NeedsPerson { need: PersonNeed::CannotAct, .. })),
        "{:?}",
        ended.verdict
    );
    assert!(
        ended.why.ends_with(
            "all that the agent tried was denied, 3 times: Bash cargo test --all; it would be allowed by \
             Bash(cargo test *)"
        ),
        "{}",
        ended.why
    );
    assert_eq!((ended.state.status, yard.starts()), (Status::Paused, 3));
    assert!(yard.prompt(2).contains("denied: Bash cargo test --all"), "{}", yard.prompt(2));
}

/// What was documented before a review sent the work back is documented: it does not have to be written twice.
#[test]
fn documents_of_before_a_rejected_review_count() {
    let yard = Yard::new();
    yard.test("hull", "true");
    let refactored = "finish '---RALPH_STATUS---\\nSTATUS: COMPLETE\\nREFACTORING_COMPLETE: true\\n---END_RALPH_STATUS---'";
    let documents = "mkdir -p docs/adr; echo a > docs/use.md; echo b > docs/build.md; echo c > docs/adr/1.md; finish done";
    let verdict = |word: &str, issues: u32| {
        format!(
            "finish '---PRP_PHASE_STATUS---\\nSTATUS: COMPLETE\\nVERDICT: {word}\\nBLOCKING_ISSUES: {issues}\\n---END_PRP_PHASE_STATUS---'"
        )
    };
    let steps = [
        "echo 'test -f sail' > tests/sail.sh; finish done".to_owned(),
        "echo cloth > sail; finish done".to_owned(),
        format!("echo better >> sail; {refactored}"),
        documents.to_owned(),
        verdict("REJECT", 1),
        "echo stronger >> sail; finish done".to_owned(),
        format!("echo finer >> sail; {refactored}"),
        "echo checked >> sail; finish done".to_owned(),
        verdict("APPROVE", 0),
    ];
    for (n, step) in (1..).zip(&steps) {
        yard.step(n, step);
    }
    yard.always("finish lost");
    let given = EvidencePlan {
        name: "tests".to_owned(),
        command: "sh check.sh".to_owned(),
        ..EvidencePlan::default()
    };
    let ended = yard.until_with("sh check.sh", |new| {
        new.plan.workflow = "prp".to_owned();
        new.plan.phases = NamedWorkflow::find("prp", yard.base()).unwrap().phases(&[given], true);
        new.plan.caps.iterations = Some(12);
    });
    assert_eq!((ended.verdict, yard.starts()), (Some(LoopVerdict::Complete), 9), "{}", ended.why);
}

/// A file that the repository tracks is nobody's report: who saves it during each measurement does not make it the command's.
#[test]
fn a_tracked_file_that_changes_each_time_is_not_the_commands_own() {
    let yard = Yard::new();
    yard.write("code", "first\n");
    super::queue::repository(&yard);
    yard.always("echo x > made; signal");
    // Somebody saves it while the command runs, something else each time.
    let session = yard.begin("echo more >> code; test -e made", |new| new.plan.caps.iterations = Some(1));
    let (ended, heard) = yard.drive_heard(session);
    assert!(matches!(ended.verdict, Some(LoopVerdict::Cap { .. })), "{:?}", ended.verdict);
    let said = heard.join("\n");
    assert!(said.contains("code changed each time that it was measured"), "{said}");
}

/// Where tests are to fail, the files that they fail on have to rest as well.
#[test]
fn a_tracked_file_that_changes_each_time_passes_no_phase_whose_tests_fail() {
    let yard = Yard::new();
    yard.write("code", "first\n");
    super::queue::repository(&yard);
    yard.always("echo x > made; signal");
    let failing = "echo more >> code; if [ -e made ]; then printf 'TAP version 13\\n1..2\\nok 1 - old\\nnot ok 2 - new\\n'; \
                   exit 1; else printf 'TAP version 13\\n1..1\\nok 1 - old\\n'; fi";
    let ended = yard.until_with(failing, |new| {
        new.plan.phases[0].gate = segno_core::looping::GateRule::Red { criteria: 1 };
        new.plan.caps.iterations = Some(1);
    });
    let gate = ended.state.looping.unwrap().gate.unwrap();
    let open: Vec<&str> = gate.conditions.iter().filter(|it| !it.holds).map(|it| it.name.as_str()).collect();
    assert_eq!(open, ["files at rest while measured"], "{gate:?}");
}

/// A runner that names no tests: numbers pass no phase that asks for tests, and a person may accept them.
#[test]
fn tests_without_names_pass_no_phase_that_asks_for_them() {
    let yard = Yard::new();
    yard.always("touch hull; signal");
    let numbers = "if [ -e hull ]; then printf '...    [100%%]\\n3 passed in 0.01s\\n'\n\
        else printf 'F..    [100%%]\\n1 failed, 2 passed in 0.01s\\n'; exit 1; fi";
    let ended = yard.until_with(numbers, |new| {
        new.plan.phases[0].gate = segno_core::looping::GateRule::Green { runs: 1 };
        new.plan.caps.iterations = Some(1);
    });
    let gate = ended.state.looping.unwrap().gate.unwrap();
    let open: Vec<&str> = gate.conditions.iter().filter(|it| !it.holds).map(|it| it.name.as_str()).collect();
    assert_eq!(open, ["tests by name"], "{gate:?}");
    let told = "the tests are compared by their numbers only: one that is replaced by another is not noticed; \
                pytest -v names them";
    assert_eq!(
        gate.warnings,
        [told, "the agent says that it is done, but what is measured says otherwise"]
            .into_iter()
            .rev()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    );
    // A plain command that never named them passes with the warning.
    let plain = Yard::new();
    plain.always("touch hull; signal");
    let ended = plain.until(numbers);
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    assert_eq!(ended.state.looping.unwrap().gate.unwrap().warnings, [told]);
}

/// Prints what pytest prints: a file of tests that needs `feature.py` cannot be imported without it.
const PYTEST: &str = r#"
rule() { printf "%${1}s" '' | tr ' ' =; }
heading() { rest=$((78 - ${#1})); echo "$(rule $((rest / 2))) $1 $(rule $((rest - rest / 2)))"; }
heading 'test session starts'
if [ -e test_new.py ] && [ ! -e feature.py ]; then
printf 'collected 1 item / 1 error\n\n'; heading ERRORS
echo "ImportError while importing test module 'test_new.py'."
heading 'short test summary info'; echo 'ERROR test_new.py'
echo '!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!'
heading '1 error in 0.05s'; exit 2; fi
n=$(ls test_*.py | wc -l); printf "collected $n items\n\n"
echo 'test_old.py::test_a PASSED   [ 50%]'
[ ! -e test_new.py ] || echo 'test_new.py::test_n PASSED   [100%]'
echo; heading "$n passed in 0.01s"
"#;

fn with_a_broken_file() -> Yard {
    let yard = Yard::new();
    std::fs::write(yard.base().join("pytest.sh"), PYTEST).unwrap();
    yard.write("test_old.py", "def test_a():\n    pass\n");
    yard.write("test_new.py", "import feature\n\ndef test_n():\n    assert feature.f() == 1\n");
    yard
}

fn open_conditions(looping: &segno_core::looping::LoopState) -> Vec<(&str, &str)> {
    let gate = looping.gate.as_ref().unwrap();
    gate.conditions.iter().filter(|it| !it.holds).map(|it| (it.name.as_str(), it.value.as_str())).collect()
}

/// A file of tests that nobody could load when the loop began is missed when it is gone, and not when it is loaded.
#[rstest::rstest]
#[case::until(segno_core::looping::GateRule::Until)]
#[case::green(segno_core::looping::GateRule::Green { runs: 2 })]
fn a_file_of_tests_that_could_not_be_loaded_may_not_go(#[case] gate: segno_core::looping::GateRule) {
    let yard = with_a_broken_file();
    let command = format!("sh {}/pytest.sh", yard.base().display());
    yard.always("rm -f test_new.py; signal");
    let ended = yard.until_with(&command, |new| {
        new.plan.phases[0].gate = gate.clone();
        new.plan.caps.iterations = Some(1);
    });
    let looping = ended.state.looping.unwrap();
    assert_eq!(open_conditions(&looping), [("tests that could not be loaded", "1: test_new.py")]);
    let mended = with_a_broken_file();
    let command = format!("sh {}/pytest.sh", mended.base().display());
    mended.always("echo 'def f(): return 1' > feature.py; signal");
    let ended = mended.until_with(&command, |new| {
        new.plan.phases[0].gate = gate;
        new.plan.caps.iterations = Some(1);
    });
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{:?}", ended.state.looping.unwrap().gate);
}

/// Where a pipe hides how the tests came out, what is printed tells; where that tells nothing, nothing was measured. It is said
/// at the start.
#[rstest::rstest]
#[case("tail -3", ("failing tests", "1"))]
#[case("tail -1", ("tests of until", "none were seen of unittest"))]
fn a_pipe_that_hides_failing_tests_passes_no_gate(#[case] pipe: &str, #[case] told: (&str, &str)) {
    let yard = Yard::new();
    yard.always("touch hull; signal");
    yard.write(
        "test_a.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.fail()\n",
    );
    let command = format!("python3 -m unittest 2>&1 | {pipe}");
    let session = yard.begin(&command, |new| new.plan.caps.iterations = Some(1));
    let (ended, heard) = yard.drive_heard(session);
    let looping = ended.state.looping.unwrap();
    assert_eq!(open_conditions(&looping), [told], "{:?}", looping.gate);
    let lost = format!("the exit status of unittest is lost by `| {pipe}`");
    assert_eq!(heard.iter().filter(|problem| problem.contains(&lost)).count(), 1, "{heard:?}");
}

/// Whoever gets the work back is told what the review found, as words of somebody else.
#[test]
fn what_a_review_found_is_told_to_the_phase_that_it_goes_back_to() {
    let yard = Yard::new();
    yard.test("hull", "true");
    yard.step(1, "echo cloth > sail; finish done");
    yard.step(
        2,
        "finish 'The sail is too small.\\nVERDICT below.\\n---PRP_PHASE_STATUS---\\nSTATUS: COMPLETE\\nVERDICT: REJECT\\n\
         BLOCKING_ISSUES: 1\\n---END_PRP_PHASE_STATUS---'",
    );
    yard.step(3, "echo larger > sail; finish done");
    yard.always("finish lost");
    let ended = yard.until_with("sh check.sh", |new| {
        let work = new.plan.phases[0].clone();
        new.plan.phases.push(segno_core::looping::PhasePlan {
            name: "REVIEW".into(),
            gate: segno_core::looping::GateRule::Qa,
            on_reject: Some(segno_core::looping::OnReject {
                to: work.name.clone(),
                most: 3,
                other_model: false,
            }),
            ..work
        });
        new.plan.caps.iterations = Some(4);
    });
    assert_eq!(yard.starts(), 4, "{}", ended.why);
    let (review, again, later) = (yard.prompt(2), yard.prompt(3), yard.prompt(4));
    assert!(review.contains("VERDICT: APPROVE | REJECT\nBLOCKING_ISSUES: how many"), "{review}");
    assert!(
        again.contains("## What the review found") && again.contains("> The sail is too small."),
        "{again}"
    );
    assert!(
        !again.contains("\n---PRP_PHASE_STATUS---\nSTATUS: COMPLETE"),
        "its status block is quoted: {again}"
    );
    assert!(!later.contains("too small"), "once: {later}");
}
