//! Text made of pieces with a meaning. Every piece is sanitized when it is rendered, so there is no way to print
//! something raw by mistake; only the palette adds escape sequences.

use super::sanitize;
use super::style::Meaning;
use super::style::Palette;

/// Some text to show: pieces, each with a meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pieces: Vec<(Meaning, String)>,
}

impl Text {
    /// Empty text.
    pub const fn new() -> Self {
        Self { pieces: Vec::new() }
    }

    /// Adds ordinary text.
    #[must_use]
    pub fn plain(self, text: impl Into<String>) -> Self {
        self.painted(Meaning::Plain, text)
    }

    /// Adds text with a meaning.
    #[must_use]
    pub fn painted(mut self, meaning: Meaning, text: impl Into<String>) -> Self {
        self.pieces.push((meaning, text.into()));
        self
    }

    /// Adds all pieces of another text.
    #[must_use]
    pub fn then(mut self, other: impl Into<Self>) -> Self {
        self.pieces.extend(other.into().pieces);
        self
    }

    /// The same text with every piece changed, for example to take secrets out.
    #[must_use]
    pub fn map(self, change: impl Fn(&str) -> String) -> Self {
        Self { pieces: self.pieces.into_iter().map(|(meaning, text)| (meaning, change(&text))).collect() }
    }

    /// Adds a line break.
    #[must_use]
    pub fn newline(self) -> Self {
        self.plain("\n")
    }

    /// The same text without this at its beginning.
    #[must_use]
    pub fn without_leading(mut self, what: &str) -> Self {
        if let Some((_, first)) = self.pieces.iter_mut().find(|(_, text)| !text.is_empty())
            && let Some(rest) = first.strip_prefix(what)
        {
            *first = rest.to_owned();
        }
        self
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(|(_, text)| text.is_empty())
    }

    /// The text as it goes to a stream; line breaks stay.
    pub fn render(&self, palette: Palette) -> String {
        self.render_with(palette, sanitize::block_marked)
    }

    /// The text as it goes to one line of a stream; line breaks are made visible.
    pub fn render_line(&self, palette: Palette) -> String {
        self.render_with(palette, sanitize::line_marked)
    }

    /// The text without colour, on one line, for measuring.
    pub fn to_line(&self) -> String {
        self.render_line(Palette::plain())
    }

    /// The same text, at most so many columns wide; what is left out is marked.
    #[must_use]
    pub fn cut(self, width: usize) -> Self {
        use unicode_width::UnicodeWidthChar as _;
        use unicode_width::UnicodeWidthStr as _;
        if self.to_line().width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut cut = Self::new();
        for (meaning, text) in self.pieces {
            let mut kept = String::new();
            for c in super::sanitize::line_marked(&text, ("", "")).chars() {
                let Some(less) = left.checked_sub(c.width().unwrap_or(0)) else {
                    left = 0;
                    break;
                };
                left = less;
                kept.push(c);
            }
            cut = cut.painted(meaning, kept);
            if left == 0 {
                break;
            }
        }
        if width == 0 { Self::new() } else { cut.painted(Meaning::Dim, "…") }
    }

    /// The pieces as they came, for those who make them harmless themselves.
    pub(crate) fn pieces(&self) -> &[(Meaning, String)] {
        &self.pieces
    }

    fn render_with(
        &self,
        palette: Palette,
        clean: for<'a> fn(&'a str, (&str, &str)) -> std::borrow::Cow<'a, str>,
    ) -> String {
        let (dim, undim) = palette.marks(Meaning::Dim);
        let mut out = String::new();
        for (meaning, text) in &self.pieces {
            let (before, after) = palette.marks(*meaning);
            // Inside a coloured piece the reset of a dim mark would end the piece's own colour.
            let marks = if before.is_empty() { (dim.as_str(), undim.as_str()) } else { ("", "") };
            out.push_str(&before);
            out.push_str(&clean(text, marks));
            out.push_str(&after);
        }
        out
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new().plain(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new().plain(text)
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        Self::new().plain(text.as_str())
    }
}

/// A line in pieces that fit, cut between words where that can be done.
pub(crate) fn wrap(line: &str, width: Option<usize>) -> Vec<String> {
    use unicode_width::UnicodeWidthStr as _;
    let Some(width) = width.filter(|width| line.width() > *width) else { return vec![line.to_owned()] };
    let mut lines = Vec::new();
    let mut now = String::new();
    for word in line.split_inclusive(' ') {
        if !now.is_empty() && now.width() + word.trim_end().width() > width {
            lines.push(std::mem::take(&mut now).trim_end().to_owned());
        }
        for c in word.chars() {
            // A word that is longer than a line goes on in the next.
            if now.width() + unicode_width::UnicodeWidthChar::width(c).unwrap_or(0) > width && c != ' ' {
                lines.push(std::mem::take(&mut now));
            }
            now.push(c);
        }
    }
    lines.push(now.trim_end().to_owned());
    lines
}

/// A message behind a label: lines that fit are cut between words, and go on below the first one. Where nobody knows how
/// wide the terminal is, it stays as it is.
pub(crate) fn behind(label: &str, message: &str, width: Option<usize>) -> String {
    use unicode_width::UnicodeWidthStr as _;
    let indent = label.width() + 1;
    let width = width.map(|width| width.saturating_sub(indent).max(20));
    let lines: Vec<String> = message.split('\n').flat_map(|line| wrap(line, width)).collect();
    match width {
        Some(_) => lines.join(&format!("\n{}", " ".repeat(indent))),
        None => lines.join("\n"),
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
