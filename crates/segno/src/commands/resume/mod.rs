//! `segno resume`: takes up work that was paused, interrupted or halted.

mod again;
mod panel;

pub(super) use again::again;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use segno_engine::agents::{Baseline, Conversation, ErrorClass, OutcomeKind};
use segno_engine::core::{Command, List, SessionId, State, Status};
use segno_engine::resume::{BriefLimits, Options, Recovery};
use segno_engine::run::{Report, Stop, living_agent};
use segno_engine::tree::Way;
use serde_json::json;

use super::args::OneSession;
use super::lifecycle;
use super::run::{Args as RunArgs, Resumed, resume_run};
use crate::context::Context;
use crate::desk::{Desk, short, tail, title};
use crate::error::{CommandError, Outcome};
use crate::exit::ExitCode;
use crate::output::Text;

/// Take up a session again
///
/// Without a name, the last session of the project that waits. On a terminal it shows where the work stands and asks
/// how to go on; with flags or without a terminal it never asks. If an agent worked in the session, it goes on in the
/// same conversation where it can, and is told what was done, what is in doubt and what is still to do. A session
/// without an agent only becomes active again.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno resume\n  segno resume 804211 --from live\n  segno resume --show-brief"
)]
pub struct Args {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// Where to go on from
    #[arg(long, value_name = "WHERE")]
    pub from: Option<From>,
    /// Go on from this checkpoint
    #[arg(long, value_name = "CP", conflicts_with = "from")]
    pub checkpoint: Option<String>,
    /// Only make the session active again; start no agent
    #[arg(long)]
    pub no_run: bool,
    /// What the agent shall do, beside going on
    #[arg(long, short, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Give the terminal to the agent's own interface, also if it had none before
    #[arg(long, short)]
    pub interactive: bool,
    /// Show what the agent would be told, and do nothing
    #[arg(long)]
    pub show_brief: bool,
    /// Show the ways to go on, and do nothing
    #[arg(long)]
    pub options: bool,
    /// Close the breaker of a halted session
    #[arg(long)]
    pub reset_breaker: bool,
    /// The session about this file, and no other
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// One more argument for the agent; may be repeated
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// Give the agent the arguments again that were given by hand for its last run
    #[arg(long)]
    pub same_args: bool,
    /// Take the agent up again by itself when it dies, at most N times (default: resume.attempts; 0: never)
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    pub auto_resume: Option<Option<u32>>,
}

/// Where to go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum From {
    /// The last checkpoint: files and conversation as they were there
    Checkpoint,
    /// What is there now
    Live,
    /// A new session that knows of this one
    Fresh,
}

impl From {
    fn recovery(self) -> Recovery {
        match self {
            Self::Checkpoint => Recovery::Checkpoint,
            Self::Live => Recovery::Live,
            Self::Fresh => Recovery::Fresh,
        }
    }
}

/// Runs `segno resume`.
///
/// # Errors
/// If the session cannot be taken up, or how the run ended.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let only_looks = args.options || args.show_brief || args.no_run;
    let desk = if only_looks { Desk::open(context)? } else { Desk::open_to_stay(context)? };
    let id = which(&desk, args)?;
    if desk.engine.store().lease(id).map_err(segno_engine::Error::from)?.is_none() {
        tell_evidence(&desk, id)?;
    }
    let (state, options) = desk.engine.recovery_options(id)?;
    if args.options {
        return show_options(context, &state, &options);
    }
    if args.show_brief {
        let brief = desk.engine.brief(id, BriefLimits::default())?.text(BriefLimits::default());
        return context.printer.data(brief);
    }
    let agent = state.run.as_ref().map(|run| run.agent.clone()).filter(|agent| agent != "plain");
    let Some(agent) = agent.filter(|_| !args.no_run) else {
        return only_status(&desk, id, args, &state, &options);
    };
    refuse(&desk, args, &state)?;
    if state.status == Status::Active && living_agent(&state).is_none() {
        context.printer.detail(1, "the session is active, and nobody works on it");
    }
    let recovery = match (&args.checkpoint, args.from) {
        (Some(_), _) => Recovery::Checkpoint,
        (None, Some(from)) => from.recovery(),
        (None, None) if std::io::stdin().is_terminal() && !context.printer.is_json() => {
            panel::ask(context, &state, &options)?
        }
        // Nobody to ask: nothing is taken back that nobody asked to take back.
        (None, None) => Recovery::Live,
    };
    if let Some(alive) = living_agent(&state) {
        context.printer.talk(format!("its agent (pid {}) still runs and is stopped first", alive.pid));
        desk.engine.kill_run(&state);
    }
    go_on(&desk, args, &state, &options, &agent, recovery)
}

/// The session that is meant: the one that is named, the one about a file, or the last that waits.
fn which(desk: &Desk<'_>, args: &Args) -> Outcome<SessionId> {
    let wanted = super::detect::work_file(desk.context, args.file.as_deref());
    let id = match (&args.session.id, desk.context.session(None)?) {
        (None, None) => match &wanted {
            Some(_) => match desk.engine.detect(&desk.context.project.root, wanted.as_deref())?.session {
                Some(id) => id,
                None => desk.session(None)?,
            },
            None => lifecycle::waiting(desk)?,
        },
        (named, _) => desk.session(named.as_ref())?,
    };
    if let Some(wanted) = wanted {
        let state = desk.load(id)?;
        if state.file.as_deref() != Some(wanted.as_str()) {
            let why = segno_engine::core::detect::mismatch(&state, &wanted);
            return Err(CommandError::new(ExitCode::Refused, "other_work", why)
                .hint(format!("segno run --file {wanted}   begins a session for it")));
        }
    }
    Ok(id)
}

/// Looks once more for the ends of calls in doubt: an agent may have written its record after its driver was gone.
fn tell_evidence(desk: &Desk<'_>, id: SessionId) -> Outcome {
    let state = desk.load(id)?;
    if state.calls.in_doubt.is_empty() || living_agent(&state).is_some() {
        return Ok(());
    }
    let settled = desk.engine.gather_evidence(id)?;
    if !settled.is_empty() {
        let calls = crate::output::units::things(settled.len() as u64, "call");
        desk.context.printer.talk(format!("the agent's own record tells how {calls} in doubt ended"));
    }
    Ok(())
}

/// Says why a session cannot be taken up, in the words that others use for it.
fn refuse(desk: &Desk<'_>, args: &Args, state: &State) -> Outcome {
    let id = tail(state.session_id);
    desk.engine.refuse_resume(state, args.reset_breaker).map_err(|error| {
        let hint = match state.status {
            Status::Halted => format!("segno resume {id} --reset-breaker"),
            _ => format!("segno run --continue-from {id} …"),
        };
        CommandError::from(error).hint(hint)
    })?;
    // Whoever drives it has an agent at work, which is not ours to stop.
    if let Some(lease) = desk.engine.store().lease(state.session_id).map_err(segno_engine::Error::from)? {
        let held = segno_engine::Error::from(segno_engine::store::Error::Held(Box::new(lease)));
        return Err(CommandError::from(held).hint(format!("segno tail -f {id}   (or: segno stop {id})")));
    }
    Ok(())
}

/// A session without an agent, or whose agent is not wanted, only becomes active again.
fn only_status(desk: &Desk<'_>, id: SessionId, args: &Args, state: &State, options: &Options) -> Outcome {
    let mut commands = vec![Command::Resume { reset_breaker: args.reset_breaker, details: None }];
    // A pause by hand is nothing to recover from.
    if state.run.is_some() || state.status == Status::Interrupted {
        commands.insert(0, desk.engine.chosen(options, Recovery::Live, None, false));
    }
    let acted = desk.act(id, commands).map_err(|error| lifecycle::explain(desk, id, error))?;
    let mut line = Text::new().plain("resumed ").then(title(&acted.state));
    if let Some(phase) = acted.state.phase_label() {
        line = line.plain(format!("   phase {phase}"));
    }
    desk.report(&acted, line)?;
    if state.run.as_ref().is_some_and(|run| run.agent == "plain") && !args.no_run {
        desk.context
            .printer
            .hint(format!("its command is not run again by itself: segno run --session {} -- …", tail(id)));
    }
    Ok(())
}

fn show_options(context: &Context, state: &State, options: &Options) -> Outcome {
    if context.printer.is_json() {
        return context
            .printer
            .json(&json!({ "session_id": state.session_id, "status": state.status, "options": options }));
    }
    for line in panel::lines(context, state, options) {
        context.printer.data(line)?;
    }
    Ok(())
}

/// Brings tree and state to where it goes on from, and starts the agent.
fn go_on(
    desk: &Desk<'_>,
    args: &Args,
    state: &State,
    options: &Options,
    agent: &str,
    recovery: Recovery,
) -> Outcome {
    let mut session = state.session_id;
    let base = base(desk, args, state)?;
    // The brief is made before anything changes: it tells of what happened.
    let limits = BriefLimits::default();
    let mut brief = desk.engine.brief(session, limits)?.text(limits);
    let mut at = None;
    let mut restored = Vec::new();
    let choose = |target: Option<String>| {
        let chosen = desk.engine.chosen(options, recovery, target, false);
        desk.engine.act(session, chosen).map(drop)
    };
    if recovery == Recovery::Checkpoint {
        let checkpoint = match &args.checkpoint {
            Some(name) => desk.engine.find_checkpoint(session, name)?,
            None => desk.engine.checkpoint_to_resume(session)?.ok_or_else(|| {
                let why = "this session has no checkpoint to go on from";
                CommandError::new(ExitCode::Refused, "no_checkpoint", why).hint("segno resume --from live")
            })?,
        };
        desk.engine.settle_run_if_dead(session)?;
        let way = Way { state: true, ..Way::files_of(checkpoint.ordinal) };
        let preview = desk.engine.preview(session, way)?;
        choose(Some(checkpoint.id.clone()))?;
        let gone = desk.engine.go(preview)?;
        restored.push(format!(
            "files and state of {} ({} written, {} removed, {} left as they are)",
            checkpoint.id,
            gone.applied.written.len(),
            gone.applied.removed.len(),
            gone.applied.kept.len()
        ));
        brief = format!("The files were taken back to checkpoint {}.\n{brief}", checkpoint.id);
        at = checkpoint.conversation.clone();
    } else {
        choose(None)?;
    }
    if recovery == Recovery::Fresh {
        let reason = Some("fresh start: a new session goes on".into());
        desk.engine.settle_run_if_dead(session)?;
        desk.act(session, vec![Command::Abort { reason }])?;
        let old = session;
        session = super::run::successor(desk, state)?;
        restored.push(format!("a new session {} that continues {}", short(session), short(old)));
    }
    let native =
        state.run.as_ref().and_then(|run| run.native_id.clone()).filter(|_| recovery != Recovery::Fresh);
    let interactive = is_interactive(desk, args, state);
    // With a person at its terminal an agent goes back to no place inside of a conversation.
    let conversation = match (native, at.filter(|_| !interactive)) {
        (Some(native), Some(at)) if agent == "claude" && at.message.is_some() && at.native_id == native => {
            restored.push("a copy of the conversation up to the checkpoint".to_owned());
            Conversation::Fork { from: native, id: Some(uuid::Uuid::now_v7().to_string()), at: at.message }
        }
        (Some(native), _) => {
            restored.push(format!("conversation {native}"));
            Conversation::Resume(native)
        }
        (None, _) => Conversation::New,
    };
    // Whoever sits there knows what to do next, unless something happened that nobody saw.
    let silent =
        args.prompt.is_none() && interactive && recovery == Recovery::Live && !is_in_doubt(desk, state)?;
    let prompt = if silent { String::new() } else { prompt(&brief, args.prompt.as_deref()) };
    if !prompt.is_empty() {
        restored.push("a brief of what was done and what is in doubt".to_owned());
    }
    desk.context.printer.talk(format!("restored: {}", restored.join(", ")));
    let stop = Stop::default();
    let resumed = Resumed {
        session,
        from: state.session_id,
        agent: agent.to_owned(),
        conversation,
        prompt,
        reset_breaker: args.reset_breaker,
        interactive,
        printed: None,
    };
    let report = take_up(desk, &base, resumed, &stop)?;
    let report = again(desk, &base, session, report, &stop)?;
    super::run::report(desk, session, false, report)
}

/// What the agent is told.
fn prompt(brief: &str, more: Option<&str>) -> String {
    format!("{brief}\n{}", more.unwrap_or("Go on with the task. Settle first what is in doubt."))
}

/// What the run is given beside its prompt. Arguments that were given by hand for the run before may have switched a
/// protection off; they are not applied again unless somebody says so.
fn base(desk: &Desk<'_>, args: &Args, state: &State) -> Outcome<RunArgs> {
    let mut base = RunArgs { auto_resume: args.auto_resume, args: args.args.clone(), ..RunArgs::default() };
    let newest = segno_engine::store::Page::newest(1);
    let rows = desk.engine.store().page(state.session_id, List::Runs, &newest);
    let rows = rows.map_err(segno_engine::Error::from)?;
    let before: Vec<String> = rows
        .first()
        .and_then(|row| serde_json::from_value(row.body.get("args")?.clone()).ok())
        .unwrap_or_default();
    if before.is_empty() {
        return Ok(base);
    }
    if args.same_args {
        base.args.splice(0..0, before);
    } else if args.args.is_empty() {
        desk.context.printer.warn_with(
            format!("the last run was given {} by hand; that is not applied again", before.join(" ")),
            &["--same-args   applies it   (or: --arg ARG)".to_owned()],
        );
    }
    Ok(base)
}

/// A person who had the agent's terminal gets it again, if there is one; and whoever asks for it.
fn is_interactive(desk: &Desk<'_>, args: &Args, state: &State) -> bool {
    let was = state.run.as_ref().is_some_and(|run| run.interactive);
    (was || args.interactive) && !desk.context.printer.is_json() && super::run::has_terminal()
}

/// Whether there are calls that nobody knows the end of. The end of a run whose driver died is recorded first.
fn is_in_doubt(desk: &Desk<'_>, state: &State) -> Outcome<bool> {
    desk.engine.settle_run_if_dead(state.session_id).or_else(|error| match error {
        segno_engine::Error::AgentAlive { .. } => Ok(()),
        other => Err(other),
    })?;
    let calls = desk.load(state.session_id)?.calls;
    Ok(!calls.in_doubt.is_empty() || !calls.open.is_empty())
}

/// Takes the agent up; one that does not know its conversation any more gets a new one with the same brief, once.
fn take_up(desk: &Desk<'_>, base: &RunArgs, resumed: Resumed, stop: &Stop) -> Outcome<Report> {
    let was_new = resumed.conversation == Conversation::New;
    let again = Resumed { conversation: Conversation::New, reset_breaker: false, ..resumed.clone() };
    let report = resume_run(desk, base, resumed, stop)?;
    if was_new || !is_unknown_conversation(&report) {
        return Ok(report);
    }
    desk.context
        .printer
        .warn("the agent does not know its conversation any more; a new one is begun with the same brief");
    let body = json!({ "why": report.outcome.reason, "did": "fresh conversation" });
    let fallback = Command::Report { what: "resume_fallback".to_owned(), body };
    let acted = desk.engine.act(again.session, fallback)?;
    resume_run(desk, base, Resumed { printed: Some(acted.seq), ..again }, stop)
}

/// An agent that was told to resume what it does not know says so before it does anything.
fn is_unknown_conversation(report: &Report) -> bool {
    let outcome = &report.outcome;
    let setup = outcome.error.as_ref().is_some_and(|error| error.class == ErrorClass::Setup);
    let said = format!("{} {}", outcome.reason, report.stderr).to_lowercase();
    let unknown = ["no conversation found", "no rollout found", "session not found", "not found"]
        .iter()
        .any(|words| said.contains(words));
    // What it says at its own terminal, only the person reads; there, whoever fails at once has not found it.
    let attended = report.state.run.as_ref().is_some_and(|run| run.interactive) && outcome.turns == 0;
    let failed = match attended {
        true => outcome.outcome == OutcomeKind::Failed,
        false => matches!(outcome.outcome, OutcomeKind::Failed | OutcomeKind::Interrupted),
    };
    failed && outcome.tool_calls == 0 && outcome.tokens.total() == 0 && (setup || unknown || attended)
}

/// Totals of a conversation go over all its runs.
pub(crate) fn baseline_of(conversation: &Conversation, known: Baseline) -> Baseline {
    match conversation {
        Conversation::New | Conversation::NewWithId(_) => Baseline::Fresh,
        Conversation::Resume(_) | Conversation::Fork { .. } => known,
    }
}
