//! One iteration after another, for as long as something follows.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use segno_agents::Outcome;
use segno_core::Command;
use segno_core::State;
use segno_core::Status;
use segno_core::event::LoopBaselineTaken;
use segno_core::event::PauseReason;
use segno_core::looping::ErrorMark;
use segno_core::looping::GateRule;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopState;
use segno_core::looping::LoopVerdict;
use segno_core::looping::NextStep;
use segno_core::looping::Observation;
use segno_core::looping::PersonNeed;
use segno_core::looping::PhaseEnd;
use segno_core::looping::PhasePlan;
use segno_core::looping::RunEnd;
use segno_core::looping::had_its_say;
use segno_core::looping::in_same_conversation;
use segno_core::looping::next_step;
use segno_core::looping::outcome_of_open;
use segno_core::looping::time_left;

use super::drive::Stretch;
use super::drive::is_parked;
use super::drive::the_loop;
use super::driven::Driven;
use super::driven::why_it_stands;
use super::news::LoopNews;
use super::unrunnable::Unrunnable;
use super::unrunnable::last_lines;
use super::unrunnable::unrunnable;
use crate::Error;
use crate::launch::Intent;
use crate::launch::RunIn;
use crate::launch::Who;
use crate::looping::evidence::command::EvidenceCommand;
use crate::looping::evidence::command::run_evidence;
use crate::looping::evidence::gather::Measured;
use crate::looping::evidence::unloaded::unloaded;
use crate::looping::limits::account::account_of;
use crate::looping::limits::park::wait_until;
use crate::run::Heartbeat;

/// How long a command of a phase may take that is not evidence.
const HOOK: Duration = Duration::from_secs(600);
/// How often it is measured again because files changed after the measurement.
const MOVED: u32 = 3;
/// How many files are named that never rest.
const NAMED: usize = 5;

/// A loop that turns.
pub(crate) struct Turning<'a> {
    pub(crate) driven: Driven<'a>,
    pub(crate) heart: &'a Heartbeat,
    /// What failed when it was last measured, for the next prompt.
    pub(crate) failing: String,
    /// The end of what failing commands printed, as it was shown last.
    pub(crate) printed: Vec<String>,
    /// Whether the agent was asked how full its plan is.
    pub(crate) asked: bool,
    /// Whether a person wants one iteration now, whatever it would wait for.
    pub(crate) now: bool,
}

impl<'a> Deref for Turning<'a> {
    type Target = Driven<'a>;

    fn deref(&self) -> &Driven<'a> {
        &self.driven
    }
}

/// What the attempt to run an agent came to.
enum Ran {
    /// It ran; this is its own account, if this process heard it.
    Told(Option<Box<Outcome>>),
    /// It could not be started.
    NotStarted(String),
    /// Somebody wanted it to stop first.
    Stopped(String),
}

impl Turning<'_> {
    pub(crate) fn turn(&mut self) -> Result<Stretch, Error> {
        loop {
            if let Some(why) = self.engine.stop_between_runs(self.driver, self.host.stop)? {
                return self.ended(None, why);
            }
            let state = self.state()?;
            if let Some(stretch) = self.step(&state)? {
                return Ok(stretch);
            }
        }
    }

    /// Does what comes next; answers when that is nothing more for now.
    fn step(&mut self, state: &State) -> Result<Option<Stretch>, Error> {
        let Some(phase) = the_loop(state)?.phase_plan().cloned() else {
            return Err(Error::NotResumable { why: "its plan has no such phase", status: state.status });
        };
        match next_step(state, self.engine.now()) {
            NextStep::Advance => {
                let state = self.act(LoopCommand::Advance)?;
                // Somebody let the last phase go: nothing follows it.
                match state.status {
                    Status::Completed => {
                        let why = why_it_stands(&state);
                        self.ended(Some(LoopVerdict::Complete), why).map(Some)
                    }
                    _ => Ok(None),
                }
            }
            NextStep::Baseline => self.begin_phase(state, &phase).map(|()| None),
            NextStep::Iterate { .. } => self.unless_capped(state, |turning| turning.iterate(state, &phase)),
            NextStep::HandOver { to, why } => self.act(LoopCommand::HandOver { to, why }).map(|_| None),
            NextStep::Park(_) if self.now => match the_loop(state)?.baseline.is_none() {
                true => self.begin_phase(state, &phase).map(|()| None),
                false => self.unless_capped(state, |turning| turning.iterate(state, &phase)),
            },
            NextStep::Park(parked) => {
                let words = parked.words.clone();
                let state = self.act(LoopCommand::Park(parked))?;
                self.parked(state, None, words).map(Some)
            }
            NextStep::BackOff { until } => {
                let mut tick = |left: Duration| self.host.listener.hear(&LoopNews::Waiting { left });
                // Whoever does not want to wait is heard at the next turn.
                wait_until(self.engine, until, self.host.sleeper, &|| self.stops(), &mut tick);
                Ok(None)
            }
            NextStep::Capped(verdict) => self.capped(verdict).map(Some),
            NextStep::NoLoop
            | NextStep::Ended
            | NextStep::Wait { .. }
            | NextStep::Held
            | NextStep::Wake
            | NextStep::Halted { .. }
            | NextStep::Probe
            | NextStep::Items
            | NextStep::Breakpoint { .. } => self.ended_as(state).map(Some),
        }
    }

    /// Measures what there is before the first iteration of a phase, unless somebody wants it to stop.
    fn begin_phase(&mut self, state: &State, phase: &PhasePlan) -> Result<(), Error> {
        let looping = the_loop(state)?;
        self.say_phase(looping, &phase.name);
        self.hooks(state, &phase.on_start);
        let measured = self.gather(state, phase)?;
        if measured.stopped {
            return Ok(());
        }
        if let Some(missing) = unrunnable(&phase.evidence, &measured.evidence, &measured.failing) {
            self.miss(looping, phase, missing)?;
        }
        self.warn_of_masked(looping);
        self.failing.clone_from(&measured.failing);
        let unloaded = unloaded(&phase.evidence, &measured, Path::new(&state.project.path));
        let tree = match phase.evidence.is_empty() {
            true => self.engine.present_tree(state)?,
            false => measured.tree,
        };
        let taken = LoopBaselineTaken {
            phase: phase.name.clone(),
            tree,
            tests: measured.tests.unwrap_or_default(),
            names: measured.names,
            evidence: measured.evidence,
            protected: measured.protected,
            unloaded,
        };
        self.act(LoopCommand::TakeBaseline(taken)).map(drop)
    }

    fn say_phase(&self, looping: &LoopState, phase: &str) {
        let number = looping.plan.phases.iter().position(|it| it.name == phase).map_or(1, |at| at + 1);
        let of = looping.plan.phases.len();
        self.host.listener.hear(&LoopNews::PhaseBegan { phase: phase.to_owned(), number, of });
    }

    /// Says once, at the start, which commands hide the exit status of their tests.
    fn warn_of_masked(&self, looping: &LoopState) {
        if looping.first.is_some() {
            return;
        }
        let mut told = BTreeSet::new();
        for plan in looping.plan.phases.iter().flat_map(|phase| &phase.evidence) {
            let masked = segno_evidence::masked_runner(&plan.command).filter(|_| told.insert(&plan.command));
            let Some(masked) = masked else { continue };
            let (runner, by) = (masked.runner.name(), masked.by);
            self.host.listener.hear(&LoopNews::Problem(format!(
                "{}: the exit status of {runner} is lost by `{by}`: only what is printed tells how its tests came out",
                plan.command
            )));
        }
    }

    /// What measures the work cannot be run: no agent works before that is mended, unless the work itself may bring it.
    fn miss(&self, looping: &LoopState, phase: &PhasePlan, missing: Unrunnable) -> Result<(), Error> {
        let Unrunnable { command, words, may_come } = missing;
        if may_come || looping.total > 0 {
            let problem = format!("{command}: {words}; {} goes on, as the work may bring it", phase.name);
            self.host.listener.hear(&LoopNews::Problem(problem));
            return Ok(());
        }
        let why = Error::CannotMeasure { command, words };
        let details = Some(why.to_string().as_str().into());
        self.driver.act(Command::Pause { reason: PauseReason::Error, details })?;
        Err(why)
    }

    /// Runs the commands that a phase has for an occasion. What goes wrong there is told, and holds up nobody.
    fn hooks(&self, state: &State, commands: &[String]) {
        let settings = self.host.settings;
        let guard = settings.guard();
        for command in commands {
            let wanted = EvidenceCommand {
                command,
                directory: Path::new(&state.project.path),
                environment: &settings.environment,
                timeout: HOOK,
                resources: settings.resources,
                adopts: settings.sole_process,
                guard: &guard,
            };
            let problem = match run_evidence(&wanted, &self.engine.redactor(), &|| self.stops()) {
                Ok(shown) if shown.passes() => continue,
                Ok(shown) => format!("{command}: {}", shown.words()),
                Err(why) => format!("{command}: {why}"),
            };
            self.host.listener.hear(&LoopNews::Problem(problem));
        }
    }

    fn gather(&self, state: &State, phase: &PhasePlan) -> Result<Measured, Error> {
        let stops = || self.stops();
        let wanted = (phase.evidence.as_slice(), phase.protect.as_slice());
        self.engine.gather(state, wanted, self.host.settings, &stops, self.host.listener)
    }

    /// One prompt and its answer, what it showed, and what follows.
    fn iterate(&mut self, state: &State, phase: &PhasePlan) -> Result<Option<Stretch>, Error> {
        let looping = the_loop(state)?;
        let agent = self.agent_name(looping, phase);
        let account = account_of(&agent, self.host.settings);
        if let Some(parked) = self.still_used_up(state, looping, &agent, &account) {
            let words = parked.words.clone();
            let state = self.act(LoopCommand::Park(parked))?;
            return self.parked(state.clone(), None, words).map(Some);
        }
        let begun = match looping.open {
            true => state.clone(),
            false => {
                let now = std::mem::take(&mut self.now);
                let (begun, account) = (self.take_turn(&agent, &account, now)?, account.clone());
                if is_parked(&begun) {
                    let parked = the_loop(&begun)?.parked.as_ref();
                    let words = parked.map_or(account, |parked| parked.words.clone());
                    return self.parked(begun, None, words).map(Some);
                }
                if !the_loop(&begun)?.open {
                    // Another agent takes over.
                    return Ok(None);
                }
                begun
            }
        };
        crate::fault::moment("loop begun");
        // One that was begun before this process, and whose agent had its say, is not asked again. An agent that was cut
        // short together with its driver, or stopped, had not.
        let again = outcome_of_open(&begun) == Some("interrupted");
        let ran = match had_its_say(&begun) {
            true => Ran::Told(None),
            false => {
                let iteration = begun.iteration;
                self.host.listener.hear(&LoopNews::IterationBegan { phase: phase.name.clone(), iteration });
                self.run(&begun, phase, again)?
            }
        };
        let state = self.state()?;
        let mut seen = match ran {
            Ran::Stopped(why) => return self.ended(None, why).map(Some),
            Ran::NotStarted(why) => Observation {
                end: RunEnd::StartFailed,
                outcome: "not started".to_owned(),
                error: Some(ErrorMark::of(&why)),
                ..Observation::default()
            },
            Ran::Told(told) => self.engine.observe_run(&state, told.as_deref())?,
        };
        if seen.outcome == "completed" && self.never_told_its_cost(&state, phase, &seen) {
            seen.over_budget = Some(segno_core::looping::COST_UNKNOWN.to_owned());
        }
        if let Some(limit) = &mut seen.limit {
            limit.account = account;
        }
        if seen.end == RunEnd::StartFailed {
            // When that changes, one more start is worth a try.
            seen.setup = Some(self.setup(&state, phase)?);
        }
        if state.status != Status::Active {
            // Somebody paused or ended it while the agent ran; the iteration stays open, and is done again or finished.
            return self.ended_as(&state).map(Some);
        }
        self.decide(&state, phase, seen)
    }

    /// Whether there is a cap on money, and an agent that is described as one that tells its cost told nothing at all. What
    /// it used without a price is seen by its tokens.
    fn never_told_its_cost(&self, state: &State, phase: &PhasePlan, seen: &Observation) -> bool {
        let Some(looping) = state.looping.as_deref() else { return false };
        let session = state.cost.hard && state.cost.limit_micros.is_some();
        let caps = &looping.plan.caps;
        let capped = session
            || caps.iteration_micros.is_some()
            || caps.day_micros.is_some()
            || self.engine.day_caps().micros.is_some();
        let tells = || {
            let chosen = self.host.settings.choose(&who(looping, phase));
            chosen.is_ok_and(|chosen| chosen.agent.capabilities().tells_cost)
        };
        capped && seen.micros.is_none() && seen.tokens == 0 && tells()
    }

    /// Begins an iteration, unless another loop knows that the account is at its limit.
    fn take_turn(&self, agent: &str, account: &str, now: bool) -> Result<State, Error> {
        let (account, agent, at) = (account.to_owned(), agent.to_owned(), self.engine.now());
        let turn = move |others| LoopCommand::TakeTurn {
            account: account.clone(),
            agent: agent.clone(),
            others,
            at,
            jitter: jitter(),
            now,
        };
        Ok(self.engine.act_by_account(self.driver, turn)?.state)
    }

    /// The agent that works in a phase, by its own name if it is there.
    fn agent_name(&self, looping: &LoopState, phase: &PhasePlan) -> String {
        let settings = self.host.settings;
        let named = looping.agent.clone().or_else(|| phase.agent.clone());
        let who = named.clone().map_or(Who::Usual, Who::Named);
        let chosen = settings.choose(&who).map(|chosen| chosen.agent.name().to_owned());
        chosen.unwrap_or_else(|_| named.unwrap_or_else(|| settings.agent.clone()))
    }

    /// Measures, records what the iteration came to, and does what follows from it.
    fn decide(
        &mut self,
        state: &State,
        phase: &PhasePlan,
        mut seen: Observation,
    ) -> Result<Option<Stretch>, Error> {
        let mut printed = Vec::new();
        if matches!(seen.end, RunEnd::Ran | RunEnd::Cut | RunEnd::CannotAct) {
            let Some((measured, times, differs)) = self.measure(state, phase, &seen)? else {
                // Somebody wants it to stop: that is seen to first, and the iteration is finished afterwards.
                return Ok(None);
            };
            // Where tests are counted, the line of the iteration says enough.
            let last = if measured.tests.is_none() { last_lines(&measured.failing) } else { Vec::new() };
            printed = if last == self.printed { Vec::new() } else { last.clone() };
            self.printed = last;
            self.failing.clone_from(&measured.failing);
            self.add(state, phase, &mut seen, (&measured, times, differs))?;
        }
        crate::fault::moment("loop measured");
        let ran = state.run.as_ref().filter(|_| seen.end != RunEnd::StartFailed);
        let state = self.act(LoopCommand::EndIteration {
            run: ran.map(|run| run.id.clone()),
            agent: ran.map(|run| run.agent.clone()),
            observation: Box::new(seen),
            at: self.engine.now(),
            jitter: jitter(),
        })?;
        crate::fault::moment("loop decided");
        let looping = the_loop(&state)?;
        let line = looping.line.clone().unwrap_or_default();
        self.host.listener.hear(&LoopNews::Decided { line: line.clone(), printed });
        let Some(verdict) = looping.verdict.clone() else { return Ok(None) };
        self.follow(&state, phase, verdict, line)
    }

    /// What was measured becomes part of what an iteration showed.
    fn add(
        &self,
        state: &State,
        phase: &PhasePlan,
        seen: &mut Observation,
        (measured, times, differs): (&Measured, u32, bool),
    ) -> Result<(), Error> {
        self.engine.add_measured(state, the_loop(state)?, seen, measured, times, differs)?;
        if matches!(phase.gate, GateRule::Document { .. }) {
            seen.metrics.extend(self.engine.documents(state)?);
        }
        Ok(())
    }

    /// Whether a result is worth a second look: it says that all is well, or the gate would take it as it is. Where tests are
    /// to fail, or failed before the loop began, that is not the same.
    fn counts(
        &self,
        state: &State,
        phase: &PhasePlan,
        seen: &Observation,
        (measured, times): (&Measured, u32),
    ) -> Result<bool, Error> {
        if measured.stopped || measured.evidence.is_empty() || measured.passes() {
            return Ok(!measured.stopped && !measured.evidence.is_empty());
        }
        let mut seen = seen.clone();
        self.add(state, phase, &mut seen, (measured, times, false))?;
        Ok(segno_core::looping::evaluate(the_loop(state)?, &seen, state.iteration).gate_1)
    }

    /// Runs the evidence commands on the tree that the agent left, so often as the gate wants it to hold, and again if a
    /// file changed while they ran: what they found may not be true of it. Files that change each time are the commands'
    /// own, unless the project's repository tracks them. Answers with the result, how often it came out like this, and whether it ever came out differently; nothing if
    /// somebody wants it to stop.
    fn measure(
        &self,
        state: &State,
        phase: &PhasePlan,
        seen: &Observation,
    ) -> Result<Option<(Measured, u32, bool)>, Error> {
        let wanted = match phase.gate {
            GateRule::Green { runs } => runs.max(1),
            _ => 1,
        };
        let mut before = seen.tree_after.clone();
        let mut measured = self.gather(state, phase)?;
        let (mut times, mut moved) = (1, 0);
        let mut own: Option<BTreeSet<PathBuf>> = None;
        while self.counts(state, phase, seen, (&measured, wanted))? {
            if before.is_some() && before != measured.tree {
                let written = self.engine.changed_since_run(state)?;
                let kept = self.engine.tracked_among(state, &written)?;
                if own.as_ref() != Some(&written) || !kept.is_empty() {
                    // It is bound to the tree that it was measured on, and that one is gone.
                    if moved >= MOVED {
                        // Nothing holds of files that never rest.
                        let named = if kept.is_empty() { &written } else { &kept };
                        let named = named.iter().take(NAMED).map(|path| path.display().to_string());
                        measured.restless = named.collect();
                        self.host.listener.hear(&LoopNews::Problem(format!(
                            "{} changed each time that it was measured, so nothing that was measured holds",
                            measured.restless.join(", ")
                        )));
                        return Ok(Some((measured, 1, true)));
                    }
                    (moved, times, own) = (moved + 1, 1, Some(written));
                    before.clone_from(&measured.tree);
                    measured = self.gather(state, phase)?;
                    continue;
                }
            }
            if times >= wanted {
                break;
            }
            before.clone_from(&measured.tree);
            let again = self.gather(state, phase)?;
            if again.stopped {
                return Ok(None);
            }
            if (again.passes(), &again.tests) != (measured.passes(), &measured.tests) {
                // The worse of the two counts.
                let failed = |one: &Measured| one.tests.as_ref().map_or(0, |tests| tests.failed);
                let is_better = (again.passes(), failed(&measured)) > (measured.passes(), failed(&again));
                let worse = if is_better { measured } else { again };
                return Ok(Some((worse, 1, true)));
            }
            times += 1;
            measured = again;
        }
        Ok((!measured.stopped).then_some((measured, times, false)))
    }

    /// What follows from a verdict is in the record already, as far as the session is concerned.
    fn follow(
        &mut self,
        state: &State,
        phase: &PhasePlan,
        verdict: LoopVerdict,
        line: String,
    ) -> Result<Option<Stretch>, Error> {
        let look = PersonNeed::Breakpoint;
        match &verdict {
            // Without its gate it is not done: somebody skipped it.
            LoopVerdict::NextPhase { .. } | LoopVerdict::Complete if has_passed(state, phase) => {
                self.hooks(state, &phase.on_complete);
            }
            LoopVerdict::NextPhase { .. } | LoopVerdict::Complete => {}
            LoopVerdict::NeedsPerson { need, .. } if *need == look => self.hooks(state, &phase.on_complete),
            LoopVerdict::Cap { .. } | LoopVerdict::Halt { .. } | LoopVerdict::NeedsPerson { .. } => {
                self.hooks(state, &phase.on_error);
            }
            // What it is measured by was measured when it began the first time.
            LoopVerdict::BackTo { phase: to, .. } => {
                let looping = the_loop(state)?;
                if looping.baseline.is_some() {
                    self.say_phase(looping, to);
                }
            }
            LoopVerdict::Continue { .. }
            | LoopVerdict::Stopped { .. }
            | LoopVerdict::Park { .. }
            | LoopVerdict::BackOff { .. }
            | LoopVerdict::HandOver { .. } => {}
        }
        if is_parked(state) {
            return self.parked(state.clone(), Some(verdict), line).map(Some);
        }
        if state.status == Status::Active {
            return Ok(None);
        }
        self.ended(Some(verdict), line).map(Some)
    }

    /// What a start of the agent of a phase depends on.
    fn setup(&self, state: &State, phase: &PhasePlan) -> Result<String, Error> {
        Ok(super::halted::setup(self.host.settings, &who(the_loop(state)?, phase)))
    }

    /// Asks the agent; once more if it was cut short before.
    fn run(&self, state: &State, phase: &PhasePlan, again: bool) -> Result<Ran, Error> {
        let (session, looping) = (state.session_id, the_loop(state)?);
        let same = in_same_conversation(phase.context, looping.context_percent);
        let who = who(looping, phase);
        // Who takes over from another agent knows nothing of its conversation.
        let before = state.run.as_ref().map(|run| run.agent.as_str());
        let takes_over = matches!(&who, Who::Named(name) if before.is_some_and(|before| before != name));
        let brief = again || takes_over || (!same && looping.total > 0);
        let prompt = self.engine.loop_prompt(state, looping, phase, &self.failing, brief)?;
        let intent = Intent {
            run_in: RunIn::Driven { session, same },
            prompt,
            model: self.engine.model_for(state, phase)?,
            max_duration: time_left(looping, self.engine.now()).map(Duration::from_secs),
            item: looping.item.clone().map(Into::into),
            max_tokens: looping.plan.caps.iteration_tokens,
            max_micros: looping.plan.caps.iteration_micros,
            ..Intent::default()
        };
        let host = self.host;
        let feed = host.feed.lasting();
        let settings = host.settings.without_own_waiting();
        let planned = settings.choose(&who).and_then(|chosen| {
            self.engine.plan(chosen, intent, &settings, host.frontend, (&feed, host.stop))
        });
        let run = planned.and_then(|launch| self.engine.run_held(self.driver, self.heart, launch.request));
        match run {
            Ok(report) => {
                let (files, others): (Vec<String>, Vec<String>) =
                    report.notices.iter().cloned().partition(|notice| notice.starts_with("the files of "));
                self.driven.tell(files);
                for notice in others {
                    host.listener.hear(&LoopNews::Problem(notice));
                }
                Ok(Ran::Told(Some(Box::new(report.outcome))))
            }
            Err(Error::NotStarted(why)) => Ok(Ran::Stopped(why)),
            Err(why) if is_start_failure(&why) => Ok(Ran::NotStarted(why.to_string())),
            Err(why) => Err(why),
        }
    }
}

/// Any number will do: sessions that wait for the same window must not all wake at once.
pub(crate) fn jitter() -> u64 {
    uuid::Uuid::now_v7().as_u64_pair().1
}

/// Whether the gate of a phase has passed.
fn has_passed(state: &State, phase: &PhasePlan) -> bool {
    let stands = state.looping.iter().flat_map(|looping| &looping.phases);
    stands.into_iter().any(|stand| stand.name == phase.name && stand.end == Some(PhaseEnd::Passed))
}

/// Which agent works in a phase.
pub(crate) fn who(looping: &LoopState, phase: &PhasePlan) -> Who {
    looping.agent.clone().or_else(|| phase.agent.clone()).map_or(Who::Usual, Who::Named)
}

/// Whether it is the agent that could not be started, and not the session that could not be driven.
fn is_start_failure(why: &Error) -> bool {
    matches!(
        why,
        Error::NotLaunched { .. }
            | Error::NotInstalled { .. }
            | Error::NoAgentInstalled { .. }
            | Error::UnknownAgent { .. }
    )
}
