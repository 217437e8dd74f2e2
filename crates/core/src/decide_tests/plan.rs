//! Workflows, phases, steps, checks and how far it all is.

use serde_json::json;

use crate::command::Command;

use crate::event::*;
use crate::fact::Fact;
use crate::limits;
use crate::project::List;
use crate::refusal::Refusal;
use crate::status::Status;
use crate::story::*;

fn tdflow() -> Command {
    let phases = ["red", "green", "refactor"].map(str::to_owned).to_vec();
    Command::SetWorkflow { workflow: Workflow { name: "tdflow".to_owned(), phases } }
}

fn verify(check: &str, verdict: Verdict) -> Command {
    Command::VerifyPhase { phase: None, check: check.to_owned(), verdict, details: None }
}

#[test]
fn each_phase_advance_sets_a_sign() {
    let mut story = Story::told(inputs![phase("analyze")]);
    let advanced =
        PhaseAdvanced { from: Some("analyze".to_owned()), to: "implement".to_owned(), step: None, of: None };
    let sign = CheckpointCreated {
        id: "cp-02-analyze".parse().unwrap(),
        ordinal: 2,
        name: "analyze".to_owned(),
        reason: CheckpointReason::PhaseComplete,
        tool_count: 0,
        progress: None,
    };
    assert_eq!(story.ok(phase("implement")), [advanced.into(), sign.into()]);
    assert_eq!(story.state.phase.as_deref(), Some("implement"));
    assert_eq!(story.state.phase_since, crate::event::samples::at(4));
    let mark = story.state.checkpoint.as_ref().unwrap();
    assert_eq!((mark.id.as_str(), mark.seq), ("cp-02-analyze", story.state.seq));
    assert_eq!(story.column(List::Checkpoints, "id"), ["cp-01-start", "cp-02-analyze"]);
}

#[test]
fn steps_are_counted_along_the_workflow() {
    let mut story = Story::told(inputs![tdflow()]);
    assert_eq!((story.state.step, story.state.of), (None, Some(3)));
    for (n, (name, percent)) in (1..).zip([("red", 0), ("green", 33), ("refactor", 66)]) {
        story.ok(phase(name));
        assert_eq!((story.state.step, story.state.of), (Some(n), Some(3)));
        assert_eq!(story.state.phase_label(), Some(format!("{name} {n}/3")));
        assert_eq!(story.state.progress(), Some(percent));
    }
    assert_eq!(story.column(List::Checkpoints, "progress"), ["0", "33", "66"]);
    assert_eq!(story.state.phases_completed, ["red", "green"]);
    story.ok(Command::Complete { summary: None });
    assert_eq!(story.state.progress(), Some(100));
    assert_eq!(story.column(List::Checkpoints, "progress"), ["0", "33", "66", "100"]);
    assert_eq!(story.column(List::Checkpoints, "reason").last().unwrap(), "final");
}

#[test]
fn going_back_counts_a_phase_once_and_starts_it_anew() {
    let mut story = Story::told(inputs![tdflow(), phase("red"), phase("green"), Command::StartIteration]);
    story.ok(Command::StartIteration);
    story.ok(Command::StartAttempt);
    assert_eq!((story.state.iteration, story.state.attempt), (2, 2));
    story.ok(phase("red"));
    story.ok(phase("green"));
    assert_eq!(story.state.phases_completed, ["red"], "green was left backwards: it is not done");
    assert_eq!((story.state.iteration, story.state.attempt, story.state.step), (0, 1, Some(2)));
}

#[test]
fn what_is_gone_back_to_is_before_one_again() {
    let mut story = Story::told(inputs![tdflow(), phase("red"), phase("green"), phase("refactor")]);
    assert_eq!(story.state.phases_completed, ["red", "green"]);
    story.ok(phase("red"));
    assert!(story.state.phases_completed.is_empty());
    // Without a list of phases, one that was done before is gone back to.
    let mut story = Story::told(inputs![phase("a"), phase("b"), phase("c")]);
    assert_eq!(story.state.phases_completed, ["a", "b"]);
    story.ok(phase("b"));
    assert_eq!(story.state.phases_completed, ["a"]);
}

#[test]
fn a_phase_that_failed_its_check_is_not_done() {
    let mut story = Story::told(inputs![tdflow(), phase("red")]);
    let fail = Verdict::Fail;
    story.ok(Command::VerifyPhase { phase: None, check: "tests".into(), verdict: fail, details: None });
    story.ok(phase("green"));
    assert!(story.state.phases_completed.is_empty());
    story.ok(phase("refactor"));
    assert_eq!(story.state.phases_completed, ["green"]);
}

#[test]
fn the_phase_a_session_is_in_is_no_step() {
    let story = Story::told(inputs![phase("red")]);
    let refusal = story.refused(phase("red"));
    assert_eq!(refusal, Refusal::Already("the session is in phase red already".to_owned()));
}

#[test]
fn a_phase_outside_the_workflow_is_refused() {
    let story = Story::told(inputs![tdflow(), phase("red")]);
    let why = story.refused(phase("lunch")).to_string();
    assert_eq!(why, "workflow tdflow has no phase lunch; its phases are red, green, refactor");
}

#[test]
fn a_breakpoint_stops_what_moves_on() {
    let mut story =
        Story::told(inputs![phase("red"), Command::ReachBreakpoint { name: "look".into(), details: None }]);
    let why = story.refused(phase("green")).to_string();
    assert!(why.contains("waits at breakpoint look"), "{why}");
    story.refused(Command::StartIteration);
    story.refused(Command::SwitchAgent { to: "b".into() });
    story.ok(Fact::HistoryNoted { action: "note".into(), phase: None, details: None });
    story.ok(Command::ContinueBreakpoint { details: None });
    story.ok(phase("green"));
}

#[test]
fn steps_counted_by_hand() {
    let advance = |to: &str, step, of| Command::AdvancePhase { to: to.to_owned(), step, of };
    let mut story = Story::told(inputs![advance("a", Some(2), Some(9))]);
    assert_eq!(story.state.phase_label().as_deref(), Some("a 2/9"));
    story.ok(Command::SetStep { step: 3, of: None });
    assert_eq!((story.state.step, story.state.of), (Some(3), Some(9)));
    story.ok(advance("b", Some(4), None));
    assert_eq!((story.state.step, story.state.of), (Some(4), Some(9)));
    story.ok(advance("c", None, None));
    assert_eq!((story.state.step, story.state.of), (None, None));
    story.ok(Command::SetStep { step: 7, of: None });
    assert_eq!(story.state.phase_label().as_deref(), Some("c step 7"));

    let why = |command| story.refused(command).to_string();
    assert_eq!(why(Command::SetStep { step: 0, of: None }), "bad step: steps count from 1");
    assert_eq!(why(Command::SetStep { step: 1, of: Some(0) }), "bad step: steps count from 1");
    assert_eq!(why(Command::SetStep { step: 3, of: Some(2) }), "bad step: step 3 of 2");
    assert_eq!(why(advance("d", Some(3), Some(2))), "bad step: step 3 of 2");
    // What is left out is filled in before it is looked at.
    let story = Story::told(inputs![tdflow()]);
    let why = |command| story.refused(command).to_string();
    assert_eq!(why(advance("red", Some(4), None)), "bad step: step 4 of 3");
    assert_eq!(why(advance("refactor", None, Some(2))), "bad step: step 3 of 2");
    assert_eq!(why(Command::SetStep { step: 4, of: None }), "bad step: step 4 of 3");
}

#[test]
fn a_workflow_lists_each_phase_once() {
    let workflow =
        |phases: Vec<String>| Command::SetWorkflow { workflow: Workflow { name: "w".to_owned(), phases } };
    let story = Story::new();
    let twice = vec!["a".to_owned(), "b".to_owned(), "a".to_owned()];
    assert_eq!(story.refused(workflow(twice)).to_string(), "bad workflow: it lists phase a twice");
    let many = (0..=limits::PHASES).map(|n| n.to_string()).collect();
    let refusal = Refusal::TooMany { what: "phases", limit: limits::PHASES };
    assert_eq!(story.refused(workflow(many)), refusal);
}

#[test]
fn checks_belong_to_the_phase() {
    let mut story = Story::told(inputs![
        phase("green"),
        verify("tests", Verdict::Fail),
        verify("build", Verdict::Skip),
        verify("tests", Verdict::Pass),
    ]);
    let verdicts = |story: &Story| story.state.verification.clone().into_iter().collect::<Vec<_>>();
    let now = [("build".to_owned(), Verdict::Skip), ("tests".to_owned(), Verdict::Pass)];
    assert_eq!(verdicts(&story), now);
    // A word about another phase is in the list only.
    let other = Some("red".to_owned());
    let check = "late".to_owned();
    story.ok(Command::VerifyPhase { phase: other, check, verdict: Verdict::Fail, details: None });
    assert_eq!(verdicts(&story), now);
    assert_eq!(story.column(List::Verifications, "phase"), ["green", "green", "green", "red"]);
    story.ok(phase("refactor"));
    assert_eq!(verdicts(&story), []);
}

#[test]
fn a_check_that_is_there_changes_even_when_there_is_no_room_for_more() {
    let mut story = Story::new();
    for n in 0..=limits::ENTRIES {
        story.ok(verify(&format!("{n:04}"), Verdict::Fail));
    }
    assert_eq!(story.state.verification.len(), limits::ENTRIES);
    story.ok(verify("0000", Verdict::Pass));
    assert_eq!(story.state.verification["0000"], Verdict::Pass);
}

#[test]
fn progress_as_somebody_says_it_wins_until_the_end() {
    let mut story = Story::told(inputs![tdflow(), phase("green"), Command::SetProgress { percent: 90 }]);
    assert_eq!(story.state.progress(), Some(90));
    story.ok(phase("refactor"));
    assert_eq!(story.column(List::Checkpoints, "progress"), ["33", "90"]);
    let refusal = story.refused(Command::SetProgress { percent: 101 });
    assert_eq!(refusal.to_string(), "bad percentage: 101 is more than 100");
    assert_eq!(Story::new().go_to(Status::Completed).state.progress(), Some(100));
}

#[test]
fn phases_of_a_prp_weigh_what_they_take() {
    let prp = |phases: &[&str]| Command::SetWorkflow {
        workflow: Workflow {
            name: "prp".to_owned(),
            phases: phases.iter().copied().map(str::to_owned).collect(),
        },
    };
    let mut story = Story::told(inputs![prp(&["RED", "GREEN", "REFACTOR", "DOCUMENT", "QA"]), phase("RED")]);
    assert_eq!(story.state.progress(), Some(0));
    story.ok(Command::StartIteration);
    story.ok(Command::StartIteration);
    assert_eq!(story.state.progress(), Some(2), "two of ten iterations of what weighs 10");
    story.ok(phase("GREEN"));
    assert_eq!(story.state.progress(), Some(10));
    for _ in 0..12 {
        story.ok(Command::StartIteration);
    }
    assert_eq!(story.state.progress(), Some(55), "a phase is never more than all of it");
    story.ok(phase("QA"));
    assert_eq!(story.state.progress(), Some(85));
    assert_eq!(story.column(List::Checkpoints, "progress"), ["0", "10", "85"]);
    // Without QA the others are the whole; other workflows count steps.
    let story = Story::told(inputs![prp(&["RED", "GREEN", "REFACTOR", "DOCUMENT"]), phase("GREEN")]);
    assert_eq!(story.state.progress(), Some(11));
    let story = Story::told(inputs![prp(&["RED", "LUNCH"]), phase("LUNCH")]);
    assert_eq!(story.state.progress(), Some(50));
}

#[test]
fn what_a_workflow_keeps() {
    let set = |state| Command::SetWorkflowState { state };
    let mut story = Story::told(inputs![set(json!({ "gate": 1 }))]);
    assert_eq!(story.state.workflow_state, Some(json!({ "gate": 1 })));
    let refusal = story.refused(set(json!("x".repeat(limits::JSON))));
    assert_eq!(refusal.code(), "bad_value");
    story.ok(set(json!(null)));
    assert_eq!(story.state.workflow_state, None, "nothing is nothing");
}

#[test]
fn a_sign_in_between_changes_no_phase() {
    let asked = |name: Option<&str>| Command::CreateCheckpoint {
        name: name.map(str::to_owned),
        reason: CheckpointReason::Asked,
    };
    let mut story = Story::told(inputs![asked(None), phase("red"), start("a", Source::Hook)]);
    assert_eq!(story.state.actions_since_checkpoint, 1);
    story.ok(asked(None));
    assert_eq!(story.state.actions_since_checkpoint, 0);
    story.ok(asked(Some("Before the Big Change!")));
    let ids = ["cp-01-asked", "cp-02-start", "cp-03-red", "cp-04-before-the-big-change"];
    assert_eq!(story.column(List::Checkpoints, "id"), ids);
    assert_eq!(story.column(List::Checkpoints, "tool_count"), ["0", "0", "1", "1"]);
    assert_eq!(story.state.phase.as_deref(), Some("red"));
    assert_eq!(story.state.counts.checkpoints, 4);
}
