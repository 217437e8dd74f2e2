//! Limits and waiting, with a clock that is told.

use rstest::rstest;

use super::*;
use crate::event::LoopParked;
use crate::event::WokenHow;
use crate::status::Status;

/// 2026-11-15, so many minutes after midnight UTC.
fn clock(minutes: i64) -> Timestamp {
    "2026-11-15T00:00:00Z".parse::<Timestamp>().unwrap().plus_seconds(minutes * 60)
}

fn verdict(plan: LoopPlan, limit: LimitMark, jitter: u64) -> LoopVerdict {
    let story = begun(plan);
    at_limit(looping(&story), &limit, Some("claude"), clock(0), jitter)
}

fn limit(class: LimitClass, until: Option<Timestamp>) -> LimitMark {
    let window = Some("five_hour".to_owned());
    LimitMark { class, until, window, words: "used up".into(), ..LimitMark::default() }
}

/// Wakes 30 to 90 seconds after the end, whatever the random number is.
#[rstest]
#[case(0, 30)]
#[case(60, 90)]
#[case(61, 30)]
#[case(u64::MAX, 45)]
fn a_window_with_a_known_end_is_waited_for(#[case] jitter: u64, #[case] later: i64) {
    let end = clock(120);
    let LoopVerdict::Park { until, class, why } =
        verdict(simple(), limit(LimitClass::Plan, Some(end)), jitter)
    else {
        panic!()
    };
    assert_eq!((until, class), (end.plus_seconds(later), ParkReason::Plan));
    assert_eq!(why, "five_hour is used up until 2026-11-15 02:00 UTC");
}

#[rstest]
// Nobody knows when: an hour.
#[case(None, 60 * 60)]
// In the past, or at once: a minute, for clocks differ.
#[case(Some(-3_600), 60)]
#[case(Some(5), 60)]
// A week away is believed, a year is not.
#[case(Some(7 * 86_400), 7 * 86_400)]
#[case(Some(365 * 86_400), 60 * 60)]
fn odd_ends(#[case] end: Option<i64>, #[case] wait: i64) {
    let end = end.map(|seconds| clock(0).plus_seconds(seconds));
    let parked = verdict(simple(), limit(LimitClass::Plan, end), 0);
    let LoopVerdict::Park { until, .. } = parked else { panic!("{parked:?}") };
    assert_eq!(until, clock(0).plus_seconds(wait + 30));
}

#[rstest]
#[case(LimitClass::Pay, PersonNeed::Pay)]
#[case(LimitClass::Auth, PersonNeed::Auth)]
#[case(LimitClass::Setup, PersonNeed::Setup)]
fn waiting_does_not_help(#[case] class: LimitClass, #[case] need: PersonNeed) {
    // Not even with a time, and not with another agent.
    let mut plan = simple();
    plan.limits.agents = vec!["claude".into(), "codex".into()];
    let wanted = LoopVerdict::NeedsPerson { need, why: "used up".into() };
    assert_eq!(verdict(plan, limit(class, Some(clock(60))), 0), wanted);
}

#[test]
fn a_budget_of_the_agent_is_a_cap() {
    let wanted = LoopVerdict::Cap { which: CapKind::Budget, why: "used up".into() };
    assert_eq!(verdict(simple(), limit(LimitClass::Budget, None), 0), wanted);
}

/// A vendor that is busy: pauses that double, and a person after about an hour. None of it is an iteration.
#[test]
fn a_busy_vendor_is_tried_again() {
    let mut story = begun(simple());
    let mut pauses = Vec::new();
    for _ in 0..MOST_BACKOFFS {
        story.ok(Command::StartIteration);
        let at = now(&story);
        let verdict = end(&mut story, limited(LimitClass::Overload, None), at);
        let LoopVerdict::BackOff { until, .. } = verdict else { panic!("{verdict:?}") };
        pauses.push(until.micros_since(at) / 1_000_000);
        assert_eq!(next_step(&story.state, at), NextStep::BackOff { until });
        assert_eq!(next_step(&story.state, until), NextStep::Iterate { again: false });
    }
    assert_eq!(pauses, [30, 60, 120, 240, 480, 900, 900, 900]);
    assert_eq!((looping(&story).total, looping(&story).breaker.clone()), (0, Breaker::default()));
    let last = iterate(&mut story, limited(LimitClass::Overload, None));
    assert!(matches!(last, LoopVerdict::NeedsPerson { need: PersonNeed::Limit, .. }), "{last:?}");
    assert_eq!(story.state.status, Status::Paused);
}

#[test]
fn an_iteration_that_ran_ends_the_backing_off() {
    let mut story = begun(simple());
    iterate(&mut story, limited(LimitClass::Transient, None));
    iterate(&mut story, limited(LimitClass::Transient, None));
    assert_eq!(looping(&story).backoffs, 2);
    iterate(&mut story, moved(1));
    assert_eq!(looping(&story).backoffs, 0);
}

#[test]
fn a_named_pause_is_kept() {
    let busy = limit(LimitClass::Transient, Some(clock(5)));
    let wanted = clock(5);
    let LoopVerdict::BackOff { until, .. } = verdict(simple(), busy, 0) else { panic!() };
    assert_eq!(until, wanted);
}

/// Still refused after waking, with a later end: waits on, says that it moved, and stops after so many windows.
#[test]
fn a_limit_that_moves_is_waited_for_so_often() {
    let mut story = begun(simple());
    let hours = [2, 7, 12];
    for (n, hour) in (1..).zip(hours) {
        let verdict = iterate(&mut story, limited(LimitClass::Plan, Some(at(hour * 3_600))));
        let LoopVerdict::Park { until, why, .. } = verdict else { panic!("{verdict:?}") };
        assert_eq!(why.contains("its end moved"), n > 1, "{why}");
        assert_eq!(looping(&story).windows_waited, n);
        // Woken hours late, it wakes once.
        let how = WokenHow::Timer;
        story.ok(say(LoopCommand::Wake { how, at: until.plus_seconds(8 * 3_600), others: vec![] }));
        assert_eq!(next_step(&story.state, until), NextStep::Iterate { again: false });
    }
    let fourth = iterate(&mut story, limited(LimitClass::Plan, Some(at(90_000))));
    let why = "still at the limit after waiting 3 times".to_owned();
    assert_eq!(fourth, LoopVerdict::NeedsPerson { need: PersonNeed::Limit, why });
    // An iteration that ran begins anew.
    story.ok(crate::story::resume());
    iterate(&mut story, moved(1));
    assert_eq!((looping(&story).windows_waited, looping(&story).waited_for), (0, None));
}

/// Who does not want to wait here is parked all the same: the time is not lost.
#[test]
fn who_does_not_want_to_wait_keeps_the_time() {
    let mut plan = simple();
    plan.limits.wait = false;
    let parked = verdict(plan, limit(LimitClass::Plan, Some(clock(60))), 0);
    let LoopVerdict::Park { until, .. } = parked else { panic!("{parked:?}") };
    assert_eq!(until, clock(60).plus_seconds(30));
}

/// One model's window: another agent, or a person; it is not waited for blindly.
#[test]
fn a_limit_of_one_model() {
    let only = LimitMark { model_only: Some("opus".into()), ..limit(LimitClass::Plan, Some(clock(60))) };
    let asked = verdict(simple(), only.clone(), 0);
    assert!(matches!(asked, LoopVerdict::NeedsPerson { need: PersonNeed::Limit, .. }), "{asked:?}");
    let mut plan = simple();
    plan.limits.agents = vec!["claude".into(), "codex".into()];
    let over = verdict(plan, only, 0);
    assert!(matches!(&over, LoopVerdict::HandOver { to, .. } if to == "codex"), "{over:?}");
}

fn ends(story: &mut Story, agent: &str, until: Timestamp) -> LoopVerdict {
    story.ok(Command::StartIteration);
    let observation = Box::new(limited(LimitClass::Plan, Some(until)));
    let at = now(story);
    let agent = Some(agent.to_owned());
    let events = story.ok(say(LoopCommand::EndIteration { run: None, agent, observation, at, jitter: 0 }));
    let Some(Event::IterationEnded(ended)) = events.first() else { panic!("{events:?}") };
    ended.verdict.clone()
}

#[test]
fn another_agent_goes_on_and_the_first_takes_over_again() {
    let mut plan = simple();
    plan.limits.agents = vec!["claude".into(), "codex".into()];
    plan.limits.back = true;
    let mut story = begun(plan);
    let first = ends(&mut story, "claude", at(7_200));
    assert!(matches!(&first, LoopVerdict::HandOver { to, .. } if to == "codex"), "{first:?}");
    assert_eq!((looping(&story).agent.as_deref(), story.state.status), (Some("codex"), Status::Active));
    assert_eq!(next_step(&story.state, at(100)), NextStep::Iterate { again: false });
    // Both are at their limit: it waits, and the one whose window opens first goes on.
    let mut both = Story::of(story.state.clone());
    let second = ends(&mut both, "codex", at(90_000));
    let LoopVerdict::Park { until, .. } = second else { panic!("{second:?}") };
    assert_eq!(until, at(7_200 + 30));
    both.ok(say(LoopCommand::Wake { how: WokenHow::Timer, at: until, others: vec![] }));
    let NextStep::HandOver { to, why } = next_step(&both.state, until) else { panic!() };
    assert_eq!((to.as_str(), why.as_str()), ("claude", "its window is open again"));
    looping_mut(&mut both).plan.limits.back = false;
    let NextStep::HandOver { to, why } = next_step(&both.state, until) else { panic!() };
    assert_eq!((to.as_str(), why.as_str()), ("claude", "codex is at its limit"));
    // The window of the first is open again.
    let NextStep::HandOver { to, .. } = next_step(&story.state, at(7_200)) else { panic!() };
    assert_eq!(to, "claude");
    story.ok(say(LoopCommand::HandOver { to, why: "its window is open again".into() }));
    assert_eq!(next_step(&story.state, at(7_200)), NextStep::Iterate { again: false });
}

/// Only 22:00 to 07:00, and hours that lie inside one day.
#[rstest]
#[case(Some((1_320, 420)), 0, 23 * 60, 23 * 60)]
#[case(Some((1_320, 420)), 0, 3 * 60, 3 * 60)]
#[case(Some((1_320, 420)), 0, 7 * 60, 22 * 60)]
#[case(Some((1_320, 420)), 0, 12 * 60, 22 * 60)]
#[case(Some((540, 1_020)), 0, 8 * 60, 9 * 60)]
#[case(Some((540, 1_020)), 0, 17 * 60, 33 * 60)]
// The user's clock is an hour ahead.
#[case(Some((1_320, 420)), 60, 20 * 60, 21 * 60)]
#[case(Some((1_320, 420)), 60, 21 * 60, 21 * 60)]
#[case(None, 0, 12 * 60, 12 * 60)]
fn working_hours(
    #[case] hours: Option<(u16, u16)>,
    #[case] zone_minutes: i16,
    #[case] now: i64,
    #[case] open: i64,
) {
    let policy = LimitPolicy { hours, zone_minutes, ..LimitPolicy::default() };
    assert_eq!(next_open(&policy, clock(now)), clock(open));
    // To the minute, not a part of one later.
    if open > now {
        assert_eq!(next_open(&policy, clock(now).plus_seconds(17)), clock(open));
    }
}

#[test]
fn outside_its_hours_a_loop_parks_and_a_limit_ends_inside_them() {
    let mut plan = simple();
    plan.limits.hours = Some((1_320, 420));
    let story = begun(plan.clone());
    let noon = clock(12 * 60);
    let NextStep::Park(LoopParked { until, class, .. }) = next_step(&story.state, noon) else { panic!() };
    assert_eq!((until, class), (Some(clock(22 * 60)), ParkReason::Hours));
    let limit = limit(LimitClass::Plan, Some(clock(8 * 60)));
    let LoopVerdict::Park { until, .. } = verdict(plan, limit, 0) else { panic!() };
    assert_eq!(until, clock(22 * 60));
}

/// A share of the plan that is to be left.
#[rstest]
#[case(Some(30), None, "seven_day", 69, None)]
#[case(Some(30), None, "seven_day", 70, Some("parked"))]
#[case(Some(30), None, "five_hour", 99, None)]
#[case(None, Some(95), "five_hour", 94, None)]
#[case(None, Some(95), "five_hour", 95, Some("parked"))]
#[case(Some(30), Some(95), "seven_day", 80, Some("parked"))]
#[case(None, None, "seven_day", 100, None)]
fn a_share_is_left(
    #[case] leave_percent: Option<u8>,
    #[case] stop_at_percent: Option<u8>,
    #[case] name: &str,
    #[case] used_percent: u8,
    #[case] wanted: Option<&str>,
) {
    let mut plan = simple();
    plan.limits = LimitPolicy { leave_percent, stop_at_percent, ..LimitPolicy::default() };
    let window = PlanWindow {
        name: name.into(),
        used_percent,
        resets_at: Some(clock(600)),
        longest: name == "seven_day",
    };
    let seen = Observation { windows: vec![window.clone()], ..moved(1) };
    let story = begun(plan.clone());
    let verdict = at_share(looping(&story), &seen, clock(0), 0);
    assert_eq!(verdict.as_ref().map(LoopVerdict::word), wanted);
    // Without an end to wait for, or without the wish to wait, it is a cap.
    let endless = PlanWindow { resets_at: None, ..window };
    let seen = Observation { windows: vec![endless], ..moved(1) };
    let verdict = at_share(looping(&story), &seen, clock(0), 0);
    assert_eq!(verdict.as_ref().map(LoopVerdict::word), wanted.map(|_| "cap reached"));
}

/// Our own limits: an hour from the first iteration on, not the hour of the clock.
#[test]
fn so_many_iterations_in_an_hour() {
    let mut plan = simple();
    plan.own.calls_per_hour = Some(2);
    let mut story = begun(plan);
    iterate(&mut story, moved(1));
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Iterate { again: false });
    iterate(&mut story, moved(2));
    let start = looping(&story).hour.start.unwrap();
    let NextStep::Park(parked) = next_step(&story.state, now(&story)) else { panic!() };
    assert_eq!((parked.until, parked.class), (Some(start.plus_seconds(3_600)), ParkReason::Own));
    assert_eq!(parked.words, "2 iterations in this hour");
    assert_eq!(next_step(&story.state, start.plus_seconds(3_600)), NextStep::Iterate { again: false });
    // A window that lies in the future came from a clock that was wrong.
    assert_eq!(next_step(&story.state, start.plus_seconds(-60)), NextStep::Iterate { again: false });
    // Parked for it, no window of a plan was waited for.
    story.ok(say(LoopCommand::Park(parked)));
    assert_eq!((looping(&story).windows_waited, story.state.status), (0, Status::Paused));
}

#[test]
fn so_many_tokens_in_an_hour() {
    let mut plan = simple();
    plan.own.tokens_per_hour = Some(1_000);
    let mut story = begun(plan);
    iterate(&mut story, Observation { tokens: 999, ..moved(1) });
    assert_eq!(next_step(&story.state, now(&story)), NextStep::Iterate { again: false });
    iterate(&mut story, Observation { tokens: 1, ..moved(2) });
    let NextStep::Park(parked) = next_step(&story.state, now(&story)) else { panic!() };
    assert_eq!(parked.words, "1000 tokens in this hour");
}

#[rstest]
#[case(-5, "Ready to resume")]
#[case(0, "Ready to resume")]
#[case(1, "1s")]
#[case(59, "59s")]
#[case(60, "1m 0s")]
#[case(303, "5m 3s")]
#[case(6_442, "1h 47m 22s")]
#[case(86_400 * 3 + 7_200, "3d 2h")]
fn countdowns(#[case] seconds: i64, #[case] words: &str) {
    assert_eq!(countdown(clock(0).plus_seconds(seconds), clock(0)), words);
}

/// A timeout of ours is never a limit.
#[test]
fn a_timeout_is_no_limit() {
    let mut story = begun(simple());
    let words = LimitMark { words: "usage limit reached".into(), ..LimitMark::default() };
    let verdict = iterate(&mut story, Observation { end: RunEnd::Cut, limit: Some(words), ..moved(1) });
    assert!(matches!(verdict, LoopVerdict::Continue { .. }), "{verdict:?}");
    assert_eq!(looping(&story).total, 1);
}
