//! `segno loop resume --due`: every loop whose time has come.

use std::ffi::OsString;

use segno_engine::looping::DueStarter;
use segno_engine::run::Stop;
use serde_json::json;

use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::commands::run::listen;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::units;

/// What wakes them is told to each of them with this flag.
pub(in crate::commands) const BY: &str = "--by";

/// Goes on with all of them, each in a process of its own, and says what came of each.
pub(super) fn run(context: &Context, by: super::args::WokenBy) -> Outcome {
    context.refuse_below_run("go on with other loops")?;
    let ctx = CommandContext::open_to_stay(context)?;
    let own = std::env::current_exe().map_err(|why| CommandError::io("cannot find this program", why))?;
    let words = |words: &[&str]| -> Vec<OsString> { words.iter().map(Into::into).collect() };
    let mut arguments = words(&["--store"]);
    arguments.push(context.store_location()?.absolute().url());
    arguments.extend(words(&["loop", "resume"]));
    let printer = &context.printer;
    let starter = DueStarter {
        program: own,
        arguments,
        behind: words(&["--no-wait", BY, by.as_str()]),
        shows: !printer.is_json(),
    };
    let stop = Stop::default();
    let _listening = listen(&stop)?;
    let ended = ctx.engine.resume_due(&starter, &|| stop.asked().0 > 0)?;
    ctx.finish();
    if printer.is_json() {
        let one = |one: &segno_engine::looping::DueEnded| json!({ "session_id": one.session, "exit_code": one.exit, "why": one.why });
        printer.json(&json!({ "resumed": ended.iter().map(one).collect::<Vec<_>>() }))?;
    } else if ended.is_empty() {
        printer.talk("no loop is due");
    }
    for one in ended.iter().filter_map(|one| Some((one.session, one.why.as_ref()?))) {
        printer.warn(format!("{} was left alone: {}", short(one.0), one.1));
    }
    match ended.iter().filter(|one| one.why.is_some()).count() {
        0 => Ok(()),
        left => {
            let what = units::things(left as u64, "loop");
            Err(CommandError::new(ExitCode::Failure, "left_alone", format!("{what} could not be resumed")))
        }
    }
}

/// Says once, on a terminal, that loops wait for somebody to go on with them.
pub(in crate::commands) fn tell(ctx: &CommandContext<'_>) {
    let due: usize =
        ctx.engine.due_loops().map_or(0, |groups| groups.iter().map(|it| it.sessions.len()).sum());
    if due > 0 {
        let are = if due == 1 { "is" } else { "are" };
        let loops = units::things(due as u64, "loop");
        ctx.context.printer.talk(format!("{loops} {are} due: segno loop resume --due"));
    }
}
