//! `segno undo`, `redo`, `diff` and `rollback`: what was done to the files, and taking it back.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use segno_engine::SHORTEST_ENDING;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::event::CheckpointReason;
use segno_engine::tree::Checkpoint;
use segno_engine::tree::RestoreRequest;
use segno_engine::tree::RestoreTarget;
use segno_engine::tree::Restored;
use segno_engine::workspace::Kept;
use segno_engine::workspace::Selection;
use serde_json::Value;
use serde_json::json;

use crate::ask::Terminal;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;

/// How many paths are shown.
const SHOWN: usize = 40;

/// How to go somewhere.
#[derive(ClapArgs, Clone, Debug, Default)]
pub struct RestoreFlags {
    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// Undo what the last turn did to the files
///
/// Without --session, the session of the project's last run is meant.
/// Touches only what the session did and nobody changed since: files that its calls name, and what changed while one of
/// its commands was running. The rest is listed and left alone. The present files are saved in a checkpoint first, so an
/// undo can be undone: `segno redo`. It is refused while a call is open in the same tree; an agent with hooks that is
/// between two calls is held meanwhile, and is told what was undone.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:\n  segno undo\n  segno undo --turns 2 src/\n  segno undo --to cp-03-red")]
pub struct UndoArgs {
    /// Only these files and directories
    pub paths: Vec<PathBuf>,
    /// How many turns
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub turns: u64,
    /// To this checkpoint
    #[arg(long, value_name = "CP", conflicts_with = "turns")]
    pub to: Option<String>,
    /// Also what others changed meanwhile: a person, another session
    #[arg(long)]
    pub all: bool,
    /// How to go there
    #[command(flatten)]
    pub flags: RestoreFlags,
}

/// Redo what was undone
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno redo")]
pub struct RedoArgs {
    /// How many turns
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub turns: u64,
    /// How to go there
    #[command(flatten)]
    pub flags: RestoreFlags,
}

/// Roll a session back to a checkpoint or step
///
/// Restores files, phase and values; later checkpoints are invalidated. A rollback only goes back, checks the checkpoint
/// first, and saves the present state in another one.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno rollback cp-02-red --git")]
pub struct RollbackArgs {
    /// The checkpoint: its id, name or number, or `step N`
    #[arg(required = true, num_args = 1..=2)]
    pub to: Vec<String>,
    /// Move the branch of the project's repository too; its old position is kept in a ref
    #[arg(long)]
    pub git: bool,
    /// How to go there
    #[command(flatten)]
    pub flags: RestoreFlags,
}

/// Runs `segno undo`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn undo(context: &Context, args: &UndoArgs) -> Outcome {
    let (ctx, state) = session(context)?;
    refuse_ids(&ctx, "undo", &args.paths)?;
    let selection = selection(&state, &args.paths)?;
    let target = match &args.to {
        Some(to) => RestoreTarget::UndoTo(ctx.engine.find_checkpoint(state.session_id, to)?.ordinal),
        None => RestoreTarget::Undo(args.turns),
    };
    let request = RestoreRequest { target, selection, all: args.all, ..RestoreRequest::files_of(0) };
    preview_and_confirm(&ctx, state.session_id, request, &args.flags)
}

/// Runs `segno redo`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn redo(context: &Context, args: &RedoArgs) -> Outcome {
    let (ctx, state) = session(context)?;
    let request = RestoreRequest { target: RestoreTarget::Redo(args.turns), ..RestoreRequest::files_of(0) };
    preview_and_confirm(&ctx, state.session_id, request, &args.flags)
}

/// Runs `segno rollback`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn rollback(context: &Context, args: &RollbackArgs) -> Outcome {
    let (ctx, state) = session_of_checkpoint(context)?;
    let target = match args.to.as_slice() {
        [word, step] if word == "step" => step_target(&ctx, &state, step)?,
        [name] => ctx.engine.find_checkpoint(state.session_id, name)?,
        _ => return Err(CommandError::usage("say one checkpoint, or: step N")),
    };
    let request = RestoreRequest {
        state: true,
        rollback: true,
        git: args.git,
        ..RestoreRequest::files_of(target.ordinal)
    };
    preview_and_confirm(&ctx, state.session_id, request, &args.flags)
}

/// The checkpoint at the end of a step, which is made when work leaves it, to whichever step; for the step that work is
/// in, the newest one in it.
fn step_target(ctx: &CommandContext<'_>, state: &State, step: &str) -> Outcome<Checkpoint> {
    let step: u32 =
        step.parse().map_err(|_| CommandError::usage(format!("{step} is no number of a step")))?;
    let all = ctx.engine.checkpoints(state.session_id)?;
    let counts = |checkpoint: &&Checkpoint| checkpoint.valid && checkpoint.ready && !checkpoint.aside;
    let left =
        (0..all.len()).rev().find(|at| counts(&&all[*at]) && step_left(state, &all[..=*at]) == Some(step));
    let inside = || {
        let is_inside =
            |checkpoint: &&Checkpoint| checkpoint.step == Some(step) && !leaves_a_step(checkpoint);
        let here = || all.iter().rev().filter(counts).find(is_inside);
        (state.step == Some(step)).then(here).flatten()
    };
    // One that came with the session is found, so that it is said why nobody goes back to it.
    let came = || all.iter().rev().find(|one| one.is_from_elsewhere() && one.step == Some(step));
    let found = left.map(|at| &all[at]).or_else(inside).or_else(came).cloned();
    found.ok_or_else(|| {
        CommandError::new(
            crate::exit::ExitCode::Refused,
            "unknown_item",
            format!("no checkpoint of step {step}: work was never there, or did not leave it"),
        )
        .hint("segno checkpoint list")
    })
}

fn leaves_a_step(checkpoint: &Checkpoint) -> bool {
    checkpoint.is_for(CheckpointReason::PhaseComplete)
}

/// The step that the last of these checkpoints was made at the end of. It is named after the phase that was left; where
/// the workflow does not list that, work was where the checkpoint before this one left it.
fn step_left(state: &State, until: &[Checkpoint]) -> Option<u32> {
    let (last, before) = until.split_last().filter(|(last, _)| leaves_a_step(last))?;
    let phases = state.workflow.as_ref().map_or(&[][..], |workflow| &workflow.phases);
    if let Some(index) = phases.iter().position(|phase| *phase == last.name) {
        return u32::try_from(index + 1).ok();
    }
    let known =
        before.iter().rev().filter(|checkpoint| checkpoint.valid).find_map(|checkpoint| checkpoint.step);
    known.or_else(|| last.step?.checked_sub(1))
}

/// The session that is meant where a checkpoint is named: the one named, or the one in which something happened last.
pub(super) fn session_of_checkpoint(context: &Context) -> Outcome<(CommandContext<'_>, State)> {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session_to_read(None)?;
    let state = ctx.load(id)?;
    Ok((ctx, state))
}

/// The session that is meant: the one named, or that of the project's last run.
pub(super) fn session(context: &Context) -> Outcome<(CommandContext<'_>, State)> {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session_of_last_run()?;
    let state = ctx.load(id)?;
    Ok((ctx, state))
}

/// Sessions are named by `--session` here: one that is given like a path would be a path that nothing was done to.
pub(super) fn refuse_ids(ctx: &CommandContext<'_>, command: &str, paths: &[PathBuf]) -> Outcome {
    for path in paths.iter().filter(|path| std::fs::symlink_metadata(path).is_err()) {
        let text = path.display().to_string();
        let is_long = text.len() >= SHORTEST_ENDING;
        if is_long && ctx.engine.find_known(&text, Some(&ctx.context.project.root)).is_ok() {
            return Err(CommandError::usage(format!("{text} is a session; files are meant here"))
                .hint(format!("segno {command} --session {text}")));
        }
    }
    Ok(())
}

/// Paths as typed, from where they were typed, as paths from the top of the tree.
pub(super) fn selection(state: &State, paths: &[PathBuf]) -> Outcome<Selection> {
    if paths.is_empty() {
        return Ok(Selection::All);
    }
    let root = PathBuf::from(&state.project.path);
    let root = root.canonicalize().unwrap_or(root);
    let here =
        std::env::current_dir().map_err(|why| CommandError::io("there is no current directory", why))?;
    let here = here.canonicalize().unwrap_or(here);
    let mut chosen = Vec::new();
    for path in paths {
        let whole = here.join(path);
        let inside = whole.strip_prefix(&root).map_err(|_| {
            CommandError::usage(format!("{} is not in the project {}", path.display(), root.display()))
        })?;
        if inside.components().any(|part| part == std::path::Component::ParentDir) {
            return Err(CommandError::usage(format!("{}: write it without ..", path.display())));
        }
        chosen.push(inside.to_owned());
    }
    Ok(Selection::Paths(chosen))
}

/// Looks, asks unless that is not wanted, and goes.
pub(super) fn preview_and_confirm(
    ctx: &CommandContext<'_>,
    session: SessionId,
    request: RestoreRequest,
    flags: &RestoreFlags,
) -> Outcome {
    let context = ctx.context;
    let printer = &context.printer;
    if flags.dry_run {
        return look(ctx, session, request);
    }
    let (target, gone) = ctx.engine.go_back(session, &request, flags.yes, &Terminal::new(context))?;
    for notice in &gone.notices {
        printer.warn(notice.clone());
    }
    let is_undo = matches!(request.target, RestoreTarget::Undo(_) | RestoreTarget::UndoTo(_));
    arrived(ctx, session, &target, &gone, is_undo)
}

/// Only shows what would be done.
fn look(ctx: &CommandContext<'_>, session: SessionId, request: RestoreRequest) -> Outcome {
    let printer = &ctx.context.printer;
    let mut preview = ctx.engine.preview(session, request)?;
    for notice in std::mem::take(&mut preview.notices) {
        printer.warn(notice);
    }
    let shown = if printer.is_json() {
        let empty = (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
        let (writes, removes, kept, modes) = preview.plan.as_ref().map_or(empty, |plan| {
            let modes = plan.modes().map(|(path, mode)| (path.display().to_string(), format!("{mode:04o}")));
            (plan.writes().collect(), plan.removals().collect(), kept_json(&plan.kept), modes.collect())
        });
        let (writes, removes): (Vec<PathBuf>, Vec<PathBuf>) = (writes, removes);
        let modes: BTreeMap<String, String> = modes;
        printer.json(&json!({
            "dry_run": true, "to": preview.target.id, "writes": writes, "removes": removes, "kept": kept,
            "modes": modes,
        }))
    } else {
        printer.talk(format!("would go to {}, and nothing was changed", preview.target.id));
        for line in preview.lines() {
            printer.talk(line);
        }
        Ok(())
    };
    ctx.engine.forget(preview);
    shown
}

fn arrived(
    ctx: &CommandContext<'_>,
    session: SessionId,
    target: &Checkpoint,
    gone: &Restored,
    is_undo: bool,
) -> Outcome {
    let printer = &ctx.context.printer;
    let applied = &gone.applied;
    if printer.is_json() {
        printer.json(&json!({
            "session_id": session, "to": target.id, "safety": gone.safety, "written": applied.written,
            "removed": applied.removed, "kept": kept_json(&applied.kept), "branch": gone.branch,
            "phase": gone.state.phase,
        }))?;
        return Ok(());
    }
    printer.talk(format!(
        "at {}   {} written   {} removed   {} left as they are",
        target.id,
        applied.written.len(),
        applied.removed.len(),
        applied.kept.len()
    ));
    show_kept(ctx.context, &applied.kept);
    if let Some(branch) = &gone.branch {
        printer.talk(format!("  {branch}"));
    }
    if let Some(safety) = gone.safety {
        let tail = ctx.engine.ending(session);
        let before = format!("segno checkpoint restore {safety} --session {tail}");
        printer.hint(match is_undo {
            true => {
                format!("segno redo --session {tail}   takes it back   (all that was there before: {before})")
            }
            false => format!("what was there before: {before}"),
        });
    }
    ctx.finish();
    Ok(())
}

pub(super) fn kept_json(kept: &[Kept]) -> Vec<Value> {
    kept.iter().map(|kept| json!({ "path": kept.path, "why": kept.why.to_string() })).collect()
}

pub(super) fn show_kept(context: &Context, kept: &[Kept]) {
    for one in kept.iter().take(SHOWN) {
        let text = Text::new()
            .painted(Meaning::Waiting, "  left    ")
            .plain(one.path.display().to_string())
            .painted(Meaning::Dim, format!("   {}", one.why));
        context.printer.talk(text);
    }
    more(context, kept.len());
}

pub(super) fn paths(context: &Context, word: &str, paths: &[PathBuf], meaning: Meaning) {
    for path in paths.iter().take(SHOWN) {
        context
            .printer
            .talk(Text::new().painted(meaning, format!("  {word:<8}")).plain(path.display().to_string()));
    }
    more(context, paths.len());
}

fn more(context: &Context, count: usize) {
    if count > SHOWN {
        context.printer.talk(format!("  … and {} more", count - SHOWN));
    }
}
