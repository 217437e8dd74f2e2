//! What an agent did, in the words of the journal.

use segno_agents::AgentEvent;
use segno_agents::ChangeKind;
use segno_core::Fact;
use segno_core::Text;
use segno_core::event::CallEnd;
use segno_core::event::Change;
use segno_core::event::Channel;
use segno_core::event::RunNamed;
use segno_core::event::Source;
use segno_core::event::TurnCompleted;
use segno_core::limits;
use serde_json::Value;

/// What it is called when a call was answered and what it began goes on.
pub(super) const LAUNCHED: &str = "launched";

/// The end of something that went on after its call was answered.
pub(crate) fn task_ended(call: &str, status: &str, summary: Option<&str>) -> Fact {
    let end = if status == "completed" { CallEnd::Completed } else { CallEnd::Failed };
    let output = Some(summary.unwrap_or(status).into());
    Fact::ToolEnded { call: name(call), tool: None, end, output, source: Source::Stream }
}

/// What the report of an agent's tools is called.
pub(super) const TOOLS: &str = "tools";

/// The facts in one thing that an agent reported. Pieces of a text that comes again whole follow from
/// nothing: they are only a sign of life.
pub fn facts_of(event: &AgentEvent, run: &str) -> Vec<Fact> {
    match event {
        // Tokens are counted by whoever keeps the sum.
        AgentEvent::Partial { .. }
        | AgentEvent::MessageUsage { .. }
        | AgentEvent::Context { .. }
        | AgentEvent::Tokens { .. } => Vec::new(),
        AgentEvent::Progress { heartbeat: true, .. } => Vec::new(),
        AgentEvent::SessionStarted { native_id, model, version, tools, .. } => {
            // An agent that does not say which conversation it opened leaves what is known of it as it is.
            let named = (!native_id.trim().is_empty()).then(|| {
                Fact::RunNamed(RunNamed {
                    run: run.to_owned(),
                    native_id: name(native_id),
                    model: model.as_deref().map(name),
                    version: version.as_deref().map(name),
                })
            });
            let body = serde_json::json!({ "tools": tools });
            let tools = (!tools.is_empty()).then(|| Fact::Reported { what: TOOLS.to_owned(), body });
            named.into_iter().chain(tools).collect()
        }
        AgentEvent::Text { text, message_id, parent } => said(Channel::Text, text, message_id, parent),
        AgentEvent::Thinking { text, message_id, parent } => {
            said(Channel::Thinking, text, message_id, parent)
        }
        AgentEvent::Input { text, parent, .. } => said(Channel::Input, text, &None, parent),
        AgentEvent::ToolStarted { call_id, tool, input, .. } => vec![Fact::ToolStarted {
            call: name(call_id),
            tool: name(tool),
            input: raw(input),
            write_ahead: false,
            source: Source::Stream,
        }],
        // Its call was answered, and what it began goes on: that is no end.
        AgentEvent::ToolFinished { call_id, background: Some(task), .. } => {
            let body = serde_json::json!({ "call": name(call_id), "task": name(task) });
            vec![Fact::Reported { what: LAUNCHED.to_owned(), body }]
        }
        AgentEvent::ToolFinished { call_id, tool, output, .. } => {
            ended(call_id, tool.as_deref(), CallEnd::Completed, Some(text_of(&raw(output))))
        }
        AgentEvent::ToolFailed { call_id, tool, error, .. } => {
            ended(call_id, tool.as_deref(), CallEnd::Failed, Some(error.as_str().into()))
        }
        AgentEvent::ToolDenied { call_id, tool, reason, .. } => {
            ended(call_id, tool.as_deref(), CallEnd::Denied, Some(reason.as_str().into()))
        }
        AgentEvent::FileChanged { path, change, call_id, moved_to } => {
            files(path, *change, moved_to.as_deref())
                .into_iter()
                .map(|(path, change)| Fact::FileChanged {
                    path: fit(path, limits::LINE),
                    change,
                    call: call_id.as_deref().map(name),
                })
                .collect()
        }
        AgentEvent::Cost { delta_usd: Some(dollars), .. } if *dollars > 0.0 => {
            vec![Fact::CostRecorded { micros: (dollars * 1e6).round() as u64, source: Source::Stream }]
        }
        AgentEvent::Error { message, class, .. } if !message.trim().is_empty() => {
            let kind = serde_json::to_value(class).ok().and_then(|kind| kind.as_str().map(ToOwned::to_owned));
            vec![Fact::ErrorRecorded { message: message.as_str().into(), error_kind: kind }]
        }
        AgentEvent::TurnCompleted { turn, steps, duration_ms, .. } => {
            let (turn, steps, duration_ms) = (*turn, *steps, *duration_ms);
            vec![Fact::TurnCompleted(TurnCompleted { turn, steps, duration_ms })]
        }
        other => report(other),
    }
}

/// The files that a change is about: one that has another name now is gone under the old one.
pub(super) fn files<'a>(
    path: &'a str,
    change: ChangeKind,
    moved_to: Option<&'a str>,
) -> Vec<(&'a str, Change)> {
    match (change, moved_to) {
        (ChangeKind::Created, _) => vec![(path, Change::Created)],
        (ChangeKind::Deleted, _) => vec![(path, Change::Deleted)],
        (ChangeKind::Moved, Some(to)) => vec![(path, Change::Deleted), (to, Change::Created)],
        (ChangeKind::Moved | ChangeKind::Modified, _) => vec![(path, Change::Modified)],
    }
}

/// Makes the ids of calls differ from those of other runs of the session, for an agent that counts them anew.
pub(super) fn scope_calls(facts: &mut [Fact], run: &str) {
    let run = run.get(run.len().saturating_sub(12)..).unwrap_or(run);
    for fact in facts {
        let call = match fact {
            Fact::ToolStarted { call, .. } | Fact::ToolEnded { call, .. } => call,
            Fact::FileChanged { call: Some(call), .. } => call,
            _ => continue,
        };
        *call = name(&format!("{run}.{call}"));
    }
}

/// What ended without success did so because its agent was stopped.
pub(super) fn doubt_failures(facts: &mut [Fact]) {
    for fact in facts {
        if let Fact::ToolEnded { end: end @ (CallEnd::Failed | CallEnd::Denied), .. } = fact {
            *end = CallEnd::InDoubt;
        }
    }
}

fn said(channel: Channel, text: &str, message: &Option<String>, parent: &Option<String>) -> Vec<Fact> {
    if text.is_empty() {
        return Vec::new();
    }
    vec![Fact::Said {
        channel,
        text: text.into(),
        message: message.as_deref().map(name),
        parent: parent.as_deref().map(name),
    }]
}

fn ended(call: &str, tool: Option<&str>, end: CallEnd, output: Option<Text>) -> Vec<Fact> {
    vec![Fact::ToolEnded { call: name(call), tool: tool.map(name), end, output, source: Source::Stream }]
}

/// Everything without a word of its own is kept as it came.
fn report(event: &AgentEvent) -> Vec<Fact> {
    let Ok(Value::Object(mut body)) = serde_json::to_value(event) else {
        // Nested deeper than can be taken apart: kept as text.
        let text = serde_json::to_string(event).unwrap_or_default();
        return vec![Fact::Reported {
            what: "unreadable".to_owned(),
            body: serde_json::json!({ "text": text }),
        }];
    };
    let what = match body.remove("kind") {
        Some(Value::String(kind)) => kind,
        _ => "unknown".to_owned(),
    };
    vec![Fact::Reported { what, body: Value::Object(body) }]
}

fn raw(raw: &segno_agents::Raw) -> Value {
    // What is nested too deeply to be taken apart is kept as text.
    serde_json::from_str(raw.get()).unwrap_or_else(|_| Value::String(raw.get().to_owned()))
}

fn text_of(value: &Value) -> Text {
    match value {
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

/// A name as agents make them, in a form that can be kept.
fn name(text: &str) -> String {
    fit(text, limits::NAME)
}

/// What may be a secret that was cut in two is not longer.
const CUT_WORD: usize = 512;

/// Never empty, on one line, not too long. It is cut before anybody has looked for secrets in it, so the word that the cut
/// goes through is left out: half of a secret would not be known as one.
pub(crate) fn fit(text: &str, most: usize) -> String {
    let mut clean: String =
        text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(most).collect();
    if text.chars().nth(most).is_some() {
        let is_word =
            |c: &char| !c.is_whitespace() && !matches!(c, '/' | '"' | '\'' | ',' | ';' | '\u{fffd}');
        let word: usize = clean.chars().rev().take_while(is_word).take(CUT_WORD).map(char::len_utf8).sum();
        clean.truncate(clean.len() - word);
    }
    if clean.trim().is_empty() { "?".to_owned() } else { clean }
}

#[cfg(test)]
mod tests {
    use segno_agents::Raw;

    use super::*;

    #[test]
    fn what_is_nested_too_deeply_is_kept_as_text() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let raw = || Raw::parse(&deep).unwrap();
        let started = AgentEvent::ToolStarted {
            call_id: "c".to_owned(),
            tool: "t".to_owned(),
            input: raw(),
            message_id: None,
            parent: None,
        };
        let facts = facts_of(&started, "r");
        assert!(
            matches!(&facts[..], [Fact::ToolStarted { input: Value::String(text), .. }] if *text == deep)
        );
        let facts = facts_of(&AgentEvent::Unknown { raw: raw() }, "r");
        let [Fact::Reported { body, .. }] = &facts[..] else { panic!("{facts:?}") };
        assert!(body.to_string().contains("[[[["));
    }
}
