//! Two processes, one session: an *initializer* begins work and pauses it, a *worker* that knows nothing but the
//! session's id goes on and finishes it.
//!
//! ```text
//! cargo run -p segno-engine --example initializer_worker                       both, in a temporary directory
//! cargo run -p segno-engine --example initializer_worker -- initializer DIR    begins, prints the id
//! cargo run -p segno-engine --example initializer_worker -- worker DIR ID      goes on, prints what came of it
//! ```
//!
//! Nothing passes between the two but the id. Whatever the initializer was told is done is on disk, so it may be
//! killed at any moment, and the worker may start a week later.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::process::ExitCode;

use segno_engine::SessionManager;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] => both(),
        ["initializer", folder] => initializer(Path::new(folder)).and_then(|id| say(&id)),
        ["worker", folder, id] => worker(Path::new(folder), id).and_then(|line| say(&line)),
        _ => Err("want nothing, `initializer DIR` or `worker DIR ID`".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // If even that cannot be said, the exit code has to do.
            let _ = writeln!(std::io::stderr(), "{why}");
            ExitCode::FAILURE
        }
    }
}

/// Begins a session of two phases' work, and pauses it.
fn initializer(folder: &Path) -> Outcome<String> {
    let mut manager = SessionManager::at(folder)?;
    manager.create(Some("spec"), Some("analyze"), Some(50_000))?;
    manager.add_artifact("notes.md", "created", None)?;
    manager.record_tokens(12_000)?;

    // Each phase ends with a checkpoint and a fresh session.yaml.
    manager.advance_phase("implement")?;
    manager.add_artifact("src/boats.rs", "created", None)?;
    if let Some(warning) = manager.record_tokens(29_000)? {
        // A context window is nearly full: time to hand over.
        manager.add_history("handing_over", None, Some(&format!("{} tokens used", warning.used)))?;
    }
    Ok(manager.pause()?.session_id.to_string())
}

/// Goes on where the initializer stopped, and finishes.
fn worker(folder: &Path, id: &str) -> Outcome<String> {
    let mut manager = SessionManager::at(folder)?;
    let Some(state) = manager.load(id)? else { return Err(format!("there is no session {id}").into()) };
    let phase = state.phase.clone().unwrap_or_default();
    manager.resume()?;

    // Ask before the expensive step, not after it.
    if !manager.can_continue(20_000)? {
        manager.extend_budget(25_000)?;
    }
    manager.record_tokens(20_000)?;
    manager.advance_phase("review")?;
    let files = manager.get_artifacts(None)?.len();
    let state = manager.complete()?;
    let (status, used, total) = (state.status, state.budget.tokens_used, state.budget.total_budget);
    let steps = manager.history()?.len();
    Ok(format!("{status} from {phase}: {used} of {total} tokens, {files} files, {steps} steps"))
}

/// Plays both parts, each in a process of its own.
fn both() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let me = std::env::current_exe()?;
    let id = heard(Command::new(&me).arg("initializer").arg(folder.path()))?;
    say(&format!("the initializer paused {id}"))?;
    let line = heard(Command::new(&me).arg("worker").arg(folder.path()).arg(&id))?;
    say(&format!("the worker {line}"))
}

fn heard(command: &mut Command) -> Outcome<String> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

fn say(line: &str) -> Outcome<()> {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
