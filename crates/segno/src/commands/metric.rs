//! `segno metric`: numbers kept with the session.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::Command as Act;
use segno_engine::core::event::Metric;

use super::doing::look;
use super::doing::record;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::table::Column;
use crate::output::table::Table;

/// Keep numbers with the session
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno metric set test_coverage 87.5")]
pub struct Args {
    /// What to do; without it, lists the metrics
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with metrics.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Set a metric to a number, true or false
    Set {
        /// The name
        name: String,
        /// The value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// List the metrics
    List,
}

/// Runs `segno metric`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None | Some(Command::List) => list(context),
        Some(Command::Set { name, value }) => {
            let metric = match value.as_str() {
                "true" => Metric::Flag(true),
                "false" => Metric::Flag(false),
                number => Metric::Number(number.trim_end_matches('%').trim().parse().map_err(|_| {
                    CommandError::usage(format!("a metric is a number, true or false, not {value}"))
                        .hint("segno note TEXT   keeps words")
                })?),
            };
            let said = format!("metric {name} = {value}");
            record(context, vec![Act::SetMetric { name: name.clone(), value: metric }], |_| said.into())
        }
    }
}

fn list(context: &Context) -> Outcome {
    let (_ctx, state) = look(context)?;
    if context.printer.is_json() {
        return context.printer.json(&state.metrics);
    }
    if state.metrics.is_empty() {
        context.printer.talk("no metrics yet");
        return Ok(());
    }
    let mut table = Table::new([Column::left("metric"), Column::right("value")]);
    for (name, value) in &state.metrics {
        let value = match value {
            Metric::Flag(flag) => flag.to_string(),
            Metric::Number(number) => number.to_string(),
        };
        table.row([name.clone(), value]);
    }
    context.printer.table(&table)
}
