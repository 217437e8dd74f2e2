//! The right to drive, by the database's own clock.

use std::time::Duration;
use std::time::Instant;

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::Transaction;
use rusqlite::TransactionBehavior;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::event::Holder;

use super::Direct;
use super::check_form;
use super::fault;
use super::session;
use crate::Error;
use crate::types::Lease;
use crate::types::Over;
use crate::types::Steady;

/// Microseconds by the database's clock: every process of this store agrees on it.
const NOW: &str = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";

/// Where the heartbeat by a clock that nobody sets is, in the JSON of the holder.
const STEADY: &str = "$.steady_us";

/// Microseconds by a clock that nobody sets and that stands still while the machine sleeps.
fn steady_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000)
}

/// After so long an append of a holder also says that it lives.
const BEAT: Duration = Duration::from_secs(2);
/// Whoever said so by an append within this time need not say it once more.
const FRESH: Duration = Duration::from_secs(4);

/// Leases that were taken by this connection: an append of their holder says that it lives.
#[derive(Clone, Debug, Default)]
pub(super) struct Held(Vec<HeldLease>);

#[derive(Clone, Debug)]
struct HeldLease {
    session: SessionId,
    epoch: u64,
    /// When an append said so last.
    beat: Option<Instant>,
}

impl Held {
    fn take(&mut self, session: SessionId, epoch: u64) {
        self.let_go(session);
        self.0.push(HeldLease { session, epoch, beat: None });
    }

    fn let_go(&mut self, session: SessionId) {
        self.0.retain(|held| held.session != session);
    }

    pub(super) fn holds(&self, session: SessionId, epoch: u64) -> bool {
        self.0.iter().any(|held| held.session == session && held.epoch == epoch)
    }

    /// An append said that these live.
    pub(super) fn beat(&mut self, sessions: &[SessionId]) {
        for held in self.0.iter_mut().filter(|held| sessions.contains(&held.session)) {
            held.beat = Some(Instant::now());
        }
    }

    fn is_fresh(&self, session: SessionId, epoch: u64) -> bool {
        self.0.iter().any(|held| {
            held.session == session
                && held.epoch == epoch
                && held.beat.is_some_and(|beat| beat.elapsed() < FRESH)
        })
    }
}

/// How a session is or was last driven.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// 0 if never.
    pub(super) epoch: u64,
    /// The heartbeat, if somebody drives.
    steady: Option<u64>,
}

impl Standing {
    /// Whether it is time to say that its holder lives.
    pub(super) fn wants_beat(&self) -> bool {
        let after = u64::try_from(BEAT.as_micros()).unwrap_or(u64::MAX);
        self.steady.is_some_and(|steady| steady_now().saturating_sub(steady) >= after)
    }
}

pub(super) fn standing(connection: &Connection, location: &str, pk: i64) -> Result<Standing, Error> {
    let sql = format!("SELECT epoch, json_extract(holder, '{STEADY}') FROM leases WHERE session = ?1");
    let found = connection
        .prepare_cached(&sql)
        .and_then(|mut ask| {
            let read = |row: &rusqlite::Row<'_>| {
                // What somebody else wrote there may be anything.
                Ok(Standing { epoch: row.get(0)?, steady: row.get(1).unwrap_or_default() })
            };
            ask.query_row([pk], read).optional()
        })
        .map_err(|e| fault(location, e))?;
    Ok(found.unwrap_or_default())
}

/// The epoch that a session is or was last driven under; 0 if never.
pub(super) fn epoch(connection: &Connection, location: &str, pk: i64) -> Result<u64, Error> {
    connection
        .prepare_cached("SELECT epoch FROM leases WHERE session = ?1")
        .and_then(|mut ask| ask.query_row([pk], |row| row.get(0)).optional())
        .map(|found: Option<u64>| found.unwrap_or(0))
        .map_err(|e| fault(location, e))
}

pub(super) fn read(connection: &Connection, location: &str, pk: i64) -> Result<Option<Lease>, Error> {
    let sql = format!(
        "SELECT epoch, holder, acquired_us, heartbeat_us, {NOW} FROM leases WHERE session = ?1 AND holder IS NOT NULL"
    );
    connection
        .prepare_cached(&sql)
        .and_then(|mut ask| ask.query_row([pk], lease).optional())
        .map_err(|e| fault(location, e))
}

/// Whether any session is driven, or was when its driver died.
pub(super) fn any(connection: &Connection, location: &str) -> Result<bool, Error> {
    connection
        .query_row("SELECT EXISTS (SELECT 1 FROM leases WHERE holder IS NOT NULL)", [], |row| row.get(0))
        .map_err(|e| fault(location, e))
}

pub(super) fn all(connection: &Connection, location: &str) -> Result<Vec<(SessionId, Lease)>, Error> {
    let sql = format!(
        "SELECT l.epoch, l.holder, l.acquired_us, l.heartbeat_us, {NOW}, s.id FROM leases l
         JOIN sessions s ON s.pk = l.session WHERE l.holder IS NOT NULL ORDER BY l.session"
    );
    let sql_fault = |e| fault(location, e);
    let mut statement = connection.prepare_cached(&sql).map_err(sql_fault)?;
    let rows =
        statement.query_map([], |row| Ok((row.get::<_, String>(5)?, lease(row)?))).map_err(sql_fault)?;
    let mut leases = Vec::new();
    for row in rows {
        let (id, lease) = row.map_err(sql_fault)?;
        if let Ok(id) = id.parse() {
            leases.push((id, lease));
        }
    }
    Ok(leases)
}

fn lease(row: &rusqlite::Row<'_>) -> rusqlite::Result<Lease> {
    #[derive(serde::Deserialize)]
    struct Beat {
        steady_us: u64,
    }
    let holder: String = row.get(1)?;
    let beat: Option<Beat> = serde_json::from_str(&holder).ok();
    Ok(Lease {
        steady: beat.map(|beat| Steady { heartbeat: beat.steady_us, now: steady_now() }),
        epoch: row.get(0)?,
        holder: serde_json::from_str(&holder).unwrap_or_default(),
        acquired_at: Timestamp::from_micros(row.get(2)?),
        heartbeat_at: Timestamp::from_micros(row.get(3)?),
        now: Timestamp::from_micros(row.get(4)?),
    })
}

pub(super) fn acquire(
    direct: &mut Direct,
    session: SessionId,
    holder: &Holder,
    over: Option<Over>,
) -> Result<Lease, Error> {
    let holder = serde_json::to_string(holder).unwrap_or_default();
    let lease = in_transaction(direct, session, |tx, location, pk| {
        refuse_held(tx, location, pk, over)?;
        let sql = format!(
            "INSERT INTO leases (session, epoch, holder, acquired_us, heartbeat_us)
             VALUES (?1, 1, json_set(?2, '{STEADY}', ?3), {NOW}, {NOW})
             ON CONFLICT (session) DO UPDATE SET epoch = epoch + 1, holder = json_set(?2, '{STEADY}', ?3),
             acquired_us = {NOW}, heartbeat_us = {NOW}"
        );
        tx.execute(&sql, (pk, holder, number(steady_now()))).map_err(|e| fault(location, e))?;
        read(tx, location, pk)?.ok_or(Error::NotFound(session))
    })?;
    direct.held.take(session, lease.epoch);
    Ok(lease)
}

/// Refuses if somebody drives, other than the one whose time is over. Asked inside the transaction that acts on it: who
/// looked before may have looked too early.
pub(super) fn refuse_held(
    connection: &Connection,
    location: &str,
    pk: i64,
    over: Option<Over>,
) -> Result<(), Error> {
    match read(connection, location, pk)? {
        Some(lease) if !over.is_some_and(|over| over.is(&lease)) => Err(Error::Held(Box::new(lease))),
        _ => Ok(()),
    }
}

/// How many sessions are driven by somebody who was heard of within this time. On one boot of a machine a clock counts
/// that stands still while the machine sleeps.
pub(super) fn count_driven(connection: &Connection, location: &str, within: Duration) -> Result<u64, Error> {
    let boot = crate::boot_id();
    let within = u64::try_from(within.as_micros()).unwrap_or(u64::MAX);
    let leases = all(connection, location)?;
    Ok(leases.iter().filter(|(_, lease)| lease.silent_for(&boot) < within).count() as u64)
}

pub(super) fn renew(direct: &mut Direct, session: SessionId, given: u64) -> Result<(), Error> {
    // An append has just said so. Whether it still holds is asked all the same, which nobody has to wait for.
    if direct.held.is_fresh(session, given) {
        let location = direct.location.clone();
        let (connection, _, _) = direct.connection()?;
        let row = session::find_row(connection, &location, session)?;
        let now = standing(connection, &location, row.pk)?;
        if now.epoch == given && now.steady.is_some() {
            return Ok(());
        }
    }
    in_transaction(direct, session, |tx, location, pk| {
        if !beat(tx, location, pk, given)? {
            return Err(Error::StaleEpoch { given, current: epoch(tx, location, pk)? });
        }
        Ok(())
    })
}

/// Says that the holder of an epoch lives; false if it holds it no more.
pub(super) fn beat(connection: &Connection, location: &str, pk: i64, given: u64) -> Result<bool, Error> {
    let sql = format!(
        "UPDATE leases SET heartbeat_us = {NOW}, holder = json_set(holder, '{STEADY}', ?3)
         WHERE session = ?1 AND epoch = ?2 AND holder IS NOT NULL"
    );
    let changed = connection
        .prepare_cached(&sql)
        .and_then(|mut ask| ask.execute((pk, number(given), number(steady_now()))))
        .map_err(|e| fault(location, e))?;
    Ok(changed > 0)
}

pub(super) fn release(direct: &mut Direct, session: SessionId, given: u64) -> Result<(), Error> {
    if direct.held.holds(session, given) {
        direct.held.let_go(session);
    }
    in_transaction(direct, session, |tx, location, pk| {
        tx.execute("UPDATE leases SET holder = NULL WHERE session = ?1 AND epoch = ?2", (pk, number(given)))
            .map_err(|e| fault(location, e))?;
        Ok(())
    })
}

/// An epoch as SQLite takes it. One that is too large was never given out and matches none.
fn number(epoch: u64) -> i64 {
    i64::try_from(epoch).unwrap_or(-1)
}

fn in_transaction<T>(
    direct: &mut Direct,
    session: SessionId,
    job: impl FnOnce(&Transaction<'_>, &str, i64) -> Result<T, Error>,
) -> Result<T, Error> {
    let location = direct.location.clone();
    let (connection, _, file, _turn) = direct.for_writing()?;
    let tx = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|e| fault(&location, e))?;
    check_form(&tx, &location, file)?;
    let row = session::find_row(&tx, &location, session)?;
    let done = job(&tx, &location, row.pk)?;
    match tx.commit() {
        Ok(()) => Ok(done),
        Err(e) => Err(direct.commit_failed(e)),
    }
}
