//! `segno ls`: lists sessions.

use std::time::Duration;

use clap::Args as ClapArgs;
use clap::ValueEnum;
use segno_engine::Filter;
use segno_engine::Listing;
use segno_engine::core::Summary;
use segno_engine::core::event::Maker;
use segno_engine::core::state::Reason;
use serde_json::json;

use super::args::age;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::config::TimeStyle;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::style::Symbol;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;
use crate::recent;

/// How much of a status and of a project's path stays on a narrow terminal before columns are left out.
const STATUS_LEAST: usize = 20;
const PROJECT_LEAST: usize = 20;
/// How many sessions that have ended are shown below the open ones.
const RECENT: usize = 10;

/// A status, as a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Status {
    /// Being worked on, or ready to be
    #[value(aliases = ["created", "running"])]
    Active,
    /// Stopped on purpose or by a policy
    Paused,
    /// Its driver died
    #[value(aliases = ["suspended", "crashed"])]
    Interrupted,
    /// The breaker is open
    Halted,
    /// Done
    Completed,
    /// Given up
    #[value(alias = "abandoned")]
    Aborted,
    /// Failed for good
    Failed,
}

/// List sessions
///
/// Shows the open sessions of this project, newest first, and below them the ones that ended last. Pinned sessions come before
/// all others; archived ones are left out unless --archived or --all asks for them. The numbers can be used in place of ids
/// afterwards.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    visible_aliases = ["list", "sessions"],
    after_help = "Example:\n  segno ls --everywhere --status paused --since 7d\n  segno ls --tag auth"
)]
pub struct Args {
    /// Only sessions with this status; may be repeated
    #[arg(long, value_name = "STATUS", value_enum)]
    pub status: Vec<Status>,
    /// Every session, however long ago it ended
    #[arg(long, conflicts_with = "status")]
    pub all: bool,
    /// Only open sessions
    #[arg(long, conflicts_with_all = ["status", "all"])]
    pub open: bool,
    /// Sessions of all projects
    #[arg(long)]
    pub everywhere: bool,
    /// Only sessions of projects whose path contains this text
    #[arg(long, value_name = "TEXT", conflicts_with = "everywhere")]
    pub project_filter: Option<String>,
    /// Only sessions with this tag; if repeated, with all of them
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Only sessions whose topic contains this text, in capital or small letters
    #[arg(long, value_name = "TEXT")]
    pub topic: Option<String>,
    /// Only pinned sessions
    #[arg(long)]
    pub pinned: bool,
    /// Only archived sessions, which are left out otherwise
    #[arg(long)]
    pub archived: bool,
    /// Only sessions that changed within this time, like 12h or 7d
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub since: Option<Duration>,
    /// Show at most this many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
}

impl Args {
    /// Whether sessions are asked for by how somebody arranged them.
    fn by_order(&self) -> bool {
        !self.tag.is_empty() || self.topic.is_some() || self.pinned || self.archived
    }

    /// Whether not all are asked for.
    fn asks_for_some(&self) -> bool {
        !self.status.is_empty() || self.since.is_some() || self.project_filter.is_some() || self.by_order()
    }
}

/// Runs `segno ls`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let printer = &context.printer;
    let ctx = match CommandContext::open_to_list(context) {
        Ok(ctx) => ctx,
        // No store is an empty store to somebody who only looks.
        Err(error) if error.code() == "no_store" => {
            if printer.is_json() {
                return printer.json(&json!({ "sessions": [], "total": 0 }));
            }
            printer.talk("no sessions yet");
            printer.hint("segno new \"what it is about\"");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    print(&ctx, args)?;
    ctx.finish();
    Ok(())
}

fn print(ctx: &CommandContext<'_>, args: &Args) -> Outcome {
    let context = ctx.context;
    let printer = &context.printer;
    let everywhere = args.everywhere || args.project_filter.is_some();
    let by_text = args.project_filter.is_some() || args.topic.is_some();
    let filter = Filter {
        tags: args.tag.iter().map(|tag| tag.trim_start_matches('#').to_owned()).collect(),
        pinned: args.pinned.then_some(true),
        archived: if args.archived { Some(true) } else { (!args.all).then_some(false) },
        pinned_first: true,
        project: (!everywhere).then(|| context.project.root.display().to_string()),
        statuses: statuses(args),
        since: args
            .since
            .map(|age| ctx.engine.now().plus_seconds(-i64::try_from(age.as_secs()).unwrap_or(i64::MAX))),
        // A filter on a text is applied afterwards, so everything must be read for it. Programs get everything.
        limit: match (by_text, args.limit) {
            (true, _) => None,
            (false, Some(limit)) => Some(limit as usize),
            (false, None) if printer.is_json() => None,
            (false, None) => Some(context.config()?.ls.limit as usize),
        },
        ..Filter::default()
    };
    let listing = list(ctx, filter, args)?;
    for (id, _) in &listing.unreadable {
        let whose = id.map_or("a session".to_owned(), |id| format!("session {id}"));
        printer
            .warn_with(format!("the summary of {whose} cannot be read"), &["segno doctor --repair".into()]);
    }
    let mut sessions = listing.sessions;
    let mut total = listing.total;
    if by_text {
        let lower = args.topic.as_ref().map(|text| text.to_lowercase());
        let has = |summary: &Summary| {
            let topic = summary.topic.as_ref().map(|topic| topic.to_lowercase()).unwrap_or_default();
            args.project_filter.as_ref().is_none_or(|part| summary.project.contains(part.as_str()))
                && lower.as_ref().is_none_or(|text| topic.contains(text.as_str()))
        };
        sessions.retain(has);
        total = sessions.len() as u64;
        sessions.truncate(args.limit.map_or(usize::MAX, |limit| limit as usize));
    }
    if printer.is_json() {
        return as_json(context, &sessions, total);
    }
    recent::remember(
        &context.paths.state,
        &sessions.iter().map(|summary| summary.session_id).collect::<Vec<_>>(),
    );
    if sessions.is_empty() {
        let narrowed = args.asks_for_some();
        let what = match (narrowed, args.all) {
            (true, _) => "no such sessions",
            (false, true) => "no sessions",
            (false, false) if args.open => "no open sessions",
            (false, false) => "no sessions",
        };
        printer.talk(format!("{what}{}", if everywhere { "" } else { " in this project" }));
        let wider = match (args.all, args.everywhere) {
            (true, true) => "",
            (false, false) if !narrowed => "   (or: segno ls --everywhere)",
            _ => "   (or: segno ls --all --everywhere)",
        };
        printer.hint(format!("segno new \"what it is about\"{wider}"));
        return Ok(());
    }
    show(ctx, &sessions, everywhere)?;
    let shown = sessions.len() as u64;
    if shown < total {
        printer
            .talk(Text::new().painted(Meaning::Dim, format!("{shown} of {total} shown; --all shows more")));
    }
    Ok(())
}

/// The sessions that match, as they are stored. Without a wish, the pinned ones come first, then the open ones and then the
/// newest of those that ended: right after a run, that run is what somebody looks for.
fn list(ctx: &CommandContext<'_>, filter: Filter, args: &Args) -> Outcome<Listing> {
    // Somebody who asks for sessions by their place among others means them all, open or not.
    if args.all || args.open || !args.status.is_empty() || args.by_order() {
        return Ok(ctx.engine.listing(&filter)?);
    }
    let ended = segno_engine::core::Status::ALL.into_iter().filter(|status| !status.is_open()).collect();
    let (pinned, open) =
        ((Some(true), Vec::new(), usize::MAX), (Some(false), filter.statuses.clone(), usize::MAX));
    let mut listing = Listing { sessions: Vec::new(), total: 0, unreadable: Vec::new() };
    for (pinned, statuses, most) in [pinned, open, (Some(false), ended, RECENT)] {
        let room = filter.limit.unwrap_or(usize::MAX).saturating_sub(listing.sessions.len()).min(most);
        let limit = (room < usize::MAX).then_some(room.max(1));
        let part = ctx.engine.listing(&Filter { pinned, statuses, limit, ..filter.clone() })?;
        listing.sessions.extend(part.sessions.into_iter().take(room));
        listing.total += part.total;
        listing.unreadable.extend(part.unreadable);
    }
    Ok(listing)
}

fn statuses(args: &Args) -> Vec<segno_engine::core::Status> {
    use segno_engine::core::Status as S;
    let own = |status: &Status| match status {
        Status::Active => S::Active,
        Status::Paused => S::Paused,
        Status::Interrupted => S::Interrupted,
        Status::Halted => S::Halted,
        Status::Completed => S::Completed,
        Status::Aborted => S::Aborted,
        Status::Failed => S::Failed,
    };
    if args.all || (args.by_order() && args.status.is_empty() && !args.open) {
        Vec::new()
    } else if args.status.is_empty() {
        S::ALL.into_iter().filter(|status| status.is_open()).collect()
    } else {
        args.status.iter().map(own).collect()
    }
}

/// One session to a line.
fn as_json(context: &Context, sessions: &[Summary], total: u64) -> Outcome {
    let lines: Vec<String> =
        sessions.iter().map(|summary| serde_json::to_string(summary).unwrap_or_default()).collect();
    let start = if lines.is_empty() { "" } else { "\n" };
    let text = format!("{{\"sessions\":[{start}{}],\"total\":{total}}}\n", lines.join(",\n"));
    context.printer.json_text(&text)
}

fn show(ctx: &CommandContext<'_>, sessions: &[Summary], everywhere: bool) -> Outcome {
    let context = ctx.context;
    let driven = ctx.engine.driven_sessions().unwrap_or_default();
    let iso = context.config()?.ui.time == TimeStyle::Iso;
    let mut columns = vec![
        Column::right("#"),
        Column::left("session"),
        Column::left("topic").elastic(),
        Column::left("phase").goes(3),
        Column::left("status").shortens_to(STATUS_LEAST),
        Column::right("progress").goes(1),
        Column::right(if iso { "changed" } else { "age" }).goes(5),
        Column::right("tokens").goes(4),
        Column::right("cost").goes(2),
    ];
    if everywhere {
        columns.push(Column::left("project").shortens_to(PROJECT_LEAST).goes(6));
    }
    let mut table = Table::new(columns).indented(1);
    let nothing = || Text::new().painted(Meaning::Dim, context.printer.palette().symbol(Symbol::Nothing));
    for (index, summary) in sessions.iter().enumerate() {
        let lease = driven.iter().find(|(id, _)| *id == summary.session_id).map(|(_, lease)| lease);
        // Of what is completed, how far it had come says nothing any more.
        let (step, of) = match summary.status == segno_engine::core::Status::Completed {
            true => (None, None),
            false => (summary.step, summary.of),
        };
        let phase = match (&summary.phase, step, of) {
            (Some(phase), Some(step), Some(of)) => format!("{phase} {step}/{of}").into(),
            (Some(phase), ..) => phase.clone().into(),
            (None, Some(step), Some(of)) => format!("{step}/{of}").into(),
            _ => nothing(),
        };
        let age = if iso {
            context.moment(summary.updated_at)
        } else {
            units::age(Duration::from_micros(ctx.engine.now().micros_since(summary.updated_at)))
        };
        let reason = reason(summary);
        let mut row = vec![
            (index + 1).to_string().into(),
            Text::new().painted(Meaning::Dim, short(summary.session_id)),
            labelled(topic(summary).map_or_else(nothing, Text::from), summary),
            phase,
            status(context, summary.status, reason.as_ref(), lease),
            progress(summary).map_or_else(nothing, Text::from),
            Text::new().painted(Meaning::Dim, age),
            used(summary),
            if summary.cost_micros == 0 && summary.unpriced_tokens == 0 { nothing() } else { spent(summary) },
        ];
        if everywhere {
            row.push(Text::new().painted(Meaning::Dim, summary.project.clone()));
        }
        table.row(row);
    }
    context.printer.table(&table)
}

/// The topic with how somebody arranged the session.
fn labelled(topic: Text, summary: &Summary) -> Text {
    let words = [(summary.pinned, "pinned"), (summary.archived, "archived")];
    let words = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word.to_owned());
    let tags = (!summary.tags.is_empty()).then(|| super::arrange::hashed(&summary.tags));
    words.chain(tags).fold(topic, |text, word| text.painted(Meaning::Dim, format!("  {word}")))
}

/// What a session is about; of one that works on an item of a loop, also for which loop.
pub(crate) fn topic(summary: &Summary) -> Option<String> {
    let item = summary.parent.zip(summary.work_item.as_ref());
    match (&summary.topic, item) {
        (topic, None) => topic.clone(),
        (topic, Some((parent, item))) => {
            let topic = topic.as_deref().unwrap_or_default();
            Some(format!("{topic} (item {item} of {})", short(parent)))
        }
    }
}

/// How far a session is: in percent, or in items that are done.
fn progress(summary: &Summary) -> Option<String> {
    let items = summary.items_done.map(|done| format!("{done} done"));
    items.or_else(|| summary.progress.map(|percent| format!("{percent} %")))
}

/// The tokens of a session; of what, if that is a cap or runs low.
fn used(summary: &Summary) -> Text {
    let used = units::about(summary.tokens_used, summary.tokens_estimated);
    let of = || units::count(summary.token_budget);
    // The flags are of tokens and money together: what money is to blame for stands in its own column.
    let low = summary.budget_warning && !costs_much(summary);
    let (meaning, text) = match (summary.tokens_used > summary.token_budget, low) {
        (true, _) => (Meaning::Lost, format!("{used} of {}, over", of())),
        (_, true) => (Meaning::Waiting, format!("{used} of {}, low", of())),
        _ if summary.budget_hard => (Meaning::Plain, format!("{used} of {}", of())),
        _ => (Meaning::Plain, used),
    };
    Text::new().painted(meaning, text)
}

/// Whether the money is near its limit or beyond it.
fn costs_much(summary: &Summary) -> bool {
    let near = |limit: u64| u128::from(summary.cost_micros) * 2 >= u128::from(limit);
    summary.budget_warning && summary.cost_limit_micros.is_some_and(near)
}

/// The money of a session; of what, if that is a cap.
fn spent(summary: &Summary) -> Text {
    let spent = units::money(summary.cost_micros, summary.unpriced_tokens);
    match summary.cost_limit_micros {
        Some(limit) if summary.cost_micros > limit => {
            Text::new().painted(Meaning::Lost, format!("{spent} of {}, over", units::dollars(limit)))
        }
        Some(limit) if costs_much(summary) => {
            Text::new().painted(Meaning::Waiting, format!("{spent} of {}", units::dollars(limit)))
        }
        _ => spent.into(),
    }
}

/// Why a session stands where it stands, as far as that is still so.
pub(crate) fn reason(summary: &Summary) -> Option<Reason> {
    use segno_engine::core::Status as S;
    let reason = summary.reason.clone()?;
    let is_loop = summary.made_by == Maker::Loop;
    match summary.status {
        // How the last iteration of a loop ended is no reason for the loop to be completed.
        S::Completed if is_loop => None,
        // Somebody closed the breaker that halted it: what it says to do next comes first.
        S::Halted if summary.breaker.as_deref() == Some("CLOSED") => {
            Some(Reason { what: "breaker reset, resume goes on".to_owned(), details: None })
        }
        // Which of its caps it was is said by the details, in the words of the loop itself.
        // One of a queue may wait for an item, which is no limit of anybody.
        S::Paused
            if is_loop
                && reason.details.is_some()
                && (reason.what == "budget reached"
                    || (reason.what == "limit reached" && summary.items_done.is_some())) =>
        {
            Some(Reason { what: String::new(), ..reason })
        }
        _ => Some(reason),
    }
}

/// Who drives a session, as far as that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Driving {
    /// The process.
    pub(crate) pid: u32,
    /// On which machine.
    pub(crate) host: String,
    /// For how many seconds nothing was heard of it, if it cannot be told whether it lives.
    pub(crate) silent: Option<u64>,
}

impl From<&segno_engine::Lease> for Driving {
    fn from(lease: &segno_engine::Lease) -> Self {
        let silent = segno_engine::lease::silent_seconds(lease);
        Self { pid: lease.holder.pid, host: lease.holder.host.clone(), silent }
    }
}

/// A status with its symbol, its reason and who drives.
pub(super) fn status(
    context: &Context,
    status: segno_engine::core::Status,
    reason: Option<&Reason>,
    lease: Option<&segno_engine::Lease>,
) -> Text {
    let driving = lease.map(Driving::from);
    status_of(context.printer.palette(), status, reason, driving.as_ref())
}

/// The same for somebody who knows who drives.
pub(crate) fn status_of(
    palette: crate::output::Palette,
    status: segno_engine::core::Status,
    reason: Option<&segno_engine::core::state::Reason>,
    driving: Option<&Driving>,
) -> Text {
    use segno_engine::core::Status as S;
    let (symbol, meaning) = match status {
        S::Active => (Symbol::Running, Meaning::Done),
        S::Paused => (Symbol::Paused, Meaning::Waiting),
        S::Interrupted | S::Halted | S::Failed | S::Aborted => (Symbol::Lost, Meaning::Lost),
        S::Completed => (Symbol::Done, Meaning::Done),
    };
    let word = match driving {
        // Whether it lives cannot be told from here.
        Some(Driving { pid, host, silent: Some(silent) }) => {
            format!("running (pid {pid} on {host}, silent {silent} s)")
        }
        Some(Driving { pid, silent: None, .. }) => format!("running (pid {pid})"),
        None => status.to_string(),
    };
    let text = Text::new().painted(meaning, palette.symbol(symbol)).plain(" ").painted(meaning, word);
    // That somebody asked for a pause goes without saying; why they did does not.
    let parts = reason.map(|reason| {
        let what = Some(reason.what.as_str()).filter(|what| !what.is_empty() && *what != "asked");
        [what, reason.details.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(", ")
    });
    match parts.filter(|parts| !parts.is_empty()) {
        Some(parts) => text.plain(format!(": {}", segno_engine::core::text::shorten(&parts, 60))),
        None => text,
    }
}
