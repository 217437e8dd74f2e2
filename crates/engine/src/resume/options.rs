//! The ways to go on, each with its honest cost.

use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use serde::Serialize;

use crate::Engine;
use crate::Error;

/// Where to go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The last checkpoint: files and conversation as they were there.
    Checkpoint,
    /// What is there now.
    Live,
    /// A new session that knows of this one.
    Fresh,
}

/// One way to go on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// Which.
    pub recovery: Recovery,
    /// What it is, in words.
    pub text: String,
    /// What it costs, in words.
    pub loses: String,
    /// How many actions are lost.
    pub actions_lost: u64,
    /// Whether it is the one to take.
    pub recommended: bool,
}

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
    /// The ways to go on.
    pub ways: Vec<Way>,
}

impl Engine {
    /// What can be gone on from.
    pub fn recovery_options(&self, session: SessionId) -> Result<(State, Options), Error> {
        let state = self.load(session)?.state;
        let doubt = !state.calls.in_doubt.is_empty();
        let checkpoint = self.checkpoints(session)?.into_iter().rev().find(|checkpoint| {
            checkpoint.valid && checkpoint.ready && !checkpoint.aside && checkpoint.reason != "interrupt"
        });
        let lost = |since: u64| state.actions_since(since);
        let mut ways = Vec::new();
        if let Some(checkpoint) = &checkpoint {
            let actions = lost(checkpoint.seq);
            ways.push(Way {
                recovery: Recovery::Checkpoint,
                text: format!("last checkpoint {}", checkpoint.id),
                loses: match actions {
                    0 => "loses nothing".to_owned(),
                    1 => "loses 1 action".to_owned(),
                    n => format!("loses {n} actions"),
                },
                actions_lost: actions,
                recommended: doubt,
            });
        }
        let in_doubt = state.calls.in_doubt.len();
        ways.push(Way {
            recovery: Recovery::Live,
            text: "live state, every recorded event".to_owned(),
            loses: match in_doubt {
                0 => "loses nothing".to_owned(),
                1 => "loses nothing; 1 call in doubt".to_owned(),
                n => format!("loses nothing; {n} calls in doubt"),
            },
            actions_lost: 0,
            recommended: !doubt || checkpoint.is_none(),
        });
        ways.push(Way {
            recovery: Recovery::Fresh,
            text: "fresh start".to_owned(),
            loses: "gives this session up; its record stays".to_owned(),
            actions_lost: state.calls.total,
            recommended: false,
        });
        let reason = match (&state.reason, state.status) {
            (Some(reason), _) => {
                let details = reason.details.as_deref().map_or(String::new(), |more| format!(", {more}"));
                format!("{}{details}", reason.what)
            }
            (None, status) => status.to_string(),
        };
        let run = state.run.as_ref();
        let options = Options {
            since: state.updated_at,
            reason,
            last_action: state.last_action.clone(),
            agent: run.map(|run| run.agent.clone()),
            conversation: run.and_then(|run| run.native_id.clone()),
            in_doubt: state
                .calls
                .in_doubt
                .values()
                .map(|call| (call.tool.clone(), call.input.clone()))
                .collect(),
            ways,
        };
        Ok((state, options))
    }

    /// Why a session cannot be gone on with, in the words of those who named the cases.
    pub fn refuse_resume(&self, state: &State, reset_breaker: bool) -> Result<(), Error> {
        let refuse = |why: &str| Err(Error::NoRun(why.to_owned()));
        match state.status {
            Status::Completed => refuse("this session is completed; going on makes a new session"),
            Status::Aborted => refuse("this session was given up; going on makes a new session"),
            Status::Failed => refuse("this session failed; going on makes a new session"),
            Status::Halted if !reset_breaker => refuse("this session is halted: its breaker is open"),
            _ => Ok(()),
        }
    }
}
