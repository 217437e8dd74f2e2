//! `segno checkpoint`: named places to come back to.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::Item;
use segno_engine::core::Command as Act;
use segno_engine::core::Event;
use segno_engine::core::Fact;
use segno_engine::core::Input;
use segno_engine::core::List;
use segno_engine::core::event::CheckpointReason;
use segno_engine::core::rows::CheckpointRow;
use segno_engine::tree::Decision;
use segno_engine::tree::RestoreRequest;
use segno_engine::tree::tell_pending;
use serde_json::json;

use super::args::Page;
use super::diff::changes;
use super::doing::look;
use super::doing::record;
use super::lists;
use super::undo::RestoreFlags;
use super::undo::preview_and_confirm;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

/// Make checkpoints, look at them and go back to them
///
/// A checkpoint ties the journal, the conversation and the files of the project together. It is called ready when all
/// of it is on disk. Checkpoints are also made by themselves: at the end of a phase, at milestones, before and after
/// a run, every twenty tool calls, before risky ones, and before anything is restored.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno checkpoint create before-migration --reason \"risky\"")]
pub struct Args {
    /// What to do; without it, lists the checkpoints
    #[command(subcommand)]
    pub command: Option<Command>,
    /// List checkpoints, as `segno checkpoint list` does
    #[arg(long)]
    pub list: bool,
    /// Bring files to where this checkpoint has them, as `segno checkpoint restore` does
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    pub restore: Option<String>,
    /// Make a checkpoint, if no other flag says what to do: what agents call for /checkpoint
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
    /// Make a checkpoint of where the session is now
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
    /// Read everything that belongs to a checkpoint, and say whether it is whole
    Validate {
        /// Which; all if none is given
        name: Option<String>,
    },
    /// Keep a checkpoint whatever the rules say
    Pin {
        /// Which
        name: String,
    },
    /// Let the rules decide about it again
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
    /// Give back the space of snapshots that nothing needs any more
    Gc,
    /// Say that the directory is the project it was, though it is another one
    ///
    /// After a fresh clone, or when another project was put in its place, what was kept of the one before is left
    /// alone. Only you know that it is the same one after all.
    Claim,
    /// Show a restore that was cut short, and decide about it
    ///
    /// If nothing happened since, it is finished automatically. If somebody changed files since, it waits until you pass
    /// one of these flags; files that were changed since are left as they are.
    Pending {
        /// Bring the files to where it was going
        #[arg(long, conflicts_with_all = ["take_back", "leave"])]
        finish: bool,
        /// Bring the files back to where they were before it
        #[arg(long, conflicts_with = "leave")]
        take_back: bool,
        /// Leave the files as they are
        #[arg(long)]
        leave: bool,
    },
    /// Bring files, or plan and values of the session, to where a checkpoint has them
    ///
    /// What is there now is kept in a checkpoint first, so this can itself be undone. Files that are in no snapshot
    /// are left alone.
    Restore {
        /// Which checkpoint
        name: String,
        /// Only these files and directories
        paths: Vec<PathBuf>,
        /// Files only; this is what happens if neither is said
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
        Some(Command::Show { name }) => show(context, name),
        Some(Command::Diff { before, after }) => diff(context, before, after.as_deref()),
        Some(Command::Validate { name }) => validate(context, name.as_deref()),
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
            context.printer.talk(format!("{} is the project it was", state.project.path));
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

fn diff(context: &Context, before: &str, after: Option<&str>) -> Outcome {
    let (ctx, state) = super::undo::session_of_checkpoint(context)?;
    let engine = &ctx.engine;
    let before = engine.find_checkpoint(state.session_id, before)?;
    let after = after.map(|after| engine.find_checkpoint(state.session_id, after)).transpose()?;
    let compared = engine.compare(state.session_id, &before, after.as_ref(), true)?;
    if context.printer.is_json() {
        return context.printer.json(&json!({
            "before": before.id, "after": after.as_ref().map(|after| &after.id),
            "files": compared.files.iter().map(super::diff::change_json).collect::<Vec<_>>(),
            "values": compared.values.iter()
                .map(|(name, before, after)| json!({ "name": name, "before": before, "after": after }))
                .collect::<Vec<_>>(),
            "commits": { "before": compared.commits.0, "after": compared.commits.1 },
        }));
    }
    let mut table =
        Table::new([Column::left("value"), Column::left(&before.id), Column::left("after").elastic()]);
    for (name, before, after) in &compared.values {
        table.row([name.clone(), plain(before), plain(after)]);
    }
    if compared.commits.0 != compared.commits.1 {
        let short = |commit: &Option<String>| {
            commit.as_deref().map_or_else(|| "–".to_owned(), |commit| commit.chars().take(12).collect())
        };
        table.row(["commit".to_owned(), short(&compared.commits.0), short(&compared.commits.1)]);
    }
    context.printer.table(&table)?;
    changes(context, &compared.files)
}

fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "–".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn validate(context: &Context, name: Option<&str>) -> Outcome {
    let (ctx, state) = super::undo::session_of_checkpoint(context)?;
    let session = state.session_id;
    let all = match name {
        Some(name) => vec![ctx.engine.find_checkpoint(session, name)?],
        None => ctx.engine.checkpoints(session)?,
    };
    let (mut table, mut rows, mut bad) = (
        Table::new([Column::left("checkpoint"), Column::left(""), Column::left("").elastic()]),
        Vec::new(),
        0,
    );
    for checkpoint in &all {
        let validation = ctx.engine.validate(session, checkpoint)?;
        // One whose files were given up on purpose, or that never was called ready, is not broken; but who asks for
        // that very one wants to rely on it.
        let promised = checkpoint.ready || (name.is_some() && checkpoint.dropped.is_none());
        let broken = !validation.problems.is_empty() && promised;
        bad += u64::from(broken);
        let word = match (broken, validation.problems.is_empty(), checkpoint.dropped.is_some()) {
            (true, ..) => Text::new().painted(Meaning::Lost, "not whole"),
            (false, true, _) => Text::new().painted(Meaning::Done, "whole"),
            (false, false, true) => Text::new().painted(Meaning::Dim, "given up"),
            (false, false, false) => Text::new().painted(Meaning::Dim, "not ready"),
        };
        let more = match validation.problems.first() {
            Some(problem) => problem.clone(),
            None => format!("{} objects, {}", validation.objects, units::bytes(validation.bytes)),
        };
        table.row([Text::from(&checkpoint.id), word, Text::from(more)]);
        rows.push(json!({ "checkpoint": checkpoint.id, "problems": validation.problems, "objects": validation.objects }));
    }
    if context.printer.is_json() {
        context.printer.json(&json!({ "checkpoints": rows, "whole": bad == 0 }))?;
    } else {
        context.printer.table(&table)?;
    }
    if bad > 0 {
        return Err(CommandError::new(
            ExitCode::StoreDamaged,
            "checkpoint_damaged",
            format!("{} not whole", units::things(bad, "checkpoint")),
        ));
    }
    Ok(())
}

fn pin(context: &Context, name: &str, pinned: bool) -> Outcome {
    let (ctx, state) = super::undo::session_of_checkpoint(context)?;
    let checkpoint = ctx.engine.find_checkpoint(state.session_id, name)?;
    let acted =
        ctx.act(state.session_id, vec![Act::PinCheckpoint { ordinal: checkpoint.ordinal, pinned }])?;
    let word = if pinned { "pinned" } else { "not pinned any more" };
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
        printer.talk(notice.unwrap_or_else(|| "no restore was cut short".to_owned()));
        return Ok(());
    };
    printer.talk(tell_pending(&waiting));
    super::undo::paths(context, "changed", &waiting.changed, Meaning::Waiting);
    printer.hint("segno checkpoint pending --finish      goes where it was going");
    printer.hint("segno checkpoint pending --take-back   goes back to where the files were before it");
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

/// The session's state as it was at a checkpoint, folded from the journal.
fn show(context: &Context, name: &str) -> Outcome {
    let (ctx, state) = super::undo::session_of_checkpoint(context)?;
    let checkpoint = ctx.engine.find_checkpoint(state.session_id, name)?;
    let items = ctx.engine.items(state.session_id, List::Checkpoints)?;
    let is = |item: &Item| item.row::<CheckpointRow>().id == checkpoint.id;
    let found = items.into_iter().rev().find(is).ok_or_else(|| {
        CommandError::new(ExitCode::Refused, "unknown_item", format!("no checkpoint {name} in this session"))
            .hint("segno checkpoint list")
    })?;
    let row: CheckpointRow = found.row();
    let seq = row.seq;
    let then = ctx.engine.state_at(state.session_id, seq)?;
    for notice in then.notices {
        context.printer.warn(notice);
    }
    let then = then.state;
    if context.printer.is_json() {
        return context.printer.json(&serde_json::json!({ "checkpoint": found.body, "state": then }));
    }
    let made = row.created_at.to_string();
    let made = made.parse().map_or(made, |at| context.time(at));
    let mut table = Table::new([Column::left(""), Column::left("").elastic()]).without_titles();
    for (label, value) in [
        ("checkpoint", row.id),
        ("reason", row.reason),
        ("made", made),
        ("seq", seq.to_string()),
        ("phase", then.phase_label().unwrap_or_default()),
        ("tokens", units::tokens(then.budget.tokens_used)),
        ("tool calls", row.tool_count.map_or_else(String::new, |n| n.to_string())),
        ("files", files(&checkpoint)),
        ("conversation", conversation(&checkpoint)),
        ("commit", checkpoint.head.as_ref().and_then(|head| head.commit.clone()).unwrap_or_default()),
        ("pinned", if checkpoint.pinned { "yes".to_owned() } else { String::new() }),
        (
            "valid",
            if checkpoint.valid {
                String::new()
            } else {
                "no: invalidated by a rollback to an earlier checkpoint".to_owned()
            },
        ),
        ("since then", units::things(state.seq.saturating_sub(seq), "event")),
    ] {
        if !value.is_empty() {
            table.row([label.to_owned(), value]);
        }
    }
    context.printer.table(&table)
}

fn files(checkpoint: &segno_engine::tree::Checkpoint) -> String {
    if let Some(snapshot) = &checkpoint.snapshot {
        let out =
            if snapshot.left_out > 0 { format!(", {} left out", snapshot.left_out) } else { String::new() };
        return format!(
            "{} ({}), {} changed{out}",
            units::things(snapshot.files, "file"),
            units::bytes(snapshot.bytes),
            snapshot.changed
        );
    }
    let why = checkpoint.problem.as_ref().map(|why| why.short(200)).or_else(|| checkpoint.dropped.clone());
    why.map_or_else(String::new, |why| format!("none: {why}"))
}

fn conversation(checkpoint: &segno_engine::tree::Checkpoint) -> String {
    checkpoint.conversation.as_ref().map_or_else(String::new, |conversation| {
        let exact = if conversation.exact { "" } else { " (about)" };
        format!("{} {}{exact}", conversation.agent, conversation.native_id)
    })
}
