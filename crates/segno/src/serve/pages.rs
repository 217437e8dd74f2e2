//! The pages that people read, and the pieces of them that are put in while they look.

use std::sync::Arc;

use askama::Template;
use axum::extract::Extension;
use axum::extract::Path;
use axum::extract::Query;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::Html;
use axum::response::IntoResponse;
use axum::response::Response;
use segno_engine::Engine;
use segno_engine::EventRow;
use segno_engine::board::CallLine;
use segno_engine::board::Need;
use segno_engine::board::Order;
use segno_engine::board::SessionPage;
use segno_engine::board::TimelineWish;
use segno_engine::core::List;
use segno_engine::core::SessionId;
use segno_engine::transfer::inline;
use segno_engine::workspace::Selection;
use serde::Deserialize;

use super::api;
use super::api::Looked;
use super::api::Place;
use super::api::Sums;
use super::api::Wanted;
use super::api::Window;
use super::app::App;
use super::assets;
use super::chart;
use super::chart::Chart;
use super::check::Who;
use super::problem::Problem;
use super::routes::Id;
use super::session;
use super::session::CheckpointView;
use super::session::DecisionView;
use super::session::Head;
use super::session::LoopView;
use super::session::QuestionView;
use super::views;
use super::views::Body;
use super::views::CallView;
use super::views::Changed;
use super::views::MomentView;
use super::views::Moments;
use super::views::SessionRow;
use super::views::Times;
use crate::output::units;

/// Differences are shown up to so many lines.
const DIFF: usize = 4_000;

/// What stands around every page.
#[derive(Clone, Debug)]
pub(super) struct Shell {
    pub(super) css: String,
    pub(super) js: String,
    pub(super) icon: String,
    pub(super) csrf: String,
    pub(super) read_only: bool,
    pub(super) here: &'static str,
}

impl Shell {
    fn of(app: &App, who: &Who, here: &'static str) -> Self {
        let addresses = assets::addresses();
        Self {
            css: addresses.css.clone(),
            js: addresses.js.clone(),
            icon: addresses.icon.clone(),
            csrf: who.csrf.clone(),
            read_only: app.guard.read_only,
            here,
        }
    }
}

fn render(page: &impl Template) -> Result<Html<String>, Problem> {
    page.render().map(Html).map_err(|why| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", format!("the page cannot be made: {why}"))
    })
}

type Shown = Result<Html<String>, Problem>;

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    shell: Shell,
    problem: &'a Problem,
    title: &'static str,
}

/// A problem as a page.
pub(super) fn problem(app: &App, problem: &Problem) -> Response {
    let who = Who { csrf: String::new(), generation: 0 };
    let title = match problem.status {
        StatusCode::UNAUTHORIZED => "Not signed in",
        StatusCode::NOT_FOUND => "Not found",
        _ => "This cannot be shown",
    };
    let page = ProblemPage { shell: Shell::of(app, &who, "problem"), problem, title };
    match render(&page) {
        Ok(html) => (problem.status, html).into_response(),
        Err(_) => problem.status.into_response(),
    }
}

/// A group of sessions with its heading.
struct Group {
    name: &'static str,
    words: &'static str,
    count: u64,
    rows: Vec<SessionRow>,
}

/// A link that narrows the list.
struct Tab {
    word: &'static str,
    name: &'static str,
    count: u64,
    chosen: bool,
    href: String,
}

#[derive(Template)]
#[template(path = "rows.html")]
struct Rows {
    groups: Vec<Group>,
    tabs: Vec<Tab>,
    total: u64,
    from: u64,
    until: u64,
    newer: Option<String>,
    older: Option<String>,
    questions: Vec<QuestionView>,
    read_only: bool,
    narrowed: bool,
}

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    shell: Shell,
    rows: Rows,
    wanted: Wanted,
    orders: Vec<(&'static str, &'static str)>,
    projects: Vec<(String, String)>,
    agents: Vec<String>,
}

/// The address of a list like this one.
fn list_address(wanted: &Wanted) -> String {
    let skip = if wanted.skip > 0 { wanted.skip.to_string() } else { String::new() };
    let archived = if wanted.archived { "true" } else { "" };
    let members = [
        ("need", wanted.need.as_str()),
        ("project", &wanted.project),
        ("agent", &wanted.agent),
        ("tag", &wanted.tag),
        ("text", &wanted.text),
        ("archived", archived),
        ("order", &wanted.order),
        ("skip", &skip),
    ];
    let given = members.into_iter().filter(|(_, value)| !value.is_empty());
    let parts: Vec<String> = given.map(|(name, value)| format!("{name}={}", views::encoded(value))).collect();
    if parts.is_empty() { "/".to_owned() } else { format!("/?{}", parts.join("&")) }
}

async fn rows(app: &Arc<App>, wanted: &Wanted) -> Result<Rows, Problem> {
    let wish = wanted.wish()?;
    let limit = wish.limit;
    let by_need = wish.order == Order::Need;
    let page = api::page_of(app, wish).await?;
    let times = Times::new(&app.zone);
    let asking: Vec<SessionId> = page
        .sessions
        .iter()
        .filter(|row| row.summary.open_questions > 0)
        .map(|row| row.summary.session_id)
        .take(20)
        .collect();
    let questions = match asking.is_empty() {
        true => Vec::new(),
        false => {
            let times = times.clone();
            app.work(move |_, engine| {
                let waiting = asking.into_iter().flat_map(|id| engine.waiting_of(id).unwrap_or_default());
                Ok(waiting.map(|waiting| QuestionView::of(&waiting, &times)).collect())
            })
            .await?
        }
    };
    Ok(arranged(&page, wanted, limit, by_need, questions, app.guard.read_only, &times))
}

fn arranged(
    page: &SessionPage,
    wanted: &Wanted,
    limit: usize,
    by_need: bool,
    questions: Vec<QuestionView>,
    read_only: bool,
    times: &Times,
) -> Rows {
    let mut groups: Vec<Group> = Vec::new();
    for row in &page.sessions {
        let name = if by_need { row.need.as_str() } else { "all" };
        if groups.last().is_none_or(|group| group.name != name) {
            let words = if by_need { views::need_words(row.need) } else { "Sessions" };
            let count = if by_need { page.groups.get(name).copied().unwrap_or(0) } else { page.total };
            groups.push(Group { name, words, count, rows: Vec::new() });
        }
        if let Some(group) = groups.last_mut() {
            group.rows.push(SessionRow::of(row, times));
        }
    }
    let tab = |word: &'static str, name: &'static str, count: u64| Tab {
        word,
        name,
        count,
        chosen: wanted.need == word,
        href: list_address(&Wanted { need: word.to_owned(), skip: 0, ..wanted.clone() }),
    };
    let all = page.groups.values().sum();
    let needs = Need::ALL.into_iter().map(|need| {
        tab(need.as_str(), views::need_words(need), page.groups.get(need.as_str()).copied().unwrap_or(0))
    });
    let shown = page.sessions.len();
    let at = |skip: usize| list_address(&Wanted { skip, ..wanted.clone() });
    Rows {
        tabs: std::iter::once(tab("", "All", all)).chain(needs).collect(),
        groups,
        total: page.total,
        from: wanted.skip as u64 + u64::from(shown > 0),
        until: (wanted.skip + shown) as u64,
        newer: (wanted.skip > 0).then(|| at(wanted.skip.saturating_sub(limit))),
        older: ((wanted.skip + shown) as u64).lt(&page.total).then(|| at(wanted.skip + limit)),
        questions,
        read_only,
        narrowed: [&wanted.need, &wanted.project, &wanted.agent, &wanted.tag, &wanted.text]
            .iter()
            .any(|it| !it.is_empty()),
    }
}

pub(super) async fn sessions(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Query(wanted): Query<Wanted>,
) -> Shown {
    let rows = rows(&app, &wanted).await?;
    let known = app
        .work(|app, engine| app.on_board(engine, |board| (board.projects(), board.agents())))
        .await
        .unwrap_or_default();
    let orders = [
        ("need", "who needs me"),
        ("changed", "last change"),
        ("created", "newest"),
        ("cost", "cost"),
        ("tokens", "tokens"),
        ("topic", "topic"),
        ("project", "project"),
    ];
    render(&SessionsPage {
        shell: Shell::of(&app, &who, "sessions"),
        rows,
        wanted,
        orders: orders.to_vec(),
        projects: known
            .0
            .into_iter()
            .map(|(path, count)| (path.clone(), format!("{} ({count})", views::one_line(&path))))
            .collect(),
        agents: known.1.into_iter().map(|(name, _)| name).collect(),
    })
}

pub(super) async fn session_rows(State(app): State<Arc<App>>, Query(wanted): Query<Wanted>) -> Shown {
    render(&rows(&app, &wanted).await?)
}

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

/// What is new in a session, as pieces of its page.
pub(super) struct News {
    pub(super) html: String,
    pub(super) stand: String,
    pub(super) until: u64,
    pub(super) head: u64,
}

/// Makes the pieces that say what is new.
pub(super) fn news(
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
    let stand = render(&StandPiece { head: stand.head, read_only: app.guard.read_only })?.0;
    Ok(News { html, stand, until: page.until, head: page.head })
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

pub(super) async fn timeline(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
    Query(window): Query<Window>,
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
pub(super) async fn moments(
    State(app): State<Arc<App>>,
    Id(session): Id,
    Query(window): Query<Window>,
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
pub(super) async fn event(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
    Path((_, seq)): Path<(String, u64)>,
) -> Shown {
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

pub(super) async fn calls(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
    Query(place): Query<Place>,
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

pub(super) async fn call(
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

pub(super) async fn phases(
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

pub(super) async fn checkpoints(
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
pub(super) struct Until {
    /// `now`, or to the next checkpoint.
    to: String,
}

pub(super) async fn checkpoint(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Id(session): Id,
    Path((_, name)): Path<(String, String)>,
    Query(until): Query<Until>,
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

pub(super) async fn decisions(
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

/// A line of costs.
struct CostLine {
    name: String,
    link: String,
    runs: u64,
    input: String,
    output: String,
    cached: String,
    cost: String,
    share: String,
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

fn cost_lines(costs: &segno_engine::cost::Costs) -> Vec<CostLine> {
    let most = costs.lines.iter().map(|line| line.sum.micros).max().unwrap_or(0).max(1);
    let line = |line: &segno_engine::cost::Line| {
        let sum = &line.sum;
        let count =
            |count: u64| if count == 0 { "–".to_owned() } else { units::about(count, sum.estimated) };
        let about = if sum.by_list_price_micros > 0 { "~" } else { "" };
        let id: Option<SessionId> = line.name.parse().ok();
        #[expect(clippy::cast_precision_loss, reason = "a bar")]
        let share = 100.0 * sum.micros as f64 / most as f64;
        CostLine {
            name: id.map_or_else(|| views::one_line(&line.name), crate::command_context::short),
            link: id.map(|id| format!("/s/{id}")).unwrap_or_default(),
            runs: sum.runs,
            input: count(sum.tokens.input.saturating_add(sum.tokens.other)),
            output: count(sum.tokens.output),
            cached: count(sum.tokens.cache_read.saturating_add(sum.tokens.cache_write)),
            cost: format!("{about}{}", units::money(sum.micros, sum.unpriced_tokens)),
            share: format!("{share:.1}"),
        }
    };
    costs.lines.iter().map(line).collect()
}

/// Money and tokens of a session.
pub(super) async fn course(
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

pub(super) async fn brief(
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

/// A text that was found, in pieces: what was looked for is marked.
struct Hit {
    session: String,
    short: String,
    topic: String,
    agent: String,
    project: String,
    kind: String,
    tool: String,
    seq: u64,
    clock: String,
    pieces: Vec<(bool, String)>,
}

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    shell: Shell,
    query: String,
    hits: Vec<Hit>,
    some_words: bool,
    not_indexed: u64,
    texts: u64,
    problem: String,
}

pub(super) async fn search(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Query(wanted): Query<Looked>,
) -> Shown {
    let query = wanted.q.clone();
    let times = Times::new(&app.zone);
    let mut page = SearchPage {
        shell: Shell::of(&app, &who, "search"),
        query: query.clone(),
        hits: Vec::new(),
        some_words: false,
        not_indexed: 0,
        texts: 0,
        problem: String::new(),
    };
    if !query.trim().is_empty() {
        match api::found(&app, wanted).await {
            Ok(found) => {
                page.hits = found.hits.iter().map(|hit| a_hit(hit, &times)).collect();
                (page.some_words, page.not_indexed, page.texts) =
                    (found.some_words, found.not_indexed, found.texts);
            }
            Err(problem) => page.problem = problem.message,
        }
    }
    render(&page)
}

fn a_hit(hit: &segno_engine::search::FoundText, times: &Times) -> Hit {
    let mut pieces = Vec::new();
    let mut at = 0;
    for (from, to) in &hit.marks {
        let (Some(before), Some(mark)) = (hit.snippet.get(at..*from), hit.snippet.get(*from..*to)) else {
            continue;
        };
        pieces.push((false, views::one_line(before)));
        pieces.push((true, views::one_line(mark)));
        at = *to;
    }
    pieces.push((false, views::one_line(hit.snippet.get(at..).unwrap_or_default())));
    Hit {
        session: hit.session_id.to_string(),
        short: crate::command_context::short(hit.session_id),
        topic: views::topic(hit.topic.as_deref()),
        agent: hit.agent.as_deref().map(views::one_line).unwrap_or_default(),
        project: views::project_name(&hit.project),
        kind: views::one_line(&hit.kind),
        tool: hit.tool.as_deref().map(views::one_line).unwrap_or_default(),
        seq: hit.seq,
        clock: times.clock(hit.at),
        pieces: pieces.into_iter().filter(|(_, text)| !text.is_empty()).collect(),
    }
}

#[derive(Template)]
#[template(path = "cost.html")]
struct CostPage {
    shell: Shell,
    sums: Sums,
    chart: Option<Chart>,
    lines: Vec<CostLine>,
    total: String,
    sessions: u64,
    list_prices: String,
    unpriced: String,
    bys: Vec<(&'static str, &'static str)>,
    projects: Vec<(String, String)>,
    by_word: &'static str,
}

/// What everything cost.
pub(super) async fn cost(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Query(sums): Query<Sums>,
) -> Shown {
    let by = sums.by()?;
    let known =
        app.work(|app, engine| app.on_board(engine, |board| board.projects())).await.unwrap_or_default();
    let asked = Sums { days: Some(sums.days.unwrap_or(30)), ..sums.clone() };
    let costs = api::costs_of(&app, &asked, by).await?;
    let days = match by == segno_engine::cost::By::Day {
        true => None,
        false => Some(api::costs_of(&app, &asked, segno_engine::cost::By::Day).await?),
    };
    let by_day = days.as_ref().unwrap_or(&costs);
    let columns: Vec<chart::Column> = by_day
        .lines
        .iter()
        .map(|line| {
            let (priced, listed) = (
                line.sum.micros - line.sum.by_list_price_micros.min(line.sum.micros),
                line.sum.by_list_price_micros.min(line.sum.micros),
            );
            let parts = vec![
                (priced, "plain", format!("{} as agents say", units::dollars(priced))),
                (listed, "listed", format!("{} by list prices", units::dollars(listed))),
            ];
            chart::Column { name: line.name.get(5..).unwrap_or(&line.name).to_owned(), parts }
        })
        .collect();
    let words = format!(
        "{} in {}.",
        units::dollars(costs.total.micros),
        units::things(by_day.lines.len() as u64, "day")
    );
    let heads = ["day", "as agents say", "by list prices"];
    let chart = chart::bars("Cost by day", words, &heads, &columns, units::dollars);
    let bys = [
        ("day", "day"),
        ("project", "project"),
        ("agent", "agent"),
        ("model", "model"),
        ("session", "session"),
    ];
    let by_word = bys.iter().find(|(word, _)| *word == sums.by).map_or("day", |(word, _)| word);
    let total = &costs.total;
    render(&CostPage {
        shell: Shell::of(&app, &who, "cost"),
        chart: chart.filter(|_| total.micros > 0),
        lines: cost_lines(&costs),
        total: units::money(total.micros, total.unpriced_tokens),
        sessions: costs.sessions,
        list_prices: match (&costs.prices_as_of, total.by_list_price_micros) {
            (Some(day), 1..) => format!(
                "{} of it by list prices of {day}: the agent did not say",
                units::dollars(total.by_list_price_micros)
            ),
            _ => String::new(),
        },
        unpriced: match total.unpriced_tokens {
            0 => String::new(),
            tokens => format!("{} have no known price and are not in the sum", units::tokens(tokens)),
        },
        bys: bys.to_vec(),
        projects: known.into_iter().map(|(path, _)| (path.clone(), views::one_line(&path))).collect(),
        by_word,
        sums: asked,
    })
}

/// A one-time link: whoever opens it first is signed in.
pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    Path(code): Path<String>,
) -> Result<Response, Problem> {
    let own = Arc::clone(&app);
    let used = app.blocking(move || Ok(own.failures.has() && own.keys.use_link(&code))).await?;
    if !used {
        app.failures.take();
        let why = "this link was used already, or is too old";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "bad_link", why)
            .hint("segno serve --link   prints a new one"));
    }
    let secure = if app.guard.scheme == "https" { "; Secure" } else { "" };
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000{secure}",
        app.guard.cookie,
        app.keys.cookie()?
    );
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| Problem::bad("no cookie can be made"))?;
    let home = HeaderValue::from_static("/");
    Ok((StatusCode::SEE_OTHER, [(header::SET_COOKIE, cookie), (header::LOCATION, home)]).into_response())
}

/// Style, script and icon: their names change with what they hold.
pub(super) async fn asset(Path(file): Path<String>) -> Result<Response, Problem> {
    let (kind, bytes) = assets::by_name(&file).ok_or_else(Problem::not_found)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    Ok((headers, bytes).into_response())
}
