//! Views that are not what they should be: said with line and reason, quickly, and left as they are.

use std::fmt::Write;
use std::time::Duration;
use std::time::Instant;

use rstest::rstest;
use segno_core::SessionId;
use segno_engine::Error;
use segno_engine::transfer::import;

use crate::common::Room;
use crate::transfer::options;
use crate::view::full_session;

/// A room with a view in the place where `load` looks for it, and no session of that name.
struct Damaged {
    room: Room,
    id: SessionId,
}

impl Damaged {
    fn new() -> Self {
        let id: SessionId = "session_20260101_000000_000000".parse().unwrap();
        let room = Room::new();
        std::fs::create_dir_all(room.view_path(id).parent().unwrap()).unwrap();
        Self { room, id }
    }

    /// What loading and importing say of it; both the same, soon, and without touching the file.
    fn complaint(&self, bytes: &[u8]) -> Result<(), String> {
        let path = self.room.view_path(self.id);
        std::fs::write(&path, bytes).unwrap();
        let began = Instant::now();
        let loaded = self.load();
        if let Ok(text) = std::str::from_utf8(bytes) {
            let imported = import(&self.room.quiet(), text, &options());
            if let Err(error) = &imported {
                // What looks like an export and is none is told apart from a damaged session.
                let foreign = bytes.starts_with(b"{");
                assert!(foreign || !matches!(error, Error::NotImportable(_)), "{error}");
            }
            assert_eq!(imported.is_err(), loaded.is_err(), "{loaded:?} {imported:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        loaded
    }

    fn load(&self) -> Result<(), String> {
        match self.room.manager().load(&self.id.to_string()) {
            Ok(found) => {
                assert!(found.is_none(), "a view is not a session until somebody imports it");
                Ok(())
            }
            Err(Error::SessionCorrupted { session_id, details }) => {
                assert_eq!(session_id, self.id.to_string());
                assert!(!details.is_empty() && !details.contains('\n'), "{details:?}");
                Err(details)
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// As short as a view can be.
const GOOD: &str = "\
# a comment
session_id: session_20260101_000000_000000
uid: 0190f5a0-c0de-7000-8000-00000000beef
state: active
attempt_number: 1
created_at: 2026-01-01T00:00:00Z
updated_at: 2026-01-01T00:00:01Z
token_budget:
  total_budget: 100000
  tokens_used: 5
artifacts: []
history:
  - timestamp: 2026-01-01T00:00:00Z
    action: session_created
";

#[test]
fn a_good_view_is_no_error() {
    assert_eq!(Damaged::new().complaint(GOOD.as_bytes()), Ok(()));
}

#[rstest]
#[case::not_yaml("state: active", "state: [active", "line ")]
#[case::tab("  total_budget", "\ttotal_budget", "line ")]
#[case::unknown_status("state: active", "state: expired", "line 4: ")]
#[case::status_of_wrong_kind("state: active", "state: [active]", "line 4: ")]
#[case::bad_date("created_at: 2026-01-01T00:00:00Z", "created_at: yesterday", "line 6: ")]
#[case::impossible_date("created_at: 2026-01-01T00", "created_at: 2026-02-30T00", "line 6: ")]
#[case::future("updated_at: 2026-01", "updated_at: 2036-01", "line 7: updated_at lies in the future")]
#[case::backwards("updated_at: 2026", "updated_at: 2025", "line 7: updated_at is before created_at")]
#[case::bad_id("session_id: session_2026", "session_id: ../../x_2026", "line 2: ")]
#[case::bad_uid("uid: 0190", "uid: zzzz", "line 3: ")]
#[case::negative("tokens_used: 5", "tokens_used: -5", "line 10: ")]
#[case::too_large("tokens_used: 5", "tokens_used: 99999999999999999999999", "line 10: ")]
#[case::no_number("tokens_used: 5", "tokens_used: many", "line 10: ")]
#[case::no_budget("total_budget: 100000", "total_budget: 0", "line 8: total_budget must be more than 0")]
#[case::no_attempt("attempt_number: 1", "attempt_number: 0", "line 5: attempt_number must be more than 0")]
#[case::list_of_wrong_kind("artifacts: []", "artifacts: none", "line 11: ")]
#[case::twice("attempt_number: 1", "attempt_number: 1\nattempt_number: 2", "line ")]
#[case::ended_without_end("state: active", "state: active\ncompleted_at: 2026-01-01T00:00:00Z", "line 5: ")]
#[case::two_documents("# a comment", "a: b\n---\n", "line ")]
#[case::row_without_time("  - timestamp: 2026-01-01T00:00:00Z\n    action", "  - action", "line 13: ")]
#[case::row_with_bad_time("  - timestamp: 2026", "  - timestamp: 20x6", "line 13: ")]
#[case::row_of_wrong_kind("artifacts: []", "artifacts:\n  - path: x\n    artifact_type: eaten", "line 13: ")]
#[case::row_that_is_none("artifacts: []", "artifacts:\n  - x", "line 12: ")]
#[case::other_list("artifacts: []", "artifacts: []\noutputs: 7", "line 12: ")]
fn damage_is_said_with_its_line(#[case] from: &str, #[case] to: &str, #[case] wanted: &str) {
    let text = GOOD.replacen(from, to, 1);
    assert_ne!(text, GOOD);
    let details = Damaged::new().complaint(text.as_bytes()).unwrap_err();
    assert!(details.starts_with(wanted), "{details}");
}

#[test]
fn every_required_field_is_missed_when_it_is_not_there() {
    let damaged = Damaged::new();
    for field in [
        "session_id",
        "state",
        "attempt_number",
        "created_at",
        "updated_at",
        "total_budget",
        "tokens_used",
        "artifacts",
    ] {
        let without: Vec<&str> = GOOD.lines().filter(|line| !line.trim().starts_with(field)).collect();
        let details = damaged.complaint(without.join("\n").as_bytes()).unwrap_err();
        assert!(details.contains(field) && details.contains("missing"), "{field}: {details}");
    }
    let cut = |from: &str, to: &str| {
        let (start, end) = (GOOD.find(from).unwrap(), GOOD.find(to).unwrap_or(GOOD.len()));
        format!("{}{}", &GOOD[..start], &GOOD[end..])
    };
    for (text, field) in
        [(cut("token_budget", "artifacts"), "token_budget"), (cut("history", "\0"), "history")]
    {
        let details = damaged.complaint(text.as_bytes()).unwrap_err();
        assert!(details.contains(field), "{details}");
    }
    let empty = format!("{}history: []\n", cut("history", "\0"));
    assert_eq!(damaged.complaint(empty.as_bytes()).unwrap_err(), "line 12: the history is empty");
}

#[rstest]
#[case::empty(b"")]
#[case::blank(b"  \n\n \n")]
#[case::only_comments(b"# one\n# two\n")]
#[case::only_a_document_mark(b"---\n...\n")]
#[case::a_list(b"- a\n- b\n")]
#[case::a_word(b"word\n")]
#[case::null(b"null\n")]
#[case::json(b"{\"a\": 1}")]
#[case::binary(b"\x7fELF\x02\x01\x01\0\0\0\0\0\xff\xfe\x00\x80")]
#[case::not_utf8(b"session_id: x\nstate: \xff\xfe\n")]
#[case::nul(b"session_id: a\0b\n")]
#[case::tag(b"!!python/object:os.system [rm]\n")]
fn what_is_no_view_is_said(#[case] bytes: &[u8]) {
    Damaged::new().complaint(bytes).unwrap_err();
}

#[test]
fn text_that_is_not_utf8_is_said_with_its_line() {
    let details = Damaged::new().complaint(b"session_id: x\nstate: \xff\xfe\n").unwrap_err();
    assert_eq!(details, "line 2: it is not UTF-8 text");
}

/// Nine levels of nine: a billion texts if anybody unfolded them.
#[rstest]
#[case::wide(9, 9)]
#[case::within_the_number_of_aliases(8, 8)]
#[case::binary(60, 2)]
fn laughs_are_not_unfolded(#[case] levels: usize, #[case] width: usize) {
    let mut text = "a0: &a0 [lol]\n".to_owned();
    for level in 1..=levels {
        let inner = vec![format!("*a{}", level - 1); width].join(", ");
        writeln!(text, "a{level}: &a{level} [{inner}]").unwrap();
    }
    // Where it is read, not skipped.
    let text = GOOD.replacen("artifacts: []", &format!("{text}artifacts: [*a{levels}]"), 1);
    Damaged::new().complaint(text.as_bytes()).unwrap_err();
}

#[rstest]
#[case::flow("[", "]")]
#[case::maps("{a: ", "}")]
#[case::open_only("[", "")]
#[case::block("- ", "")]
#[case::questions("? ", "")]
fn deep_nesting_does_not_run_over(#[case] open: &str, #[case] close: &str) {
    let deep = format!("{}x{}", open.repeat(100_000), close.repeat(100_000));
    for text in [deep.clone(), GOOD.replacen("artifacts: []", &format!("artifacts:\n  {deep}"), 1)] {
        Damaged::new().complaint(text.as_bytes()).unwrap_err();
    }
}

#[test]
fn a_file_of_a_gigabyte_is_not_read() {
    let damaged = Damaged::new();
    let path = damaged.room.view_path(damaged.id);
    std::fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let began = Instant::now();
    let details = damaged.load().unwrap_err();
    assert!(details.contains("1073741824 bytes"), "{details}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 30);
}

#[test]
fn a_view_cut_anywhere_is_an_error_or_a_shorter_view_but_never_a_panic() {
    let room = Room::new();
    let text = std::fs::read_to_string(full_session(&room).save().unwrap()).unwrap();
    let now = segno_core::Timestamp::from_micros(i64::MAX);
    let uid = segno_core::Uid::new(uuid::Uuid::from_u128(7));
    let mut errors = 0;
    for length in (0..text.len()).step_by(50).filter(|length| text.is_char_boundary(*length)) {
        match segno_engine::view::read(&text[..length], now, uid) {
            // Cut inside the lists that may be missing.
            Ok(read) => assert_eq!(read.state.session_id.to_string(), "session_20260116_100000_000000"),
            Err(why) => {
                assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
                errors += 1;
            }
        }
    }
    assert!(errors > 40, "{errors}");
    assert!(segno_engine::view::read(&text, now, uid).is_ok());
}

/// A view of ours with its lists full can be read back.
#[test]
fn a_view_with_full_lists_is_not_too_much() {
    let mut text = GOOD.to_owned();
    for number in 0..10_000 {
        writeln!(
            text,
            "  - timestamp: 2026-01-01T00:00:00Z\n    action: noted\n    phase: p\n    details: n{number}"
        )
        .unwrap();
    }
    text.push_str("tools:\n");
    for number in 0..10_000 {
        writeln!(
            text,
            "  - call: c{number}\n    tool: Bash\n    state: completed\n    ended_at: a\n    started_at: b\n    \
             phase: p\n    write_ahead: true\n    input:\n      command: make\n      timeout: 60"
        )
        .unwrap();
    }
    let now = segno_core::Timestamp::from_micros(i64::MAX);
    let uid = segno_core::Uid::new(uuid::Uuid::from_u128(7));
    let read = segno_engine::view::read(&text, now, uid).map_err(|why| panic!("{why}")).unwrap();
    let tools = read.lists.iter().find(|(list, _)| *list == segno_core::List::Tools).unwrap();
    assert_eq!(tools.1.len(), 10_000);
}
