//! `segno memory`: what was looked up, and a cache.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::Command as Act;
use segno_engine::core::Fact;
use segno_engine::core::List;
use segno_engine::core::event::MemoryUse;
use segno_engine::memory::Handing;
use segno_engine::memory::MemoryCommand;
use serde_json::json;

use super::args::Page;
use super::args::TextSource;
use super::doing::look;
use super::doing::record;
use super::lists;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::config::env::Environment;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::sanitize;
use crate::output::style::Meaning;
use crate::output::units;

/// The largest text that is read.
const LIMIT: u64 = 16 << 20;

/// Record memory queries, and keep a cache
///
/// Calls of the tools that memory.tools and memory.lookups name are recorded automatically, for every agent.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno memory cache set api_version '\"v2\"'\n  segno memory find deploy staging\n  \
    segno memory sync --bank sessions -- sh -c 'cat >> sessions.jsonl'"
)]
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
    /// Search what memories have answered, in the sessions of this project
    Find {
        /// Words of the question, all of them
        #[arg(required = true)]
        words: Vec<String>,
        /// Show at most this many
        #[arg(long, value_name = "N", default_value = "10")]
        limit: usize,
    },
    /// Hand ended sessions to an external memory, each once
    ///
    /// The command is run for each of them, with the session as a JSON document on its standard input, and the names in
    /// SEGNO_MEMORY_BANK and SEGNO_MEMORY_SESSION. A session for which it exits with 0 is not handed to the same bank
    /// again, even if two of these commands run at once; one during which segno itself is killed is handed over again.
    /// The document holds no secrets that the record does not hold.
    Sync(SyncArgs),
    /// Keep small values for the session
    Cache {
        /// What to do
        #[command(subcommand)]
        command: CacheCommand,
    },
}

/// What is handed to whom.
#[derive(ClapArgs, Clone, Debug)]
pub struct SyncArgs {
    /// The bank: sessions are handed to each once
    #[arg(long, value_name = "NAME")]
    pub bank: String,
    /// Show which sessions would be handed over, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// At most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// The command that takes a session
    #[arg(value_name = "COMMAND", last = true, required_unless_present = "dry_run")]
    pub command: Vec<String>,
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
        Some(Command::Find { words, limit }) => find(context, &words.join(" "), *limit),
        Some(Command::Sync(args)) => sync(context, args),
    }
}

fn find(context: &Context, words: &str, limit: usize) -> Outcome {
    let ctx = CommandContext::open_to_look_if_any(context)?;
    let project = context.project.root.to_string_lossy().into_owned();
    let found = ctx.as_ref().map(|ctx| ctx.engine.remembered(&project, words, limit)).transpose()?;
    let found = found.unwrap_or_default();
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&json!({ "found": found }));
    }
    if found.is_empty() {
        return printer.data("no memory was asked that in this project");
    }
    for one in &found {
        let source = one.source.as_deref().unwrap_or("memory");
        let head = format!("{}  {}: {}", short(one.session_id), source, one.query);
        printer.data(Text::new().painted(Meaning::Dim, sanitize::line(&head).into_owned()))?;
        for line in sanitize::block(&one.result).lines() {
            printer.data(format!("  {line}"))?;
        }
    }
    if let Some(ctx) = &ctx {
        ctx.finish();
    }
    Ok(())
}

fn sync(context: &Context, args: &SyncArgs) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let printer = &context.printer;
    let mut sessions = ctx.engine.sessions_to_sync(&args.bank)?;
    sessions.truncate(args.limit.unwrap_or(usize::MAX));
    if args.dry_run {
        if printer.is_json() {
            return printer.json(&json!({ "bank": args.bank, "dry_run": true, "sessions": sessions }));
        }
        for id in &sessions {
            printer.data(id.to_string())?;
        }
        return Ok(());
    }
    let environment = Environment::inherited();
    let directory =
        std::env::current_dir().map_err(|why| CommandError::io("there is no current directory", why))?;
    let command = MemoryCommand { words: &args.command, environment: &environment, directory: &directory };
    let mut handed = Vec::new();
    for id in &sessions {
        match ctx.engine.sync_memory(*id, &args.bank, &command)? {
            Handing::Taken => handed.push(*id),
            Handing::TakenBefore => {}
            Handing::Refused(why) => {
                let text = format!("{} was not handed to {}: {why}", short(*id), args.bank);
                let before = units::things(handed.len() as u64, "session");
                return Err(CommandError::failure("not_synced", text)
                    .hint(format!("{before} before it; they are remembered")));
            }
        }
    }
    if printer.is_json() {
        return printer.json(&json!({ "bank": args.bank, "dry_run": false, "sessions": handed }));
    }
    printer.data(format!("{} handed to {}", units::things(handed.len() as u64, "session"), args.bank))
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
