//! A small aligned table: no borders, two spaces between columns, numbers to the right, and one elastic column that
//! gives way when the terminal is narrow.

use unicode_width::UnicodeWidthChar as _;
use unicode_width::UnicodeWidthStr as _;

use super::sanitize;
use super::style::Meaning;
use super::style::Palette;
use super::style::Symbol;
use super::text::Text;

const GAP: usize = 2;
/// The elastic column never becomes narrower than this: below it nothing could be recognised.
const ELASTIC_MIN: usize = 8;

/// One column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    title: String,
    right: bool,
    elastic: bool,
}

impl Column {
    /// A column of words.
    pub fn left(title: impl Into<String>) -> Self {
        Self { title: title.into(), right: false, elastic: false }
    }

    /// A column of numbers.
    pub fn right(title: impl Into<String>) -> Self {
        Self { title: title.into(), right: true, elastic: false }
    }

    /// Makes this column the one that gives way; without any, it is the last one.
    #[must_use]
    pub fn elastic(mut self) -> Self {
        self.elastic = true;
        self
    }
}

/// Rows under titles.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Text>>,
    indent: usize,
    titles: bool,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), indent: 0, titles: true }
    }

    /// Leaves the line of titles out.
    #[must_use]
    pub fn without_titles(mut self) -> Self {
        self.titles = false;
        self
    }

    /// Moves the whole table to the right.
    #[must_use]
    pub const fn indented(mut self, spaces: usize) -> Self {
        self.indent = spaces;
        self
    }

    /// Adds a row. Missing cells are empty; cells beyond the last column are dropped.
    pub fn row<T: Into<Text>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut cells: Vec<Text> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.columns.len(), Text::new());
        self.rows.push(cells);
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text, each line ended. With a width, the elastic column is cut to fit it.
    pub fn render(&self, palette: Palette, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let mut out = String::new();
        if self.titles {
            let titles: Vec<Text> =
                self.columns.iter().map(|c| Text::new().painted(Meaning::Dim, c.title.as_str())).collect();
            self.line(&mut out, &titles, &widths, palette);
        }
        for row in &self.rows {
            self.line(&mut out, row, &widths, palette);
        }
        out
    }

    fn widths(&self, limit: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.columns.iter().map(|column| if self.titles { column.title.width() } else { 0 }).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.to_line().width());
            }
        }
        let elastic = self
            .columns
            .iter()
            .position(|column| column.elastic)
            .unwrap_or_else(|| self.columns.len().saturating_sub(1));
        let gaps = GAP * widths.len().saturating_sub(1);
        let total = self.indent + gaps + widths.iter().sum::<usize>();
        if let (Some(limit), Some(width)) = (limit, widths.get_mut(elastic)) {
            let over = total.saturating_sub(limit);
            *width = width.saturating_sub(over).max(ELASTIC_MIN.min(*width));
        }
        widths
    }

    fn line(&self, out: &mut String, cells: &[Text], widths: &[usize], palette: Palette) {
        let start = out.len();
        out.push_str(&" ".repeat(self.indent));
        for (index, ((column, cell), width)) in self.columns.iter().zip(cells).zip(widths).enumerate() {
            if index > 0 {
                out.push_str(&" ".repeat(GAP));
            }
            let (shown, used) = fit(cell, *width, palette);
            let padding = " ".repeat(width.saturating_sub(used));
            if column.right {
                out.push_str(&padding);
                out.push_str(&shown);
            } else {
                out.push_str(&shown);
                out.push_str(&padding);
            }
        }
        let end = start + out[start..].trim_end_matches(' ').len();
        out.truncate(end);
        out.push('\n');
    }
}

/// A cell cut to a width, with the columns it really uses.
fn fit(cell: &Text, width: usize, palette: Palette) -> (String, usize) {
    let full = cell.to_line().width();
    if full <= width {
        return (cell.render_line(palette), full);
    }
    let ellipsis = palette.symbol(Symbol::Ellipsis);
    let mut left = width.saturating_sub(ellipsis.width());
    let mut cut = Text::new();
    let mut used = 0;
    for (meaning, text) in cell.pieces() {
        // The piece is made harmless before it is cut, so that no visible form is ever cut open into something else.
        let clean = sanitize::line(text);
        let mut end = 0;
        for (at, c) in clean.char_indices() {
            let wide = c.width().unwrap_or(0);
            if wide > left {
                left = 0;
                break;
            }
            left -= wide;
            used += wide;
            end = at + c.len_utf8();
        }
        cut = cut.painted(*meaning, &clean[..end]);
        if left == 0 {
            break;
        }
    }
    (cut.plain(ellipsis).render_line(palette), used + ellipsis.width())
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
