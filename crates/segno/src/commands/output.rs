//! `segno output`: results kept with the session.

use clap::Args as ClapArgs;
use clap::Subcommand;
use clap::ValueEnum;
use segno_engine::Item;
use segno_engine::core::Command as Act;
use segno_engine::core::List;
use segno_engine::core::event::OutputKind;
use segno_engine::core::rows::OutputRow;

use super::args::Page;
use super::args::TextSource;
use super::doing::look;
use super::doing::record;
use super::lists;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::units;

/// The largest output that is kept.
const LIMIT: u64 = 64 << 20;

/// What an output is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Text for people
    #[default]
    Document,
    /// Text for machines
    Code,
    /// Not finished
    Partial,
}

/// Keep results with the session
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno output set plan @plan.md --kind document")]
pub struct Args {
    /// What to do; without it, lists the outputs
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with outputs.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Keep a result under a name
    Set {
        /// The name
        name: String,
        /// The text, `-` for standard input, or @FILE
        #[arg(value_name = "TEXT|-|@FILE", allow_hyphen_values = true)]
        content: TextSource,
        /// What it is
        #[arg(long, value_enum, default_value_t)]
        kind: Kind,
    },
    /// List the names
    List,
    /// Print a result as it was kept
    Get {
        /// The name
        name: String,
    },
}

/// Runs `segno output`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None | Some(Command::List) => list(context),
        Some(Command::Set { name, content, kind }) => {
            let kind = match kind {
                Kind::Document => OutputKind::Document,
                Kind::Code => OutputKind::Code,
                Kind::Partial => OutputKind::Partial,
            };
            let text = content.read(LIMIT)?;
            let said = format!("output {name}   {}", units::bytes(text.len() as u64));
            record(
                context,
                vec![Act::RecordOutput { name: name.clone(), kind, content: text.into() }],
                |_| said.into(),
            )
        }
        Some(Command::Get { name }) => get(context, name),
    }
}

/// What a rollback took back is in the record, and is no output any more.
fn list(context: &Context) -> Outcome {
    let (ctx, state) = look(context)?;
    let is_there = |item: &Item| state.outputs.contains_key(&item.key);
    lists::show_some(&ctx, state.session_id, List::Outputs, &Page::default(), is_there)
}

fn get(context: &Context, name: &str) -> Outcome {
    let (ctx, state) = look(context)?;
    let missing = || {
        CommandError::new(ExitCode::Refused, "unknown_item", format!("no output {name} in this session"))
            .hint("segno output list")
    };
    if !state.outputs.contains_key(name) {
        return Err(missing());
    }
    let items = ctx.engine.items(state.session_id, List::Outputs)?;
    let item = items.into_iter().find(|item| item.key == name).ok_or_else(missing)?;
    let row: OutputRow = item.row();
    let text = row.content.ok_or_else(|| {
        CommandError::failure("session_corrupted", format!("the output {name} cannot be read"))
    })?;
    let whole = ctx.engine.whole(&text)?;
    if context.printer.is_json() {
        return context
            .printer
            .json(&serde_json::json!({ "name": name, "kind": row.kind, "content": whole }));
    }
    context.printer.raw(whole.as_bytes())
}
