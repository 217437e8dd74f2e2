//! A thousand sessions that stopped in every phase, status and shape of calls: detection, options and brief are what a
//! model says that knows nothing of events.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;
use proptest::test_runner::RngAlgorithm;
use proptest::test_runner::TestRng;
use proptest::test_runner::TestRunner;
use segno_core::Command;
use segno_core::Fact;
use segno_core::Input;
use segno_core::Status;
use segno_core::detect::Action;
use segno_core::detect::Expired;
use segno_core::event::CallEnd;
use segno_core::event::CheckpointReady;
use segno_core::event::CheckpointReason;
use segno_core::event::InterruptReason;
use segno_core::event::PauseReason;
use segno_core::event::Recovery;
use segno_core::event::RunStarted;
use segno_core::event::Source;
use segno_engine::Engine;
use segno_engine::lease::here;
use segno_engine::resume::BriefLimits;
use serde_json::json;

use crate::common::Room;

/// How many sessions there are.
const SESSIONS: u32 = 1_000;

/// One thing that happens in a session.
#[derive(Clone, Debug)]
enum Thing {
    /// The next phase.
    Phase,
    /// The next turn of the loop.
    Turn,
    /// A call that ends so, or not at all.
    Call(Option<CallEnd>),
    /// A checkpoint, and what it is like.
    Checkpoint { ready: bool, aside: bool, of_dead_run: bool },
    /// All checkpoints after the first are rolled back behind.
    Rollback,
    /// Something to do.
    Task,
}

/// How a session stands in the end.
#[derive(Clone, Copy, Debug)]
enum Stand {
    Active,
    Paused(PauseReason),
    Interrupted(InterruptReason),
    Halted,
    Completed,
    Aborted,
    Failed,
}

#[derive(Clone, Debug)]
struct Plan {
    things: Vec<Thing>,
    stand: Stand,
    file: Option<&'static str>,
    wanted: Option<&'static str>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let ends = vec![CallEnd::Completed, CallEnd::Failed, CallEnd::Denied];
    let thing = prop_oneof![
        2 => Just(Thing::Phase),
        1 => Just(Thing::Turn),
        5 => option::of(select(ends)).prop_map(Thing::Call),
        2 => (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(ready, aside, of_dead_run)| {
            Thing::Checkpoint { ready, aside: aside && of_dead_run, of_dead_run: of_dead_run && !aside }
        }),
        1 => Just(Thing::Rollback),
        1 => Just(Thing::Task),
    ];
    let pauses = [
        PauseReason::Asked,
        PauseReason::Signal,
        PauseReason::Budget,
        PauseReason::Limit,
        PauseReason::Error,
    ];
    let deaths = [
        InterruptReason::Crash,
        InterruptReason::Killed,
        InterruptReason::PowerLoss,
        InterruptReason::Unknown,
    ];
    let stand = prop_oneof![
        1 => Just(Stand::Active),
        2 => select(pauses.to_vec()).prop_map(Stand::Paused),
        4 => select(deaths.to_vec()).prop_map(Stand::Interrupted),
        1 => Just(Stand::Halted),
        1 => Just(Stand::Completed),
        1 => Just(Stand::Aborted),
        1 => Just(Stand::Failed),
    ];
    let file = || option::of(select(vec!["a.md", "b.md"]));
    (vec(thing, 0..14), stand, file(), file()).prop_map(|(things, stand, file, wanted)| Plan {
        things,
        stand,
        file,
        wanted,
    })
}

/// What the model knows of a checkpoint.
#[derive(Clone, Debug)]
struct Sign {
    id: String,
    usable: bool,
    done_before: u64,
}

/// What the model expects.
#[derive(Debug, Default)]
struct Model {
    phase: Option<usize>,
    turn: u64,
    open: Vec<usize>,
    ended: Vec<(usize, CallEnd)>,
    signs: Vec<Sign>,
    done: u64,
    tasks: u64,
}

const PHASES: [&str; 5] = ["RED", "GREEN", "REFACTOR", "DOCUMENT", "SHIP"];

/// The commands that bring a plan about, and what is to be expected then.
fn play(plan: &Plan) -> (Vec<Input>, Model) {
    let mut model = Model::default();
    let mut inputs: Vec<Input> = vec![Command::AttachDriver { epoch: 1, holder: here("model") }.into()];
    let file = plan.file.map(ToOwned::to_owned);
    let run = RunStarted { run: "run-1".into(), agent: "claude".into(), file, ..RunStarted::default() };
    inputs.push(Command::StartRun(Box::new(run)).into());
    let mut calls = 0;
    for thing in &plan.things {
        match thing {
            Thing::Phase => {
                let next = model.phase.map_or(0, |at| at + 1);
                if next >= PHASES.len() {
                    continue;
                }
                let left = model.phase.map_or("start", |at| PHASES[at]).to_lowercase();
                inputs.push(Command::AdvancePhase { to: PHASES[next].into(), step: None, of: None }.into());
                (model.phase, model.turn) = (Some(next), 0);
                model.done += 1;
                // Leaving a phase sets a sign, which has no files here.
                let id = format!("cp-{:02}-{left}", model.signs.len() + 1);
                model.signs.push(Sign { id, usable: false, done_before: model.done });
            }
            Thing::Turn => {
                inputs.push(Command::StartIteration.into());
                model.turn += 1;
            }
            Thing::Call(end) => {
                calls += 1;
                let (call, tool) = (format!("call-{calls}"), "Bash".to_owned());
                let input = json!({ "command": format!("do no. {calls}.") });
                let source = Source::Hook;
                inputs.push(
                    Fact::ToolStarted { call: call.clone(), tool, input, write_ahead: true, source }.into(),
                );
                model.done += 1;
                match end {
                    Some(end) => {
                        inputs.push(
                            Fact::ToolEnded { call, tool: None, end: *end, output: None, source }.into(),
                        );
                        model.ended.push((calls, *end));
                    }
                    None => model.open.push(calls),
                }
            }
            Thing::Checkpoint { ready, aside, of_dead_run } => {
                let reason = match (aside, of_dead_run) {
                    (true, _) => CheckpointReason::BeforeRestore,
                    (_, true) => CheckpointReason::Interrupt,
                    _ => CheckpointReason::Asked,
                };
                let ordinal = model.signs.len() as u64 + 1;
                inputs.push(Command::CreateCheckpoint { name: Some("sign".into()), reason }.into());
                if *ready {
                    let ready =
                        CheckpointReady { ordinal, safety_only: *aside, ..CheckpointReady::default() };
                    inputs.push(Command::ReadyCheckpoint(Box::new(ready)).into());
                }
                let usable = *ready && !aside && !of_dead_run;
                model.signs.push(Sign {
                    id: format!("cp-{ordinal:02}-sign"),
                    usable,
                    done_before: model.done,
                });
            }
            Thing::Rollback => {
                if model.signs.len() > 1 {
                    inputs.push(Command::InvalidateCheckpoints { after: 1 }.into());
                    model.signs.iter_mut().skip(1).for_each(|sign| sign.usable = false);
                }
            }
            Thing::Task => {
                model.tasks += 1;
                inputs.push(Command::AddTask { text: format!("task {}", model.tasks).into() }.into());
            }
        }
    }
    let stand = match plan.stand {
        Stand::Active => None,
        Stand::Paused(reason) => Some(Command::Pause { reason, details: None }),
        Stand::Interrupted(reason) => Some(Command::Interrupt { reason, details: None, at: None }),
        Stand::Halted => Some(Command::Halt { reason: "stuck".into() }),
        // It sets a last sign, which is of no interest to a session that has ended.
        Stand::Completed => Some(Command::Complete { summary: None }),
        Stand::Aborted => Some(Command::Abort { reason: None }),
        Stand::Failed => Some(Command::Fail { reason: None }),
    };
    inputs.extend(stand.map(Input::from));
    (inputs, model)
}

/// What to do about it: action, reason, message.
fn expected_detection(plan: &Plan) -> (Action, Option<Expired>, Option<String>) {
    let ended = |text: &str| (Action::CreateNew, Some(Expired::Ended), Some(text.to_owned()));
    match plan.stand {
        Stand::Halted => {
            (Action::OfferReset, Some(Expired::BreakerOpen), Some("Circuit Breaker OPEN: stuck".to_owned()))
        }
        Stand::Completed => ended("Session completed successfully"),
        Stand::Aborted => ended("Session was abandoned"),
        Stand::Failed => ended("Session failed and cannot be resumed"),
        Stand::Active | Stand::Paused(_) | Stand::Interrupted(_) => match plan.wanted {
            Some(wanted) if plan.file != Some(wanted) => {
                let text =
                    format!("PRP mismatch: session={}, requested={wanted}", plan.file.unwrap_or("(none)"));
                (Action::CreateNew, Some(Expired::OtherWork), Some(text))
            }
            _ => (Action::OfferResume, None, None),
        },
    }
}

fn check(room: &Room, engine: &Engine, plan: &Plan) -> Result<(), TestCaseError> {
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let (commands, model) = play(plan);
    engine.act_all(id, commands, None).unwrap();

    let found = engine.detect_session(id, plan.wanted).unwrap();
    prop_assert!(found.found);
    prop_assert_eq!((found.action, found.expired, found.reason), expected_detection(plan));

    let (state, options) = engine.recovery_options(id).unwrap();
    let died = matches!(plan.stand, Stand::Interrupted(_));
    let doubts = if died { model.open.len() } else { 0 };
    prop_assert_eq!(options.in_doubt.len(), doubts);
    let sign = model.signs.iter().rev().find(|sign| sign.usable);
    let kinds: Vec<Recovery> = options.offered.iter().map(|option| option.recovery).collect();
    let mut expected = vec![Recovery::Live, Recovery::Fresh];
    if let Some(sign) = sign {
        expected.insert(0, Recovery::Checkpoint);
        prop_assert_eq!(options.offered[0].target.as_deref(), Some(sign.id.as_str()));
        prop_assert_eq!(options.offered[0].actions_lost, model.done - sign.done_before);
    }
    prop_assert_eq!(kinds, expected);
    let best: Vec<Recovery> =
        options.offered.iter().filter(|option| option.recommended).map(|option| option.recovery).collect();
    let safe = if sign.is_some() && doubts > 0 { Recovery::Checkpoint } else { Recovery::Live };
    prop_assert_eq!(best, vec![safe], "exactly one is recommended");
    let live = options.offered.iter().find(|option| option.recovery == Recovery::Live).unwrap();
    prop_assert!(live.loses.starts_with("loses nothing"));
    prop_assert_eq!(live.loses.contains("in doubt"), doubts > 0);

    let refused = engine.refuse_resume(&state, false).is_err();
    let ended = matches!(plan.stand, Stand::Completed | Stand::Aborted | Stand::Failed | Stand::Halted);
    prop_assert_eq!(refused, ended);
    prop_assert_eq!(engine.refuse_resume(&state, true).is_err(), state.status.is_terminal());

    let report = engine.recovery_report(&state).unwrap();
    let stops = matches!(state.status, Status::Paused | Status::Interrupted | Status::Halted);
    prop_assert_eq!(report.is_some(), stops);
    if let Some(report) = report {
        prop_assert_eq!(report.in_doubt, model.open.len() as u64, "open when it stopped");
        prop_assert_eq!(report.last_known_state.phase.as_deref(), model.phase.map(|at| PHASES[at]));
        prop_assert_eq!(report.last_known_state.agent.as_deref(), Some("claude"));
        prop_assert_eq!(report.recovery_options, options.offered);
    }

    let limits = BriefLimits { tokens: 20_000, entries: 12 };
    let brief = engine.brief(id, limits).unwrap().text(limits);
    prop_assert_eq!(brief.contains("IN DOUBT"), !model.open.is_empty(), "{}", brief);
    for call in &model.open {
        let line = format!("Bash: `do no. {call}.`");
        prop_assert!(brief.contains(&line), "{} of {}", line, brief);
    }
    // What failed stands apart from what is done.
    let mut from = 0;
    let mut told = 0;
    for wanted in [CallEnd::Completed, CallEnd::Failed] {
        for (call, end) in model.ended.iter().rev().filter(|(_, end)| *end == wanted).take(12) {
            let line = format!("Bash `do no. {call}.` ({})", end.as_str());
            let at = brief[from..].find(&line);
            prop_assert!(at.is_some(), "the newest first: {} of {}", line, brief);
            from += at.unwrap();
            told += 1;
        }
    }
    prop_assert_eq!(brief.matches("- Bash `do no.").count(), told);
    let phase = model.phase.map(|at| format!("Phase: {}\n", PHASES[at]));
    prop_assert_eq!(brief.contains("Phase: "), phase.is_some());
    prop_assert!(phase.is_none_or(|phase| brief.contains(&phase)), "{}", brief);
    prop_assert_eq!(brief.contains(&format!("Iteration: {}\n", model.turn)), model.turn > 0);
    prop_assert_eq!(brief.contains("Still to do:"), model.tasks > 0);
    if let Stand::Interrupted(reason) = plan.stand {
        let why = format!("Stopped because: {}", reason.as_str());
        prop_assert!(brief.contains(&why), "{}", brief);
    }
    Ok(())
}

#[test]
fn a_thousand_sessions_that_stopped() {
    let room = Room::new();
    let engine = room.quiet();
    let config = Config { cases: SESSIONS, failure_persistence: None, ..Config::default() };
    // The same thousand every time.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner.run(&plans(), |plan| check(&room, &engine, &plan)).unwrap();
}
