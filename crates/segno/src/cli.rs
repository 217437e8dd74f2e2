//! The command line: global flags, and the tree of commands grouped under headings.
//!
//! Doc comments in this file and in `commands/` are the help that users read.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ArgAction;
use clap::Args;
use clap::CommandFactory as _;
use clap::FromArgMatches as _;
use clap::Parser;
use clap::Subcommand;
use clap::builder::StyledStr;

use crate::commands;
use crate::commands::args::SessionRef;
use crate::output::style::Choice;

/// Durable sessions for coding agents: whatever dies, the work can continue
#[derive(Clone, Debug, Parser)]
#[command(
    name = "segno",
    version,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Flags that every command takes
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Where sessions are kept: sqlite:PATH
    #[arg(long, global = true, value_name = "URL", display_order = 900)]
    pub store: Option<String>,
    /// The session the command is about
    #[arg(long, global = true, value_name = "ID", display_order = 901)]
    pub session: Option<SessionRef>,
    /// The project directory, instead of searching upward for one
    #[arg(long, global = true, value_name = "DIR", display_order = 902)]
    pub project: Option<PathBuf>,
    /// A name for this change: repeating it with the same key changes nothing
    // Its id is its own: a global argument would take the value of any other argument with the same id, and
    // commands do have a `key`.
    #[arg(id = "event_key", long = "key", global = true, value_name = "KEY", display_order = 907)]
    pub key: Option<String>,
    /// Print JSON: one document, or one per line for commands that stream
    #[arg(long, global = true, display_order = 903)]
    pub json: bool,
    /// When to use colour: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        hide_possible_values = true,
        display_order = 904
    )]
    pub color: Option<Choice>,
    /// Print only data, warnings and errors
    #[arg(long, short, global = true, display_order = 905)]
    pub quiet: bool,
    /// Print more; may be repeated
    #[arg(long, short, global = true, action = ArgAction::Count, display_order = 906)]
    pub verbose: u8,
}

/// What can be done.
#[derive(Clone, Debug, Subcommand)]
#[expect(missing_docs, reason = "the doc comment of each argument struct is the help of its command")]
pub enum Command {
    Run(Box<commands::run::Args>),
    Loop(commands::looping::Args),
    Workflow(commands::workflow::Args),
    Schedule(commands::schedule::Args),
    Watch(commands::watch::Args),
    Gate(commands::gate::Args),
    Breaker(commands::breaker::Args),
    Answer(commands::answer::Args),
    Demo(commands::demo::Args),
    Attach(commands::attach::Args),
    Stop(commands::attach::StopArgs),
    Kill(commands::attach::KillArgs),
    New(commands::new::Args),
    Resume(commands::resume::Args),
    Detect(commands::detect::Args),
    Observe(commands::observe::Args),
    Pause(commands::lifecycle::PauseArgs),
    Complete(commands::lifecycle::CompleteArgs),
    Abort(commands::lifecycle::AbortArgs),
    Abandon(commands::lifecycle::AbandonArgs),
    Fail(commands::lifecycle::FailArgs),
    Phase(commands::phase::Args),
    Attempt(commands::phase::AttemptArgs),
    Iteration(commands::phase::IterationArgs),
    Progress(commands::phase::ProgressArgs),
    Budget(commands::budget::Args),
    Checkpoint(commands::checkpoint::Args),
    Undo(commands::undo::UndoArgs),
    Redo(commands::undo::RedoArgs),
    Diff(commands::diff::DiffArgs),
    Rollback(commands::undo::RollbackArgs),

    Top(commands::top::Args),
    Ls(commands::ls::Args),
    Tag(commands::arrange::TagArgs),
    Rename(commands::arrange::RenameArgs),
    Pin(commands::arrange::PinArgs),
    Unpin(commands::arrange::UnpinArgs),
    Archive(commands::arrange::ArchiveArgs),
    Unarchive(commands::arrange::UnarchiveArgs),
    Show(commands::show::Args),
    Log(commands::log::Args),
    Search(commands::search::Args),
    Rescue(commands::rescue::Args),
    Tail(commands::tail::Args),
    Parse(commands::parse::Args),
    History(commands::log::HistoryArgs),
    State(commands::state::Args),
    Statusline(commands::statusline::Args),
    Cost(commands::cost::Args),
    Insights(commands::insights::Args),
    Serve(commands::serve::Args),
    Why(commands::why::Args),
    Blame(commands::why::BlameArgs),

    Tokens(commands::tokens::Args),
    Artifact(commands::artifact::Args),
    File(commands::artifact::FileArgs),
    At(commands::artifact::AtArgs),
    Output(commands::output::Args),
    Metric(commands::metric::Args),
    Task(commands::task::Args),
    Agent(commands::agent::Args),
    Decide(commands::decide::Args),
    Milestone(commands::mark::MilestoneArgs),
    Breakpoint(commands::mark::BreakpointArgs),
    Error(commands::mark::ErrorArgs),
    Note(commands::mark::NoteArgs),
    Memory(commands::memory::Args),
    Intent(commands::phase::IntentArgs),
    WorkflowState(commands::workflow_state::Args),

    Export(commands::export::Args),
    Import(commands::export::ImportArgs),
    Layout(commands::layout::Args),
    Backup(commands::doctor::BackupArgs),
    Cleanup(commands::cleanup::Args),
    Du(commands::du::Args),
    Rm(commands::rm::Args),
    Forget(commands::forget::Args),
    Doctor(commands::doctor::Args),

    Init(commands::init::InitArgs),
    Uninit(commands::init::UninitArgs),
    Config(commands::config::Args),
    Trust(commands::trust::Args),
    Mcp(commands::mcp::Args),
    #[command(name = "self")]
    SelfCommand(commands::own::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
    Help(commands::help::Args),
}

/// What people need, for the first page of the help: everything else is one step away.
pub const COMMON: &[(&str, &[&str])] = &[
    ("Run an agent", &["run", "loop", "resume", "tail", "stop"]),
    ("Look", &["top", "serve", "ls", "show", "log", "search"]),
    ("Go back", &["undo", "diff", "checkpoint"]),
    ("Keep track by hand", &["new"]),
    ("Set up", &["init", "doctor"]),
];

/// The headings of the whole list of commands, each with its commands. clap knows one heading for all subcommands, so the list is
/// laid out here; a test keeps it complete.
pub const HEADINGS: &[(&str, &[&str])] = &[
    (
        "Run",
        &[
            "run", "loop", "schedule", "watch", "workflow", "gate", "breaker", "answer", "demo", "attach",
            "stop", "kill",
        ],
    ),
    (
        "Work",
        &[
            "new",
            "resume",
            "detect",
            "observe",
            "pause",
            "complete",
            "abort",
            "abandon",
            "fail",
            "phase",
            "attempt",
            "iteration",
            "progress",
            "budget",
        ],
    ),
    ("Go back", &["checkpoint", "undo", "redo", "diff", "rollback"]),
    (
        "Look",
        &[
            "top",
            "serve",
            "ls",
            "show",
            "log",
            "search",
            "tail",
            "history",
            "state",
            "statusline",
            "cost",
            "insights",
            "why",
            "blame",
            "parse",
        ],
    ),
    (
        "Record",
        &[
            "tokens",
            "artifact",
            "file",
            "at",
            "output",
            "metric",
            "task",
            "agent",
            "decide",
            "milestone",
            "breakpoint",
            "error",
            "note",
            "memory",
            "intent",
            "workflow-state",
        ],
    ),
    ("Order", &["tag", "rename", "pin", "unpin", "archive", "unarchive"]),
    ("Keep", &["export", "import", "rescue", "layout", "backup", "cleanup", "du", "rm", "forget", "doctor"]),
    ("Set up", &["init", "uninit", "config", "trust", "mcp", "self", "completions", "man", "help"]),
];

/// The whole tree. Its help shows what people need and says where the rest is.
pub fn command() -> clap::Command {
    with_help(COMMON, "`segno help --all` lists every command, `segno help COMMAND` explains one.")
}

/// The whole tree, whose help lists every command.
pub fn command_listing_all() -> clap::Command {
    with_help(HEADINGS, "`segno help COMMAND` says more about a command.")
}

fn with_help(headings: &[(&str, &[&str])], last: &str) -> clap::Command {
    let command = Cli::command();
    let template = template(&command, headings, last);
    command.help_template(template)
}

/// clap knows one heading for all subcommands, so the list is laid out here.
fn template(command: &clap::Command, headings: &[(&str, &[&str])], last: &str) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    // Writing to a String cannot fail.
    for (heading, names) in headings {
        let _ = writeln!(text, "\n{header}{heading}:{header:#}");
        for name in *names {
            let about = command
                .find_subcommand(name)
                .and_then(|below| below.get_about())
                .map(ToString::to_string)
                .unwrap_or_default();
            let padding = " ".repeat(16_usize.saturating_sub(name.len()));
            let _ = writeln!(text, "  {literal}{name}{literal:#}{padding}{about}");
        }
    }
    let _ = writeln!(text, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    let _ = write!(text, "\n{last}\n");
    text
}

/// What `segno --version` prints.
pub fn version() -> StyledStr {
    concat!("segno ", env!("CARGO_PKG_VERSION"), "\n").into()
}

/// Whether the command line asks for the version and nothing else: other programs do that again and again, and it needs no tree.
pub fn asks_for_version(arguments: &[OsString]) -> bool {
    matches!(arguments, [_, word] if word == "--version" || word == "-V")
}

/// Whether the command line asks for the list of all commands with flags: `segno --help --all`.
pub fn asks_for_all(arguments: &[OsString]) -> bool {
    let has = |names: &[&str]| arguments.iter().any(|word| names.iter().any(|name| word == name));
    let flags = ["--help", "-h", "--all", "--json", "--color=always", "--color=never", "-q", "--quiet"];
    let only_flags = arguments.iter().skip(1).all(|word| flags.iter().any(|flag| word == flag));
    has(&["--help", "-h"]) && has(&["--all"]) && only_flags
}

/// Parses the commands that scripts call again and again without building the whole tree, which costs more than the
/// rest of such a command. `None` says nothing: whoever gets it asks the whole tree, which also makes the errors.
pub fn parse_lean(arguments: &[OsString]) -> Option<Cli> {
    macro_rules! lean {
        ($($name:literal => $variant:ident($args:ty),)*) => {
            match subcommand_of(arguments)? {
                $($name => {
                    let below = <$args as Args>::augment_args(clap::Command::new($name));
                    let root = GlobalArgs::augment_args(clap::Command::new("segno")).subcommand(below);
                    let matches = root.try_get_matches_from(arguments).ok()?;
                    let (_, below) = matches.subcommand()?;
                    Some(Cli {
                        global: GlobalArgs::from_arg_matches(&matches).ok()?,
                        command: Command::$variant(<$args>::from_arg_matches(below).ok()?),
                    })
                })*
                _ => None,
            }
        };
    }
    lean! {
        "tokens" => Tokens(commands::tokens::Args),
        "note" => Note(commands::mark::NoteArgs),
        "error" => Error(commands::mark::ErrorArgs),
        "file" => File(commands::artifact::FileArgs),
        "artifact" => Artifact(commands::artifact::Args),
        "metric" => Metric(commands::metric::Args),
        "task" => Task(commands::task::Args),
        "phase" => Phase(commands::phase::Args),
        "progress" => Progress(commands::phase::ProgressArgs),
        "iteration" => Iteration(commands::phase::IterationArgs),
        "state" => State(commands::state::Args),
        "statusline" => Statusline(commands::statusline::Args),
        "ls" => Ls(commands::ls::Args),
    }
}

/// The first word that is neither a global flag nor its value.
fn subcommand_of(arguments: &[OsString]) -> Option<&str> {
    let mut words = arguments.iter().skip(1).map(|word| word.to_str());
    loop {
        match words.next()?? {
            "--json" | "--quiet" | "-q" | "--verbose" | "-v" => {}
            "--store" | "--session" | "--project" | "--color" | "--key" => {
                words.next()??;
            }
            word if word.starts_with('-') => return None,
            word => return Some(word),
        }
    }
}

/// The help of the whole tree as Markdown, for the documentation.
pub fn markdown() -> String {
    let mut command = command_listing_all().term_width(100).color(clap::ColorChoice::Never);
    command.build();
    let mut text = String::from("# The command line\n");
    section(&mut command, "segno", 2, &mut text);
    text
}

fn section(command: &mut clap::Command, name: &str, level: usize, text: &mut String) {
    let help = command.render_long_help().to_string();
    // Writing to a String cannot fail.
    let _ = write!(text, "\n{} {name}\n\n```text\n{}\n```\n", "#".repeat(level), help.trim_end());
    for below in command.get_subcommands_mut() {
        // Said once, at the top.
        *below = std::mem::take(below).mut_args(|arg| {
            let global = arg.is_global_set();
            if global { arg.hide(true) } else { arg }
        });
        let name = format!("{name} {}", below.get_name());
        section(below, &name, (level + 1).min(4), text);
    }
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
