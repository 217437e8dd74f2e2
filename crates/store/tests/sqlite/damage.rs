//! A journal that is not what was written. What is damaged is named exactly; what is not stays readable.

use segno_core::SessionId;
use segno_store::EventRow;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;
use segno_store::verify;

use crate::common::*;
use crate::home::Home;

/// Two sessions of ten events each. Bodies say which they are.
fn two_sessions(home: &Home) -> (SessionId, SessionId) {
    let store = home.open();
    let (one, two) = (make(&store, 1), make(&store, 2));
    for n in 2..=10 {
        for (session, name) in [(one, "one"), (two, "two")] {
            let text = format!("{name} needle {n}.");
            append(&store, facts(session, &format!("n{n}"), vec![note(&text)])).unwrap();
        }
    }
    (one, two)
}

/// The numbers of damaged events, whatever the size of the pages that are read.
fn damaged(store: &SqliteStore, session: SessionId) -> Vec<u64> {
    let mut answers = Vec::new();
    for size in [1, 3, 1_000] {
        let (mut after, mut all, mut bad) = (0, Vec::new(), Vec::new());
        loop {
            let rows = store.events(session, after, size).unwrap();
            if rows.is_empty() {
                break;
            }
            for row in rows {
                after = match row {
                    EventRow::Whole(stored) => stored.seq,
                    EventRow::Damaged { seq, .. } => {
                        bad.push(seq);
                        seq
                    }
                };
                all.push(after);
            }
        }
        let head = store.load(session).map_or(all.len() as u64, |loaded| loaded.state.seq);
        assert_eq!(all, (1..=head).collect::<Vec<_>>(), "an event was left out");
        answers.push(bad);
    }
    assert!(answers.iter().all(|bad| *bad == answers[0]), "{answers:?}");
    answers.remove(0)
}

/// Asserts that one event of one session is found damaged, everywhere, and that nothing else is.
fn assert_only(home: &Home, session: SessionId, seq: u64, other: SessionId) {
    let store = home.open();
    assert_eq!(damaged(&store, session), [seq]);
    let report = verify::verify(&store, true, |_, _| {}).unwrap();
    let named: Vec<_> = report.problems.iter().map(|p| (p.session.clone(), p.seq, p.derived)).collect();
    assert_eq!(named, [(session.to_string(), Some(seq), false)], "{report:?}");
    assert_whole(&store, other);
    assert_eq!(report.sessions, 2);
}

#[test]
fn a_changed_event_is_named() {
    for (column, value) in [
        ("body", "replace(body, 'needle', 'noodle')"),
        ("body", "CAST(x'ff' AS TEXT)"),
        ("key", "'other'"),
        ("at_us", "at_us + 1"),
        ("run", "''"),
        ("epoch", "0"),
        ("epoch", "-1"),
        ("kind", "'history_note'"),
        ("version", "2"),
        ("version", "-2"),
        ("hash", "zeroblob(32)"),
        ("hash", "x'00'"),
    ] {
        for seq in [5, 10] {
            let home = Home::quick();
            let (one, two) = two_sessions(&home);
            home.sql(&format!("UPDATE events SET {column} = {value} WHERE id = (1 << 36) + {seq}"));
            assert_only(&home, one, seq, two);
        }
    }
}

#[test]
fn a_bit_that_flips_in_the_file_is_named() {
    let home = Home::quick();
    let (one, two) = two_sessions(&home);
    home.checkpoint();
    let mut bytes = home.bytes();
    let found: Vec<usize> =
        (0..bytes.len() - 13).filter(|at| &bytes[*at..*at + 13] == b"one needle 5.").collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at + 4] ^= 0x04;
    }
    std::fs::write(home.db(), bytes).unwrap();
    let store = home.open();
    assert_eq!(damaged(&store, one), [5]);
    assert_whole(&store, two);
    // The rest of the session can be used, and goes on.
    assert_eq!(store.load(one).unwrap().state.seq, 10);
    assert_eq!(jot(&store, one, "after"), 11);
    assert_eq!(damaged(&store, one), [5]);
    let report = verify::verify(&store, true, |_, _| {}).unwrap();
    assert!(report.problems.iter().any(|p| (p.session.as_str(), p.seq) == (&one.to_string(), Some(5))));
    assert!(report.problems.iter().all(|p| p.session == one.to_string()), "{report:?}");
}

#[test]
fn a_missing_event_is_named() {
    for seq in [5, 10] {
        let home = Home::quick();
        let (one, two) = two_sessions(&home);
        home.sql(&format!("DELETE FROM events WHERE id = (1 << 36) + {seq}"));
        assert_only(&home, one, seq, two);
        // Its number is not given again.
        assert_eq!(jot(&home.open(), one, "after"), 11);
        assert_only(&home, one, seq, two);
    }
}

#[test]
fn a_missing_beginning_leaves_the_rest_readable() {
    let home = Home::quick();
    let (one, two) = two_sessions(&home);
    home.sql("DELETE FROM events WHERE id = (1 << 36) + 1; DELETE FROM states WHERE session = 1;");
    let store = home.open();
    assert_eq!(damaged(&store, one), [1]);
    // What the store knows of it beside its journal stands in for the beginning, so that work can go on and end.
    let loaded = store.load(one).unwrap();
    assert_eq!((loaded.state.session_id, loaded.state.seq, loaded.state.topic), (one, 10, None));
    assert!(loaded.notices.iter().any(|notice| notice.starts_with("event 1:")), "{:?}", loaded.notices);
    assert_eq!(loaded.state.project.path, PROJECT);
    for (session, other) in [(one, two), (two, one)] {
        assert_eq!(jot(&store, session, "a"), 11);
        assert_eq!(store.load(other).unwrap().state.session_id, other);
    }
    let report = verify::verify(&store, true, |_, _| {}).unwrap();
    assert!(report.problems.iter().any(|p| p.seq == Some(1)) && report.sessions == 2, "{report:?}");
}

#[test]
fn a_damaged_head_does_not_break_the_chain() {
    let home = Home::quick();
    let (one, two) = two_sessions(&home);
    home.sql("UPDATE sessions SET head_hash = zeroblob(32) WHERE pk = 1");
    let found = home.open().integrity(false).unwrap();
    assert!(matches!(&found[..], [what] if what.contains(&one.to_string())), "{found:?}");
    assert_eq!(jot(&home.open(), one, "after"), 11);
    assert_whole(&home.open(), one);
    assert_whole(&home.open(), two);
}

#[test]
fn two_damaged_events_side_by_side_are_both_named() {
    let home = Home::quick();
    let (one, two) = two_sessions(&home);
    home.sql("UPDATE events SET body = '{}' WHERE id IN ((1 << 36) + 5, (1 << 36) + 6)");
    let store = home.open();
    assert_eq!(damaged(&store, one), [5, 6]);
    assert_whole(&store, two);
}

#[test]
fn setting_apart_keeps_the_bytes() {
    let home = Home::quick();
    let (one, _) = two_sessions(&home);
    home.sql("UPDATE events SET body = replace(body, 'needle', 'noodle') WHERE id = (1 << 36) + 5");
    let store = home.open();
    for row in store.events(one, 0, 100).unwrap() {
        if let EventRow::Damaged { seq, what } = row {
            store.quarantine(one, seq, &what).unwrap();
        }
    }
    let apart = store.quarantined().unwrap();
    assert_eq!((apart.len(), apart[0].seq), (1, Some(5)));
    let content: Vec<u8> = home.raw().query_row("SELECT content FROM damage", [], |row| row.get(0)).unwrap();
    assert_eq!(content.len() as u64, apart[0].bytes);
    let text = String::from_utf8(content).unwrap();
    assert!(text.contains("one noodle 5.") && text.contains("history_noted"), "{text}");
}

#[test]
fn a_page_of_garbage_is_told_apart() {
    let home = Home::quick();
    let store = home.open();
    let sessions: Vec<_> = (1..=3).map(|second| make(&store, second)).collect();
    for n in 2..=40 {
        for (index, session) in sessions.iter().enumerate() {
            let text = format!("s{index} needle {n}. {}", "x".repeat(500));
            append(&store, facts(*session, &format!("n{n}"), vec![note(&text)])).unwrap();
        }
    }
    drop(store);
    home.checkpoint();
    let mut bytes = home.bytes();
    let leaves: Vec<usize> = (0..bytes.len() / 4096)
        .filter(|page| {
            let page = &bytes[page * 4096..(page + 1) * 4096];
            // A leaf of the events: the list rows hold the text too, but not the field's name of the event.
            page[0] == 13
                && page.windows(13).any(|w| w == b"s1 needle 20.")
                && page.windows(13).any(|w| w == b"history_noted")
        })
        .collect();
    assert_eq!(leaves.len(), 1, "{leaves:?}");
    bytes[leaves[0] * 4096..(leaves[0] + 1) * 4096].fill(0xA5);
    std::fs::write(home.db(), bytes).unwrap();
    let store = home.open();
    let bad = damaged(&store, sessions[1]);
    assert!(bad.contains(&20) && bad.len() < 15, "{bad:?}");
    assert_whole(&store, sessions[0]);
    assert_whole(&store, sessions[2]);
    let report = verify::verify(&store, false, |_, _| {}).unwrap();
    assert!(!report.store.is_empty());
    assert!(report.problems.iter().all(|p| p.session == sessions[1].to_string()), "{report:?}");
    assert_eq!(jot(&store, sessions[0], "after"), 41);
}
