//! What stands out among the counts.

use std::collections::BTreeSet;

use super::Evidence;
use super::Finding;
use super::FindingKind;
use super::Insights;
use super::Shares;
use super::Suggestion;
use super::advice;
use super::gather::Counted;
use super::gather::Dear;
use super::groups::Group;
use super::groups::Groups;
use super::groups::Place;
use crate::budget::dollars;
use crate::time::Timestamp;

/// How many findings of one kind are told.
const SHOWN: usize = 10;
/// What happened once may be an accident.
const TWICE: u64 = 2;
/// Calls of which less fail, in per cent, are well.
const SELDOM: u64 = 5;
/// A file is edited again and again from so many edits in so many turns on.
const EDITS: u64 = 5;
const EDIT_TURNS: u64 = 3;
/// A phase repeats if an iteration of it has this number.
const ITERATIONS: u64 = 5;
/// One session has so much of all money, in per cent, among at least so many sessions.
const MUCH: u64 = 25;
const SEVERAL: usize = 4;
/// Less money than this, in millionths of a dollar, is nobody's trouble.
const LITTLE: u64 = 1_000_000;
/// Resumes should work so often, in per cent.
const RESUMES: u64 = 95;

/// What is told of a group that stands out: what was found of it, and what would help.
type Tells<'a> = dyn Fn(&Group) -> Option<(String, Option<Suggestion>)> + 'a;

/// Lists what stands out.
pub(super) fn insights(since: Option<Timestamp>, mut counted: Counted, shares: Shares) -> Insights {
    finish_numbers(&mut counted);
    let usual = Usual::of(&mut counted.used);
    let refused: BTreeSet<String> = counted.questions.those(|group| group.special > 0);
    let conditions = std::mem::take(&mut counted.conditions).sorted();
    let mut left_out = 0;
    let mut found: Vec<Finding> = Vec::new();
    let mut list = |kind: FindingKind, groups: Groups, tells: &Tells<'_>| {
        left_out += groups.forgotten;
        let told = groups.sorted().into_iter().filter_map(|group| {
            let (words, suggestion) = tells(&group)?;
            Some(finding(kind, group, words, suggestion))
        });
        let mut told: Vec<Finding> = told.collect();
        left_out += told.len().saturating_sub(SHOWN) as u64;
        told.truncate(SHOWN);
        found.append(&mut told);
    };
    let often = |group: &Group| group.count >= TWICE;
    list(FindingKind::Error, counted.errors, &|group| {
        let (kind, message) = group.what.split_once(' ').unwrap_or(("unknown", &group.what));
        let words = format!("{} in {}", times(group.count), sessions(group.sessions));
        often(group).then(|| (words, advice::error(kind, message)))
    });
    list(FindingKind::Denial, counted.denials, &|group| {
        let words = format!("denied {} in {}", times(group.count), sessions(group.sessions));
        let is_no = refused.contains(&group.what) || group.special > 0;
        often(group).then(|| (words, Some(advice::denial(&group.what, is_no))))
    });
    list(FindingKind::Question, counted.questions, &|group| {
        let (asked, yes, no) = (times(group.count), group.of, group.special);
        let words = format!("asked {asked}: {yes} allowed, {no} refused; waited {}", duration(group.amount));
        often(group).then(|| (words, advice::question(&group.what, yes, no)))
    });
    list(FindingKind::Repeat, counted.repeats, &|group| {
        let words = format!(
            "made again with the same result: {} in all, up to {} in a row, in {}",
            times(group.of),
            group.amount,
            sessions(group.sessions)
        );
        Some((words, Some(advice::repeat(&group.what))))
    });
    list(FindingKind::Breaker, counted.breakers, &|group| {
        let words = format!("{} in {}", times(group.count), sessions(group.sessions));
        Some((words, Some(advice::breaker())))
    });
    list(FindingKind::Limit, counted.limits, &|group| {
        let waited =
            if group.amount > 0 { format!(", waited {}", duration(group.amount)) } else { String::new() };
        let words = format!("met {} in {}{waited}", times(group.count), sessions(group.sessions));
        Some((words, Some(advice::limit())))
    });
    list(FindingKind::Budget, counted.budgets, &|group| {
        let words = format!("used up {} in {}", times(group.count), sessions(group.sessions));
        Some((words, Some(advice::budget(&group.what, &usual))))
    });
    list(FindingKind::Crash, counted.crashes, &|group| {
        let words = format!("{} in {}", times(group.count), sessions(group.sessions));
        Some((words, Some(advice::crash(&group.what))))
    });
    list(FindingKind::FailingCall, counted.calls, &|group| {
        let words = format!(
            "{} of {} failed ({} %), in {}",
            group.count,
            group.of,
            percent(group.count, group.of),
            sessions(group.sessions)
        );
        let fails = often(group) && percent(group.count, group.of) >= SELDOM;
        fails.then(|| (words, Some(advice::failing_call(&group.what, group.count, group.of))))
    });
    list(FindingKind::File, counted.files, &|group| {
        let words =
            format!("edited {} in {} turns of {}", times(group.count), group.parts, sessions(group.sessions));
        let again = group.count >= EDITS && group.parts >= EDIT_TURNS;
        again.then(|| (words, Some(advice::file(&group.what, group.count, group.parts))))
    });
    list(FindingKind::Phase, counted.phases, &|group| {
        let back = if group.special > 0 {
            format!(", gone into again {}", times(group.special))
        } else {
            String::new()
        };
        let words = format!(
            "{} iterations, up to {} of one phase{back}, in {}",
            group.of,
            group.amount,
            sessions(group.sessions)
        );
        let repeats = group.amount >= ITERATIONS || group.special >= TWICE;
        repeats.then(|| (words, Some(advice::phase(&group.what, held_up(&conditions, &group.what)))))
    });
    let resumes = counted.numbers.resumes;
    let seldom = resumes.percent.is_some_and(|percent| u64::from(percent) < RESUMES);
    list(FindingKind::Resume, counted.resumes, &|group| {
        let all = resumes.worked + resumes.failed;
        let words = format!("{} of {all} resumes that say something", group.count);
        seldom.then(|| (words, Some(advice::resume(&group.what))))
    });
    let checkpoints = counted.numbers.checkpoints;
    list(FindingKind::Checkpoint, counted.bare, &|_| {
        let words = format!(
            "{} of {} changed files and can be taken back to no checkpoint",
            checkpoints.without,
            sessions(checkpoints.sessions)
        );
        Some((words, Some(advice::checkpoint())))
    });
    found.extend(money(&counted.numbers, &counted.dearest, &usual, counted.used.len()));
    for one in &mut found {
        // The kind of an error was only for the advice.
        if one.kind == FindingKind::Error
            && let Some((_, message)) = one.what.split_once(' ')
        {
            one.what = message.to_owned();
        }
    }
    Insights { since, numbers: counted.numbers, shares, findings: found, left_out }
}

fn finding(kind: FindingKind, group: Group, words: String, suggestion: Option<Suggestion>) -> Finding {
    let waits = matches!(kind, FindingKind::Limit | FindingKind::Question) && group.amount > 0;
    let of = matches!(kind, FindingKind::FailingCall | FindingKind::Phase).then_some(group.of);
    Finding {
        kind,
        what: group.what,
        words,
        count: group.count,
        of,
        sessions: group.sessions,
        waited_ms: waits.then_some(group.amount),
        micros: None,
        evidence: group.evidence,
        suggestion,
    }
}

/// The condition of a phase's gate that did not hold most often, and how often.
fn held_up<'a>(conditions: &'a [Group], phase: &str) -> Option<(&'a str, u64)> {
    let of_phase = |group: &&Group| group.what.split_once('\n').is_some_and(|(of, _)| of == phase);
    let most = conditions.iter().find(of_phase)?;
    Some((most.what.split_once('\n')?.1, most.count))
}

/// Sessions that took much of all money, and money for runs that came to no good end.
fn money(numbers: &super::Numbers, dearest: &[Dear], usual: &Usual, sessions: usize) -> Vec<Finding> {
    let one = |what: String, words: String, micros: u64, evidence: Vec<Evidence>, suggestion| Finding {
        kind: FindingKind::Money,
        what,
        words,
        count: 1,
        of: None,
        sessions: 1,
        waited_ms: None,
        micros: Some(micros),
        evidence,
        suggestion: Some(suggestion),
    };
    let mut found = Vec::new();
    let share = |micros: u64| percent(micros, numbers.micros);
    for dear in dearest {
        if sessions < SEVERAL || dear.micros < LITTLE || share(dear.micros) < MUCH {
            continue;
        }
        let words = format!(
            "{} of {}: {} % of all money",
            dollars(dear.micros),
            dollars(numbers.micros),
            share(dear.micros)
        );
        let mut look = Place { session: dear.session, seq: 1, at: None }.evidence(&dear.topic);
        look.look = format!("segno --session {} cost --by phase", dear.session);
        let what = if dear.topic.is_empty() { dear.session.to_string() } else { dear.topic.clone() };
        found.push(one(what, words, dear.micros, vec![look], advice::dear(usual)));
    }
    let bad = numbers.micros_of_bad_ends;
    if bad >= LITTLE && share(bad) >= 10 {
        let words = format!("{} of {}: {} % of all money", dollars(bad), dollars(numbers.micros), share(bad));
        let what = "runs that ended without doing what they were to do".to_owned();
        found.push(Finding {
            sessions: 0,
            count: 0,
            ..one(what, words, bad, Vec::new(), advice::bad_ends())
        });
    }
    found
}

fn finish_numbers(counted: &mut Counted) {
    let resumes = &mut counted.numbers.resumes;
    let all = resumes.worked + resumes.failed;
    resumes.percent = (all > 0).then(|| u8::try_from(percent(resumes.worked, all)).unwrap_or(100));
    let checkpoints = &mut counted.numbers.checkpoints;
    let each = checkpoints.of_own.saturating_mul(100).checked_div(checkpoints.sessions);
    checkpoints.per_session_hundredths = each.unwrap_or(0);
}

/// What sessions usually use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usual {
    /// Nine of ten sessions use no more tokens.
    pub(super) tokens: u64,
    /// Nine of ten sessions cost no more.
    pub(super) micros: u64,
}

impl Usual {
    fn of(used: &mut [(u64, u64)]) -> Self {
        let ninth = used.len().saturating_sub(1) * 9 / 10;
        used.sort_unstable_by_key(|(tokens, _)| *tokens);
        let tokens = used.get(ninth).map_or(0, |(tokens, _)| *tokens);
        used.sort_unstable_by_key(|(_, micros)| *micros);
        let micros = used.get(ninth).map_or(0, |(_, micros)| *micros);
        Self { tokens, micros }
    }
}

pub(super) fn percent(part: u64, whole: u64) -> u64 {
    (u128::from(part) * 100).checked_div(u128::from(whole)).and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}

pub(super) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}

fn sessions(count: u64) -> String {
    if count == 1 { "1 session".to_owned() } else { format!("{count} sessions") }
}

/// A time in milliseconds, for people.
fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}
