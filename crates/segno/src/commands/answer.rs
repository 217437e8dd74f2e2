//! `segno answer`: what waits for a person, and their answer.

use clap::Args as ClapArgs;
use segno_engine::core::Command as Act;
use segno_engine::core::Status;
use segno_engine::core::Summary;
use segno_engine::core::event::QuestionAnswered;
use segno_engine::core::looping::LoopCommand;
use segno_engine::waiting::Waiting;
use segno_engine::waiting::WaitingKind;
use serde_json::json;

use super::looping::loop_command;
use super::resume;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::sanitize;
use crate::output::style::Meaning;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

/// The fewest characters of a name that are taken for it.
const SHORTEST: usize = 4;

/// Answer a question that waits
///
/// An agent that asks whether a call may run, a breakpoint, an open breaker and an interrupted session with calls in doubt
/// wait for a person. Without a name, lists what waits, in every project; with a name, shows all that is asked. Each
/// question is named by a hash of what it asks, so an answer counts for exactly that, and once.
///
/// To a permission: `yes`, `no`, or a text, which is a no and tells the agent why. To a breakpoint or a breaker: `yes`,
/// and a note behind it if you like; anything else changes nothing. To an interrupted session: checkpoint, live or fresh, as in segno resume
/// --from; it goes on in the background. An agent cannot answer.
#[derive(ClapArgs, Clone, Debug, Default)]
#[command(
    after_help = "Examples:\n  segno answer\n  segno answer 5f0c yes\n  segno answer 5f0c use make instead\n  \
        segno answer 77aa yes, the server is up"
)]
pub struct Args {
    /// The question: its name, or at least four characters of its beginning
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// The answer: yes, no, or a text
    #[arg(value_name = "ANSWER", trailing_var_arg = true, allow_hyphen_values = true)]
    pub answer: Vec<String>,
    /// From where it was answered, and that a person confirmed it there
    #[arg(skip)]
    pub confirmed_through: Option<&'static str>,
    /// From where it is answered, if not by this command
    #[arg(skip)]
    pub through: Option<&'static str>,
}

/// Runs `segno answer`.
///
/// # Errors
/// If there is no such question, it was answered already, or an agent asks.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let Some(id) = &args.id else { return list(context) };
    let said = args.answer.join(" ");
    if said.trim().is_empty() {
        let ctx = CommandContext::open_to_look_if_any(context)?.ok_or_else(|| nothing_waits(id))?;
        return show(context, &find(&ctx, id)?);
    }
    context.refuse_below_run("answer for you")?;
    let ctx = match CommandContext::open(context) {
        Err(error) if error.code() == "no_store" => return Err(nothing_waits(id)),
        other => other?,
    };
    if args.confirmed_through.is_none() && ctx.engine.is_below_an_agent()? {
        let why = "an agent cannot answer for you: this was started by one whose session is recorded here";
        return Err(CommandError::new(ExitCode::Refused, "refused_below_run", why)
            .hint("type it in a terminal of your own"));
    }
    let question = find(&ctx, id)?;
    give(&ctx, &question, said.trim(), args.confirmed_through.or(args.through).unwrap_or("segno answer"))
}

fn list(context: &Context) -> Outcome {
    let ctx = CommandContext::open_to_look_if_any(context)?;
    let waiting = ctx.as_ref().map(|ctx| ctx.engine.waiting()).transpose()?.unwrap_or_default();
    if context.printer.is_json() {
        return context.printer.json(&json!({ "questions": waiting }));
    }
    let Some(ctx) = ctx.filter(|_| !waiting.is_empty()) else {
        return context.printer.data("nothing waits for an answer");
    };
    let now = ctx.engine.now();
    let mut table = Table::new([
        Column::left("question"),
        Column::left("session"),
        Column::left("what"),
        Column::right("waits"),
        Column::left("").elastic(),
    ]);
    for question in &waiting {
        let waits = std::time::Duration::from_micros(now.micros_since(question.since));
        table.row([
            Text::new().painted(Meaning::Waiting, question.id.clone()),
            Text::new().painted(Meaning::Dim, short(question.session_id)),
            question.kind.as_str().into(),
            units::age(waits).into(),
            sanitize::line(&question.text).into_owned().into(),
        ]);
    }
    context.printer.table(&table)?;
    if let Some(first) = waiting.first() {
        context.printer.hint(format!("segno answer {}   shows all of it", first.id));
    }
    ctx.finish();
    Ok(())
}

fn show(context: &Context, question: &Waiting) -> Outcome {
    if context.printer.is_json() {
        return context.printer.json(question);
    }
    let printer = &context.printer;
    let topic = question.topic.as_deref().unwrap_or_default();
    printer.data(format!("{}   {}   {topic}", question.id, short(question.session_id)))?;
    match &question.input {
        Some(input) => {
            let (asked, _) = question.text.split_once('?').unwrap_or((&question.text, ""));
            printer.data(format!("{}?", sanitize::line(asked)))?;
            let shown = serde_json::from_str::<serde_json::Value>(input)
                .ok()
                .and_then(|value| serde_json::to_string_pretty(&value).ok())
                .unwrap_or_else(|| input.clone());
            for line in sanitize::block(&shown).lines() {
                printer.data(format!("  {line}"))?;
            }
        }
        None => printer.data(sanitize::line(&question.text).into_owned())?,
    }
    if let Some(until) = question.until {
        printer.data(format!("without an answer it is refused at {}", context.moment(until)))?;
    }
    let (first, others) = match question.kind {
        WaitingKind::Permission => ("yes", "no, or a text: a no that tells the agent why"),
        WaitingKind::Breakpoint | WaitingKind::Breaker => ("yes", "yes and a note"),
        WaitingKind::Resume => ("live", "checkpoint, fresh"),
    };
    printer.hint(format!("segno answer {} {first}   (or: {others})", question.id));
    Ok(())
}

fn unknown(why: String) -> CommandError {
    CommandError::new(ExitCode::Refused, "unknown_question", why)
        .hint("segno answer   lists what waits; what was answered or has changed is not there any more")
}

/// Where there is no store there is no question.
fn nothing_waits(id: &str) -> CommandError {
    unknown(format!("no question {id} waits: nothing does"))
}

/// The one question that is meant.
fn find(ctx: &CommandContext<'_>, id: &str) -> Outcome<Waiting> {
    if id.len() < SHORTEST {
        return Err(unknown(format!("{id} is too short for the name of a question")));
    }
    let mut found = ctx.engine.waiting()?;
    found.retain(|waiting| waiting.id.starts_with(id));
    match found.pop() {
        Some(question) if found.is_empty() => Ok(question),
        Some(_) => Err(CommandError::new(
            ExitCode::Ambiguous,
            "ambiguous",
            format!("more than one question begins with {id}"),
        )
        .hint("segno answer   shows their whole names")),
        None => Err(unknown(format!("no question {id} waits"))),
    }
}

fn give(ctx: &CommandContext<'_>, question: &Waiting, said: &str, by: &str) -> Outcome {
    let (id, session) = (&question.id, question.session_id);
    let tail = ctx.engine.ending(session);
    let is = |word: &str, short: &str, text: &str| {
        text.eq_ignore_ascii_case(word) || text.eq_ignore_ascii_case(short)
    };
    // To a permission every text is an answer. Elsewhere only a word is one, and what follows it is a note.
    let (word, note) = match question.kind {
        WaitingKind::Permission => {
            (said, Some(said).filter(|_| !is("yes", "y", said) && !is("no", "n", said)))
        }
        WaitingKind::Breakpoint | WaitingKind::Breaker | WaitingKind::Resume => {
            let (word, note) = said.split_once([' ', ',', ':']).unwrap_or((said, ""));
            (word, Some(note.trim()).filter(|note| !note.is_empty()))
        }
    };
    let (yes, no) = (is("yes", "y", word), is("no", "n", word));
    let stays = |what: &str| {
        CommandError::new(
            ExitCode::Refused,
            "nothing_to_refuse",
            format!("{what} waits until somebody says yes"),
        )
        .hint(format!("segno abort {tail}   gives the session up"))
    };
    let act = match question.kind {
        WaitingKind::Permission => Act::AnswerQuestion(QuestionAnswered {
            id: id.clone(),
            allow: yes,
            details: note.map(Into::into),
            by: by.to_owned(),
        }),
        WaitingKind::Breakpoint if no => return Err(stays("the breakpoint")),
        WaitingKind::Breaker if no => return Err(stays("the breaker")),
        WaitingKind::Breakpoint | WaitingKind::Breaker if !yes => {
            return Err(CommandError::usage(format!(
                "{said} is no answer to this: only yes is, with a note behind it if you like"
            ))
            .hint(format!("segno answer {id} yes   (or: segno answer {id} yes, {said})")));
        }
        WaitingKind::Breakpoint => Act::ContinueBreakpoint { details: note.map(Into::into) },
        WaitingKind::Breaker => {
            let reason = note.unwrap_or("reset by hand").to_owned();
            match ctx.load(session)?.looping {
                Some(_) => loop_command(LoopCommand::ResetBreaker { reason }),
                None => Act::Resume { reset_breaker: true, details: Some(reason.into()) },
            }
        }
        WaitingKind::Resume => return go_on(ctx, question, said),
    };
    let acted = ctx.act(session, [act])?;
    let word = if question.kind == WaitingKind::Permission && !yes { "no" } else { "yes" };
    ctx.report(&acted, format!("{word} to {id}"))?;
    if question.kind != WaitingKind::Permission && acted.state.status != Status::Active {
        ctx.context.printer.hint(format!("segno resume {tail}"));
    }
    Ok(())
}

/// Takes up a session that was interrupted, in the background.
fn go_on(ctx: &CommandContext<'_>, question: &Waiting, said: &str) -> Outcome {
    let from = <resume::From as clap::ValueEnum>::from_str(said, true).map_err(|_| {
        CommandError::usage(format!("{said} is none of {}", question.answers.join(", ")))
            .hint(format!("segno answer {}   shows what is in doubt", question.id))
    })?;
    let state = ctx.load(question.session_id)?;
    let args = resume::Args { from: Some(from), ..Default::default() };
    let log = resume::in_background(ctx.context, &args, &Summary::from(&state))?;
    let printer = &ctx.context.printer;
    if printer.is_json() {
        return printer.json(&json!({ "session_id": question.session_id, "resumed": true, "log": log }));
    }
    printer.data(format!(
        "{} goes on in the background; it says: {}",
        short(question.session_id),
        log.display()
    ))?;
    printer.hint(format!("segno tail -f {}", ctx.engine.ending(question.session_id)));
    Ok(())
}
