//! A loop with a work queue: items one after another, each in a session of its own, under one lease and one set of caps.
//!
//! Which item comes next and what a failure means is decided in the store's transaction, on what all open loops say,
//! so two loops never take the same item. What is decided is in the journal before anything follows from it: whoever goes
//! on after a kill finds the item that was begun, its session, and whether it had its follow-up.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use segno_core::Command;
use segno_core::Refusal;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_core::event::ItemEnd;
use segno_core::event::ItemTaken;
use segno_core::event::LoopParked;
use segno_core::event::Maker;
use segno_core::event::PauseReason;
use segno_core::event::WokenHow;
use segno_core::event::WorkItemMark;
use segno_core::looping::ItemStand;
use segno_core::looping::ItemUse;
use segno_core::looping::LeftOver;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopState;
use segno_core::looping::LoopVerdict;
use segno_core::looping::NextStep;
use segno_core::looping::ParkReason;
use segno_core::looping::PersonNeed;
use segno_core::looping::QueueItem;
use segno_core::looping::QueuePlan;
use segno_core::looping::QueueShare;
use segno_core::looping::QueueStep;
use segno_core::looping::begun_item;
use segno_core::looping::failures_of;
use segno_core::looping::next_item;
use segno_core::looping::next_step;
use segno_core::looping::sharing;
use segno_store::Filter;

use super::list::Asks;
use super::list::Unlisted;
use super::list::WorkList;
use crate::Engine;
use crate::Error;
use crate::lease::Driver;
use crate::looping::driver::drive::LoopHost;
use crate::looping::driver::drive::Stretch;
use crate::looping::driver::drive::the_loop;
use crate::looping::driver::driven::Driven;
use crate::looping::limits::caps::cap_verdict;
use crate::looping::limits::park::Waited;
use crate::looping::limits::park::wait_until;

/// How often a tracker is asked whether there is new work while the loop waits, in seconds.
const POLL: i64 = 30;
/// How long a loop that waits for new work is parked at a time, in seconds: whoever wakes it asks the tracker then.
const WATCH: i64 = 900;
/// How often a tracker that does not answer is asked, and how long in between.
const TRIES: u32 = 3;
const BETWEEN: i64 = 2;

/// A loop that takes items from a queue.
pub(crate) struct Queueing<'a> {
    pub(crate) driven: Driven<'a>,
    /// What woke it, for an item that waits.
    pub(crate) woken: WokenHow,
}

impl<'a> Deref for Queueing<'a> {
    type Target = Driven<'a>;

    fn deref(&self) -> &Driven<'a> {
        &self.driven
    }
}

/// Why the loop cannot go on by itself.
pub(crate) enum Held {
    Failed(Error),
    /// Somebody wants it to stop: that is seen to at the next turn.
    Stopped,
    /// A person has to look.
    Needs(String),
}

impl From<Error> for Held {
    fn from(why: Error) -> Self {
        Self::Failed(why)
    }
}

impl Queueing<'_> {
    pub(crate) fn turn(&mut self) -> Result<Stretch, Error> {
        loop {
            if let Some(why) = self.engine.stop_between_runs(self.driver, self.host.stop)? {
                return self.ended(None, why);
            }
            let state = self.state()?;
            match next_step(&state, self.engine.now()) {
                NextStep::Items => {}
                NextStep::Capped(verdict) => return self.stand_still(verdict),
                _ => return self.ended_as(&state),
            }
            let step = match self.engine.check_start(&state) {
                Ok(()) => self.step(&state),
                Err(why) => Err(Held::Failed(why)),
            };
            match step {
                Ok(None) | Err(Held::Stopped) => {}
                Ok(Some(stretch)) => return Ok(stretch),
                // Of one item as of the next: the commands are those of the loop.
                Err(Held::Failed(why @ Error::CannotMeasure { .. })) => {
                    let (need, why) = (PersonNeed::Setup, why.to_string());
                    return self.stand_still(LoopVerdict::NeedsPerson { need, why });
                }
                Err(Held::Failed(why)) => match cap_verdict(&why) {
                    Some(verdict) => return self.stand_still(verdict),
                    None => return Err(why),
                },
                Err(Held::Needs(why)) => {
                    return self.stand_still(LoopVerdict::NeedsPerson { need: PersonNeed::Setup, why });
                }
            }
        }
    }

    /// Goes on with the item that was begun, or takes the next one; answers when that is nothing more for now.
    fn step(&mut self, state: &State) -> Result<Option<Stretch>, Held> {
        let looping = the_loop(state)?;
        let queue = plan_of(looping)?;
        if let Some((id, stand)) = begun_item(looping) {
            let item = WorkItemMark { id: id.clone(), title: stand.title.clone() };
            return self.work_on(state, &item, None);
        }
        self.engine.leave_branch(state, queue).map_err(|why| Held::Needs(why.to_string()))?;
        let listed = self.list(state, queue)?;
        let marks = listed.ready.iter().map(|one| mark(&one.item)).collect();
        let (total, skipped) = (listed.ready.len() as u64, listed.skipped.len() as u64);
        let unfit = listed.unfit.clone();
        self.act(LoopCommand::ListItems { ready: marks, total, skipped })?;
        let items: Vec<QueueItem> = listed.ready.iter().map(|one| one.item.clone()).collect();
        match self.take(items)? {
            QueueStep::Take(item) => {
                crate::fault::moment("item taken");
                let told = listed.ready.into_iter().find(|one| one.item.id == item.id);
                self.work_on(&self.state()?, &mark(&item), told)
            }
            QueueStep::Wait(until) => {
                self.park(until, "an item that failed is tried again then".to_owned()).map(Some)
            }
            QueueStep::Empty(_) if queue.watch => {
                let until = self.engine.now().plus_seconds(WATCH);
                self.park(until, "nothing is ready: it waits for new items".to_owned()).map(Some)
            }
            QueueStep::Empty(left) => self.empty(&left, &unfit).map(Some),
        }
    }

    /// Decides which item comes next, and takes it, in one transaction with what all other loops say.
    fn take(&self, items: Vec<QueueItem>) -> Result<QueueStep, Error> {
        let at = self.engine.now();
        let said: Arc<Mutex<Option<QueueStep>>> = Arc::default();
        let answer = Arc::clone(&said);
        self.engine.act_among_open_loops(self.driver, move |own, others| {
            let step = next_item(own, others, &items, at);
            let command = match &step {
                QueueStep::Take(item) => Some(LoopCommand::TakeItem(ItemTaken {
                    item: mark(item),
                    group: item.group.clone(),
                    failures: failures_of(own, others, &item.id),
                    ..ItemTaken::default()
                })),
                QueueStep::Wait(_) | QueueStep::Empty(_) => None,
            };
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(step);
            command
        })?;
        let step = said.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(step.unwrap_or(QueueStep::Empty(LeftOver::default())))
    }

    /// What there is to do. A tracker that does not answer is asked again; that it does not is never "nothing".
    fn list(&self, state: &State, queue: &QueuePlan) -> Result<WorkList, Held> {
        let mut listed = self.asking(state, |asks| asks.list(queue))?;
        // An item that failed may be in work by its tracker's account, and is not listed then.
        let looping = the_loop(state)?;
        for (id, stand) in looping.items.iter().filter(|(_, stand)| is_unfinished(stand)) {
            let known = listed.ready.iter().any(|one| one.item.id == *id);
            if known || queue.show.is_none() || self.is_closed(state, queue, id)? {
                continue;
            }
            let item = QueueItem {
                id: id.clone(),
                title: stand.title.clone(),
                group: stand.group.clone(),
                ..QueueItem::default()
            };
            listed.ready.push(super::list::ListedItem { item, description: String::new() });
        }
        // One that is done and listed all the same is asked for: lists may be older than what they list.
        let mut done = Vec::new();
        for one in listed.ready.iter().filter(|_| queue.show.is_some()) {
            let is_done = looping.items.get(&one.item.id).is_some_and(|it| it.end == Some(ItemEnd::Done));
            if is_done && self.is_closed(state, queue, &one.item.id)? {
                done.push(one.item.id.clone());
            }
        }
        listed.ready.retain(|one| !done.contains(&one.item.id));
        Ok(listed)
    }

    /// All that is listed now.
    pub(crate) fn listed(&self, state: &State) -> Result<WorkList, Held> {
        let queue = plan_of(the_loop(state)?)?;
        self.asking(state, |asks| asks.list(queue))
    }

    pub(crate) fn is_closed(&self, state: &State, queue: &QueuePlan, item: &str) -> Result<bool, Held> {
        self.asking(state, |asks| asks.is_closed(queue, item))
    }

    fn asking<T>(&self, state: &State, ask: impl Fn(&Asks<'_>) -> Result<T, Unlisted>) -> Result<T, Held> {
        let redactor = self.engine.redactor();
        let stops = || self.stops();
        let asks = Asks {
            project: Path::new(&state.project.path),
            settings: self.host.settings,
            redactor: &redactor,
            stops: &stops,
        };
        for tried in 1.. {
            match ask(&asks) {
                Ok(answer) => return Ok(answer),
                Err(Unlisted::Stopped) => break,
                Err(Unlisted::Because(why)) if tried >= TRIES => {
                    return Err(Held::Needs(format!("cannot tell what there is to do: {why}")));
                }
                Err(Unlisted::Because(_)) => {
                    let until = self.engine.now().plus_seconds(BETWEEN);
                    wait_until(self.engine, until, self.host.sleeper, &stops, &mut |_| {});
                }
            }
        }
        Err(Held::Stopped)
    }

    /// Nothing is left to be taken up: the work is done, unless items are open that nobody works on.
    fn empty(&self, left: &LeftOver, unfit: &[(WorkItemMark, String)]) -> Result<Stretch, Held> {
        let mut open = Vec::new();
        if !left.set_aside.is_empty() {
            open.push(format!("set aside: {}", left.set_aside.join(", ")));
        }
        if !left.left_lying.is_empty() {
            let lying = left.left_lying.iter().map(|(id, session)| format!("{id} in {session}"));
            let lying = lying.collect::<Vec<_>>().join(", ");
            open.push(format!("begun by another loop that stands still: {lying}"));
        }
        if !unfit.is_empty() {
            let named = unfit.iter().map(|(item, why)| match (item.id.as_str(), item.title.as_str()) {
                ("", "") => why.clone(),
                ("", title) => format!("{title} ({why})"),
                (id, _) => format!("{id} ({why})"),
            });
            open.push(format!("cannot be worked on: {}", named.collect::<Vec<_>>().join(", ")));
        }
        if !open.is_empty() {
            let why = format!("what is left is not done: {}", open.join("; "));
            let verdict = LoopVerdict::NeedsPerson { need: PersonNeed::Escalated, why };
            return Ok(self.stand_still(verdict)?);
        }
        let state = self.state()?;
        // What failed and is in the list no more was closed or taken out by somebody, and not by its gate. Who is told so
        // and goes on goes on without it.
        let failed = |stand: &ItemStand| stand.end == Some(ItemEnd::Failed);
        let items = the_loop(&state)?.items.iter();
        let gone: Vec<(&String, &ItemStand)> = items.filter(|(_, it)| failed(it)).collect();
        if !gone.is_empty() {
            for (id, stand) in &gone {
                self.act(LoopCommand::EndItem {
                    item: WorkItemMark { id: (*id).clone(), title: stand.title.clone() },
                    end: ItemEnd::SetAside,
                    failures: stand.failures,
                    retry_at: None,
                    why: format!("it failed ({}), and was closed or taken out of the list", stand.why),
                    used: ItemUse::default(),
                })?;
            }
            let named: Vec<&str> = gone.iter().map(|(id, _)| id.as_str()).collect();
            let why = format!(
                "no item is left, but these failed and are no longer in the list: {}; resume it to go on without them",
                named.join(", ")
            );
            let verdict = LoopVerdict::NeedsPerson { need: PersonNeed::Escalated, why };
            return Ok(self.stand_still(verdict)?);
        }
        let mut why = format!("no item is left, {} done", the_loop(&state)?.items_done);
        let aside = the_loop(&state)?.items.iter().filter(|(_, it)| it.end == Some(ItemEnd::SetAside));
        let aside: Vec<&str> = aside.map(|(id, _)| id.as_str()).collect();
        if !aside.is_empty() {
            why.push_str(&format!("; set aside: {}", aside.join(", ")));
        }
        if !left.elsewhere.is_empty() {
            why.push_str(&format!("; {} in another loop's hands", left.elsewhere.join(", ")));
        }
        if left.blocked > 0 {
            why.push_str(&format!("; {} blocked", left.blocked));
        }
        self.driver.act(Command::Complete { summary: Some(why.as_str().into()) })?;
        Ok(self.ended(Some(LoopVerdict::Complete), why)?)
    }

    /// The whole loop stands still for this reason.
    pub(crate) fn stand_still(&self, verdict: LoopVerdict) -> Result<Stretch, Error> {
        self.paused(reason_of(&verdict), verdict)
    }

    /// It waits for work, and gives the lease back.
    fn park(&self, until: Timestamp, words: String) -> Result<Stretch, Held> {
        let class = ParkReason::Queue;
        Ok(self.park_with(LoopParked { until: Some(until), class, words, ..LoopParked::default() })?)
    }

    /// It waits for this.
    pub(crate) fn park_with(&self, parked: LoopParked) -> Result<Stretch, Error> {
        let (until, class, why) = (parked.until, parked.class, parked.words.clone());
        let state = self.act(LoopCommand::Park(parked))?;
        let verdict = until.map(|until| LoopVerdict::Park { until, class, why: why.clone() });
        self.parked(state, verdict, why)
    }
}

impl Engine {
    /// Does what follows from what all open loops say, as the driver of one of them, in one transaction.
    pub(crate) fn act_among_open_loops(
        &self,
        driver: &Driver<'_>,
        mut decide: impl FnMut(&LoopState, &[QueueShare]) -> Option<LoopCommand> + Send + 'static,
    ) -> Result<(), Error> {
        self.act_with_others(driver, open_loops(), move |state, loops| {
            let own = state.looping.as_deref().ok_or_else(|| Refusal::bad("session", "it is no loop"))?;
            Ok(decide(own, &sharing(state, loops)))
        })?;
        Ok(())
    }

    /// Waits until there is work, or until the time has come, or until somebody does not want to wait any longer.
    pub(crate) fn wait_for_work(
        &self,
        session: SessionId,
        until: Timestamp,
        host: &LoopHost<'_>,
        called_off: &dyn Fn() -> bool,
        tick: &mut dyn FnMut(Duration),
    ) -> Waited {
        loop {
            let next = until.min(self.now().plus_seconds(POLL));
            let mut left = |part: Duration| {
                let rest = Duration::from_micros(until.micros_since(next));
                tick(part + rest);
            };
            let waited = wait_until(self, next, host.sleeper, called_off, &mut left);
            if waited == Waited::CalledOff || next >= until || self.has_work(session, host, called_off) {
                return waited;
            }
        }
    }

    /// Whether a loop that waits for work would go on now. Whoever cannot tell goes on waiting.
    fn has_work(&self, session: SessionId, host: &LoopHost<'_>, called_off: &dyn Fn() -> bool) -> bool {
        let Ok(state) = self.load(session).map(|loaded| loaded.state) else { return false };
        let Ok(queue) = the_loop(&state).and_then(plan_of) else { return false };
        let redactor = self.redactor();
        let project = Path::new(&state.project.path);
        let asks = Asks { project, settings: host.settings, redactor: &redactor, stops: called_off };
        let Ok(listed) = asks.list(queue) else { return false };
        let loops = self.list(&open_loops()).unwrap_or_default();
        let items: Vec<QueueItem> = listed.ready.into_iter().map(|one| one.item).collect();
        let Ok(own) = the_loop(&state) else { return false };
        match next_item(own, &sharing(&state, &loops), &items, self.now()) {
            QueueStep::Take(_) => true,
            QueueStep::Wait(_) => false,
            // What was waited for is gone.
            QueueStep::Empty(_) => !queue.watch,
        }
    }
}

/// Every loop that has not ended.
fn open_loops() -> Filter {
    let open = Status::ALL.into_iter().filter(|status| status.is_open()).collect();
    Filter { statuses: open, made_by: Some(Maker::Loop), ..Filter::default() }
}

/// Whether a parked loop waits for work.
pub(crate) fn waits_for_work(state: &State) -> bool {
    let parked = state.looping.as_ref().and_then(|looping| looping.parked.as_ref());
    parked.is_some_and(|parked| parked.class == ParkReason::Queue)
}

/// The queue of a loop.
pub(crate) fn plan_of(looping: &LoopState) -> Result<&QueuePlan, Error> {
    let none = || Error::Refused(Refusal::bad("session", "its loop has no queue"));
    looping.plan.queue.as_ref().ok_or_else(none)
}

fn mark(item: &QueueItem) -> WorkItemMark {
    WorkItemMark { id: item.id.clone(), title: item.title.clone() }
}

fn is_unfinished(stand: &ItemStand) -> bool {
    matches!(stand.end, Some(ItemEnd::Failed | ItemEnd::SetAside))
}

/// What a session is paused for that stands still so.
fn reason_of(verdict: &LoopVerdict) -> PauseReason {
    match verdict {
        LoopVerdict::Cap { which, .. } => which.pause_reason(),
        LoopVerdict::NeedsPerson { need: PersonNeed::Pay | PersonNeed::Limit, .. } => PauseReason::Limit,
        LoopVerdict::NeedsPerson {
            need: PersonNeed::Auth | PersonNeed::Setup | PersonNeed::CannotAct,
            ..
        } => PauseReason::Error,
        _ => PauseReason::Ended,
    }
}
