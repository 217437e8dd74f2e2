//! Claude Code's stream.

use segno_agents::AgentEvent;
use segno_agents::EndCause;
use segno_agents::ExitInfo;
use segno_agents::InputSource;
use segno_agents::OutcomeKind;
use segno_agents::ReaderOptions;
use segno_agents::by_name;

use crate::support::read;
use crate::support::shown;

const INIT: &str = r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"s1","tools":["Bash"],"model":"m1","claude_code_version":"2.0.0","permissionMode":"default"}"#;

fn text(id: &str, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","model":"m1","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":10,"output_tokens":1}}}},"session_id":"s1","uuid":"u-{id}"}}"#
    )
}

fn call(id: &str, tool: &str, input: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"msg","model":"m1","content":[{{"type":"tool_use","id":"{id}","name":"{tool}","input":{input}}}]}},"session_id":"s1"}}"#
    )
}

fn answer(id: &str, content: &str, rest: &str) -> String {
    format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":{content}{rest}}}]}},"session_id":"s1"}}"#
    )
}

/// A result; `type` comes last, as in the real thing.
fn result(fields: &str) -> String {
    format!(
        r#"{{"duration_api_ms":5,"session_id":"s1","num_turns":1,"duration_ms":9,{fields},"type":"result"}}"#
    )
}

fn success(total: u64, new: u64, cost: f64) -> String {
    result(&format!(
        r#""subtype":"success","is_error":false,"terminal_reason":"completed","result":"ok","total_cost_usd":{cost},"usage":{{"input_tokens":1,"output_tokens":1}},"modelUsage":{{"m1":{{"inputTokens":{total},"outputTokens":2,"costUSD":{cost}}}}},"model_usage_since_last_result":{{"m1":{{"inputTokens":{new},"outputTokens":1,"costUSD":0.5}}}},"permission_denials":[]"#
    ))
}

fn lines(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

#[test]
fn a_run_with_tools() {
    let stream = lines(&[
        r#"{"type":"system","subtype":"hook_started","hook_id":"h","hook_name":"SessionStart:startup","hook_event":"SessionStart","session_id":"s1"}"#.into(),
        INIT.into(),
        r#"{"type":"system","subtype":"thinking_tokens","estimated_tokens":2,"session_id":"s1"}"#.into(),
        r#"{"type":"assistant","message":{"id":"msg","content":[{"type":"thinking","thinking":"hm","signature":"x"}],"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}},"uuid":"u1","timestamp":"2026-01-01T00:00:00Z","session_id":"s1"}"#.into(),
        call("c1", "Bash", r#"{"command":"ls","n":1.0}"#),
        answer("c1", r#""a\nb""#, r#","is_error":false"#),
        call("c2", "Write", r#"{"file_path":"/w/a.txt","content":"x"}"#),
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"created"}]}]},"tool_use_result":{"type":"create","filePath":"/w/a.txt"},"session_id":"s1"}"#.into(),
        call("c3", "Bash", r#"{"command":"false"}"#),
        answer("c3", r#""Exit code 3\nbad""#, r#","is_error":true"#),
        text("msg2", "done"),
        success(100, 40, 1.5),
    ]);
    insta::assert_snapshot!(shown("claude", &stream, &ExitInfo::code(0)));
}

#[test]
fn several_results_in_one_process_are_counted_once_each() {
    let stream = lines(&[
        INIT.into(),
        text("a", "started"),
        r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"t1"}],"session_id":"s1"}"#.into(),
        success(100, 100, 1.0),
        r#"{"type":"system","subtype":"task_notification","task_id":"t1","tool_use_id":"c1","status":"completed","summary":"over","session_id":"s1"}"#.into(),
        INIT.into(),
        text("b", "after"),
        success(140, 40, 1.5),
    ]);
    let (_, outcome) = read("claude", &stream, &ExitInfo::code(0));
    assert_eq!(outcome.outcome, OutcomeKind::Completed);
    assert_eq!((outcome.results, outcome.turns, outcome.tokens.input), (2, 2, 140));
    assert!(outcome.tokens_exact);
    assert_eq!((outcome.cost_usd, outcome.cost_total_usd), (Some(1.0), Some(1.5)));
    assert_eq!(outcome.duration_ms, Some(18));
    // Killed after the first result, with a task in the background.
    let cut: String = stream.lines().take(4).map(|line| format!("{line}\n")).collect();
    let (_, outcome) = read("claude", &cut, &ExitInfo::signal(9));
    assert_eq!(outcome.outcome, OutcomeKind::Interrupted);
    assert_eq!(outcome.background, ["t1"]);
    // Killed after the task's end, before or while the turn that follows it is announced.
    let background = r#"{"type":"system","subtype":"background_tasks_changed","tasks":[],"session_id":"s1"}"#;
    for rest in [format!("{background}\n"), format!("{background}\n{}", &INIT[..30])] {
        let (_, outcome) = read("claude", &format!("{cut}{rest}"), &ExitInfo::signal(9));
        assert_eq!(outcome.outcome, OutcomeKind::Interrupted);
    }
}

#[test]
fn a_missing_final_event_is_an_interruption_whatever_the_exit() {
    let stream = lines(&[INIT.into(), text("a", "hi"), call("c1", "Bash", "{}")]);
    for exit in [ExitInfo::code(0), ExitInfo::code(1), ExitInfo::code(143), ExitInfo::signal(9)] {
        let (_, outcome) = read("claude", &stream, &exit);
        assert_eq!(outcome.outcome, OutcomeKind::Interrupted, "{exit:?}");
        assert_eq!(outcome.native_id.as_deref(), Some("s1"));
        assert_eq!(outcome.open_calls.len(), 1);
        assert_eq!((outcome.tokens.input, outcome.tokens_exact), (10, false));
    }
    // A second turn without its result.
    let stream = lines(&[INIT.into(), success(1, 1, 0.0), INIT.into(), text("b", "more")]);
    assert_eq!(read("claude", &stream, &ExitInfo::code(0)).1.outcome, OutcomeKind::Interrupted);
    // A program that never began has interrupted nothing.
    let exit = ExitInfo::code(1).with_stderr("Error: Session ID s1 is already in use.\n");
    let (_, outcome) = read("claude", "", &exit);
    assert_eq!(outcome.outcome, OutcomeKind::Failed);
    assert_eq!(outcome.reason, "exited with code 1: Error: Session ID s1 is already in use.");
}

#[test]
fn a_session_id_is_taken_from_any_line() {
    let stream =
        r#"{"type":"system","subtype":"hook_started","hook_event":"SessionStart","session_id":"s9"}"#;
    assert_eq!(read("claude", stream, &ExitInfo::signal(9)).1.native_id.as_deref(), Some("s9"));
}

#[test]
fn verdicts() {
    use OutcomeKind as Kind;
    for (fields, code, kind) in [
        (
            r#""subtype":"error_max_turns","is_error":true,"terminal_reason":"max_turns","errors":["Reached maximum number of turns (2)"]"#,
            1,
            Kind::MaxTurns,
        ),
        (
            r#""subtype":"error_max_budget_usd","is_error":true,"errors":["Reached maximum budget ($1)"]"#,
            1,
            Kind::Budget,
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","errors":["[x]"]"#,
            0,
            Kind::Interrupted,
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":400,"result":"API Error: 400 no""#,
            1,
            Kind::Failed,
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":429,"result":"limited""#,
            1,
            Kind::Limit,
        ),
        (
            r#""subtype":"success","is_error":true,"result":"You've hit your limit · resets 5pm (UTC)""#,
            0,
            Kind::Limit,
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]"#,
            1,
            Kind::Failed,
        ),
        (
            r#""subtype":"success","is_error":false,"terminal_reason":"hook_stopped","result":"""#,
            0,
            Kind::Stopped,
        ),
        (r#""subtype":"success","is_error":false,"result":"ok""#, 0, Kind::Completed),
        (r#""subtype":"success","is_error":false,"result":"ok""#, 1, Kind::Failed),
        (r#""subtype":"success","is_error":false,"result":"ok""#, 143, Kind::Completed),
    ] {
        let stream = lines(&[INIT.into(), result(fields)]);
        assert_eq!(read("claude", &stream, &ExitInfo::code(code)).1.outcome, kind, "{fields}");
    }
}

#[test]
fn whoever_ended_the_run_is_believed() {
    let aborted = lines(&[
        INIT.into(),
        result(r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools""#),
    ]);
    let done = lines(&[INIT.into(), success(1, 1, 0.0)]);
    for (stream, exit, kind) in [
        (&aborted, ExitInfo::code(0).because(EndCause::Stopped), OutcomeKind::Stopped),
        (&aborted, ExitInfo::code(0).because(EndCause::TimedOut), OutcomeKind::TimedOut),
        (&aborted, ExitInfo::signal(9).because(EndCause::Budget), OutcomeKind::Budget),
        // It was done before the request arrived.
        (&done, ExitInfo::code(0).because(EndCause::Stopped), OutcomeKind::Completed),
        (&done, ExitInfo::signal(9).because(EndCause::Stopped), OutcomeKind::Stopped),
        (&String::new(), ExitInfo::missing(), OutcomeKind::AgentMissing),
    ] {
        assert_eq!(read("claude", stream, &exit).1.outcome, kind, "{exit:?}");
    }
}

#[test]
fn a_limit_says_when_it_ends() {
    let stream = lines(&[
        INIT.into(),
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1700000000,"rateLimitType":"five_hour","utilization":0.93,"unifiedWindows":{"five_hour":{"utilization":1,"resetsAt":1700000000}}},"session_id":"s1"}"#.into(),
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1700000000,"rateLimitType":"five_hour"},"session_id":"s1"}"#.into(),
        r#"{"type":"assistant","message":{"id":"e","model":"<synthetic>","content":[{"type":"text","text":"You've hit your 5-hour limit · resets 7:04pm (UTC)"}]},"error":"rate_limit","is_api_error_message":true,"api_error_status":429,"session_id":"s1"}"#.into(),
        result(r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":429,"api_error_type":"rate_limit_error","result":"You've hit your 5-hour limit · resets 7:04pm (UTC)","modelUsage":{},"model_usage_since_last_result":{}"#),
    ]);
    insta::assert_snapshot!(shown("claude", &stream, &ExitInfo::code(1)));
}

#[test]
fn refusals_inside_a_success() {
    let denied = r#"{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"c1","message":"needs approval","session_id":"s1"}"#;
    let rejected = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c1","content":"needs approval","is_error":true}]},"tool_result_meta":[{"id":"c1","non_execution_kind":"user-rejected","permission_decision":{"decision":"reject","source":"config"}}],"session_id":"s1"}"#;
    let end = result(
        r#""subtype":"success","is_error":false,"result":"could not","permission_denials":[{"tool_name":"Bash","tool_use_id":"c1"}]"#,
    );
    let stream = lines(&[
        INIT.into(),
        call("c1", "Bash", r#"{"command":"rm x"}"#),
        denied.into(),
        rejected.into(),
        end.clone(),
    ]);
    let (events, outcome) = read("claude", &stream, &ExitInfo::code(0));
    assert_eq!(outcome.outcome, OutcomeKind::Denied);
    assert_eq!(outcome.denials.len(), 1, "told three times, counted once");
    assert_eq!(outcome.denials[0].input.as_ref().map(|raw| raw.get()), Some(r#"{"command":"rm x"}"#));
    let told = events.iter().filter(|event| matches!(event.event, AgentEvent::ToolDenied { .. })).count();
    assert_eq!(told, 2, "the result does not repeat it");
    // The agent found another way.
    let stream = lines(&[
        INIT.into(),
        call("c1", "Bash", "{}"),
        rejected.into(),
        call("c2", "Bash", "{}"),
        answer("c2", r#""fine""#, ""),
        end,
    ]);
    let (_, outcome) = read("claude", &stream, &ExitInfo::code(0));
    assert_eq!((outcome.outcome, outcome.denials.len()), (OutcomeKind::Completed, 1));
}

#[test]
fn a_call_cut_off_is_not_a_refusal() {
    let cut = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c1","content":"The tool use was rejected","is_error":true}]},"tool_result_meta":[{"id":"c1","non_execution_kind":"user-rejected"}],"session_id":"s1"}"#;
    let (events, outcome) =
        read("claude", &lines(&[INIT.into(), call("c1", "Bash", "{}"), cut.into()]), &ExitInfo::code(0));
    assert!(matches!(events.last().unwrap().event, AgentEvent::ToolFailed { interrupted: true, .. }));
    assert!(outcome.denials.is_empty());
}

#[test]
fn sub_agents_tasks_and_the_rest() {
    let stream = lines(&[
        INIT.into(),
        r#"{"type":"system","subtype":"task_started","task_id":"a1","tool_use_id":"c1","description":"dig","subagent_type":"general","is_backgrounded":true,"task_type":"local_agent","session_id":"s1"}"#.into(),
        r#"{"type":"user","message":{"content":"dig here"},"parent_tool_use_id":"c1","session_id":"s1"}"#.into(),
        r#"{"type":"assistant","message":{"id":"sub","content":[{"type":"text","text":"digging"}]},"parent_tool_use_id":"c1","session_id":"s1"}"#.into(),
        r#"{"type":"system","subtype":"task_progress","task_id":"a1","tool_use_id":"c1","description":"Running ls","session_id":"s1"}"#.into(),
        r#"{"type":"system","subtype":"task_notification","task_id":"a1","tool_use_id":"c1","status":"completed","summary":"gold","session_id":"s1"}"#.into(),
        r#"{"type":"tool_progress","tool_use_id":"c2-heartbeat-0","tool_name":"Bash","parent_tool_use_id":"c2","elapsed_time_seconds":30,"heartbeat":true,"session_id":"s1"}"#.into(),
        r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":1098.5,"error_status":null,"error":"unknown","session_id":"s1"}"#.into(),
        r#"{"type":"system","subtype":"status","status":"compacting","session_id":"s1"}"#.into(),
        r#"{"type":"system","subtype":"status","status":null,"compact_result":"success","session_id":"s1"}"#.into(),
        r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":9,"post_tokens":2},"session_id":"s1"}"#.into(),
        r#"{"type":"user","message":{"content":[{"type":"text","text":"summary"}]},"isSynthetic":true,"session_id":"s1"}"#.into(),
        r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"ha"}},"api_message_id":"m","session_id":"s1"}"#.into(),
        r#"{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":5,"output_tokens":7}},"api_message_id":"m","session_id":"s1"}"#.into(),
        r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"c3"}}"#.into(),
        r#"{"type":"control_response","response":{"subtype":"success"}}"#.into(),
        r#"{"type":"system","subtype":"session_state_changed","state":"idle","session_id":"s1"}"#.into(),
        r#"{"type":"system","subtype":"informational","content":"note","level":"notice","session_id":"s1"}"#.into(),
        r#"{"type":"system","subtype":"brand_new","x":1.50,"session_id":"s1"}"#.into(),
        r#"{"type":"assistant","message":{"content":[{"type":"hologram","x":1}]},"session_id":"s1"}"#.into(),
        r#"{"no":"type"}"#.into(),
    ]);
    insta::assert_snapshot!(shown("claude", &stream, &ExitInfo::signal(15)));
}

#[test]
fn a_replay_is_not_the_harness() {
    let stream = r#"{"type":"user","message":{"content":[{"type":"text","text":"go"}]},"isReplay":true}"#;
    let (events, _) = read("claude", stream, &ExitInfo::code(0));
    assert!(matches!(events[0].event, AgentEvent::Input { source: InputSource::Replay, .. }));
}

#[test]
fn older_versions_report_no_difference() {
    let old = |total: u64, cost: f64| {
        result(&format!(
            r#""subtype":"success","is_error":false,"result":"ok","total_cost_usd":{cost},"usage":{{"input_tokens":7,"output_tokens":1}},"modelUsage":{{"m1":{{"inputTokens":{total},"outputTokens":1}}}}"#
        ))
    };
    // A resumed conversation: the sum of 100 is mostly not ours.
    let (_, outcome) =
        read("claude", &lines(&[INIT.into(), old(100, 2.0), INIT.into(), old(130, 2.5)]), &ExitInfo::code(0));
    assert_eq!(outcome.tokens.input, 37);
    // Money counts all the same: a cap must not be passed because nobody knows what of a sum is new.
    assert_eq!(outcome.cost_usd, Some(2.5));
}

/// The last message of the main conversation, against the window of its model.
#[test]
fn how_full_the_context_is() {
    let message = |parent: &str, input: u64, read: u64, model: &str| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"id":"m{input}","model":"{model}","content":[{{"type":"text","text":"x"}}],"usage":{{"input_tokens":{input},"cache_read_input_tokens":{read},"cache_creation_input_tokens":5,"output_tokens":1}}}},"session_id":"s1"}}"#
        )
    };
    let ended = |models: &str| {
        result(&format!(
            r#""subtype":"success","is_error":false,"result":"ok","usage":{{"input_tokens":1,"output_tokens":1}},"modelUsage":{models}"#
        ))
    };
    let models = r#"{"big":{"inputTokens":1,"outputTokens":1,"contextWindow":1000},"small":{"inputTokens":1,"outputTokens":1,"contextWindow":200}}"#;
    for (main, models, expected) in [
        ("big", models, Some((126, 1000))),
        ("small", models, Some((126, 200))),
        ("sma", models, Some((126, 200))),
        ("other", models, None),
        ("other", r#"{"big":{"inputTokens":1,"outputTokens":1,"contextWindow":1000}}"#, Some((126, 1000))),
        ("big", r#"{"big":{"inputTokens":1,"outputTokens":1}}"#, None),
        ("big", "{}", None),
    ] {
        let stream = lines(&[
            INIT.into(),
            message("null", 20, 100, main),
            // A sub-agent has a context of its own.
            message("\"toolu_1\"", 900, 0, "big"),
            ended(models),
        ]);
        let (_, outcome) = read("claude", &stream, &ExitInfo::code(0));
        let told = outcome.context.map(|fill| (fill.used.unwrap(), fill.window.unwrap()));
        assert_eq!(told, expected, "{main} {models}");
    }
}

#[test]
fn a_refused_prompt_is_not_a_success() {
    let blocked = r#"{"type":"system","subtype":"informational","content":"policy","level":"warning","prompt_submit_outcome":"blocked","session_id":"s1"}"#;
    for stream in [
        lines(&[blocked.into()]),
        lines(&[blocked.into(), result(r#""subtype":"success","is_error":false,"result":"""#)]),
    ] {
        let (_, outcome) = read("claude", &stream, &ExitInfo::code(0));
        assert_eq!((outcome.outcome, outcome.reason.as_str()), (OutcomeKind::Denied, "policy"));
    }
}

#[test]
fn numbers_of_any_size_add_up_without_overflow() {
    let huge = u64::MAX;
    let end = format!(
        r#"{{"type":"result","subtype":"success","num_turns":{huge},"duration_ms":{huge},"duration_api_ms":{huge},"total_cost_usd":1e308,"usage":{{"input_tokens":{huge},"output_tokens":{huge}}}}}"#
    );
    let (_, outcome) =
        read("claude", &lines(&[end.clone(), end, INIT.into(), text("m", "x")]), &ExitInfo::code(0));
    assert_eq!((outcome.turns, outcome.duration_ms), (huge, Some(huge)));
    assert_eq!((outcome.tokens.input, outcome.tokens.total()), (huge, huge));
}

#[test]
fn a_reader_that_takes_over_knows_of_a_refused_prompt() {
    let blocked = r#"{"type":"system","subtype":"informational","content":"policy","prompt_submit_outcome":"blocked","session_id":"s1"}"#;
    let mut reader = by_name("claude").unwrap().reader(&ReaderOptions::default());
    let first = lines(&[INIT.into()]);
    reader.feed(first.as_bytes(), &mut |_| {});
    reader.feed(lines(&[blocked.into()]).as_bytes(), &mut |_| {});
    assert_eq!(reader.safe_offset(), first.len() as u64);
    let end = lines(&[result(r#""subtype":"success","is_error":false,"result":"""#)]);
    reader.feed(end.as_bytes(), &mut |_| {});
    assert_eq!(reader.safe_offset(), (first.len() + blocked.len() + 1 + end.len()) as u64);
}

#[test]
fn nothing_spent_is_not_less_than_nothing() {
    let end = result(
        r#""subtype":"success","is_error":false,"total_cost_usd":0,"modelUsage":{},"model_usage_since_last_result":{}"#,
    );
    let (events, _) = read("claude", &lines(&[end]), &ExitInfo::code(0));
    let cost = events.iter().find(|event| matches!(event.event, AgentEvent::Cost { .. })).unwrap();
    assert!(serde_json::to_string(cost).unwrap().contains(r#""delta_usd":0.0"#));
}

#[test]
fn names_and_texts_of_any_length_are_not_kept() {
    let long = "x".repeat(100_000);
    let stream = lines(&[
        call(&long, "Bash", "{}"),
        call("c1", &long, "{}"),
        call("c2", "Bash", "{}"),
        format!(
            r#"{{"type":"system","subtype":"permission_denied","tool_use_id":"c2","message":"ä{long}"}}"#
        ),
        format!(r#"{{"type":"system","subtype":"permission_denied","tool_use_id":"{long}","message":"no"}}"#),
        format!(r#"{{"type":"system","subtype":"task_started","task_id":"{long}","is_backgrounded":true}}"#),
        format!(
            r#"{{"type":"system","subtype":"background_tasks_changed","tasks":[{{"task_id":"{long}"}},{{"task_id":"t"}}]}}"#
        ),
        result(&format!(
            r#""subtype":"success","is_error":false,"result":"ok","modelUsage":{{"{long}":{{"inputTokens":7}}}}"#
        )),
    ]);
    let (events, outcome) = read("claude", &stream, &ExitInfo::code(0));
    let said: usize = events.iter().map(|event| serde_json::to_string(event).unwrap().len()).sum();
    assert!(said > 600_000, "the events say it all");
    assert!(serde_json::to_string(&outcome).unwrap().len() < 20_000);
    assert_eq!((outcome.tool_calls, outcome.open_calls.len(), outcome.denials.len()), (3, 0, 2));
    assert_eq!((outcome.background, outcome.tokens.input), (vec!["t".to_owned()], 7));
}
