//! A scripted model server as a program.
//!
//! usage: scripted-model SCRIPT.json [--seconds N] [--log FILE]
//!
//! Prints its address, then serves until its stdin is closed, its time is over (600 seconds), or it is killed. The log
//! gets one line of JSON per request when the server ends.

use std::io::Read;
use std::io::Write;
use std::io::{self};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use segno_testkit::model::Limits;
use segno_testkit::model::Model;
use segno_testkit::model::Script;

fn main() -> ExitCode {
    match serve(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // With stderr gone there is nobody to tell.
            let _ = writeln!(io::stderr(), "scripted-model: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(mut args: impl Iterator<Item = String>) -> Result<(), Box<dyn std::error::Error>> {
    let (mut script, mut log, mut limits) = (None, None, Limits::default());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => {
                let seconds = args.next().ok_or("--seconds needs a number")?;
                limits.lifetime = Duration::from_secs(seconds.parse()?);
            }
            "--log" => log = Some(args.next().ok_or("--log needs a file")?),
            _ => script = Some(arg),
        }
    }
    let script = script.ok_or("usage: scripted-model SCRIPT.json [--seconds N] [--log FILE]")?;
    let text = std::fs::read_to_string(&script).map_err(|error| format!("{script}: {error}"))?;
    let script: Script = serde_json::from_str(&text).map_err(|error| format!("{script}: {error}"))?;
    let model = Model::start_with(script, limits)?;
    writeln!(io::stdout(), "{}", model.url())?;
    let (closed, stdin) = mpsc::channel();
    std::thread::spawn(move || {
        // An error on stdin is an end of it too; the receiver may be gone by then.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        let _ = closed.send(());
    });
    // Either way it is time to go.
    let _ = stdin.recv_timeout(limits.lifetime);
    if let Some(log) = log {
        let lines: Result<Vec<String>, _> = model
            .requests()
            .iter()
            .map(|request| serde_json::to_string(request).map(|line| line + "\n"))
            .collect();
        std::fs::write(&log, lines?.concat()).map_err(|error| format!("{log}: {error}"))?;
    }
    Ok(())
}
