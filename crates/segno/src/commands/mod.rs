//! The commands: one file each, with its arguments and its `run`. Tiny related ones share a file.

use crate::cli::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

pub mod agent;
pub mod answer;
pub mod args;
pub mod arrange;
pub mod artifact;
pub mod attach;
pub mod breaker;
pub mod budget;
pub mod checkpoint;
pub mod cleanup;
pub mod completions;
pub mod config;
mod conversation;
pub mod cost;
pub mod decide;
pub mod demo;
pub mod detect;
pub mod diff;
pub mod doctor;
mod doing;
pub mod du;
pub mod export;
pub mod forget;
pub mod gate;
pub mod help;
mod history;
pub mod init;
pub mod insights;
pub mod layout;
pub mod lifecycle;
mod lists;
pub mod log;
pub mod looping;
pub mod ls;
pub mod man;
pub mod mark;
pub mod mcp;
pub mod memory;
pub mod metric;
pub mod new;
pub mod observe;
pub mod output;
pub mod own;
pub mod parse;
pub mod phase;
pub mod rescue;
pub mod resume;
mod resume_prompt;
pub mod rm;
pub mod run;
pub mod schedule;
pub mod search;
pub mod serve;
pub mod show;
pub mod state;
pub mod statusline;
mod statusline_format;
pub mod tail;
pub mod task;
pub mod tokens;
pub mod top;
pub mod trust;
pub mod undo;
pub mod watch;
pub mod why;
pub mod workflow;
pub mod workflow_state;

/// Says that loops are due, if some are.
pub(crate) fn tell_due(ctx: &crate::command_context::CommandContext<'_>) {
    looping::due::tell(ctx);
}

/// Runs a command.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, command: &Command) -> Outcome {
    if context.global.key.is_some() && !records(command) {
        return Err(CommandError::usage("--key is for commands that record something in a session")
            .hint("leave --key out: it cannot make this command happen only once"));
    }
    if let Some(what) = guarded(command) {
        context.refuse_below_run(what)?;
    }
    match command {
        Command::Demo(args) => demo::run(context, args),
        Command::Undo(args) => undo::undo(context, args),
        Command::Redo(args) => undo::redo(context, args),
        Command::Diff(args) => diff::diff(context, args),
        Command::Rollback(args) => undo::rollback(context, args),
        Command::Run(args) => run::run(context, args),
        Command::Mcp(args) => mcp::run(context, args),
        Command::Serve(args) => serve::run(context, args),
        Command::Loop(args) => looping::run(context, args),
        Command::Workflow(args) => workflow::run(context, args),
        Command::Schedule(args) => schedule::run(context, args),
        Command::Watch(args) => watch::run(context, args),
        Command::Gate(args) => gate::run(context, args),
        Command::Breaker(args) => breaker::run(context, args),
        Command::Answer(args) => answer::run(context, args),
        Command::Tail(args) => tail::run(context, args),
        Command::Attach(args) => attach::run(context, args),
        Command::Stop(args) => attach::stop(context, args),
        Command::Kill(args) => attach::kill(context, args),
        Command::New(args) => new::run(context, args),
        Command::Resume(args) => resume::run(context, args),
        Command::Detect(args) => detect::run(context, args),
        Command::Observe(args) => observe::run(context, args),
        Command::Pause(args) => lifecycle::pause(context, args),
        Command::Complete(args) => lifecycle::complete(context, args),
        Command::Abort(args) => lifecycle::abort(context, args),
        Command::Abandon(args) => lifecycle::abandon(context, args),
        Command::Fail(args) => lifecycle::fail(context, args),
        Command::Phase(args) => phase::run(context, args),
        Command::Attempt(args) => phase::attempt(context, args),
        Command::Iteration(args) => phase::iteration(context, args),
        Command::Progress(args) => phase::progress(context, args),
        Command::Budget(args) => budget::run(context, args),
        Command::Checkpoint(args) => checkpoint::run(context, args),
        Command::Ls(args) => ls::run(context, args),
        Command::Tag(args) => arrange::tag(context, args),
        Command::Rename(args) => arrange::rename(context, args),
        Command::Pin(args) => arrange::pin(context, args),
        Command::Unpin(args) => arrange::unpin(context, args),
        Command::Archive(args) => arrange::archive(context, args),
        Command::Unarchive(args) => arrange::unarchive(context, args),
        Command::Search(args) => search::run(context, args),
        Command::Rescue(args) => rescue::run(context, args),
        Command::Show(args) => show::run(context, args),
        Command::Log(args) => log::run(context, args),
        Command::History(args) => log::history(context, args),
        Command::State(args) => state::run(context, args),
        Command::Statusline(args) => {
            // It says what it can and never fails.
            statusline::run(&context.global, &context.environment, args);
            Ok(())
        }
        Command::Top(args) => top::run(context, args),
        Command::Tokens(args) => tokens::run(context, args),
        Command::Artifact(args) => artifact::run(context, args),
        Command::File(args) => artifact::file(context, args),
        Command::At(args) => artifact::at(context, args),
        Command::Output(args) => output::run(context, args),
        Command::Metric(args) => metric::run(context, args),
        Command::Task(args) => task::run(context, args),
        Command::Agent(args) => agent::run(context, args),
        Command::Decide(args) => decide::run(context, args),
        Command::Milestone(args) => mark::milestone(context, args),
        Command::Breakpoint(args) => mark::breakpoint(context, args),
        Command::Error(args) => mark::error(context, args),
        Command::Note(args) => mark::note(context, args),
        Command::Memory(args) => memory::run(context, args),
        Command::Intent(args) => phase::intent(context, args),
        Command::WorkflowState(args) => workflow_state::run(context, args),
        Command::Export(args) => export::run(context, args),
        Command::Import(args) => export::import(context, args),
        Command::Layout(args) => layout::run(context, args),
        Command::Backup(args) => doctor::backup(context, args),
        Command::Cleanup(args) => cleanup::run(context, args),
        Command::Du(args) => du::run(context, args),
        Command::Cost(args) => cost::run(context, args),
        Command::Insights(args) => insights::run(context, args),
        Command::Why(args) => why::run(context, args),
        Command::Blame(args) => why::blame(context, args),
        Command::Rm(args) => rm::run(context, args),
        Command::Forget(args) => forget::run(context, args),
        Command::Parse(args) => parse::run(context, args),
        Command::Doctor(args) => doctor::run(context, args),
        Command::Init(args) => init::init(context, args),
        Command::Uninit(args) => init::uninit(context, args),
        Command::Config(args) => config::run(context, args),
        Command::Trust(args) => trust::run(context, args),
        Command::SelfCommand(args) => own::run(context, args),
        Command::Completions(args) => completions::run(context, args),
        Command::Man(args) => man::run(context, args),
        Command::Help(args) => context.printer.help(&help::text(args)?),
    }
}

/// What a command would lift or take away that its user set: that is not for an agent to do. Budgets are looked at where
/// it is known whether they stop anything.
fn guarded(command: &Command) -> Option<&'static str> {
    Some(match command {
        Command::Config(args) if args.changes() => "change the settings",
        Command::Init(args) if !args.how.dry_run => "change the settings of agents",
        Command::Uninit(args) if !args.how.dry_run => "change the settings of agents",
        Command::Rm(_) => "remove sessions",
        Command::Serve(_) => "serve the page, on which a person decides",
        Command::Forget(args) if !args.dry_run => "take things out of the record",
        Command::Cleanup(_) => "remove sessions",
        Command::Rescue(args) if !args.dry_run => "put transcripts back",
        Command::Unpin(_) => "unpin sessions",
        Command::SelfCommand(args) if args.changes() => "replace or remove this program",
        Command::Trust(args) if args.accepts() => "trust a project for you",
        Command::Checkpoint(args) if args.removes() => "remove snapshots",
        Command::Resume(args) if args.reset_breaker => "close a breaker",
        Command::Breakpoint(args) if args.goes_on() => "let a breakpoint go on",
        _ => return None,
    })
}

/// Refuses `--session` where it would be ignored: whoever typed it would take what they see for that session's.
///
/// # Errors
/// If the command is about no session, or names its own.
pub fn refuse_session(context: &Context, command: &Command) -> Outcome {
    let Some(named) = context.global.session.as_ref().filter(|_| is_about_no_session(command)) else {
        return Ok(());
    };
    Err(CommandError::usage("--session is for commands that are about one session")
        .hint(format!("segno show {}", named.as_str())))
}

fn is_about_no_session(command: &Command) -> bool {
    matches!(
        command,
        Command::Ls(_)
            | Command::Search(_)
            | Command::Workflow(_)
            | Command::Schedule(_)
            | Command::Demo(_)
            | Command::New(_)
            | Command::Parse(_)
            | Command::Import(_)
            | Command::Backup(_)
            | Command::Cleanup(_)
            | Command::Du(_)
            | Command::Doctor(_)
            | Command::Init(_)
            | Command::Uninit(_)
            | Command::Config(_)
            | Command::Trust(_)
            | Command::Completions(_)
            | Command::Man(_)
    )
}

/// Whether a command records events in a session that is there, which is what a key can name. Taking a key and not
/// heeding it would let somebody who repeats the command believe that it happened once.
fn records(command: &Command) -> bool {
    match command {
        Command::Resume(_)
        | Command::Tag(_)
        | Command::Rename(_)
        | Command::Pin(_)
        | Command::Unpin(_)
        | Command::Archive(_)
        | Command::Unarchive(_)
        | Command::Pause(_)
        | Command::Complete(_)
        | Command::Abort(_)
        | Command::Abandon(_)
        | Command::Fail(_)
        | Command::Phase(_)
        | Command::Attempt(_)
        | Command::Iteration(_)
        | Command::Progress(_)
        | Command::Budget(_)
        | Command::Checkpoint(_)
        | Command::Tokens(_)
        | Command::Artifact(_)
        | Command::File(_)
        | Command::At(_)
        | Command::Output(_)
        | Command::Metric(_)
        | Command::Task(_)
        | Command::Agent(_)
        | Command::Decide(_)
        | Command::Milestone(_)
        | Command::Breakpoint(_)
        | Command::Error(_)
        | Command::Note(_)
        | Command::Memory(_)
        | Command::Intent(_)
        | Command::WorkflowState(_) => true,
        Command::New(_)
        | Command::Demo(_)
        | Command::Undo(_)
        | Command::Redo(_)
        | Command::Diff(_)
        | Command::Rollback(_)
        | Command::Run(_)
        | Command::Mcp(_)
        | Command::Serve(_)
        | Command::Loop(_)
        | Command::Workflow(_)
        | Command::Schedule(_)
        | Command::Watch(_)
        | Command::Gate(_)
        | Command::Breaker(_)
        | Command::Answer(_)
        | Command::Tail(_)
        | Command::Attach(_)
        | Command::Stop(_)
        | Command::Kill(_)
        | Command::Ls(_)
        | Command::Search(_)
        | Command::Rescue(_)
        | Command::Show(_)
        | Command::Detect(_)
        | Command::Observe(_)
        | Command::Log(_)
        | Command::Parse(_)
        | Command::History(_)
        | Command::State(_)
        | Command::Statusline(_)
        | Command::Top(_)
        | Command::Export(_)
        | Command::Import(_)
        | Command::Layout(_)
        | Command::Backup(_)
        | Command::Cleanup(_)
        | Command::Du(_)
        | Command::Cost(_)
        | Command::Insights(_)
        | Command::Why(_)
        | Command::Blame(_)
        | Command::Rm(_)
        | Command::Forget(_)
        | Command::Doctor(_)
        | Command::Init(_)
        | Command::Uninit(_)
        | Command::Config(_)
        | Command::Trust(_)
        | Command::SelfCommand(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Help(_) => false,
    }
}
