//! From the program's own texts to what a terminal shows: the one place where something is made fit for the screen.

use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::text::Span;
use unicode_width::UnicodeWidthStr as _;

use crate::output::Palette;
use crate::output::Text;
use crate::output::sanitize;
use crate::output::style::Meaning;

/// The style of a meaning. Without colour, what stands back is not even dim: some terminals make it unreadable.
fn style(palette: Palette, meaning: Meaning) -> Style {
    let style = Style::new();
    match (meaning, palette.colour()) {
        (Meaning::Strong, _) => style.add_modifier(Modifier::BOLD),
        (Meaning::Plain, _) | (_, false) => style,
        (Meaning::Done, true) => style.fg(Color::Green),
        (Meaning::Waiting, true) => style.fg(Color::Yellow),
        (Meaning::Lost, true) => style.fg(Color::Red),
        (Meaning::Dim, true) => style.add_modifier(Modifier::DIM),
    }
}

/// A text as a line of the screen: whatever could command the terminal is made visible.
pub(super) fn line(palette: Palette, text: &Text) -> Line<'static> {
    let spans = text.pieces().iter().map(|(meaning, piece)| {
        let shown = sanitize::line(piece);
        let shown = if palette.unicode() { shown.into_owned() } else { shown.chars().map(plain).collect() };
        Span::styled(shown, style(palette, *meaning))
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// What stands for a sign of ours where only ASCII can be shown.
fn plain(c: char) -> char {
    match c {
        '─' | '–' | '—' | '░' => '-',
        '│' | '▏' => '|',
        '▸' | '→' => '>',
        '✓' => '+',
        '✗' => 'x',
        '●' => '*',
        '‖' => '=',
        '…' => '~',
        '↑' => '^',
        '↓' => 'v',
        '▁'..='█' => '#',
        c if c.is_ascii() => c,
        _ => '?',
    }
}

/// How wide a text is.
pub(super) fn width(text: &Text) -> usize {
    text.to_line().width()
}

/// A text that takes exactly so many columns.
pub(super) fn fit(text: Text, columns: usize) -> Text {
    let text = text.cut(columns);
    let rest = columns.saturating_sub(width(&text));
    if rest == 0 { text } else { text.plain(" ".repeat(rest)) }
}

/// The same with its end at the right.
pub(super) fn fit_right(text: Text, columns: usize) -> Text {
    let text = text.cut(columns);
    let rest = columns.saturating_sub(width(&text));
    Text::new().plain(" ".repeat(rest)).then(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_seen_and_not_obeyed() {
        let text = Text::new().plain("a\x1b]0;x\x07b\u{202e}c\nd");
        let shown: String =
            line(Palette::plain(), &text).spans.iter().map(|span| span.content.to_string()).collect();
        assert_eq!(shown, "a\\e]0;x\\x07b<U+202E>c\\nd");
    }

    #[test]
    fn a_text_takes_the_room_that_it_is_given() {
        let shown = |text: Text| text.to_line();
        assert_eq!(shown(fit("abc".into(), 5)), "abc  ");
        assert_eq!(shown(fit("abcdef".into(), 4)), "abc…");
        assert_eq!(shown(fit_right("7".into(), 3)), "  7");
        assert_eq!(shown(fit("日本語".into(), 4)), "日… ");
    }
}
