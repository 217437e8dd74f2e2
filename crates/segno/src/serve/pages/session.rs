//! The pages of one session, and the pieces of them that are put in while somebody looks.

use std::sync::Arc;

use askama::Template;
use axum::extract::Extension;
use axum::extract::Path;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::IntoResponse;
use axum::response::Response;
use segno_engine::Engine;
use segno_engine::EventRow;
use segno_engine::board::CallLine;
use segno_engine::board::TimelineWish;
use segno_engine::core::List;
use segno_engine::core::SessionId;
use segno_engine::transfer::inline;
use segno_engine::workspace::Selection;
use serde::Deserialize;

use super::Shell;
use super::Shown;
use super::cost::CostLine;
use super::cost::cost_lines;
use super::render;
use crate::output::units;
use crate::serve::api;
use crate::serve::api::Place;
use crate::serve::api::Window;
use crate::serve::app::App;
use crate::serve::asked::Asked;
use crate::serve::chart::Chart;
use crate::serve::check::Who;
use crate::serve::problem::Problem;
use crate::serve::routes::Id;
use crate::serve::session;
use crate::serve::session::CheckpointView;
use crate::serve::session::DecisionView;
use crate::serve::session::Head;
use crate::serve::session::LoopView;
use crate::serve::views;
use crate::serve::views::Body;
use crate::serve::views::CallView;
use crate::serve::views::Changed;
use crate::serve::views::MomentView;
use crate::serve::views::Moments;
use crate::serve::views::Times;

/// Differences are shown up to so many lines.
const DIFF: usize = 4_000;

#[derive(Template)]
#[template(path = "moments.html")]
struct MomentsPiece {
    moments: Vec<MomentView>,
    /// Where the pages of this session are; none in a file.
    base: String,
}

#[derive(Template)]
#[template(path = "stand.html")]
struct StandPiece {
    head: Head,
    read_only: bool,
}

#[derive(Template)]
#[template(path = "aside.html")]
struct AsidePiece<'a> {
    head: &'a Head,
}

/// What is new in a session, as pieces of its page.
pub(in crate::serve) struct News {
    pub(in crate::serve) html: String,
    pub(in crate::serve) stand: String,
    pub(in crate::serve) aside: String,
    pub(in crate::serve) until: u64,
    pub(in crate::serve) head: u64,
}

/// Makes the pieces that say what is new.
pub(in crate::serve) fn news(
    app: &App,
    engine: &Engine,
    session: SessionId,
    wish: TimelineWish,
    limit: usize,
) -> Result<News, Problem> {
    let times = Times::new(&app.zone);
    let page = engine.timeline(session, wish, limit)?;
    let stand = session::stand(engine, session, &times)?;
    let moments =
        Moments::new(&times, &stand.state.project.path, stand.state.agent.as_deref()).all(&page.moments);
    let html = match moments.is_empty() {
        true => String::new(),
        false => render(&MomentsPiece { moments, base: format!("/s/{session}") })?.0,
    };
    let aside = render(&AsidePiece { head: &stand.head })?.0;
    let stand = render(&StandPiece { head: stand.head, read_only: app.guard.read_only })?.0;
    Ok(News { html, stand, aside, until: page.until, head: page.head })
}

#[derive(Template)]
#[template(path = "timeline.html")]
struct TimelinePage {
    shell: Shell,
    head: Head,
    tab: &'static str,
    moments: Vec<MomentView>,
    base: String,
    after: u64,
    until: u64,
    at_end: bool,
    line: Option<Chart>,
    read_only: bool,
}

pub(in crate::serve) async fn timeline(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
    Asked(window): Asked<Window>,
) -> Shown {
    let wish = window.wish()?;
    app.work(move |app, engine| {
        let times = Times::new(&app.zone);
        let stand = session::stand(engine, session, &times)?;
        let page = engine.timeline(session, wish, window.limit())?;
        let state = &stand.state;
        let moments = Moments::new(&times, &state.project.path, state.agent.as_deref()).all(&page.moments);
        let base = format!("/s/{session}");
        // What cannot be read of them is said where they are shown.
        let all = engine.checkpoints(session).unwrap_or_default();
        let (_, line) = session::checkpoints(&all, &base, &times);
        render(&TimelinePage {
            shell: Shell::of(app, &who, "session"),
            head: stand.head,
            tab: "timeline",
            moments,
            base,
            after: page.after,
            until: page.until,
            at_end: page.until >= page.head,
            line: line.filter(|line| line.points.len() > 1),
            read_only: app.guard.read_only,
        })
    })
    .await
}

/// A piece of a timeline, with where it lies.
pub(in crate::serve) async fn moments(
    State(app): State<Arc<App>>,
    Id(session): Id,
    Asked(window): Asked<Window>,
) -> Result<Response, Problem> {
    let wish = window.wish()?;
    app.work(move |app, engine| {
        let times = Times::new(&app.zone);
        let state = engine.load(session)?.state;
        let page = engine.timeline(session, wish, window.limit())?;
        let moments = Moments::new(&times, &state.project.path, state.agent.as_deref()).all(&page.moments);
        let html = render(&MomentsPiece { moments, base: format!("/s/{session}") })?;
        let number = |number: u64| HeaderValue::from(number);
        let headers = [
            ("x-segno-after", number(page.after)),
            ("x-segno-until", number(page.until)),
            ("x-segno-head", number(page.head)),
        ];
        Ok((headers, html).into_response())
    })
    .await
}

#[derive(Template)]
#[template(path = "event.html")]
struct EventPage {
    shell: Shell,
    head: Head,
    tab: &'static str,
    seq: u64,
    kind: String,
    clock: String,
    key: String,
    members: Vec<(String, Body)>,
    read_only: bool,
}

/// Everything of an event.
pub(in crate::serve) async fn event(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
    Path((_, seq)): Path<(String, String)>,
) -> Shown {
    let seq: u64 = seq.parse().map_err(|_| Problem::not_found())?;
    app.work(move |app, engine| {
        let times = Times::new(&app.zone);
        let row = engine.events(session, seq.saturating_sub(1), 1)?.into_iter().next();
        let row = row.filter(|row| row.seq() == seq).ok_or_else(Problem::not_found)?;
        let (kind, clock, key, members) = match row {
            EventRow::Damaged { what, .. } => (
                "damaged".to_owned(),
                String::new(),
                String::new(),
                vec![("what".to_owned(), views::whole(&what))],
            ),
            EventRow::Whole(stored) => {
                let body = serde_json::from_str(&stored.body).unwrap_or_default();
                let body = inline(engine, body);
                let members = body.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
                let text = |value: &serde_json::Value| match value {
                    serde_json::Value::String(text) => text.clone(),
                    other @ (serde_json::Value::Array(_) | serde_json::Value::Object(_)) => {
                        serde_json::to_string_pretty(other).unwrap_or_default()
                    }
                    other => other.to_string(),
                };
                let members =
                    members.map(|(name, value)| (views::one_line(name), views::whole(&text(value))));
                (stored.kind.clone(), times.clock(stored.at), views::one_line(&stored.key), members.collect())
            }
        };
        let head = session::stand(engine, session, &times)?.head;
        render(&EventPage {
            shell: Shell::of(app, &who, "session"),
            head,
            tab: "timeline",
            seq,
            kind,
            clock,
            key,
            members,
            read_only: app.guard.read_only,
        })
    })
    .await
}

#[derive(Template)]
#[template(path = "calls.html")]
struct CallsPage {
    shell: Shell,
    head: Head,
    tab: &'static str,
    calls: Vec<(u64, CallView)>,
    total: u64,
    older: Option<String>,
    base: String,
    read_only: bool,
}

pub(in crate::serve) async fn calls(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
    Asked(place): Asked<Place>,
) -> Shown {
    app.work(move |app, engine| {
        let times = Times::new(&app.zone);
        let stand = session::stand(engine, session, &times)?;
        let page = place.page();
        let items = engine.page(session, List::Tools, &page)?;
        let root = format!("{}/", stand.state.project.path.trim_end_matches('/'));
        let last = items.items.last().filter(|_| items.items.len() == page.limit);
        let older = last.map(|item| {
            format!("/s/{session}/calls?after_seq={}&after_key={}", item.seq, views::encoded(&item.key))
        });
        let calls = items.items.iter().map(|item| (item.seq, CallView::of(&CallLine::of(item, &root))));
        render(&CallsPage {
            shell: Shell::of(app, &who, "session"),
            head: stand.head,
            tab: "calls",
            calls: calls.collect(),
            total: items.total,
            older,
            base: format!("/s/{session}"),
            read_only: app.guard.read_only,
        })
    })
    .await
}

#[derive(Template)]
#[template(path = "call.html")]
struct CallPage {
    shell: Shell,
    head: Head,
    tab: &'static str,
    call: CallView,
    read_only: bool,
}

pub(in crate::serve) async fn call(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
    Path((_, key)): Path<(String, String)>,
) -> Shown {
    app.work(move |app, engine| {
        let line = engine.call_line(session, &key)?.ok_or_else(Problem::not_found)?;
        let head = session::stand(engine, session, &Times::new(&app.zone))?.head;
        let (shell, read_only) = (Shell::of(app, &who, "session"), app.guard.read_only);
        render(&CallPage { shell, head, tab: "calls", call: CallView::whole(&line), read_only })
    })
    .await
}

#[derive(Template)]
#[template(path = "phases.html")]
struct PhasesPage {
    shell: Shell,
    head: Head,
    tab: &'static str,
    view: LoopView,
    read_only: bool,
}

pub(in crate::serve) async fn phases(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
) -> Shown {
    app.work(move |app, engine| {
        let times = Times::new(&app.zone);
        let stand = session::stand(engine, session, &times)?;
        let view = stand.looping.as_ref().map(|it| LoopView::of(it, &times)).unwrap_or_default();
        let (shell, read_only) = (Shell::of(app, &who, "session"), app.guard.read_only);
        render(&PhasesPage { shell, head: stand.head, tab: "phases", view, read_only })
    })
    .await
}

#[derive(Template)]
#[template(path = "checkpoints.html")]
struct CheckpointsPage {
    shell: Shell,
    head: Head,
    tab: &'static str,
    all: Vec<CheckpointView>,
    line: Option<Chart>,
    base: String,
    read_only: bool,
}

pub(in crate::serve) async fn checkpoints(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
) -> Shown {
    app.work(move |app, engine| {
        let times = Times::new(&app.zone);
        let stand = session::stand(engine, session, &times)?;
        let base = format!("/s/{session}");
        let (mut all, line) = session::checkpoints(&engine.checkpoints(session)?, &base, &times);
        all.reverse();
        let (shell, read_only) = (Shell::of(app, &who, "session"), app.guard.read_only);
        render(&CheckpointsPage { shell, head: stand.head, tab: "checkpoints", all, line, base, read_only })
    })
    .await
}

/// A changed file.
struct FileLine {
    path: String,
    word: &'static str,
    class: &'static str,
    lines: String,
}

#[derive(Template)]
#[template(path = "checkpoint.html")]
struct CheckpointPage {
    shell: Shell,
    head: Head,
    tab: &'static str,
    it: CheckpointView,
    span: String,
    files: Vec<FileLine>,
    diff: Vec<Changed>,
    problem: String,
    base: String,
    until_next: bool,
    read_only: bool,
}

/// Until when a difference goes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::serve) struct Until {
    /// `now`, or to the next checkpoint.
    to: String,
}

pub(in crate::serve) async fn checkpoint(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
    Path((_, name)): Path<(String, String)>,
    Asked(until): Asked<Until>,
) -> Shown {
    app.work(move |app, engine| {
        let times = Times::new(&app.zone);
        let stand = session::stand(engine, session, &times)?;
        let base = format!("/s/{session}");
        let all = engine.checkpoints(session)?;
        let at = all.iter().position(|it| it.id == name).ok_or_else(Problem::not_found)?;
        let until_next = until.to != "now";
        let usable = |it: &&segno_engine::tree::Checkpoint| it.valid && it.ready && it.snapshot.is_some();
        let next = all.iter().skip(at + 1).find(usable).filter(|_| until_next);
        let this = &all[at];
        let (mut views, _) = session::checkpoints(std::slice::from_ref(this), &base, &times);
        let it = views.pop().ok_or_else(Problem::not_found)?;
        let compared = engine.compare(session, this, next, true);
        let text = engine.diff_text(session, this, next, &Selection::All);
        let (files, diff, problem) = match (compared, text) {
            (Ok(compared), Ok(text)) => {
                let files = compared.files.iter().map(file_line).collect();
                (files, views::changed_lines(&String::from_utf8_lossy(&text), DIFF), String::new())
            }
            (Err(why), _) | (_, Err(why)) => {
                (Vec::new(), Vec::new(), views::brief_line(&why.to_string(), 400))
            }
        };
        let span = next.map_or("what is there now".to_owned(), |next| views::one_line(&next.id));
        let (shell, read_only) = (Shell::of(app, &who, "session"), app.guard.read_only);
        render(&CheckpointPage {
            shell,
            head: stand.head,
            tab: "checkpoints",
            it,
            span,
            files,
            diff,
            problem,
            base,
            until_next,
            read_only,
        })
    })
    .await
}

fn file_line(change: &segno_engine::workspace::Change) -> FileLine {
    use segno_engine::workspace::ChangeKind as Kind;
    let (word, class) = match change.kind {
        Kind::Added => ("added", "good"),
        Kind::Modified => ("modified", "plain"),
        Kind::Deleted => ("deleted", "bad"),
        Kind::TypeChanged => ("another type", "waits"),
        Kind::ModeChanged => ("another mode", "waits"),
    };
    let size = || change.size_after.map_or(String::new(), units::bytes);
    let lines = change.lines.map_or_else(size, |lines| format!("+{} −{}", lines.added, lines.removed));
    FileLine { path: views::one_line(&change.path.display().to_string()), word, class, lines }
}

#[derive(Template)]
#[template(path = "decisions.html")]
struct DecisionsPage {
    shell: Shell,
    head: Head,
    tab: &'static str,
    all: Vec<DecisionView>,
    read_only: bool,
}

pub(in crate::serve) async fn decisions(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
) -> Shown {
    app.work(move |app, engine| {
        let times = Times::new(&app.zone);
        let head = session::stand(engine, session, &times)?.head;
        let all = session::decisions(engine, session, &times)?;
        let (shell, read_only) = (Shell::of(app, &who, "session"), app.guard.read_only);
        render(&DecisionsPage { shell, head, tab: "decisions", all, read_only })
    })
    .await
}

#[derive(Template)]
#[template(path = "course.html")]
struct CoursePage {
    shell: Shell,
    head: Head,
    tab: &'static str,
    charts: Vec<Chart>,
    lines: Vec<CostLine>,
    read_only: bool,
}

/// Money and tokens of a session.
pub(in crate::serve) async fn course(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
) -> Shown {
    app.work(move |app, engine| {
        let times = Times::new(&app.zone);
        let stand = session::stand(engine, session, &times)?;
        let course = app.course(engine, session)?;
        let prices = engine.prices()?;
        let costs = engine.costs_of(session, None, segno_engine::cost::By::Model, &prices)?;
        render(&CoursePage {
            shell: Shell::of(app, &who, "session"),
            charts: session::course_charts(&course, &stand.state, &times),
            head: stand.head,
            tab: "cost",
            lines: cost_lines(&costs),
            read_only: app.guard.read_only,
        })
    })
    .await
}

#[derive(Template)]
#[template(path = "brief.html")]
struct BriefPage {
    shell: Shell,
    head: Head,
    tab: &'static str,
    text: Body,
    warnings: Vec<String>,
    read_only: bool,
}

pub(in crate::serve) async fn brief(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
) -> Shown {
    let told = api::brief_of(&app, session).await;
    app.work(move |app, engine| {
        let head = session::stand(engine, session, &Times::new(&app.zone))?.head;
        let (text, warnings) = match told {
            Ok(told) => {
                let text =
                    told.get("text").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
                let warnings =
                    told.get("warnings").and_then(serde_json::Value::as_array).into_iter().flatten();
                (text, warnings.filter_map(|it| it.as_str().map(views::one_line)).collect())
            }
            Err(problem) => (String::new(), vec![problem.message]),
        };
        let (shell, read_only) = (Shell::of(app, &who, "session"), app.guard.read_only);
        render(&BriefPage { shell, head, tab: "brief", text: views::whole(&text), warnings, read_only })
    })
    .await
}
