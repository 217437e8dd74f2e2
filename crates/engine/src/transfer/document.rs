//! An export as a document: what it holds, and reading it piece by piece. A file of any size costs the memory of its
//! largest piece, and no piece may be larger than a session lets anything grow.

use std::cell::Cell;
use std::fmt;
use std::io::BufReader;
use std::io::Read;
use std::rc::Rc;

use segno_core::State;
use segno_core::Timestamp;
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeSeed;
use serde::de::IgnoredAny;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde_json::value::RawValue;

/// The form that this program writes and reads.
pub(crate) const FORM: u32 = 1;

/// The session itself is bounded by what a session may hold; this is far beyond.
const SESSION_BYTES: u64 = 4 << 20;
/// One row, event or text.
const PIECE_BYTES: u64 = 32 << 20;
/// The same in memory.
const PIECE_WEIGHT: u64 = 64 << 20;
/// What an object and any other value take in memory besides their text.
pub(crate) const OBJECT: u64 = 640;
pub(crate) const VALUE: u64 = 48;

/// One event of an exported journal.
#[derive(Serialize, Deserialize)]
pub(crate) struct ExportedEvent {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) kind: String,
    pub(crate) version: u32,
    pub(crate) run: Option<String>,
    pub(crate) epoch: Option<u64>,
    pub(crate) key: String,
    /// As it is stored, to the byte: the hash covers the text.
    pub(crate) body: Box<RawValue>,
    /// Sixty-four hexadecimal digits. Exports of the first release have none.
    #[serde(default)]
    pub(crate) hash: Option<String>,
    /// Texts were taken out of it: its hash is that of what it said before, and this covers what it says now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seal: Option<String>,
}

impl ExportedEvent {
    /// What its hash covers.
    pub(crate) fn link(&self) -> segno_store::chain::Link<'_> {
        segno_store::chain::Link {
            seq: self.seq,
            at_us: self.at.as_micros(),
            key: &self.key,
            run: self.run.as_deref(),
            epoch: self.epoch,
            kind: &self.kind,
            version: self.version,
            body: self.body.get(),
        }
    }

    /// The hash that what follows is chained to, if the event is what was recorded after one with the hash `before`.
    pub(crate) fn hash_after(&self, before: &[u8; 32]) -> Option<[u8; 32]> {
        let link = self.link();
        let Some(seal) = &self.seal else {
            let hash = segno_store::chain::next(before, &link);
            return (self.hash.as_ref() == Some(&hex(&hash))).then_some(hash);
        };
        let hash = crate::engine::parse_hash(self.hash.as_ref()?)?;
        (*seal == hex(&segno_store::chain::seal(before, &hash, &link))).then_some(hash)
    }
}

/// A place in an exported journal.
pub(crate) enum Entry {
    Event(ExportedEvent),
    /// The event was damaged where the export was made.
    Damaged {
        seq: u64,
        what: String,
    },
}

/// A row of a list as it stands in an export.
#[derive(Deserialize)]
pub(crate) struct ExportedRow {
    pub(crate) key: String,
    pub(crate) body: Box<RawValue>,
}

/// Hears what a document holds, in the order of the document. An error ends the reading.
pub(crate) trait Listener {
    /// The session's state.
    fn session(&mut self, state: State) -> Result<(), String>;
    /// The `index`-th row of a list.
    fn row(&mut self, list: &str, index: usize, row: ExportedRow) -> Result<(), String>;
    /// The next place of the journal.
    fn entry(&mut self, entry: Entry) -> Result<(), String>;
    /// A text that was set aside, under the name it is referred to by.
    fn text(&mut self, name: &str, text: String) -> Result<(), String>;
}

/// Why a document could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It is JSON, but no export.
    Foreign,
    /// It is an export of a form that this program does not know.
    Form(u32),
    /// It is damaged, or the listener refused it.
    Bad(String),
}

/// Reads a document from its beginning to its end.
pub(crate) fn read(from: impl Read, listener: &mut dyn Listener) -> Result<(), ReadError> {
    let allowance = Rc::new(Cell::new(SESSION_BYTES));
    let bounded = Bounded { inner: BufReader::with_capacity(1 << 16, from), left: Rc::clone(&allowance) };
    let mut json = serde_json::Deserializer::from_reader(bounded);
    let mut form = None;
    let document = Document { listener, allowance, form: &mut form };
    let read = document.deserialize(&mut json).and_then(|()| json.end());
    match (read, form) {
        (_, Some(other)) if other != FORM => Err(ReadError::Form(other)),
        (Err(why), _) => Err(ReadError::Bad(format!("line {}: {why}", why.line()))),
        (Ok(()), None) => Err(ReadError::Foreign),
        (Ok(()), Some(_)) => Ok(()),
    }
}

/// A reader that gives up when one piece is too large.
struct Bounded<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.left.get().checked_sub(read as u64) {
            Some(left) => self.left.set(left),
            None => return Err(std::io::Error::other("a piece of it is larger than a session may hold")),
        }
        Ok(read)
    }
}

struct Document<'a> {
    listener: &'a mut dyn Listener,
    allowance: Rc<Cell<u64>>,
    form: &'a mut Option<u32>,
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an exported session")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { listener, allowance, form } = self;
        while let Some(name) = map.next_key::<String>()? {
            allowance.set(SESSION_BYTES);
            match name.as_str() {
                "segno_export" => {
                    let found = map.next_value()?;
                    *form = Some(found);
                    if found != FORM {
                        return Err(serde::de::Error::custom("another form"));
                    }
                }
                "session" => {
                    let state = map.next_value()?;
                    listener.session(state).map_err(serde::de::Error::custom)?;
                }
                "lists" => map.next_value_seed(Lists { listener, allowance: &allowance })?,
                "events" => map.next_value_seed(Journal { listener, allowance: &allowance })?,
                "texts" => map.next_value_seed(Texts { listener, allowance: &allowance })?,
                _ => {
                    // A member of a newer program may be of any size; nothing of it is kept.
                    allowance.set(u64::MAX);
                    map.next_value::<IgnoredAny>()?;
                }
            }
            allowance.set(SESSION_BYTES);
        }
        Ok(())
    }
}

macro_rules! part {
    ($name:ident, $method:ident, $expecting:literal, $visit:item) => {
        struct $name<'a> {
            listener: &'a mut dyn Listener,
            allowance: &'a Cell<u64>,
        }

        impl<'de> DeserializeSeed<'de> for $name<'_> {
            type Value = ();
            fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.$method(self)
            }
        }

        impl<'de> Visitor<'de> for $name<'_> {
            type Value = ();
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expecting)
            }
            $visit
        }
    };
}

part!(
    Lists,
    deserialize_map,
    "the lists",
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(list) = map.next_key::<String>()? {
            map.next_value_seed(Rows { list: &list, listener: self.listener, allowance: self.allowance })?;
        }
        Ok(())
    }
);

struct Rows<'a> {
    list: &'a str,
    listener: &'a mut dyn Listener,
    allowance: &'a Cell<u64>,
}

impl<'de> DeserializeSeed<'de> for Rows<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            self.allowance.set(PIECE_BYTES);
            let Some(row) = seq.next_element::<ExportedRow>()? else { return Ok(()) };
            is_bearable(&row.body).map_err(serde::de::Error::custom)?;
            self.listener.row(self.list, index, row).map_err(serde::de::Error::custom)?;
            index += 1;
        }
    }
}

/// An event, or the place of a damaged one.
#[derive(Deserialize)]
struct RawEntry {
    seq: u64,
    damaged: Option<String>,
    at: Option<Timestamp>,
    kind: Option<String>,
    version: Option<u32>,
    run: Option<String>,
    epoch: Option<u64>,
    key: Option<String>,
    body: Option<Box<RawValue>>,
    hash: Option<String>,
    seal: Option<String>,
}

impl RawEntry {
    fn entry(self) -> Result<Entry, String> {
        if let Some(what) = self.damaged {
            return Ok(Entry::Damaged { seq: self.seq, what });
        }
        let lacks = |name: &str| format!("event {} has no {name}", self.seq);
        let body = self.body.ok_or_else(|| lacks("body"))?;
        is_bearable(&body)?;
        Ok(Entry::Event(ExportedEvent {
            seq: self.seq,
            at: self.at.ok_or_else(|| lacks("time"))?,
            kind: self.kind.ok_or_else(|| lacks("kind"))?,
            version: self.version.ok_or_else(|| lacks("version"))?,
            run: self.run,
            epoch: self.epoch,
            key: self.key.ok_or_else(|| lacks("key"))?,
            body,
            hash: self.hash,
            seal: self.seal,
        }))
    }
}

part!(
    Journal,
    deserialize_seq,
    "the journal",
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        loop {
            self.allowance.set(PIECE_BYTES);
            let Some(raw) = seq.next_element::<RawEntry>()? else { return Ok(()) };
            let entry = raw.entry().map_err(serde::de::Error::custom)?;
            self.listener.entry(entry).map_err(serde::de::Error::custom)?;
        }
    }
);

part!(
    Texts,
    deserialize_map,
    "texts",
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        loop {
            self.allowance.set(PIECE_BYTES);
            let Some((name, text)) = map.next_entry::<String, String>()? else { return Ok(()) };
            self.listener.text(&name, text).map_err(serde::de::Error::custom)?;
        }
    }
);

/// About how much memory a piece takes when it is read: an object of a few bytes takes far more than it has.
pub(crate) fn weight(json: &str) -> u64 {
    let (mut weight, mut in_text, mut escaped) = (json.len() as u64, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b'{' if !in_text => weight += OBJECT,
            b',' | b'[' if !in_text => weight += VALUE,
            _ => {}
        }
    }
    weight
}

fn is_bearable(piece: &RawValue) -> Result<(), String> {
    if weight(piece.get()) > PIECE_WEIGHT {
        return Err("a piece of it is larger than a session may hold".to_owned());
    }
    Ok(())
}

/// A hash as sixty-four hexadecimal digits.
pub(crate) fn hex(hash: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*hash).to_hex().to_string()
}
