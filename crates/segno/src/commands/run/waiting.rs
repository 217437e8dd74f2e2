//! What waits to be resumed, said or asked about before something new begins.

use std::io::IsTerminal as _;

use segno_engine::Filter;
use segno_engine::core::Command;
use segno_engine::core::SessionId;
use segno_engine::core::Status;
use segno_engine::core::Summary;
use segno_engine::frontend::Frontend as _;
use segno_engine::frontend::Question;

use super::Args;
use crate::ask::Terminal;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::commands::ls;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::style::Symbol;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;
use crate::recent;

/// How many are shown.
const MOST: usize = 5;

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Next {
    /// What was asked for.
    Begin,
    /// The same, beside a session that waits.
    Beside,
    /// This session is taken up instead.
    Resume(SessionId),
}

/// Asks what becomes of the newest session of the project that was interrupted or halted, on a terminal. None if there is
/// nothing to ask about: there is none, somebody said "not now", or nobody is there or wants to be asked.
///
/// # Errors
/// If the sessions cannot be read, or somebody wants nothing to be done.
pub(in crate::commands) fn ask(ctx: &CommandContext<'_>) -> Outcome<Option<Next>> {
    let context = ctx.context;
    let is_there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !is_there || context.printer.is_json() || !context.config()?.resume.ask {
        return Ok(None);
    }
    let filter = Filter {
        project: Some(context.project.root.display().to_string()),
        statuses: vec![Status::Interrupted, Status::Halted],
        archived: Some(false),
        ..Filter::default()
    };
    let state = &context.paths.state;
    let sessions = ctx.engine.listing(&filter)?.sessions;
    let Some(waits) = sessions.iter().find(|summary| !recent::is_later(state, summary.session_id)) else {
        return Ok(None);
    };
    let id = waits.session_id;
    match Terminal::new(context).ask(&question(ctx, waits)) {
        Some(1) => Ok(Some(Next::Resume(id))),
        Some(2) => Ok(Some(Next::Beside)),
        Some(3) => {
            let reason = Some("archived: something new begins".into());
            ctx.act(id, vec![Command::Abort { reason }])?;
            context.printer.talk(format!(
                "archived {}; its record stays: segno show {}",
                short(id),
                ctx.engine.ending(id)
            ));
            Ok(Some(Next::Begin))
        }
        Some(_) => {
            recent::remember_later(state, id);
            Ok(Some(Next::Begin))
        }
        None => Err(CommandError::new(ExitCode::Cancelled, "cancelled", "nothing was done")),
    }
}

fn question(ctx: &CommandContext<'_>, waits: &Summary) -> Question {
    let (id, topic) = (short(waits.session_id), waits.topic.as_deref().unwrap_or("without a topic"));
    let when = ctx.context.moment(waits.updated_at);
    let answers = [
        ("l", "not now; it is not asked about again"),
        ("r", "resume it instead"),
        ("n", "begin what you asked for beside it"),
        ("a", "archive it, and begin what you asked for"),
    ];
    let what = if waits.status == Status::Halted { "was halted" } else { "was interrupted" };
    let mut about = vec![format!("session {id} of this project {what} {when}: {topic}")];
    about
        .extend(answers.iter().skip(1).chain(&answers[..1]).map(|(key, means)| format!("  [{key}] {means}")));
    let answers = answers.map(|(word, means)| (word.to_owned(), means.to_owned())).into();
    Question { about, text: "what becomes of it?".to_owned(), answers }
}

/// Shows the sessions of the project that wait to go on, and how to take them up or leave them be.
///
/// # Errors
/// If the sessions cannot be read, or somebody wants nothing to be done.
pub(super) fn announce(ctx: &CommandContext<'_>, args: &Args) -> Outcome<Next> {
    let context = ctx.context;
    let named = context.session(None)?.is_some() || args.continue_from.is_some();
    if context.printer.is_json() || args.raw || args.tell.is_some() || named {
        return Ok(Next::Begin);
    }
    if let Some(next) = ask(ctx)? {
        return Ok(next);
    }
    let filter = Filter {
        project: Some(context.project.root.display().to_string()),
        statuses: vec![Status::Interrupted, Status::Paused, Status::Halted],
        archived: Some(false),
        limit: Some(MOST),
        ..Filter::default()
    };
    let listing = ctx.engine.listing(&filter)?;
    let sessions = listing.sessions;
    let Some(newest) = sessions.first() else { return Ok(Next::Begin) };
    recent::remember(
        &context.paths.state,
        &sessions.iter().map(|summary| summary.session_id).collect::<Vec<_>>(),
    );
    let found = units::things(listing.total, "session");
    context.printer.talk(format!("{found} of this project can be resumed:"));
    let mut table = Table::new([
        Column::right("#"),
        Column::left("session"),
        Column::left("topic").elastic(),
        Column::left("step"),
        Column::left("status"),
    ])
    .indented(2);
    for (index, summary) in sessions.iter().enumerate() {
        let step = match (summary.step, summary.of, &summary.phase) {
            (Some(step), Some(of), _) => format!("{step}/{of}").into(),
            (_, _, Some(phase)) => phase.clone().into(),
            _ => Text::new().painted(Meaning::Dim, context.printer.palette().symbol(Symbol::Nothing)),
        };
        table.row([
            (index + 1).to_string().into(),
            Text::new().painted(Meaning::Dim, short(summary.session_id)),
            summary.topic.clone().unwrap_or_default().into(),
            step,
            ls::status(context, summary.status, summary.reason.as_ref(), None),
        ]);
    }
    context.printer.talk_table(&table);
    let id = ctx.engine.ending(newest.session_id);
    let second = if sessions.len() > 1 { ", segno resume 2 the second one" } else { "" };
    context.printer.hint(format!("segno resume   resumes {id}{second}"));
    context.printer.hint("segno abandon ID   gives one up; this run begins a new session beside them");
    Ok(Next::Begin)
}
