//! Saving what can be saved from a database that is beyond repair.

use std::collections::BTreeMap;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_store::Error;
use segno_store::EventRow;
use segno_store::Store;
use segno_store::StoredEvent;
use segno_store::sqlite::salvage::Salvaged;
use segno_store::sqlite::salvage::salvage;
use segno_store::verify;

use crate::common::*;
use crate::home::Home;

const EVENTS: u64 = 24;

/// A store of five sessions with long texts, and what is in it.
struct Fleet {
    home: Home,
    journals: BTreeMap<SessionId, Vec<StoredEvent>>,
}

impl Fleet {
    fn new() -> Self {
        let home = Home::quick();
        let store = home.open();
        for second in 1..=5 {
            let session = make(&store, second);
            store.acquire(session, &holder("a"), None).unwrap();
            for n in 2..=EVENTS {
                let text = format!("s{second} needle {n}. {}", "x".repeat(400));
                let mut one = facts(session, &format!("n{n}"), vec![note(&text)]);
                one.epoch = Some(1);
                append(&store, one).unwrap();
            }
            let long = format!("s{second} {}", "word ".repeat(3_000));
            append(&store, facts(session, "long", vec![note(&long)])).unwrap();
        }
        let journals = ids(&store).into_iter().map(|id| (id, journal(&store, id))).collect();
        drop(store);
        home.checkpoint();
        Self { home, journals }
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let read =
            |name: &str| std::fs::read(self.home.file(name)).ok().map(|bytes| (name.to_owned(), bytes));
        ["segno.db", "segno.db-wal"].into_iter().filter_map(read).collect()
    }

    /// Salvages, and asserts what must hold whatever the damage.
    fn salvage(&self, stamp: &str) -> Salvaged {
        let damaged = self.files();
        let salvaged = salvage(&self.home.db(), stamp).unwrap();
        for (name, bytes) in &damaged {
            assert_eq!(&std::fs::read(salvaged.kept_in.join(name)).unwrap(), bytes, "{name} was changed");
        }
        let left: Vec<_> = std::fs::read_dir(&salvaged.kept_in)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with("segno.db"))
            .collect();
        assert_eq!(left, Vec::<String>::new(), "something was left behind");

        let store = self.home.open();
        let all_lost = salvaged.lost.join("\n");
        for (id, before) in &self.journals {
            let rows = match store.events(*id, 0, usize::MAX) {
                Ok(rows) => rows,
                Err(Error::NotFound(_)) => {
                    assert!(!salvaged.lost.is_empty(), "{id} is gone without a word");
                    continue;
                }
                Err(why) => panic!("{why}"),
            };
            let mut whole = 0;
            for row in &rows {
                if let EventRow::Whole(stored) = row {
                    assert_eq!(Some(stored), before.get(stored.seq as usize - 1), "an event was changed");
                    whole += 1;
                }
            }
            let is_whole = whole == before.len();
            assert_eq!(salvaged.whole.contains(&id.to_string()), is_whole, "{id} in {salvaged:?}");
            if is_whole {
                assert_whole(&store, *id);
            } else {
                let told = salvaged.partly.iter().any(|(name, _)| *name == id.to_string());
                assert!(told && (all_lost.contains(&id.to_string()) || rows.len() == before.len()));
            }
            // An epoch is never given twice, or a replaced driver could come back.
            if let Some(lease) = store.lease(*id).unwrap() {
                assert_eq!(lease.epoch, 1);
            } else if store.load(*id).is_ok() && whole > 2 {
                assert_eq!(store.acquire(*id, &holder("b"), None).unwrap().epoch, 2);
            }
        }
        assert_eq!(store.integrity(true).unwrap(), Vec::<String>::new());
        // The new store works: for sessions that were saved and for new ones.
        for name in &salvaged.whole {
            let id: SessionId = name.parse().unwrap();
            assert_eq!(jot(&store, id, &format!("after-{stamp}")), store.load(id).unwrap().state.seq);
            assert_whole(&store, id);
        }
        let new = make(&store, 500);
        assert_eq!(jot(&store, new, "a"), 2);
        assert_whole(&store, new);
        salvaged
    }

    /// The leaf page of the events that holds a text.
    fn page_of(&self, text: &str) -> usize {
        let bytes = self.home.bytes();
        let holds = |page: &[u8], text: &[u8]| page.windows(text.len()).any(|window| window == text);
        let leaf =
            |page: &&[u8]| page[0] == 13 && holds(page, text.as_bytes()) && holds(page, b"history_noted");
        bytes.chunks(4096).position(|page| leaf(&page)).unwrap()
    }

    fn spoil(&self, page: usize) {
        let mut bytes = self.home.bytes();
        bytes[page * 4096..(page + 1) * 4096].fill(0xA5);
        std::fs::write(self.home.db(), bytes).unwrap();
    }
}

#[test]
fn a_healthy_store_is_saved_whole() {
    let fleet = Fleet::new();
    let salvaged = fleet.salvage("t1");
    assert_eq!((salvaged.whole.len(), salvaged.lost), (5, vec![]));
    assert_eq!(salvaged.events, 5 * (EVENTS + 1));
    assert_eq!(salvaged.kept_in, fleet.home.file("quarantine/t1"));
    // Texts that were set aside are saved too, and belong to somebody.
    let store = fleet.home.open();
    assert_eq!(store.collect_garbage().unwrap(), segno_store::Garbage::default());
    let blobs: u64 = fleet.home.raw().query_row("SELECT count(*) FROM blobs", [], |row| row.get(0)).unwrap();
    assert_eq!(blobs, 5);
    assert!(verify::verify(&store, true, |_, _| {}).unwrap().is_clean());
}

#[test]
fn a_page_of_garbage_costs_only_what_was_on_it() {
    let fleet = Fleet::new();
    fleet.spoil(fleet.page_of("s3 needle 12."));
    let salvaged = fleet.salvage("t1");
    let ids: Vec<String> = fleet.journals.keys().map(ToString::to_string).collect();
    assert_eq!(salvaged.whole, [&ids[0][..], &ids[1], &ids[3], &ids[4]]);
    assert_eq!(salvaged.partly.len(), 1);
    assert_eq!(salvaged.partly[0].0, ids[2]);
    assert!(salvaged.lost.iter().any(|lost| lost.contains(&ids[2])), "{:?}", salvaged.lost);
    assert!(salvaged.events > 5 * (EVENTS + 1) - 12, "{}", salvaged.events);
    let apart = fleet.home.open().quarantined().unwrap();
    assert!(apart.iter().any(|damage| damage.seq == Some(12) && damage.session == ids[2]), "{apart:?}");
}

#[test]
fn the_page_where_one_session_ends_and_another_begins() {
    let fleet = Fleet::new();
    fleet.spoil(fleet.page_of(&format!("s2 needle {EVENTS}.")));
    let salvaged = fleet.salvage("t1");
    assert!(salvaged.whole.len() >= 3, "{salvaged:?}");
    assert!(salvaged.events > 5 * (EVENTS + 1) - 14, "{}", salvaged.events);
}

/// Every page of the file in turn, so that no kind of page is forgotten.
#[test]
fn whichever_page_is_garbage() {
    let fleet = Fleet::new();
    let whole = fleet.home.bytes();
    let mut saved = 0;
    let pages = whole.len() / 4096;
    for page in 0..pages {
        std::fs::write(fleet.home.db(), &whole).unwrap();
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(fleet.home.file(&format!("segno.db{suffix}")));
        }
        fleet.spoil(page);
        let salvaged = fleet.salvage(&format!("page-{page}"));
        assert!(salvaged.whole.len() >= 3, "page {page}: {salvaged:?}");
        saved += salvaged.events;
    }
    let of = pages as u64 * 5 * (EVENTS + 1);
    println!("{pages} pages spoilt one after the other: {saved} of {of} events saved");
    assert!(saved * 100 >= of * 95);
}

#[test]
fn a_file_without_its_beginning_is_saved_whole() {
    for zeroed in [16, 100, 4096] {
        let fleet = Fleet::new();
        let mut bytes = fleet.home.bytes();
        bytes[..zeroed].fill(0);
        std::fs::write(fleet.home.db(), bytes).unwrap();
        assert!(matches!(fleet.home.try_open().err(), Some(Error::Damaged { .. })));
        let salvaged = fleet.salvage("t1");
        assert_eq!(salvaged.whole.len(), 5, "{zeroed}: {salvaged:?}");
        assert!(!salvaged.lost.is_empty());
    }
}

#[test]
fn a_file_without_its_end_is_saved_as_far_as_it_goes() {
    let fleet = Fleet::new();
    let bytes = fleet.home.bytes();
    std::fs::write(fleet.home.db(), &bytes[..bytes.len() / 2 + 77]).unwrap();
    let salvaged = fleet.salvage("t1");
    assert!(salvaged.events > 20 && !salvaged.lost.is_empty(), "{salvaged:?}");
}

#[test]
fn a_log_alone_may_hold_everything() {
    let home = Home::quick();
    let store = home.open();
    let session = make(&store, 1);
    jot(&store, session, "a");
    let before = journal(&store, session);
    drop(store);
    std::fs::write(home.db(), b"").unwrap();
    let salvaged = salvage(&home.db(), "t1").unwrap();
    assert_eq!((&salvaged.whole[..], salvaged.events), (&[session.to_string()][..], 2));
    assert_eq!(journal(&home.open(), session), before);
}

#[test]
fn what_is_no_database_at_all_is_kept_and_replaced_by_an_empty_one() {
    let home = Home::quick();
    std::fs::write(home.db(), b"Dear diary").unwrap();
    let salvaged = salvage(&home.db(), "t1").unwrap();
    assert_eq!(std::fs::read(home.file("quarantine/t1/segno.db")).unwrap(), b"Dear diary");
    assert!(!salvaged.lost.is_empty() && salvaged.events == 0, "{salvaged:?}");
    make(&home.open(), 1);
}

#[test]
fn the_folder_of_an_earlier_time_is_not_written_over() {
    let fleet = Fleet::new();
    fleet.salvage("t1");
    let kept = fleet.home.file("quarantine/t1/segno.db");
    let (before, now) = (std::fs::read(&kept).unwrap(), fleet.home.bytes());
    for stamp in ["t1", "", ".", "..", "a/b", "../up"] {
        assert!(matches!(salvage(&fleet.home.db(), stamp), Err(Error::UnusableLocation { .. })), "{stamp:?}");
    }
    assert_eq!((std::fs::read(&kept).unwrap(), fleet.home.bytes()), (before, now));
    assert!(matches!(salvage(&fleet.home.file("none.db"), "t2"), Err(Error::NoStore(_))));
}

#[test]
fn a_session_without_name_and_beginning_does_not_block_its_number() {
    let fleet = Fleet::new();
    fleet.home.sql(
        "DELETE FROM events WHERE id = (5 << 36) + 1; DELETE FROM sessions WHERE pk = 5;
         DELETE FROM states WHERE session = 5;",
    );
    fleet.home.checkpoint();
    let salvaged = salvage(&fleet.home.db(), "t1").unwrap();
    assert!(salvaged.lost.iter().any(|lost| lost.contains("number 5")), "{salvaged:?}");
    assert_eq!(salvaged.whole.len(), 4);
    let store = fleet.home.open();
    let new = make(&store, 77);
    assert_eq!(jot(&store, new, "a"), 2);
    assert_whole(&store, new);
}

#[test]
fn a_writer_that_has_the_damaged_file_open_does_not_write_into_it() {
    let fleet = Fleet::new();
    let session = *fleet.journals.keys().next().unwrap();
    let store = fleet.home.open_for(segno_store::Purpose::LongLived);
    jot(&store, session, "before");
    let done = std::sync::atomic::AtomicBool::new(false);
    let acked: Vec<String> = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut acked = Vec::new();
            for n in 0.. {
                if done.load(std::sync::atomic::Ordering::Acquire) {
                    return acked;
                }
                let name = format!("w{n}");
                match append(&store, facts(session, &name, vec![note(&name)])) {
                    Ok(_) => acked.push(name),
                    Err(Error::Busy { .. } | Error::NoStore(_) | Error::Damaged { .. }) => {}
                    Err(why) => panic!("{why}"),
                }
            }
            acked
        });
        for round in 0..5 {
            salvage(&fleet.home.db(), &format!("t{round}")).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Release);
        writer.join().unwrap()
    });
    let there = keys(&fleet.home.open(), session);
    let lost: Vec<_> = acked.iter().filter(|name| !there.contains(name)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    assert_whole(&fleet.home.open(), session);
}

#[test]
fn no_store_opens_between_the_old_and_the_new() {
    let fleet = Fleet::new();
    let mark: PathBuf = fleet.home.file("segno.db.salvaging");
    let kept_in = fleet.home.file("quarantine/t1");
    std::fs::create_dir_all(&kept_in).unwrap();
    // As if it had been killed after the damaged file went and before the new one came.
    std::fs::copy(fleet.home.db(), kept_in.join("saved.db")).unwrap();
    std::fs::rename(fleet.home.db(), kept_in.join("segno.db")).unwrap();
    let begun = Salvaged { kept_in, events: 3, ..Salvaged::default() };
    std::fs::write(&mark, serde_json::to_vec(&begun).unwrap()).unwrap();
    let refused = fleet.home.try_open().err();
    assert!(matches!(refused, Some(Error::Damaged { .. })), "{refused:?}");
    assert!(!fleet.home.db().exists(), "an empty store was put in its place");
    assert_eq!(salvage(&fleet.home.db(), "t2").unwrap(), begun);
    assert!(!mark.exists());
    for id in fleet.journals.keys() {
        assert_whole(&fleet.home.open(), *id);
    }
}
