//! The ledger's part of the fold: one call however often it is reported, and every one accounted for.
//!
//! A call is known by its run, the agent's id of it, and which one with that id it is: some models give the same id to
//! one call after the other. A source (the agent's output, its hooks) tells of each call once, so the second start from
//! the same source is the second call, and the start from another source is the call that was told already.

use serde::Deserialize;
use serde::Serialize;

use super::Applied;
use super::Calls;
use super::Mark;
use super::OpenCall;
use super::apply::count;
use crate::event::CallEnd;
use crate::event::Source;
use crate::event::ToolEnded;
use crate::event::ToolStarted;
use crate::limits;
use crate::text::shorten;

/// How often an id came, and how often each source told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u32, u32)", into = "(u32, u32, u32, u32)")]
pub struct SeenId {
    hash: u32,
    times: u32,
    stream: u32,
    hook: u32,
}

impl From<(u32, u32, u32, u32)> for SeenId {
    fn from((hash, times, stream, hook): (u32, u32, u32, u32)) -> Self {
        Self { hash, times, stream, hook }
    }
}

impl From<SeenId> for (u32, u32, u32, u32) {
    fn from(seen: SeenId) -> Self {
        (seen.hash, seen.times, seen.stream, seen.hook)
    }
}

impl SeenId {
    fn told_by(&mut self, source: Source) -> &mut u32 {
        match source {
            Source::Hook => &mut self.hook,
            Source::Stream | Source::Hand => &mut self.stream,
        }
    }
}

impl Calls {
    /// A call began.
    pub(super) fn begin(&mut self, mark: &Mark, started: &ToolStarted) -> Applied {
        let key = if started.recurs { self.next_key(started) } else { started.call.clone() };
        self.newest = started.recurs.then(|| key.clone());
        if let Some(open) = self.open.get_mut(&key) {
            open.write_ahead |= started.write_ahead;
            return Applied::Repeated;
        }
        if self.in_doubt.contains_key(&key) || self.closed.contains(&short_hash(&key)) {
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
        self.open.insert(key, open);
        Applied::Counted
    }

    /// A call ended.
    pub(super) fn end(&mut self, ended: &ToolEnded) -> Applied {
        let key = if ended.recurs { self.ended_key(ended) } else { ended.call.clone() };
        self.newest = ended.recurs.then(|| key.clone());
        let hash = short_hash(&key);
        if ended.end == CallEnd::InDoubt {
            return if self.doubt(&key) { Applied::Counted } else { Applied::Repeated };
        }
        let was_open = self.open.remove(&key).is_some() || self.in_doubt.remove(&key).is_some();
        if !was_open {
            if self.closed.contains(&hash) {
                return self.told_again(hash, ended);
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
        if (ended.end, ended.source) == (CallEnd::Completed, Source::Hook) {
            self.done_by_hook.push_back(hash);
            if self.done_by_hook.len() > limits::CLOSED_CALLS {
                self.done_by_hook.pop_front();
            }
        }
        self.closed.push_back(hash);
        if self.closed.len() > limits::CLOSED_CALLS {
            self.closed.pop_front();
        }
        Applied::Counted
    }

    /// How a call ended that had ended. What the agent's own record says of a failure is better than a hook that only knows
    /// that the call is over.
    fn told_again(&mut self, hash: u32, ended: &ToolEnded) -> Applied {
        let at = self.done_by_hook.iter().position(|known| *known == hash);
        let Some(at) = at.filter(|_| ended.source == Source::Stream) else { return Applied::Repeated };
        self.done_by_hook.remove(at);
        let counted = match ended.end {
            CallEnd::Failed => &mut self.failed,
            CallEnd::Denied => &mut self.denied,
            CallEnd::Completed | CallEnd::InDoubt => return Applied::Repeated,
        };
        count(counted);
        self.completed = self.completed.saturating_sub(1);
        Applied::Corrected
    }

    /// A run begins: whatever its sources did not tell of earlier ones, they will not tell now.
    pub(super) fn next_run(&mut self) {
        for seen in &mut self.seen {
            (seen.stream, seen.hook) = (seen.times, seen.times);
        }
    }

    /// Which call a start is about.
    fn next_key(&mut self, started: &ToolStarted) -> String {
        let hash = short_hash(&started.call);
        let at = match self.seen.iter().position(|seen| seen.hash == hash) {
            Some(at) => at,
            None => {
                self.forget_one_id();
                self.seen.push_back(SeenId { hash, times: 0, stream: 0, hook: 0 });
                self.seen.len() - 1
            }
        };
        let told = *self.seen[at].told_by(started.source);
        // The same source may say the same twice, for one of its ways to us may seem to fail. As long as the call is
        // open and the same was asked for, it is the same call.
        let newest = key_of(&started.call, told);
        let input = || shorten(&started.input.to_string(), limits::NAME);
        if told > 0
            && self.open.get(&newest).is_some_and(|open| open.tool == started.tool && open.input == input())
        {
            return newest;
        }
        let seen = &mut self.seen[at];
        let told = seen.told_by(started.source);
        *told = told.saturating_add(1);
        let nth = *told;
        seen.times = seen.times.max(nth);
        key_of(&started.call, nth)
    }

    /// Which call an end is about: of those that its source told of, the one that has been open longest, or else the
    /// last.
    fn ended_key(&mut self, ended: &ToolEnded) -> String {
        let hash = short_hash(&ended.call);
        let seen = self.seen.iter_mut().find(|seen| seen.hash == hash);
        let Some(seen) = seen else { return ended.call.clone() };
        let times = seen.times;
        let told = match *seen.told_by(ended.source) {
            // Of a call that it did not announce, a source tells what the other one announced.
            0 => times,
            told => told,
        };
        let keys = || (1..=told).map(|nth| key_of(&ended.call, nth));
        let open = keys().find(|key| self.open.contains_key(key));
        open.or_else(|| keys().find(|key| self.in_doubt.contains_key(key)))
            .unwrap_or_else(|| key_of(&ended.call, told))
    }

    /// Room for another id: the oldest of those that came only once goes first.
    fn forget_one_id(&mut self) {
        if self.seen.len() < limits::SEEN_IDS {
            return;
        }
        let once = self.seen.iter().position(|seen| seen.times <= 1);
        self.seen.remove(once.unwrap_or(0));
    }

    /// The name in the ledger of a call that was told of just now, by the agent's id.
    pub(crate) fn name_of(&self, id: &str) -> String {
        self.newest
            .as_ref()
            .filter(|name| is_named_by(name, id))
            .map_or_else(|| id.to_owned(), ToOwned::to_owned)
    }

    /// Whether a call with this id of the agent's is open.
    pub fn is_open(&self, id: &str) -> bool {
        self.open.keys().any(|name| is_named_by(name, id))
    }

    /// Whether a call with this id is open or in doubt.
    pub fn is_unsettled(&self, id: &str) -> bool {
        self.is_open(id) || self.in_doubt.keys().any(|name| is_named_by(name, id))
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

/// The name of a call in the ledger: the agent's id, with a number from the second one on.
fn key_of(call: &str, nth: u32) -> String {
    if nth <= 1 { call.to_owned() } else { format!("{call}#{nth}") }
}

/// Whether a name in the ledger is that of a call with this id.
fn is_named_by(name: &str, id: &str) -> bool {
    name.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
}

/// Thirty-two bits are enough to tell the last few dozen calls apart.
fn short_hash(id: &str) -> u32 {
    id.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
