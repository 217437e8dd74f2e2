//! `segno agent`: who works, and what each one remembers.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::Command as Act;

use super::args::TextSource;
use super::doing::look;
use super::doing::record;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::table::Column;
use crate::output::table::Table;

/// The largest state that is read.
const LIMIT: u64 = 1 << 20;

/// Record which agent works, and its state
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno agent switch reviewer")]
pub struct Args {
    /// What to do; without it, lists the agents
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with agents.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Another agent takes over
    Switch {
        /// Its name
        name: String,
    },
    /// Keep the state of an agent
    State {
        /// Its name
        name: String,
        /// Its state as JSON, `-` for standard input, or @FILE
        #[arg(value_name = "JSON|-|@FILE", allow_hyphen_values = true)]
        state: TextSource,
        /// The agent is not active any more
        #[arg(long)]
        inactive: bool,
    },
    /// List the agents
    List,
}

/// Runs `segno agent`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None | Some(Command::List) => list(context),
        Some(Command::Switch { name }) => {
            let said = format!("{name} works now");
            record(context, vec![Act::SwitchAgent { to: name.clone() }], |_| said.into())
        }
        Some(Command::State { name, state, inactive }) => {
            let state = json_of(&state.read(LIMIT)?);
            let said = format!("state of {name} recorded");
            let command = Act::SetAgentState { agent: name.clone(), active: !inactive, state };
            record(context, vec![command], |_| said.into())
        }
    }
}

/// JSON, or words that are none, which are kept as a text.
pub(super) fn json_of(text: &str) -> serde_json::Value {
    serde_json::from_str(text)
        .unwrap_or_else(|_| serde_json::Value::String(text.trim_end_matches('\n').to_owned()))
}

fn list(context: &Context) -> Outcome {
    let (_ctx, state) = look(context)?;
    if context.printer.is_json() {
        return context.printer.json(&serde_json::json!({ "current": state.agent, "agents": state.agents }));
    }
    if state.agents.is_empty() {
        context.printer.talk("no agents yet");
        return Ok(());
    }
    let mut table = Table::new([Column::left("agent"), Column::left(""), Column::left("state").elastic()]);
    for (name, mark) in &state.agents {
        let now = if state.agent.as_deref() == Some(name) {
            "works now"
        } else if mark.active {
            "active"
        } else {
            ""
        };
        let kept = if mark.state.is_null() { String::new() } else { mark.state.to_string() };
        table.row([name.clone(), now.to_owned(), kept]);
    }
    context.printer.table(&table)
}
