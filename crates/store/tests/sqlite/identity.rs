//! Which store a database is, wherever its file goes.

use std::path::Path;

use segno_store::Error;
use segno_store::Identity;
use segno_store::OpenOptions;
use segno_store::Standing;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;
use segno_store::sqlite::salvage;

use crate::common::*;
use crate::home::Home;
use crate::home::older;

fn at(path: &Path) -> SqliteStore {
    SqliteStore::open(path, OpenOptions { create: false, ..OpenOptions::default() }).unwrap()
}

fn standing(path: &Path) -> Standing {
    at(path).identity().standing
}

#[test]
fn every_store_has_an_id_and_keeps_it() {
    let (one, other) = (Home::quick(), Home::quick());
    let id = one.open().id();
    assert_eq!(one.open().identity(), Identity { id, standing: Standing::Original });
    assert_ne!(other.open().id(), id);
    for form in [1, 2] {
        let (old, session) = older(form);
        let id = old.open().id();
        assert_eq!(old.open().identity(), Identity { id, standing: Standing::Original });
        assert_whole(&old.open(), session);
    }
}

#[test]
fn a_store_that_is_moved_is_the_same_store() {
    let home = Home::quick();
    let session = make(&home.open(), 1);
    let id = home.open().id();
    home.checkpoint();
    std::fs::create_dir(home.file("elsewhere")).unwrap();
    let moved = home.file("elsewhere/work.db");
    std::fs::rename(home.db(), &moved).unwrap();
    assert_eq!(at(&moved).identity(), Identity { id, standing: Standing::Original });
    jot(&at(&moved), session, "after");
}

#[test]
fn a_copy_beside_its_store_is_read_and_not_written_until_it_is_adopted() {
    let home = Home::quick();
    let session = make(&home.open(), 1);
    let id = home.open().id();
    let path = home.file("copy.db");
    home.open().backup(&path).unwrap();
    let real = std::fs::canonicalize(home.db()).unwrap();
    let copy = at(&path);
    assert_eq!(copy.identity(), Identity { id, standing: Standing::Copy { of: real } });
    assert_eq!(assert_whole(&copy, session).state.seq, 1);
    let refused = [
        copy.append(vec![facts(session, "k", vec![note("x")])]).pop().unwrap().err(),
        copy.acquire(session, &holder("a"), None).err(),
        copy.delete(session, None).err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(Error::Copy { .. })), "{error:?}");
    }
    // The store itself is what it was.
    assert_eq!(home.open().identity(), Identity { id, standing: Standing::Original });
    let adopted = copy.adopt().unwrap();
    assert_ne!(adopted.id, id);
    jot(&copy, session, "mine");
    assert_eq!(at(&path).identity(), Identity { standing: Standing::Original, ..adopted });
    assert_eq!(assert_whole(&home.open(), session).state.seq, 1);
}

#[test]
fn a_copy_that_takes_the_place_of_its_store_is_the_store_and_says_so_once() {
    let home = Home::quick();
    let session = make(&home.open(), 1);
    let id = home.open().id();
    let real = std::fs::canonicalize(home.db()).unwrap();
    home.open().backup(&home.file("backup.db")).unwrap();
    jot(&home.open(), session, "later");
    // Kept for the test: a file that is gone may leave its number to the next one.
    std::fs::rename(home.db(), home.file("broken.db")).unwrap();
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(home.file(&format!("segno.db{suffix}")));
    }
    std::fs::copy(home.file("backup.db"), home.db()).unwrap();
    let store = home.open();
    assert_eq!(store.identity(), Identity { id, standing: Standing::Restored { from: real } });
    assert_eq!(jot(&store, session, "again"), 2);
    drop(store);
    assert_eq!(standing(&home.db()), Standing::Original);
    // And the backup is a copy of what is there now.
    home.checkpoint();
    assert!(matches!(standing(&home.file("backup.db")), Standing::Copy { .. }));
    // Where another store is made in its place, a copy is all that is left of the first.
    std::fs::remove_file(home.db()).unwrap();
    assert_ne!(home.open().id(), id);
    home.checkpoint();
    assert!(matches!(standing(&home.file("backup.db")), Standing::Restored { .. }));
}

#[test]
fn what_is_saved_of_a_damaged_store_is_the_same_store() {
    let home = Home::quick();
    let session = make(&home.open(), 1);
    let id = home.open().id();
    home.checkpoint();
    salvage::salvage(&home.db(), "stamp").unwrap();
    let store = home.open();
    assert_eq!(store.identity(), Identity { id, standing: Standing::Original });
    assert_whole(&store, session);
}
