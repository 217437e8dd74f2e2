//! The list of sessions.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::style::Style;
use ratatui::widgets::Paragraph;
use segno_engine::core::SessionId;
use segno_engine::core::Summary;

use super::Areas;
use super::age;
use super::put;
use crate::commands::ls;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;
use crate::top::look;
use crate::top::state::Row;
use crate::top::state::Top;

/// A line of the list.
enum ListLine<'a> {
    Heading(&'static str, usize),
    Row(&'a Row),
}

fn lines(top: &Top) -> Vec<ListLine<'_>> {
    let mut lines = Vec::new();
    let mut heading = "";
    for row in top.visible() {
        if row.heading() != heading {
            heading = row.heading();
            let count = top.visible().filter(|other| other.heading() == heading).count();
            lines.push(ListLine::Heading(heading, count));
        }
        lines.push(ListLine::Row(row));
    }
    lines
}

/// The first line that is seen, so that the selected row is.
pub(in crate::top) fn offset(top: &Top) -> usize {
    let height = usize::from(Areas::of(top).list.height);
    let lines = lines(top);
    let selected = |line: &ListLine<'_>| matches!(line, ListLine::Row(row) if Some(row.id()) == top.selected);
    let Some(place) = lines.iter().position(selected) else { return 0 };
    // The heading above the first row of a group is seen with it.
    let from = if place > 0 && matches!(lines[place - 1], ListLine::Heading(..)) { place - 1 } else { place };
    let most = lines.len().saturating_sub(height);
    let least = (place + 1).saturating_sub(height);
    top.offset.min(most).clamp(least, from.max(least))
}

/// The session on a line of the list, counted from its top.
pub(in crate::top) fn session_at(top: &Top, line: usize) -> Option<SessionId> {
    match lines(top).get(top.offset + line) {
        Some(ListLine::Row(row)) => Some(row.id()),
        Some(ListLine::Heading(..)) | None => None,
    }
}

pub(super) fn draw(top: &Top, frame: &mut Frame<'_>, area: Rect) {
    let all = lines(top);
    if all.is_empty() {
        put(top, frame, area, &nothing(top));
        return;
    }
    let columns = Columns::of(usize::from(area.width));
    for (line, y) in all.iter().skip(top.offset).take(usize::from(area.height)).zip(area.y..) {
        let place = Rect { y, height: 1, ..area };
        match line {
            ListLine::Heading(words, count) => {
                put(top, frame, place, &[Text::new().painted(Meaning::Dim, format!("{words} ({count})"))]);
            }
            ListLine::Row(row) => {
                let text = look::fit(text(top, row, &columns), usize::from(area.width));
                let selected = Some(row.id()) == top.selected;
                let style =
                    if selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
                frame.render_widget(Paragraph::new(look::line(top.palette, &text)).style(style), place);
            }
        }
    }
}

/// What is said instead of a list.
fn nothing(top: &Top) -> Vec<Text> {
    if !top.filter.is_empty() {
        return vec!["no session fits this filter; Esc clears it".into()];
    }
    let hint = Text::new().painted(
        Meaning::Dim,
        "  segno run --agent claude --prompt \"…\"   or: segno new \"what it is about\"",
    );
    vec!["no sessions yet".into(), Text::new(), hint]
}

/// How wide the columns are. Those that say least go first.
struct Columns {
    topic: usize,
    phase: usize,
    status: usize,
    tokens: usize,
    cost: usize,
}

/// The mark, the id and the age are always there, each with a gap.
const ALWAYS: usize = 2 + 8 + 5;

impl Columns {
    fn of(width: usize) -> Self {
        let cost = if width >= 56 { 9 } else { 0 };
        let tokens = if width >= 66 { 8 } else { 0 };
        let phase = if width >= 86 { 13 } else { 0 };
        let rest = width.saturating_sub(ALWAYS + cost + tokens + phase);
        let status = (rest * 9 / 20).clamp(12, 34);
        Self { topic: rest.saturating_sub(status + 1), phase, status, tokens, cost }
    }
}

fn text(top: &Top, row: &Row, columns: &Columns) -> Text {
    let summary = &row.summary;
    let mark = if summary.pinned { "*" } else { " " };
    let mut text = Text::new()
        .plain(mark)
        .painted(Meaning::Dim, crate::command_context::short(row.id()))
        .plain(" ")
        .then(look::fit(topic(summary), columns.topic))
        .plain(" ");
    if columns.phase > 0 {
        let phase = Text::from(phase(summary));
        text = text.then(look::fit(phase, columns.phase - 1)).plain(" ");
    }
    text = text.then(look::fit(standing(top, row), columns.status));
    let age = Text::new().painted(Meaning::Dim, age(top, summary.updated_at));
    text = text.then(look::fit_right(age, 5));
    if columns.tokens > 0 {
        text = text.then(look::fit_right(tokens(summary), columns.tokens));
    }
    if columns.cost > 0 {
        text = text.then(look::fit_right(cost(summary), columns.cost));
    }
    text
}

fn topic(summary: &Summary) -> Text {
    let topic = ls::topic(summary).unwrap_or_else(|| summary.project.clone());
    let tags = summary.tags.iter().map(|tag| format!(" #{tag}")).collect::<String>();
    Text::new().plain(topic).painted(Meaning::Dim, tags)
}

fn phase(summary: &Summary) -> String {
    match (&summary.phase, summary.step.zip(summary.of)) {
        (Some(phase), Some((step, of))) => format!("{phase} {step}/{of}"),
        (Some(phase), None) => phase.clone(),
        (None, Some((step, of))) => format!("{step}/{of}"),
        (None, None) => String::new(),
    }
}

/// What it waits for, or where it stands.
pub(super) fn standing(top: &Top, row: &Row) -> Text {
    let summary = &row.summary;
    if summary.open_questions > 0 && summary.status.is_open() {
        let asked = row.asks.first().map(|ask| ask.text.split_inclusive('?').next().unwrap_or_default());
        return Text::new().painted(Meaning::Waiting, format!("? asks: {}", asked.unwrap_or_default()));
    }
    let reason = ls::reason(summary);
    ls::status_of(top.palette, summary.status, reason.as_ref(), row.driving.as_ref())
}

fn tokens(summary: &Summary) -> Text {
    let meaning = match (summary.tokens_used > summary.token_budget, summary.budget_warning) {
        (true, _) => Meaning::Lost,
        (_, true) => Meaning::Waiting,
        _ => Meaning::Plain,
    };
    if summary.tokens_used == 0 {
        return Text::new();
    }
    Text::new().painted(meaning, units::about(summary.tokens_used, summary.tokens_estimated))
}

fn cost(summary: &Summary) -> Text {
    if summary.cost_micros == 0 && summary.unpriced_tokens == 0 {
        return Text::new();
    }
    units::money(summary.cost_micros, summary.unpriced_tokens).into()
}
