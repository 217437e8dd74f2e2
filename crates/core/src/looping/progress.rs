//! Progress, from evidence alone.

use serde::Deserialize;
use serde::Serialize;

use super::observation::line;
use crate::limits;

/// Whether an iteration brought something that can be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Whether it did.
    pub made: bool,
    /// Whether tests, numbers or open items moved, not only files.
    pub measured: bool,
    /// What moved.
    pub why: Vec<String>,
    /// What was compared, in words.
    pub compared: String,
}

impl Progress {
    /// The same within bounds, whoever made it.
    pub(crate) fn bounded(mut self) -> Self {
        self.why.truncate(limits::LOOP_NAMES);
        self.why.iter_mut().for_each(line);
        line(&mut self.compared);
        self
    }
}
