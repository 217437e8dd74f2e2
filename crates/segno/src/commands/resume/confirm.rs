//! What a resume says when it is done: what goes on, from where, and what was restored.

use segno_engine::EventRow;
use segno_engine::core::State;
use segno_engine::core::Summary;
use segno_engine::resume::Resumption;
use serde_json::json;

use crate::command_context::CommandContext;
use crate::command_context::title;
use crate::error::Outcome;
use crate::output::Text;

/// How many events a resume makes at most that are named.
const EVENTS: usize = 100;

/// One line for the session, one for what was restored.
pub(super) fn tell(ctx: &CommandContext<'_>, resumption: &Resumption, before: u64) {
    let printer = &ctx.context.printer;
    let state = &resumption.state;
    if state.seq == before && resumption.agent.is_none() {
        let line = Text::new().then(title(state)).plain("   is active already, and no agent works in it");
        printer.talk(line.plain(standing(state)));
        return;
    }
    if resumption.finished {
        let text = format!("its agent has finished meanwhile; nothing was started   {}", state.status);
        printer.talk(Text::new().plain("resumed ").then(title(state)).plain(format!("   {text}")));
        return;
    }
    let from = format!("   from {}", resumption.recovery.as_str());
    printer.talk(Text::new().plain("resumed ").then(title(state)).plain(from).plain(standing(state)));
    if !resumption.restored.is_empty() {
        printer.talk(format!("restored: {}", resumption.restored.join(", ")));
    }
}

/// Where the work stands: step, outputs, metrics, branch.
fn standing(state: &State) -> String {
    let mut parts = Vec::new();
    parts.extend(state.phase_label().map(|phase| format!("phase {phase}")));
    if !state.outputs.is_empty() {
        parts.push(format!("outputs {}", state.outputs.keys().cloned().collect::<Vec<_>>().join(", ")));
    }
    if !state.metrics.is_empty() {
        parts.push(metrics(state));
    }
    parts.extend(state.branch.as_ref().map(|branch| format!("branch {branch}")));
    parts.iter().map(|part| format!("   {part}")).collect()
}

/// Metrics as people read them.
pub(in crate::commands) fn metrics(state: &State) -> String {
    let each = state.metrics.iter().map(|(name, value)| format!("{name} {}", json!(value)));
    each.collect::<Vec<_>>().join(", ")
}

/// The end of a resume that starts no agent.
pub(super) fn finish(
    ctx: &CommandContext<'_>,
    resumption: &Resumption,
    before: u64,
    was_plain: bool,
) -> Outcome {
    let state = &resumption.state;
    let printer = &ctx.context.printer;
    if printer.is_json() {
        let rows = ctx.engine.events(state.session_id, before, EVENTS)?;
        let kinds: Vec<String> = rows
            .into_iter()
            .filter_map(|row| match row {
                EventRow::Whole(stored) => Some(stored.kind),
                EventRow::Damaged { .. } => None,
            })
            .collect();
        printer.json(&json!({
            "session_id": state.session_id,
            "seq": state.seq,
            "status": state.status,
            "events": kinds,
            "repeated": false,
            "late": false,
            "spooled": false,
            "requested": null,
            "recovery": resumption.recovery,
            "restored": resumption.restored,
            "finished": resumption.finished,
            "session": Summary::from(state),
        }))?;
    }
    if was_plain && !resumption.finished {
        let id = ctx.engine.ending(state.session_id);
        printer.hint(format!("its command is not run again by itself: segno run --session {id} -- …"));
    }
    ctx.finish();
    Ok(())
}
