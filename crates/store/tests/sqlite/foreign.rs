//! Files that are no stores. They are left as they are.

use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;

use segno_store::Error;
use segno_store::Purpose;

use crate::common::*;
use crate::home::Home;

fn files(home: &Home) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(home.dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn what_is_no_database_stays_as_it_is() {
    let texts: [&[u8]; 5] = [
        b"Dear diary\n",
        b"\0",
        &[0; 8192],
        b"SQLite format 3",
        b"SQLite format 4\0 and the rest of a page and more",
    ];
    for text in texts {
        let home = Home::new();
        std::fs::write(home.db(), text).unwrap();
        std::fs::set_permissions(home.db(), std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = home.try_open().err();
        assert!(matches!(refused, Some(Error::Damaged { .. })), "{refused:?}");
        assert_eq!(files(&home), [("segno.db".to_owned(), text.to_vec())]);
        assert_eq!(std::fs::metadata(home.db()).unwrap().mode() & 0o777, 0o644);
    }
}

#[test]
fn a_header_without_a_database_stays_as_it_is() {
    let home = Home::new();
    let mut page = vec![0xA5; 4096];
    page[..16].copy_from_slice(b"SQLite format 3\0");
    std::fs::write(home.db(), &page).unwrap();
    let refused = home.try_open().err();
    assert!(matches!(refused, Some(Error::Damaged { .. })), "{refused:?}");
    assert_eq!(home.bytes(), page);
}

#[test]
fn an_empty_file_is_a_new_store_unless_a_log_says_otherwise() {
    let home = Home::new();
    std::fs::write(home.db(), b"").unwrap();
    make(&home.open(), 1);

    let home = Home::new();
    make(&home.open(), 1);
    // Somebody emptied the database and left its log, which holds everything.
    std::fs::write(home.db(), b"").unwrap();
    let before = files(&home);
    let refused = home.try_open().err();
    assert!(matches!(refused, Some(Error::Damaged { .. })), "{refused:?}");
    assert_eq!(files(&home), before);
}

#[test]
fn the_database_of_another_program_stays_as_it_is() {
    for prepare in [
        "CREATE TABLE diary (day TEXT); INSERT INTO diary VALUES ('monday');",
        "PRAGMA journal_mode=wal; CREATE TABLE diary (day TEXT); INSERT INTO diary VALUES ('monday');",
        "PRAGMA application_id=77; PRAGMA user_version=2; CREATE TABLE sessions (day TEXT);",
    ] {
        let home = Home::new();
        home.sql(prepare);
        std::fs::set_permissions(home.db(), std::fs::Permissions::from_mode(0o664)).unwrap();
        let before = home.bytes();
        for _ in 0..2 {
            let refused = home.try_open().err();
            assert!(matches!(refused, Some(Error::UnusableLocation { .. })), "{refused:?}");
        }
        assert_eq!(home.bytes(), before);
        assert_eq!(std::fs::metadata(home.db()).unwrap().mode() & 0o777, 0o664);
        let tables: u64 = home
            .raw()
            .query_row(
                "SELECT count(*) FROM sqlite_schema WHERE name IN ('events', 'migrations')",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(tables, 0);
    }
}

#[test]
fn a_store_that_lost_its_sign_is_damaged_not_foreign() {
    let home = Home::new();
    make(&home.open(), 1);
    home.sql("PRAGMA application_id=0;");
    let refused = home.try_open().err();
    assert!(matches!(refused, Some(Error::Damaged { .. })), "{refused:?}");
}

#[test]
fn damage_under_an_open_store_is_an_error_not_a_loss() {
    let home = Home::new();
    let store = home.open_for(Purpose::LongLived);
    let session = make(&store, 1);
    home.checkpoint();
    let whole = home.bytes();
    drop(store);
    let mut broken = whole.clone();
    broken[100..4096].fill(0xA5);
    std::fs::write(home.db(), &broken).unwrap();
    let refused = home.try_open().err();
    assert!(matches!(refused, Some(Error::Damaged { .. })), "{refused:?}");
    assert_eq!(home.bytes(), broken);
    std::fs::write(home.db(), &whole).unwrap();
    assert_whole(&home.open(), session);
}
