//! What kind of limit a text speaks of. The last resort, where no field says it.

use super::LimitClass;
use super::reset_in;

/// Texts that begin so tell how full a window is, or that work goes on.
const NO_LIMIT: &[&str] = &[
    "approaching ",
    "heads up, you have less than",
    "now using usage credits",
    "reconnecting",
    "you're now using usage credits",
    "you've used ",
];

/// Only a person can help, whatever else is said.
const PAY: &[&str] = &[
    "credit balance",
    "doesn't include usage credits",
    "insufficient balance",
    "insufficient_g1_credits_balance",
    "insufficient_quota",
    "limit is set to $0",
    "no payment method",
    "org is out of usage",
    "out of credits",
    "quota exceeded. check your plan",
    "service is disabled for your org",
    "shared budget",
    "spend cap",
    "spend limit",
    "spending limit",
    "to use codex with your chatgpt plan",
    "usage allocation has been disabled",
    "usage_not_included",
];

/// Money, unless a time is told: then it is only a matter of waiting.
const PAY_UNLESS_TIMED: &[(&str, LimitClass)] = &[
    ("out of usage credits", LimitClass::Plan),
    ("out of extra usage", LimitClass::Plan),
    ("monthly usage limit", LimitClass::Plan),
    ("subscription quota exceeded", LimitClass::Plan),
    ("exceeded your current quota", LimitClass::Transient),
    ("(e.g. check quota)", LimitClass::Transient),
    ("quota exceeded", LimitClass::Transient),
];

const TRANSIENT_FIRST: &[&str] = &["not your usage limit", "perminute", "per minute", "tokens per min"];

const PLAN: &[&str] = &[
    "daily quota",
    "exhausted your capacity on this model",
    "free usage exceeded",
    "freeusagelimiterror",
    "gousagelimiterror",
    "hit usage limits",
    "-hour limit",
    "hour usage limit",
    "limit will reset at",
    "perday",
    "quota will reset",
    "session limit",
    "usage limit reached",
    "weekly limit",
];

const OVERLOAD: &[&str] = &[
    "at capacity",
    "experiencing high demand",
    "model_capacity_exceeded",
    "model_capacity_exhausted",
    "no capacity available",
    "overloaded",
    "service unavailable",
];

const TRANSIENT: &[&str] = &["please retry in ", "rate limit", "request rejected (429)", "too many requests"];

/// The kind of limit that a text speaks of. It is in lower case, with plain apostrophes.
pub(crate) fn class_in(lower: &str) -> Option<LimitClass> {
    let said = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let begins = lower.trim_start();
    let is_share = begins.starts_with("over ") && begins.contains("% of your ");
    if is_share || NO_LIMIT.iter().any(|start| begins.starts_with(start)) {
        return None;
    }
    // A spending limit that does not matter before a window opens again.
    if lower.find("limit resets ").is_some_and(|at| lower[..at].contains("your ")) {
        return Some(LimitClass::Plan);
    }
    if said(PAY) || is_nothing_allowed(lower) {
        return Some(LimitClass::Pay);
    }
    if lower.contains("token budget exhausted") {
        return Some(LimitClass::Budget);
    }
    if said(TRANSIENT_FIRST) {
        return Some(LimitClass::Transient);
    }
    if said(PLAN) {
        return Some(LimitClass::Plan);
    }
    if let Some((_, timed)) = PAY_UNLESS_TIMED.iter().find(|(word, _)| lower.contains(word)) {
        return Some(if reset_in(lower).is_some() { *timed } else { LimitClass::Pay });
    }
    if is_window_hit(lower) {
        return Some(LimitClass::Plan);
    }
    if said(OVERLOAD) {
        return Some(LimitClass::Overload);
    }
    if said(TRANSIENT) {
        return Some(LimitClass::Transient);
    }
    // `Resets Jan 12, 10:59am` alone.
    (begins.starts_with("resets ") && reset_in(lower).is_some()).then_some(LimitClass::Plan)
}

/// A quota of nothing: the model is not in the plan.
fn is_nothing_allowed(lower: &str) -> bool {
    let zero = lower
        .match_indices("limit: 0")
        .any(|(at, word)| !lower[at + word.len()..].starts_with(|c: char| c.is_ascii_digit() || c == '.'));
    zero && lower.contains("quota")
}

/// `You've hit your … limit`, whatever the window is called.
fn is_window_hit(lower: &str) -> bool {
    let Some((_, rest)) = lower.split_once("hit your ") else { return false };
    let window = rest.split([' ', '.', '\u{b7}']).take(4);
    window.into_iter().any(|word| word == "limit")
}

/// The window that a text names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) window: Option<String>,
    pub(super) model: Option<String>,
}

/// The window that a text about a plan's limit names: `weekly`, `5-hour`, or a model's.
pub(super) fn window_in(text: &str) -> Named {
    let text = text.replace('\u{2019}', "'");
    if let Some((_, rest)) = text.split_once("usage limit for ") {
        let name = rest.split(['.', '\n']).next().unwrap_or_default();
        // Versions have points.
        let name = rest.split_once(". ").map_or(name, |(name, _)| name);
        let model = Some(name.trim().to_owned()).filter(|name| !name.is_empty() && name.len() <= 64);
        return Named { window: model.clone(), model };
    }
    if let Some((_, rest)) = text.split_once("reached for all ")
        && let Some((model, _)) = rest.split_once(" models")
    {
        return Named { window: None, model: Some(model.to_owned()).filter(|name| name.len() <= 64) };
    }
    let resets = text.find("limit resets ").and_then(|end| Some(text[..end].rsplit_once("your ")?.1));
    let hit = || Some(text.split_once("hit your ")?.1.split_once("limit")?.0);
    let window = resets.or_else(hit).map(str::trim);
    let begins = || {
        let name = text.split_once(" limit reached")?.0.trim();
        Some(name.strip_suffix("usage").unwrap_or(name).trim().to_ascii_lowercase())
    };
    let Some(window) = window else {
        let known = |name: &String| !name.starts_with("claude") && name.split(' ').count() <= 2;
        return Named { window: begins().filter(|name| !name.is_empty()).filter(known), model: None };
    };
    if window.is_empty() || window == "usage" || window.split(' ').count() > 3 {
        return Named::default();
    }
    // In the middle of a sentence only a name is written large.
    let is_name = window.starts_with(|c: char| c.is_ascii_uppercase());
    Named { window: Some(window.to_owned()), model: is_name.then(|| window.to_owned()) }
}
