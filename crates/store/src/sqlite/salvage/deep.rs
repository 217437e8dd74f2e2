//! Rows on pages that the table's own tree no longer leads to.
//!
//! A leaf of a table is a small table by itself. So the copy is told, for one page after the other, that a table begins
//! there, and SQLite reads what is on it, long values included. Pages that were given up hold old rows too, so only
//! rows that are known to be missing are taken.

use std::os::unix::fs::FileExt;

use rusqlite::Connection;
use rusqlite::types::Value as Sql;

use super::fault;
use super::io_fault;
use super::unless_damaged;
use crate::Error;

/// The first byte of a leaf of a table.
const LEAF: u8 = 13;

/// Gives every row of every leaf page to `take`, read as if it were one of `table`. False if damage kept it from
/// looking everywhere.
pub(super) fn rows(
    old: &Connection,
    location: &str,
    table: &str,
    columns: &str,
    mut take: impl FnMut(Vec<Sql>) -> Result<(), Error>,
) -> Result<bool, Error> {
    // It is a copy, and written to for each page: no need for the disk to keep up.
    old.execute_batch("PRAGMA synchronous=OFF").map_err(|e| fault(location, e))?;
    let root: rusqlite::Result<i64> =
        old.query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0));
    let Some(root) = unless_damaged(location, root)? else { return Ok(false) };
    // What is in the log goes into the file, where the pages are looked at.
    let emptied = old.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    let mut everywhere = unless_damaged(location, emptied)?.is_some();
    for page in leaves(old, location)? {
        if unless_damaged(location, begin_at(old, table, page))?.is_none() {
            everywhere = false;
            continue;
        }
        read(old, location, table, columns, &mut take)?;
    }
    Ok(unless_damaged(location, begin_at(old, table, root))?.is_some() && everywhere)
}

fn leaves(old: &Connection, location: &str) -> Result<Vec<i64>, Error> {
    let pragma = |name| old.pragma_query_value(None, name, |row| row.get(0)).map_err(|e| fault(location, e));
    let size: i64 = pragma("page_size")?;
    let count: i64 = pragma("page_count")?;
    let io = |why: std::io::Error| io_fault(location, &why);
    let file = std::fs::File::open(old.path().unwrap_or_default()).map_err(io)?;
    let mut leaves = Vec::new();
    // The first page is the list of tables.
    for page in 2..=count {
        let mut kind = [0];
        let offset = u64::try_from((page - 1) * size).unwrap_or(0);
        match file.read_exact_at(&mut kind, offset) {
            Ok(()) if kind == [LEAF] => leaves.push(page),
            Ok(()) => {}
            // The file ends before the number of pages that it names.
            Err(why) if why.kind() == std::io::ErrorKind::UnexpectedEof => break,
            Err(why) => return Err(io(why)),
        }
    }
    Ok(leaves)
}

fn begin_at(old: &Connection, table: &str, page: i64) -> rusqlite::Result<()> {
    old.execute_batch("PRAGMA writable_schema=ON")?;
    old.execute("UPDATE sqlite_schema SET rootpage = ?2 WHERE type = 'table' AND name = ?1", (table, page))?;
    old.execute_batch("PRAGMA writable_schema=RESET")
}

fn read(
    old: &Connection,
    location: &str,
    table: &str,
    columns: &str,
    take: &mut impl FnMut(Vec<Sql>) -> Result<(), Error>,
) -> Result<(), Error> {
    let sql = format!("SELECT {columns} FROM {table} NOT INDEXED");
    let Some(mut ask) = unless_damaged(location, old.prepare(&sql))? else { return Ok(()) };
    let count = ask.column_count();
    let Some(mut rows) = unless_damaged(location, ask.query([]))? else { return Ok(()) };
    while let Some(Some(row)) = unless_damaged(location, rows.next())? {
        let values = (0..count).map(|index| row.get(index)).collect();
        if let Some(values) = unless_damaged(location, values)? {
            take(values)?;
        }
    }
    Ok(())
}
