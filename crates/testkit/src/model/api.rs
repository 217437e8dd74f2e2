//! The interfaces, and what each must be able to do.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use super::answer::Answer;
use super::answer::Event;
use super::anthropic::Anthropic;
use super::chat::Chat;
use super::gemini::Gemini;
use super::gemini::{self};
use super::query::Query;
use super::responses::Responses;

/// An interface to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI chat completions.
    Chat,
    /// Gemini, whole and streamed.
    Gemini,
}

/// Reads requests and writes answers of one interface.
pub(super) trait Wire {
    /// Understands a request. Some interfaces say in the path which model is asked.
    fn read(&self, path: &str, body: &Value) -> Query;
    /// A whole answer.
    fn whole(&self, answer: &Answer) -> Value;
    /// An answer as events of a stream.
    fn events(&self, answer: &Answer) -> Vec<Event>;
    /// The body of an HTTP error.
    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value;
    /// The event that ends a stream with an error.
    fn stream_error(&self, answer: &Answer, kind: &str, message: &str) -> Event;
    /// What follows the last event of a stream that was not cut.
    fn closing(&self) -> &'static str {
        ""
    }
}

impl Api {
    pub(super) fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Anthropic => &Anthropic,
            Self::Responses => &Responses,
            Self::Chat => &Chat,
            Self::Gemini => &Gemini,
        }
    }
}

/// What a request is for.
#[derive(Debug)]
pub(super) enum Route {
    /// An answer of the model.
    Ask(Api),
    /// Something small that every agent asks now and then, and what to say.
    Small(u16, Value),
    /// Nothing we know.
    Unknown,
}

/// Where a request goes. `size` is the number of bytes of its body.
pub(super) fn route(method: &str, path: &str, size: usize) -> Route {
    let path = path.trim_end_matches('/');
    match method {
        "POST" if path.ends_with("/messages/count_tokens") => {
            Route::Small(200, json!({ "input_tokens": (size / 4).max(1) }))
        }
        "POST" if path.ends_with("/messages") => Route::Ask(Api::Anthropic),
        "POST" if path.ends_with("/responses") => Route::Ask(Api::Responses),
        "POST" if path.ends_with("/chat/completions") => Route::Ask(Api::Chat),
        "POST" if path.ends_with(":countTokens") => {
            Route::Small(200, json!({ "totalTokens": (size / 4).max(1) }))
        }
        "POST" if gemini::target(path).is_some() => Route::Ask(Api::Gemini),
        // An empty list in the forms of all interfaces.
        "GET" if path.ends_with("/models") => {
            Route::Small(200, json!({ "object": "list", "data": [], "models": [], "has_more": false }))
        }
        "HEAD" => Route::Small(200, Value::Null),
        _ => Route::Unknown,
    }
}
