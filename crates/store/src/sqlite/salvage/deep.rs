//! Rows on pages that the table's own tree no longer leads to.
//!
//! A leaf of a table is a small table by itself. So the copy is told, for one page after the other, that a table begins
//! there, and SQLite reads what is on it, long values included. Pages that were given up hold old rows too, so only
//! rows that are known to be missing are taken.

use std::os::unix::fs::FileExt;

use rusqlite::Connection;
use rusqlite::types::Value as Sql;

/// The first byte of a leaf of a table.
const LEAF: u8 = 13;

/// Gives every row of every leaf page to `take`, read as if it were one of `table`.
pub(super) fn rows(
    old: &Connection,
    table: &str,
    columns: &str,
    mut take: impl FnMut(Vec<Sql>),
) -> rusqlite::Result<()> {
    // It is a copy, and written to for each page: no need for the disk to keep up.
    old.execute_batch("PRAGMA synchronous=OFF")?;
    let root: i64 =
        old.query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0))?;
    // What is in the log goes into the file, where the pages are looked at.
    let _ = old.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    for page in leaves(old)? {
        begin_at(old, table, page)?;
        read(old, table, columns, &mut take);
    }
    begin_at(old, table, root)
}

fn leaves(old: &Connection) -> rusqlite::Result<Vec<i64>> {
    let size: i64 = old.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let count: i64 = old.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let Some(file) = old.path().and_then(|path| std::fs::File::open(path).ok()) else {
        return Ok(Vec::new());
    };
    // The first page is the list of tables.
    let is_leaf = |page: &i64| {
        let mut kind = [0];
        let offset = u64::try_from((page - 1) * size).unwrap_or(0);
        file.read_exact_at(&mut kind, offset).is_ok() && kind == [LEAF]
    };
    Ok((2..=count).filter(is_leaf).collect())
}

fn begin_at(old: &Connection, table: &str, page: i64) -> rusqlite::Result<()> {
    old.execute_batch("PRAGMA writable_schema=ON")?;
    old.execute("UPDATE sqlite_schema SET rootpage = ?2 WHERE type = 'table' AND name = ?1", (table, page))?;
    old.execute_batch("PRAGMA writable_schema=RESET")
}

fn read(old: &Connection, table: &str, columns: &str, take: &mut impl FnMut(Vec<Sql>)) {
    let Ok(mut ask) = old.prepare(&format!("SELECT {columns} FROM {table} NOT INDEXED")) else { return };
    let count = ask.column_count();
    let Ok(mut rows) = ask.query([]) else { return };
    while let Ok(Some(row)) = rows.next() {
        if let Ok(values) = (0..count).map(|index| row.get(index)).collect() {
            take(values);
        }
    }
}
