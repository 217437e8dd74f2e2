//! Properties of the reader on any bytes.

use proptest::prelude::*;
use segno_agents::Agent;
use segno_agents::Envelope;
use segno_agents::ExitInfo;
use segno_agents::Outcome;
use segno_agents::ReaderOptions;
use segno_agents::by_name;
use segno_agents::plain;

use crate::support::read_with;

fn agents() -> Vec<Box<dyn Agent>> {
    let json = plain::PlainConfig {
        format: plain::Format::Json,
        rules: serde_json::from_str(
            r#"[{"kind":"text","when":{"$.type":"user"},"fields":{"text":"$.message"}}]"#,
        )
        .unwrap(),
        ..plain::PlainConfig::default()
    };
    vec![
        by_name("claude").unwrap(),
        by_name("codex").unwrap(),
        by_name("gemini").unwrap(),
        by_name("opencode").unwrap(),
        by_name("plain").unwrap(),
        Box::new(plain::Plain::new(json)),
    ]
}

fn options(line_limit: usize) -> ReaderOptions {
    ReaderOptions { line_limit, ..ReaderOptions::default() }
}

fn chunked(
    agent: &dyn Agent,
    limit: usize,
    bytes: &[u8],
    cuts: &[prop::sample::Index],
) -> (Vec<Envelope>, Outcome) {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    let mut reader = agent.reader(&options(limit));
    let mut events = Vec::new();
    for pair in at.windows(2) {
        reader.feed(&bytes[pair[0]..pair[1]], &mut |event| events.push(event));
    }
    let outcome = reader.finish(&ExitInfo::code(0), &mut |event| events.push(event));
    (events, outcome)
}

/// Pieces that real streams are made of, whole and torn.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::sample::select(vec![
        r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#,
        r#"{"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"hi"}]}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c","name":"Bash","input":{}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":[]}]}}"#,
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1}}"#,
        r#"{"subtype":"success","is_error":false,"result":"ok","type":"result"}"#,
        r#"{"type":"thread.started","thread_id":"t"}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"command_execution","status":"failed"}}"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":1}}"#,
        r#"{"type":"turn.failed","error":{"message":"no"}}"#,
        r#"{"type":"message","role":"assistant","content":"a piece","delta":true}"#,
        r#"{"type":"tool_result","tool_id":"c","status":"error","error":{"type":"stop_execution"}}"#,
        r#"{"type":"step_finish","sessionID":"o","part":{"reason":"stop","tokens":{"input":5}}}"#,
        r#"{"type":"tool_use","sessionID":"o","tool_id":"c","part":{"callID":"c","tool":"bash","state":{}}}"#,
        r#"{"type":"assistant","message":{"#,
        r#"{"type":"system","subtype":"init","tools":"not a list"}"#,
        r#"{"type":-1}"#,
        "[[[[[[",
        "\n",
        "\r\n",
        "\0\0",
        "noise",
    ]);
    prop_oneof![
        6 => text.prop_map(|text| text.as_bytes().to_vec()),
        2 => Just(b"\n".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

/// Whole lines without anything that a splice could make ambiguous.
fn event_line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,30}".prop_map(|text| {
            let text = serde_json::to_string(&text).unwrap();
            format!(r#"{{"type":"assistant","message":{{"id":"a","content":[{{"type":"text","text":{text}}}]}},"uuid":"u"}}"#)
        }),
        Just(r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#.to_owned()),
        Just(r#"{"is_error":false,"subtype":"success","result":"ok","type":"result"}"#.to_owned()),
        Just(r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"x"}]}]}}"#.to_owned()),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), limit in 1usize..200) {
        for agent in agents() {
            read_with(agent.as_ref(), &options(limit), &bytes, &ExitInfo::code(1));
            let _ = agent.hook(&bytes);
            let _ = agent.conversation_log().map(|log| log.transcript(&bytes));
        }
    }

    #[test]
    fn any_chunking_gives_the_same_events(
        bytes in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        limit in prop_oneof![Just(1 << 20), 1usize..300],
    ) {
        for agent in agents() {
            let whole = read_with(agent.as_ref(), &options(limit), &bytes, &ExitInfo::code(0));
            prop_assert_eq!(&chunked(agent.as_ref(), limit, &bytes, &cuts), &whole);
        }
    }

    #[test]
    fn every_key_is_unique_and_every_line_is_told(bytes in stream()) {
        for agent in agents() {
            let (events, outcome) = read_with(agent.as_ref(), &options(1 << 20), &bytes, &ExitInfo::code(0));
            let mut keys: Vec<String> = events.iter().map(Envelope::key).collect();
            keys.sort();
            let count = keys.len();
            keys.dedup();
            prop_assert_eq!(keys.len(), count);
            prop_assert!(events.iter().all(|event| event.line <= outcome.lines));
            for event in &events {
                let json = serde_json::to_string(event).unwrap();
                prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
            }
        }
    }

    #[test]
    fn complete_lines_read_apart_or_together_say_the_same(
        first in prop::collection::vec(piece(), 0..6),
        second in prop::collection::vec(piece(), 0..6),
    ) {
        // Lines that leave nothing open: what follows cannot change what they said.
        let join = |pieces: &[Vec<u8>]| -> Vec<u8> {
            let complete = |piece: &&Vec<u8>| {
                serde_json::from_slice::<serde_json::Value>(piece).is_ok_and(|value| value["delta"].is_null())
            };
            pieces.iter().filter(complete).flat_map(|piece| [piece.as_slice(), b"\n"].concat()).collect()
        };
        let (first, second) = (join(&first), join(&second));
        let both = [first.clone(), second].concat();
        for agent in agents() {
            let (alone, _) = read_with(agent.as_ref(), &options(1 << 20), &first, &ExitInfo::code(0));
            let (together, _) = read_with(agent.as_ref(), &options(1 << 20), &both, &ExitInfo::code(0));
            prop_assert_eq!(&together[..alone.len()], &alone[..]);
        }
    }

    /// The real fault: a limit event, with its line feed, written into the middle of any other line.
    #[test]
    fn an_event_torn_by_another_is_put_together_again(
        lines in prop::collection::vec(event_line(), 1..6),
        line in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        with_line_feed in any::<bool>(),
    ) {
        let limit = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1}}"#;
        let torn = line.index(lines.len());
        let at = cut.index(lines[torn].len() + 1);
        let mut spliced = lines.clone();
        spliced[torn].insert_str(at, if with_line_feed { "\n" } else { "" });
        spliced[torn].insert_str(at, limit);
        let claude = by_name("claude").unwrap();
        let read = |lines: &[String]| {
            let stream = lines.join("\n") + "\n";
            let (events, _) = read_with(claude.as_ref(), &options(1 << 20), stream.as_bytes(), &ExitInfo::code(0));
            let mut events: Vec<String> =
                events.iter().map(|event| serde_json::to_string(&event.event).unwrap()).collect();
            events.sort();
            events
        };
        let mut expected = read(&lines);
        expected.push(read(&[limit.to_owned()]).remove(0));
        expected.sort();
        prop_assert_eq!(read(&spliced), expected);
    }

    #[test]
    fn deep_nesting_is_kept_not_crashed_on(depth in 1usize..3000) {
        let line = format!("{{\"type\":\"new\",\"x\":{}{}}}\n", "[".repeat(depth), "]".repeat(depth));
        let (events, _) = read_with(by_name("claude").unwrap().as_ref(), &options(1 << 20), line.as_bytes(), &ExitInfo::code(0));
        prop_assert_eq!(events.len(), 1);
    }
}
