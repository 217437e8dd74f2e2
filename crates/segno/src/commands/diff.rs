//! `segno diff`: what was done to the files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use segno_engine::core::List;
use segno_engine::core::SessionId;
use segno_engine::core::rows::FileRow;
use segno_engine::core::rows::ToolRow;
use segno_engine::tree::Checkpoint;
use segno_engine::workspace::Change;
use segno_engine::workspace::ChangeKind;
use serde_json::Value;
use serde_json::json;

use super::undo::refuse_ids;
use super::undo::selection;
use super::undo::session;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// Show what changed in the files
///
/// From the beginning of the last run's last turn, or from a checkpoint, until now: changes after the run are included,
/// whoever made them; --until cp-02-final leaves them out. --stat shows only which files, and how much.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:\n  segno diff\n  segno diff --since cp-02-red src/\n  segno diff --stat")]
pub struct DiffArgs {
    /// Only these files and directories
    pub paths: Vec<PathBuf>,
    /// Since this checkpoint
    #[arg(long, value_name = "CP")]
    pub since: Option<String>,
    /// Up to this checkpoint instead of now
    #[arg(long, value_name = "CP")]
    pub until: Option<String>,
    /// Only which files, and how much
    #[arg(long)]
    pub stat: bool,
}

/// Runs `segno diff`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn diff(context: &Context, args: &DiffArgs) -> Outcome {
    let (ctx, state) = session(context)?;
    refuse_ids(&ctx, "diff", &args.paths)?;
    let engine = &ctx.engine;
    let session = state.session_id;
    let before = match &args.since {
        Some(name) => engine.find_checkpoint(session, name)?,
        None => turn_start(engine.checkpoints(session)?)?,
    };
    let after = args.until.as_ref().map(|name| engine.find_checkpoint(session, name)).transpose()?;
    let selection = selection(&state, &args.paths)?;
    let until = after.as_ref().map_or("now, whoever changed it".to_owned(), |after| after.id.clone());
    let span = format!("session {}: from {} to {until}", short(session), before.id);
    if args.stat || context.printer.is_json() {
        let mut compared = engine.compare(session, &before, after.as_ref(), true)?;
        compared.files.retain(|change| selection.has_path(&change.path));
        if context.printer.is_json() {
            let by = by_whom(&ctx, session)?;
            let files: Vec<Value> = compared
                .files
                .iter()
                .map(|change| {
                    let mut file = change_json(change);
                    file["by"] = json!(by.get(&change.path));
                    file
                })
                .collect();
            return context.printer.json(&json!({ "since": before.id, "files": files }));
        }
        context.printer.talk(span);
        return changes_by(context, &compared.files, &by_whom(&ctx, session)?);
    }
    let text = engine.diff_text(session, &before, after.as_ref(), &selection)?;
    context.printer.talk(span);
    if text.is_empty() {
        context.printer.talk("nothing is different");
        return Ok(());
    }
    context.page(&coloured(&String::from_utf8_lossy(&text)))
}

fn turn_start(all: Vec<Checkpoint>) -> Outcome<Checkpoint> {
    let with_files =
        |checkpoint: &&Checkpoint| checkpoint.ready && checkpoint.snapshot.is_some() && !checkpoint.aside;
    let last = all.iter().rev().filter(with_files).find(|it| it.begins_a_turn());
    let found = last.or_else(|| all.iter().rev().find(with_files)).cloned();
    found.ok_or_else(|| {
        CommandError::new(
            crate::exit::ExitCode::Refused,
            "no_checkpoint",
            "this session has no checkpoint with files",
        )
        .hint("segno checkpoint create")
    })
}

fn coloured(diff: &str) -> Text {
    let mut text = Text::new();
    for line in diff.lines() {
        let meaning = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") || line.starts_with("diff ") => {
                Meaning::Strong
            }
            Some(b'+') => Meaning::Done,
            Some(b'-') => Meaning::Lost,
            Some(b'@') => Meaning::Waiting,
            _ => Meaning::Plain,
        };
        text = text.painted(meaning, line).newline();
    }
    text
}

/// Which call last said that it changed a file: its tool and what it was given.
fn by_whom(ctx: &CommandContext<'_>, session: SessionId) -> Outcome<BTreeMap<PathBuf, String>> {
    let mut tools = BTreeMap::new();
    for row in ctx.engine.items(session, List::Tools)? {
        let ToolRow { call, tool, input, .. } = row.row();
        if !call.is_empty() && !tool.is_empty() {
            let subject = segno_engine::core::call::subject(&input.unwrap_or_default());
            tools.insert(call, format!("{tool} {}", segno_engine::core::text::shorten(&subject, 60)));
        }
    }
    let root = ctx.load(session)?.project.path;
    let mut by = BTreeMap::new();
    for row in ctx.engine.items(session, List::Files)? {
        let row: FileRow = row.row();
        let path = PathBuf::from(&row.path);
        if let Some(tool) =
            row.call.and_then(|call| tools.get(&call).cloned()).filter(|_| !row.path.is_empty())
        {
            by.insert(path.strip_prefix(&root).map(ToOwned::to_owned).unwrap_or(path), tool);
        }
    }
    Ok(by)
}

/// Which files changed, and how much.
pub(super) fn changes(context: &Context, files: &[Change]) -> Outcome {
    changes_by(context, files, &BTreeMap::new())
}

fn changes_by(context: &Context, files: &[Change], by: &BTreeMap<PathBuf, String>) -> Outcome {
    for change in files {
        let (word, meaning) = match change.kind {
            ChangeKind::Added => ("added", Meaning::Done),
            ChangeKind::Modified => ("modified", Meaning::Plain),
            ChangeKind::Deleted => ("deleted", Meaning::Lost),
            ChangeKind::TypeChanged => ("type", Meaning::Waiting),
            ChangeKind::ModeChanged => ("mode", Meaning::Waiting),
        };
        let lines = change.lines.map_or_else(
            || change.size_after.map_or(String::new(), units::bytes),
            |lines| format!("+{} −{}", lines.added, lines.removed),
        );
        let text = Text::new()
            .painted(meaning, format!("  {word:<9}"))
            .plain(change.path.display().to_string())
            .painted(Meaning::Dim, format!("   {lines}"));
        let text = match by.get(&change.path) {
            Some(call) => text.painted(Meaning::Dim, format!("   {call}")),
            None => text,
        };
        context.printer.data(text)?;
    }
    context.printer.talk(format!("{} changed", units::things(files.len() as u64, "file")));
    Ok(())
}

/// A change as JSON.
pub(super) fn change_json(change: &Change) -> Value {
    let kind = match change.kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
        ChangeKind::TypeChanged => "type_changed",
        ChangeKind::ModeChanged => "mode_changed",
    };
    json!({
        "path": change.path, "change": kind, "size_before": change.size_before, "size_after": change.size_after,
        "added": change.lines.map(|lines| lines.added), "removed": change.lines.map(|lines| lines.removed),
    })
}
