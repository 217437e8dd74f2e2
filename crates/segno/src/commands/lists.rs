//! The lists of a session, as tables.

use std::time::Duration;

use segno_engine::EventRow;
use segno_engine::Item;
use segno_engine::ItemPosition;
use segno_engine::Items;
use segno_engine::core::Event;
use segno_engine::core::List;
use segno_engine::core::SessionId;
use segno_engine::core::event::ToolEnded;
use segno_engine::core::rows::ArtifactRow;
use segno_engine::core::rows::CheckpointRow;
use segno_engine::core::rows::OutputRow;
use segno_engine::core::rows::Row as _;
use segno_engine::core::rows::ToolRow;
use segno_engine::transfer::inline;
use serde_json::Value;
use serde_json::json;

use super::args::Page;
use crate::command_context::CommandContext;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

/// How many rows are shown unless somebody says otherwise.
const ROWS: usize = 100;

/// Shows a page of a list of a session, or of the one that is meant.
///
/// # Errors
/// If it cannot be read or written.
pub(super) fn show(context: &Context, session: Option<SessionId>, list: List, page: &Page) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let id = match session {
        Some(id) => id,
        None => ctx.session_to_read(None)?,
    };
    if list == List::Memory {
        // Whoever only looks is shown what is recorded, also by a store that cannot be written now.
        let _ = ctx.engine.note_memory(id);
    }
    show_at(&ctx, id, list, page)
}

/// The artifacts of one phase.
pub(super) fn artifacts_of_phase(context: &Context, page: &Page, phase: &str) -> Outcome {
    let list = List::Artifacts;
    let ctx = CommandContext::open_to_look(context)?;
    let id = ctx.session_to_read(None)?;
    show_some(&ctx, id, list, page, |item| item.row::<ArtifactRow>().phase.as_deref() == Some(phase))
}

/// The same for some of the rows.
pub(super) fn show_some(
    ctx: &CommandContext<'_>,
    id: SessionId,
    list: List,
    page: &Page,
    wanted: impl Fn(&Item) -> bool,
) -> Outcome {
    let mut items = ctx.engine.items(id, list)?;
    items.retain(wanted);
    let total = items.len() as u64;
    let limit = page.limit.map_or(ROWS, |limit| limit as usize);
    match page.after {
        Some(seq) => {
            items.retain(|item| item.seq > seq);
            items.truncate(limit);
        }
        None => drop(items.drain(..items.len().saturating_sub(limit))),
    }
    print(ctx, id, list, page, &Items { items, total })
}

/// The same for a store that is open already.
pub(super) fn show_at(ctx: &CommandContext<'_>, id: SessionId, list: List, page: &Page) -> Outcome {
    let limit = page.limit.map_or(ROWS, |limit| limit as usize);
    // Without a place to start from, the newest rows are what people want; with one, what came after it.
    let asked = match page.after {
        Some(seq) => segno_engine::Page {
            after: Some(ItemPosition { seq, key: start_key(list, seq) }),
            limit,
            newest_first: false,
        },
        None => segno_engine::Page::newest(limit),
    };
    let mut found = ctx.engine.page(id, list, &asked)?;
    if page.after.is_none() {
        found.items.reverse();
    }
    if page.full && list == List::Tools {
        whole_outputs(ctx, id, &mut found.items)?;
    }
    print(ctx, id, list, page, &found)
}

/// The rows of calls have only how their output begins; the journal has all of it.
fn whole_outputs(ctx: &CommandContext<'_>, id: SessionId, items: &mut [Item]) -> Outcome {
    let calls: Vec<String> = items.iter().map(|item| item.row::<ToolRow>().call).collect();
    let mut after = items.iter().map(|item| item.seq).min().unwrap_or(u64::MAX).saturating_sub(1);
    loop {
        let rows = ctx.engine.events(id, after, 500)?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.seq();
        for row in rows {
            let EventRow::Whole(event) = row else { continue };
            if let Ok(Event::ToolEnded(ToolEnded { call, output: Some(output), .. })) = event.event()
                && let Some(index) = calls.iter().position(|known| *known == call)
            {
                items[index].body["output"] = json!(output);
            }
        }
    }
}

/// Rows one below the other, each with its texts whole.
fn print_full(ctx: &CommandContext<'_>, list: List, items: &[Item]) -> Outcome {
    let printer = &ctx.context.printer;
    for item in items {
        let Value::Object(members) = inline(&ctx.engine, item.body.clone()) else { continue };
        let mut first = Text::new().painted(Meaning::Dim, format!("{:>6}  ", item.seq));
        let mut texts = Vec::new();
        let columns = columns(list).iter().map(|(_, field)| *field);
        let more = ["input", "output"].into_iter().filter(|_| list == List::Tools);
        let mut shown: Vec<&str> = Vec::new();
        for field in columns.chain(more) {
            if shown.contains(&field) {
                continue;
            }
            shown.push(field);
            match members.get(field) {
                Some(Value::String(text)) if is_long(field, text) => texts.push((field, text.clone())),
                Some(value @ (Value::Object(_) | Value::Array(_))) => texts.push((field, value.to_string())),
                _ => first = first.then(cell(ctx.context, &item.body, field)).plain("  "),
            }
        }
        printer.data(first)?;
        for (field, text) in texts {
            printer.data(Text::new().painted(Meaning::Dim, format!("        {field}:")))?;
            for line in text.lines() {
                printer.data(format!("        {line}"))?;
            }
        }
    }
    Ok(())
}

/// Whether a text is better read below than beside the rest.
fn is_long(field: &str, text: &str) -> bool {
    matches!(field, "input" | "output" | "content" | "details" | "message") || text.len() > 80
}

fn print(ctx: &CommandContext<'_>, id: SessionId, list: List, page: &Page, found: &Items) -> Outcome {
    let limit = page.limit.map_or(ROWS, |limit| limit as usize);
    let printer = &ctx.context.printer;
    if printer.is_json() {
        let items: Vec<Value> = found
            .items
            .iter()
            .map(|item| {
                let body = item.body.clone();
                let mut body = if page.full { inline(&ctx.engine, body) } else { body };
                if let Value::Object(members) = &mut body {
                    members.insert("seq".to_owned(), json!(item.seq));
                }
                body
            })
            .collect();
        return printer
            .json(&json!({ "session_id": id, "list": list.as_str(), "total": found.total, "items": items }));
    }
    if found.items.is_empty() {
        let what = if list == List::Tools { "tool calls" } else { list.as_str() };
        printer.talk(format!("no {what} yet"));
        return Ok(());
    }
    if page.full {
        print_full(ctx, list, &found.items)?;
    } else {
        printer.table(&table(ctx.context, list, &found.items))?;
    }
    let shown = found.items.len() as u64;
    // What came after a place is less than everything, but it is everything that was asked for.
    let cut = if page.after.is_some() { found.items.len() >= limit } else { shown < found.total };
    if cut {
        let go_on = match found.items.last() {
            Some(last) if page.after.is_some() => format!("--after {} goes on", last.seq),
            _ => "--limit N shows more, --after SEQ starts there".to_owned(),
        };
        printer.talk(Text::new().painted(Meaning::Dim, format!("{shown} of {} shown; {go_on}", found.total)));
    }
    Ok(())
}

/// Where reading starts after an event: keys of logs are their event's number, others come after every key.
fn start_key(list: List, seq: u64) -> String {
    match list {
        List::Tools | List::Files | List::Outputs | List::Runs => "\u{10ffff}".to_owned(),
        List::Tasks | List::Decisions | List::Checkpoints => String::new(),
        List::History
        | List::Artifacts
        | List::Errors
        | List::Memory
        | List::Milestones
        | List::Verifications => {
            format!("{seq:020}")
        }
    }
}

fn columns(list: List) -> &'static [(&'static str, &'static str)] {
    match list {
        List::History => {
            &[("", "timestamp"), ("action", "action"), ("phase", "phase"), ("details", "details")]
        }
        List::Artifacts => &[("", "timestamp"), ("", "artifact_type"), ("phase", "phase"), ("path", "path")],
        List::Outputs => &[("name", "name"), ("kind", "kind"), ("size", "size"), ("", "content")],
        List::Tasks => &[("#", "task"), ("", "state"), ("task", "text")],
        List::Decisions => &[
            ("#", "decision"),
            ("after", "parent"),
            ("branch", "branch"),
            ("question", "question"),
            ("choice", "choice"),
            ("because", "reason"),
        ],
        List::Tools => {
            &[("", "started_at"), ("tool", "tool"), ("", "state"), ("took", "took"), ("input", "input")]
        }
        List::Files => &[("", "changed_at"), ("", "change"), ("path", "path")],
        List::Errors => {
            &[("", "timestamp"), ("phase", "phase"), ("fingerprint", "fingerprint"), ("error", "message")]
        }
        List::Memory => &[("", "timestamp"), ("", "usage"), ("source", "source"), ("query", "query")],
        List::Milestones => &[("", "reached_at"), ("milestone", "name"), ("details", "details")],
        List::Checkpoints => &[
            ("checkpoint", "id"),
            ("reason", "reason"),
            ("phase", "of_phase"),
            ("", "created_at"),
            ("seq", "seq"),
        ],
        List::Runs => &[
            ("", "started_at"),
            ("agent", "agent"),
            ("version", "version"),
            ("conversation", "native_id"),
            ("outcome", "outcome"),
            ("reason", "reason"),
        ],
        List::Verifications => {
            &[("phase", "phase"), ("check", "check"), ("", "verdict"), ("details", "details")]
        }
    }
}

fn table(context: &Context, list: List, items: &[Item]) -> Table {
    let columns = columns(list);
    let last = columns.len() - 1;
    let mut table = Table::new(columns.iter().enumerate().map(|(index, (title, field))| {
        let column = if matches!(*field, "task" | "decision" | "parent" | "seq" | "size" | "took") {
            Column::right(*title)
        } else {
            Column::left(*title)
        };
        if index == last { column.elastic() } else { column }
    }));
    for item in items {
        table.row(columns.iter().map(|(_, field)| cell(context, &item.body, field)));
    }
    table
}

fn cell(context: &Context, body: &Value, field: &str) -> Text {
    match field {
        "size" => {
            let content = OutputRow::read_any(body).content;
            return units::bytes(content.map_or(0, |content| content.bytes())).into();
        }
        "of_phase" => return CheckpointRow::read_any(body).of_phase().unwrap_or_default().to_owned().into(),
        "took" => {
            let call = ToolRow::read_any(body);
            return match (call.started_at, call.ended_at) {
                (Some(start), Some(end)) => {
                    let took = end.micros_since(start).max(start.micros_since(end));
                    units::duration(Duration::from_micros(took)).into()
                }
                _ => Text::new(),
            };
        }
        _ => {}
    }
    // A checkpoint whose files were given up says so where it says what it was for.
    if let ("reason", Some(why)) = (field, body.get("dropped").and_then(Value::as_str)) {
        let reason = body.get(field).and_then(Value::as_str).unwrap_or_default();
        return Text::new().plain(reason).painted(Meaning::Dim, format!(" (given up: {why})"));
    }
    let text = match body.get(field) {
        None | Some(Value::Null) => return Text::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(members)) if members.contains_key("excerpt") => {
            format!("{}…", members.get("excerpt").and_then(Value::as_str).unwrap_or(""))
        }
        Some(other) => other.to_string(),
    };
    if field.ends_with("_at") || field == "timestamp" {
        let shown = text.parse().map_or(text, |at| context.time(at));
        return Text::new().painted(Meaning::Dim, shown);
    }
    let meaning = match (field, text.as_str()) {
        ("state", "completed" | "done") | ("verdict", "pass") => Meaning::Done,
        ("state", "open" | "in_doubt") | ("verdict", "skip") => Meaning::Waiting,
        ("state", "failed" | "denied") | ("verdict", "fail") => Meaning::Lost,
        ("fingerprint", _) => Meaning::Dim,
        _ => Meaning::Plain,
    };
    let text = if field == "state" { text.replace('_', " ") } else { text };
    Text::new().painted(meaning, segno_engine::core::text::shorten(&text, 400))
}

#[cfg(test)]
mod tests {
    use segno_engine::core::rows;

    use super::*;

    /// A column that no row has would be empty for ever. These are worked out from others.
    #[test]
    fn every_column_is_a_field_of_its_row() {
        for list in List::ALL {
            for (_, field) in columns(list) {
                let fields = rows::fields(list);
                assert!(
                    matches!(*field, "size" | "took" | "of_phase") || fields.contains(field),
                    "{list:?} {field}"
                );
            }
        }
    }
}
