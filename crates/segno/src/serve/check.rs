//! What every request has to pass before anything is done, and what every answer carries.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::Method;
use axum::http::StatusCode;
use axum::http::header;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use segno_engine::run::ancestry::Below;
use segno_engine::run::ancestry::Caller;
use segno_engine::run::ancestry::agent_of;

use super::app::App;
use super::app::Guard;
use super::app::is_no_store;
use super::listen::Peer;
use super::problem::Problem;
use crate::commands::serve::Scope;

/// The longest body, in bytes.
const BODY: usize = 64 << 10;
/// The longest address, in bytes.
const ADDRESS: usize = 8 << 10;
/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a page has to send along with an action.
pub(super) const CSRF: &str = "x-segno-csrf";

const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

/// Who asks.
#[derive(Clone, Debug)]
pub(super) struct Who {
    /// What a page of this browser has to send along with an action; none for a program.
    pub(super) csrf: String,
    /// The key by which it was let in; another one means that it was signed out.
    pub(super) generation: u64,
    /// What it may do.
    pub(super) scope: Scope,
}

/// Checks a request, and completes the answer.
pub(super) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let looks = wants_page(&request);
    let fixed = request.uri().path().starts_with("/a/");
    let mut response = match admit(&app, request).await {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    if looks && let Some(problem) = response.extensions().get::<Problem>().cloned() {
        response = super::pages::problem(&app, &problem);
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    if !fixed {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Whether a person looks, not a program.
fn wants_page(request: &Request) -> bool {
    let accepts = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    request.method() == Method::GET
        && !request.uri().path().starts_with("/api/")
        && accepts.is_some_and(|accepts| accepts.contains("text/html"))
}

async fn admit(app: &Arc<App>, mut request: Request) -> Result<Request, Problem> {
    let guard = &app.guard;
    check_host(guard, request.headers())?;
    if request.uri().to_string().len() > ADDRESS {
        return Err(Problem::new(StatusCode::URI_TOO_LONG, "too_long", "the address is too long"));
    }
    let site = text(request.headers(), "sec-fetch-site");
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return Err(forbidden("another site asks for this page").hint("open the address in a tab of its own"));
    }
    let path = request.uri().path();
    let open = path.starts_with("/a/") || path.starts_with("/in/");
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    if open && !changes {
        if request.method() == Method::HEAD && path.starts_with("/in/") {
            // Programs look at links before a person does: a look uses none up.
            let why = "a link signs in whoever opens it";
            return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "bad_method", why));
        }
        return if app.strangers.take() { Ok(request) } else { Err(too_many()) };
    }
    // Strangers, however many, use up only what is for strangers.
    let (who, by_cookie) = match let_in(app, request.headers()) {
        Ok(known) if app.requests.take() => known,
        Err(problem) if app.strangers.take() => return Err(problem),
        Ok(_) | Err(_) => return Err(too_many()),
    };
    check_scope(who.scope, path, changes)?;
    if changes {
        check_action(app, &request, by_cookie.as_deref())?;
        refuse_agents(app, request.extensions().get::<Peer>().cloned()).await?;
        request = with_whole_body(request).await?;
    }
    request.extensions_mut().insert(who);
    Ok(request)
}

fn too_many() -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many", "too many requests; wait a moment")
}

/// A token that was made for less does no more.
fn check_scope(scope: Scope, path: &str, changes: bool) -> Result<(), Problem> {
    let why = match scope {
        Scope::Read if changes => "this token only reads",
        Scope::Metrics if changes || path != "/metrics" => "this token is for the numbers alone",
        Scope::All | Scope::Read | Scope::Metrics => return Ok(()),
    };
    Err(forbidden(why).hint("segno serve --token   prints one that can do more"))
}

/// An agent does not act in the name of its person, with whatever it has found. Who asks is looked up while they wait for the
/// answer: of somebody who cannot be found, or has gone already, nobody can say that it is none.
async fn refuse_agents(app: &Arc<App>, peer: Option<Peer>) -> Result<(), Problem> {
    let peer = peer.ok_or_else(unknown_caller)?;
    let own = Arc::clone(app);
    let below = app
        .blocking(move || {
            let those = match peer.caller() {
                Caller::Elsewhere => return Ok(Below::Nobody),
                Caller::Unknown => return Ok(Below::Unknown),
                Caller::These(those) => those,
            };
            let holders = match own.with_engine(|engine| Ok(engine.holders()?)) {
                Err(problem) if is_no_store(&problem) => Vec::new(),
                other => other?,
            };
            let all: Vec<Below> = those.into_iter().map(|pid| agent_of(pid, &holders)).collect();
            let worst = [Below::Run, Below::Unknown].into_iter().find(|below| all.contains(below));
            Ok(worst.unwrap_or(Below::Nobody))
        })
        .await?;
    match below {
        Below::Nobody => Ok(()),
        Below::Run => {
            Err(forbidden("an agent cannot act through the page: this comes from one, or from inside a run"))
        }
        Below::Unknown => Err(unknown_caller()),
    }
}

fn unknown_caller() -> Problem {
    forbidden("cannot tell which program asks for this, so nothing is done")
        .hint("wait for the answer before you close the connection")
        .hint("segno serve --unix PATH   for a tunnel from where programs cannot be seen")
}

/// A page that another name points here (DNS rebinding) is not ours, whatever it knows.
fn check_host(guard: &Guard, headers: &HeaderMap) -> Result<(), Problem> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(Problem::bad("the request does not say which host it is for"));
    };
    let host = host.to_str().unwrap_or_default();
    if is_ours(guard, host) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::MISDIRECTED_REQUEST,
        "wrong_host",
        "this server is not reached by that name",
    )
    .hint("segno serve --host NAME[:PORT]   allows another name"))
}

fn is_ours(guard: &Guard, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    if guard.hosts.contains(&host) {
        return true;
    }
    let (name, port) = host.rsplit_once(':').filter(|(_, port)| !port.contains(']')).unwrap_or((&host, "80"));
    guard.any_loopback
        && !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && ["localhost", "127.0.0.1", "[::1]"].contains(&name)
}

fn let_in(app: &App, headers: &HeaderMap) -> Result<(Who, Option<String>), Problem> {
    let generation = app.keys.generation();
    let stranger = |why: &str| {
        Problem::new(StatusCode::UNAUTHORIZED, "not_signed_in", why)
            .hint("segno serve --link   prints a link that signs this browser in")
    };
    let bearer = text(headers, "authorization").and_then(|value| value.strip_prefix("Bearer "));
    if let Some(token) = bearer {
        let scope = app.keys.knows_token(token).ok_or_else(|| stranger("this token is not known"))?;
        return Ok((Who { csrf: String::new(), generation, scope }, None));
    }
    let cookie =
        cookie(headers, &app.guard.cookie).ok_or_else(|| stranger("this browser is not signed in"))?;
    if !app.keys.knows_cookie(cookie, app.guard.mode()) {
        return Err(stranger("this browser is not signed in any more"));
    }
    Ok((Who { csrf: app.keys.csrf(cookie), generation, scope: Scope::All }, Some(cookie.to_owned())))
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';')).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// What changes something comes from our own page, or from a program that has the token.
fn check_action(app: &App, request: &Request, cookie: Option<&str>) -> Result<(), Problem> {
    let headers = request.headers();
    let origin = text(headers, "origin");
    let own = |origin: &str| {
        let host = origin.strip_prefix(app.guard.scheme).and_then(|rest| rest.strip_prefix("://"));
        host.is_some_and(|host| text(headers, "host").is_some_and(|ours| ours.eq_ignore_ascii_case(host)))
    };
    if origin.is_some_and(|origin| !own(origin)) || (origin.is_none() && cookie.is_some()) {
        return Err(forbidden("this was not asked for by the page itself"));
    }
    if let Some(cookie) = cookie
        && !text(headers, CSRF).is_some_and(|csrf| app.keys.knows_csrf(cookie, csrf))
    {
        return Err(forbidden("this page is out of date; load it again"));
    }
    let kind = text(headers, "content-type").unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", "only JSON is read here"));
    }
    if app.guard.read_only {
        return Err(forbidden("this page only shows").hint("segno serve   without --read-only lets you act"));
    }
    Ok(())
}

/// Reads a body before anything is done, within bounds of size and time.
async fn with_whole_body(request: Request) -> Result<Request, Problem> {
    let (parts, body) = request.into_parts();
    let large = || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the request is too large");
    let said = text(&parts.headers, "content-length").and_then(|value| value.parse::<usize>().ok());
    if said.is_some_and(|said| said > BODY) {
        return Err(large());
    }
    let read = tokio::time::timeout(PATIENCE, to_bytes(body, BODY)).await;
    let slow = || Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the request took too long");
    let bytes = read.map_err(|_| slow())?.map_err(|_| large())?;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

fn forbidden(why: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", why)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        let guard = Guard {
            hosts: vec!["127.0.0.1:7346".to_owned(), "localhost:7346".to_owned()],
            any_loopback: false,
            scheme: "http",
            read_only: false,
            cookie: String::new(),
        };
        for host in ["127.0.0.1:7346", "LOCALHOST:7346"] {
            assert!(is_ours(&guard, host), "{host}");
        }
        let foreign = [
            "evil.example:7346",
            "127.0.0.1.nip.io:7346",
            "localhost.:7346",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:7346@evil.example",
            "",
            "0.0.0.0:7346",
            "localhost:7346.evil.example",
        ];
        for host in foreign {
            assert!(!is_ours(&guard, host), "{host}");
        }
        let tunnel = Guard { any_loopback: true, hosts: Vec::new(), ..guard };
        assert!(
            is_ours(&tunnel, "localhost:9000")
                && is_ours(&tunnel, "[::1]:9000")
                && is_ours(&tunnel, "localhost")
        );
        for host in ["evil.example:9000", "localhost:", "localhost:9x", "localhost.evil.example"] {
            assert!(!is_ours(&tunnel, host), "{host}");
        }
    }
}
