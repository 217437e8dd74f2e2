//! What the tools take, written once: the schema that a client is sent and the reader of what it sends are made of the same
//! line. A member that a tool does not know is refused, so that nobody believes that it was heeded.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::commands::new;

/// One member of a tool.
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) needed: bool,
    kind: Kind,
}

impl Member {
    /// Its type, as a client is told.
    pub(super) fn schema(&self) -> Value {
        match self.kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Count => json!({ "type": "integer" }),
            Kind::Yes => json!({ "type": "boolean" }),
            Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Kind::Any => json!({}),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Count,
    Yes,
    Texts,
    Any,
}

/// A type that a member can have.
trait Typed {
    const KIND: Kind;
    const NEEDED: bool = true;
}

impl<T: Typed> Typed for Option<T> {
    const KIND: Kind = T::KIND;
    const NEEDED: bool = false;
}

macro_rules! typed {
    ($($kind:ident: $($name:ty),*;)*) => {
        $($(impl Typed for $name {
            const KIND: Kind = Kind::$kind;
        })*)*
    };
}

typed! {
    Text: String, PathBuf;
    Count: u64, u32, u8;
    Yes: bool;
    Texts: Vec<String>, Vec<PathBuf>;
    Any: Value;
}

macro_rules! members {
    ($name:ident { $($member:ident: $kind:ty),* }) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $(pub(super) $member: $kind,)*
        }

        impl $name {
            pub(super) const LIST: &'static [Member] = &[$(Member {
                name: stringify!($member),
                needed: <$kind as Typed>::NEEDED,
                kind: <$kind as Typed>::KIND,
            }),*];
        }
    };
}

members!(New { topic: String, intent: Option<String>, file: Option<PathBuf>, workflow: Option<String>, phases: Option<Vec<String>>, budget: Option<u64>, parallel: Option<bool> });
members!(Named { session: String });
members!(MaybeNamed { session: Option<String> });
members!(ListWanted { status: Option<String>, everywhere: Option<bool>, limit: Option<u32> });
members!(Show { part: String, limit: Option<u32>, after: Option<u64>, session: Option<String> });
members!(Reason { reason: Option<String> });
members!(Summary { summary: Option<String> });
members!(Phase { name: String, step: Option<u32>, of: Option<u32>, verify: Option<String>, details: Option<String> });
members!(Percent { percent: u8 });
members!(Words { text: String });
members!(Tokens { total: Option<u64>, input: Option<u64>, output: Option<u64>, cache_read: Option<u64>, cache_write: Option<u64> });
members!(Fits { tokens: Option<u64> });
members!(Decide { question: String, choice: String, because: Option<String>, alternatives: Option<Vec<String>>, parent: Option<u64> });
members!(Artifact { path: String, change: String });
members!(Output { name: String, content: Option<String>, kind: Option<String> });
members!(Metric { name: String, value: Value });
members!(Milestone { name: String, details: Option<String> });
members!(Name { name: String });
members!(Failure { message: String, kind: Option<String> });
members!(Memory { query: String, result: Option<String>, source: Option<String> });
members!(Task { add: Option<String>, done: Option<u64>, drop: Option<u64> });
members!(Checkpoint { name: Option<String>, reason: Option<String> });
members!(Diff { since: Option<String>, until: Option<String>, paths: Option<Vec<PathBuf>>, stat: Option<bool> });
members!(Restore { checkpoint: String });
members!(Answer { question: Option<String>, answer: Option<String> });
members!(Run { prompt: String, agent: Option<String>, model: Option<String>, budget: Option<u64> });
members!(Loop { prompt: Option<String>, file: Option<String>, until: Vec<String>, agent: Option<String>, workflow: Option<String>, max_iterations: Option<u64>, budget: Option<u64> });
members!(Nothing {});

impl From<New> for new::Args {
    fn from(wanted: New) -> Self {
        Self {
            topic: Some(wanted.topic),
            workflow: wanted.workflow,
            phases: wanted.phases.unwrap_or_default(),
            phase: None,
            budget: wanted.budget,
            advisory: false,
            cost: None,
            file: wanted.file,
            intent: wanted.intent,
            parallel: wanted.parallel.unwrap_or_default(),
            branch: None,
            hold: false,
        }
    }
}
