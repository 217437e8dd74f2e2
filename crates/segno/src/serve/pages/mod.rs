//! The pages that people read, and the pieces of them that are put in while they look.

mod cost;
mod insights;
mod list;
mod session;

use std::sync::Arc;

use askama::Template;
use axum::extract::Path;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::Html;
use axum::response::IntoResponse;
use axum::response::Response;

use super::app::App;
use super::assets;
use super::check::Who;
use super::problem::Problem;
use crate::commands::serve::Scope;
pub(super) use cost::cost;
pub(super) use insights::insights;
pub(super) use list::{search, session_rows, sessions};
pub(super) use session::{
    brief, call, calls, checkpoint, checkpoints, course, decisions, event, moments, news, phases, timeline,
};

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
    let who = Who { csrf: String::new(), generation: 0, scope: Scope::Read };
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

/// A one-time link: whoever opens it first is signed in.
pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    Path(code): Path<String>,
) -> Result<Response, Problem> {
    let own = Arc::clone(&app);
    let mode = app.guard.mode();
    let used = app.blocking(move || Ok(own.keys.use_link(&code, mode))).await?;
    if !used {
        let why = "this link was used already, or is too old";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "bad_link", why)
            .hint("segno serve --link   prints a new one"));
    }
    let secure = if app.guard.scheme == "https" { "; Secure" } else { "" };
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000{secure}",
        app.guard.cookie,
        app.keys.cookie(mode)?
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
