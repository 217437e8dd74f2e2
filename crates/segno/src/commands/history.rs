//! `segno import` of the histories that agents keep themselves.

use std::cell::Cell;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use segno_engine::Engine;
use segno_engine::agents::CODING;
use segno_engine::history::AgentImport;
use segno_engine::history::AgentReport;
use segno_engine::history::HistoryWish;
use segno_engine::layout;
use serde_json::json;

use super::export::ImportArgs;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::style::Symbol;
use crate::output::units;

/// What makes an import keep transcripts.
const KEEP: &str = "segno config set archive.native true";
/// How often agents' files are looked at by who watches.
const WATCH: Duration = Duration::from_secs(2);
/// How often progress is shown.
const PACE: Duration = Duration::from_millis(100);

/// What is to be taken in of agents' own histories; none if the arguments name files of another kind.
pub(super) fn wish(args: &ImportArgs) -> Outcome<Option<Vec<HistoryWish>>> {
    let is_agent =
        |path: &&PathBuf| path.to_str().is_some_and(|name| CODING.contains(&name)) && !path.exists();
    let agents: Vec<String> =
        args.files.iter().filter(is_agent).map(|path| path.display().to_string()).collect();
    let paths: Vec<&PathBuf> = args.files.iter().filter(|path| !is_agent(path)).collect();
    if paths.is_empty() {
        return Ok(Some(vec![HistoryWish { agents, path: None }]));
    }
    let is_ours = |path: &Path| {
        let ending = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        let may_be = path.is_dir() || matches!(ending, "jsonl" | "db");
        may_be && !layout::is_foreign(path) && Engine::is_history(path)
    };
    let count = paths.iter().filter(|path| is_ours(path)).count();
    if count == 0 && agents.is_empty() {
        return Ok(None);
    }
    if count < paths.len() {
        let other = paths.iter().find(|path| !is_ours(path)).map(|path| path.display().to_string());
        let why = format!("{} is no transcript of an agent", other.unwrap_or_default());
        return Err(CommandError::usage(why).hint("import files of different kinds one after the other"));
    }
    let wish = |path: &PathBuf| HistoryWish { agents: agents.clone(), path: Some(path.clone()) };
    Ok(Some(paths.into_iter().map(wish).collect()))
}

/// What one round of an import came to.
#[derive(Default)]
struct Round {
    imports: Vec<AgentImport>,
    taken: Duration,
    indexed: Duration,
}

impl Round {
    /// Whether anything is worth telling of one round of many.
    fn is_news(&self) -> bool {
        self.imports.iter().any(|import| import.new_sessions + import.grown + import.kept > 0)
    }

    fn took(&self) -> serde_json::Value {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        json!({ "import_ms": millis(self.taken), "index_ms": millis(self.indexed) })
    }
}

/// Runs `segno import` of histories.
///
/// # Errors
/// If nothing can be recorded.
pub(super) fn run(context: &Context, args: &ImportArgs, wishes: Vec<HistoryWish>) -> Outcome {
    let ctx = CommandContext::open_or_make(context)?;
    let agents: Vec<String> = wishes.iter().flat_map(|wish| wish.agents.clone()).collect();
    let round = if args.report { Round::default() } else { round(&ctx, &wishes)? };
    let at_home = wishes.iter().all(|wish| wish.path.is_none());
    let reports = if at_home { ctx.engine.history_report(&agents)? } else { Vec::new() };
    let (imports, printer) = (&round.imports, &context.printer);
    if args.watch {
        tell_round(context, &round, &reports, true)?;
        printer.talk("watching; Ctrl-C ends it, and nothing is lost by that");
        loop {
            std::thread::sleep(WATCH);
            let round = self::round(&ctx, &wishes)?;
            tell_round(context, &round, &[], false)?;
        }
    }
    if printer.is_json() {
        printer.json(&json!({ "agents": imports, "report": reports, "took": round.took() }))?;
    } else {
        tell(context, args.report, imports, &reports)?;
    }
    ctx.finish();
    Ok(())
}

/// Tells of the first round of many, and of others if there is news.
fn tell_round(context: &Context, round: &Round, reports: &[AgentReport], is_first: bool) -> Outcome {
    let printer = &context.printer;
    if printer.is_json() {
        if is_first || round.is_news() {
            let line = json!({ "agents": round.imports, "report": reports, "took": round.took() });
            printer.json_line(&line)?;
        }
    } else if is_first {
        tell(context, false, &round.imports, reports)?;
    } else {
        let changed = |import: &&AgentImport| import.new_sessions + import.grown + import.kept > 0;
        for import in round.imports.iter().filter(changed) {
            printer.data(summary(import))?;
        }
    }
    printer.flush()
}

/// Imports what there is, and brings the index up to date.
fn round(ctx: &CommandContext<'_>, wishes: &[HistoryWish]) -> Outcome<Round> {
    let context = ctx.context;
    let (begun, mut round) = (Instant::now(), Round::default());
    let shown = Cell::new(None::<Instant>);
    let due = || {
        let due = context.printer.redraws() && shown.get().is_none_or(|at| at.elapsed() >= PACE);
        if due {
            shown.set(Some(Instant::now()));
        }
        due
    };
    for wish in wishes {
        let imported = ctx.engine.import_history(wish, &mut |progress| {
            if progress.of > 0 && due() {
                let (read, all) = (units::bytes(progress.bytes), units::bytes(progress.of_bytes));
                let line = format!(
                    "{}   {} of {} files   {read} of {all}",
                    progress.agent, progress.done, progress.of
                );
                context.printer.block(&[line.into()]);
            }
        });
        context.printer.clear_status();
        round.imports.extend(imported?);
    }
    round.taken = begun.elapsed();
    ctx.engine.index_all(&mut |done, of| {
        if of > 0 && due() {
            context.printer.block(&[format!("indexing   {done} of {of} sessions").into()]);
        }
    })?;
    round.indexed = begun.elapsed().saturating_sub(round.taken);
    context.printer.clear_status();
    Ok(round)
}

fn tell(context: &Context, only_report: bool, imports: &[AgentImport], reports: &[AgentReport]) -> Outcome {
    let printer = &context.printer;
    let found: Vec<&AgentImport> = imports.iter().filter(|import| import.files > 0).collect();
    if !only_report && found.is_empty() {
        printer.talk(format!("no history of {} was found", CODING.join(", ")));
        printer.hint("segno import PATH   imports from another place");
        return Ok(());
    }
    for import in &found {
        printer.data(summary(import))?;
        for notice in &import.notices {
            printer.warn(notice.clone());
        }
        if let Some(words) = damage(import) {
            printer.talk(words);
        }
    }
    for report in reports {
        printer.data(standing(report))?;
    }
    for setting in reports.iter().filter(|report| report.going.is_some_and(|going| going > 0)) {
        if let Some(words) = &setting.setting {
            printer.hint(format!("{words}   keeps them"));
        }
    }
    let is_kept = reports.iter().any(|report| report.keeping);
    if reports.iter().any(|report| report.kept_and_gone > 0) {
        printer.hint("segno rescue --all --dry-run   says what can be put back");
    }
    if only_report {
        printer.hint("segno import   keeps all of it here");
        if !is_kept && reports.iter().any(|report| report.listed.is_some()) {
            printer.hint(format!("{KEEP}   and segno import keeps their transcripts too, secrets included"));
        }
    } else if found.iter().any(|import| import.new_sessions + import.grown > 0) {
        printer.hint("segno search WORDS   segno ls --all   segno cost --everywhere --by day");
    }
    Ok(())
}

fn summary(import: &AgentImport) -> String {
    let mut words = vec![format!("{:<9}", import.agent)];
    let changed = import.new_sessions + import.grown;
    words.push(match (changed, import.unchanged == import.files) {
        (0, true) => format!("{} as before", units::things(import.files, "file")),
        (0, false) => "nothing new".to_owned(),
        _ => format!("{} new, {} grown", units::things(import.new_sessions, "session"), import.grown),
    });
    let mut also = |count: u64, text: String| {
        if count > 0 {
            words.push(text);
        }
    };
    also(import.events, units::things(import.events, "event"));
    also(import.bytes, format!("{} read", units::bytes(import.bytes)));
    also(import.recorded, format!("{} recorded here before", import.recorded));
    also(
        import.kept,
        format!("{} kept in {}", units::bytes(import.kept_bytes), units::bytes(import.kept_packed)),
    );
    also(import.copied, format!("{} in copies, counted once", units::things(import.copied, "message")));
    also(import.only_prompts, format!("{} of which only the prompts are left", import.only_prompts));
    also(import.removed, format!("{} left out: you removed them", import.removed));
    words.join("   ")
}

/// What agents have deleted, or delete soon, and what of it can be put back.
///
/// # Errors
/// If nothing can be printed.
pub(super) fn show_losses(context: &Context, reports: &[AgentReport]) -> Outcome {
    let printer = &context.printer;
    let palette = printer.palette();
    let mut hints = Vec::new();
    for report in reports {
        let (gone, going) = (report.deleted.unwrap_or(0), report.going.unwrap_or(0));
        if gone + going + report.kept_and_gone == 0 {
            continue;
        }
        let text = Text::new().painted(Meaning::Waiting, palette.symbol(Symbol::Paused));
        let mut words = Vec::new();
        if gone > 0 {
            words.push(format!("{gone} deleted by it"));
        }
        if report.kept_and_gone > 0 {
            words.push(format!("{} of those that it lacks can be put back", report.kept_and_gone));
            hints.push("segno rescue --all --dry-run".to_owned());
        }
        if let Some(days) = report.keeps_days.filter(|_| going > 0) {
            words.push(format!("{going} go within a week (it deletes after {days} days)"));
            if !report.keeping {
                hints.push(format!("{KEEP}   and segno import keeps them"));
            }
            hints.extend(report.setting.as_ref().map(|setting| format!("{setting}   keeps them there")));
        }
        printer.data(text.plain(format!(" {:<12} {}: {}", "transcripts", report.agent, words.join(", "))))?;
    }
    hints.sort();
    hints.dedup();
    hints.into_iter().for_each(|hint| printer.hint(hint));
    Ok(())
}

/// What was damaged, in words.
fn damage(import: &AgentImport) -> Option<String> {
    let damage = import.damage;
    let parts: Vec<String> = [
        (damage.torn, "torn line"),
        (damage.glued, "glued line"),
        (damage.holes, "hole"),
        (damage.oversized, "line over 16 MB"),
        (damage.unfinished, "unfinished last line"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| units::things(count, word))
    .collect();
    (!parts.is_empty())
        .then(|| format!("{}: read around {}; its files are as they were", import.agent, parts.join(", ")))
}

/// How an agent's own history stands, in words.
fn standing(report: &AgentReport) -> String {
    let mut words = vec![format!("{:<9}", report.agent)];
    if let Some(listed) = report.listed {
        words.push(format!("its own list knows {}", units::things(listed, "conversation")));
    }
    words.push(format!("{} left", units::things(report.left, "transcript")));
    if let Some(deleted) = report.deleted.filter(|deleted| *deleted > 0) {
        words.push(format!("{deleted} deleted by it, of which the prompts are left"));
    }
    if report.kept > 0 {
        let gone = match report.kept_and_gone {
            0 => String::new(),
            gone => format!(", {gone} of them deleted there"),
        };
        words.push(format!("{} kept here{gone}", report.kept));
    }
    match (report.going, report.keeps_days) {
        (Some(going), Some(days)) => {
            words.push(format!("{going} go within a week (it deletes after {days} days)"))
        }
        _ => words.push("it deletes none by itself".to_owned()),
    }
    words.join("   ")
}
