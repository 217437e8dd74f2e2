//! What can be done, each as one of the program's own commands: what it may do and what it refuses is said there.

use std::time::Duration;

use segno_engine::waiting::Waiting;

use super::state::Act;
use super::state::Doing;
use super::state::Place;
use crate::cli::Command;
use crate::commands::answer;
use crate::commands::args::OneSession;
use crate::commands::args::SessionRef;
use crate::commands::attach;
use crate::commands::breaker;
use crate::commands::budget;
use crate::commands::checkpoint;
use crate::commands::lifecycle;
use crate::commands::looping;
use crate::commands::mark;
use crate::commands::resume;
use crate::commands::undo;
use crate::output::units;

/// From where answers are given, for the record.
const BY: &str = "segno top";

fn act(place: &Place, command: Command, said: impl Into<String>) -> Act {
    Act::Do(Box::new(Doing { place: place.clone(), command, said: said.into() }))
}

fn named(place: &Place) -> Option<SessionRef> {
    place.session.to_string().parse().ok()
}

pub(super) fn pause(place: &Place) -> Act {
    let args = lifecycle::PauseArgs { session: OneSession::default(), reason: None };
    act(place, Command::Pause(args), "paused, or its driver was asked to pause")
}

/// Nobody waits here until the agent has ended: that is seen.
pub(super) fn stop(place: &Place) -> Act {
    let session = OneSession { id: named(place) };
    let args = attach::StopArgs { session, no_wait: true, timeout: Duration::from_secs(60) };
    act(place, Command::Stop(args), "its driver was asked to stop the agent")
}

pub(super) fn note(place: &Place, text: &str, tells_the_agent: bool) -> Act {
    if tells_the_agent {
        let said = "the agent is told with the next prompt";
        return act(place, looping::say_command(text.to_owned()), said);
    }
    let args = mark::NoteArgs { text: text.to_owned(), action: "note".to_owned() };
    act(place, Command::Note(args), "the note is in the history")
}

pub(super) fn checkpoint(place: &Place, name: &str) -> Act {
    let name = Some(name.to_owned()).filter(|name| !name.is_empty());
    let create = checkpoint::Command::Create { name, reason: None };
    act(place, Command::Checkpoint(checkpoint::Args::of(create)), "the checkpoint is made")
}

/// More tokens, or with a dollar sign more money.
pub(super) fn budget(place: &Place, text: &str) -> Result<Act, String> {
    let (command, said) = match text.strip_prefix('$') {
        Some(dollars) => {
            let dollars = units::parse_dollars(dollars.trim())?;
            let hold = budget::Hold { advisory: false, warn: None };
            let said = format!("{} more may be spent", units::dollars(dollars));
            (budget::Command::Cost { dollars, extend: true, hold }, said)
        }
        None => {
            let tokens = units::parse_count(text)?;
            (budget::Command::Extend { tokens }, format!("{} more may be used", units::tokens(tokens)))
        }
    };
    Ok(act(place, Command::Budget(budget::Args { command: Some(command) }), said))
}

pub(super) fn reset_breaker(place: &Place, because: &str) -> Act {
    let because = if because.is_empty() { "reset by hand" } else { because }.to_owned();
    let reset = breaker::Command::Reset { session: OneSession::default(), because };
    act(
        place,
        Command::Breaker(breaker::Args { command: Some(reset) }),
        "the breaker is closed; r resumes it",
    )
}

pub(super) fn skip_phase(place: &Place) -> Act {
    let skip = breaker::Command::SkipPhase { session: OneSession::default() };
    act(place, Command::Breaker(breaker::Args { command: Some(skip) }), "the phase is left without its gate")
}

/// The name of a question is a hash of all that is asked: an answer counts for exactly that.
pub(super) fn answer(place: &Place, waiting: &Waiting, said: &str) -> Act {
    let args = answer::Args {
        id: Some(waiting.id.clone()),
        answer: vec![said.to_owned()],
        confirmed_through: None,
        through: Some(BY),
    };
    act(place, Command::Answer(args), format!("answered: {said}"))
}

pub(super) fn undo(dry_run: bool) -> Command {
    Command::Undo(undo::UndoArgs {
        paths: Vec::new(),
        turns: 1,
        to: None,
        all: false,
        flags: undo::RestoreFlags { dry_run, yes: !dry_run },
    })
}

/// Going on takes over the terminal.
pub(super) fn resume(place: &Place) -> Command {
    Command::Resume(resume::Args { session: OneSession { id: named(place) }, ..resume::Args::default() })
}
