//! What was asked, said and done, the newest at the end.

use std::time::Duration;

use segno_engine::conversation::Entry;
use segno_engine::conversation::Spoken;
use segno_engine::core::State;
use segno_engine::core::Text as Content;
use segno_engine::core::event::CallEnd;

use super::clock;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::text::wrap;
use crate::output::units;
use crate::top::look;
use crate::top::state::Top;

/// So many lines are shown of what was said at once, and of what was thought.
const SAID: usize = 60;
const THOUGHT: usize = 6;
const ASKED: usize = 20;
/// The narrowest text that can be read.
const NARROWEST: usize = 16;

/// The last lines of the talk, at least so many if there are.
pub(super) fn lines(top: &Top, state: &State, entries: &[Entry], width: usize, most: usize) -> Vec<Text> {
    let mut blocks: Vec<Vec<Text>> = Vec::new();
    let mut count = 0;
    for entry in entries.iter().rev() {
        let block = block(top, entry, width);
        count += block.len();
        blocks.push(block);
        if count >= most {
            break;
        }
    }
    let mut lines: Vec<Text> = blocks.into_iter().rev().flatten().collect();
    if lines.is_empty() {
        let words = match &state.last_action {
            Some(action) => format!("nothing was said; last: {action}"),
            None => "nothing was said yet".to_owned(),
        };
        lines.push(Text::new().painted(Meaning::Dim, words));
    }
    lines
}

fn block(top: &Top, entry: &Entry, width: usize) -> Vec<Text> {
    let at = clock(top, entry.at);
    match &entry.what {
        Spoken::RunStarted { agent, version } => {
            let version = version.as_deref().map_or(String::new(), |version| format!(" {version}"));
            vec![rule(&format!("{at}  {agent}{version} starts"), width)]
        }
        Spoken::RunEnded { outcome, reason, duration_ms, cost_micros, .. } => {
            let mut parts = vec![outcome.replace('_', " ")];
            let reason = reason.excerpt().lines().next().unwrap_or_default();
            parts.extend(Some(reason.to_owned()).filter(|reason| !reason.is_empty() && *reason != parts[0]));
            parts.push(units::duration(Duration::from_millis(*duration_ms)));
            parts.extend(cost_micros.map(units::dollars));
            vec![rule(&format!("{at}  {}", parts.join(", ")), width)]
        }
        Spoken::Asked { brief, text } => {
            let who = if *brief { "segno (where the work stands)" } else { "you" };
            let mut lines = vec![says(&at, who, Meaning::Strong)];
            lines.extend(body(text, Meaning::Plain, width, ASKED));
            lines
        }
        Spoken::Said { thinking: true, text, .. } => body(text, Meaning::Dim, width, THOUGHT),
        Spoken::Said { parent, text, agent, .. } => {
            let mut lines = Vec::new();
            if parent.is_some() {
                lines.push(says(&at, &format!("{agent}, a sub-agent"), Meaning::Done));
            }
            lines.extend(body(text, Meaning::Plain, width, SAID));
            lines
        }
        Spoken::Called { tool, subject, end, took_ms, output, .. } => {
            vec![call(&at, tool, subject, (*end, *took_ms, output.as_ref()), width)]
        }
    }
}

fn says(at: &str, who: &str, meaning: Meaning) -> Text {
    Text::new().painted(meaning, who).painted(Meaning::Dim, format!("  {at}"))
}

/// A line across, with words in it.
pub(super) fn rule(words: &str, width: usize) -> Text {
    let text = Text::new().painted(Meaning::Dim, format!("── {words} ")).cut(width);
    let rest = width.saturating_sub(look::width(&text));
    text.painted(Meaning::Dim, "─".repeat(rest))
}

fn body(text: &Content, meaning: Meaning, width: usize, most: usize) -> Vec<Text> {
    let room = Some(width.saturating_sub(2).max(NARROWEST));
    let mut lines: Vec<Text> = Vec::new();
    for line in text.excerpt().trim_matches('\n').lines() {
        // Tabs have a width of their own on every terminal.
        for piece in wrap(&line.replace('\t', "    "), room) {
            if lines.len() == most {
                let more = format!("  … {} in all", units::bytes(text.bytes()));
                lines.push(Text::new().painted(Meaning::Dim, more));
                return lines;
            }
            lines.push(Text::new().plain("  ").painted(meaning, piece));
        }
    }
    lines
}

/// One line: when, the tool, what it was about, how long it took and what came of it.
fn call(
    at: &str,
    tool: &str,
    subject: &str,
    (end, took, output): (Option<CallEnd>, Option<u64>, Option<&Content>),
    width: usize,
) -> Text {
    // What went wrong is seen without colour too.
    let (mark, word, meaning) = match end {
        Some(CallEnd::Completed) => ("▸", "", Meaning::Plain),
        Some(CallEnd::Failed) => ("✗", "failed", Meaning::Waiting),
        Some(CallEnd::Denied) => ("✗", "denied", Meaning::Lost),
        Some(CallEnd::InDoubt) => ("?", "in doubt", Meaning::Waiting),
        None => ("…", "running", Meaning::Dim),
    };
    let mut result: Vec<String> = Vec::new();
    result.extend(took.map(|took| units::duration(Duration::from_millis(took))));
    result.extend(Some(word.to_owned()).filter(|word| !word.is_empty()));
    result.extend(
        output.filter(|_| end == Some(CallEnd::Completed)).map(|output| units::bytes(output.bytes())),
    );
    let right = Text::new().painted(Meaning::Dim, result.join("  ")).cut(width / 2);
    let left = Text::new()
        .painted(Meaning::Dim, format!("{at} "))
        .painted(meaning, format!("{mark} {tool}  "))
        .plain(subject.replace(['\n', '\t'], " "));
    let room = width.saturating_sub(look::width(&right) + 1);
    look::fit(left, room).plain(" ").then(right)
}
