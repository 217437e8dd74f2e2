//! Receipts: what was measured when a phase was done, for anybody to measure again.

use std::path::Path;

use segno_engine::core::SessionId;
use segno_engine::core::looping::Receipt;
use segno_engine::looping::ReceiptPlace;
use segno_engine::looping::Verified;
use segno_engine::run::Stop;
use serde_json::Value;
use serde_json::json;

use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::commands::args::SessionRef;
use crate::commands::args::TextSource;
use crate::commands::looping::status::the_status;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// The largest receipt that is read from a file.
const LARGEST: u64 = 1024 * 1024;

/// Lists the receipts of a loop.
pub(super) fn list(context: &Context, id: Option<&SessionRef>) -> Outcome {
    let ctx = CommandContext::open_to_look(context)?;
    let id = ctx.loop_to_read(id)?;
    the_status(&ctx, &ctx.load(id)?)?;
    let receipts = ctx.engine.loop_receipts(id)?;
    let printer = &context.printer;
    if printer.is_json() {
        let rows: Vec<Value> =
            receipts.iter().map(|(phase, receipt)| json!({ "phase": phase, "receipt": receipt })).collect();
        return printer.json(&json!({ "session_id": id, "receipts": rows }));
    }
    if receipts.is_empty() {
        printer.talk(format!("no phase of {} is done yet", short(id)));
    }
    for (phase, receipt) in &receipts {
        let tests = &receipt.counts;
        let tests = if tests.total > 0 { format!("   {} tests", tests.fraction()) } else { String::new() };
        let tree = receipt.tree.as_deref().map_or("unknown", |tree| tree.get(..12).unwrap_or(tree));
        printer.data(format!("{phase}   {}   tree {tree}{tests}", context.moment(receipt.at)))?;
        for (index, command) in receipt.commands.iter().enumerate() {
            let exit = receipt.evidence.get(index).and_then(|mark| mark.exit);
            let exit = exit.map_or("did not end".to_owned(), |exit| format!("exit {exit}"));
            printer.data(format!("  {command}   {exit}"))?;
        }
    }
    if let Some((phase, _)) = receipts.last() {
        printer.hint(format!("segno gate {} --verify {phase}", ctx.engine.ending(id)));
    }
    ctx.finish();
    Ok(())
}

/// Runs the commands of a receipt again on the files as they are.
pub(super) fn verify(
    context: &Context,
    id: Option<&SessionRef>,
    which: &str,
    needs_same_tree: bool,
) -> Outcome {
    // Whoever got a receipt from elsewhere may have no session yet.
    let ctx = match Path::new(which).is_file() {
        true => CommandContext::open_or_make(context)?,
        false => CommandContext::open(context)?,
    };
    let (id, phase, receipt) = find(&ctx, id, which)?;
    let place = id.map_or(ReceiptPlace::Directory(&context.project.root), ReceiptPlace::Session);
    let settings = crate::commands::run::settings(context, Some(ctx.engine.store_id()))?;
    let stop = Stop::default();
    let _signals = crate::commands::run::listen(&stop)?;
    let now = ctx.engine.verify_receipt(place, &receipt, &settings, &stop, &())?;
    let well = now.holds && now.same_commands && (now.same_tree || !needs_same_tree);
    show(context, id, (&phase, &receipt), &now, well)?;
    ctx.finish();
    if well {
        return Ok(());
    }
    let what = match (now.holds, now.same_commands) {
        (false, _) => "what is measured now is not what the receipt says",
        (true, false) => "the commands no longer use the same scripts",
        (true, true) => "these are not the files that were measured",
    };
    Err(CommandError::failure("receipt_differs", format!("the receipt of {phase} does not hold: {what}")))
}

fn show(
    context: &Context,
    id: Option<SessionId>,
    (phase, receipt): (&str, &Receipt),
    now: &Verified,
    well: bool,
) -> Outcome {
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&json!({
            "session_id": id, "phase": phase, "holds": well, "same_results": now.holds,
            "same_commands": now.same_commands, "same_tree": now.same_tree,
            "receipt": receipt, "tree": now.tree, "evidence": now.evidence, "counts": now.counts,
        }));
    }
    let mark = |holds: bool| if holds { "✓" } else { "✗" };
    for (command, (then, now)) in receipt.commands.iter().zip(receipt.evidence.iter().zip(&now.evidence)) {
        let exit = |exit: Option<i32>| exit.map_or("did not end".to_owned(), |exit| format!("exit {exit}"));
        let (then, now) = (exit(then.exit), exit(now.exit));
        printer.data(format!("  {} {command}: {now} (then {then})", mark(then == now)))?;
    }
    if receipt.counts.total > 0 || now.counts.total > 0 {
        let same = receipt.counts == now.counts;
        let (then, now) = (receipt.counts.fraction(), now.counts.fraction());
        printer.data(format!("  {} tests: {now} (then {then})", mark(same)))?;
    }
    let scripts = if now.same_commands { "as they were" } else { "changed" };
    printer.data(format!("  {} commands and their scripts: {scripts}", mark(now.same_commands)))?;
    let tree = if now.same_tree { "the one that was measured" } else { "not the one that was measured" };
    printer.data(format!("  {} tree: {tree}", mark(now.same_tree)))
}

/// The receipt that is meant, and the session in whose project it is measured; none for a file where there is no loop.
fn find(
    ctx: &CommandContext<'_>,
    id: Option<&SessionRef>,
    which: &str,
) -> Outcome<(Option<SessionId>, String, Receipt)> {
    let path = Path::new(which);
    let is_file = path.is_file();
    let (id, known) = match of_loop(ctx, id) {
        Ok((id, known)) => (Some(id), known),
        // A receipt from elsewhere needs no loop here, unless one was named.
        Err(_) if is_file && id.is_none() => (None, Vec::new()),
        Err(why) => return Err(why),
    };
    let of_phase = known.iter().find(|(phase, _)| phase.eq_ignore_ascii_case(which));
    if let Some((phase, receipt)) = of_phase {
        return Ok((id, phase.clone(), receipt.clone()));
    }
    if let Some(id) = id.filter(|_| !is_file) {
        let names: Vec<&str> = known.iter().map(|(phase, _)| phase.as_str()).collect();
        let why = format!("{} has no receipt of {which}, and there is no such file", short(id));
        let error = CommandError::new(ExitCode::Refused, "no_receipt", why);
        return Err(match names.is_empty() {
            true => error.hint(format!("segno gate receipts {}", ctx.engine.ending(id))),
            false => error.hint(format!("there are receipts of {}", names.join(", "))),
        });
    }
    let text = TextSource::File(path.to_owned()).read(LARGEST)?;
    let (phase, receipt, of) = parse(&text)?;
    if of > 1 {
        ctx.context.printer.talk(format!("the receipt of {phase}, the last of {of} in {which}"));
    }
    // Whoever wrote the file chose the commands. Those that this store has on record, somebody here chose.
    let ours = known.iter().any(|(_, known)| known.commands == receipt.commands);
    if !ours && !ctx.context.loaded()?.trust.is_trusted() {
        let commands = receipt.commands.join("; ");
        let why = format!("the receipt runs commands that nobody here chose ({commands})");
        return Err(CommandError::config("receipt", why).hint("look at them, then: segno trust"));
    }
    Ok((id, phase, receipt))
}

/// The loop that is meant, and its receipts.
fn of_loop(
    ctx: &CommandContext<'_>,
    id: Option<&SessionRef>,
) -> Outcome<(SessionId, Vec<(String, Receipt)>)> {
    let id = ctx.loop_to_read(id)?;
    Ok((id, ctx.engine.loop_receipts(id)?))
}

/// A receipt from a file, and of how many it is the last: one of its own, the newest of a list, or the body of the event.
fn parse(text: &str) -> Outcome<(String, Receipt, usize)> {
    let bad = |why: String| {
        CommandError::usage(format!("this is no receipt: {why}"))
            .hint("segno gate receipts --json   writes them")
    };
    let value: Value = serde_json::from_str(text).map_err(|why| bad(why.to_string()))?;
    let of = value["receipts"].as_array().map_or(1, Vec::len);
    let last = value["receipts"].as_array().and_then(|all| all.last()).cloned();
    let one = last.unwrap_or(value);
    let phase = one["phase"].as_str().unwrap_or("the file").to_owned();
    let receipt = if one["receipt"].is_object() { one["receipt"].clone() } else { one };
    let receipt: Receipt = serde_json::from_value(receipt).map_err(|why| bad(why.to_string()))?;
    if receipt.commands.is_empty() {
        return Err(bad("it names no command".to_owned()));
    }
    Ok((phase, receipt, of))
}
