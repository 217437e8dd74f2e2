//! What the files say of a session's past follows from its events, or came with it; never from the files that are there.

use std::sync::Arc;

use segno_core::Mark;
use segno_core::State;
use segno_core::Status;
use segno_core::event::Event;
use segno_core::event::IterationEnded;
use segno_core::event::IterationStarted;
use segno_core::event::Metric;
use segno_core::event::MetricSet;
use segno_core::event::PhaseAdvanced;
use segno_core::event::SessionCompleted;
use segno_core::event::SessionCreated;
use segno_core::looping::Condition;
use segno_core::looping::GateResult;
use segno_core::looping::LoopVerdict;
use segno_core::looping::Observation;
use segno_core::looping::PhaseStand;
use segno_core::looping::Progress;
use segno_layouts::Family;
use segno_layouts::FileSet;
use segno_layouts::prp::Record;
use serde_json::Value;
use serde_json::json;

use crate::samples;

/// A session as its events make it, with its past.
struct Story {
    state: State,
    record: Record,
}

impl Story {
    fn begin() -> Self {
        let fresh = samples::fresh();
        let created = SessionCreated {
            topic: fresh.topic.clone(),
            project: fresh.project.clone(),
            workflow: fresh.workflow.clone(),
            phase: fresh.phase.clone(),
            file: fresh.file.clone(),
            ..SessionCreated::new(fresh.session_id, fresh.uid, fresh.made_by)
        };
        let mark = Mark { seq: 1, at: fresh.created_at, run: None };
        let event = Event::from(created);
        Self { state: State::begin(&mark, &event).unwrap(), record: Record::begin(&mark, &event).unwrap() }
    }

    fn then(&mut self, event: impl Into<Event>) {
        let seq = self.state.seq + 1;
        let at = self.state.created_at.plus_seconds(i64::try_from(seq).unwrap() * 60);
        let (mark, event) = (Mark { seq, at, run: None }, event.into());
        self.state.apply(&mark, &event);
        self.record.take(&mark, &event);
    }

    fn files(&self, existing: &FileSet) -> FileSet {
        let snapshot = segno_layouts::Snapshot {
            record: Some(Arc::new(self.record.clone())),
            ..samples::snapshot(&self.state)
        };
        FileSet::from_iter(segno_layouts::write(Family::Prp, &snapshot, existing).unwrap())
    }
}

fn metric(name: &str, number: f64) -> MetricSet {
    MetricSet { name: name.to_owned(), value: Metric::Number(number) }
}

fn advance(from: &str, to: &str, step: u32) -> PhaseAdvanced {
    PhaseAdvanced { from: Some(from.to_owned()), to: to.to_owned(), step: Some(step), of: Some(4) }
}

fn json_of(files: &FileSet, name: &str) -> Value {
    serde_json::from_slice(files.get(name).unwrap()).unwrap()
}

fn log_of(files: &FileSet) -> String {
    String::from_utf8(files.get("phase-status.log").unwrap().to_vec()).unwrap()
}

fn red_and_green() -> Story {
    let mut story = Story::begin();
    for iteration in 1..=3 {
        story.then(IterationStarted { iteration });
        story.then(metric("tests_total", iteration as f64));
    }
    story.then(advance("RED", "GREEN", 2));
    story.then(IterationStarted { iteration: 1 });
    story
}

#[test]
fn every_iteration_and_every_phase_is_told_however_seldom_it_is_written() {
    let story = red_and_green();
    let files = story.files(&FileSet::default());
    let metrics = json_of(&files, "metrics.json");
    let red = &metrics["phases"]["RED"];
    let iterations: Vec<_> = red["history"].as_array().unwrap().iter().map(|one| &one["iteration"]).collect();
    assert_eq!(iterations, [&json!(1), &json!(2), &json!(3)]);
    assert_eq!((&red["iterations"], &red["final_metrics"]["tests_total"]), (&json!(3), &json!(3)));
    assert!(red["started_at"].is_string() && red["completed_at"].is_string(), "{red}");
    assert_eq!(metrics["phases"]["GREEN"]["iterations"], 1);
    let state = json_of(&files, "loop-state.json");
    assert_eq!(state["phase_history"]["RED"]["exit_reason"], "gone_on");
    let log = log_of(&files);
    let lines = |name: &str| -> Vec<String> {
        log.lines().filter_map(|line| Some(line.strip_prefix(name)?.trim().to_owned())).collect()
    };
    assert_eq!(lines("PHASE:"), ["RED", "RED", "RED", "RED", "GREEN"]);
    assert_eq!(lines("STATUS:"), ["IN_PROGRESS", "IN_PROGRESS", "IN_PROGRESS", "COMPLETE", "IN_PROGRESS"]);
    assert_eq!(lines("RECOMMENDATION:")[3..], ["gone on to GREEN".to_owned(), "go on with GREEN".to_owned()]);
}

#[test]
fn the_same_session_has_the_same_files_whatever_is_there() {
    let mut story = red_and_green();
    let first = story.files(&FileSet::default());
    let other = samples::prp();
    let beside = story.files(&FileSet::from_iter([("phase-status.log", other.get("metrics.json").unwrap())]));
    assert_eq!(log_of(&first), log_of(&beside));
    story.then(IterationStarted { iteration: 2 });
    let second = story.files(&first);
    assert_eq!(second, story.files(&FileSet::default()));
    assert!(log_of(&second).starts_with(&log_of(&first)), "a log is only added to");
}

#[test]
fn a_completed_session_has_completed_its_last_phase() {
    let mut story = red_and_green();
    story.then(SessionCompleted::default());
    let files = story.files(&FileSet::default());
    let state = json_of(&files, "loop-state.json");
    assert_eq!(state["phases_completed"], json!(["RED", "GREEN"]));
    assert_eq!(state["phase_history"]["GREEN"]["completed_at"], state["completed_at"]);
    let green = &json_of(&files, "metrics.json")["phases"]["GREEN"];
    assert_eq!((&green["completed_at"], green.get("current_metrics")), (&state["completed_at"], None));
    assert!(green["final_metrics"].is_object(), "{green}");
    assert!(log_of(&files).contains("STATUS: COMPLETE\nITERATION: 1\nPROGRESS_PERCENT: 100"));
}

/// What a session came with is shown until it has something of its own to say.
#[test]
fn what_came_with_a_prp_session_is_written_back() {
    let theirs = samples::prp();
    let read = segno_layouts::read(Family::Prp, &theirs, samples::now()).unwrap();
    let mut state = read.sessions[0].state.clone();
    state.seq += 1;
    let files = FileSet::from_iter(
        segno_layouts::write(Family::Prp, &samples::snapshot(&state), &FileSet::default()).unwrap(),
    );
    let (before, after) = (json_of(&theirs, "metrics.json"), json_of(&files, "metrics.json"));
    for phase in ["RED", "GREEN"] {
        let (before, after) = (&before["phases"][phase], &after["phases"][phase]);
        for member in ["started_at", "completed_at", "iterations", "history"] {
            assert_eq!(after[member], before[member], "{phase} {member}");
        }
    }
    for (file, member) in [("rate-limit.json", "hourly"), ("dual-gate.json", "gate_1")] {
        assert_eq!(json_of(&files, file)[member], json_of(&theirs, file)[member], "{file}");
    }
    assert!(log_of(&files).starts_with(log_of(&theirs).trim_end()), "{}", log_of(&files));
}

#[test]
fn files_of_another_session_and_numbers_that_cannot_be_are_told() {
    let mut files = samples::prp();
    let mut metrics = json_of(&files, "metrics.json");
    metrics["session_id"] = json!("another");
    files.insert("metrics.json", samples::text(&metrics));
    let read = segno_layouts::read(Family::Prp, &files, samples::now()).unwrap();
    let warnings = read.sessions[0].warnings.join("\n");
    assert!(
        warnings.contains(
            "metrics.json: Session mismatch: it is about another, not a1b2c3d4-0000-4000-8000-000000000001; left out"
        ),
        "{warnings}"
    );
    let mut state = json_of(&files, "loop-state.json");
    state["current_iteration"] = json!(101);
    files.insert("loop-state.json", samples::text(&state));
    let damage = segno_layouts::read(Family::Prp, &files, samples::now()).unwrap_err();
    assert_eq!(damage.to_string(), "loop-state.json: Invalid current_iteration: 101 is not 0 to 100");
}

/// The block of a review has what the review found, in the document's order, and who reads the log takes it for one.
#[test]
fn the_log_has_a_block_for_each_review() {
    let mut state = samples::full();
    (state.status, state.reason) = (Status::Active, None);
    (state.phase, state.iteration) = (Some("QA".to_owned()), 0);
    let looping = state.looping.as_mut().unwrap();
    looping.phase = "QA".to_owned();
    looping.phases.push(PhaseStand { name: "QA".to_owned(), ..PhaseStand::default() });
    let record = Record::of_state(state.clone());
    let mut story = Story { state, record };
    let condition =
        |name: &str, holds: bool| Condition { name: name.to_owned(), holds, ..Condition::default() };
    for (iteration, verdict, blocking) in [(1, "REJECT", 1.0), (2, "APPROVE", 0.0)] {
        let mut seen = Observation::default();
        seen.claims.verdict = Some(verdict.to_owned());
        seen.claims.metrics =
            [("blocking_issues".to_owned(), blocking), ("warning_issues".to_owned(), 2.0)].into();
        let passes = blocking == 0.0;
        let conditions = [("tests", true), ("blocking issues", passes), ("verdict of the review", passes)];
        let gate = GateResult {
            conditions: conditions.map(|(name, holds)| condition(name, holds)).to_vec(),
            gate_1: passes,
            gate_2: Some(passes),
            can_exit: passes,
            ..GateResult::default()
        };
        story.then(IterationStarted { iteration });
        story.then(IterationEnded {
            iteration,
            phase: "QA".to_owned(),
            run: None,
            agent: None,
            observation: Box::new(seen),
            progress: Progress::default(),
            gate,
            breaker: Box::default(),
            verdict: LoopVerdict::Complete,
            line: format!("the review says {verdict}"),
        });
    }
    let files = story.files(&FileSet::default());
    let log = log_of(&files);
    let blocks: Vec<&str> = log.split("---PRP_PHASE_STATUS---\n").skip(1).collect();
    assert_eq!(blocks.len(), 2, "{log}");
    for (block, attempt, passing, blocking, verdict) in
        [(blocks[0], 1, 1, 1, "REJECT"), (blocks[1], 2, 3, 0, "APPROVE")]
    {
        let parts = [
            format!("PHASE: QA\nSTATUS: IN_PROGRESS\nITERATION: {attempt}\n"),
            "TESTS:\n  TOTAL: 10\n  PASSING: 6\n  FAILING: 4\n  SKIPPED: 0\n".to_owned(),
            format!("QA_METRICS:\n  CHECKS_TOTAL: 3\n  CHECKS_PASSING: {passing}\n"),
            format!(
                "  CHECKS_FAILING: {}\n  BLOCKING_ISSUES: {blocking}\n  WARNING_ISSUES: 2\n",
                3 - passing
            ),
            "FILES:\n".to_owned(),
            format!("DUAL_GATE:\n  GATE_1: {0}\n  GATE_2: {0}\n  CAN_EXIT: {0}\n", blocking == 0),
            format!("VERDICT: {verdict}\nATTEMPT: {attempt}\nBLOCKERS:\n  - none\n"),
            format!("RECOMMENDATION: the review says {verdict}\n"),
        ];
        let mut rest = block;
        for part in parts {
            let at = rest.find(&part).unwrap_or_else(|| panic!("{part} is not in its place in\n{block}"));
            rest = &rest[at + part.len()..];
        }
    }
    let read = segno_layouts::read(Family::Prp, &files, samples::now()).unwrap();
    assert_eq!(read.sessions[0].warnings, Vec::<String>::new());
}
