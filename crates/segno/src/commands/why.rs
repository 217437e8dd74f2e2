//! `segno why` and `segno blame`: who wrote the lines of a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use segno_engine::Engine;
use segno_engine::core::SessionId;
use segno_engine::why::CommitOrigins;
use segno_engine::why::FileOrigins;
use segno_engine::why::LineOrigin;
use segno_engine::why::Writer;
use serde_json::json;

use super::export::refuse_existing;
use super::export::write_new;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

/// Show which session wrote a line, a file or a commit
///
/// FILE:LINE says which session, prompt and call last wrote that line, between which checkpoints, and what the turn cost. FILE
/// alone counts its lines by session. Anything else is taken for a commit: which sessions went into it.
///
/// A line is credited to a call only if it was not there before and the call is known to have written it. Every other line is
/// not by a recorded call: a person's, or nobody can tell; the reason is said.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno why src/main.rs:42\n  segno why src/main.rs\n  segno why HEAD~2\n  segno why HEAD --agent-trace"
)]
pub struct Args {
    /// The file, with a line if one is meant, or a commit
    #[arg(value_name = "FILE[:LINE]|COMMIT")]
    pub what: String,
    /// Print a record in the format Agent Trace 0.1: which lines which conversation wrote, with which model, and nothing of what was
    /// said. Of a file as it is now, or of a commit
    #[arg(long)]
    pub agent_trace: bool,
    /// Write that record to a file
    #[arg(long, short, value_name = "FILE", requires = "agent_trace")]
    pub output: Option<PathBuf>,
    /// Replace the file if there is one already
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// Show for each line of a file which session wrote it
///
/// Lines without a letter or a digit go with the lines around them. --json has each line by itself.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:\n  segno blame src/main.rs\n  segno --json blame src/main.rs")]
pub struct BlameArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Runs `segno why`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let root = &context.project.root;
    if args.agent_trace {
        return trace(&ctx, args);
    }
    if let Some((file, line)) = meant(&args.what) {
        let found = ctx.engine.why(root, &file)?;
        return match line {
            Some(line) => one_line(context, &found, line),
            None => in_all(context, &found),
        };
    }
    match ctx.engine.why_commit(root, &args.what)? {
        Some(found) => commit(context, &found),
        None => Err(neither(&args.what)),
    }
}

fn neither(what: &str) -> CommandError {
    let why = format!("{what} is neither a file nor a commit of this project");
    CommandError::new(ExitCode::Refused, "unknown_item", why).hint(format!("segno search path:{what}"))
}

/// Prints or writes a record of Agent Trace.
fn trace(ctx: &CommandContext<'_>, args: &Args) -> Outcome {
    let (context, root) = (ctx.context, &ctx.context.project.root);
    let record = match meant(&args.what) {
        Some((_, Some(_))) => {
            return Err(CommandError::usage("a record is of a whole file or a commit")
                .hint("segno why FILE --agent-trace"));
        }
        Some((file, None)) => ctx.engine.trace(root, &file)?,
        None => ctx.engine.trace_commit(root, &args.what)?.ok_or_else(|| neither(&args.what))?,
    };
    let Some(path) = &args.output else { return context.printer.json(&record) };
    if !args.force {
        refuse_existing(path)?;
    }
    let text = format!("{}\n", crate::output::json::document(&record)?);
    write_new(path, text.as_bytes())?;
    if context.printer.is_json() {
        return context.printer.json(&json!({ "file": path }));
    }
    context.printer.talk(format!("written: {}", path.display()));
    Ok(())
}

/// Runs `segno blame`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn blame(context: &Context, args: &BlameArgs) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let found = lines_of(&ctx.engine, &context.project.root, &args.file)?;
    if context.printer.is_json() {
        return context.printer.json(&found);
    }
    let mut table = Table::new([
        Column::right("lines"),
        Column::left("by"),
        Column::left("when").goes(1),
        Column::left("what").elastic(),
    ]);
    for (from, to, line) in ranges(&found.lines) {
        let lines = if from == to { from.to_string() } else { format!("{from}-{to}") };
        let row = match line.writer.and_then(|writer| found.writers.get(writer)) {
            Some(writer) => vec![
                Text::default().plain(lines),
                Text::default()
                    .painted(Meaning::Strong, format!("{} {}", short(writer.session_id), agent(writer))),
                Text::default().painted(Meaning::Dim, moment(writer)),
                Text::default().plain(writer.prompt.clone().unwrap_or_else(|| writer.subject.clone())),
            ],
            None => vec![
                Text::default().plain(lines),
                Text::default().plain("not recorded"),
                Text::default(),
                Text::default().painted(Meaning::Dim, reason(&found, line)),
            ],
        };
        table.row(row);
    }
    context.printer.table(&table)?;
    tell(context, &found);
    Ok(())
}

fn lines_of(engine: &Engine, root: &Path, file: &Path) -> Outcome<FileOrigins> {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    Ok(engine.why(root, &file)?)
}

/// A file that is there, and the line that is meant.
fn meant(what: &str) -> Option<(PathBuf, Option<usize>)> {
    let there = |name: &str| std::path::absolute(name).ok().filter(|path| path.is_file());
    if let Some(path) = there(what) {
        return Some((path, None));
    }
    let (name, line) = what.rsplit_once(':')?;
    let line = line.parse().ok()?;
    there(name).map(|path| (path, Some(line)))
}

fn one_line(context: &Context, found: &FileOrigins, number: usize) -> Outcome {
    let printer = &context.printer;
    let Some(line) = number.checked_sub(1).and_then(|at| found.lines.get(at)) else {
        let lines = units::things(found.lines.len() as u64, "line");
        return Err(CommandError::usage(format!("{} has {lines}", found.path.display())));
    };
    let writer = line.writer.and_then(|writer| found.writers.get(writer));
    if printer.is_json() {
        let near = line.near.and_then(|near| found.writers.get(near));
        let seen = line.seen.and_then(|seen| found.contents.get(seen));
        return printer.json(&json!({
            "path": found.path, "line": line.line, "text": line.text, "credited": writer.is_some(), "writer": writer,
            "doubt": line.doubt, "near": near, "seen": seen, "earlier_names": found.earlier_names, "notices": found.notices,
        }));
    }
    let place = format!("{}:{}", found.path.display(), line.line);
    printer.data(
        Text::default().painted(Meaning::Strong, place).plain("  ").plain(line.text.trim().to_owned()),
    )?;
    let row = |name: &str, what: Text| -> Outcome {
        printer.data(Text::default().painted(Meaning::Dim, format!("  {name:<11}")).then(what))
    };
    match writer {
        Some(writer) => {
            row("written", Text::default().plain(format!("{} by {}", moment(writer), agent(writer))))?;
            about(&row, writer)?;
            hints(context, writer);
        }
        None => {
            row("written", Text::default().plain("not by a recorded call"))?;
            row("because", Text::default().plain(reason(found, line)))?;
            if let Some(near) = line.near.and_then(|near| found.writers.get(near)) {
                row("perhaps", Text::default().plain(format!("{} {}", near.tool, near.subject)))?;
                about(&row, near)?;
                hints(context, near);
            }
        }
    }
    for name in &found.earlier_names {
        row("was called", Text::default().plain(name.display().to_string()))?;
    }
    tell(context, found);
    Ok(())
}

fn about(row: &dyn Fn(&str, Text) -> Outcome, writer: &Writer) -> Outcome {
    let topic = writer.topic.as_deref().unwrap_or("–");
    row(
        "session",
        Text::default().painted(Meaning::Strong, short(writer.session_id)).plain(format!("  {topic}")),
    )?;
    if let Some(prompt) = &writer.prompt {
        row("prompt", Text::default().plain(prompt.clone()))?;
    }
    row("call", Text::default().plain(format!("{} {}", writer.tool, writer.subject)))?;
    let number =
        |ordinal: Option<u64>| ordinal.map_or_else(|| "none".to_owned(), |ordinal| ordinal.to_string());
    let (before, after) = (number(writer.checkpoint_before), number(writer.checkpoint_after));
    row("checkpoint", Text::default().plain(format!("{before} before, {after} after")))?;
    if writer.turn_tokens.total() > 0 || writer.turn_micros.is_some() {
        let money =
            writer.turn_micros.map_or_else(|| "cost not said".to_owned(), |micros| units::money(micros, 0));
        row(
            "turn",
            Text::default().plain(format!("{}   {money}", units::tokens(writer.turn_tokens.total()))),
        )?;
    }
    Ok(())
}

fn hints(context: &Context, writer: &Writer) {
    let session = short(writer.session_id);
    context.printer.hint(format!("segno log {session} --after {}", writer.seq.saturating_sub(1)));
    if let (Some(before), Some(after)) = (writer.checkpoint_before, writer.checkpoint_after) {
        context.printer.hint(format!("segno --session {session} checkpoint diff {before} {after}"));
    }
}

/// Counts the lines of a file by session.
fn in_all(context: &Context, found: &FileOrigins) -> Outcome {
    let mut counts: BTreeMap<Option<SessionId>, (usize, Option<&Writer>)> = BTreeMap::new();
    for line in &found.lines {
        let writer = line.writer.and_then(|writer| found.writers.get(writer));
        let entry = counts.entry(writer.map(|writer| writer.session_id)).or_default();
        entry.0 += 1;
        // The newest call of the session in this file.
        if entry.1.is_none_or(|known| writer.is_some_and(|writer| writer.at > known.at)) {
            entry.1 = writer;
        }
    }
    let printer = &context.printer;
    if printer.is_json() {
        let sessions: Vec<_> = counts
            .iter()
            .map(|(session, (lines, writer))| json!({ "session_id": session, "lines": lines, "newest": writer }))
            .collect();
        return printer.json(&json!({
            "path": found.path, "lines": found.lines.len(), "by_session": sessions, "earlier_names": found.earlier_names,
            "sessions_read": found.sessions, "checkpoints": found.checkpoints, "notices": found.notices,
        }));
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, (lines, _))| std::cmp::Reverse(*lines));
    let mut table = Table::new([
        Column::right("lines"),
        Column::left("by"),
        Column::left("last").goes(1),
        Column::left("what").elastic(),
    ]);
    for (session, (lines, writer)) in counts {
        table.row(match (session, writer) {
            (Some(session), Some(writer)) => vec![
                Text::default().plain(lines.to_string()),
                Text::default().painted(Meaning::Strong, format!("{} {}", short(session), agent(writer))),
                Text::default().painted(Meaning::Dim, moment(writer)),
                Text::default().plain(writer.topic.clone().unwrap_or_default()),
            ],
            _ => vec![
                Text::default().plain(lines.to_string()),
                Text::default().plain("not recorded"),
                Text::default(),
                Text::default().painted(Meaning::Dim, "by no call that is known to have written them"),
            ],
        });
    }
    printer.table(&table)?;
    printer.hint(format!("segno blame {0}   segno why {0}:LINE", found.path.display()));
    tell(context, found);
    Ok(())
}

fn commit(context: &Context, found: &CommitOrigins) -> Outcome {
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(found);
    }
    let id = found.commit.get(..12).unwrap_or(&found.commit);
    printer.data(Text::default().painted(Meaning::Strong, id).plain(format!("  {}", found.subject)))?;
    let mut table = Table::new([
        Column::right("lines"),
        Column::left("by"),
        Column::right("files"),
        Column::left("what").elastic(),
    ]);
    let mut sessions: Vec<_> = found.by_session.iter().collect();
    sessions.sort_by_key(|(_, lines)| std::cmp::Reverse(**lines));
    for (session, lines) in sessions {
        let files = found.files.iter().filter(|file| file.by_session.contains_key(session)).count();
        let topic = found.topics.get(session).cloned().flatten();
        table.row(vec![
            Text::default().plain(lines.to_string()),
            Text::default().painted(Meaning::Strong, short(*session)),
            Text::default().plain(files.to_string()),
            Text::default().plain(topic.unwrap_or_default()),
        ]);
    }
    let files = found.files.iter().filter(|file| file.not_recorded > 0).count();
    table.row(vec![
        Text::default().plain(found.not_recorded.to_string()),
        Text::default().plain("not recorded"),
        Text::default().plain(files.to_string()),
        Text::default().painted(Meaning::Dim, "by no call that is known to have written them"),
    ]);
    printer.table(&table)?;
    if found.left_out > 0 {
        printer.warn(format!(
            "{} not looked at: no texts, or too many",
            units::things(found.left_out as u64, "file")
        ));
    }
    Ok(())
}

/// Lines that follow each other and come from the same call, or from none for the same reason. A line of signs alone goes with
/// the lines around it.
fn ranges(lines: &[LineOrigin]) -> Vec<(usize, usize, &LineOrigin)> {
    let mut all: Vec<(usize, usize, &LineOrigin)> = Vec::new();
    for line in lines {
        let is_sign = !line.text.chars().any(char::is_alphanumeric);
        let same = |other: &LineOrigin| {
            other.writer == line.writer
                && other.doubt == line.doubt
                && (line.writer.is_some() || other.seen == line.seen)
        };
        match all.last_mut() {
            Some((_, to, last)) if is_sign || same(last) => {
                *to = line.line;
            }
            Some((_, to, last)) if !last.text.chars().any(char::is_alphanumeric) => {
                (*to, *last) = (line.line, line);
            }
            _ => all.push((line.line, line.line, line)),
        }
    }
    all
}

fn agent(writer: &Writer) -> &str {
    writer.agent.as_deref().unwrap_or("an agent")
}

fn moment(writer: &Writer) -> String {
    let at = writer.at.to_string();
    at.get(..16).unwrap_or(&at).replace('T', " ")
}

/// Why a line is credited to no call, for people.
fn reason(found: &FileOrigins, line: &LineOrigin) -> String {
    let seen = line.seen.and_then(|seen| found.contents.get(seen));
    let seen = seen.map_or_else(String::new, |seen| match (seen.session_id, seen.checkpoint) {
        (Some(session), Some(checkpoint)) => {
            format!(" (first seen in checkpoint {checkpoint} of {})", short(session))
        }
        _ => " (seen in no checkpoint yet)".to_owned(),
    });
    let words = match line.doubt.unwrap_or_default() {
        "first" => "it was there before anything was recorded",
        "between" => "it came between two looks at the file, and no recorded call wrote it",
        "perhaps" => "it came while a call was open of which nobody knows what it wrote",
        "stood" => "the same words stood in the file before",
        "prompt" => "the words stood in the prompt",
        "shown" => "the agent had been shown these words before it wrote them",
        "blind" => "the agent was shown something that was not recorded",
        "nothing_before" => "nobody knows what stood in the file before the call",
        "signs" => "it has neither letter nor digit, and goes with the lines around it",
        _ => "lines that read the same cannot be told apart",
    };
    format!("{words}{seen}")
}

fn tell(context: &Context, found: &FileOrigins) {
    for notice in &found.notices {
        context.printer.warn(notice.clone());
    }
    if found.sessions == 0 {
        context.printer.talk("nothing was recorded in this project");
        context.printer.hint("segno import");
    }
}
