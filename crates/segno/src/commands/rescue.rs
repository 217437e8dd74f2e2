//! `segno rescue`: puts transcripts back that an agent deleted or that were torn.

use clap::Args as ClapArgs;
use segno_engine::history::Rescue;
use segno_engine::history::RescueWish;
use segno_engine::history::Standing;
use serde_json::json;

use super::args::SessionRef;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::units;

/// Put back transcripts that an agent deleted
///
/// With `archive.native = true`, `segno import` keeps the transcripts of Claude Code, Codex and Gemini CLI byte by byte. This puts
/// those back that are gone or torn, where they were, so that their agent can resume them. A file that is there is replaced only
/// if everything readable in it is in what takes its place, never while somebody is at work in it, and it is kept beside under
/// another name. One that is whole and merely shorter than what is kept is put back only if you name it.
///
/// opencode keeps its conversations in a database, of which segno keeps no copy: `opencode export ID` and `opencode import FILE`
/// are its own way.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno rescue --all --dry-run\n  segno rescue --all\n  segno rescue 804211"
)]
pub struct Args {
    /// A session, or the agent's own id of a conversation
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub id: Option<SessionRef>,
    /// Every transcript that is kept
    #[arg(long)]
    pub all: bool,
    /// Only say what would be put back
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs `segno rescue`.
///
/// # Errors
/// If something that is gone or torn could not be put back.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let mut wish = RescueWish { dry_run: args.dry_run, ..RescueWish::default() };
    let mut found = Vec::new();
    if let Some(id) = &args.id {
        wish.conversation = Some(id.as_str().to_owned());
        found = ctx.engine.rescue(&wish)?;
        if found.is_empty() {
            wish.conversation = None;
            wish.session = Some(ctx.named(id)?);
        }
    }
    if found.is_empty() {
        found = ctx.engine.rescue(&wish)?;
    }
    let printer = &context.printer;
    let failed = found.iter().filter(|one| !args.dry_run && is_lost(one) && !one.done).count();
    if printer.is_json() {
        printer.json(&json!({ "dry_run": args.dry_run, "transcripts": found }))?;
    } else {
        show(context, args, &found)?;
    }
    ctx.finish();
    if found.is_empty() {
        let error = CommandError::failure("not_kept", "no transcript of it is kept");
        return Err(
            error.hint("segno config set archive.native true   and segno import keeps them from now on")
        );
    }
    match failed {
        0 => Ok(()),
        count => {
            let transcripts = units::things(count as u64, "transcript");
            let error = CommandError::failure("not_rescued", format!("{transcripts} could not be put back"));
            Err(error.hint("segno doctor   says what is damaged; nothing was lost by trying"))
        }
    }
}

/// Whether something is missing that could be wanted back.
fn is_lost(one: &Rescue) -> bool {
    matches!(one.standing, Standing::Gone | Standing::Torn | Standing::Damaged)
}

fn show(context: &Context, args: &Args, found: &[Rescue]) -> Outcome {
    let printer = &context.printer;
    for one in found.iter().filter(|one| one.standing != Standing::Whole || one.why.is_some()) {
        printer.data(line(one, args.dry_run))?;
        if let Some(beside) = &one.beside {
            printer.talk(format!("  what was there is kept as {}", beside.display()));
        }
        if let Some(why) = &one.why {
            printer.warn(why.clone());
        }
    }
    let whole = found.iter().filter(|one| one.standing == Standing::Whole).count() as u64;
    let done = found.iter().filter(|one| one.done).count() as u64;
    let summary = match (args.dry_run, done) {
        (true, _) => {
            let wanted = found.iter().filter(|one| matches!(one.standing, Standing::Gone | Standing::Torn));
            format!("{} would be put back", units::things(wanted.count() as u64, "transcript"))
        }
        (false, done) => format!("{} put back", units::things(done, "transcript")),
    };
    printer.talk(format!("{summary}, {whole} as they should be"));
    if found.iter().any(|one| one.standing == Standing::Shorter && !one.done) {
        printer.hint("segno rescue ID   puts one back that is shorter than what is kept");
    }
    if done > 0 {
        printer.hint("segno resume ID   goes on with it");
    }
    Ok(())
}

fn line(one: &Rescue, dry_run: bool) -> String {
    let what = match one.standing {
        Standing::Whole => "as it should be".to_owned(),
        Standing::Gone => "deleted".to_owned(),
        Standing::Torn => format!("torn, {} missing", units::things(one.missing, "line")),
        Standing::Shorter => format!("whole, but {} fewer than are kept", units::things(one.missing, "line")),
        Standing::Differs => "damaged, and not all of it is kept: left as it is".to_owned(),
        Standing::Elsewhere => "kept for another place: left alone".to_owned(),
        Standing::AtWork => "somebody is at work in it: left alone".to_owned(),
        Standing::Damaged => "what is kept of it cannot be read".to_owned(),
    };
    let done = match (one.done, dry_run, one.standing) {
        (true, ..) => format!("   put back, {}", units::things(one.lines, "line")),
        (false, true, Standing::Gone | Standing::Torn) => "   would be put back".to_owned(),
        _ => String::new(),
    };
    format!("{:<9} {}   {what}{done}", one.agent, one.path.display())
}
