//! Questions that wait for a person, and their answers.

use serde::Deserialize;
use serde::Serialize;

use crate::text::Text;
use crate::time::Timestamp;

/// An agent asks whether a call may run, and no rule says so. Its run waits for the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAsked {
    /// The question, named by a hash of the run, the request, the tool and the whole input: another input is another
    /// question.
    pub id: String,
    /// The call that it is about, if the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The tool.
    pub tool: String,
    /// Its whole input, as JSON.
    pub input: Text,
    /// When the run gives up waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A person answered, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    /// Which question.
    pub id: String,
    /// Whether the call may run.
    pub allow: bool,
    /// What the agent is told along with a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Text>,
    /// From where it was answered, such as `terminal` or `segno answer`.
    pub by: String,
}

/// Nobody waits for an answer any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionClosed {
    /// Which question.
    pub id: String,
    /// Why, such as `answered` or `nobody answered in time`.
    pub why: String,
}
