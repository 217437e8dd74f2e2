//! Gemini CLI's stream.

use segno_agents::AgentEvent;
use segno_agents::ErrorClass;
use segno_agents::ExitInfo;
use segno_agents::OutcomeKind;
use segno_agents::ReaderOptions;
use segno_agents::by_name;

use crate::support::read;
use crate::support::read_with;
use crate::support::shown;

const START: &str = r#"{"type":"init","timestamp":"2026-01-01T00:00:00.000Z","session_id":"g1","model":"m1"}
{"type":"message","timestamp":"2026-01-01T00:00:01.000Z","role":"user","content":"do it"}
"#;

fn said(text: &str) -> String {
    format!("{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"{text}\",\"delta\":true}}\n")
}

fn result(rest: &str) -> String {
    format!(
        "{{\"type\":\"result\",{rest},\"stats\":{{\"total_tokens\":170,\"input_tokens\":100,\"output_tokens\":50,\"cached\":30,\"input\":70,\"duration_ms\":9,\"tool_calls\":1,\"models\":{{}}}}}}\n"
    )
}

const SUCCESS: &str = r#""status":"success""#;

#[test]
fn a_run_with_everything() {
    let stream = [
        START,
        &said("One "),
        &said("moment."),
        r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"c1","parameters":{"command":"ls"}}
{"type":"tool_use","tool_name":"write_file","tool_id":"c2","parameters":{"file_path":"a.txt","content":"x"}}
{"type":"tool_result","tool_id":"c1","status":"success","output":"a"}
{"type":"tool_result","tool_id":"c2","status":"success"}
{"type":"tool_use","tool_name":"invoke_agent","tool_id":"c3","parameters":{"agent_name":"generalist","prompt":"dig"}}
{"type":"tool_result","tool_id":"c3","status":"success","output":"gold"}
{"type":"tool_use","tool_name":"write_todos","tool_id":"c4","parameters":{"todos":[{"description":"one","status":"completed"},{"description":"two","status":"pending"}]}}
{"type":"tool_result","tool_id":"c4","status":"error","output":"no","error":{"type":"execution_failed","message":"went wrong"}}
{"type":"tool_use","tool_name":"run_shell_command","tool_id":"c5","parameters":{"command":"rm"}}
{"type":"tool_result","tool_id":"c5","status":"error","error":{"type":"policy_violation","message":"Tool execution denied by policy."}}
{"type":"error","severity":"warning","message":"careful"}
{"type":"hologram","x":1}
"#,
        &said("Done."),
        &result(SUCCESS),
    ]
    .concat();
    insta::assert_snapshot!(shown("gemini", &stream, &ExitInfo::code(0)));
}

#[test]
fn a_message_in_pieces_is_one_message() {
    let stream = format!("{START}{}{}", said("par"), said("tial"));
    let texts = |stream: &str, exit: &ExitInfo| -> Vec<String> {
        let (events, _) = read("gemini", stream, exit);
        let text = |event: &AgentEvent| match event {
            AgentEvent::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        events.iter().filter_map(|event| text(&event.event)).collect()
    };
    assert_eq!(texts(&stream, &ExitInfo::signal(9)), ["partial"], "what was said before a kill is not lost");
    let whole = format!("{stream}{}", result(SUCCESS));
    assert_eq!(texts(&whole, &ExitInfo::code(0)), ["partial"]);
    // Another reader that goes on from the safe place must see the whole message.
    let mut reader = by_name("gemini").unwrap().reader(&ReaderOptions::default());
    reader.feed(stream.as_bytes(), &mut |_| {});
    let safe = reader.safe_offset();
    assert_eq!(safe, START.len() as u64);
    reader.feed(result(SUCCESS).as_bytes(), &mut |_| {});
    assert_eq!(reader.safe_offset(), whole.len() as u64);
    let options = ReaderOptions { start_offset: safe, ..ReaderOptions::default() };
    let rest = &whole.as_bytes()[START.len()..];
    let (events, _) = read_with(by_name("gemini").unwrap().as_ref(), &options, rest, &ExitInfo::code(0));
    let (all, _) = read("gemini", &whole, &ExitInfo::code(0));
    let keys: Vec<String> = all.iter().map(|event| event.key()).collect();
    assert!(events.iter().all(|event| keys.contains(&event.key())), "the same keys as before");
}

#[test]
fn an_end_without_a_result_is_an_interruption_whatever_the_exit() {
    for exit in [ExitInfo::code(0), ExitInfo::code(130), ExitInfo::signal(9)] {
        let (_, outcome) = read("gemini", START, &exit);
        assert_eq!(outcome.outcome, OutcomeKind::Interrupted, "{exit:?}");
    }
    for (code, stderr, class) in [
        (41, "you must specify the GEMINI_API_KEY environment variable", ErrorClass::Authentication),
        (42, "Error resuming session: Invalid session identifier \"x\".", ErrorClass::Setup),
    ] {
        let (_, outcome) = read("gemini", "", &ExitInfo::code(code).with_stderr(stderr));
        assert_eq!((outcome.outcome, outcome.error.unwrap().class), (OutcomeKind::Failed, class));
    }
}

#[test]
fn verdicts() {
    use OutcomeKind as Kind;
    let api = |text: &str| {
        format!(r#""status":"error","error":{{"type":"unknown","message":"[API Error: {text}"}}"#)
    };
    let answer = |code: u16, status: &str| {
        api(&format!(r#"{{\"error\":{{\"code\":{code},\"message\":\"sorry\",\"status\":\"{status}\"}}}}]"#))
    };
    for (fields, code, kind, class) in [
        (answer(400, "INVALID_ARGUMENT"), 144, Kind::Failed, ErrorClass::InvalidRequest),
        (answer(401, "UNAUTHENTICATED"), 145, Kind::Failed, ErrorClass::Authentication),
        (answer(429, "RESOURCE_EXHAUSTED"), 173, Kind::Limit, ErrorClass::Limit),
        (answer(503, "UNAVAILABLE"), 247, Kind::Failed, ErrorClass::Overloaded),
        (api("terminated]"), 1, Kind::Failed, ErrorClass::Network),
        (api(r"sorry]\nPlease wait. To increase your limits, pay."), 173, Kind::Limit, ErrorClass::Limit),
        (
            r#""status":"error","error":{"type":"FatalTurnLimitedError","message":"Reached max session turns"}"#.to_owned(),
            53,
            Kind::MaxTurns,
            ErrorClass::Unknown,
        ),
        (
            r#""status":"error","error":{"type":"FatalCancellationError","message":"Operation cancelled."}"#.to_owned(),
            130,
            Kind::Interrupted,
            ErrorClass::Unknown,
        ),
    ] {
        let (_, outcome) = read("gemini", &format!("{START}{}", result(&fields)), &ExitInfo::code(code));
        assert_eq!((outcome.outcome, outcome.error.unwrap().class), (kind, class), "{fields}");
    }
    // What was told before makes a success none.
    for (message, kind) in [
        ("Agent execution blocked: not today", Kind::Denied),
        ("Maximum session turns exceeded", Kind::MaxTurns),
        ("Loop detected, stopping execution", Kind::Failed),
        ("something else", Kind::Completed),
    ] {
        let stream = format!(
            "{START}{{\"type\":\"error\",\"severity\":\"warning\",\"message\":\"{message}\"}}\n{}",
            result(SUCCESS)
        );
        assert_eq!(read("gemini", &stream, &ExitInfo::code(0)).1.outcome, kind, "{message}");
    }
    // An error without words in the result was told by the line before.
    let stream = format!(
        "{START}{{\"type\":\"error\",\"severity\":\"error\",\"message\":\"empty answer\"}}\n{}",
        result(r#""status":"error""#)
    );
    let (_, outcome) = read("gemini", &stream, &ExitInfo::code(0));
    assert_eq!((outcome.outcome, outcome.reason.as_str()), (Kind::Failed, "empty answer"));
}

#[test]
fn a_piece_of_a_message_that_was_torn_is_not_lost_to_who_takes_over() {
    let piece = said("torn");
    let (head, tail) = piece.split_at(piece.len() / 2);
    let call = "{\"type\":\"tool_use\",\"tool_name\":\"x\",\"tool_id\":\"c1\"}\n";
    let stream = format!("{START}{head}{call}{}{tail}", said("between"));
    let mut reader = by_name("gemini").unwrap().reader(&ReaderOptions::default());
    reader.feed(stream.as_bytes(), &mut |_| {});
    // The message holds both pieces, and the torn one began first.
    assert_eq!(reader.safe_offset(), START.len() as u64);
}

#[test]
fn who_takes_over_knows_why_a_success_is_none() {
    let error = "{\"type\":\"error\",\"severity\":\"warning\",\"message\":\"Loop detected, stopping\"}\n";
    let mut reader = by_name("gemini").unwrap().reader(&ReaderOptions::default());
    reader.feed(format!("{START}{error}").as_bytes(), &mut |_| {});
    assert_eq!(reader.safe_offset(), START.len() as u64);
    reader.feed(result(SUCCESS).as_bytes(), &mut |_| {});
    assert!(reader.safe_offset() > (START.len() + error.len()) as u64);
}

#[test]
fn a_message_without_end_fits_in_memory() {
    let piece = said(&"x".repeat(1 << 20));
    let mut reader = by_name("gemini").unwrap().reader(&ReaderOptions::default());
    let (mut told, mut longest) = (0, 0);
    let mut take = |event: segno_agents::Envelope| {
        if let AgentEvent::Text { text, .. } = event.event {
            told += text.len();
            longest = longest.max(text.len());
        }
    };
    for _ in 0..12 {
        reader.feed(piece.as_bytes(), &mut take);
    }
    reader.finish(&ExitInfo::signal(9), &mut take);
    assert_eq!(told, 12 << 20, "nothing is lost");
    assert!(longest <= 5 << 20, "{longest}");
}
