//! Accepts connections and answers their requests.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::io::{self};
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use super::api::Api;
use super::api::Route;
use super::api::route;
use super::http::Head;
use super::http::respond;
use super::log::End;
use super::play::Play;
use super::state::Shared;

/// How long a client may leave our words unread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Accepts until the server ends.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.is_stopped() {
            return;
        }
        match accepted {
            Ok((stream, _)) => begin(stream, shared),
            // Too many open files, or a client that left at once: neither lasts.
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn begin(stream: TcpStream, shared: &Arc<Shared>) {
    // A refused connection is closed by being dropped.
    let Some(id) = shared.connect(&stream) else { return };
    let for_thread = Arc::clone(shared);
    let started = thread::Builder::new().name(format!("model-{id}")).spawn(move || {
        // An error here is a client that left or spoke nonsense; the log has how its requests ended.
        let _ = converse(&stream, &for_thread);
        for_thread.disconnect(id);
    });
    if started.is_err() {
        shared.disconnect(id);
    }
}

/// Answers the requests of one connection, one after the other.
fn converse(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let mut input = BufReader::new(stream);
    let mut output = stream;
    let none = BTreeMap::new();
    while let Some(head) = Head::read(&mut input)? {
        let body = match head.body(&mut input, &mut output, shared.limits.body_bytes) {
            Ok(body) => body,
            Err(error) => {
                shared.small(&head.method, &head.path);
                return respond(&mut output, 415, &none, &refusal(&error.to_string()));
            }
        };
        match route(&head.method, &head.path, body.len()) {
            Route::Ask(api) => {
                if !ask(stream, shared, api, &head.path, &body)? {
                    return Ok(());
                }
            }
            Route::Small(status, answer) => {
                shared.small(&head.method, &head.path);
                respond(&mut output, status, &none, &answer)?;
            }
            Route::Unknown => {
                shared.small(&head.method, &head.path);
                respond(&mut output, 404, &none, &refusal("nothing here"))?;
            }
        }
        if head.closes() {
            break;
        }
    }
    Ok(())
}

/// Answers one request to the model; says whether the connection can be used again.
fn ask(stream: &TcpStream, shared: &Shared, api: Api, path: &str, body: &[u8]) -> io::Result<bool> {
    let mut output = stream;
    let none = BTreeMap::new();
    let body: Value = match serde_json::from_slice(body) {
        Ok(body) => body,
        Err(error) => {
            respond(&mut output, 400, &none, &refusal(&error.to_string()))?;
            return Ok(true);
        }
    };
    let query = api.wire().read(path, &body);
    let Some((number, picked)) = shared.ask(&query, Arc::new(body)) else {
        respond(&mut output, 503, &none, &refusal("too many requests for one server"))?;
        return Ok(false);
    };
    let end = Play { stream, shared, query: &query, number }.turn(&picked.turn);
    let reusable = matches!(end, End::Done | End::Error(_) | End::Raw | End::StreamError | End::BadScript(_));
    shared.mark(number, end);
    Ok(reusable)
}

fn refusal(message: &str) -> Value {
    json!({ "type": "error", "error": { "type": "invalid_request_error", "message": message } })
}
