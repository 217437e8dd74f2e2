//! The rules for coming back.

use super::one;
use crate::event as ev;
use crate::event::Event;
use crate::limits;
use crate::refusal::Refusal;
use crate::state::State;
use crate::text::Text;

/// How a call in doubt ended was found out.
pub(super) fn settle_call(
    state: &State,
    call: String,
    end: ev::CallEnd,
    output: Option<Text>,
    evidence: String,
) -> Result<Vec<Event>, Refusal> {
    limits::name("call id", &call)?;
    limits::line("evidence", &evidence)?;
    if end == ev::CallEnd::InDoubt {
        return Err(Refusal::bad("end", "what was found out is not in doubt"));
    }
    if !state.calls.in_doubt.contains_key(&call) {
        return Err(Refusal::Unknown { what: "call in doubt", id: call });
    }
    let (tool, source, evidence) = (None, ev::Source::Hand, Some(evidence));
    one(ev::ToolEnded { call, tool, end, output, source, evidence, recurs: false })
}
