use rstest::rstest;
use segno_engine::core::day::DayCaps;
use segno_engine::core::lately::Used;
use segno_engine::core::looping::GateResult;
use serde_json::json;

use super::*;
use crate::output::style::Palette;

fn at() -> Timestamp {
    "2026-11-18T02:10:00Z".parse().unwrap()
}

/// A loop of several phases in the middle of its work.
fn live() -> Live {
    let planned = ["RED", "GREEN", "REFACTOR", "DOCUMENT"].map(|name| json!({ "name": name }));
    let recent = [0, 2, 5, 6, 8].map(|passed| json!({ "phase": "GREEN", "tests": [passed, 10] }));
    let state: State = serde_json::from_value(json!({
        "session_id": "session_20261118_023407_763889", "uid": "01932f6e-7c00-7000-8000-00805f9b34fb", "seq": 9,
        "made_by": "loop", "topic": "login form with a second factor", "project": { "path": "/p", "name": "p" },
        "status": "active", "created_at": "2026-11-18T02:00:00Z", "updated_at": "2026-11-18T02:10:00Z",
        "phase_since": "2026-11-18T02:05:00Z", "iteration": 3, "attempt": 1,
        "budget": { "total_budget": 500_000, "tokens_used": 84_200, "warn_percent": 80, "hard": true },
        "cost": { "limit_micros": 5_000_000, "used_micros": 710_000, "warn_percent": 80, "hard": true },
        "limits": { "claude:five_hour": { "agent": "claude", "window": "five_hour", "utilization": 0.634, "at": "2026-11-18T02:09:00Z" } },
        "last_action": "modified src/auth/mod.rs",
        "looping": {
            "plan": { "workflow": "prp", "phases": planned },
            "started_at": "2026-11-18T02:00:00Z", "phase": "GREEN", "total": 7,
            "phases": [
                { "name": "RED", "end": "passed" }, { "name": "GREEN" }, { "name": "REFACTOR" }, { "name": "DOCUMENT" },
            ],
            "tests": { "total": 10, "passed": 8, "failed": 2 },
            "recent": recent,
        },
    }))
    .unwrap();
    let mut live = Live::of(&state, None, None, at()).unwrap();
    let gate: GateResult = serde_json::from_value(json!({
        "gate_1": false, "gate_2": false, "can_exit": false,
        "conditions": [
            { "name": "all tests pass", "value": "2 of 10 fail", "wanted": "0", "holds": false },
            { "name": "tests as before", "value": "10", "wanted": "10", "holds": true },
        ],
    }))
    .unwrap();
    live.status.gate = Some(gate);
    live
}

fn text(live: &Live, width: usize, height: usize) -> String {
    let lines = live.lines(width, height);
    for line in &lines {
        assert!(line.to_line().width() <= width, "{width}: {}", line.to_line());
    }
    lines.iter().map(|line| line.render(Palette::plain()) + "\n").collect()
}

#[rstest]
#[case(60)]
#[case(80)]
#[case(120)]
#[case(200)]
fn it_fits(#[case] width: usize) {
    insta::assert_snapshot!(format!("live_{width}"), text(&live(), width, 20));
}

#[rstest]
#[case::tall(20, 8)]
#[case::low(4, 4)]
#[case::two(2, 2)]
#[case::none(0, 1)]
fn what_matters_least_goes_first(#[case] height: usize, #[case] lines: usize) {
    let shown = text(&live(), 100, height);
    assert_eq!(shown.lines().count(), lines, "{shown}");
    assert!(shown.contains("iteration 7") && (lines < 2 || shown.contains("modified src/auth")), "{shown}");
}

#[test]
fn a_loop_that_waits_counts_down() {
    let mut live = live();
    live.status.waiting_for = Some("limit of the plan: five_hour".to_owned());
    live.status.countdown = Some("1h 47m 22s".to_owned());
    let state: State = serde_json::from_value(json!({
        "session_id": "session_20261118_023407_763889", "uid": "01932f6e-7c00-7000-8000-00805f9b34fb", "seq": 1,
        "made_by": "loop", "project": { "path": "/p", "name": "p" }, "status": "paused",
        "created_at": "2026-11-18T02:00:00Z", "updated_at": "2026-11-18T02:10:00Z",
        "phase_since": "2026-11-18T02:05:00Z", "iteration": 0, "attempt": 1,
        "budget": { "total_budget": 1, "tokens_used": 0, "warn_percent": 80, "hard": false },
        "cost": { "limit_micros": null, "used_micros": 0, "warn_percent": 80, "hard": false },
    }))
    .unwrap();
    let words = doing_now(&state, &live.status, Some("measures: until"), at());
    assert_eq!(words, "waits 1h 47m 22s: limit of the plan: five_hour");
}

#[test]
fn a_name_without_end_and_any_width_are_cut() {
    let mut live = live();
    live.title = "x".repeat(500);
    live.now = "✗ äöü ".repeat(100);
    for width in 1..200 {
        text(&live, width, 10);
    }
}

/// At a breakpoint the phase is done, and it is still the one that counts.
#[test]
fn a_narrow_bar_counts_a_phase_that_is_done_and_looked_at() {
    let mut live = live();
    live.status.phases[1].state = "done";
    let shown = text(&live, 40, 10);
    assert!(shown.contains("2 of 4 ✓✓··"), "{shown}");
}

#[test]
fn a_loop_that_needs_a_person_says_so_and_not_what_was_done_last() {
    let live = live();
    let mut state: State = serde_json::from_value(json!({
        "session_id": "session_20261118_023407_763889", "uid": "01932f6e-7c00-7000-8000-00805f9b34fb", "seq": 1,
        "made_by": "loop", "project": { "path": "/p", "name": "p" }, "status": "halted", "last_action": "created a",
        "created_at": "2026-11-18T02:00:00Z", "updated_at": "2026-11-18T02:10:00Z",
        "phase_since": "2026-11-18T02:05:00Z", "iteration": 0, "attempt": 1,
        "budget": { "total_budget": 1, "tokens_used": 0, "warn_percent": 80, "hard": false },
        "cost": { "limit_micros": null, "used_micros": 0, "warn_percent": 80, "hard": false },
    }))
    .unwrap();
    let status =
        LoopStatus { next: "halted; one iteration may be tried in 29m".to_owned(), ..live.status.clone() };
    assert_eq!(doing_now(&state, &status, None, at()), "halted; one iteration may be tried in 29m");
    state.status = segno_engine::core::Status::Paused;
    assert_eq!(doing_now(&state, &status, None, at()), "created a");
}

/// While an agent thinks, what was done last is not what goes on; and one that tells no use has not worked for nothing.
#[test]
fn an_agent_that_thinks_works() {
    let mut state: State = serde_json::from_value(json!({
        "session_id": "session_20261118_023407_763889", "uid": "01932f6e-7c00-7000-8000-00805f9b34fb", "seq": 1,
        "made_by": "loop", "project": { "path": "/p", "name": "p" }, "status": "active",
        "last_action": "phase WORK",
        "created_at": "2026-11-18T02:00:00Z", "updated_at": "2026-11-18T02:10:00Z",
        "phase_since": "2026-11-18T02:05:00Z", "iteration": 0, "attempt": 1,
        "budget": { "total_budget": 1, "tokens_used": 0, "warn_percent": 80, "hard": false },
        "cost": { "limit_micros": null, "used_micros": 0, "warn_percent": 80, "hard": false },
        "run": { "id": "r", "agent": "coder", "pid": 1, "process_start": 1, "seq": 1,
            "started_at": "2026-11-18T02:08:55.4Z" },
    }))
    .unwrap();
    assert_eq!(doing_now(&state, &live().status, None, at()), "coder works, 1m 04s");
    assert_eq!(used(&state, None, 1), ["its agent does not tell"]);
    // A day without a cap is no figure to show, and does not make the others known.
    let mut day = DayStand { caps: DayCaps::default(), used: Used::default(), since: at(), until: at() };
    assert_eq!(used(&state, Some(&day), 1), ["its agent does not tell"]);
    day.caps.tokens = Some(1000);
    assert_eq!(used(&state, Some(&day), 1), ["0 tok", "$0.00", "today 0 of 1.0k tok"]);
    assert_eq!(used(&state, None, 0), ["0 tok", "$0.00"], "nothing has ended yet");
    state.budget.tokens_used = 5;
    assert_eq!(used(&state, None, 1)[0], "5 tok");
}
