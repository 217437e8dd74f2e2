//! What is seen: from what is known to a frame, and nothing else.

mod dialogs;
mod list;
mod pane;
mod parts;
mod talk;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use segno_engine::board::Need;
use segno_engine::core::SessionId;

use super::look;
use super::state::Part;
use super::state::Screen;
use super::state::Top;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

pub(super) use self::list::offset as list_offset;
pub(super) use self::list::session_at;

/// From this width on, the list and what is seen of one session stand side by side.
const WIDE: u16 = 110;
/// On less nothing could be read.
const LEAST: (u16, u16) = (40, 8);

/// Where everything stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) head: Rect,
    pub(super) list: Rect,
    /// Between the list and what is seen of a session.
    rule: Rect,
    pub(super) pane: Rect,
    pub(super) foot: Rect,
}

impl Areas {
    pub(super) fn of(top: &Top) -> Self {
        let (width, height) = top.size;
        let body = Rect::new(0, 1, width, height.saturating_sub(2));
        let head = Rect::new(0, 0, width, 1.min(height));
        let foot = Rect::new(0, height.saturating_sub(1), width, 1.min(height));
        let mut areas = Self { head, foot, ..Self::default() };
        if top.screen == Screen::Session {
            areas.pane = body;
        } else if width >= WIDE {
            let list = (width / 2).clamp(56, 96);
            areas.list = Rect { width: list, ..body };
            areas.rule = Rect { x: list, width: 1, ..body };
            areas.pane = Rect { x: list + 2, width: width - list - 2, ..body };
        } else {
            let list = body.height * 9 / 20;
            areas.list = Rect { height: list, ..body };
            areas.rule = Rect { y: body.y + list, height: 1.min(body.height), ..body };
            let below = list + 1;
            areas.pane = Rect { y: body.y + below, height: body.height.saturating_sub(below), ..body };
        }
        areas
    }
}

/// Draws all of it.
pub(super) fn view(top: &Top, frame: &mut Frame<'_>) {
    let (width, height) = top.size;
    if width < LEAST.0 || height < LEAST.1 {
        let words = format!("this needs {} columns and {} lines", LEAST.0, LEAST.1);
        put(top, frame, Rect::new(0, 0, width, height), &[words.into()]);
        return;
    }
    let areas = Areas::of(top);
    put(top, frame, areas.head, &[head(top, usize::from(width))]);
    if top.screen == Screen::List {
        list::draw(top, frame, areas.list);
        rule(top, frame, areas.rule);
    }
    pane::draw(top, frame, areas.pane);
    put(top, frame, areas.foot, &[foot(top, usize::from(width))]);
    dialogs::draw(top, frame);
}

/// How many lines there are to be seen of what is shown of the session.
pub(super) fn lines_of_part(top: &Top) -> usize {
    let area = pane::content(Areas::of(top).pane);
    let all = pane::lines(top, usize::from(area.width), usize::MAX).len();
    // The last page is a full one.
    (all + 1).saturating_sub(usize::from(area.height))
}

/// Puts lines one below the other; what is too long is cut.
fn put(top: &Top, frame: &mut Frame<'_>, area: Rect, lines: &[Text]) {
    let lines: Vec<Line<'_>> = lines
        .iter()
        .take(usize::from(area.height))
        .map(|line| look::line(top.palette, &line.clone().cut(usize::from(area.width))))
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn rule(top: &Top, frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<Text> = match area.width {
        1 => vec![Text::new().painted(Meaning::Dim, "│"); usize::from(area.height)],
        width => vec![Text::new().painted(Meaning::Dim, "─".repeat(usize::from(width)))],
    };
    put(top, frame, area, &lines);
}

/// How many sessions there are of each kind.
fn head(top: &Top, width: usize) -> Text {
    let count = |need: Need| top.rows.iter().filter(|row| row.need == need).count() as u64;
    let mut text = Text::new().painted(Meaning::Strong, "segno top");
    for (need, word, meaning) in [
        (Need::You, "need you", Meaning::Waiting),
        (Need::Works, "running", Meaning::Done),
        (Need::Waits, "wait", Meaning::Plain),
        (Need::Over, "ended", Meaning::Dim),
    ] {
        let n = count(need);
        let word = if n == 1 && need == Need::You { "needs you" } else { word };
        if n > 0 {
            text = text.plain("   ").painted(meaning, format!("{n} {word}"));
        }
    }
    let mut right = Text::new();
    if !top.filter.is_empty() || top.filtering {
        let cursor = if top.filtering { "▏" } else { "" };
        right = right.painted(Meaning::Strong, format!("/{}{cursor}", top.filter));
        right = right.plain(format!("  {} of {}", top.shown.len(), top.rows.len()));
    } else if top.beyond > 0 {
        right = right.painted(Meaning::Dim, format!("and {} that ended before", top.beyond));
    }
    let room = width.saturating_sub(look::width(&text) + 2);
    text.plain("  ").then(look::fit_right(right, room))
}

/// What was said last, else what can be pressed.
fn foot(top: &Top, width: usize) -> Text {
    if let Some((meaning, words)) = &top.notice {
        let waits = if top.busy > 0 { "… " } else { "" };
        return Text::new().painted(*meaning, format!("{waits}{words}"));
    }
    if top.busy > 0 {
        return Text::new().painted(Meaning::Waiting, "… working");
    }
    let keys: &[(&str, &str)] = match top.screen {
        _ if top.filtering => &[("type", "to filter"), ("Enter", "keep"), ("Esc", "clear")],
        Screen::List => &[
            ("↑↓", "choose"),
            ("Enter", "open"),
            ("a", "answer"),
            ("p", "pause"),
            ("r", "resume"),
            ("/", "filter"),
            ("1-8", "parts"),
            ("?", "help"),
            ("q", "quit"),
            ("s", "stop"),
            ("e", "extend"),
            ("u", "undo"),
            ("n", "note"),
            ("c", "checkpoint"),
            ("b", "breaker"),
            ("S", "search"),
        ],
        Screen::Session => &[
            ("Esc", "back"),
            ("↑↓", "move"),
            ("1-8", "parts"),
            ("a", "answer"),
            ("p", "pause"),
            ("?", "help"),
            ("q", "quit"),
            ("s", "stop"),
            ("e", "extend"),
            ("u", "undo"),
            ("d", "diff"),
            ("n", "note"),
            ("c", "checkpoint"),
            ("b", "breaker"),
            ("S", "search"),
        ],
    };
    let mut text = Text::new();
    for (index, (key, does)) in keys.iter().enumerate() {
        let gap = if index == 0 { "" } else { "  " };
        let more =
            Text::new().plain(gap).painted(Meaning::Strong, *key).painted(Meaning::Dim, format!(" {does}"));
        // A key that is cut in two says nothing.
        if look::width(&text) + look::width(&more) > width {
            break;
        }
        text = text.then(more);
    }
    text
}

/// The name of a session as it is shown, with what it is about.
fn named(top: &Top, session: SessionId) -> String {
    let topic = top.topic_of(session).unwrap_or_default();
    format!("{}  {topic}", crate::command_context::short(session))
}

/// The parts that can be shown, each with its key.
fn tabs(top: &Top, width: usize) -> Text {
    let mut text = Text::new();
    for (index, part) in Part::ALL.into_iter().enumerate() {
        let number = index + 1;
        let (name, meaning) = match part == top.part {
            true => (format!("[{number} {}]", part.name()), Meaning::Strong),
            false if width >= 84 => (format!("{number} {}", part.name()), Meaning::Dim),
            false if width >= 66 => (format!("{number} {}", &part.name()[..4]), Meaning::Dim),
            false => (number.to_string(), Meaning::Dim),
        };
        let gap = match (index, width >= 84) {
            (0, _) => "",
            (_, true) => "  ",
            (_, false) => " ",
        };
        text = text.plain(gap).painted(meaning, name);
    }
    text
}

/// How long ago something was.
fn age(top: &Top, at: segno_engine::core::Timestamp) -> String {
    units::age(std::time::Duration::from_micros(top.now.micros_since(at)))
}

/// The time of day, and the day where that is another one.
fn clock(top: &Top, at: segno_engine::core::Timestamp) -> String {
    let zoned = |at: segno_engine::core::Timestamp| {
        jiff::Timestamp::from_microsecond(at.as_micros()).ok().map(|at| at.to_zoned(top.zone.clone()))
    };
    let (Some(at), Some(now)) = (zoned(at), zoned(top.now)) else { return "--:--:--".to_owned() };
    let form = if at.date() == now.date() { "%H:%M:%S" } else { "%m-%d %H:%M" };
    at.strftime(form).to_string()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
