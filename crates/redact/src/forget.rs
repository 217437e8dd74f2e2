//! Forgetting: takes a given secret, or every text, out of what was recorded before.
//!
//! Unlike a [`crate::Redactor`] this does not judge. Who asks knows the secret; it goes wherever it stands, in every form
//! in which the record may hold it.

mod texts;

use std::borrow::Cow;
use std::collections::HashMap;

use segno_core::CheckpointId;
use segno_core::Event;
use segno_core::text::BLOB_MEMBER;
use serde_json::Value;

use crate::record::Blob;
use crate::record::Redacted;
use crate::record::reference;
use texts::bare;
use texts::put_names;
use texts::texts_of;

/// What stands in the place of what was forgotten.
pub const FORGOTTEN: &str = "[forgotten]";
/// A shorter secret would be found in what has nothing to do with it.
pub const SHORTEST_SECRET: usize = 6;
/// A line of a secret with several counts by itself from this length on: records keep lines apart, and put things before
/// them.
const LONG_LINE: usize = 20;
/// A secret may have been cut where a text ends. From this many bytes on its beginning counts as it.
const LONG_BEGINNING: usize = 12;
/// No first line of an armoured key is longer.
const LONGEST_ARMOUR: usize = 48;

/// What is to be forgotten.
#[derive(Debug)]
pub enum Forget {
    /// A secret, wherever it stands.
    Secret(Secret),
    /// Every text.
    Texts,
}

/// A secret in all the forms in which it may stand somewhere.
#[derive(Clone)]
pub struct Secret {
    /// The longest first: one form may hold another.
    forms: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It must not get into a message by accident.
        write!(f, "Secret({} forms)", self.forms.len())
    }
}

impl Secret {
    /// `None` if it is too short to be told from other text.
    pub fn new(secret: &str) -> Option<Self> {
        let secret = secret.trim_matches(['\r', '\n']);
        if secret.trim().len() < SHORTEST_SECRET {
            return None;
        }
        let mut forms = Vec::new();
        add_forms(&mut forms, secret);
        for line in secret.lines().map(str::trim).filter(|_| secret.contains('\n')) {
            if line.len() >= LONG_LINE && !line.starts_with("-----") {
                add_forms(&mut forms, line);
            }
        }
        forms.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        forms.dedup();
        Some(Self { forms })
    }

    /// Whether it stands anywhere in these bytes.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.forms.iter().any(|form| find(bytes, form, 0).is_some())
    }

    /// Writes stars over it. Everything stays where it was.
    pub fn blank(&self, bytes: &mut [u8]) -> bool {
        let mut changed = false;
        for form in &self.forms {
            let mut from = 0;
            while let Some(at) = find(bytes, form, from) {
                bytes[at..at + form.len()].fill(b'*');
                from = at + form.len();
                changed = true;
            }
        }
        changed
    }

    /// The text without it.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = Cow::Borrowed(text);
        for form in &self.forms {
            // Forms are text, and so is what is between them.
            if let Ok(form) = std::str::from_utf8(form)
                && out.contains(form)
            {
                out = Cow::Owned(out.replace(form, FORGOTTEN));
            }
        }
        let end = out.trim_end_matches('…').len();
        let beginning = self.forms.iter().filter_map(|form| cut_at_end(out[..end].as_bytes(), form)).max();
        if let Some(length) = beginning.filter(|length| out.is_char_boundary(end - length)) {
            out = Cow::Owned(format!("{}{FORGOTTEN}{}", &out[..end - length], &out[end..]));
        }
        out
    }
}

/// How much of the beginning of `form` the bytes end with, if that is enough to give it away.
fn cut_at_end(bytes: &[u8], form: &[u8]) -> Option<usize> {
    let most = bytes.len().min(form.len().saturating_sub(1));
    // The first line of a key in armour is the same for all of them.
    let least = if form.starts_with(b"-----") { LONG_BEGINNING + LONGEST_ARMOUR } else { LONG_BEGINNING };
    (least..=most).rev().find(|length| bytes.ends_with(&form[..*length]))
}

fn find(bytes: &[u8], form: &[u8], from: usize) -> Option<usize> {
    memchr::memmem::find(bytes.get(from..)?, form).map(|at| from + at)
}

/// The secret as it is, as a string of JSON and as that within one, percent-encoded, in base64 wherever it begins, and in
/// the id of a checkpoint.
fn add_forms(forms: &mut Vec<Vec<u8>>, secret: &str) {
    let quoted = |text: &str| {
        let json = Value::from(text).to_string();
        json[1..json.len() - 1].to_owned()
    };
    let once = quoted(secret);
    let mut texts = vec![secret.to_owned(), quoted(&once), once];
    // What a whole address may hold as it is, and a part of it may not.
    for kept in ["-._~", "-._~!'()*", "-._~!'()*;/?:@&=+$,#"] {
        for lower in [false, true] {
            let encoded = percent(secret, kept, lower);
            texts.push(encoded.replace("%20", "+"));
            texts.push(encoded);
        }
    }
    forms.extend(texts.into_iter().map(String::into_bytes));
    forms.push(secret.replace('\n', "\r\n").into_bytes());
    let id = CheckpointId::new(1, secret);
    let in_id = id.as_str().strip_prefix(ID_BEGINS).unwrap_or_default();
    if in_id.len() >= LONG_BEGINNING {
        forms.push(in_id.as_bytes().to_vec());
    }
    for alphabet in [STANDARD, URL] {
        forms.extend((0..3).filter_map(|before| inner_base64(secret.as_bytes(), before, alphabet)));
    }
}

/// What the id of a checkpoint has before its name.
const ID_BEGINS: &str = "cp-01-";

/// Percent-encoded but for letters, digits and these; with digits in lower case or in upper case.
fn percent(text: &str, kept: &str, lower: bool) -> String {
    let one = |byte: u8| match byte {
        kept_byte if kept_byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&kept_byte) => {
            char::from(kept_byte).to_string()
        }
        other if lower => format!("%{other:02x}"),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(one).collect()
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The digits that depend on the secret only when `before` bytes come before it in a group of three.
fn inner_base64(secret: &[u8], before: usize, alphabet: &[u8; 64]) -> Option<Vec<u8>> {
    let skip = (3 - before) % 3;
    let whole = secret.get(skip..)?.as_chunks::<3>().0;
    let digits: Vec<u8> = whole
        .iter()
        .flat_map(|[a, b, c]| {
            let bits = u32::from(*a) << 16 | u32::from(*b) << 8 | u32::from(*c);
            [18, 12, 6, 0].map(|shift| alphabet[(bits >> shift & 63) as usize])
        })
        .collect();
    (digits.len() >= 8).then_some(digits)
}

/// What stands in other places of the record now, and is named in events.
#[derive(Debug, Default)]
pub struct Replacements {
    /// What texts that were set aside say now, by their old names.
    pub asides: HashMap<String, String>,
    /// What snapshots are called now, as events have it, by their old commits.
    pub snapshots: HashMap<String, Value>,
    /// What the checksums of checkpoints are now, by what they were.
    pub checksums: HashMap<String, String>,
    /// What names that somebody gave are now, by what they were.
    pub names: HashMap<String, String>,
}

impl Replacements {
    /// With all texts go the names that somebody gave: each in this event gets one that says nothing, the same wherever
    /// it is used.
    pub fn rename(&mut self, kind: &str, body: &str) {
        if let Ok(body) = serde_json::from_str(body) {
            texts::rename(kind, &body, &mut self.names);
        }
    }
}

impl Forget {
    /// Whether a text holds what is to be forgotten.
    pub fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Secret(secret) => {
                secret.is_in(text.as_bytes()) || matches!(secret.text(text), Cow::Owned(_))
            }
            Self::Texts => true,
        }
    }

    /// A text that was set aside, without it; `None` if it stays as it is.
    pub fn aside(&self, text: &str) -> Option<String> {
        match self {
            Self::Secret(secret) => match secret.text(text) {
                Cow::Borrowed(_) => None,
                Cow::Owned(changed) => Some(changed),
            },
            Self::Texts => (text != FORGOTTEN).then(|| FORGOTTEN.to_owned()),
        }
    }

    /// A stored event without it; `Ok(None)` if it stays as it is.
    ///
    /// # Errors
    /// If what is left would not be an event any more.
    pub fn event(
        &self,
        kind: &str,
        version: u32,
        body: &str,
        instead: &Replacements,
    ) -> Result<Option<Redacted>, crate::RecordError> {
        let unreadable = |why: serde_json::Error| segno_core::event::DecodeError {
            kind: kind.to_owned(),
            version,
            why: why.to_string(),
        };
        let before: Value = serde_json::from_str(body).map_err(unreadable)?;
        let mut after = before.clone();
        let mut blobs = Vec::new();
        put(&mut after, instead, &mut blobs);
        match self {
            Self::Secret(secret) => take_secret(secret, &mut after),
            Self::Texts => {
                put_names(kind, &mut after, &instead.names);
                // An event that we know has to stay one: a word of ours that we do not know makes it a newer program's.
                let known = |body: &str| {
                    Event::decode(kind, version, body).map(|event| !matches!(event, Event::Unknown(_)))
                };
                let was_known = known(body).unwrap_or(false);
                for path in texts_of(kind, &after) {
                    let Some(text) = path.iter().try_fold(&mut after, |value, step| value.pointer_mut(step))
                    else {
                        continue;
                    };
                    let was = std::mem::replace(text, Value::from(FORGOTTEN));
                    let is_event = known(&after.to_string()).is_ok_and(|known| known || !was_known);
                    if !is_event
                        && let Some(text) =
                            path.iter().try_fold(&mut after, |value, step| value.pointer_mut(step))
                    {
                        // A word of ours, not a text.
                        *text = was;
                    }
                }
            }
        }
        if after == before {
            return Ok(None);
        }
        Redacted::changed(kind, version, after.to_string(), blobs).map(Some)
    }
}

/// References to what changed become references to what it is now.
fn put(value: &mut Value, instead: &Replacements, blobs: &mut Vec<Blob>) {
    match value {
        Value::Object(members) => {
            let word = |name: &str| members.get(name).and_then(Value::as_str);
            if let Some(text) = word(BLOB_MEMBER).and_then(|name| instead.asides.get(name)) {
                let json = members.get("json").and_then(Value::as_bool).unwrap_or(false);
                *value = reference(text.clone(), json, blobs);
            } else if let Some(snapshot) = word("commit").and_then(|commit| instead.snapshots.get(commit)) {
                *value = snapshot.clone();
            } else {
                let checksum = word("checksum").and_then(|checksum| instead.checksums.get(checksum));
                if let Some(checksum) = checksum.cloned() {
                    members.insert("checksum".to_owned(), Value::from(checksum));
                }
                members.values_mut().for_each(|member| put(member, instead, blobs));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| put(item, instead, blobs)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn take_secret(secret: &Secret, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(changed) = secret.text(text) {
                // The id of a checkpoint has its name in it, and is still one without.
                let id = text.parse::<CheckpointId>().ok().and_then(|id| bare(id.as_str()));
                *text = id.unwrap_or(changed);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take_secret(secret, item)),
        Value::Object(members) => {
            let names: Vec<String> =
                members.keys().filter(|name| matches!(secret.text(name), Cow::Owned(_))).cloned().collect();
            for name in names {
                if let Some(member) = members.remove(&name) {
                    members.insert(secret.text(&name).into_owned(), member);
                }
            }
            members.values_mut().for_each(|member| take_secret(secret, member));
        }
        // A secret may be a number.
        Value::Number(number) if secret.is_in(number.to_string().as_bytes()) => *value = Value::from(0),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "wg-7Hq\"x2/Lm9+Zt4\\Vb8";

    #[test]
    fn a_secret_is_found_in_every_form() {
        let secret = Secret::new(KEY).unwrap();
        let json = Value::from(KEY).to_string();
        let twice = Value::from(json.as_str()).to_string();
        for text in [
            format!("a {KEY} b"),
            json,
            twice,
            "x=wg-7Hq%22x2%2FLm9%2BZt4%5CVb8&y".to_owned(),
            "x=wg-7Hq%22x2%2fLm9%2bZt4%5cVb8&y".to_owned(),
            "/wg-7Hq%22x2/Lm9+Zt4%5CVb8/".to_owned(),
            "cp-07-the-wg-7hq-x2-lm9-zt4-vb8-one".to_owned(),
        ] {
            assert!(secret.is_in(text.as_bytes()), "{text}");
            let gone = secret.text(&text);
            assert!(gone.contains(FORGOTTEN) && !secret.is_in(gone.as_bytes()), "{gone}");
        }
        for before in ["", "a", "ab"] {
            let digits = base64(format!("{before}{KEY}!").as_bytes());
            assert!(secret.is_in(digits.as_bytes()), "{digits}");
        }
        assert!(!secret.is_in(b"wg-7Hq and other things"));
        assert!(Secret::new("short").is_none());
    }

    fn base64(bytes: &[u8]) -> String {
        let digits = bytes.chunks(3).flat_map(|group| {
            let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
                << (8 * (3 - group.len()));
            (0..=group.len()).map(move |n| char::from(STANDARD[(bits >> (18 - 6 * n) & 63) as usize]))
        });
        digits.collect()
    }

    #[test]
    fn what_was_cut_at_the_end_of_a_text_goes_too() {
        let secret = Secret::new("tok_4f9aK2mQ8vR1xT6z").unwrap();
        assert_eq!(secret.text("it is tok_4f9aK2mQ8"), "it is [forgotten]");
        assert_eq!(secret.text("it is tok_4f9aK2mQ8…"), "it is [forgotten]…");
        assert_eq!(secret.text("it is tok_4f"), "it is tok_4f");
    }

    #[test]
    fn lines_of_a_long_secret_count_one_by_one() {
        let secret = Secret::new(
            "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQ\n-----END KEY-----\n",
        );
        let secret = secret.unwrap();
        assert_eq!(secret.text("12: MIIEvQIBADANBgkqhkiG9w0BAQ"), "12: [forgotten]");
        assert_eq!(secret.text("-----BEGIN KEY-----"), "-----BEGIN KEY-----");
        let mut bytes = b"7:EFAASCBKcwggSjAgEAAoIBAQ\n".to_vec();
        assert!(secret.blank(&mut bytes));
        assert_eq!(bytes, b"7:************************\n");
    }

    #[test]
    fn texts_of_every_kind_of_event_can_be_forgotten() {
        let event: Event = segno_core::event::HistoryNoted {
            action: "note".into(),
            phase: Some("GREEN".into()),
            details: Some("my words".into()),
        }
        .into();
        let encoded = event.encode();
        let gone =
            Forget::Texts.event(&encoded.kind, encoded.version, &encoded.body, &Replacements::default());
        let gone = gone.unwrap().unwrap();
        assert!(!gone.body().contains("my words") && gone.body().contains("GREEN"), "{}", gone.body());
        let again =
            Forget::Texts.event(&encoded.kind, encoded.version, gone.body(), &Replacements::default());
        assert!(again.unwrap().is_none());
    }

    /// Texts that are called like what is no text elsewhere.
    #[test]
    fn reasons_messages_and_states_are_texts() {
        use segno_core::event::AgentStateSet;
        use segno_core::event::ErrorRecorded;
        use segno_core::event::PauseReason;
        use segno_core::event::RunEnded;
        use segno_core::event::SessionAborted;
        use segno_core::event::SessionPaused;
        let forgotten = |event: Event| {
            let encoded = event.encode();
            let gone =
                Forget::Texts.event(&encoded.kind, encoded.version, &encoded.body, &Replacements::default());
            gone.unwrap().map_or(encoded.body, |gone| gone.body().to_owned())
        };
        let events: [Event; 4] = [
            SessionAborted { reason: Some("my words".into()) }.into(),
            RunEnded { reason: "my words".into(), outcome: "failed".into(), ..RunEnded::default() }.into(),
            ErrorRecorded {
                message: "my words".into(),
                error_kind: None,
                phase: None,
                iteration: 0,
                fingerprint: String::new(),
                history: false,
            }
            .into(),
            AgentStateSet { agent: "claude".into(), active: true, state: "my words".into() }.into(),
        ];
        for event in events {
            let body = forgotten(event);
            assert!(!body.contains("my words") && body.contains(FORGOTTEN), "{body}");
            assert_eq!(body.contains("outcome"), body.contains("failed"), "how it ended stays: {body}");
        }
        let paused = SessionPaused { reason: PauseReason::default(), details: None };
        assert!(!forgotten(paused.into()).contains(FORGOTTEN));
        let said = segno_core::event::Said {
            channel: segno_core::event::Channel::Text,
            text: "my words".into(),
            message: Some("msg_1".into()),
            parent: None,
        };
        assert!(forgotten(said.into()).contains("msg_1"));
    }

    /// Names that people give are told apart, and the same name stays the same.
    #[test]
    fn names_become_names_that_say_nothing() {
        use segno_core::event::MilestoneReached;
        let encoded = |name: &str| -> segno_core::event::Encoded {
            Event::from(MilestoneReached { name: name.into(), details: None }).encode()
        };
        let events = ["my one", "my two", "my one"].map(encoded);
        let mut instead = Replacements::default();
        events.iter().for_each(|event| instead.rename(&event.kind, &event.body));
        let gone = events.map(|event| {
            let gone = Forget::Texts.event(&event.kind, event.version, &event.body, &instead).unwrap();
            let body: Value = serde_json::from_str(gone.unwrap().body()).unwrap();
            body["name"].as_str().unwrap().to_owned()
        });
        assert_eq!(gone, ["[forgotten 1]", "[forgotten 2]", "[forgotten 1]"]);
    }

    #[test]
    fn the_id_of_a_checkpoint_is_still_one() {
        let secret = Forget::Secret(Secret::new("quiet-Maple-77-harbor").unwrap());
        let created = segno_core::event::CheckpointCreated {
            id: CheckpointId::new(3, "before quiet-Maple-77-harbor"),
            name: "before quiet-Maple-77-harbor".into(),
            ordinal: 3,
            reason: Default::default(),
            tool_count: 0,
            progress: None,
        };
        let encoded = Event::from(created).encode();
        let gone = secret.event(&encoded.kind, encoded.version, &encoded.body, &Replacements::default());
        let body: Value = serde_json::from_str(gone.unwrap().unwrap().body()).unwrap();
        assert_eq!((body["id"].as_str(), body["name"].as_str()), (Some("cp-03"), Some("before [forgotten]")));
    }
}
