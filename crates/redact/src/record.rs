//! The gate to the journal: an event becomes [`Redacted`] here or nowhere.
//!
//! Two things happen to an event on its way in. Secrets are taken out of every string, and strings that are long
//! are set aside as blobs, the event keeping an excerpt. Both happen before anything is written anywhere.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use segno_core::Event;
use segno_core::Text;
use segno_core::event::DecodeError;
use segno_core::text::Aside;
use segno_core::text::BLOB_MEMBER;
use serde_json::Value;

use crate::Redactor;

/// Strings of more bytes than this are set aside.
pub const ASIDE_OVER: usize = 8 * 1024;
/// How much of a text that was set aside stays in the event, in characters.
const EXCERPT: usize = 1_000;
/// Bodies of more bytes than this have their largest members set aside whole.
const BODY_OVER: usize = 96 * 1024;

/// An event that is fit to be recorded. Only [`Redactor::record`] makes one. It never changes, so that copies share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Redacted(Arc<Content>);

#[derive(Debug, PartialEq)]
struct Content {
    event: Event,
    /// The version of the stored form; of an event from another journal it may be an older one than we would write.
    version: u32,
    body: String,
    blobs: Vec<Blob>,
}

/// Text that was set aside, already redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Its BLAKE3 hash, which is its name.
    pub hash: [u8; 32],
    /// It.
    pub content: String,
}

/// An event that could not be made fit.
#[derive(Debug, thiserror::Error)]
#[error("the event cannot be recorded: {0}")]
pub struct RecordError(#[from] DecodeError);

impl Redacted {
    fn new(event: Event, body: String, blobs: Vec<Blob>) -> Self {
        let version = event.version();
        Self(Arc::new(Content { event, version, body, blobs }))
    }

    /// An event in the place of one that was recorded, and that something was taken out of.
    pub(crate) fn changed(
        kind: &str,
        version: u32,
        body: String,
        blobs: Vec<Blob>,
    ) -> Result<Self, RecordError> {
        let event = Event::decode(kind, version, &body)?;
        Ok(Self(Arc::new(Content { event, version, body, blobs })))
    }

    /// The version of its stored form.
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// The event, as it will be read back.
    pub fn event(&self) -> &Event {
        &self.0.event
    }

    /// Its body as it is stored.
    pub fn body(&self) -> &str {
        &self.0.body
    }

    /// The texts that were set aside.
    pub fn blobs(&self) -> &[Blob] {
        &self.0.blobs
    }
}

impl Redactor {
    /// Makes an event fit to be recorded.
    pub fn record(&self, event: Event) -> Result<Redacted, RecordError> {
        // A long text is set aside in any case; looking whether it is worth a closer look would be one look more.
        if is_long(&event) {
            let mut value = event.to_value();
            self.json(&mut value);
            let mut blobs = Vec::new();
            set_aside(&mut value, &mut blobs);
            return finish(&event, value, blobs);
        }
        let body = event.encode().body;
        let suspicious = !is_wordless(&event) && self.suspects(&body);
        if !suspicious && body.len() <= ASIDE_OVER {
            return Ok(Redacted::new(event, body, Vec::new()));
        }
        let mut value = event.to_value();
        let mut changed = suspicious && self.json(&mut value);
        let mut blobs = Vec::new();
        if body.len() > ASIDE_OVER {
            changed |= set_aside(&mut value, &mut blobs);
        }
        if !changed && body.len() <= BODY_OVER {
            return Ok(Redacted::new(event, body, blobs));
        }
        finish(&event, value, blobs)
    }
}

impl Redactor {
    /// Makes an event of another journal fit to be recorded, and says whether something had to be taken out. If not,
    /// its body stays what it was to the byte, so that its hash still fits. `renamed` gives the new names of texts
    /// that had to be changed.
    pub fn record_again(
        &self,
        kind: &str,
        version: u32,
        body: &str,
        renamed: &HashMap<String, String>,
    ) -> Result<(Redacted, bool), RecordError> {
        let event = Event::decode(kind, version, body)?;
        let refers = !renamed.is_empty() && body.contains(BLOB_MEMBER);
        if refers || self.suspects(body) {
            let fail =
                |why: serde_json::Error| DecodeError { kind: kind.to_owned(), version, why: why.to_string() };
            let before: Value = serde_json::from_str(body).map_err(fail)?;
            let mut after = before.clone();
            self.json(&mut after);
            name_again(&before, &mut after, renamed);
            if after != before {
                let body = after.to_string();
                let event = Event::decode(kind, version, &body)?;
                let content = Content { event, version, body, blobs: Vec::new() };
                return Ok((Redacted(Arc::new(content)), true));
            }
        }
        let content = Content { event, version, body: body.to_owned(), blobs: Vec::new() };
        Ok((Redacted(Arc::new(content)), false))
    }

    /// The same for a text that was set aside.
    pub fn text_again(&self, text: String) -> (Blob, bool) {
        let redacted = match self.text(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(changed) => Some(changed),
        };
        let changed = redacted.is_some();
        let content = redacted.unwrap_or(text);
        (Blob { hash: *blake3::hash(content.as_bytes()).as_bytes(), content }, changed)
    }
}

/// Gives references the names that their texts have now. The names themselves are no secrets, whatever they look like.
fn name_again(before: &Value, after: &mut Value, renamed: &HashMap<String, String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, member) in before {
                let Some(changed) = after.get_mut(name) else { continue };
                match member {
                    Value::String(hash) if name == BLOB_MEMBER => {
                        *changed = Value::String(renamed.get(hash).unwrap_or(hash).clone());
                    }
                    _ => name_again(member, changed, renamed),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            before.iter().zip(after).for_each(|(before, after)| name_again(before, after, renamed));
        }
        _ => {}
    }
}

/// The event that a changed value says, with its largest members set aside if it is still large.
fn finish(event: &Event, value: Value, mut blobs: Vec<Blob>) -> Result<Redacted, RecordError> {
    let (kind, version) = (event.kind(), event.version());
    let body = value.to_string();
    if body.len() > BODY_OVER {
        let mut smaller = value;
        let mut more = Vec::new();
        set_members_aside(&mut smaller, &mut more);
        let text = smaller.to_string();
        // Only members that may hold any JSON can be set aside whole; a body with others stays as it is.
        if let Ok(event) = Event::decode(kind, version, &text) {
            blobs.extend(more);
            return Ok(Redacted::new(event, text, blobs));
        }
    }
    let event = Event::decode(kind, version, &body)?;
    Ok(Redacted::new(event, body, blobs))
}

/// Whether a text of the event is long enough to be set aside. Only events that often have one are looked at.
fn is_long(event: &Event) -> bool {
    match event {
        Event::ToolStarted(started) => has_long(&started.input),
        Event::ToolEnded(ended) => ended.output.as_ref().is_some_and(is_long_text),
        Event::Said(said) => is_long_text(&said.text),
        _ => false,
    }
}

fn is_long_text(text: &Text) -> bool {
    matches!(text, Text::Whole(text) if text.len() > ASIDE_OVER)
}

fn has_long(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() > ASIDE_OVER,
        Value::Array(items) => items.iter().any(has_long),
        Value::Object(members) => !members.contains_key(BLOB_MEMBER) && members.values().any(has_long),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Events made of numbers and words of our own: nothing from outside is in them, so nothing needs to be looked for.
/// Counting tokens is what short processes do most.
fn is_wordless(event: &Event) -> bool {
    matches!(
        event,
        Event::TokensRecorded(_)
            | Event::CostRecorded(_)
            | Event::BudgetSet(_)
            | Event::BudgetExtended(_)
            | Event::BudgetWarned(_)
            | Event::BudgetExceeded(_)
            | Event::StepSet(_)
            | Event::IterationStarted(_)
            | Event::AttemptStarted(_)
            | Event::ProgressSet(_)
            | Event::TaskEnded(_)
            | Event::DriverDetached(_)
    )
}

fn set_aside(value: &mut Value, blobs: &mut Vec<Blob>) -> bool {
    match value {
        Value::String(text) if text.len() > ASIDE_OVER => {
            let content = std::mem::take(text);
            *value = reference(content, false, blobs);
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |changed, item| set_aside(item, blobs) | changed),
        // A reference from an earlier recording stays what it is.
        Value::Object(members) if members.contains_key(BLOB_MEMBER) => false,
        Value::Object(members) => {
            members.iter_mut().fold(false, |changed, (_, member)| set_aside(member, blobs) | changed)
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn set_members_aside(value: &mut Value, blobs: &mut Vec<Blob>) {
    let Value::Object(members) = value else { return };
    for (_, member) in members.iter_mut() {
        if matches!(member, Value::Object(_) | Value::Array(_)) {
            let text = member.to_string();
            if text.len() > ASIDE_OVER {
                *member = reference(text, true, blobs);
            }
        }
    }
}

pub(crate) fn reference(content: String, json: bool, blobs: &mut Vec<Blob>) -> Value {
    let hash = blake3::hash(content.as_bytes());
    let aside = Aside {
        hash: hash.to_hex().to_string(),
        bytes: content.len() as u64,
        excerpt: content.chars().take(EXCERPT).collect(),
        json,
    };
    blobs.push(Blob { hash: *hash.as_bytes(), content });
    serde_json::to_value(aside).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use segno_core::event::Channel;
    use segno_core::event::HistoryNoted;
    use segno_core::event::Said;
    use segno_core::event::Source;
    use segno_core::event::ToolStarted;

    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(crate::Options::default())
    }

    fn note(details: &str) -> Event {
        HistoryNoted { action: "note".into(), phase: None, details: Some(details.into()) }.into()
    }

    #[test]
    fn plain_events_pass_unchanged() {
        let event = note("all good");
        let redacted = redactor().record(event.clone()).unwrap();
        assert_eq!(redacted.event(), &event);
        assert_eq!(redacted.body(), event.encode().body);
        assert!(redacted.blobs().is_empty());
    }

    #[test]
    fn a_secret_is_gone_from_body_and_event() {
        let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
        let redacted = redactor().record(note(&format!("push with {secret}"))).unwrap();
        assert!(!redacted.body().contains(&secret), "{}", redacted.body());
        assert!(!format!("{:?}", redacted.event()).contains(&secret));
        assert!(redacted.body().contains("[redacted:"));
    }

    #[test]
    fn long_text_is_set_aside_redacted() {
        let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
        let long = format!("{}{secret} end", "word ".repeat(4_000));
        let redacted = redactor().record(note(&long)).unwrap();
        let Event::HistoryNoted(noted) = redacted.event() else { panic!() };
        let Some(Text::Aside(aside)) = &noted.details else { panic!("{noted:?}") };
        let [blob] = redacted.blobs() else { panic!() };
        assert_eq!(aside.bytes, blob.content.len() as u64);
        assert!(blob.content.ends_with(" end") && !blob.content.contains(&secret));
        assert!(redacted.body().len() < 2_000);
    }

    #[test]
    fn a_long_text_of_an_agent_is_set_aside_redacted_with_all_around_it() {
        let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
        let long = format!("{}{secret} end", "word ".repeat(4_000));
        let input = serde_json::json!({ "content": long, "note": secret, "password": "hunter2!" });
        let event = ToolStarted {
            call: "c1".into(),
            tool: "Write".into(),
            input,
            write_ahead: true,
            source: Source::Hook,
            recurs: true,
        };
        let said = Said { channel: Channel::Text, text: long.as_str().into(), message: None, parent: None };
        for event in [Event::from(event), said.into()] {
            let redacted = redactor().record(event).unwrap();
            let [blob] = redacted.blobs() else { panic!() };
            assert!(blob.content.ends_with(" end"));
            for text in [redacted.body(), &blob.content, &format!("{:?}", redacted.event())] {
                assert!(!text.contains(&secret) && !text.contains("hunter2!"), "{text}");
            }
        }
    }

    #[test]
    fn a_large_tool_input_is_set_aside_whole() {
        let input: Vec<u32> = (0..60_000).collect();
        let event = ToolStarted {
            call: "c1".into(),
            tool: "Bash".into(),
            input: serde_json::json!({ "numbers": input }),
            write_ahead: true,
            source: Source::Hook,
            recurs: true,
        };
        let redacted = redactor().record(event.into()).unwrap();
        let [blob] = redacted.blobs() else { panic!() };
        assert!(serde_json::from_str::<Value>(&blob.content).is_ok());
        assert!(redacted.body().len() < 2_000);
    }
}
