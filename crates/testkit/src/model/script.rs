//! The script: which turns the model takes, and for whom.

use serde::Deserialize;
use serde::Serialize;

use super::api::Api;
use super::turn::Turn;

/// What the model does.
///
/// ```
/// let script: segno_testkit::model::Script = serde_json::from_str(r#"{
///     "turns": [
///         {"thinking": "Where am I?", "ops": [{"sh": "pwd"}]},
///         {"fault": {"error": {"status": 429, "headers": {"retry-after": "1"}}}},
///         "All done."
///     ],
///     "tracks": [{"name": "helper", "when": {"first_user": "count the files"}, "turns": ["There are 3."]}]
/// }"#).unwrap();
/// assert_eq!(script.turns.len(), 3);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// The main track: requests that declare tools and that no other track takes.
    pub turns: Vec<Turn>,
    /// Other tracks, tried in order; the first that fits takes the request.
    pub tracks: Vec<Track>,
    /// The answer to side requests: those without tools that no track takes (titles, summaries, probes). They never
    /// use up a turn of the main track.
    pub side: Option<Turn>,
    /// What comes after the last turn of the main track.
    pub then: Then,
    /// How the turn of a request is found on the main track.
    pub index: Index,
}

/// A sequence of turns for some of the requests: a sub-agent, a compaction, a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Track {
    /// Its name in the log.
    pub name: String,
    /// Which requests it takes.
    pub when: When,
    /// What they get.
    pub turns: Vec<Turn>,
    /// What comes after the last turn.
    #[serde(default)]
    pub then: Then,
    /// How the turn of a request is found.
    #[serde(default)]
    pub index: Index,
}

/// Which requests a track takes: those that fit everything that is given. Texts are regular expressions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// In the first message of the user; this is how a sub-agent is told from its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_user: Option<String>,
    /// In the last message of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_user: Option<String>,
    /// Nowhere in the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// In the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// In the name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether any tools are declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// The name of a tool that is declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_tool: Option<String>,
    /// Whether the conversation is to be compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<bool>,
    /// The interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
}

/// What comes after the last turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// The model says that it is done.
    #[default]
    End,
    /// The last turn again.
    Repeat,
    /// The first turn again, and so on.
    Loop,
    /// An error that says so.
    Error,
    /// Nothing: those further down take its requests. After the last turn of the main track the same as `end`.
    Pass,
}

/// How the turn of a request is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// Each request takes the next turn, retries included.
    #[default]
    Cursor,
    /// By the answers of the model that the request already holds: retries and resumed conversations get the turn
    /// they would have got.
    History,
}

impl Script {
    /// A script with these turns on the main track.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self { turns: turns.into_iter().collect(), ..Self::default() }
    }

    /// The same script with another track.
    #[must_use]
    pub fn track(mut self, name: &str, when: When, turns: impl IntoIterator<Item = Turn>) -> Self {
        let turns = turns.into_iter().collect();
        self.tracks.push(Track { name: name.to_owned(), when, turns, ..Track::default() });
        self
    }

    /// The same script with another end of the main track.
    #[must_use]
    pub fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}

impl When {
    /// Requests whose conversation began with this.
    pub fn first_user(pattern: &str) -> Self {
        Self { first_user: Some(pattern.to_owned()), ..Self::default() }
    }

    /// Requests to compact the conversation.
    pub fn compaction() -> Self {
        Self { compaction: Some(true), ..Self::default() }
    }
}
