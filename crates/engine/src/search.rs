//! Looking for words in everything that was ever recorded.
//!
//! The words are in an index beside the store, which is filled when somebody looks for something or takes in a history, never
//! while something is recorded. What it does not have yet is said.

mod docs;
mod query;
mod snippet;

use std::time::Duration;
use std::time::Instant;

use segno_core::SessionId;
use segno_core::Timestamp;
use segno_store::EventRow;
use segno_store::Filter;
use segno_store::index::Index;
use segno_store::index::Query;
use serde::Serialize;

pub use self::query::BadQuery;
use self::query::Wanted;
use self::snippet::Snippet;
use crate::Engine;
use crate::Error;

/// Events that are read at once.
const PAGE: usize = 500;
/// Texts that are added at once.
const TEXTS: usize = 2_000;
/// How many bytes of texts they have at most, about.
const BYTES: usize = 8 << 20;

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub struct SearchWish {
    /// Words, "phrases", prefix*, and path: tool: agent: project: status: kind: since: filters.
    pub query: String,
    /// Only in this project.
    pub project: Option<String>,
    /// At most so many texts.
    pub limit: usize,
    /// How long what is not indexed yet may be indexed before; however long it takes if none.
    pub patience: Option<Duration>,
}

/// A text that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundText {
    /// The session.
    pub session_id: SessionId,
    /// What that is about.
    pub topic: Option<String>,
    /// Its agent.
    pub agent: Option<String>,
    /// Its project.
    pub project: String,
    /// The event.
    pub seq: u64,
    /// When it was.
    pub at: Timestamp,
    /// What it is: prompt, said, thinking, call, output, file, decision, note, error …
    pub kind: String,
    /// The tool, if it is about one.
    pub tool: Option<String>,
    /// The words around what was looked for.
    pub snippet: String,
    /// Where what was looked for stands in them, in bytes: from and to.
    pub marks: Vec<(usize, usize)>,
}

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// The texts, the best first.
    pub hits: Vec<FoundText>,
    /// No text has all words; these have some of them.
    pub some_words: bool,
    /// Sessions of which something is not indexed yet.
    pub not_indexed: u64,
    /// How many texts were looked through.
    pub texts: u64,
}

/// How far the index is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Indexed {
    /// Texts that were added.
    pub added: u64,
    /// Sessions of which something is not indexed yet.
    pub left: u64,
}

impl Engine {
    /// Looks for words.
    ///
    /// # Errors
    /// If the query is none, or nothing can be read.
    pub fn search(&self, wish: &SearchWish) -> Result<Findings, Error> {
        let now = self.now();
        let wanted = Wanted::parse(&wish.query, now).map_err(|why| Error::Query(why.to_string()))?;
        let deadline = wish.patience.map(|patience| Instant::now() + patience);
        let mut index = self.index()?;
        let indexed = self.fill(&mut index, deadline, &mut |_, _| {})?;
        let all = self.listing(&Filter { project: wish.project.clone(), ..Filter::default() })?.sessions;
        let fits: Vec<_> = all.into_iter().filter(|summary| wanted.fits(summary)).collect();
        let narrowed = wish.project.is_some() || wanted.narrows();
        let ask = |words: String| Query {
            words,
            sessions: narrowed.then(|| fits.iter().map(|summary| summary.session_id).collect()),
            since_us: wanted.since.map(Timestamp::as_micros),
            kinds: wanted.kinds.clone(),
            limit: wish.limit,
        };
        let mut hits = index.search(&ask(wanted.all()), now.as_micros())?;
        let mut some_words = false;
        if hits.is_empty()
            && let Some(any) = wanted.any()
        {
            hits = index.search(&ask(any), now.as_micros())?;
            some_words = !hits.is_empty();
        }
        let mut found =
            Findings { some_words, not_indexed: indexed.left, texts: index.texts()?, ..Findings::default() };
        for hit in hits {
            // One that was removed meanwhile is not there any more.
            let Some(summary) = fits.iter().find(|summary| summary.session_id == hit.session) else {
                continue;
            };
            let Some(EventRow::Whole(stored)) = self.events(hit.session, hit.seq.saturating_sub(1), 1)?.pop()
            else {
                continue;
            };
            let Some(doc) =
                stored.event().ok().and_then(|event| docs::doc(self, stored.seq, stored.at, &event))
            else {
                continue;
            };
            let Snippet { text, marks } = snippet::around(&doc.text, &wanted.terms());
            found.hits.push(FoundText {
                session_id: hit.session,
                topic: summary.topic.clone(),
                agent: summary.agent.clone(),
                project: summary.project.clone(),
                seq: hit.seq,
                at: stored.at,
                kind: hit.kind,
                tool: Some(doc.tool).filter(|tool| !tool.is_empty()),
                snippet: text,
                marks,
            });
        }
        Ok(found)
    }

    /// Brings the index up to date, however long it takes; `progress` hears how many sessions are done, and of how many.
    ///
    /// # Errors
    /// If nothing can be read or written.
    pub fn index_all(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Indexed, Error> {
        let mut index = self.index()?;
        self.fill(&mut index, None, progress)
    }

    /// Whether there is anything wrong with the index; with `repair` it is made anew then.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub fn check_index(&self, repair: bool) -> Result<Vec<String>, Error> {
        let path = self.index_file();
        if !path.exists() {
            return Ok(Vec::new());
        }
        let wrong = self.index()?.check()?;
        if repair && !wrong.is_empty() {
            segno_store::index::remove_index(&path);
        }
        Ok(wrong)
    }

    /// A session is gone: so are its words. If they cannot be taken out now, no search shows them.
    pub(crate) fn unindex(&self, session: SessionId) {
        if self.index_file().exists()
            && let Err(why) = self.index().and_then(|mut index| Ok(index.drop_session(session)?))
        {
            tracing::warn!(%session, %why, "its words are still in the index");
        }
    }

    /// No word stays that somebody wants forgotten.
    pub(crate) fn forget_words(&self) -> Result<(), Error> {
        let path = self.index_file();
        if path.exists() && self.index().and_then(|index| Ok(index.drop_words()?)).is_err() {
            segno_store::index::remove_index(&path);
        }
        Ok(())
    }

    fn fill(
        &self,
        index: &mut Index,
        deadline: Option<Instant>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Indexed, Error> {
        let known = index.indexed()?;
        let sessions = self.listing(&Filter::default())?.sessions;
        let present: std::collections::HashSet<SessionId> =
            sessions.iter().map(|summary| summary.session_id).collect();
        for gone in known.keys().filter(|session| !present.contains(session)) {
            index.drop_session(*gone)?;
        }
        let mut behind: Vec<_> = sessions
            .iter()
            .filter_map(|summary| {
                let after = known.get(&summary.session_id).copied().unwrap_or(0);
                (summary.seq > after).then_some((summary.session_id, after))
            })
            .collect();
        // What was indexed last counts as the newest, and who has little time wants the newest.
        if deadline.is_none() {
            behind.reverse();
        }
        let (mut done, mut added) = (0, 0);
        let of = behind.len() as u64;
        for (session, after) in &behind {
            progress(done, of);
            match self.fill_session(index, *session, *after, deadline)? {
                (texts, true) => added += texts,
                (texts, false) => {
                    added += texts;
                    break;
                }
            }
            done += 1;
        }
        progress(done, of);
        Ok(Indexed { added, left: of - done })
    }

    /// Says how many texts were added, and whether that was all.
    fn fill_session(
        &self,
        index: &mut Index,
        session: SessionId,
        mut after: u64,
        deadline: Option<Instant>,
    ) -> Result<(u64, bool), Error> {
        let (mut texts, mut pending, mut bytes) = (0, Vec::new(), 0);
        let mut added_upto = after;
        loop {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok((texts, false));
            }
            let rows = self.events(session, after, PAGE)?;
            let is_last = rows.len() < PAGE;
            for row in rows {
                after = row.seq();
                let EventRow::Whole(stored) = row else { continue };
                let Some(doc) =
                    stored.event().ok().and_then(|event| docs::doc(self, stored.seq, stored.at, &event))
                else {
                    continue;
                };
                bytes += doc.text.len();
                pending.push(doc);
            }
            if is_last || pending.len() >= TEXTS || bytes >= BYTES {
                index.add(session, added_upto, after, &pending)?;
                texts += pending.len() as u64;
                (added_upto, bytes) = (after, 0);
                pending.clear();
            }
            if is_last {
                return Ok((texts, true));
            }
        }
    }
}
