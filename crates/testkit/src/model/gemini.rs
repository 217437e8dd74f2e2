//! Gemini: `generateContent` and `streamGenerateContent`.

use serde_json::Value;
use serde_json::json;

use super::answer::Answer;
use super::answer::Event;
use super::answer::Piece;
use super::api::Api;
use super::api::Wire;
use super::query::Declared;
use super::query::Query;
use super::query::text_of;

pub(super) struct Gemini;

/// The model that a path asks, and whether it wants a stream: `…/models/NAME:streamGenerateContent`.
pub(super) fn target(path: &str) -> Option<(&str, bool)> {
    let (model, method) = path.rsplit('/').next()?.split_once(':')?;
    match method {
        "generateContent" => Some((model, false)),
        "streamGenerateContent" => Some((model, true)),
        _ => None,
    }
}

impl Wire for Gemini {
    fn read(&self, path: &str, body: &Value) -> Query {
        let mut query = Query::new(Api::Gemini, body);
        if let Some((model, stream)) = target(path) {
            query.model = model.to_owned();
            query.stream = stream;
        }
        for tool in body["tools"].as_array().into_iter().flatten() {
            for function in tool["functionDeclarations"].as_array().into_iter().flatten() {
                if let Some(name) = function["name"].as_str() {
                    query.tools.insert(name.to_owned(), Declared::default());
                }
            }
        }
        query.system = text_of(&body["systemInstruction"]["parts"]);
        for content in body["contents"].as_array().into_iter().flatten() {
            let text = text_of(&content["parts"]);
            match content["role"].as_str() {
                Some("model") => query.answers += 1,
                // Not the user's words: the agent describes the machine in their name.
                _ if text.trim_start().starts_with("<session_context>") => {}
                _ => query.user(text),
            }
            query.hear(&content["parts"]);
        }
        query
    }

    fn whole(&self, answer: &Answer) -> Value {
        let parts = answer.pieces.iter().map(part).collect();
        frame(answer, parts, Some(finish_reason(answer)))
    }

    fn events(&self, answer: &Answer) -> Vec<Event> {
        let mut events = Vec::new();
        for piece in &answer.pieces {
            match piece {
                Piece::Text(text) | Piece::Thinking(text) => {
                    let grow = answer.chunks(text).into_iter().map(|piece_of| {
                        let mut part = part(piece);
                        part["text"] = piece_of.into();
                        event(frame(answer, vec![part], None))
                    });
                    events.extend(grow);
                }
                // Calls come whole.
                Piece::Call { .. } | Piece::Custom { .. } => {
                    events.push(event(frame(answer, vec![part(piece)], None)));
                }
            }
        }
        let last = vec![json!({ "text": "" })];
        events.push(event(frame(answer, last, Some(finish_reason(answer)))));
        events
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        let kind = kind.unwrap_or(match status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            _ => "INTERNAL",
        });
        json!({ "error": { "code": status, "message": message, "status": kind } })
    }

    fn stream_error(&self, _answer: &Answer, kind: &str, message: &str) -> Event {
        event(self.error(500, Some(kind), message))
    }
}

fn event(data: Value) -> Event {
    Event { name: "", data }
}

fn part(piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({ "text": text }),
        Piece::Thinking(text) => json!({ "text": text, "thought": true }),
        Piece::Call { id, name, input, .. } => {
            json!({ "functionCall": { "id": id, "name": name, "args": input } })
        }
        // There are no free-text tools here; the agent will say that the input is wrong.
        Piece::Custom { id, name, input } => {
            json!({ "functionCall": { "id": id, "name": name, "args": { "input": input } } })
        }
    }
}

fn finish_reason(answer: &Answer) -> &str {
    answer.stop_reason.as_deref().unwrap_or("STOP")
}

/// One piece of a stream, or all of it. The counts are those of the whole answer in every piece.
fn frame(answer: &Answer, parts: Vec<Value>, finish: Option<&str>) -> Value {
    let used = answer.usage;
    let input = used.input + used.cache_read + used.cache_write;
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
    if let Some(reason) = finish {
        candidate["finishReason"] = reason.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": input,
            "candidatesTokenCount": used.output,
            "totalTokenCount": input + used.output,
            "cachedContentTokenCount": used.cache_read,
        },
        "modelVersion": answer.model,
        "responseId": answer.id,
    })
}
