//! Tables: what stands below the name of a column that promises a secret.
//!
//! Databases, spreadsheets and dumps write a name once and its values many lines below: with bars, commas, tabs or
//! aligned by spaces, as the rows of `COPY … FROM stdin` and the tuples of `INSERT … VALUES`.

use std::ops::Range;

use crate::guess;
use crate::names;
use crate::names::Promise;
use crate::tables;

/// The name of a column is not longer.
const NAME_MOST: usize = 48;
/// A line of names is not longer.
const HEADER_MOST: usize = 1024;
/// No more rows are looked at, which bounds the work on any text.
const ROWS_MOST: usize = 4096;
/// Nor longer ones.
const ROW_MOST: usize = 16 * 1024;

/// The secrets of one column.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) cells: Vec<Range<usize>>,
    /// Up to here the text belongs to the table.
    pub(crate) end: usize,
}

/// What stands between two cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// A sign: `|`, `,`, `;` or a tab.
    Sign(u8),
    /// Two spaces or more.
    Spaces,
    /// The brackets of a list of names in SQL.
    Brackets,
}

/// The column whose name is around `keyword`, where it is one and promises a secret.
pub(crate) fn below(text: &str, keyword: &Range<usize>) -> Option<Column> {
    let bytes = text.as_bytes();
    let (name, gap) = name_at(bytes, keyword)?;
    let promise = names::promise(text.get(name.clone())?)?;
    let title = &text[name.clone()];
    let wanted = |cell: &str| judge(promise, title, cell);
    if gap == Gap::Brackets {
        return listed(text, &name, wanted);
    }
    let header = header_at(bytes, &name)?;
    let titles = fields(text, header.clone(), gap);
    let place = titles.iter().position(|title| title.start <= name.start && name.end <= title.end)?;
    let first_row = header.end + 1 + usize::from(bytes.get(header.end) == Some(&b'\r'));
    let ruled = is_rule(line(bytes, first_row)?);
    let mut others = titles.iter().enumerate().filter(|(at, _)| *at != place).map(|(at, range)| {
        let range = if at == 0 { range.start + prefix(text, range)..range.end } else { range.clone() };
        trimmed(text, range)
    });
    let mut named = others.clone().filter(|range| !range.is_empty());
    if named.clone().count() == 0 && !ruled
        || !others.all(|range| is_title(&text[range]))
        || !(ruled || named.any(|range| is_companion(&text[range])))
    {
        return None;
    }
    let mut cells = Vec::new();
    let mut at = first_row;
    for _ in 0..ROWS_MOST {
        let Some(row) = line(bytes, at) else { break };
        let range = at..at + row.len();
        if !is_rule(row) {
            let Some(cell) = cell_of(text, range, gap, place, &titles) else { break };
            if wanted(&text[cell.clone()]) {
                cells.push(cell);
            }
        }
        at += row.len() + 1;
    }
    (!cells.is_empty()).then_some(Column { cells, end: at })
}

/// The name around the keyword with what is beside it, where that is an edge of a table's cell.
fn name_at(text: &[u8], keyword: &Range<usize>) -> Option<(Range<usize>, Gap)> {
    let part = |b: u8| b.is_ascii_alphanumeric() || b"_-./\"'`".contains(&b) || b >= 0x80;
    let goes_on = |at: usize, next: Option<&u8>| {
        part(text[at]) || text[at] == b' ' && next.is_some_and(|next| part(*next))
    };
    let mut start = keyword.start;
    while start > 0 && keyword.start - start < NAME_MOST {
        if !goes_on(start - 1, start.checked_sub(2).and_then(|at| text.get(at))) {
            break;
        }
        start -= 1;
    }
    let mut end = keyword.end;
    while end < text.len() && end - keyword.end < NAME_MOST && goes_on(end, text.get(end + 1)) {
        end += 1;
    }
    let spaces = |count: usize| count >= 2;
    let before = text[..start].iter().rev().take(64).take_while(|b| **b == b' ').count();
    let after = text[end..].iter().take(64).take_while(|b| **b == b' ').count();
    let left = start.checked_sub(before + 1).map(|at| text[at]);
    let right = text.get(end + after).copied();
    let edge = |byte: Option<u8>| matches!(byte, None | Some(b'\n' | b'\r' | b'"'));
    let sign = |byte: Option<u8>| byte.filter(|b| matches!(b, b'|' | b',' | b';' | b'\t'));
    let gap = match (sign(left), sign(right)) {
        (Some(one), Some(other)) if one == other => Gap::Sign(one),
        (Some(one), None) if edge(right) => Gap::Sign(one),
        (None, Some(one)) if edge(left) || is_numbering(left) => Gap::Sign(one),
        (Some(b','), None) if right == Some(b')') => Gap::Brackets,
        (None, Some(b',')) if left == Some(b'(') => Gap::Brackets,
        (None, None)
            if (edge(left) || spaces(before)) && (edge(right) || spaces(after)) && before + after > 1 =>
        {
            Gap::Spaces
        }
        _ => return None,
    };
    // A comma is also what stands in the middle of a list of names in SQL.
    let gap = if gap == Gap::Sign(b',') && is_in_brackets(text, start) { Gap::Brackets } else { gap };
    let quotes = |b: &u8| matches!(b, b'"' | b'\'' | b'`');
    let name = &text[start..end];
    let front = name.iter().take_while(|b| quotes(b)).count();
    let back = name.iter().rev().take_while(|b| quotes(b)).count();
    (front + back < name.len()).then_some((start + front..end - back, gap))
}

/// What stands before the first name where a tool numbers lines.
fn is_numbering(byte: Option<u8>) -> bool {
    matches!(byte, Some(b':' | b'+' | b'-'))
}

/// Whether a bracket was opened before this place, and only names since.
fn is_in_brackets(text: &[u8], at: usize) -> bool {
    let inside = |b: &u8| b.is_ascii_alphanumeric() || b"_,.\"`'\n\r\t ".contains(b);
    let length = text[..at].iter().rev().take(HEADER_MOST).take_while(|b| inside(b)).count();
    at > length && text[at - length - 1] == b'('
}

/// The line of names, without what is around it when it is in a JSON text.
fn header_at(text: &[u8], name: &Range<usize>) -> Option<Range<usize>> {
    let before = text[..name.start].iter().rev().take(HEADER_MOST).take_while(|b| **b != b'\n').count();
    let after = text[name.end..].iter().take(HEADER_MOST).take_while(|b| **b != b'\n').count();
    if before == HEADER_MOST || text.get(name.end + after) != Some(&b'\n') {
        return None;
    }
    let start = name.start - before;
    let opens = |at: &usize| {
        let before = text[start..*at].trim_ascii_end();
        text[*at] == b'"' && matches!(before.last(), Some(b':' | b'[' | b'('))
    };
    let start = (start..name.start).rev().find(opens).map_or(start, |at| at + 1);
    let end = name.end + after;
    Some(start..end - usize::from(text[end - 1] == b'\r'))
}

/// The line that starts here, without its end; nothing at the end of the text, or when it is too long.
fn line(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = text.get(at..)?;
    let length = rest.iter().take(ROW_MOST).take_while(|b| **b != b'\n').count();
    (length > 0 && length < ROW_MOST).then(|| &rest[..length])
}

/// A line that only draws.
fn is_rule(line: &[u8]) -> bool {
    let drawn = line.iter().filter(|b| b"-=+".contains(b)).count();
    drawn >= 3 && line.iter().all(|b| b"-=+|: \t\r>0123456789".contains(b)) && drawn * 2 > line.len()
}

/// The parts of a line. Signs within double quotes are parts of a cell.
fn fields(text: &str, line: Range<usize>, gap: Gap) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut fields = Vec::new();
    let mut start = line.start;
    let mut at = line.start;
    while at < line.end {
        let opening = bytes[at] == b'"' && bytes[start..at].iter().all(|b| *b == b' ');
        if opening && matches!(gap, Gap::Sign(b',' | b';')) {
            // Up to the closing quote; where there is none, it was a sign like any other.
            let inside = bytes[at + 1..line.end].iter().position(|b| *b == b'"');
            at += inside.map_or(1, |length| length + 2);
            continue;
        }
        let width = match gap {
            Gap::Sign(sign) => usize::from(bytes[at] == sign),
            _ => bytes[at..line.end].iter().take_while(|b| **b == b' ').count(),
        };
        if width > usize::from(gap == Gap::Spaces) {
            fields.push(start..at);
            start = at + width;
        }
        at += width.max(1);
    }
    fields.push(start..line.end);
    fields
}

/// The cell of the row in the column of this place; nothing where the row is of another form.
fn cell_of(
    text: &str,
    row: Range<usize>,
    gap: Gap,
    place: usize,
    titles: &[Range<usize>],
) -> Option<Range<usize>> {
    let cells = fields(text, row.clone(), gap);
    let cell = if gap == Gap::Spaces {
        // Columns that are aligned have no number: some cells may be empty.
        let offset = titles[place].start - titles.first()?.start;
        let wanted = row.start + offset;
        cells.into_iter().find(|cell| cell.start == wanted)?
    } else {
        (cells.len() == titles.len() && cells.len() > 1).then(|| cells.into_iter().nth(place))??
    };
    let skipped = if place == 0 && prefix(text, &titles[0]) > 0 { prefix(text, &cell) } else { 0 };
    Some(trimmed(text, cell.start + skipped..cell.end))
}

/// How much of a line's first part a tool has put there: a number, a file's name, the sign of a diff.
fn prefix(text: &str, first: &Range<usize>) -> usize {
    let part = &text[first.clone()];
    match part.rfind([':', '\t']) {
        Some(at) => at + 1,
        None => part.bytes().take(1).filter(|b| b"+->".contains(b)).count(),
    }
}

/// The range without spaces and quotes around it, and without what follows a quote.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start_matches([' ', '\t', '"', '\'', '`']).len());
    let rest = &text[start..range.end.max(start)];
    let rest = rest.split('"').next().unwrap_or(rest);
    start..start + rest.trim_end_matches([' ', '\t', '\r', '\'', '`']).len()
}

/// Whether this can be the name of a column.
fn is_title(title: &str) -> bool {
    title.len() <= NAME_MOST
        && title.chars().all(|c| c.is_alphanumeric() || " _-./#()%*".contains(c))
        && title.split(' ').count() <= 5
}

fn is_companion(title: &str) -> bool {
    let lower = title.trim_matches(['(', ')', '*']).to_lowercase();
    let last = lower.rsplit([' ', '_', '-', '.']).next().unwrap_or(&lower);
    let ends = |end: &&str| lower.ends_with(end);
    tables::COMPANIONS.contains(&lower.as_str())
        || tables::COMPANIONS.contains(&last)
        || ["keyid", "userid", "clientid", "username"].iter().any(ends)
}

/// Whether the cell can be what the name of its column promises.
fn judge(promise: Promise, title: &str, cell: &str) -> bool {
    let lower = title.to_ascii_lowercase();
    match promise {
        Promise::Password | Promise::Short => {
            guess::word(cell) || guess::password(cell, true, false) || guess::hex(cell)
        }
        Promise::Token if lower.len() > 6 && lower.ends_with("secret") => {
            guess::token(cell, true) || guess::word(cell)
        }
        Promise::Token => {
            guess::token(cell, true)
                || guess::hex(cell)
                || guess::password(cell, true, false) && !guess::wordy_phrase(cell)
        }
        Promise::Key => guess::token(cell, true) || guess::hex(cell),
        Promise::Perhaps => guess::random(cell, true) || guess::hex(cell),
    }
}

/// The column of a list of names in SQL: `COPY t (a, b) FROM stdin;` and `INSERT INTO t (a, b) VALUES (…), (…);`.
fn listed(text: &str, name: &Range<usize>, wanted: impl Fn(&str) -> bool) -> Option<Column> {
    let bytes = text.as_bytes();
    let open = text[..name.start].rfind('(')?;
    let close = name.end + bytes[name.end..].iter().take(HEADER_MOST).position(|b| *b == b')')?;
    let from = text.floor_char_boundary(open.saturating_sub(120));
    let command = text[from..open].to_ascii_lowercase();
    let place = bytes[open..name.start].iter().filter(|b| **b == b',').count();
    let count = bytes[open..close].iter().filter(|b| **b == b',').count() + 1;
    let after = text[close + 1..].trim_start();
    let starts = |word: &str| after.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let mut cells = Vec::new();
    let end = if command.contains("copy ") && starts("from stdin") {
        let mut at = close + bytes[close..].iter().take(200).position(|b| *b == b'\n')? + 1;
        for _ in 0..ROWS_MOST {
            let Some(row) = line(bytes, at) else { break };
            let parts = fields(text, at..at + row.len(), Gap::Sign(b'\t'));
            if parts.len() != count {
                break;
            }
            cells.extend(parts.into_iter().nth(place).map(|part| trimmed(text, part)));
            at += row.len() + 1;
        }
        at
    } else if command.contains("into ") && starts("values") {
        let mut at = text.len() - after.len() + "values".len();
        for _ in 0..ROWS_MOST {
            let Some(tuple) = tuple(bytes, at) else { break };
            at = tuple.last().map_or(at, |last| last.end + 1);
            if tuple.len() == count {
                cells.extend(tuple.into_iter().nth(place).map(|part| trimmed(text, part)));
            }
        }
        at
    } else {
        return None;
    };
    cells.retain(|cell| wanted(&text[cell.clone()]));
    (!cells.is_empty()).then_some(Column { cells, end })
}

/// The parts of the tuple that starts, after spaces and a comma, at `at`.
fn tuple(text: &[u8], at: usize) -> Option<Vec<Range<usize>>> {
    let gap = text[at..].iter().take(64).take_while(|b| b.is_ascii_whitespace() || **b == b',').count();
    if text.get(at + gap) != Some(&b'(') {
        return None;
    }
    let mut start = at + gap + 1;
    let mut parts = Vec::new();
    let mut quote = None;
    let mut depth = 0;
    for (at, &byte) in text.iter().enumerate().skip(start).take(ROW_MOST) {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') if depth > 0 => depth -= 1,
            (None, b')') => {
                parts.push(start..at);
                return Some(parts);
            }
            (None, b',') if depth == 0 => {
                parts.push(start..at);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::below;

    fn cells<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
        let at = text.find(name).unwrap();
        below(text, &(at..at + name.len()))
            .map(|column| column.cells.into_iter().map(|cell| &text[cell]).collect())
            .unwrap_or_default()
    }

    #[test]
    fn the_column_of_a_name_is_found_in_every_form() {
        for text in [
            " id | name | password | on\n----+------+----------+---\n  1 | ann  | SESAME42 | t\n  2 | bob  | SESAME43 | f\n(2 rows)\n",
            "| id | password |\n|----|----------|\n| 1 | SESAME42 |\n| 2 | SESAME43 |\n",
            "+---+----------+\n| n | password |\n+---+----------+\n| 1 | SESAME42 |\n| 2 | SESAME43 |\n+---+----------+\n",
            "url,user,password\nhttps://a.b,ann,SESAME42\nhttps://c.d,bob,SESAME43\n",
            "\"password\",\"user\"\r\n\"SESAME42\",\"ann, b\"\r\n\"SESAME43\",\"bob\"\r\n",
            "3:password;host\n4:SESAME42;a.b\n5:SESAME43;c.d\n",
            "host\tpassword\na.b\tSESAME42\nc.d\tSESAME43\n",
            "USER   password   TTL\nann    SESAME42   3h\nbob    SESAME43   4h\n",
            "{\"text\":\"id,password\n1,SESAME42\n2,SESAME43\"}",
            "COPY public.users (id, password, at) FROM stdin;\n1\tSESAME42\t2026\n2\tSESAME43\t2026\n\\.\n",
            "INSERT INTO users (id, `password`) VALUES (1, 'SESAME42'),\n (lower('x'), 'SESAME43');",
        ] {
            assert_eq!(cells(text, "password"), ["SESAME42", "SESAME43"], "{text}");
        }
    }

    #[test]
    fn lists_and_sentences_are_no_tables() {
        for text in [
            "use {user, password, host};\nuse {a1b2c3, d4e5f6g7, x};\n",
            "the password, the name\nand x7y8z9w0, more\n",
            "user, password, host\n",
            "fn f(user, password)\n    let x = (a1b2c3d4, e5f6g7h8);\n",
            "| name | password |\n|---|---|\n| type | required |\n| size | varchar |\n",
        ] {
            assert_eq!(cells(text, "password"), Vec::<&str>::new(), "{text}");
        }
    }
}
