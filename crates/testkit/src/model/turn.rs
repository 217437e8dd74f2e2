//! One turn of the model.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::op::Op;
use crate::short::string_or_object;

/// The answer to one request. A bare string in a script is a turn that says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct Turn {
    /// What the model thinks first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// What it says then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it does or says after that, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
    /// What goes wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// The answer waits until the test opens this gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// How long the answer waits, after the gate.
    #[serde(skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// How many characters of text go into one event of a stream.
    pub chunk: usize,
    /// How long the stream waits after each event.
    #[serde(skip_serializing_if = "is_zero")]
    pub chunk_delay_ms: u64,
    /// The tokens reported.
    pub usage: Usage,
    /// Response headers to add.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The model reported, if not the one asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The reason to stop in the words of the interface, if not the natural one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// For how many requests this turn stands.
    pub times: u32,
}

string_or_object!(Turn);

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Read, without what came from or went to a cache.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache.
    pub cache_write: u64,
}

/// A place where an answer waits until the test lets it go on. A bare string is a gate before the whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Gate {
    /// Its name; turns may share one.
    pub name: String,
    /// After how many events of the stream. None: before the response begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<usize>,
}

string_or_object!(Gate);

/// What goes wrong with an answer. `after` counts events of the stream; without it, it happens before the response
/// begins (a `stream_error`: at the end).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An HTTP error.
    Error {
        /// The status.
        status: u16,
        /// The type of error in the words of the interface, if not the usual one of the status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        /// The message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Response headers, such as `retry-after`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
        /// The whole body, if not that of the interface.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<serde_json::Value>,
    },
    /// An error event inside the stream, which ends there.
    StreamError {
        /// The type of error in the words of the interface.
        kind: String,
        /// The message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<usize>,
    },
    /// Nothing more comes for a while; then the answer goes on.
    Stall {
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<usize>,
        /// For how long. None: until the client goes away, or the server ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ms: Option<u64>,
    },
    /// The connection is cut.
    Drop {
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<usize>,
    },
    /// A body that is no proper answer.
    Raw {
        /// The body.
        body: String,
        /// Its type.
        #[serde(default = "event_stream")]
        content_type: String,
    },
}

fn event_stream() -> String {
    "text/event-stream".to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            thinking: None,
            text: None,
            ops: Vec::new(),
            fault: None,
            gate: None,
            delay_ms: 0,
            chunk: 40,
            chunk_delay_ms: 0,
            usage: Usage::default(),
            headers: BTreeMap::new(),
            model: None,
            stop_reason: None,
            times: 1,
        }
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, output: 20, cache_read: 0, cache_write: 0 }
    }
}

impl From<String> for Turn {
    fn from(text: String) -> Self {
        Self { text: Some(text), ..Self::default() }
    }
}

impl From<&str> for Turn {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Gate {
    fn from(name: String) -> Self {
        Self { name, after: None }
    }
}

impl From<Fault> for Turn {
    fn from(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }
}

/// Builders: each returns the turn with one thing changed.
impl Turn {
    /// A turn that says this.
    pub fn text(text: &str) -> Self {
        Self::from(text.to_owned())
    }

    /// A turn that does these.
    pub fn ops(ops: impl IntoIterator<Item = Op>) -> Self {
        Self { ops: ops.into_iter().collect(), ..Self::default() }
    }

    /// A turn that runs this command.
    pub fn sh(command: &str) -> Self {
        Self::ops([Op::sh(command)])
    }

    /// An HTTP error.
    pub fn error(status: u16) -> Self {
        Fault::Error { status, kind: None, message: None, headers: BTreeMap::new(), body: None }.into()
    }

    /// A stream that stops after some events, until the client goes away.
    pub fn stall(after: usize) -> Self {
        Self { text: Some("never heard".to_owned()), ..Fault::Stall { after: Some(after), ms: None }.into() }
    }

    /// With a response header. On an error it goes with the error.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// With a gate before the answer.
    #[must_use]
    pub fn gate(mut self, name: &str) -> Self {
        self.gate = Some(Gate::from(name.to_owned()));
        self
    }

    /// With these tokens.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// For so many requests.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }
}
