//! The program's own commands as values, for faces that are no command line: what a command may do, what it refuses and how it
//! answers is said once, there.

use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde_json::Value;
use serde_json::json;

use crate::cli;
use crate::cli::GlobalArgs;
use crate::commands;
use crate::config::Paths;
use crate::config::env::Environment;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Printer;
use crate::output::printer::Manner;

/// What a command line has around it; may go to another thread.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// Flags that every command takes.
    pub(crate) global: GlobalArgs,
    /// The environment as it was at the start.
    pub(crate) environment: Environment,
    /// The user's directories.
    pub(crate) paths: Paths,
}

impl From<&Context> for Surroundings {
    fn from(context: &Context) -> Self {
        Self {
            global: context.global.clone(),
            environment: context.environment.clone(),
            paths: context.paths.clone(),
        }
    }
}

impl Surroundings {
    /// A context of their own for one command, whose words go nowhere.
    pub(crate) fn context(&self) -> Outcome<Context> {
        self.context_with(Printer::to(
            Box::new(std::io::sink()),
            Box::new(std::io::sink()),
            Manner { json: true, ..Manner::default() },
        ))
    }

    fn context_with(&self, printer: Printer) -> Outcome<Context> {
        let global = GlobalArgs { json: true, ..self.global.clone() };
        let directory =
            std::env::current_dir().map_err(|why| CommandError::io("there is no current directory", why))?;
        let now = jiff::Timestamp::now();
        let mut context =
            Context::new(global, self.environment.clone(), self.paths.clone(), &directory, now)?;
        context.printer = printer;
        Ok(context)
    }

    /// Runs one of the program's own commands and answers with its document.
    pub(crate) fn perform(&self, command: &cli::Command) -> Outcome<Value> {
        let (out, err) = (Buffer::default(), Buffer::default());
        let manner = Manner { json: true, ..Manner::default() };
        let context = self.context_with(Printer::to(Box::new(out.clone()), Box::new(err.clone()), manner))?;
        let outcome = commands::run(&context, command).and_then(|()| context.printer.flush());
        let said = out.text();
        match outcome {
            Ok(()) => {}
            // The answer is the document; that there is no room is no failure of the question.
            Err(error) if error.exit() == ExitCode::BudgetExhausted && !said.is_empty() => {}
            Err(error) => return Err(context.fit(error)),
        }
        Ok(answer(&said, &err.text()))
    }
}

/// The document that a command printed, with its warnings.
fn answer(said: &str, warned: &str) -> Value {
    let mut value = serde_json::from_str(said).unwrap_or_else(|_| {
        let lines: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if lines.is_empty() { json!({ "text": said }) } else { Value::Array(lines) }
    });
    let warning = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        Some(line.get("warning")?.get("message")?.clone())
    };
    let warnings: Vec<Value> = warned.lines().filter_map(warning).collect();
    if !value.is_object() {
        value = json!({ "items": value });
    }
    if let (Some(object), false) = (value.as_object_mut(), warnings.is_empty()) {
        object.insert("warnings".to_owned(), Value::Array(warnings));
    }
    value
}

/// Where a command's words go that nobody reads at a terminal.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
