//! The printer owns both streams. Data goes to standard output, everything else to standard error.

use std::cell::RefCell;
use std::fmt;
use std::io::IsTerminal as _;
use std::io::Write;
use std::io::{self};

use clap::builder::StyledStr;
use serde::Serialize;
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use super::bell::Bell;
use super::json as json_text;
use super::style::Choice;
use super::style::Meaning;
use super::style::Palette;
use super::table::Table;
use super::text::Text;
use crate::config::env::Environment;
use crate::error::CommandError;
use crate::error::Outcome;

/// How much is said, and in which form.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// JSON instead of text.
    pub json: bool,
    /// No talk on standard error; warnings and errors stay.
    pub quiet: bool,
    /// How often `-v` was given.
    pub verbose: u8,
    /// When to use colour.
    pub color: Choice,
}

/// One stream and what it can show.
struct Sink {
    stream: RefCell<Box<dyn Write>>,
    palette: Palette,
    is_terminal: bool,
    width: Option<usize>,
}

/// Where all words of the program go.
pub struct Printer {
    out: Sink,
    err: Sink,
    manner: Manner,
    /// The last lines of the terminal, which the next words take the place of, each with its width.
    block: RefCell<Vec<(String, usize)>>,
    /// Whether lines may be taken back: on a terminal that can.
    redraws: bool,
}

impl fmt::Debug for Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Printer").field("manner", &self.manner).finish_non_exhaustive()
    }
}

impl Printer {
    /// The printer of the real program.
    pub fn new(manner: Manner, environment: &Environment) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let sink = |stream: Box<dyn Write>, is_terminal, width| Sink {
            stream: RefCell::new(stream),
            palette: Palette::of(manner.color, environment, is_terminal),
            is_terminal,
            width,
        };
        let width = |is_terminal, found| if is_terminal { found } else { None };
        let out_width = width(stdout.is_terminal(), terminal_width(&stdout));
        let err_width = width(stderr.is_terminal(), terminal_width(&stderr));
        Self {
            out: sink(Box::new(stdout), io::stdout().is_terminal(), out_width),
            err: sink(Box::new(stderr), io::stderr().is_terminal(), err_width),
            manner,
            block: RefCell::default(),
            redraws: io::stderr().is_terminal() && environment.get("TERM") != Some("dumb"),
        }
    }

    /// A printer on streams of the caller's choice, never a terminal.
    pub fn to(out: Box<dyn Write>, err: Box<dyn Write>, manner: Manner) -> Self {
        let palette = Palette::new(manner.color == Choice::Always, true);
        let sink = |stream| Sink { stream: RefCell::new(stream), palette, is_terminal: false, width: None };
        Self { out: sink(out), err: sink(err), manner, block: RefCell::default(), redraws: false }
    }

    /// Whether the caller asked for JSON.
    pub const fn is_json(&self) -> bool {
        self.manner.json
    }

    /// Whether nothing is said to the person at the terminal.
    pub const fn is_quiet(&self) -> bool {
        self.manner.quiet
    }

    /// Whether what is said beside the data is read by a person at a terminal.
    pub const fn talks_to_terminal(&self) -> bool {
        self.err.is_terminal && !self.is_json()
    }

    /// Whether standard output is a terminal.
    pub const fn is_terminal(&self) -> bool {
        self.out.is_terminal
    }

    /// What standard output can show.
    pub const fn palette(&self) -> Palette {
        self.out.palette
    }

    /// Writes a line of data to standard output.
    ///
    /// # Errors
    /// [`CommandError::broken_pipe`] if the reader went away, or another failure to write.
    pub fn data(&self, text: impl Into<Text>) -> Outcome {
        let mut line = text.into().render(self.out.palette);
        line.push('\n');
        self.write(line.as_bytes())
    }

    /// How wide the terminal is that people read, if they read on one.
    pub fn width(&self) -> Option<usize> {
        self.err.width.or(self.out.width)
    }

    /// How wide the terminal is that data goes to, if it goes to one.
    pub const fn data_width(&self) -> Option<usize> {
        self.out.width
    }

    /// Writes a table to standard output, cut to the width of the terminal.
    ///
    /// # Errors
    /// As [`Printer::data`].
    pub fn table(&self, table: &Table) -> Outcome {
        self.write(table.render(self.out.palette, self.out.width).as_bytes())
    }

    /// Writes one JSON document to standard output.
    ///
    /// # Errors
    /// As [`Printer::data`].
    pub fn json(&self, value: &impl Serialize) -> Outcome {
        let mut text = json_text::document(value)?;
        text.push('\n');
        self.write(text.as_bytes())
    }

    /// Writes a JSON document that is text already, made as harmless as those made here.
    ///
    /// # Errors
    /// As [`Printer::data`].
    pub fn json_text(&self, text: &str) -> Outcome {
        self.write(json_text::escape(text).as_bytes())
    }

    /// Writes one JSON document on one line and flushes it, for commands that stream.
    ///
    /// # Errors
    /// As [`Printer::data`].
    pub fn json_line(&self, value: &impl Serialize) -> Outcome {
        let mut text = json_text::compact(value)?;
        text.push('\n');
        self.write(text.as_bytes())?;
        self.flush()
    }

    /// Writes bytes to standard output exactly as they are: exports, stored outputs, generated scripts. On a terminal
    /// they are made harmless first.
    ///
    /// # Errors
    /// As [`Printer::data`].
    pub fn raw(&self, bytes: &[u8]) -> Outcome {
        if self.out.is_terminal {
            return self.write(super::sanitize::block_bytes(bytes).as_bytes());
        }
        self.write(bytes)
    }

    /// Writes the help that clap has laid out. It is text of ours with styles of ours, so it is not sanitized.
    ///
    /// # Errors
    /// As [`Printer::data`].
    pub fn help(&self, text: &StyledStr) -> Outcome {
        self.write(styled(text, self.out.palette).as_bytes())
    }

    /// Says the help to someone who did not ask for it.
    pub fn help_unasked(&self, text: &StyledStr) {
        self.say(styled(text, self.err.palette).trim_end());
    }

    /// Whether lines can be shown that the next words take the place of: on a terminal, for a person.
    pub fn redraws(&self) -> bool {
        self.redraws && !self.manner.quiet && !self.manner.json
    }

    /// How many columns and lines the terminal has now: it may have been made larger or smaller.
    pub fn size(&self) -> (usize, usize) {
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok().filter(|size| size.ws_col > 0);
        size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
    }

    /// Shows how things stand in some lines, which stay below whatever is said until they are taken away. Only on a terminal:
    /// elsewhere nobody could follow it.
    pub fn block(&self, lines: &[Text]) {
        if !self.redraws() {
            return;
        }
        let width = self.size().0.saturating_sub(1);
        let cut = |line: &Text| {
            let line = line.clone().cut(width);
            (line.render_line(self.err.palette), line.to_line().width())
        };
        let lines: Vec<(String, usize)> = lines.iter().map(cut).collect();
        if *self.block.borrow() == lines {
            return;
        }
        self.clear_status();
        self.draw(&lines);
        *self.block.borrow_mut() = lines;
    }

    fn draw(&self, lines: &[(String, usize)]) {
        let lines: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
        let mut stream = self.err.stream.borrow_mut();
        let _ = write!(stream, "{}", lines.join("\r\n"));
        let _ = stream.flush();
    }

    /// Takes these lines away.
    pub fn clear_status(&self) {
        let lines = std::mem::take(&mut *self.block.borrow_mut());
        if !lines.is_empty() {
            self.erase(&lines);
        }
    }

    /// A terminal that was made narrower since has folded them: they take more lines now.
    fn erase(&self, lines: &[(String, usize)]) {
        let rows = rows(lines, self.size().0);
        let up = rows.saturating_sub(1);
        let up = if up > 0 { format!("\x1b[{up}A") } else { String::new() };
        let mut stream = self.err.stream.borrow_mut();
        let _ = write!(stream, "\r{up}\x1b[J");
        let _ = stream.flush();
    }

    /// Calls the person at the terminal, if there is one. Silent with `--quiet` and with `--json`.
    pub fn call(&self, bell: Bell, title: &str, text: &str) {
        if self.redraws() {
            let mut stream = self.err.stream.borrow_mut();
            let _ = write!(stream, "{}", bell.sequence(title, text));
            let _ = stream.flush();
        }
    }

    /// Writes what was held back.
    ///
    /// # Errors
    /// As [`Printer::data`].
    pub fn flush(&self) -> Outcome {
        self.out.stream.borrow_mut().flush().map_err(broken)
    }

    /// Says something to the person at the terminal. Silent with `--quiet` and with `--json`.
    pub fn talk(&self, text: impl Into<Text>) {
        if !self.manner.quiet && !self.manner.json {
            self.say(&text.into().render(self.err.palette));
        }
    }

    /// Says a table to the person at the terminal, as [`Printer::talk`] does.
    pub fn talk_table(&self, table: &Table) {
        if !self.manner.quiet && !self.manner.json {
            self.say(table.render(self.err.palette, self.err.width).trim_end());
        }
    }

    /// Says something only if `-v` was given at least `level` times.
    pub fn detail(&self, level: u8, text: impl Into<Text>) {
        if self.manner.verbose >= level {
            self.say(&text.into().render(self.err.palette));
        }
    }

    /// Warns, also with `--quiet`: a warning is about something the person will miss later.
    pub fn warn(&self, message: impl Into<String>) {
        self.warn_with(message, &[]);
    }

    /// Warns and says what to do about it.
    pub fn warn_with(&self, message: impl Into<String>, hints: &[String]) {
        let message = message.into();
        let message = match self.manner.json {
            true => message,
            false => super::text::behind("warning:", &message, self.err.width),
        };
        self.say(&warning(self.manner.json, self.err.palette, message, hints));
        for hint in hints {
            self.hint(hint.as_str());
        }
    }

    /// Warns on standard error from whichever thread.
    pub fn warns_from_elsewhere(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let (json, palette, width) =
            (self.manner.json, self.err.palette, self.err.width.filter(|_| !self.manner.json));
        move |message| {
            let message = super::text::behind("warning:", message, width);
            let _ = writeln!(io::stderr(), "{}", warning(json, palette, message, &[]));
        }
    }

    /// Says what could be typed next. Silent with `--quiet` and with `--json`.
    pub fn hint(&self, text: impl Into<Text>) {
        self.talk(Text::new().plain("  ").painted(Meaning::Dim, "hint:").plain(" ").then(text));
    }

    /// Reports why the command failed.
    pub fn error(&self, error: &CommandError) {
        if error.is_silent() {
            return;
        }
        if self.manner.json {
            self.say(&error.json());
        } else {
            self.say(&error.human_within(self.err.palette, self.manner.verbose > 0, self.err.width));
        }
    }

    fn write(&self, bytes: &[u8]) -> Outcome {
        self.out.stream.borrow_mut().write_all(bytes).map_err(broken)
    }

    /// Standard error is the last resort: if it is gone there is nobody left to tell.
    fn say(&self, text: &str) {
        let block = self.block.borrow().clone();
        if !block.is_empty() {
            self.erase(&block);
        }
        let _ = self.out.stream.borrow_mut().flush();
        let _ = writeln!(self.err.stream.borrow_mut(), "{text}");
        if !block.is_empty() {
            self.draw(&block);
        }
    }
}

/// A warning as a line; for people, hints come after it.
fn warning(json: bool, palette: Palette, message: String, hints: &[String]) -> String {
    if json {
        let hint = if hints.is_empty() { None } else { Some(hints.join("\n")) };
        return json_text::line(&json!({ "warning": { "message": message, "hint": hint } }));
    }
    Text::new().painted(Meaning::Waiting, "warning:").plain(" ").plain(message).render(palette)
}

fn styled(text: &StyledStr, palette: Palette) -> String {
    if palette.colour() { text.ansi().to_string() } else { text.to_string() }
}

fn broken(error: io::Error) -> CommandError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        CommandError::broken_pipe()
    } else {
        CommandError::io("cannot write the output", error)
    }
}

/// How many lines of a terminal of this width these take.
fn rows(lines: &[(String, usize)], width: usize) -> usize {
    lines.iter().map(|(_, columns)| columns.div_ceil(width.max(1)).max(1)).sum()
}

fn terminal_width(stream: &impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
#[path = "printer_tests.rs"]
mod tests;
