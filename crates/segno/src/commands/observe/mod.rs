//! `segno observe`: the commands of a go-team observer, such as `*resume:1`.

mod panels;

use std::io::IsTerminal as _;

use clap::Args as ClapArgs;
use clap::FromArgMatches as _;
use segno_engine::Filter;
use segno_engine::core::SessionId;
use segno_engine::core::Status;
use segno_engine::core::Summary;
use segno_engine::core::suggest;
use serde_json::json;

use crate::cli;
use crate::cli::Cli;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::files;
use crate::recent;

/// Use the commands of a go-team observer
///
/// *sessions, *resume, *resume:ID (or its number), *session-info, *session-info:ID, *abandon:ID, *cleanup, *new, *new:TOPIC,
/// *checkpoints or *cp-list, *cp-show:N, *cp-diff:A, *cp-diff:A:B, *rollback:STEP or *rollback:cp-ID, *rollback-force:STEP,
/// *manual-restore, *cp-export, *cp-export:N, *cp-validate, *retry-cp, *skip-cp and *cp-rebuild:N. Each does what the segno
/// command of that kind does; -v says which one that is. Without a command, reads one after the other from the terminal.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:\n  segno observe '*sessions'\n  segno observe '*resume:1'")]
pub struct Args {
    /// The command, with its star
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
    /// Do not ask, for *rollback and *cleanup
    #[arg(long, short, requires = "command")]
    pub yes: bool,
}

/// Every command of the documents.
const COMMANDS: [&str; 18] = [
    "*sessions",
    "*resume",
    "*session-info",
    "*abandon",
    "*cleanup",
    "*new",
    "*checkpoints",
    "*cp-list",
    "*cp-show",
    "*cp-diff",
    "*rollback",
    "*rollback-force",
    "*manual-restore",
    "*cp-export",
    "*cp-validate",
    "*retry-cp",
    "*skip-cp",
    "*cp-rebuild",
];

/// What a command means here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Meant {
    /// The list of sessions, as the document shows it.
    Sessions,
    /// A checkpoint, or the newest one, to a bundle.
    Export(Option<String>),
    /// A command of segno.
    Command(Vec<String>),
}

/// Runs `segno observe`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    if let Some(command) = &args.command {
        return one(context, command, args.yes);
    }
    if !std::io::stdin().is_terminal() || context.printer.is_json() {
        return Err(CommandError::usage("there is no terminal to read commands from")
            .hint("segno observe '*sessions'"));
    }
    context.printer.talk("commands begin with a star, such as *sessions; an empty line ends");
    loop {
        let line = crate::ask::typed()?.unwrap_or_default();
        if line.is_empty() || line == "exit" || line == "quit" {
            return Ok(());
        }
        // What goes wrong with one command is no reason to leave.
        if let Err(error) = one(context, &line, false) {
            let error = context.fit(error);
            context.printer.warn_with(error.to_string(), error.hints());
        }
    }
}

/// Does what a command means. A session that is not there is told of in the words of the document.
fn one(context: &Context, command: &str, yes: bool) -> Outcome {
    let named = command.split_once(':').map(|(_, rest)| rest.trim()).filter(|rest| !rest.is_empty());
    obey(context, command, yes).map_err(|error| match named {
        Some(id) if error.code() == "session_not_found" => {
            let words = format!("Session not found: {id}");
            CommandError::new(ExitCode::SessionNotFound, "session_not_found", words)
                .hint("segno observe '*sessions'")
        }
        _ => error,
    })
}

fn obey(context: &Context, command: &str, yes: bool) -> Outcome {
    match meant(command)? {
        Meant::Sessions | Meant::Export(_) if yes => {
            Err(CommandError::usage(format!("{command} asks nothing, so it takes no --yes")))
        }
        Meant::Sessions => sessions(context),
        Meant::Export(checkpoint) => export(context, checkpoint.as_deref()),
        Meant::Command(mut words) => {
            if yes && !words.iter().any(|word| word == "--yes") {
                if !matches!(words.first().map(String::as_str), Some("rollback" | "cleanup")) {
                    return Err(CommandError::usage(format!("{command} asks nothing, so it takes no --yes")));
                }
                words.push("--yes".to_owned());
            }
            context.printer.detail(1, format!("segno {}", words.join(" ")));
            let words = std::iter::once("segno".to_owned()).chain(words);
            let parsed = cli::command().try_get_matches_from(words);
            let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
            let parsed = parsed.map_err(|why| {
                let text = why.to_string();
                let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
                CommandError::usage(first)
            })?;
            match parsed.command {
                cli::Command::Resume(args) => resume(context, args),
                // It has the nine steps, and is told of as the document does.
                cli::Command::New(args) => {
                    super::new::begin(context, &args, |_, state| show(context, panels::started(state)))
                }
                cli::Command::Show(args) => info(context, &args),
                command => super::run(context, &command),
            }
        }
    }
}

/// What a command of an observer means.
fn meant(command: &str) -> Outcome<Meant> {
    let command = command.trim();
    let (name, rest) = command.split_once(':').unwrap_or((command, ""));
    let rest = rest.trim();
    let argument = (!rest.is_empty()).then(|| rest.to_owned());
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let needs = |what: &str| {
        argument.clone().ok_or_else(|| {
            CommandError::usage(format!("{name} needs {what}")).hint(format!("segno observe '{name}:…'"))
        })
    };
    let refuse = || match &argument {
        None => Ok(()),
        Some(more) => Err(CommandError::usage(format!("{name} takes nothing behind it, not {more}"))),
    };
    let with = |first: &[&str], more: Option<String>| {
        let mut all = words(first);
        all.extend(more);
        Meant::Command(all)
    };
    Ok(match name {
        "*sessions" => refuse().map(|()| Meant::Sessions)?,
        "*resume" => with(&["resume"], argument),
        "*session-info" => with(&["show"], argument),
        "*abandon" => with(&["abandon"], Some(needs("a session")?)),
        "*cleanup" => refuse().map(|()| with(&["cleanup"], None))?,
        "*new" => with(&["new", "--parallel", "--workflow", "go-team"], argument),
        "*checkpoints" | "*cp-list" => refuse().map(|()| with(&["checkpoint", "list"], None))?,
        "*cp-show" => with(&["checkpoint", "show"], Some(needs("a checkpoint")?)),
        "*cp-diff" => {
            let both = needs("a checkpoint, or two")?;
            let mut all = words(&["checkpoint", "diff"]);
            all.extend(both.splitn(2, ':').map(ToOwned::to_owned));
            Meant::Command(all)
        }
        "*rollback" | "*rollback-force" => {
            let to = needs("a step or a checkpoint")?;
            let mut all = words(&["rollback"]);
            // The documents count steps; a checkpoint has its id.
            if to.bytes().all(|byte| byte.is_ascii_digit()) {
                all.push("step".to_owned());
            }
            all.push(to);
            if name == "*rollback-force" {
                all.push("--yes".to_owned());
            }
            Meant::Command(all)
        }
        "*manual-restore" => refuse().map(|()| with(&["checkpoint", "pending"], None))?,
        "*cp-export" => Meant::Export(argument),
        "*cp-validate" => with(&["checkpoint", "validate"], argument),
        "*cp-rebuild" => with(&["checkpoint", "validate"], Some(needs("a checkpoint")?)),
        "*retry-cp" => refuse().map(|()| with(&["checkpoint", "create"], None))?,
        "*skip-cp" => refuse().map(|()| with(&["note", "the observer skipped a checkpoint"], None))?,
        other => {
            let error = CommandError::usage(format!("no such command of an observer: {other}"));
            return Err(match suggest::nearest(other, COMMANDS) {
                Some(close) => error.hint(format!("did you mean {close}?")),
                None => error.hint(COMMANDS.join(" ")),
            });
        }
    })
}

/// Writes a checkpoint beside the store: the documents name no file, and the project gets none that nobody asked for.
fn export(context: &Context, checkpoint: Option<&str>) -> Outcome {
    let (ctx, state) = super::undo::session_of_checkpoint(context)?;
    let checkpoint = ctx.engine.find_checkpoint(state.session_id, checkpoint.unwrap_or("last"))?;
    let folder = context.paths.data.join("exports");
    files::private_directory(&folder)
        .map_err(|error| CommandError::io(format!("cannot make {}", folder.display()), error))?;
    let stem = format!("{}-cp-{:02}", state.session_id, checkpoint.ordinal);
    let names = std::iter::once(format!("{stem}.bundle")).chain((2..).map(|n| format!("{stem}-{n}.bundle")));
    let mut free = names.map(|name| folder.join(name)).filter(|path| path.symlink_metadata().is_err());
    let file = free.next().unwrap_or(folder);
    let command = super::checkpoint::Command::Export { name: checkpoint.ordinal.to_string(), file };
    super::checkpoint::run(context, &super::checkpoint::Args::of(command))
}

fn sessions_of(ctx: &CommandContext<'_>, open: bool) -> Outcome<Vec<Summary>> {
    let filter = Filter {
        project: Some(ctx.context.project.root.display().to_string()),
        statuses: Status::ALL.into_iter().filter(|status| status.is_open() == open).collect(),
        archived: Some(false),
        limit: Some(100),
        ..Filter::default()
    };
    Ok(ctx.engine.list(&filter)?)
}

fn sessions(context: &Context) -> Outcome {
    let ctx = CommandContext::open_to_list(context)?;
    let (open, ended) = (sessions_of(&ctx, true)?, sessions_of(&ctx, false)?);
    let ids: Vec<SessionId> = open.iter().chain(&ended).map(|summary| summary.session_id).collect();
    recent::remember(&context.paths.state, &ids);
    if context.printer.is_json() {
        return context.printer.json(&json!({ "sessions": open, "ended": ended }));
    }
    if ids.is_empty() {
        context.printer.talk("this project has no session");
        context.printer.hint("segno observe '*new'");
        return Ok(());
    }
    let endings: Vec<String> = ids.iter().map(|id| ctx.engine.ending(*id)).collect();
    show(context, panels::sessions(&open, &ended, &endings))
}

fn show(context: &Context, lines: Vec<String>) -> Outcome {
    lines.into_iter().try_for_each(|line| context.printer.data(line))
}

/// Goes on with a session as the document does: its options are shown, and what became of it.
fn resume(context: &Context, mut args: super::resume::Args) -> Outcome {
    if context.printer.is_json() {
        return super::run(context, &cli::Command::Resume(args));
    }
    let ctx = CommandContext::open(context)?;
    let id = super::resume::which(&ctx, &args)?;
    let (state, options) = ctx.engine.recovery_options(id)?;
    // What cannot be resumed is refused below, in words.
    if ctx.engine.refuse_resume(&state, false).is_ok() && ctx.engine.refuse_driven(id).is_ok() {
        show(context, panels::recovery(&state, &options))?;
        if std::io::stdin().is_terminal() {
            let answer = crate::ask::text()?;
            let chosen =
                answer.parse::<usize>().ok().and_then(|number| options.offered.get(number.checked_sub(1)?));
            let Some(chosen) = chosen else {
                context.printer.talk("no such choice: nothing was changed");
                return Ok(());
            };
            args.from = Some(chosen.recovery.into());
        }
    }
    drop(ctx);
    super::run(context, &cli::Command::Resume(args))?;
    let ctx = CommandContext::open_to_list(context)?;
    let state = ctx.engine.load(id)?.state;
    show(
        context,
        if state.status == Status::Completed { panels::completed(&state) } else { panels::resumed(&state) },
    )
}

/// Shows a session; one that is completed with its banner.
fn info(context: &Context, args: &super::show::Args) -> Outcome {
    if !context.printer.is_json() {
        let ctx = CommandContext::open_to_list(context)?;
        let state = ctx.load(ctx.session_to_read(args.session.id.as_ref())?)?;
        if state.status == Status::Completed {
            show(context, panels::completed(&state))?;
        }
    }
    super::show::run(context, args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_documents_means_something() {
        let cases: [(&str, &[&str]); 23] = [
            ("*resume", &["resume"]),
            ("*resume:1", &["resume", "1"]),
            ("*resume:def456", &["resume", "def456"]),
            ("*session-info", &["show"]),
            ("*session-info:session-abc123", &["show", "session-abc123"]),
            ("*abandon:abc123", &["abandon", "abc123"]),
            ("*cleanup", &["cleanup"]),
            ("*new", &["new", "--parallel", "--workflow", "go-team"]),
            ("*new: login form", &["new", "--parallel", "--workflow", "go-team", "login form"]),
            ("*checkpoints", &["checkpoint", "list"]),
            ("*cp-list", &["checkpoint", "list"]),
            ("*cp-show:3", &["checkpoint", "show", "3"]),
            ("*cp-diff:2", &["checkpoint", "diff", "2"]),
            ("*cp-diff:2:4", &["checkpoint", "diff", "2", "4"]),
            ("*rollback:3", &["rollback", "step", "3"]),
            ("*rollback:cp-03-architecture", &["rollback", "cp-03-architecture"]),
            ("*rollback-force:3", &["rollback", "step", "3", "--yes"]),
            ("*manual-restore", &["checkpoint", "pending"]),
            ("*cp-validate", &["checkpoint", "validate"]),
            ("*cp-validate:2", &["checkpoint", "validate", "2"]),
            ("*cp-rebuild:2", &["checkpoint", "validate", "2"]),
            ("*retry-cp", &["checkpoint", "create"]),
            ("*skip-cp", &["note", "the observer skipped a checkpoint"]),
        ];
        for (command, words) in cases {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(meant(command).unwrap(), Meant::Command(words.clone()), "{command}");
            let all = std::iter::once("segno".to_owned()).chain(words);
            assert!(cli::command().try_get_matches_from(all).is_ok(), "{command}");
        }
        assert_eq!(meant(" *sessions ").unwrap(), Meant::Sessions);
        assert_eq!(meant("*cp-export").unwrap(), Meant::Export(None));
        assert_eq!(meant("*cp-export:2").unwrap(), Meant::Export(Some("2".to_owned())));
    }

    #[test]
    fn what_is_none_says_so() {
        let said = |command: &str| meant(command).unwrap_err().to_string();
        assert_eq!(said("*sesions"), "no such command of an observer: *sesions");
        assert_eq!(said("sessions"), "no such command of an observer: sessions");
        assert_eq!(said("*abandon"), "*abandon needs a session");
        assert_eq!(said("*rollback:"), "*rollback needs a step or a checkpoint");
        assert_eq!(said("*sessions:3"), "*sessions takes nothing behind it, not 3");
    }
}
