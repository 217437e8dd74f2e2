//! Decides what is done about a run: what happens goes in, what to do comes out, both as values.
//!
//! Nothing here looks at a clock, a process, a file or the store. So every rule can be read in one place and tested
//! without any of them; whoever drives carries the actions out and tells what came of them.
//!
//! While an agent runs the supervisor is *watching*: at every tick its policies are asked, in a fixed order, whether
//! the run has to stop. The first that says so makes it *stopping*: signals follow from the agent's ladder, each after
//! the last one had its time, the last one again and again, until the process has ended. Nothing leads back.

mod end;
mod policy;

pub(super) use end::RunEnd;
pub(super) use end::session_after;
use policy::Known;
use policy::Lease;

use std::time::Duration;

use segno_agents::StopStep;
use segno_core::event::Request as Asked;
use segno_core::state::OpenRequest;
use serde_json::Value;
use serde_json::json;

use super::Ask;
use super::stop::Cause;
use super::tree::Usage;

/// How often others' words are looked for, such as requests.
const LOOK: Duration = Duration::from_millis(250);
/// How often it is counted what the processes use, when that matters.
const COUNT: Duration = Duration::from_secs(1);
/// Whoever was not asked for so long was asleep or stopped itself, and knows nothing of what happened meanwhile.
const AWAY: Duration = Duration::from_secs(10);
/// The same trouble is told again after so long.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// What is said when a store that could not take what happened can again.
pub(super) const WELL: &str = "the store takes what happens again; nothing is lost";

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    /// Time passed; everything that was known is so still.
    Tick,
    /// The agent gave a sign of life, or waits for a person.
    Sign,
    /// So many tool calls were made in this run.
    ToolCalls(u64),
    /// So many bytes were recorded of it.
    Recorded(u64),
    /// Somebody at this process asked to stop, so often in all.
    Asked(usize, Ask),
    /// What the journal says of the session.
    Journal {
        /// What others ask for.
        requests: Vec<OpenRequest>,
        /// The hard cap that is used up, in words.
        used_up: Option<String>,
        /// A tool is at work.
        tool_open: bool,
        /// How many calls the session has had.
        calls: u64,
    },
    /// What its processes use.
    Usage(Usage),
    /// This driver still has the right to drive.
    Renewed,
    /// It does not: somebody else took over, or the session is gone.
    Replaced(String),
    /// The store cannot take what happens.
    StoreTrouble(String),
    /// It can again.
    StoreWell,
    /// A snapshot that was asked for is taken, or could not be.
    SnapshotDone,
    /// What the agent prints cannot be kept, and it waits.
    HeldUp(String),
    /// The process has ended.
    Exited,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Find out at once whether this driver still has the right to drive.
    Renew,
    /// Read what others recorded.
    Look,
    /// Count what the processes use.
    Count,
    /// Send a signal.
    Signal(StopStep),
    /// Set a checkpoint, after so many calls.
    Checkpoint(u64),
    /// Journal this.
    Report(&'static str, Value),
    /// Tell whoever watches.
    Warn(String),
    /// The same, and whoever reads the report afterwards.
    Remember(String),
    /// The run is over; this is why it was stopped, if it was.
    End(Option<Cause>),
}

/// What is decided once, when a run begins.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) limits: super::Limits,
    pub(super) resources: super::resources::Resources,
    /// How the agent is stopped, step by step.
    pub(super) ladder: Vec<StopStep>,
    /// The agent gives signs of life while its tools work.
    pub(super) heartbeats: bool,
    /// A checkpoint after so many calls; 0 is none.
    pub(super) every_calls: u64,
    /// Somebody on another machine could take the session over without this driver hearing of it.
    pub(super) shared_store: bool,
}

/// How long an agent that used up a cap gets for each step of being stopped, at most.
const CAP_GRACE: Duration = Duration::from_secs(1);

/// Watches one run.
pub(super) struct Supervisor {
    rules: Rules,
    known: Known,
    stopping: Option<Stopping>,
    looked: Duration,
    counted: Duration,
    ticked: Duration,
    next_checkpoint: Option<u64>,
    snapshot_under_way: bool,
    trouble_told: Option<Duration>,
    held_up_told: Option<Duration>,
}

struct Stopping {
    cause: Cause,
    step: usize,
    since: Duration,
}

impl Supervisor {
    pub(super) fn new(rules: Rules) -> Self {
        let zero = Duration::ZERO;
        Self {
            rules,
            known: Known::default(),
            stopping: None,
            looked: zero,
            counted: zero,
            ticked: zero,
            next_checkpoint: None,
            snapshot_under_way: false,
            trouble_told: None,
            held_up_told: None,
        }
    }

    /// Takes what happened at `now`, in running time since the watch began, and says what to do.
    pub(super) fn handle(&mut self, now: Duration, input: Input) -> Vec<Action> {
        self.known.now = now;
        let mut actions = Vec::new();
        match input {
            Input::Tick => self.tick(now, &mut actions),
            Input::Sign => self.known.last_sign = now,
            Input::ToolCalls(calls) => self.known.tool_calls = calls,
            Input::Recorded(bytes) => self.known.recorded = bytes,
            Input::Asked(times, how) => self.known.asked = (times > 0).then_some((times, how)),
            Input::Journal { requests, used_up, tool_open, calls } => {
                self.known.requests = requests;
                self.known.used_up = used_up;
                self.known.tool_open = tool_open;
                self.checkpoint(calls, &mut actions);
            }
            Input::Usage(usage) => self.known.usage = Some((now, usage)),
            Input::Renewed => self.known.lease = Lease::Ours { since: now },
            Input::Replaced(why) => self.known.lease = Lease::Lost(why),
            Input::StoreTrouble(why) => self.trouble(now, &why, &mut actions),
            Input::StoreWell => {
                if self.trouble_told.take().is_some() {
                    actions.push(Action::Warn(WELL.to_owned()));
                }
            }
            Input::SnapshotDone => self.snapshot_under_way = false,
            Input::HeldUp(why) => {
                // It is not stuck: it waits for room.
                self.known.last_sign = now;
                if due(self.held_up_told, now) {
                    self.held_up_told = Some(now);
                    actions.push(Action::Remember(why));
                }
            }
            Input::Exited => {
                let cause = self.stopping.take().map(|stopping| stopping.cause);
                // Whoever kills from elsewhere asks first and then does it.
                let cause = cause.or_else(|| policy::request(&self.known, &self.rules).cause());
                actions.push(Action::End(cause));
            }
        }
        actions
    }

    /// Why the run is being stopped, if it is.
    pub(super) fn cause(&self) -> Option<&Cause> {
        self.stopping.as_ref().map(|stopping| &stopping.cause)
    }

    fn tick(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let away = now.saturating_sub(self.ticked) > AWAY;
        self.ticked = now;
        if away {
            // Much may have happened; nothing is decided before that is known.
            actions.extend([Action::Renew, Action::Look]);
            self.looked = now;
            return;
        }
        if now.saturating_sub(self.looked) >= LOOK {
            self.looked = now;
            actions.push(Action::Look);
        }
        let counts =
            self.rules.resources.counts_processes() || policy::silence_is_near(&self.known, &self.rules);
        if counts && now.saturating_sub(self.counted) >= COUNT {
            self.counted = now;
            actions.push(Action::Count);
        }
        match self.stopping {
            Some(_) => actions.extend(self.next_step(now).map(Action::Signal)),
            None => self.ask_policies(now, actions),
        }
    }

    fn ask_policies(&mut self, now: Duration, actions: &mut Vec<Action>) {
        for policy in policy::POLICIES {
            match policy(&self.known, &self.rules) {
                policy::Verdict::GoOn => {}
                policy::Verdict::Excused(body) => {
                    self.known.last_sign = now;
                    self.known.excused = self.known.usage.map_or(0, |(_, usage)| usage.ticks);
                    actions.push(Action::Report("watchdog", body));
                }
                policy::Verdict::Stop(cause) => return self.begin(cause, now, actions),
            }
        }
    }

    fn begin(&mut self, cause: Cause, now: Duration, actions: &mut Vec<Action>) {
        let text = cause.text();
        actions.push(Action::Warn(format!("{text}; the agent is being stopped")));
        let what = match cause {
            Cause::Silence | Cause::MaxDuration => "watchdog",
            Cause::Asked(_)
            | Cause::Request(_)
            | Cause::Turns
            | Cause::Budget(_)
            | Cause::Resources(_)
            | Cause::Replaced(_) => "stopping",
        };
        let body = json!({ "cause": cause.word(), "why": text, "did": "stop" });
        actions.push(Action::Report(what, body));
        let last = self.rules.ladder.len().saturating_sub(1);
        let step = if cause.is_kill() { last } else { 0 };
        actions.extend(self.rules.ladder.get(step).copied().map(Action::Signal));
        self.stopping = Some(Stopping { cause, step, since: now });
    }

    /// The next, harder step when the last one had its time, or the hardest at once. The last one is repeated.
    fn next_step(&mut self, now: Duration) -> Option<StopStep> {
        let at_once = self.known.asked.is_some_and(|(times, _)| times > 1)
            || self.known.requests.iter().any(|open| open.request == Asked::Kill);
        let last = self.rules.ladder.len().saturating_sub(1);
        let stopping = self.stopping.as_mut()?;
        // What a used-up cap forbids goes on being used until the agent has ended.
        let grace = match stopping.cause {
            Cause::Budget(_) => self.rules.limits.grace.min(CAP_GRACE),
            _ => self.rules.limits.grace,
        };
        let waited = now.saturating_sub(stopping.since) >= grace;
        if stopping.step < last && at_once {
            stopping.step = last;
        } else if !waited {
            return None;
        } else {
            stopping.step = (stopping.step + 1).min(last);
        }
        stopping.since = now;
        self.rules.ladder.get(stopping.step).copied()
    }

    fn checkpoint(&mut self, calls: u64, actions: &mut Vec<Action>) {
        let every = self.rules.every_calls;
        if every == 0 || self.snapshot_under_way {
            return;
        }
        let next = *self.next_checkpoint.get_or_insert(calls + every);
        if calls >= next {
            self.next_checkpoint = Some(calls + every);
            self.snapshot_under_way = true;
            actions.push(Action::Checkpoint(calls));
        }
    }

    fn trouble(&mut self, now: Duration, why: &str, actions: &mut Vec<Action>) {
        if due(self.trouble_told, now) {
            let text =
                format!("{why}; the run goes on, and what it prints is kept until the store can take it");
            actions.push(Action::Remember(text));
            self.trouble_told = Some(now);
        }
    }
}

/// Whether something that was told then may be told again.
fn due(told: Option<Duration>, now: Duration) -> bool {
    told.is_none_or(|told| now.saturating_sub(told) >= TELL_AGAIN)
}

#[cfg(test)]
mod tests {
    use segno_agents::STOP_LADDER;
    use segno_agents::Signal;

    use super::*;

    fn supervisor() -> Supervisor {
        Supervisor::new(Rules {
            limits: super::super::Limits::default(),
            resources: super::super::resources::Resources::default(),
            ladder: STOP_LADDER.to_vec(),
            heartbeats: false,
            every_calls: 20,
            shared_store: false,
        })
    }

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn signals(actions: &[Action]) -> Vec<Signal> {
        let signal = |action: &Action| match action {
            Action::Signal(step) => Some(step.signal),
            _ => None,
        };
        actions.iter().filter_map(signal).collect()
    }

    fn journal(requests: &[Asked], calls: u64) -> Input {
        let open = |request: &Asked| OpenRequest { seq: 1, request: *request, details: None };
        Input::Journal {
            requests: requests.iter().map(open).collect(),
            used_up: None,
            tool_open: false,
            calls,
        }
    }

    #[test]
    fn the_way_down_takes_its_time_and_a_second_word_none() {
        let mut one = supervisor();
        one.handle(at(0.0), Input::Asked(1, Ask::Interrupt));
        assert_eq!(signals(&one.handle(at(0.1), Input::Tick)), [Signal::Interrupt]);
        assert_eq!(signals(&one.handle(at(3.0), Input::Tick)), []);
        assert_eq!(signals(&one.handle(at(5.2), Input::Tick)), [Signal::Terminate]);
        assert_eq!(signals(&one.handle(at(10.3), Input::Tick)), [Signal::Kill]);
        assert_eq!(signals(&one.handle(at(15.4), Input::Tick)), [Signal::Kill], "again and again");
        assert_eq!(one.handle(at(15.5), Input::Exited), [Action::End(Some(Cause::Asked(Ask::Interrupt)))]);
        let mut two = supervisor();
        two.handle(at(0.0), Input::Asked(1, Ask::Interrupt));
        two.handle(at(0.1), Input::Tick);
        two.handle(at(0.2), Input::Asked(2, Ask::Interrupt));
        assert_eq!(signals(&two.handle(at(0.3), Input::Tick)), [Signal::Kill]);
        let mut killed = supervisor();
        killed.handle(at(0.0), journal(&[Asked::Kill], 0));
        assert_eq!(signals(&killed.handle(at(0.1), Input::Tick)), [Signal::Kill]);
    }

    #[test]
    fn an_end_of_its_own_has_no_cause_unless_somebody_asked() {
        assert_eq!(supervisor().handle(at(1.0), Input::Exited), [Action::End(None)]);
        let mut asked = supervisor();
        asked.handle(at(0.0), journal(&[Asked::Kill], 0));
        let Action::End(Some(Cause::Request(open))) = &asked.handle(at(1.0), Input::Exited)[0] else {
            panic!()
        };
        assert_eq!(open.request, Asked::Kill);
    }

    #[test]
    fn who_was_away_looks_before_anything_is_decided() {
        let mut away = supervisor();
        away.handle(at(0.0), Input::Asked(1, Ask::Interrupt));
        assert_eq!(away.handle(at(700.0), Input::Tick), [Action::Renew, Action::Look]);
        away.handle(at(700.0), Input::Replaced("another driver".to_owned()));
        let actions = away.handle(at(700.1), Input::Tick);
        assert_eq!(signals(&actions), [Signal::Interrupt]);
        let Action::End(Some(Cause::Replaced(_))) = &away.handle(at(700.2), Input::Exited)[0] else {
            panic!()
        };
    }

    #[test]
    fn a_checkpoint_after_so_many_calls_and_never_two_at_once() {
        let mut one = supervisor();
        assert_eq!(one.handle(at(0.0), journal(&[], 3)), []);
        assert_eq!(one.handle(at(0.1), journal(&[], 22)), []);
        assert_eq!(one.handle(at(0.2), journal(&[], 23)), [Action::Checkpoint(23)]);
        assert_eq!(one.handle(at(0.3), journal(&[], 99)), []);
        one.handle(at(0.4), Input::SnapshotDone);
        assert_eq!(one.handle(at(0.5), journal(&[], 99)), [Action::Checkpoint(99)]);
    }

    #[test]
    fn trouble_is_told_once_in_a_while() {
        let mut one = supervisor();
        let trouble = || Input::StoreTrouble("no room".to_owned());
        assert_eq!(one.handle(at(0.0), Input::StoreWell), []);
        assert_eq!(one.handle(at(0.0), trouble()).len(), 1);
        assert_eq!(one.handle(at(30.0), trouble()), []);
        assert_eq!(one.handle(at(61.0), trouble()).len(), 1);
        assert_eq!(one.handle(at(62.0), Input::StoreWell).len(), 1);
        assert_eq!(one.handle(at(63.0), Input::StoreWell), []);
    }
}
