//! `segno forget`: takes a secret, or a session's texts, out of everything that segno keeps.

use std::io::IsTerminal as _;
use std::io::Read as _;

use clap::Args as ClapArgs;
use segno_engine::forget::Findings;
use segno_engine::forget::Remedy;
use segno_engine::forget::Wish;
use segno_engine::redact::forget::Forget;
use segno_engine::redact::forget::SHORTEST_SECRET;
use segno_engine::redact::forget::Secret;
use serde_json::json;

use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::units;

/// Nobody has a longer secret.
const LONGEST: u64 = 1 << 20;

/// Remove a leaked secret from everything recorded
///
/// Asks for the secret without showing it, or reads it from standard input; it is never an argument, which would end up
/// in the history of your shell. Takes it out of the journal, the lists, long texts, views, captures, logs, the spool,
/// snapshots, kept transcripts and copies of the store, and leaves an event that says so. Lists what it cannot reach.
///
/// With --session ID it takes every text out of that session instead, and drops its snapshots. Shows first what it
/// found, and asks; without a terminal, --yes is needed. If it is interrupted, run the same command again.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno forget\n  segno forget --yes < secret.txt\n  segno forget --session 804211"
)]
pub struct Args {
    /// Only say where it is
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// Runs `segno forget`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let printer = &context.printer;
    // The session must be named here: a variable of the surroundings is not a wish.
    let named = context.global.session.as_ref();
    let what = if named.is_some() { Forget::Texts } else { Forget::Secret(ask(context)?) };
    let ctx = CommandContext::open(context)?;
    let session = named.map(|named| ctx.named(named)).transpose()?;
    let wish =
        Wish { what, session, locations: super::du::locations(context)?, state: context.paths.state.clone() };
    let found = ctx.engine.look_to_forget(&wish)?;
    if !printer.is_json() {
        show(context, &found)?;
    }
    if found.is_empty() || args.dry_run {
        if !args.dry_run {
            ctx.engine.forget_remains(&wish)?;
        }
        if printer.is_json() {
            printer.json(&json!({ "dry_run": args.dry_run, "found": found, "left": [] }))?;
        } else if found.is_empty() {
            printer.talk("nothing that segno keeps contains it");
        }
        return Ok(());
    }
    let question = match wish.what {
        Forget::Secret(_) => "remove it from all of these? This cannot be undone.",
        Forget::Texts => "remove every text of this session? This cannot be undone.",
    };
    super::rm::confirm(context, args.yes, "forgotten", question)?;
    let left = ctx.engine.forget_found(&wish, &found)?;
    let done = left.is_empty();
    if printer.is_json() {
        printer.json(
            &json!({ "dry_run": false, "found": found, "left": if done { None } else { Some(&left) } }),
        )?;
    } else if done {
        printer.talk("forgotten");
        printer.hint("segno doctor --deep   and change the secret: others may have seen it");
    }
    ctx.finish();
    if done {
        return Ok(());
    }
    let error = CommandError::failure("not_forgotten", "some of it is still there");
    Err(error.hint("run the same command again"))
}

/// The secret, typed unseen at a terminal or read from a pipe.
fn ask(context: &Context) -> Outcome<Secret> {
    let io = |why| CommandError::io("cannot read the secret", why);
    let stdin = std::io::stdin();
    let mut text = String::new();
    if stdin.is_terminal() {
        context.printer.talk("the secret to forget (not shown):");
        let _unseen = Unseen::begin().map_err(io)?;
        stdin.read_line(&mut text).map_err(io)?;
    } else {
        stdin.take(LONGEST).read_to_string(&mut text).map_err(io)?;
    }
    Secret::new(&text).ok_or_else(|| {
        let why = match text.trim().is_empty() {
            true => "no secret was given".to_owned(),
            false => {
                format!(
                    "a secret of less than {SHORTEST_SECRET} characters cannot be told apart from other text"
                )
            }
        };
        let error = CommandError::new(ExitCode::Usage, "usage", why);
        error.hint("segno forget < FILE   segno forget --session ID")
    })
}

/// While it lives, the terminal does not show what is typed.
struct Unseen(rustix::termios::Termios);

impl Unseen {
    fn begin() -> std::io::Result<Self> {
        let before = rustix::termios::tcgetattr(std::io::stdin())?;
        let mut unseen = before.clone();
        unseen.local_modes.remove(rustix::termios::LocalModes::ECHO);
        rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Flush, &unseen)?;
        Ok(Self(before))
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}

fn show(context: &Context, found: &Findings) -> Outcome {
    let printer = &context.printer;
    for session in &found.sessions {
        let events = units::things(session.events, "event");
        printer.data(format!("session {}   {events}   {}", short(session.session_id), session.project))?;
    }
    for path in &found.transcripts {
        printer.data(format!("kept transcript {}", path.display()))?;
    }
    for (table, count) in &found.rows {
        printer.data(format!("the store's table {table}   {}", units::things(*count, "row")))?;
    }
    for snapshot in &found.snapshots {
        let files: Vec<String> = snapshot.paths.iter().map(|path| path.display().to_string()).collect();
        let what =
            if files.is_empty() { "whole".to_owned() } else { format!("without {}", files.join(", ")) };
        printer.data(format!("snapshot {}   {what}", snapshot.name))?;
    }
    for file in &found.files {
        let remedy = match file.remedy {
            Remedy::Rewritten => "written anew",
            Remedy::Blanked => "written over",
            Remedy::Removed => "removed",
        };
        printer.data(format!("{}   {remedy}", file.path.display()))?;
    }
    if !found.beyond.is_empty() {
        printer.data("out of reach:")?;
    }
    for beyond in &found.beyond {
        let path = beyond.path.as_ref().map_or(String::new(), |path| format!("{}   ", path.display()));
        printer.data(format!("  {path}{}", beyond.what))?;
    }
    Ok(())
}
