//! The lines of `opencode run --format json`, exactly as written. Every field may be missing; what is not listed is
//! skipped. The program's own record is made of the same parts.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::raw::Raw;
use crate::tokens::TokenCounts;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) r#type: Option<String>,
    /// Epoch milliseconds.
    pub(super) timestamp: Option<i64>,
    #[serde(rename = "sessionID")]
    pub(super) session_id: Option<String>,
    pub(super) part: Option<Part>,
    pub(super) error: Option<ErrorLine>,
}

/// All kinds of parts in one shape: each has its own few of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    pub(super) id: Option<String>,
    pub(super) r#type: Option<String>,
    #[serde(rename = "messageID")]
    pub(super) message_id: Option<String>,
    pub(super) text: Option<String>,
    pub(super) tool: Option<String>,
    #[serde(rename = "callID")]
    pub(super) call_id: Option<String>,
    pub(super) state: Option<CallState>,
    pub(super) reason: Option<String>,
    pub(super) tokens: Option<Tokens>,
    pub(super) cost: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallState {
    pub(super) status: Option<String>,
    pub(super) input: Option<Raw>,
    pub(super) output: Option<Raw>,
    pub(super) error: Option<String>,
    pub(super) metadata: Option<Raw>,
    pub(super) time: Option<Time>,
}

/// What some tools say about their call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) exit: Option<i64>,
    pub(super) filepath: Option<String>,
    pub(super) exists: Option<bool>,
    #[serde(rename = "sessionId")]
    pub(super) session_id: Option<String>,
}

/// The inputs of the tools that mean something here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolInput {
    #[serde(rename = "filePath")]
    pub(super) file_path: Option<String>,
    pub(super) description: Option<String>,
    pub(super) subagent_type: Option<String>,
    pub(super) todos: Option<Vec<Todo>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Todo {
    pub(super) content: Option<String>,
    pub(super) status: Option<String>,
}

/// Epoch milliseconds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Time {
    start: Option<i64>,
    end: Option<i64>,
}

impl Time {
    pub(super) fn duration_ms(&self) -> Option<u64> {
        u64::try_from(self.end?.checked_sub(self.start?)?).ok()
    }
}

/// None of the kinds overlaps another here, reasoning and output included.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    input: u64,
    output: u64,
    reasoning: u64,
    cache: Cache,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct Cache {
    read: u64,
    write: u64,
}

impl Tokens {
    pub(super) fn counts(&self) -> TokenCounts {
        TokenCounts {
            input: self.input,
            cache_read: self.cache.read,
            cache_write: self.cache.write,
            output: self.output.saturating_add(self.reasoning),
            reasoning: self.reasoning,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorLine {
    pub(super) name: Option<String>,
    pub(super) data: ErrorData,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorData {
    pub(super) message: Option<String>,
    #[serde(rename = "statusCode")]
    pub(super) status_code: Option<u16>,
    /// What the provider answered.
    #[serde(rename = "responseHeaders")]
    pub(super) response_headers: Option<BTreeMap<String, String>>,
    #[serde(rename = "responseBody")]
    pub(super) response_body: Option<String>,
}
