//! A small aligned table: no borders, two spaces between columns, numbers to the right. When the terminal is narrow one
//! elastic column gives way, then those that may be shortened, then columns that matter less are left out, and in the end
//! whatever is widest is cut: a table never wraps.

use unicode_width::UnicodeWidthChar as _;
use unicode_width::UnicodeWidthStr as _;

use super::sanitize;
use super::style::Meaning;
use super::style::Palette;
use super::style::Symbol;
use super::text::Text;

const GAP: usize = 2;
/// The elastic column gives way down to this before other columns are left out for it.
const ELASTIC_GOOD: usize = 20;
/// And down to this before others are cut: below it nothing could be recognised.
const ELASTIC_MIN: usize = 8;

/// One column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    title: String,
    right: bool,
    elastic: bool,
    /// It may be cut to this width before anything is left out.
    least: Option<usize>,
    /// It may be left out; those with the lowest number first.
    rank: Option<u8>,
}

impl Column {
    /// A column of words.
    pub fn left(title: impl Into<String>) -> Self {
        Self { title: title.into(), right: false, elastic: false, least: None, rank: None }
    }

    /// A column of numbers.
    pub fn right(title: impl Into<String>) -> Self {
        Self { right: true, ..Self::left(title) }
    }

    /// Makes this column the one that gives way; without any, it is the last one.
    #[must_use]
    pub fn elastic(mut self) -> Self {
        self.elastic = true;
        self
    }

    /// Lets this column be cut to a width, when the elastic one has given way.
    #[must_use]
    pub const fn shortens_to(mut self, width: usize) -> Self {
        self.least = Some(width);
        self
    }

    /// Lets this column be left out when there is no room for all; those with the lowest number go first.
    #[must_use]
    pub const fn goes(mut self, rank: u8) -> Self {
        self.rank = Some(rank);
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

    /// The table as text, each line ended. With a width, it is made to fit it.
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

    /// How wide each column is shown; none if it is left out.
    fn widths(&self, limit: Option<usize>) -> Vec<Option<usize>> {
        let natural = self.natural();
        let mut widths: Vec<Option<usize>> = natural.iter().copied().map(Some).collect();
        let Some(limit) = limit else { return widths };
        let elastic = self.elastic();
        let mut leaving = self.leaving();
        loop {
            for (width, natural) in widths.iter_mut().zip(&natural) {
                *width = width.map(|_| *natural);
            }
            let mut over = self.total(&widths).saturating_sub(limit);
            take(widths.get_mut(elastic), ELASTIC_GOOD, &mut over);
            for (width, column) in widths.iter_mut().zip(&self.columns) {
                if let Some(least) = column.least {
                    take(Some(width), least, &mut over);
                }
            }
            if over == 0 {
                return widths;
            }
            let Some(left_out) = leaving.pop() else {
                take(widths.get_mut(elastic), ELASTIC_MIN, &mut over);
                return self.cut_widest(widths, over);
            };
            if let Some(width) = widths.get_mut(left_out) {
                *width = None;
            }
        }
    }

    fn natural(&self) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.columns.iter().map(|column| if self.titles { column.title.width() } else { 0 }).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.to_line().width());
            }
        }
        widths
    }

    fn elastic(&self) -> usize {
        let last = self.columns.len().saturating_sub(1);
        self.columns.iter().position(|column| column.elastic).unwrap_or(last)
    }

    fn total(&self, widths: &[Option<usize>]) -> usize {
        let shown = widths.iter().flatten();
        self.indent + GAP * shown.clone().count().saturating_sub(1) + shown.sum::<usize>()
    }

    /// The columns that may be left out, the first to go last. Those in which nothing stands go before all others.
    fn leaving(&self) -> Vec<usize> {
        let says_nothing = |index: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(index));
            cells.all(|cell| !cell.to_line().contains(char::is_alphanumeric))
        };
        let ranked = self
            .columns
            .iter()
            .enumerate()
            .filter_map(|(index, column)| column.rank.map(|rank| ((!says_nothing(index), rank), index)));
        let mut leaving: Vec<_> = ranked.collect();
        leaving.sort_unstable();
        leaving.into_iter().rev().map(|(_, index)| index).collect()
    }

    /// Nothing is left that matters less: the widest is cut, again and again.
    fn cut_widest(&self, mut widths: Vec<Option<usize>>, mut over: usize) -> Vec<Option<usize>> {
        while over > 0 {
            match widths.iter_mut().flatten().max() {
                Some(widest) if *widest > 1 => *widest -= 1,
                _ => break,
            }
            over -= 1;
        }
        widths
    }

    fn line(&self, out: &mut String, cells: &[Text], widths: &[Option<usize>], palette: Palette) {
        let start = out.len();
        out.push_str(&" ".repeat(self.indent));
        let shown = self.columns.iter().zip(cells).zip(widths);
        let shown = shown.filter_map(|(cell, width)| width.map(|width| (cell, width)));
        for (index, ((column, cell), width)) in shown.enumerate() {
            if index > 0 {
                out.push_str(&" ".repeat(GAP));
            }
            let (shown, used) = fit(cell, width, palette);
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

/// Makes a column narrower by what is too much, but not narrower than this.
fn take(width: Option<&mut Option<usize>>, least: usize, over: &mut usize) {
    if let Some(Some(width)) = width {
        let taken = width.saturating_sub(least).min(*over);
        *width -= taken;
        *over -= taken;
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
