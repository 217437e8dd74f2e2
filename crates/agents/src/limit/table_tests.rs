//! What agents and providers say about limits, and what that means. Texts change between releases: this is a test of
//! tolerance, not a list of all there is.

use super::*;
use crate::classify::understand;
use crate::outcome::ErrorClass;

/// A reset in short: `after MS`, `at SECONDS`, or `[YEAR-]MONTH-DAY HOUR:MINUTE ZONE`.
fn short(time: &ResetTime) -> String {
    match time {
        ResetTime::At(seconds) => format!("at {seconds}"),
        ResetTime::After(ms) => format!("after {ms}"),
        ResetTime::Clock(clock) => {
            let date = clock.date.map_or(String::new(), |date| {
                let year = date.year.map_or(String::new(), |year| format!("{year}-"));
                format!("{year}{:02}-{:02} ", date.month, date.day)
            });
            let zone = match &clock.zone {
                None => String::new(),
                Some(ClockZone::Named(name)) => format!(" {name}"),
                Some(ClockZone::Offset(seconds)) => format!(" {seconds}"),
            };
            format!("{date}{:02}:{:02}{zone}", clock.hour, clock.minute)
        }
    }
}

/// A text, its class, when it ends, the window and the one model that it names.
type Row = (&'static str, LimitClass, &'static str, &'static str, &'static str);

fn check(rows: &[Row]) {
    for (text, class, time, window, model) in rows {
        let meaning = understand(None, None, text);
        let limit = meaning.limit.unwrap_or_else(|| panic!("no limit: {text} is {:?}", meaning.class));
        let resets = limit.resets.as_ref().map(short).unwrap_or_default();
        let got = (limit.class, resets.as_str(), limit.window.as_deref(), limit.model.as_deref());
        let some = |word: &&'static str| Some(*word).filter(|word| !word.is_empty());
        assert_eq!(got, (*class, *time, some(window), some(model)), "{text}");
    }
}

use LimitClass::*;

#[test]
fn claude() {
    check(&[
        (
            "You've hit your 5-hour limit · resets 8:45am (Europe/Paris)",
            Plan,
            "08:45 Europe/Paris",
            "5-hour",
            "",
        ),
        (
            "You've hit your weekly limit · resets 8:45am (Europe/Paris)",
            Plan,
            "08:45 Europe/Paris",
            "weekly",
            "",
        ),
        ("You've hit your Opus limit · resets 3pm (UTC)", Plan, "15:00 UTC", "Opus", "Opus"),
        ("You've hit your Sonnet limit · resets 3pm (UTC)", Plan, "15:00 UTC", "Sonnet", "Sonnet"),
        ("You've hit your Fable limit · resets 3pm (UTC)", Plan, "15:00 UTC", "Fable", "Fable"),
        (
            "You've hit your 5-hour limit · resets 7:04pm (UTC) · progress saved",
            Plan,
            "19:04 UTC",
            "5-hour",
            "",
        ),
        ("You're out of usage credits · resets 8:45am (Europe/Paris)", Plan, "08:45 Europe/Paris", "", ""),
        ("You're out of usage credits", Pay, "", "", ""),
        (
            "You've hit your org's monthly spend limit · ask your admin to raise it at https://claude.ai/x · your 5-hour \
             limit resets 8:45am (Europe/Paris)",
            Plan,
            "08:45 Europe/Paris",
            "5-hour",
            "",
        ),
        (
            "You've hit your monthly spend limit · your weekly limit resets Jul 26, 5:59am (UTC)",
            Plan,
            "07-26 05:59 UTC",
            "weekly",
            "",
        ),
        ("You've hit your org's monthly spend limit · ask your admin for a higher limit", Pay, "", "", ""),
        ("You've hit your org's monthly usage limit · ask your admin", Pay, "", "", ""),
        ("Your org is out of usage · contact your admin", Pay, "", "", ""),
        ("Your org is out of usage · add funds to continue", Pay, "", "", ""),
        ("Your usage allocation has been disabled by your admin.", Pay, "", "", ""),
        ("Your group's usage limit is set to $0.", Pay, "", "", ""),
        ("Your seat type doesn't include usage credits", Pay, "", "", ""),
        ("This service is disabled for your org", Pay, "", "", ""),
        ("You've hit your team's shared budget. /model to switch models.", Pay, "", "", ""),
        (
            "You've hit your session limit · resets 12:50pm (Europe/Paris)",
            Plan,
            "12:50 Europe/Paris",
            "session",
            "",
        ),
        (
            "You've hit your weekly limit · resets Jul 15 at 12am (Australia/Melbourne)",
            Plan,
            "07-15 00:00 Australia/Melbourne",
            "weekly",
            "",
        ),
        ("Resets Jan 12, 10:59am (America/New_York)", Plan, "01-12 10:59 America/New_York", "", ""),
        (
            "You've hit your weekly limit · resets Jan 3, 2027, 5am (UTC)",
            Plan,
            "2027-01-03 05:00 UTC",
            "weekly",
            "",
        ),
        ("You've hit your limit · resets 10pm", Plan, "22:00", "", ""),
        ("You've hit your usage limit", Plan, "", "", ""),
        ("You're out of extra usage · resets 11:30am (Asia/Colombo)", Plan, "11:30 Asia/Colombo", "", ""),
        (
            "5-hour limit reached · resets 3pm (Europe/Stockholm)",
            Plan,
            "15:00 Europe/Stockholm",
            "5-hour",
            "",
        ),
        (
            "Claude usage limit reached. Your limit will reset at 7pm (Asia/Tokyo).",
            Plan,
            "19:00 Asia/Tokyo",
            "",
            "",
        ),
        ("Claude AI usage limit reached|1752000000", Plan, "at 1752000000", "", ""),
        ("spend limit reached · resets Aug 8 · request an increase at https://x", Pay, "08-08 00:00", "", ""),
        (
            "API Error: Server is temporarily limiting requests (not your usage limit) · Rate limited",
            Transient,
            "",
            "",
            "",
        ),
        ("API Error: Request rejected (429)", Transient, "", "", ""),
        ("API Error: Repeated 529 Overloaded errors", Overload, "", "", ""),
        ("Credit balance is too low", Pay, "", "", ""),
        ("API Error: 401 Invalid API key · Please run /login", Auth, "", "", ""),
    ]);
}

#[test]
fn codex() {
    check(&[
        (
            "You\u{2019}ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit \
             https://chatgpt.com/settings/usage to purchase more credits or try again at 8:46 AM.",
            Plan,
            "08:46",
            "",
            "",
        ),
        (
            "You\u{2019}ve hit your usage limit. Visit https://chatgpt.com/settings/usage to purchase more credits or \
             try again at Nov 20th, 2026 9:53 PM.",
            Plan,
            "2026-11-20 21:53",
            "",
            "",
        ),
        ("You\u{2019}ve hit your usage limit. Try again at 8:46 AM.", Plan, "08:46", "", ""),
        ("You\u{2019}ve hit your usage limit. Try again later.", Plan, "", "", ""),
        (
            "You've hit your usage limit. To get more access now, send a request to your admin or try again at 12:05 AM.",
            Plan,
            "00:05",
            "",
            "",
        ),
        (
            "You've hit your usage limit. Upgrade to Plus to continue using Codex (https://chatgpt.com/explore/plus), \
             or try again at Jan 2nd, 2027 1:00 PM.",
            Plan,
            "2027-01-02 13:00",
            "",
            "",
        ),
        (
            "You've hit your usage limit for gpt-5.3-spark. Switch to another model now, or try again at 8:46 AM.",
            Plan,
            "08:46",
            "gpt-5.3-spark",
            "gpt-5.3-spark",
        ),
        ("You've hit your usage limit. Ask a friend, or try again at 8:46 AM.", Plan, "08:46", "", ""),
        ("Your workspace is out of credits. Add credits to continue.", Pay, "", "", ""),
        (
            "Your workspace is out of credits. Ask your workspace owner to refill in order to continue.",
            Pay,
            "",
            "",
            "",
        ),
        (
            "You hit your spend cap set in your workspace. Increase your spend cap to continue.",
            Pay,
            "",
            "",
            "",
        ),
        (
            "You hit your spend cap set by the owner of your workspace. Ask an owner to increase your spend cap to \
             continue.",
            Pay,
            "",
            "",
            "",
        ),
        (
            "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
            Pay,
            "",
            "",
            "",
        ),
        ("Quota exceeded. Check your plan and billing details.", Pay, "", "", ""),
        ("exceeded retry limit, last status: 429 Too Many Requests, request id: r-1", Transient, "", "", ""),
        (
            "Rate limit reached for gpt-5.1 in organization org-AAA on tokens per min (TPM): Limit 30000, Used 22999, \
             Requested 12528. Please try again in 11.054s. Visit https://x",
            Transient,
            "after 11054",
            "",
            "",
        ),
        ("Rate limit exceeded. Try again in 35 seconds.", Transient, "after 35000", "", ""),
        ("Rate limit exceeded. Please try again in 28ms.", Transient, "after 28", "", ""),
        ("Selected model is at capacity. Please try a different model.", Overload, "", "", ""),
        ("We're currently experiencing high demand, which may cause temporary errors.", Overload, "", "", ""),
        ("shared rollout token budget exhausted", Budget, "", "", ""),
        ("unexpected status 401 Unauthorized: Missing bearer", Auth, "", "", ""),
        ("no thread with id: 01a1", Setup, "", "", ""),
        ("Goal hit usage limits (/goal resume)", Plan, "", "", ""),
    ]);
}

#[test]
fn gemini() {
    check(&[
        ("You have exhausted your daily quota on this model.", Plan, "", "", ""),
        ("Too many requests\nSuggested retry after 600s.", Transient, "after 600000", "", ""),
        (
            "You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: \
             requests, limit: 20, model: m\nPlease retry in 44.097740004s.",
            Transient,
            "after 44098",
            "",
            "",
        ),
        ("Please retry in 900.2ms", Transient, "after 900", "", ""),
        (
            "You have exhausted your capacity on this model. Your quota will reset after 19h14m47s.",
            Plan,
            "after 69287000",
            "",
            "",
        ),
        ("No capacity available for model gemini-3-pro on the server", Overload, "", "", ""),
        ("Resource has been exhausted (e.g. check quota).", Pay, "", "", ""),
        (
            "Quota exceeded for metric: requests, limit: 0, model: m\nPlease retry in 44s.",
            Pay,
            "after 44000",
            "",
            "",
        ),
        ("403 VALIDATION_REQUIRED", Auth, "", "", ""),
        (
            "Usage limit reached for all Pro models.\nAccess resets at 3:27 PM GMT+1.",
            Plan,
            "15:27 3600",
            "",
            "Pro",
        ),
        ("We are currently experiencing high demand.", Overload, "", "", ""),
    ]);
}

#[test]
fn opencode() {
    check(&[
        ("Service Unavailable: {\"error\":\"busy\"}", Overload, "", "", ""),
        ("Free usage exceeded, subscribe to Go", Plan, "", "", ""),
        (
            "5 hour usage limit reached. It will reset in 2 hours 14 minutes. To continue using this model now, enable \
             usage from your available balance - https://opencode.ai/workspace/w/go",
            Plan,
            "after 8040000",
            "5 hour",
            "",
        ),
        ("Weekly usage limit reached. Resets in 3h 12min. To continue", Plan, "after 11520000", "weekly", ""),
        ("Subscription quota exceeded. Retry in 3h 12min.", Plan, "after 11520000", "", ""),
        ("Rate limit exceeded. Please try again later.", Transient, "", "", ""),
        ("Insufficient balance. Manage your billing here: https://x", Pay, "", "", ""),
        ("No payment method. Add one here: https://x", Pay, "", "", ""),
        ("You have reached your monthly spending limit of $20. Manage your limits here", Pay, "", "", ""),
        ("Your workspace has reached its monthly spending limit of $50.", Pay, "", "", ""),
        ("usage_not_included", Pay, "", "", ""),
        ("insufficient_quota", Pay, "", "", ""),
    ]);
}

#[test]
fn what_is_no_limit() {
    for text in [
        "You've used 93% of your 5-hour limit · resets 8:45am (Europe/Paris)",
        "Approaching weekly limit · resets 8:45am (Europe/Paris)",
        "Over 90% of your weekly limit used",
        "Now using usage credits for Fable · Your Fable limit resets 3pm (UTC)",
        "You're now using usage credits · Your 5-hour limit resets 3pm (UTC)",
        "Heads up, you have less than 25% of your 5h limit left. Run /status for a breakdown.",
        "Reconnecting... 1/2 (rate limit exceeded: Rate limit reached. Please try again in 1.2s)",
        "the file has a limit: 0 in it",
        "weird",
        "",
    ] {
        let meaning = understand(None, None, text);
        assert_eq!((meaning.class, meaning.limit), (ErrorClass::Unknown, None), "{text}");
    }
}

#[test]
fn what_is_waited_for_and_what_is_not() {
    let all = [Plan, Transient, Overload, Pay, Auth, Budget, Setup];
    let soon: Vec<LimitClass> = all.into_iter().filter(|class| class.is_transient()).collect();
    let ever: Vec<LimitClass> = all.into_iter().filter(|class| class.ends_by_itself()).collect();
    assert_eq!((soon, ever), (vec![Transient, Overload], vec![Plan, Transient, Overload]));
    for class in all {
        assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
        assert_eq!(ErrorClass::from(class).is_transient(), class == Overload, "{class:?}");
    }
}

#[test]
fn it_is_told_in_the_fields_that_fit() {
    let told = |text: &str| serde_json::to_value(*understand(None, None, text).limit.unwrap()).unwrap();
    assert_eq!(
        told("You've hit your Opus limit · resets Jul 15 at 12am (Asia/Tokyo)"),
        serde_json::json!({
            "class": "plan", "window": "Opus", "model": "Opus", "resets_text": "Jul 15 at 12am (Asia/Tokyo)",
            "resets_clock": {
                "date": { "month": 7, "day": 15 }, "hour": 0, "minute": 0, "zone": { "named": "Asia/Tokyo" },
            },
        })
    );
    assert_eq!(
        told("Rate limit exceeded. Try again in 35 seconds."),
        serde_json::json!({ "class": "transient", "retry_after_ms": 35_000 })
    );
    assert_eq!(
        told("Claude AI usage limit reached|1752000000"),
        serde_json::json!({ "class": "plan", "resets_at": 1_752_000_000 })
    );
}
