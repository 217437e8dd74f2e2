//! All sessions in short, kept in memory and brought up to date with what changed since.

use std::collections::BTreeMap;
use std::time::Duration;
use std::time::Instant;

use segno_core::SessionId;
use segno_core::Status;
use segno_core::Summary;
use segno_core::Timestamp;
use segno_core::event::PauseReason;
use segno_store::Filter;
use serde::Serialize;

use super::VERSION;
use crate::Engine;
use crate::Error;

/// All is read anew this often: what was removed and what was imported in the same moment cannot be told apart otherwise.
const ANEW: Duration = Duration::from_secs(60);
/// Clocks of writers differ a little: what changed shortly before the newest change that is known is read again.
const OVERLAP_SECONDS: i64 = 5;

/// Who or what a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// A person: to answer, to look, or to let it go on.
    You,
    /// Nobody: somebody drives it.
    Works,
    /// Its time, or that somebody takes it up again.
    Waits,
    /// It has ended.
    Over,
}

impl Need {
    /// Every kind, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::You, Self::Works, Self::Waits, Self::Over];

    /// The word in documents and addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::You => "you",
            Self::Works => "works",
            Self::Waits => "waits",
            Self::Over => "over",
        }
    }

    /// By its word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|need| need.as_str() == word)
    }

    /// Of a session that somebody drives, or nobody.
    pub fn of(summary: &Summary, driven: bool) -> Self {
        let stopped_by_person = || {
            let asked = [PauseReason::Asked, PauseReason::Ended].map(PauseReason::as_str);
            summary.reason.as_ref().is_none_or(|reason| asked.contains(&reason.what.as_str()))
        };
        match summary.status {
            status if status.is_terminal() => Self::Over,
            _ if summary.open_questions > 0 => Self::You,
            Status::Halted | Status::Interrupted => Self::You,
            Status::Active if driven => Self::Works,
            Status::Paused if summary.waiting_until.is_none() && !stopped_by_person() => Self::You,
            _ => Self::Waits,
        }
    }
}

/// In which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Who needs somebody first, pinned ones before all others; the newest first among equals.
    #[default]
    Need,
    /// Changed last.
    Changed,
    /// Made last.
    Created,
    /// Cost most.
    Cost,
    /// Used most.
    Tokens,
    /// By what it is about.
    Topic,
    /// By project.
    Project,
}

impl Order {
    /// Every order with its word.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Need, "need"),
        (Self::Changed, "changed"),
        (Self::Created, "created"),
        (Self::Cost, "cost"),
        (Self::Tokens, "tokens"),
        (Self::Topic, "topic"),
        (Self::Project, "project"),
    ];

    /// By its word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == word).map(|(order, _)| order)
    }
}

/// Which sessions, and which page of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionWish {
    /// In one of these groups; any if empty.
    pub needs: Vec<Need>,
    /// In one of these statuses; any if empty.
    pub statuses: Vec<Status>,
    /// Of this project.
    pub project: Option<String>,
    /// Of this agent.
    pub agent: Option<String>,
    /// With this tag.
    pub tag: Option<String>,
    /// With this text in its topic, project, branch, file, item or id, in capital or small letters.
    pub text: Option<String>,
    /// Archived ones too.
    pub archived: bool,
    /// In this order.
    pub order: Order,
    /// Leave out so many.
    pub skip: usize,
    /// At most so many.
    pub limit: usize,
}

/// One session of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// It in short.
    #[serde(flatten)]
    pub summary: Summary,
    /// Whether somebody drives it.
    pub driven: bool,
    /// The process that does, if it is on this machine.
    pub pid: Option<u32>,
    /// Who or what it waits for.
    pub need: Need,
}

/// A page of sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionPage {
    /// The version of the document.
    pub version: u32,
    /// The sessions.
    pub sessions: Vec<Row>,
    /// How many fit the wish in all.
    pub total: u64,
    /// How many there are in each group, of those that fit everything but the group.
    pub groups: BTreeMap<&'static str, u64>,
    /// Counts every change of any session; equal numbers mean that nothing changed.
    pub change: u64,
}

/// What a look brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// The sessions that are new or different, or driven by somebody else.
    pub sessions: Vec<SessionId>,
    /// Sessions were removed.
    pub removed: bool,
}

impl Changed {
    /// Whether nothing is different.
    pub fn is_nothing(&self) -> bool {
        self.sessions.is_empty() && !self.removed
    }
}

/// All sessions in short.
#[derive(Debug, Default)]
pub struct Board {
    rows: BTreeMap<SessionId, Row>,
    newest: Option<Timestamp>,
    read_anew: Option<Instant>,
    change: u64,
}

impl Board {
    /// Counts changes: equal numbers mean that nothing changed between them.
    pub fn change(&self) -> u64 {
        self.change
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One session.
    pub fn row(&self, session: SessionId) -> Option<&Row> {
        self.rows.get(&session)
    }

    /// All of them, the oldest first.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// Reads what changed since the last look.
    ///
    /// # Errors
    /// If the store cannot be read; what was known stays.
    pub fn refresh(&mut self, engine: &Engine) -> Result<Changed, Error> {
        let driven: BTreeMap<SessionId, u32> =
            engine.driven_sessions()?.into_iter().map(|(id, lease)| (id, lease.holder.pid)).collect();
        let due = self.read_anew.is_none_or(|at| at.elapsed() >= ANEW);
        let mut changed = Changed::default();
        let mut whole = due;
        if !due {
            let since = self.newest.map(|newest| newest.plus_seconds(-OVERLAP_SECONDS));
            for summary in engine.listing(&Filter { since, ..Filter::default() })?.sessions {
                self.take(summary, &driven, &mut changed);
            }
            let total = engine.listing(&Filter { limit: Some(1), ..Filter::default() })?.total;
            whole = total != self.rows.len() as u64;
        }
        if whole {
            let all = engine.listing(&Filter::default())?.sessions;
            let known: std::collections::BTreeSet<SessionId> = all.iter().map(|it| it.session_id).collect();
            let before = self.rows.len();
            self.rows.retain(|id, _| known.contains(id));
            changed.removed = self.rows.len() < before;
            for summary in all {
                self.take(summary, &driven, &mut changed);
            }
            self.read_anew = Some(Instant::now());
        }
        self.mark_driven(&driven, &mut changed);
        if !changed.is_nothing() {
            self.change += 1;
        }
        Ok(changed)
    }

    fn take(&mut self, summary: Summary, driven: &BTreeMap<SessionId, u32>, changed: &mut Changed) {
        let id = summary.session_id;
        self.newest = self.newest.max(Some(summary.updated_at));
        let pid = driven.get(&id).copied();
        let need = Need::of(&summary, pid.is_some());
        let row = Row { summary, driven: pid.is_some(), pid, need };
        if self.rows.get(&id) != Some(&row) {
            self.rows.insert(id, row);
            changed.sessions.push(id);
        }
    }

    /// A driver comes and goes without a change of its session.
    fn mark_driven(&mut self, driven: &BTreeMap<SessionId, u32>, changed: &mut Changed) {
        for (id, row) in &mut self.rows {
            let pid = driven.get(id).copied();
            if row.pid != pid {
                (row.driven, row.pid) = (pid.is_some(), pid);
                row.need = Need::of(&row.summary, row.driven);
                changed.sessions.push(*id);
            }
        }
    }

    /// A page of them.
    pub fn page(&self, wish: &SessionWish) -> SessionPage {
        let text = wish.text.as_ref().map(|text| text.to_lowercase()).filter(|text| !text.is_empty());
        let mut groups: BTreeMap<&'static str, u64> =
            Need::ALL.into_iter().map(|need| (need.as_str(), 0)).collect();
        let mut found: Vec<&Row> = Vec::new();
        for row in self.rows.values().filter(|row| fits(row, wish, text.as_deref())) {
            *groups.entry(row.need.as_str()).or_default() += 1;
            if wish.needs.is_empty() || wish.needs.contains(&row.need) {
                found.push(row);
            }
        }
        sort(&mut found, wish.order);
        let total = found.len() as u64;
        let sessions = found.into_iter().skip(wish.skip).take(wish.limit).cloned().collect();
        SessionPage { version: VERSION, sessions, total, groups, change: self.change }
    }

    /// The projects that there are, with how many sessions each has.
    pub fn projects(&self) -> Vec<(String, u64)> {
        self.count(|row| Some(row.summary.project.clone()))
    }

    /// The agents that there are, with how many sessions each has.
    pub fn agents(&self) -> Vec<(String, u64)> {
        self.count(|row| row.summary.agent.clone())
    }

    fn count(&self, of: impl Fn(&Row) -> Option<String>) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for name in self.rows.values().filter_map(of).filter(|name| !name.is_empty()) {
            *counts.entry(name).or_default() += 1;
        }
        counts.into_iter().collect()
    }
}

fn fits(row: &Row, wish: &SessionWish, text: Option<&str>) -> bool {
    let it = &row.summary;
    let has = |text: &str| {
        let id = it.session_id.to_string();
        let members = [&it.topic, &it.branch, &it.file, &it.work_item, &it.agent];
        let mut all = members.into_iter().flatten().chain([&it.project, &id]).chain(&it.tags);
        all.any(|member| member.to_lowercase().contains(text))
    };
    (wish.archived || !it.archived)
        && (wish.statuses.is_empty() || wish.statuses.contains(&it.status))
        && wish.project.as_ref().is_none_or(|project| *project == it.project)
        && wish.agent.as_ref().is_none_or(|agent| it.agent.as_ref() == Some(agent))
        && wish.tag.as_ref().is_none_or(|tag| it.tags.contains(tag))
        && text.is_none_or(has)
}

fn sort(rows: &mut [&Row], order: Order) {
    use std::cmp::Reverse;
    let newest = |row: &Row| Reverse((row.summary.updated_at, row.summary.session_id));
    match order {
        Order::Need => rows.sort_by_key(|row| (row.need, !row.summary.pinned, newest(row))),
        Order::Changed => rows.sort_by_key(|row| newest(row)),
        Order::Created => rows.sort_by_key(|row| Reverse(row.summary.session_id)),
        Order::Cost => rows.sort_by_key(|row| (Reverse(row.summary.cost_micros), newest(row))),
        Order::Tokens => rows.sort_by_key(|row| (Reverse(row.summary.tokens_used), newest(row))),
        // A session without a topic comes after all that have one.
        Order::Topic => rows.sort_by_cached_key(|row| {
            let topic = row.summary.topic.as_ref().map(|topic| topic.to_lowercase());
            (topic.is_none(), topic, newest(row))
        }),
        Order::Project => rows.sort_by_cached_key(|row| (row.summary.project.clone(), newest(row))),
    }
}
