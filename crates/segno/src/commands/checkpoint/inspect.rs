//! Looking at checkpoints: one of them, what differs between two, and whether all of it is there.

use segno_engine::Item;
use segno_engine::core::List;
use segno_engine::core::event::CheckpointReason;
use segno_engine::core::rows::CheckpointRow;
use serde_json::json;

use crate::commands::diff::changes;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

pub(super) fn diff(context: &Context, before: &str, after: Option<&str>) -> Outcome {
    let (ctx, state) = crate::commands::undo::session_of_checkpoint(context)?;
    let engine = &ctx.engine;
    let before = engine.find_checkpoint(state.session_id, before)?;
    let after = after.map(|after| engine.find_checkpoint(state.session_id, after)).transpose()?;
    let compared = engine.compare(state.session_id, &before, after.as_ref(), true)?;
    if context.printer.is_json() {
        return context.printer.json(&json!({
            "before": before.id, "after": after.as_ref().map(|after| &after.id),
            "files": compared.files.iter().map(crate::commands::diff::change_json).collect::<Vec<_>>(),
            "values": compared.values.iter()
                .map(|(name, before, after)| json!({ "name": name, "before": before, "after": after }))
                .collect::<Vec<_>>(),
            "commits": { "before": compared.commits.0, "after": compared.commits.1 },
        }));
    }
    let mut table =
        Table::new([Column::left("value"), Column::left(&before.id), Column::left("after").elastic()]);
    for (name, before, after) in &compared.values {
        table.row([name.clone(), plain(before), plain(after)]);
    }
    if compared.commits.0 != compared.commits.1 {
        let short = |commit: &Option<String>| {
            commit.as_deref().map_or_else(|| "–".to_owned(), |commit| commit.chars().take(12).collect())
        };
        table.row(["commit".to_owned(), short(&compared.commits.0), short(&compared.commits.1)]);
    }
    context.printer.table(&table)?;
    changes(context, &compared.files)
}

fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "–".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn validate(context: &Context, name: Option<&str>) -> Outcome {
    let (ctx, state) = crate::commands::undo::session_of_checkpoint(context)?;
    let session = state.session_id;
    let all = match name {
        Some(name) => vec![ctx.engine.find_checkpoint(session, name)?],
        None => ctx.engine.checkpoints(session)?,
    };
    let (mut table, mut rows, mut bad) = (
        Table::new([Column::left("checkpoint"), Column::left(""), Column::left("").elastic()]),
        Vec::new(),
        0,
    );
    for checkpoint in &all {
        let validation = ctx.engine.validate(session, checkpoint)?;
        // One whose files were given up on purpose, or that never was called ready, is not broken; but who asks for
        // that very one wants to rely on it.
        let came = checkpoint.is_from_elsewhere();
        let promised = checkpoint.ready || (name.is_some() && checkpoint.dropped.is_none());
        let broken = !validation.problems.is_empty() && promised && !came;
        bad += u64::from(broken);
        let word = match (broken, validation.problems.is_empty(), checkpoint.dropped.is_some()) {
            (true, ..) => Text::new().painted(Meaning::Lost, "not whole"),
            (false, true, _) => Text::new().painted(Meaning::Done, "whole"),
            (false, false, _) if came => Text::new().painted(Meaning::Dim, "from elsewhere"),
            (false, false, true) => Text::new().painted(Meaning::Dim, "given up"),
            (false, false, false) => Text::new().painted(Meaning::Dim, "not ready"),
        };
        let more = match validation.problems.first() {
            Some(problem) => problem.clone(),
            None => format!("{} objects, {}", validation.objects, units::bytes(validation.bytes)),
        };
        table.row([Text::from(&checkpoint.id), word, Text::from(more)]);
        rows.push(json!({ "checkpoint": checkpoint.id, "problems": validation.problems, "objects": validation.objects }));
    }
    if context.printer.is_json() {
        context.printer.json(&json!({ "checkpoints": rows, "whole": bad == 0 }))?;
    } else {
        context.printer.table(&table)?;
    }
    if bad > 0 {
        return Err(CommandError::new(
            ExitCode::StoreDamaged,
            "checkpoint_damaged",
            format!("{} not whole", units::things(bad, "checkpoint")),
        ));
    }
    Ok(())
}

/// The session's state as it was at a checkpoint, folded from the journal.
pub(super) fn show(context: &Context, name: &str) -> Outcome {
    let (ctx, state) = crate::commands::undo::session_of_checkpoint(context)?;
    let checkpoint = ctx.engine.find_checkpoint(state.session_id, name)?;
    let items = ctx.engine.items(state.session_id, List::Checkpoints)?;
    let is = |item: &Item| item.row::<CheckpointRow>().id == checkpoint.id;
    let found = items.into_iter().rev().find(is).ok_or_else(|| {
        CommandError::new(ExitCode::Refused, "unknown_item", format!("no checkpoint {name} in this session"))
            .hint("segno checkpoint list")
    })?;
    let row: CheckpointRow = found.row();
    let seq = row.seq;
    // Of one that came with the session nobody here knows how it was.
    let then = match row.is_from_elsewhere() {
        true => None,
        false => {
            let then = ctx.engine.state_at(state.session_id, seq)?;
            for notice in then.notices {
                context.printer.warn(notice);
            }
            Some(then.state)
        }
    };
    if context.printer.is_json() {
        return context.printer.json(&serde_json::json!({ "checkpoint": found.body, "state": then }));
    }
    let made = row.created_at.to_string();
    let made = made.parse().map_or(made, |at| context.time(at));
    // One at the end of a phase is of that, though the session was in the next one by then.
    let ended = row.is_for(CheckpointReason::PhaseComplete).then(|| row.name.clone());
    let phase = match &then {
        Some(then) => ended.or_else(|| then.phase_label()),
        None => row.phase.clone(),
    };
    let phase = phase.unwrap_or_default();
    let here = |text: String| if then.is_some() { text } else { String::new() };
    let mut table = Table::new([Column::left(""), Column::left("").elastic()]).without_titles();
    for (label, value) in [
        ("checkpoint", row.id),
        ("reason", row.reason),
        ("made", made),
        ("seq", here(seq.to_string())),
        ("phase", phase),
        ("step", row.step.filter(|_| then.is_none()).map_or_else(String::new, |step| step.to_string())),
        ("tokens", then.as_ref().map_or_else(String::new, |then| units::tokens(then.budget.tokens_used))),
        ("tool calls", row.tool_count.map_or_else(String::new, |n| n.to_string())),
        ("files", files(&checkpoint)),
        ("conversation", conversation(&checkpoint)),
        ("commit", checkpoint.head.as_ref().and_then(|head| head.commit.clone()).unwrap_or_default()),
        ("pinned", if checkpoint.pinned { "yes".to_owned() } else { String::new() }),
        (
            "valid",
            if checkpoint.valid {
                String::new()
            } else {
                "no: invalidated by a rollback to an earlier checkpoint".to_owned()
            },
        ),
        (
            "held",
            if then.is_none() { "in the files that the session came from".to_owned() } else { String::new() },
        ),
        ("since then", here(units::things(state.seq.saturating_sub(seq), "event"))),
    ] {
        if !value.is_empty() {
            table.row([label.to_owned(), value]);
        }
    }
    context.printer.table(&table)
}

fn files(checkpoint: &segno_engine::tree::Checkpoint) -> String {
    if let Some(snapshot) = &checkpoint.snapshot {
        let out =
            if snapshot.left_out > 0 { format!(", {} left out", snapshot.left_out) } else { String::new() };
        return format!(
            "{} ({}), {} changed{out}",
            units::things(snapshot.files, "file"),
            units::bytes(snapshot.bytes),
            snapshot.changed
        );
    }
    let why = checkpoint.problem.as_ref().map(|why| why.short(200)).or_else(|| checkpoint.dropped.clone());
    why.map_or_else(String::new, |why| format!("none: {why}"))
}

fn conversation(checkpoint: &segno_engine::tree::Checkpoint) -> String {
    checkpoint.conversation.as_ref().map_or_else(String::new, |conversation| {
        let exact = if conversation.exact { "" } else { " (about)" };
        format!("{} {}{exact}", conversation.agent, conversation.native_id)
    })
}
