//! What is written can be read, and says the same.

use proptest::prelude::*;
use segno_core::State;
use segno_core::Status;
use segno_layouts::Family;
use segno_layouts::FileSet;

use crate::samples;

const WRITTEN: [Family; 4] = [Family::Prp, Family::AgentForge, Family::GoTeam, Family::UltraCreate];

fn there_and_back(family: Family, state: &State) -> State {
    let written = segno_layouts::write(family, &samples::snapshot(state), &FileSet::default()).unwrap();
    let files = FileSet::from_iter(written);
    let main = segno_layouts::main_file(family, &samples::snapshot(state));
    let looked = segno_layouts::Facts::of(family, &main, files.get(&main).unwrap());
    assert_eq!(looked.edit, segno_layouts::ForeignEdit::None, "{family}");
    assert_eq!(segno_layouts::recognise(files.names()), Some(family));
    let mut read = segno_layouts::read(family, &files, samples::now()).unwrap();
    assert_eq!(read.warnings, Vec::<String>::new(), "{family}");
    assert_eq!(read.sessions.len(), 1, "{family}");
    let session = read.sessions.remove(0);
    assert_eq!(session.warnings, Vec::<String>::new(), "{family}");
    session.state
}

#[test]
fn a_session_comes_back_the_same_from_every_family() {
    for state in [samples::fresh(), samples::full()] {
        for family in WRITTEN {
            assert_eq!(there_and_back(family, &state), state, "{family}");
        }
    }
}

#[test]
fn every_status_comes_back_from_every_family() {
    for status in Status::ALL {
        let mut state = samples::full();
        state.status = status;
        state.completed_at = status.is_terminal().then_some(state.updated_at);
        for family in WRITTEN {
            assert_eq!(there_and_back(family, &state).status, status, "{family}");
        }
    }
}

#[test]
fn writing_twice_gives_the_same_bytes() {
    let state = samples::full();
    for family in WRITTEN {
        let first = segno_layouts::write(family, &samples::snapshot(&state), &FileSet::default()).unwrap();
        let files = FileSet::from_iter(first.clone());
        let second = segno_layouts::write(family, &samples::snapshot(&state), &files).unwrap();
        assert_eq!(first.len(), second.len(), "{family}");
        for ((name, before), (_, after)) in first.iter().zip(&second) {
            assert_eq!(String::from_utf8_lossy(before), String::from_utf8_lossy(after), "{family} {name}");
        }
    }
}

/// What another program changes in a file of ours is told apart: where the session stands, something else, or nothing but
/// blanks.
#[test]
fn a_foreign_hand_is_noticed() {
    use segno_layouts::ForeignEdit;
    let state = samples::full();
    let cases = [
        (
            Family::Prp,
            "\"status\": \"suspended\"",
            "\"status\": \"paused\"",
            ForeignEdit::Status("paused".to_owned()),
        ),
        (Family::Prp, "\"current_phase\": \"GREEN\"", "\"current_phase\": \"RED\"", ForeignEdit::Other),
        (Family::Prp, "\n", "\n ", ForeignEdit::None),
        (Family::AgentForge, "\nstate: paused", "\nstate: active", ForeignEdit::Status("active".to_owned())),
        (Family::AgentForge, "attempt_number: 2", "attempt_number: 3", ForeignEdit::Other),
        (
            Family::UltraCreate,
            "\"status\": \"crashed\"",
            "\"status\": \"active\"",
            ForeignEdit::Status("active".to_owned()),
        ),
        (Family::GoTeam, "\"iteration_count\": 5", "\"iteration_count\": 6", ForeignEdit::Other),
    ];
    for (family, from, to, edit) in cases {
        let snapshot = samples::snapshot(&state);
        let written = segno_layouts::write(family, &snapshot, &FileSet::default()).unwrap();
        let main = segno_layouts::main_file(family, &snapshot);
        let (_, bytes) = written.iter().find(|(name, _)| *name == main).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.contains(from), "{family}: {from}");
        let looked = segno_layouts::Facts::of(family, &main, text.replacen(from, to, 1).as_bytes());
        assert_eq!(looked.edit, edit, "{family}: {to}");
    }
}

/// What a foreign tool put into its files and segno does not know is there after an import and a write: over the same
/// files, and into an empty folder.
#[test]
fn what_nobody_knows_survives() {
    let samples: [(Family, FileSet, &[&str]); 4] = [
        (
            Family::Prp,
            samples::prp(),
            &["\"green_model\": \"opus\"", "\"theme\": \"dark\"", "\"color\": \"yellow\"", "evaluated_at"],
        ),
        (Family::AgentForge, samples::agentforge(), &["owner: alice", "reserve: 100"]),
        (Family::GoTeam, samples::go_team(), &["\"owner\": \"alice\""]),
        (Family::UltraCreate, samples::ultra_create(), &["\"theme\": \"dark\"", "\"team\": \"blue\""]),
    ];
    for (family, files, kept) in samples {
        let read = segno_layouts::read(family, &files, samples::now()).unwrap();
        let session = &read.sessions[0];
        let lists = session.lists.iter().cloned().collect();
        let snapshot = segno_layouts::Snapshot {
            state: &session.state,
            lists,
            save_trigger: "auto".to_owned(),
            record: None,
            branch: None,
            then: Default::default(),
            changed: 0,
            ultra_create: Default::default(),
        };
        for existing in [files, FileSet::default()] {
            let written = segno_layouts::write(family, &snapshot, &existing).unwrap();
            let all: String =
                written.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect();
            for word in kept {
                assert!(all.contains(word), "{family}: {word} is gone from\n{all}");
            }
        }
    }
}

/// The name that a session had in its family stays its name there.
#[test]
fn a_foreign_session_keeps_its_name() {
    let samples = [
        (Family::Prp, samples::prp(), "\"session_id\": \"a1b2c3d4-0000-4000-8000-000000000001\""),
        (Family::AgentForge, samples::agentforge(), "session_id: session_20251230_101530_a1b2c3\n"),
        (Family::GoTeam, samples::go_team(), "\"session_id\": \"session-abc123\""),
        (
            Family::UltraCreate,
            samples::ultra_create(),
            "\"session_id\": \"5f0c1d2e-0000-4000-8000-0000000000aa\"",
        ),
    ];
    for (family, files, name) in samples {
        let read = segno_layouts::read(family, &files, samples::now()).unwrap();
        let state = &read.sessions[0].state;
        let written = segno_layouts::write(family, &samples::snapshot(state), &FileSet::default()).unwrap();
        let all: String =
            written.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect();
        assert!(all.contains(name), "{family}: {name} is not in\n{all}");
    }
}

/// Other sessions of a registry are not ours to change.
#[test]
fn entries_of_others_stay_in_the_registry() {
    let existing = samples::go_team();
    let state = samples::full();
    let written = segno_layouts::write(Family::GoTeam, &samples::snapshot(&state), &existing).unwrap();
    let (name, bytes) = written.last().unwrap();
    assert_eq!(name, "sessions.json");
    let registry: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    let before: serde_json::Value = serde_json::from_slice(existing.get("sessions.json").unwrap()).unwrap();
    assert_eq!(registry["sessions"][0], before["sessions"][0]);
    assert_eq!(registry["sessions"][1], before["sessions"][1]);
    assert_eq!(registry["sessions"][2]["id"], registry["last_active_session"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever people call things.
    #[test]
    fn any_text_comes_back(topic in "\\PC{1,60}", action in "\\PC{0,60}", iteration in 0_u64..1_000_000, tokens in 0_u64..1_000_000_000) {
        let mut state = samples::full();
        state.topic = Some(topic);
        state.last_action = Some(action);
        state.iteration = iteration;
        state.budget.tokens_used = tokens;
        for family in WRITTEN {
            prop_assert_eq!(&there_and_back(family, &state), &state);
        }
    }

    /// Bytes of any kind are an error or a session, never a panic.
    #[test]
    fn any_bytes_are_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200), which in 0_usize..6) {
        let family = Family::ALL[which];
        let name = match family {
            Family::Prp => "loop-state.json",
            Family::AgentForge => "session.yaml",
            Family::GoTeam => "sessions.json",
            Family::UltraCreate => "current-session.json.gz",
            Family::Ralph => ".ralph_session",
            Family::Atari => "state.json",
        };
        let files = FileSet::from_iter([(name, bytes)]);
        let _ = segno_layouts::read(family, &files, samples::now());
    }
}
