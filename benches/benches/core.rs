//! The pure parts of an append: decide, fold, project, encode, chain, redact.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use criterion::Criterion;
use criterion::criterion_group;
use criterion::criterion_main;
use segno_core::Event;
use segno_core::Fact;
use segno_core::Mark;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_core::event::Source;
use segno_redact::Options;
use segno_redact::Redactor;
use std::hint::black_box;

fn session() -> State {
    let event = segno_benches::first_event("bench");
    State::begin(&Mark { seq: 1, at: Timestamp::from_micros(1), run: None }, &event).unwrap()
}

fn tokens() -> Fact {
    Fact::TokensRecorded { tokens: TokenUse::of(1), estimated: false, source: Source::Hand }
}

fn benches(c: &mut Criterion) {
    let state = session();
    c.bench_function("decide and fold one token count", |b| {
        b.iter(|| {
            let mut state = state.clone();
            for event in segno_core::decide(&state, black_box(tokens())).unwrap() {
                state.apply(&Mark { seq: state.seq + 1, at: state.updated_at, run: None }, &event);
            }
            state
        });
    });
    let event = segno_core::decide(&state, tokens()).unwrap().remove(0);
    let encoded = event.encode();
    c.bench_function("encode an event", |b| b.iter(|| black_box(&event).encode()));
    c.bench_function("decode an event", |b| {
        b.iter(|| Event::decode(&encoded.kind, encoded.version, black_box(&encoded.body)).unwrap());
    });
    let json = serde_json::to_string(&state).unwrap();
    c.bench_function("write a state", |b| b.iter(|| serde_json::to_string(black_box(&state)).unwrap()));
    c.bench_function("read a state", |b| b.iter(|| serde_json::from_str::<State>(black_box(&json)).unwrap()));
    let redactor = Redactor::new(Options::default());
    let note = segno_benches::note(2_000);
    c.bench_function("redact a 2 kB note", |b| b.iter(|| redactor.record(black_box(note.clone())).unwrap()));
}

criterion_group!(group, benches);
criterion_main!(group);
