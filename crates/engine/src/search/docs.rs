//! What of an event can be found.

use segno_core::Event;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::event::Channel;
use segno_store::index::Doc;
use serde_json::Value;

use crate::Engine;

/// More of one text is not looked through.
const MOST: usize = 256 << 10;
/// Members of a call's input that name a file.
const PATHS: &[&str] = &["file_path", "filePath", "path", "notebook_path", "absolute_path", "target_file"];

/// The words of an event; none if it has none that anybody would look for.
pub(super) fn doc(engine: &Engine, seq: u64, at: Timestamp, event: &Event) -> Option<Doc> {
    let whole = |text: &Text| cut(engine.whole(text).unwrap_or_else(|_| text.excerpt().to_owned()));
    let of = |kind: &'static str, text: String| Doc {
        seq,
        at_us: at.as_micros(),
        kind,
        text,
        tool: String::new(),
        path: String::new(),
    };
    let doc = match event {
        Event::RunStarted(e) => of("prompt", e.prompt.as_ref().map(whole)?),
        Event::Said(e) => {
            let kind = match e.channel {
                Channel::Input => "prompt",
                Channel::Text => "said",
                Channel::Thinking => "thinking",
            };
            of(kind, whole(&e.text))
        }
        Event::ToolStarted(e) => {
            let mut words = Vec::new();
            strings(&e.input, &mut words);
            let path = PATHS.iter().find_map(|name| e.input.get(name)?.as_str()).unwrap_or_default();
            let (tool, path) = (e.tool.clone(), path.to_owned());
            Doc { tool, path, ..of("call", cut(words.join("\n"))) }
        }
        Event::ToolEnded(e) => {
            let tool = e.tool.clone().unwrap_or_default();
            Doc { tool, ..of("output", e.output.as_ref().map(whole)?) }
        }
        Event::FileChanged(e) => Doc { path: e.path.clone(), ..of("file", e.path.clone()) },
        Event::ErrorRecorded(e) => of("error", whole(&e.message)),
        Event::HistoryNoted(e) => {
            let details = e.details.as_ref().map(whole).unwrap_or_default();
            of("note", format!("{}\n{details}", e.action))
        }
        Event::TopicSet(e) => of("topic", e.topic.clone()),
        Event::SessionArranged(e) => {
            let words = e.topic.iter().chain(&e.tags_added).map(String::as_str).collect::<Vec<_>>();
            of("topic", words.join(" "))
        }
        Event::DecisionMade(_) => of("decision", all(event)),
        Event::TaskAdded(_) => of("task", all(event)),
        Event::IntentSet(_) | Event::MilestoneReached(_) | Event::BreakpointReached(_) => {
            of("note", all(event))
        }
        Event::OutputRecorded(_) | Event::ArtifactRecorded(_) => of("artifact", all(event)),
        _ => return None,
    };
    (!doc.text.trim().is_empty()).then_some(doc)
}

/// All words of an event.
fn all(event: &Event) -> String {
    let mut words = Vec::new();
    strings(&event.to_value(), &mut words);
    cut(words.join("\n"))
}

fn strings(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, words)),
        // Of a text that was set aside, its beginning is there.
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| name.as_str() != segno_core::text::BLOB_MEMBER)
            .for_each(|(_, member)| strings(member, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MOST {
        text.truncate(text.floor_char_boundary(MOST));
    }
    text
}
