//! The exit gate of a phase: conditions with their values, and the explicit signal.

use serde::Deserialize;
use serde::Serialize;

use super::observation::line;
use super::observation::name;
use crate::limits;

/// One condition of the first gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// What is looked at.
    pub name: String,
    /// What it should be.
    pub wanted: String,
    /// What it is.
    pub value: String,
    /// Whether that is enough.
    pub holds: bool,
    /// Whether a person may accept that it does not hold.
    pub acceptable: bool,
}

/// How a gate came out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateResult {
    /// The conditions of the first gate.
    pub conditions: Vec<Condition>,
    /// Whether they all hold.
    pub gate_1: bool,
    /// Whether the agent said explicitly that it is done; none if that is not asked for.
    pub gate_2: Option<bool>,
    /// Whether the phase is done.
    pub can_exit: bool,
    /// The tree that was measured.
    pub tree: Option<String>,
    /// How many times in a row all tests passed, this measurement included.
    pub runs: u32,
    /// What a person should know.
    pub warnings: Vec<String>,
}

impl GateResult {
    /// The same within bounds, whoever made it.
    pub(crate) fn bounded(mut self) -> Self {
        self.conditions.truncate(limits::CONDITIONS);
        for condition in &mut self.conditions {
            name(&mut condition.name);
            name(&mut condition.wanted);
            line(&mut condition.value);
        }
        self.tree.iter_mut().for_each(name);
        self.warnings.truncate(limits::LOOP_NAMES);
        self.warnings.iter_mut().for_each(line);
        self
    }
}
