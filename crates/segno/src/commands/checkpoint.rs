//! `segno checkpoint`: named places to come back to.

use clap::{Args as ClapArgs, Subcommand};
use segno_engine::core::event::CheckpointReason;
use segno_engine::core::{Command as Act, List};

use super::args::Page;
use super::doing::{look, record};
use super::lists;
use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::exit::ExitCode;
use crate::output::table::{Column, Table};
use crate::output::units;

/// Make and look at checkpoints
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno checkpoint create before-migration --reason \"risky\"")]
pub struct Args {
    /// What to do; lists the checkpoints if nothing is said
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with checkpoints.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Make a checkpoint of where the session is now
    Create {
        /// Its name; one is made up if none is given
        name: Option<String>,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// List checkpoints
    List {
        /// Which page
        #[command(flatten)]
        page: Page,
    },
    /// Show a checkpoint
    Show {
        /// Its id, name or number
        name: String,
    },
}

/// Runs `segno checkpoint`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None => lists::show(context, None, List::Checkpoints, &Page::default()),
        Some(Command::Create { name, reason }) => {
            let mut commands = Vec::new();
            if let Some(reason) = reason {
                commands.push(Act::NoteHistory {
                    action: "checkpoint_reason".to_owned(),
                    phase: None,
                    details: Some(reason.as_str().into()),
                });
            }
            commands.push(Act::CreateCheckpoint { name: name.clone(), reason: CheckpointReason::Asked });
            record(context, commands, |acted| match &acted.state.checkpoint {
                Some(mark) => format!("checkpoint {}   seq {}", mark.id, mark.seq).into(),
                None => "no checkpoint".into(),
            })
        }
        Some(Command::List { page }) => lists::show(context, None, List::Checkpoints, page),
        Some(Command::Show { name }) => show(context, name),
    }
}

/// The session's state as it was at a checkpoint, folded from the journal.
fn show(context: &Context, name: &str) -> Outcome {
    let (desk, state) = look(context)?;
    let items = desk.engine.items(state.session_id, List::Checkpoints)?;
    let fits = |body: &serde_json::Value| {
        let is = |field: &str| body.get(field).and_then(serde_json::Value::as_str) == Some(name);
        let ordinal = body.get("ordinal").and_then(serde_json::Value::as_u64).map(|n| n.to_string());
        is("id") || is("name") || ordinal.as_deref() == Some(name)
    };
    // Of several with one name the newest is meant.
    let found = items.into_iter().rev().find(|item| fits(&item.body)).ok_or_else(|| {
        CommandError::new(ExitCode::Refused, "unknown_item", format!("no checkpoint {name} in this session"))
            .hint("segno checkpoint list")
    })?;
    let seq = found.body.get("seq").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let (then, notices) = segno_engine::store::state_at(desk.engine.store(), state.session_id, seq)
        .map_err(segno_engine::Error::from)?;
    for notice in notices {
        context.printer.warn(notice);
    }
    if context.printer.is_json() {
        return context.printer.json(&serde_json::json!({ "checkpoint": found.body, "state": then }));
    }
    let text = |field: &str| {
        found.body.get(field).map_or(String::new(), |value| match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => String::new(),
            other => other.to_string(),
        })
    };
    let made = text("created_at");
    let made = made.parse().map_or(made, |at| context.time(at));
    let mut table = Table::new([Column::left(""), Column::left("").elastic()]).without_titles();
    for (label, value) in [
        ("checkpoint", text("id")),
        ("reason", text("reason")),
        ("made", made),
        ("seq", seq.to_string()),
        ("phase", then.phase_label().unwrap_or_default()),
        ("tokens", units::tokens(then.budget.tokens_used)),
        ("tool calls", text("tool_count")),
        ("since then", units::things(state.seq.saturating_sub(seq), "event")),
    ] {
        if !value.is_empty() {
            table.row([label.to_owned(), value]);
        }
    }
    context.printer.table(&table)
}
