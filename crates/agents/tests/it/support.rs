//! Helpers for all tests.

use segno_agents::Agent;
use segno_agents::Envelope;
use segno_agents::ExitInfo;
use segno_agents::Outcome;
use segno_agents::ReaderOptions;
use segno_agents::by_name;

/// Reads a whole stream.
pub(crate) fn read_with(
    agent: &dyn Agent,
    options: &ReaderOptions,
    stream: &[u8],
    exit: &ExitInfo,
) -> (Vec<Envelope>, Outcome) {
    let mut reader = agent.reader(options);
    let mut events = Vec::new();
    reader.feed(stream, &mut |event| events.push(event));
    let outcome = reader.finish(exit, &mut |event| events.push(event));
    (events, outcome)
}

pub(crate) fn read(agent: &str, stream: &str, exit: &ExitInfo) -> (Vec<Envelope>, Outcome) {
    read_with(by_name(agent).unwrap().as_ref(), &ReaderOptions::default(), stream.as_bytes(), exit)
}

/// Events and outcome, one JSON per line.
pub(crate) fn show(events: &[Envelope], outcome: &Outcome) -> String {
    let mut lines: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    lines.push(serde_json::to_string_pretty(outcome).unwrap());
    lines.join("\n")
}

pub(crate) fn shown(agent: &str, stream: &str, exit: &ExitInfo) -> String {
    let (events, outcome) = read(agent, stream, exit);
    show(&events, &outcome)
}
