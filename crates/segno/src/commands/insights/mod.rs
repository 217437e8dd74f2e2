//! `segno insights`: what sessions have in common, and what would help.

mod report;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use segno_engine::core::insights::Finding;
use segno_engine::core::insights::FindingKind;
use segno_engine::core::insights::Numbers;
use segno_engine::insights::Found;
use segno_engine::insights::InsightsWish;

use super::args::SessionRef;
use super::args::age;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// Show what holds work up, where time and money go, and what would help
///
/// Looks at the sessions of this project, at those that are named, or at all, and says what stands out: errors that come again,
/// denied calls, questions, repetitions, breakers, limits, budgets, crashes, calls that fail most, files that are edited again
/// and again, phases that repeat, resumes that came to nothing, sessions without checkpoints, and where the money went. Each
/// finding names sessions and events where it can be seen, and something that you can do. Everything follows from the record by
/// fixed rules: no model is asked, and nothing is changed.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno insights\n  segno insights --everywhere --since 30d\n  segno insights last\n  segno insights --everywhere --markdown report.md"
)]
pub struct Args {
    /// Sessions; those of the project if none is named
    #[arg(value_name = "ID")]
    pub ids: Vec<SessionRef>,
    /// Sessions of all projects
    #[arg(long, conflicts_with = "ids")]
    pub everywhere: bool,
    /// Only what happened within this time, like 12h or 7d
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub since: Option<Duration>,
    /// Show at most this many findings of each kind, up to 10
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub limit: usize,
    /// Write a report with pictures to this file; the pictures are SVG files beside it
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Replace files that are there already
    #[arg(long, requires = "markdown")]
    pub force: bool,
}

/// Runs `segno insights`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let mut sessions = Vec::new();
    for named in args.ids.iter().chain(&context.global.session) {
        let session = ctx.named(named)?;
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    let project = (!args.everywhere).then(|| context.project.root.display().to_string());
    let since = args
        .since
        .map(|age| ctx.engine.now().plus_seconds(-i64::try_from(age.as_secs()).unwrap_or(i64::MAX)));
    let found = ctx.engine.insights(&InsightsWish { sessions, project, since })?;
    if let Some(path) = &args.markdown {
        let written = report::write(&found, path, args.force)?;
        if context.printer.is_json() {
            return context.printer.json(&serde_json::json!({ "files": written }));
        }
        for file in written {
            context.printer.talk(format!("written: {}", file.display()));
        }
        tell(context, &found);
        ctx.finish();
        return Ok(());
    }
    if context.printer.is_json() {
        return context.printer.json(&found);
    }
    show(&ctx, &found, args)?;
    ctx.finish();
    Ok(())
}

fn show(ctx: &CommandContext<'_>, found: &Found, args: &Args) -> Outcome {
    let printer = &ctx.context.printer;
    if found.insights.numbers.sessions == 0 {
        let where_ = if args.everywhere { "" } else { " in this project" };
        printer.talk(format!("there are no sessions{where_}"));
        printer.hint(if args.everywhere { "segno import" } else { "segno insights --everywhere" });
        return Ok(());
    }
    for line in numbers(&found.insights.numbers) {
        printer.data(line)?;
    }
    for kind in FindingKind::ALL {
        let all: Vec<&Finding> = found.insights.findings.iter().filter(|one| one.kind == kind).collect();
        if all.is_empty() {
            continue;
        }
        printer.data("")?;
        printer.data(Text::new().painted(Meaning::Strong, kind.title()))?;
        for one in all.iter().take(args.limit) {
            finding(ctx, one)?;
        }
        if all.len() > args.limit {
            let more = units::things((all.len() - args.limit) as u64, "more finding");
            printer.data(Text::new().painted(Meaning::Dim, format!("  {more}: --limit 10")))?;
        }
    }
    if found.insights.findings.is_empty() {
        printer.talk("nothing stands out");
    }
    tell(ctx.context, found);
    Ok(())
}

fn tell(context: &Context, found: &Found) {
    for notice in &found.notices {
        context.printer.warn(notice.clone());
    }
    if let Some(day) = &found.prices_as_of {
        context.printer.talk(format!("money that no agent told is by list prices of {day}"));
    }
}

fn finding(ctx: &CommandContext<'_>, one: &Finding) -> Outcome {
    let printer = &ctx.context.printer;
    let what = match one.kind {
        FindingKind::Checkpoint => Text::new(),
        _ => Text::new().plain(one.what.clone()).painted(Meaning::Dim, "   "),
    };
    printer.data(Text::new().plain("  ").then(what).painted(Meaning::Dim, one.words.clone()))?;
    for evidence in &one.evidence {
        // A history begins at a whole second: the usual end of its id may be that of many.
        let ending = ctx.engine.ending(evidence.session_id);
        let look = evidence.look.replace(&evidence.session_id.to_string(), &ending);
        printer.data(
            Text::new()
                .painted(Meaning::Strong, format!("      {look}"))
                .painted(Meaning::Dim, format!("   {}", evidence.text)),
        )?;
    }
    if let Some(suggestion) = &one.suggestion {
        printer.data(Text::new().plain(format!("      → {}", suggestion.text)))?;
        if let Some(line) = &suggestion.line {
            printer.data(Text::new().plain(format!("        {line}")))?;
        }
    }
    Ok(())
}

/// Everything in numbers, in a few lines.
pub(crate) fn numbers(numbers: &Numbers) -> Vec<String> {
    let time = |ms: u64| units::duration(Duration::from_millis(ms));
    let calls = numbers.calls;
    let mut lines = vec![format!(
        "{}   {}, {} of {} that ended completed   {}: {} failed, {} denied, {} in doubt   {}",
        units::things(numbers.sessions, "session"),
        units::things(numbers.runs, "run"),
        numbers.runs_completed,
        numbers.runs_ended,
        units::things(calls.total, "call"),
        calls.failed,
        calls.denied,
        calls.in_doubt,
        units::things(numbers.errors, "error"),
    )];
    let bad = match numbers.micros_of_bad_ends {
        0 => String::new(),
        micros => format!(", {} of it in runs that ended badly", units::dollars(micros)),
    };
    let money = units::money(numbers.micros, numbers.unpriced_tokens);
    lines.push(format!("used {}   {money}{bad}", units::tokens(numbers.tokens)));
    let t = numbers.time;
    lines.push(format!(
        "time: {} in runs, {} in calls, {} waiting for limits, {} waiting for answers",
        time(t.runs_ms),
        time(t.calls_ms),
        time(t.limits_ms),
        time(t.questions_ms)
    ));
    let resumes = match numbers.resumes.percent {
        Some(percent) => format!(
            "resumes: {} of {} worked ({percent} %)",
            numbers.resumes.worked,
            numbers.resumes.worked + numbers.resumes.failed
        ),
        None => "resumes: none that says something".to_owned(),
    };
    let each = numbers.checkpoints.per_session_hundredths;
    let checkpoints = match numbers.checkpoints.sessions {
        0 => String::new(),
        _ => format!("   checkpoints: {}.{} a session", each / 100, each % 100 / 10),
    };
    lines.push(format!("{resumes}{checkpoints}"));
    lines
}
