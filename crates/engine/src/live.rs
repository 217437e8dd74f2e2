//! The live state of a session as one document: what is under way, what there is already, and where to take it up.

use std::collections::BTreeMap;

use segno_core::Event;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::event::Channel;
use segno_core::live::SaveTrigger;
use segno_core::rows::FileRow;
use segno_core::rows::OutputRow;
use segno_core::text::shorten;
use segno_store::EventRow;
use segno_store::Page;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use crate::Engine;
use crate::Error;

/// How many of the newest events are looked through for what the agent said last.
const LOOK_BACK: u64 = 200;
/// How many outputs and files are named.
const MOST: usize = 200;
/// How much of a text is shown, in characters.
const EXCERPT: usize = 1_000;

/// What is under way in a session.
#[derive(Clone, Debug, Serialize)]
pub struct LiveState {
    /// The session.
    pub session_id: SessionId,
    /// When the newest event was recorded, which is when this was saved.
    pub saved_at: Timestamp,
    /// What it was saved for.
    pub save_trigger: SaveTrigger,
    /// How far it is.
    pub state: Value,
    /// What is being done.
    pub context: Value,
    /// What there is already.
    pub outputs: Value,
    /// Where it can be taken up.
    pub recovery_point: Value,
}

impl Engine {
    /// The live state of a session, derived from its journal.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub fn live_state(&self, state: &State) -> Result<LiveState, Error> {
        let session = state.session_id;
        let save_trigger = self.save_trigger(state)?;
        let partial = self.newest_words(state)?;
        let rows = |list| self.store().items(session, list, &Page::newest(MOST));
        let mut outputs: BTreeMap<String, Value> = BTreeMap::new();
        for item in rows(List::Outputs)?.items {
            let row: OutputRow = item.row();
            if row.name.is_empty() {
                continue;
            }
            let content = row.content.map(|content| match content {
                Text::Whole(text) => shorten(&text, EXCERPT),
                Text::Aside(aside) => aside.excerpt,
            });
            outputs.insert(row.name, json!(content));
        }
        let files = rows(List::Files)?.items.into_iter().map(|item| item.row::<FileRow>().path);
        let files: Vec<String> = files.filter(|path| !path.is_empty()).collect();
        // An output that somebody gave one of these names stays what it is.
        outputs.entry("code_files".to_owned()).or_insert_with(|| json!(files));
        if let Some(partial) = partial {
            outputs.entry("partial_output".to_owned()).or_insert_with(|| json!(partial));
        }
        Ok(LiveState {
            session_id: session,
            saved_at: state.updated_at,
            save_trigger,
            state: json!({
                "topic": state.topic, "status": state.status, "phase": state.phase, "current_step": state.step,
                "of": state.of, "current_agent": state.agent, "iteration_count": state.iteration,
                "breakpoint_active": state.breakpoint.is_some(), "metrics": state.metrics,
            }),
            context: json!({
                "last_action": state.last_action,
                "pending_tasks": state.tasks.open,
                "pending_calls": state.calls.open,
                "current_file": state.position.as_ref().map(|position| &position.file),
                "current_line": state.position.as_ref().and_then(|position| position.line),
            }),
            outputs: json!(outputs),
            recovery_point: json!({
                "checkpoint": state.checkpoint.as_ref().map(|mark| &mark.id),
                "actions_since_checkpoint": state.actions_since_checkpoint,
                "can_resume_from_action": state.is_resumable(),
            }),
        })
    }

    /// What the newest event was a save for.
    pub(crate) fn save_trigger(&self, state: &State) -> Result<SaveTrigger, Error> {
        let at = |seq: u64| -> Result<Option<Event>, Error> {
            let row = self.store().events(state.session_id, seq.saturating_sub(1), 1)?.pop();
            Ok(match row {
                Some(EventRow::Whole(stored)) => stored.event().ok(),
                _ => None,
            })
        };
        let mut newest = at(state.seq)?;
        // That a checkpoint is on disk now says nothing of what it was made for.
        let completes = matches!(newest, Some(Event::CheckpointReady(_) | Event::CheckpointFailed(_)));
        if let Some(mark) = state.checkpoint.as_ref().filter(|_| completes) {
            newest = at(mark.seq)?.or(newest);
        }
        Ok(newest.map_or(SaveTrigger::Auto, |event| SaveTrigger::of(&event)))
    }

    /// What the agent said last.
    fn newest_words(&self, state: &State) -> Result<Option<String>, Error> {
        let after = state.seq.saturating_sub(LOOK_BACK);
        let rows = self.store().events(state.session_id, after, usize::try_from(LOOK_BACK).unwrap_or(1))?;
        let mut said = None;
        for row in rows {
            let EventRow::Whole(stored) = row else { continue };
            let Ok(event) = stored.event() else { continue };
            if let Event::Said(words) = event
                && words.channel == Channel::Text
            {
                said = Some(words.text.short(EXCERPT));
            }
        }
        Ok(said)
    }
}
