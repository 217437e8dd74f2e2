//! What an agent is told in one iteration: core makes the text, the record has the values.

use segno_core::State;
use segno_core::event::Event;
use segno_core::looping::LoopState;
use segno_core::looping::PhasePlan;
use segno_core::looping::PromptTexts;

use crate::Engine;
use crate::Error;
use crate::resume::BriefLimits;

impl Engine {
    /// The prompt of the next iteration. `failing` is what the evidence commands that failed printed last. With `brief`
    /// it is also told where the work stands, and what is in doubt.
    pub(crate) fn loop_prompt(
        &self,
        state: &State,
        looping: &LoopState,
        phase: &PhasePlan,
        failing: &str,
        brief: bool,
    ) -> Result<String, Error> {
        let brief = match brief {
            true => {
                let limits = BriefLimits::default();
                Some(self.brief_of_iteration(state.session_id, limits)?.text(limits))
            }
            false => None,
        };
        let texts = PromptTexts {
            work: self.whole(&looping.plan.work)?,
            phase: self.whole(&phase.prompt)?,
            notes: self.whole_notes(state, looping)?,
            brief,
            item: match looping.parent.is_some() {
                true => Some(self.whole_intent(state)?),
                false => None,
            },
        };
        let prompt = segno_core::looping::prompt(looping, &texts, state.iteration.max(1));
        if failing.trim().is_empty() {
            return Ok(prompt);
        }
        Ok(format!("## What failed when it was measured last\n\n```\n{}\n```\n\n{prompt}", failing.trim()))
    }

    /// What a session was made for, all of it: the state has only the beginning.
    fn whole_intent(&self, state: &State) -> Result<String, Error> {
        let rows = self.store().events(state.session_id, 0, 1)?;
        let made = match rows.first() {
            Some(segno_store::EventRow::Whole(stored)) => stored.event().ok(),
            _ => None,
        };
        match made {
            Some(Event::SessionCreated(created)) => {
                created.intent.as_ref().map_or(Ok(String::new()), |it| self.whole(it))
            }
            _ => Ok(state.intent.clone().unwrap_or_default()),
        }
    }

    /// The notes of the operator, all of each: the state has only their beginnings.
    fn whole_notes(&self, state: &State, looping: &LoopState) -> Result<Vec<String>, Error> {
        let mut notes = Vec::new();
        for note in &looping.notes {
            let rows = self.store().events(state.session_id, note.seq.saturating_sub(1), 1)?;
            let noted = match rows.first() {
                Some(segno_store::EventRow::Whole(stored)) => stored.event().ok(),
                _ => None,
            };
            notes.push(match noted {
                Some(Event::OperatorNoted(noted)) => self.whole(&noted.text)?,
                _ => note.text.clone(),
            });
        }
        Ok(notes)
    }
}
