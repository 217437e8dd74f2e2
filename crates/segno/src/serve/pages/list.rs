//! The list of sessions, and the texts a search finds in them.

use std::sync::Arc;

use askama::Template;
use axum::extract::Extension;
use axum::extract::State;
use segno_engine::board::Need;
use segno_engine::board::Order;
use segno_engine::board::SessionPage;
use segno_engine::core::SessionId;

use super::Shell;
use super::Shown;
use super::render;
use crate::serve::api;
use crate::serve::api::Looked;
use crate::serve::api::Wanted;
use crate::serve::app::App;
use crate::serve::asked::Asked;
use crate::serve::check::Who;
use crate::serve::problem::Problem;
use crate::serve::session::QuestionView;
use crate::serve::views;
use crate::serve::views::SessionRow;
use crate::serve::views::Times;

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
        .filter(|row| row.need == Need::You)
        .map(|row| row.summary.session_id)
        .take(20)
        .collect();
    let questions = match asking.is_empty() {
        true => Vec::new(),
        false => {
            let times = times.clone();
            app.work(move |_, engine| {
                let waiting = asking.into_iter().flat_map(|id| engine.waiting_of(id).unwrap_or_default());
                Ok(waiting.map(|waiting| QuestionView::of(engine, &waiting, &times)).collect())
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

pub(in crate::serve) async fn sessions(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Asked(wanted): Asked<Wanted>,
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

pub(in crate::serve) async fn session_rows(
    State(app): State<Arc<App>>,
    Asked(wanted): Asked<Wanted>,
) -> Shown {
    render(&rows(&app, &wanted).await?)
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

pub(in crate::serve) async fn search(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Asked(wanted): Asked<Looked>,
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
