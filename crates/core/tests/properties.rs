//! What holds of every session, whatever is asked of it and in whatever order.

#![expect(clippy::unwrap_used, reason = "all of this is a test")]

#[path = "properties/arb.rs"]
mod arb;
#[path = "properties/journal.rs"]
mod journal;

use std::collections::BTreeSet;

use journal::Journal;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use segno_core::Command;
use segno_core::Fact;
use segno_core::Input;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::event::*;
use segno_core::fingerprint;
use segno_core::limits;
use serde_json::Value;

/// The largest state there can be: a thousand open calls and a thousand in doubt, each with an id, a tool and
/// an input of 200 characters of four bytes, are most of it.
const LARGEST: usize = 8 * 1024 * 1024;
/// What 3,000 commands of all kinds leave behind.
const USUAL: usize = 512 * 1024;

/// Half of what is usual (or of `PROPTEST_CASES`): each case is long.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases / 2, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn live_and_folded_agree_and_the_invariants_hold(lines in vec(arb::line(), 1..=120)) {
        let mut journal = Journal::new();
        for (command, at, run) in lines {
            journal.ask(command, at, run)?;
        }
        journal.finish()?;
    }

    #[test]
    fn text_reads_back(text in arb::text()) {
        let json = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text);
    }

    #[test]
    fn timestamps_and_ids_read_back(micros in any::<i64>()) {
        let at = Timestamp::from_micros(micros);
        prop_assert_eq!(at.to_string().parse::<Timestamp>().unwrap(), at);
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&serde_json::to_string(&at).unwrap()).unwrap(), at);
        let id = SessionId::at(at);
        prop_assert_eq!(id.to_string().len(), 30);
        prop_assert_eq!(id.to_string().parse::<SessionId>().unwrap(), id);
    }

    #[test]
    fn names_sort_as_their_moments_do(a in any::<i64>(), b in any::<i64>()) {
        let [a, b] = [a, b].map(Timestamp::from_micros);
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        prop_assert_eq!(a.cmp(&b), SessionId::at(a).to_string().cmp(&SessionId::at(b).to_string()));
    }

    #[test]
    fn a_fingerprint_takes_anything(text in arb::string()) {
        let print = fingerprint(&text);
        prop_assert!(print.len() == 16 && print.bytes().all(|b| b.is_ascii_hexdigit()), "{}", print);
    }

    #[test]
    fn a_fingerprint_ignores_the_line(before in arb::string(), a: u32, b: u32, after in arb::string()) {
        let at = |line: u32| fingerprint(&format!("{before} line {line} {after}"));
        prop_assert_eq!(at(a), at(b));
        let at = |line: u32| fingerprint(&format!("{before} src/main.rs:{line}: {after}"));
        prop_assert_eq!(at(a), at(b));
    }
}

/// Without chance, so that a kind of event that no command leads to is noticed every time.
#[test]
fn many_commands_reach_every_kind_and_leave_a_small_state() {
    let mut runner = TestRunner::deterministic();
    let line = arb::line();
    let mut journal = Journal::new();
    for _ in 0..3_000 {
        let (input, at, run) = line.new_tree(&mut runner).unwrap().current();
        // One session that goes on, not three thousand words to one that has ended.
        let end = |command: &Command| {
            matches!(command, Command::Complete { .. } | Command::Abort { .. } | Command::Fail { .. })
        };
        if !input.command().is_some_and(end) {
            journal.ask(input, at, run).unwrap();
        }
    }
    assert!(size(&journal.live) < USUAL, "{}", size(&journal.live));
    journal.finish().unwrap();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for end in
        [Command::Complete { summary: None }, Command::Abort { reason: None }, Command::Fail { reason: None }]
    {
        let mut journal = journal.clone();
        let resume = Command::Resume { reset_breaker: true, details: None };
        journal.ask(resume.into(), Timestamp::EPOCH, None).unwrap();
        journal.ask(end.into(), Timestamp::EPOCH, None).unwrap();
        seen.extend(journal.stored.into_iter().map(|stored| stored.kind));
    }
    // These come from an import, from the engine, or from a loop, which has properties of its own.
    let others = [
        "session_imported",
        "items_imported",
        "journal_imported",
        "texts_forgotten",
        "late_recorded",
        "state_restored",
        "loop_started",
        "loop_baseline_taken",
        "iteration_ended",
        "breaker_changed",
        "gate_measured",
        "gate_accepted",
        "gate_passed",
        "loop_parked",
        "loop_woken",
        "operator_noted",
        "phase_skipped",
        "handed_over",
        "item_taken",
        "item_ended",
        "queue_listed",
    ];
    let missing: Vec<&str> = KINDS
        .iter()
        .map(|(kind, _)| *kind)
        .filter(|kind| !seen.contains(*kind) && !others.contains(kind))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

fn flood<I: Into<Input>>(journal: &mut Journal, make: impl Fn(usize) -> I, times: usize) {
    for n in 0..times {
        journal.say(make(n));
    }
}

/// As much as the rules let in, of everything that is kept, in the longest words.
#[test]
fn a_flood_leaves_a_bounded_state() {
    let long = |n: usize| format!("{n:05}{}", "🛒".repeat(limits::NAME - 5));
    let text = |n: usize| Text::from(long(n) + "and more");
    let kept = || Value::from("x".repeat(200));
    let mut journal = Journal::new();
    let start = |n: usize| Fact::ToolStarted {
        call: long(n),
        tool: long(n),
        input: Value::from(long(n)),
        write_ahead: true,
        source: Source::Hook,
    };
    let attach = |n: usize| {
        let line = "🛒".repeat(limits::LINE);
        let [host, pid_namespace, boot_id, what] = std::array::from_fn(|_| line.clone());
        let holder = Holder { host, pid_namespace, boot_id, what, ..Holder::default() };
        Command::AttachDriver { epoch: n as u64, holder }
    };
    flood(&mut journal, attach, 1);
    flood(&mut journal, start, 1_100);
    flood(
        &mut journal,
        |_| Command::Interrupt { reason: InterruptReason::Crash, details: Some(text(0)), at: None },
        1,
    );
    flood(&mut journal, |_| Command::Resume { reset_breaker: false, details: None }, 1);
    flood(&mut journal, |n| start(n + 10_000), 1_100);
    flood(&mut journal, attach, 1);
    flood(&mut journal, |_| Command::MakeRequest { request: Request::Pause, details: None }, 300);
    flood(&mut journal, |n| Command::AddTask { text: text(n) }, 600);
    flood(
        &mut journal,
        |n| Command::SetMetric { name: long(n), value: Metric::Number(f64::MIN_POSITIVE) },
        300,
    );
    flood(
        &mut journal,
        |n| Command::RecordOutput { name: long(n), kind: OutputKind::Code, content: text(n) },
        300,
    );
    flood(&mut journal, |n| Command::SetAgentState { agent: long(n), active: true, state: kept() }, 300);
    flood(&mut journal, |n| Command::SetCache { key: long(n), value: kept() }, 300);
    flood(&mut journal, |n| Command::SwitchBranch { branch: long(n), from: None }, 2);
    flood(
        &mut journal,
        |n| Command::Decide {
            question: text(n),
            choice: text(n),
            reason: None,
            alternatives: vec![],
            parent: None,
            branch: Some(long(n)),
        },
        300,
    );
    let phases = || (0..limits::PHASES).map(long).collect();
    flood(
        &mut journal,
        |n| Command::SetWorkflow { workflow: Workflow { name: long(n), phases: phases() } },
        1,
    );
    flood(&mut journal, |n| Command::AdvancePhase { to: long(n), step: None, of: None }, 300);
    flood(
        &mut journal,
        |n| Command::VerifyPhase { phase: None, check: long(n), verdict: Verdict::Pass, details: None },
        300,
    );
    flood(
        &mut journal,
        |_| Command::SetWorkflowState { state: Value::from("x".repeat(limits::JSON - 2)) },
        1,
    );
    flood(&mut journal, |_| Command::SetIntent { intent: Text::from("🛒".repeat(100_000)) }, 1);
    let state = &journal.live;
    assert_eq!(state.calls.open.len() + state.calls.in_doubt.len(), 2 * limits::OPEN_CALLS);
    assert_eq!((state.tasks.open.len(), state.metrics.len(), state.verification.len()), (500, 256, 256));
    assert!((LARGEST / 2..LARGEST).contains(&size(state)), "{}", size(state));
}

fn size(state: &State) -> usize {
    serde_json::to_string(state).unwrap().len()
}
