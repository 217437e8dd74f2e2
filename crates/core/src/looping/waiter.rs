//! What is done when an account is at a limit: wait without a process, try again soon, ask a person, or hand over.

use super::observation::LimitClass;
use super::observation::LimitMark;
use super::observation::Observation;
use super::plan::LimitPolicy;
use super::state::HourWindow;
use super::state::LoopState;
use super::state::ParkReason;
use super::verdict::CapKind;
use super::verdict::LoopVerdict;
use super::verdict::PersonNeed;
use super::window::moment;
use crate::time::Timestamp;

/// How long is waited for a window whose end nobody knows, in seconds.
pub const UNKNOWN_WAIT: i64 = 3_600;
/// The furthest end of a window that is believed, in seconds: a little more than a week.
pub const FURTHEST: i64 = 8 * 86_400;
/// The shortest wait for a window, in seconds: clocks differ.
const SHORTEST: i64 = 60;
/// The first pause when the vendor is busy, in seconds; each further one is twice as long.
const FIRST_BACKOFF: i64 = 30;
/// The longest such pause, in seconds.
const LONGEST_BACKOFF: i64 = 900;
/// How often in a row it is tried again before a person is asked: about an hour in all.
pub const MOST_BACKOFFS: u32 = 8;
/// An hour of our own limits, in seconds.
const HOUR: i64 = 3_600;

/// What follows from a limit. `jitter` is a random number; what is added to a wait is 30 to 90 seconds.
pub fn at_limit(
    state: &LoopState,
    limit: &LimitMark,
    agent: Option<&str>,
    at: Timestamp,
    jitter: u64,
) -> LoopVerdict {
    let policy = &state.plan.limits;
    let person = |need: PersonNeed| LoopVerdict::NeedsPerson { need, why: said(limit, need) };
    match limit.class {
        LimitClass::Pay => person(PersonNeed::Pay),
        LimitClass::Auth => person(PersonNeed::Auth),
        LimitClass::Setup => person(PersonNeed::Setup),
        LimitClass::Budget => {
            LoopVerdict::Cap { which: CapKind::Budget, why: said(limit, PersonNeed::Limit) }
        }
        LimitClass::Transient | LimitClass::Overload => back_off(state, limit, at, jitter),
        LimitClass::Plan => {
            if let Some(to) = another(state, agent, at) {
                let why = format!("{} is at its limit", agent.unwrap_or("the agent"));
                return LoopVerdict::HandOver { to, why };
            }
            if let Some(model) = &limit.model_only {
                let end = limit.until.map_or_else(String::new, |until| format!(" until {}", moment(until)));
                let why = format!(
                    "only {model} is at its limit{end}: segno loop resume --model NAME goes on with another model"
                );
                return LoopVerdict::NeedsPerson { need: PersonNeed::Limit, why };
            }
            if state.windows_waited >= policy.max_windows {
                let why = format!("still at the limit after waiting {} times", state.windows_waited);
                return LoopVerdict::NeedsPerson { need: PersonNeed::Limit, why };
            }
            park(state, limit, at, jitter)
        }
    }
}

fn said(limit: &LimitMark, need: PersonNeed) -> String {
    if limit.words.is_empty() { format!("it needs {}", need.as_str()) } else { limit.words.clone() }
}

fn park(state: &LoopState, limit: &LimitMark, at: Timestamp, jitter: u64) -> LoopVerdict {
    let believed = limit.until.filter(|until| *until <= at.plus_seconds(FURTHEST));
    let own = believed.unwrap_or_else(|| at.plus_seconds(UNKNOWN_WAIT));
    // Whichever of its agents may work first goes on.
    let others = state.plan.limits.agents.iter().filter_map(|name| state.limited.get(name).copied());
    let end = others.filter(|until| *until > at).fold(own, Timestamp::min).max(at.plus_seconds(SHORTEST));
    let until = next_open(&state.plan.limits, end.plus_seconds(spread(jitter)));
    let window = limit.window.as_deref().unwrap_or("the plan");
    let mut why = match believed {
        Some(end) => format!("{window} is used up until {}", moment(end)),
        None => format!("{window} is used up, and nobody knows until when"),
    };
    if let Some(before) = state.waited_for.filter(|before| believed.is_some_and(|end| end > *before)) {
        why.push_str(&format!("; its end moved from {}", moment(before)));
    }
    LoopVerdict::Park { until, class: ParkReason::Plan, why }
}

/// 30 to 90 seconds.
pub(crate) fn spread(jitter: u64) -> i64 {
    30 + i64::try_from(jitter % 61).unwrap_or(0)
}

fn back_off(state: &LoopState, limit: &LimitMark, at: Timestamp, jitter: u64) -> LoopVerdict {
    if state.backoffs >= MOST_BACKOFFS {
        let why = format!("still busy after {} tries: {}", state.backoffs, limit.words);
        return LoopVerdict::NeedsPerson { need: PersonNeed::Limit, why };
    }
    let doubled = FIRST_BACKOFF.saturating_mul(1 << state.backoffs.min(16));
    let pause = doubled.min(LONGEST_BACKOFF) + i64::try_from(jitter % 10).unwrap_or(0);
    // The vendor may name a later time; one that is far away is no moment's trouble.
    let named = limit.until.filter(|until| *until <= at.plus_seconds(HOUR));
    let until = at.plus_seconds(pause).max(named.unwrap_or(at));
    LoopVerdict::BackOff { until, why: format!("the vendor is busy ({})", limit.class.as_str()) }
}

/// The first agent of the order that is not at a limit, if it is another one.
pub(crate) fn another(state: &LoopState, agent: Option<&str>, at: Timestamp) -> Option<String> {
    let free = |name: &&String| state.limited.get(*name).is_none_or(|until| *until <= at);
    let others = state.plan.limits.agents.iter().filter(|name| Some(name.as_str()) != agent);
    others.into_iter().find(free).cloned()
}

/// The agent that takes over before the next iteration, with the reason: the first of the order when its window is open
/// again and that is wanted, or one that may work while the present one may not.
pub fn hand_back(state: &LoopState, at: Timestamp) -> Option<(String, String)> {
    let policy = &state.plan.limits;
    let first = policy.agents.first()?;
    let present = state.agent.as_ref().unwrap_or(first);
    let limited = |name: &String| state.limited.get(name).is_some_and(|until| *until > at);
    let open = state.limited.get(first).is_some_and(|until| *until <= at);
    if policy.back && present != first && open {
        return Some((first.clone(), "its window is open again".to_owned()));
    }
    let to = another(state, Some(present), at).filter(|_| limited(present))?;
    Some((to, format!("{present} is at its limit")))
}

/// What follows when a share of the plan is to be left, and the windows are too full for more.
pub fn at_share(state: &LoopState, seen: &Observation, at: Timestamp, jitter: u64) -> Option<LoopVerdict> {
    let policy = &state.plan.limits;
    let full = seen.windows.iter().find_map(|window| {
        let leave = policy.leave_percent.filter(|_| window.longest).map(|leave| 100_u8.saturating_sub(leave));
        let most = leave.into_iter().chain(policy.stop_at_percent).min()?;
        (window.used_percent >= most).then_some((window, most))
    });
    let (window, most) = full?;
    let why = format!("{} is {} % used, and {most} % is the most", window.name, window.used_percent);
    let end = window.resets_at.filter(|end| *end > at && *end <= at.plus_seconds(FURTHEST));
    Some(match end {
        Some(end) => {
            let until = next_open(policy, end.plus_seconds(spread(jitter)));
            LoopVerdict::Park { until, class: ParkReason::Share, why }
        }
        None => LoopVerdict::Cap { which: CapKind::Plan, why },
    })
}

/// The first moment from this one on that lies in the hours in which a loop may work.
pub fn next_open(policy: &LimitPolicy, at: Timestamp) -> Timestamp {
    let Some((from, to)) = policy.hours else { return at };
    let (from, to) = (i64::from(from), i64::from(to));
    let minute = minute_of_day(policy, at);
    let inside = if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to };
    if inside {
        return at;
    }
    let minutes = (from - minute).rem_euclid(1_440);
    let whole = at.plus_seconds(minutes * 60);
    // To the beginning of that minute.
    let (.., second, micros) = whole.parts();
    Timestamp::from_micros(whole.as_micros() - i64::from(second) * 1_000_000 - i64::from(micros))
}

fn minute_of_day(policy: &LimitPolicy, at: Timestamp) -> i64 {
    let (_, _, _, hour, minute, _, _) = at.parts();
    (i64::from(hour) * 60 + i64::from(minute) + i64::from(policy.zone_minutes)).rem_euclid(1_440)
}

/// When our own limits per hour let the next iteration begin, if not now.
pub fn own_limit(state: &LoopState, at: Timestamp) -> Option<(Timestamp, String)> {
    let own = &state.plan.own;
    let HourWindow { start, calls, tokens } = state.hour.at(at);
    let over = |used: u64, most: Option<u64>| most.is_some_and(|most| used >= most);
    let why = if over(calls, own.calls_per_hour) {
        format!("{} in this hour", super::progress::things(calls, "iteration"))
    } else if over(tokens, own.tokens_per_hour) {
        format!("{tokens} tokens in this hour")
    } else {
        return None;
    };
    start.map(|start| (start.plus_seconds(HOUR), why))
}
