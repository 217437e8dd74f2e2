//! What programs read, and the page's own script.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use segno_engine::Filter;
use segno_engine::ItemPosition;
use segno_engine::Page;
use segno_engine::board::Need;
use segno_engine::board::Order;
use segno_engine::board::SessionPage;
use segno_engine::board::SessionWish;
use segno_engine::board::TimelineWish;
use segno_engine::core::List;
use segno_engine::core::looping::loop_status;
use segno_engine::cost::By;
use segno_engine::cost::Costs;
use segno_engine::insights::Found;
use segno_engine::insights::InsightsWish;
use segno_engine::search::Findings;
use segno_engine::search::SearchWish;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use super::app::App;
use super::app::is_no_store;
use super::asked;
use super::asked::Asked;
use super::problem::Problem;
use super::routes;
use super::routes::Id;
use crate::cli::Command;
use crate::commands::diff;
use crate::commands::resume;

/// Pages have at most so many rows.
const MOST: usize = 500;
/// How long somebody waits for what is not indexed yet.
const PATIENCE: Duration = Duration::from_secs(4);

type Answer = Result<Json<Value>, Problem>;

/// What is asked of the list of sessions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Wanted {
    pub(super) need: String,
    pub(super) project: String,
    pub(super) agent: String,
    pub(super) tag: String,
    pub(super) text: String,
    #[serde(deserialize_with = "asked::flag")]
    pub(super) archived: bool,
    pub(super) order: String,
    #[serde(deserialize_with = "asked::count")]
    pub(super) skip: usize,
    #[serde(deserialize_with = "asked::number")]
    pub(super) limit: Option<usize>,
}

impl Wanted {
    pub(super) fn wish(&self) -> Result<SessionWish, Problem> {
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let need = given(&self.need)
            .map(|word| Need::of_word(&word).ok_or_else(|| Problem::bad("need is you, works, waits or over")))
            .transpose()?;
        let order = given(&self.order).map(|word| {
            let known = || Order::ALL.map(|(_, word)| word).join(", ");
            Order::of_word(&word).ok_or_else(|| Problem::bad(format!("order is one of {}", known())))
        });
        Ok(SessionWish {
            needs: need.into_iter().collect(),
            statuses: Vec::new(),
            project: given(&self.project),
            agent: given(&self.agent),
            tag: given(&self.tag),
            text: given(&self.text),
            archived: self.archived,
            order: order.transpose()?.unwrap_or_default(),
            skip: self.skip,
            limit: self.limit.unwrap_or(100).clamp(1, MOST),
        })
    }
}

/// The sessions that are wanted. Where there is no store yet, there are none.
pub(super) async fn page_of(app: &Arc<App>, wish: SessionWish) -> Result<SessionPage, Problem> {
    let found = app.work(move |app, engine| app.on_board(engine, |board| board.page(&wish))).await;
    match found {
        Err(problem) if is_no_store(&problem) => {
            Ok(segno_engine::board::Board::default().page(&SessionWish::default()))
        }
        other => other,
    }
}

pub(super) async fn sessions(State(app): State<Arc<App>>, Asked(wanted): Asked<Wanted>) -> Answer {
    Ok(Json(json!(page_of(&app, wanted.wish()?).await?)))
}

pub(super) async fn session(State(app): State<Arc<App>>, Id(session): Id) -> Answer {
    app.work(move |app, engine| {
        let loaded = engine.load(session)?;
        let row = app.on_board(engine, |board| board.row(session).cloned())?;
        Ok(Json(json!({
            "version": segno_engine::board::VERSION,
            "session": segno_engine::core::Summary::from(&loaded.state),
            "driven": row.as_ref().is_some_and(|row| row.driven),
            "need": row.as_ref().map(|row| row.need),
            "questions": engine.waiting_of(session)?,
            "loop": loop_status(&loaded.state, engine.now()),
            "limits": loaded.state.limits.values().collect::<Vec<_>>(),
            "in_doubt": loaded.state.calls.in_doubt,
            "open_calls": loaded.state.calls.open,
            "notices": loaded.notices,
        })))
    })
    .await
}

/// Which part of a timeline.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Window {
    #[serde(deserialize_with = "asked::number")]
    pub(super) after: Option<u64>,
    #[serde(deserialize_with = "asked::number")]
    pub(super) before: Option<u64>,
    #[serde(deserialize_with = "asked::number")]
    pub(super) limit: Option<usize>,
}

impl Window {
    pub(super) fn wish(self) -> Result<TimelineWish, Problem> {
        match (self.after, self.before) {
            (Some(_), Some(_)) => Err(Problem::bad("give after or before, not both")),
            (Some(after), None) => Ok(TimelineWish::After(after)),
            (None, before) => Ok(TimelineWish::Before(before.unwrap_or(u64::MAX))),
        }
    }

    pub(super) fn limit(self) -> usize {
        self.limit.unwrap_or(100).clamp(1, MOST)
    }
}

pub(super) async fn timeline(
    State(app): State<Arc<App>>,
    Id(session): Id,
    Asked(window): Asked<Window>,
) -> Answer {
    let (wish, limit) = (window.wish()?, window.limit());
    app.work(move |_, engine| Ok(Json(json!(engine.timeline(session, wish, limit)?)))).await
}

/// Which part of the ledger.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Place {
    #[serde(deserialize_with = "asked::number")]
    pub(super) after_seq: Option<u64>,
    pub(super) after_key: String,
    #[serde(deserialize_with = "asked::number")]
    pub(super) limit: Option<usize>,
}

impl Place {
    pub(super) fn page(&self) -> Page {
        let after = self.after_seq.map(|seq| ItemPosition { seq, key: self.after_key.clone() });
        Page { after, limit: self.limit.unwrap_or(100).clamp(1, MOST), newest_first: true }
    }
}

pub(super) async fn calls(
    State(app): State<Arc<App>>,
    Id(session): Id,
    Asked(place): Asked<Place>,
) -> Answer {
    app.work(move |_, engine| {
        let items = engine.page(session, List::Tools, &place.page())?;
        Ok(Json(
            json!({ "version": segno_engine::board::VERSION, "calls": items.items, "total": items.total }),
        ))
    })
    .await
}

pub(super) async fn checkpoints(State(app): State<Arc<App>>, Id(session): Id) -> Answer {
    app.work(move |_, engine| Ok(Json(json!({ "checkpoints": engine.checkpoints(session)? })))).await
}

pub(super) async fn decisions(State(app): State<Arc<App>>, Id(session): Id) -> Answer {
    app.work(move |_, engine| {
        let items = engine.page(session, List::Decisions, &Page::first(1_000))?;
        Ok(Json(json!({ "decisions": items.items, "total": items.total })))
    })
    .await
}

pub(super) async fn course(State(app): State<Arc<App>>, Id(session): Id) -> Answer {
    app.work(move |app, engine| Ok(Json(json!(app.course(engine, session)?)))).await
}

/// What an agent would be told that goes on.
pub(super) async fn brief_of(
    app: &Arc<App>,
    session: segno_engine::core::SessionId,
) -> Result<Value, Problem> {
    let own = Arc::clone(app);
    app.blocking(move || {
        let args = resume::Args { show_brief: true, ..Default::default() };
        own.perform(session, None, &Command::Resume(args), None)
    })
    .await
}

pub(super) async fn brief(State(app): State<Arc<App>>, Id(session): Id) -> Answer {
    Ok(Json(brief_of(&app, session).await?))
}

/// Between which checkpoints.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Span {
    since: Option<String>,
    until: Option<String>,
}

pub(super) async fn diff(State(app): State<Arc<App>>, Id(session): Id, Asked(span): Asked<Span>) -> Answer {
    let own = Arc::clone(&app);
    app.blocking(move || {
        let args = diff::DiffArgs { paths: Vec::new(), since: span.since, until: span.until, stat: true };
        own.perform(session, None, &Command::Diff(args), None).map(Json)
    })
    .await
}

pub(super) async fn questions(State(app): State<Arc<App>>) -> Answer {
    app.work(|app, engine| {
        let asking = app.on_board(engine, |board| {
            let wait = |row: &&segno_engine::board::Row| row.need == Need::You;
            board.rows().filter(wait).map(|row| row.summary.session_id).collect::<Vec<_>>()
        })?;
        let mut all = Vec::new();
        for session in asking {
            // One that cannot be read is not why the others are not shown.
            all.extend(engine.waiting_of(session).unwrap_or_default());
        }
        all.sort_by_key(|waiting| waiting.since);
        Ok(Json(json!({ "questions": all })))
    })
    .await
}

/// What is looked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Looked {
    pub(super) q: String,
    #[serde(deserialize_with = "asked::number")]
    pub(super) limit: Option<usize>,
}

pub(super) async fn found(app: &Arc<App>, wanted: Looked) -> Result<Findings, Problem> {
    let limit = wanted.limit.unwrap_or(50).clamp(1, 200);
    let wish = SearchWish { query: wanted.q, project: None, limit, patience: Some(PATIENCE) };
    app.work(move |_, engine| Ok(engine.search(&wish)?)).await
}

pub(super) async fn search(State(app): State<Arc<App>>, Asked(wanted): Asked<Looked>) -> Answer {
    Ok(Json(json!(found(&app, wanted).await?)))
}

/// What is added up.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Sums {
    pub(super) by: String,
    pub(super) project: String,
    #[serde(deserialize_with = "asked::number")]
    pub(super) days: Option<u32>,
}

impl Sums {
    pub(super) fn by(&self) -> Result<By, Problem> {
        let known: BTreeMap<&str, By> = [
            ("", By::Day),
            ("day", By::Day),
            ("project", By::Project),
            ("agent", By::Agent),
            ("model", By::Model),
            ("session", By::Session),
        ]
        .into();
        let by = known.get(self.by.as_str()).copied();
        by.ok_or_else(|| Problem::bad("by is day, project, agent, model or session"))
    }
}

pub(super) async fn costs_of(app: &Arc<App>, sums: &Sums, by: By) -> Result<Costs, Problem> {
    let (project, days) = (Some(sums.project.clone()).filter(|it| !it.is_empty()), sums.days);
    app.work(move |_, engine| {
        let since = days.map(|days| engine.now().plus_seconds(-i64::from(days) * 24 * 3600));
        let prices = engine.prices()?;
        Ok(engine.costs(&Filter { project, since, ..Filter::default() }, by, &prices)?)
    })
    .await
}

pub(super) async fn costs(State(app): State<Arc<App>>, Asked(sums): Asked<Sums>) -> Answer {
    let by = sums.by()?;
    Ok(Json(json!(costs_of(&app, &sums, by).await?)))
}

/// Which sessions are looked at for what they have in common.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Chosen {
    pub(super) project: String,
    #[serde(deserialize_with = "asked::number")]
    pub(super) days: Option<u32>,
}

pub(super) async fn insights_of(app: &Arc<App>, looked: &Chosen) -> Result<Found, Problem> {
    let (project, days) = (Some(looked.project.clone()).filter(|it| !it.is_empty()), looked.days);
    app.work(move |_, engine| {
        let since = days.map(|days| engine.now().plus_seconds(-i64::from(days) * 24 * 3600));
        Ok(engine.insights(&InsightsWish { project, since, ..InsightsWish::default() })?)
    })
    .await
}

pub(super) async fn insights(State(app): State<Arc<App>>, Asked(looked): Asked<Chosen>) -> Answer {
    Ok(Json(json!(insights_of(&app, &looked).await?)))
}

pub(super) async fn openapi() -> Json<Value> {
    Json(routes::openapi())
}
