//! What an agent tells before and after it acts: journaled before it is answered, and never in its way.

use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_agents::Decision;
use segno_agents::HookReport;
use segno_core::EventKey;
use segno_core::Fact;
use segno_core::Input;
use segno_core::SessionId;
use segno_core::State;
use segno_core::StoreId;
use segno_core::event::CallEnd;
use segno_core::event::Source;
use segno_core::text::shorten;
use segno_redact::Redactor;
use segno_store::Append;
use segno_store::What;
use serde_json::json;

use crate::Actor;
use crate::Engine;
use crate::Error;
use crate::fault::Guard;
use crate::fault::broken;
use crate::run::facts_of;
use crate::spool;
use crate::spool::FitFact;

/// How much of a payload that no agent sends is kept, in characters.
const MALFORMED: usize = 64 * 1024;
const REPLACED: &str = "segno: this run was replaced by another driver of the session; stop here";
const UNREADABLE: &str = "segno: the record of this session cannot be read now, so nobody can tell whether this call may run; try again";

/// What a hook says back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookAnswer {
    /// What to print for the agent; nothing lets it go on.
    pub print: Option<String>,
    /// The store could not take it; it is in the spool.
    pub spooled: bool,
}

/// Who else tells of what a hook tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// The agent's output, or its own log, says in its own order what is said, and it must not count twice.
    Told,
    /// Nobody.
    Untold,
}

/// Where something is kept that the store could not take.
pub(crate) struct SpoolTarget<'a> {
    /// The directory.
    pub(crate) dir: &'a std::path::Path,
    /// The store it is for; none if nobody can tell.
    pub(crate) store: Option<StoreId>,
    /// How the conversation began, if no store knows it yet.
    pub(crate) begins: Option<Box<crate::watch::Beginning>>,
}

/// A payload, understood, with what is to be recorded of it.
pub struct HookCall {
    report: HookReport,
    facts: Vec<Fact>,
    key: EventKey,
    /// The key of this one visit, for a call whose id, input and result were all there before.
    visit: EventKey,
}

impl HookCall {
    /// Understands a payload. One that no agent sends is recorded as it is.
    /// What has no key of its own gets the one that is given.
    pub fn read(
        agent: &dyn Agent,
        run: Option<&str>,
        payload: &[u8],
        otherwise: EventKey,
        redactor: &Redactor,
    ) -> Self {
        match agent.hook(payload) {
            Ok(report) => {
                let beside = if run.is_some() { Beside::Told } else { Beside::Untold };
                Self::of(report, run, beside, otherwise)
            }
            Err(why) => {
                // Half of a secret is not known as one: they go before it is cut.
                let text = String::from_utf8_lossy(payload);
                let text = shorten(&redactor.text(&text), MALFORMED);
                let body = json!({ "why": why.to_string(), "payload": text });
                let facts = vec![Fact::Reported { what: "hook_malformed".to_owned(), body }];
                Self { report: nothing(), facts, key: otherwise.clone(), visit: otherwise }
            }
        }
    }

    /// The same for a payload that was understood already.
    pub(crate) fn of(report: HookReport, run: Option<&str>, beside: Beside, otherwise: EventKey) -> Self {
        let mut facts = Vec::new();
        for event in &report.events {
            facts.extend(facts_for(event, &report, run, beside));
        }
        if facts.is_empty() {
            let body = json!({ "event": report.event, "phase": "received" });
            facts.push(Fact::Reported { what: "hook".to_owned(), body });
        }
        let key = key(&report, run).unwrap_or_else(|| otherwise.clone());
        Self { report, facts, key, visit: otherwise }
    }

    /// Keeps it in the spool, for a store that cannot even be opened. Where a driver or a hard cap is known, nobody can
    /// tell then whether it was replaced or used up, and a call that it asks about is denied.
    ///
    /// # Errors
    /// If the spool cannot be written either.
    pub(crate) fn spool(
        self,
        redactor: &Redactor,
        target: SpoolTarget<'_>,
        at: segno_core::Timestamp,
        session: SessionId,
        actor: &Actor,
    ) -> Result<HookAnswer, Error> {
        let is_bound = actor.epoch.is_some() || crate::capped::is_noted(target.dir, session);
        let denial = is_bound.then(|| deny(&self.report, UNREADABLE.to_owned())).flatten();
        self.keep(redactor, target, at, session, actor, denial.as_ref())?;
        Ok(HookAnswer { print: denial.map(|denial| denial.print), spooled: true })
    }

    /// Keeps what it tells in the spool, and that its call was denied, if it was.
    fn keep(
        self,
        redactor: &Redactor,
        target: SpoolTarget<'_>,
        at: segno_core::Timestamp,
        session: SessionId,
        actor: &Actor,
        denial: Option<&Denial>,
    ) -> Result<(), Error> {
        let (run, epoch) = (actor.run.clone(), actor.epoch);
        let mut facts = Vec::new();
        let ends = denial.map_or_else(Vec::new, |denial| denied(&self.facts, denial));
        for fact in self.facts.into_iter().chain(ends) {
            for event in segno_core::decide::events_of_fact(None, fact)? {
                facts.push(FitFact::new(redactor, event)?);
            }
        }
        let (event, is_denied) = (&self.report.event, denial.is_some());
        tracing::warn!(%session, event, is_denied, "the store cannot take what a hook told: it is spooled");
        let SpoolTarget { dir, store, begins } = target;
        spool::put(dir, &spool::Origin { store, session, key: self.key, at, run, epoch, begins }, &facts)
    }
}

fn nothing() -> HookReport {
    HookReport {
        event: String::new(),
        native_id: None,
        agent_id: None,
        transcript_path: None,
        cwd: None,
        permission_mode: None,
        moment: None,
        events: Vec::new(),
        answers: segno_agents::hook::Answers::default(),
    }
}

/// What a hook says of calls and files is recorded. What is said aloud is left to the agent's output, which says it
/// too, except for what it never says.
fn facts_for(event: &AgentEvent, report: &HookReport, run: Option<&str>, beside: Beside) -> Vec<Fact> {
    match event {
        AgentEvent::Hook { .. } => return Vec::new(),
        // The output of a run says these too, in its own order, and they must not count twice.
        AgentEvent::Text { .. }
        | AgentEvent::Thinking { .. }
        | AgentEvent::Input { .. }
        | AgentEvent::TurnStarted
        | AgentEvent::FileChanged { .. }
        | AgentEvent::SubAgentStarted { .. }
        | AgentEvent::SubAgentStopped { .. }
        | AgentEvent::Background { .. }
        | AgentEvent::Error { .. }
            if beside == Beside::Told =>
        {
            return Vec::new();
        }
        AgentEvent::SessionStarted { .. } if run.is_none() => return Vec::new(),
        // Of a hook that names no run nobody knows what it is a part of. What an agent's answers use is in its output;
        // a hook that tells it of a sub-agent does so because nothing else does.
        AgentEvent::Tokens { delta: Some(used), .. }
            if run.is_some() && (beside == Beside::Untold || report.agent_id.is_some()) =>
        {
            let tokens = crate::run::token_use(*used);
            // Those of a run count from one source: this adds to what its output tells.
            let source = if beside == Beside::Told { Source::Stream } else { Source::Hook };
            return vec![Fact::TokensRecorded { tokens, estimated: false, source }];
        }
        _ => {}
    }
    let mut facts = facts_of(event, run.unwrap_or_default());
    for fact in &mut facts {
        match fact {
            Fact::ToolStarted { write_ahead, source, .. } => {
                *write_ahead = true;
                *source = Source::Hook;
            }
            Fact::ToolEnded { source, .. } => *source = Source::Hook,
            Fact::Reported { body, .. } => body["hook"] = json!(report.event),
            _ => {}
        }
    }
    facts
}

/// The same call of the same hook is recorded once, however often it is told. An id may come again with another input
/// or another result: that is another call.
fn key(report: &HookReport, run: Option<&str>) -> Option<EventKey> {
    let (call, about) = report.events.iter().find_map(|event| match event {
        AgentEvent::ToolStarted { call_id, input, .. } => Some((call_id, input.get())),
        AgentEvent::ToolFinished { call_id, output, .. } => Some((call_id, output.get())),
        AgentEvent::ToolFailed { call_id, error, .. } => Some((call_id, error.as_str())),
        AgentEvent::ToolDenied { call_id, reason, .. } => Some((call_id, reason.as_str())),
        _ => None,
    })?;
    let about = segno_core::fnv::hash(about.as_bytes());
    format!("hook-{}-{}-{call}-{about:016x}", run.unwrap_or("-"), report.event).parse().ok()
}

/// Whether what was told before under the same key is about an earlier call with the same id, input and result. An agent
/// waits for its hooks: before a call it is open until all of them are heard, and after it until one of them is.
fn is_another_call(state: &State, facts: &[Fact]) -> bool {
    facts.iter().any(|fact| match fact {
        Fact::ToolStarted { call, .. } => !state.calls.is_unsettled(call),
        Fact::ToolEnded { call, .. } => state.calls.is_open(call),
        _ => false,
    })
}

impl Engine {
    /// Records what a hook says, durably, and answers it. Only a driver that was replaced and a hard budget that is
    /// used up deny a call.
    ///
    /// # Errors
    /// If it could be neither recorded nor spooled.
    pub fn hear_hook(&self, session: SessionId, call: HookCall) -> Result<HookAnswer, Error> {
        self.hear_hook_of(session, call, &self.options.actor, &mut || true)
    }

    /// The same for the hook of a run that this process drives. `recorded` is called when it is durable, before what
    /// takes longer, and says whether anybody still waits for that.
    pub(crate) fn hear_hook_of(
        &self,
        session: SessionId,
        call: HookCall,
        actor: &Actor,
        recorded: &mut dyn FnMut() -> bool,
    ) -> Result<HookAnswer, Error> {
        let HookCall { report, facts, mut key, visit } = call;
        let inputs: Vec<Input> = facts.iter().cloned().map(Input::from).collect();
        // A long text takes a while to be made fit, and the store is not locked meanwhile.
        let ready = self.ready_facts(&inputs);
        let append = |key: &EventKey| {
            let append = |epoch: Option<u64>| {
                let what = match &ready {
                    Some(ready) => What::Facts(ready.clone()),
                    None => self.decide_as(inputs.clone(), epoch),
                };
                let run = actor.run.clone();
                Append { run, epoch, want_state: true, ..Append::new(session, key.clone(), self.now(), what) }
            };
            let result = self.append_one(append(actor.epoch));
            let is_stale = matches!(result, Err(segno_store::Error::StaleEpoch { .. }));
            match is_stale.then(|| self.adopted_epoch(session, actor.run.as_deref())).flatten() {
                Some(epoch) => self.append_one(append(Some(epoch))),
                None => result,
            }
        };
        let mut result = append(&key);
        if let Ok(appended) = &result
            && appended.repeated
            && appended.state.as_deref().is_some_and(|state| is_another_call(state, &facts))
        {
            key = visit.clone();
            result = append(&key);
        }
        match result {
            Ok(appended) => {
                let waits = recorded();
                let state = appended.state.as_deref();
                let forbidden = match appended.repeated {
                    // Nobody asked the store whether it may be recorded: its driver may be another one by now.
                    true => self.reason_to_deny(session, actor),
                    false => {
                        state.and_then(|state| self.used_up(state).or_else(|| self.uncounted(state, actor)))
                    }
                };
                let mut denial = forbidden.and_then(|why| deny(&report, why));
                if let Some(state) = appended.state.as_deref().filter(|_| waits && denial.is_none()) {
                    let held = self.hold_call(state, &facts, actor.run.as_deref());
                    denial = held.and_then(|why| deny(&report, why));
                }
                // Said twice, too: the first who heard it may still be at it, and the call is not to run before.
                if let Some(state) = appended.state.as_deref().filter(|_| waits && denial.is_none()) {
                    self.checkpoint_before_risk(state, &facts, actor);
                }
                if let Some(denial) = &denial {
                    self.record_denied(session, &denied(&facts, denial), &key, actor);
                }
                Ok(HookAnswer { print: denial.map(|denial| denial.print), spooled: false })
            }
            Err(segno_store::Error::StaleEpoch { given, .. }) => {
                self.record_late(session, inputs, key, given, actor.run.clone())?;
                let _ = recorded();
                let denial = deny(&report, REPLACED.to_owned());
                Ok(HookAnswer { print: denial.map(|denial| denial.print), spooled: false })
            }
            Err(why) => {
                let reason = self.reason_to_deny(session, actor).or_else(|| {
                    let state = self.store().load(session).ok()?.state;
                    self.hold_call(&state, &facts, actor.run.as_deref())
                });
                let denial = reason.and_then(|reason| deny(&report, reason));
                let Some(dir) = self.options.spool.clone() else { return Err(why.into()) };
                let call = HookCall { report, facts, key, visit };
                let target = SpoolTarget { dir: &dir, store: Some(self.store_id()), begins: None };
                call.keep(&self.redactor(), target, self.now(), session, actor, denial.as_ref())?;
                let _ = recorded();
                Ok(HookAnswer { print: denial.map(|denial| denial.print), spooled: true })
            }
        }
    }

    /// A call that was denied never runs: nobody is to wonder about it when its agent is killed before it says so.
    fn record_denied(&self, session: SessionId, ends: &[Fact], key: &EventKey, actor: &Actor) {
        let ends: Vec<Input> = ends.iter().cloned().map(Input::from).collect();
        let (Some(facts), Ok(key)) = (self.ready_facts(&ends), format!("{key}-denied").parse()) else {
            return;
        };
        if facts.is_empty() {
            return;
        }
        let epoch = match self.adopted_epoch(session, actor.run.as_deref()) {
            Some(adopted) => Some(adopted),
            None => actor.epoch,
        };
        let run = actor.run.clone();
        let append = Append { run, epoch, ..Append::new(session, key, self.now(), What::Facts(facts)) };
        if let Err(why) = self.append_one(append) {
            tracing::warn!(%session, %why, "that a call was denied could not be recorded");
        }
    }

    /// A call that may destroy something waits until there is a checkpoint to go back to.
    fn checkpoint_before_risk(&self, state: &State, facts: &[Fact], actor: &Actor) {
        let Some(options) = &self.options.tree else { return };
        let project = std::path::Path::new(&state.project.path);
        let risk = facts.iter().find_map(|fact| match fact {
            Fact::ToolStarted { tool, input, write_ahead: true, .. } => {
                crate::tree::risky::why(tool, input, project, &options.risky)?;
                // It is said in short, and what is cut may be half a secret: so they go first.
                let mut input = input.clone();
                self.redactor().json(&mut input);
                let said = crate::tree::risky::why(tool, &input, project, &options.risky);
                Some(said.unwrap_or_else(|| tool.clone()))
            }
            _ => None,
        });
        if let Some(risk) = risk {
            let at = crate::tree::At { epoch: actor.epoch, run: actor.run.clone(), ..Default::default() };
            let reason = segno_core::event::CheckpointReason::Risky;
            let name = Some(format!("before {risk}"));
            // What fails is in the journal; the agent is not held up for it.
            let _ = match self.options.watching {
                true => crate::watch::within(crate::watch::CHECKPOINT, |cancel| {
                    let at = crate::tree::At { cancel: Some(cancel), ..at };
                    self.checkpoint(state.session_id, name, reason, &at)
                }),
                false => self.checkpoint(state.session_id, name, reason, &at),
            };
        }
    }

    /// Why a call may not run though it cannot be recorded now, from a read for which nobody need be waited for. Where
    /// a driver is known, what cannot be read denies.
    fn reason_to_deny(&self, session: SessionId, actor: &Actor) -> Option<String> {
        let is_capped =
            || self.options.spool.as_ref().is_some_and(|spool| crate::capped::is_noted(spool, session));
        let is_driven = actor.epoch.is_some() && !self.options.watching;
        let unreadable = || (is_driven || is_capped()).then(|| UNREADABLE.to_owned());
        let Ok(loaded) = self.store().load(session) else { return unreadable() };
        let state = loaded.state;
        if let Some(why) = self.used_up(&state).or_else(|| self.uncounted(&state, actor)) {
            return Some(why);
        }
        let epoch = actor.epoch?;
        let Ok(lease) = self.store().lease(session) else { return unreadable() };
        let own = state.run.as_ref().filter(|run| Some(&run.id) == actor.run.as_ref());
        let counts = |now: u64| now == epoch || own.is_some_and(|run| run.adopted == Some(now));
        let replaced = match lease {
            Some(lease) => !counts(lease.epoch),
            None => !own.is_some_and(segno_core::state::RunMark::is_running),
        };
        replaced.then(|| REPLACED.to_owned())
    }

    /// Why no tool may start any more. A run with a driver is stopped by that for a breaker, or when somebody asks for it; one
    /// that is watched only here.
    fn used_up(&self, state: &State) -> Option<String> {
        let watching = self.options.watching;
        let halted = watching && state.status == segno_core::Status::Halted;
        let asked = watching && !state.requests.is_empty();
        let why = exhausted(state).or_else(|| halted.then(|| HALTED.to_owned()));
        why.or_else(|| asked.then(|| ASKED_TO_STOP.to_owned()))
    }

    /// What a run uses is counted by its driver. Under a hard cap nothing starts while there is none that lives.
    fn uncounted(&self, state: &State, actor: &Actor) -> Option<String> {
        let of_session = state.budget.hard || (state.cost.hard && state.cost.limit_micros.is_some());
        let capped = of_session || self.is_capped_by_day(state);
        let run = state.run.as_ref().filter(|run| run.is_running() && Some(&run.id) == actor.run.as_ref());
        if !capped || run.is_none() {
            return None;
        }
        let lease = self.store().lease(state.session_id).ok()?;
        let counts = lease.is_some_and(|lease| crate::lease::life(&lease).may_live());
        (!counts).then(|| UNCOUNTED.to_owned())
    }

    /// The epoch of a driver that adopted this run: what the agent inherited is the dead driver's.
    fn adopted_epoch(&self, session: SessionId, run: Option<&str>) -> Option<u64> {
        let state = self.store().load(session).ok()?.state;
        let known = state.run.filter(|known| known.is_running() && Some(known.id.as_str()) == run)?;
        known.adopted
    }
}

/// That the calls which these begin were denied.
fn denied(facts: &[Fact], denial: &Denial) -> Vec<Fact> {
    let ends = facts.iter().filter_map(|fact| match fact {
        Fact::ToolStarted { call, tool, .. } => Some(Fact::ToolEnded {
            call: call.clone(),
            tool: Some(tool.clone()),
            end: CallEnd::Denied,
            output: Some(denial.why.as_str().into()),
            source: Source::Hook,
        }),
        _ => None,
    });
    ends.collect()
}

/// Why a call may not run under a cap while nobody counts.
const UNCOUNTED: &str = "segno: this session has a hard cap, and nobody counts what is used since its driver died; \
                         stop here. A person goes on with `segno attach` or `segno resume`";

/// Why no tool may start in a session that somebody wants to end.
const ASKED_TO_STOP: &str = "segno: a person asked for this session to stop; end your turn here";

/// Why no tool may start in a session that gets nowhere.
const HALTED: &str = "segno: the breaker of this session is open; stop here. A person looks with `segno show` and goes on with \
                      `segno resume --reset-breaker`";

/// Why no tool may start any more.
fn exhausted(state: &State) -> Option<String> {
    if state.budget.is_exhausted() {
        let (used, total) = (state.budget.tokens_used, state.budget.total_budget);
        return Some(format!("segno: the token budget is used up ({used} of {total}); stop here"));
    }
    state.cost.is_exhausted().then(|| "segno: the money budget is used up; stop here".to_owned())
}

/// A call that may not run.
struct Denial {
    /// What the agent is told, in its own form.
    print: String,
    /// The reason in it.
    why: String,
}

fn deny(report: &HookReport, why: String) -> Option<Denial> {
    if broken(Guard::Hook) {
        return None;
    }
    tracing::info!(event = report.event, why, "a hook denies");
    let answer = |why: &String| report.respond(&Decision::Deny(why.clone()));
    let print = report.answers.deny.then(|| answer(&why)).flatten()?;
    Some(Denial { print, why })
}
