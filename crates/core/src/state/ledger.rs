//! The ledger's part of the fold: one call however often it is reported, and every one accounted for.

use super::Applied;
use super::Calls;
use super::Mark;
use super::OpenCall;
use super::apply::count;
use crate::event::CallEnd;
use crate::event::ToolEnded;
use crate::event::ToolStarted;
use crate::limits;
use crate::text::shorten;

impl Calls {
    /// A call began.
    pub(super) fn begin(&mut self, mark: &Mark, started: &ToolStarted) -> Applied {
        if let Some(open) = self.open.get_mut(&started.call) {
            open.write_ahead |= started.write_ahead;
            return Applied::Repeated;
        }
        if self.in_doubt.contains_key(&started.call) || self.closed.contains(&short_hash(&started.call)) {
            return Applied::Repeated;
        }
        count(&mut self.total);
        if self.open.len() >= limits::OPEN_CALLS {
            count(&mut self.open_beyond);
            return Applied::Counted;
        }
        let open = OpenCall {
            tool: started.tool.clone(),
            seq: mark.seq,
            at: mark.at,
            write_ahead: started.write_ahead,
            input: shorten(&started.input.to_string(), limits::NAME),
        };
        self.open.insert(started.call.clone(), open);
        Applied::Counted
    }

    /// A call ended.
    pub(super) fn end(&mut self, ended: &ToolEnded) -> Applied {
        let hash = short_hash(&ended.call);
        if ended.end == CallEnd::InDoubt {
            return if self.doubt(&ended.call) { Applied::Counted } else { Applied::Repeated };
        }
        let was_open = self.open.remove(&ended.call).is_some() || self.in_doubt.remove(&ended.call).is_some();
        if !was_open {
            if self.closed.contains(&hash) {
                return Applied::Repeated;
            }
            if self.open_beyond > 0 {
                self.open_beyond -= 1;
            } else {
                // Its start was never reported.
                count(&mut self.total);
            }
        }
        match ended.end {
            CallEnd::Completed => count(&mut self.completed),
            CallEnd::Failed => count(&mut self.failed),
            CallEnd::Denied => count(&mut self.denied),
            CallEnd::InDoubt => {}
        }
        self.closed.push_back(hash);
        if self.closed.len() > limits::CLOSED_CALLS {
            self.closed.pop_front();
        }
        Applied::Counted
    }

    /// All of them, whatever became of them.
    pub(super) fn sum(&self) -> u64 {
        let kept = (self.open.len() + self.in_doubt.len()) as u64;
        [self.completed, self.failed, self.denied, self.open_beyond]
            .into_iter()
            .fold(kept, u64::saturating_add)
    }

    /// Puts an open call in doubt; false if it is not open here. Doubt never replaces knowledge.
    pub(super) fn doubt(&mut self, call: &str) -> bool {
        let Some(open) = self.open.remove(call) else { return false };
        if self.in_doubt.len() < limits::OPEN_CALLS {
            self.in_doubt.insert(call.to_owned(), open);
        } else {
            count(&mut self.open_beyond);
        }
        true
    }
}

/// Thirty-two bits are enough to tell the last few dozen calls apart.
fn short_hash(id: &str) -> u32 {
    id.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
