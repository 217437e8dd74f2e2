//! `segno resume`: takes up work that was paused, interrupted or halted.

mod panel;

use std::io::IsTerminal as _;

use clap::{Args as ClapArgs, ValueEnum};
use segno_engine::agents::{Baseline, Conversation, ErrorClass, OutcomeKind};
use segno_engine::core::{Command, SessionId, State, Status};
use segno_engine::resume::{BriefLimits, Options, Recovery};
use segno_engine::run::{Feed, Report, Stop, living_agent};
use segno_engine::tree::Way;
use serde_json::json;

use super::args::OneSession;
use super::lifecycle;
use super::run::{Resumed, resume_run};
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
    let desk = Desk::open_to_stay(context)?;
    let id = match (&args.session.id, context.session(None)?) {
        (None, None) => lifecycle::waiting(&desk)?,
        (named, _) => desk.session(named.as_ref())?,
    };
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
        return only_status(&desk, id, args, &state);
    };
    desk.engine.refuse_resume(&state, args.reset_breaker).map_err(|error| {
        let hint = match state.status {
            Status::Halted => format!("segno resume {} --reset-breaker", tail(id)),
            _ => format!("segno run --continue-from {} …", tail(id)),
        };
        CommandError::from(error).hint(hint)
    })?;
    if state.status == Status::Active && living_agent(&state).is_none() && state.driver.is_none() {
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
    go_on(&desk, args, &state, &agent, recovery)
}

/// A session without an agent, or whose agent is not wanted, only becomes active again.
fn only_status(desk: &Desk<'_>, id: SessionId, args: &Args, state: &State) -> Outcome {
    let command = Command::Resume { reset_breaker: args.reset_breaker, details: None };
    let acted = desk.act(id, vec![command]).map_err(|error| lifecycle::explain(desk, id, error))?;
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
fn go_on(desk: &Desk<'_>, args: &Args, state: &State, agent: &str, recovery: Recovery) -> Outcome {
    let printer = &desk.context.printer;
    let mut session = state.session_id;
    // The brief is made before anything changes: it tells of what happened.
    let limits = BriefLimits::default();
    let mut brief = desk.engine.brief(session, limits)?.text(limits);
    let mut at = None;
    let mut restored = Vec::new();
    if recovery == Recovery::Checkpoint {
        let checkpoint = match &args.checkpoint {
            Some(name) => desk.engine.find_checkpoint(session, name)?,
            None => last_checkpoint(desk, session)?,
        };
        desk.engine.settle_run_if_dead(session)?;
        let way = Way { state: true, ..Way::files_of(checkpoint.ordinal) };
        let gone = desk.engine.go(desk.engine.preview(session, way)?)?;
        restored.push(format!(
            "files and state of {} ({} written, {} removed, {} left as they are)",
            checkpoint.id,
            gone.applied.written.len(),
            gone.applied.removed.len(),
            gone.applied.kept.len()
        ));
        brief = format!("The files were taken back to checkpoint {}.\n{brief}", checkpoint.id);
        at = checkpoint.conversation.clone();
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
    let prompt = match &args.prompt {
        Some(prompt) => format!("{brief}\n{prompt}"),
        // Whoever sits there knows what to do next, unless something happened that nobody saw.
        None if interactive && recovery == Recovery::Live && !is_in_doubt(desk, state)? => String::new(),
        None => format!("{brief}\nGo on with the task. Settle first what is in doubt."),
    };
    if !prompt.is_empty() {
        restored.push("a brief of what was done and what is in doubt".to_owned());
    }
    printer.talk(format!("restored: {}", restored.join(", ")));
    let resumed = |conversation: Conversation| Resumed {
        session,
        from: state.session_id,
        agent: agent.to_owned(),
        conversation,
        prompt: prompt.clone(),
        reset_breaker: args.reset_breaker,
        interactive,
    };
    let was_new = conversation == Conversation::New;
    let report = resume_run(desk, resumed(conversation), &Feed::default(), &Stop::default())?;
    if !was_new && is_unknown_conversation(&report) {
        printer.warn(
            "the agent does not know its conversation any more; a new one is begun with the same brief",
        );
        let body = json!({ "why": report.outcome.reason, "did": "fresh conversation" });
        desk.engine.act(session, Command::Report { what: "resume_fallback".to_owned(), body })?;
        let report = resume_run(desk, resumed(Conversation::New), &Feed::default(), &Stop::default())?;
        return super::run::report(desk, session, false, report);
    }
    super::run::report(desk, session, false, report)
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

fn last_checkpoint(desk: &Desk<'_>, session: SessionId) -> Outcome<segno_engine::tree::Checkpoint> {
    let all = desk.engine.checkpoints(session)?;
    let fits = |checkpoint: &&segno_engine::tree::Checkpoint| {
        checkpoint.ready && checkpoint.valid && !checkpoint.aside && checkpoint.reason != "interrupt"
    };
    all.iter().rev().find(fits).cloned().ok_or_else(|| {
        CommandError::new(ExitCode::Refused, "no_checkpoint", "this session has no checkpoint to go on from")
            .hint("segno resume --from live")
    })
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
