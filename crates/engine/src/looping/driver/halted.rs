//! A loop whose breaker is open: what lets it go on, and how it is waited for.

use std::time::Duration;

use segno_core::SessionId;
use segno_core::State;
use segno_core::looping::BreakerBy;
use segno_core::looping::BreakerCause;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopState;
use segno_core::looping::NextStep;
use segno_core::looping::PersonDid;
use segno_core::looping::cause_gone;
use segno_core::looping::next_step;

use super::drive::LoopHost;
use super::drive::the_loop;
use super::news::LoopNews;
use super::turn::who;
use crate::Engine;
use crate::Error;
use crate::launch::LaunchSettings;
use crate::launch::Who;
use crate::looping::limits::park::Waited;
use crate::looping::limits::park::wait_until;

/// A time that nobody waits for: ten years.
const FAR_SECONDS: i64 = 10 * 365 * 86_400;

/// What came of waiting beside a loop that needs a person.
pub(crate) enum Afterwards {
    /// It may go on.
    GoesOn,
    /// It stays as it is, for this reason.
    Stays(String),
}

impl LaunchSettings {
    /// Finds the agent of the phase that a loop is in, before anything is done for it.
    ///
    /// # Errors
    /// If no such agent is known, or it is not installed.
    pub fn check_loop(&self, looping: &LoopState) -> Result<(), Error> {
        let phase = looping.phase_plan().or_else(|| looping.plan.phases.first());
        phase.map_or(Ok(()), |phase| self.choose(&who(looping, phase)).map(drop))
    }
}

impl Engine {
    /// Whether a halted loop goes on without a reset now: the cool-down is over, or somebody did something about what
    /// opened its breaker.
    ///
    /// # Errors
    /// If the session is no loop, or its files cannot be looked at.
    pub fn loop_may_try(&self, session: SessionId, settings: &LaunchSettings) -> Result<bool, Error> {
        let state = self.load(session)?.state;
        match next_step(&state, self.now()) {
            NextStep::Halted { .. } => Ok(self.help_came(&state, false, settings)?.is_some()),
            NextStep::Probe => Ok(true),
            _ => Ok(false),
        }
    }

    /// What lets one iteration be tried although the breaker of a loop is open; nothing if nobody did anything about it.
    /// `replanned` is whether it gets another plan in this moment.
    pub(crate) fn help_came(
        &self,
        state: &State,
        replanned: bool,
        settings: &LaunchSettings,
    ) -> Result<Option<LoopCommand>, Error> {
        let looping = the_loop(state)?;
        let mut seen: Vec<PersonDid> = replanned.then_some(PersonDid::ChangedPlan).into_iter().collect();
        if looping.breaker.cause == Some(BreakerCause::StartFailures) {
            // What a start needs is looked at only where it was a start that failed.
            let now = looping.phase_plan().map(|phase| setup(settings, &who(looping, phase)));
            let then = looping.last.as_ref().and_then(|last| last.setup.clone());
            if then.is_some() && now != then {
                seen.push(PersonDid::ChangedSetup);
            }
        } else {
            let left = looping.last.as_ref().and_then(|last| last.bound_to().cloned());
            if left.is_some() && self.present_tree(state)? != left {
                seen.push(PersonDid::ChangedFiles);
            }
        }
        let reason = cause_gone(looping, &seen);
        Ok(reason.map(|why| LoopCommand::Probe { by: BreakerBy::CauseGone, reason: why.to_owned() }))
    }

    /// Stays beside a loop that needs a person, until it may go on: the cool-down is over, somebody reset the breaker,
    /// did something about what opened it, or said that it goes on after a breakpoint.
    pub(crate) fn stay(&self, session: SessionId, host: &LoopHost<'_>) -> Result<Afterwards, Error> {
        let state = self.load(session)?.state;
        let until = match next_step(&state, self.now()) {
            NextStep::Halted { probe_at: Some(when) } => when,
            NextStep::Halted { probe_at: None } => {
                let why = "it was tried often enough; only a person can close its breaker";
                return Ok(Afterwards::Stays(why.to_owned()));
            }
            NextStep::Breakpoint { .. } => self.now().plus_seconds(FAR_SECONDS),
            NextStep::Ended => return Ok(Afterwards::Stays(state.status.to_string())),
            _ => return Ok(Afterwards::GoesOn),
        };
        // Whoever says or does something about it is in the record; a tree is only looked at when it is tried.
        let moved = |state: &State| match next_step(state, self.now()) {
            NextStep::Halted { .. } => {
                the_loop(state).is_ok_and(|looping| cause_gone(looping, &[]).is_some())
            }
            NextStep::Breakpoint { .. } => false,
            _ => true,
        };
        let called_off =
            || host.stop.asked().0 > 0 || self.load(session).is_ok_and(|loaded| moved(&loaded.state));
        let mut tick = |left: Duration| {
            if left < Duration::from_secs(FAR_SECONDS.unsigned_abs() / 2) {
                host.listener.hear(&LoopNews::Waiting { left });
            }
        };
        let waited = wait_until(self, until, host.sleeper, &called_off, &mut tick);
        if let (Waited::CalledOff, (1.., how)) = (waited, host.stop.asked()) {
            return Ok(Afterwards::Stays(format!("{}; it stays as it is", how.as_str())));
        }
        match self.load(session)?.state {
            state if !state.status.is_open() => Ok(Afterwards::Stays(state.status.to_string())),
            state if state.driver.is_some() => {
                Ok(Afterwards::Stays("somebody else went on with it".to_owned()))
            }
            _ => Ok(Afterwards::GoesOn),
        }
    }
}

/// What a start of an agent depends on, as one hash: the program, how it is set up, and which variables there are. Their
/// values are not looked at: some are keys.
pub(crate) fn setup(settings: &LaunchSettings, who: &Who) -> String {
    let mut hasher = blake3::Hasher::new();
    let chosen = settings.choose(who);
    let program = chosen.as_ref().ok().map(|chosen| chosen.program.clone());
    let file = program.as_ref().and_then(|program| std::fs::metadata(program).ok());
    let age = file.as_ref().and_then(|file| file.modified().ok());
    hasher.update(format!("{program:?} {age:?} {:?}", file.map(|file| file.len())).as_bytes());
    hasher.update(
        format!("{:?}", chosen.map(|chosen| chosen.settings).map_err(|why| why.to_string())).as_bytes(),
    );
    let mut names: Vec<_> = settings.environment.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    hasher.update(format!("{names:?}").as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}
