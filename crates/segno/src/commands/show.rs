//! `segno show`: one session, or one part of it.

use std::collections::BTreeMap;

use clap::Args as ClapArgs;
use segno_engine::Lease;
use segno_engine::core::List;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::Summary;
use segno_engine::core::event::Verdict;
use segno_engine::core::looping::CapKind;
use segno_engine::core::looping::LoopVerdict;
use segno_engine::core::looping::NextStep;
use segno_engine::core::looping::PhaseEnd;
use segno_engine::core::looping::next_step;
use segno_engine::core::rows::VerificationRow;

use super::args::OneSession;
use super::args::Page;
use super::lists;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::phase_words;
use crate::output::style::Meaning;
use crate::output::style::Symbol;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

/// How many checks of phases are looked at.
const CHECKS: usize = 50;

/// Show a session
///
/// Without a flag: where it stands, what it used, and what to type next. With a flag: one of its lists, in pages.
#[derive(ClapArgs, Clone, Debug)]
#[command(visible_aliases = ["session", "session-info"], after_help = "Example:\n  segno show last --tools --limit 20")]
pub struct Args {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Which part
    #[command(flatten)]
    pub part: Part,
    /// Which page of it
    #[command(flatten)]
    pub page: Page,
}

/// The lists of a session; at most one is asked for.
#[derive(ClapArgs, Clone, Copy, Debug)]
#[group(id = "part", multiple = false)]
pub struct Part {
    /// What was asked, said and done, like a chat
    #[arg(long)]
    pub conversation: bool,
    /// Tool calls, with those in doubt
    #[arg(long)]
    pub tools: bool,
    /// What was done, in order
    #[arg(long)]
    pub history: bool,
    /// Decisions and their alternatives
    #[arg(long)]
    pub decisions: bool,
    /// Files that were touched
    #[arg(long)]
    pub files: bool,
    /// Errors
    #[arg(long)]
    pub errors: bool,
    /// What was asked of memory, and the cache
    #[arg(long)]
    pub memory: bool,
    /// Artifacts
    #[arg(long)]
    pub artifacts: bool,
    /// Stored outputs
    #[arg(long)]
    pub outputs: bool,
    /// Tasks
    #[arg(long)]
    pub tasks: bool,
    /// Checkpoints
    #[arg(long)]
    pub checkpoints: bool,
    /// Milestones
    #[arg(long)]
    pub milestones: bool,
    /// How checks of phases came out
    #[arg(long)]
    pub verifications: bool,
    /// Agent processes and how they ended
    #[arg(long)]
    pub runs: bool,
}

/// Runs `segno show`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let id = ctx.session_to_read(args.session.id.as_ref())?;
    if args.part.conversation {
        return super::conversation::show(&ctx, id, &args.page);
    }
    if let Some(list) = args.part.list() {
        if list == List::Memory && !context.printer.is_json() {
            let state = ctx.load(id)?;
            for (key, value) in &state.cache {
                context.printer.data(format!("cache {key} = {value}"))?;
            }
        }
        return lists::show_at(&ctx, id, list, &args.page);
    }
    let state = ctx.load(id)?;
    let lease = ctx.engine.lease(id)?;
    let last_run = ctx.engine.newest_run(id)?;
    let recovery = ctx.engine.recovery_report(&state)?;
    if context.printer.is_json() {
        return context.printer.json(&serde_json::json!({
            "session": Summary::from(&state),
            "state": state,
            "driver": lease,
            "last_run": last_run.map(|row| row.body),
            "recovery": recovery,
            "auto_resume_enabled": context.config()?.resume.auto,
        }));
    }
    let mut table = Table::new([Column::left(""), Column::left("").elastic()]).without_titles();
    let files = ctx.engine.page(id, List::Files, &segno_engine::Page::newest(1))?.total;
    let checkpoint = ctx.engine.newest_usable_checkpoint(id)?;
    let mut facts = facts(context, &state, lease.as_ref(), files, &checked(&ctx, id)?);
    if let (Some(found), Some(at)) = (checkpoint, facts.iter().position(|(label, _)| *label == "created")) {
        let since = found
            .actions
            .map_or_else(|| state.actions_since(found.seq), |then| state.actions.saturating_sub(then));
        let text = format!("{}   {} since", found.id, units::things(since, "action"));
        facts.insert(at, ("checkpoint", text.into()));
    }
    let recovery = recovery.filter(|_| state.status.is_open());
    let recovery = recovery.map(|report| ("stopped", stopped(context, &report)));
    let facts = facts.into_iter().chain(recovery);
    let last_run = last_run.iter().flat_map(|row| super::run::describe(&row.row()));
    for (label, value) in facts.chain(last_run) {
        table.row([Text::new().painted(Meaning::Dim, label), value]);
    }
    context.printer.table(&table)?;
    if let Some(agent) = segno_engine::run::living_agent(&state).filter(|_| lease.is_none()) {
        let text = format!("its agent (pid {}) is still running, and nobody drives it", agent.pid);
        context
            .printer
            .warn_with(text, &[format!("segno attach {0}   (or: segno kill {0})", ctx.engine.ending(id))]);
    }
    context.printer.hint(next(&ctx, &state));
    Ok(())
}

/// What was said of the newest check of each phase that passed.
fn checked(ctx: &CommandContext<'_>, id: SessionId) -> Outcome<BTreeMap<String, String>> {
    let page = ctx.engine.page(id, List::Verifications, &segno_engine::Page::newest(CHECKS))?;
    let mut rows: Vec<_> = page.items.iter().map(|item| (item.seq, item.row::<VerificationRow>())).collect();
    rows.sort_by_key(|(seq, _)| *seq);
    let passed = rows.into_iter().filter(|(_, row)| row.verdict == Verdict::Pass.as_str());
    Ok(passed.filter_map(|(_, row)| Some((row.phase?, row.details?.excerpt().to_owned()))).collect())
}

/// What there is to say of a session. A file counts once, however often it was changed, as in every list.
fn facts(
    context: &Context,
    state: &State,
    lease: Option<&Lease>,
    files: u64,
    checked: &BTreeMap<String, String>,
) -> Vec<(&'static str, Text)> {
    let mut facts: Vec<(&'static str, Text)> = Vec::new();
    let mut fact = |label, value: Text| {
        if !value.is_empty() {
            facts.push((label, value));
        }
    };
    let time = |at| context.moment(at);
    let count = units::things;
    fact("session", Text::new().plain(state.session_id.to_string()));
    fact(
        "topic",
        state.topic.as_ref().map(|topic| Text::new().painted(Meaning::Strong, topic)).unwrap_or_default(),
    );
    fact("tags", super::arrange::hashed(&state.tags).into());
    let place = [(state.pinned, "pinned"), (state.archived, "archived: lists leave it out")];
    let place: Vec<_> = place.into_iter().filter_map(|(is, word)| is.then_some(word)).collect();
    fact("order", place.join(", ").into());
    fact("status", super::ls::status(context, state.status, state.reason.as_ref(), lease));
    let kind = state.project.kind.as_ref().map_or(String::new(), |kind| format!(" ({kind})"));
    fact("project", format!("{}{kind}", state.project.path).into());
    fact("continues", state.continues.map(|id| id.to_string().into()).unwrap_or_default());
    fact("branch", state.branch.as_ref().map(Text::from).unwrap_or_default());
    fact("file", state.file.as_ref().map(Text::from).unwrap_or_default());
    let item = state.work_item.as_ref().map(|item| Text::from(format!("{}  {}", item.id, item.title)));
    fact("work item", item.unwrap_or_default());
    fact("intent", state.intent.as_ref().map(Text::from).unwrap_or_default());
    fact("workflow", workflow(context, state));
    if let Some(phase) = state.phase_label() {
        let more = format!("   iteration {}, attempt {}", state.iteration, state.attempt);
        fact("phase", Text::new().plain(phase).painted(Meaning::Dim, more));
    }
    fact("brought", phase_words::phases(state, checked).join("   ").into());
    fact("progress", state.progress().map(|percent| format!("{percent} %").into()).unwrap_or_default());
    let budget = &state.budget;
    let meaning = if budget.is_over() {
        Meaning::Lost
    } else if budget.is_warning() {
        Meaning::Waiting
    } else {
        Meaning::Plain
    };
    fact("tokens", Text::new().painted(meaning, super::budget::tokens_used(state)));
    if state.cost.used_micros > 0 || state.cost.limit_micros.is_some() || state.unpriced_tokens() > 0 {
        let limit =
            state.cost.limit_micros.map_or(String::new(), |limit| format!(" of {}", units::dollars(limit)));
        let low = super::budget::money_low(state);
        let spent = units::money(state.cost.used_micros, state.unpriced_tokens());
        fact("cost", format!("{spent}{limit}{low}").into());
    }
    fact("agent", state.agent.as_ref().map(Text::from).unwrap_or_default());
    if let Some(position) = &state.position {
        let line = position.line.map_or(String::new(), |line| format!(":{line}"));
        fact("at", format!("{}{line}", position.file).into());
    }
    fact("last action", state.last_action.as_ref().map(Text::from).unwrap_or_default());
    if let Some(waiting) = &state.breakpoint {
        fact("waiting", Text::new().painted(Meaning::Waiting, format!("at breakpoint {}", waiting.name)));
    }
    let open = state.tasks.open.len() as u64;
    if state.tasks.added > 0 {
        fact("tasks", format!("{} open, {} done", open, state.tasks.done).into());
    }
    if !state.metrics.is_empty() {
        fact("metrics", metrics(state).into());
    }
    if !state.outputs.is_empty() {
        fact("outputs", state.outputs.keys().cloned().collect::<Vec<_>>().join(", ").into());
    }
    let calls = &state.calls;
    if calls.total > 0 {
        let doubt = calls.in_doubt.len();
        let mut text = Text::new().plain(format!(
            "{}: {} completed, {} failed, {} denied, {} open",
            count(calls.total, "call"),
            calls.completed,
            calls.failed,
            calls.denied,
            calls.open.len() as u64 + calls.open_beyond,
        ));
        if doubt > 0 {
            text = text.plain(", ").painted(Meaning::Waiting, format!("{doubt} in doubt"));
        }
        fact("tools", text);
    }
    let counts = &state.counts;
    let mut recorded = Vec::new();
    for (n, one) in [
        (counts.artifacts, "artifact"),
        (state.decisions.count, "decision"),
        (counts.milestones, "milestone"),
        (state.errors.count, "error"),
        (files, "changed file"),
    ] {
        if n > 0 {
            recorded.push(count(n, one));
        }
    }
    fact("recorded", recorded.join(", ").into());
    fact("created", Text::new().painted(Meaning::Dim, time(state.created_at)));
    fact("updated", Text::new().painted(Meaning::Dim, time(state.updated_at)));
    fact(
        "ended",
        state.completed_at.map(|at| Text::new().painted(Meaning::Dim, time(at))).unwrap_or_default(),
    );
    fact("journal", Text::new().painted(Meaning::Dim, count(state.seq, "event")));
    facts
}

/// The newest stop, and how it can be or was taken up.
fn stopped(context: &Context, report: &segno_engine::resume::RecoveryReport) -> Text {
    let mut text =
        Text::new().plain(format!("{}, {}", context.moment(report.interrupted_at), report.interrupt_reason));
    if report.in_doubt > 0 {
        text = text.plain(format!(", {} in doubt", units::things(report.in_doubt, "call")));
    }
    if report.settled > 0 {
        text = text.plain(format!(", {} found out about since", report.settled));
    }
    let target = report.target.as_deref().map_or(String::new(), |target| format!(" {target}"));
    match (report.recovery_type, report.recommended) {
        (Some(taken), _) => text.plain(format!("; resumed from {}{target}", taken.as_str())),
        (None, Some(best)) => text.painted(Meaning::Dim, format!("; best resumed from {}", best.as_str())),
        (None, None) => text,
    }
}

/// The phases of a workflow with what is done, what is current and what is to come.
fn workflow(context: &Context, state: &State) -> Text {
    let Some(workflow) = &state.workflow else { return Text::new() };
    let mut text = Text::new().plain(workflow.name.clone());
    let palette = context.printer.palette();
    // The last phase of a loop is never left for another one: its own record says that it is done.
    let passed = |name: &String| {
        let stands = state.looping.as_ref().map_or(&[][..], |looping| &looping.phases);
        stands.iter().any(|stand| stand.name == *name && stand.end == Some(PhaseEnd::Passed))
    };
    for phase in &workflow.phases {
        text = text.plain("   ");
        text = if state.phase.as_ref() == Some(phase) && state.status.is_open() {
            text.painted(Meaning::Strong, format!("{} {phase}", palette.symbol(Symbol::Step)))
        } else if state.phases_completed.contains(phase) || passed(phase) {
            text.painted(Meaning::Done, format!("{} {phase}", palette.symbol(Symbol::Done)))
        } else {
            text.painted(Meaning::Dim, phase.clone())
        };
    }
    text
}

/// What lets a loop go on that has used up its iterations or its time.
fn further(ctx: &CommandContext<'_>, state: &State) -> Option<&'static str> {
    let NextStep::Capped(LoopVerdict::Cap { which, .. }) = next_step(state, ctx.engine.now()) else {
        return None;
    };
    match which {
        CapKind::Iterations | CapKind::PhaseIterations => Some("--more 10"),
        CapKind::Seconds | CapKind::PhaseSeconds => Some("--more-time 1h"),
        _ => None,
    }
}

/// What to type next.
fn next(ctx: &CommandContext<'_>, state: &State) -> String {
    let id = ctx.engine.ending(state.session_id);
    let works = state.run.is_some() || state.looping.is_some();
    match state.status {
        // Where a cap is used up, going on is refused until there is more.
        Status::Paused | Status::Interrupted if works && let Some(more) = ctx.cap_hint(state) => {
            format!("{more}   then: segno resume {id}")
        }
        Status::Paused | Status::Interrupted if let Some(more) = further(ctx, state) => {
            format!("segno loop resume {id} {more}   segno abort {id}")
        }
        Status::Active => format!("segno log {id}   segno pause {id}   segno complete {id}"),
        Status::Paused | Status::Interrupted => format!("segno resume {id}   segno abort {id}"),
        Status::Halted => format!("segno resume {id} --reset-breaker   segno abort {id}"),
        Status::Completed | Status::Aborted | Status::Failed => {
            format!("segno export {id} -o FILE   segno history {id}")
        }
    }
}

impl Part {
    /// The list that was asked for.
    fn list(self) -> Option<List> {
        [
            (self.tools, List::Tools),
            (self.history, List::History),
            (self.decisions, List::Decisions),
            (self.files, List::Files),
            (self.errors, List::Errors),
            (self.memory, List::Memory),
            (self.artifacts, List::Artifacts),
            (self.outputs, List::Outputs),
            (self.tasks, List::Tasks),
            (self.checkpoints, List::Checkpoints),
            (self.milestones, List::Milestones),
            (self.verifications, List::Verifications),
            (self.runs, List::Runs),
        ]
        .into_iter()
        .find_map(|(asked, list)| asked.then_some(list))
    }
}

/// The metrics of a session on one line.
pub(super) fn metrics(state: &State) -> String {
    let one = |(name, value): (&String, _)| format!("{name} {}", serde_json::json!(value));
    state.metrics.iter().map(one).collect::<Vec<_>>().join(", ")
}
