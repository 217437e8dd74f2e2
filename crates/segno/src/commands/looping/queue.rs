//! A loop with a work queue: from flags to its plan, what it shows of its items, and trying one again.

use std::path::Path;

use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::event::ItemEnd;
use segno_engine::core::event::WorkItemMark;
use segno_engine::core::looping::ItemUse;
use segno_engine::core::looping::LoopCommand;
use segno_engine::core::looping::LoopPlan;
use segno_engine::core::looping::LoopStatus;
use segno_engine::core::looping::QueuePlan;
use segno_engine::core::looping::QueueStatus;
use segno_engine::core::looping::begun_item;
use segno_engine::core::looping::queue_status;
use segno_engine::core::looping::show_for;
use segno_engine::launch::LaunchSettings;
use segno_engine::looping::WorkList;
use segno_engine::looping::first_prompt_for;
use segno_engine::looping::list_work;
use serde_json::json;

use super::args::BeginArgs;
use super::loop_command;
use super::the_loop;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::commands::args::SessionRef;
use crate::commands::run::View;
use crate::commands::run::print_beside;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// What an agent is asked to do with an item of a tracker if nobody says anything else.
const TRACKED: &str = "\
Work on item {item}: {title}. It is the next one that `{list}` lists.

{description}

First see what you can use here: skills, tools and subagents for looking around, planning and checking. Then do this one \
item completely, with its tests, and with every check of the project passing. When you come upon another defect or \
something else to be done, look into it closely enough to describe it, and make a new item of it in the tracker, with what \
you were doing and what you saw; do not do it now. Commit in small steps, each of which is whole. When the item is really \
done, close it in the tracker.";

/// The same for an item of a checklist.
const LISTED: &str = "\
Work on this item: {title}

{description}

Do this one item completely, with its tests, and with every check of the project passing. Leave the other items alone. \
When it is really done, tick its box in {list}.";

/// The queue that these flags ask for.
pub(super) fn plan(context: &Context, args: &BeginArgs) -> Outcome<Option<QueuePlan>> {
    let Some(work) = args.work.as_deref() else { return Ok(None) };
    if work.trim().is_empty() {
        return Err(CommandError::usage("where do the work items come from?")
            .hint("--work 'br ready --json'   (or a Markdown file with a checklist)"));
    }
    let checklist = checklist(context, work)?;
    let show = args.work_show.clone().or_else(|| show_for(work));
    if args.work_show.as_ref().is_some_and(|show| !show.contains("{item}")) {
        return Err(CommandError::usage("--work-show has no {item} in it, so it cannot show one item")
            .hint("--work-show 'br show {item} --json'"));
    }
    if checklist.is_some() && args.work_show.is_some() {
        return Err(CommandError::usage("--work-show is for trackers: a checklist is read"));
    }
    Ok(Some(QueuePlan {
        command: checklist.is_none().then(|| work.to_owned()),
        show: show.filter(|_| checklist.is_none()),
        checklist,
        watch: args.watch,
        branch: args.branch.clone(),
        share: args.share_conversation,
        ..QueuePlan::default()
    }))
}

/// The checklist that is meant, from the project's root on; none if it is a command.
fn checklist(context: &Context, work: &str) -> Outcome<Option<String>> {
    let path = Path::new(work);
    let named = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("md") || end == "markdown");
    if !named {
        return Ok(None);
    }
    match path.canonicalize() {
        Ok(whole) => {
            let root = context.project.root.canonicalize().unwrap_or_else(|_| context.project.root.clone());
            Ok(Some(whole.strip_prefix(&root).unwrap_or(&whole).display().to_string()))
        }
        Err(_) if work.contains(char::is_whitespace) => Ok(None),
        Err(why) => Err(CommandError::io(format_args!("cannot read the checklist {work}"), why)),
    }
}

/// What an agent is asked to do with an item if nobody says anything else.
pub(super) fn default_prompt(queue: &QueuePlan) -> String {
    let text = if queue.checklist.is_some() { LISTED } else { TRACKED };
    text.replace("{list}", queue.source())
}

/// A template with the names of its variables as loops know them.
pub(super) fn with_names(text: &str) -> String {
    let names = [("BeadID", "{item}"), ("BeadTitle", "{title}"), ("BeadDescription", "{description}")];
    let mut text = text.to_owned();
    for (name, known) in names {
        text = text.replace(&format!("{{{{.{name}}}}}"), known).replace(&format!("{{{{{name}}}}}"), known);
    }
    text
}

/// What there is to do now.
///
/// # Errors
/// If that cannot be told.
pub(super) fn listed(context: &Context, queue: &QueuePlan, settings: &LaunchSettings) -> Outcome<WorkList> {
    let redactor = segno_engine::redact::Redactor::new(segno_engine::redact::Options::default());
    list_work(queue, &context.project.root, settings, &redactor).map_err(|why| {
        CommandError::failure("no_work_list", format!("cannot tell what there is to do: {why}")).hint(
            "run the command yourself: it has to print a list of items as JSON, not longer than is read",
        )
    })
}

/// Shows the items in their order and the first prompt, and begins nothing.
pub(super) fn dry_run(
    context: &Context,
    plan: &LoopPlan,
    queue: &QueuePlan,
    settings: &LaunchSettings,
) -> Outcome {
    let listed = listed(context, queue, settings)?;
    let mark = |item: &segno_engine::core::looping::QueueItem| WorkItemMark {
        id: item.id.clone(),
        title: item.title.clone(),
    };
    let (blocked, ready): (Vec<_>, Vec<_>) = listed.ready.iter().partition(|one| one.item.is_blocked);
    let first = ready.first().map(|one| (mark(&one.item), one.description.clone()));
    let own = LoopPlan { queue: None, ..plan.clone() };
    let prompt = first.map(|first| first_prompt_for(&own, Some(first))).transpose()?;
    let printer = &context.printer;
    if printer.is_json() {
        let item = |one: &&segno_engine::looping::ListedItem| json!({ "id": one.item.id, "title": one.item.title, "branch": queue.branch_of(&one.item.id) });
        let skipped = listed.skipped.iter().map(|(item, why)| (item.id.as_str(), why.as_str()));
        let below = blocked.iter().map(|one| (one.item.id.as_str(), "items below it are open"));
        let skipped: Vec<_> = skipped.chain(below).map(|(id, why)| json!({ "id": id, "why": why })).collect();
        return printer.json(&json!({
            "plan": plan,
            "prompt": prompt,
            "agent": settings.agent,
            "items": ready.iter().map(item).collect::<Vec<_>>(),
            "skipped": skipped,
        }));
    }
    printer.data(format!("workflow {}   {}", plan.workflow, plan.phase_names().join(" → ")))?;
    printer.data(format!("{} from {}", units::things(ready.len() as u64, "item"), queue.source()))?;
    for (number, one) in ready.iter().enumerate() {
        let branch = queue.branch_of(&one.item.id).map_or_else(String::new, |name| format!("   on {name}"));
        printer.data(format!("  {}. {}  {}{branch}", number + 1, one.item.id, one.item.title))?;
    }
    for (item, why) in &listed.skipped {
        printer.data(format!("  –  {}  {}: {why}", item.id, item.title))?;
    }
    for one in blocked {
        printer.data(format!("  –  {}  {}: items below it are open", one.item.id, one.item.title))?;
    }
    match prompt {
        Some(prompt) => {
            printer.data("\nThe first prompt:\n")?;
            printer.data(segno_engine::core::text::shorten(&prompt, 20_000))
        }
        None => Ok(()),
    }
}

/// Tries an item again at once.
pub(super) fn retry(context: &Context, item: &str, id: Option<&SessionRef>) -> Outcome {
    context.refuse_below_run("try a work item again")?;
    let ctx = CommandContext::open(context)?;
    let id = ctx.loop_to_read(id)?;
    let state = ctx.load(id)?;
    let looping = the_loop(&state)?;
    let Some(stand) = looping.items.get(item) else {
        let known: Vec<&str> = looping.items.keys().map(String::as_str).take(20).collect();
        let why = format!("{} knows no item {item}", short(id));
        let hint = if known.is_empty() { "segno loop status".to_owned() } else { known.join("   ") };
        return Err(CommandError::new(ExitCode::Refused, "unknown_item", why).hint(hint));
    };
    if stand.end.is_none() {
        let why = format!("item {item} is being worked on");
        return Err(CommandError::new(ExitCode::Refused, "item_in_work", why)
            .hint(format!("segno loop status {}", ctx.engine.ending(id))));
    }
    let again = LoopCommand::EndItem {
        item: WorkItemMark { id: item.to_owned(), title: stand.title.clone() },
        end: ItemEnd::Failed,
        failures: 0,
        retry_at: None,
        why: "a person wants it tried again".to_owned(),
        used: ItemUse::default(),
    };
    let acted = ctx.act(id, vec![loop_command(again)])?;
    ctx.report(&acted, format!("item {item} is tried again from the beginning"))?;
    if acted.state.driver.is_none() {
        context.printer.hint(format!("segno loop resume {}", ctx.engine.ending(id)));
    }
    Ok(())
}

/// The session that a note is for: of a loop with a queue, the one of the item that it works on.
pub(super) fn worked_on(ctx: &CommandContext<'_>, id: SessionId) -> Outcome<SessionId> {
    let state = ctx.load(id)?;
    let looping = the_loop(&state)?;
    if looping.plan.queue.is_none() {
        return Ok(id);
    }
    begun_item(looping).and_then(|(_, stand)| stand.session).ok_or_else(|| {
        let why = format!("{} works on no item now, so nobody would be told", short(id));
        CommandError::new(ExitCode::Refused, "no_item", why)
            .hint(format!("segno loop status {}", ctx.engine.ending(id)))
    })
}

/// What is shown of the sessions of items while the loop goes on.
pub(super) struct Followed<'a> {
    ctx: &'a CommandContext<'a>,
    view: View<'a>,
    session: Option<(SessionId, u64)>,
}

impl<'a> Followed<'a> {
    pub(super) fn new(ctx: &'a CommandContext<'a>) -> Self {
        Self { ctx, view: View::new(ctx.context), session: None }
    }

    pub(super) fn began(&mut self, item: &WorkItemMark, session: SessionId) {
        self.print();
        let seen = self.ctx.load(session).map_or(0, |state| state.seq);
        self.session = Some((session, seen));
        let printer = &self.ctx.context.printer;
        printer.talk(format!("item {}  {}   {}", item.id, item.title, short(session)));
    }

    pub(super) fn ended(&mut self, item: &WorkItemMark, line: &str) {
        self.print();
        self.session = None;
        self.ctx.context.printer.talk(format!("item {}  {line}", item.id));
    }

    /// Shows what was recorded since.
    pub(super) fn print(&mut self) {
        let printer = &self.ctx.context.printer;
        let Some(seen) = self.session.filter(|_| !printer.is_quiet() || printer.is_json()) else { return };
        // What cannot be shown now is in the journal, and tried again.
        if let Ok(after) = print_beside(self.ctx, seen, &mut self.view) {
            self.session = Some((seen.0, after));
        }
    }
}

/// The items that a loop had, each with how it ended and what it cost.
pub(super) fn summary(ctx: &CommandContext<'_>, state: &State) -> Outcome {
    let looping = state.looping.as_deref();
    let Some(queue) = looping.and_then(|looping| queue_status(looping, ctx.engine.now())) else {
        return Ok(());
    };
    for line in lines(&queue) {
        ctx.context.printer.talk(line);
    }
    Ok(())
}

/// Where the items stand.
pub(super) fn status(ctx: &CommandContext<'_>, status: &LoopStatus, queue: &QueueStatus) -> Outcome {
    let printer = &ctx.context.printer;
    printer.data(format!("  from       {}", queue.source))?;
    let most = status.most.map_or_else(String::new, |most| format!(" of at most {most}"));
    let counted = |state: &str| queue.items.iter().filter(|item| item.state == state).count() as u64;
    let some = |count: u64, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    let now = queue.items.iter().filter(|item| item.state == "works").filter_map(|item| item.session);
    // What the item at work has used counts for the loop when it ends, and for its cap at once.
    let beside =
        now.filter_map(|id| ctx.engine.load(id).ok()?.state.looping).map(|own| own.total).sum::<u64>();
    let of_item = if beside > 0 { format!(", {beside} of them for the item in work") } else { String::new() };
    printer.data(format!(
        "  items      {} done{}{}, {} set aside, {} open{}   {}{most}{of_item}",
        queue.done,
        some(counted("works"), "in work"),
        some(counted("failed"), "failed"),
        queue.set_aside,
        queue.open.len(),
        some(queue.skipped, "skipped"),
        units::things(status.total + beside, "iteration"),
    ))?;
    for line in lines(queue) {
        printer.data(line)?;
    }
    for item in &queue.open {
        printer.data(format!("    ○ {}  {}", item.id, item.title))?;
    }
    let cost = units::money(status.cost_micros, status.unpriced);
    printer.data(format!("  used       {}   {cost}", units::tokens(status.tokens)))?;
    if let Some(words) = &status.waiting_for {
        let left = status.countdown.as_deref().unwrap_or("until you say so");
        printer.data(format!("  waits      {left}: {words}"))?;
    }
    printer.data(format!("  next       {}", status.next))
}

fn lines(queue: &QueueStatus) -> Vec<Text> {
    let line = |item: &segno_engine::core::looping::ItemStatus| {
        let (mark, meaning) = match item.state {
            "done" => ("✓", Meaning::Done),
            "works" => ("▸", Meaning::Strong),
            "set aside" => ("✗", Meaning::Lost),
            _ => ("‖", Meaning::Waiting),
        };
        let session = item.session.map_or_else(String::new, |session| format!("   {}", short(session)));
        let used = match item.iterations {
            0 => String::new(),
            n => format!("   {}   {}", units::things(n, "iteration"), units::dollars(item.cost_micros)),
        };
        let failed = match (item.failures, item.state) {
            (0, _) | (_, "done") => String::new(),
            (n, _) => format!(", {} of it", units::things(u64::from(n), "failure")),
        };
        let wait = item.wait.as_ref().map_or_else(String::new, |wait| format!(", again in {wait}"));
        let why = if item.why.is_empty() { String::new() } else { format!(": {}", item.why) };
        Text::new()
            .plain("    ")
            .painted(meaning, mark)
            .plain(format!(" {}  {}   {}{failed}{wait}{why}{session}{used}", item.id, item.title, item.state))
    };
    queue.items.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_trackers_are_known() {
        let text = "{{.BeadTitle}} ({{.BeadID}})\n{{BeadDescription}} {{.Other}}";
        assert_eq!(with_names(text), "{title} ({item})\n{description} {{.Other}}");
    }

    #[test]
    fn the_default_prompt_names_the_list() {
        let queue = QueuePlan { command: Some("br ready --json".into()), ..QueuePlan::default() };
        assert!(default_prompt(&queue).contains("`br ready --json` lists"));
        let queue = QueuePlan { checklist: Some("TODO.md".into()), ..QueuePlan::default() };
        assert!(default_prompt(&queue).ends_with("tick its box in TODO.md."));
    }
}
