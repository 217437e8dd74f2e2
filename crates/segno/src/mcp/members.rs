//! What the tools take. A member that a tool does not know is refused, so that nobody believes that it was heeded.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::commands::new;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct New {
    pub(super) topic: String,
    pub(super) intent: Option<String>,
    pub(super) file: Option<PathBuf>,
    pub(super) workflow: Option<String>,
    #[serde(default)]
    pub(super) phases: Vec<String>,
    pub(super) budget: Option<u64>,
    #[serde(default)]
    pub(super) parallel: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub(super) session: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MaybeNamed {
    pub(super) session: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListWanted {
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) everywhere: bool,
    pub(super) limit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Show {
    pub(super) part: String,
    pub(super) limit: Option<u32>,
    pub(super) after: Option<u64>,
    pub(super) session: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    pub(super) reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Summary {
    pub(super) summary: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) step: Option<u32>,
    pub(super) of: Option<u32>,
    pub(super) verify: Option<String>,
    pub(super) details: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Percent {
    pub(super) percent: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    pub(super) text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tokens {
    pub(super) total: Option<u64>,
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fits {
    pub(super) tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decide {
    pub(super) question: String,
    pub(super) choice: String,
    pub(super) because: Option<String>,
    #[serde(default)]
    pub(super) alternatives: Vec<String>,
    pub(super) parent: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Artifact {
    pub(super) path: String,
    pub(super) change: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Output {
    pub(super) name: String,
    pub(super) content: Option<String>,
    pub(super) kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metric {
    pub(super) name: String,
    pub(super) value: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Milestone {
    pub(super) name: String,
    pub(super) details: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Name {
    pub(super) name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Memory {
    pub(super) query: String,
    pub(super) result: Option<String>,
    pub(super) source: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    pub(super) add: Option<String>,
    pub(super) done: Option<u64>,
    pub(super) drop: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Checkpoint {
    pub(super) name: Option<String>,
    pub(super) reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Diff {
    pub(super) since: Option<String>,
    pub(super) until: Option<String>,
    #[serde(default)]
    pub(super) paths: Vec<PathBuf>,
    #[serde(default)]
    pub(super) stat: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Restore {
    pub(super) checkpoint: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    pub(super) prompt: String,
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    pub(super) budget: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl From<New> for new::Args {
    fn from(wanted: New) -> Self {
        Self {
            topic: Some(wanted.topic),
            workflow: wanted.workflow,
            phases: wanted.phases,
            phase: None,
            budget: wanted.budget,
            advisory: false,
            cost: None,
            file: wanted.file,
            intent: wanted.intent,
            parallel: wanted.parallel,
            branch: None,
        }
    }
}
