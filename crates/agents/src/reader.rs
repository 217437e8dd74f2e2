//! The streaming reader: bytes of an agent's output in, events out.

use serde::Serialize;

use crate::event::AgentEvent;
use crate::lines::Line;
use crate::lines::Lines;
use crate::outcome::ExitInfo;
use crate::outcome::Outcome;
use crate::splice::Part;
use crate::splice::{self};
use crate::tally::Tally;
use crate::tokens::Baseline;

/// Lines up to this many bytes are parsed. Agents really write lines of several megabytes.
pub const DEFAULT_LINE_LIMIT: usize = 64 * 1024 * 1024;

/// How many complete lines may pass before the rest of a torn event is given up.
const PATIENCE: u32 = 8;

/// An event and where it came from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Envelope {
    /// Byte offset of the first byte of the line in the whole output.
    pub offset: u64,
    /// Number of the line, from 1, counted from where the reader began.
    pub line: u64,
    /// Which event of that line this is, from 0.
    pub index: u32,
    /// The line was not valid UTF-8; replacement characters stand in the text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lossy: bool,
    /// The agent's own id of the line, where it gives one. Some agents can go back to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_event_id: Option<String>,
    /// When the agent says it happened (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub event: AgentEvent,
}

impl Envelope {
    /// A key that is the same whenever the same output is read again, however it was chunked.
    pub fn key(&self) -> String {
        format!("{}.{}", self.offset, self.index)
    }
}

/// How to read.
#[derive(Debug, Clone)]
pub struct ReaderOptions {
    /// Lines beyond this many bytes are passed on as [`AgentEvent::Oversized`].
    pub line_limit: usize,
    /// Offset of the first byte that will be fed, when an earlier reader got that far.
    pub start_offset: u64,
    /// The conversation the agent was told to open; a different one is reported in the outcome.
    pub expected_native_id: Option<String>,
    /// What the conversation had used before.
    pub baseline: Baseline,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            line_limit: DEFAULT_LINE_LIMIT,
            start_offset: 0,
            expected_native_id: None,
            baseline: Baseline::Fresh,
        }
    }
}

/// Lines that were not as an agent writes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Irregular {
    /// Lines that hold several events, or an event and the rest of another.
    pub glued: u64,
    /// Pieces that are no whole event, and were passed over.
    pub torn: u64,
    /// Lines beyond the limit, of which only the ends were looked at.
    pub oversized: u64,
}

/// What a line says besides its events.
#[derive(Debug, Default)]
pub(crate) struct LineMeta {
    pub(crate) session_id: Option<String>,
    pub(crate) event_id: Option<String>,
    pub(crate) at: Option<String>,
}

/// The part of a reader that knows one agent.
pub(crate) trait StreamParser: Send + std::fmt::Debug {
    /// One complete JSON object of the output.
    fn object(&mut self, json: &str, out: &mut Vec<AgentEvent>) -> LineMeta;

    /// One piece of the output that is no JSON object.
    fn text(&mut self, text: &str, out: &mut Vec<AgentEvent>) {
        out.push(AgentEvent::Noise { text: text.to_owned() });
    }

    /// Whether the output is made of JSON objects at all.
    fn speaks_json(&self) -> bool {
        true
    }

    /// Whether the agent gives this `type` to its top-level events.
    fn knows(&self, event_type: &str) -> bool;

    /// Whether something read so far is told together with what follows, such as a message in pieces, or changes what
    /// that means, such as a refusal before the end.
    fn holds(&self) -> bool {
        false
    }

    /// Whether a reader that begins in the middle says who speaks beside what its first line says. The other events of that
    /// line then have the same numbers as without it, so that they are known again.
    fn introduces(&self) -> bool {
        false
    }

    /// How the lines of a log begin, and nothing inside of them does: where one was glued to another that was cut off,
    /// they are told apart by this. Empty for what is no log.
    fn line_starts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Nothing follows: tells what was held.
    fn end(&mut self, _out: &mut Vec<AgentEvent>) {}
}

/// Reads the output of one agent process. Feed it bytes as they come, then finish it.
#[derive(Debug)]
pub struct Reader {
    lines: Lines,
    inner: Inner,
}

impl Reader {
    pub(crate) fn new(parser: Box<dyn StreamParser>, options: &ReaderOptions, tally: Tally) -> Self {
        Self {
            lines: Lines::new(options.line_limit, options.start_offset),
            inner: Inner {
                parser,
                tally,
                torn: None,
                held: None,
                last: None,
                scratch: Vec::new(),
                lines: 0,
                irregular: Irregular::default(),
            },
        }
    }

    /// Takes the next bytes, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8], out: &mut impl FnMut(Envelope)) {
        let Self { lines, inner } = self;
        lines.feed(bytes, &mut |line| inner.line(line, out));
    }

    /// Takes what is left without a line feed. Called by [`Reader::finish`]; harmless to call twice.
    pub fn flush(&mut self, out: &mut impl FnMut(Envelope)) {
        let Self { lines, inner } = self;
        lines.finish(&mut |line| inner.line(line, out));
        inner.give_up(out);
        inner.end(out);
    }

    /// Ends the stream and says how the run ended.
    pub fn finish(mut self, exit: &ExitInfo, out: &mut impl FnMut(Envelope)) -> Outcome {
        self.flush(out);
        self.inner.tally.outcome(exit, self.inner.lines)
    }

    /// What was not as the agent writes it, so far.
    pub fn irregular(&self) -> Irregular {
        self.inner.irregular
    }

    /// From where another reader must start so that no event is missed: all before it has been given out whole. What
    /// only earlier lines tell, such as the file of a call that is still open, that reader cannot know.
    pub fn safe_offset(&self) -> u64 {
        let start = self.lines.start();
        let torn = self.inner.torn.as_ref().map_or(start, |torn| torn.position.offset);
        start.min(torn).min(self.inner.held.unwrap_or(start))
    }
}

#[derive(Debug)]
struct Inner {
    parser: Box<dyn StreamParser>,
    tally: Tally,
    torn: Option<Torn>,
    /// Where the first line is whose events are still held back.
    held: Option<u64>,
    /// The last event's position, and the next index there.
    last: Option<StreamPosition>,
    scratch: Vec<AgentEvent>,
    lines: u64,
    irregular: Irregular,
}

/// An event whose rest is expected on a later line.
#[derive(Debug)]
struct Torn {
    position: StreamPosition,
    text: String,
    patience: u32,
}

#[derive(Debug, Clone, Copy)]
struct StreamPosition {
    offset: u64,
    line: u64,
    index: u32,
    lossy: bool,
}

impl Inner {
    fn line(&mut self, line: Line<'_>, out: &mut impl FnMut(Envelope)) {
        self.lines += 1;
        match line {
            Line::Whole { offset, number, bytes } => {
                let bytes = trim(bytes);
                if bytes.iter().all(u8::is_ascii_whitespace) {
                    return;
                }
                let text = String::from_utf8_lossy(bytes);
                let lossy = matches!(text, std::borrow::Cow::Owned(_));
                self.text(&text, StreamPosition { offset, line: number, index: 0, lossy }, out);
            }
            Line::Oversized { offset, number, length, head, tail } => {
                self.irregular.oversized += 1;
                self.scratch.push(AgentEvent::Oversized {
                    bytes: length,
                    head: String::from_utf8_lossy(head).into_owned(),
                    tail: String::from_utf8_lossy(trim(tail)).into_owned(),
                });
                self.emit(
                    &mut StreamPosition { offset, line: number, index: 0, lossy: false },
                    LineMeta::default(),
                    out,
                );
            }
        }
    }

    fn text(&mut self, text: &str, mut position: StreamPosition, out: &mut impl FnMut(Envelope)) {
        if !self.parser.speaks_json() {
            self.parser.text(text, &mut self.scratch);
            return self.emit(&mut position, LineMeta::default(), out);
        }
        if splice::is_object(text) {
            self.object(text, &mut position, out);
            return self.lose_patience(out);
        }
        if !self.parser.line_starts().is_empty() {
            return self.damaged(text, position, out);
        }
        if let Some(mut torn) = self.torn.take() {
            let whole = format!("{}{text}", torn.text);
            if splice::is_object(&whole) {
                torn.position.lossy |= position.lossy;
                return self.object(&whole, &mut torn.position, out);
            }
            self.noise(torn, out);
        }
        let parser = &self.parser;
        let parts = splice::take_apart(text, &|kind| parser.knows(kind));
        self.irregular.glued += u64::from(parts.iter().any(|part| matches!(part, Part::Object(_))));
        for part in parts {
            match part {
                Part::Object(json) => self.object(&json, &mut position, out),
                Part::Noise(noise) => {
                    self.irregular.torn += 1;
                    self.parser.text(&noise, &mut self.scratch);
                    self.emit(&mut position, LineMeta::default(), out);
                }
                Part::Open(text) => self.torn = Some(Torn { position, text, patience: PATIENCE }),
            }
        }
    }

    /// A line of a log that is none: what is whole in it counts.
    fn damaged(&mut self, text: &str, mut position: StreamPosition, out: &mut impl FnMut(Envelope)) {
        let mut whole = false;
        for piece in splice::pieces_of_log(text, self.parser.line_starts()) {
            for part in splice::take_apart(piece, &|_| false) {
                match part {
                    Part::Object(json) => {
                        whole = true;
                        self.object(&json, &mut position, out);
                    }
                    Part::Noise(_) | Part::Open(_) => self.irregular.torn += 1,
                }
            }
        }
        self.irregular.glued += u64::from(whole);
    }

    fn object(&mut self, json: &str, position: &mut StreamPosition, out: &mut impl FnMut(Envelope)) {
        let meta = self.parser.object(json, &mut self.scratch);
        // The rest of a torn event belongs to where it began, which is before what came between.
        let since = self.held.map_or(position.offset, |held| held.min(position.offset));
        self.held = self.parser.holds().then_some(since);
        self.emit(position, meta, out);
    }

    fn end(&mut self, out: &mut impl FnMut(Envelope)) {
        self.parser.end(&mut self.scratch);
        self.held = None;
        if let Some(mut position) = self.last {
            self.emit(&mut position, LineMeta::default(), out);
        }
    }

    fn emit(&mut self, position: &mut StreamPosition, meta: LineMeta, out: &mut impl FnMut(Envelope)) {
        if let Some(id) = &meta.session_id {
            self.tally.saw_session(id);
        }
        let introduces = self.parser.introduces();
        let says_who = |event: &AgentEvent| introduces && matches!(event, AgentEvent::SessionStarted { .. });
        let others = self.scratch.iter().filter(|event| !says_who(event)).count();
        let start = *position;
        let mut after = position.index + u32::try_from(others).unwrap_or(u32::MAX);
        for event in self.scratch.drain(..) {
            self.tally.observe(&event);
            let next = if says_who(&event) { &mut after } else { &mut position.index };
            out(Envelope {
                offset: start.offset,
                line: start.line,
                index: *next,
                lossy: start.lossy,
                native_event_id: meta.event_id.clone(),
                at: meta.at.clone(),
                event,
            });
            *next += 1;
        }
        position.index = after;
        self.last = Some(*position);
    }

    fn lose_patience(&mut self, out: &mut impl FnMut(Envelope)) {
        let spent = self.torn.as_mut().is_some_and(|torn| {
            torn.patience = torn.patience.saturating_sub(1);
            torn.patience == 0
        });
        if spent {
            self.give_up(out);
        }
    }

    fn give_up(&mut self, out: &mut impl FnMut(Envelope)) {
        if let Some(torn) = self.torn.take() {
            self.noise(torn, out);
        }
    }

    fn noise(&mut self, mut torn: Torn, out: &mut impl FnMut(Envelope)) {
        self.irregular.torn += 1;
        self.parser.text(&torn.text, &mut self.scratch);
        self.emit(&mut torn.position, LineMeta::default(), out);
    }
}

/// Without a carriage return before the line feed, and without zeros that pad a line cut by a crash.
fn trim(bytes: &[u8]) -> &[u8] {
    let mut end = bytes.len();
    while end > 0 && matches!(bytes[end - 1], b'\r' | 0) {
        end -= 1;
    }
    &bytes[..end]
}
