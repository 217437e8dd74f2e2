//! Puts what is known of a file into the order of time, and replays it.

use std::path::Path;
use std::path::PathBuf;

use segno_agents::written::Part;
use segno_agents::written::Written;
use segno_agents::written::named_file;
use segno_core::List;
use segno_core::Timestamp;
use segno_core::event::CallEnd;
use segno_core::origin::Created;
use segno_core::origin::Of;
use segno_core::origin::Origin;
use segno_core::origin::Replacement;
use segno_core::origin::Replay;
use segno_core::rows::CheckpointRow;
use segno_core::rows::Row as _;
use segno_workspace::ObjectId;
use segno_workspace::PastContent;
use serde_json::Value;

use super::Past;
use super::names::Name;
use super::names::Seen;
use super::names::follow;
use super::story::Call;
use super::story::Point;
use super::story::Story;
use crate::Engine;
use crate::Error;
use crate::tree::calls_sort::Sort;
use crate::tree::calls_sort::sort;

/// What came of a replay.
pub(super) struct Replayed {
    pub(super) lines: Vec<(String, Origin)>,
    /// By the number of a call: its story and its place there.
    pub(super) calls: Vec<(usize, usize)>,
    pub(super) seen: Vec<Seen>,
    pub(super) names: Vec<PathBuf>,
    pub(super) checkpoints: usize,
}

/// One thing that happened.
enum Step {
    Content(usize),
    Told(String),
    BroughtBack(u64),
    Before(String),
    Call(usize),
    Touch(usize),
    Shown(String, Of),
    Unseen,
}

/// When something happened. What happened in one session at the same moment is told apart by the journal.
struct Entry {
    at: Timestamp,
    story: usize,
    seq: u64,
    step: Step,
}

/// Everything that is put in order.
struct Gathering<'a> {
    engine: &'a Engine,
    past: &'a Past,
    names: Vec<Name>,
    seen: Vec<Seen>,
    calls: Vec<(usize, usize)>,
    entries: Vec<Entry>,
}

pub(super) fn replay(
    engine: &Engine,
    past: &Past,
    path: &Path,
    content: Option<&str>,
    until: Option<Timestamp>,
) -> Result<Replayed, Error> {
    let mut seen = snapshots(engine, past, until)?;
    let end = until.unwrap_or(Timestamp::from_micros(i64::MAX));
    if let Some(content) = content {
        let content = PastContent::Bytes(content.as_bytes().to_vec());
        seen.push(Seen { checkpoint: None, tree: None, from: end, to: end, seq: u64::MAX, content });
    }
    let names = follow(past.workspace.as_ref(), &past.root, path, &mut seen)?;
    // A file that no snapshot holds may have been left out of all of them.
    if !seen.iter().any(|seen| seen.tree.is_some() && matches!(seen.content, PastContent::Bytes(_))) {
        for seen in seen.iter_mut().filter(|seen| seen.tree.is_some()) {
            seen.content = PastContent::Unknown;
        }
    }
    let checkpoints =
        seen.iter().filter(|seen| seen.tree.is_some() && seen.content != PastContent::Unknown).count();
    let mut gathering = Gathering { engine, past, names, seen, calls: Vec::new(), entries: Vec::new() };
    gathering.contents();
    for story in 0..past.stories.len() {
        gathering.story(story, end);
    }
    gathering.entries.sort_by_key(|entry| (entry.at, entry.story, entry.seq));
    let lines = gathering.run();
    let names = gathering.names.iter().skip(1).map(|name| name.path.clone()).collect();
    Ok(Replayed { lines, calls: gathering.calls, seen: gathering.seen, names, checkpoints })
}

/// The snapshots of the project, in the order of time.
fn snapshots(engine: &Engine, past: &Past, until: Option<Timestamp>) -> Result<Vec<Seen>, Error> {
    let mut seen = Vec::new();
    for (at, story) in past.stories.iter().enumerate().filter(|(_, story)| story.project == past.root) {
        for row in engine.items(story.session, List::Checkpoints)? {
            let Some(row) = CheckpointRow::read(&row.body) else { continue };
            let points = story.checkpoints.get(&row.ordinal).and_then(|(set, ready)| Some((*set, (*ready)?)));
            let tree = row.snapshot.as_ref().and_then(|mark| ObjectId::parse(&mark.tree));
            let (Some((set, ready)), Some(tree)) = (points, tree) else { continue };
            if until.is_none_or(|until| ready.at <= until) {
                let checkpoint = Some((at, row.ordinal));
                let content = PastContent::Unknown;
                seen.push(Seen {
                    checkpoint,
                    tree: Some(tree),
                    from: set.at,
                    to: ready.at,
                    seq: set.seq,
                    content,
                });
            }
        }
    }
    seen.sort_by_key(|seen| (seen.from, seen.checkpoint));
    Ok(seen)
}

impl Gathering<'_> {
    fn push(&mut self, at: Timestamp, story: usize, seq: u64, step: Step) {
        self.entries.push(Entry { at, story, seq, step });
    }

    fn contents(&mut self) {
        for at in 0..self.seen.len() {
            let Some(seen) = self.seen.get(at) else { continue };
            let (from, story) = (seen.from, seen.checkpoint.map_or(usize::MAX, |(story, _)| story));
            let seq = seen.seq;
            if seen.content != PastContent::Unknown {
                self.push(from, story, seq, Step::Content(at));
            }
        }
    }

    fn story(&mut self, story: usize, end: Timestamp) {
        let past = self.past;
        let Some(told) = past.stories.get(story) else { return };
        for (point, prompt) in &told.prompts {
            let text = self.engine.whole(prompt).unwrap_or_else(|_| prompt.excerpt().to_owned());
            // A file that is mentioned is attached, and nobody recorded what it held.
            if self.names.iter().any(|name| mentions(&text, &name.path)) {
                self.push(point.at, story, point.seq, Step::Unseen);
            }
            self.push(point.at, story, point.seq, Step::Told(text));
        }
        for (point, ordinal) in &told.restored {
            self.push(point.at, story, point.seq, Step::BroughtBack(*ordinal));
        }
        let calls: Vec<&Call> = told.calls.iter().collect();
        let writes_whole = calls.iter().any(|call| {
            let writes = call.writes();
            writes.iter().any(|write| {
                matches!(write.what, Written::Whole { .. }) && self.is_it(told, call, &write.path)
            })
        });
        for (place, call) in calls.iter().enumerate().filter(|(_, call)| call.done().at <= end) {
            self.call(story, place, call, writes_whole);
        }
    }

    /// Whether a call names the file, by what it was called at that time.
    fn is_it(&self, told: &Story, call: &Call, path: &str) -> bool {
        let at = call.done().at;
        let mut until = Timestamp::from_micros(i64::MAX);
        for name in &self.names {
            let before = name.from.checked_sub(1).and_then(|before| self.seen.get(before));
            let since = before.map_or(Timestamp::EPOCH, |before| before.from);
            let absolute = self.past.root.join(&name.path);
            if since <= at
                && at <= until
                && absolute.file_name() == Path::new(path).file_name()
                && (Path::new(path) == absolute || told.absolute(call, path) == absolute)
            {
                return true;
            }
            until = self.seen.get(name.from).map_or(until, |first| first.to);
        }
        false
    }

    fn number(&mut self, story: usize, place: usize) -> usize {
        self.calls.push((story, place));
        self.calls.len() - 1
    }

    fn call(&mut self, story: usize, place: usize, call: &Call, writes_whole: bool) {
        let past = self.past;
        let Some(told) = past.stories.get(story) else { return };
        if !call.may_have_run() {
            return;
        }
        let names_it = |path: &str, gathering: &Self| gathering.is_it(told, call, path);
        let writes = call.writes();
        let ours = writes.iter().any(|write| {
            names_it(&write.path, self) || write.moved_to.as_ref().is_some_and(|to| names_it(to, self))
        });
        let done = self.moment(story, call);
        if ours {
            let number = self.number(story, place);
            if let Some(before) = self.content_before(call) {
                self.push(call.start.at, story, call.start.seq, Step::Before(before));
            }
            self.push(done.at, story, done.seq, Step::Call(number));
            return;
        }
        if !writes.is_empty() {
            return;
        }
        let file = named_file(&call.input);
        let reads_it = file.is_some_and(|path| names_it(path, self));
        let is_anything = matches!(sort(&call.tool), Sort::Anything);
        let speaks_of_it = is_anything && {
            let words = segno_core::call::subject(&call.input);
            self.names.iter().any(|name| mentions_name(&words, &name.path))
        };
        if is_anything && (speaks_of_it || self.covers_any(call)) {
            let number = self.number(story, place);
            self.push(call.start.at, story, call.start.seq, Step::Touch(number));
            self.push(done.at, story, done.seq, Step::Touch(number));
        }
        // What another file holds says nothing of this one.
        let is_other = file.is_some() && !reads_it && !is_anything;
        if is_other || !(reads_it || speaks_of_it || writes_whole) {
            return;
        }
        match call.output.as_ref().map(|text| self.engine.whole(text)) {
            Some(Ok(text)) => {
                let is_part = ["offset", "limit", "view_range", "start_line"]
                    .iter()
                    .any(|name| call.input.get(*name).is_some());
                let of = match (reads_it, speaks_of_it) {
                    (true, _) if !is_part => Of::File,
                    (true, _) | (_, true) => Of::Part,
                    (false, false) => Of::Anything,
                };
                self.push(done.at, story, done.seq, Step::Shown(strings(&text), of));
            }
            Some(Err(_)) | None => self.push(done.at, story, done.seq, Step::Unseen),
        }
    }

    /// When a call had written. One that ended while a snapshot was being made counts before it if that holds what it wrote.
    fn moment(&self, story: usize, call: &Call) -> Point {
        let done = call.done();
        let meets = self.seen.iter().find(|seen| {
            let Some((of, ordinal)) = seen.checkpoint else { return false };
            if of == story
                && let Some((set, ready)) =
                    self.past.stories.get(of).and_then(|told| told.checkpoints.get(&ordinal))
            {
                return set.seq < done.seq && ready.is_some_and(|ready| call.start.seq < ready.seq);
            }
            seen.from < done.at && call.start.at < seen.to
        });
        let Some((seen, PastContent::Bytes(bytes))) = meets.map(|seen| (seen, &seen.content)) else {
            return done;
        };
        let text = String::from_utf8_lossy(bytes);
        let writes = call.writes();
        let is_part_in = |part: &Part| {
            let is_left = text.contains(&part.old) && !part.new.contains(&part.old);
            !part.new.is_empty() && text.contains(&part.new) && !is_left
        };
        let is_in = !writes.is_empty()
            && writes.iter().all(|write| match &write.what {
                Written::Whole { content, .. } => *content == text,
                Written::Parts(parts) => parts.iter().all(is_part_in),
                Written::Removed | Written::Untold => false,
            });
        let just_before = Timestamp::from_micros(seen.from.as_micros() - 1);
        if is_in { Point { seq: call.start.seq, at: just_before } } else { done }
    }

    /// What stood in the file before a call, if its output tells.
    fn content_before(&self, call: &Call) -> Option<String> {
        let output = self.engine.whole(call.output.as_ref()?).ok()?;
        let value: Value = serde_json::from_str(&output).ok()?;
        value.get("originalFile")?.as_str().map(str::to_owned)
    }

    /// Whether a call was at work all the time between two contents.
    fn covers_any(&self, call: &Call) -> bool {
        (1..self.seen.len()).any(|at| self.covers(call, at))
    }

    fn covers(&self, call: &Call, at: usize) -> bool {
        let (Some(before), Some(after)) =
            (at.checked_sub(1).and_then(|before| self.seen.get(before)), self.seen.get(at))
        else {
            return false;
        };
        let in_background = call.input.get("run_in_background").and_then(Value::as_bool) == Some(true);
        let Some((ended, CallEnd::Completed | CallEnd::Failed)) = call.end else { return false };
        call.write_ahead
            && !in_background
            && after.tree.is_some()
            && call.start.at < before.from
            && after.to < ended.at
    }

    /// The one call that was at work all the time before a content, if no other may have written then.
    fn covering(&self, at: usize) -> Option<(usize, usize)> {
        let (before, after) = (self.seen.get(at.checked_sub(1)?)?, self.seen.get(at)?);
        let mut found = None;
        for (number, (story, place)) in self.calls.iter().enumerate() {
            let call = self.past.stories.get(*story)?.calls.get(*place)?;
            if self.covers(call, at) {
                if found.is_some() {
                    return None;
                }
                found = Some((number, *story));
            }
        }
        let (number, story) = found?;
        let own = self.calls.get(number)?;
        let mut others = self.past.stories.iter().enumerate().flat_map(|(story, told)| {
            told.calls.iter().enumerate().map(move |(place, call)| ((story, place), call))
        });
        let alone = others.all(|(place, call)| {
            place == *own
                || !call.may_have_run()
                || matches!(sort(&call.tool), Sort::Nothing)
                || call.start.at > after.to
                || call.end.is_some_and(|(end, _)| end.at < before.from)
        });
        alone.then_some((number, story))
    }

    fn run(&mut self) -> Vec<(String, Origin)> {
        let entries = std::mem::take(&mut self.entries);
        let mut replay = Replay::default();
        for entry in &entries {
            match &entry.step {
                Step::Content(number) => {
                    let Some(seen) = self.seen.get(*number) else { continue };
                    match &seen.content {
                        PastContent::Bytes(bytes) => {
                            if let Ok(text) = std::str::from_utf8(bytes) {
                                replay.content(*number, Some(text), self.covering(*number));
                            }
                        }
                        PastContent::Absent => replay.content(*number, None, None),
                        PastContent::Unknown => {}
                    }
                }
                Step::Before(text) => replay.content(usize::MAX, Some(text), None),
                Step::Told(text) => replay.told(entry.story, text),
                Step::BroughtBack(ordinal) => {
                    let target = Some((entry.story, *ordinal));
                    if let Some(number) = self.seen.iter().position(|seen| seen.checkpoint == target) {
                        replay.brought_back(number);
                    }
                }
                Step::Shown(text, of) => replay.shown(entry.story, text, *of),
                Step::Unseen => replay.unseen(entry.story),
                Step::Touch(number) => replay.touch(*number),
                Step::Call(number) => self.apply(&mut replay, *number),
            }
        }
        replay.result().into_iter().map(|(text, origin)| (text.to_owned(), origin)).collect()
    }

    fn apply(&self, replay: &mut Replay, number: usize) {
        let Some((story, place)) = self.calls.get(number).copied() else { return };
        let Some(told) = self.past.stories.get(story) else { return };
        let Some(call) = told.calls.get(place) else { return };
        for write in call.writes() {
            let is_it = self.is_it(told, call, &write.path);
            let moved_here = write.moved_to.as_ref().is_some_and(|to| self.is_it(told, call, to));
            if !is_it && !moved_here {
                continue;
            }
            if !call.is_done() {
                // Nobody knows whether it wrote.
                replay.touch(number);
                continue;
            }
            match write.what {
                Written::Whole { content, is_new } => {
                    let created = if is_new { Created::Yes } else { Created::Unsaid };
                    replay.write(number, story, &content, created);
                }
                Written::Parts(parts) if is_it => {
                    let parts = parts.into_iter().map(|part| Replacement {
                        old: part.old,
                        new: part.new,
                        all: part.all,
                        whole_lines: part.whole_lines,
                    });
                    replay.replace(number, story, &parts.collect::<Vec<_>>());
                }
                Written::Removed if is_it => replay.remove(),
                Written::Parts(_) | Written::Removed => {}
                Written::Untold => replay.touch(number),
            }
        }
    }
}

/// Whether a prompt attaches a file.
fn mentions(text: &str, path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut words = text.split_whitespace().filter(|word| word.contains('@'));
    !name.is_empty() && words.any(|word| word.contains(&name))
}

/// Whether a command speaks of a file.
fn mentions_name(command: &str, path: &Path) -> bool {
    path.file_name().is_some_and(|name| command.contains(&*name.to_string_lossy()))
}

/// The texts in an output, which may be JSON.
fn strings(text: &str) -> String {
    fn gather(value: &Value, into: &mut String) {
        match value {
            Value::String(text) => {
                into.push_str(text);
                into.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|item| gather(item, into)),
            Value::Object(members) => members.values().for_each(|member| gather(member, into)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_) | Value::String(_))) => {
            let mut all = String::new();
            gather(&value, &mut all);
            all
        }
        Ok(_) | Err(_) => text.to_owned(),
    }
}
