//! Long output through the user's pager: only on a terminal, and only if `ui.pager` names one.

use std::io::Write as _;
use std::io::{self};
use std::process::Command;
use std::process::Stdio;

use super::printer::Printer;
use super::text::Text;
use crate::config::env::Environment;
use crate::error::CommandError;
use crate::error::Outcome;

/// Shows a text that may be longer than the screen.
///
/// `command` is split at white space and run without a shell: configuration names a program, it does not get an
/// interpreter. If the pager cannot be started the text is printed as usual, with a warning.
///
/// # Errors
/// As [`Printer::data`].
pub fn show(printer: &Printer, environment: &Environment, command: &str, text: &Text) -> Outcome {
    let mut words = command.split_whitespace();
    let program = words.next().filter(|_| printer.is_terminal() && !printer.is_json());
    let Some(program) = program else { return printer.data(text.clone()) };
    printer.flush()?;
    #[expect(clippy::disallowed_methods, reason = "the pager is the one program this face starts")]
    let mut pager = Command::new(program);
    pager.args(words).stdin(Stdio::piped());
    if environment.get("LESS").is_none() {
        // Quit if it fits on the screen, show our colours, leave the screen as it is.
        pager.env("LESS", "FRX");
    }
    let mut child = match pager.spawn() {
        Ok(child) => child,
        Err(error) => {
            printer.warn_with(
                format!("cannot start the pager `{program}`: {error}"),
                &["segno config unset ui.pager".into()],
            );
            return printer.data(text.clone());
        }
    };
    if let Some(mut stdin) = child.stdin.take() {
        let mut shown = text.render(printer.palette());
        shown.push('\n');
        match stdin.write_all(shown.as_bytes()) {
            // The reader left early: that is what pagers are for.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                return Err(CommandError::io(format!("cannot write to the pager `{program}`"), error));
            }
            _ => {}
        }
    }
    child.wait().map_err(|error| CommandError::io(format!("the pager `{program}` was lost"), error))?;
    Ok(())
}
