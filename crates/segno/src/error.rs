//! The one error type at the edge: what happened, what to type next, and how the program ends.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use serde_json::json;

use crate::exit::ExitCode;
use crate::output::style::Meaning;
use crate::output::style::Palette;
use crate::output::text::Text;

/// What a command returns.
pub type Outcome<T = ()> = Result<T, CommandError>;

/// An error as the user meets it.
///
/// Libraries have an error variant per cause; here each cause becomes a stable `code` for programs, a message and
/// hints for people, and an exit code for scripts.
#[derive(Debug)]
pub struct CommandError {
    code: &'static str,
    message: String,
    hints: Vec<String>,
    exit: ExitCode,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl CommandError {
    /// An error with a stable code in `snake_case`, a one-line message without a full stop, and an exit code.
    pub fn new(exit: ExitCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hints: Vec::new(), exit, source: None }
    }

    /// A plain failure.
    pub fn failure(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ExitCode::Failure, code, message)
    }

    /// A command line that parses but makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Usage, "usage", message)
    }

    /// A wrong configuration file, variable or key.
    pub fn config(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ExitCode::Config, code, message)
    }

    /// A defect of ours.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Internal, "internal", message)
    }

    /// The reader of our output went away: the program ends quietly and well.
    pub fn broken_pipe() -> Self {
        Self::new(ExitCode::Ok, "broken_pipe", "the reader of the output went away")
    }

    /// An input or output error while doing `what`, for example `"cannot write PATH"`.
    pub fn io(what: impl fmt::Display, error: io::Error) -> Self {
        let exit = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ExitCode::Environment,
            _ => ExitCode::Failure,
        };
        Self::new(exit, "io", format!("{what}: {error}")).caused_by(error)
    }

    /// Adds the next thing to type or to know.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Changes the message.
    #[must_use]
    pub fn map_message(mut self, change: impl FnOnce(&str) -> String) -> Self {
        self.message = change(&self.message);
        self
    }

    /// Changes the message and the hints, for example to take secrets out.
    #[must_use]
    pub fn map_words(mut self, change: impl Fn(&str) -> String) -> Self {
        self.message = change(&self.message);
        self.hints.iter_mut().for_each(|hint| *hint = change(hint));
        self
    }

    /// Adds a hint if there is one.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Remembers the cause, shown with `-v`.
    #[must_use]
    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// The stable code.
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// The hints, most useful first.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// How the program ends because of this.
    pub const fn exit(&self) -> ExitCode {
        self.exit
    }

    /// Whether nothing at all should be said.
    pub fn is_silent(&self) -> bool {
        self.code == "broken_pipe"
    }

    /// The error as a person reads it on standard error.
    pub fn human(&self, palette: Palette, verbose: bool) -> String {
        self.human_within(palette, verbose, None)
    }

    /// The same on a terminal of this width. Hints stay whole: they are there to be copied.
    pub(crate) fn human_within(&self, palette: Palette, verbose: bool, width: Option<usize>) -> String {
        // Somebody said no, and got what they wanted.
        let declined = self.exit == ExitCode::Cancelled && self.hints.is_empty();
        let mut text = match declined {
            true => Text::new().plain(&self.message),
            false => {
                let message = crate::output::text::behind("error:", &self.message, width);
                Text::new().painted(Meaning::Lost, "error:").plain(" ").plain(message)
            }
        };
        if verbose {
            let mut cause = self.source();
            while let Some(error) = cause {
                let said = error.to_string();
                // The message usually ends with the text of its direct cause; saying it twice helps nobody.
                if !self.message.ends_with(&said) {
                    text = text.plain("\n  cause: ").plain(said);
                }
                cause = error.source();
            }
        }
        for hint in &self.hints {
            text = text.plain("\n  ").painted(Meaning::Dim, "hint:").plain(" ").plain(hint);
        }
        text.render(palette)
    }

    /// The error as a program reads it on standard error, in one line.
    pub fn json(&self) -> String {
        let hint = if self.hints.is_empty() { None } else { Some(self.hints.join("\n")) };
        let value =
            json!({ "code": self.code, "message": self.message, "hint": hint, "exit": self.exit.number() });
        crate::output::json::line(&json!({ "error": value }))
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for CommandError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
