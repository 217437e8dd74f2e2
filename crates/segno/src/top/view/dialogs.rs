//! What stands above everything else.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::symbols::border::Set;
use ratatui::widgets::Block;
use ratatui::widgets::Clear;
use segno_engine::search::Findings;
use segno_engine::waiting::WaitingKind;

use super::clock;
use super::named;
use super::put;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::text::wrap;
use crate::output::units;
use crate::top::dialog::Dialog;
use crate::top::dialog::Opened;
use crate::top::dialog::title_of;
use crate::top::look;
use crate::top::state::Top;

/// A frame where only ASCII can be shown.
const PLAIN: Set<'static> = Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

/// The keys and what they do.
const HELP: &[(&str, &str)] = &[
    ("↑ ↓  k j", "choose a session, or move in what is shown"),
    ("PgUp PgDn  g G", "further; to the first, to the last"),
    ("Enter", "open the session; Esc goes back"),
    ("1 … 8  Tab", "talk, ledger, phases, tests, cost, limits, checkpoints, decisions"),
    ("[ ]", "scroll what is shown beside the list"),
    ("/", "show only sessions with these words: topic, project, agent, status, #tag"),
    ("w", "only the sessions of this project, or of all"),
    ("S", "search in everything that was recorded"),
    ("", ""),
    ("a", "answer what the session asks; all of it is shown first"),
    ("p", "pause"),
    ("r", "resume: leaves segno top and begins in this terminal"),
    ("s", "stop the agent politely"),
    ("e", "extend the budget: tokens such as 50k, or $5"),
    ("b", "the breaker: close it, or skip the phase"),
    ("n", "note; the agent of a loop is told"),
    ("c", "make a checkpoint"),
    ("u", "undo the last turn, after a preview"),
    ("d", "what changed after the chosen checkpoint"),
    ("", ""),
    ("m", "mouse on or off; off leaves selecting text to the terminal"),
    ("Ctrl-L  Ctrl-Z", "draw anew; put aside (fg comes back)"),
    ("q  Ctrl-C", "quit; nothing that runs is touched"),
];

pub(super) fn draw(top: &Top, frame: &mut Frame<'_>) {
    let Some(Opened { dialog, scroll }) = &top.dialog else { return };
    let width = usize::from(top.size.0).saturating_sub(4).min(110);
    let inner = width.saturating_sub(4);
    let (title, lines, last) = parts(top, dialog, inner);
    let room = usize::from(top.size.1).saturating_sub(5).max(1);
    let height = lines.len().min(room);
    let scroll = scroll_of(dialog, *scroll, lines.len(), height);
    let more = match lines.len() > height {
        true => format!("   {} to {} of {} lines ↑↓", scroll + 1, scroll + height, lines.len()),
        false => String::new(),
    };
    let area = area(top, width, height + 3);
    frame.render_widget(Clear, area);
    let border = look::line(
        top.palette,
        &Text::new().plain(" ").painted(Meaning::Strong, title).plain(" ").cut(inner),
    );
    let block = Block::bordered().title(border);
    let block = if top.palette.unicode() { block } else { block.border_set(PLAIN) };
    frame.render_widget(block, area);
    let within = Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    };
    let mut seen: Vec<Text> = lines.into_iter().skip(scroll).take(height).collect();
    seen.push(last.painted(Meaning::Dim, more));
    put(top, frame, within, &seen);
}

/// How far it is scrolled: never past its end. Of what was found, the chosen one is seen.
fn scroll_of(dialog: &Dialog, scroll: usize, lines: usize, height: usize) -> usize {
    let scroll = match dialog {
        Dialog::Found { chosen, .. } => (chosen * 2 + 2).saturating_sub(height),
        _ => scroll,
    };
    scroll.min(lines.saturating_sub(height))
}

fn area(top: &Top, width: usize, height: usize) -> Rect {
    let (width, height) =
        (u16::try_from(width).unwrap_or(u16::MAX), u16::try_from(height).unwrap_or(u16::MAX));
    let (width, height) = (width.min(top.size.0), height.min(top.size.1));
    Rect { x: (top.size.0 - width) / 2, y: (top.size.1 - height) / 2, width, height }
}

/// The title, the lines and what can be pressed.
fn parts(top: &Top, dialog: &Dialog, width: usize) -> (String, Vec<Text>, Text) {
    let keys = |words: &str| Text::new().painted(Meaning::Strong, words);
    match dialog {
        Dialog::Help => ("keys".to_owned(), help(), keys("Esc closes")),
        Dialog::Ask { title, lines, question, .. } => {
            let last = Text::new().painted(Meaning::Waiting, question.clone()).then(keys("  y/N"));
            (title.clone(), wrapped(lines, width), last)
        }
        Dialog::Answer { waiting, lines, .. } => {
            let title = title_of("asks", waiting.session_id, waiting.topic.as_deref());
            let mut all = wrapped(lines, width);
            if let Some(until) = waiting.until {
                let words = format!("without an answer it is refused at {}", clock(top, until));
                all.push(Text::new().painted(Meaning::Dim, words));
            }
            let last = match waiting.kind {
                WaitingKind::Permission => "y yes   n no   t a text: no, and why   Esc later",
                WaitingKind::Breakpoint | WaitingKind::Breaker => "y yes   t yes, with a note   Esc later",
                WaitingKind::Resume => "c from the last checkpoint   l live   f fresh   Esc later",
            };
            (title, all, keys(last))
        }
        Dialog::Breaker { place, lines } => {
            let title = title_of("breaker", place.session, top.topic_of(place.session));
            (title, wrapped(lines, width), keys("r close it   s skip the phase   Esc nothing"))
        }
        Dialog::Type { title, about, typed, .. } => {
            let about = Text::new().painted(Meaning::Dim, about.clone());
            let mut lines = vec![about, Text::new()];
            lines.extend(wrap(&format!("> {typed}▏"), Some(width)).into_iter().map(Text::from));
            (title.clone(), lines, keys("Enter does it   Esc does nothing"))
        }
        Dialog::Show { title, lines } => (title.clone(), lines.clone(), keys("Esc closes")),
        Dialog::Found { found, chosen } => {
            ("found".to_owned(), hits(top, found, *chosen), keys("Enter opens the session   Esc closes"))
        }
    }
}

fn help() -> Vec<Text> {
    let line = |(keys, does): &(&str, &str)| {
        Text::new().painted(Meaning::Strong, format!("{keys:<16}")).plain(*does)
    };
    HELP.iter().map(line).collect()
}

/// All of a text is shown: what is too wide goes on below.
fn wrapped(lines: &[Text], width: usize) -> Vec<Text> {
    let mut all = Vec::new();
    for line in lines {
        if look::width(line) <= width {
            all.push(line.clone());
            continue;
        }
        all.extend(wrap(&line.to_line(), Some(width)).into_iter().map(Text::from));
    }
    all
}

fn hits(top: &Top, found: &Findings, chosen: usize) -> Vec<Text> {
    let mut lines = Vec::new();
    for (index, hit) in found.hits.iter().enumerate() {
        let (mark, meaning) =
            if index == chosen { ("▸ ", Meaning::Strong) } else { ("  ", Meaning::Plain) };
        let name = match top.topic_of(hit.session_id) {
            Some(_) => named(top, hit.session_id),
            None => format!(
                "{}  {}",
                crate::command_context::short(hit.session_id),
                hit.topic.as_deref().unwrap_or_default()
            ),
        };
        let head = Text::new().painted(meaning, format!("{mark}{name}"));
        lines.push(head.painted(Meaning::Dim, format!("   {} {}", hit.kind, clock(top, hit.at))));
        lines.push(Text::new().plain("    ").plain(hit.snippet.replace(['\n', '\t'], " ")));
    }
    if found.not_indexed > 0 {
        let words = format!("{} not indexed yet; search again", units::things(found.not_indexed, "session"));
        lines.push(Text::new().painted(Meaning::Waiting, words));
    }
    lines
}
