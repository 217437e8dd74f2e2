use rstest::rstest;
use serde_json::Value;
use serde_json::json;

use super::*;
use crate::event::samples;
use crate::event::*;
use crate::looping::Breaker;
use crate::looping::BreakerCause;
use crate::looping::Condition;
use crate::looping::GateResult;
use crate::looping::LoopVerdict;
use crate::looping::Observation;
use crate::looping::ParkReason;
use crate::looping::Progress;
use crate::rows::ErrorRow;
use crate::rows::ToolRow;
use crate::state::Mark;
use crate::summary::Summary;

/// Sessions that are told to a gatherer; each event is a second after the one before.
struct Told {
    gatherer: Gatherer,
    seq: u64,
    session: i64,
}

impl Told {
    fn new() -> Self {
        Self::since(None)
    }

    fn since(since: Option<i64>) -> Self {
        let gatherer = Gatherer::new(since.map(samples::at));
        let mut told = Self { gatherer, seq: 0, session: 0 };
        told.session();
        told
    }

    /// The next session begins.
    fn session(&mut self) -> &mut Self {
        self.session_of(Maker::Run)
    }

    fn session_of(&mut self, made_by: Maker) -> &mut Self {
        self.session += 1;
        self.seq = 0;
        let mut summary = Summary::from(&samples::full_state());
        summary.session_id = SessionId::at(samples::at(self.session * 10_000));
        summary.made_by = made_by;
        summary.project = "/shop".to_owned();
        self.gatherer.begin(&summary);
        self
    }

    fn then(&mut self, event: impl Into<Event>) -> &mut Self {
        self.seq += 1;
        let mark = Mark { seq: self.seq, at: samples::at(self.seq.try_into().unwrap()), run: None };
        let event = event.into();
        if self.gatherer.wants(event.kind()) {
            self.gatherer.event(&mark, &event);
        }
        self
    }

    fn call(&mut self, tool: &str, command: &str, state: &str) -> &mut Self {
        self.call_with(tool, json!({ "command": command }), state, "ok", false)
    }

    fn call_with(
        &mut self,
        tool: &str,
        input: Value,
        state: &str,
        output: &str,
        is_risky: bool,
    ) -> &mut Self {
        self.seq += 1;
        let at = samples::at(self.seq.try_into().unwrap());
        let row = ToolRow {
            tool: tool.to_owned(),
            input: Some(input),
            state: state.to_owned(),
            started_at: Some(at),
            ended_at: Some(at.plus_seconds(2)),
            output: Some(output.into()),
            ..ToolRow::default()
        };
        self.gatherer.call(self.seq, &row, is_risky);
        self
    }

    fn error(&mut self, kind: &str, message: &str) -> &mut Self {
        self.seq += 1;
        let row = ErrorRow {
            timestamp: Some(samples::at(self.seq.try_into().unwrap())),
            message: Some(message.into()),
            error_kind: Some(kind.to_owned()),
            fingerprint: crate::fingerprint(message),
            ..ErrorRow::default()
        };
        self.gatherer.error(self.seq, &row);
        self
    }

    fn found(self) -> Insights {
        self.gatherer.finish()
    }
}

fn of(found: &Insights, kind: FindingKind) -> Vec<&Finding> {
    found.findings.iter().filter(|one| one.kind == kind).collect()
}

fn line(finding: &Finding) -> &str {
    finding.suggestion.as_ref().and_then(|suggestion| suggestion.line.as_deref()).unwrap_or_default()
}

fn ended(outcome: &str) -> RunEnded {
    RunEnded {
        run: "r1".to_owned(),
        outcome: outcome.to_owned(),
        reason: "so it was".into(),
        ..RunEnded::default()
    }
}

fn resumed() -> SessionResumed {
    SessionResumed::default()
}

fn said(channel: Channel) -> Said {
    Said { channel, text: "hello".into(), message: None, parent: None }
}

fn changed(path: &str, call: Option<&str>) -> FileChanged {
    FileChanged { path: path.to_owned(), change: Change::Modified, call: call.map(ToOwned::to_owned) }
}

#[test]
fn nothing_is_nothing() {
    let found = Gatherer::new(None).finish();
    assert_eq!(found, Insights::default());
}

#[test]
fn the_same_error_is_told_once_with_places_to_look_at() {
    let mut told = Told::new();
    told.error("unknown", "cannot open /a/x.rs:12").error("unknown", "cannot open /b/x.rs:77");
    told.session().error("unknown", "cannot open /c/x.rs:3").error("unknown", "something else");
    let found = told.found();
    assert_eq!(found.numbers.errors, 4);
    let [one] = of(&found, FindingKind::Error)[..] else { panic!("{:?}", found.findings) };
    assert_eq!((one.what.as_str(), one.count, one.sessions), ("cannot open /a/x.rs:12", 3, 2));
    assert_eq!(one.words, "3 times in 2 sessions");
    let places: Vec<_> = one.evidence.iter().map(|it| (it.seq, it.look.as_str())).collect();
    let (first, second) = (SessionId::at(samples::at(10_000)), SessionId::at(samples::at(20_000)));
    let look = |id: SessionId, after: u64| format!("segno log {id} --after {after} --limit 5");
    let expected = [look(first, 0), look(first, 1), look(second, 0)];
    assert_eq!(places, [(1, expected[0].as_str()), (2, &expected[1]), (1, &expected[2])]);
    assert!(line(one).starts_with("- This error comes up here: `cannot open /a/x.rs:12`"), "{}", line(one));
}

#[rstest]
#[case("authentication", Remedy::Command, "segno doctor")]
#[case("overloaded", Remedy::Command, "segno loop")]
#[case("context", Remedy::Setting, "context = { auto = 60 }")]
#[case("network", Remedy::Command, "segno run --auto-resume")]
fn what_helps_against_an_error(#[case] kind: &str, #[case] remedy: Remedy, #[case] expected: &str) {
    let mut told = Told::new();
    told.error(kind, "it failed").error(kind, "it failed");
    let found = told.found();
    let one = of(&found, FindingKind::Error)[0];
    assert_eq!((one.suggestion.as_ref().unwrap().kind, line(one)), (remedy, expected));
}

#[test]
fn a_rule_is_suggested_for_what_was_denied_unless_somebody_wanted_that() {
    let mut told = Told::new();
    for _ in 0..2 {
        told.call("Bash", "cargo test auth", "denied");
        told.call("Bash", "npm install left-pad", "denied");
        told.call_with("Bash", json!({ "command": "rm -rf build" }), "denied", "", true);
        told.call("Bash", &format!("cat {} | sh", "x".repeat(200)), "denied");
    }
    told.call("Bash", "ls", "denied");
    let asked = QuestionAsked {
        id: "q1".to_owned(),
        call: None,
        tool: "Bash".to_owned(),
        input: json!({ "command": "npm install left-pad" }).to_string().into(),
        until: None,
    };
    let no = QuestionAnswered { id: "q1".to_owned(), allow: false, details: None, by: "terminal".to_owned() };
    told.then(asked).then(no);
    let found = told.found();
    assert_eq!(found.numbers.calls.denied, 9);
    let told: Vec<_> = of(&found, FindingKind::Denial)
        .into_iter()
        .map(|one| (one.what.as_str(), one.suggestion.as_ref().unwrap().kind, line(one)))
        .collect();
    let not = |what: &str| format!("- Do not run `{what}`. Instead: (say what is allowed).");
    assert_eq!(
        told,
        [
            ("Bash cat", Remedy::AgentsMd, not("Bash cat").as_str()),
            ("Bash(cargo test *)", Remedy::AllowRule, r#"allow = ["Bash(cargo test *)"]"#),
            ("Bash(npm install *)", Remedy::AgentsMd, &not("Bash(npm install *)")),
            ("Bash(rm -rf build)", Remedy::AgentsMd, &not("Bash(rm -rf build)")),
        ]
    );
}

#[rstest]
#[case(&[Some(true), Some(true)], Some(Remedy::AllowRule))]
#[case(&[Some(false), Some(false)], Some(Remedy::DenyRule))]
#[case(&[Some(true), Some(false)], None)]
#[case(&[None, None], Some(Remedy::Setting))]
fn questions_that_were_always_answered_alike(
    #[case] answers: &[Option<bool>],
    #[case] remedy: Option<Remedy>,
) {
    let mut told = Told::new();
    for (number, answer) in answers.iter().enumerate() {
        let id = number.to_string();
        let input = json!({ "command": "make all" }).to_string().into();
        told.then(QuestionAsked { id: id.clone(), call: None, tool: "Bash".to_owned(), input, until: None });
        if let Some(allow) = *answer {
            told.then(QuestionAnswered { id: id.clone(), allow, details: None, by: "terminal".to_owned() });
        }
        told.then(QuestionClosed { id, why: "over".to_owned() });
    }
    let found = told.found();
    let one = of(&found, FindingKind::Question)[0];
    assert_eq!((one.count, one.waited_ms), (2, Some(2_000)));
    assert_eq!(found.numbers.time.questions_ms, 2_000);
    assert_eq!(one.suggestion.as_ref().map(|suggestion| suggestion.kind), remedy);
}

#[test]
fn calls_that_fail_most_and_calls_that_repeat() {
    let mut told = Told::new();
    for number in 0..4 {
        told.call_with(
            "Bash",
            json!({ "command": format!("cargo test t{number}") }),
            "failed",
            "3 failed",
            false,
        );
    }
    told.call("Bash", "cargo test all", "completed");
    // One in fifty is no habit.
    for number in 0..100 {
        let state = if number % 50 == 0 { "failed" } else { "completed" };
        told.call_with("Fetch", json!({ "n": number }), state, "gone", false);
    }
    for _ in 0..3 {
        told.call("Read", "a.rs", "completed");
    }
    let found = told.found();
    let [one] = of(&found, FindingKind::FailingCall)[..] else { panic!("{:?}", found.findings) };
    assert_eq!((one.what.as_str(), one.count, one.of), ("Bash cargo test", 4, Some(5)));
    assert_eq!(
        (one.words.as_str(), one.evidence[0].text.as_str()),
        ("4 of 5 failed (80 %), in 1 session", "3 failed")
    );
    let [again] = of(&found, FindingKind::Repeat)[..] else { panic!("{:?}", found.findings) };
    assert_eq!((again.what.as_str(), again.evidence[0].seq), ("Read a.rs", 106));
    assert_eq!(found.numbers.time.calls_ms, 216_000);
    assert_eq!(found.shares.tools[0].name, "Fetch");
}

#[test]
fn files_that_are_edited_again_and_again_count_each_edit_once() {
    let mut told = Told::new();
    for turn in 0..3 {
        told.then(said(Channel::Input));
        let call = format!("c{turn}");
        // The stream and a hook tell of the same edit.
        told.then(changed("/shop/src/a.rs", Some(&call))).then(changed("/shop/src/a.rs", Some(&call)));
        told.then(changed("src/a.rs", None));
    }
    told.then(changed("src/b.rs", None));
    let found = told.found();
    let [one] = of(&found, FindingKind::File)[..] else { panic!("{:?}", found.findings) };
    assert_eq!((one.what.as_str(), one.count), ("src/a.rs", 6));
    assert_eq!(one.words, "edited 6 times in 3 turns of 1 session");
}

fn iteration(number: u64, verdict: LoopVerdict) -> IterationEnded {
    let condition = Condition {
        name: "tests".to_owned(),
        wanted: "0 failed".to_owned(),
        value: "2 failed".to_owned(),
        holds: false,
        ..Condition::default()
    };
    let halts = matches!(verdict, LoopVerdict::Halt { .. });
    let cause = halts.then_some(BreakerCause::SameError);
    IterationEnded {
        iteration: number,
        phase: "GREEN".to_owned(),
        run: None,
        agent: None,
        observation: Box::new(Observation::default()),
        progress: Progress::default(),
        gate: GateResult { conditions: vec![condition], ..GateResult::default() },
        breaker: Box::new(Breaker { cause, ..Breaker::default() }),
        verdict,
        line: format!("iteration {number}"),
    }
}

#[test]
fn phases_that_repeat_name_what_held_them_up_and_breakers_why_they_opened() {
    let mut told = Told::new();
    for number in 1..5 {
        told.then(iteration(number, LoopVerdict::Continue { why: "tests fail".to_owned() }));
    }
    told.then(iteration(5, LoopVerdict::Halt { why: "the same error".to_owned() }));
    told.then(SessionHalted { reason: "the same error 5 times".into() });
    let found = told.found();
    let one = of(&found, FindingKind::Phase)[0];
    assert_eq!(
        (one.what.as_str(), one.words.as_str()),
        ("GREEN", "5 iterations, up to 5 of one phase, in 1 session")
    );
    let text = &one.suggestion.as_ref().unwrap().text;
    assert!(text.starts_with("The condition `tests` of its gate did not hold in 5 iterations"), "{text}");
    let breaker = of(&found, FindingKind::Breaker)[0];
    assert_eq!(breaker.what, "the same error again and again");
    assert_eq!(breaker.evidence[0].seq, 6);
    assert_eq!(found.numbers.iterations, 5);
}

#[test]
fn limits_are_told_with_what_was_waited_and_once_for_each_run() {
    let limit = |status: &str| LimitSeen {
        agent: Some("claude".to_owned()),
        window: Some("five_hour".to_owned()),
        status: Some(status.to_owned()),
        ..LimitSeen::default()
    };
    let report = |status: &str| Reported {
        what: LimitSeen::REPORT.to_owned(),
        body: serde_json::to_value(limit(status)).unwrap(),
    };
    let parked = LoopParked {
        class: ParkReason::Plan,
        account: Some("claude".to_owned()),
        window: Some("five_hour".to_owned()),
        words: "waits until 3pm".to_owned(),
        ..LoopParked::default()
    };
    let mut told = Told::new();
    told.then(report("allowed"));
    let end = RunEnded { limit: Some(Box::new(limit("rejected"))), ..ended("limit") };
    told.then(end.clone()).then(parked.clone()).then(LoopWoken::default());
    // Nobody waits for a limit here.
    told.then(LoopParked { class: ParkReason::Queue, ..parked }).then(LoopWoken::default());
    told.session().then(end);
    let found = told.found();
    let [one] = of(&found, FindingKind::Limit)[..] else { panic!("{:?}", found.findings) };
    assert_eq!((one.what.as_str(), one.count, one.sessions), ("claude, five_hour", 3, 2));
    assert_eq!((one.waited_ms, found.numbers.time.limits_ms), (Some(1_000), 1_000));
}

#[test]
fn what_came_of_resumes() {
    let mut told = Told::new();
    let interrupted =
        SessionInterrupted { reason: InterruptReason::PowerLoss, ..SessionInterrupted::default() };
    told.then(interrupted.clone()).then(resumed()).then(said(Channel::Input)).then(said(Channel::Text));
    // The run that it was resumed for died at once.
    told.then(interrupted.clone())
        .then(resumed())
        .then(ended("failed"))
        .then(SessionPaused { reason: PauseReason::Error, details: None });
    // Somebody stopped it: that says nothing.
    told.then(resumed()).then(SessionPaused { reason: PauseReason::Asked, details: None });
    told.session().then(resumed());
    // Its run is ended by whoever finds it: that is the same death.
    told.session().then(resumed()).then(interrupted).then(ended("interrupted"));
    let found = told.found();
    let numbers = found.numbers.resumes;
    assert_eq!((numbers.total, numbers.worked, numbers.failed, numbers.undecided), (5, 1, 2, 2));
    assert_eq!(numbers.percent, Some(33));
    let told: Vec<_> =
        of(&found, FindingKind::Resume).iter().map(|one| (one.what.as_str(), one.evidence[0].seq)).collect();
    assert_eq!(told, [("interrupted again", 1), ("the run ended: failed", 6)]);
    let crashes: Vec<_> =
        of(&found, FindingKind::Crash).iter().map(|one| (one.what.as_str(), one.count)).collect();
    assert_eq!(crashes, [("driver: power loss", 3), ("run: failed", 1)]);
}

#[test]
fn resumes_that_work_are_no_finding() {
    let mut told = Told::new();
    for _ in 0..20 {
        told.then(resumed()).then(said(Channel::Text));
    }
    told.then(resumed()).then(ended("failed"));
    let found = told.found();
    assert_eq!(found.numbers.resumes.percent, Some(95));
    assert!(of(&found, FindingKind::Resume).is_empty());
}

#[test]
fn checkpoints_are_missed_only_where_there_could_have_been_some() {
    let ready = |safety_only| CheckpointReady { safety_only, ..CheckpointReady::default() };
    let mut told = Told::new();
    told.then(changed("a", None)).then(ready(false)).then(ready(false)).then(ready(true));
    told.session().then(changed("b", None)).then(ready(true));
    told.session().then(said(Channel::Text));
    told.session_of(Maker::Import).then(changed("c", None));
    let found = told.found();
    let numbers = found.numbers.checkpoints;
    assert_eq!((numbers.total, numbers.sessions, numbers.without), (2, 3, 1));
    assert_eq!(numbers.per_session_hundredths, 66);
    let [one] = of(&found, FindingKind::Checkpoint)[..] else { panic!("{:?}", found.findings) };
    assert_eq!(one.words, "1 of 3 sessions changed files and can be taken back to no checkpoint");
    assert_eq!((one.evidence[0].seq, one.evidence[0].text.as_str()), (1, "b"));
}

#[test]
fn where_the_money_went() {
    let mut told = Told::new();
    let spent = |micros: u64, outcome: &'static str| Spent {
        is_run: true,
        model: Some("opus"),
        day: "2026-01-02",
        outcome: Some(outcome),
        tokens: micros / 100,
        micros,
        ms: Some(60_000),
        ..Spent::default()
    };
    told.gatherer.spent(&spent(9_000_000, "timed_out"));
    for _ in 0..4 {
        told.session();
        told.gatherer.spent(&spent(250_000, "completed"));
    }
    let budget = BudgetExceeded { unit: Unit::Cost, used: 300_000, total: 250_000 };
    told.then(budget);
    let found = told.found();
    assert_eq!((found.numbers.micros, found.numbers.micros_of_bad_ends), (10_000_000, 9_000_000));
    assert_eq!((found.numbers.runs, found.numbers.runs_completed, found.numbers.runs_bad), (5, 4, 1));
    assert_eq!(found.numbers.time.runs_ms, 300_000);
    let money: Vec<_> =
        of(&found, FindingKind::Money).into_iter().map(|one| (one.words.as_str(), line(one))).collect();
    let words = "$9.00 of $10.00: 90 % of all money";
    assert_eq!(money, [(words, "segno run --cost 0.25"), (words, "segno run --run-cost 2")]);
    let look = &of(&found, FindingKind::Money)[0].evidence[0].look;
    assert_eq!(*look, format!("segno --session {} cost --by phase", SessionId::at(samples::at(10_000))));
    let one = of(&found, FindingKind::Budget)[0];
    assert_eq!((one.what.as_str(), line(one)), ("money", "segno run --cost 0.25"));
    let outcomes: Vec<_> =
        found.shares.outcomes.iter().map(|share| (share.name.as_str(), share.count)).collect();
    assert_eq!(outcomes, [("timed_out", 1), ("completed", 4)]);
}

#[test]
fn only_what_happened_since_a_moment() {
    let mut told = Told::since(Some(10));
    told.error("unknown", "early").error("unknown", "early").call("Bash", "make", "failed");
    told.then(resumed()).then(changed("a", None));
    told.seq = 20;
    told.error("unknown", "late").error("unknown", "late").then(changed("b", None));
    let found = told.found();
    assert_eq!((found.numbers.errors, found.numbers.calls.total, found.numbers.resumes.total), (2, 0, 0));
    assert_eq!(of(&found, FindingKind::Error)[0].what, "late");
    assert_eq!(of(&found, FindingKind::Checkpoint)[0].evidence[0].text, "b");
}

/// Whatever comes in whatever order: nothing panics, the same gives the same, and what is not asked for changes nothing.
#[test]
fn every_kind_of_event_in_any_order() {
    let all = samples::samples();
    let tell = |only_wanted: bool| {
        let mut told = Told::new();
        for round in 0..all.len() {
            for step in 0..all.len() {
                let event = &all[(round * 7 + step * 11) % all.len()];
                told.seq += 1;
                let mark = Mark { seq: told.seq, at: samples::at(told.seq.try_into().unwrap()), run: None };
                if !only_wanted || told.gatherer.wants(event.kind()) {
                    told.gatherer.event(&mark, event);
                }
            }
        }
        told.found()
    };
    let found = tell(true);
    assert!(found.numbers.resumes.total > 10 && !found.findings.is_empty());
    assert_eq!(found, tell(true));
    assert_eq!(found, tell(false), "an event that says something is not asked for");
}
