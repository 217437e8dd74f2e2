//! The ways to go on, each with its honest cost.

use segno_core::Fact;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::call::subject;
use segno_core::event::CheckpointReason;
use segno_core::event::OptionOffered;
use segno_core::event::Recovery;
use segno_core::event::RecoveryChosen;
use segno_core::state::LastKnown;
use segno_core::text::shorten;
use serde::Serialize;

use crate::Engine;
use crate::Error;
use crate::tree::Checkpoint;
use crate::tree::RestoreRequest;
use crate::tree::RestoreTarget;

/// How many of the newest checkpoints are looked through for one to go on from.
const CHECKPOINTS: usize = 1_000;
/// How many are read at once.
const PAGE: usize = 20;

/// What is known of a session that waits to go on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Options {
    /// Since when it waits.
    pub since: Timestamp,
    /// Why, in words.
    pub reason: String,
    /// The last thing that was done.
    pub last_action: Option<String>,
    /// The agent, and its conversation if it can be gone on with.
    pub agent: Option<String>,
    /// The conversation.
    pub conversation: Option<String>,
    /// Calls that nobody knows the end of: tool and input.
    pub in_doubt: Vec<(String, String)>,
    /// The available options.
    #[serde(rename = "ways")]
    pub offered: Vec<OptionOffered>,
}

/// The newest stop of a session and how it can be, or was, taken up after it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecoveryReport {
    /// The session.
    pub session_id: SessionId,
    /// When it stopped.
    pub interrupted_at: Timestamp,
    /// Why.
    pub interrupt_reason: String,
    /// Where work was.
    pub last_known_state: LastKnown,
    /// How many calls nobody knew the end of.
    pub in_doubt: u64,
    /// How many of those were found out about.
    pub settled: u64,
    /// The ways to go on: those there are now, or those there were when one was chosen.
    pub recovery_options: Vec<OptionOffered>,
    /// The one to take.
    pub recommended: Option<Recovery>,
    /// The one that was taken.
    pub recovery_type: Option<Recovery>,
    /// What was gone on from.
    pub target: Option<String>,
    /// When.
    pub recovered_at: Option<Timestamp>,
    /// How often it was taken up again without anybody asking for it.
    pub attempts: u64,
}

impl Engine {
    /// The newest checkpoint that work can go on from: all of it is on disk, nothing was rolled back behind it, and it
    /// was made here by somebody who knew what they were doing, not by the end of a dead run.
    pub fn checkpoint_to_resume(&self, session: SessionId) -> Result<Option<Checkpoint>, Error> {
        let fits = |checkpoint: &Checkpoint| {
            checkpoint.ready
                && checkpoint.valid
                && !checkpoint.aside
                && !checkpoint.is_from_elsewhere()
                && !checkpoint.is_for(CheckpointReason::Interrupt)
        };
        self.newest_checkpoint(session, CHECKPOINTS, PAGE, fits)
    }

    /// What can be gone on from.
    pub fn recovery_options(&self, session: SessionId) -> Result<(State, Options), Error> {
        let state = self.load(session)?.state;
        let options = self.options_of(&state, true)?;
        Ok((state, options))
    }

    /// `looks` counts the files that going back would change, which takes a look at the whole tree.
    fn options_of(&self, state: &State, looks: bool) -> Result<Options, Error> {
        let checkpoint = self.checkpoint_to_resume(state.session_id)?;
        let files = checkpoint.as_ref().filter(|checkpoint| looks && checkpoint.snapshot.is_some());
        // Where the tree cannot be looked at, going back will say so.
        let files = files.and_then(|before| self.files_lost(state, before).ok());
        let reason = match (&state.reason, state.status) {
            (Some(reason), _) => {
                let details = reason.details.as_deref().map_or(String::new(), |more| format!(", {more}"));
                format!("{}{details}", reason.what)
            }
            (None, status) => status.to_string(),
        };
        let stopped = state.recovery.as_ref().filter(|_| state.status != Status::Active);
        let run = state.run.as_ref();
        Ok(Options {
            since: stopped.map_or(state.updated_at, |stopped| stopped.interrupted_at),
            reason,
            last_action: state.last_action.clone(),
            agent: run.map(|run| run.agent.clone()),
            conversation: run.and_then(|run| run.conversation().map(ToOwned::to_owned)),
            in_doubt: state
                .calls
                .in_doubt
                .values()
                .map(|call| {
                    let input = serde_json::from_str(&call.input).map_or_else(
                        // Shortened, so it may be no JSON any more.
                        |_| call.input.clone(),
                        |input| subject(&input),
                    );
                    (call.tool.clone(), input)
                })
                .collect(),
            offered: available(state, checkpoint.as_ref(), files),
        })
    }

    /// How many files going back to a checkpoint would change. What others did stays, and is no loss. Before the end of a
    /// run is recorded nobody knows what of it was its own: then every change counts.
    fn files_lost(&self, state: &State, checkpoint: &Checkpoint) -> Result<u64, Error> {
        if state.run.as_ref().is_some_and(segno_core::state::RunMark::is_running) {
            return Ok(self.changed_files(state, checkpoint)?.len() as u64);
        }
        let preview = self.preview(state.session_id, back_to(checkpoint))?;
        let lost = preview.plan.as_ref().map_or(0, |plan| plan.writes().count() + plan.removals().count());
        self.forget(preview);
        Ok(lost as u64)
    }

    /// The newest stop of a session, and how it can be or was taken up; none if it never stopped.
    pub fn recovery_report(&self, state: &State) -> Result<Option<RecoveryReport>, Error> {
        let Some(mark) = &state.recovery else { return Ok(None) };
        let offered = match mark.recovery_type {
            Some(_) => mark.offered.clone(),
            None if state.status.is_open() => self.options_of(state, false)?.offered,
            None => Vec::new(),
        };
        Ok(Some(RecoveryReport {
            session_id: state.session_id,
            interrupted_at: mark.interrupted_at,
            interrupt_reason: mark.interrupt_reason.clone(),
            last_known_state: mark.last_known_state.clone(),
            in_doubt: mark.in_doubt,
            settled: mark.settled,
            recommended: offered.iter().find(|option| option.recommended).map(|option| option.recovery),
            recovery_options: offered,
            recovery_type: mark.recovery_type,
            target: mark.target.clone(),
            recovered_at: mark.recovered_at,
            attempts: mark.attempts,
        }))
    }

    /// The fact that this way was taken.
    pub fn chosen(
        &self,
        options: &Options,
        recovery: Recovery,
        target: Option<String>,
        automatic: bool,
    ) -> Fact {
        let known = options.offered.iter().find(|option| option.recovery == recovery);
        Fact::RecoveryChosen(Box::new(RecoveryChosen {
            recovery,
            target: target.or_else(|| known.and_then(|option| option.target.clone())),
            offered: options.offered.clone(),
            automatic,
        }))
    }

    /// Why a session cannot be gone on with, in the words of those who named the cases.
    pub fn refuse_resume(&self, state: &State, reset_breaker: bool) -> Result<(), Error> {
        match segno_core::detect::refusal(state, reset_breaker) {
            Some(why) => Err(Error::NotResumable { why, status: state.status }),
            None => Ok(()),
        }
    }
}

/// How work goes back to a checkpoint. What others did since, such as a person after a crash, stays as it is.
pub(super) fn back_to(checkpoint: &Checkpoint) -> RestoreRequest {
    RestoreRequest {
        target: RestoreTarget::UndoTo(checkpoint.ordinal),
        state: true,
        files: checkpoint.snapshot.is_some(),
        ..RestoreRequest::files_of(checkpoint.ordinal)
    }
}

/// The ways to go on from a state, with the checkpoint that can be gone on from. A loop goes on by its own plan, from what
/// is there.
fn available(state: &State, checkpoint: Option<&Checkpoint>, files: Option<u64>) -> Vec<OptionOffered> {
    let in_doubt = state.calls.in_doubt.len();
    let is_loop = state.looping.is_some();
    let checkpoint = checkpoint.filter(|_| !is_loop);
    let mut offered = Vec::new();
    if let Some(checkpoint) = checkpoint {
        // Checkpoints of older programs do not say how much had been done.
        let actions = checkpoint
            .actions
            .map_or_else(|| state.actions_since(checkpoint.seq), |then| state.actions.saturating_sub(then));
        offered.push(OptionOffered {
            recovery: Recovery::Checkpoint,
            target: Some(checkpoint.id.clone()),
            text: format!("last checkpoint {}", shorten(&checkpoint.id, 100)),
            loses: loses(actions, files),
            actions_lost: actions,
            files_lost: files,
            recommended: in_doubt > 0,
        });
    }
    offered.push(OptionOffered {
        recovery: Recovery::Live,
        target: None,
        text: "live state, every recorded event".to_owned(),
        loses: match in_doubt {
            0 => "loses nothing".to_owned(),
            1 => "loses nothing; 1 call in doubt".to_owned(),
            n => format!("loses nothing; {n} calls in doubt"),
        },
        actions_lost: 0,
        files_lost: None,
        recommended: in_doubt == 0 || checkpoint.is_none(),
    });
    if is_loop {
        return offered;
    }
    offered.push(OptionOffered {
        recovery: Recovery::Fresh,
        target: None,
        text: "fresh start".to_owned(),
        loses: "gives this session up; its record stays".to_owned(),
        actions_lost: state.calls.total,
        files_lost: None,
        recommended: false,
    });
    offered
}

/// What going back costs, in words.
fn loses(actions: u64, files: Option<u64>) -> String {
    let things = |n: u64, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
    let mut lost = Vec::new();
    if actions > 0 {
        lost.push(things(actions, "action"));
    }
    if let Some(files) = files.filter(|files| *files > 0) {
        lost.push(format!("changes to {}", things(files, "file")));
    }
    if lost.is_empty() { "loses nothing".to_owned() } else { format!("loses {}", lost.join(" and ")) }
}
