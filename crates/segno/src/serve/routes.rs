//! Every address: what it is, what it takes and who does it. The documentation of the interface is made of the same list.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::extract::FromRequestParts;
use axum::extract::Path;
use axum::http::request::Parts;
use axum::routing::MethodRouter;
use axum::routing::get;
use axum::routing::post;
use segno_engine::core::SessionId;
use serde_json::Value;
use serde_json::json;

use super::actions;
use super::api;
use super::app::App;
use super::check;
use super::live;
use super::metrics;
use super::pages;
use super::problem::Problem;

/// A session in an address: its whole name, or there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Id(pub(super) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let named: Result<Path<std::collections::BTreeMap<String, String>>, _> =
            Path::from_request_parts(parts, state).await;
        let Path(named) = named.map_err(|_| Problem::not_found())?;
        let id = named.get("session").and_then(|id| id.parse().ok());
        id.map(Self).ok_or_else(Problem::not_found)
    }
}

/// One address of the interface for programs.
pub(super) struct Route {
    pub(super) path: &'static str,
    /// Whether something is done, not only read.
    pub(super) acts: bool,
    summary: &'static str,
    /// What may be asked: name, type, what it is.
    pub(super) takes: &'static [(&'static str, &'static str, &'static str)],
    /// What comes back.
    gives: Gives,
    handler: MethodRouter<Arc<App>>,
}

/// What an answer is.
#[derive(Clone, Copy)]
enum Gives {
    /// A document with these members: name and type. One with a `?` may be null.
    Members(&'static [(&'static str, &'static str)]),
    /// What the command of that name prints with `--json`.
    Command(&'static str),
    /// That, or without a mark what would be done.
    Shown(&'static str),
    /// Events, without end.
    Events,
}

fn reads(
    path: &'static str,
    summary: &'static str,
    takes: &'static [(&'static str, &'static str, &'static str)],
    gives: Gives,
    handler: MethodRouter<Arc<App>>,
) -> Route {
    Route { path, acts: false, summary, takes, gives, handler }
}

fn acts(
    path: &'static str,
    summary: &'static str,
    takes: &'static [(&'static str, &'static str, &'static str)],
    gives: Gives,
    handler: MethodRouter<Arc<App>>,
) -> Route {
    Route { path, acts: true, summary, takes, gives, handler }
}

/// A page of a long list.
const LIMIT: (&str, &str, &str) = ("limit", "integer", "At most so many");

/// The interface for programs, which the page itself uses.
pub(super) fn interface() -> Vec<Route> {
    vec![
        reads(
            "/api/v1/sessions",
            "Sessions, whoever needs somebody first",
            &[
                ("need", "string", "you, works, waits or over"),
                ("project", "string", "Of this project"),
                ("agent", "string", "Of this agent"),
                ("tag", "string", "With this tag"),
                ("text", "string", "With this in topic, project, branch, file, item or id"),
                ("archived", "boolean", "Archived ones too"),
                ("order", "string", "need, changed, created, cost, tokens, topic or project"),
                ("skip", "integer", "Leave out so many"),
                LIMIT,
            ],
            Gives::Members(&[
                ("version", "integer"),
                ("sessions", "array"),
                ("total", "integer"),
                ("groups", "object"),
                ("change", "integer"),
            ]),
            get(api::sessions),
        ),
        reads(
            "/api/v1/sessions/{session}",
            "Where a session stands",
            &[],
            Gives::Members(&[
                ("version", "integer"),
                ("session", "object"),
                ("driven", "boolean"),
                ("need", "string?"),
                ("questions", "array"),
                ("loop", "object?"),
                ("limits", "array"),
                ("in_doubt", "object"),
                ("open_calls", "object"),
                ("notices", "array"),
            ]),
            get(api::session),
        ),
        reads(
            "/api/v1/sessions/{session}/timeline",
            "What happened, in pages",
            &[
                ("after", "integer", "After this event, oldest first"),
                ("before", "integer", "Before this event; the newest if neither is given"),
                LIMIT,
            ],
            Gives::Members(&[
                ("version", "integer"),
                ("session_id", "string"),
                ("moments", "array"),
                ("after", "integer"),
                ("until", "integer"),
                ("head", "integer"),
            ]),
            get(api::timeline),
        ),
        reads(
            "/api/v1/sessions/{session}/calls",
            "The ledger, the newest call first",
            &[
                ("after_seq", "integer", "After this row …"),
                ("after_key", "string", "… with this key"),
                LIMIT,
            ],
            Gives::Members(&[("version", "integer"), ("calls", "array"), ("total", "integer")]),
            get(api::calls),
        ),
        reads(
            "/api/v1/sessions/{session}/checkpoints",
            "The checkpoints",
            &[],
            Gives::Members(&[("checkpoints", "array")]),
            get(api::checkpoints),
        ),
        reads(
            "/api/v1/sessions/{session}/decisions",
            "The decisions",
            &[],
            Gives::Members(&[("decisions", "array"), ("total", "integer")]),
            get(api::decisions),
        ),
        reads(
            "/api/v1/sessions/{session}/course",
            "Money and tokens over time",
            &[],
            Gives::Members(&[("points", "array"), ("until", "integer")]),
            get(api::course),
        ),
        reads(
            "/api/v1/sessions/{session}/brief",
            "What an agent would be told that goes on",
            &[],
            Gives::Command("segno resume --show-brief"),
            get(api::brief),
        ),
        reads(
            "/api/v1/sessions/{session}/diff",
            "What is different in the files since a checkpoint",
            &[
                ("since", "string", "The earlier checkpoint"),
                ("until", "string", "The later one; now if none is given"),
            ],
            Gives::Command("segno diff"),
            get(api::diff),
        ),
        reads(
            "/api/v1/sessions/{session}/events",
            "What happens in a session, as server-sent events; resumed by Last-Event-ID, the number of an event",
            &[("after", "integer", "After this event")],
            Gives::Events,
            get(live::session),
        ),
        reads(
            "/api/v1/events",
            "That something changed in some session, as server-sent events",
            &[],
            Gives::Events,
            get(live::all),
        ),
        reads(
            "/api/v1/questions",
            "What waits for an answer",
            &[],
            Gives::Members(&[("questions", "array")]),
            get(api::questions),
        ),
        reads(
            "/api/v1/search",
            "Find words in everything that was recorded",
            &[("q", "string", "What to look for, as for segno search"), LIMIT],
            Gives::Members(&[
                ("hits", "array"),
                ("some_words", "boolean"),
                ("not_indexed", "integer"),
                ("texts", "integer"),
            ]),
            get(api::search),
        ),
        reads(
            "/api/v1/costs",
            "What sessions cost",
            &[
                ("by", "string", "day, project, agent, model or session"),
                ("project", "string", "Of this project"),
                ("days", "integer", "Of sessions that changed in so many days"),
            ],
            Gives::Members(&[
                ("by", "string"),
                ("lines", "array"),
                ("total", "object"),
                ("sessions", "integer"),
                ("prices_as_of", "string?"),
            ]),
            get(api::costs),
        ),
        reads(
            "/api/v1/insights",
            "What holds work up, and what would help",
            &[
                ("project", "string", "Of this project"),
                ("days", "integer", "Only what happened in so many days"),
            ],
            Gives::Command("segno insights"),
            get(api::insights),
        ),
        reads(
            "/api/v1/openapi.json",
            "This document",
            &[],
            Gives::Members(&[
                ("openapi", "string"),
                ("info", "object"),
                ("security", "array"),
                ("paths", "object"),
                ("components", "object"),
            ]),
            get(api::openapi),
        ),
        acts(
            "/api/v1/sessions/{session}/pause",
            "Pause it; an agent that runs stops first",
            &[("reason", "string", "Why")],
            Gives::Command("segno pause"),
            post(actions::pause),
        ),
        acts(
            "/api/v1/sessions/{session}/resume",
            "Go on: with its agent in the background, or make it active again if it has none",
            &[
                ("from", "string", "checkpoint, live or fresh; has to be said when calls are in doubt"),
                ("mark", "string", "For checkpoint: the mark of what was shown"),
            ],
            Gives::Shown("segno resume"),
            post(actions::resume),
        ),
        acts(
            "/api/v1/sessions/{session}/stop",
            "Stop the agent politely",
            &[],
            Gives::Command("segno stop"),
            post(actions::stop),
        ),
        acts(
            "/api/v1/sessions/{session}/extend",
            "Allow more: tokens or dollars",
            &[
                ("tokens", "string", "So many more, like 50k"),
                ("dollars", "string", "So much more, like 2.50"),
            ],
            Gives::Command("segno budget"),
            post(actions::extend),
        ),
        acts(
            "/api/v1/sessions/{session}/reset-breaker",
            "Close the breaker",
            &[("because", "string", "Why")],
            Gives::Command("segno breaker reset"),
            post(actions::reset_breaker),
        ),
        acts(
            "/api/v1/sessions/{session}/note",
            "Add a note",
            &[("text", "string!", "The note")],
            Gives::Command("segno note"),
            post(actions::note),
        ),
        acts(
            "/api/v1/sessions/{session}/checkpoint",
            "Make a checkpoint",
            &[("name", "string", "Its name")],
            Gives::Command("segno checkpoint create"),
            post(actions::checkpoint),
        ),
        acts(
            "/api/v1/sessions/{session}/undo",
            "Undo what the last turn did to the files: without a mark what would be done, with that mark do it",
            &[("mark", "string", "The mark of what was shown")],
            Gives::Shown("segno undo"),
            post(actions::undo),
        ),
        acts(
            "/api/v1/sessions/{session}/restore",
            "Put files back to a checkpoint: without a mark what would be done, with that mark do it",
            &[("checkpoint", "string!", "Which"), ("mark", "string", "The mark of what was shown")],
            Gives::Shown("segno checkpoint restore"),
            post(actions::restore),
        ),
        acts(
            "/api/v1/sessions/{session}/answer",
            "Answer a question",
            &[
                ("question", "string!", "Its whole name"),
                ("answer", "string!", "yes, no, or words"),
                ("mark", "string", "For going on from a checkpoint: the mark of what was shown"),
            ],
            Gives::Shown("segno answer"),
            post(actions::answer),
        ),
    ]
}

/// Everything that is served.
pub(super) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/", get(pages::sessions))
        .route("/rows", get(pages::session_rows))
        .route("/search", get(pages::search))
        .route("/cost", get(pages::cost))
        .route("/insights", get(pages::insights))
        .route("/s/{session}", get(pages::timeline))
        .route("/s/{session}/moments", get(pages::moments))
        .route("/s/{session}/e/{seq}", get(pages::event))
        .route("/s/{session}/calls", get(pages::calls))
        .route("/s/{session}/calls/{key}", get(pages::call))
        .route("/s/{session}/phases", get(pages::phases))
        .route("/s/{session}/checkpoints", get(pages::checkpoints))
        .route("/s/{session}/checkpoints/{checkpoint}", get(pages::checkpoint))
        .route("/s/{session}/decisions", get(pages::decisions))
        .route("/s/{session}/cost", get(pages::course))
        .route("/s/{session}/brief", get(pages::brief))
        .route("/in/{code}", get(pages::sign_in))
        .route("/a/{file}", get(pages::asset))
        .route("/metrics", get(metrics::metrics));
    for route in interface() {
        router = router.route(route.path, route.handler);
    }
    router
        .fallback(async || Problem::not_found())
        .method_not_allowed_fallback(async || {
            Problem::new(axum::http::StatusCode::METHOD_NOT_ALLOWED, "bad_method", "this cannot be done here")
        })
        .layer(DefaultBodyLimit::max(64 << 10))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), check::check))
        .with_state(app)
}

/// A name that programs can be made from: what is done, and with what.
fn operation_id(route: &Route) -> String {
    let mut id = if route.acts { "do" } else { "get" }.to_owned();
    let parts = route.path.trim_start_matches("/api/v1/").split(['/', '-', '.']);
    for part in parts.map(|part| if part == "{session}" { "session" } else { part }) {
        let (first, rest) = part.split_at(1);
        id.push_str(&first.to_uppercase());
        id.push_str(rest);
    }
    id
}

/// What comes back when it could be done.
fn answer(gives: Gives) -> Value {
    let json = |description: String, schema: Value| json!({ "description": description, "content": { "application/json": { "schema": schema } } });
    match gives {
        Gives::Members(members) => {
            let schema = |kind: &str| match kind.strip_suffix('?') {
                Some(kind) => json!({ "type": [kind, "null"] }),
                None => json!({ "type": kind }),
            };
            let properties: serde_json::Map<String, Value> =
                members.iter().map(|(name, kind)| ((*name).to_owned(), schema(kind))).collect();
            let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
            json(
                "Done".to_owned(),
                json!({ "type": "object", "properties": properties, "required": required }),
            )
        }
        Gives::Command(command) => {
            json(format!("What `{command} --json` prints"), json!({ "type": "object" }))
        }
        Gives::Shown(command) => {
            let shown = json!({
                "type": "object",
                "properties": {
                    "plan": { "type": "object" }, "mark": { "type": "string" }, "question": { "type": "string" },
                },
            });
            json(
                format!("What `{command} --json` prints; or what would be done to files, with its mark"),
                shown,
            )
        }
        Gives::Events => json!({
            "description": "Events until one side goes away",
            "content": { "text/event-stream": { "schema": { "type": "string" } } },
        }),
    }
}

/// The interface as an OpenAPI document.
pub(super) fn openapi() -> Value {
    let mut paths = serde_json::Map::new();
    for route in interface() {
        let mut parameters: Vec<Value> = Vec::new();
        if route.path.contains("{session}") {
            parameters.push(json!({
                "name": "session", "in": "path", "required": true, "schema": { "type": "string" },
                "description": "The whole id of the session",
            }));
        }
        let schema = |kind: &str| json!({ "type": kind.trim_end_matches('!') });
        let mut operation = json!({
            "operationId": operation_id(&route),
            "summary": route.summary,
            "responses": {
                "200": answer(route.gives),
                "default": {
                    "description": "It cannot be done",
                    "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
                },
            },
        });
        if route.acts {
            let members = route.takes.iter();
            let properties: serde_json::Map<String, Value> = members
                .map(|(name, kind, about)| {
                    ((*name).to_owned(), json!({ "type": kind.trim_end_matches('!'), "description": about }))
                })
                .collect();
            let needed: Vec<&str> = route
                .takes
                .iter()
                .filter(|(_, kind, _)| kind.ends_with('!'))
                .map(|(name, ..)| *name)
                .collect();
            let mut body =
                json!({ "type": "object", "additionalProperties": false, "properties": properties });
            if !needed.is_empty() {
                body["required"] = json!(needed);
            }
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": body } } });
        } else {
            parameters.extend(route.takes.iter().map(|(name, kind, about)| {
                json!({ "name": name, "in": "query", "schema": schema(kind), "description": about })
            }));
        }
        if !parameters.is_empty() {
            operation["parameters"] = json!(parameters);
        }
        let method = if route.acts { "post" } else { "get" };
        paths.insert(route.path.to_owned(), json!({ method: operation }));
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "segno serve", "version": "1" },
        "security": [{ "token": [] }, { "browser": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "segno serve --token prints it" },
                "browser": {
                    "type": "apiKey", "in": "cookie", "name": "segno-PORT",
                    "description": "What a browser has after its one-time link; actions also send X-Segno-CSRF and Origin",
                },
            },
            "schemas": {
                "Problem": {
                    "type": "object",
                    "properties": { "error": {
                        "type": "object",
                        "properties": {
                            "code": { "type": "string" }, "message": { "type": "string" },
                            "hints": { "type": "array", "items": { "type": "string" } },
                        },
                    } },
                },
            },
        },
    })
}
