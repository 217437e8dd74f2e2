//! Lines as no agent should write them, and some do.

use segno_agents::AgentEvent;
use segno_agents::Envelope;
use segno_agents::ExitInfo;
use segno_agents::ReaderOptions;
use segno_agents::by_name;

use crate::support::read_with;

fn claude(stream: &[u8], line_limit: usize) -> (Vec<Envelope>, u64) {
    let options = ReaderOptions { line_limit, ..ReaderOptions::default() };
    let claude = by_name("claude").unwrap();
    let (events, outcome) = read_with(claude.as_ref(), &options, stream, &ExitInfo::code(0));
    (events, outcome.lines)
}

fn kinds(events: &[Envelope]) -> Vec<(u64, u32, String)> {
    events
        .iter()
        .map(|event| {
            let value = serde_json::to_value(event).unwrap();
            (event.offset, event.index, value["kind"].as_str().unwrap().to_owned())
        })
        .collect()
}

const STATE: &str = r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#;
const LIMIT: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}"#;

fn want(expected: &[(usize, u32, &str)]) -> Vec<(u64, u32, String)> {
    expected.iter().map(|(offset, index, kind)| (*offset as u64, *index, (*kind).to_owned())).collect()
}

#[test]
fn carriage_returns_blanks_and_no_line_feed_at_the_end() {
    let stream = format!("{STATE}\r\n\r\n\n  \n{STATE}");
    let (events, lines) = claude(stream.as_bytes(), 1 << 20);
    assert_eq!(kinds(&events), want(&[(0, 0, "state"), (stream.len() - STATE.len(), 0, "state")]));
    assert_eq!(lines, 5);
}

#[test]
fn noise_and_broken_characters() {
    let (events, _) = claude(b"npm warn something\n{\"type\":\"system\",\"subtype\":\"informational\",\"content\":\"\xff!\"}\n{\"cut\n", 1 << 20);
    assert_eq!(kinds(&events), want(&[(0, 0, "noise"), (19, 0, "notice"), (78, 0, "noise")]));
    assert!(!events[0].lossy);
    assert!(events[1].lossy);
    assert!(matches!(&events[1].event, AgentEvent::Notice { text, .. } if text == "\u{fffd}!"));
}

#[test]
fn zeros_from_a_punched_hole_do_not_move_offsets() {
    let mut stream = vec![0; 5000];
    stream.extend(STATE.as_bytes());
    stream.extend(b"\0\0\n\0\0\0");
    let (events, _) = claude(&stream, 100);
    assert_eq!(kinds(&events), want(&[(5000, 0, "state")]));
}

#[test]
fn a_zero_inside_a_line_is_noise() {
    let (events, _) = claude(b"{\"type\":\"sys\0tem\"}\n", 100);
    assert_eq!(kinds(&events), want(&[(0, 0, "noise")]));
}

#[test]
fn a_line_of_megabytes_is_parsed_and_a_longer_one_is_excerpted() {
    let big = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"c","content":"{}"}}]}}}}"#,
        "x".repeat(3_000_000)
    );
    let stream = format!("{big}\n{STATE}\n");
    let (events, _) = claude(stream.as_bytes(), 4_000_000);
    assert_eq!(kinds(&events), want(&[(0, 0, "tool_finished"), (big.len() + 1, 0, "state")]));
    let (events, _) = claude(stream.as_bytes(), 1_000_000);
    assert_eq!(kinds(&events), want(&[(0, 0, "oversized"), (big.len() + 1, 0, "state")]));
    let AgentEvent::Oversized { bytes, head, tail } = &events[0].event else { panic!() };
    assert_eq!(*bytes, big.len() as u64);
    assert_eq!((head.len(), tail.len()), (64 * 1024, 64 * 1024));
    assert!(big.starts_with(head) && big.ends_with(tail));
}

#[test]
fn two_events_on_a_line() {
    let (events, _) = claude(format!("{STATE}{LIMIT}\n").as_bytes(), 1 << 20);
    assert_eq!(kinds(&events), want(&[(0, 0, "state"), (0, 1, "limit")]));
}

#[test]
fn an_event_written_into_another() {
    let (head, tail) = STATE.split_at(45);
    let (events, _) = claude(format!("{head}{LIMIT}{tail}\n").as_bytes(), 1 << 20);
    assert_eq!(kinds(&events), want(&[(0, 0, "limit"), (0, 1, "state")]));
    // With its line feed: the outer event goes on after it, and other events may come first.
    let stream = format!("{head}{LIMIT}\n{LIMIT}\n{tail}\n{LIMIT}\n");
    let second = head.len() + LIMIT.len() + 1;
    let last = stream.len() - LIMIT.len() - 1;
    let (events, _) = claude(stream.as_bytes(), 1 << 20);
    let expected = [(0, 0, "limit"), (second, 0, "limit"), (0, 1, "state"), (last, 0, "limit")];
    assert_eq!(kinds(&events), want(&expected));
    // Never completed: kept as noise.
    let (events, _) = claude(format!("{head}{LIMIT}\nwhat\n").as_bytes(), 1 << 20);
    assert_eq!(kinds(&events), want(&[(0, 0, "limit"), (0, 1, "noise"), (second, 0, "noise")]));
}

#[test]
fn a_reader_can_be_replaced_at_its_safe_offset() {
    let (head, tail) = STATE.split_at(45);
    let stream = format!("{STATE}\n{head}{LIMIT}\n{tail}\n{STATE}\n");
    let bytes = stream.as_bytes();
    let agent = by_name("claude").unwrap();
    let all = claude(bytes, 1 << 20).0;
    for cut in 0..=bytes.len() {
        let mut events = Vec::new();
        let mut first = agent.reader(&ReaderOptions::default());
        first.feed(&bytes[..cut], &mut |event| events.push(event));
        let at = first.safe_offset();
        let options = ReaderOptions { start_offset: at, ..ReaderOptions::default() };
        let mut second = agent.reader(&options);
        second.feed(&bytes[at as usize..], &mut |event| events.push(event));
        second.flush(&mut |event| events.push(event));
        let mut keys: Vec<String> = events.iter().map(Envelope::key).collect();
        keys.sort();
        keys.dedup();
        let mut expected: Vec<String> = all.iter().map(Envelope::key).collect();
        expected.sort();
        assert_eq!(keys, expected, "cut at {cut}");
    }
}
