//! Prints what an agent's output means: `parse AGENT FILE [EXIT_CODE]`.
//!
//! One event per line as JSON, then the outcome. A negative exit code is a signal.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example is the edge: it may do I/O")]

use std::error::Error;
use std::fs::File;
use std::io::Read;

use segno_agents::Envelope;
use segno_agents::ExitInfo;
use segno_agents::ReaderOptions;
use segno_agents::by_name;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [agent, path, exit @ ..] = args.as_slice() else {
        return Err("usage: parse AGENT FILE [EXIT_CODE]".into());
    };
    let agent = by_name(agent).ok_or("unknown agent")?;
    let exit = match exit.first().map(|code| code.trim().parse::<i32>()).transpose()? {
        Some(signal) if signal < 0 => ExitInfo::signal(-signal),
        Some(code) => ExitInfo::code(code),
        None => ExitInfo::code(0),
    };
    let mut reader = agent.reader(&ReaderOptions::default());
    let mut failed = None;
    let mut print = |envelope: Envelope| match serde_json::to_string(&envelope) {
        Ok(line) => println!("{line}"),
        Err(error) => failed = Some(error),
    };
    let mut file = File::open(path)?;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let length = file.read(&mut chunk)?;
        if length == 0 {
            break;
        }
        reader.feed(&chunk[..length], &mut print);
    }
    let outcome = reader.finish(&exit, &mut print);
    let mut last = serde_json::to_value(&outcome)?;
    last["kind"] = "outcome".into();
    last["native_id"] = outcome.native_id.into();
    println!("{last}");
    failed.map_or(Ok(()), |error| Err(error.into()))
}
