//! One story for every backend. Nothing here knows how a backend works: each test gets a place where a store may be
//! and opens as many handles to it as it likes, as separate processes would.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::path::PathBuf;

use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;

/// A fresh store that can be opened again and again.
pub(crate) trait Backend: Sync {
    /// A new handle to the same store, as another process would have it.
    fn open(&self) -> Box<dyn Store>;

    /// A place for files that a test makes.
    fn scratch(&self) -> PathBuf;
}

struct Sqlite {
    home: tempfile::TempDir,
    purpose: Purpose,
}

impl Sqlite {
    fn fresh(purpose: Purpose) -> Self {
        Self { home: tempfile::tempdir().unwrap(), purpose }
    }
}

impl Backend for Sqlite {
    fn open(&self) -> Box<dyn Store> {
        let options = OpenOptions { purpose: self.purpose, ..OpenOptions::default() };
        Box::new(SqliteStore::open(&self.home.path().join("segno.db"), options).unwrap())
    }

    fn scratch(&self) -> PathBuf {
        self.home.path().to_owned()
    }
}

/// Makes a test for each backend out of each story.
macro_rules! on_every_backend {
    ($($story:ident),* $(,)?) => { $(
        mod $story {
            use segno_store::Purpose;

            #[test]
            fn sqlite_one_shot() {
                super::$story(&crate::Sqlite::fresh(Purpose::OneShot));
            }

            #[test]
            fn sqlite_long_lived() {
                super::$story(&crate::Sqlite::fresh(Purpose::LongLived));
            }
        }
    )* };
}

#[path = "contract/append.rs"]
mod append;
#[path = "contract/blobs.rs"]
mod blobs;
#[path = "contract/concurrency.rs"]
mod concurrency;
#[path = "contract/create.rs"]
mod create;
#[path = "contract/epochs.rs"]
mod epochs;
#[path = "contract/keys.rs"]
mod keys;
#[path = "contract/leases.rs"]
mod leases;
#[path = "contract/lists.rs"]
mod lists;
#[path = "contract/reading.rs"]
mod reading;
#[path = "contract/sessions.rs"]
mod sessions;
#[path = "contract/upkeep.rs"]
mod upkeep;
