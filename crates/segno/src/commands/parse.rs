//! `segno parse`: a recorded stream of an agent, understood.

use std::io::Read;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use segno_engine::agents::Agent;
use segno_engine::agents::AgentEvent;
use segno_engine::agents::Envelope;
use segno_engine::agents::ExitInfo;
use segno_engine::agents::Outcome as Ended;
use segno_engine::agents::ReaderOptions;
use segno_engine::agents::plain::Plain;
use segno_engine::agents::{self};
use serde_json::json;

use crate::config::agents::settings;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::style::Symbol;
use crate::output::units;

/// Show what segno understands of an agent's recorded output
///
/// Reads what an agent printed and says what happened, as segno understands it: one event per line, and how the run
/// ended as the last line. With --json for programs. Nothing is recorded.
///
/// AGENT is claude (`--output-format stream-json`), codex (`exec --json`), gemini (`--output-format stream-json`),
/// opencode (`run --format json`), plain (any other command: every line is text), or the NAME of an [agents.NAME]
/// section of the configuration, whose rules then say what the lines mean.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno parse --agent claude stream.jsonl --json | tail -n 1")]
pub struct Args {
    /// The agent that printed it
    #[arg(long, value_name = "AGENT")]
    pub agent: String,
    /// The file, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The exit code of the process, negative for a signal, if it is known
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    pub exit: Option<i32>,
}

/// How much is read at once.
const CHUNK: usize = 256 << 10;

/// Runs `segno parse`.
///
/// # Errors
/// If the stream cannot be read, or the output cannot be written.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let agent = agent_called(context, &args.agent)?;
    let said = args.file.display();
    let io = |error| CommandError::io(format!("cannot read {said}"), error);
    let mut source: Box<dyn Read> = if args.file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(&args.file).map_err(io)?)
    };
    let mut reader = agent.reader(&ReaderOptions::default());
    let mut buffer = vec![0; CHUNK];
    let mut printed = Ok(());
    let mut print = |envelope: Envelope| {
        if printed.is_ok() {
            printed = event(context, &envelope);
        }
    };
    loop {
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => reader.feed(&buffer[..count], &mut print),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(io(error)),
        }
    }
    let exit = match args.exit {
        Some(code) if code < 0 => ExitInfo::signal(-code),
        Some(code) => ExitInfo::code(code),
        // A stream that was recorded to its end is taken to be from a process that ended well.
        None => ExitInfo::code(0),
    };
    let ended = reader.finish(&exit, &mut print);
    printed?;
    outcome(context, &ended)
}

/// The agent of that name: one that is described in the configuration, or one that segno knows.
fn agent_called(context: &Context, name: &str) -> Outcome<Box<dyn Agent>> {
    let config = context.config()?;
    let own = settings(&config.agents, name)
        .map_err(|why| CommandError::config("config_invalid", format!("agents {why}")))?;
    if let Some(plain) = own.plain {
        return Ok(Box::new(Plain::new(plain)));
    }
    agents::by_name(name).ok_or_else(|| {
        let described = config.agents.keys().map(String::as_str).filter(|name| !agents::NAMES.contains(name));
        let known: Vec<&str> = agents::NAMES.iter().copied().chain(described).collect();
        CommandError::usage(format!("no agent is called {name}")).hint(format!(
            "--agent {}   (or an [agents.NAME] section of the configuration)",
            known.join(" | ")
        ))
    })
}

fn event(context: &Context, envelope: &Envelope) -> Outcome {
    let printer = &context.printer;
    if printer.is_json() {
        let mut line =
            serde_json::to_string(envelope).map_err(|why| CommandError::internal(why.to_string()))?;
        line.push('\n');
        return printer.raw(line.as_bytes());
    }
    let value = serde_json::to_value(&envelope.event).unwrap_or_default();
    let kind = value.get("kind").and_then(serde_json::Value::as_str).unwrap_or("?").to_owned();
    let meaning = match &envelope.event {
        AgentEvent::ToolFailed { .. } | AgentEvent::Error { .. } | AgentEvent::ToolDenied { .. } => {
            Meaning::Lost
        }
        AgentEvent::Unknown { .. } | AgentEvent::Noise { .. } | AgentEvent::Oversized { .. } => {
            Meaning::Waiting
        }
        _ => Meaning::Plain,
    };
    let mut rest = value;
    if let Some(members) = rest.as_object_mut() {
        members.remove("kind");
    }
    let detail = match rest.get("text").and_then(serde_json::Value::as_str) {
        Some(text) => text.to_owned(),
        None => rest.to_string(),
    };
    let detail = segno_engine::core::text::shorten(&detail.replace('\n', " "), 200);
    printer.data(
        Text::new()
            .painted(Meaning::Dim, format!("{:>6}  ", envelope.line))
            .painted(meaning, format!("{kind:<18}  "))
            .plain(detail),
    )
}

fn outcome(context: &Context, ended: &Ended) -> Outcome {
    let printer = &context.printer;
    if printer.is_json() {
        let mut line = json!({ "kind": "outcome" });
        if let (Some(line), Ok(serde_json::Value::Object(members))) =
            (line.as_object_mut(), serde_json::to_value(ended))
        {
            line.extend(members);
        }
        // Programs look for these whether they are known or not.
        if let Some(line) = line.as_object_mut() {
            line.entry("native_id").or_insert(serde_json::Value::Null);
        }
        return printer.json_line(&line);
    }
    let word = serde_json::to_value(ended.outcome).unwrap_or_default();
    let good = ended.outcome == agents::OutcomeKind::Completed;
    let (symbol, meaning) = if good { (Symbol::Done, Meaning::Done) } else { (Symbol::Lost, Meaning::Lost) };
    printer.data(
        Text::new()
            .painted(
                meaning,
                format!("{} {}", printer.palette().symbol(symbol), word.as_str().unwrap_or("?")),
            )
            .plain(if Some(ended.reason.as_str()) == word.as_str() {
                String::new()
            } else {
                format!(": {}", ended.reason)
            })
            .plain(format!(
                "   {}   {}   {}   {} lines, {} not understood",
                units::things(ended.turns, "turn"),
                units::things(ended.tool_calls, "tool call"),
                units::tokens(ended.tokens.total()),
                ended.lines,
                ended.unparsed
            )),
    )
}
