//! An answer of the model, before it takes the form of an interface.

use serde_json::Value;

use super::query::Query;
use super::substitute::substitute;
use super::tools::resolve;
use super::turn::Turn;
use super::turn::Usage;

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Thinking(String),
    Call { id: String, name: String, namespace: Option<String>, input: Value },
    Custom { id: String, name: String, input: String },
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    /// Unique among all answers of all servers, so that a resumed conversation never sees an id twice.
    pub(super) id: String,
    pub(super) model: String,
    pub(super) pieces: Vec<Piece>,
    pub(super) usage: Usage,
    pub(super) stop_reason: Option<String>,
    pub(super) chunk: usize,
}

/// One event of a stream.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: &'static str,
    pub(super) data: Value,
}

impl Answer {
    /// What `turn` comes to for this request; or why the script cannot be played.
    pub(super) fn new(turn: &Turn, query: &Query) -> Result<Self, String> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let mut pieces: Vec<Piece> = turn.thinking.iter().cloned().map(Piece::Thinking).collect();
        pieces.extend(turn.text.iter().cloned().map(Piece::Text));
        for (index, op) in turn.ops.iter().enumerate() {
            pieces.push(resolve(substitute(op, query)?, query, &format!("{id}{index:02}"))?);
        }
        Ok(Self {
            id,
            model: turn.model.clone().unwrap_or_else(|| query.model.clone()),
            pieces,
            usage: turn.usage,
            stop_reason: turn.stop_reason.clone(),
            chunk: turn.chunk.max(1),
        })
    }

    /// Whether it calls a tool.
    pub(super) fn calls(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Call { .. } | Piece::Custom { .. }))
    }

    /// `text` in pieces of the size that streams use. Never empty: interfaces send one event for an empty text too.
    pub(super) fn chunks(&self, text: &str) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        if characters.is_empty() {
            return vec![String::new()];
        }
        characters.chunks(self.chunk).map(|chunk| chunk.iter().collect()).collect()
    }
}
