//! The face for somebody at a terminal: every session, live, and what can be done about it.
//!
//! Three threads. This one draws and listens to keys: `update` takes in what happened and says what is to be done,
//! `view` draws what is known; neither reads nor acts. One reads what is shown when something was recorded, and one does what
//! was asked, as the program's own commands.

mod acts;
mod dialog;
mod look;
mod perform;
mod read;
mod state;
mod terminal;
mod update;
mod view;

use std::io::IsTerminal as _;
use std::sync::mpsc;

use segno_engine::core::Timestamp;

use self::state::Msg;
use self::state::Top;
use self::terminal::Channels;
use self::terminal::Ended;
use crate::commands;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::perform::Surroundings;

/// Shows sessions until somebody leaves.
///
/// # Errors
/// If there is no terminal, or it cannot be used.
pub(crate) fn run(context: &Context, everywhere: bool) -> Outcome {
    check_terminal(context)?;
    // What is wrong with the settings is said before there is a screen.
    context.setup()?;
    let now = Timestamp::from_micros(context.now.as_microsecond());
    let mut top = Top::new(now, context.zone(), context.printer.palette(), (80, 24));
    if !everywhere {
        top.project = Some(context.project.root.display().to_string());
    }
    let around = Surroundings::from(context);
    let (tell, messages) = mpsc::channel();
    let (asks, asked) = mpsc::channel();
    let (acts, wanted) = mpsc::channel();
    let look = asks.clone();
    let ended = std::thread::scope(|scope| {
        let (around, tell_too) = (&around, tell.clone());
        scope.spawn(move || {
            if let Err(error) = read::read(around, &asked, &tell) {
                let _ = tell.send(Msg::Broken(error.to_string()));
            }
        });
        scope.spawn(move || perform::perform(around, &wanted, &tell_too, &look));
        let ended = terminal::run(&mut top, &Channels { messages, asks, acts });
        if top.busy > 0 {
            context.printer.talk("finishing what was begun");
        }
        ended
    })?;
    match ended {
        Ended::Left => Ok(()),
        Ended::ToRun(command) => commands::run(context, &command),
        Ended::Signal(signal) => {
            let _ = context.printer.flush();
            signal_hook::low_level::emulate_default_handler(signal)
                .map_err(|why| CommandError::io("cannot end", why))
        }
    }
}

fn check_terminal(context: &Context) -> Outcome {
    let screen = std::io::stdin().is_terminal() && context.printer.is_terminal();
    let why = if context.printer.is_json() {
        "segno top draws on a terminal; it has no JSON"
    } else if !screen {
        "segno top needs a terminal, and this is none"
    } else if context.environment.get("TERM") == Some("dumb") {
        "segno top needs a terminal that can be drawn on, and TERM says that this one cannot"
    } else {
        return Ok(());
    };
    Err(CommandError::new(ExitCode::Usage, "no_terminal", why)
        .hint("segno ls --json   (or: segno tail -f ID, segno show ID)"))
}
