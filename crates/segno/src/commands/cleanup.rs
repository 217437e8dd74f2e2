//! `segno cleanup`: removes old sessions.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use segno_engine::core::SessionId;
use serde_json::json;

use crate::context::Context;
use crate::desk::{Desk, short};
use crate::error::Outcome;
use crate::output::table::{Column, Table};
use crate::output::units;

/// Remove old finished sessions
///
/// Open sessions are never removed. Asks first on a terminal; elsewhere --yes is needed.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno cleanup --days 90 --keep 20 --dry-run")]
pub struct Args {
    /// Older than this many days (default: cleanup.days)
    #[arg(long, value_name = "N")]
    pub days: Option<u32>,
    /// Also remove what is beyond this many of the newest (default: cleanup.keep; 0: no such limit)
    #[arg(long, value_name = "N")]
    pub keep: Option<u32>,
    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// Runs `segno cleanup`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let desk = Desk::open(context)?;
    let config = &context.config()?.cleanup;
    let days = args.days.unwrap_or(config.days);
    let keep = Some(args.keep.unwrap_or(config.keep)).filter(|keep| *keep > 0);
    let removals = desk.engine.old_sessions(days, keep.map(|keep| keep as usize), None)?;
    let printer = &context.printer;
    if removals.is_empty() {
        if printer.is_json() {
            return printer.json(&json!({ "dry_run": args.dry_run, "removed": [] }));
        }
        printer.talk("nothing to clean up");
        return Ok(());
    }
    if !printer.is_json() {
        let mut table =
            Table::new([Column::left("session"), Column::left("topic").elastic(), Column::left("why")]);
        for removal in &removals {
            let topic = removal.summary.topic.clone().unwrap_or_default();
            table.row([short(removal.summary.session_id), topic, removal.why.clone()]);
        }
        printer.table(&table)?;
    }
    if !args.dry_run {
        super::rm::confirm(
            context,
            args.yes,
            "removed",
            &format!("remove {}?", units::things(removals.len() as u64, "session")),
        )?;
    }
    let archive = context.paths.data.join("archive");
    let mut removed = Vec::new();
    let mut refused = None;
    for removal in &removals {
        let id = removal.summary.session_id;
        if !args.dry_run {
            match remove(&desk, id, config.archive.then_some(&archive)) {
                // One session that cannot be archived must not keep the others.
                Err(error @ segno_engine::Error::NotArchived { .. }) => {
                    if let Some(earlier) = refused.replace(error) {
                        printer.warn(earlier.to_string());
                    }
                    continue;
                }
                other => other?,
            }
        }
        removed.push(id);
    }
    if printer.is_json() {
        printer.json(&json!({ "dry_run": args.dry_run, "removed": removed }))?;
    } else if args.dry_run {
        printer.talk(format!("{} would be removed", units::things(removed.len() as u64, "session")));
    } else if !removed.is_empty() {
        let kept =
            if config.archive { format!(", archived in {}", archive.display()) } else { String::new() };
        printer.talk(format!("removed {}{kept}", units::things(removed.len() as u64, "session")));
    }
    desk.finish();
    refused.map_or(Ok(()), |error| Err(error.into()))
}

fn remove(desk: &Desk<'_>, id: SessionId, archive: Option<&PathBuf>) -> Result<(), segno_engine::Error> {
    match archive {
        Some(folder) => segno_engine::transfer::archive_and_remove(&desk.engine, id, folder).map(drop),
        None => desk.engine.delete(id).map(drop),
    }
}
