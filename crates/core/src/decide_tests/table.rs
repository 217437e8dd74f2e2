//! The status machine, written out: what each command may do in each status.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::json;

use crate::budget::TokenUse;
use crate::command::Command;
use crate::decide::decide;
use crate::decide::events_of_fact;
use crate::event::*;
use crate::fact::Fact;
use crate::input::Input;
use crate::refusal::Refusal;
use crate::status::Status;
use crate::story::*;

/// `ok`, or why not: `transition` (the status machine has no such step), `phase` and `not-active` (only an
/// active session), `ended` (only one that has not ended), `breaker`, `no-driver`, and `unknown` for what the
/// new status has swept away.
const TABLE: &str = "
                    active      paused      interrupted halted      completed   aborted     failed
Pause               ok          transition  transition  transition  transition  transition  transition
Resume              transition  ok          ok          breaker     transition  transition  transition
Resume/reset        transition  ok          ok          ok          transition  transition  transition
Interrupt           ok          transition  transition  transition  transition  transition  transition
Halt                ok          transition  transition  transition  transition  transition  transition
Complete            ok          transition  transition  transition  transition  transition  transition
Abort               ok          ok          ok          ok          transition  transition  transition
Fail                ok          ok          ok          transition  transition  transition  transition
AttachDriver        ok          ok          ok          ok          ended       ended       ended
DriverDetached      ok          ok          ok          ok          ok          ok          ok
MakeRequest         ok          ok          no-driver   ok          ended       ended       ended
AnswerRequest       ok          ok          ok          ok          unknown     unknown     unknown
AskQuestion         ok          ok          no-driver   ok          ended       ended       ended
AnswerQuestion      ok          ok          unknown     ok          ended       ended       ended
CloseQuestion       ok          ok          unknown     ok          unknown     unknown     unknown
TopicSet            ok          ok          ok          ok          ok          ok          ok
Arrange             ok          ok          ok          ok          ok          ok          ok
SetIntent           ok          ok          ok          ok          ended       ended       ended
SetProject          ok          ok          ok          ok          ok          ok          ok
SetGitBranch        ok          ok          ok          ok          ok          ok          ok
SetWorkflow         ok          ok          ok          ok          ended       ended       ended
AdvancePhase        ok          phase       phase       phase       phase       phase       phase
SetStep             ok          not-active  not-active  not-active  not-active  not-active  not-active
StartIteration      ok          not-active  not-active  not-active  not-active  not-active  not-active
StartAttempt        ok          not-active  not-active  not-active  not-active  not-active  not-active
VerifyPhase         ok          ok          ok          ok          ended       ended       ended
SetWorkflowState    ok          ok          ok          ok          ended       ended       ended
SetProgress         ok          ok          ok          ok          ended       ended       ended
TokensRecorded      ok          ok          ok          ok          ok          ok          ok
CostRecorded        ok          ok          ok          ok          ok          ok          ok
PriceByList         already     already     already     already     already     already     already
CountBelow          ok          ok          ok          ok          ok          ok          ok
SetBudget           ok          ok          ok          ok          ended       ended       ended
ExtendBudget        ok          ok          ok          ok          ended       ended       ended
RecordArtifact      ok          ok          ok          ok          ended       ended       ended
FileChanged         ok          ok          ok          ok          ok          ok          ok
HistoryNoted        ok          ok          ok          ok          ok          ok          ok
RecordOutput        ok          ok          ok          ok          ended       ended       ended
SetMetric           ok          ok          ok          ok          ended       ended       ended
AddTask             ok          ok          ok          ok          ended       ended       ended
EndTask             ok          ok          ok          ok          ended       ended       ended
SwitchAgent         ok          not-active  not-active  not-active  not-active  not-active  not-active
SetAgentState       ok          ok          ok          ok          ended       ended       ended
SetPosition         ok          ok          ok          ok          ended       ended       ended
ReachMilestone      ok          ok          ok          ok          ended       ended       ended
ReachBreakpoint     ok          not-active  not-active  not-active  not-active  not-active  not-active
ContinueBreakpoint  ok          ok          ok          ok          ended       ended       ended
Decide              ok          ok          ok          ok          ended       ended       ended
SwitchBranch        ok          ok          ok          ok          ended       ended       ended
ToolStarted         ok          ok          ok          ok          ok          ok          ok
ToolEnded           ok          ok          ok          ok          ok          ok          ok
SettleCall          unknown     unknown     unknown     unknown     unknown     unknown     unknown
MemoryUsed          ok          ok          ok          ok          ok          ok          ok
SetCache            ok          ok          ok          ok          ended       ended       ended
RemoveCache         ok          ok          ok          ok          ended       ended       ended
ErrorRecorded       ok          ok          ok          ok          ok          ok          ok
CreateCheckpoint    ok          ok          ok          ok          ended       ended       ended
ReadyCheckpoint     ok          ok          ok          ok          ok          ok          ok
FailCheckpoint      ok          ok          ok          ok          ok          ok          ok
PinCheckpoint       ok          ok          ok          ok          ok          ok          ok
DropCheckpoint      ok          ok          ok          ok          ok          ok          ok
InvalidateCheckpoints ok        ok          ok          ok          ended       ended       ended
RecordRestore       ok          ok          ok          ok          ok          ok          ok
RestoreState        ok          ok          ok          ok          ended       ended       ended
StartRun            ok          not-active  not-active  not-active  not-active  not-active  not-active
RunNamed            ok          ok          ok          ok          ok          ok          ok
AdoptRun            ok          ok          ok          ok          ok          ok          ok
EndRun              ok          ok          ok          ok          ok          ok          ok
Said                ok          ok          ok          ok          ok          ok          ok
TurnCompleted       ok          ok          ok          ok          ok          ok          ok
Reported            ok          ok          ok          ok          ok          ok          ok
RecoveryChosen      ok          ok          ok          ok          ok          ok          ok
ResumeAttempted     ok          ok          ok          ok          ok          ok          ok
Loop                ok          ok          ok          ok          ended       ended       ended
";

/// Where a session may go from where.
const STEPS: &str = "
active       paused interrupted halted completed aborted failed
paused       active aborted failed
interrupted  active aborted failed
halted       active aborted
completed
aborted
failed
";

/// A new command or fact does not compile until it is named here, and does not pass until it has a row.
macro_rules! names {
    (commands: $($command:ident)*; facts: $($fact:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($command),)* $(stringify!($fact),)*];
        const FACTS: &[&str] = &[$(stringify!($fact)),*];
        fn name(input: &Input) -> &'static str {
            match input {
                $(Input::Command(Command::$command { .. }) => stringify!($command),)*
                $(Input::Fact(Fact::$fact { .. }) => stringify!($fact),)*
            }
        }
    };
}

names! {
    commands:
    Pause Resume Interrupt Halt Complete Abort Fail AttachDriver MakeRequest AnswerRequest AskQuestion AnswerQuestion CloseQuestion Arrange SetIntent
    SetProject SetGitBranch SetWorkflow AdvancePhase SetStep StartIteration StartAttempt VerifyPhase
    SetWorkflowState SetProgress CountBelow PriceByList SetBudget ExtendBudget RecordArtifact RecordOutput SetMetric
    AddTask EndTask SwitchAgent SetAgentState SetPosition ReachMilestone ReachBreakpoint
    ContinueBreakpoint Decide SwitchBranch SettleCall SetCache RemoveCache CreateCheckpoint
    ReadyCheckpoint FailCheckpoint PinCheckpoint DropCheckpoint InvalidateCheckpoints RecordRestore
    RestoreState StartRun AdoptRun EndRun Loop;
    facts:
    DriverDetached TopicSet TokensRecorded CostRecorded FileChanged HistoryNoted ToolStarted ToolEnded
    MemoryUsed ErrorRecorded RunNamed Said TurnCompleted Reported RecoveryChosen ResumeAttempted
}

/// One of each, with values that nothing is wrong with.
fn every_input() -> Vec<(String, Input)> {
    let text = || "x".to_owned();
    let inputs = inputs![
        pause(),
        resume(),
        interrupt(),
        Command::Halt { reason: "x".into() },
        Command::Complete { summary: None },
        Command::Abort { reason: None },
        Command::Fail { reason: None },
        attach(2),
        Fact::DriverDetached { epoch: 1 },
        Command::MakeRequest { request: Request::Pause, details: None },
        Command::AnswerRequest { request: 3, obeyed: true, details: None },
        ask_question("another"),
        Command::AnswerQuestion(QuestionAnswered {
            id: "asked".to_owned(),
            allow: true,
            details: None,
            by: text(),
        }),
        Command::CloseQuestion(QuestionClosed { id: "asked".to_owned(), why: text() }),
        Fact::TopicSet { topic: text() },
        Command::Arrange(SessionArranged { tags_added: vec![text()], ..SessionArranged::default() }),
        Command::SetIntent { intent: "x".into() },
        Command::SetProject { project: Project { path: text(), ..Project::default() } },
        Command::SetGitBranch { branch: Some(text()), commit: None },
        Command::SetWorkflow { workflow: Workflow { name: text(), phases: vec![] } },
        phase("x"),
        Command::SetStep { step: 1, of: None },
        Command::StartIteration,
        Command::StartAttempt,
        Command::VerifyPhase { phase: None, check: text(), verdict: Verdict::Pass, details: None },
        Command::SetWorkflowState { state: json!({}) },
        Command::SetProgress { percent: 1 },
        tokens(1, Source::Hand),
        Fact::CostRecorded { micros: 1, source: Source::Hand },
        Command::PriceByList {
            rates: crate::rates::Rates { model: text(), as_of: text(), ..Default::default() }
        },
        Command::CountBelow { run: text(), tokens: TokenUse::of(1), micros: 1 },
        Command::SetBudget {
            unit: Unit::Tokens,
            total: Some(1),
            hard: None,
            warn_percent: None,
            count: None,
        },
        extend(Unit::Tokens, 1),
        Command::RecordArtifact { path: text(), artifact_type: Change::Created, phase: None },
        Fact::FileChanged { path: text(), change: Change::Deleted, call: None },
        Fact::HistoryNoted { action: text(), phase: None, details: None },
        Command::RecordOutput { name: text(), kind: OutputKind::Code, content: "x".into() },
        Command::SetMetric { name: text(), value: Metric::Flag(true) },
        Command::AddTask { text: "x".into() },
        Command::EndTask { task: 1, done: true },
        Command::SwitchAgent { to: text() },
        Command::SetAgentState { agent: text(), active: true, state: json!(1) },
        Command::SetPosition { file: Some(text()), line: Some(1) },
        Command::ReachMilestone { name: text(), details: None },
        Command::ReachBreakpoint { name: text(), details: None },
        Command::ContinueBreakpoint { details: None },
        Command::Decide {
            question: "x".into(),
            choice: "y".into(),
            reason: None,
            alternatives: vec![],
            parent: None,
            branch: None,
        },
        Command::SwitchBranch { branch: text(), from: None },
        start("x", Source::Hook),
        end("x", CallEnd::Completed),
        Command::SettleCall { call: text(), end: CallEnd::Completed, output: None, evidence: text() },
        Fact::MemoryUsed { usage: MemoryUse::Query, source: None, query: "x".into(), result: None },
        Command::SetCache { key: text(), value: json!(1) },
        Command::RemoveCache { key: "kept".to_owned() },
        Fact::ErrorRecorded { message: "x".into(), error_kind: None },
        Command::CreateCheckpoint { name: None, reason: CheckpointReason::Asked },
        Command::ReadyCheckpoint(Box::new(CheckpointReady { ordinal: 1, ..CheckpointReady::default() })),
        Command::FailCheckpoint { ordinal: 1, why: "x".into() },
        Command::PinCheckpoint { ordinal: 1, pinned: true },
        Command::DropCheckpoint { ordinal: 1, why: text() },
        Command::InvalidateCheckpoints { after: 1 },
        Command::RecordRestore(FilesRestored { to: 1, safety: 1, ..FilesRestored::default() }),
        Command::RestoreState { to: 1, state: Box::new(Story::new().state) },
        start_run("r2"),
        Fact::RunNamed(RunNamed { run: text(), native_id: text(), model: None, version: None }),
        Command::AdoptRun { run: "r1".to_owned(), epoch: 2 },
        end_run("r1", "completed"),
        Fact::Said { channel: Channel::Text, text: "x".into(), message: None, parent: None },
        Fact::TurnCompleted(TurnCompleted::default()),
        Fact::Reported { what: text(), body: json!({}) },
        Fact::RecoveryChosen(Box::default()),
        Fact::ResumeAttempted(ResumeAttempted { attempt: 1, of: 1, ..ResumeAttempted::default() }),
        Command::Loop(Box::new(crate::looping::LoopCommand::Start {
            plan: Box::new(looping_samples::plan()),
            parent: None,
            item: None,
        })),
    ];
    let reset = Command::Resume { reset_breaker: true, details: None };
    let reset = ("Resume/reset".to_owned(), reset.into());
    inputs.into_iter().map(|input| (name(&input).to_owned(), input)).chain([reset]).collect()
}

/// A session in this status that has what the commands speak of.
fn session(status: Status, input: &Input) -> Story {
    let mut story = Story::told(inputs![
        attach(1),
        Command::MakeRequest { request: Request::Stop, details: None },
        Command::AddTask { text: "x".into() },
        Command::SetCache { key: "kept".to_owned(), value: json!(1) },
        Command::CreateCheckpoint { name: None, reason: CheckpointReason::Asked },
        Command::CreateCheckpoint { name: None, reason: CheckpointReason::Asked },
    ]);
    assert_eq!(story.state.requests[0].seq, 3);
    story.ok(ask_question("asked"));
    if matches!(input, Input::Command(Command::ContinueBreakpoint { .. })) {
        story.ok(Command::ReachBreakpoint { name: "b".to_owned(), details: None });
    }
    if matches!(input, Input::Command(Command::AdoptRun { .. })) {
        story.ok(start_run("r1"));
    }
    story.go_to(status)
}

fn word(verdict: &Result<Vec<Event>, Refusal>) -> &'static str {
    match verdict {
        Ok(_) => "ok",
        Err(Refusal::InvalidTransition { .. }) => "transition",
        Err(Refusal::InvalidForPhaseAdvance { .. }) => "phase",
        Err(Refusal::NotActive { .. }) => "not-active",
        Err(Refusal::Ended { .. }) => "ended",
        Err(Refusal::BreakerOpen) => "breaker",
        Err(Refusal::NoDriver) => "no-driver",
        Err(Refusal::Unknown { .. }) => "unknown",
        Err(Refusal::NewerEvents { .. }) => "newer",
        Err(Refusal::BadValue { .. }) => "bad",
        Err(Refusal::TooMany { .. }) => "too-many",
        Err(Refusal::AtBreakpoint { .. }) => "breakpoint",
        Err(Refusal::UnknownPhase { .. }) => "unknown-phase",
        Err(Refusal::AskedBefore { .. }) => "asked-before",
        Err(Refusal::AnotherFirst { .. }) => "another-first",
        Err(Refusal::DayCap { .. } | Refusal::SharedCap { .. }) => "capped",
        Err(Refusal::Already(_)) => "already",
    }
}

fn rows() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut lines = TABLE.trim_start_matches('\n').lines();
    let head: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(head, Status::ALL.map(Status::as_str));
    let row = |line: &'static str| {
        let mut cells = line.split_whitespace();
        (cells.next().unwrap(), cells.collect::<Vec<_>>())
    };
    lines.map(row).collect()
}

#[test]
fn the_table_holds() {
    let rows = rows();
    let mut wrong = Vec::new();
    for (row, input) in every_input() {
        let expected = rows.get(row.as_str()).unwrap_or_else(|| panic!("no row for {row}"));
        assert_eq!(expected.len(), Status::ALL.len(), "{row}");
        for (status, expected) in Status::ALL.into_iter().zip(expected) {
            let story = session(status, &input);
            let verdict = decide(&story.state, input.clone());
            if word(&verdict) != *expected {
                wrong.push(format!("{row} when {status}: {verdict:?}, want {expected}"));
            }
            if let Ok(events) = &verdict {
                assert!(!events.is_empty(), "{row} when {status} says nothing");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_has_a_row_for_every_command_and_fact_and_no_other() {
    let named: BTreeSet<&str> = NAMES.iter().copied().collect();
    let tabled: BTreeSet<&str> = rows().into_keys().filter_map(|row| row.split('/').next()).collect();
    assert_eq!(tabled, named);
    let tried: BTreeSet<&str> = every_input().iter().map(|(_, input)| name(input)).collect();
    assert_eq!(tried, named);
}

/// What may wait in a spool follows from the type: a fact is refused in no status, makes only events that a spool takes,
/// and makes the same ones without a state unless it says that it depends on one.
#[test]
fn nobody_refuses_a_fact() {
    let mut seen = BTreeSet::new();
    for (row, input) in every_input() {
        let Some(fact) = input.fact().cloned() else { continue };
        seen.insert(name(&input));
        let alone = events_of_fact(None, fact.clone()).unwrap();
        for status in Status::ALL {
            let state = session(status, &input).state;
            let events = decide(&state, input.clone()).unwrap_or_else(|why| panic!("{row}: {why}"));
            assert_eq!(events[0].kind(), alone[0].event().kind(), "{row}");
            for event in &events {
                assert!(FactEvent::new(event.clone()).is_some(), "{row} makes {}", event.kind());
            }
            if !fact.depends_on_state() {
                let alone: Vec<Event> = alone.iter().map(|event| event.event().clone()).collect();
                assert_eq!(events, alone, "{row} when {status}");
            }
        }
    }
    assert_eq!(seen, FACTS.iter().copied().collect());
}

#[test]
fn every_refusal_of_the_table_says_so_in_words() {
    for (row, input) in every_input() {
        for status in Status::ALL {
            let Err(refusal) = decide(&session(status, &input).state, input.clone()) else { continue };
            let words = refusal.to_string();
            let says = match refusal {
                Refusal::InvalidTransition { .. } => {
                    words.starts_with(&format!("Cannot transition from {status} to "))
                }
                Refusal::InvalidForPhaseAdvance { .. }
                | Refusal::NotActive { .. }
                | Refusal::Ended { .. } => {
                    words.starts_with(&format!("a session that is {status} "))
                        && words.ends_with(input.verb())
                }
                _ => !words.is_empty(),
            };
            assert!(says, "{row}: {words}");
            assert!(refusal.code().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        }
    }
}

#[test]
fn steps_go_where_the_documentation_says() {
    let allowed: BTreeMap<Status, BTreeSet<Status>> = STEPS
        .trim()
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace().map(|word| word.parse::<Status>().unwrap());
            (words.next().unwrap(), words.collect())
        })
        .collect();
    for from in Status::ALL {
        let to: BTreeSet<Status> = Status::ALL.into_iter().filter(|to| from.may_become(*to)).collect();
        assert_eq!(to, allowed[&from], "from {from}");
        assert_eq!(to.is_empty(), from.is_terminal());
        assert_ne!(from.is_open(), from.is_terminal());
    }
}

/// Whatever the rules let through leads to where the step says, with what belongs to that status.
#[test]
fn a_step_arrives() {
    for (row, input) in every_input() {
        let crate::command::Need::Step(to) = input.need() else { continue };
        for from in Status::ALL {
            let mut story = session(from, &input);
            let before = story.state.clone();
            if decide(&story.state, input.clone()).is_err() {
                continue;
            }
            story.ok(input.clone());
            let state = &story.state;
            assert_eq!(state.status, to, "{row}");
            assert_eq!(state.completed_at, to.is_terminal().then_some(state.updated_at), "{row}");
            assert!(state.counts.history > before.counts.history, "{row} is a line of the history");
            if to.is_terminal() || to == Status::Interrupted {
                assert_eq!(state.driver, None, "{row}");
            }
            assert_eq!(state.is_resumable(), !to.is_terminal());
        }
    }
}

#[test]
fn foreign_words_for_statuses_are_understood() {
    let words = [
        ("created", Status::Active),
        ("RUNNING", Status::Active),
        ("suspended", Status::Interrupted),
        ("crashed", Status::Interrupted),
        ("abandoned", Status::Aborted),
    ];
    for (word, status) in words {
        assert_eq!(word.parse(), Ok(status));
    }
    for status in Status::ALL {
        assert_eq!(status.as_str().parse(), Ok(status));
        assert_eq!(serde_json::to_value(status).unwrap(), json!(status.as_str()));
    }
    assert!("expired".parse::<Status>().is_err());
}

#[test]
fn only_a_driven_session_is_interrupted() {
    assert_eq!(Story::new().refused(interrupt()), Refusal::NoDriver);
    let let_go = Story::told(inputs![attach(1), Fact::DriverDetached { epoch: 1 }]);
    assert_eq!(let_go.refused(interrupt()), Refusal::NoDriver);
}

#[test]
fn a_driver_that_was_replaced_lets_go_of_nothing() {
    let mut story = Story::told(inputs![attach(1), attach(2), Fact::DriverDetached { epoch: 1 }]);
    assert_eq!(story.state.driver.as_ref().map(|driver| driver.epoch), Some(2));
    story.ok(Fact::DriverDetached { epoch: 2 });
    assert_eq!(story.state.driver, None);
}

#[test]
fn requests_wait_for_their_answer() {
    let ask = |request| Command::MakeRequest { request, details: None };
    assert_eq!(Story::new().refused(ask(Request::Pause)), Refusal::NoDriver);
    let mut story = Story::told(inputs![attach(1), ask(Request::Pause), ask(Request::Stop)]);
    let open = |story: &Story| story.state.requests.iter().map(|open| open.seq).collect::<Vec<_>>();
    assert_eq!(open(&story), [3, 4]);
    let answer = |request| Command::AnswerRequest { request, obeyed: true, details: None };
    story.ok(answer(3));
    assert_eq!(open(&story), [4]);
    assert_eq!(story.refused(answer(3)), Refusal::Unknown { what: "open request", id: "3".to_owned() });
    for _ in 1..crate::limits::ENTRIES {
        story.ok(ask(Request::Pause));
    }
    assert_eq!(story.refused(ask(Request::Abort)), Refusal::AskedBefore { request: Request::Stop });
    let full = Refusal::TooMany { what: "open requests", limit: crate::limits::ENTRIES };
    assert_eq!(story.refused(ask(Request::Pause)), full);
}

fn ask_question(name: &str) -> Command {
    let (id, tool) = (name.to_owned(), "Bash".to_owned());
    let input = "{\"command\":\"make\"}".into();
    Command::AskQuestion(Box::new(QuestionAsked { id, call: None, tool, input, until: None }))
}

#[test]
fn a_question_is_answered_once_and_by_its_own_name() {
    let answer = |question: &str, allow: bool| {
        let (id, by) = (question.to_owned(), "terminal".to_owned());
        Command::AnswerQuestion(QuestionAnswered { id, allow, details: None, by })
    };
    let close = |question: &str| {
        let why = "answered".to_owned();
        Command::CloseQuestion(QuestionClosed { id: question.to_owned(), why })
    };
    let unknown = |id: &str| Refusal::Unknown { what: "open question", id: id.to_owned() };
    assert_eq!(Story::new().refused(ask_question("a")), Refusal::NoDriver);
    let mut story = Story::told([attach(1), ask_question("a")]);
    assert!(matches!(story.refused(ask_question("a")), Refusal::Already(_)));
    assert_eq!(story.refused(answer("b", true)), unknown("b"));
    story.ok(answer("a", false));
    let again = Refusal::Already("question a was answered already: no, by terminal".to_owned());
    assert_eq!(story.refused(answer("a", true)), again);
    assert_eq!(story.state.questions[0].answer.as_ref().map(|given| given.allow), Some(false));
    story.ok(close("a"));
    assert_eq!(story.refused(close("a")), unknown("a"));
    // Who asked is gone: there is nobody to be answered.
    story.ok(ask_question("c"));
    story.ok(interrupt());
    assert_eq!(story.refused(answer("c", true)), unknown("c"));
    let mut story = Story::told([attach(1), start_run("r1"), ask_question("d")]);
    story.ok(end_run("r1", "completed"));
    assert_eq!(story.state.questions, []);
}

#[test]
fn a_driver_does_what_it_was_asked_for_first() {
    let ask = |request| Command::MakeRequest { request, details: None };
    let asked = |request| Story::told([attach(1), ask(request)]);
    let other = |request| Refusal::AskedBefore { request };
    assert_eq!(asked(Request::Complete).refused(ask(Request::Abort)), other(Request::Complete));
    assert_eq!(asked(Request::Complete).refused(ask(Request::Pause)), other(Request::Complete));
    assert_eq!(asked(Request::Pause).refused(ask(Request::Abort)), other(Request::Pause));
    assert_eq!(asked(Request::Kill).refused(ask(Request::Complete)), other(Request::Kill));
    // The same again, or an end of the run only, takes nothing from whoever asked before.
    let mut story = asked(Request::Complete);
    for request in [Request::Complete, Request::Stop, Request::Kill, Request::Complete] {
        story.ok(ask(request));
    }
    assert_eq!(story.refused(ask(Request::Abort)), other(Request::Complete));
}

#[test]
fn tokens_of_a_session_that_ended_still_count() {
    let mut story = Story::new().go_to(Status::Completed);
    story.ok(Fact::TokensRecorded { tokens: TokenUse::of(9), estimated: true, source: Source::Stream });
    assert_eq!(story.state.budget.tokens_used, 9);
    assert_eq!(story.state.status, Status::Completed);
}
