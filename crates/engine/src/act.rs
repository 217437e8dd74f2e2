//! Doing things to sessions: decided on the newest state, recorded at once, or kept until they can be.

use segno_core::Command;
use segno_core::Event;
use segno_core::EventKey;
use segno_core::Fact;
use segno_core::Input;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::UserKey;
use segno_core::event::Request;
use segno_redact::Redacted;
use segno_redact::Redactor;
use segno_store::Append;
use segno_store::OthersQuery;
use segno_store::OthersView;
use segno_store::What;

use crate::Acted;
use crate::Actor;
use crate::Engine;
use crate::Error;
use crate::engine::fresh_key;
use crate::engine::record;
use crate::engine::unrecordable;
use crate::spool::FitFact;
use crate::tree::At;
use crate::view;

/// Under whom something is done, under which key, and what is done about what follows from it. It travels with the
/// commands, so that there is one way to do things.
#[derive(Clone, Debug)]
pub(crate) struct Acting {
    /// The run and the driver's epoch, and where checkpoints stand in the conversation.
    at: At,
    key: EventKey,
    former_key: Option<EventKey>,
    manner: Manner,
    /// Whether checkpoints get their snapshots here.
    snapshots: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Somebody's command: a driver is asked for what is its to do, and a fact is never lost.
    Command,
    /// The driver's own word: nobody need be asked, and a fact is never lost.
    Driver,
    /// A step of something larger that fails as a whole: nobody need be asked, and what cannot be written is an error.
    Step,
}

impl Acting {
    /// As somebody who gives a command to a session; below a run of that session, under its epoch. With a key, doing it twice
    /// does it once.
    fn command(actor: &Actor, session: SessionId, key: Option<UserKey>) -> Self {
        // Whoever works in another session has no epoch in this one.
        let own = actor.session.is_none_or(|own| own == session);
        let epoch = actor.epoch.filter(|_| own);
        Self::with(At { run: actor.run.clone().filter(|_| own), epoch, ..At::default() }, key)
    }

    fn with(at: At, key: Option<UserKey>) -> Self {
        let former_key = key.as_ref().map(UserKey::former);
        let key = key.map_or_else(fresh_key, |key| key.event_key());
        Self { at, key, former_key, manner: Manner::Command, snapshots: true }
    }

    /// As the driver of this epoch.
    pub(crate) fn driver(actor: &Actor, epoch: Option<u64>, key: Option<UserKey>) -> Self {
        let at = At { run: actor.run.clone(), epoch, ..At::default() };
        Self { manner: Manner::Driver, ..Self::with(at, key) }
    }

    /// As a step of something larger.
    pub(crate) fn step(at: &At) -> Self {
        Self { at: at.clone(), key: fresh_key(), former_key: None, manner: Manner::Step, snapshots: true }
    }

    /// As a step of the run with this id, under its driver's epoch.
    pub(crate) fn in_run(epoch: u64, run: &str) -> Self {
        Self::step(&At { epoch: Some(epoch), run: Some(run.to_owned()), ..At::default() })
    }

    /// As a step that is nobody's, and whose checkpoints get no snapshots here.
    pub(crate) fn by_itself() -> Self {
        Self { snapshots: false, ..Self::step(&At::default()) }
    }

    /// Under this key.
    pub(crate) fn keyed(self, key: EventKey) -> Self {
        Self { key, ..self }
    }
}

impl Engine {
    /// Does one thing to a session, or records one that happened.
    pub fn act(&self, session: SessionId, input: impl Into<Input>) -> Result<Acted, Error> {
        self.act_all(session, [input], None)
    }

    /// Does several things at once: all of them, or none. With a key, doing it twice does it once.
    pub fn act_all(
        &self,
        session: SessionId,
        inputs: impl IntoIterator<Item = impl Into<Input>>,
        key: Option<UserKey>,
    ) -> Result<Acted, Error> {
        let key = key.map(|key| self.fit_key(key));
        let inputs: Vec<Input> = inputs.into_iter().map(Into::into).collect();
        let stopped = self.stop_what_outlived(session, &inputs)?;
        let mut acted = self.act_as(session, inputs, Acting::command(&self.options.actor, session, key))?;
        acted
            .notices
            .extend(stopped.map(|pid| format!("its agent (pid {pid}) still ran and was stopped first")));
        Ok(acted)
    }

    /// A session that ends takes along an agent that outlived its driver. One that cannot end leaves it alone.
    fn stop_what_outlived(&self, session: SessionId, inputs: &[Input]) -> Result<Option<u32>, Error> {
        let ends = |it: &&Command| {
            matches!(it, Command::Complete { .. } | Command::Abort { .. } | Command::Fail { .. })
        };
        let Some(end) = inputs.iter().filter_map(Input::command).find(ends) else { return Ok(None) };
        self.settle_session(session)?;
        let state = self.store().load(session)?.state;
        if segno_core::decide::check_need(&state, end).is_err() {
            return Ok(None);
        }
        self.end_left_agent(session)
    }

    /// Does several things at once as somebody.
    pub(crate) fn act_as(
        &self,
        session: SessionId,
        inputs: impl IntoIterator<Item = impl Into<Input>>,
        acting: Acting,
    ) -> Result<Acted, Error> {
        let Acting { at, key, former_key, manner, snapshots } = acting;
        let inputs: Vec<Input> =
            inputs.into_iter().map(|input| self.without_secrets_in_names(input.into())).collect();
        let own = at.epoch.filter(|_| !self.asks_own_driver(session, &inputs, manner));
        let driven = manner != Manner::Step && self.is_driven(session, &inputs, own)?;
        let may_be_late = manner != Manner::Step
            && inputs.iter().all(|input| input.need() == segno_core::command::Need::Nothing);
        let now = self.now();
        let what = match self.shared_question(session, &inputs)? {
            Some(question) => self.shared_decider(question, inputs.clone(), own, driven),
            None => self.decider(inputs.clone(), own, driven),
        };
        let append = Append {
            run: at.run.clone(),
            epoch: at.epoch,
            former_key,
            want_state: true,
            ..Append::new(session, key.clone(), now, what)
        };
        match self.append_one(append) {
            Ok(appended) => self.acted(session, appended, Some(&at).filter(|_| snapshots)),
            Err(segno_store::Error::StaleEpoch { given, .. }) if may_be_late => {
                self.record_late(session, inputs, key, given, at.run)
            }
            // A busy store, or one that only a newer segno may write, must not lose a fact.
            Err(
                why @ (segno_store::Error::Busy { .. }
                | segno_store::Error::Newer { .. }
                | segno_store::Error::Full { .. }
                // Whether it was written is not known; its key keeps it from being there twice.
                | segno_store::Error::Failed { .. }
                | segno_store::Error::DriversAlive { .. }),
            ) if manner != Manner::Step && self.options.spool.is_some() => match only_facts(inputs) {
                Some(facts) => self.spool(session, facts, &key, now, at.epoch, why),
                None => Err(why.into()),
            },
            Err(segno_store::Error::Refused(why)) => Err(self.shared_error(why)),
            Err(why) => Err(why.into()),
        }
    }

    /// Whoever pauses a session from below its own run has the driver's epoch, and asks the driver all the same: the
    /// agent is the driver's to stop.
    fn asks_own_driver(&self, session: SessionId, inputs: &[Input], manner: Manner) -> bool {
        let below = manner == Manner::Command && self.options.actor.session == Some(session);
        below && inputs.iter().any(|input| matches!(input, Input::Command(Command::Pause { .. })))
    }

    /// The ids of checkpoints are made from these names, letter by letter, in a form in which no secret would be
    /// recognised any more. So the names are cleared before anything is made from them.
    fn without_secrets_in_names(&self, mut input: Input) -> Input {
        let Input::Command(command) = &mut input else { return input };
        let name = match command {
            Command::AdvancePhase { to, .. } | Command::SwitchAgent { to } => Some(to),
            Command::ReachMilestone { name, .. } | Command::ReachBreakpoint { name, .. } => Some(name),
            Command::CreateCheckpoint { name, .. } => name.as_mut(),
            _ => None,
        };
        if let Some(name) = name {
            *name = self.redactor().text(name).into_owned();
        }
        input
    }

    /// Whether somebody lives who can be asked. A driver that died without a word must not keep a session for ever,
    /// so for commands that a driver would be asked for, the lease counts, not what the journal last heard.
    fn is_driven(&self, session: SessionId, inputs: &[Input], epoch: Option<u64>) -> Result<bool, Error> {
        let mut commands = inputs.iter().filter_map(Input::command);
        // A driver cannot be asked to fail: under its hands the session's work would lose its end.
        let fails = commands.clone().any(|command| matches!(command, Command::Fail { .. }));
        if !fails && !commands.any(|command| request_for(command).is_some()) {
            return Ok(false);
        }
        self.settle_session(session)?;
        match self.store().lease(session)?.filter(|lease| epoch != Some(lease.epoch)) {
            Some(lease) if fails => Err(segno_store::Error::Held(Box::new(lease)).into()),
            held => Ok(held.is_some()),
        }
    }

    pub(crate) fn append_one(&self, append: Append) -> Result<segno_store::Appended, segno_store::Error> {
        let session = append.session;
        self.store().append(vec![append]).pop().unwrap_or(Err(segno_store::Error::NotFound(session)))
    }

    /// Decides on the newest state, inside the store's transaction. A driven session's driver is asked instead.
    fn decider(&self, inputs: Vec<Input>, epoch: Option<u64>, driven: bool) -> What {
        let redactor = self.redactor();
        What::Decide(Box::new(move |state: &State| decide_all(&redactor, state, &inputs, epoch, driven)))
    }

    /// The same, with what others have used of shared caps.
    fn shared_decider(
        &self,
        question: OthersQuery,
        mut inputs: Vec<Input>,
        epoch: Option<u64>,
        driven: bool,
    ) -> What {
        let (redactor, caps) = (self.redactor(), self.day_caps());
        let decide = move |state: &State, shared: &OthersView| {
            crate::shared::judge(&mut inputs, state, shared, &caps)?;
            decide_all(&redactor, state, &inputs, epoch, driven)
        };
        What::DecideWithOthers(question, Box::new(decide))
    }

    /// The events of facts that follow whatever the state is, made fit before the store is locked. None if something
    /// must be decided on the newest state.
    pub(crate) fn ready_facts(&self, inputs: &[Input]) -> Option<Vec<Redacted>> {
        let ready = |input: &Input| input.fact().is_some_and(|fact| !fact.depends_on_state());
        if !inputs.iter().all(ready) {
            return None;
        }
        let mut ready = Vec::with_capacity(inputs.len());
        for fact in inputs.iter().filter_map(Input::fact) {
            for event in segno_core::decide::events_of_fact(None, fact.clone()).ok()? {
                ready.push(self.redactor().record(event.into_event()).ok()?);
            }
        }
        Some(ready)
    }

    /// Decides as a driver does, which nobody need be asked for.
    pub(crate) fn decide_as(&self, inputs: Vec<Input>, epoch: Option<u64>) -> What {
        self.decider(inputs, epoch, false)
    }

    /// What an append came to, with what follows from it outside the journal.
    pub(crate) fn acted(
        &self,
        session: SessionId,
        appended: segno_store::Appended,
        at: Option<&At>,
    ) -> Result<Acted, Error> {
        let requested = appended.events.iter().find_map(|event| match event {
            Event::RequestMade(made) => Some(made.request),
            _ => None,
        });
        let mut notices = Vec::new();
        let changed = !appended.repeated && appended.events.iter().any(view::shows);
        let mut state = match appended.state {
            Some(state) => *state,
            None => self.store().load(session)?.state,
        };
        if let Some(at) = at.filter(|_| !appended.late) {
            // Asked for again, a checkpoint without files gets its second chance.
            let events = match appended.repeated {
                true => self.not_ready(session, &appended.events),
                false => appended.events.clone(),
            };
            self.make_ready(&mut state, &events, appended.first, at, &mut notices);
        }
        let failed = |event: &Event| matches!(event, Event::SessionAborted(_) | Event::SessionFailed(_));
        if !appended.repeated && appended.events.iter().any(failed) {
            self.thin_out(&mut state, &crate::tree::At::default());
        }
        if changed {
            let at_once = appended.events.iter().any(is_turn);
            self.refresh_view_as(&state, at_once, &mut notices);
            // What stands in the way of a file is said once, however often it was written.
            let mut said = std::collections::BTreeSet::new();
            notices.retain(|notice| said.insert(notice.clone()));
        }
        let uses = |event: &Event| matches!(event, Event::TokensRecorded(_) | Event::CostRecorded(_));
        if state.cap_from.is_some() && appended.events.iter().any(uses) {
            // It is recorded; if it cannot be counted there now, that is done with whatever is used next, or by whoever
            // goes on from here.
            if let Err(why) = self.count_where_cap_began(&state) {
                tracing::warn!(%session, %why, "not yet counted where its cap comes from");
            }
        }
        Ok(Acted {
            seq: appended.last,
            state,
            events: appended.events,
            repeated: appended.repeated,
            late: appended.late,
            requested,
            spooled: false,
            notices,
        })
    }

    /// Facts that come from a replaced driver are kept, marked as late, and change nothing else.
    pub(crate) fn record_late(
        &self,
        session: SessionId,
        inputs: Vec<Input>,
        key: EventKey,
        epoch: u64,
        run: Option<String>,
    ) -> Result<Acted, Error> {
        let state = self.store().load(session)?.state;
        let mut late = Vec::new();
        for input in inputs {
            for event in segno_core::decide(&state, input)? {
                late.push(self.late(epoch, &event)?);
            }
        }
        let append =
            Append { run, want_state: true, ..Append::new(session, key, self.now(), What::Facts(late)) };
        let acted = self.acted(session, self.append_one(append)?, None)?;
        Ok(Acted { late: true, ..acted })
    }

    /// An event as one that came too late. It is wrapped before it is made fit, so that its long texts come along.
    pub(crate) fn late(&self, epoch: u64, event: &Event) -> Result<Redacted, Error> {
        let wrapped = segno_core::event::LateRecorded {
            epoch,
            kind: event.kind().to_owned(),
            version: event.version(),
            body: event.to_value(),
        };
        self.redactor().record(wrapped.into()).map_err(unrecordable)
    }

    fn spool(
        &self,
        session: SessionId,
        facts: Vec<Fact>,
        key: &EventKey,
        at: Timestamp,
        epoch: Option<u64>,
        why: segno_store::Error,
    ) -> Result<Acted, Error> {
        let state = match self.store().load(session) {
            Ok(loaded) => loaded.state,
            // It may be there: that it cannot be spooled either does not make it absent.
            Err(_) if why.certainty() == segno_store::Certainty::Unknown => {
                let certainty = why.certainty();
                return Err(Error::WriteError { details: why.to_string(), certainty });
            }
            Err(other) => return Err(other.into()),
        };
        let mut fit = Vec::new();
        for fact in facts {
            for event in segno_core::decide::events_of_fact(Some(&state), fact)? {
                fit.push(FitFact::new(&self.redactor(), event)?);
            }
        }
        tracing::warn!(%session, facts = fit.len(), %why, "the store cannot take it now: spooled");
        let dir = self.options.spool.clone().unwrap_or_default();
        let run = self.options.actor.run.clone();
        crate::spool::put(
            &dir,
            &crate::spool::Origin {
                store: Some(self.store_id()),
                session,
                key: key.clone(),
                at,
                run,
                epoch,
                begins: None,
            },
            &fit,
        )?;
        Ok(Acted {
            seq: state.seq,
            state,
            events: Vec::new(),
            repeated: false,
            late: false,
            requested: None,
            spooled: true,
            notices: vec![format!(
                "{why}; what you recorded is safe in the spool, the next command takes it in"
            )],
        })
    }
}

/// The facts, if there is nothing else: a command that could not be decided is not done.
fn only_facts(inputs: Vec<Input>) -> Option<Vec<Fact>> {
    let fact = |input| match input {
        Input::Fact(fact) => Some(fact),
        Input::Command(_) => None,
    };
    inputs.into_iter().map(fact).collect()
}

/// What to ask a driver for in place of doing it.
fn request_for(command: &Command) -> Option<(Request, Option<Text>)> {
    match command {
        Command::Pause { details, .. } => Some((Request::Pause, details.clone())),
        Command::Complete { summary } => Some((Request::Complete, summary.clone())),
        Command::Abort { reason } => Some((Request::Abort, reason.clone())),
        _ => None,
    }
}

/// What follows from all of these, one after another.
fn decide_all(
    redactor: &Redactor,
    state: &State,
    inputs: &[Input],
    epoch: Option<u64>,
    driven: bool,
) -> Result<Vec<Redacted>, segno_core::Refusal> {
    let driven_by_another = driven && state.driver.as_ref().is_some_and(|driver| epoch != Some(driver.epoch));
    let mut ahead: Option<State> = None;
    let mut recorded = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        let present = ahead.as_ref().unwrap_or(state);
        let asked = input.command().filter(|_| driven_by_another);
        let input = match asked.and_then(|command| Some((command, request_for(command)?))) {
            Some((command, (request, details))) => {
                segno_core::decide::check_need(present, command)?;
                Command::MakeRequest { request, details }.into()
            }
            None => input.clone(),
        };
        let events = segno_core::decide(present, input)?;
        let more = index + 1 < inputs.len();
        for event in events {
            let redacted = record(redactor, event)?;
            if more {
                // What comes next is decided on what this brings about.
                let mut next = ahead.take().unwrap_or_else(|| state.clone());
                let mark = segno_core::Mark { seq: next.seq + 1, at: next.updated_at, run: None };
                next.apply(&mark, redacted.event());
                ahead = Some(next);
            }
            recorded.push(redacted);
        }
    }
    Ok(recorded)
}

/// Whether an event changes the phase, the iteration or the standing of a session.
fn is_turn(event: &Event) -> bool {
    matches!(
        event,
        Event::PhaseAdvanced(_)
            | Event::StateRestored(_)
            | Event::IterationStarted(_)
            | Event::IterationEnded(_)
            | Event::SessionPaused(_)
            | Event::SessionResumed(_)
            | Event::SessionHalted(_)
            | Event::SessionCompleted(_)
            | Event::SessionAborted(_)
            | Event::SessionFailed(_)
            | Event::LoopParked(_)
            | Event::LoopWoken(_)
    )
}
