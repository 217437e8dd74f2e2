//! Who wrote which lines, in the form of Agent Trace: a format in which tools tell each other which lines came from which
//! conversation with a model. It is written only if somebody asks for it, and has nothing of what was said.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use segno_core::List;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::rows::RunRow;
use serde::Serialize;

use super::FileOrigins;
use super::LineOrigin;
use super::Writer;
use super::commit::Added;
use crate::Engine;
use crate::Error;

/// The version of the format, as its schema wants it: two numbers.
const VERSION: &str = "0.1";

/// A record of the format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceRecord {
    /// The version of the format.
    pub version: &'static str,
    /// The record's id. The same lines of the same revision have the same one.
    pub id: uuid::Uuid,
    /// When it was made.
    pub timestamp: Timestamp,
    /// The commit whose lines these are; none for files as they are now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcs: Option<TraceRevision>,
    /// Who made it.
    pub tool: TraceTool,
    /// The files.
    pub files: Vec<TraceFile>,
    /// What else is known.
    pub metadata: TraceMetadata,
}

/// A revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceRevision {
    /// The kind of repository.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The commit.
    pub revision: String,
}

/// The program that made a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceTool {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// A file and the conversations that wrote lines of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceFile {
    /// Where, from the top of the project.
    pub path: PathBuf,
    /// The conversations.
    pub conversations: Vec<TraceConversation>,
}

/// What one session wrote with one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceConversation {
    /// The session, as an address that means something to this program.
    pub url: String,
    /// Who wrote it.
    pub contributor: TraceContributor,
    /// The lines.
    pub ranges: Vec<TraceRange>,
}

/// Who wrote something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceContributor {
    /// Always a model: lines of which that is not known are in no record.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The model, with its provider before it, if both are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
}

/// Some lines, the first and the last one included, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the words say it")]
pub struct TraceRange {
    pub start_line: usize,
    pub end_line: usize,
}

/// What the format has no words for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TraceMetadata {
    /// Under our own name, as the format asks.
    pub segno: TraceCounts,
}

/// How much of it is credited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TraceCounts {
    /// How many lines were looked at.
    pub lines: usize,
    /// How many of them no recorded call is known to have written: a person's, or nobody can tell. Lines of
    /// signs alone are not counted here.
    pub not_recorded: usize,
    /// How many files of the commit were not looked at: no texts, or too many.
    #[serde(skip_serializing_if = "is_none")]
    pub left_out: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Engine {
    /// Who wrote the lines of a file as it is now, as a record of Agent Trace.
    ///
    /// # Errors
    /// If there is no such file, or the record cannot be read.
    pub fn trace(&self, root: &Path, path: &Path) -> Result<TraceRecord, Error> {
        let found = self.why(root, path)?;
        let mut trace = Trace::new(self);
        trace.file(&found, None)?;
        Ok(trace.record(None, 0))
    }

    /// Who wrote the lines that a commit added, as a record of Agent Trace; nothing if there is no such commit.
    ///
    /// # Errors
    /// If the record or the repository cannot be read.
    pub fn trace_commit(&self, root: &Path, name: &str) -> Result<Option<TraceRecord>, Error> {
        let mut trace = Trace::new(self);
        let found = self.each_committed(root, name, &mut |added| trace.file(&added.origins, Some(added)))?;
        Ok(found.map(|commit| {
            let revision = TraceRevision { kind: "git", revision: commit.id };
            trace.record(Some(revision), commit.left_out)
        }))
    }
}

/// What wrote some lines: a session, and the model that it used.
type Source = (SessionId, Option<String>);

/// A record in the making.
struct Trace<'a> {
    engine: &'a Engine,
    files: Vec<TraceFile>,
    counts: TraceCounts,
    /// The model of each run that was looked up.
    models: BTreeMap<(SessionId, String), Option<String>>,
}

impl<'a> Trace<'a> {
    fn new(engine: &'a Engine) -> Self {
        Self { engine, files: Vec::new(), counts: TraceCounts::default(), models: BTreeMap::new() }
    }

    /// Adds a file; of a commit only the lines that it added.
    fn file(&mut self, found: &FileOrigins, added: Option<&Added>) -> Result<(), Error> {
        let is_added = |line: &LineOrigin| added.is_none_or(|added| added.is_new(line.line));
        let mut ranges: BTreeMap<Source, Vec<TraceRange>> = BTreeMap::new();
        let mut last: Option<(Source, usize)> = None;
        for line in found.lines.iter().filter(|line| is_added(line)) {
            self.counts.lines += 1;
            let writer = line.writer.and_then(|writer| found.writers.get(writer));
            let Some(writer) = writer else {
                // A line of signs alone goes with the lines around it, if these are of one source.
                if line.text.chars().any(char::is_alphanumeric) {
                    self.counts.not_recorded += 1;
                    last = None;
                }
                continue;
            };
            let source = (writer.session_id, self.model(writer)?);
            let of_source = ranges.entry(source.clone()).or_default();
            let goes_on = last.as_ref().is_some_and(|(before, _)| *before == source)
                && is_whole(found, added, of_source.last(), line.line);
            match of_source.last_mut().filter(|_| goes_on) {
                Some(range) => range.end_line = line.line,
                None => of_source.push(TraceRange { start_line: line.line, end_line: line.line }),
            }
            last = Some((source, line.line));
        }
        let conversations = ranges.into_iter().map(|((session, model_id), ranges)| TraceConversation {
            url: format!("segno:{session}"),
            contributor: TraceContributor { kind: "ai", model_id },
            ranges,
        });
        let conversations: Vec<TraceConversation> = conversations.collect();
        if !conversations.is_empty() {
            self.files.push(TraceFile { path: found.path.clone(), conversations });
        }
        Ok(())
    }

    /// The model that a call was made with, as the format wants it: with its provider.
    fn model(&mut self, writer: &Writer) -> Result<Option<String>, Error> {
        let Some(run) = &writer.run else { return Ok(None) };
        let key = (writer.session_id, run.clone());
        if let Some(known) = self.models.get(&key) {
            return Ok(known.clone());
        }
        let rows = self.engine.store().rows(writer.session_id, List::Runs, std::slice::from_ref(run))?;
        let row: Option<RunRow> = rows.first().map(segno_store::Item::row);
        let model = row.and_then(|row| {
            let model = row.model.filter(|model| !model.trim().is_empty())?;
            if model.contains('/') {
                return Some(model);
            }
            let provider = segno_agents::by_name(&row.agent)?.capabilities().provider?;
            Some(format!("{provider}/{model}"))
        });
        self.models.insert(key, model.clone());
        Ok(model)
    }

    fn record(self, vcs: Option<TraceRevision>, left_out: usize) -> TraceRecord {
        let Self { engine, files, counts, .. } = self;
        let what = serde_json::to_vec(&(&vcs, &files)).unwrap_or_default();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&blake3::hash(&what).as_bytes()[..16]);
        TraceRecord {
            version: VERSION,
            id: uuid::Builder::from_custom_bytes(bytes).into_uuid(),
            timestamp: engine.now(),
            vcs,
            tool: TraceTool { name: "segno", version: env!("CARGO_PKG_VERSION") },
            files,
            metadata: TraceMetadata { segno: TraceCounts { left_out, ..counts } },
        }
    }
}

/// Whether a range may go on to a line: everything between is of the same commit, and signs alone.
fn is_whole(found: &FileOrigins, added: Option<&Added>, range: Option<&TraceRange>, to: usize) -> bool {
    let Some(range) = range else { return false };
    (range.end_line + 1..to).all(|number| {
        let line = number.checked_sub(1).and_then(|at| found.lines.get(at));
        let is_sign = line.is_some_and(|line| !line.text.chars().any(char::is_alphanumeric));
        is_sign && added.is_none_or(|added| added.is_new(number))
    })
}
