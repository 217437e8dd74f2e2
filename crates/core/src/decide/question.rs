//! Questions of a run to a person: asked once, answered once.

use super::check::not_empty;
use super::check::room;
use super::one;
use crate::event as ev;
use crate::event::Event;
use crate::limits;
use crate::refusal::Refusal;
use crate::state::OpenQuestion;
use crate::state::State;

pub(super) fn ask(state: &State, asked: ev::QuestionAsked) -> Result<Vec<Event>, Refusal> {
    if state.driver.is_none() {
        return Err(Refusal::NoDriver);
    }
    limits::name("question", &asked.id)?;
    limits::name("tool", &asked.tool)?;
    limits::optional_name("call id", asked.call.as_deref())?;
    not_empty("input", &asked.input)?;
    if state.questions.iter().any(|open| open.id == asked.id) {
        return Err(Refusal::Already(format!("question {} is asked already", asked.id)));
    }
    room("open questions", false, state.questions.len(), limits::ENTRIES)?;
    one(asked)
}

pub(super) fn answer(state: &State, answered: ev::QuestionAnswered) -> Result<Vec<Event>, Refusal> {
    limits::line("by", &answered.by)?;
    let open = open(state, &answered.id)?;
    if let Some(given) = &open.answer {
        let word = if given.allow { "yes" } else { "no" };
        return Err(Refusal::Already(format!(
            "question {} was answered already: {word}, by {}",
            answered.id, given.by
        )));
    }
    one(answered)
}

pub(super) fn close(state: &State, closed: ev::QuestionClosed) -> Result<Vec<Event>, Refusal> {
    limits::line("why", &closed.why)?;
    open(state, &closed.id)?;
    one(closed)
}

fn open<'a>(state: &'a State, question: &str) -> Result<&'a OpenQuestion, Refusal> {
    let found = state.questions.iter().find(|open| open.id == question);
    found.ok_or_else(|| Refusal::Unknown { what: "open question", id: question.to_owned() })
}
