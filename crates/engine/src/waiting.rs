//! What waits for a person: one list of it, whatever kind it is, each named by a hash of what is asked.

use segno_core::Event;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::Holder;
use segno_core::event::Recovery;
use segno_core::state::OpenQuestion;
use segno_store::EventRow;
use segno_store::Filter;
use serde::Serialize;

use crate::Engine;
use crate::Error;
use crate::run::ancestry;

/// How many characters of a hash are a name.
const NAME: usize = 16;

/// What kind of thing waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingKind {
    /// An agent asks whether a call may run, and waits.
    Permission,
    /// Work waits at a breakpoint.
    Breakpoint,
    /// The breaker of a loop is open.
    Breaker,
    /// A session was interrupted with calls in doubt: somebody has to say how it goes on.
    Resume,
}

impl WaitingKind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Breakpoint => "breakpoint",
            Self::Breaker => "breaker",
            Self::Resume => "resume",
        }
    }
}

/// Something that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Its name: a hash of what is asked. What changes gets another name.
    pub id: String,
    /// What it is.
    pub kind: WaitingKind,
    /// The session.
    pub session_id: SessionId,
    /// What that is about.
    pub topic: Option<String>,
    /// Where.
    pub project: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when; then the answer is no.
    pub until: Option<Timestamp>,
    /// What is asked, in a line.
    pub text: String,
    /// All that the answer is about, where it is more than a line.
    pub input: Option<String>,
    /// What can be answered.
    pub answers: Vec<String>,
}

impl Engine {
    /// All that waits for a person, in every project, the oldest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn waiting(&self) -> Result<Vec<Waiting>, Error> {
        let statuses = vec![Status::Active, Status::Paused, Status::Interrupted, Status::Halted];
        let mut all = Vec::new();
        for session in self.list(&Filter { statuses, ..Filter::default() })? {
            // One that cannot be read is not why the others are not shown.
            let Ok(loaded) = self.load(session.session_id) else { continue };
            all.extend(self.waiting_in(&loaded.state)?);
        }
        all.sort_by_key(|waiting| waiting.since);
        Ok(all)
    }

    /// What waits in one session.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn waiting_of(&self, session: SessionId) -> Result<Vec<Waiting>, Error> {
        self.waiting_in(&self.load(session)?.state)
    }

    fn waiting_in(&self, state: &State) -> Result<Vec<Waiting>, Error> {
        let one = |kind: WaitingKind, since: Timestamp, text: String, answers: &[&str]| Waiting {
            id: name(state, kind, since, &text),
            kind,
            session_id: state.session_id,
            topic: state.topic.clone(),
            project: state.project.path.clone(),
            since,
            until: None,
            text,
            input: None,
            answers: answers.iter().map(|&word| word.to_owned()).collect(),
        };
        let mut all = Vec::new();
        for open in state.questions.iter().filter(|open| open.answer.is_none()) {
            let text = format!("may it use {}? {}", open.tool, open.input);
            let waiting = one(WaitingKind::Permission, open.at, text, &["yes", "no", "TEXT"]);
            let input = Some(self.input_of(state.session_id, open)?);
            all.push(Waiting { id: open.id.clone(), until: open.until, input, ..waiting });
        }
        if let Some(breakpoint) = &state.breakpoint {
            let text = format!("go on from breakpoint {}?", breakpoint.name);
            all.push(one(WaitingKind::Breakpoint, breakpoint.since, text, &["yes"]));
        }
        if state.status == Status::Halted && state.breaker_holds() {
            let why = state.reason.as_ref().and_then(|reason| reason.details.clone()).unwrap_or_default();
            let since = state.recovery.as_ref().map_or(state.updated_at, |stop| stop.interrupted_at);
            let text = format!("close the breaker, which opened: {why}?");
            all.push(one(WaitingKind::Breaker, since, text, &["yes"]));
        }
        if state.status == Status::Interrupted && !state.calls.in_doubt.is_empty() {
            let calls: Vec<String> =
                state.calls.in_doubt.values().map(|call| format!("{} {}", call.tool, call.input)).collect();
            let since = state.recovery.as_ref().map_or(state.updated_at, |stop| stop.interrupted_at);
            let text = format!("how does it go on? in doubt: {}", calls.join("; "));
            // A loop goes on by its plan; elsewhere what can be gone on from counts.
            let words = match state.looping {
                Some(_) => vec![Recovery::Live],
                None if self.checkpoint_to_resume(state.session_id)?.is_none() => {
                    vec![Recovery::Live, Recovery::Fresh]
                }
                None => vec![Recovery::Checkpoint, Recovery::Live, Recovery::Fresh],
            };
            let words: Vec<&str> = words.into_iter().map(Recovery::as_str).collect();
            all.push(one(WaitingKind::Resume, since, text, &words));
        }
        Ok(all)
    }

    /// The whole input that a question is about.
    fn input_of(&self, session: SessionId, open: &OpenQuestion) -> Result<String, Error> {
        let events = self.events(session, open.seq.saturating_sub(1), 1)?;
        let asked = match events.first() {
            Some(EventRow::Whole(stored)) => stored.event().ok(),
            Some(EventRow::Damaged { .. }) | None => None,
        };
        match asked {
            Some(Event::QuestionAsked(asked)) => self.whole(&asked.input),
            // What cannot be read whole cannot be judged.
            _ => Err(Error::SessionCorrupted {
                session_id: session.to_string(),
                details: format!("question {} cannot be read", open.id),
            }),
        }
    }

    /// Whether this process was started by an agent whose session is recorded here, or by whoever keeps a session for
    /// one: neither may answer in a person's place.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn is_below_an_agent(&self) -> Result<bool, Error> {
        Ok(ancestry::is_below(&self.holders()?))
    }

    /// Who drives sessions now.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn holders(&self) -> Result<Vec<Holder>, Error> {
        Ok(self.driven_sessions()?.into_iter().map(|(_, lease)| lease.holder).collect())
    }
}

fn name(state: &State, kind: WaitingKind, since: Timestamp, text: &str) -> String {
    let whole = format!("{}\n{}\n{since}\n{text}", state.uid, kind.as_str());
    blake3::hash(whole.as_bytes()).to_hex().chars().take(NAME).collect()
}
