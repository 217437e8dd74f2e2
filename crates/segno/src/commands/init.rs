//! `segno init` and `segno uninit`: hooks in the settings of agents, so that sessions are recorded that nobody here starts.

use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use segno_engine::agents;
use segno_engine::install::Extras;
use segno_engine::install::InstallError;
use segno_engine::install::Installer;
use segno_engine::install::Plan;
use segno_engine::install::Scope;
use serde_json::Value;
use serde_json::json;

use super::rm::confirm;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// Lines of a change that are shown of each file.
const SHOWN: usize = 60;

/// Record every session of your agents, however you start them
///
/// Adds hooks to the settings of Claude Code, Codex, Gemini CLI and opencode: afterwards you go on typing `claude`,
/// `codex`, `gemini` or `opencode` as before. Everything else in the settings stays as it is, and `segno uninit`
/// restores them. Shows the change first and asks. With --project DIR it changes the settings of that project instead
/// of your own. What the other flags add stays until `segno uninit`, even if `segno init` is run again without them.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno init --dry-run\n  segno init claude codex\n  segno init --statusline --commands --mcp"
)]
pub struct InitArgs {
    /// The agents (default: those that are installed)
    #[arg(value_name = "AGENT", value_parser = clap::builder::PossibleValuesParser::new(agents::watched()))]
    pub agents: Vec<String>,
    /// Also have Claude Code show how the session stands, with `segno statusline`; a status line of your own stays
    #[arg(long)]
    pub statusline: bool,
    /// Also register `segno mcp` with each agent, so that it can keep its own session
    #[arg(long)]
    pub mcp: bool,
    /// Also install commands such as /sessions, /checkpoint and /wake in each agent
    #[arg(long)]
    pub commands: bool,
    /// Also add a few lines about segno to the AGENTS.md of the project
    #[arg(long)]
    pub agents_md: bool,
    /// Instead of all that, write a directory with plug-ins for all agents; its README.md says how each takes it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["agents", "user", "project", "statusline", "mcp", "commands", "agents_md"])]
    pub plugin: Option<PathBuf>,
    /// How the settings are changed
    #[command(flatten)]
    pub how: HowArgs,
}

/// Remove the hooks of `segno init` from the settings
///
/// A file that nobody else changed since is restored to the byte; otherwise only what was added is removed. Sessions
/// that were recorded stay.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno uninit gemini")]
pub struct UninitArgs {
    /// The agents (default: all of them)
    #[arg(value_name = "AGENT", value_parser = clap::builder::PossibleValuesParser::new(agents::watched()))]
    pub agents: Vec<String>,
    /// How the settings are changed
    #[command(flatten)]
    pub how: HowArgs,
}

/// How settings are changed.
#[derive(ClapArgs, Clone, Debug)]
pub struct HowArgs {
    /// Change your own settings (the default)
    #[arg(long, conflicts_with = "project")]
    pub user: bool,
    /// Only show what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// Runs `segno init`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn init(context: &Context, args: &InitArgs) -> Outcome {
    let installer = installer(context);
    if let Some(directory) = &args.plugin {
        let here =
            std::env::current_dir().map_err(|why| CommandError::io("there is no current directory", why))?;
        let plan = installer.plan_plugin_directory(&here.join(directory), env!("CARGO_PKG_VERSION"));
        let change = Change {
            done: "written",
            already: "nothing to do: it is installed",
            dry_run: args.how.dry_run,
            yes: args.how.yes,
        };
        apply(context, &installer, vec![plan], &change)?;
        context
            .printer
            .hint(format!("{} says how each agent takes it", directory.join("README.md").display()));
        return Ok(());
    }
    let path = context.environment.get("PATH").unwrap_or_default();
    let is_there = |name: &str| {
        let programs = agents::by_name(name).map(|agent| agent.probe().programs).unwrap_or_default();
        installer.has_folder(name) || programs.iter().any(|program| on_path(path, program).is_some())
    };
    let chosen: Vec<&str> = match args.agents.is_empty() {
        true => agents::watched().into_iter().filter(|name| is_there(name)).collect(),
        false => unique(&args.agents),
    };
    if chosen.is_empty() {
        let message = "no agent was found: neither a program on the path nor a folder of settings";
        return Err(CommandError::new(ExitCode::Environment, "agent_missing", message)
            .hint(format!("name the agents: segno init {}", agents::watched().join(" "))));
    }
    let has_line = |name: &&str| {
        agents::by_name(name).and_then(|agent| agent.watching()).is_some_and(|watching| watching.status_line)
    };
    if args.statusline && !chosen.iter().any(has_line) {
        let others: Vec<&str> = agents::watched().into_iter().filter(|name| has_line(name)).collect();
        let message = format!("only {} has a status line that a command draws", others.join(", "));
        return Err(
            CommandError::usage(message).hint(format!("segno init {} --statusline", others.join(" ")))
        );
    }
    let extras = Extras { status_line: args.statusline, server: args.mcp, commands: args.commands };
    let mut plans: Vec<_> = chosen.iter().map(|name| installer.plan_install(name, extras)).collect();
    if args.agents_md {
        plans.push(installer.plan_agents_md(&context.project.root, false));
    }
    let change = Change {
        done: "installed",
        already: "nothing to do: everything is installed",
        dry_run: args.how.dry_run,
        yes: args.how.yes,
    };
    apply(context, &installer, plans, &change)?;
    if !args.how.dry_run && !context.printer.is_json() {
        for name in &chosen {
            let watching = agents::by_name(name).and_then(|agent| agent.watching());
            if let Some(agents::watching::Runs::Trusted { how, .. }) = watching.map(|it| it.runs) {
                let hint = format!("{name} runs hooks only after you have looked at them: {how} once");
                context.printer.hint(hint);
            }
        }
        context.printer.hint("start your agent as always, then: segno ls   (segno uninit removes the hooks)");
    }
    Ok(())
}

/// Runs `segno uninit`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn uninit(context: &Context, args: &UninitArgs) -> Outcome {
    let installer = installer(context);
    let chosen = if args.agents.is_empty() { agents::watched() } else { unique(&args.agents) };
    let mut plans: Vec<_> = chosen.iter().map(|name| installer.plan_removal(name)).collect();
    if args.agents.is_empty() {
        // One that cannot be read has nothing that could be taken out.
        plans.extend(installer.plan_agents_md(&context.project.root, true).map(Ok));
        plans.extend(installer.plan_plugin_removal().map(Ok));
    }
    let change = Change {
        done: "taken out",
        already: "nothing to do: nothing of segno is installed",
        dry_run: args.how.dry_run,
        yes: args.how.yes,
    };
    apply(context, &installer, plans, &change)
}

/// Takes everything of ours out of the user's settings, for a program that is about to be removed. Hooks that stay do
/// nothing without it, so that what fails here is only told.
pub(super) fn take_out(context: &Context) {
    let installer = installer_for(context, Scope::User);
    let plans = agents::watched().into_iter().map(|name| installer.plan_removal(name));
    for plan in plans.chain(installer.plan_plugin_removal().map(Ok)) {
        match plan.and_then(|plan| {
            if plan.is_empty() { Ok(None) } else { installer.carry_out(&plan).map(|()| Some(plan)) }
        }) {
            Ok(None) => {}
            Ok(Some(plan)) => {
                context.printer.talk(Text::new().painted(Meaning::Done, format!("{} taken out", plan.agent)));
            }
            Err(why) => {
                let why = error(&why);
                context.printer.warn_with(why.to_string(), why.hints());
            }
        }
    }
}

/// What puts hooks in and takes them out, for the scope that the command line names.
fn installer(context: &Context) -> Installer {
    let scope = match &context.global.project {
        Some(_) => Scope::Project(context.project.root.clone()),
        None => Scope::User,
    };
    installer_for(context, scope)
}

/// The same for a scope.
pub(super) fn installer_for(context: &Context, scope: Scope) -> Installer {
    let variable =
        |name: &str| context.environment.non_empty(name).map(|value| (name.to_owned(), value.to_owned()));
    Installer {
        scope,
        variables: Installer::variables_wanted().into_iter().filter_map(variable).collect(),
        state: context.paths.state.clone(),
        data: context.paths.data.clone(),
        program: program(context.environment.get("PATH").unwrap_or_default()),
    }
}

/// How this program is called: by its name if that is found on the path, else by where it is.
fn program(path: &str) -> String {
    let own = std::env::current_exe().ok().and_then(|own| own.canonicalize().ok());
    let named = on_path(path, "segno").and_then(|named| named.canonicalize().ok());
    match own {
        Some(own) if named.as_ref() != Some(&own) => own.to_string_lossy().into_owned(),
        _ => "segno".to_owned(),
    }
}

fn on_path(path: &str, program: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn unique(names: &[String]) -> Vec<&str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name.as_str()) {
            seen.push(name.as_str());
        }
    }
    seen
}

struct Change {
    done: &'static str,
    already: &'static str,
    dry_run: bool,
    yes: bool,
}

/// Shows what is planned, asks, and does it. One agent whose settings are left alone does not keep the others from theirs.
fn apply(
    context: &Context,
    installer: &Installer,
    plans: Vec<Result<Plan, InstallError>>,
    change: &Change,
) -> Outcome {
    let printer = &context.printer;
    let (mut ready, mut wrong, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for plan in plans {
        match plan {
            Ok(plan) => ready.push(plan),
            Err(why) => wrong.push(why),
        }
    }
    // Nothing is said of a text that nothing of ours was in.
    ready.retain(|plan| !(plan.is_empty() && segno_engine::agents::by_name(&plan.agent).is_none()));
    for plan in &ready {
        for notice in &plan.notices {
            printer.warn(notice.as_str());
        }
        if plan.is_empty() {
            printer.talk(format!("{}  {}   {}", plan.agent, change.already, plan.path.display()));
        } else {
            printer.talk(Text::from(format!("{}  ", plan.agent)).plain(plan.path.display().to_string()));
            plan.changes().for_each(|(path, before, after)| show(context, &plan.path, path, before, after));
        }
    }
    let due: Vec<&Plan> = ready.iter().filter(|plan| !plan.is_empty()).collect();
    if !due.is_empty() && !change.dry_run {
        let count = units::things(due.iter().map(|plan| plan.changes().count() as u64).sum(), "file");
        confirm(context, change.yes, "changed", &format!("change {count} like this?"))?;
    }
    if !due.is_empty() && change.dry_run {
        printer.talk("nothing was changed: this only shows what would change");
    }
    for plan in &ready {
        let status = match (plan.is_empty(), change.dry_run) {
            (true, _) => "unchanged",
            (false, true) => "would change",
            (false, false) => match installer.carry_out(plan) {
                Ok(()) => change.done,
                Err(why) => {
                    wrong.push(why);
                    continue;
                }
            },
        };
        shown.push(json!({
            "agent": plan.agent, "settings": plan.path, "status": status,
            "files": plan.changes().map(|(path, ..)| path).collect::<Vec<&Path>>(),
            "notices": plan.notices,
        }));
        if !plan.is_empty() && !change.dry_run {
            printer.talk(Text::new().painted(Meaning::Done, format!("{} {}", plan.agent, change.done)));
        }
    }
    if printer.is_json() {
        let errors: Vec<Value> = wrong.iter().map(|why| json!(why.to_string())).collect();
        printer.json(&json!({ "agents": shown, "errors": errors }))?;
    }
    let mut wrong = wrong.into_iter();
    let Some(first) = wrong.next() else { return Ok(()) };
    // The first of them is what the command ends with.
    for more in wrong {
        let more = error(&more);
        printer.warn_with(more.to_string(), more.hints());
    }
    Err(error(&first))
}

/// What changes in one file.
fn show(context: &Context, settings: &Path, path: &Path, before: Option<&str>, after: Option<&str>) {
    let printer = &context.printer;
    if path != settings {
        let what = match (before, after) {
            (None, _) => "is made",
            (Some(_), Some(_)) => "is changed",
            (Some(_), None) => "is removed",
        };
        printer.talk(format!("  {}  {what}", path.display()));
        // What is all ours is not shown line by line.
        if before.is_none() || after.is_none() || path.extension().is_some_and(|end| end == "js") {
            return;
        }
    }
    let Some(after) = after else {
        printer.talk("  removed: it was made for this");
        return;
    };
    let lines = changed_lines(before.unwrap_or_default(), after);
    for (sign, line) in lines.iter().take(SHOWN) {
        let meaning = if *sign == '+' { Meaning::Done } else { Meaning::Lost };
        printer.talk(Text::from("  ").painted(meaning, format!("{sign} {line}")));
    }
    if let Some(more) = lines.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        printer.talk(format!("  and {more} more lines like these"));
    }
}

/// The lines that go and come, between the first and the last that differ.
fn changed_lines<'a>(before: &'a str, after: &'a str) -> Vec<(char, &'a str)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let mut lines = Vec::new();
    let (mut at, mut seen) = (0, 0);
    // What is put in or taken out stands in whole lines but for a comma: the next line that is the same is never far.
    while at < old.len() || seen < new.len() {
        if old.get(at) == new.get(seen) {
            (at, seen) = (at + 1, seen + 1);
            continue;
        }
        let comes_again = new[seen.min(new.len())..].iter().position(|line| old.get(at) == Some(line));
        let goes_on = old[at.min(old.len())..].iter().position(|line| new.get(seen) == Some(line));
        match (comes_again, goes_on) {
            (Some(count), None) => {
                lines.extend(new[seen..seen + count].iter().map(|line| ('+', *line)));
                seen += count;
            }
            (None, Some(count)) => {
                lines.extend(old[at..at + count].iter().map(|line| ('-', *line)));
                at += count;
            }
            (Some(plus), Some(minus)) if plus <= minus => {
                lines.extend(new[seen..seen + plus].iter().map(|line| ('+', *line)));
                seen += plus;
            }
            (Some(_), Some(minus)) => {
                lines.extend(old[at..at + minus].iter().map(|line| ('-', *line)));
                at += minus;
            }
            (None, None) => {
                lines.extend(old.get(at).map(|line| ('-', *line)));
                lines.extend(new.get(seen).map(|line| ('+', *line)));
                (at, seen) = (at + 1, seen + 1);
            }
        }
    }
    lines
}

fn error(why: &InstallError) -> CommandError {
    let error = CommandError::new(ExitCode::Environment, "settings_left", why.to_string());
    match why {
        InstallError::File { hint, .. } => error.hint(hint.clone()),
        InstallError::Settings { .. } => error.hint("repair the file, or name the other agents"),
        InstallError::NoHome => error.hint("set HOME"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_in_lines() {
        let signs = |before: &str, after: &str| {
            changed_lines(before, after)
                .iter()
                .map(|(sign, line)| format!("{sign}{line}"))
                .collect::<Vec<_>>()
                .join("|")
        };
        assert_eq!(signs("{\n a\n}\n", "{\n a,\n b\n}\n"), "- a|+ a,|+ b");
        assert_eq!(signs("{\n a\n}\n", "{\n a\n}\n"), "");
        assert_eq!(signs("", "{\n}\n"), "+{|+}");
        assert_eq!(signs("x\ny\n", "y\n"), "-x");
    }
}
