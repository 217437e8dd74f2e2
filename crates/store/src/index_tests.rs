use segno_core::SessionId;
use segno_core::StoreId;
use segno_core::Timestamp;

use super::*;

fn store(n: u128) -> StoreId {
    uuid::Uuid::from_u128(n).to_string().parse().unwrap()
}

fn session(n: i64) -> SessionId {
    SessionId::at(Timestamp::from_micros(1_700_000_000_000_000 + n))
}

fn doc(seq: u64, text: &str) -> Doc {
    Doc { seq, kind: "said", text: text.to_owned(), ..Doc::default() }
}

fn found(index: &Index, words: &str) -> Vec<u64> {
    let query = Query { words: words.to_owned(), limit: 10, ..Query::default() };
    index.search(&query, 0).unwrap().into_iter().map(|hit| hit.seq).collect()
}

#[test]
fn words_are_found_until_their_session_is_taken_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db.index");
    let mut index = Index::open(&path, store(1)).unwrap();
    index.add(session(1), 0, 7, &[doc(3, "we dropped redis"), doc(5, "nothing here")]).unwrap();
    index.add(session(2), 0, 9, &[doc(9, "redis again, and redis")]).unwrap();
    assert_eq!(found(&index, "redis").len(), 2);
    assert_eq!(found(&index, "\"dropped redis\""), [3]);
    assert_eq!(found(&index, "drop*"), [3]);
    assert_eq!(index.indexed().unwrap()[&session(1)], 7);
    // What somebody else has added is not added again.
    index.add(session(1), 0, 8, &[doc(3, "we dropped redis")]).unwrap();
    assert_eq!(index.indexed().unwrap()[&session(1)], 7);
    assert_eq!(index.check().unwrap(), Vec::<String>::new());
    index.drop_session(session(1)).unwrap();
    assert_eq!(found(&index, "redis"), [9]);
    assert!(!index.indexed().unwrap().contains_key(&session(1)));
    index.note_conversation("claude", "c", "s1", None).unwrap();
    index.drop_words().unwrap();
    assert!(found(&index, "redis").is_empty() && index.session_of("claude", "c").unwrap().is_some());
    for end in ["", "-wal"] {
        let bytes = std::fs::read(dir.path().join(format!("s.db.index{end}"))).unwrap_or_default();
        assert!(!bytes.windows(5).any(|part| part == b"redis"), "{end}");
    }
    assert_eq!(index.check().unwrap(), Vec::<String>::new());
}

#[test]
fn the_index_of_another_store_and_a_damaged_one_are_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db.index");
    let mut index = Index::open(&path, store(1)).unwrap();
    index.add(session(1), 0, 7, &[doc(3, "redis")]).unwrap();
    drop(index);
    assert_eq!(found(&Index::open(&path, store(1)).unwrap(), "redis"), [3]);
    assert!(found(&Index::open(&path, store(2)).unwrap(), "redis").is_empty());
    std::fs::write(&path, vec![7; 5000]).unwrap();
    assert!(found(&Index::open(&path, store(2)).unwrap(), "redis").is_empty());
    assert!(remove_index(&path) && !path.exists() && !remove_index(&path));
}

#[test]
fn files_and_conversations_are_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let index = Index::open(&dir.path().join("i"), store(1)).unwrap();
    let note =
        FileNote { conversation: "c".to_owned(), size: 5, offset: 4, hash: vec![1], ..FileNote::default() };
    index.note_file("claude", "/a", &note).unwrap();
    assert_eq!(index.file("claude", "/a").unwrap(), Some(note.clone()));
    assert_eq!(index.file("codex", "/a").unwrap(), None);
    assert_eq!(index.files_of("claude", "c").unwrap(), [("/a".to_owned(), note)]);
    index.note_conversation("claude", "c", "s1", Some("r")).unwrap();
    index.note_conversation("claude", "d", "s2", Some("r")).unwrap();
    index.note_conversation("claude", "c", "s3", None).unwrap();
    assert_eq!(index.session_of("claude", "c").unwrap().as_deref(), Some("s3"));
    let with_root = [("c".to_owned(), "s3".to_owned()), ("d".to_owned(), "s2".to_owned())];
    assert_eq!(index.with_root("claude", "r").unwrap(), with_root);
}
