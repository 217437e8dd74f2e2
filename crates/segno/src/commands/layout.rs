//! `segno layout`: the files that other session managers would keep for a session.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::layout::Checked;
use segno_engine::layout::Family;
use segno_engine::layout::Standing;
use serde_json::Value;
use serde_json::json;

use super::args::OneSession;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

/// Show or write the files of other session managers for a session
///
/// Tools that read the files of a PRP loop, AgentForge, go-team or ultra-create can go on reading them: the families that
/// layout.families names are kept current while segno records. The record itself is in the store; these files are copies.
/// Files of another tool's session are never replaced; `segno import` takes such a session over.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:\n  segno layout list\n  segno layout write last --family prp")]
pub struct Args {
    /// What to do; without it, lists the families
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with the files.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// List the families, where their files are, and whether they are current
    List(Which),
    /// Write the files now
    Write(Which),
    /// Say whether the files are as they would be written now; exit 1 if not
    Check(Which),
    /// Show what writing them would change
    Diff(Which),
    /// Remove the files that are this session's own
    Remove(Which),
}

/// Whose files, and of which family.
#[derive(ClapArgs, Clone, Debug, Default)]
pub struct Which {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Only this family: prp, agentforge, go-team or ultra-create (default: layout.families); may be repeated
    #[arg(long, value_name = "NAME", value_parser = family)]
    pub family: Vec<Family>,
}

fn family(text: &str) -> Result<Family, String> {
    let family: Family = text.parse()?;
    if family.is_written() { Ok(family) } else { Err(format!("{} is only read", family.title())) }
}

impl Which {
    /// The families that are meant; all that can be written if nobody says.
    fn families(&self, context: &Context, all: bool) -> Outcome<Vec<Family>> {
        if !self.family.is_empty() {
            return Ok(self.family.clone());
        }
        if all {
            return Ok(Family::ALL.into_iter().filter(|family| family.is_written()).collect());
        }
        let families = context.layout()?.families;
        if families.is_empty() {
            return Err(CommandError::usage("no family is named, and layout.families names none")
                .hint("--family prp   (or: segno config set layout.families '[\"prp\"]')"));
        }
        Ok(families)
    }
}

/// Runs `segno layout`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None => list(context, &Which::default()),
        Some(Command::List(which)) => list(context, which),
        Some(Command::Write(which)) => write(context, which),
        Some(Command::Check(which)) => check(context, which),
        Some(Command::Diff(which)) => diff(context, which),
        Some(Command::Remove(which)) => remove(context, which),
    }
}

fn the_state(ctx: &CommandContext<'_>, which: &Which) -> Outcome<State> {
    ctx.load(ctx.session_to_read(which.session.id.as_ref())?)
}

fn checked(context: &Context, which: &Which, all: bool) -> Outcome<(State, Vec<Checked>)> {
    // Looking answers nobody.
    let ctx = CommandContext::open_to_list(context)?;
    let state = the_state(&ctx, which)?;
    let mut each = Vec::new();
    for family in which.families(context, all)? {
        each.push(ctx.engine.check_layout(family, &state)?);
    }
    Ok((state, each))
}

fn words(standing: &Standing) -> (&'static str, Option<&str>) {
    match standing {
        Standing::Current => ("current", None),
        Standing::Differs => ("differs", None),
        Standing::Missing => ("not there", None),
        Standing::NotOurs(whose) => ("not ours", Some(whose)),
        Standing::Unfit(why) => ("cannot be written", Some(why)),
        Standing::LeftAlone(why) => ("left alone", Some(why)),
    }
}

/// Whether a family is kept current: one that another program writes again and again is not.
fn is_kept(one: &Checked, kept: &[Family]) -> bool {
    kept.contains(&one.family) && !matches!(one.standing, Standing::LeftAlone(_))
}

fn checked_json(state: &State, each: &[Checked], kept: &[Family]) -> Value {
    let families: Vec<Value> = each
        .iter()
        .map(|one| {
            let (standing, why) = words(&one.standing);
            json!({
                "family": one.family.as_str(),
                "kept": is_kept(one, kept),
                "folder": one.folder,
                "standing": standing,
                "why": why,
                "differ": one.changes.iter().map(|(name, _, _)| name).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "session_id": state.session_id, "families": families })
}

fn list(context: &Context, which: &Which) -> Outcome {
    let (state, each) = checked(context, which, true)?;
    let kept = context.layout()?.families;
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&checked_json(&state, &each, &kept));
    }
    let mut table = Table::new([
        Column::left("family"),
        Column::left("kept current"),
        Column::left("files"),
        Column::left("folder").elastic(),
    ]);
    for one in &each {
        let (standing, why) = words(&one.standing);
        let standing = why.map_or_else(|| standing.to_owned(), |why| format!("{standing}: {why}"));
        let kept = if is_kept(one, &kept) { "yes" } else { "no" };
        table.row([one.family.to_string(), kept.to_owned(), standing, one.folder.display().to_string()]);
    }
    printer.table(&table)
}

fn write(context: &Context, which: &Which) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let state = the_state(&ctx, which)?;
    let mut all = Vec::new();
    for family in which.families(context, false)? {
        let written = ctx.engine.write_layout_anew(family, &state)?;
        let (changed, notices) = (written.changed, written.notices);
        for notice in &notices {
            context.printer.warn(notice.clone());
        }
        if notices.is_empty() {
            let files = units::things(changed.len() as u64, "file");
            context.printer.talk(format!("{family}: {files} written for {}", short(state.session_id)));
        }
        all.push(json!({ "family": family.as_str(), "written": changed, "notices": notices }));
    }
    if context.printer.is_json() {
        context.printer.json(&json!({ "session_id": state.session_id, "families": all }))?;
    }
    ctx.finish();
    Ok(())
}

fn check(context: &Context, which: &Which) -> Outcome {
    let (state, each) = checked(context, which, false)?;
    let printer = &context.printer;
    if printer.is_json() {
        printer.json(&checked_json(&state, &each, &context.layout()?.families))?;
    } else {
        for one in &each {
            let (standing, why) = words(&one.standing);
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            printer.data(format!("{}   {standing}{why}   {}", one.family, one.folder.display()))?;
            for (name, there, _) in &one.changes {
                let how = if there.is_some() { "differs" } else { "is not there" };
                printer.data(format!("  {name} {how}"))?;
            }
        }
    }
    let wrong = each.iter().filter(|one| one.standing != Standing::Current).count() as u64;
    if wrong == 0 {
        return Ok(());
    }
    let what = if wrong == 1 { "one family is" } else { "several families are" };
    Err(CommandError::new(
        ExitCode::Failure,
        "layout_differs",
        format!("{what} not current; nothing was changed"),
    )
    .hint("segno layout diff   (or: segno layout write)"))
}

fn diff(context: &Context, which: &Which) -> Outcome {
    let (state, each) = checked(context, which, false)?;
    let printer = &context.printer;
    if printer.is_json() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let files = each.iter().flat_map(|one| {
            one.changes.iter().map(|(name, there, wanted)| {
                json!({
                    "family": one.family.as_str(), "file": name,
                    "there": there.as_deref().map(text), "would_be": text(wanted),
                })
            })
        });
        let files: Vec<Value> = files.collect();
        return printer.json(&json!({ "session_id": state.session_id, "files": files }));
    }
    for (name, there, wanted) in each.iter().flat_map(|one| &one.changes) {
        printer.data(format!("--- {name}"))?;
        if name.ends_with(".gz") {
            printer.data("  (compressed)")?;
            continue;
        }
        let before = there.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let after = String::from_utf8_lossy(wanted);
        for line in changed_lines(&before, &after) {
            printer.data(line)?;
        }
    }
    Ok(())
}

/// The lines between the equal beginning and the equal end of two texts.
fn changed_lines(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[same..], &after[same..]);
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    let gone = before[..before.len() - tail].iter().map(|line| format!("- {line}"));
    let new = after[..after.len() - tail].iter().map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

/// A session that is named by its whole id and is not in the store: files may show it all the same.
fn gone(ctx: &CommandContext<'_>, which: &Which) -> Option<SessionId> {
    let id: SessionId = which.session.id.as_ref()?.as_str().parse().ok()?;
    ctx.engine.load(id).is_err().then_some(id)
}

fn remove(context: &Context, which: &Which) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let families = which.families(context, false)?;
    let (session_id, removed) = match gone(&ctx, which) {
        Some(id) => {
            let mut removed = Vec::new();
            for family in &families {
                removed.extend(ctx.engine.remove_shown(*family, &context.project.root, id)?);
            }
            (id, removed)
        }
        None => {
            let state = the_state(&ctx, which)?;
            (state.session_id, remove_files(&ctx, &state, &families)?)
        }
    };
    if context.printer.is_json() {
        context.printer.json(&json!({ "session_id": session_id, "removed": removed }))?;
    } else {
        context.printer.talk(format!("{} removed", units::things(removed.len() as u64, "file")));
    }
    ctx.finish();
    Ok(())
}

/// Removes the files of families that are a session's own; answers which.
pub(super) fn remove_files(
    ctx: &CommandContext<'_>,
    state: &State,
    families: &[Family],
) -> Outcome<Vec<String>> {
    let mut removed = Vec::new();
    for family in families {
        removed.extend(ctx.engine.remove_layout(*family, state)?);
    }
    Ok(removed)
}
