//! Sessions of agents that a person starts by hand: hooks in the agent's own settings tell of them.
//!
//! There is a session for each conversation of the agent. The agent's process holds its lease, so that its death is found
//! like that of any driver. Whatever goes wrong here, the agent goes on: what the store cannot take now waits in the spool.

mod begin;
mod caller;
mod entry;
mod follow;
mod join;

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use segno_agents::Agent;
use segno_agents::HookReport;
use segno_agents::hook::Moment;
use segno_core::Fact;
use segno_core::SessionId;
use segno_core::Status;
use segno_core::event::CheckpointReason;
use segno_core::event::Source;
use segno_files::Links;
use segno_store::Filter;

use crate::Actor;
use crate::Engine;
use crate::Error;
use crate::NewSession;
use crate::fresh_key;
use crate::hook::Beside;
use crate::hook::HookAnswer;
use crate::hook::HookCall;
use crate::hook::SpoolTarget;
use crate::resume::BriefLimits;
use crate::run::WatchedStanding;
use crate::run::tree::Member;
use crate::setup::Opening;
use crate::setup::Purpose;
use crate::setup::Setup;
use crate::spool;
use crate::tree::At;

pub(crate) use begin::Beginning;
pub use caller::caller;
pub use caller::is_driven;
use entry::Entries;
use entry::Entry;
pub use follow::Follower;
use join::Joined;

/// How long a store that somebody else writes to is waited for, all in all: the agent waits for us.
const BUSY: Duration = Duration::from_millis(100);
/// How long a checkpoint may take that the agent waits for.
pub(crate) const CHECKPOINT: Duration = Duration::from_secs(5);
/// What the model is told after its conversation was shortened: it knows the rest from the summary.
const SHORT: BriefLimits = BriefLimits { tokens: 500, entries: 4 };
/// Largest log that is read whole.
const LARGEST_LOG: u64 = 64 * 1024 * 1024;

/// Where a conversation that hooks tell of is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) session: SessionId,
    pub(crate) run: Option<String>,
    pub(crate) epoch: Option<u64>,
}

/// What is noted of an agent's conversation. None if nobody told of it.
pub(crate) fn known(state: &Path, agent: &str, native_id: &str) -> Option<Known> {
    let Entry { session, run, epoch, .. } = Entries::of(state, agent, native_id).read(native_id)?;
    Some(Known { session, run, epoch })
}

/// One call of a hook that stands in an agent's own settings.
pub struct WatchVisit {
    /// The agent that calls.
    pub agent: Box<dyn Agent>,
    /// What it says.
    pub report: HookReport,
    /// What the engine is made from.
    pub setup: Setup,
    /// How a session is made that there is not yet.
    pub new: NewSession,
    /// Where the agent works.
    pub directory: PathBuf,
    /// The agent's process, if the system tells.
    pub caller: Option<Member>,
    /// Whether the model is told by itself, after a crash, what became of the work.
    pub brief: bool,
}

impl WatchVisit {
    /// Records what the agent says and says what to answer.
    ///
    /// # Errors
    /// If it could be kept nowhere.
    pub fn answer(mut self) -> Result<HookAnswer, String> {
        let Some(native_id) = self.report.native_id.clone().filter(|id| !id.trim().is_empty()) else {
            return Ok(HookAnswer::default());
        };
        self.setup.busy = self.setup.busy.min(BUSY);
        // Somebody who looks has it written.
        self.setup.view.enabled = false;
        let entries = Entries::of(&self.setup.state, self.agent.name(), &native_id);
        match self.watch(&entries, &native_id) {
            Ok(answer) => Ok(answer),
            Err(why) => {
                tracing::warn!(agent = self.agent.name(), %why, "what an agent told could not be recorded");
                self.spool(&entries, &native_id).map_err(|spool| format!("{why}; and the spool: {spool}"))
            }
        }
    }

    fn open(&self) -> Result<Engine, Error> {
        let opening = Opening {
            purpose: Purpose::Recurring,
            create: true,
            actor: Actor::default(),
            waits: None,
            at_most: Some(BUSY),
        };
        let mut engine = self.setup.open(opening)?;
        engine.options.watching = true;
        Ok(engine)
    }

    fn watch(&self, entries: &Entries, native_id: &str) -> Result<HookAnswer, Error> {
        let engine = self.open()?;
        if engine.is_copy() {
            return Ok(HookAnswer::default());
        }
        // What was told while the store could not take it comes before what is told now.
        if !spool::waiting(&self.setup.spool()).is_empty() {
            let _ = engine.take_in_spool();
        }
        let joined = self.join(&engine, entries, native_id)?;
        let beside = if self.has_log() { Beside::Told } else { Beside::Untold };
        let call = HookCall::of(self.report.clone(), joined.actor.run.as_deref(), beside, fresh_key());
        let is_at_work = matches!(self.report.moment, Some(Moment::Asked)) || self.report.answers.deny;
        if let Some(run) = joined.actor.run.as_deref().filter(|_| is_at_work) {
            engine.note_watched(run, WatchedStanding::Works);
        }
        let mut answer = engine.hear_hook_of(joined.session, call, &joined.actor, &mut || true)?;
        if answer.spooled {
            // The rest needs the store too, and the agent has waited long enough.
            self.note_standing(&engine, &joined);
            return Ok(answer);
        }
        if let Err(why) = self.after(&engine, &joined, entries) {
            tracing::warn!(session = %joined.session, %why, "a part of what a hook stands for was not done");
        }
        if answer.print.is_none() {
            answer.print = self.tell(&engine, &joined, entries);
        }
        // Nobody else may come for days who would look after the log, and each hook reads all of it.
        if let Err(why) = engine.tend_store() {
            tracing::warn!(%why, "the store's log could not be cut");
        }
        Ok(answer)
    }

    /// Whether the agent waits for a person is not in the store.
    fn note_standing(&self, engine: &Engine, joined: &Joined) {
        let standing = match self.report.moment {
            Some(Moment::Waits) => WatchedStanding::Waits,
            Some(Moment::Left) => WatchedStanding::Left,
            _ => return,
        };
        if let Some(run) = &joined.actor.run {
            engine.note_watched(run, standing);
        }
    }

    /// What is done besides recording it.
    fn after(&self, engine: &Engine, joined: &Joined, entries: &Entries) -> Result<(), Error> {
        let (Some(moment), Some(_), Some(epoch)) =
            (&self.report.moment, &joined.actor.run, joined.actor.epoch)
        else {
            return Ok(());
        };
        match moment {
            Moment::Opened => Ok(()),
            Moment::Asked => {
                self.name(engine, joined)?;
                self.follow(engine, joined, entries, epoch)?;
                self.checkpoint(engine, joined, "turn", CheckpointReason::Turn)
            }
            Moment::Shortens => {
                let _alone = entries.lock();
                if let Some(entry) = entries.read(&joined.native_id) {
                    let entry = Entry { shortened: true, ..entry };
                    entries.write(&entry).map_err(|why| Error::file(&self.setup.state, why))?;
                }
                self.checkpoint(engine, joined, "before compaction", CheckpointReason::Risky)
            }
            Moment::Waits | Moment::Left => {
                self.note_standing(engine, joined);
                self.follow(engine, joined, entries, epoch)?;
                engine.answer_stops(joined.session, &joined.at())?;
                engine.record_untold_turn(joined.session, &joined.at())
            }
        }
    }

    /// What was asked just now.
    fn prompt(&self) -> Option<&str> {
        self.report.events.iter().find_map(|event| match event {
            segno_agents::AgentEvent::Input { text, .. } => Some(text.as_str()),
            _ => None,
        })
    }

    /// A session is called after the first thing that was asked.
    fn name(&self, engine: &Engine, joined: &Joined) -> Result<(), Error> {
        let state = engine.load(joined.session)?.state;
        if let Some(topic) = engine.topic_of([self.prompt()]).filter(|_| state.topic.is_none()) {
            engine.act(joined.session, Fact::TopicSet { topic })?;
        }
        Ok(())
    }

    /// Takes in what the agent's own log tells by now.
    fn follow(&self, engine: &Engine, joined: &Joined, entries: &Entries, epoch: u64) -> Result<(), Error> {
        if self.has_log() {
            return engine.follow_watched(joined.session, epoch);
        }
        // A log that is only read whole: what it says of tokens is a sum.
        let Some((log, path)) = self.agent.conversation_log().zip(self.report.transcript_path.as_deref())
        else {
            return Ok(());
        };
        let Ok(Some(bytes)) = segno_files::read_bounded(path.as_ref(), LARGEST_LOG, Links::Refuse) else {
            return Ok(());
        };
        let total = log.transcript(&bytes).tokens;
        let _alone = entries.lock();
        let Some(mut entry) = entries.read(&joined.native_id) else { return Ok(()) };
        let news = total.since(entry.used);
        if news.is_zero() {
            return Ok(());
        }
        let tokens = crate::run::token_use(news);
        let fact = Fact::TokensRecorded { tokens, estimated: false, source: Source::Hook };
        let acting = crate::act::Acting::step(&joined.at());
        engine.act_as(joined.session, [fact], acting)?;
        entry.used = total;
        entries.write(&entry).map_err(|why| Error::file(&self.setup.state, why))
    }

    fn checkpoint(
        &self,
        engine: &Engine,
        joined: &Joined,
        name: &str,
        reason: CheckpointReason,
    ) -> Result<(), Error> {
        within(CHECKPOINT, |cancel| {
            let at = At { cancel: Some(cancel), ..joined.at() };
            engine.checkpoint(joined.session, Some(name.to_owned()), reason, &at).map(|_| ())
        })
    }

    /// What the person reads when a conversation begins, and the model when work was cut off.
    fn tell(&self, engine: &Engine, joined: &Joined, entries: &Entries) -> Option<String> {
        let moment = self.report.moment.as_ref()?;
        let opens = *moment == Moment::Opened && joined.is_new_run;
        let person = opens.then(|| self.waiting(engine, joined.session)).flatten();
        let listens = matches!(moment, Moment::Opened | Moment::Asked) && self.report.answers.context;
        let model = listens.then(|| self.brief_due(engine, joined, entries)).flatten();
        self.report.tell(person.as_deref(), model.as_deref())
    }

    fn brief_due(&self, engine: &Engine, joined: &Joined, entries: &Entries) -> Option<String> {
        let _alone = entries.lock();
        let entry = entries.read(&joined.native_id)?;
        let limits = match entry.brief_due && self.brief {
            true => BriefLimits::default(),
            false if entry.shortened => SHORT,
            false => return None,
        };
        let text = engine.brief(joined.session, limits).ok()?.text(limits);
        entries.write(&Entry { brief_due: false, shortened: false, ..entry }).ok()?;
        Some(text)
    }

    /// One line about sessions of this project that wait for somebody.
    fn waiting(&self, engine: &Engine, own: SessionId) -> Option<String> {
        // Those whose driver died have to be known as such first.
        engine.mark_interrupted().ok()?;
        let project = Some(self.new.project.path.clone());
        let filter =
            Filter { project, statuses: vec![Status::Interrupted], limit: Some(20), ..Filter::default() };
        let waiting = engine.list(&filter).ok()?;
        let others: Vec<_> = waiting.iter().filter(|summary| summary.session_id != own).collect();
        let first = others.first()?;
        let id = first.session_id.to_string();
        let short = id.rsplit('_').next().unwrap_or_default().to_owned();
        let topic = first.topic.as_deref().map_or(String::new(), |topic| format!(" ({topic})"));
        let more = match others.len() {
            1 => String::new(),
            count => format!(", and {} more (segno ls)", count - 1),
        };
        Some(format!(
            "segno: session {short}{topic} was interrupted: segno show {short}, segno resume {short}{more}"
        ))
    }

    fn has_log(&self) -> bool {
        self.agent.conversation_log().is_some_and(|log| log.location().is_some())
    }

    /// Keeps it for later. Only a hard cap that is known denies a call whose session nobody can read now.
    fn spool(&self, entries: &Entries, native_id: &str) -> Result<HookAnswer, Error> {
        let at = crate::Clock::now(&crate::SystemClock);
        let entry =
            entries.claim(native_id, at, || None).map_err(|why| Error::file(&self.setup.state, why))?;
        let beside = if self.has_log() { Beside::Told } else { Beside::Untold };
        let call = HookCall::of(self.report.clone(), entry.run.as_deref(), beside, fresh_key());
        let actor = Actor { run: entry.run.clone(), epoch: None, ..Actor::default() };
        // A conversation that no store knows yet: whoever takes this in makes its session.
        let redactor = self.setup.redactor()?;
        let topic = crate::launch::topic_of(&redactor, [self.prompt()]);
        let begins = entry.store.is_none().then(|| Box::new(Beginning::of(self, &entry, topic)));
        let target = SpoolTarget { dir: &self.setup.spool(), store: entry.store, begins };
        call.spool(&redactor, target, at, entry.session, &actor)
    }
}

/// Does something that looks at a flag, which is set when it has taken too long.
pub(crate) fn within<T>(limit: Duration, act: impl FnOnce(Arc<AtomicBool>) -> T) -> T {
    let cancel = Arc::new(AtomicBool::new(false));
    let (done, waits) = mpsc::channel::<()>();
    let late = Arc::clone(&cancel);
    // Without a thread to look at the clock it takes as long as it takes.
    let _ = std::thread::Builder::new().spawn(move || {
        if waits.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            late.store(true, Ordering::Relaxed);
        }
    });
    let answer = act(cancel);
    drop(done);
    answer
}
