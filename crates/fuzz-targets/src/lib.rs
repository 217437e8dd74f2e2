//! From the bytes of a fuzzer to the invariants that the tests of `segno-agents` and `segno-evidence` check too.
//!
//! The programs that feed it are in `fuzz/`, which needs a nightly compiler. This is an ordinary crate, so that whoever changes what
//! it uses is told at once.

#[path = "../../evidence/tests/it/invariants.rs"]
mod evidence_invariants;
#[path = "../../agents/tests/it/invariants.rs"]
mod invariants;
#[path = "../../engine/src/run/translate.rs"]
#[expect(dead_code, reason = "the engine uses all of it")]
mod translate;

use std::sync::LazyLock;

use invariants::Delivery;
use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_agents::EndCause;
use segno_agents::ExitInfo;
use segno_agents::NAMES;
use segno_agents::by_name;
use segno_agents::plain::Plain;
use segno_core::decide::events_of_fact;
use segno_redact::Options;
use segno_redact::Redactor;

/// The output of an agent, after six bytes that say how it is read.
pub fn stream(agent: &str, data: &[u8]) {
    delivered(&*by_name(agent).unwrap(), data);
}

/// The output of a plain command, by rules or as text.
pub fn plain(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    if kind % 4 == 0 {
        delivered(&Plain::default(), data);
    } else {
        delivered(&invariants::plain_json(), data);
    }
}

/// The output of a test command, after one byte that says how it ended; and the same as an agent's words.
pub fn evidence(data: &[u8]) {
    let Some((exit, data)) = data.split_first() else { return };
    let exit = match exit % 4 {
        0 => segno_evidence::Exit::Code(0),
        1 => segno_evidence::Exit::Code(1),
        2 => segno_evidence::Exit::TimedOut,
        _ => segno_evidence::Exit::Unknown,
    };
    let text = String::from_utf8_lossy(data);
    evidence_invariants::check(&text, exit);
    evidence_invariants::claims(&text);
}

/// A hook payload, after one byte that chooses the agent.
pub fn hooks(data: &[u8]) {
    if let Some((agent, payload)) = agent(data) {
        invariants::hook(&*agent, payload);
    }
}

/// An agent's own record, after one byte that chooses the agent.
pub fn transcripts(data: &[u8]) {
    if let Some((agent, bytes)) = agent(data) {
        invariants::transcript(&*agent, bytes);
    }
}

/// Whatever an agent says, in its output or to a hook, can be journaled. The first byte says which of the two, the second
/// chooses the agent.
pub fn journal(data: &[u8]) {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(Options::default()));
    let Some((from_hook, data)) = data.split_first() else { return };
    let Some((agent, bytes)) = agent(data) else { return };
    let mut events: Vec<AgentEvent> = Vec::new();
    if from_hook % 2 == 1 {
        events.extend(agent.hook(bytes).map(|report| report.events).unwrap_or_default());
    } else {
        let mut reader = agent.reader(&Default::default());
        reader.feed(bytes, &mut |envelope| events.push(envelope.event));
        reader.flush(&mut |envelope| events.push(envelope.event));
    }
    for event in &events {
        for fact in translate::facts_of(event, "r1") {
            let shown = format!("{fact:?}");
            let events = events_of_fact(None, fact).unwrap_or_else(|why| panic!("{why}: {shown}"));
            for event in events {
                let record =
                    REDACTOR.record(event.into_event()).unwrap_or_else(|why| panic!("{why}: {shown}"));
                let body = serde_json::from_str::<serde_json::Value>(record.body());
                assert!(body.is_ok(), "cannot be read back: {}", record.body());
            }
        }
    }
}

fn agent(data: &[u8]) -> Option<(Box<dyn Agent>, &[u8])> {
    let (choice, rest) = data.split_first()?;
    Some((by_name(NAMES[usize::from(*choice) % NAMES.len()])?, rest))
}

fn delivered(agent: &dyn Agent, data: &[u8]) {
    let Some(([kind, takeover, lengths @ ..], bytes)) = data.split_first_chunk::<6>() else { return };
    // The highest bit: lines beyond a few bytes are too long. The others: how the process ended.
    let line_limit = if kind & 0x80 == 0 { 64 * 1024 } else { 16 + usize::from(lengths[0]) * 4 };
    let exit = match kind & 7 {
        0..=2 => ExitInfo::code(0),
        3 => ExitInfo::code(1).with_stderr(String::from_utf8_lossy(bytes)),
        4 => ExitInfo::signal(9),
        5 => ExitInfo::code(143).because(EndCause::Stopped),
        6 => ExitInfo::code(0).because(EndCause::Budget),
        _ => ExitInfo::default(),
    };
    let delivery = Delivery {
        line_limit,
        lengths: lengths.iter().map(|length| usize::from(*length)).collect(),
        takeover: usize::from(*takeover),
        exit,
    };
    invariants::stream(agent, bytes, &delivery);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a fuzzer is given first: recorded hooks and streams of each agent.
    fn samples(kind: &str, agent: &str) -> Vec<Vec<u8>> {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/tests/samples").join(kind);
        let text = std::fs::read(folder.join(format!("{agent}.jsonl"))).unwrap_or_default();
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn every_target_takes_what_agents_said() {
        let mut lines = 0;
        for (number, name) in NAMES.iter().enumerate() {
            let number = u8::try_from(number).unwrap();
            for (from_hook, kind) in [(0, "streams"), (1, "hooks")] {
                for line in samples(kind, name) {
                    lines += 1;
                    journal(&[&[from_hook, number], line.as_slice()].concat());
                    hooks(&[&[number], line.as_slice()].concat());
                    transcripts(&[&[number], line.as_slice()].concat());
                    stream(name, &[&[0, 3, 7, 63, 1, 0], line.as_slice()].concat());
                }
            }
        }
        assert!(lines > 50, "only {lines} samples were found");
        plain(b"\x01\x00\x03\x07\x3f\x01\x00{}");
        evidence(b"\x00test a ... ok");
    }
}
