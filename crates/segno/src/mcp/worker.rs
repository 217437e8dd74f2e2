//! Does what is asked, one thing after another, and holds the session that was made here.

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::time::Duration;

use rmcp::model::JsonObject;
use segno_engine::Driver;
use segno_engine::Engine;
use segno_engine::core::Command as Act;
use segno_engine::core::SessionId;
use segno_engine::core::Status;
use segno_engine::core::event::PauseReason;
use segno_engine::lease::KEEPER;
use serde_json::Value;
use serde_json::json;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Handle;
use signal_hook::iterator::Signals;
use tokio::sync::oneshot;

use super::confirm;
use super::documents;
use super::start;
use super::tools;
use super::tools::Then;
use super::tools::Wanted;
use crate::cli;
use crate::command_context::CommandContext;
use crate::commands::args::SessionRef;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::perform::Surroundings;

/// How often requests of others are looked at, and the lease renewed.
const TICK: Duration = Duration::from_secs(1);
/// The longest answer, in bytes: an agent pays for every one of them.
const LONGEST: usize = 48 << 10;

/// Something to do, and where the answer goes.
pub(super) enum Job {
    /// A tool.
    Call { tool: String, arguments: JsonObject, confirmed: Option<String>, reply: oneshot::Sender<Answer> },
    /// A resource by its address.
    Read { uri: String, reply: oneshot::Sender<Result<Value, String>> },
    /// How far the work of a task is.
    Look { task: String, reply: oneshot::Sender<Option<start::Progress>> },
    /// A task shall end.
    Cancel { task: String, reply: oneshot::Sender<Result<(), String>> },
    /// This process shall end.
    End(Ended),
}

/// Why the work is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The client closed the connection.
    ClientGone,
    /// Somebody wants this process to end.
    Signal,
}

/// What came of a tool.
#[derive(Debug)]
pub(super) enum Answer {
    /// It is done.
    Done(Value),
    /// It cannot be done; the text says why, and what to type.
    Failed(String),
    /// The person has to confirm this text; the mark says which text was confirmed.
    Ask { question: String, mark: String, instead: String },
    /// It goes on in a session of its own.
    Started(start::Progress),
    /// There is no such tool.
    Unknown,
}

/// Ends the work when this process is asked to end.
pub(super) struct Listening(Handle);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A signal is a job like any other: what was asked before it is done first.
pub(super) fn end_at_signals(jobs: &Sender<Job>) -> Outcome<Listening> {
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !crate::signals::is_ignored(*signal));
    let mut signals =
        Signals::new(wanted).map_err(|why| CommandError::io("cannot listen to signals", why))?;
    let handle = signals.handle();
    let jobs = jobs.clone();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = jobs.send(Job::End(Ended::Signal));
        }
    });
    Ok(Listening(handle))
}

/// Works until the client goes away or a signal comes.
pub(super) fn work(context: &Context, jobs: &Receiver<Job>) -> Ended {
    // Opened when the first session is held: an agent that only looks makes no store.
    let holding = std::cell::OnceCell::new();
    let mut worker = Worker {
        context,
        holding: &holding,
        held: None,
        current: None,
        asked: None,
        begun: Default::default(),
    };
    loop {
        match jobs.recv_timeout(TICK) {
            Ok(Job::Call { tool, arguments, confirmed, reply }) => {
                let answer = worker.call(&tool, arguments, confirmed.as_deref());
                worker.tick();
                // Who asked may have gone away: what was done stays done.
                let _ = reply.send(answer);
            }
            Ok(Job::Read { uri, reply }) => {
                let _ = reply.send(documents::read(&worker, &uri));
            }
            Ok(Job::Look { task, reply }) => {
                let _ = reply.send(start::look(&worker, &task));
            }
            Ok(Job::Cancel { task, reply }) => {
                let _ = reply.send(start::cancel(&worker, &task));
            }
            Err(RecvTimeoutError::Timeout) => worker.tick(),
            Ok(Job::End(ended)) => {
                worker.leave();
                return ended;
            }
            Err(RecvTimeoutError::Disconnected) => {
                worker.leave();
                return Ended::ClientGone;
            }
        }
    }
}

/// Who does the work.
pub(super) struct Worker<'c, 'h> {
    context: &'c Context,
    /// The store, open for as long as a session is held.
    holding: &'h std::cell::OnceCell<CommandContext<'c>>,
    held: Option<Driver<'h>>,
    /// The session that the tools are about; none: the one that the command line would take.
    current: Option<SessionId>,
    /// The mark of the question that a person was asked last. It comes back through the client, so it is believed only
    /// if it was given out here, and once.
    asked: Option<String>,
    /// Sessions that this process began in the background.
    begun: BTreeSet<SessionId>,
}

impl<'c> Worker<'c, '_> {
    fn call(&mut self, tool: &str, arguments: JsonObject, confirmed: Option<&str>) -> Answer {
        let wanted = match tools::wanted(tool, arguments) {
            Some(Ok(wanted)) => wanted,
            Some(Err(why)) => return Answer::Failed(why),
            None => return Answer::Unknown,
        };
        let done = match wanted {
            Wanted::Command(command) => self.perform(&command).map(short),
            Wanted::PauseLoop(reason) => start::pause_loop(self, reason).map(short),
            Wanted::ResumeLoop => start::resume_loop(self),
            Wanted::New(command) => self.new_session(&command),
            Wanted::Load(session) => self.load(&session),
            Wanted::Resume(command) => self.resume(&command),
            Wanted::End(act, command) => self.end(*act, &command),
            Wanted::Confirm { preview, apply, ask, instead } => {
                return self.confirm(&preview, apply, &ask, instead, confirmed);
            }
            Wanted::Start(arguments) => return self.start(&arguments),
        };
        match done {
            Ok(value) => Answer::Done(value),
            Err(error) => Answer::Failed(self.words(error)),
        }
    }

    /// Runs one of the program's own commands and answers with its document.
    pub(super) fn perform(&self, command: &cli::Command) -> Outcome<Value> {
        let mut surroundings = Surroundings::from(self.context);
        if let Some(current) = self.current {
            surroundings.global.session = current.to_string().parse().ok();
        }
        surroundings.perform(command).map(bounded)
    }

    /// Everything a failure says, as one text.
    fn words(&self, error: CommandError) -> String {
        let error = self.context.fit(error);
        let mut text = error.to_string();
        for hint in error.hints() {
            text.push_str("\nhint: ");
            text.push_str(hint);
        }
        text
    }

    fn new_session(&mut self, command: &cli::Command) -> Outcome<Value> {
        let before = (self.current.take(), self.held.take());
        match self.perform(command) {
            Ok(made) => {
                self.current = session_of(&made);
                self.hold()?;
                Ok(short(made))
            }
            Err(error) => {
                (self.current, self.held) = before;
                Err(error)
            }
        }
    }

    fn load(&mut self, named: &SessionRef) -> Outcome<Value> {
        let id = CommandContext::open(self.context)?.named(named)?;
        if self.held.as_ref().is_some_and(|driver| driver.session() != id) {
            self.held = None;
        }
        self.current = Some(id);
        self.perform(&tools::status(None)).map(short)
    }

    fn resume(&mut self, command: &cli::Command) -> Outcome<Value> {
        // What is held here is active; whoever resumes it means it to be looked at.
        if self.held.is_some() {
            return self.perform(&tools::status(None)).map(short);
        }
        let resumed = self.perform(command)?;
        self.current = session_of(&resumed).or(self.current);
        self.hold()?;
        Ok(short(resumed))
    }

    /// Pauses or ends the session: as its holder where it is held, else as anybody would.
    fn end(&mut self, act: Act, command: &cli::Command) -> Outcome<Value> {
        let Some(driver) = self.held.take() else { return self.perform(command).map(short) };
        let waits = |driver: &Driver<'_>| {
            let ctx = self.holding.get()?;
            ctx.engine.load(driver.session()).ok()?.state.breakpoint
        };
        if matches!(act, Act::Complete { .. })
            && let Some(waiting) = waits(&driver)
        {
            self.held = Some(driver);
            return Err(crate::command_context::at_breakpoint(&waiting.name, "complete"));
        }
        let acted = match driver.act(act) {
            Ok(acted) => acted,
            Err(why) => {
                self.held = Some(driver);
                return Err(why.into());
            }
        };
        Ok(json!({ "session_id": acted.state.session_id, "status": acted.state.status, "seq": acted.seq }))
    }

    /// Shows what it is about, and does it only if a person confirmed exactly that.
    fn confirm(
        &mut self,
        preview: &cli::Command,
        apply: Then,
        ask: &tools::Asks,
        instead: String,
        confirmed: Option<&str>,
    ) -> Answer {
        let plan = match self.perform_unheld(preview) {
            Ok(plan) => plan,
            Err(error) => return Answer::Failed(self.words(error)),
        };
        if plan.get("cut").is_some() {
            let why = format!("this is too long to be confirmed here; nothing was done\nhint: {instead}");
            return Answer::Failed(why);
        }
        let mark = confirm::mark(&plan, &ask(&plan), &self.context.project.root);
        let asked = self.asked.take();
        if confirmed.is_none() || confirmed != asked.as_deref() || confirmed != Some(mark.as_str()) {
            self.asked = Some(mark.clone());
            return Answer::Ask { question: ask(&plan), mark, instead };
        }
        let done = match apply {
            Then::Do(command) => self.perform_unheld(&command),
            Then::Start(words) => return self.start(&words),
        };
        match done {
            Ok(value) => Answer::Done(value),
            Err(error) => Answer::Failed(self.words(error)),
        }
    }

    /// Begins work in the background.
    fn start(&mut self, words: &[String]) -> Answer {
        match start::begin(self, words) {
            Ok(progress) => {
                self.begun.insert(progress.session);
                Answer::Started(progress)
            }
            Err(error) => Answer::Failed(self.words(error)),
        }
    }

    /// Whether this process began it.
    pub(super) fn has_begun(&self, session: SessionId) -> bool {
        self.begun.contains(&session)
    }

    /// Files go nowhere while somebody drives in their tree, and who holds a session drives it. So what goes back lets go
    /// of it meanwhile.
    fn perform_unheld(&mut self, command: &cli::Command) -> Outcome<Value> {
        let held = self.held.take().is_some();
        let done = self.perform(command);
        if held {
            self.hold()?;
        }
        done
    }

    /// Holds the current session from now on, so that the death of this process is noticed.
    fn hold(&mut self) -> Outcome {
        let Some(session) = self.current else { return Ok(()) };
        if self.holding.get().is_none() {
            let opened = CommandContext::open_to_stay(self.context)?;
            let _ = self.holding.set(opened);
        }
        if let Some(ctx) = self.holding.get() {
            self.held = Some(ctx.engine.drive(session, KEEPER)?);
        }
        Ok(())
    }

    /// Says that this process lives, and does what others asked of the session's holder.
    fn tick(&mut self) {
        let Some(driver) = &self.held else { return };
        let over = match driver.heartbeat().and_then(|()| driver.obey()) {
            Ok(done) => done.is_some(),
            Err(why) => {
                tracing::warn!(session = %driver.session(), %why, "the session is not held any more");
                Engine::ends_driving(&why)
            }
        };
        if over {
            self.held = None;
        }
    }

    /// The client is gone. Whether the agent was through nobody can tell, so the session waits.
    fn leave(&mut self) {
        let Some(driver) = self.held.take() else { return };
        let active = self
            .holding
            .get()
            .and_then(|ctx| ctx.engine.load(driver.session()).ok())
            .is_some_and(|loaded| loaded.state.status == Status::Active);
        if active {
            let details = Some("the agent left".into());
            if let Err(why) = driver.act(Act::Pause { reason: PauseReason::Ended, details }) {
                tracing::warn!(session = %driver.session(), %why, "the session was not paused");
            }
        }
    }

    /// The session that the tools are about, if one was made or loaded here.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.current
    }

    pub(super) fn context(&self) -> &'c Context {
        self.context
    }
}

/// An answer that is too long becomes its beginning and a word about it.
fn bounded(value: Value) -> Value {
    let text = value.to_string();
    if text.len() <= LONGEST {
        return value;
    }
    let begins = segno_engine::core::text::shorten(&text, LONGEST);
    json!({ "cut": true, "hint": "ask for less: limit, after, part", "begins": begins })
}

/// What an agent needs to know: not all that a program gets. Where a document holds a whole session beside what it is
/// about, that goes; where the session is what it is about, the rest goes.
fn short(document: Value) -> Value {
    let Value::Object(mut document) = document else { return document };
    let session = document.remove("session");
    let warnings = document.get("warnings").cloned();
    let mut told = match session {
        Some(Value::Object(session)) if !document.contains_key("session_id") => session,
        Some(other @ Value::String(_)) => {
            document.insert("session".to_owned(), other);
            document
        }
        _ => document,
    };
    told.remove("events");
    told.retain(|_, value| !matches!(value, Value::Null | Value::Bool(false)));
    told.extend(warnings.map(|warnings| ("warnings".to_owned(), warnings)));
    Value::Object(told)
}

fn session_of(document: &Value) -> Option<SessionId> {
    document.get("session_id")?.as_str()?.parse().ok()
}
