//! `segno du`: what takes room on the disk.

use clap::Args as ClapArgs;
use segno_engine::usage::Locations;

use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

/// How many sessions and projects are shown unless somebody says otherwise.
const ROWS: usize = 10;

/// Show what uses disk space
///
/// The store, snapshots, captures, spool, copies, archives and kept transcripts; then the largest projects and sessions.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno du --limit 30")]
pub struct Args {
    /// Show at most this many projects and sessions; --json has all of them
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Where things of this user are that belong to no single session.
pub(super) fn locations(context: &Context) -> Outcome<Locations> {
    let store = context.store_location()?;
    let data = &context.paths.data;
    Ok(Locations { store, archive: data.join("archive"), backups: data.join("backup") })
}

/// Runs `segno du`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let usage = ctx.engine.disk_usage(&locations(context)?)?;
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&usage);
    }
    let mut table = Table::new([Column::left("").elastic(), Column::right("")]).without_titles();
    for (what, bytes) in [
        ("store", usage.store),
        ("snapshots", usage.snapshots),
        ("captures of running agents", usage.captures),
        ("spool", usage.spool),
        ("copies of the store", usage.backups),
        ("archive", usage.archive),
        ("transcripts of agents (archive.native)", usage.transcripts),
        ("set aside as damaged", usage.quarantine),
        ("together", usage.total),
    ] {
        if bytes > 0 {
            table.row([what.to_owned(), units::bytes(bytes)]);
        }
    }
    printer.table(&table)?;
    let most = args.limit.unwrap_or(ROWS);
    let mut table = Table::new([
        Column::left("project").elastic(),
        Column::right("sessions"),
        Column::right("in the store"),
        Column::right("snapshots"),
    ]);
    for project in usage.projects.iter().take(most) {
        table.row([
            project.project.clone(),
            project.sessions.to_string(),
            units::bytes(project.store),
            units::bytes(project.snapshots),
        ]);
    }
    if usage.other_snapshots > 0 {
        table.row([
            "(projects without a session here)".to_owned(),
            "0".to_owned(),
            units::bytes(0),
            units::bytes(usage.other_snapshots),
        ]);
    }
    printer.data("")?;
    printer.table(&table)?;
    let mut table = Table::new([
        Column::left("session"),
        Column::right("events"),
        Column::right("journal"),
        Column::right("lists"),
        Column::right("long texts"),
        Column::left("project").elastic(),
    ]);
    for session in usage.sessions.iter().take(most) {
        table.row([
            short(session.session),
            units::count(session.events),
            units::bytes(session.journal),
            units::bytes(session.lists),
            units::bytes(session.texts),
            session.project.clone(),
        ]);
    }
    printer.data("")?;
    printer.table(&table)?;
    printer.hint("segno cleanup --dry-run   segno checkpoint gc");
    Ok(())
}
