//! The loop itself: one iteration after another under one lease, each decision recorded before anything follows from it.

use std::path::Path;
use std::time::Duration;

use segno_core::Command;
use segno_core::Refusal;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::WokenHow;
use segno_core::looping::BreakerBy;
use segno_core::looping::Further;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopState;
use segno_core::looping::LoopVerdict;
use segno_core::looping::NextStep;
use segno_core::looping::ParkReason;
use segno_core::looping::PersonNeed;
use segno_core::looping::next_step;

use super::driven::Driven;
use super::halted::Afterwards;
use super::news::LoopListener;
use super::news::LoopNews;
use super::turn::Turning;
use crate::Engine;
use crate::Error;
use crate::frontend::Frontend;
use crate::launch::LaunchSettings;
use crate::lease::Driver;
use crate::looping::limits::park::BEHIND;
use crate::looping::limits::park::Sleeper;
use crate::looping::limits::park::Waited;
use crate::looping::limits::park::wait_until;
use crate::looping::notify::Message;
use crate::looping::notify::Notifier;
use crate::looping::notify::Occasion;
use crate::looping::notify::Post;
use crate::looping::notify::Recipients;
use crate::looping::queue::items::Queueing;
use crate::looping::queue::items::waits_for_work;
use crate::run::Ask;
use crate::run::Feed;
use crate::run::Heartbeat;
use crate::run::Stop;

/// What a loop is called as a driver.
const WHAT: &str = "segno loop";

/// Everything around a loop that is not its own: who is asked and told, who may stop it, how time passes.
pub struct LoopHost<'a> {
    /// How agents are run.
    pub settings: &'a LaunchSettings,
    /// Who is asked and told.
    pub frontend: &'a dyn Frontend,
    /// Who watches the loop.
    pub listener: &'a dyn LoopListener,
    /// Who listens to the runs.
    pub feed: &'a Feed,
    /// How the caller asks to stop.
    pub stop: &'a Stop,
    /// How time passes while it waits.
    pub sleeper: &'a dyn Sleeper,
    /// Whether it waits here until a limit is over; else it ends parked.
    pub waits: bool,
    /// Whether it stays where a person is needed: at a breakpoint until somebody says that it goes on, and when its breaker
    /// opens until one iteration may be tried; else it ends there.
    pub stays: bool,
    /// What wakes it, if it is parked and due now.
    pub woken: WokenHow,
    /// How much further it may go than its plan says. Nothing of it is allowed if it cannot go on.
    pub further: Further,
    /// Who is told when it stands still.
    pub recipients: Recipients,
}

/// How a loop came to its end, or to a place where it waits.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopEnded {
    /// The session.
    pub state: State,
    /// What followed from its last iteration, if that ended it; none if somebody stopped it in between.
    pub verdict: Option<LoopVerdict>,
    /// Why, in words.
    pub why: String,
}

/// What one stretch under the lease came to.
pub(crate) enum Stretch {
    Ended(Box<LoopEnded>),
    /// Parked, with the lease given back.
    Parked(Box<LoopEnded>),
}

/// What brings a session to where it may go on.
enum GoingOn {
    /// It is there.
    Nothing,
    /// This.
    Command(Box<Command>),
    /// It is parked, and wakes if it is its turn.
    Wake,
}

impl Engine {
    /// Drives a loop until it is completed or stands still for any other reason. The session has been told its plan.
    ///
    /// # Errors
    /// If it cannot be driven: somebody else does, it has ended, or its breaker is open and it is too early to try again.
    pub fn loop_drive(&self, session: SessionId, host: &LoopHost<'_>) -> Result<LoopEnded, Error> {
        let project = self.load(session)?.state.project.path;
        let (environment, recipients) = (&host.settings.environment, host.recipients.clone());
        let post = Post::new(recipients, environment, Path::new(&project), self.redactor());
        // Whoever takes long to be told holds up nobody; at the end they are waited for a moment.
        std::thread::scope(|scope| {
            let mut notifier = Notifier::new(scope, &post, host.listener);
            self.drive_on(session, host, &mut notifier)
        })
    }

    /// Stretch after stretch, with what is waited for in between.
    fn drive_on(
        &self,
        session: SessionId,
        host: &LoopHost<'_>,
        notifier: &mut Notifier<'_, '_, '_>,
    ) -> Result<LoopEnded, Error> {
        let (mut woken, mut further) = (host.woken, host.further.clone());
        // Whether it has worked or waited here: then it also waits until the tree is its own again.
        let mut here = false;
        loop {
            notifier.settle();
            let stretch = self.loop_stretch(session, host, woken, further.clone());
            if let (true, Err(why @ Error::TreeBusy { .. })) = (here, &stretch) {
                if self.wait_for_tree(session, why, host)? == Waited::CalledOff {
                    return self.called_off(session, host);
                }
                continue;
            }
            (here, further) = (true, Further::default());
            self.tell_somebody(session, &stretch, notifier);
            let parked = match stretch? {
                Stretch::Ended(ended) if host.stays && stands_for_a_person(&ended) => {
                    match self.stay(session, host)? {
                        Afterwards::GoesOn => continue,
                        Afterwards::Stays(why) => {
                            let state = self.load(session)?.state;
                            return Ok(LoopEnded { state, why: format!("{}; {why}", ended.why), ..*ended });
                        }
                    }
                }
                Stretch::Ended(ended) => return Ok(*ended),
                Stretch::Parked(parked) => *parked,
            };
            let Some(until) = waits_until(&parked.state).filter(|_| host.waits) else { return Ok(parked) };
            if let Waited::CalledOff = self.wait_parked(session, until, host)? {
                return self.called_off(session, host);
            }
            host.listener.hear(&LoopNews::Woken);
            woken = WokenHow::Foreground;
        }
    }

    /// Waits here until no other loop works in the tree.
    fn wait_for_tree(&self, session: SessionId, why: &Error, host: &LoopHost<'_>) -> Result<Waited, Error> {
        host.listener.hear(&LoopNews::Problem(format!("{why}; it goes on when that is done")));
        let project = self.load(session)?.state.project.path;
        let seq = self.load(session)?.state.seq;
        loop {
            if host.stop.asked().0 > 0 || self.load(session)?.state.seq != seq {
                return Ok(Waited::CalledOff);
            }
            match self.refuse_second_loop(Some(session), None, &project) {
                Ok(()) => return Ok(Waited::Due),
                Err(Error::TreeBusy { .. }) => host.sleeper.sleep(BEHIND),
                Err(why) => return Err(why),
            }
        }
    }

    /// Waits here until a parked loop is due, and until no other loop of its account tries first.
    fn wait_parked(
        &self,
        session: SessionId,
        until: Timestamp,
        host: &LoopHost<'_>,
    ) -> Result<Waited, Error> {
        // Nobody drives while it waits: whoever stops it, or goes on with it elsewhere, changes the record.
        let called_off = || {
            let still = self.load(session).is_ok_and(|loaded| waits_until(&loaded.state) == Some(until));
            host.stop.asked().0 > 0 || !still
        };
        let mut tick = |left: Duration| host.listener.hear(&LoopNews::Waiting { left });
        if waits_for_work(&self.load(session)?.state) {
            return Ok(self.wait_for_work(session, until, host, &called_off, &mut tick));
        }
        loop {
            if wait_until(self, until, host.sleeper, &called_off, &mut tick) == Waited::CalledOff {
                return Ok(Waited::CalledOff);
            }
            if self.loop_is_behind(&self.load(session)?.state)?.is_none() {
                return Ok(Waited::Due);
            }
            host.sleeper.sleep(BEHIND);
        }
    }

    /// Somebody did not want a parked loop to be waited for here any longer. Who typed Ctrl-C wants it to stay where it
    /// is until told otherwise; a process that is ended, or whose terminal is gone, leaves it its time.
    fn called_off(&self, session: SessionId, host: &LoopHost<'_>) -> Result<LoopEnded, Error> {
        let (asked, how) = host.stop.asked();
        if asked > 0 && how == Ask::Interrupt {
            // Somebody else may have been quicker: then it is as they want it.
            match self.act(session, Command::Loop(Box::new(LoopCommand::Hold))) {
                Ok(_) | Err(Error::Refused(_)) => {}
                Err(why) => return Err(why),
            }
        }
        let state = self.load(session)?.state;
        let what = || state.reason.as_ref().map_or_else(|| state.status.to_string(), |it| it.what.clone());
        let why = match (asked, waits_until(&state)) {
            (0, _) if !state.status.is_open() => format!("somebody else ended it: {}", what()),
            (0, _) if is_parked(&state) => "somebody wants it to stay parked".to_owned(),
            (0, _) => "somebody else went on with it".to_owned(),
            (_, Some(_)) => format!("{}; it stays parked, and keeps its time", how.as_str()),
            (_, None) => format!("{}; it stays parked until you resume it", how.as_str()),
        };
        Ok(LoopEnded { state, verdict: None, why })
    }

    /// Tells whoever wants to know that a loop stands still.
    fn tell_somebody(
        &self,
        session: SessionId,
        stretch: &Result<Stretch, Error>,
        notifier: &mut Notifier<'_, '_, '_>,
    ) {
        let (occasion, text) = match stretch {
            Ok(Stretch::Ended(ended) | Stretch::Parked(ended)) => match occasion(ended.verdict.as_ref()) {
                Some(occasion) => (occasion, ended.why.clone()),
                None => return,
            },
            Err(why) if is_refusal(why) => return,
            Err(why) => (Occasion::Crash, why.to_string()),
        };
        let topic = self.load(session).ok().and_then(|loaded| loaded.state.topic).unwrap_or_default();
        notifier.tell(&Message { occasion, session, topic, text, at: self.now() });
    }

    /// Takes the lease and turns until there is nothing more to do now.
    pub(crate) fn loop_stretch(
        &self,
        session: SessionId,
        host: &LoopHost<'_>,
        woken: WokenHow,
        further: Further,
    ) -> Result<Stretch, Error> {
        self.settle_session(session)?;
        let state = self.load(session)?.state;
        if !state.status.is_open() {
            return Err(Error::Ended { session, status: state.status });
        }
        self.refuse_driven(session)?;
        let parent = the_loop(&state)?.parent;
        // Who comes second leaves no trace; looked at again below, where nobody can come in between.
        self.refuse_second_loop(Some(session), parent, &state.project.path)?;
        self.check_start(&state)?;
        // What still lives is heard out first, as whoever resumes a session does.
        let state = self.hear_out(session, host.frontend)?;
        let further = self.counted_beside(&state, further)?;
        let going_on = self.going_on(&state, woken, &further, host.settings)?;
        let driver = self.drive(session, WHAT)?;
        self.refuse_second_loop(Some(session), parent, &state.project.path)?;
        let mut commands: Vec<Command> = match further == Further::default() {
            true => Vec::new(),
            false => vec![Command::Loop(Box::new(LoopCommand::Allow { further, at: self.now() }))],
        };
        let wakes = matches!(going_on, GoingOn::Wake);
        if let GoingOn::Command(command) = going_on {
            commands.push(*command);
        }
        // In one go: who is refused has been allowed nothing.
        if !commands.is_empty() {
            driver.act_all(commands)?;
        }
        if wakes && let Some(parked) = self.wake(&driver, woken)? {
            return Ok(Stretch::Parked(Box::new(parked)));
        }
        let _paced = self.pace_view(session);
        std::thread::scope(|scope| {
            let heart = Heartbeat::start(scope, &driver);
            let driven = Driven { engine: self, host, driver: &driver };
            if the_loop(&state)?.plan.queue.is_some() {
                return Queueing { driven, woken }.turn();
            }
            let now = woken == WokenHow::Person;
            Turning { driven, heart: &heart, failing: String::new(), printed: Vec::new(), asked: false, now }
                .turn()
        })
    }

    /// Wakes a parked loop; answers how it stands if it has to wait on, because of another loop of its account.
    fn wake(&self, driver: &Driver<'_>, how: WokenHow) -> Result<Option<LoopEnded>, Error> {
        let at = self.now();
        match self.act_by_account(driver, move |others| LoopCommand::Wake { how, at, others }) {
            Ok(acted) => Ok(is_parked(&acted.state).then(|| {
                let parked = acted.state.looping.as_ref().and_then(|looping| looping.parked.as_ref());
                let why = parked.map(|parked| parked.words.clone()).unwrap_or_default();
                LoopEnded { state: acted.state, verdict: None, why }
            })),
            Err(Error::Refused(why @ Refusal::AnotherFirst { .. })) => {
                let state = self.load(driver.session())?.state;
                Ok(Some(LoopEnded { state, verdict: None, why: why.to_string() }))
            }
            Err(why) => Err(why),
        }
    }

    /// What brings a session to where it may go on.
    fn going_on(
        &self,
        state: &State,
        how: WokenHow,
        further: &Further,
        settings: &LaunchSettings,
    ) -> Result<GoingOn, Error> {
        let session = state.session_id;
        let now = self.now();
        let command = |command: LoopCommand| GoingOn::Command(Box::new(Command::Loop(Box::new(command))));
        let resume = Command::Resume { reset_breaker: false, details: Some(WHAT.into()) };
        match next_step(state, now) {
            NextStep::NoLoop => Err(no_loop(state)),
            NextStep::Ended => Err(Error::Ended { session, status: state.status }),
            // Refused before the lease is taken: who comes too early leaves no trace.
            NextStep::Wait { until } if how != WokenHow::Person && !waits_for_work(state) => {
                let why = format!("the loop is parked until {until}");
                Err(Error::Refused(Refusal::Already(why)))
            }
            NextStep::Held if how != WokenHow::Person => {
                Err(Error::Refused(Refusal::Already("the loop is parked until you say so".to_owned())))
            }
            NextStep::Wait { .. } | NextStep::Held | NextStep::Wake => Ok(GoingOn::Wake),
            NextStep::Halted { .. } => {
                match self.help_came(state, further.plan(state, now).is_some(), settings)? {
                    Some(probe) => Ok(command(probe)),
                    None => Err(Error::BreakerOpen { session }),
                }
            }
            NextStep::Probe => {
                let (by, reason) = (BreakerBy::Cooldown, "the cool-down is over".to_owned());
                Ok(command(LoopCommand::Probe { by, reason }))
            }
            NextStep::Breakpoint { name } => {
                Err(Error::Refused(Refusal::AtBreakpoint { name, doing: "go on with the loop" }))
            }
            NextStep::Advance
            | NextStep::Capped(_)
            | NextStep::Baseline
            | NextStep::Park(_)
            | NextStep::BackOff { .. }
            | NextStep::HandOver { .. }
            | NextStep::Items
            | NextStep::Iterate { .. } => Ok(if state.status == Status::Active {
                GoingOn::Nothing
            } else {
                GoingOn::Command(Box::new(resume))
            }),
        }
    }
}

/// Whether it waits for a person who may answer from elsewhere, or has already done so.
fn stands_for_a_person(ended: &LoopEnded) -> bool {
    let look = PersonNeed::Breakpoint;
    let at_breakpoint =
        matches!(&ended.verdict, Some(LoopVerdict::NeedsPerson { need, .. }) if *need == look);
    at_breakpoint || ended.state.breakpoint.is_some() || ended.state.status == Status::Halted
}

/// What somebody who is not looking should know of a verdict. Who stopped it knows.
fn occasion(verdict: Option<&LoopVerdict>) -> Option<Occasion> {
    Some(match verdict? {
        LoopVerdict::Complete => Occasion::Done,
        LoopVerdict::Halt { .. } => Occasion::Halted,
        LoopVerdict::Cap { .. } => Occasion::Waiting,
        LoopVerdict::Park { class: ParkReason::Queue, .. } => return None,
        LoopVerdict::Park { .. } | LoopVerdict::BackOff { .. } => Occasion::Limit,
        LoopVerdict::NeedsPerson { need, .. } => match need {
            PersonNeed::Question => Occasion::Question,
            PersonNeed::Pay | PersonNeed::Auth | PersonNeed::Limit => Occasion::Limit,
            PersonNeed::Setup | PersonNeed::CannotAct | PersonNeed::Breakpoint | PersonNeed::Escalated => {
                Occasion::Waiting
            }
        },
        LoopVerdict::Continue { .. }
        | LoopVerdict::NextPhase { .. }
        | LoopVerdict::BackTo { .. }
        | LoopVerdict::HandOver { .. }
        | LoopVerdict::Stopped { .. } => return None,
    })
}

/// Whether it could not begin for a reason that whoever asked for it is told at once.
fn is_refusal(why: &Error) -> bool {
    matches!(
        why,
        Error::BreakerOpen { .. }
            | Error::Ended { .. }
            | Error::NotResumable { .. }
            | Error::CapReached { .. }
            | Error::DayCapReached { .. }
            | Error::CostUnknown { .. }
            | Error::TreeBusy { .. }
            | Error::CannotMeasure { .. }
            | Error::Refused(_)
            | Error::Store(segno_store::Error::Held(_))
    )
}

/// The loop of a session.
pub(crate) fn the_loop(state: &State) -> Result<&LoopState, Error> {
    state.looping.as_deref().ok_or_else(|| no_loop(state))
}

fn no_loop(state: &State) -> Error {
    Error::NotResumable { why: "the session is no loop", status: state.status }
}

/// Until when a session waits, if it is parked and has a time.
fn waits_until(state: &State) -> Option<Timestamp> {
    let looping = state.looping.as_ref().filter(|_| is_parked(state))?;
    looping.parked.as_ref()?.until
}

pub(crate) fn is_parked(state: &State) -> bool {
    state.status == Status::Paused && state.looping.as_ref().is_some_and(|looping| looping.parked.is_some())
}
