//! `segno memory`: what was looked up, and a cache.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::Command as Act;
use segno_engine::core::Fact;
use segno_engine::core::List;
use segno_engine::core::event::MemoryUse;

use super::args::Page;
use super::args::TextSource;
use super::doing::look;
use super::doing::record;
use super::lists;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// The largest text that is read.
const LIMIT: u64 = 16 << 20;

/// Record what was asked of memory, and keep a cache
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno memory cache set api_version '\"v2\"'")]
pub struct Args {
    /// What to do; without it, lists what was asked
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with memory.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// List what was asked
    List {
        /// Which page
        #[command(flatten)]
        page: Page,
    },
    /// Record a question that was put to memory
    Query(Use),
    /// Record something that was looked up in memory
    Lookup(Use),
    /// Keep small values for the session
    Cache {
        /// What to do
        #[command(subcommand)]
        command: CacheCommand,
    },
}

/// A use of memory.
#[derive(ClapArgs, Clone, Debug)]
pub struct Use {
    /// What was asked
    pub query: String,
    /// What came back: a text, `-` for standard input, or @FILE
    #[arg(long, value_name = "TEXT|-|@FILE", allow_hyphen_values = true)]
    pub result: Option<TextSource>,
    /// Which memory was asked
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
}

/// What to do with the cache.
#[derive(Clone, Debug, Subcommand)]
pub enum CacheCommand {
    /// Keep a value
    Set {
        /// Its key
        key: String,
        /// The value as JSON, `-` for standard input, or @FILE
        #[arg(value_name = "JSON|-|@FILE", allow_hyphen_values = true)]
        value: TextSource,
    },
    /// Print a value
    Get {
        /// Its key
        key: String,
    },
    /// Forget a value
    Rm {
        /// Its key
        key: String,
    },
}

/// Runs `segno memory`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None => lists::show(context, None, List::Memory, &Page::default()),
        Some(Command::List { page }) => lists::show(context, None, List::Memory, page),
        Some(Command::Query(asked)) => ask(context, MemoryUse::Query, asked),
        Some(Command::Lookup(asked)) => ask(context, MemoryUse::Lookup, asked),
        Some(Command::Cache { command }) => cache(context, command),
    }
}

fn ask(context: &Context, usage: MemoryUse, asked: &Use) -> Outcome {
    let result = asked.result.as_ref().map(|source| source.read(LIMIT)).transpose()?;
    let fact = Fact::MemoryUsed {
        usage,
        source: asked.source.clone(),
        query: asked.query.as_str().into(),
        result: result.map(Into::into),
    };
    record(context, vec![fact], |_| "recorded".into())
}

fn cache(context: &Context, command: &CacheCommand) -> Outcome {
    match command {
        CacheCommand::Set { key, value } => {
            let value = super::agent::json_of(&value.read(LIMIT)?);
            record(context, vec![Act::SetCache { key: key.clone(), value }], |_| "kept".into())
        }
        CacheCommand::Rm { key } => {
            record(context, vec![Act::RemoveCache { key: key.clone() }], |_| "forgotten".into())
        }
        CacheCommand::Get { key } => {
            let (_ctx, state) = look(context)?;
            match state.cache.get(key) {
                Some(value) => context.printer.json(value),
                None => Err(CommandError::new(
                    ExitCode::Refused,
                    "unknown_item",
                    format!("no cache entry {key} in this session"),
                )
                .hint("segno show --memory")),
            }
        }
    }
}
