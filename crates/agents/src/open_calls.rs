//! The calls of a conversation that were announced and not yet answered, where only their names and files matter.

use std::collections::HashMap;

use crate::bounds::is_short;

/// More open calls than this are not tracked by name; nothing else depends on it.
const MAX_CALLS: usize = 2_000;

/// The longest path there is.
const MAX_PATH: usize = 4096;

/// The calls announced and not yet answered.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    open: HashMap<String, NamedCall>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct NamedCall {
    pub(crate) tool: String,
    /// The file this call writes, if it is a tool that writes one.
    pub(crate) path: Option<String>,
}

impl OpenCalls {
    /// Keeps what has to be known when the call is answered.
    pub(crate) fn remember(&mut self, call_id: &str, tool: &str, path: Option<String>) {
        if self.open.len() < MAX_CALLS && is_short(call_id) && is_short(tool) {
            let path = path.filter(|path| path.len() <= MAX_PATH);
            self.open.insert(call_id.to_owned(), NamedCall { tool: tool.to_owned(), path });
        }
    }

    /// The call that is answered.
    pub(crate) fn take(&mut self, call_id: &str) -> Option<NamedCall> {
        self.open.remove(call_id)
    }
}
