//! What the measurements share: stores of a known size, and numbers that say something.

use std::path::Path;
use std::time::Duration;

use segno_core::Event;
use segno_core::EventKey;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::TokenBudget;
use segno_core::TokenUse;
use segno_core::Uid;
use segno_core::event::CallEnd;
use segno_core::event::CheckpointCreated;
use segno_core::event::CheckpointReason;
use segno_core::event::DriverAttached;
use segno_core::event::DriverDetached;
use segno_core::event::HistoryNoted;
use segno_core::event::Holder;
use segno_core::event::Maker;
use segno_core::event::Project;
use segno_core::event::SessionCreated;
use segno_core::event::Source;
use segno_core::event::TokensRecorded;
use segno_core::event::ToolEnded;
use segno_core::event::ToolStarted;
use segno_redact::Options;
use segno_redact::Redacted;
use segno_redact::Redactor;
use segno_store::Append;
use segno_store::Create;
use segno_store::Error;
use segno_store::OpenOptions as StoreOptions;
use segno_store::Purpose;
use segno_store::Store;
use segno_store::What;
use segno_store::sqlite::SqliteStore;

/// The moment every made-up session begins.
const START: i64 = 1_760_000_000_000_000;

fn redacted(event: Event) -> Redacted {
    let redactor = Redactor::new(Options::default());
    match redactor.record(event) {
        Ok(redacted) => redacted,
        Err(why) => fail(&why.to_string()),
    }
}

/// Ends a measurement that cannot go on.
#[expect(clippy::panic, reason = "a measurement that cannot go on must not give a number")]
pub fn fail<T>(why: &str) -> T {
    panic!("{why}")
}

/// The first event of a session in a project.
pub fn first_event(project: &str) -> Event {
    creation(SessionId::at(Timestamp::from_micros(START)), project)
}

fn creation(id: SessionId, project: &str) -> Event {
    let created = segno_core::create(SessionCreated {
        topic: Some("a session to measure with".to_owned()),
        project: Project { path: project.to_owned(), name: "bench".to_owned(), kind: None },
        phase: Some("GREEN".to_owned()),
        budget: TokenBudget { total_budget: u64::MAX, ..TokenBudget::default() },
        ..SessionCreated::new(id, Uid::new(uuid::Uuid::now_v7()), Maker::New)
    });
    match created {
        Ok(event) => event,
        Err(why) => fail(&why.to_string()),
    }
}

/// A note of so many bytes without anything secret in it.
pub fn note(bytes: usize) -> Event {
    let words = "the build passes and the tests of the login form are green again; ";
    let details: String = words.chars().cycle().take(bytes).collect();
    HistoryNoted { action: "note".to_owned(), phase: None, details: Some(details.into()) }.into()
}

/// Opens a store as a short process does.
pub fn open(path: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open(path, StoreOptions { purpose: Purpose::OneShot, ..StoreOptions::default() })
}

/// Makes a session in a project.
pub fn add_session(store: &dyn Store, project: &str, number: u64) -> Result<SessionId, Error> {
    let at = Timestamp::from_micros(START + i64::try_from(number).unwrap_or(0) * 1_000_003);
    let project = project.to_owned();
    let create = Create {
        at,
        key: EventKey::unique(uuid::Uuid::now_v7()),
        first: Box::new(move |id| Ok(vec![redacted(creation(id, &project))])),
        wish: SessionId::at(at),
        alone_in: None,
    };
    Ok(store.create(create)?.state.session_id)
}

/// Brings a session to `events` events: token counts and notes, as a journal has them.
pub fn fill(path: &Path, session: SessionId, events: u64) -> Result<(), Error> {
    let store =
        SqliteStore::open(path, StoreOptions { purpose: Purpose::LongLived, ..StoreOptions::default() })?;
    let count = redacted(
        TokensRecorded { tokens: TokenUse::of(1), estimated: false, source: Source::Hand, below: None }
            .into(),
    );
    let noted = redacted(note(200));
    let mut seq = store.load(session)?.state.seq;
    while seq < events {
        let size = (events - seq).min(4_000);
        let batch = (0..size).map(|index| {
            let event = if index % 10 == 0 { noted.clone() } else { count.clone() };
            let at = Timestamp::from_micros(START + i64::try_from(seq + index).unwrap_or(0));
            Append::new(session, EventKey::unique(uuid::Uuid::now_v7()), at, What::Facts(vec![event]))
        });
        for result in store.append(batch.collect()) {
            seq = result?.last;
        }
    }
    store.maintain()
}

/// Brings a session to `events` events: tool calls that have all ended, and now and then a checkpoint.
pub fn fill_with_calls(path: &Path, session: SessionId, events: u64) -> Result<(), Error> {
    let store =
        SqliteStore::open(path, StoreOptions { purpose: Purpose::LongLived, ..StoreOptions::default() })?;
    let mut seq = store.load(session)?.state.seq;
    let (mut number, mut ordinal) = (0_u64, 0);
    while seq < events {
        let mut batch = Vec::new();
        let mut add = |event: Event| {
            let key = EventKey::unique(uuid::Uuid::now_v7());
            let at = Timestamp::from_micros(START + i64::try_from(seq).unwrap_or(0));
            batch.push(Append::new(session, key, at, What::Facts(vec![redacted(event)])));
        };
        for _ in 0..((events - seq) / 2).clamp(1, 2_000) {
            number += 1;
            let call = format!("toolu_{number:012}");
            let input = serde_json::json!({ "command": format!("cargo test --test part_{number}") });
            let source = Source::Hook;
            let tool = "Bash".to_owned();
            add(ToolStarted { call: call.clone(), tool, input, write_ahead: true, source, recurs: true }
                .into());
            let output = Some("test result: ok. 12 passed; 0 failed".into());
            let end = CallEnd::Completed;
            add(ToolEnded { call, tool: None, end, output, source, evidence: None, recurs: true }.into());
            if number % 1_000 == 0 {
                ordinal += 1;
                add(CheckpointCreated {
                    id: segno_core::CheckpointId::new(ordinal, "tool"),
                    ordinal,
                    name: "tool".to_owned(),
                    reason: CheckpointReason::ToolCount,
                    tool_count: number,
                    progress: None,
                }
                .into());
            }
        }
        for result in store.append(batch) {
            seq = result?.last;
        }
    }
    store.maintain()
}

/// Opens a store as the driver of a session does, and says so in the session.
pub fn attach(path: &Path, session: SessionId) -> Result<SqliteStore, Error> {
    let store =
        SqliteStore::open(path, StoreOptions { purpose: Purpose::LongLived, ..StoreOptions::default() })?;
    let text = || "bench".to_owned();
    let holder = Holder {
        host: text(),
        pid_namespace: text(),
        boot_id: text(),
        pid: 1,
        process_start: 1,
        what: text(),
    };
    say(&store, session, DriverAttached { epoch: 1, holder }.into())?;
    Ok(store)
}

/// Says that nobody drives it any more.
pub fn detach(path: &Path, session: SessionId) -> Result<(), Error> {
    say(&open(path)?, session, DriverDetached { epoch: 1 }.into())
}

/// Ends calls that hooks have begun.
pub fn end_calls(store: &dyn Store, session: SessionId, calls: &[String]) -> Result<(), Error> {
    for call in calls {
        let (call, end, source) = (call.clone(), CallEnd::Completed, Source::Hook);
        say(
            store,
            session,
            ToolEnded { call, tool: None, end, output: None, source, evidence: None, recurs: true }.into(),
        )?;
    }
    Ok(())
}

/// Records a note, now.
pub fn say_note(store: &dyn Store, session: SessionId) -> Result<(), Error> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let at = Timestamp::from_micros(i64::try_from(now.as_micros()).unwrap_or(START));
    say_at(store, session, note(80), at)
}

fn say(store: &dyn Store, session: SessionId, event: Event) -> Result<(), Error> {
    say_at(store, session, event, Timestamp::from_micros(START))
}

fn say_at(store: &dyn Store, session: SessionId, event: Event, at: Timestamp) -> Result<(), Error> {
    let key = EventKey::unique(uuid::Uuid::now_v7());
    let append = Append::new(session, key, at, What::Facts(vec![redacted(event)]));
    store.append(vec![append]).pop().map_or(Ok(()), |result| result.map(drop))
}

/// Several measurements of one thing.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// One more.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The value below which the given share of them lies.
    pub fn at(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        let last = sorted.len().saturating_sub(1);
        sorted.get(((last as f64) * share).round() as usize).copied().unwrap_or_default()
    }

    /// The middle one.
    pub fn median(&self) -> Duration {
        self.at(0.5)
    }

    /// Minimum, median, 90th and 99th percentile, in milliseconds.
    pub fn line(&self) -> String {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        format!(
            "min {:7.3}  median {:7.3}  p90 {:7.3}  p99 {:7.3} ms",
            ms(self.at(0.0)),
            ms(self.median()),
            ms(self.at(0.9)),
            ms(self.at(0.99))
        )
    }
}
