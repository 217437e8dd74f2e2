//! `segno doctor` and `segno backup`: the health of the store.

use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use segno_engine::StoreError;
use segno_engine::StoreLocation;
use segno_engine::doctor::Diagnosis;
use segno_engine::doctor::Salvaged;
use segno_engine::doctor::{self};
use segno_engine::drift::Drift;
use segno_engine::install::Health;
use segno_engine::install::Scope;
use serde_json::json;

use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::files;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::style::Symbol;
use crate::output::units;

/// Look for problems, and repair them if asked
///
/// Checks the store and every event of every session against its hash, records what waits in the spool, and settles
/// sessions whose driver died. Damaged files and events are set aside, never deleted.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno doctor --deep")]
pub struct Args {
    /// Repair what can be repaired; nothing is deleted
    #[arg(long)]
    pub repair: bool,
    /// Check the indexes of the store and the files of every checkpoint too
    #[arg(long)]
    pub deep: bool,
    /// Make a copy of a store a store of its own
    ///
    /// A copy is shown and not changed as long as the store that it was made from is there. Adopted, it has an id of
    /// its own: what is kept beside the other store (facts in the spool, output of running agents, snapshots of files)
    /// stays the other's.
    #[arg(long)]
    pub adopt: bool,
}

/// Copy the store while it is in use
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno backup /mnt/backup/segno.db")]
pub struct BackupArgs {
    /// Where to write the copy; by default a new file in the data directory
    #[arg(value_name = "DEST")]
    pub destination: Option<PathBuf>,
}

/// Runs `segno doctor`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let printer = &context.printer;
    let location = context.store_location()?;
    let mut salvaged = None;
    let ctx = match CommandContext::open(context) {
        Err(error) if error.code() == "store_damaged" => {
            if !args.repair {
                return Err(error);
            }
            salvaged = Some(save(context, &location)?);
            CommandContext::open(context)?
        }
        // Nothing is wrong with nothing.
        Err(error) if error.code() == "no_store" => {
            if printer.is_json() {
                return printer
                    .json(&json!({ "store": location, "diagnosis": null, "salvaged": null, "hooks": hooks(context), "well": true }));
            }
            printer.talk(format!("nothing to look at: there is no store at {location} yet"));
            return show_hooks(context, &hooks(context));
        }
        other => other?,
    };
    if args.adopt {
        if ctx.engine.is_copy() {
            let id = ctx.engine.adopt_store()?;
            printer.talk(format!("this store is its own now: {id}"));
        } else {
            printer.talk("nothing to adopt: this store is no copy of another");
        }
    }
    let examined = match examine(&ctx, args) {
        // Some damage shows only when everything is read.
        Err(error) if error.code() == "store_damaged" && args.repair && salvaged.is_none() => {
            drop(ctx);
            salvaged = Some(save(context, &location)?);
            examine(&CommandContext::open(context)?, args)?
        }
        Ok(found) if !found.report.store.is_empty() && args.repair && salvaged.is_none() => {
            drop(ctx);
            salvaged = Some(save(context, &location)?);
            examine(&CommandContext::open(context)?, args)?
        }
        other => other?,
    };
    // A new store that is sound is not well if the damaged one held more.
    let well = examined.is_well() && salvaged.as_ref().is_none_or(Salvaged::is_complete);
    if printer.is_json() {
        printer.json(&json!({ "store": location, "id": examined.store_id, "log": crate::log_file::path(&context.paths.state), "diagnosis": examined, "salvaged": salvaged, "hooks": hooks(context), "well": well }))?;
    } else {
        show(context, &location, &examined, salvaged.as_ref())?;
        show_hooks(context, &hooks(context))?;
        show_drift(context, &examined.agents)?;
        super::history::show_losses(context, &examined.histories)?;
    }
    if well {
        return Ok(());
    }
    let error = CommandError::new(ExitCode::StoreDamaged, "damage_found", "not everything is well");
    Err(if args.repair { error } else { error.hint("segno doctor --repair") })
}

/// The hooks in the settings of agents, the person's and the project's.
fn hooks(context: &Context) -> Vec<Health> {
    let own = super::init::installer_for(context, Scope::User);
    let project = super::init::installer_for(context, Scope::Project(context.project.root.clone()));
    own.health(&project)
}

fn show_hooks(context: &Context, hooks: &[Health]) -> Outcome {
    let palette = context.printer.palette();
    for hook in hooks {
        let (symbol, meaning) = match hook.problems.is_empty() {
            true => (Symbol::Done, Meaning::Done),
            false => (Symbol::Paused, Meaning::Waiting),
        };
        let what = if hook.problems.is_empty() { "installed".to_owned() } else { hook.problems.join("; ") };
        let text = Text::new().painted(meaning, palette.symbol(symbol));
        context.printer.data(text.plain(format!(" {:<12} {}: {what}", "hooks", hook.agent)))?;
    }
    Ok(())
}

/// Agents that are newer than tested, or say what this program does not know.
fn show_drift(context: &Context, agents: &[Drift]) -> Outcome {
    let palette = context.printer.palette();
    for agent in agents.iter().filter(|agent| agent.is_news()) {
        let text = Text::new().painted(Meaning::Waiting, palette.symbol(Symbol::Paused));
        context.printer.data(text.plain(format!(" {:<12} {}: {}", "agents", agent.agent, agent.words())))?;
    }
    Ok(())
}

fn examine(ctx: &CommandContext<'_>, args: &Args) -> Outcome<Diagnosis> {
    let context = ctx.context;
    Ok(doctor::examine(&ctx.engine, args.deep, args.repair, |done, total| {
        if done % 2_000 == 0 {
            context.printer.talk(format!("looked at {done} of {total} sessions"));
        }
    })?)
}

/// Moves the damaged store aside and puts what can be read in its place.
fn save(context: &Context, location: &StoreLocation) -> Outcome<Salvaged> {
    let stamp = format!("{}", context.now).replace([':', '.'], "-");
    context.printer.talk("the store is damaged; saving what can be read");
    doctor::salvage_store(location, &stamp).map_err(|why| {
        CommandError::from(why)
            .map_message(|why| format!("the repair stopped, and everything is as it was: {why}"))
            .hint("segno doctor --repair   once that is fixed")
    })
}

fn show(
    context: &Context,
    location: &StoreLocation,
    found: &Diagnosis,
    salvaged: Option<&Salvaged>,
) -> Outcome {
    let printer = &context.printer;
    let palette = printer.palette();
    let line = |ok: bool, label: &str, text: String| {
        let (symbol, meaning) =
            if ok { (Symbol::Done, Meaning::Done) } else { (Symbol::Lost, Meaning::Lost) };
        Text::new().painted(meaning, palette.symbol(symbol)).plain(format!(" {label:<12} {text}"))
    };
    if let Some(salvaged) = salvaged {
        printer.data(line(
            salvaged.lost.is_empty(),
            "salvaged",
            format!(
                "{} whole, {} in part, {} events; the damaged files are in {}",
                salvaged.whole.len(),
                salvaged.partly.len(),
                salvaged.events,
                salvaged.kept_in.display()
            ),
        ))?;
        for (session, what) in &salvaged.partly {
            printer.data(line(false, "in part", format!("{session}: {what}")))?;
        }
        for lost in &salvaged.lost {
            printer.data(line(false, "lost", lost.clone()))?;
        }
    }
    printer.data(line(found.report.store.is_empty(), "store", location.to_string()))?;
    let log = crate::log_file::path(&context.paths.state);
    let empty = if log.exists() { "" } else { "   nothing in it yet" };
    printer.data(line(true, "log", format!("{}{empty}", log.display())))?;
    if let Some(of) = &found.copy_of {
        printer.data(line(false, "copy", format!("of {}; it is not changed", of.display())))?;
    }
    for problem in &found.report.store {
        printer.data(line(false, "", problem.clone()))?;
    }
    let clean = found.report.problems.is_empty();
    printer.data(line(
        clean,
        "sessions",
        format!(
            "{}, {}, every hash checked",
            units::things(found.report.sessions, "session"),
            units::things(found.report.events, "event")
        ),
    ))?;
    for mended in &found.mended {
        printer.data(line(true, "mended", mended.clone()))?;
    }
    for remains in &found.remains {
        printer.data(line(false, "", remains.clone()))?;
    }
    if found.spooled > 0 {
        printer.data(line(
            false,
            "spool",
            format!("{} waiting to be recorded", units::things(found.spooled, "fact")),
        ))?;
    }
    for dir in &found.stale_captures {
        let what = match dir.exists() {
            true => "output of a run that is recorded; segno doctor --repair clears it",
            false => "output of a run that is recorded; cleared",
        };
        printer.data(line(!dir.exists(), "captured", format!("{}: {what}", dir.display())))?;
    }
    for left in &found.left_alone {
        printer.data(line(true, "left alone", format!("{}: {}", left.path.display(), left.what)))?;
    }
    for id in &found.settled {
        printer.data(line(true, "settled", format!("{id} was interrupted: its driver had died")))?;
    }
    if !found.quarantined.is_empty() {
        printer.data(line(
            true,
            "quarantine",
            format!("{} set apart", units::things(found.quarantined.len() as u64, "damaged event")),
        ))?;
    }
    if found.garbage.blobs > 0 {
        let text = format!(
            "{} that nothing refers to, {}",
            units::things(found.garbage.blobs, "text"),
            units::bytes(found.garbage.bytes)
        );
        printer.data(line(true, "cleared", text))?;
    }
    Ok(())
}

/// Runs `segno backup`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn backup(context: &Context, args: &BackupArgs) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let to = match &args.destination {
        Some(path) => path.clone(),
        None => {
            let folder = context.paths.data.join("backup");
            files::private_directory(&folder)
                .map_err(|error| CommandError::io("cannot make the folder", error))?;
            folder.join(format!("segno-{}.db", format!("{:.0}", context.now).replace(':', "")))
        }
    };
    let bytes = ctx.engine.back_up(&to).map_err(|error| not_copied(error, &to))?;
    if context.printer.is_json() {
        return context.printer.json(&json!({ "file": to, "bytes": bytes }));
    }
    context.printer.data(to.display().to_string())?;
    context.printer.talk(format!("{}, checked", units::bytes(bytes)));
    Ok(())
}

/// Why a copy was not made. Its place is no place for a store that is used, so it is spoken of as what it is.
fn not_copied(error: segno_engine::Error, to: &Path) -> CommandError {
    match error {
        segno_engine::Error::Store(StoreError::UnusableLocation { why, .. }) => CommandError::new(
            ExitCode::Environment,
            "bad_place",
            format!("cannot write the copy {}: {why}", to.display()),
        )
        .hint("segno backup PATH   with a file that does not exist, in a directory that does"),
        other => other.into(),
    }
}
