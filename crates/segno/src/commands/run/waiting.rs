//! What waits to be taken up again, said before something new begins.

use segno_engine::Filter;
use segno_engine::core::Status;

use super::Args;
use crate::commands::ls;
use crate::desk::{Desk, short};
use crate::error::Outcome;
use crate::output::style::{Meaning, Symbol};
use crate::output::table::{Column, Table};
use crate::output::{Text, units};
use crate::recent;

/// How many are shown.
const MOST: usize = 5;

/// Shows the sessions of the project that wait to go on, and how to take them up or leave them be.
pub(super) fn announce(desk: &Desk<'_>, args: &Args) -> Outcome {
    let context = desk.context;
    let named = context.session(None)?.is_some() || args.continue_from.is_some();
    if context.printer.is_json() || args.raw || args.tell.is_some() || named {
        return Ok(());
    }
    let filter = Filter {
        project: Some(context.project.root.display().to_string()),
        statuses: vec![Status::Interrupted, Status::Paused, Status::Halted],
        limit: Some(MOST),
        ..Filter::default()
    };
    let listing = desk.engine.listing(&filter)?;
    let sessions = listing.sessions;
    let Some(newest) = sessions.first() else { return Ok(()) };
    recent::remember(
        &context.paths.state,
        &sessions.iter().map(|summary| summary.session_id).collect::<Vec<_>>(),
    );
    let found = units::things(listing.total, "session");
    context.printer.talk(format!("{found} of this project can be taken up again:"));
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
    let id = crate::desk::tail(newest.session_id);
    let second = if sessions.len() > 1 { ", segno resume 2 the second one" } else { "" };
    context.printer.hint(format!("segno resume   takes up {id}{second}"));
    context.printer.hint("segno abandon ID   gives one up; this run begins a new session beside them");
    Ok(())
}
