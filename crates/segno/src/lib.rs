//! The command-line face of segno: configuration, trust, output, errors and the commands.
//!
//! This is a library so that its parts can be tested and documentation can be made from them; the program in
//! `main.rs` only calls [`run`].

pub mod allocator;
mod ask;
pub mod cli;
pub mod command_context;
pub mod commands;
pub mod config;
pub mod context;
mod engine_error;
pub mod error;
pub mod exit;
pub mod hook;
pub mod log_file;
mod mcp;
pub mod output;
mod perform;
pub mod recent;
mod serve;
mod setup;
pub mod signals;
mod top;

pub use segno_engine::run::GUARD;
pub use segno_files as files;

use std::ffi::OsString;

use clap::FromArgMatches as _;
use clap::builder::StyledStr;
use jiff::Timestamp;

use cli::Cli;
use cli::GlobalArgs;
use config::Paths;
use config::env::Environment;
use context::Context;
use error::CommandError;
use error::Outcome;
use exit::ExitCode;
use output::Printer;
use output::style::Choice;

/// What `segno serve` offers to programs, as an OpenAPI document.
pub fn interface() -> serde_json::Value {
    serve::openapi()
}

/// The word that makes this program the capture process of a run; the directory of the run follows.
pub const KEEP_OUTPUT: &str = "keep-output";

/// Keeps what an agent prints: see [`segno_engine::run::keep_output`]. The pipes and the file are our standard streams.
pub fn keep_output(directory: &std::path::Path) {
    // What is typed at the terminal, and its closing, is none of our business.
    let _ = rustix::process::setsid();
    segno_engine::run::keep_output(std::io::stdin(), std::io::stdout(), std::io::stderr(), directory);
}

/// Ends what a command started if whoever started it is killed: see [`segno_engine::run::guard_command`].
pub fn guard_command(id: &str) {
    // What is typed at the terminal, and its closing, is none of our business.
    let _ = rustix::process::setsid();
    segno_engine::run::guard_command(id, std::io::stdin());
}

/// Runs the program with these arguments, the first being its own name.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let environment = Environment::capture();
    let early = early(&arguments);
    if cli::asks_for_version(&arguments) {
        return print(&Printer::new(context::manner(&early, &environment), &environment), Ok(cli::version()));
    }
    if cli::asks_for_all(&arguments) {
        return help(&commands::help::Args { command: Vec::new(), all: true }, &early, &environment);
    }
    let parsed = match cli::parse_lean(&arguments) {
        Some(cli) => Ok(cli),
        None => {
            cli::command().try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches))
        }
    };
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return answer(&error, &early, &environment),
    };
    if let cli::Command::Help(args) = &cli.command {
        return help(args, &cli.global, &environment);
    }
    // It must not fail where there is no directory, or settings that cannot be read.
    if let cli::Command::Statusline(args) = &cli.command {
        return commands::statusline::run(&cli.global, &environment, args);
    }
    let manner = context::manner(&cli.global, &environment);
    match start(cli.global, environment.clone()) {
        Err(error) => {
            Printer::new(manner, &environment).error(&error);
            error.exit()
        }
        Ok(context) => {
            context.give_notices(&cli.command);
            let outcome = commands::refuse_session(&context, &cli.command)
                .and_then(|()| commands::run(&context, &cli.command))
                .and_then(|()| context.printer.flush());
            match outcome {
                Ok(()) => ExitCode::Ok,
                Err(error) => {
                    let error = context.fit(error);
                    context.printer.error(&error);
                    error.exit()
                }
            }
        }
    }
}

fn start(global: GlobalArgs, environment: Environment) -> Outcome<Context> {
    let directory = std::env::current_dir().map_err(|error| {
        CommandError::new(
            ExitCode::Environment,
            "no_directory",
            format!("there is no current directory: {error}"),
        )
        .hint("cd to a directory that exists")
    })?;
    let paths = Paths::find(&environment)?;
    log_file::start(&environment, &paths.state, global.verbose);
    Context::new(global, environment, paths, &directory, Timestamp::now())
}

/// Prints help, which needs nothing but the program itself.
fn help(args: &commands::help::Args, global: &GlobalArgs, environment: &Environment) -> ExitCode {
    print(&Printer::new(context::manner(global, environment), environment), commands::help::text(args))
}

/// Prints a text that was asked for, or says why there is none.
fn print(printer: &Printer, text: Outcome<StyledStr>) -> ExitCode {
    match text.and_then(|text| printer.help(&text)).and_then(|()| printer.flush()) {
        Ok(()) => ExitCode::Ok,
        Err(error) => {
            printer.error(&error);
            error.exit()
        }
    }
}

/// What clap says instead of a parsed command line: help and version are data, the rest is an error of ours.
fn answer(error: &clap::Error, early: &GlobalArgs, environment: &Environment) -> ExitCode {
    let printer = Printer::new(context::manner(early, environment), environment);
    if !error.use_stderr() {
        return print(&printer, Ok(error.render()));
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !early.json {
        printer.help_unasked(&error.render());
        return ExitCode::Usage;
    }
    let error = match loose_prompt(error).or_else(|| command_of_loop(error)) {
        Some(error) => error,
        None => usage(&error.render().to_string()),
    };
    printer.error(&error);
    error.exit()
}

/// What is to be done, typed behind `run` or `resume` without its flag. clap would advise `--`, which runs it as a command.
fn loose_prompt(error: &clap::Error) -> Option<CommandError> {
    use clap::error::ContextKind;
    use clap::error::ContextValue;
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let rendered = error.render().to_string();
    let run = rendered.lines().any(|line| line.trim().starts_with("Usage: segno run"));
    if error.kind() != clap::error::ErrorKind::UnknownArgument || typed.starts_with('-') || !run {
        return None;
    }
    let words = segno_engine::core::text::shorten(typed, 60).replace(['"', '\n'], " ");
    Some(CommandError::usage(format!("`{words}` is neither a flag nor behind one")).hint(format!(
        "segno run --prompt \"{words}\"   (or --file FILE, or a command: segno run -- COMMAND)"
    )))
}

/// A command behind `segno loop … --`, as `segno run` takes one: a loop has to know how it is prompted.
fn command_of_loop(error: &clap::Error) -> Option<CommandError> {
    let rendered = error.render().to_string();
    let looped = rendered.lines().any(|line| line.trim().starts_with("Usage: segno loop [OPTIONS]"));
    if !looped || !rendered.starts_with("error: the subcommand ") || !rendered.contains("[FILE]") {
        return None;
    }
    Some(
        CommandError::usage("a loop takes no command behind it")
            .hint("in config.toml:  [agents.NAME]  command = [\"./agent.sh\"]   then: segno loop --agent NAME …")
            .hint("segno loop --agent claude --prompt \"…\" --until 'cargo test'   takes one that segno knows"),
    )
}

/// clap's report in the form of all our errors. It repeats what was typed, so it must pass the sanitizer too.
fn usage(report: &str) -> CommandError {
    let mut paragraphs = report.trim().split("\n\n");
    let message = paragraphs.next().unwrap_or_default().trim_start_matches("error: ");
    let message = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let mut error = CommandError::usage(message);
    for line in paragraphs.flat_map(str::lines).map(str::trim) {
        if let Some(tip) = line.strip_prefix("tip: ") {
            error = error.hint(tip);
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            error = error.hint(format!("usage: {usage}"));
        }
    }
    if error.hints().is_empty() { error.hint("segno --help   (or --help after a command)") } else { error }
}

/// The few flags that must be known even if the rest cannot be parsed.
fn early(arguments: &[OsString]) -> GlobalArgs {
    let mut early = GlobalArgs::default();
    let words = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default());
    let mut words = words.take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let color = match word {
            "--json" => {
                early.json = true;
                continue;
            }
            "--color" => words.next(),
            _ => word.strip_prefix("--color="),
        };
        early.color =
            color.and_then(|name| <Choice as clap::ValueEnum>::from_str(name, false).ok()).or(early.color);
    }
    early
}
