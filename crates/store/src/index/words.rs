//! The words of all sessions.
//!
//! A text is a row without its content: what it says stands in the store. A row's number is that of the session here and
//! that of the event, so that a hit leads to its event.

use rusqlite::OptionalExtension as _;
use rusqlite::TransactionBehavior;
use segno_core::SessionId;

use super::Index;
use crate::Error;

/// How many events of one session there are numbers for.
const EVENTS: i64 = 1 << 36;
/// How many of the best hits are weighed by their age.
const WEIGHED: i64 = 500;
/// How many texts are ranked. Of words that more texts have, those that were indexed last: what is in so many texts says
/// little about any of them, and ranking a million would take a second.
const RANKED: i64 = 10_000;

/// A text to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doc {
    /// The event.
    pub seq: u64,
    /// When, in microseconds since 1970.
    pub at_us: i64,
    /// What it is: `prompt`, `said`, …
    pub kind: &'static str,
    /// Its words.
    pub text: String,
    /// The tool that it is about.
    pub tool: String,
    /// The file that it is about.
    pub path: String,
}

/// A text that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The session.
    pub session: SessionId,
    /// The event.
    pub seq: u64,
    /// When, in microseconds since 1970.
    pub at_us: i64,
    /// What it is.
    pub kind: String,
    /// How well it fits: smaller is better.
    pub rank: f64,
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// In the language of SQLite's FTS5.
    pub words: String,
    /// Only in these sessions; in all if none.
    pub sessions: Option<Vec<SessionId>>,
    /// Not before this moment.
    pub since_us: Option<i64>,
    /// Only these kinds; all if empty.
    pub kinds: Vec<String>,
    /// At most so many.
    pub limit: usize,
}

impl Index {
    /// Up to which event a session can be searched.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn indexed(&self) -> Result<std::collections::HashMap<SessionId, u64>, Error> {
        let mut ask = self.sql(self.connection.prepare("SELECT session, seq FROM indexed"))?;
        let found: rusqlite::Result<Vec<(String, u64)>> =
            self.sql(ask.query_map([], |row| Ok((row.get(0)?, row.get(1)?))))?.collect();
        Ok(self.sql(found)?.into_iter().filter_map(|(id, seq)| Some((id.parse().ok()?, seq))).collect())
    }

    /// Adds texts of a session, which can be searched up to this event then. Somebody else may have done it meanwhile: then
    /// nothing is added.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn add(&mut self, session: SessionId, after: u64, upto: u64, docs: &[Doc]) -> Result<(), Error> {
        let location = self.location.clone();
        let sql = |e| crate::sqlite::fault(&location, e);
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
        let known: Option<(i64, u64)> = tx
            .query_row("SELECT pk, seq FROM indexed WHERE session = ?1", [session.to_string()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(sql)?;
        let pk = match known {
            Some((_, seq)) if seq != after => return Ok(()),
            Some((pk, _)) => pk,
            None if after > 0 => return Ok(()),
            None => {
                tx.execute("INSERT INTO indexed (session, seq) VALUES (?1, 0)", [session.to_string()])
                    .map_err(sql)?;
                tx.last_insert_rowid()
            }
        };
        {
            let mut words = tx
                .prepare_cached("INSERT INTO words (rowid, text, tool, path) VALUES (?1, ?2, ?3, ?4)")
                .map_err(sql)?;
            let mut rows = tx.prepare_cached("INSERT INTO docs VALUES (?1, ?2, ?3)").map_err(sql)?;
            for doc in docs {
                let id = pk * EVENTS + i64::try_from(doc.seq).unwrap_or(0);
                words.execute((id, &doc.text, &doc.tool, &doc.path)).map_err(sql)?;
                rows.execute((id, doc.at_us, doc.kind)).map_err(sql)?;
            }
        }
        count_texts(&tx, i64::try_from(docs.len()).unwrap_or(0)).map_err(sql)?;
        tx.execute(
            "UPDATE indexed SET seq = ?2 WHERE pk = ?1",
            (pk, i64::try_from(upto).unwrap_or(i64::MAX)),
        )
        .map_err(sql)?;
        tx.commit().map_err(sql)
    }

    /// Takes a session out.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn drop_session(&mut self, session: SessionId) -> Result<(), Error> {
        let location = self.location.clone();
        let sql = |e| crate::sqlite::fault(&location, e);
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
        let pk: Option<i64> = tx
            .query_row("SELECT pk FROM indexed WHERE session = ?1", [session.to_string()], |row| row.get(0))
            .optional()
            .map_err(sql)?;
        if let Some(pk) = pk {
            let range = (pk * EVENTS, (pk + 1) * EVENTS);
            tx.execute(
                "DELETE FROM words WHERE rowid IN (SELECT id FROM docs WHERE id >= ?1 AND id < ?2)",
                range,
            )
            .map_err(sql)?;
            let gone = tx.execute("DELETE FROM docs WHERE id >= ?1 AND id < ?2", range).map_err(sql)?;
            count_texts(&tx, -i64::try_from(gone).unwrap_or(0)).map_err(sql)?;
            tx.execute("DELETE FROM indexed WHERE pk = ?1", [pk]).map_err(sql)?;
            tx.execute("INSERT INTO words (words) VALUES ('optimize')", []).map_err(sql)?;
        }
        tx.commit().map_err(sql)
    }

    /// Takes all words out, so that no byte of them is left: the next search reads them from the store again.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn drop_words(&self) -> Result<(), Error> {
        self.sql(self.connection.execute_batch(
            "DROP TABLE words; DELETE FROM docs; DELETE FROM indexed; DELETE FROM about WHERE name = 'texts';",
        ))?;
        self.sql(self.connection.execute_batch(super::TABLES))?;
        self.sql(self.connection.execute_batch("VACUUM"))?;
        self.sql(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
    }

    /// How many texts there are.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn texts(&self) -> Result<u64, Error> {
        let known: Option<u64> = self.sql(
            self.connection
                .query_row("SELECT CAST(value AS INTEGER) FROM about WHERE name = 'texts'", [], |row| {
                    row.get(0)
                })
                .optional(),
        )?;
        match known {
            Some(texts) => Ok(texts),
            None => self.sql(self.connection.query_row("SELECT count(*) FROM docs", [], |row| row.get(0))),
        }
    }

    /// The texts that fit, the best first: those that fit well, and of these the newer.
    ///
    /// # Errors
    /// If the index cannot be read, or the words are none that can be looked for.
    pub fn search(&self, query: &Query, now_us: i64) -> Result<Vec<Hit>, Error> {
        self.sql(self.connection.execute_batch(
            "CREATE TEMP TABLE IF NOT EXISTS wanted (pk INTEGER PRIMARY KEY); DELETE FROM temp.wanted;",
        ))?;
        if let Some(sessions) = &query.sessions {
            let mut put = self.sql(self.connection.prepare_cached(
                "INSERT OR IGNORE INTO temp.wanted SELECT pk FROM indexed WHERE session = ?1",
            ))?;
            for session in sessions {
                self.sql(put.execute([session.to_string()]))?;
            }
        }
        let mut text = String::from("words MATCH ?1");
        if query.sessions.is_some() {
            text.push_str(&format!(" AND words.rowid / {EVENTS} IN (SELECT pk FROM temp.wanted)"));
        }
        if let Some(since) = query.since_us {
            text.push_str(&format!(" AND docs.at_us >= {since}"));
        }
        if !query.kinds.is_empty() {
            // Ours, and letters only.
            let kinds: Vec<String> = query
                .kinds
                .iter()
                .filter(|kind| kind.bytes().all(|b| b.is_ascii_alphabetic()))
                .map(|kind| format!("'{kind}'"))
                .collect();
            text.push_str(&format!(" AND docs.kind IN ({})", kinds.join(",")));
        }
        // Only then a text's own row is needed before it is ranked.
        let narrows = query.since_us.is_some() || !query.kinds.is_empty();
        let from = if narrows { "words JOIN docs ON docs.id = words.rowid" } else { "words" };
        let bound = format!(
            "SELECT words.rowid FROM {from} WHERE {text} ORDER BY words.rowid DESC LIMIT 1 OFFSET {RANKED}"
        );
        let bound: Option<i64> =
            self.sql(self.connection.query_row(&bound, [&query.words], |row| row.get(0)).optional())?;
        let bound = bound.unwrap_or(-1);
        let text = format!(
            "SELECT best.id, best.fit, docs.at_us, docs.kind, indexed.session FROM
               (SELECT words.rowid AS id, bm25(words, 1.0, 4.0, 4.0) AS fit FROM {from}
                WHERE {text} AND words.rowid > {bound} ORDER BY 2 LIMIT {WEIGHED}) AS best
             JOIN docs ON docs.id = best.id JOIN indexed ON indexed.pk = best.id / {EVENTS} ORDER BY 2"
        );
        let mut ask = self.sql(self.connection.prepare(&text))?;
        let read = |row: &rusqlite::Row<'_>| {
            let (id, rank): (i64, f64) = (row.get(0)?, row.get(1)?);
            let (at_us, kind, session): (i64, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
            Ok((session, u64::try_from(id % EVENTS).unwrap_or(0), at_us, kind, rank))
        };
        let found: rusqlite::Result<Vec<_>> = self.sql(ask.query_map([&query.words], read))?.collect();
        let mut hits: Vec<Hit> = self
            .sql(found)?
            .into_iter()
            .filter_map(|(session, seq, at_us, kind, rank)| {
                let session = session.parse().ok()?;
                Some(Hit { session, seq, at_us, kind, rank: rank * freshness(now_us, at_us) })
            })
            .collect();
        hits.sort_by(|a, b| a.rank.total_cmp(&b.rank).then(b.at_us.cmp(&a.at_us)));
        hits.truncate(query.limit);
        Ok(hits)
    }
}

/// Counts texts that were added, or taken out: to count the rows takes a while when there are a million.
fn count_texts(tx: &rusqlite::Transaction<'_>, more: i64) -> rusqlite::Result<()> {
    let counted = tx.execute(
        "UPDATE about SET value = CAST(CAST(value AS INTEGER) + ?1 AS TEXT) WHERE name = 'texts'",
        [more],
    )?;
    if counted == 0 {
        tx.execute("INSERT INTO about SELECT 'texts', CAST(count(*) AS TEXT) FROM docs", [])?;
    }
    Ok(())
}

/// What is of today counts twice, and less with each month.
fn freshness(now_us: i64, at_us: i64) -> f64 {
    const DAY_US: f64 = 86_400e6;
    #[expect(clippy::cast_precision_loss, reason = "an age need not be exact")]
    let days = (now_us.saturating_sub(at_us).max(0) as f64) / DAY_US;
    1.0 + 1.0 / (1.0 + days / 30.0)
}
