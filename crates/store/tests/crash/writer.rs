//! The process that is killed: it writes without end, and notes what it tries and what was acknowledged.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use segno_core::Fact;
use segno_core::SessionId;
use segno_core::TokenUse;
use segno_core::event::Maker;
use segno_core::event::Source;
use segno_store::Append;
use segno_store::Appended;
use segno_store::Error;
use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;

use crate::Dice;
use crate::common::*;
use crate::home::role;

/// The name under which this process is started.
pub(crate) const TEST: &str = "writer::write_until_killed";
/// What was tried: a session and a key.
pub(crate) const TRIED: &str = "tried";
/// What was acknowledged: a session, a key, and the first and last number.
pub(crate) const ACKED: &str = "acked";

fn note_down(file: &mut File, line: &str) {
    // One write for one line: a killed process leaves whole lines or none.
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

struct Writer {
    path: std::path::PathBuf,
    purpose: Purpose,
    store: SqliteStore,
    dice: Dice,
    seed: u64,
    count: u64,
    tried: File,
    acked: File,
    sessions: Vec<SessionId>,
}

impl Writer {
    fn new(dir: &Path, seed: u64) -> Self {
        let purpose = if seed.is_multiple_of(2) { Purpose::OneShot } else { Purpose::LongLived };
        let log = |name| File::options().create(true).append(true).open(dir.join(name)).unwrap();
        let path = dir.join("segno.db");
        let store = SqliteStore::open(&path, OpenOptions { purpose, ..OpenOptions::default() }).unwrap();
        let sessions = ids(&store);
        let (tried, acked) = (log(TRIED), log(ACKED));
        Self { path, purpose, store, dice: Dice::new(seed), seed, count: 0, tried, acked, sessions }
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("w{}-{}", self.seed, self.count)
    }

    fn create(&mut self) {
        let name = self.name();
        // All writers wish for the same names, so that they get into each other's way.
        let second = self.dice.below(50);
        let number = u128::from(self.seed) << 64 | u128::from(self.count);
        let mut create = to_create(i64::try_from(second).unwrap(), number, PROJECT, Maker::Run);
        create.key = key(&name);
        let made = self.store.create(create).unwrap().state;
        note_down(&mut self.acked, &format!("{} {name} 1 1", made.session_id));
        self.sessions.push(made.session_id);
    }

    fn append(&mut self) -> Append {
        let session = self.sessions[usize::try_from(self.dice.below(self.sessions.len() as u64)).unwrap()];
        let name = self.name();
        note_down(&mut self.tried, &format!("{session} {name}"));
        match self.dice.below(6) {
            0 => {
                let tokens = TokenUse { input: self.dice.below(40_000), ..TokenUse::default() };
                command(
                    session,
                    &name,
                    Fact::TokensRecorded { tokens, estimated: false, source: Source::Hand },
                )
            }
            1 => facts(session, &name, vec![note("one"), note("two"), note("three")]),
            2 => facts(session, &name, vec![note(&"a long text ".repeat(1_500))]),
            _ => facts(session, &name, vec![note(&name)]),
        }
    }

    fn step(&mut self) {
        if self.sessions.is_empty() || self.dice.below(15) == 0 {
            return self.create();
        }
        if self.purpose == Purpose::OneShot && self.dice.below(4) == 0 {
            // As a hook does: a store for one append.
            self.store = SqliteStore::open(&self.path, OpenOptions::default()).unwrap();
        }
        if self.dice.below(20) == 0 {
            self.store.maintain().unwrap();
        }
        let count = if self.dice.below(3) == 0 { 2 + self.dice.below(7) } else { 1 };
        let batch: Vec<Append> = (0..count).map(|_| self.append()).collect();
        let named: Vec<_> = batch.iter().map(|append| (append.session, append.key.to_string())).collect();
        // Half of them as a driver gives what its agent prints: those stand back for others.
        let results = match self.dice.below(2) {
            0 => self.store.append_soon(batch).wait(),
            _ => self.store.append(batch),
        };
        for ((session, name), result) in named.into_iter().zip(results) {
            self.acknowledge(session, &name, result);
        }
    }

    fn acknowledge(&mut self, session: SessionId, name: &str, result: Result<Appended, Error>) {
        let done = result.unwrap();
        assert!(!done.repeated);
        note_down(&mut self.acked, &format!("{session} {name} {} {}", done.first, done.last));
    }
}

#[test]
fn write_until_killed() {
    let Some(role) = role() else { return };
    let (dir, seed) = role.rsplit_once('#').unwrap();
    let mut writer = Writer::new(Path::new(dir), seed.parse().unwrap());
    loop {
        writer.step();
    }
}
