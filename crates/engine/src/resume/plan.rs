//! Going on with a session: what still lives is heard out first, then it is decided where to go on from, and only then
//! is anything said to an agent.

use segno_agents::Conversation;
use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::UserKey;
use segno_core::event::ConversationMark;
use segno_core::event::Maker;
use segno_core::event::Recovery;

use super::BriefLimits;
use super::options::back_to;
use crate::Engine;
use crate::Error;
use crate::frontend::Frontend;
use crate::tree::Checkpoint;

/// What to do about a repository that is on another branch than the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BranchWish {
    /// Nobody said anything: work does not begin on the wrong branch.
    #[default]
    Same,
    /// Go to the session's branch first.
    Checkout,
    /// Go on where the repository is.
    Any,
}

/// How somebody wants to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumeWish {
    /// Where from; what is there now if nobody says.
    pub from: Option<Recovery>,
    /// From this checkpoint.
    pub checkpoint: Option<String>,
    /// By this agent instead of the last one.
    pub agent: Option<String>,
    /// Start no agent.
    pub no_run: bool,
    /// What the agent shall do, beside going on.
    pub prompt: Option<String>,
    /// The agent gets a terminal, with somebody there who knows what to do.
    pub interactive: bool,
    /// Close the breaker of a halted session.
    pub reset_breaker: bool,
    /// On which branch.
    pub branch: BranchWish,
    /// Nobody asked for it: the agent died and is started again.
    pub automatic: bool,
    /// Doing it twice under the same key does it once, where no agent is started.
    pub key: Option<UserKey>,
}

impl ResumeWish {
    fn recovery(&self) -> Recovery {
        match &self.checkpoint {
            Some(_) => Recovery::Checkpoint,
            None => self.from.unwrap_or(Recovery::Live),
        }
    }

    /// Whether nothing more is wanted than that the work goes on.
    fn is_plain(&self) -> bool {
        self.recovery() == Recovery::Live && self.prompt.is_none() && self.agent.is_none()
    }
}

/// An agent that goes on.
#[derive(Clone, Debug)]
pub struct ResumedAgent {
    /// Its name.
    pub name: String,
    /// The session whose conversation it is.
    pub from: SessionId,
    /// The conversation.
    pub conversation: Conversation,
    /// What it is told; empty if somebody is there who knows.
    pub prompt: String,
}

/// A session that is ready to go on.
#[derive(Clone, Debug)]
pub struct Resumption {
    /// The session that goes on: the same one, or the one that takes its place.
    pub state: State,
    /// From where.
    pub recovery: Recovery,
    /// What was restored, in words.
    pub restored: Vec<String>,
    /// The agent to start; none if there is none to be started.
    pub agent: Option<ResumedAgent>,
    /// Its agent had finished after its driver died: there is nothing to go on with.
    pub finished: bool,
}

impl Engine {
    /// Makes a session ready to go on. Nothing is decided before what still lives is stopped and all it said is
    /// recorded. `is_there` answers whether the agent of a name can be started.
    ///
    /// # Errors
    /// If it cannot go on, or not like this. Nothing is changed then, but that a lost agent may have been stopped.
    pub fn prepare_resume(
        &self,
        session: SessionId,
        wish: &ResumeWish,
        frontend: &dyn Frontend,
        is_there: &dyn Fn(&str) -> Result<(), Error>,
    ) -> Result<Resumption, Error> {
        self.settle_session(session)?;
        let state = self.load(session)?.state;
        self.refuse_resume(&state, wish.reset_breaker)?;
        self.refuse_driven(session)?;
        let recovery = wish.recovery();
        // What cannot be found is said before anything is stopped.
        let checkpoint = self.wished_checkpoint(session, wish)?;
        let name = self.agent_to_resume(&state, wish);
        if name.is_some() {
            self.check_start(&state)?;
        }
        let state = self.hear_out(session, frontend)?;
        if state.status == Status::Interrupted && wish.is_plain() && has_finished(&state) {
            return self.finish_meanwhile(&state);
        }
        // An agent that cannot be started is said before anything is recorded or brought back for it.
        name.as_deref().map_or(Ok(()), is_there)?;
        let mut restored = Vec::new();
        let branch = self.settle_branch(&state, wish.branch)?;
        if name.is_some() || recovery != Recovery::Live || wish.branch != BranchWish::Same {
            restored.extend(branch);
        }
        let state = self.load(session)?.state;
        let mut session = session;
        let (_, options) = self.recovery_options(session)?;
        let target = checkpoint.as_ref().map(|checkpoint| checkpoint.id.clone());
        // A session that is active, and has nothing to go back to, only goes on.
        let nothing = state.status == Status::Active && name.is_none() && recovery == Recovery::Live;
        let mut inputs: Vec<segno_core::Input> = Vec::new();
        if !nothing {
            inputs.push(self.chosen(&options, recovery, target, wish.automatic).into());
        }
        if name.is_none() && recovery != Recovery::Fresh && state.status != Status::Active {
            let resume = Command::Resume { reset_breaker: wish.reset_breaker, details: None };
            inputs.push(resume.into());
        }
        if !inputs.is_empty() {
            self.act_all(session, inputs, wish.key.clone())?;
        }
        if let Some(checkpoint) = &checkpoint {
            restored.push(self.go_back_to(session, checkpoint)?);
        }
        if recovery == Recovery::Fresh {
            let reason = Some("fresh start: a new session goes on".into());
            self.act(session, Command::Abort { reason })?;
            session = self.start_afresh(&state)?.state.session_id;
            restored.push(format!("a new session that continues {}", state.session_id));
        }
        // After everything that was brought back: it tells what is there now, and nothing of what was given up.
        let limits = BriefLimits::default();
        let brief = self.brief(session, limits)?.text(limits);
        let now = self.load(session)?.state;
        let told = told(&brief, wish.prompt.as_deref(), has_doubts(&now));
        let agent = name.map(|name| self.resumed_agent(&state, name, wish, checkpoint, told, &mut restored));
        Ok(Resumption { state: now, recovery, restored, agent, finished: false })
    }

    /// What an agent would be told if the session went on now, from what is there or afresh. What going back to a
    /// checkpoint leaves is only known afterwards.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn told_now(&self, session: SessionId, wish: &ResumeWish) -> Result<String, Error> {
        let limits = BriefLimits::default();
        let state = self.load(session)?.state;
        let afresh = wish.recovery() == Recovery::Fresh;
        let brief = match afresh {
            true => self.brief_afresh(&state, limits)?,
            false => self.brief(session, limits)?,
        };
        Ok(told(&brief.text(limits), wish.prompt.as_deref(), !afresh && has_doubts(&state)))
    }

    /// Whoever drives it has an agent at work, which is not ours to stop. One that has been silent for too long is
    /// replaced by whoever takes over.
    ///
    /// # Errors
    /// If somebody drives it.
    pub fn refuse_driven(&self, session: SessionId) -> Result<(), Error> {
        match self.store().lease(session)?.filter(|lease| crate::lease::silent_seconds(lease).is_none()) {
            Some(lease) => Err(segno_store::Error::Held(Box::new(lease)).into()),
            None => Ok(()),
        }
    }

    fn wished_checkpoint(&self, session: SessionId, wish: &ResumeWish) -> Result<Option<Checkpoint>, Error> {
        match (&wish.checkpoint, wish.recovery()) {
            (Some(name), _) => {
                let found = self.find_checkpoint(session, name)?;
                crate::tree::refuse_from_elsewhere(&found)?;
                Ok(Some(found))
            }
            (None, Recovery::Checkpoint) => {
                let found = self.checkpoint_to_resume(session)?;
                let none = || Error::NoTree("this session has no checkpoint to go on from".to_owned());
                found.map(Some).ok_or_else(none)
            }
            (None, Recovery::Live | Recovery::Fresh) => Ok(None),
        }
    }

    /// The agent that is to go on, if one is. A plain command cannot be told where it was.
    fn agent_to_resume(&self, state: &State, wish: &ResumeWish) -> Option<String> {
        let last =
            state.run.as_ref().map(|run| run.agent.clone()).filter(|agent| !segno_agents::is_command(agent));
        wish.agent.clone().or(last).filter(|_| !wish.no_run)
    }

    /// Stops the agent of a session that nobody drives, takes in all it said, and looks how its calls ended.
    pub(crate) fn hear_out(&self, session: SessionId, frontend: &dyn Frontend) -> Result<State, Error> {
        let state = self.load(session)?.state;
        let replaced = if let Some(alive) = crate::run::living_agent(&state) {
            frontend.notice(&format!("its agent (pid {}) still runs and is stopped first", alive.pid));
            self.stop_to_go_on(session)?
        } else {
            self.settle_run_if_dead(session)?
        };
        if let Some(whom) = replaced {
            frontend.warn(&whom);
        }
        if !self.load(session)?.state.calls.in_doubt.is_empty() {
            let settled = self.gather_evidence(session)?;
            if !settled.is_empty() {
                let calls = if settled.len() == 1 { "call" } else { "calls" };
                frontend.notice(&format!(
                    "the agent's own record tells how {} {calls} in doubt ended",
                    settled.len()
                ));
            }
        }
        Ok(self.load(session)?.state)
    }

    /// The agent did all it was asked, and only nobody was there to hear it.
    fn finish_meanwhile(&self, state: &State) -> Result<Resumption, Error> {
        let details = Some("its agent had finished after its driver died".into());
        let mut commands = vec![Command::Resume { reset_breaker: false, details }];
        if state.made_by == Maker::Run {
            commands.push(Command::Complete { summary: None });
        }
        let acted = self.act_all(state.session_id, commands, None)?;
        Ok(Resumption {
            state: acted.state,
            recovery: Recovery::Live,
            restored: Vec::new(),
            agent: None,
            finished: true,
        })
    }

    /// The repository is on the session's branch, or somebody said that it need not be.
    pub(crate) fn settle_branch(&self, state: &State, wish: BranchWish) -> Result<Option<String>, Error> {
        // Of one that was forgotten nobody knows which it was.
        let known = |branch: &&String| !branch.contains(segno_redact::forget::FORGOTTEN);
        let Some(branch) = state.branch.as_ref().filter(known).filter(|_| self.options.tree.is_some()) else {
            return Ok(None);
        };
        let workspace = self.workspace(state)?;
        let present =
            workspace.head()?.and_then(|head| head.branch).map(|name| short_branch(&name).to_owned());
        if present.as_ref() == Some(branch) {
            return Ok(Some(format!("branch {branch}")));
        }
        match wish {
            BranchWish::Any => {
                // It is the session's from now on: whoever looks next must not be told of the other one.
                let Some(present) = present else { return Ok(None) };
                let words = format!("branch {present} instead of {branch}");
                self.act(state.session_id, Command::SetGitBranch { branch: Some(present), commit: None })?;
                Ok(Some(words))
            }
            BranchWish::Checkout => {
                workspace.checkout_branch(branch)?;
                Ok(Some(format!("branch {branch}, checked out")))
            }
            BranchWish::Same => Err(Error::OtherBranch {
                session: state.session_id,
                branch: branch.clone(),
                present: present.unwrap_or_else(|| "no branch".to_owned()),
            }),
        }
    }

    fn go_back_to(&self, session: SessionId, checkpoint: &Checkpoint) -> Result<String, Error> {
        let files = checkpoint.snapshot.is_some();
        let gone = self.go(self.preview(session, back_to(checkpoint))?)?;
        Ok(match files {
            true => format!(
                "files and state of {} ({} written, {} removed, {} left as they are)",
                checkpoint.id,
                gone.applied.written.len(),
                gone.applied.removed.len(),
                gone.applied.kept.len()
            ),
            false => format!("the state of {}, which has no files", checkpoint.id),
        })
    }

    fn resumed_agent(
        &self,
        state: &State,
        name: String,
        wish: &ResumeWish,
        checkpoint: Option<Checkpoint>,
        told: String,
        restored: &mut Vec<String>,
    ) -> ResumedAgent {
        let run = state.run.as_ref().filter(|run| run.agent == name);
        let native = run
            .and_then(|run| run.conversation().map(ToOwned::to_owned))
            .filter(|_| wish.recovery() != Recovery::Fresh);
        // What came from another machine came without its conversation, unless somebody brought that, too.
        let elsewhere = state.made_by == Maker::Import || run.is_some_and(|run| run.elsewhere);
        let (native, behind) = match native {
            Some(native) if elsewhere && !crate::transfer::kept::is_here(self, &name, &native) => {
                (None, Some(native))
            }
            native => (native, None),
        };
        // With a person at its terminal an agent goes back to no place inside of a conversation.
        let at = checkpoint.and_then(|checkpoint| checkpoint.conversation).filter(|_| !wish.interactive);
        let conversation = conversation(&name, native, at);
        match &conversation {
            Conversation::Fork { .. } => {
                restored.push("a copy of the conversation up to the checkpoint".to_owned())
            }
            Conversation::Resume(native) => restored.push(format!("conversation {native}")),
            Conversation::New | Conversation::NewWithId(_) => {}
        }
        if let Some(native) = behind {
            let kept = match self.keeps_transcript_of(&name, &native) {
                true => format!("; segno rescue {native} puts it back"),
                false => String::new(),
            };
            restored.push(format!("a new conversation: {native} of {name} is not on this machine{kept}"));
        }
        let doubts = has_doubts(state);
        // Whoever sits there knows what to do next, unless something happened that nobody saw.
        let silent = wish.interactive && wish.is_plain() && !doubts;
        let prompt = match silent {
            true => String::new(),
            false => {
                let brief = match (wish.recovery(), doubts) {
                    (Recovery::Fresh, _) => "its task, as it was given",
                    (_, true) => "a brief of what was done and what is in doubt",
                    (_, false) => "a brief of what was done",
                };
                restored.push(brief.to_owned());
                told
            }
        };
        ResumedAgent { name, from: state.session_id, conversation, prompt }
    }
}

/// The conversation to go on in: up to where the checkpoint was, for an agent that can go back in one.
fn conversation(agent: &str, native: Option<String>, at: Option<ConversationMark>) -> Conversation {
    let can = segno_agents::by_name(agent).map(|agent| agent.capabilities()).unwrap_or_default();
    match (native, at) {
        (Some(native), Some(at))
            if can.goes_back_to_message && at.message.is_some() && at.native_id == native =>
        {
            Conversation::Fork { from: native, id: Some(uuid::Uuid::now_v7().to_string()), at: at.message }
        }
        (Some(native), _) => Conversation::Resume(native),
        (None, _) => Conversation::New,
    }
}

/// Whether there are calls that nobody knows the end of.
fn has_doubts(state: &State) -> bool {
    !state.calls.in_doubt.is_empty() || !state.calls.open.is_empty()
}

/// What an agent is told: the brief, and what it shall do now.
fn told(brief: &str, more: Option<&str>, doubts: bool) -> String {
    let usual = match doubts {
        true => "Go on with the task. Settle first what is in doubt.",
        false => "Go on with the task.",
    };
    format!("{brief}\n{}", more.unwrap_or(usual))
}

/// Whether the newest run ended well.
fn has_finished(state: &State) -> bool {
    let run = state.run.as_ref().filter(|run| !segno_agents::is_command(&run.agent));
    run.is_some_and(|run| run.outcome.as_deref() == Some("completed"))
}

/// A branch as people call it.
pub(crate) fn short_branch(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}
