use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

use super::samples::at;
use super::samples::bare_state;
use super::samples::full_state;
use super::samples::samples;
use super::*;
use crate::budget::TokenUse;
use crate::command::Command;
use crate::decide::decide;
use crate::fact::Fact;
use crate::refusal::Refusal;
use crate::state::Applied;
use crate::state::FoldError;
use crate::state::Mark;
use crate::state::State;

fn mark(seq: u64) -> Mark {
    Mark { seq, at: at(seq.try_into().unwrap()), run: None }
}

#[test]
fn every_kind_has_a_sample() {
    let samples = samples();
    let sampled: BTreeSet<(&str, u32)> =
        samples.iter().map(|event| (event.kind(), event.version())).collect();
    let known: BTreeSet<(&str, u32)> = KINDS.iter().copied().collect();
    assert_eq!(sampled, known);
    assert_eq!(known.len(), KINDS.len(), "a kind is listed twice");
}

#[test]
fn kinds_are_the_variants_names() {
    for event in samples() {
        let debug = format!("{event:?}");
        let variant = debug.split('(').next().unwrap();
        let snake: String = variant
            .chars()
            .enumerate()
            .flat_map(|(i, c)| (c.is_uppercase() && i > 0).then_some('_').into_iter().chain(c.to_lowercase()))
            .collect();
        assert_eq!(event.kind(), snake);
    }
}

/// The stored form is frozen. A line that changes here is a journal that older programs, or this one, can no
/// longer read: add a field that may be missing, or a new version of the kind, instead.
#[test]
fn stored_form() {
    let mut out = String::new();
    for event in samples() {
        let Encoded { kind, version, body } = event.encode();
        writeln!(out, "{kind} v{version} {body}").unwrap();
    }
    insta::assert_snapshot!(out);
}

#[test]
fn what_was_stored_reads_back() {
    for event in samples() {
        let Encoded { kind, version, body } = event.encode();
        assert_eq!(Event::decode(&kind, version, &body).unwrap(), event, "{body}");
        assert_eq!(event.to_value(), serde_json::from_str::<Value>(&body).unwrap());
    }
}

#[test]
fn a_field_that_a_newer_program_added_is_ignored() {
    for event in samples() {
        let mut body = event.to_value();
        body["zz_added_later"] = json!({ "deep": [1, 2, { "er": null }] });
        let read = Event::decode(event.kind(), event.version(), &body.to_string()).unwrap();
        assert_eq!(read, event, "{body}");
    }
}

#[test]
fn a_field_that_an_older_program_did_not_write_may_be_missing() {
    let mut shortened = 0;
    for event in samples() {
        let mut body = event.to_value();
        let fields = body.as_object_mut().unwrap();
        let before = fields.len();
        // `state` and `value` hold JSON of others, where null is a value.
        fields.retain(|name, value| !value.is_null() || matches!(name.as_str(), "state" | "value"));
        shortened += before - fields.len();
        let read = Event::decode(event.kind(), event.version(), &body.to_string()).unwrap();
        assert_eq!(read, event, "{body}");
    }
    assert!(shortened > 30, "the sparse samples have gone: {shortened}");
}

#[test]
fn an_imported_state_may_lack_all_that_can_be_empty() {
    let mut body = serde_json::to_value(bare_state()).unwrap();
    let fields = body.as_object_mut().unwrap();
    for name in ["tokens", "warned", "tasks", "decisions", "calls", "errors", "counts"] {
        assert!(fields.remove(name).is_some(), "{name}");
    }
    for name in ["actions_since_checkpoint", "late", "unknown"] {
        assert!(fields.remove(name).is_some(), "{name}");
    }
    let mut bare = bare_state();
    bare.counts.history = 0;
    assert_eq!(serde_json::from_value::<State>(body).unwrap(), bare);
}

#[rstest::rstest]
#[case("topic_set", "")]
#[case("topic_set", "{")]
#[case("topic_set", "{}")]
#[case("topic_set", "null")]
#[case("topic_set", r#"{"topic":7}"#)]
#[case("topic_set", r#"{"topic":"a"} x"#)]
#[case("topic_set", r#"["a"]"#)]
#[case("session_completed", "[null]")]
#[case("session_completed", r#"{"summary":7}"#)]
#[case("session_completed", r#"{"summary":{"bytes":1,"excerpt":"no hash"}}"#)]
#[case("tokens_recorded", r#"{"tokens":{"input":-1},"estimated":false,"source":"hand"}"#)]
#[case("tokens_recorded", r#"{"tokens":{"input":1.5},"estimated":false,"source":"hand"}"#)]
#[case("progress_set", r#"{"percent":256}"#)]
#[case("metric_set", r#"{"name":"n","value":null}"#)]
#[case("metric_set", r#"{"name":"n","value":"87"}"#)]
#[case("checkpoint_created", r#"{"id":"../x","ordinal":1,"name":"x","reason":"asked","tool_count":0}"#)]
#[case("made_by_a_newer_segno", "{")]
fn a_malformed_body_is_an_error(#[case] kind: &str, #[case] body: &str) {
    let error = Event::decode(kind, 1, body).unwrap_err();
    assert_eq!((error.kind.as_str(), error.version), (kind, 1));
    assert!(error.to_string().starts_with(&format!("event {kind} v1 cannot be read: ")), "{error}");
}

#[rstest::rstest]
#[case("dream_dreamt", 1)]
#[case("topic_set", 2)]
#[case("session_paused", 4_000_000_000)]
fn what_a_newer_segno_recorded_is_kept_and_skipped(#[case] kind: &str, #[case] version: u32) {
    let body = r#"{"about":["sheep",1.5,null],"deep":{"er":true},"long":18446744073709551615}"#;
    let event = Event::decode(kind, version, body).unwrap();
    let Event::Unknown(unknown) = &event else { panic!("{event:?}") };
    assert_eq!((unknown.kind.as_str(), unknown.version), (kind, version));
    assert_eq!((event.kind(), event.version()), (kind, version));
    assert_eq!(event.encode(), Encoded { kind: kind.into(), version, body: body.into() });
    assert_eq!(event.to_value(), serde_json::from_str::<Value>(body).unwrap());

    let before = bare_state();
    let mut state = before.clone();
    assert_eq!(state.apply(&mark(2), &event), Applied::Skipped);
    let rows = crate::project::project(&state, &mark(2), &event, Applied::Skipped);
    assert_eq!(rows, vec![]);
    // Only that it was there is known.
    assert_eq!(state, State { seq: 2, updated_at: mark(2).at, unknown: 1, ..before });
}

#[rstest::rstest]
#[case("checkpoint_created", r#"{"checkpoint":"cp-01-x","reason":"before_a_push"}"#)]
#[case("session_paused", r#"{"reason":"bored"}"#)]
fn a_word_that_only_a_newer_segno_knows_is_kept_and_skipped(#[case] kind: &str, #[case] body: &str) {
    let event = Event::decode(kind, 1, body).unwrap();
    let Event::Unknown(unknown) = &event else { panic!("{event:?}") };
    assert_eq!((unknown.kind.as_str(), unknown.version), (kind, 1));
    let mut state = bare_state();
    assert_eq!(state.apply(&mark(2), &event), Applied::Skipped);
    assert_eq!(state.unknown, 1);
}

#[test]
fn unknown_events_forbid_driving_but_not_recording() {
    let mut state = bare_state();
    let event = Event::decode("dream_dreamt", 1, "{}").unwrap();
    state.apply(&mark(2), &event);
    state.apply(&mark(3), &event);
    let attach = Command::AttachDriver { epoch: 1, holder: Holder::default() };
    assert_eq!(decide(&state, attach.clone()), Err(Refusal::NewerEvents { count: 2 }));
    let tokens = TokenUse::of(10);
    let record = Fact::TokensRecorded { tokens, estimated: false, source: Source::Hand };
    let recorded = TokensRecorded { tokens, estimated: false, source: Source::Hand, below: None };
    assert_eq!(decide(&state, record), Ok(vec![recorded.into()]));
    assert!(decide(&bare_state(), attach).is_ok());
}

#[test]
fn only_two_kinds_begin_a_session() {
    for event in samples() {
        let begun = State::begin(&mark(1), &event);
        if matches!(event, Event::SessionCreated(_) | Event::SessionImported(_)) {
            assert!(begun.is_ok());
        } else {
            assert_eq!(begun, Err(FoldError::NoBeginning(event.kind().to_owned())));
        }
    }
    let newer = Event::decode("session_created", 2, "{}").unwrap();
    let error = State::begin(&mark(1), &newer).unwrap_err();
    assert_eq!(error.to_string(), "the first event is session_created v2, which makes no session");
}

/// Facts come in any order when several processes write: the fold takes every event in every state.
#[test]
fn the_fold_takes_everything() {
    for mut state in [bare_state(), full_state()] {
        for (seq, event) in (100..).zip(samples()) {
            state.apply(&mark(seq), &event);
            assert_eq!(state.seq, seq);
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state, "{event:?}");
        }
    }
}
