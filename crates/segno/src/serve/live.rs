//! What is told while it happens: events of one session, and that something changed in any.
//!
//! What a browser has seen is named by the number of the journal's event, which means the same after a lost connection and in
//! another server.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event as Told;
use axum::response::sse::KeepAlive;
use axum::response::sse::Sse;
use segno_engine::board::TimelineWish;
use segno_engine::core::SessionId;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::app::App;
use super::asked;
use super::asked::Asked;
use super::check::Who;
use super::listen::Peer;
use super::pages;
use super::problem::Problem;
use super::routes::Id;

/// How many moments are told at once; a browser that has missed more loads the page again.
const AT_ONCE: usize = 200;
const MISSED: u64 = 20_000;
/// How many messages wait for a slow reader.
const QUEUE: usize = 4;
/// A reader that takes nothing for so long has gone away.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often silence is broken, so that both sides notice a lost connection.
const ALIVE: Duration = Duration::from_secs(15);
/// Changes that come in a burst are told together.
const TOGETHER: Duration = Duration::from_millis(60);

/// Where to begin.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct From {
    /// After this event.
    #[serde(deserialize_with = "asked::number")]
    after: Option<u64>,
}

type Stream = Sse<axum::response::sse::KeepAliveStream<ReceiverStream<Result<Told, Infallible>>>>;

fn stream(peer: &Peer) -> (mpsc::Sender<Result<Told, Infallible>>, Stream) {
    peer.streams();
    let (sender, receiver) = mpsc::channel(QUEUE);
    // An event, not a comment: scripts do not hear of comments.
    let alive = KeepAlive::new().interval(ALIVE).event(Told::default().event("alive").data(""));
    (sender, Sse::new(ReceiverStream::new(receiver)).keep_alive(alive))
}

/// Says something; false if nobody listens any more.
async fn say(sender: &mpsc::Sender<Result<Told, Infallible>>, told: Told) -> bool {
    sender.send_timeout(Ok(told), PATIENCE).await.is_ok()
}

/// Says that something changed in some session.
pub(super) async fn all(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Extension(peer): Extension<Peer>,
) -> Stream {
    let (sender, stream) = stream(&peer);
    tokio::spawn(async move {
        let mut changes = app.listen();
        changes.mark_changed();
        while changes.changed().await.is_ok() && app.keys.generation() == who.generation {
            tokio::time::sleep(TOGETHER).await;
            let change = *changes.borrow_and_update();
            let told = Told::default().event("sessions").data(json!({ "change": change }).to_string());
            if !say(&sender, told).await {
                return;
            }
        }
    });
    stream
}

/// Tells what happens in a session.
pub(super) async fn session(
    State(app): State<Arc<App>>,
    Id(session): Id,
    Asked(from): Asked<From>,
    Extension(who): Extension<Who>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Stream, Problem> {
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let head = app.work(move |_, engine| Ok(engine.load(session)?.state.seq)).await?;
    let after: u64 = seen.or(from.after).unwrap_or(head);
    let (sender, stream) = stream(&peer);
    tokio::spawn(follow(app, session, after, head, who, sender));
    Ok(stream)
}

async fn follow(
    app: Arc<App>,
    session: SessionId,
    mut after: u64,
    mut head: u64,
    who: Who,
    sender: mpsc::Sender<Result<Told, Infallible>>,
) {
    let mut changes = app.listen();
    let mut shown = (String::new(), String::new());
    loop {
        // More than there is: it is another store now.
        if after > head || head - after > MISSED {
            let _ = say(&sender, Told::default().event("reload").data("")).await;
            return;
        }
        let told = app
            .work(move |app, engine| pages::news(app, engine, session, TimelineWish::After(after), AT_ONCE))
            .await;
        let Ok(news) = told else { return };
        let more = news.until < news.head;
        (after, head) = (news.until, news.head);
        let stands = (news.stand, news.aside);
        if !news.html.is_empty() || stands != shown {
            let data = json!({ "html": news.html, "stand": stands.0, "aside": stands.1, "until": after });
            shown = stands;
            let told = Told::default().event("news").id(after.to_string()).data(data.to_string());
            if !say(&sender, told).await {
                return;
            }
        }
        if more {
            continue;
        }
        let seen = app.mark(session);
        loop {
            if changes.changed().await.is_err()
                || app.keys.generation() != who.generation
                || sender.is_closed()
            {
                return;
            }
            tokio::time::sleep(TOGETHER).await;
            changes.borrow_and_update();
            let Some((newest, driver)) = app.mark(session) else { return };
            // What there was is not there any more: the store is another one, or an earlier one of the same.
            if newest < after {
                let now = app.work(move |_, engine| Ok(engine.load(session)?.state.seq)).await;
                // The look may have been before what was told last.
                head = now.unwrap_or(0);
                if head >= after {
                    continue;
                }
                break;
            }
            // A driver that comes or goes is no event.
            if newest > after || seen.is_none_or(|seen| seen.1 != driver) {
                head = newest.max(after);
                break;
            }
        }
    }
}
