//! Whether what opened a breaker is gone because of something that somebody did.

use super::breaker::PersonDid;
use super::state::LoopState;

/// What lets one iteration be tried although the breaker is open, in words. `seen` is what only a look around tells: other
/// files, another setup. A note counts until the agent has been told it.
pub fn cause_gone(state: &LoopState, seen: &[PersonDid]) -> Option<&'static str> {
    let recorded = [
        (state.replanned, PersonDid::ChangedPlan),
        (state.notes.iter().any(|note| note.seq > state.told), PersonDid::Noted),
    ];
    let recorded = recorded.into_iter().filter(|(did, _)| *did).map(|(_, did)| did);
    let did = recorded.chain(seen.iter().copied()).find(|did| state.breaker.is_cause_gone(*did))?;
    Some(match did {
        PersonDid::Noted => "there is a note that the agent has not been told yet",
        PersonDid::ChangedPlan => "it has another plan",
        PersonDid::ChangedFiles => "files were changed since",
        PersonDid::ChangedSetup => "what a start depends on is not what it was",
    })
}
