//! Questions that wait in the journal, so that they can be answered from anywhere.

use segno_core::Command;
use segno_core::Refusal;
use segno_core::State;
use segno_core::event::QuestionAnswered;
use segno_core::state::GivenAnswer;

use super::journal::Recorder;
use crate::Error;
use crate::act::Acting;

/// How many characters of the hash are the name of a question.
const NAME: usize = 16;

/// Names the questions of one run.
///
/// A name is a hash of all that is asked about, so an answer cannot be meant for another input. An input may hold a secret,
/// and whoever guesses it must not be able to try that on the name: so the hash has a key that nobody else knows.
pub(super) struct QuestionNames([u8; 32]);

impl QuestionNames {
    pub(super) fn new() -> Self {
        let random = [uuid::Uuid::now_v7().into_bytes(), uuid::Uuid::now_v7().into_bytes()].concat();
        Self(*blake3::hash(&random).as_bytes())
    }

    pub(super) fn name(&self, run: &str, request: &str, tool: &str, input: &str) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in [run, request, tool, input] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().chars().take(NAME).collect()
    }
}

/// What somebody answered elsewhere, if somebody did.
pub(super) fn answered_elsewhere(state: &State, id: &str) -> Option<GivenAnswer> {
    state.questions.iter().find(|open| open.id == id)?.answer.clone()
}

/// Records what was answered here. Answers with what somebody said elsewhere, if that was first: one answer counts.
pub(super) fn answered_here(
    recorder: &mut Recorder<'_>,
    id: &str,
    given: &GivenAnswer,
) -> Result<Option<GivenAnswer>, Error> {
    let answered = QuestionAnswered {
        id: id.to_owned(),
        allow: given.allow,
        details: given.details.as_deref().map(Into::into),
        by: given.by.clone(),
    };
    let acting = Acting::in_run(recorder.epoch(), &recorder.run);
    match recorder.engine.act_as(recorder.session, [Command::AnswerQuestion(answered)], acting) {
        Err(Error::Refused(Refusal::Already(_))) => {
            recorder.refresh()?;
            Ok(answered_elsewhere(&recorder.state, id))
        }
        // A store that cannot take it now holds nobody up; what the agent is told is recorded all the same.
        Ok(_) | Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_input_is_another_question() {
        let names = QuestionNames::new();
        let name = names.name("r", "1", "Bash", "{}");
        assert_eq!((name.len(), names.name("r", "1", "Bash", "{}")), (NAME, name.clone()));
        for other in [
            names.name("r", "1", "Bash", "{ }"),
            names.name("r", "1", "Bas", "h{}"),
            names.name("r", "2", "Bash", "{}"),
            names.name("s", "1", "Bash", "{}"),
            // Nobody can find the input by trying.
            QuestionNames::new().name("r", "1", "Bash", "{}"),
        ] {
            assert_ne!(name, other);
        }
    }
}
