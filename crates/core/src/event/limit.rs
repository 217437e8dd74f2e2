//! What agents tell of their provider's limits.

use serde::Deserialize;
use serde::Serialize;

use crate::looping::LimitClass;

/// How the windows of an agent's plan stood, or what refused to go on: the body of a report `limit`, and part of the end
/// of a run that ended for it. Words are the agent's; what is not said is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitSeen {
    /// Which agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What kind of limit refuses: `plan`, `transient`, `overload`, `pay`, `auth`, `budget` or `setup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// `allowed`, `warning`, `rejected` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The window that this is about, as the vendor names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// How much of it is used; 1 is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// When it opens again, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<i64>,
    /// The one model that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// All windows that were told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowSeen>,
    /// Whether more may be used for money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overage: Option<String>,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overage_disabled_reason: Option<String>,
    /// Whether that is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub using_overage: Option<bool>,
}

/// One window of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowSeen {
    /// The vendor's name of it.
    pub name: String,
    /// How much of it is used; 1 is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// When it opens again, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<i64>,
}

impl LimitSeen {
    /// What the report of windows is called.
    pub const REPORT: &str = "limit";

    /// The body of such a report, if it is one that can be read.
    pub fn of_report(what: &str, body: &serde_json::Value) -> Option<Self> {
        (what == Self::REPORT).then(|| Self::deserialize(body).ok()).flatten()
    }

    /// Its class, if this program knows it.
    pub fn limit_class(&self) -> Option<LimitClass> {
        let word = serde_json::Value::String(self.class.clone()?);
        serde_json::from_value(word).ok()
    }
}
