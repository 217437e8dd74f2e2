//! `segno cleanup`: removes old sessions.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use serde_json::json;

use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::Outcome;
use crate::files;
use crate::files::Access;
use crate::files::Links;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

/// Remove old finished sessions
///
/// Of all projects, or of the one that --project names. Open and pinned sessions are never removed. Each is written to the archive
/// and read back from there before it is removed (cleanup.archive); the snapshots of its checkpoints go with it. Its agents' transcripts that are kept (archive.native)
/// stay if it is archived, and go if it is not. Asks first on a terminal; without one, --yes is needed.
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
    let ctx = CommandContext::open(context)?;
    let config = &context.config()?.cleanup;
    let days = args.days.unwrap_or(config.days);
    let keep = Some(args.keep.unwrap_or(config.keep)).filter(|keep| *keep > 0);
    let only = context.global.project.as_ref().map(|_| context.project.root.as_path());
    let removals = ctx.engine.old_sessions(days, keep.map(|keep| keep as usize), only)?;
    let printer = &context.printer;
    if removals.is_empty() {
        if printer.is_json() {
            return printer.json(&json!({ "dry_run": args.dry_run, "removed": [], "sessions": [] }));
        }
        printer.talk("nothing to clean up");
        return Ok(());
    }
    let projects: BTreeSet<&str> = removals.iter().map(|removal| removal.summary.project.as_str()).collect();
    let elsewhere = projects.iter().any(|project| Path::new(project) != context.project.root);
    if !printer.is_json() {
        let mut table = Table::new([
            Column::left("session"),
            Column::left("topic").elastic(),
            Column::left("why"),
            Column::left(if elsewhere { "project" } else { "" }),
        ]);
        for removal in &removals {
            let summary = &removal.summary;
            let project = if elsewhere { summary.project.clone() } else { String::new() };
            table.row([
                short(summary.session_id),
                summary.topic.clone().unwrap_or_default(),
                removal.why.clone(),
                project,
            ]);
        }
        printer.table(&table)?;
    }
    let sessions = units::things(removals.len() as u64, "session");
    let of = match (elsewhere, projects.len()) {
        (false, _) => String::new(),
        (true, 1) => " of another project".to_owned(),
        (true, many) => format!(" of {many} projects"),
    };
    if !args.dry_run {
        super::rm::confirm(context, args.yes, "removed", &format!("remove {sessions}{of}?"))?;
    }
    let archive = context.paths.data.join("archive");
    let mut removed = Vec::new();
    let mut refused = None;
    let mut trees = BTreeMap::new();
    for removal in &removals {
        let id = removal.summary.session_id;
        if !args.dry_run {
            if let Ok(loaded) = ctx.engine.load(id) {
                trees.entry(loaded.state.project.path.clone()).or_insert(loaded.state);
            }
            match remove(&ctx, id, config.archive.then_some(&archive)) {
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
    let given_back = give_back(&ctx, trees.values());
    if printer.is_json() {
        let sessions: Vec<_> = removals
            .iter()
            .filter(|removal| removed.contains(&removal.summary.session_id))
            .map(|removal| {
                let summary = &removal.summary;
                json!({ "session_id": summary.session_id, "project": summary.project, "why": removal.why })
            })
            .collect();
        printer.json(&json!({
            "dry_run": args.dry_run, "removed": removed, "sessions": sessions, "snapshot_bytes": given_back,
        }))?;
    } else if args.dry_run {
        printer.talk(format!("{sessions}{of} would be removed"));
    } else if !removed.is_empty() {
        let kept =
            if config.archive { format!(", archived in {}", archive.display()) } else { String::new() };
        let room = match given_back {
            0 => String::new(),
            bytes => format!(", {} of snapshots given back", units::bytes(bytes)),
        };
        printer.talk(format!("removed {}{of}{kept}{room}", units::things(removed.len() as u64, "session")));
    }
    ctx.finish();
    refused.map_or(Ok(()), |error| Err(error.into()))
}

/// The file that says when it was last cleaned up by itself.
const LAST: &str = "cleanup.last";
/// How long that is enough, in seconds.
const DAY: i64 = 86_400;

/// How old sessions are removed by themselves, and beyond how many; none if they are not.
fn preset(
    config: &crate::config::Cleanup,
    theirs: Option<&crate::config::ultra_create::SessionConfig>,
) -> Option<(u32, Option<usize>)> {
    match config.auto.as_str() {
        "on" => Some((config.days, Some(config.keep as usize).filter(|keep| *keep > 0))),
        "agentforge" => Some((30, None)),
        // Its own file may say something else.
        "ultra-create" => {
            let theirs = theirs.map(|found| found.config.clone()).unwrap_or_default();
            Some((theirs.prune_days, Some(theirs.max_sessions).filter(|keep| *keep > 0)))
        }
        _ => None,
    }
}

/// Cleans up by itself, if the user wants that: once a day, when a command has given its answer. Each session is
/// archived first; what cannot be done now is done another day.
pub(crate) fn by_itself(ctx: &CommandContext<'_>) {
    let context = ctx.context;
    let theirs = context.loaded().ok().and_then(|loaded| loaded.session_config.as_ref());
    let preset = context.config().ok().and_then(|config| preset(&config.cleanup, theirs));
    let Some((days, keep)) = preset else { return };
    // An agent removes nothing.
    if context.environment.non_empty(crate::config::env::RUN).is_some() {
        return;
    }
    // Of several commands at once, one does it.
    if !is_due(context).unwrap_or(false) {
        return;
    }
    let archive = context.paths.data.join("archive");
    let (mut removed, mut trees, mut kept) = (0, BTreeMap::new(), Vec::new());
    for removal in ctx.engine.old_sessions(days, keep, None).unwrap_or_default() {
        let id = removal.summary.session_id;
        let state = ctx.engine.load(id).ok().map(|loaded| loaded.state);
        match remove(ctx, id, Some(&archive)) {
            Ok(()) => {
                removed += 1;
                if let Some(state) = state {
                    trees.entry(state.project.path.clone()).or_insert(state);
                }
            }
            // Somebody else removed it meanwhile.
            Err(segno_engine::Error::SessionNotFound { .. }) => {}
            Err(why) => kept.push((id, why)),
        }
    }
    give_back(ctx, trees.values());
    if let Some((id, why)) = kept.first() {
        let sessions = units::things(kept.len() as u64, "old session");
        let all = if kept.len() > 1 { format!("{}: {why}", short(*id)) } else { why.to_string() };
        context.printer.warn_with(
            format!("{sessions} could not be cleaned up (cleanup.auto), and stay as they are: {all}"),
            &["segno cleanup --dry-run".to_owned()],
        );
    }
    if removed > 0 {
        let sessions = units::things(removed, "old session");
        context
            .printer
            .talk(format!("cleaned up {sessions} (cleanup.auto), archived in {}", archive.display()));
    }
}

/// Whether a day has gone by since it was last cleaned up by itself; then it counts as done from now on. Who cannot say that
/// it was done must not do it again and again.
fn is_due(context: &Context) -> std::io::Result<bool> {
    let folder = files::open_dir(&context.paths.state)?;
    if !files::lock(&folder) {
        return Ok(false);
    }
    let path = context.paths.state.join(LAST);
    let now = context.now.as_second();
    let last = files::read_bounded(&path, 64, Links::Refuse).ok().flatten();
    let last = last.and_then(|text| String::from_utf8(text).ok()?.trim().parse::<i64>().ok());
    if last.is_some_and(|last| (0..DAY).contains(&(now - last))) {
        return Ok(false);
    }
    files::replace(&path, now.to_string().as_bytes(), Access::Private)?;
    Ok(true)
}

/// Drops the snapshots that no checkpoint speaks of any more. What cannot be done now is done by the next clean-up.
fn give_back<'a>(ctx: &CommandContext<'_>, states: impl Iterator<Item = &'a State>) -> u64 {
    let mut bytes = 0;
    for state in states {
        match ctx.engine.collect_snapshots(state) {
            Ok(collected) => bytes += collected.before.saturating_sub(collected.after),
            Err(segno_engine::Error::NoTree(_)) => {}
            Err(why) => {
                let text = format!("snapshots of {} were not looked at: {why}", state.project.path);
                ctx.context.printer.detail(1, text);
            }
        }
    }
    bytes
}

fn remove(
    ctx: &CommandContext<'_>,
    id: SessionId,
    archive: Option<&PathBuf>,
) -> Result<(), segno_engine::Error> {
    match archive {
        Some(folder) => segno_engine::transfer::archive_and_remove(&ctx.engine, id, folder).map(drop),
        None => ctx.engine.delete(id).map(drop),
    }
}
