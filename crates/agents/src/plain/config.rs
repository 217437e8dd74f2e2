//! How a plain command is described in configuration.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use super::path::Path;

/// Where in [`PlainConfig::command`] the arguments for a conversation and a model stand; at its end without it.
pub const OPTIONS: &str = "{options}";

/// A command and how to read it.
///
/// Lists of arguments hold a placeholder for what is only known when a run begins: `{id}` for the native id of a
/// conversation, `{model}`, `{turns}`. An empty list says that the command knows nothing of the kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlainConfig {
    /// The name in commands and records; `plain` if empty.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How it gets the prompt.
    pub prompt: PromptVia,
    /// Arguments that begin a conversation under an id of our choice.
    pub begin: Vec<String>,
    /// Arguments that go on with a conversation.
    pub resume: Vec<String>,
    /// Arguments that go on with a copy of a conversation.
    pub fork: Vec<String>,
    /// Arguments that choose a model.
    pub model: Vec<String>,
    /// Arguments that cap the turns.
    pub max_turns: Vec<String>,
    /// Variables to set.
    pub env: BTreeMap<String, String>,
    /// What its output is.
    pub format: Format,
    /// For JSON output: which objects mean what. The first rule that fits is taken.
    pub rules: Vec<Rule>,
    /// For JSON output: where any object has the native id of the conversation.
    pub native_id: Option<Path>,
    /// Arguments that make it print its version.
    pub version_args: Vec<String>,
    /// What to tell a person who does not have it.
    pub install_hint: Option<String>,
}

/// How a command gets its prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptVia {
    /// On stdin.
    #[default]
    Stdin,
    /// As its last argument. If the command does not end with `--`, a prompt that looks like an option is refused.
    Argument,
    /// As the value of this option, joined to it with `=` if it is a long one.
    Flag(String),
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
    /// What must be where. Empty: any object. A rule for `tokens` or `cost` also needs one of its numbers.
    #[serde(default)]
    pub when: BTreeMap<Path, Value>,
    /// Where the fields of the event are, by the event's field names.
    #[serde(default)]
    pub fields: BTreeMap<String, Path>,
    /// A list in the object: the rule is applied to each of its elements, at which paths with `@` begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Path>,
    /// Other rules may fit the same object too: those after this one are tried as well.
    #[serde(default)]
    pub also: bool,
    /// For `tokens` and `cost`: the numbers are running totals, not what is new.
    #[serde(default)]
    pub cumulative: bool,
    /// For `result`: what the words at its field `verdict` mean. Words not listed decide nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verdicts: BTreeMap<String, VerdictWord>,
}

/// How a run ended, for [`Rule::verdicts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words of OutcomeKind, where they are explained")]
pub enum VerdictWord {
    Completed,
    Failed,
    Interrupted,
    Stopped,
    Limit,
    Budget,
    Denied,
    MaxTurns,
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
    /// Fields: `path`, `change` (`created`, `modified`, `deleted` or `moved`; `modified` if it is not said),
    /// `moved_to`, `call_id`.
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
    /// The end. Fields: `text`, `error`, `ok`, `failed`, `verdict`. With such a rule a run without this event was
    /// interrupted.
    Result,
}
