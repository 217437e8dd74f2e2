//! Plays a script.

use std::io::BufRead;
use std::io::Read;
use std::io::Write;
use std::io::{self};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use regex::Regex;

use super::children::DETACH;
use super::children::PID_FILE;
use super::children::SETSID;
use super::children::{self};
use super::hooks;
use super::output;
use super::scene::Scene;
use super::signals;
use super::step::Step;

const IN_VAIN: u8 = 97;
const OUT_OF_TIME: u8 = 98;
const BAD_SCRIPT: u8 = 99;

/// The whole program.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match begin(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // With stderr gone there is nobody to tell.
            let _ = writeln!(io::stderr(), "scripted-agent: {error}");
            ExitCode::from(BAD_SCRIPT)
        }
    }
}

fn begin(mut args: Vec<String>) -> Result<u8, String> {
    if args.first().is_some_and(|arg| arg == DETACH) {
        // The child of this process is nobody's child as soon as we are gone.
        return children::start(&args[1..], true, false).map(|_| 0).map_err(|error| error.to_string());
    }
    if args.first().is_some_and(|arg| arg == SETSID) {
        args.remove(0);
        rustix::process::setsid().map_err(|error| format!("setsid: {error}"))?;
    }
    limit_life();
    if args.first().is_some_and(|arg| arg == PID_FILE) && args.len() > 1 {
        let pid = std::process::id().to_string();
        children::write_whole(Path::new(&args[1]), pid.as_bytes()).map_err(|error| error.to_string())?;
        args.drain(..2);
    }
    let (steps, args) = script(args)?;
    let scene = Scene::new(args);
    Ok(play(&scene, &steps)?.unwrap_or(0))
}

/// The steps, and the arguments that are left.
fn script(mut args: Vec<String>) -> Result<(Vec<Step>, Vec<String>), String> {
    let mut take = |name: &str| {
        let at = args.iter().position(|arg| arg == name).filter(|at| at + 1 < args.len())?;
        let value = args.remove(at + 1);
        args.remove(at);
        Some(value)
    };
    let text = if let Some(steps) = take("--steps") {
        steps
    } else {
        let file = take("--script").or_else(|| std::env::var("SCRIPTED_AGENT").ok());
        let file = file.ok_or("no script: give --script, --steps or SCRIPTED_AGENT")?;
        std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?
    };
    let steps = serde_json::from_str(&text).map_err(|error| format!("the script: {error}"))?;
    Ok((steps, args))
}

/// Whatever happens, nothing of this stays forever.
fn limit_life() {
    let seconds = std::env::var("SCRIPTED_AGENT_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds = Duration::from_secs(seconds.unwrap_or(120));
    std::thread::spawn(move || {
        std::thread::sleep(seconds);
        leave(OUT_OF_TIME);
    });
}

#[expect(
    clippy::exit,
    reason = "other threads may be stuck in the middle of anything: that is what they are for"
)]
fn leave(code: u8) {
    std::process::exit(i32::from(code));
}

/// Plays steps; the code if one of them ended the program.
fn play(scene: &Scene, steps: &[Step]) -> Result<Option<u8>, String> {
    for step in steps {
        if let Some(code) = one(scene, scene.fill(step)?)? {
            return Ok(Some(code));
        }
    }
    Ok(None)
}

fn one(scene: &Scene, step: Step) -> Result<Option<u8>, String> {
    let done = match step {
        Step::Print(text) => output::print((text + "\n").as_bytes()),
        Step::Stderr(text) => writeln!(io::stderr(), "{text}"),
        Step::Json(value) => output::print_json(&value),
        Step::Raw(text) => output::print(text.as_bytes()),
        Step::Hex(text) => output::print(&output::from_hex(&text)?),
        Step::Flood { bytes, line } => output::flood(bytes, line),
        Step::LongLine { bytes, shape } => output::long_line(bytes, shape, &scene.session),
        Step::CloseStdout => output::close_stdout(),
        Step::SleepMs(ms) => {
            std::thread::sleep(Duration::from_millis(ms));
            Ok(())
        }
        Step::Write { path, content } => children::write_whole(Path::new(&path), content.as_bytes()),
        Step::Append { path, content } => append(&path, &content),
        Step::WaitFor { path, seconds } => {
            match children::wait_for(Path::new(&path), Duration::from_secs(seconds)) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    // With stderr gone there is nobody to tell.
                    let _ = writeln!(io::stderr(), "scripted-agent: {error}");
                    return Ok(Some(IN_VAIN));
                }
                waited => waited,
            }
        }
        Step::Stdin(lines) => read_stdin(scene, lines),
        Step::Record(directory) => hooks::record(scene, &directory),
        Step::IfStdin { matches, steps } => {
            let regex = Regex::new(&matches).map_err(|error| error.to_string())?;
            return if regex.is_match(&scene.stdin()) { play(scene, &steps) } else { Ok(None) };
        }
        Step::Hook { event, payload, command, allowed, denied } => {
            let refused = hooks::call(scene, &event, &payload, command.as_deref());
            let refused = refused.map_err(|error| format!("hook {event}: {error}"))?;
            return play(scene, if refused { &denied } else { &allowed });
        }
        Step::Notify(payload) => hooks::notify(scene, &payload),
        Step::Spawn { how, steps, pid_file, keep_output, bare } => {
            let pid_file = pid_file.map(|file| scene.fill_text(&file)).transpose()?;
            children::spawn(how, &steps, pid_file.as_deref(), keep_output, bare)
        }
        Step::Ignore(list) => list.into_iter().try_for_each(signals::ignore),
        Step::OnSignal { signal, steps } => {
            let scene = scene.clone();
            signals::on(signal, move || match play(&scene, &steps) {
                Ok(None) => {}
                Ok(Some(code)) => leave(code),
                Err(_) => leave(BAD_SCRIPT),
            })
        }
        Step::Repeat { times, steps } => {
            for _ in 0..times {
                if let Some(code) = play(scene, &steps)? {
                    return Ok(Some(code));
                }
            }
            Ok(())
        }
        Step::Kill(signal) => signals::send(signal),
        Step::Exit(code) => return Ok(Some(code)),
    };
    done.map(|()| None).map_err(|error| error.to_string())
}

fn append(path: &str, content: &str) -> io::Result<()> {
    std::fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(content.as_bytes())
}

fn read_stdin(scene: &Scene, lines: u64) -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    let mut bytes = Vec::new();
    if lines == 0 {
        stdin.read_to_end(&mut bytes)?;
    }
    for _ in 0..lines {
        stdin.read_until(b'\n', &mut bytes)?;
    }
    scene.heard(&String::from_utf8_lossy(&bytes));
    Ok(())
}
