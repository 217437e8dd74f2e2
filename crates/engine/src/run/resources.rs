//! What a run may use of the machine and of the record.

use serde::Deserialize;
use serde::Serialize;

/// What the processes of a run may use together, and how much may be recorded of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Resident memory in bytes.
    pub memory: Option<u64>,
    /// Processor time in seconds.
    pub cpu_seconds: Option<u64>,
    /// Processes at once.
    pub processes: Option<u64>,
    /// Bytes in the record.
    pub record: Option<u64>,
}

impl Resources {
    /// Whether anything is limited for which processes have to be counted.
    pub fn counts_processes(&self) -> bool {
        self.memory.is_some() || self.cpu_seconds.is_some() || self.processes.is_some()
    }
}
