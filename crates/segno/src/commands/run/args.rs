//! The arguments of `segno run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::permissions::Manner;
use crate::commands::args::SessionRef;
use crate::commands::args::age;
use crate::commands::args::count;
use crate::commands::args::dollars;

/// Run an agent, recorded and watched
///
/// Starts the agent in a new session, or in the one that --session names. Everything it does is in the journal before
/// it is shown; its processes are all gone when it ends. Its final answer goes to standard output, everything else to
/// standard error. With --json, every event is a line, and the last line is the result. Without a prompt, on a
/// terminal, the agent's own interface gets the terminal, and what it does is recorded all the same; without a
/// terminal, standard input is the prompt.
#[derive(ClapArgs, Clone, Debug, Default)]
#[command(after_help = "Examples:\n  segno run --prompt \"make the tests pass\"\n  \
    segno run --agent codex --file task.md --max-turns 40\n  segno run --detach --work-item item.json\n  \
    segno run --agent claude\n  segno run -- make test")]
pub struct Args {
    /// Which agent: claude, codex, gemini, opencode, a NAME of [agents.NAME], or auto for the first one installed
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub agent: Option<String>,
    /// What the agent should do
    #[arg(long, short, value_name = "TEXT", conflicts_with = "file")]
    pub prompt: Option<String>,
    /// A file that says what the agent should do; - is standard input
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A work item as a tracker prints it (JSON); - is standard input
    #[arg(long, value_name = "FILE")]
    pub work_item: Option<PathBuf>,
    /// Give the terminal to the agent's own interface; the default without a prompt. With a prompt, it starts with that
    #[arg(long, short, conflicts_with_all = ["detach", "raw"])]
    pub interactive: bool,
    /// What the session is about, in a few words
    #[arg(long, value_name = "TEXT")]
    pub topic: Option<String>,
    /// Create a git branch of this name for a new session; {id} stands for its id
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Continue the conversation of this session in a new session
    #[arg(long, value_name = "ID")]
    pub continue_from: Option<SessionRef>,
    /// With --continue-from: continue a copy; the original conversation stays as it is
    #[arg(long, requires = "continue_from")]
    pub fork: bool,
    /// The model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Stop after this many turns
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u32>,
    /// Tokens the session may use, like 50k; using them up stops the run
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub budget: Option<u64>,
    /// Dollars the session may cost; reaching them stops the run
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub cost: Option<u64>,
    /// Tokens that this run may use; using more stops it
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub run_budget: Option<u64>,
    /// Dollars that this run may cost; costing more stops it
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub run_cost: Option<u64>,
    /// Stop after this much time in total, like 90s or 2h
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub timeout: Option<Duration>,
    /// Stop after this much time without a sign of life; 0s means never
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub silence: Option<Duration>,
    /// How long each step of stopping waits, in milliseconds
    #[arg(long, value_name = "MS")]
    pub grace: Option<u64>,
    /// Who decides about calls that the agent's own settings leave open
    #[arg(long, value_name = "WHO")]
    pub permissions: Option<Manner>,
    /// Do not let the agent report its calls before they run
    #[arg(long)]
    pub no_hooks: bool,
    /// Another argument for the agent; may be repeated
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// Restart the agent after a crash, at most N times (default: resume.attempts; 0: never)
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    pub auto_resume: Option<Option<u32>>,
    /// Run in the background, even after the terminal is closed
    #[arg(long, conflicts_with = "raw")]
    pub detach: bool,
    /// Print the agent's output unchanged
    #[arg(long)]
    pub raw: bool,
    /// Tell the session's id to this descriptor, for --detach
    #[arg(long, hide = true, value_name = "FILE")]
    pub tell: Option<PathBuf>,
    /// The session of the agent that asked for this run, where no variable tells
    #[arg(long, hide = true, value_name = "ID")]
    pub below: Option<segno_engine::core::SessionId>,
    /// Any command instead of an agent
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
