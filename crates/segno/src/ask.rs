//! Asking a person at the terminal, and telling them things: how the engine talks through the command line.

use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use segno_engine::core::SessionId;
use segno_engine::frontend::Frontend;
use segno_engine::frontend::Question;
use signal_hook::consts::SIGINT;

use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// How often it is looked whether somebody pressed Ctrl-C, in nanoseconds.
const LOOK: i64 = 200_000_000;

/// How often somebody may type what is no answer.
const TRIES: usize = 3;

/// The person at the terminal, if there is one.
pub(crate) struct Terminal<'a> {
    context: &'a Context,
}

impl<'a> Terminal<'a> {
    pub(crate) fn new(context: &'a Context) -> Self {
        Self { context }
    }
}

impl Frontend for Terminal<'_> {
    fn ask(&self, question: &Question) -> Option<usize> {
        if !std::io::stdin().is_terminal() || self.context.printer.is_json() {
            return None;
        }
        for line in &question.about {
            self.context.printer.talk(line.clone());
        }
        let words: Vec<&str> = question.answers.iter().map(|(word, _)| word.as_str()).collect();
        let offered = if words == ["n", "y"] { "y/N".to_owned() } else { words.join("/") };
        self.context.printer.talk(format!("{} [{offered}]", question.text));
        for _ in 0..TRIES {
            let answer = line().ok()?;
            let fits = |word: &str| word == answer || (word == "y" && answer == "yes");
            if let Some(chosen) = question.answers.iter().position(|(word, _)| fits(word)) {
                return Some(chosen);
            }
            // The first answer is the one that changes nothing: whoever only presses Enter, or does not say yes, means it.
            if answer.is_empty() || words == ["n", "y"] {
                return Some(0);
            }
            self.context.printer.talk(format!("that is not one of the answers [{offered}]"));
        }
        None
    }

    fn notice(&self, text: &str) {
        self.context.printer.talk(text.to_owned());
    }

    fn warn(&self, text: &str) {
        self.context.printer.warn(text.to_owned());
    }

    fn damaged(&self, session: SessionId, what: &str) {
        let hint = ["segno doctor --repair".to_owned()];
        self.context.printer.warn_with(format!("session {}: {what}", short(session)), &hint);
    }

    fn progress(&self, text: &str) {
        self.context.printer.detail(1, text.to_owned());
    }
}

/// Reads one answer, without blanks around it and in small letters.
///
/// # Errors
/// If it cannot be read; and Ctrl-C and the end of input are answers too: nothing is done.
pub(crate) fn line() -> Outcome<String> {
    text().map(|answer| answer.to_lowercase())
}

/// Reads one line as it is typed, without blanks around it.
///
/// # Errors
/// As for [`line`].
pub(crate) fn text() -> Outcome<String> {
    // An end of input is nobody's Enter: who is gone has agreed to nothing.
    typed()?.ok_or_else(nothing_done)
}

/// Reads answers until one fits. A slip of the finger is no decision.
///
/// # Errors
/// As for [`line`]; and if none of a few fits.
pub(crate) fn choice<T>(context: &Context, chosen: impl Fn(&str) -> Option<T>) -> Outcome<T> {
    for _ in 0..TRIES {
        if let Some(chosen) = chosen(&line()?) {
            return Ok(chosen);
        }
        context.printer.talk("that is not one of the answers");
    }
    Err(nothing_done())
}

fn nothing_done() -> CommandError {
    CommandError::new(ExitCode::Cancelled, "cancelled", "nothing was done")
}

/// The same; none at the end of input.
///
/// # Errors
/// If it cannot be read, or at Ctrl-C.
pub(crate) fn typed() -> Outcome<Option<String>> {
    let failed = |why: std::io::Error| CommandError::io("cannot read the answer", why);
    let interrupted = Arc::new(AtomicBool::new(false));
    let id = signal_hook::flag::register(SIGINT, Arc::clone(&interrupted)).map_err(failed)?;
    let stdin = std::io::stdin();
    let ready = loop {
        let mut fds = [rustix::event::PollFd::from_borrowed_fd(stdin.as_fd(), rustix::event::PollFlags::IN)];
        let patience = rustix::event::Timespec { tv_sec: 0, tv_nsec: LOOK };
        let polled = rustix::event::poll(&mut fds, Some(&patience));
        if interrupted.load(Ordering::Relaxed) {
            break Err(nothing_done());
        }
        match polled {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break Ok(()),
            Err(why) => break Err(failed(why.into())),
        }
    };
    let answer = ready.and_then(|()| {
        let mut answer = String::new();
        let read = stdin.read_line(&mut answer).map_err(failed)?;
        Ok((read > 0).then(|| answer.trim().to_owned()))
    });
    signal_hook::low_level::unregister(id);
    answer
}
