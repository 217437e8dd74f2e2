//! What measured the work, and the files that nobody may change, as they were seen.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::observation::lines;
use super::observation::name;

/// How an evidence command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvidenceMark {
    /// Its name in the plan.
    pub name: String,
    /// Its exit status; none if it was killed, timed out or could not be started.
    pub exit: Option<i32>,
    /// Whether it succeeded.
    pub passes: bool,
    /// Whether it told of tests: then these say why it may have failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tells_tests: bool,
    /// How many of these failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failing_tests: u64,
    /// The test runner that it names, and of whose tests nothing was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_runner: Option<String>,
    /// A hash of the command and of the scripts it is made of, to see that it did not change.
    pub command_hash: String,
    /// A hash of the settings of its test runner.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub settings_hash: String,
    /// Each of those files with its own hash. The event of a baseline has them, and nothing else keeps them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Scripts that are not what they were when the phase began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Settings of the test runner that are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_settings: Vec<String>,
}

/// A file of tests, when nobody could tell which tests there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnloadedTests {
    /// How many are written in it.
    pub written: u64,
    /// Whether the runner said that it could not load this file: once it can, it names a test of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

/// The files that a phase protects, as they were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtectedMark {
    /// A hash of all of them.
    pub hash: String,
    /// How many there are.
    pub count: u64,
    /// Each with its own hash. The event of a baseline has them, and nothing else keeps them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Those that are not what they were when the phase began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl EvidenceMark {
    /// Keeps its texts within bounds, and leaves out what only the event of a baseline has.
    pub(crate) fn bound(&mut self) {
        name(&mut self.name);
        self.silent_runner.iter_mut().for_each(name);
        name(&mut self.command_hash);
        name(&mut self.settings_hash);
        self.files.clear();
        lines(&mut self.changed);
        lines(&mut self.changed_settings);
    }
}

impl ProtectedMark {
    /// Keeps its texts within bounds, and leaves out what only the event of a baseline has.
    pub(crate) fn bound(&mut self) {
        name(&mut self.hash);
        self.files.clear();
        lines(&mut self.changed);
    }
}
