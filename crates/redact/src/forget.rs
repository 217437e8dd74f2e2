//! Forgetting: takes a given secret, or every text, out of what was recorded before.
//!
//! Unlike a [`crate::Redactor`] this does not judge. Who asks knows the secret; it goes wherever it stands, in every form
//! in which the record may hold it.

use std::borrow::Cow;
use std::collections::HashMap;

use segno_core::Event;
use segno_core::text::BLOB_MEMBER;
use serde_json::Value;

use crate::record::Blob;
use crate::record::Redacted;
use crate::record::reference;

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

/// Members that say what an event is about, not what anybody wrote: they stay when texts are forgotten.
const STRUCTURE: &[&str] = &[
    "agent",
    "at",
    "call",
    "change",
    "channel",
    "commit",
    "hash",
    "id",
    "key",
    "kind",
    "list",
    "made_by",
    "message",
    "model",
    "name",
    "native_id",
    "parent",
    "path",
    "phase",
    "project",
    "reason",
    "run",
    "session_id",
    "source",
    "state",
    "status",
    "tool",
    "tree",
    "uid",
    "version",
    "what",
];

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

/// The secret as it is, as a string of JSON and as that within one, percent-encoded, and in base64 wherever it begins.
fn add_forms(forms: &mut Vec<Vec<u8>>, secret: &str) {
    let quoted = |text: &str| {
        let json = Value::from(text).to_string();
        json[1..json.len() - 1].to_owned()
    };
    let once = quoted(secret);
    let encoded: String = secret
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect();
    let texts = [secret.to_owned(), quoted(&once), once, encoded.to_lowercase(), encoded];
    // Lower case is a form of its own only for the digits of an encoding.
    forms.extend(
        texts
            .into_iter()
            .filter(|text| text == secret || *text != secret.to_lowercase())
            .map(String::into_bytes),
    );
    forms.push(secret.replace('\n', "\r\n").into_bytes());
    for alphabet in [STANDARD, URL] {
        forms.extend((0..3).filter_map(|before| inner_base64(secret.as_bytes(), before, alphabet)));
    }
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
pub struct Instead {
    /// What texts that were set aside say now, by their old names.
    pub asides: HashMap<String, String>,
    /// What snapshots are called now, as events have it, by their old commits.
    pub snapshots: HashMap<String, Value>,
    /// What the checksums of checkpoints are now, by what they were.
    pub checksums: HashMap<String, String>,
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
        instead: &Instead,
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
                for path in texts_of(&after) {
                    let Some(place) = path.iter().try_fold(&mut after, |value, step| value.pointer_mut(step))
                    else {
                        continue;
                    };
                    let was = std::mem::replace(place, Value::from(FORGOTTEN));
                    if Event::decode(kind, version, &after.to_string()).is_err()
                        && let Some(place) =
                            path.iter().try_fold(&mut after, |value, step| value.pointer_mut(step))
                    {
                        // A word of ours, not a text.
                        *place = was;
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
fn put(value: &mut Value, instead: &Instead, blobs: &mut Vec<Blob>) {
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
                *text = changed;
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

/// Where the texts of a body are, the outermost first: whatever anybody wrote. Each path is a list of single steps.
fn texts_of(value: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    walk(value, &mut Vec::new(), &mut found);
    found
}

/// Members that hold JSON of somebody else.
const FOREIGN: &[&str] = &["/input", "/raw"];

fn walk(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    // What an agent gave its tool is its own, whatever its members are called.
    let foreign = path.first().is_some_and(|first| FOREIGN.contains(&first.as_str()));
    let mut step = |name: String, member: &Value, found: &mut Vec<Vec<String>>| {
        path.push(name);
        walk(member, path, found);
        path.pop();
    };
    match value {
        Value::String(text) if text != FORGOTTEN && !text.is_empty() => found.push(path.clone()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                step(format!("/{index}"), item, found);
            }
        }
        Value::Object(members) if members.contains_key(BLOB_MEMBER) => found.push(path.clone()),
        Value::Object(members) => {
            for (name, member) in members {
                if foreign || !(member.is_string() && STRUCTURE.contains(&name.as_str())) {
                    step(format!("/{}", name.replace('~', "~0").replace('/', "~1")), member, found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
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
        for text in [format!("a {KEY} b"), json, twice, "x=wg-7Hq%22x2%2FLm9%2BZt4%5CVb8&y".to_owned()] {
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
        let gone = Forget::Texts.event(&encoded.kind, encoded.version, &encoded.body, &Instead::default());
        let gone = gone.unwrap().unwrap();
        assert!(!gone.body().contains("my words") && gone.body().contains("GREEN"), "{}", gone.body());
        let again = Forget::Texts.event(&encoded.kind, encoded.version, gone.body(), &Instead::default());
        assert!(again.unwrap().is_none());
    }
}
