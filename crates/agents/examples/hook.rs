//! Prints what a hook payload means: `hook AGENT FILE [DENY_REASON]`.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example is the edge: it may do I/O")]

use std::error::Error;

use segno_agents::Decision;
use segno_agents::by_name;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [agent, path, reason @ ..] = args.as_slice() else {
        return Err("usage: hook AGENT FILE [DENY_REASON]".into());
    };
    let report = by_name(agent).ok_or("unknown agent")?.hook(&std::fs::read(path)?)?;
    println!("{}", serde_json::to_string(&report)?);
    if let Some(reason) = reason.first() {
        println!("{}", report.respond(&Decision::Deny(reason.clone())).unwrap_or_default());
    }
    Ok(())
}
