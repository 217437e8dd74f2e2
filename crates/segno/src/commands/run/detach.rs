//! `segno run --detach` and `segno loop --detach`: the same in a process that outlives the terminal.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use segno_engine::core::SessionId;
use segno_engine::run::start_background;
use serde_json::json;

use crate::command_context::BUSY;
use crate::config::env::Environment;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::files;

/// How long the background process may take to say which session it runs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Below the state directory: a directory for each run in the background, and how its name begins.
const DETACHED: &str = "detached";
const PREFIX: &str = "run-";

/// A run that goes on in the background.
pub(crate) struct Begun {
    /// Its session.
    pub(crate) session: SessionId,
    pid: u32,
    log: std::path::PathBuf,
}

/// Starts this program again in the background with the same command line, and says which session it runs.
pub(crate) fn detach(context: &Context) -> Outcome {
    let arguments = std::env::args_os().skip(1).collect();
    let Begun { session, pid, log } = in_background(context, arguments, stdin())?;
    let printer = &context.printer;
    if printer.is_json() {
        printer.json(&json!({ "session_id": session, "pid": pid, "log": log }))?;
    } else {
        printer.data(session.to_string())?;
        printer.talk(format!("runs in the background (pid {pid})"));
        printer.hint(format!("segno tail -f {session}   segno stop {session}"));
    }
    Ok(())
}

/// Starts this program in the background with a command line of `segno run` or `segno loop`, and waits until it says that its
/// session is there.
///
/// # Errors
/// If no session came of it: with the words and the exit code of the process in the background.
pub(crate) fn in_background(
    context: &Context,
    arguments: Vec<std::ffi::OsString>,
    stdin: Stdio,
) -> Outcome<Begun> {
    let own = std::env::current_exe().map_err(|why| CommandError::io("cannot find this program", why))?;
    let directory = context.paths.state.join(DETACHED);
    files::private_directory(&directory)
        .map_err(|why| CommandError::io(format_args!("cannot make {}", directory.display()), why))?;
    let folder = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempdir_in(&directory)
        .map_err(|why| CommandError::io(format_args!("cannot write to {}", directory.display()), why))?
        .keep();
    let (told, log) = (folder.join("session"), folder.join("log"));
    let open = |path: &Path| {
        std::fs::File::create(path)
            .map_err(|why| CommandError::io(format_args!("cannot write {}", path.display()), why))
    };
    let out = open(&log)?;
    let mut arguments: Vec<std::ffi::OsString> =
        arguments.into_iter().filter(|argument| argument != "--detach").collect();
    // The hidden flag must come before a command that is run as it is.
    let at = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    arguments.splice(at..at, ["--tell".into(), told.clone().into_os_string()]);
    let runtime = context.environment.non_empty("XDG_RUNTIME_DIR").map(Path::new);
    let mut child = start_background(&own, &arguments, stdin, out, runtime, &Environment::inherited(), &[])
        .map_err(|why| CommandError::io("cannot start the background process", why))?;
    let until = Instant::now() + PATIENCE;
    let (mut ended, mut warned) = (None, false);
    let session = loop {
        if let Some(session) = std::fs::read_to_string(&told).ok().and_then(|text| text.trim().parse().ok()) {
            break Some(session);
        }
        if let Some(status) = child.try_wait().ok().flatten() {
            ended = status.code();
            break None;
        }
        // It may wait for the store, however long that takes.
        let waits = std::fs::read_to_string(&log).is_ok_and(|said| said.contains(BUSY));
        if waits && !warned {
            context.printer.warn(BUSY);
            warned = true;
        }
        if Instant::now() >= until && !waits {
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let Some(session): Option<SessionId> = session else {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_dir_all(&folder);
        // Why it did not is what its own exit code says.
        let exit = ExitCode::ALL.iter().copied().find(|exit| Some(i32::from(exit.number())) == ended);
        let exit = exit.filter(|exit| *exit != ExitCode::Ok).unwrap_or(ExitCode::Failure);
        return Err(not_detached(exit, &said));
    };
    Ok(Begun { session, pid: child.id(), log })
}

/// Why there is no session: the error and the hints of the process in the background, or whatever it said.
fn not_detached(exit: ExitCode, said: &str) -> CommandError {
    let error = |why: &str| {
        let why = format!("the background process did not start a session: {why}");
        CommandError::new(exit, "not_detached", why)
    };
    let told = said.lines().rev().find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    if let Some(told) = told.as_ref().and_then(|told| told.get("error")) {
        let text = |name: &str| told.get(name).and_then(serde_json::Value::as_str);
        return text("hint").into_iter().fold(error(text("message").unwrap_or_default()), CommandError::hint);
    }
    let Some(why) = said.lines().find_map(|line| line.strip_prefix("error: ")) else {
        return error("it ended without a word").hint(said.trim().to_owned());
    };
    let hints = said.lines().filter_map(|line| line.trim_start().strip_prefix("hint: "));
    hints.fold(error(why), |error, hint| error.hint(hint))
}

/// Where standard input is a pipe or a file, it holds the prompt, and the background process reads it.
fn stdin() -> Stdio {
    if std::io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() }
}

/// In the background process, first of all: leaves the terminal, so that neither Ctrl-C nor a hang-up reaches it.
pub(crate) fn leave_terminal(tell: Option<&Path>) {
    if tell.is_some() {
        // Only the leader of a group cannot; a closing terminal's signal then stops the run politely.
        let _ = rustix::process::setsid();
    }
}

/// In the background process, in the end: nothing need be kept of a run that is recorded.
pub(crate) fn forget(tell: Option<&Path>) {
    let Some(folder) = tell.and_then(Path::parent) else { return };
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).and_then(|name| name.to_str().map(ToOwned::to_owned))
    };
    // Only what was made for it goes: the flag may name any place.
    let ours = name(folder.parent()).as_deref() == Some(DETACHED)
        && name(Some(folder)).is_some_and(|name| name.starts_with(PREFIX));
    if ours {
        let _ = std::fs::remove_file(folder.join("session"));
        let _ = std::fs::remove_file(folder.join("log"));
        let _ = std::fs::remove_dir(folder);
    }
}

/// In the background process: tells which session it runs.
pub(crate) fn tell(tell: Option<&Path>, session: SessionId) {
    if let Some(path) = tell {
        // Whoever waits for it is there now or never.
        let _ = files::replace_lazily(path, session.to_string().as_bytes());
    }
}
