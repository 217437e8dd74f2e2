//! What happened in a session, moment by moment, in pages: what was asked, said and done, and what else a person wants to see.
//!
//! A page costs what it shows, wherever in the journal it lies. A call stands where it began, as it is known now.

use std::collections::BTreeMap;

use segno_core::Event;
use segno_core::List;
use segno_core::SessionId;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::call::subject;
use segno_core::event::Channel;
use segno_core::event::LimitSeen;
use segno_core::rows::ToolRow;
use segno_store::EventRow;
use segno_store::Item;
use segno_store::ItemPosition;
use segno_store::Page;
use serde::Serialize;
use serde_json::Value;

use super::VERSION;
use crate::Engine;
use crate::Error;

/// How many events are read at once.
const EVENTS: usize = 500;
/// A page that finds little looks through at most so many events.
const MOST_EVENTS: u64 = 20_000;
/// How many lines of a difference are made of one call.
const DIFF_LINES: usize = 400;

/// Which part of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineWish {
    /// What came after this event, oldest first.
    After(u64),
    /// What came before this event.
    Before(u64),
}

/// A page of what happened, the oldest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelinePage {
    /// The version of the document.
    pub version: u32,
    /// The session.
    pub session_id: SessionId,
    /// What happened.
    pub moments: Vec<Moment>,
    /// The page says all about the events after this one …
    pub after: u64,
    /// … up to this one.
    pub until: u64,
    /// The newest event of the session.
    pub head: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// Its event.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    /// The agent was told something.
    Asked {
        /// By segno itself, which tells where the work stands.
        brief: bool,
        /// What.
        text: Text,
    },
    /// The agent said something.
    Said {
        /// To itself.
        thinking: bool,
        /// The call of the sub-agent that said it.
        parent: Option<String>,
        /// What.
        text: Text,
    },
    /// The agent used a tool.
    Called(Box<CallLine>),
    /// Something else, as it was recorded.
    Event {
        /// Its kind.
        event: String,
        /// It.
        #[serde(skip)]
        it: Box<Event>,
    },
    /// The event is not what was written.
    Damaged {
        /// What is wrong.
        what: String,
    },
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallLine {
    /// Its name in the ledger.
    pub key: String,
    /// The tool.
    pub tool: String,
    /// What it was about, on a line.
    pub subject: String,
    /// Where it stands: open, completed, failed, denied or in doubt.
    pub state: String,
    /// How long it took.
    pub took_ms: Option<u64>,
    /// Whether it was recorded before it ran.
    pub write_ahead: bool,
    /// The beginning of what came of it.
    pub output: Option<Text>,
    /// How much that was, in bytes.
    pub output_bytes: u64,
    /// How its end was found out, if it was found out later.
    pub evidence: Option<String>,
    /// What it changes in a file, if that can be told from what it was given.
    pub diff: Vec<DiffLine>,
    /// What it was given, as text, if that says more than its subject.
    pub input: String,
}

impl CallLine {
    /// A call as the ledger has it.
    pub fn of(item: &Item, root: &str) -> Self {
        let row: ToolRow = item.row();
        let input = row.input.unwrap_or_default();
        let took = row.started_at.zip(row.ended_at).map(|(from, to)| to.micros_since(from) / 1_000);
        let whole = subject(&input);
        let inside = whole.strip_prefix(root).filter(|_| root.len() > 1).unwrap_or(&whole).to_owned();
        Self {
            key: item.key.clone(),
            tool: row.tool,
            took_ms: took.filter(|_| row.state != "in_doubt"),
            state: row.state,
            write_ahead: row.write_ahead,
            output_bytes: row.output_bytes.or(row.output.as_ref().map(Text::bytes)).unwrap_or(0),
            output: row.output,
            evidence: row.evidence,
            diff: call_diff(&input),
            input: if input.is_null() { String::new() } else { shown(&input) },
            subject: inside,
        }
    }
}

/// A line of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiffLine {
    /// `+`, `-`, `@` or a space.
    pub sign: char,
    /// The line.
    pub text: String,
}

/// An input as a person reads it.
fn shown(input: &Value) -> String {
    match input {
        Value::Object(fields) => {
            let text = |value: &Value| match value {
                Value::String(text) => text.clone(),
                other => {
                    other.get("excerpt").and_then(Value::as_str).map_or(other.to_string(), ToOwned::to_owned)
                }
            };
            fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", text(value)))
                .collect::<Vec<_>>()
                .join("\n")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What a call changes in a file, as far as its input says so: old and new text, a whole content, or a patch.
pub fn call_diff(input: &Value) -> Vec<DiffLine> {
    let text = |value: &Value, names: &[&str]| {
        let found = names.iter().find_map(|name| value.get(*name))?;
        // A long text that was set aside begins like this.
        found.as_str().or_else(|| found.get("excerpt")?.as_str()).map(ToOwned::to_owned)
    };
    let mut lines = Vec::new();
    let pair = |value: &Value, lines: &mut Vec<DiffLine>| {
        let (old, new) =
            (text(value, &["old_string", "oldString"]), text(value, &["new_string", "newString"]));
        if old.is_some() || new.is_some() {
            replaced(&old.unwrap_or_default(), &new.unwrap_or_default(), lines);
        }
    };
    pair(input, &mut lines);
    for edit in input.get("edits").and_then(Value::as_array).into_iter().flatten() {
        if !lines.is_empty() {
            lines.push(DiffLine { sign: '@', text: String::new() });
        }
        pair(edit, &mut lines);
    }
    if lines.is_empty()
        && let Some(patch) = text(input, &["patch", "diff", "unified_diff"])
            .or_else(|| text(input, &["input"]).filter(|text| text.starts_with("*** Begin Patch")))
    {
        lines.extend(patch.lines().map(of_patch));
    }
    let is_file = segno_core::call::file(input).is_some() || input.get("filePath").is_some();
    if lines.is_empty()
        && is_file
        && let Some(content) = text(input, &["content", "file_text"])
    {
        lines.extend(content.lines().map(|line| DiffLine { sign: '+', text: line.to_owned() }));
    }
    if lines.len() > DIFF_LINES {
        let more = lines.len() - DIFF_LINES;
        lines.truncate(DIFF_LINES);
        lines.push(DiffLine { sign: '@', text: format!("{more} more lines") });
    }
    lines
}

fn of_patch(line: &str) -> DiffLine {
    let sign = match line.chars().next() {
        _ if line.starts_with("+++") || line.starts_with("---") || line.starts_with("***") => '@',
        Some(sign @ ('+' | '-' | '@')) => sign,
        _ => ' ',
    };
    let text = if sign == '@' { line } else { line.get(1..).unwrap_or_default() };
    DiffLine { sign, text: text.to_owned() }
}

/// One text instead of another: what both begin and end with is shown once.
fn replaced(old: &str, new: &str, lines: &mut Vec<DiffLine>) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |(one, other): &(&&str, &&str)| one == other;
    let begin = old.iter().zip(&new).take_while(same).count();
    let rest = old.len().min(new.len()) - begin;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(same).count();
    let mut put = |sign: char, part: &[&str]| {
        lines.extend(part.iter().map(|line| DiffLine { sign, text: (*line).to_owned() }));
    };
    put(' ', &old[..begin]);
    put('-', &old[begin..old.len() - end]);
    put('+', &new[begin..new.len() - end]);
    put(' ', &old[old.len() - end..]);
}

impl Engine {
    /// A page of what happened in a session: about `limit` moments, and all that its last event brought.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn timeline(
        &self,
        session: SessionId,
        wish: TimelineWish,
        limit: usize,
    ) -> Result<TimelinePage, Error> {
        let state = self.load(session)?.state;
        let (head, root) = (state.seq, format!("{}/", state.project.path.trim_end_matches('/')));
        let mut page = TimelinePage {
            version: VERSION,
            session_id: session,
            moments: Vec::new(),
            after: 0,
            until: 0,
            head,
        };
        let step = EVENTS as u64;
        match wish {
            TimelineWish::After(after) => {
                (page.after, page.until) = (after, after);
                while page.moments.len() < limit && page.until < head && page.until - after < MOST_EVENTS {
                    let until = page.until.saturating_add(step).min(head);
                    let mut found = self.moments(session, page.until, until, &root)?;
                    page.until = until;
                    let room = limit - page.moments.len();
                    if found.len() > room {
                        // The rest of its event belongs to the last one.
                        let last = found.get(room.saturating_sub(1)).map_or(0, |moment| moment.seq);
                        found.retain(|moment| moment.seq <= last);
                        page.until = last.max(after);
                    }
                    page.moments.append(&mut found);
                }
            }
            TimelineWish::Before(before) => {
                let last = before.saturating_sub(1).min(head);
                (page.after, page.until) = (last, last);
                while page.moments.len() < limit && page.after > 0 && last - page.after < MOST_EVENTS {
                    let from = page.after.saturating_sub(step);
                    let mut found = self.moments(session, from, page.after, &root)?;
                    page.after = from;
                    let room = limit - page.moments.len();
                    if found.len() > room {
                        let first = found.get(found.len() - room).map_or(0, |moment| moment.seq);
                        found.retain(|moment| moment.seq >= first);
                        page.after = first.saturating_sub(1);
                    }
                    found.append(&mut page.moments);
                    page.moments = found;
                }
            }
        }
        Ok(page)
    }

    /// One call of the ledger, whole: what was set aside is put back in.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn call_line(&self, session: SessionId, key: &str) -> Result<Option<CallLine>, Error> {
        let root = format!("{}/", self.load(session)?.state.project.path.trim_end_matches('/'));
        let rows = self.store().rows(session, List::Tools, &[key.to_owned()])?;
        let Some(mut item) = rows.into_iter().next() else { return Ok(None) };
        item.body = crate::transfer::inline(self, item.body);
        Ok(Some(CallLine::of(&item, &root)))
    }

    /// The calls that nobody knows the end of, and those that are open, the newest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn ledger(
        &self,
        session: SessionId,
        after: Option<ItemPosition>,
        limit: usize,
    ) -> Result<Vec<Item>, Error> {
        Ok(self.store().page(session, List::Tools, &Page { after, limit, newest_first: true })?)
    }

    /// What happened in these events: after the first, up to the last.
    fn moments(&self, session: SessionId, after: u64, until: u64, root: &str) -> Result<Vec<Moment>, Error> {
        let count = usize::try_from(until.saturating_sub(after)).unwrap_or(EVENTS);
        let mut calls = self.calls_begun(session, after, until)?;
        let mut moments = Vec::new();
        for row in self.events(session, after, count)? {
            let stored = match row {
                EventRow::Whole(stored) => stored,
                EventRow::Damaged { seq, what } => {
                    moments.push(Moment { seq, at: Timestamp::EPOCH, what: What::Damaged { what } });
                    continue;
                }
            };
            let (seq, at) = (stored.seq, stored.at);
            // Calls stand where their row began: by a start, by an end without one, or by an import.
            for item in calls.remove(&seq).into_iter().flatten() {
                let what = What::Called(Box::new(CallLine::of(&item, root)));
                moments.push(Moment { seq, at, what });
            }
            let what = match stored.event() {
                Ok(event) => shown_event(event),
                Err(why) => vec![What::Damaged { what: why.to_string() }],
            };
            moments.extend(what.into_iter().map(|what| Moment { seq, at, what }));
        }
        Ok(moments)
    }

    fn calls_begun(
        &self,
        session: SessionId,
        after: u64,
        until: u64,
    ) -> Result<BTreeMap<u64, Vec<Item>>, Error> {
        let mut begun: BTreeMap<u64, Vec<Item>> = BTreeMap::new();
        let mut position = Some(ItemPosition { seq: after + 1, key: String::new() });
        loop {
            let page = Page { after: position, limit: EVENTS, newest_first: false };
            let items = self.store().page(session, List::Tools, &page)?;
            position = items.last().map(|item| ItemPosition { seq: item.seq, key: item.key.clone() });
            let (read, more) = (items.len(), items.last().is_some_and(|item| item.seq <= until));
            for item in items.into_iter().filter(|item| item.seq <= until) {
                begun.entry(item.seq).or_default().push(item);
            }
            if read < EVENTS || !more {
                return Ok(begun);
            }
        }
    }
}

/// What of an event a person wants to see beside the calls; nothing of what goes by all the time.
fn shown_event(event: Event) -> Vec<What> {
    match event {
        Event::RunStarted(mut e) => {
            let asked = e.prompt.take().map(|text| What::Asked { brief: e.briefed, text });
            let begun = What::Event { event: "run_started".to_owned(), it: Box::new(Event::RunStarted(e)) };
            std::iter::once(begun).chain(asked).collect()
        }
        Event::Said(e) => vec![match e.channel {
            Channel::Input => What::Asked { brief: false, text: e.text },
            channel => What::Said { thinking: channel == Channel::Thinking, parent: e.parent, text: e.text },
        }],
        Event::Reported(e) if LimitSeen::of_report(&e.what, &e.body).is_none_or(|limit| !refuses(&limit)) => {
            Vec::new()
        }
        Event::DriverAttached(_)
        | Event::DriverDetached(_)
        | Event::TokensRecorded(_)
        | Event::CostRecorded(_)
        | Event::ToolStarted(_)
        | Event::ToolEnded(_)
        | Event::FileChanged(_)
        | Event::PositionSet(_)
        | Event::AgentStateSet(_)
        | Event::CacheSet(_)
        | Event::CacheRemoved(_)
        | Event::CheckpointReady(_)
        | Event::TurnCompleted(_)
        | Event::RunNamed(_)
        | Event::RequestAnswered(_)
        | Event::QuestionClosed(_)
        | Event::QueueListed(_)
        | Event::ProgressSet(_) => Vec::new(),
        other => vec![What::Event { event: other.kind().to_owned(), it: Box::new(other) }],
    }
}

/// A window that stands open says nothing new.
fn refuses(limit: &LimitSeen) -> bool {
    limit.status.as_deref().is_some_and(|status| status != "allowed")
}
