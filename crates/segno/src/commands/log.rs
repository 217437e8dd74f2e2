//! `segno log` and `segno history`: the journal, and the story it tells.

use std::time::Duration;

use clap::Args as ClapArgs;
use segno_engine::Engine;
use segno_engine::EventRow;
use segno_engine::core::Event;
use segno_engine::core::List;
use segno_engine::transfer::event_json;
use segno_engine::transfer::inline;
use serde_json::Value;

use super::args::OneSession;
use super::args::Page;
use super::lists;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::event_words::Line;
use crate::output::event_words::Teller;
use crate::output::style::Meaning;

/// A text that is no longer than this is on the line of its event.
const SHORT: usize = 80;
/// How many events are read at once.
const PAGE: usize = 500;
/// How long one wait for new events lasts.
const WAIT: Duration = Duration::from_secs(5);

/// Read the journal of a session
///
/// Every event in order, in words: what happened, when, how long it took and how large it was. With --json, every
/// event exactly as it was recorded, one per line.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno log --follow --kind tool_started")]
pub struct Args {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Which page
    #[command(flatten)]
    pub page: Page,
    /// Go on as events arrive, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Only events of this kind; may be repeated
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<String>,
}

/// Read what was done in a session
///
/// The actions of the session in order, one line each, with their phase.
#[derive(ClapArgs, Clone, Debug)]
#[command(visible_alias = "session-history", after_help = "Example:\n  segno history last --limit 50")]
pub struct HistoryArgs {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Which page
    #[command(flatten)]
    pub page: Page,
}

/// Runs `segno log`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let id = ctx.session_to_read(args.session.id.as_ref())?;
    let state = ctx.load(id)?;
    let mut teller = Teller::new(&state.project.path);
    let head = state.seq;
    let limit = args.page.limit.map(u64::from);
    let full = args.page.full.then_some(&ctx.engine);
    let mut after = match (args.page.after, args.follow, limit) {
        (Some(after), ..) => after,
        // Without a place to start from, the newest are what people want.
        (None, _, Some(limit)) => head.saturating_sub(limit),
        (None, true, None) => head.saturating_sub(10),
        (None, false, None) => 0,
    };
    let mut left = if args.follow { u64::MAX } else { limit.unwrap_or(u64::MAX) };
    loop {
        let rows = ctx.engine.events(id, after, PAGE)?;
        if rows.is_empty() {
            if !args.follow {
                return Ok(());
            }
            context.printer.flush()?;
            ctx.engine.wait_for_events(id, after, WAIT)?;
            continue;
        }
        for row in rows {
            after = row.seq();
            if left == 0 {
                return Ok(());
            }
            if wanted(&row, &args.kind) {
                left -= 1;
                print(context, full, &mut teller, &row)?;
            }
        }
    }
}

fn wanted(row: &EventRow, kinds: &[String]) -> bool {
    match row {
        EventRow::Whole(event) => kinds.is_empty() || kinds.contains(&event.kind),
        // Damage is never filtered away.
        EventRow::Damaged { .. } => true,
    }
}

/// Prints one event as a line of JSON; answers with its number.
pub(super) fn print_line(context: &Context, row: &EventRow) -> Outcome<u64> {
    match row {
        EventRow::Whole(event) => {
            context.printer.json_line(&event_json(event))?;
            Ok(event.seq)
        }
        EventRow::Damaged { seq, what } => {
            context.printer.json_line(&serde_json::json!({ "seq": seq, "damaged": what }))?;
            Ok(*seq)
        }
    }
}

/// The long texts of an event, whole, below its line.
fn print_texts(context: &Context, engine: &Engine, body: &str) -> Outcome {
    let Ok(Value::Object(members)) = serde_json::from_str(body).map(|body| inline(engine, body)) else {
        return Ok(());
    };
    for (name, member) in members {
        let text = match member {
            Value::String(text) if text.len() > SHORT || text.contains('\n') => text,
            value @ (Value::Object(_) | Value::Array(_)) => value.to_string(),
            _ => continue,
        };
        context.printer.data(Text::new().painted(Meaning::Dim, format!("        {name}:")))?;
        for line in text.lines() {
            context.printer.data(format!("        {line}"))?;
        }
    }
    Ok(())
}

fn print(context: &Context, full: Option<&Engine>, teller: &mut Teller, row: &EventRow) -> Outcome {
    let printer = &context.printer;
    match row {
        EventRow::Whole(event) if printer.is_json() && full.is_some() => {
            let mut line = event_json(event);
            if let Some(engine) = full {
                line["body"] = inline(engine, line["body"].take());
            }
            printer.json_line(&line)
        }
        row if printer.is_json() => print_line(context, row).map(|_| ()),
        EventRow::Whole(event) => {
            let at = context.clock(event.at);
            let told = match Event::decode(&event.kind, event.version, &event.body) {
                Ok(decoded) => teller.tell(event.at, &decoded),
                Err(why) => Line {
                    word: event.kind.clone(),
                    what: why.to_string(),
                    note: String::new(),
                    meaning: Meaning::Lost,
                },
            };
            let note =
                if told.note.is_empty() { String::new() } else { format!("   {}", one_line(&told.note)) };
            let line = Text::new()
                .painted(Meaning::Dim, format!("{:>6}  {at:>8}  ", event.seq))
                .painted(told.meaning, format!("{:<12}  ", one_line(&told.word)))
                .plain(one_line(&told.what))
                .painted(Meaning::Dim, note);
            // What is cut on a narrow terminal can be asked for.
            printer.data(match printer.data_width().filter(|_| full.is_none()) {
                Some(width) => line.cut(width),
                None => line,
            })?;
            match full {
                Some(engine) => print_texts(context, engine, &event.body),
                None => Ok(()),
            }
        }
        EventRow::Damaged { seq, what } => printer.data(
            Text::new()
                .painted(Meaning::Dim, format!("{seq:>6}  {:>8}  ", ""))
                .painted(Meaning::Lost, format!("damaged: {what}")),
        ),
    }
}

/// Long texts are cut: `--json` has them whole.
fn one_line(text: &str) -> String {
    segno_engine::core::text::shorten(&text.replace(['\n', '\t'], " "), 200)
}

/// Runs `segno history`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn history(context: &Context, args: &HistoryArgs) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let id = ctx.session_to_read(args.session.id.as_ref())?;
    lists::show_at(&ctx, id, List::History, &args.page)
}
