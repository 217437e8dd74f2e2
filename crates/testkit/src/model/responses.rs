//! OpenAI Responses.

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

pub(super) struct Responses;

impl Wire for Responses {
    fn read(&self, _path: &str, body: &Value) -> Query {
        let mut query = Query::new(Api::Responses, body);
        declare(&body["tools"], None, &mut query);
        query.system = text_of(&body["instructions"]);
        if let Some(text) = body["input"].as_str() {
            query.user(text.to_owned());
        }
        let mut answering = false;
        for item in body["input"].as_array().into_iter().flatten() {
            let kind = item["type"].as_str().unwrap_or("message");
            let role = item["role"].as_str().unwrap_or_default();
            match (kind, role) {
                ("message", "user") => {
                    let text = text_of(&item["content"]);
                    // Not the user's words: the agent describes the machine in their name.
                    query.user(if text.starts_with("<environment_context>") { String::new() } else { text });
                }
                ("message", "system" | "developer") => query.system.push_str(&text_of(&item["content"])),
                _ => {}
            }
            // The items of one answer follow each other; tool outputs and messages come between answers.
            let is_answer =
                role == "assistant" || matches!(kind, "function_call" | "custom_tool_call" | "reasoning");
            query.answers += usize::from(is_answer && !answering);
            answering = is_answer;
        }
        query.hear(&body["input"]);
        query
    }

    fn whole(&self, answer: &Answer) -> Value {
        response(answer, "completed", items(answer))
    }

    fn events(&self, answer: &Answer) -> Vec<Event> {
        let mut stream = Stream { events: Vec::new() };
        stream.push("response.created", json!({ "response": response(answer, "in_progress", Vec::new()) }));
        let items = items(answer);
        for (index, (item, piece)) in items.iter().zip(&answer.pieces).enumerate() {
            stream.item(answer, index, item, piece);
        }
        stream.push("response.completed", json!({ "response": response(answer, "completed", items) }));
        stream.events
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        error(status, kind, message)
    }

    fn stream_error(&self, answer: &Answer, kind: &str, message: &str) -> Event {
        let mut failed = response(answer, "failed", Vec::new());
        failed["error"] = json!({ "code": kind, "message": message });
        Event { name: "response.failed", data: json!({ "type": "response.failed", "response": failed }) }
    }
}

/// The body of an error, which both interfaces of this maker share.
pub(super) fn error(status: u16, kind: Option<&str>, message: &str) -> Value {
    let kind = kind.unwrap_or(match status {
        401 => "invalid_api_key",
        429 => "rate_limit_exceeded",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    });
    json!({ "error": { "message": message, "type": kind, "param": null, "code": kind } })
}

/// Notes the tools, those inside namespaces too.
fn declare(tools: &Value, namespace: Option<&str>, query: &mut Query) {
    for tool in tools.as_array().into_iter().flatten() {
        let kind = tool["type"].as_str().unwrap_or_default();
        let name = tool["name"].as_str().unwrap_or(kind);
        if kind == "namespace" {
            declare(&tool["tools"], Some(name), query);
        } else {
            let declared = Declared { custom: kind == "custom", namespace: namespace.map(str::to_owned) };
            query.tools.insert(name.to_owned(), declared);
        }
    }
}

fn response(answer: &Answer, status: &str, output: Vec<Value>) -> Value {
    let used = answer.usage;
    let input = used.input + used.cache_read + used.cache_write;
    let usage = json!({
        "input_tokens": input,
        "input_tokens_details": { "cached_tokens": used.cache_read, "cache_write_tokens": used.cache_write },
        "output_tokens": used.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": input + used.output,
    });
    json!({
        "id": format!("resp_{}", answer.id),
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": null,
        "model": answer.model,
        "output": output,
        "usage": if status == "completed" { usage } else { Value::Null },
    })
}

fn items(answer: &Answer) -> Vec<Value> {
    let item = |(index, piece): (usize, &Piece)| {
        let id = format!("{}{index:02}", answer.id);
        match piece {
            Piece::Text(text) => json!({
                "type": "message", "id": format!("msg_{id}"), "status": "completed", "role": "assistant",
                "content": [{ "type": "output_text", "annotations": [], "text": text }],
            }),
            Piece::Thinking(text) => json!({
                "type": "reasoning", "id": format!("rs_{id}"), "encrypted_content": "",
                "summary": [{ "type": "summary_text", "text": text }],
            }),
            Piece::Call { id: call, name, namespace, input } => {
                let mut item = json!({
                    "type": "function_call", "id": format!("fc_{id}"), "status": "completed",
                    "call_id": call, "name": name, "arguments": input.to_string(),
                });
                if let Some(namespace) = namespace {
                    item["namespace"] = namespace.as_str().into();
                }
                item
            }
            Piece::Custom { id: call, name, input } => json!({
                "type": "custom_tool_call", "id": format!("ctc_{id}"), "status": "completed",
                "call_id": call, "name": name, "input": input,
            }),
        }
    };
    answer.pieces.iter().enumerate().map(item).collect()
}

struct Stream {
    events: Vec<Event>,
}

impl Stream {
    /// Every event repeats its name as `type` and carries its number.
    fn push(&mut self, name: &'static str, mut data: Value) {
        data["type"] = name.into();
        data["sequence_number"] = self.events.len().into();
        self.events.push(Event { name, data });
    }

    /// The events of one item: it is added empty, grows by deltas, and is done.
    fn item(&mut self, answer: &Answer, index: usize, item: &Value, piece: &Piece) {
        let (field, empty, delta, text) = match piece {
            Piece::Text(text) => ("content", json!([]), "response.output_text.delta", text.clone()),
            Piece::Thinking(text) => {
                ("summary", json!([]), "response.reasoning_summary_text.delta", text.clone())
            }
            Piece::Call { input, .. } => {
                ("arguments", json!(""), "response.function_call_arguments.delta", input.to_string())
            }
            Piece::Custom { input, .. } => {
                ("input", json!(""), "response.custom_tool_call_input.delta", input.clone())
            }
        };
        let mut added = item.clone();
        added["status"] = "in_progress".into();
        added[field] = empty;
        self.push("response.output_item.added", json!({ "output_index": index, "item": added }));
        if matches!(piece, Piece::Thinking(_)) {
            let part = json!({ "type": "summary_text", "text": "" });
            let part =
                json!({ "item_id": item["id"], "output_index": index, "summary_index": 0, "part": part });
            self.push("response.reasoning_summary_part.added", part);
        }
        for part in answer.chunks(&text) {
            let mut data = json!({ "item_id": item["id"], "output_index": index, "delta": part });
            match piece {
                Piece::Text(_) => data["content_index"] = 0.into(),
                Piece::Thinking(_) => data["summary_index"] = 0.into(),
                Piece::Call { .. } | Piece::Custom { .. } => {}
            }
            self.push(delta, data);
        }
        self.push("response.output_item.done", json!({ "output_index": index, "item": item }));
    }
}
