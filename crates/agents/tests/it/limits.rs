//! Limits of providers, told in fields: those are believed before any words.

use segno_agents::AgentEvent;
use segno_agents::EndCause;
use segno_agents::ErrorClass;
use segno_agents::ExitInfo;
use segno_agents::Limit;
use segno_agents::LimitClass;
use segno_agents::LimitStatus;
use segno_agents::LogUse;
use segno_agents::Outcome;
use segno_agents::OutcomeKind;
use segno_agents::ReaderOptions;
use segno_agents::ResetTime;
use segno_agents::by_name;
use serde_json::Value;
use serde_json::json;

use crate::support::read;

fn stream(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Class, window, model and end.
type Short<'a> = (LimitClass, Option<&'a str>, Option<&'a str>, Option<ResetTime>);

fn short(limit: Option<&Limit>) -> Option<Short<'_>> {
    limit.map(|limit| (limit.class, limit.window.as_deref(), limit.model.as_deref(), limit.resets.clone()))
}

fn claude(info: &Value, text: &str) -> Outcome {
    let lines = [
        json!({ "type": "system", "subtype": "init", "session_id": "s", "model": "m" }),
        json!({ "type": "rate_limit_event", "rate_limit_info": info, "session_id": "s" }),
        json!({
            "type": "assistant", "error": "rate_limit", "is_api_error_message": true, "api_error_status": 429,
            "api_error_type": "rate_limit_error", "session_id": "s",
            "message": { "id": "e", "model": "<synthetic>", "content": [{ "type": "text", "text": text }] },
        }),
        json!({
            "type": "result", "subtype": "success", "is_error": true, "terminal_reason": "api_error",
            "api_error_status": 429, "api_error_type": "rate_limit_error", "result": text, "session_id": "s",
        }),
    ];
    read("claude", &stream(&lines), &ExitInfo::code(1)).1
}

#[test]
fn claude_says_which_window_refuses() {
    let text = "You've hit your org's monthly spend limit · ask your admin for a higher limit";
    let at = Some(ResetTime::At(1_794_815_184));
    let window = |kind: &str, reason: &str| {
        json!({
            "status": "rejected", "resetsAt": 1_794_815_184, "rateLimitType": kind, "overageStatus": "rejected",
            "overageDisabledReason": reason, "isUsingOverage": false,
            "unifiedWindows": { kind: { "utilization": 1.04, "resetsAt": 1_794_815_184, "status": "rejected" } },
        })
    };
    // Whatever is said about money: with a window that opens again it is the plan.
    for reason in ["org_level_disabled_until", "out_of_credits", "org_spend_cap_reached"] {
        let outcome = claude(&window("five_hour", reason), text);
        assert_eq!(outcome.outcome, OutcomeKind::Limit);
        assert_eq!(outcome.error.as_ref().unwrap().class, ErrorClass::Limit);
        let limit = outcome.limit.as_ref().unwrap();
        assert_eq!(short(Some(limit)), Some((LimitClass::Plan, Some("five_hour"), None, at.clone())));
        assert_eq!(limit.windows[0].utilization, Some(1.04));
        assert_eq!(limit.overage.as_ref().unwrap().disabled_reason.as_deref(), Some(reason));
        assert_eq!(limit.text.as_deref(), Some(text));
    }
    let one = claude(&window("seven_day_opus", "no_limits_configured"), "You've hit your Opus limit");
    let expected = Some((LimitClass::Plan, Some("seven_day_opus"), Some("opus"), at));
    assert_eq!(short(one.limit.as_ref()), expected);
    let credits = json!({ "status": "rejected", "rateLimitType": "overage", "overageStatus": "rejected" });
    let pay = claude(&credits, "You're out of usage credits");
    assert_eq!((pay.outcome, pay.limit.unwrap().class), (OutcomeKind::Failed, LimitClass::Pay));
}

#[test]
fn a_full_window_alone_refuses_nothing() {
    let info = json!({
        "status": "allowed", "rateLimitType": "five_hour", "resetsAt": 1_794_815_184, "isUsingOverage": true,
        "unifiedWindows": { "five_hour": { "utilization": 1.2, "resetsAt": 1_794_815_184, "status": "rejected" } },
    });
    let outcome = claude(&info, "API Error: Request rejected (429) · rate limited");
    let limit = outcome.limit.as_ref().unwrap();
    assert_eq!(short(Some(limit)), Some((LimitClass::Transient, None, None, None)));
    assert_eq!(limit.overage.as_ref().unwrap().in_use, Some(true));
    assert!(limit.is_transient());
}

/// Lines of a run that was told `status` of its windows, one after the other, and then more.
fn told(statuses: &[&str], more: &[Value]) -> String {
    let mut lines = vec![json!({ "type": "system", "subtype": "init", "session_id": "s", "model": "m" })];
    lines.extend(statuses.iter().map(|status| {
        let info = json!({ "status": status, "resetsAt": 1_794_815_184, "rateLimitType": "five_hour" });
        json!({ "type": "rate_limit_event", "rate_limit_info": info, "session_id": "s" })
    }));
    lines.extend_from_slice(more);
    stream(&lines)
}

#[test]
fn a_refusal_that_stands_explains_an_end_that_nothing_else_explains() {
    let says = json!({
        "type": "assistant", "session_id": "s",
        "message": { "id": "a", "model": "m", "content": [{ "type": "text", "text": "let me see" }] },
    });
    let result = |is_error: bool, words: &str| {
        json!({
            "type": "result", "subtype": "success", "is_error": is_error, "result": words, "session_id": "s",
            "modelUsage": {},
        })
    };
    let unknown = [result(true, "the service said no")];
    let ends: [(&[Value], ExitInfo); 6] = [
        (&[], ExitInfo::code(1)),
        (&[], ExitInfo::code(0)),
        (std::slice::from_ref(&says), ExitInfo::code(1)),
        (&unknown, ExitInfo::code(1)),
        (&unknown, ExitInfo::code(0)),
        (&[], ExitInfo::code(1).with_stderr("something broke")),
    ];
    let refused = Some((LimitClass::Plan, Some("five_hour"), None, Some(ResetTime::At(1_794_815_184))));
    for (more, exit) in &ends {
        let limit = |statuses: &[&str]| read("claude", &told(statuses, more), exit).1.limit;
        assert_eq!(short(limit(&["rejected"]).as_ref()), refused, "{more:?} {exit:?}");
        assert_eq!(short(limit(&["allowed", "rejected"]).as_ref()), refused, "{more:?} {exit:?}");
        // A later word takes it back.
        for later in ["allowed", "allowed_warning", "a word of tomorrow"] {
            assert_eq!(limit(&["rejected", later]), None, "{later} {more:?} {exit:?}");
        }
    }
    let failed = read("claude", &told(&["rejected"], &unknown), &ExitInfo::code(1)).1;
    assert_eq!(failed.outcome, OutcomeKind::Limit);
    assert_eq!(failed.limit.unwrap().text.as_deref(), Some("the service said no"));
}

#[test]
fn a_refusal_explains_no_end_that_has_an_explanation() {
    let result = |is_error: bool, words: &str| {
        json!({
            "type": "result", "subtype": "success", "is_error": is_error, "result": words, "session_id": "s",
            "modelUsage": {},
        })
    };
    let limit = |more: &[Value], exit: &ExitInfo| read("claude", &told(&["rejected"], more), exit).1.limit;
    assert_eq!(limit(&[result(false, "done")], &ExitInfo::code(0)), None);
    assert_eq!(limit(&[], &ExitInfo::signal(9)), None);
    assert_eq!(limit(&[], &ExitInfo::code(143).because(EndCause::Stopped)), None);
    assert_eq!(limit(&[], &ExitInfo::code(143).because(EndCause::TimedOut)), None);
    assert_eq!(limit(&[result(true, "prompt is too long")], &ExitInfo::code(1)), None);
    let login =
        limit(&[result(true, "API Error: 401 Invalid API key · Please run /login")], &ExitInfo::code(1));
    assert_eq!(login.unwrap().class, LimitClass::Auth);
    // Without a time there is nothing to wait for.
    let info = json!({ "status": "rejected", "rateLimitType": "overage" });
    let line = json!({ "type": "rate_limit_event", "rate_limit_info": info, "session_id": "s" });
    assert_eq!(read("claude", &stream(&[line]), &ExitInfo::code(1)).1.limit, None);
}

#[test]
fn how_full_the_windows_are_is_told_while_it_runs() {
    let info = json!({
        "status": "allowed_warning", "resetsAt": 100, "rateLimitType": "five_hour", "utilization": 0.93,
        "unifiedWindows": { "five_hour": { "utilization": 0.93, "resetsAt": 100 }, "seven_day": { "utilization": 0.4 } },
    });
    let line = json!({ "type": "rate_limit_event", "rate_limit_info": info });
    let (events, outcome) = read("claude", &stream(&[line]), &ExitInfo::signal(9));
    let AgentEvent::Limit { status, class, utilization, windows, .. } = &events[0].event else {
        panic!("{events:?}")
    };
    assert_eq!((*status, *class, *utilization), (LimitStatus::Warning, None, Some(0.93)));
    assert_eq!(windows.len(), 2);
    assert_eq!(outcome.limit, None, "near is not over");
}

#[test]
fn the_same_words_in_what_an_agent_reads_are_no_limit() {
    let log = "You've hit your 5-hour limit · resets 8:45am (Europe/Paris)\nCredit balance is too low";
    let claude = [
        json!({ "type": "system", "subtype": "init", "session_id": "s" }),
        json!({ "type": "assistant", "session_id": "s", "message": { "id": "m", "model": "x", "content": [
            { "type": "tool_use", "id": "c", "name": "Bash", "input": {} } ] } }),
        json!({ "type": "user", "session_id": "s", "message": { "content": [
            { "type": "tool_result", "tool_use_id": "c", "content": log, "is_error": true } ] } }),
        json!({ "type": "assistant", "session_id": "s", "message": { "id": "n", "model": "x", "content": [
            { "type": "text", "text": log } ] } }),
        json!({ "type": "result", "subtype": "error_during_execution", "is_error": true, "errors": ["it broke"] }),
    ];
    let codex = [
        json!({ "type": "thread.started", "thread_id": "t" }),
        json!({ "type": "item.completed", "item": { "id": "i", "type": "command_execution", "command": "cat log",
            "aggregated_output": log, "exit_code": 1, "status": "failed" } }),
        json!({ "type": "turn.failed", "error": { "message": "it broke" } }),
    ];
    let gemini = [
        json!({ "type": "init", "session_id": "s" }),
        json!({ "type": "tool_use", "tool_id": "c", "tool_name": "read_file", "parameters": {} }),
        json!({ "type": "tool_result", "tool_id": "c", "status": "error", "output": log,
            "error": { "message": log } }),
        json!({ "type": "result", "status": "error", "error": { "message": "it broke" } }),
    ];
    let opencode = [
        json!({ "type": "tool_use", "sessionID": "s", "part": { "callID": "c", "tool": "bash",
            "state": { "status": "error", "error": log, "input": {} } } }),
        json!({ "type": "error", "sessionID": "s", "error": { "name": "UnknownError", "data": { "message": "it broke" } } }),
    ];
    for (agent, lines) in
        [("claude", &claude[..]), ("codex", &codex[..]), ("gemini", &gemini[..]), ("opencode", &opencode[..])]
    {
        let (events, outcome) = read(agent, &stream(lines), &ExitInfo::code(1));
        assert_eq!((outcome.outcome, outcome.limit), (OutcomeKind::Failed, None), "{agent}");
        assert_eq!(outcome.error.unwrap().class, ErrorClass::Unknown, "{agent}");
        let limits = events.iter().filter(|event| matches!(&event.event, AgentEvent::Limit { .. }));
        assert_eq!(limits.count(), 0, "{agent}");
    }
    let stderr = ExitInfo::code(1).with_stderr(log);
    assert_eq!(read("plain", "", &stderr).1.limit, None, "a command's words are anybody's");
}

/// The rollout of a turn that ended with an error; as a driver at the terminal reads it.
fn rollout(limits: &Value, message: &str, info: &Value) -> (Vec<AgentEvent>, Vec<OutcomeKind>) {
    let line = |payload: Value| json!({ "timestamp": "2026-11-16T00:00:00Z", "type": "event_msg", "payload": payload });
    let lines = [
        line(json!({ "type": "task_started", "turn_id": "n" })),
        line(json!({ "type": "token_count", "info": null, "rate_limits": limits })),
        line(json!({ "type": "task_complete", "turn_id": "n", "last_agent_message": null,
            "error": { "message": message, "codex_error_info": info } })),
    ];
    let log = by_name("codex").unwrap();
    let log = log.conversation_log().unwrap();
    let mut reader = log.reader(&ReaderOptions::default(), LogUse::Alone { since: None }).unwrap();
    let mut events = Vec::new();
    reader.feed(stream(&lines).as_bytes(), &mut |event| events.push(event.event));
    let verdicts = events.iter().filter_map(|event| match event {
        AgentEvent::Result { verdict, .. } => Some(*verdict),
        _ => None,
    });
    let verdicts = verdicts.collect();
    (events, verdicts)
}

fn windows(reached: Option<&str>) -> Value {
    json!({
        "limit_id": "codex", "limit_name": null, "credits": null, "plan_type": null,
        "primary": { "used_percent": 100.0, "window_minutes": 299, "resets_at": 1_794_815_184 },
        "secondary": { "used_percent": 41.5, "window_minutes": 10_080, "resets_at": 1_795_207_984 },
        "rate_limit_reached_type": reached,
    })
}

#[test]
fn codex_at_the_terminal_says_what_ended_its_turn() {
    const HIT: &str = "You\u{2019}ve hit your usage limit. Try again at 8:46 AM.";
    for (reached, message, info, verdict, class) in [
        (None, HIT, json!("usage_limit_exceeded"), OutcomeKind::Limit, Some(LimitClass::Plan)),
        (
            Some("rate_limit_reached"),
            HIT,
            json!("usage_limit_exceeded"),
            OutcomeKind::Limit,
            Some(LimitClass::Plan),
        ),
        (
            Some("workspace_owner_credits_depleted"),
            "Sorry.",
            json!("usage_limit_exceeded"),
            OutcomeKind::Failed,
            Some(LimitClass::Pay),
        ),
        (
            Some("workspace_member_usage_limit_reached"),
            HIT,
            json!("usage_limit_exceeded"),
            OutcomeKind::Failed,
            Some(LimitClass::Pay),
        ),
        (None, "Sorry.", json!("server_overloaded"), OutcomeKind::Failed, Some(LimitClass::Overload)),
        (None, "Sorry.", json!("session_budget_exceeded"), OutcomeKind::Budget, Some(LimitClass::Budget)),
        (None, "Sorry.", json!("context_window_exceeded"), OutcomeKind::Failed, None),
        (None, "Sorry.", json!("unauthorized"), OutcomeKind::Failed, Some(LimitClass::Auth)),
        (
            None,
            "exceeded retry limit",
            json!({ "response_too_many_failed_attempts": { "http_status_code": 429 } }),
            OutcomeKind::Limit,
            Some(LimitClass::Transient),
        ),
        (
            None,
            "connection failed",
            json!({ "http_connection_failed": { "http_status_code": 401 } }),
            OutcomeKind::Failed,
            Some(LimitClass::Auth),
        ),
        (
            None,
            "stream disconnected",
            json!({ "response_stream_disconnected": { "http_status_code": null } }),
            OutcomeKind::Failed,
            None,
        ),
    ] {
        let (events, verdicts) = rollout(&windows(reached), message, &info);
        assert_eq!(verdicts, [verdict], "{info}");
        let told = events.iter().find_map(|event| match event {
            AgentEvent::Error { limit, .. } => Some(limit.as_ref().map(|limit| limit.class)),
            _ => None,
        });
        assert_eq!(told, Some(class), "{info}");
    }
}

#[test]
fn codex_names_windows_by_their_length() {
    let (events, _) = rollout(&windows(None), "You've hit your usage limit.", &json!("usage_limit_exceeded"));
    let told: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Limit { status, class, window, resets_at, windows, .. } => {
                let shares: Vec<_> =
                    windows.iter().map(|window| (window.name.as_str(), window.utilization)).collect();
                Some((*status, *class, window.as_deref(), *resets_at, shares))
            }
            _ => None,
        })
        .collect();
    let shares = vec![("5h", Some(1.0)), ("weekly", Some(0.415))];
    let at = Some(1_794_815_184);
    assert_eq!(
        told,
        [
            (LimitStatus::Warning, None, Some("5h"), at, shares.clone()),
            (LimitStatus::Rejected, Some(LimitClass::Plan), Some("5h"), at, shares),
        ]
    );
}

fn opencode(data: Value) -> Outcome {
    let line = json!({ "type": "error", "sessionID": "s", "error": { "name": "APIError", "data": data } });
    read("opencode", &stream(&[line]), &ExitInfo::code(1)).1
}

#[test]
fn opencode_passes_the_answer_on() {
    let body = |kind: &str, name: &str| {
        json!({ "type": "error", "error": { "type": kind, "message": "m", "metadata": { "limitName": name } } }).to_string()
    };
    for (data, outcome, expected) in [
        (
            json!({ "message": "slow down", "statusCode": 429, "responseHeaders": { "retry-after": "600" } }),
            OutcomeKind::Limit,
            (LimitClass::Transient, None, None, Some(ResetTime::After(600_000))),
        ),
        (
            json!({ "message": "slow down", "statusCode": 429,
                "responseHeaders": { "Retry-After-Ms": "1500", "retry-after": "600" } }),
            OutcomeKind::Limit,
            (LimitClass::Transient, None, None, Some(ResetTime::After(1_500))),
        ),
        (
            json!({ "message": "busy", "statusCode": 503,
                "responseHeaders": { "retry-after": "Sun, 15 Nov 2026 18:20:51 GMT" } }),
            OutcomeKind::Failed,
            (LimitClass::Overload, None, None, Some(ResetTime::At(1_794_766_851))),
        ),
        (
            json!({ "message": "5 hour usage limit reached.", "statusCode": 429,
                "responseHeaders": { "retry-after": "8040" }, "responseBody": body("GoUsageLimitError", "5 hour") }),
            OutcomeKind::Limit,
            (LimitClass::Plan, Some("5 hour"), None, Some(ResetTime::After(8_040_000))),
        ),
        (
            json!({ "message": "no", "statusCode": 429, "responseBody": body("FreeUsageLimitError", "") }),
            OutcomeKind::Limit,
            (LimitClass::Plan, None, None, None),
        ),
        (
            json!({ "message": "Too Many Requests", "statusCode": 429, "responseHeaders": { "retry-after": "60" },
                "responseBody": json!({ "error": { "code": "insufficient_quota", "message": "m" } }).to_string() }),
            OutcomeKind::Failed,
            (LimitClass::Pay, None, None, None),
        ),
        (
            json!({ "message": "Too Many Requests", "statusCode": 429,
                "responseBody": json!({ "error": { "message": "Insufficient balance." } }).to_string() }),
            OutcomeKind::Failed,
            (LimitClass::Pay, None, None, None),
        ),
        (
            json!({ "message": "bad key", "statusCode": 401, "responseHeaders": { "retry-after": "soon" } }),
            OutcomeKind::Failed,
            (LimitClass::Auth, None, None, None),
        ),
    ] {
        let ended = opencode(data.clone());
        assert_eq!(ended.outcome, outcome, "{data}");
        assert_eq!(short(ended.limit.as_ref()), Some(expected), "{data}");
    }
}

fn gemini(error: Value, exit: &ExitInfo) -> Outcome {
    let lines = [
        json!({ "type": "init", "session_id": "s" }),
        json!({ "type": "result", "status": "error", "error": error }),
    ];
    read("gemini", &stream(&lines), exit).1
}

#[test]
fn gemini_has_details() {
    let answer = |code: u16, status: &str, details: Value| {
        let answer =
            json!({ "error": { "code": code, "status": status, "message": "no", "details": details } });
        json!({ "type": "unknown", "message": format!("[API Error: {answer}]") })
    };
    let quota = |id: &str| json!({ "@type": "QuotaFailure", "violations": [{ "quotaId": id }] });
    let retry = |delay: &str| json!({ "@type": "RetryInfo", "retryDelay": delay });
    let reason = |reason: &str, metadata: Value| json!({ "reason": reason, "metadata": metadata });
    for (details, outcome, class, resets) in [
        (json!([quota("RequestsPerDayPerModel")]), OutcomeKind::Limit, LimitClass::Plan, None),
        (
            json!([quota("RequestsPerMinute"), retry("44.5s")]),
            OutcomeKind::Limit,
            LimitClass::Transient,
            Some(ResetTime::After(44_500)),
        ),
        (
            json!([reason("QUOTA_EXHAUSTED", json!({ "quotaResetDelay": "539.477544ms" })), retry("68940s")]),
            OutcomeKind::Limit,
            LimitClass::Plan,
            Some(ResetTime::After(539)),
        ),
        (
            json!([reason("QUOTA_EXHAUSTED", json!({ "quotaResetTimeStamp": "2026-11-17T08:00:00Z" }))]),
            OutcomeKind::Limit,
            LimitClass::Plan,
            Some(ResetTime::At(1_794_902_400)),
        ),
        (
            json!([reason("MODEL_CAPACITY_EXHAUSTED", json!({}))]),
            OutcomeKind::Failed,
            LimitClass::Overload,
            None,
        ),
        (
            json!([reason("INSUFFICIENT_G1_CREDITS_BALANCE", json!({}))]),
            OutcomeKind::Failed,
            LimitClass::Pay,
            None,
        ),
        (json!([reason("VALIDATION_REQUIRED", json!({}))]), OutcomeKind::Failed, LimitClass::Auth, None),
        (json!([]), OutcomeKind::Limit, LimitClass::Transient, None),
    ] {
        let ended = gemini(answer(429, "RESOURCE_EXHAUSTED", details.clone()), &ExitInfo::code(173));
        assert_eq!(ended.outcome, outcome, "{details}");
        assert_eq!(short(ended.limit.as_ref()), Some((class, None, None, resets)), "{details}");
    }
}

#[test]
fn gemini_tells_the_rest_as_it_ends() {
    let stderr = "Attempt 1 failed {\n  status: 503,\n  retryDelayMs: 10\n}\n{\n  status: 429,\n  retryDelayMs: 600000,\n  reason: 'QUOTA_EXHAUSTED'\n}";
    let unknown = || json!({ "type": "unknown", "message": "[API Error: An unknown error occurred.]" });
    let ended = gemini(unknown(), &ExitInfo::code(173).with_stderr(stderr));
    assert_eq!(ended.outcome, OutcomeKind::Limit);
    let waits = Some(ResetTime::After(600_000));
    assert_eq!(short(ended.limit.as_ref()), Some((LimitClass::Plan, None, None, waits.clone())));
    for (code, class) in [(173, LimitClass::Transient), (247, LimitClass::Overload), (145, LimitClass::Auth)]
    {
        let ended = gemini(unknown(), &ExitInfo::code(code));
        assert_eq!(short(ended.limit.as_ref()), Some((class, None, None, None)), "{code}");
    }
    assert_eq!(gemini(unknown(), &ExitInfo::code(1).with_stderr(stderr)).limit, None);
    // What is told in words keeps its class, and gets the time.
    let daily = json!({ "type": "unknown", "message": "[API Error: You have exhausted your daily quota on this model.]\nPlease wait. To increase your limits, pay." });
    let ended = gemini(daily, &ExitInfo::code(173).with_stderr(stderr));
    assert_eq!(short(ended.limit.as_ref()), Some((LimitClass::Plan, None, None, waits)));
}

#[test]
fn a_stop_of_ours_is_no_limit() {
    let line = json!({ "type": "error", "sessionID": "s", "error": { "name": "APIError",
        "data": { "message": "slow down", "statusCode": 429 } } });
    for exit in [
        ExitInfo::signal(15).because(segno_agents::EndCause::TimedOut),
        ExitInfo::code(124).because(segno_agents::EndCause::TimedOut),
        ExitInfo::code(130).because(segno_agents::EndCause::Stopped),
    ] {
        assert_eq!(read("opencode", &stream(std::slice::from_ref(&line)), &exit).1.limit, None);
    }
}
