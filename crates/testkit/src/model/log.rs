//! What was asked, and how each answer ended.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::api::Api;

/// A request to the model. Small ones (counting tokens, lists of models) are not among them.
#[derive(Debug, Clone, Serialize)]
pub struct Request {
    /// Its number, from 1.
    pub number: usize,
    /// The interface.
    pub api: Api,
    /// The track that took it; `main` and `side` are always there.
    pub track: String,
    /// Which turn of the track it got, from 0.
    pub turn: Option<usize>,
    /// The model asked for.
    pub model: String,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// How many tools it declares.
    pub tools: usize,
    /// When it came, counted from the start of the server.
    pub at: Duration,
    /// How the answer ended.
    pub end: End,
    /// The last message of the user.
    #[serde(skip)]
    pub last_user: String,
    /// Every text of the conversation, results of tools included.
    #[serde(skip)]
    pub conversation: String,
    /// The whole body. Never write it down: it holds the words of the agent's maker.
    #[serde(skip)]
    pub body: Arc<Value>,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Not yet.
    Open,
    /// It waits at this gate.
    Held(String),
    /// It was given whole.
    Done,
    /// As an HTTP error.
    Error(u16),
    /// As an error inside the stream.
    StreamError,
    /// With a body that is no answer.
    Raw,
    /// The connection was cut on purpose.
    Dropped,
    /// The client went away.
    ClientGone,
    /// The server ended.
    Stopped,
    /// The script could not be played for this request.
    BadScript(String),
}
