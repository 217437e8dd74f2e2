//! The histories that agents keep themselves, taken into the store: every conversation becomes a session.
//!
//! Files are read line by line and never written. What was taken in of each is remembered, so that a second time costs a look
//! at each file; and every event has a key that follows from what it says, so that nothing is there twice whatever is
//! forgotten.

mod database;
mod find;
mod groups;
mod lines;
mod prompts;
mod recorded;
mod take;
mod transcripts;

use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::Lineage;
use segno_agents::TokenCounts;
use segno_core::List;
use segno_core::SessionId;
use segno_core::rows::RunRow;
use segno_store::EventRow;
use segno_store::Filter;
use segno_store::Item;
use segno_store::index::FileNote;
use segno_store::index::Index;
use segno_store::index::index_path;
use serde::Deserialize;
use serde::Serialize;

use self::find::FoundFile;
use self::find::Place;
use self::groups::Conversation;
use self::groups::grouped;
use self::lines::Found;
pub use self::prompts::AgentReport;
use self::recorded::Recorded;
use self::take::Origin;
use self::take::Part;
use self::take::Taker;
pub use self::transcripts::Rescue;
pub use self::transcripts::RescueWish;
pub use self::transcripts::Standing;
use crate::Engine;
use crate::Error;

/// Events that are read at once.
const PAGE: usize = 500;

/// What is to be taken in.
#[derive(Clone, Debug, Default)]
pub struct HistoryWish {
    /// Of these agents; of all if none is named.
    pub agents: Vec<String>,
    /// From this file or directory, instead of where agents keep their histories.
    pub path: Option<PathBuf>,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The agent whose history is taken in.
    pub agent: &'a str,
    /// Files that are done.
    pub done: usize,
    /// Files to be taken in.
    pub of: usize,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes to be read.
    pub of_bytes: u64,
}

/// What was not as an agent writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Lines that are no whole line.
    pub torn: u64,
    /// Lines in which several stand.
    pub glued: u64,
    /// Holes of zero bytes.
    pub holes: u64,
    /// Lines that are too long to be looked into.
    pub oversized: u64,
    /// Files whose last line is not finished, which is so while an agent writes.
    pub unfinished: u64,
}

/// What became of the history of one agent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AgentImport {
    /// The agent.
    pub agent: String,
    /// Files that there are.
    pub files: u64,
    /// Those that are as they were.
    pub unchanged: u64,
    /// Bytes of the others.
    pub bytes: u64,
    /// Sessions that were made.
    pub new_sessions: u64,
    /// Sessions in which something is new.
    pub grown: u64,
    /// Conversations that segno recorded itself.
    pub recorded: u64,
    /// Conversations whose session was removed here: they are left out.
    pub removed: u64,
    /// Events that were recorded.
    pub events: u64,
    /// Events that were there already.
    pub known: u64,
    /// Messages that another conversation has, and that count there.
    pub copied: u64,
    /// Conversations of which the agent has deleted everything but what was asked.
    pub only_prompts: u64,
    /// Transcripts of which something new was kept in the archive.
    pub kept: u64,
    /// How many bytes of them were new.
    pub kept_bytes: u64,
    /// How many bytes these take in the archive.
    pub kept_packed: u64,
    /// What was damaged.
    pub damage: Damage,
    /// What could not be read, in words.
    pub notices: Vec<String>,
}

/// What is remembered of a file besides how far it was read.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Used {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    beside_input: u64,
    beside_cache_read: u64,
    beside_cache_write: u64,
    beside_output: u64,
}

impl Used {
    fn of(used: TokenCounts, beside: TokenCounts) -> Self {
        Self {
            input: used.input,
            cache_read: used.cache_read,
            cache_write: used.cache_write,
            output: used.output,
            beside_input: beside.input,
            beside_cache_read: beside.cache_read,
            beside_cache_write: beside.cache_write,
            beside_output: beside.output,
        }
    }

    fn used(self) -> TokenCounts {
        let Self { input, cache_read, cache_write, output, .. } = self;
        TokenCounts { input, cache_read, cache_write, output, reasoning: 0 }
    }

    fn beside(self) -> TokenCounts {
        TokenCounts {
            input: self.beside_input,
            cache_read: self.beside_cache_read,
            cache_write: self.beside_cache_write,
            output: self.beside_output,
            reasoning: 0,
        }
    }
}

impl Engine {
    /// The index of this store.
    pub(crate) fn index(&self) -> Result<Index, Error> {
        Ok(Index::open(&self.index_file(), self.store_id())?)
    }

    /// Where it is.
    pub(crate) fn index_file(&self) -> PathBuf {
        index_path(Path::new(&self.store().location()))
    }

    /// Takes in what agents kept themselves.
    ///
    /// # Errors
    /// If the store cannot be written. What cannot be read of a history is told in what came of it.
    pub fn import_history(
        &self,
        wish: &HistoryWish,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<AgentImport>, Error> {
        let index = self.index()?;
        let agents: Vec<&'static str> = segno_agents::CODING
            .iter()
            .copied()
            .filter(|agent| wish.agents.is_empty() || wish.agents.iter().any(|name| name == agent))
            .collect();
        let mut run = ImportRun { engine: self, index, recorded: None };
        let mut imports = Vec::new();
        let named = wish.path.as_deref().map(|path| find::anywhere(path, &agents));
        for agent in agents {
            let mut import = AgentImport { agent: agent.to_owned(), ..AgentImport::default() };
            match &named {
                Some(files) => {
                    let files = files.iter().filter(|file| file.agent == agent).cloned().collect();
                    run.files(agent, files, None, &mut import, progress)?;
                    let path = wish.path.as_deref().filter(|path| is_database(path));
                    if let (Some(path), Some(Place::Database(database, _))) = (path, find::place(self, agent))
                    {
                        run.database(agent, &database, path, &mut import, progress)?;
                    }
                }
                None => match find::place(self, agent) {
                    Some(Place::Files(location, root)) => {
                        let files = find::files(agent, &location, &root);
                        run.files(agent, files, Some(&root), &mut import, progress)?;
                        run.prompts(agent, &mut import)?;
                    }
                    Some(Place::Database(database, path)) => {
                        run.database(agent, &database, &path, &mut import, progress)?;
                    }
                    None => {}
                },
            }
            imports.push(import);
        }
        Ok(imports)
    }

    /// Whether a file or directory holds histories of agents.
    pub fn is_history(path: &Path) -> bool {
        is_database(path) || !find::anywhere(path, segno_agents::CODING).is_empty()
    }
}

fn is_database(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|end| end == "db") && {
        use std::io::Read as _;
        let mut magic = [0; 15];
        std::fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
            && &magic == b"SQLite format 3"
    }
}

/// One import.
struct ImportRun<'a> {
    engine: &'a Engine,
    index: Index,
    recorded: Option<Recorded>,
}

impl ImportRun<'_> {
    fn files(
        &mut self,
        agent: &'static str,
        found: Vec<FoundFile>,
        root: Option<&Path>,
        import: &mut AgentImport,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Error> {
        import.files += found.len() as u64;
        // First of all: whatever goes wrong with the rest, they are kept.
        if let Some(root) = root.filter(|_| self.engine.options.keep_transcripts) {
            self.engine.keep_transcripts(&self.index, root, &found, import)?;
        }
        let mut changed = Vec::new();
        for file in found {
            let note = self.index.file(agent, &file.path.to_string_lossy())?;
            let same = note.is_some_and(|note| {
                (note.device, note.inode, note.size, note.modified_ns)
                    == (file.stat.device, file.stat.inode, file.stat.size, file.stat.modified_ns)
            });
            if same {
                import.unchanged += 1;
            } else {
                changed.push(file);
            }
        }
        let (of, of_bytes) = (changed.len(), changed.iter().map(bytes).sum());
        let (mut done, mut read) = (0, 0);
        for conversation in grouped(changed) {
            let files = conversation.main.iter().chain(&conversation.subs);
            let (count, size) = (files.clone().count(), files.map(bytes).sum::<u64>());
            progress(Progress { agent, done, of, bytes: read, of_bytes });
            self.conversation(agent, &conversation, import)?;
            done += count;
            read += size;
            import.bytes += size;
        }
        progress(Progress { agent, done, of, bytes: read, of_bytes });
        Ok(())
    }

    /// What is known of a conversation before it is taken in. None if its session was removed.
    fn origin(&mut self, agent: &str, id: &str, lineage: &Lineage) -> Result<Option<Origin>, Error> {
        let mut origin = Origin { cwd: lineage.cwd.clone(), ..Origin::default() };
        if let Some(session) = self.index.session_of(agent, id)?.filter(|session| !session.is_empty()) {
            let session = session.parse().ok().filter(|session| self.engine.load(*session).is_ok());
            let Some(session) = session else { return Ok(None) };
            origin.session = Some(session);
        }
        let mut related: Vec<(String, String)> = Vec::new();
        if let Some(root) = &lineage.root {
            related.extend(self.index.with_root(agent, root)?.into_iter().filter(|(other, _)| other != id));
        }
        if let Some(copy_of) = &lineage.copy_of {
            let session = self.index.session_of(agent, copy_of)?.unwrap_or_default();
            origin.continues = session.parse().ok();
        }
        for (_, session) in &related {
            let Ok(session) = session.parse::<SessionId>() else { continue };
            origin.continues = origin.continues.or(Some(session));
            self.keys_of(session, &mut origin.copied);
        }
        let recorded = self.recorded()?;
        origin.windows = recorded.windows_of(agent, id);
        for (other, _) in &related {
            origin.windows.extend(recorded.windows_of(agent, other));
        }
        if origin.continues.is_none() {
            let newest = origin.windows.iter().max_by_key(|window| window.to);
            origin.continues = newest.map(|window| window.session);
        }
        Ok(Some(origin))
    }

    /// The keys of what was taken into a session: a copy of its conversation repeats them.
    fn keys_of(&self, session: SessionId, keys: &mut HashSet<String>) {
        let mut after = 0;
        while let Ok(rows) = self.engine.events(session, after, PAGE) {
            let Some(last) = rows.last() else { return };
            after = last.seq();
            keys.extend(rows.into_iter().filter_map(|row| match row {
                EventRow::Whole(stored) => Some(stored.key).filter(|key| key.starts_with("i-")),
                EventRow::Damaged { .. } => None,
            }));
        }
    }

    /// Asked for the first time, looks through all runs.
    fn recorded(&mut self) -> Result<&Recorded, Error> {
        if self.recorded.is_none() {
            let mut recorded = Recorded::default();
            let now = self.engine.now();
            for summary in self.engine.listing(&Filter::default())?.sessions {
                let Ok(runs) = self.engine.items(summary.session_id, List::Runs) else { continue };
                for run in runs.iter().map(Item::row::<RunRow>) {
                    recorded.note(summary.session_id, run, now);
                }
            }
            self.recorded = Some(recorded);
        }
        Ok(self.recorded.get_or_insert_default())
    }

    fn conversation(
        &mut self,
        agent: &'static str,
        conversation: &Conversation,
        import: &mut AgentImport,
    ) -> Result<(), Error> {
        let Conversation { id, lineage, main, subs, .. } = conversation;
        let Some(origin) = self.origin(agent, id, lineage)? else {
            import.removed += 1;
            return Ok(());
        };
        if origin.session.is_some_and(|session| self.is_driven(session)) {
            return Ok(());
        }
        // What it says of the whole is then also about what is counted elsewhere.
        let is_alone = origin.copied.is_empty() && origin.windows.is_empty() && lineage.copy_of.is_none();
        let mut taker = Taker::new(self.engine, agent, id, origin, import)?;
        let mut notes = Vec::new();
        let mut account = None;
        for (index, file) in main.iter().chain(subs).enumerate() {
            match take_file(&self.index, &mut taker, file, id) {
                Ok((note, total)) => {
                    if index == 0 && main.is_some() {
                        account = total;
                    }
                    notes.push((file.path.to_string_lossy().into_owned(), note));
                }
                Err(Error::File { path, why }) => taker.import.notices.push(format!("{path}: {why}")),
                Err(why) => return Err(why),
            }
        }
        if let Some(total) = account.filter(|_| is_alone) {
            beside(&self.index, agent, id, &mut taker, &mut notes, total)?;
        }
        taker.finish()?;
        let session = taker.session();
        let (is_new, is_changed, is_recorded) = (taker.is_new, taker.is_changed, taker.is_recorded);
        import.new_sessions += u64::from(is_new && is_changed);
        import.grown += u64::from(!is_new && is_changed);
        import.recorded += u64::from(is_recorded && session.is_none());
        for (path, note) in notes {
            self.index.note_file(agent, &path, &note)?;
        }
        let session = session.map(|session| session.to_string()).unwrap_or_default();
        self.index.note_conversation(agent, id, &session, lineage.root.as_deref())?;
        Ok(())
    }

    /// Whoever drives it records it.
    fn is_driven(&self, session: SessionId) -> bool {
        self.engine.store().lease(session).is_ok_and(|lease| lease.is_some())
    }
}

/// Takes in what is new in a file. Answers with what to remember of it, and what the agent says of the whole conversation.
fn take_file(
    index: &Index,
    taker: &mut Taker<'_>,
    file: &FoundFile,
    conversation: &str,
) -> Result<(FileNote, Option<TokenCounts>), Error> {
    let name = file.path.to_string_lossy().into_owned();
    let note = index.file(file.agent, &name)?;
    // What stands before must be what was taken in, or all of it is looked at again.
    let same = note.as_ref().is_some_and(|note| {
        lines::hash_of(&file.path, note.offset).is_some_and(|hash| hash.as_slice() == note.hash)
    });
    let taken = note.as_ref().filter(|_| same).map_or(0, |note| note.offset);
    let before: Used =
        note.as_ref().and_then(|note| serde_json::from_str(&note.used).ok()).unwrap_or_default();
    let unreadable = || Error::File { path: name.clone(), why: "no reader for it".to_owned() };
    let mut part =
        find::log_of(file.agent).and_then(|log| Part::new(log, taken, &name)).ok_or_else(unreadable)?;
    let mut too_long = 0;
    let mut tail = false;
    let shape = lines::each_line(&file.path, &mut |found| match found {
        Found::Line { offset, bytes, ended: true } => taker.line(&mut part, offset, bytes),
        Found::Line { offset, bytes, ended: false } => {
            // Cut off by a hole or by the end of the file: it counts if it is whole all the same.
            if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
                return taker.line(&mut part, offset, bytes);
            }
            tail = true;
            Ok(())
        }
        Found::TooLong => {
            too_long += 1;
            Ok(())
        }
    })?;
    taker.import.damage.oversized += too_long;
    taker.import.damage.holes += shape.holes;
    taker.import.damage.unfinished += u64::from(tail);
    taker.finish_part(&part)?;
    let hash = lines::hash_of(&file.path, shape.end).map(|hash| hash.to_vec()).unwrap_or_default();
    let used = Used::of(part.used, before.beside());
    let note = FileNote {
        conversation: conversation.to_owned(),
        offset: shape.end,
        hash,
        used: serde_json::to_string(&used).unwrap_or_default(),
        ..file.stat.note()
    };
    Ok((note, part.total))
}

/// Counts what the agent's own account has beyond the messages of the conversation and its sub-agents.
fn beside(
    index: &Index,
    agent: &str,
    conversation: &str,
    taker: &mut Taker<'_>,
    notes: &mut [(String, FileNote)],
    total: TokenCounts,
) -> Result<(), Error> {
    let read = |note: &FileNote| serde_json::from_str::<Used>(&note.used).unwrap_or_default();
    let mut counted = TokenCounts::default();
    for (path, note) in index.files_of(agent, conversation)? {
        if !notes.iter().any(|(known, _)| *known == path) {
            counted = counted.plus(read(&note).used());
        }
    }
    for (_, note) in notes.iter() {
        counted = counted.plus(read(note).used());
    }
    let Some((_, main)) = notes.first_mut() else { return Ok(()) };
    let used = read(main);
    let whole = less(total, counted);
    let news = less(whole, used.beside());
    if !news.is_zero() {
        let line = format!("{}-{}-{}-{}", whole.input, whole.output, whole.cache_read, whole.cache_write);
        taker.beside(news, &line)?;
        main.used = serde_json::to_string(&Used::of(used.used(), whole)).unwrap_or_default();
    }
    Ok(())
}

/// Kind by kind, and nothing below nothing.
fn less(from: TokenCounts, what: TokenCounts) -> TokenCounts {
    TokenCounts {
        input: from.input.saturating_sub(what.input),
        cache_read: from.cache_read.saturating_sub(what.cache_read),
        cache_write: from.cache_write.saturating_sub(what.cache_write),
        output: from.output.saturating_sub(what.output),
        reasoning: 0,
    }
}

fn bytes(file: &FoundFile) -> u64 {
    u64::try_from(file.stat.size).unwrap_or(0)
}
