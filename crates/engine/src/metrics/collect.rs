//! Counts, session by session, and remembers what it counted.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;

use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Summary;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_core::state::WindowMark;
use segno_core::text::shorten;

use super::schema::ALL;
use super::schema::Kind;
use super::schema::Name;
use super::schema::Number;
use super::schema::RUN_SECONDS;
use super::schema::SUM;
use crate::Engine;
use crate::Error;
use crate::board::Board;
use crate::board::Row;

/// A number has at most so many different labels; what comes later is counted as [`OTHER`].
const MOST: usize = 2_000;
const OTHER: &str = "other";
/// Nobody, or nobody said so.
const NONE: &str = "none";
/// A label is at most so long.
const LONGEST: usize = 100;
/// What was told of a window that does not say when it opens is old after so long.
const OLD: i64 = 24 * 3600;

/// A number and its labels, as a place in the list of labels.
type Key = (Name, u32);

/// What was counted in a session.
#[derive(Debug, Default)]
struct Known {
    seq: u64,
    counted: Vec<(Key, u64)>,
    limits: Vec<WindowMark>,
}

/// Counts what happens in all sessions.
///
/// A counter never goes down: what was counted of a session that is gone stays counted, and whoever tells it what was told last
/// ([`Collector::new`]) goes on from there.
#[derive(Debug, Default)]
pub struct Collector {
    board: Board,
    known: BTreeMap<SessionId, Known>,
    labels: Vec<Vec<String>>,
    places: BTreeMap<Vec<String>, u32>,
    used: BTreeMap<Name, BTreeSet<u32>>,
    totals: BTreeMap<Key, u64>,
    told: BTreeMap<Key, u64>,
    /// What was told before this began, until it has been compared with what there is.
    before: Option<Vec<Number>>,
    changed: BTreeSet<SessionId>,
}

impl Collector {
    /// One that goes on from what was told last.
    pub fn new(told: Vec<Number>) -> Self {
        Self { before: Some(told), ..Self::default() }
    }

    /// Reads what changed.
    ///
    /// # Errors
    /// If the store cannot be read. A session that cannot be read alone keeps the numbers that it had.
    pub fn refresh(&mut self, engine: &Engine) -> Result<(), Error> {
        self.board.refresh(engine)?;
        let seqs: Vec<(SessionId, u64)> =
            self.board.rows().map(|row| (row.summary.session_id, row.summary.seq)).collect();
        for (session, seq) in &seqs {
            if self.known.get(session).is_some_and(|known| known.seq == *seq) {
                continue;
            }
            if let Err(why) = self.read(engine, *session) {
                tracing::warn!(%session, %why, "a session is not counted");
            }
        }
        // What they did was done; only where it stood is forgotten.
        let there: BTreeSet<SessionId> = seqs.into_iter().map(|(session, _)| session).collect();
        self.known.retain(|session, _| there.contains(session));
        self.go_on_from_before();
        Ok(())
    }

    /// The sessions that have changed since this was asked last, and in which something happened since some moment.
    pub fn take_changed(&mut self, since: Timestamp) -> Vec<SessionId> {
        let later =
            |session: &SessionId| self.board.row(*session).is_some_and(|row| row.summary.updated_at >= since);
        std::mem::take(&mut self.changed).into_iter().filter(later).collect()
    }

    /// When the oldest session was made.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.board.rows().map(|row| row.summary.created_at).min()
    }

    /// Every number, in the order of the schema.
    pub fn numbers(&mut self, now: Timestamp) -> Vec<Number> {
        let mut all: BTreeMap<Key, u64> = BTreeMap::new();
        for (key, total) in &self.totals {
            let told = self.told.entry(*key).or_default();
            // What an agent says later may be less than what a price list said before.
            *told = (*told).max(*total);
            all.insert(*key, *told);
        }
        let rows: Vec<Standing> = self.board.rows().map(gauges).collect();
        for Standing { numbers, labels, stands } in rows {
            for (name, value) in numbers {
                let labels = if name == Name::Sessions { stands.clone() } else { labels.clone() };
                let key = self.key(name, labels);
                *all.entry(key).or_default() += value;
            }
        }
        for (name, labels, value) in self.limits(now) {
            let key = self.key(name, labels);
            all.insert(key, value);
        }
        let labels = |place: u32| self.labels.get(place as usize).cloned().unwrap_or_default();
        all.into_iter().map(|((name, place), value)| Number { name, labels: labels(place), value }).collect()
    }

    /// What was told last of all that only grows.
    pub fn told(&self) -> Vec<Number> {
        let labels = |place: u32| self.labels.get(place as usize).cloned().unwrap_or_default();
        self.told
            .iter()
            .map(|((name, place), value)| Number { name: *name, labels: labels(*place), value: *value })
            .collect()
    }

    fn read(&mut self, engine: &Engine, session: SessionId) -> Result<(), Error> {
        let state = engine.load(session)?.state;
        let limits = state.limits.values().cloned().collect();
        let seq = state.seq;
        let counts = counts(engine, state)?;
        let mut counted: Vec<(Key, u64)> = Vec::with_capacity(counts.len());
        for ((name, labels), value) in counts {
            counted.push((self.key(name, labels), value));
        }
        for (key, value) in &counted {
            let total = self.totals.entry(*key).or_default();
            *total = total.saturating_add(*value);
        }
        if let Some(before) = self.known.insert(session, Known { seq, counted, limits }) {
            for (key, value) in before.counted {
                let total = self.totals.entry(key).or_default();
                *total = total.saturating_sub(value);
            }
        }
        self.changed.insert(session);
        Ok(())
    }

    /// What was told before and is not there any more was done all the same.
    fn go_on_from_before(&mut self) {
        for number in self.before.take().into_iter().flatten() {
            if number.name.family().kind != Kind::Gauge {
                let key = self.key(number.name, number.labels);
                let total = self.totals.entry(key).or_default();
                *total = (*total).max(number.value);
            }
        }
    }

    fn key(&mut self, name: Name, mut labels: Vec<String>) -> Key {
        let used = self.used.entry(name).or_default();
        let known = self.places.get(&labels).filter(|place| used.contains(place));
        if let Some(place) = known {
            return (name, *place);
        }
        if used.len() >= MOST {
            for (label, value) in name.family().labels.iter().zip(&mut labels) {
                if matches!(*label, "project" | "model" | "agent" | "window") {
                    OTHER.clone_into(value);
                }
            }
        }
        let next = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        let place = *self.places.entry(labels.clone()).or_insert(next);
        if place == next {
            self.labels.push(labels);
        }
        used.insert(place);
        (name, place)
    }

    /// The windows of plans, as they were told last in any session.
    fn limits(&self, now: Timestamp) -> Vec<(Name, Vec<String>, u64)> {
        let mut newest: BTreeMap<(&str, &str), &WindowMark> = BTreeMap::new();
        for mark in self.known.values().flat_map(|known| &known.limits) {
            let place = newest.entry((&mark.agent, &mark.window)).or_insert(mark);
            if mark.at > place.at {
                *place = mark;
            }
        }
        let holds = |mark: &&&WindowMark| match mark.resets_at {
            Some(resets_at) => resets_at > now,
            None => mark.at.plus_seconds(OLD) > now,
        };
        let mut numbers = Vec::new();
        for mark in newest.values().filter(holds) {
            let mut add = |name, value| {
                numbers.push((name, vec![label(&mark.agent), label(&mark.window)], value));
            };
            if let Some(used) = mark.utilization.filter(|used| used.is_finite()) {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is between 0 and 1000"
                )]
                add(Name::LimitUsed, (used.clamp(0.0, 1_000.0) * 1e6) as u64);
            }
            if let Some(at) = mark.resets_at {
                add(Name::LimitResets, u64::try_from(at.as_micros() / 1_000_000).unwrap_or(0));
            }
            add(Name::LimitRefuses, u64::from(mark.status.as_deref() == Some("rejected")));
        }
        numbers
    }
}

/// A text as a label.
fn label(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.trim() {
        "" => NONE.to_owned(),
        plain => shorten(plain, LONGEST),
    }
}

fn project_name(path: &str) -> String {
    label(&Path::new(path).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()))
}

/// Where a session stands.
struct Standing {
    numbers: Vec<(Name, u64)>,
    labels: Vec<String>,
    /// The same, and where it stands.
    stands: Vec<String>,
}

fn gauges(row: &Row) -> Standing {
    let it = &row.summary;
    let labels = vec![project_name(&it.project), label(it.agent.as_deref().unwrap_or_default())];
    let mut stands = labels.clone();
    stands.extend([it.status.to_string(), row.need.as_str().to_owned()]);
    let open = it.status.is_open();
    let is_open = it.breaker.as_deref() == Some("OPEN");
    let numbers = vec![
        (Name::Sessions, 1),
        (Name::Running, u64::from(row.driven)),
        (Name::OverBudget, u64::from(open && it.over_budget)),
        (Name::Breakers, u64::from(open && is_open)),
        (Name::Questions, if open { questions(it) } else { 0 }),
        (Name::OpenCalls, it.open_calls),
        (Name::Doubts, it.in_doubt),
    ];
    Standing { numbers, labels, stands }
}

/// All that waits for a person: what was asked, a breaker, and how to go on with calls in doubt.
fn questions(it: &Summary) -> u64 {
    let breaker = it.status == Status::Halted && it.breaker.as_deref().is_none_or(|state| state == "OPEN");
    let resume = it.status == Status::Interrupted && it.in_doubt > 0;
    it.open_questions + u64::from(breaker) + u64::from(resume)
}

type Counts = BTreeMap<(Name, Vec<String>), u64>;

/// What was done in a session.
fn counts(engine: &Engine, state: State) -> Result<Counts, Error> {
    let mut counts = Counts::new();
    let mut add = |name: Name, labels: Vec<String>, value: u64| {
        // What did not happen yet is told as 0 where its labels are known: growth is seen from the first time on.
        let begins = [Name::Turns, Name::Checkpoints, Name::Restores, Name::Errors, Name::Calls];
        if value > 0 || begins.contains(&name) {
            let count = counts.entry((name, labels)).or_default();
            *count = count.saturating_add(value);
        }
    };
    let project = project_name(&state.project.path);
    let agent = state.agent.as_deref().or_else(|| state.run.as_ref().map(|run| run.agent.as_str()));
    let whose = vec![project.clone(), label(agent.unwrap_or_default())];
    let of = |name: &[&str]| {
        let mut labels = whose.clone();
        labels.extend(name.iter().map(|name| (*name).to_owned()));
        labels
    };
    let calls = [
        (state.calls.completed, "completed"),
        (state.calls.failed, "failed"),
        (state.calls.denied, "denied"),
    ];
    for (count, outcome) in calls {
        add(Name::Calls, of(&[outcome]), count);
    }
    add(Name::Turns, of(&[]), state.counts.turns);
    add(Name::Checkpoints, of(&[]), state.counts.checkpoints);
    add(Name::Restores, of(&[]), state.tree.restores);
    add(Name::Errors, of(&[]), state.errors.count);
    add(Name::Events, of(&[]), state.seq);
    for (run, sum) in engine.used_of(state)? {
        let agent = run.as_ref().map_or_else(|| whose[1].clone(), |run| label(&run.agent));
        let model = label(run.as_ref().and_then(|run| run.model.as_deref()).unwrap_or_default());
        let TokenUse { input, output, cache_read, cache_write, other, reasoning: _ } = sum.tokens;
        let kinds = [
            ("input", input),
            ("output", output),
            ("cache_read", cache_read),
            ("cache_write", cache_write),
            ("other", other),
        ];
        let labels = |more: &[&str]| {
            let mut labels = vec![project.clone(), agent.clone(), model.clone()];
            labels.extend(more.iter().map(|more| (*more).to_owned()));
            labels
        };
        for (kind, tokens) in kinds {
            add(Name::Tokens, labels(&[kind]), tokens);
        }
        add(Name::Cost, labels(&[]), sum.micros);
        let Some(run) = run else {
            add(Name::Unpriced, labels(&[]), sum.unpriced_tokens);
            continue;
        };
        let Some(outcome) = run.outcome.as_deref().filter(|_| run.ended_at.is_some()) else { continue };
        // Of one that goes on, its agent may yet say what it costs.
        add(Name::Unpriced, labels(&[]), sum.unpriced_tokens);
        add(Name::Runs, labels(&[&label(outcome)]), 1);
        let took = run.duration_ms.unwrap_or(0);
        let mut seconds = |le: String, value| {
            add(Name::RunSeconds, vec![project.clone(), agent.clone(), le], value);
        };
        for most in RUN_SECONDS.into_iter().filter(|most| took <= most * 1_000) {
            seconds(most.to_string(), 1);
        }
        seconds(ALL.to_owned(), 1);
        seconds(SUM.to_owned(), took);
    }
    Ok(counts)
}
