//! What the server needs to know of a request, whatever the interface.

use std::collections::BTreeMap;

use serde_json::Value;

use super::api::Api;

/// A tool the request declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Declared {
    /// It takes free text instead of JSON.
    pub(super) custom: bool,
    /// The namespace a call must name.
    pub(super) namespace: Option<String>,
}

/// A request, understood.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) api: Api,
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) tools: BTreeMap<String, Declared>,
    pub(super) system: String,
    /// What the user said, without empty messages (those that hold only tool results).
    pub(super) users: Vec<String>,
    /// How many answers of the model it holds.
    pub(super) answers: usize,
    /// Every text of the conversation, in order.
    pub(super) conversation: String,
}

impl Query {
    pub(super) fn new(api: Api, body: &Value) -> Self {
        Self {
            api,
            model: body["model"].as_str().unwrap_or("scripted").to_owned(),
            stream: body["stream"].as_bool().unwrap_or(false),
            tools: BTreeMap::new(),
            system: String::new(),
            users: Vec::new(),
            answers: 0,
            conversation: String::new(),
        }
    }

    /// Notes what the user said.
    pub(super) fn user(&mut self, text: String) {
        if !text.is_empty() {
            self.users.push(text);
        }
    }

    /// Notes everything that is said anywhere in `value`.
    pub(super) fn hear(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.conversation.push_str(text);
                self.conversation.push('\n');
            }
            Value::Array(list) => list.iter().for_each(|item| self.hear(item)),
            Value::Object(fields) => fields.values().for_each(|item| self.hear(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub(super) fn first_user(&self) -> &str {
        self.users.first().map_or("", String::as_str)
    }

    pub(super) fn last_user(&self) -> &str {
        self.users.last().map_or("", String::as_str)
    }

    /// Whether the agent asks for something beside the work: a title, a summary, a probe.
    pub(super) fn is_side(&self) -> bool {
        self.tools.is_empty()
    }

    /// Whether the agent wants its conversation shortened. Each has words of its own for it.
    pub(super) fn is_compaction(&self) -> bool {
        let asked = self.last_user();
        asked.contains("CONTEXT CHECKPOINT COMPACTION") || asked.contains("<summary> block")
    }
}

/// The plain text of a message's content: a string, or a list of parts of which some are text.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
