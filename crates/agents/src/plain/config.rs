//! How a plain command is described in configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::path::Path;

/// A command and how to read it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlainConfig {
    /// The name in commands and records; `plain` if empty.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How it gets the prompt.
    pub prompt: PromptVia,
    /// What its output is.
    pub format: Format,
    /// For JSON output: which objects mean what. The first rule that fits is taken.
    pub rules: Vec<Rule>,
    /// Arguments that make it print its version.
    pub version_args: Vec<String>,
}

/// How a command gets its prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptVia {
    /// On stdin.
    #[default]
    Stdin,
    /// As its last argument.
    Argument,
    /// Not at all.
    None,
}

/// What a command writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Lines of text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// One kind of object in the output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What it means.
    pub kind: RuleKind,
    /// What must be where. Empty: any object.
    #[serde(default)]
    pub when: BTreeMap<Path, Value>,
    /// Where the fields of the event are, by the event's field names.
    #[serde(default)]
    pub fields: BTreeMap<String, Path>,
    /// For `tokens` and `cost`: the numbers are running totals, not what is new.
    #[serde(default)]
    pub cumulative: bool,
}

/// The events that a rule can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    /// Fields: `native_id`, `model`, `cwd`, `version`.
    SessionStarted,
    /// Fields: `text`, `message_id`, `parent`.
    Text,
    /// Fields: `text`, `message_id`, `parent`.
    Thinking,
    /// Fields: `call_id`, `tool`, `input`, `message_id`, `parent`.
    ToolStarted,
    /// Fields: `call_id`, `tool`, `output`, `exit_code`, `parent`.
    ToolFinished,
    /// Fields: `call_id`, `tool`, `error`, `exit_code`, `parent`.
    ToolFailed,
    /// Fields: `call_id`, `tool`, `reason`, `parent`.
    ToolDenied,
    /// Fields: `path`, `call_id`.
    FileChanged,
    /// Fields: `input`, `cache_read`, `cache_write`, `output`, `reasoning`, `model`.
    Tokens,
    /// Fields: `usd`.
    Cost,
    /// Fields: `text`, `level`.
    Notice,
    /// Fields: `what`, `call_id`.
    Progress,
    /// Fields: `message`.
    Error,
    /// The end. Fields: `text`, `error`, `ok`. With such a rule a run without this event was interrupted.
    Result,
}
