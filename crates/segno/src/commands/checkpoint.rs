//! `segno checkpoint`: named points to come back to.

mod inspect;

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::Command as Act;
use segno_engine::core::Event;
use segno_engine::core::Fact;
use segno_engine::core::Input;
use segno_engine::core::List;
use segno_engine::core::event::CheckpointReason;
use segno_engine::tree::Decision;
use segno_engine::tree::RestoreRequest;
use segno_engine::tree::tell_pending;
use serde_json::json;

use super::args::Page;
use super::doing::look;
use super::doing::record;
use super::lists;
use super::undo::RestoreFlags;
use super::undo::preview_and_confirm;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::style::Meaning;
use crate::output::units;

/// Make checkpoints, look at them and go back to them
///
/// A checkpoint ties the journal, the conversation and the files of the project together. It is called ready when all
/// of it is on disk. Checkpoints are also made automatically: at the end of a phase, at milestones, before and after a
/// run, every twenty tool calls, before risky ones, and before anything is restored.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Example:\n  segno checkpoint create before-migration --reason \"the schema changes next\""
)]
pub struct Args {
    /// What to do; without it, lists the checkpoints
    #[command(subcommand)]
    pub command: Option<Command>,
    /// List checkpoints, as `segno checkpoint list` does
    #[arg(long)]
    pub list: bool,
    /// Restore files from this checkpoint, as `segno checkpoint restore` does
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    pub restore: Option<String>,
    /// Make a checkpoint unless another flag is given; agents use it for /checkpoint
    #[arg(long)]
    pub make: bool,
}

impl Args {
    /// Doing this.
    pub const fn of(command: Command) -> Self {
        Self { command: Some(command), list: false, restore: None, make: false }
    }

    /// Whether it would remove snapshots.
    pub const fn removes(&self) -> bool {
        matches!(self.command, Some(Command::Gc))
    }
}

/// What to do with checkpoints.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Make a checkpoint now
    Create {
        /// Its name; one is made up if none is given
        name: Option<String>,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// List checkpoints
    List {
        /// Which page
        #[command(flatten)]
        page: Page,
    },
    /// Show a checkpoint
    Show {
        /// Its id, name, number, or a moment such as 2026-11-15T12:00:00Z
        name: String,
    },
    /// Show what is different between a checkpoint and another one, or now
    Diff {
        /// The earlier one
        before: String,
        /// The later one; now if none is given
        after: Option<String>,
    },
    /// Read everything that belongs to a checkpoint, and say whether it is intact
    Validate {
        /// Which; all if none is given
        name: Option<String>,
    },
    /// Keep a checkpoint whatever the retention rules say
    Pin {
        /// Which
        name: String,
    },
    /// Let the retention rules decide about a checkpoint again
    Unpin {
        /// Which
        name: String,
    },
    /// Write the files of a checkpoint to a bundle
    Export {
        /// Which
        name: String,
        /// Where to
        file: PathBuf,
    },
    /// Take the files of a bundle in as a checkpoint; the tree is not touched
    Import {
        /// Where from
        file: PathBuf,
        /// Its name
        #[arg(long, default_value = "imported")]
        name: String,
    },
    /// Free the space of snapshots that nothing needs any more
    Gc,
    /// Declare that this directory is still the same project, though it looks like another one
    ///
    /// After a fresh clone, or when another project took its place, the snapshots of the earlier one are left alone.
    /// Only you know that it is the same project after all.
    Claim,
    /// Show an interrupted restore, and decide what to do about it
    ///
    /// If nothing happened since, it is finished automatically. If somebody changed files since, it waits until you pass
    /// one of these flags; files that were changed since are left as they are.
    Pending {
        /// Finish it
        #[arg(long, conflicts_with_all = ["take_back", "leave"])]
        finish: bool,
        /// Take it back: files as they were before it
        #[arg(long, conflicts_with = "leave")]
        take_back: bool,
        /// Leave the files as they are
        #[arg(long)]
        leave: bool,
    },
    /// Restore files, or the session's plan and values, from a checkpoint
    ///
    /// What is there now is kept in a checkpoint first, so this can itself be undone. Files that are in no snapshot
    /// are left alone.
    Restore {
        /// Which checkpoint
        name: String,
        /// Only these files and directories
        paths: Vec<PathBuf>,
        /// Files only (the default)
        #[arg(long)]
        files: bool,
        /// Phase, progress, metrics and other values of the session too
        #[arg(long)]
        state: bool,
        /// How to go there
        #[command(flatten)]
        flags: RestoreFlags,
    },
}

/// Whoever asks for a checkpoint relies on it: one that could not take the files in is a failure, though it is recorded.
fn check(context: &Context, id: &str) -> Outcome {
    if !context.config()?.checkpoint.files {
        return Ok(());
    }
    let (ctx, state) = look(context)?;
    let made = ctx.engine.find_checkpoint(state.session_id, id)?;
    match made.problem {
        Some(why) if !made.ready => {
            let text = format!("checkpoint {} is recorded without the files", made.id);
            let hint = format!("segno checkpoint create   tries again   ({})", why.short(200));
            Err(CommandError::failure("checkpoint_failed", text).hint(hint))
        }
        _ => Ok(()),
    }
}

/// Runs `segno checkpoint`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    if args.command.is_some() && (args.list || args.restore.is_some() || args.make) {
        return Err(CommandError::usage(
            "--list, --restore and --make stand alone, without a command behind them",
        )
        .hint("segno checkpoint --list   (or: segno checkpoint list)"));
    }
    let named = match (args.list, &args.restore, args.make) {
        (true, ..) => Some(Command::List { page: Page::default() }),
        (_, Some(name), _) => Some(Command::Restore {
            name: name.clone(),
            paths: Vec::new(),
            files: false,
            state: false,
            flags: RestoreFlags::default(),
        }),
        (.., true) => Some(Command::Create { name: None, reason: None }),
        _ => None,
    };
    match args.command.as_ref().or(named.as_ref()) {
        None => list(context, &Page::default()),
        Some(Command::Create { name, reason }) => {
            let mut inputs: Vec<Input> = Vec::new();
            if let Some(reason) = reason {
                let noted = Fact::HistoryNoted {
                    action: "checkpoint_reason".to_owned(),
                    phase: None,
                    details: Some(reason.as_str().into()),
                };
                inputs.push(noted.into());
            }
            let create = Act::CreateCheckpoint { name: name.clone(), reason: CheckpointReason::Asked };
            inputs.push(create.into());
            let mut made = None;
            record(context, inputs, |acted| {
                made = acted.events.iter().find_map(|event| match event {
                    Event::CheckpointCreated(created) => Some(created.id.clone()),
                    _ => None,
                });
                match &acted.state.checkpoint {
                    Some(mark) => format!("checkpoint {}   seq {}", mark.id, mark.seq).into(),
                    None => "no checkpoint".into(),
                }
            })?;
            made.map_or(Ok(()), |id| check(context, id.as_str()))
        }
        Some(Command::List { page }) => list(context, page),
        Some(Command::Show { name }) => inspect::show(context, name),
        Some(Command::Diff { before, after }) => inspect::diff(context, before, after.as_deref()),
        Some(Command::Validate { name }) => inspect::validate(context, name.as_deref()),
        Some(Command::Pin { name }) => pin(context, name, true),
        Some(Command::Unpin { name }) => pin(context, name, false),
        Some(Command::Export { name, file }) => {
            let (ctx, state) = super::undo::session_of_checkpoint(context)?;
            let checkpoint = ctx.engine.find_checkpoint(state.session_id, name)?;
            let bytes = ctx.engine.export_checkpoint(state.session_id, &checkpoint, file)?;
            if context.printer.is_json() {
                return context
                    .printer
                    .json(&json!({ "file": file, "bytes": bytes, "checkpoint": checkpoint }));
            }
            context.printer.talk(format!("wrote {} ({})", file.display(), units::bytes(bytes)));
            Ok(())
        }
        Some(Command::Import { file, name }) => {
            let (ctx, state) = look(context)?;
            let acted = ctx.engine.import_checkpoint(state.session_id, file, name)?;
            ctx.report(
                &acted,
                format!("took {} in as checkpoint {}", file.display(), acted.state.counts.checkpoints),
            )
        }
        Some(Command::Gc) => gc(context),
        Some(Command::Claim) => {
            let (ctx, state) = super::undo::session_of_checkpoint(context)?;
            ctx.engine.claim_project(&state)?;
            if context.printer.is_json() {
                return context.printer.json(&json!({ "project": state.project.path, "claimed": true }));
            }
            context.printer.talk(format!("{} is the same project again", state.project.path));
            Ok(())
        }
        Some(Command::Pending { finish, take_back, leave }) => {
            let decision = match (finish, take_back, leave) {
                (true, ..) => Some(Decision::Finish),
                (_, true, _) => Some(Decision::TakeBack),
                (.., true) => Some(Decision::Leave),
                _ => None,
            };
            pending(context, decision)
        }
        Some(Command::Restore { name, paths, files, state, flags }) => {
            let (ctx, now) = super::undo::session_of_checkpoint(context)?;
            let target = ctx.engine.find_checkpoint(now.session_id, name)?;
            let selection = super::undo::selection(&now, paths)?;
            let request = RestoreRequest {
                selection,
                files: *files || !*state,
                state: *state,
                ..RestoreRequest::files_of(target.ordinal)
            };
            preview_and_confirm(&ctx, now.session_id, request, flags)
        }
    }
}

fn list(context: &Context, page: &Page) -> Outcome {
    let (ctx, state) = super::undo::session_of_checkpoint(context)?;
    lists::show_at(&ctx, state.session_id, List::Checkpoints, page)
}

fn pin(context: &Context, name: &str, pinned: bool) -> Outcome {
    let (ctx, state) = super::undo::session_of_checkpoint(context)?;
    let checkpoint = ctx.engine.find_checkpoint(state.session_id, name)?;
    let acted =
        ctx.act(state.session_id, vec![Act::PinCheckpoint { ordinal: checkpoint.ordinal, pinned }])?;
    let word = if pinned { "pinned" } else { "no longer pinned" };
    ctx.report(&acted, format!("{} {word}", checkpoint.id))
}

/// A restore that was cut short: shows it, or does with it what was decided.
fn pending(context: &Context, decision: Option<Decision>) -> Outcome {
    let (ctx, state) = super::undo::session_of_checkpoint(context)?;
    let printer = &context.printer;
    if let Some(decision) = decision {
        let applied = ctx.engine.decide_restore(state.session_id, decision)?;
        if printer.is_json() {
            return printer.json(&json!({
                "pending": false, "written": applied.written, "removed": applied.removed,
                "kept": super::undo::kept_json(&applied.kept),
            }));
        }
        printer.talk(format!(
            "{} written   {} removed   {} left as they are",
            applied.written.len(),
            applied.removed.len(),
            applied.kept.len()
        ));
        super::undo::show_kept(context, &applied.kept);
        return Ok(());
    }
    let (waiting, notice) = ctx.engine.pending_restore(state.session_id)?;
    if printer.is_json() {
        return printer.json(&json!({
            "pending": waiting.is_some(), "notice": notice,
            "paths": waiting.as_ref().map(|waiting| waiting.pending.paths),
            "changed": waiting.as_ref().map(|waiting| &waiting.changed),
            "committed": waiting.as_ref().map(|waiting| waiting.committed),
        }));
    }
    let Some(waiting) = waiting else {
        printer.talk(notice.unwrap_or_else(|| "no restore was interrupted".to_owned()));
        return Ok(());
    };
    printer.talk(tell_pending(&waiting));
    super::undo::paths(context, "changed", &waiting.changed, Meaning::Waiting);
    printer.hint("segno checkpoint pending --finish      finishes it");
    printer.hint("segno checkpoint pending --take-back   takes it back: files as they were before it");
    printer.hint("segno checkpoint pending --leave       leaves the files as they are");
    Ok(())
}

fn gc(context: &Context) -> Outcome {
    let (ctx, state) = super::undo::session_of_checkpoint(context)?;
    let collected = ctx.engine.collect_snapshots(&state)?;
    if context.printer.is_json() {
        return context.printer.json(&json!({
            "dropped": collected.dropped, "before": collected.before, "after": collected.after, "quota": collected.quota,
        }));
    }
    let quota = collected.quota.map_or(String::new(), |quota| format!(" of {} allowed", units::bytes(quota)));
    context.printer.talk(format!(
        "{} given up   {} before, {} now{quota}",
        units::things(collected.dropped, "snapshot"),
        units::bytes(collected.before),
        units::bytes(collected.after),
    ));
    Ok(())
}
