//! What the journal of one session tells of calls, prompts and checkpoints.

use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::written::FileWrite;
use segno_agents::written::Written;
use segno_agents::written::file_writes;
use segno_core::Event;
use segno_core::SessionId;
use segno_core::Summary;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_core::event::CallEnd;
use segno_core::event::Change;
use segno_core::event::Channel;
use segno_core::event::Source;
use segno_core::event::ToolEnded;
use segno_core::event::ToolStarted;
use segno_core::text::Aside;
use segno_core::text::BLOB_MEMBER;
use segno_store::EventRow;
use serde_json::Value;

use crate::Engine;
use crate::Error;

/// Events that are read at once.
const PAGE: usize = 1_000;
/// Kinds of events that say something of who wrote a file; others are not even parsed.
const KINDS: &[&str] = &[
    "run_started",
    "tool_started",
    "tool_ended",
    "file_changed",
    "said",
    "checkpoint_created",
    "checkpoint_ready",
    "files_restored",
    "tokens_recorded",
    "cost_recorded",
];

/// A point of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
}

/// A call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) run: Option<String>,
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) write_ahead: bool,
    pub(super) start: Point,
    pub(super) end: Option<(Point, CallEnd)>,
    pub(super) output: Option<Text>,
    /// Files that it is told to have made.
    pub(super) made: Vec<String>,
    /// Where its run works.
    pub(super) directory: Option<PathBuf>,
}

impl Call {
    /// Whether it ran to its end.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.end, Some((_, CallEnd::Completed)))
    }

    /// Whether it may have done something: one that was refused has not.
    pub(super) fn may_have_run(&self) -> bool {
        !matches!(self.end, Some((_, CallEnd::Denied)))
    }

    /// When it had written, or the last that is known of it.
    pub(super) fn done(&self) -> Point {
        self.end.map_or(self.start, |(point, _)| point)
    }

    /// What it says that it wrote.
    pub(super) fn writes(&self) -> Vec<FileWrite> {
        let mut writes = file_writes(&self.tool, &self.input);
        for write in &mut writes {
            if let Written::Whole { is_new, .. } = &mut write.what {
                *is_new |= self.made.iter().any(|made| made.ends_with(write.path.trim_start_matches("./")));
            }
        }
        writes
    }
}

/// What a session's journal tells.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) session: SessionId,
    pub(super) summary: Summary,
    pub(super) project: PathBuf,
    pub(super) calls: Vec<Call>,
    pub(super) prompts: Vec<(Point, Text)>,
    /// Checkpoints by their numbers: when they were set, and when all of them was on disk.
    pub(super) checkpoints: HashMap<u64, (Point, Option<Point>)>,
    /// To which checkpoint files were brought back, and when.
    pub(super) restored: Vec<(Point, u64)>,
    /// Where runs began.
    pub(super) runs: Vec<(Point, String, String)>,
    used: Vec<(Point, Option<String>, Source, TokenUse, u64)>,
}

impl Story {
    /// What was used from one prompt to the next one around a point: tokens and millionths of a dollar.
    pub(super) fn turn(&self, at: u64, run: Option<&str>) -> (TokenUse, u64) {
        let began =
            self.prompts.iter().map(|(point, _)| point.seq).filter(|seq| *seq <= at).max().unwrap_or(0);
        let next = self.prompts.iter().map(|(point, _)| point.seq).filter(|seq| *seq > at).min();
        let of_turn: Vec<_> = self
            .used
            .iter()
            .filter(|(point, of, ..)| {
                point.seq >= began && next.is_none_or(|next| point.seq < next) && of.as_deref() == run
            })
            .collect();
        // Within a run only one source counts.
        let first = |counts: &dyn Fn(&TokenUse, u64) -> bool| {
            of_turn.iter().find(|(_, _, _, tokens, micros)| counts(tokens, *micros)).map(|used| used.2)
        };
        let (told, spent) = (first(&|tokens, _| tokens.total() > 0), first(&|_, micros| micros > 0));
        of_turn.iter().fold((TokenUse::default(), 0), |(tokens, micros), used| {
            let tokens = if Some(used.2) == told { tokens.plus(&used.3) } else { tokens };
            let spent = if Some(used.2) == spent { used.4 } else { 0 };
            (tokens, micros + spent)
        })
    }

    /// The prompt that was being worked on.
    pub(super) fn prompt(&self, at: u64) -> Option<&(Point, Text)> {
        self.prompts.iter().rev().find(|(point, _)| point.seq <= at)
    }

    /// A path as a call says it, from the top of the file system.
    pub(super) fn absolute(&self, call: &Call, path: &str) -> PathBuf {
        let path = Path::new(path);
        let from = call.directory.as_ref().unwrap_or(&self.project);
        let path = from.join(path.strip_prefix(".").unwrap_or(path));
        let real = path.parent().and_then(|above| above.canonicalize().ok());
        match (real, path.file_name()) {
            (Some(above), Some(name)) => above.join(name),
            _ => path,
        }
    }
}

/// Follows a journal.
struct Reader<'a> {
    engine: &'a Engine,
    story: Story,
    directory: Option<PathBuf>,
    /// How often a call of this name began, by who told of it; names come again.
    begun: HashMap<(Option<String>, String, u8), usize>,
    ended: HashMap<(Option<String>, String, u8), usize>,
    nth: HashMap<(Option<String>, String, usize), usize>,
}

impl Engine {
    pub(super) fn story(&self, summary: &Summary) -> Result<Story, Error> {
        let project = Path::new(&summary.project);
        let story = Story {
            session: summary.session_id,
            project: project.canonicalize().unwrap_or_else(|_| project.to_owned()),
            summary: summary.clone(),
            calls: Vec::new(),
            prompts: Vec::new(),
            checkpoints: HashMap::new(),
            restored: Vec::new(),
            runs: Vec::new(),
            used: Vec::new(),
        };
        let (begun, ended, nth) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut reader = Reader { engine: self, story, directory: None, begun, ended, nth };
        let mut after = 0;
        loop {
            let rows = self.events(summary.session_id, after, PAGE)?;
            let is_last = rows.len() < PAGE;
            for row in rows {
                after = row.seq();
                let EventRow::Whole(stored) = row else { continue };
                if KINDS.contains(&stored.kind.as_str())
                    && let Ok(event) = stored.event()
                {
                    reader.take(event, Point { seq: stored.seq, at: stored.at }, stored.run);
                }
            }
            if is_last {
                return Ok(reader.story);
            }
        }
    }

    /// A value with every text in it that was set aside.
    pub(super) fn whole_value(&self, value: Value) -> Value {
        match value {
            Value::Object(members) if members.contains_key(BLOB_MEMBER) => {
                let aside: Option<Aside> = serde_json::from_value(Value::Object(members)).ok();
                let text = aside.and_then(|aside| {
                    let json = aside.json;
                    Some((self.whole(&Text::Aside(aside)).ok()?, json))
                });
                match text {
                    Some((text, true)) => serde_json::from_str(&text).unwrap_or(Value::Null),
                    Some((text, false)) => Value::String(text),
                    // What cannot be read says nothing.
                    None => Value::Null,
                }
            }
            Value::Object(members) => Value::Object(
                members.into_iter().map(|(name, member)| (name, self.whole_value(member))).collect(),
            ),
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.whole_value(item)).collect())
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
        }
    }
}

/// Sources cannot be looked up by.
fn number(source: Source) -> u8 {
    match source {
        Source::Hand => 0,
        Source::Stream => 1,
        Source::Hook => 2,
    }
}

impl Reader<'_> {
    fn take(&mut self, event: Event, at: Point, run: Option<String>) {
        match event {
            Event::RunStarted(started) => {
                self.directory =
                    Some(&started.directory).filter(|directory| !directory.is_empty()).map(|directory| {
                        Path::new(directory).canonicalize().unwrap_or_else(|_| directory.into())
                    });
                self.story.runs.push((at, started.run, started.agent));
                self.story.prompts.extend(started.prompt.map(|prompt| (at, prompt)));
            }
            Event::Said(said) if said.channel == Channel::Input && said.parent.is_none() => {
                self.story.prompts.push((at, said.text));
            }
            Event::ToolStarted(call) => self.start(call, at, run),
            Event::ToolEnded(call) => self.end(call, at, run),
            Event::FileChanged(file) if file.change == Change::Created => {
                let Some(call) = file.call else { return };
                if let Some(found) =
                    self.story.calls.iter_mut().rev().find(|known| known.id == call && known.run == run)
                {
                    found.made.push(file.path);
                }
            }
            Event::CheckpointCreated(made) => {
                self.story.checkpoints.insert(made.ordinal, (at, None));
            }
            Event::CheckpointReady(ready) => {
                if let Some(known) = self.story.checkpoints.get_mut(&ready.ordinal) {
                    known.1 = Some(at);
                }
            }
            Event::FilesRestored(restored) => self.story.restored.push((at, restored.to)),
            Event::TokensRecorded(used) if used.below.is_none() => {
                self.story.used.push((at, run, used.source, used.tokens, 0));
            }
            Event::CostRecorded(spent) if spent.below.is_none() => {
                self.story.used.push((at, run, spent.source, TokenUse::default(), spent.micros));
            }
            _ => {}
        }
    }

    fn start(&mut self, call: ToolStarted, start: Point, run: Option<String>) {
        let count = self.begun.entry((run.clone(), call.call.clone(), number(call.source))).or_default();
        *count += 1;
        let nth = (run.clone(), call.call.clone(), *count);
        let input = self.engine.whole_value(call.input);
        if let Some(known) = self.nth.get(&nth).and_then(|at| self.story.calls.get_mut(*at)) {
            // Told by somebody else already; who told more of it counts.
            let tells = |tool: &str, input: &Value| {
                file_writes(tool, input).iter().filter(|write| write.what != Written::Untold).count()
            };
            if tells(&call.tool, &input) > tells(&known.tool, &known.input) {
                known.input = input;
            }
            known.write_ahead |= call.write_ahead;
            return;
        }
        self.nth.insert(nth, self.story.calls.len());
        self.story.calls.push(Call {
            run,
            id: call.call,
            tool: call.tool,
            input,
            write_ahead: call.write_ahead,
            start,
            end: None,
            output: None,
            made: Vec::new(),
            directory: self.directory.clone(),
        });
    }

    fn end(&mut self, call: ToolEnded, at: Point, run: Option<String>) {
        let count = self.ended.entry((run.clone(), call.call.clone(), number(call.source))).or_default();
        *count += 1;
        let nth = (run, call.call, *count);
        let Some(known) = self.nth.get(&nth).and_then(|at| self.story.calls.get_mut(*at)) else { return };
        if known.end.is_none() || matches!(known.end, Some((_, CallEnd::InDoubt))) {
            known.end = Some((at, call.end));
        }
        if known.output.is_none() {
            known.output = call.output;
        }
    }
}
