//! A loop that is driven and watched.

use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

use segno_engine::core::Refusal;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::event::WokenHow;
use segno_engine::core::looping::Further;
use segno_engine::core::looping::NOT_SAID;
use segno_engine::core::looping::loop_status;
use segno_engine::looping::LoopEnded;
use segno_engine::looping::LoopHost;
use segno_engine::looping::LoopListener;
use segno_engine::looping::LoopNews;
use segno_engine::looping::SystemSleeper;
use segno_engine::run::Feed;
use segno_engine::run::Stop;

use super::live::Live;
use super::result;
use crate::command_context::CommandContext;
use crate::commands::run::follow;
use crate::commands::run::settings;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Bell;
use crate::output::Text;
use crate::output::sanitize;
use crate::output::style::Meaning;
use crate::output::units;

/// How often the view is drawn anew.
const REDRAW: Duration = Duration::from_millis(250);

/// Passes on what is heard to the thread that prints.
struct Ear(mpsc::Sender<LoopNews>);

impl LoopListener for Ear {
    fn hear(&self, news: &LoopNews) {
        // Whoever printed it is gone: the journal has what matters.
        let _ = self.0.send(news.clone());
    }
}

/// The frontend for the thread that drives: it cannot ask, and what it says is printed by the other one.
struct Voice(mpsc::Sender<LoopNews>);

impl segno_engine::frontend::Frontend for Voice {
    fn ask(&self, _question: &segno_engine::frontend::Question) -> Option<usize> {
        None
    }

    fn notice(&self, text: &str) {
        let _ = self.0.send(LoopNews::Problem(text.to_owned()));
    }

    fn progress(&self, _text: &str) {}
}

/// What it is waited for in the foreground.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// The end of a limit.
    pub(super) limits: bool,
    /// One more try when its breaker is open.
    pub(super) halted: bool,
}

/// Drives a loop to where it stands still, and says how that came.
pub(super) fn drive(
    ctx: &CommandContext<'_>,
    session: SessionId,
    woken: WokenHow,
    further: Further,
    waits: Waits,
    no_hooks: bool,
) -> Outcome {
    let context = ctx.context;
    let mut settings = settings(context, Some(ctx.engine.store_id()))?;
    settings.hooks &= !no_hooks;
    let recipients = super::notify::recipients(context)?;
    let (feed, stop) = (Feed::default(), Stop::default());
    let (sender, news) = mpsc::channel();
    let (ear, voice) = (Ear(sender.clone()), Voice(sender));
    let state = ctx.load(session)?;
    let first = state.seq;
    let (wakes, items) = (wakes(ctx, waits.limits), super::queue::Followed::new(ctx));
    let bell = super::notify::bell(context)?;
    let begins = say_first_phase(ctx, &state);
    let mut printed = Printed {
        ctx,
        session,
        waiting: None,
        wakes,
        items,
        doing: None,
        drawn: None,
        bell,
        unsaid: false,
        begins,
    };
    let beside = || printed.print(&news);
    let ended = follow(ctx, (session, first), &feed, false, &stop, beside, |engine| {
        let host = LoopHost {
            settings: &settings,
            frontend: &voice,
            listener: &ear,
            feed: &feed,
            stop: &stop,
            sleeper: &SystemSleeper,
            waits: waits.limits,
            stays: waits.halted,
            woken,
            further,
            recipients: recipients.clone(),
        };
        engine.loop_drive(session, &host)
    });
    // However it came to stand still: what is said about it stands where the lines were.
    context.printer.clear_status();
    let ended: LoopEnded = ended?.map_err(|why| explain(ctx, session, why))?;
    result::report(ctx, &ended)
}

/// A loop that is halted says what can be typed, and when it may be tried by itself.
fn explain(ctx: &CommandContext<'_>, session: SessionId, why: segno_engine::Error) -> CommandError {
    let id = ctx.engine.ending(session);
    // Who comes too early can say that they mean it.
    if matches!(why, segno_engine::Error::Refused(Refusal::Already(_))) {
        return CommandError::from(why).hint(format!("segno loop resume {id} --now   goes on at once"));
    }
    if !matches!(why, segno_engine::Error::BreakerOpen { .. }) {
        return why.into();
    }
    let status = ctx.load(session).ok().and_then(|state| loop_status(&state, ctx.engine.now()));
    let reason = status.as_ref().and_then(|status| status.breaker.reason.clone()).unwrap_or_default();
    let mut error =
        CommandError::new(ExitCode::LoopHalted, "halted", format!("its circuit breaker is open: {reason}"))
            .hint(format!("segno breaker reset {id}   then: segno resume {id}"))
            .hint(format!(
                "segno loop say \"…\" {id}   tells its agent something new; then: segno resume {id}"
            ));
    let next =
        status.as_ref().map(|status| status.phases.iter().skip_while(|phase| phase.state != "now").count());
    if next.is_some_and(|left| left > 1) {
        error = error.hint(format!("segno breaker skip-phase {id}   leaves the phase without its gate"));
    }
    if let Some(at) = status.and_then(|status| status.breaker.probe_at) {
        let left = units::duration(Duration::from_micros(at.micros_since(ctx.engine.now())));
        error =
            error.hint(format!("segno loop resume {id} --stay   tries one iteration by itself in {left}"));
    }
    error.hint(format!("segno abort {id}   gives it up"))
}

/// What was printed of the news.
struct Printed<'a> {
    ctx: &'a CommandContext<'a>,
    session: SessionId,
    waiting: Option<Duration>,
    /// What wakes the loop when it is parked, in words.
    wakes: String,
    items: super::queue::Followed<'a>,
    /// What it does beside its agent.
    doing: Option<String>,
    drawn: Option<Instant>,
    /// How the person at the terminal is called.
    bell: Bell,
    /// Whether it was told what to do about an agent that does not say that it is done.
    unsaid: bool,
    /// The phase that was said to begin before anything of it is in the journal.
    begins: Option<String>,
}

/// Says which phase a new loop begins with: news are printed after what is in the journal by then, and the first checkpoint of a
/// phase would stand before its name.
fn say_first_phase(ctx: &CommandContext<'_>, state: &State) -> Option<String> {
    let looping = state.looping.as_ref().filter(|_| state.status == Status::Active)?;
    let looping = Some(looping).filter(|it| it.baseline.is_none() && it.plan.queue.is_none())?;
    let at = looping.plan.phases.iter().position(|phase| phase.name == looping.phase)?;
    ctx.context.printer.talk(phase_begins(&looping.phase, at + 1, looping.plan.phases.len()));
    Some(looping.phase.clone())
}

fn phase_begins(phase: &str, number: usize, of: usize) -> String {
    format!("phase {phase} ({number} of {of})")
}

/// What wakes a loop that is parked: it is said, so that nobody waits for something that is not there.
fn wakes(ctx: &CommandContext<'_>, waits: bool) -> String {
    let timer = timer_armed(ctx);
    match (waits, timer) {
        (true, true) => "this process wakes it, or the timer of segno schedule".to_owned(),
        (true, false) => {
            "this process wakes it; without it: segno loop resume --due, or segno schedule".to_owned()
        }
        (false, true) => "the timer of segno schedule wakes it, or: segno loop resume --due".to_owned(),
        (false, false) => "nothing wakes it by itself: segno loop resume --due, or segno schedule".to_owned(),
    }
}

/// Whether a timer of the system looks after the loops of this store.
pub(super) fn timer_armed(ctx: &CommandContext<'_>) -> bool {
    crate::commands::schedule::timer(ctx, Duration::from_secs(600)).is_ok_and(|schedule| schedule.is_armed())
}

impl Printed<'_> {
    /// Prints what came since. What is in the journal is shown from there.
    fn print(&mut self, news: &mpsc::Receiver<LoopNews>) {
        let printer = &self.ctx.context.printer;
        self.items.print();
        for one in news.try_iter() {
            match one {
                LoopNews::ItemBegan { item, session } => self.items.began(&item, session),
                LoopNews::ItemEnded { item, line } => self.items.ended(&item, &line),
                LoopNews::Measuring { name } => self.doing = Some(format!("measures: {name}")),
                LoopNews::Waiting { left } => {
                    // Without a terminal, a line now and then.
                    let told = self.waiting.is_some_and(|told| left + Duration::from_secs(600) > told);
                    if !told {
                        printer.detail(1, format!("goes on in {}", units::duration(left)));
                        self.waiting = Some(left);
                    }
                }
                LoopNews::Notice(message) => printer.call(self.bell, &message.title(), &message.text),
                LoopNews::Problem(text) => printer.warn(text),
                LoopNews::Woken => printer.talk("the wait is over: it goes on"),
                LoopNews::Parked { until: None, words } => {
                    printer.talk(format!("waits until you say so: {words}"));
                }
                LoopNews::Parked { until: Some(_), .. } => printer.talk(format!("  {}", self.wakes)),
                LoopNews::PhaseBegan { phase, number, of } => {
                    if self.begins.take().as_ref() != Some(&phase) {
                        printer.talk(phase_begins(&phase, number, of));
                    }
                }
                LoopNews::Decided { line, printed } => {
                    self.doing = None;
                    for line in printed {
                        printer.talk(
                            Text::new().painted(Meaning::Dim, format!("    {}", sanitize::line(&line))),
                        );
                    }
                    if !self.unsaid && line.ends_with(NOT_SAID) {
                        self.unsaid = true;
                        printer.hint("segno loop … --no-signal   lets the measurements alone decide");
                    }
                }
                LoopNews::IterationBegan { .. } => self.doing = None,
            }
        }
        self.draw();
    }

    /// Draws how the loop stands below what scrolls by, where a terminal allows it.
    fn draw(&mut self) {
        let printer = &self.ctx.context.printer;
        if !printer.redraws() || self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        self.drawn = Some(Instant::now());
        // What cannot be read now is drawn the next time.
        let Ok(loaded) = self.ctx.engine.load(self.session) else { return };
        let day = self.ctx.engine.day_stand(&loaded.state.project.path).ok();
        let now = self.ctx.engine.now();
        let (width, height) = printer.size();
        if let Some(live) = Live::of(&loaded.state, day.as_ref(), self.doing.as_deref(), now) {
            printer.block(&live.lines(width.saturating_sub(1), height.saturating_sub(3)));
        }
    }
}
