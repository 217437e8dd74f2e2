//! `segno demo`: an agent is killed half-way and found, on any machine, without an account.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use clap::Args as ClapArgs;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::run::start_background;

use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::config::env::Environment;
use crate::config::env::variable_of;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::files;
use crate::output::Text;
use crate::output::style::Meaning;

/// How long each part of the demonstration may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it checks.
const LOOK: Duration = Duration::from_millis(20);
/// How long a person needs to read a line.
const BREATH: Duration = Duration::from_millis(700);

/// See what segno is for, in ten seconds
///
/// A scripted agent that comes with this program works in a scratch project under the real supervisor. Half-way,
/// agent and supervisor are killed without warning, as in a power cut. Then you see what is known, and how the work
/// comes back. Nothing is installed, nothing leaves this machine, and the session stays to be looked at.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno demo")]
pub struct Args {
    /// Do not pause between the parts
    #[arg(long)]
    pub fast: bool,
    /// Be the agent
    #[arg(long, hide = true)]
    pub play: bool,
    /// Be the agent that comes back
    #[arg(long, hide = true, value_name = "ID")]
    pub resumed: Option<String>,
}

/// Runs `segno demo`.
///
/// # Errors
/// If the demonstration cannot be given.
pub fn run(context: &Context, args: &Args) -> Outcome {
    if args.play {
        return play(args);
    }
    let show = Show { context, fast: args.fast };
    let directory = context.paths.state.join("demo");
    files::private_directory(&directory)
        .map_err(|why| CommandError::io(format_args!("cannot make {}", directory.display()), why))?;
    let project = tempfile::Builder::new()
        .prefix("shop-")
        .tempdir_in(&directory)
        .map_err(|why| CommandError::io(format_args!("cannot write to {}", directory.display()), why))?
        .keep();
    show.part("1", "An agent starts to work, recorded by segno.");
    show.say("in a scratch project:");
    show.say(&project.display().to_string());
    let mut driver = start(context, &project, args.fast, None)?;
    let (ctx, session) = match show.wait_for_session(&project) {
        Ok(found) => found,
        Err(why) => {
            let _ = driver.kill();
            let _ = driver.wait();
            return Err(why);
        }
    };
    let state = show.follow(&ctx, session);
    show.part("2", "Half-way through a call, the power goes: kill -9 for agent and segno.");
    let _ = driver.kill();
    let _ = driver.wait();
    let state = state?;
    ctx.engine.kill_run(&state);
    drop(ctx);
    show.breathe();
    show.part("3", "Somebody comes back and types any segno command.");
    // Opening the store is what finds the dead: there is no daemon.
    let ctx = CommandContext::open(context)?;
    let state = ctx.load(session)?;
    show.found(&ctx, &state)?;
    drop(ctx);
    show.part("4", "segno resume: the agent goes on, and is told what is in doubt.");
    let mut driver = start(context, &project, args.fast, Some(session))?;
    let ctx = CommandContext::open(context)?;
    let state = show.follow_to_the_end(&ctx, &state);
    let _ = driver.wait();
    show.back(&ctx, &state?)?;
    ctx.finish();
    Ok(())
}

struct Show<'a> {
    context: &'a Context,
    fast: bool,
}

impl Show<'_> {
    fn part(&self, number: &str, text: &str) {
        let text = Text::new().painted(Meaning::Strong, format!("{number}. {text}"));
        self.context.printer.talk(text);
        self.breathe();
    }

    fn say(&self, text: &str) {
        self.context.printer.talk(Text::new().painted(Meaning::Dim, format!("   {text}")));
    }

    fn breathe(&self) {
        if !self.fast {
            std::thread::sleep(BREATH);
        }
    }

    /// The store and the session that the background process has made.
    fn wait_for_session(&self, project: &Path) -> Outcome<(CommandContext<'_>, SessionId)> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Ok(ctx) = CommandContext::open(self.context)
                && let Ok(segno_engine::Choice::One(session)) = ctx.engine.open_session(project)
            {
                return Ok((ctx, session));
            }
            if Instant::now() >= until {
                return Err(CommandError::failure("no_demo", "the demonstration's session did not appear"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Shows what happens until a call is open that will not end.
    fn follow(&self, ctx: &CommandContext<'_>, session: SessionId) -> Outcome<State> {
        let is_there = |state: &State| state.calls.total >= 3 && state.calls.open.len() == 1;
        let (state, mut view) = self.follow_until(ctx, session, 0, "did not get to work", &is_there)?;
        view.show_open();
        self.breathe();
        Ok(state)
    }

    /// Shows what happens until the session is completed.
    fn follow_to_the_end(&self, ctx: &CommandContext<'_>, before: &State) -> Outcome<State> {
        let is_there = |state: &State| state.status == Status::Completed && state.driver.is_none();
        let (state, _) =
            self.follow_until(ctx, before.session_id, before.seq, "did not come back", &is_there)?;
        Ok(state)
    }

    /// Shows what happens after an event, until the session is as it should be and all of it was shown.
    fn follow_until(
        &self,
        ctx: &CommandContext<'_>,
        session: SessionId,
        mut after: u64,
        failed: &str,
        is_there: &dyn Fn(&State) -> bool,
    ) -> Outcome<(State, super::run::View<'_>)> {
        let until = Instant::now() + PATIENCE;
        let mut view = super::run::View::new(self.context);
        loop {
            let rows = ctx.engine.events(session, after, 100)?;
            for row in rows {
                if let segno_engine::EventRow::Whole(stored) = row {
                    after = stored.seq;
                    if let Ok(event) = stored.event() {
                        view.show(stored.seq, stored.at, &event);
                    }
                }
            }
            let state = ctx.load(session)?;
            if is_there(&state) && state.seq == after {
                return Ok((state, view));
            }
            if Instant::now() >= until {
                let why = format!("the demonstration's agent {failed}");
                return Err(CommandError::failure("no_demo", why));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn back(&self, ctx: &CommandContext<'_>, state: &State) -> Outcome {
        let printer = &self.context.printer;
        printer.talk(
            Text::new()
                .plain("   session ")
                .painted(Meaning::Dim, short(state.session_id))
                .plain(" is ")
                .painted(Meaning::Done, "completed")
                .plain(format!("   {} runs, {} calls", state.counts.runs, state.calls.total)),
        );
        let id = ctx.engine.ending(state.session_id);
        printer.hint(format!("segno show {id} --tools   segno undo --session {id}"));
        if printer.is_json() {
            printer.json(&segno_engine::core::Summary::from(state))?;
        }
        Ok(())
    }

    fn found(&self, ctx: &CommandContext<'_>, state: &State) -> Outcome {
        let printer = &self.context.printer;
        if state.status != Status::Interrupted {
            let why = format!("the session should be interrupted, but it is {}", state.status);
            return Err(CommandError::failure("no_demo", why).hint("segno doctor"));
        }
        let reason = state.reason.as_ref().map_or("", |reason| reason.what.as_str());
        printer.talk(
            Text::new()
                .plain("   session ")
                .painted(Meaning::Dim, short(state.session_id))
                .plain(" was ")
                .painted(Meaning::Lost, format!("interrupted: {reason}")),
        );
        let calls = &state.calls;
        let newest = segno_engine::Page::newest(1);
        let files = ctx.engine.page(state.session_id, segno_engine::core::List::Files, &newest)?.total;
        printer.talk(
            Text::new()
                .plain("   ")
                .painted(Meaning::Done, format!("{} calls done", calls.completed))
                .plain(format!("   {files} files written   every event is in the journal")),
        );
        for call in calls.in_doubt.values() {
            let doubt = Text::new().plain("   ").painted(Meaning::Waiting, "1 call in doubt");
            printer.talk(doubt.plain(format!("   {} {}", call.tool, call.input)));
            self.say("                  it began, and nobody knows whether it ended");
        }
        self.breathe();
        Ok(())
    }
}

/// Starts `segno run` in the background with this program as its agent.
fn start(
    context: &Context,
    project: &Path,
    fast: bool,
    resumed: Option<SessionId>,
) -> Outcome<std::process::Child> {
    let own = std::env::current_exe().map_err(|why| CommandError::io("cannot find this program", why))?;
    let mut environment = Environment::inherited();
    let agent = description(&own, fast);
    environment.retain(|(name, _)| name != variable_of("agents").as_str());
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        // Beside the project: it is nobody's work.
        .open(project.with_extension("log"))
        .map_err(|why| CommandError::io("cannot write the demonstration's log", why))?;
    let mut arguments: Vec<std::ffi::OsString> = match resumed {
        Some(session) => vec!["resume".into(), session.to_string().into(), "--from".into(), "live".into()],
        None => ["run", "--agent", "demo", "--topic", "demo: a shop", "--prompt", "Build a small shop."]
            .map(Into::into)
            .into(),
    };
    arguments.extend(["--project".into(), project.into()]);
    if let Some(store) = &context.global.store {
        arguments.extend(["--store".into(), store.into()]);
    }
    let agents = (variable_of("agents").into(), agent.into());
    start_background(&own, &arguments, Stdio::null(), log, None, &environment, &[agents])
        .map_err(|why| CommandError::io("cannot start the demonstration", why))
}

/// The scripted agent as the configuration describes agents.
fn description(own: &Path, fast: bool) -> String {
    let own = toml::Value::String(own.display().to_string());
    let pace = if fast { ", \"--fast\"" } else { "" };
    format!(
        r#"[demo]
command = [{own}, "demo", "--play"{pace}]
prompt = "stdin"
resume = ["--resumed", "{{id}}"]
format = "json"
[[demo.rules]]
kind = "session_started"
when = {{ "$.type" = "hello" }}
fields = {{ native_id = "$.conversation" }}
[[demo.rules]]
kind = "text"
when = {{ "$.type" = "says" }}
fields = {{ text = "$.text" }}
[[demo.rules]]
kind = "tool_started"
when = {{ "$.type" = "call" }}
fields = {{ call_id = "$.id", tool = "$.tool", input = "$.input" }}
[[demo.rules]]
kind = "tool_finished"
when = {{ "$.type" = "done" }}
fields = {{ call_id = "$.id", output = "$.output" }}
[[demo.rules]]
kind = "file_changed"
when = {{ "$.type" = "file" }}
fields = {{ path = "$.path", change = "$.change" }}
[[demo.rules]]
kind = "result"
when = {{ "$.type" = "end" }}
fields = {{ text = "$.text" }}
"#
    )
}

/// The agent's part: it really writes files, and then begins something that it will not live to end.
fn play(args: &Args) -> Outcome {
    let pause = || std::thread::sleep(Duration::from_millis(if args.fast { 5 } else { 400 }));
    let print = |value: serde_json::Value| -> Outcome {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{value}")
            .and_then(|()| out.flush())
            .map_err(|why| CommandError::io("cannot print", why))
    };
    use serde_json::json;
    if let Some(conversation) = &args.resumed {
        print(json!({ "type": "hello", "conversation": conversation }))?;
        print(
            json!({ "type": "says", "text": "The migration is in doubt. I look before I do anything again." }),
        )?;
        pause();
        let input = json!({ "command": "./migrate --status" });
        print(json!({ "type": "call", "id": "call-4", "tool": "Bash", "input": input }))?;
        pause();
        print(json!({ "type": "done", "id": "call-4", "output": "not applied" }))?;
        let input = json!({ "command": "./migrate --production" });
        print(json!({ "type": "call", "id": "call-5", "tool": "Bash", "input": input }))?;
        pause();
        print(json!({ "type": "done", "id": "call-5", "output": "applied" }))?;
        return print(json!({ "type": "end", "text": "The shop is open." }));
    }
    print(json!({ "type": "hello", "conversation": "demo-1" }))?;
    print(json!({ "type": "says", "text": "I will build a small shop: a page, then its database." }))?;
    pause();
    for (id, path, content) in [
        ("call-1", "index.html", "<h1>The shop</h1>\n"),
        ("call-2", "schema.sql", "create table orders (id integer primary key);\n"),
    ] {
        print(json!({ "type": "call", "id": id, "tool": "Write", "input": { "file_path": path } }))?;
        pause();
        std::fs::write(path, content)
            .map_err(|why| CommandError::io(format_args!("cannot write {path}"), why))?;
        print(json!({ "type": "file", "path": path, "change": "created" }))?;
        print(json!({ "type": "done", "id": id, "output": format!("wrote {} bytes", content.len()) }))?;
        pause();
    }
    print(json!({ "type": "says", "text": "Now I migrate the database." }))?;
    let input = json!({ "command": "./migrate --production" });
    print(json!({ "type": "call", "id": "call-3", "tool": "Bash", "input": input }))?;
    std::thread::sleep(PATIENCE * 2);
    print(json!({ "type": "end", "text": "The shop is open." }))
}
