//! The files of each family for a session that went through every feature, as golden files.

use segno_layouts::Family;
use segno_layouts::FileSet;

use crate::samples;

fn golden(family: Family) -> String {
    let state = samples::full();
    let written = segno_layouts::write(family, &samples::snapshot(&state), &FileSet::default()).unwrap();
    let mut text = String::new();
    for (name, bytes) in written {
        text.push_str(&format!("==> {name}\n"));
        match name.strip_suffix(".gz") {
            Some(_) => {
                let plain = segno_layouts::gunzip(&name, &bytes).unwrap();
                text.push_str(&format!("({} bytes when unpacked)\n", plain.len()));
            }
            None => text.push_str(&String::from_utf8(bytes).unwrap()),
        }
    }
    text
}

#[test]
fn prp() {
    insta::assert_snapshot!(golden(Family::Prp));
}

#[test]
fn agentforge() {
    insta::assert_snapshot!(golden(Family::AgentForge));
}

#[test]
fn go_team() {
    insta::assert_snapshot!(golden(Family::GoTeam));
}

#[test]
fn ultra_create() {
    insta::assert_snapshot!(golden(Family::UltraCreate));
}

/// Where no limit is in force the file, which has no word for that, never says that one is reached.
#[test]
fn a_limit_that_is_not_there_is_never_reached() {
    for (limit, made, expected) in [(Some(50), 7, 50), (None, 7, 100), (None, 250, 251)] {
        let mut state = samples::full();
        let looping = state.looping.as_mut().unwrap();
        (looping.plan.own.calls_per_hour, looping.hour.calls) = (limit, made);
        let written = segno_layouts::write(Family::Prp, &samples::snapshot(&state), &FileSet::default());
        let files = FileSet::from_iter(written.unwrap());
        let limits: serde_json::Value =
            serde_json::from_slice(files.get("rate-limit.json").unwrap()).unwrap();
        assert_eq!(
            (&limits["hourly"]["calls_made"], &limits["hourly"]["limit"]),
            (&made.into(), &expected.into())
        );
    }
}

#[test]
fn a_phase_that_prp_does_not_know_is_not_written() {
    let mut state = samples::full();
    state.phase = Some("build".to_owned());
    let refused =
        segno_layouts::write(Family::Prp, &samples::snapshot(&state), &FileSet::default()).unwrap_err();
    assert_eq!(
        refused,
        "the phase build is none of RED, GREEN, REFACTOR, DOCUMENT, QA, so these files cannot say where it stands"
    );
}

#[test]
fn a_session_without_a_phase_is_not_written_as_prp() {
    let mut state = samples::full();
    state.phase = None;
    let refused =
        segno_layouts::write(Family::Prp, &samples::snapshot(&state), &FileSet::default()).unwrap_err();
    assert_eq!(refused, "it has no phase, and these files need one of RED, GREEN, REFACTOR, DOCUMENT, QA");
}

#[test]
fn ralph_and_atari_are_only_read() {
    let state = samples::full();
    for family in [Family::Ralph, Family::Atari] {
        let refused =
            segno_layouts::write(family, &samples::snapshot(&state), &FileSet::default()).unwrap_err();
        assert_eq!(refused, format!("{} is only read", family.title()));
    }
}

/// A checkpoint file is written once; a rollback later changes its validity and nothing else.
#[test]
fn a_checkpoint_file_stays_as_it_was_made() {
    let mut state = samples::full();
    let first =
        segno_layouts::write(Family::GoTeam, &samples::snapshot(&state), &FileSet::default()).unwrap();
    let files = FileSet::from_iter(first.clone());
    state.metrics.clear();
    state.topic = Some("something else".to_owned());
    let second = segno_layouts::write(Family::GoTeam, &samples::snapshot(&state), &files).unwrap();
    assert_eq!(first[0], second[0]);
    assert_ne!(first.last(), second.last());
}
