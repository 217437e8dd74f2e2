//! From the bytes of a fuzzer to the invariants that the tests of `segno-agents` and `segno-evidence` check too.

#[path = "../../crates/evidence/tests/it/invariants.rs"]
mod evidence_invariants;
#[path = "../../crates/agents/tests/it/invariants.rs"]
mod invariants;
#[path = "../../crates/engine/src/run/translate.rs"]
mod translate;

use std::sync::LazyLock;

use invariants::Way;
use segno_agents::plain::Plain;
use segno_agents::{Agent, AgentEvent, EndCause, ExitInfo, NAMES, by_name};
use segno_core::decide::{decide_fact, is_fact};
use segno_redact::{Options, Redactor};

/// The output of an agent, after six bytes that say how it is read.
pub fn stream(agent: &str, data: &[u8]) {
    with_way(&*by_name(agent).unwrap(), data);
}

/// The output of a plain command, by rules or as text.
pub fn plain(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    if kind % 4 == 0 {
        with_way(&Plain::default(), data);
    } else {
        with_way(&invariants::plain_json(), data);
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

/// Whatever an agent says, in its output or to a hook, can be journaled.
pub fn journal(data: &[u8]) {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(Options::default()));
    let Some((agent, bytes)) = agent(data) else { return };
    let mut events: Vec<AgentEvent> = Vec::new();
    if data[0] >= 128 {
        events.extend(agent.hook(bytes).map(|report| report.events).unwrap_or_default());
    } else {
        let mut reader = agent.reader(&Default::default());
        reader.feed(bytes, &mut |envelope| events.push(envelope.event));
        reader.flush(&mut |envelope| events.push(envelope.event));
    }
    for event in &events {
        for command in translate::commands_of(event, "r1") {
            if !is_fact(&command) {
                continue;
            }
            let shown = format!("{command:?}");
            let facts = decide_fact(command).unwrap_or_else(|why| panic!("{why}: {shown}"));
            for fact in facts {
                let record = REDACTOR.record(fact).unwrap_or_else(|why| panic!("{why}: {shown}"));
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

fn with_way(agent: &dyn Agent, data: &[u8]) {
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
    let way = Way {
        line_limit,
        lengths: lengths.iter().map(|length| usize::from(*length)).collect(),
        takeover: usize::from(*takeover),
        exit,
    };
    invariants::stream(agent, bytes, &way);
}
