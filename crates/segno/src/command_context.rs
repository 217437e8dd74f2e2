//! Where commands meet the engine: opening the store, finding the session, doing something, saying what came of it.

mod sessions;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use segno_engine::Acted;
use segno_engine::Engine;
use segno_engine::Standing;
use segno_engine::StoreLocation;
use segno_engine::core::Input;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Summary;
use segno_engine::core::UserKey;
use segno_engine::frontend::Frontend as _;
use segno_engine::setup::CatchUp;
use segno_engine::setup::CaughtUp;
use segno_engine::setup::Purpose;
use segno_engine::setup::TellWaiting;
use serde_json::json;

use crate::ask::Terminal;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// What is said of a store that is waited for.
pub const BUSY: &str = "the store is busy, waiting for whoever writes to it";

/// Writes take milliseconds. Whoever waits for longer than this hears why.
const SAYS_AFTER: Duration = Duration::from_secs(1);

/// An open store with everything a command needs around it.
pub struct CommandContext<'a> {
    /// The surroundings.
    pub context: &'a Context,
    /// The engine.
    pub engine: Engine,
    /// What dead drivers left is brought to its end when the answer has been given.
    rest: bool,
    /// What was said of the files for other tools when it opened: what a change says again is not said twice.
    heard: RefCell<BTreeSet<String>>,
}

/// How the store is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opens {
    /// It must be there.
    WhatIsThere,
    /// It is made if there is none.
    OrMakes,
    /// The same, and whoever writes to it is waited for, however long that takes.
    ToBegin,
}

/// Says once, after a while, that the store is waited for.
fn says_that_it_waits(context: &Context) -> TellWaiting {
    let warn = context.printer.warns_from_elsewhere();
    let told = AtomicBool::new(false);
    TellWaiting::new(move |waited| {
        if waited >= SAYS_AFTER && !told.swap(true, Ordering::Relaxed) {
            warn(BUSY);
        }
    })
}

impl Drop for CommandContext<'_> {
    fn drop(&mut self) {
        // A terminal that is gone is no reason to leave the rest.
        if self.rest && self.context.printer.flush().is_ok() {
            self.settle_rest();
        }
    }
}

impl<'a> CommandContext<'a> {
    /// Opens the store; it must be there.
    pub fn open(context: &'a Context) -> Outcome<Self> {
        Self::open_with(context, false)
    }

    /// Opens the store, making it if there is none.
    pub fn open_or_make(context: &'a Context) -> Outcome<Self> {
        Self::open_with(context, true)
    }

    /// The same for something new, which is not refused because somebody else writes to the store: that is waited for,
    /// with a word.
    pub fn open_to_begin(context: &'a Context) -> Outcome<Self> {
        Self::open_for(context, Purpose::OneShot, Opens::ToBegin)
    }

    /// The same for a process that stays: what it writes is committed in groups.
    pub fn open_to_stay(context: &'a Context) -> Outcome<Self> {
        Self::open_for(context, Purpose::LongLived, Opens::ToBegin)
    }

    /// The same for a run that another session asked for: it counts under that session's caps.
    pub fn open_to_stay_below(context: &'a Context, above: Option<SessionId>) -> Outcome<Self> {
        let ctx = Self::assemble_below(context, Purpose::LongLived, Opens::ToBegin, above)?;
        ctx.tell(ctx.engine.catch_up(CatchUp::Whole));
        Ok(ctx)
    }

    /// Opens the store for somebody who waits for a list: that a driver died is said at once, and what takes longer is
    /// done when the answer has been given.
    pub fn open_to_list(context: &'a Context) -> Outcome<Self> {
        let mut ctx = Self::assemble(context, Purpose::OneShot, Opens::WhatIsThere)?;
        ctx.tell(ctx.engine.catch_up(CatchUp::Mark));
        ctx.hear_layouts();
        ctx.rest = true;
        Ok(ctx)
    }

    /// The same for somebody who reads what a session did. A program gets all of it, and waits for that.
    pub fn open_to_look(context: &'a Context) -> Outcome<Self> {
        if context.printer.is_json() { Self::open(context) } else { Self::open_to_list(context) }
    }

    /// The same, with nothing if there is no store: that is an empty store to somebody who only looks.
    pub fn open_to_look_if_any(context: &'a Context) -> Outcome<Option<Self>> {
        match Self::open_to_look(context) {
            Ok(ctx) => Ok(Some(ctx)),
            Err(error) if error.code() == "no_store" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// After the answer has been given: brings the runs of dead drivers to their end, and says so.
    fn settle_rest(&self) {
        for id in self.engine.unsettled_sessions().unwrap_or_default() {
            self.context.printer.detail(1, format!("recording what is left of the run of {}", short(id)));
        }
        if let Err(why) = self.engine.settle() {
            self.context.printer.detail(1, format!("leases were not settled: {why}"));
        }
    }

    fn open_with(context: &'a Context, create: bool) -> Outcome<Self> {
        Self::open_for(context, Purpose::OneShot, if create { Opens::OrMakes } else { Opens::WhatIsThere })
    }

    fn open_for(context: &'a Context, purpose: Purpose, how: Opens) -> Outcome<Self> {
        let ctx = Self::assemble(context, purpose, how)?;
        ctx.tell(ctx.engine.catch_up(CatchUp::Whole));
        ctx.hear_layouts();
        Ok(ctx)
    }

    /// Answers what other programs changed in the files that are kept for them, and says so.
    fn hear_layouts(&self) {
        // What an agent writes into files asks for nothing.
        if self.context.environment.non_empty(crate::config::env::RUN).is_none() {
            for notice in self.engine.hear_layouts(&self.context.project.root) {
                self.context.printer.warn(notice.clone());
                self.heard.borrow_mut().insert(notice);
            }
        }
    }

    fn assemble(context: &'a Context, purpose: Purpose, how: Opens) -> Outcome<Self> {
        Self::assemble_below(context, purpose, how, None)
    }

    fn assemble_below(
        context: &'a Context,
        purpose: Purpose,
        how: Opens,
        above: Option<SessionId>,
    ) -> Outcome<Self> {
        let setup = context.setup()?;
        let create = how != Opens::WhatIsThere;
        let mut opening = context.opening(create, purpose)?;
        opening.actor.session = opening.actor.session.or(above);
        opening.waits = (how == Opens::ToBegin).then(|| says_that_it_waits(context));
        let engine = setup.open(opening)?;
        let ctx = Self { context, engine, rest: false, heard: RefCell::default() };
        context.speak_through(ctx.engine.redactor());
        if create {
            ctx.warn_size(&setup.store, context.config()?.store.warn_mb);
        }
        Ok(ctx)
    }

    /// Said where something new begins: a store that fills the disk stops all work on the machine.
    fn warn_size(&self, store: &StoreLocation, most_mb: u64) {
        let size = |file: &PathBuf| std::fs::metadata(file).map_or(0, |meta| meta.len());
        let bytes: u64 = store.files().iter().map(size).sum();
        if most_mb > 0 && bytes > most_mb.saturating_mul(1 << 20) {
            let text = format!("the store has {}, more than store.warn_mb = {most_mb}", units::bytes(bytes));
            let hint = "segno du   (or: segno cleanup, or: segno config set store.warn_mb N)".to_owned();
            self.context.printer.warn_with(text, &[hint]);
        }
    }

    /// Says what happened while nobody looked.
    fn tell(&self, found: CaughtUp) {
        let printer = &self.context.printer;
        match found.standing {
            Standing::Original => {}
            Standing::Restored { from } => printer.warn(format!(
                "this store replaces {}, which is gone: it was moved or restored from a copy, and what \
                 came after that copy is not in it",
                from.display()
            )),
            Standing::Copy { of } => {
                let hint = ["segno doctor --adopt   makes it a store of its own".to_owned()];
                let text = format!(
                    "this store is a copy of {}: it is shown as it is, and nothing is changed, settled or taken in",
                    of.display()
                );
                return printer.warn_with(text, &hint);
            }
        }
        match found.spool {
            Ok(taken) => {
                if taken.facts > 0 {
                    printer
                        .detail(1, format!("recorded {} from the spool", units::things(taken.facts, "fact")));
                }
                for (path, why) in taken.set_apart {
                    printer.warn(format!(
                        "a spooled fact could not be recorded ({why}); it is kept in {}",
                        path.display()
                    ));
                }
            }
            Err(why) => printer.warn(format!("the spool could not be recorded: {why}")),
        }
        match found.interrupted {
            Ok(interrupted) => {
                for id in interrupted {
                    let text = format!("session {} was interrupted: its driver died", short(id));
                    let living = self.load(id).ok().as_ref().and_then(segno_engine::run::living_agent);
                    let (text, hint) = match living {
                        Some(agent) => (
                            format!(
                                "{text}; its agent (pid {}) is still running, and nobody drives it",
                                agent.pid
                            ),
                            format!("segno attach {0}   (or: segno kill {0})", self.engine.ending(id)),
                        ),
                        None => (text, format!("segno show {}", self.engine.ending(id))),
                    };
                    printer.warn_with(text, &[hint]);
                }
            }
            // Looking is enough here: the command itself will say what is wrong with the store.
            Err(why) => printer.detail(1, format!("leases were not settled: {why}")),
        }
        // A person is told of loops that nobody goes on with; a program that asks gets what it asked for.
        if printer.talks_to_terminal() {
            crate::commands::tell_due(self);
        }
    }

    /// Does something to a session, or records what happened.
    pub fn act(
        &self,
        session: SessionId,
        inputs: impl IntoIterator<Item = impl Into<Input>>,
    ) -> Outcome<Acted> {
        Ok(self.engine.act_all(session, inputs, self.key()?)?)
    }

    /// The key that was given, under which doing something twice does it once.
    pub fn key(&self) -> Outcome<Option<UserKey>> {
        let parse = |text: &String| {
            text.parse::<UserKey>().map_err(|bad| CommandError::usage(format!("bad --key: {}", bad.why)))
        };
        let key = self.context.global.key.as_ref().map(parse).transpose()?;
        Ok(key.map(|key| self.engine.fit_key(key)))
    }

    /// Says what came of a change: a document for programs, a line for people.
    pub fn report(&self, acted: &Acted, said: impl Into<Text>) -> Outcome {
        let printer = &self.context.printer;
        for notice in acted.notices.iter().filter(|notice| !self.heard.borrow().contains(*notice)) {
            printer.warn(notice.clone());
        }
        if printer.is_json() {
            let events: Vec<&str> = acted.events.iter().map(|event| event.kind()).collect();
            let checkpoint = acted.events.iter().find_map(|event| match event {
                segno_engine::core::Event::CheckpointCreated(created) => Some(&created.id),
                _ => None,
            });
            printer.json(&json!({
                "checkpoint": checkpoint,
                "session_id": acted.state.session_id,
                "seq": acted.seq,
                "status": acted.state.status,
                "events": events,
                "repeated": acted.repeated,
                "late": acted.late,
                "spooled": acted.spooled,
                "requested": acted.requested,
                "session": Summary::from(&acted.state),
            }))?;
        } else if acted.repeated {
            printer.talk(Text::new().plain("nothing to do: this key was recorded already"));
        } else if acted.late {
            printer.warn("recorded as late: another driver has taken over this session");
        } else if let Some(request) = acted.requested {
            let asked = request.as_str();
            printer.talk(
                Text::new().plain(format!("the session is being driven; its driver was asked to {asked}")),
            );
        } else if !acted.spooled {
            // What was typed is repeated here, and may be read by others than the one who typed it.
            printer.talk(said.into().map(|text| self.engine.redactor().text(text).into_owned()));
        }
        self.warn_budget(acted);
        self.finish();
        Ok(())
    }

    fn warn_budget(&self, acted: &Acted) {
        use segno_engine::core::Event;
        use segno_engine::core::event::Unit;
        for event in &acted.events {
            let (word, unit, used, total) = match event {
                Event::BudgetWarned(e) => ("runs low", e.unit, e.used, e.total),
                Event::BudgetExceeded(e) => ("exceeded", e.unit, e.used, e.total),
                _ => continue,
            };
            let message = match unit {
                Unit::Tokens => {
                    format!("token budget {word}: {} of {}", units::count(used), units::tokens(total))
                }
                Unit::Cost => {
                    format!("cost budget {word}: {} of {}", units::dollars(used), units::dollars(total))
                }
            };
            let extend = extend_hint(unit, None);
            self.context.printer.warn_with(message, &[format!("{extend}   (or: segno complete)")]);
        }
    }

    /// How to go on with a session that a cap has stopped, by the cap that it is; none if none of those that are known is
    /// used up.
    pub fn cap_hint(&self, state: &State) -> Option<String> {
        use segno_engine::core::event::Unit;
        let session = Some(self.engine.ending(state.session_id));
        if state.budget.is_exhausted() {
            return Some(extend_hint(Unit::Tokens, session));
        }
        if state.cost.is_exhausted() {
            return Some(extend_hint(Unit::Cost, session));
        }
        if state.is_cost_unknown() {
            return Some(price_hint(session));
        }
        let day = self.engine.day_stand(&state.project.path).ok()?;
        day.caps.reached(&day.used).map(|(unit, used, total)| day_hint(unit, used, total))
    }

    /// Upkeep that may take a while, after the answer has been given.
    pub fn finish(&self) {
        if let Err(why) = self.engine.tend_store() {
            self.context.printer.detail(1, format!("the store's log was not folded in: {why}"));
        }
        crate::commands::cleanup::by_itself(self);
    }

    /// Refuses an agent what would take a session past a breakpoint. A person who does it has looked.
    ///
    /// # Errors
    /// If an agent asks, or that cannot be told.
    pub fn refuse_agent_at_breakpoint(&self, state: &State, what: &str) -> Outcome {
        let Some(waiting) = &state.breakpoint else { return Ok(()) };
        let below = self.context.refuse_below_run(what).is_err();
        match below || self.engine.is_below_an_agent()? {
            true => Err(at_breakpoint(&waiting.name, what)),
            false => Ok(()),
        }
    }

    /// The state of a session, with a warning for each thing that is wrong with its record.
    pub fn load(&self, session: SessionId) -> Outcome<State> {
        let loaded = self.engine.load(session)?;
        for notice in &loaded.notices {
            Terminal::new(self.context).damaged(session, notice);
        }
        Ok(loaded.state)
    }
}

/// How to allow more, in the session that is named so.
pub fn extend_hint(unit: segno_engine::core::event::Unit, session: Option<String>) -> String {
    use segno_engine::core::event::Unit;
    let session = session.map_or(String::new(), |session| format!(" --session {session}"));
    match unit {
        Unit::Tokens => format!("segno budget extend 50k{session}"),
        Unit::Cost => format!("segno budget cost 5 --extend{session}"),
    }
}

/// How to allow more in a day.
pub fn day_hint(unit: segno_engine::core::event::Unit, used: u64, total: u64) -> String {
    use segno_engine::core::event::Unit;
    // As much again on top of what is used: less would not let anything start.
    let more = match unit {
        Unit::Tokens => format!("budget.day_tokens {}", used.max(total).saturating_add(total)),
        Unit::Cost => {
            let micros = used.max(total).saturating_add(total);
            format!("budget.day_cost {}", micros.div_ceil(1_000_000).max(1))
        }
    };
    format!("segno config set {more}   (or go on tomorrow)")
}

/// What to do about a model without a price.
pub fn price_hint(session: Option<String>) -> String {
    let session = session.map_or(String::new(), |session| format!(" --session {session}"));
    format!(
        "give its price in prices.toml beside your configuration   (or cap tokens: segno budget set 500k{session}   \
             and only warn of money: segno budget cost 5 --advisory{session})"
    )
}

/// Why an agent may not take a session past a breakpoint.
pub fn at_breakpoint(name: &str, what: &str) -> CommandError {
    let why = format!(
        "the session waits for the person at breakpoint {name}; an agent cannot {what} it before they have looked"
    );
    CommandError::new(crate::exit::ExitCode::Refused, "at_breakpoint", why)
        .hint("ask them to type: segno answer   in a terminal of their own")
}

/// How an id is shown to people. What they are told to type is [`segno_engine::Engine::ending`], which means no other session.
pub fn short(id: SessionId) -> String {
    let text = id.to_string();
    format!("…{}", &text[text.len() - 6..])
}

/// An id and what the session is about.
pub fn title(state: &State) -> Text {
    let text = Text::new().painted(Meaning::Dim, short(state.session_id));
    match &state.topic {
        Some(topic) => text.plain("  ").plain(topic.clone()),
        None => text,
    }
}
