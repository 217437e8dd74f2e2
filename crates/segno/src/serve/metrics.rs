//! Numbers for programs that watch: as Prometheus reads them, and sent to a collector of OpenTelemetry.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use segno_engine::Engine;
use segno_engine::core::SessionId;
use segno_engine::core::Timestamp;
use segno_engine::metrics::ALL;
use segno_engine::metrics::Collector;
use segno_engine::metrics::Kind;
use segno_engine::metrics::Number;
use segno_engine::metrics::SUM;
use segno_engine::post::NotTaken;
use segno_engine::post::post_json;
use segno_files::Access;
use segno_files::Links;
use serde::Deserialize;
use serde::Serialize;
use tokio::sync::mpsc::UnboundedSender;

use super::app::App;
use super::app::is_no_store;
use super::otlp;
use super::problem::Problem;

/// Numbers that were read so long ago are read again before they are told.
const STALE: Duration = Duration::from_millis(500);
/// The file of what was told last is not larger.
const LARGEST: u64 = 16 << 20;
/// Runs that ended so long ago are not looked for again, in seconds.
const SETTLED: i64 = 3_600;
/// So many runs are remembered as told of.
const TRACED: usize = 10_000;

/// Who wants numbers.
pub(super) struct Metrics {
    /// Whether they are served at `/metrics`.
    pub(super) served: bool,
    /// To whom they are sent, and how often.
    sent: Option<(String, Duration)>,
    /// Where it stands what was told last.
    file: PathBuf,
    environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// To whoever has started the server.
    tell: UnboundedSender<String>,
    state: Mutex<Collected>,
}

#[derive(Default)]
struct Collected {
    collector: Option<Collector>,
    read: Option<Instant>,
    /// Runs that ended later are still to be told of.
    since: Option<Timestamp>,
    /// Those that have been told of, so that none is told of twice.
    traced: BTreeSet<String>,
    pending: BTreeSet<SessionId>,
    /// Why what was sent was not taken, since all was well.
    troubles: BTreeSet<String>,
    /// What stands in the file.
    written: Vec<u8>,
}

/// What was told last, so that no counter goes down when the server starts anew.
#[derive(Default, Serialize, Deserialize)]
struct Told {
    store: String,
    numbers: Vec<Number>,
    /// In microseconds since 1970.
    traced_until: Option<i64>,
}

impl Metrics {
    pub(super) fn new(
        served: bool,
        endpoint: &str,
        every: Duration,
        file: PathBuf,
        environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
        tell: UnboundedSender<String>,
    ) -> Self {
        let endpoint = endpoint.trim().trim_end_matches('/');
        let sent = (!endpoint.is_empty()).then(|| (endpoint.to_owned(), every));
        Self { served, sent, file, environment, tell, state: Mutex::default() }
    }

    /// Whether anybody wants numbers.
    pub(super) fn wanted(&self) -> bool {
        self.served || self.sent.is_some()
    }

    fn state(&self) -> MutexGuard<'_, Collected> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what changed, and tells every number.
    fn numbers(&self, engine: &Engine, state: &mut Collected) -> Result<Vec<Number>, Problem> {
        if state.collector.is_none() {
            let told = self.told_last().filter(|told| told.store == engine.store_id().to_string());
            let told = told.unwrap_or_default();
            let now = engine.now();
            state.since = Some(told.traced_until.map_or(now, Timestamp::from_micros));
            state.collector = Some(Collector::new(told.numbers));
        }
        let Some(collector) = &mut state.collector else { return Ok(Vec::new()) };
        if state.read.is_none_or(|at| at.elapsed() >= STALE) {
            collector.refresh(engine)?;
            state.read = Some(Instant::now());
        }
        let numbers = collector.numbers(engine.now());
        let told = Told {
            store: engine.store_id().to_string(),
            numbers: collector.told(),
            traced_until: state.since.map(Timestamp::as_micros),
        };
        // Who cannot write it tells the same; only a restart after a cleanup would not know of it.
        if let Ok(text) = serde_json::to_vec(&told)
            && text != state.written
            && segno_files::replace(&self.file, &text, Access::Private).is_ok()
        {
            state.written = text;
        }
        Ok(numbers)
    }

    fn told_last(&self) -> Option<Told> {
        let bytes = segno_files::read_bounded(&self.file, LARGEST, Links::Refuse).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    /// Sends what is to be sent, now. What could not be sent is sent with the next.
    fn send(&self, engine: &Engine, endpoint: &str) -> Result<(), Problem> {
        let now = engine.now();
        // Whoever asks for numbers does not wait for somebody else to answer.
        let (numbers, about, from, sessions) = {
            let mut state = self.state();
            let numbers = self.numbers(engine, &mut state)?;
            let Collected { collector: Some(collector), since, pending, .. } = &mut *state else {
                return Ok(());
            };
            let from = since.unwrap_or(now);
            pending.extend(collector.take_changed(from));
            let about = otlp::About { store: engine.store_id().to_string(), began: collector.oldest(), now };
            (numbers, about, from, std::mem::take(pending))
        };
        let mut runs = Vec::new();
        for session in &sessions {
            // One that cannot be read, or is gone, is not why the others are not told of.
            runs.extend(engine.runs_ended_since(*session, from).unwrap_or_default());
        }
        let post = |part: &str, body: String| {
            post_json(&format!("{endpoint}/v1/{part}"), None, &body, &self.environment)
        };
        // Who takes no numbers may take traces, and one that is not wanted is not why others are not told of.
        let mut refused = None;
        let mut take = |sent: Result<(), NotTaken>| match sent {
            Err(why @ NotTaken::Refused(_)) => {
                refused = Some(why);
                Ok(())
            }
            other => other,
        };
        let mut sent = take(post("metrics", otlp::metrics(&about, &numbers)));
        for run in &runs {
            let is_known = self.state().traced.contains(&run.run.run);
            if sent.is_ok() && !is_known {
                sent = take(post("traces", otlp::traces(&about, run)));
                if sent.is_ok() {
                    self.state().traced.insert(run.run.run.clone());
                }
            }
        }
        let mut state = self.state();
        let why = sent.as_ref().err().or(refused.as_ref()).map(ToString::to_string);
        match sent {
            // What is recorded late of a run that ended a little earlier is told of too.
            Ok(()) if state.traced.len() < TRACED => state.since = Some(from.max(now.plus_seconds(-SETTLED))),
            Ok(()) => {
                state.traced.clear();
                state.since = Some(now);
            }
            Err(_) => state.pending.extend(sessions),
        }
        let words = match why {
            // Each trouble is told of once, until all is well again.
            Some(why) if state.troubles.insert(why.clone()) => {
                format!("numbers and traces do not arrive at {endpoint}: {why}")
            }
            None if !state.troubles.is_empty() => {
                state.troubles.clear();
                format!("numbers and traces arrive at {endpoint} again")
            }
            Some(_) | None => return Ok(()),
        };
        tracing::warn!(words);
        // Nobody may be there who reads it.
        let _ = self.tell.send(words);
        Ok(())
    }
}

impl App {
    /// Counts for as long as the program runs: once at the beginning, which may take a while, and then whenever it is to be sent.
    pub(super) fn count(&self) {
        let Some((endpoint, every)) = self.metrics.sent.clone() else {
            let first = self.with_engine(|engine| {
                let mut state = self.metrics.state();
                self.metrics.numbers(engine, &mut state).map(drop)
            });
            // There may be no store yet: whoever asks next tries again.
            return drop(first);
        };
        loop {
            if let Err(why) = self.with_engine(|engine| self.metrics.send(engine, &endpoint))
                && !is_no_store(&why)
            {
                tracing::warn!(why = why.message, "nothing can be counted");
            }
            std::thread::sleep(every);
        }
    }
}

/// What Prometheus asks for.
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    if !app.metrics.served {
        return Err(Problem::not_found().hint("segno serve --metrics   serves numbers"));
    }
    let numbers = app
        .work(|app, engine| {
            let mut state = app.metrics.state();
            app.metrics.numbers(engine, &mut state)
        })
        .await;
    let numbers = match numbers {
        Err(problem) if is_no_store(&problem) => Vec::new(),
        other => other?,
    };
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text(&numbers)).into_response())
}

/// The numbers as Prometheus reads them.
fn text(numbers: &[Number]) -> String {
    let mut out = format!(
        "# HELP segno_build_info The program that tells these numbers\n# TYPE segno_build_info gauge\nsegno_build_info{{version=\"{}\"}} 1\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut last = None;
    for number in numbers {
        let family = number.name.family();
        if last != Some(number.name) {
            last = Some(number.name);
            let kind = match family.kind {
                Kind::Gauge => "gauge",
                Kind::Counter => "counter",
                Kind::Histogram => "histogram",
            };
            let _ = writeln!(out, "# HELP {0} {1}\n# TYPE {0} {kind}", family.name, family.help);
        }
        let labels = family.labels.iter().zip(&number.labels);
        let mut labels: Vec<String> =
            labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let amount = number.amount();
        let suffix = match (family.kind, number.labels.last().map(String::as_str)) {
            (Kind::Histogram, Some(SUM)) => "_sum",
            (Kind::Histogram, Some(le)) => {
                if le == ALL {
                    let _ = writeln!(out, "{}_count{{{}}} {amount}", family.name, labels.join(","));
                }
                labels.push(format!("le=\"{}\"", escaped(le)));
                "_bucket"
            }
            _ => "",
        };
        let _ = writeln!(out, "{}{suffix}{{{}}} {amount}", family.name, labels.join(","));
    }
    out
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use segno_engine::metrics::Name;

    use super::*;

    #[test]
    fn labels_cannot_leave_their_quotes() {
        let labels = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let evil = Number { name: Name::Turns, labels: labels(&["a\"} 1\nb", "c\\"]), value: 3 };
        let le = Number { name: Name::RunSeconds, labels: labels(&["p", "a", "60"]), value: 2 };
        let sum = Number { name: Name::RunSeconds, labels: labels(&["p", "a", "sum"]), value: 1_500 };
        let text = text(&[evil, le, sum]);
        assert!(text.contains("segno_turns_total{project=\"a\\\"} 1\\nb\",agent=\"c\\\\\"} 3\n"), "{text}");
        assert!(text.contains("segno_run_duration_seconds_bucket{project=\"p\",agent=\"a\",le=\"60\"} 2\n"));
        assert!(text.contains("segno_run_duration_seconds_sum{project=\"p\",agent=\"a\"} 1.5\n"), "{text}");
    }
}
