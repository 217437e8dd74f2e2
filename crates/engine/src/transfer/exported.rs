//! What an export holds, found out in one reading: the session, whether its journal is whole, and its lists if not.

use std::collections::BTreeSet;
use std::collections::HashMap;

use segno_core::List;
use segno_core::State;
use segno_core::event::ImportedItem;
use segno_store::chain;

use super::document;
use super::document::Entry;
use super::document::ExportedRow;
use super::document::Listener;
use super::document::ReadError;
use super::import;
use super::packed::Source;
use crate::Engine;

/// More events than any session has had.
const MOST_EVENTS: u64 = 20_000_000;
/// More texts than any session has had.
const MOST_TEXTS: usize = 1_000_000;

/// An export that was read to its end.
pub(super) struct Exported {
    pub(super) state: State,
    /// Why the journal cannot be taken in; no reason if there is none, as in exports of the first release.
    pub(super) journal: Result<Journal, Option<String>>,
    pub(super) lists: Result<Lists, String>,
}

type Lists = Vec<(List, Vec<ImportedItem>)>;

/// What was found out about a whole journal.
#[derive(Default)]
pub(super) struct Journal {
    /// The new names of texts that hold a secret, which has to be taken out.
    pub(super) renamed: HashMap<String, String>,
    /// How many texts are referred to and not there.
    pub(super) missing: usize,
}

pub(super) fn read(engine: &Engine, source: &Source) -> Result<Exported, ReadError> {
    let mut reading = Reading {
        engine,
        state: None,
        seq: 0,
        hash: [0; 32],
        why: None,
        wanted: BTreeSet::new(),
        renamed: HashMap::new(),
        lists: Ok(Vec::new()),
        weight: 0,
    };
    let file = source.open().map_err(|why| ReadError::Bad(why.to_string()))?;
    document::read(file, &mut reading)?;
    let bad = |why: &str| ReadError::Bad(why.to_owned());
    let state = reading.state.ok_or_else(|| bad("it holds no session"))?;
    let journal = match reading.why {
        Some(why) => Err(why),
        None if reading.seq == 0 => Err(None),
        None if reading.seq != state.seq => {
            Err(Some(format!("it ends at event {} of {}", reading.seq, state.seq)))
        }
        None => Ok(Journal { renamed: reading.renamed, missing: reading.wanted.len() }),
    };
    Ok(Exported { state, journal, lists: reading.lists })
}

struct Reading<'a> {
    engine: &'a Engine,
    state: Option<State>,
    seq: u64,
    hash: [u8; 32],
    /// Why the journal cannot be taken in.
    why: Option<Option<String>>,
    wanted: BTreeSet<[u8; 32]>,
    renamed: HashMap<String, String>,
    lists: Result<Lists, String>,
    weight: u64,
}

impl Reading<'_> {
    /// Follows the chain; an error says why the journal is not whole.
    fn follow(&mut self, entry: Entry) -> Result<(), Option<String>> {
        let event = match entry {
            Entry::Event(event) => event,
            Entry::Damaged { seq, what } => return Err(Some(format!("event {seq} is damaged: {what}"))),
        };
        let seq = event.seq;
        if event.hash.is_none() {
            return Err(None);
        }
        let whole = event.hash_after(&self.hash).filter(|_| self.state.is_some() && seq == self.seq + 1);
        let Some(hash) = whole else { return Err(Some(format!("event {seq} is not what was recorded"))) };
        self.wanted.extend(segno_store::references(event.body.get()));
        (self.seq, self.hash) = (seq, hash);
        Ok(())
    }

    fn keep_row(&mut self, list: &str, index: usize, row: &ExportedRow) -> Result<(), String> {
        let Ok(lists) = &mut self.lists else { return Ok(()) };
        let known = List::ALL.into_iter().find(|known| known.as_str() == list);
        let known = known.ok_or_else(|| format!("there is no list {list}"))?;
        self.weight += document::weight(row.body.get()) + document::OBJECT;
        if self.weight > import::LISTS_WEIGHT {
            // Only a picture needs them.
            self.lists = Err("its lists hold more than an import without its journal may".to_owned());
            return Ok(());
        }
        let body = serde_json::from_str(row.body.get()).and_then(|body| import::relied_on(known, body));
        let body = body.map_err(|why| format!("row {} of its {list}: {why}", index + 1))?;
        let row = import::row(row.key.clone(), body);
        match lists.last_mut().filter(|(last, _)| *last == known) {
            Some((_, rows)) => rows.push(row),
            None => lists.push((known, vec![row])),
        }
        Ok(())
    }
}

impl Listener for Reading<'_> {
    fn session(&mut self, state: State) -> Result<(), String> {
        self.hash = chain::start(&state.uid);
        self.state = Some(state);
        Ok(())
    }

    fn row(&mut self, list: &str, index: usize, row: ExportedRow) -> Result<(), String> {
        self.keep_row(list, index, &row)
    }

    fn entry(&mut self, entry: Entry) -> Result<(), String> {
        if self.seq >= MOST_EVENTS || self.wanted.len() > MOST_TEXTS {
            return Err("it has more events than a session may have".to_owned());
        }
        if self.why.is_none()
            && let Err(why) = self.follow(entry)
        {
            self.why = Some(why);
        }
        Ok(())
    }

    fn text(&mut self, name: &str, text: String) -> Result<(), String> {
        if blake3::hash(text.as_bytes()).to_hex().as_str() != name {
            self.why.get_or_insert_with(|| Some(format!("the text {name} is not what was recorded")));
            return Ok(());
        }
        if let Ok(hash) = blake3::Hash::from_hex(name) {
            self.wanted.remove(hash.as_bytes());
        }
        let (blob, changed) = self.engine.redactor().text_again(text);
        if changed {
            self.renamed.insert(name.to_owned(), document::hex(&blob.hash));
        }
        Ok(())
    }
}
