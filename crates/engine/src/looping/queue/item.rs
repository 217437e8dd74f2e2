//! The work on one item: its session, its follow-up, and how it ended.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Status;
use segno_core::Uid;
use segno_core::event::ItemEnd;
use segno_core::event::ItemTaken;
use segno_core::event::LoopParked;
use segno_core::event::PauseReason;
use segno_core::event::Request;
use segno_core::event::Unit;
use segno_core::event::WokenHow;
use segno_core::event::WorkItemMark;
use segno_core::looping::BreakerBy;
use segno_core::looping::DEFAULT_ITERATIONS;
use segno_core::looping::Further;
use segno_core::looping::GateRule;
use segno_core::looping::ItemOutcome;
use segno_core::looping::ItemStand;
use segno_core::looping::ItemStanding;
use segno_core::looping::ItemUse;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopPlan;
use segno_core::looping::LoopState;
use segno_core::looping::LoopVerdict;
use segno_core::looping::Observation;
use segno_core::looping::Parked;
use segno_core::looping::PersonNeed;
use segno_core::looping::PhasePlan;
use segno_core::looping::TestCounts;
use segno_core::looping::after_failure;
use segno_core::looping::begun_item;
use segno_core::looping::item_outcome;
use segno_core::looping::item_standing;

use super::items::Held;
use super::items::Queueing;
use super::items::plan_of;
use super::list::ListedItem;
use crate::Engine;
use crate::Error;
use crate::launch::FreshSession;
use crate::launch::Intent;
use crate::launch::RunIn;
use crate::launch::Who;
use crate::looping::driver::drive::Stretch;
use crate::looping::driver::drive::the_loop;
use crate::looping::driver::news::LoopNews;
use crate::looping::plan::begin::NewLoop;

/// How often it is looked whether somebody asks the loop for something while an item is worked on.
const LOOK: Duration = Duration::from_millis(300);

impl Engine {
    /// How much further a loop may go, with what the item that it works on has used: that counts for the loop when the item
    /// ends.
    pub(crate) fn counted_beside(&self, state: &State, further: Further) -> Result<Further, Error> {
        let item = begun_item(the_loop(state)?).and_then(|(_, stand)| stand.session);
        let Some(session) = item.filter(|_| further.iterations.is_some()) else { return Ok(further) };
        // One that is gone counts no more.
        let child = self.load(session).ok().and_then(|loaded| loaded.state.looping);
        Ok(Further { beside: child.map_or(0, |own| own.total), ..further })
    }
}

impl Queueing<'_> {
    /// Works on an item until it has ended, or until the whole loop has to wait or to stand still with it.
    pub(crate) fn work_on(
        &mut self,
        state: &State,
        item: &WorkItemMark,
        told: Option<ListedItem>,
    ) -> Result<Option<Stretch>, Held> {
        let session = match self.stand(state, item)?.session {
            Some(session) => session,
            None => self.begin_item(state, item, told)?,
        };
        self.host.listener.hear(&LoopNews::ItemBegan { item: item.clone(), session });
        let queue = plan_of(the_loop(state)?)?;
        let mut child = self.engine.load(session)?.state;
        let mut verdict = None;
        let mut standing = item_standing(the_loop(state)?, &child, None);
        if goes_on(&standing, self.woken, self.engine.now()) {
            let entered = self.engine.enter_branch(&child, queue, &item.id);
            entered.map_err(|why| Held::Needs(why.to_string()))?;
            self.same_caps(state, &child)?;
            (child, verdict) = self.drive_item(session)?;
            standing = item_standing(the_loop(state)?, &child, verdict.as_ref());
        }
        crate::fault::moment("item worked on");
        match standing {
            ItemStanding::Passed => self.passed(state, item, &child),
            ItemStanding::Failed { why } => {
                self.fail(item, &child, &why)?;
                // Another attempt, or another item, would be measured by what this one left: nobody would see that it is weaker.
                let Some(weaker) = weaker(&child) else { return Ok(None) };
                let (need, why) = (
                    PersonNeed::Escalated,
                    format!("item {} was not measured as at first: {weaker}", item.id),
                );
                Ok(Some(self.stand_still(LoopVerdict::NeedsPerson { need, why })?))
            }
            ItemStanding::LeftOut { why } => self.end(item, &child, ItemEnd::Skipped, &why).map(|()| None),
            ItemStanding::Waits(parked) => Ok(Some(self.park_with(with_item(item, parked))?)),
            ItemStanding::Stops(verdict) => Ok(Some(self.stand_still(verdict)?)),
            ItemStanding::Open => self.stopped(item, verdict),
        }
    }

    /// Where an item stands now.
    fn stand(&self, state: &State, item: &WorkItemMark) -> Result<ItemStand, Error> {
        Ok(the_loop(state)?.items.get(&item.id).cloned().unwrap_or_default())
    }

    /// Makes the session of an item. Its identity follows from the taking, so it is made once, whoever is killed.
    fn begin_item(
        &self,
        state: &State,
        item: &WorkItemMark,
        told: Option<ListedItem>,
    ) -> Result<SessionId, Held> {
        let looping = the_loop(state)?;
        let stand = self.stand(state, item)?;
        let queue = plan_of(looping)?;
        let told = match told {
            Some(told) => Some(told),
            // The process that took it is gone, and what it was told with it.
            None => self.find_listed(state, item)?,
        };
        let mut text = told.map(|told| told.description).unwrap_or_default();
        if let Some(branch) = queue.branch_of(&item.id) {
            text.push_str(&format!("\n\nYou are on branch {branch}. Commit all your work there."));
        }
        if stand.failures > 0 {
            let last = Some(&stand.why).filter(|why| !why.is_empty());
            let last = last.map_or_else(String::new, |why| format!(" The last time: {why}"));
            text.push_str(&format!(
                "

It was tried {} times before.{last}",
                stand.failures
            ));
        }
        let before =
            stand.group.as_ref().filter(|_| queue.share).and_then(|group| sibling(looping, item, group));
        let new = NewLoop {
            plan: self.plan_for(looping),
            budget: Some(state.budget.carried_over()),
            cost: Some(state.cost.carried_over()),
            parent: Some(state.session_id),
            item: Some(item.clone()),
            ..NewLoop::default()
        };
        let child =
            self.engine.item_begin(new, self.host.settings, uid(state, item, &stand), text, before)?;
        let session = child.session_id;
        crate::fault::moment("item session made");
        let taken = LoopCommand::TakeItem(ItemTaken {
            item: item.clone(),
            session: Some(session),
            ..ItemTaken::default()
        });
        self.act(taken)?;
        Ok(session)
    }

    fn find_listed(&self, state: &State, item: &WorkItemMark) -> Result<Option<ListedItem>, Held> {
        let listed = self.listed(state)?;
        Ok(listed.ready.into_iter().find(|one| one.item.id == item.id))
    }

    /// The plan of an item's session: the loop's, with what is left of its caps.
    fn plan_for(&self, looping: &LoopState) -> LoopPlan {
        let mut plan = looping.plan.clone();
        plan.queue = None;
        plan.hour = looping.hour;
        let left = plan.caps.iterations.map(|most| most.saturating_sub(looping.total).max(1));
        plan.caps.iterations = Some(left.unwrap_or(DEFAULT_ITERATIONS).min(DEFAULT_ITERATIONS));
        plan.caps.seconds = plan.caps.seconds.map(|most| {
            let since = self.engine.now().micros_since(looping.started_at) / 1_000_000;
            most.saturating_sub(since.saturating_sub(looping.parked_seconds)).max(1)
        });
        plan
    }

    /// What the loop may use is what its item may use, also if somebody has allowed more meanwhile.
    fn same_caps(&self, state: &State, child: &State) -> Result<(), Error> {
        let (looping, own) = (the_loop(state)?, the_loop(child)?);
        let wanted = self.plan_for(looping);
        let session = child.session_id;
        let since = self.engine.now().micros_since(own.started_at) / 1_000_000;
        let so_far = since.saturating_sub(own.parked_seconds);
        let seconds = wanted.caps.seconds.map(|left| left.saturating_add(so_far));
        let (iterations, has) = (wanted.caps.iterations, &own.plan.caps);
        // Its own time runs on while it counts; only more is another plan.
        let more_time = seconds > has.seconds.map(|has| has.saturating_add(60));
        if own.total > 0 && (iterations != has.iterations || more_time) {
            let mut plan = own.plan.clone();
            (plan.caps.iterations, plan.caps.seconds) = (iterations, seconds);
            self.engine.loop_replan(session, plan)?;
        }
        let added = state.budget.total_budget.saturating_sub(child.budget.total_budget);
        if state.budget.hard && added > 0 {
            self.engine.act(session, Command::ExtendBudget { unit: Unit::Tokens, added })?;
        }
        if let (Some(all), Some(has)) = (state.cost.limit_micros, child.cost.limit_micros)
            && all > has
        {
            self.engine.act(session, Command::ExtendBudget { unit: Unit::Cost, added: all - has })?;
        }
        Ok(())
    }

    /// Drives the session of an item. What somebody asks of the loop meanwhile is asked of the item.
    fn drive_item(&mut self, session: SessionId) -> Result<(State, Option<LoopVerdict>), Error> {
        let engine = self.engine;
        let halted = engine.load(session)?.state.status == Status::Halted;
        if halted {
            // Its agent could not be started, and somebody went on with the loop.
            let (by, reason) = (BreakerBy::Person, "the loop goes on".to_owned());
            engine.act(session, Command::Loop(Box::new(LoopCommand::Probe { by, reason })))?;
        }
        let woken = std::mem::replace(&mut self.woken, WokenHow::Foreground);
        let (parent, over) = (self.driver.session(), AtomicBool::new(false));
        let stretch = std::thread::scope(|scope| {
            scope.spawn(|| engine.pass_on(parent, session, &over));
            let stretch = engine.loop_stretch(session, self.host, woken, Further::default());
            over.store(true, Ordering::SeqCst);
            stretch
        })?;
        let (Stretch::Ended(ended) | Stretch::Parked(ended)) = stretch;
        Ok((engine.load(session)?.state, ended.verdict))
    }

    /// The gate passed: done is what is closed too, asked again.
    fn passed(&mut self, state: &State, item: &WorkItemMark, child: &State) -> Result<Option<Stretch>, Held> {
        let queue = plan_of(the_loop(state)?)?;
        loop {
            let stand = self.stand(&self.state()?, item)?;
            self.end_left_follow_up(&stand)?;
            if stand.followed_up
                && let Some(why) = self.broken_since(child)?
            {
                self.fail(item, child, &why)?;
                if !self.is_closed(state, queue, &item.id)? {
                    return Ok(None);
                }
                // Nobody would take it up again.
                let (need, why) = (PersonNeed::Escalated, format!("item {} is closed, but {why}", item.id));
                return Ok(Some(self.stand_still(LoopVerdict::NeedsPerson { need, why })?));
            }
            let closed = self.is_closed(state, queue, &item.id)?;
            let committed = self.engine.is_committed(child, queue)?;
            match item_outcome(true, closed && committed, stand.followed_up) {
                ItemOutcome::Done => {
                    self.end(item, child, ItemEnd::Done, "")?;
                    return Ok(None);
                }
                ItemOutcome::Failed => {
                    let why = if closed {
                        "its work is not committed"
                    } else {
                        "its gate passed, but it is still open"
                    };
                    self.fail(item, child, why)?;
                    return Ok(None);
                }
                ItemOutcome::FollowUp => self.follow_up(state, item, child, closed)?,
            }
            if self.stops() {
                return Ok(None);
            }
        }
    }

    /// One short run in the conversation of the item, for what is left to be done. It is had once.
    fn follow_up(&self, state: &State, item: &WorkItemMark, child: &State, closed: bool) -> Result<(), Held> {
        let queue = plan_of(the_loop(state)?)?;
        // It is had once: where nothing may start now, it is had later.
        self.engine.check_start(&self.state()?)?;
        let taken = |session| {
            LoopCommand::TakeItem(ItemTaken {
                item: item.clone(),
                session,
                follow_up: true,
                ..ItemTaken::default()
            })
        };
        self.act(taken(None))?;
        crate::fault::moment("follow-up begun");
        let left = match (closed, &queue.checklist) {
            (true, _) => "is done, but not all of its work is committed. Commit it now".to_owned(),
            (false, Some(path)) => format!("passed its checks, but its box in {path} is not ticked. Look whether it is really done; if it is, tick it"),
            (false, None) => "passed its checks, but is still open in the tracker. Look whether it is really done; if it is, close it there".to_owned(),
        };
        let prompt = format!("The item {} ({}) {left}. Do nothing else.", item.id, item.title);
        let intent = Intent {
            run_in: RunIn::New(FreshSession {
                topic: Some(format!("follow-up: {}", item.title)),
                ..FreshSession::default()
            }),
            continues: Some(child.session_id),
            prompt,
            item: Some(item.clone().into()),
            max_turns: Some(queue.follow_up_turns.max(1)),
            ..Intent::default()
        };
        let who = child.run.as_ref().map_or(Who::Usual, |run| Who::Named(run.agent.clone()));
        let (host, engine) = (self.host, self.engine);
        let feed = host.feed.lasting();
        let planned = host
            .settings
            .choose(&who)
            .and_then(|chosen| engine.plan(chosen, intent, host.settings, host.frontend, (&feed, host.stop)));
        let launch = match planned {
            Ok(launch) => launch,
            // It had its chance; that it stays open counts as a failure.
            Err(why @ (Error::CapReached { .. } | Error::NoConversation { .. })) => {
                host.listener.hear(&LoopNews::Problem(why.to_string()));
                return Ok(());
            }
            Err(why) => return Err(why.into()),
        };
        let session = launch.state.session_id;
        self.act(taken(Some(session)))?;
        host.listener.hear(&LoopNews::ItemBegan { item: item.clone(), session });
        match engine.run(launch.request) {
            Ok(_) | Err(Error::NotStarted(_)) => {}
            Err(why) => host.listener.hear(&LoopNews::Problem(why.to_string())),
        }
        engine.count_for(state.session_id, session)?;
        self.end_left_follow_up(&self.stand(&self.state()?, item)?)?;
        Ok(())
    }

    /// Why the gate of an item that passed would not pass any more, if files were changed since then.
    fn broken_since(&self, child: &State) -> Result<Option<String>, Held> {
        let own = the_loop(child)?;
        let bound = own.last.as_deref().and_then(Observation::bound_to);
        if bound.is_some() && bound == self.engine.present_tree(child)?.as_ref() {
            return Ok(None);
        }
        // Where tests are to fail, nothing is measured that is to hold.
        let holds =
            |phase: &&PhasePlan| !phase.evidence.is_empty() && !matches!(phase.gate, GateRule::Red { .. });
        let Some(phase) = own.plan.phases.iter().rev().find(holds) else { return Ok(None) };
        let wanted = (phase.evidence.as_slice(), phase.protect.as_slice());
        let stops = || self.stops();
        let measured = self.engine.gather(child, wanted, self.host.settings, &stops, self.host.listener)?;
        if measured.stopped {
            return Err(Held::Stopped);
        }
        if let Some(mark) = measured.evidence.iter().find(|mark| !mark.passes) {
            return Ok(Some(format!("its follow-up changed files, and now {} fails", mark.name)));
        }
        let count = |tests: &Option<TestCounts>| tests.as_ref().map_or(0, TestCounts::ran);
        let (before, now) = (count(&own.tests), count(&measured.tests));
        let fewer = format!("its follow-up changed files, and now {now} tests run of {before}");
        Ok((now < before).then_some(fewer))
    }

    /// A follow-up is over when nobody waits for it any more.
    fn end_left_follow_up(&self, stand: &ItemStand) -> Result<(), Error> {
        let Some(session) = stand.follow_up else { return Ok(()) };
        if self.engine.load(session)?.state.status.is_open() {
            let reason = Some("the follow-up is over".into());
            self.engine.act(session, Command::Abort { reason })?;
        }
        Ok(())
    }

    /// Somebody stopped the work on an item; if it was not the whole loop, that stops too.
    fn stopped(&self, item: &WorkItemMark, verdict: Option<LoopVerdict>) -> Result<Option<Stretch>, Held> {
        if self.stops() {
            return Ok(None);
        }
        let why = format!("item {} was stopped", item.id);
        let details = Some(why.as_str().into());
        self.driver.act(Command::Pause { reason: PauseReason::Asked, details }).map_err(Held::Failed)?;
        Ok(Some(self.ended(verdict, why)?))
    }

    /// It failed: its session is over, and it is tried again later, or set aside.
    fn fail(&self, item: &WorkItemMark, child: &State, why: &str) -> Result<(), Held> {
        if child.status.is_open() {
            let reason = Some(why.into());
            let end = match child.status {
                // Its breaker is open: nothing but giving it up leads out of there.
                Status::Halted => Command::Abort { reason },
                _ => Command::Fail { reason },
            };
            self.engine.act(child.session_id, end)?;
        }
        crate::fault::moment("item failed");
        self.end(item, child, ItemEnd::Failed, why)
    }

    fn end(&self, item: &WorkItemMark, child: &State, end: ItemEnd, why: &str) -> Result<(), Held> {
        let state = self.state()?;
        let most = plan_of(the_loop(&state)?)?.max_failures;
        let stand = self.stand(&state, item)?;
        let used = self.engine.used_by(child, stand.follow_up)?;
        let (at, mark, said) = (self.engine.now(), item.clone(), why.to_owned());
        self.engine.act_among_open_loops(self.driver, move |own, _| {
            let before = own.items.get(&mark.id).map_or(0, |stand| stand.failures);
            let (end, failures, retry_at) = match end {
                ItemEnd::Failed => after_failure(before, most, at),
                other => (other, 0, None),
            };
            let (item, why) = (mark.clone(), said.clone());
            Some(LoopCommand::EndItem { item, end, failures, retry_at, why, used })
        })?;
        let state = self.state()?;
        let stand = self.stand(&state, item)?;
        let word = stand.end.map_or("open", ItemEnd::as_str);
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let line = format!("{word}{why}");
        self.host.listener.hear(&LoopNews::ItemEnded { item: item.clone(), line });
        crate::fault::moment("item ended");
        Ok(())
    }
}

/// What a person would have to accept for the gate of an item's newest phase to hold.
fn weaker(child: &State) -> Option<String> {
    let gate = child.looping.as_ref()?.gate.as_ref()?;
    let open = gate.conditions.iter().find(|one| !one.holds && one.acceptable)?;
    Some(format!("{}: {}", open.name, open.value))
}

impl Engine {
    /// The session of an item, made if it is not there yet.
    fn item_begin(
        &self,
        new: NewLoop,
        settings: &crate::launch::LaunchSettings,
        uid: Uid,
        text: String,
        before: Option<SessionId>,
    ) -> Result<State, Error> {
        let title = new.item.as_ref().map(|item| item.title.as_str());
        let id = new.item.as_ref().map(|item| item.id.as_str());
        let made = self.create(crate::NewSession {
            topic: self.topic_of([title, id]),
            intent: Some(text.as_str()).filter(|text| !text.trim().is_empty()).map(Into::into),
            project: crate::launch::project_at(&settings.project),
            budget: new.budget.unwrap_or_default(),
            cost: new.cost.unwrap_or_default(),
            made_by: segno_core::event::Maker::Loop,
            continues: before,
            cap_from: new.parent,
            uid: Some(uid),
            ..crate::NewSession::default()
        })?;
        if made.state.looping.is_some() {
            return Ok(made.state);
        }
        let start = LoopCommand::Start { plan: Box::new(new.plan), parent: new.parent, item: new.item };
        Ok(self.act(made.state.session_id, Command::Loop(Box::new(start)))?.state)
    }

    /// What the sessions of an item used.
    fn used_by(&self, child: &State, follow_up: Option<SessionId>) -> Result<ItemUse, Error> {
        let looping = the_loop(child)?;
        let mut used = ItemUse {
            iterations: looping.total,
            tokens: looping.tokens,
            micros: looping.micros,
            hour: looping.hour,
        };
        if let Some(session) = follow_up {
            let state = self.load(session)?.state;
            let micros = state.cap_from.map_or(0, |cap| cap.micros);
            used.tokens = used.tokens.saturating_add(state.tokens.counted(state.budget.count));
            used.micros = used.micros.saturating_add(state.cost.used_micros.saturating_sub(micros));
        }
        Ok(used)
    }

    /// Asks the session of an item for what somebody asks the loop for, until that is over.
    fn pass_on(&self, parent: SessionId, item: SessionId, over: &AtomicBool) {
        let mut passed: BTreeSet<u64> = BTreeSet::new();
        while !over.load(Ordering::SeqCst) {
            let requests = self.load(parent).map(|loaded| loaded.state.requests).unwrap_or_default();
            for open in
                requests.iter().filter(|open| !passed.contains(&open.seq)).cloned().collect::<Vec<_>>()
            {
                // A loop is completed between two items.
                let request = if open.request == Request::Complete { Request::Stop } else { open.request };
                let details = Some("the loop is asked for it".into());
                // Nobody drives the item yet, or no more: it is tried again as long as that matters.
                if self.act(item, Command::MakeRequest { request, details }).is_ok() {
                    passed.insert(open.seq);
                }
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Whether the session of an item is driven, or only looked at.
fn goes_on(standing: &ItemStanding, woken: WokenHow, now: segno_core::Timestamp) -> bool {
    match standing {
        ItemStanding::Open | ItemStanding::Stops(_) => true,
        ItemStanding::Waits(parked) => {
            woken == WokenHow::Person || parked.until.is_some_and(|until| until <= now)
        }
        ItemStanding::Passed | ItemStanding::Failed { .. } | ItemStanding::LeftOut { .. } => false,
    }
}

fn with_item(item: &WorkItemMark, parked: Parked) -> LoopParked {
    LoopParked {
        until: parked.until,
        class: parked.class,
        words: format!("item {}: {}", item.id, parked.words),
        // Whose turn it is with an account is the item's own affair.
        ..LoopParked::default()
    }
}

/// The newest session that worked on another item of the same parent.
fn sibling(looping: &LoopState, item: &WorkItemMark, group: &str) -> Option<SessionId> {
    let others =
        looping.items.iter().filter(|(id, stand)| **id != item.id && stand.end == Some(ItemEnd::Done));
    let same = others.filter(|(_, stand)| stand.group.as_deref() == Some(group));
    same.max_by_key(|(_, stand)| stand.at).and_then(|(_, stand)| stand.session)
}

/// The identity of the session for one taking of an item.
fn uid(state: &State, item: &WorkItemMark, stand: &ItemStand) -> Uid {
    let at = stand.at.map_or(0, |at| at.as_micros());
    let hash = blake3::hash(format!("{} {} {at} {}", state.uid, item.id, stand.failures).as_bytes());
    let bytes: [u8; 16] = hash.as_bytes()[..16].try_into().unwrap_or_default();
    Uid::new(uuid::Builder::from_random_bytes(bytes).into_uuid())
}
