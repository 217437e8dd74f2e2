//! `segno show --conversation`: what was asked, said and done, as one reads a chat.

use std::time::Duration;

use segno_engine::conversation::Entry;
use segno_engine::conversation::Spoken;
use segno_engine::core::SessionId;
use segno_engine::core::Text as Content;
use segno_engine::core::event::CallEnd;
use segno_engine::core::text::shorten;
use unicode_width::UnicodeWidthStr as _;

use super::args::Page;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// Lines get no wider than they can be read.
const WIDEST: usize = 100;
const NARROWEST: usize = 30;
/// So many lines of a text are shown unless all of it is asked for.
const LINES: usize = 12;
const INDENT: &str = "  ";

/// Shows the conversation of a session.
///
/// # Errors
/// If it cannot be read or written.
pub(super) fn show(ctx: &CommandContext<'_>, session: SessionId, page: &Page) -> Outcome {
    let context = ctx.context;
    let mut entries = ctx.engine.conversation(session)?;
    if let Some(after) = page.after {
        entries.retain(|entry| entry.seq > after);
    }
    if let Some(limit) = page.limit.map(|limit| limit as usize) {
        match page.after {
            Some(_) => entries.truncate(limit),
            None => drop(entries.drain(..entries.len().saturating_sub(limit))),
        }
    }
    if page.full {
        entries.iter_mut().for_each(|entry| make_whole(ctx, entry));
    }
    if context.printer.is_json() {
        let document = serde_json::json!({ "session_id": session, "conversation": entries });
        return context.printer.json(&document);
    }
    if entries.is_empty() {
        context.printer.talk("nothing was said in this session");
        context.printer.hint("segno history   segno log");
        return Ok(());
    }
    context.page(&chat(context, &entries, page.full))
}

/// Shows the conversation of a session from a little before an event on, as whoever found that event wants to read it.
///
/// # Errors
/// If it cannot be read or written.
pub(super) fn show_at(ctx: &CommandContext<'_>, session: SessionId, seq: u64) -> Outcome {
    const BEFORE: usize = 2;
    let mut entries = ctx.engine.conversation(session)?;
    // What a call printed belongs to the entry that the call began.
    let at = entries.partition_point(|entry| entry.seq <= seq).saturating_sub(1);
    drop(entries.drain(..at.saturating_sub(BEFORE)));
    if entries.is_empty() {
        ctx.context.printer.talk("it is no part of a conversation");
        ctx.context.printer.hint(format!("segno log {} --after {}", short(session), seq.saturating_sub(1)));
        return Ok(());
    }
    ctx.context.page(&chat(ctx.context, &entries, false))
}

/// Puts long texts in whole. One that cannot be read stays as it begins.
fn make_whole(ctx: &CommandContext<'_>, entry: &mut Entry) {
    let text = match &mut entry.what {
        Spoken::Asked { text, .. } | Spoken::Said { text, .. } => text,
        Spoken::Called { output: Some(text), .. } | Spoken::RunEnded { reason: text, .. } => text,
        Spoken::Called { .. } | Spoken::RunStarted { .. } => return,
    };
    if let Ok(whole) = ctx.engine.whole(text) {
        *text = Content::Whole(whole);
    }
}

struct Chat<'a> {
    context: &'a Context,
    /// How wide lines may be; none where nobody says so, as for a file.
    width: Option<usize>,
    full: bool,
    /// Who has the word, so that it is said once.
    speaker: String,
    /// Whether the last line is a call: texts and calls are set apart by an empty line.
    at_call: bool,
    /// Whether whoever has the word has said or done something.
    spoke: bool,
    text: Text,
}

fn chat(context: &Context, entries: &[Entry], full: bool) -> Text {
    let width = context.printer.width().map(|width| width.clamp(NARROWEST, WIDEST));
    let mut chat = Chat {
        context,
        width,
        full,
        speaker: String::new(),
        at_call: false,
        spoke: false,
        text: Text::new(),
    };
    for entry in entries {
        chat.entry(entry);
    }
    chat.text
}

impl Chat<'_> {
    fn entry(&mut self, entry: &Entry) {
        match &entry.what {
            Spoken::RunStarted { agent, version } => {
                let version = version.as_deref().map_or(String::new(), |version| format!(" {version}"));
                self.rule(&format!("{agent}{version} starts"));
            }
            Spoken::RunEnded { outcome, reason, duration_ms, cost_micros, stderr } => {
                if let Some(stderr) = stderr.as_ref().filter(|text| !text.excerpt().trim().is_empty()) {
                    self.says(entry, "standard error", Meaning::Dim);
                    self.body(stderr, Meaning::Plain);
                }
                let mut parts = vec![outcome.replace('_', " ")];
                let reason = reason.excerpt().lines().next().unwrap_or_default();
                parts.extend(
                    Some(reason.to_owned()).filter(|reason| !reason.is_empty() && *reason != parts[0]),
                );
                parts.push(units::duration(Duration::from_millis(*duration_ms)));
                parts.extend(cost_micros.map(units::dollars));
                self.rule(&parts.join(", "));
            }
            Spoken::Asked { brief, text } => {
                // Two questions in a row are two.
                self.speaker.clear();
                self.says(
                    entry,
                    if *brief { "segno (where the work stands)" } else { "you" },
                    Meaning::Strong,
                );
                self.body(text, Meaning::Plain);
            }
            Spoken::Said { agent, thinking, parent, text } => {
                let agent = if agent.is_empty() { "agent" } else { agent };
                let who = if parent.is_some() { format!("{agent}, a sub-agent") } else { agent.to_owned() };
                self.says(entry, &who, Meaning::Done);
                self.body(text, if *thinking { Meaning::Dim } else { Meaning::Plain });
            }
            Spoken::Called { tool, subject, end, took_ms, output, .. } => {
                self.call(entry, tool, subject, *end, *took_ms, output.as_ref());
            }
        }
    }

    fn line(&mut self, line: Text) {
        let before = std::mem::take(&mut self.text);
        self.text = if before.is_empty() { line } else { before.newline().then(line) };
    }

    /// A line across, with words in it.
    fn rule(&mut self, words: &str) {
        self.speaker.clear();
        self.spoke = false;
        if !self.text.is_empty() {
            self.line(Text::new());
        }
        let width = self.width.unwrap_or(72);
        let words = shorten(words, width.saturating_sub(8));
        let rest = width.saturating_sub(words.width() + 4);
        self.line(Text::new().painted(Meaning::Dim, format!("── {words} {}", "─".repeat(rest))));
    }

    /// An empty line between texts and calls of one speaker.
    fn set_apart(&mut self, call: bool) {
        if self.at_call != call && self.spoke {
            self.line(Text::new());
        }
        (self.at_call, self.spoke) = (call, true);
    }

    /// Says who speaks, and when, unless it is who spoke before.
    fn says(&mut self, entry: &Entry, who: &str, meaning: Meaning) {
        if self.speaker != who {
            who.clone_into(&mut self.speaker);
            self.spoke = false;
            let at = self.context.clock(entry.at);
            self.line(Text::new());
            self.line(Text::new().painted(meaning, who).painted(Meaning::Dim, format!("  {at}")));
        }
    }

    fn body(&mut self, text: &Content, meaning: Meaning) {
        self.set_apart(false);
        let room = self.width.map(|width| width.saturating_sub(INDENT.len()));
        let shown = text.excerpt().trim_matches('\n');
        let lines: Vec<String> =
            shown.lines().flat_map(|line| crate::output::text::wrap(line, room)).collect();
        let most = if self.full { usize::MAX } else { LINES };
        for line in lines.iter().take(most) {
            let line = if line.is_empty() {
                Text::new()
            } else {
                Text::new().painted(meaning, format!("{INDENT}{line}"))
            };
            self.line(line);
        }
        let cut = lines.len() > most || (text.bytes() as usize > text.excerpt().len());
        if cut {
            let more = format!("{INDENT}… {} in all; --full shows everything", units::bytes(text.bytes()));
            self.line(Text::new().painted(Meaning::Dim, more));
        }
    }

    /// One line: when, the tool, what it was about, how long it took and what came of it.
    fn call(
        &mut self,
        entry: &Entry,
        tool: &str,
        subject: &str,
        end: Option<CallEnd>,
        took_ms: Option<u64>,
        output: Option<&Content>,
    ) {
        self.set_apart(true);
        let (word, meaning) = match end {
            Some(CallEnd::Completed) => ("", Meaning::Plain),
            Some(CallEnd::Failed) => ("failed", Meaning::Waiting),
            Some(CallEnd::Denied) => ("denied", Meaning::Lost),
            Some(CallEnd::InDoubt) => ("in doubt", Meaning::Waiting),
            None => ("no end recorded", Meaning::Waiting),
        };
        let mut result: Vec<String> = Vec::new();
        result.extend(took_ms.map(|took| units::duration(Duration::from_millis(took))));
        result.extend(Some(word.to_owned()).filter(|word| !word.is_empty()));
        result.extend(output.map(|output| units::bytes(output.bytes())));
        let result = result.join("  ");
        let head = format!("{INDENT}▸ {tool}  ");
        let clock = self.context.clock(entry.at);
        let subject = subject.replace(['\n', '\t'], " ");
        let line = Text::new()
            .painted(Meaning::Dim, format!("{INDENT}{clock} "))
            .painted(meaning, head.trim_start());
        let line = match self.width {
            Some(width) => {
                let taken = clock.width() + head.width() + result.width() + 3;
                let subject = shorten(&subject, width.saturating_sub(taken).max(8));
                let padding = width.saturating_sub(taken + subject.width());
                line.plain(subject).painted(Meaning::Dim, format!("{}  {result}", " ".repeat(padding)))
            }
            None => line.plain(subject).painted(Meaning::Dim, format!("  {result}")),
        };
        self.line(line);
        if let Some(output) = output.filter(|_| self.full) {
            for each in output.excerpt().lines() {
                self.line(Text::new().painted(Meaning::Dim, format!("{INDENT}{INDENT}{INDENT}{each}")));
            }
        }
    }
}
