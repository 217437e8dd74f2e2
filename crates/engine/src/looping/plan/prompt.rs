//! What an agent is told in one iteration: core makes the text, the record has the values.

use segno_core::List;
use segno_core::State;
use segno_core::event::Event;
use segno_core::looping::LoopState;
use segno_core::looping::LoopVerdict;
use segno_core::looping::PhasePlan;
use segno_core::looping::PromptTexts;
use segno_core::rows::RunRow;
use segno_store::Page;

use crate::Engine;
use crate::Error;
use crate::resume::BriefLimits;

/// How many of the newest runs are looked through for the one that judged.
const REVIEWS: usize = 20;
/// How much of a review is told.
const REVIEW: usize = 4_000;

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
            review: self.review(state, looping)?,
        };
        let prompt = segno_core::looping::prompt(looping, &texts, state.iteration.max(1));
        if failing.trim().is_empty() {
            return Ok(prompt);
        }
        Ok(format!("## What failed when it was measured last\n\n```\n{}\n```\n\n{prompt}", failing.trim()))
    }

    /// The end of what the review said that has just sent the work back.
    fn review(&self, state: &State, looping: &LoopState) -> Result<Option<String>, Error> {
        let Some(LoopVerdict::BackTo { phase: to, .. }) = &looping.verdict else { return Ok(None) };
        let judges = |name: &str| {
            let plan = looping.plan.phase(name).and_then(|phase| phase.on_reject.as_ref());
            name != to && plan.is_some_and(|back| back.to == *to)
        };
        let page = Page { after: None, limit: REVIEWS, newest_first: true };
        let rows = self.store().page(state.session_id, List::Runs, &page)?;
        let mut rows = rows.iter().map(segno_store::Item::row::<RunRow>);
        let row = rows.find(|row| row.phase.as_deref().is_some_and(judges));
        let Some(said) = row.and_then(|row| row.text) else { return Ok(None) };
        let words = self.whole(&said)?;
        let words = words.trim();
        let end = &words[words.ceil_char_boundary(words.len().saturating_sub(REVIEW))..];
        let end = if end.len() < words.len() { format!("… {end}") } else { end.to_owned() };
        Ok(Some(end).filter(|end| !end.is_empty()))
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
