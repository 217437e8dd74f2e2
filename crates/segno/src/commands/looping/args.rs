//! The arguments of `segno loop`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use clap::Subcommand;
use clap::ValueEnum;
use segno_engine::core::looping::parse_hours;

use crate::commands::args::OneSession;
use crate::commands::args::age;
use crate::commands::args::count;
use crate::commands::args::dollars;

/// Run an agent again and again until the work is done
///
/// Each iteration is one prompt and its answer. After it segno itself runs the commands that measure the work, and one
/// verdict follows, always in this order: your stop, the gate, caps, the circuit breaker, limits. Only the gate completes
/// the session: what the agent says alone never does. Every decision is in the journal before anything follows from it,
/// so a loop that is killed anywhere goes on with the same decisions: segno loop resume, or segno resume.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  segno loop --prompt \"make the tests pass\" --until 'cargo test'\n  \
    segno loop TASK.md --until 'make check' --max-iterations 20 --cost 5\n  \
    segno loop prp/login.md --workflow prp --until 'cargo test'\n  \
    segno loop --work 'br ready --json' --until 'cargo test' --branch 'segno/{item}'\n  \
    segno loop --work TODO.md --until 'make check'\n  segno loop status"
)]
pub struct Args {
    /// What to do with an existing loop; without it, begins one
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The loop to begin
    #[command(flatten)]
    pub begin: Box<BeginArgs>,
}

/// A loop to begin.
#[derive(ClapArgs, Clone, Debug, Default)]
pub struct BeginArgs {
    /// A file that says what is to be done
    #[arg(value_name = "FILE", conflicts_with = "prompt")]
    pub file: Option<PathBuf>,
    /// What is to be done
    #[arg(long, short, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Where work items come from: a command that lists them as JSON, like 'br ready --json', or a Markdown file with a
    /// checklist. Each item is worked on in a session of its own, one after another, under the caps of this loop
    #[arg(long, value_name = "COMMAND|FILE")]
    pub work: Option<String>,
    /// The command that shows one item, with {item} in it, to ask whether it is closed; known for br and bd. Without
    /// it, an item is closed when it is no longer listed
    #[arg(long, value_name = "COMMAND", requires = "work")]
    pub work_show: Option<String>,
    /// When no item is left, wait for new ones
    #[arg(long, requires = "work")]
    pub watch: bool,
    /// Let items that belong to one parent share a conversation
    #[arg(long, requires = "work")]
    pub share_conversation: bool,
    /// A command that measures the work; may be repeated. The work is done when all of them succeed, no test that they
    /// report fails, and the agent says that it is done (unless --no-signal)
    #[arg(long, value_name = "COMMAND")]
    pub until: Vec<String>,
    /// How long one such command may take
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub until_timeout: Option<Duration>,
    /// Files that the agent may not change, such as 'tests/**'; may be repeated. A change blocks the gate until you accept
    /// it
    #[arg(long, value_name = "PATTERN")]
    pub protect: Vec<String>,
    /// The workflow: simple, prp, tdflow, spec, go-team, or your own in .segno/workflows
    #[arg(long, short, value_name = "NAME", default_value = "simple")]
    pub workflow: String,
    /// Include the optional phases of the workflow, such as the review of prp
    #[arg(long)]
    pub optional_phases: bool,
    /// Which agent; several, in order, take over from each other at a limit instead of waiting
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub agent: Vec<String>,
    /// The model, for phases that name none
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Whether iterations share a conversation: same or fresh; otherwise as the workflow says
    #[arg(long, value_name = "HOW", value_enum)]
    pub context: Option<ContextWish>,
    /// Let the measurements alone decide: do not wait for the agent to say that it is done
    #[arg(long)]
    pub no_signal: bool,
    /// What the session is about, in a few words
    #[arg(long, value_name = "TEXT")]
    pub topic: Option<String>,
    /// Create a git branch of this name; {id} stands for the session's id. With --work every item has its own: {item}
    /// stands for the item's id
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Stop after this many iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_iterations: Option<u64>,
    /// Stop after this much time; waiting for limits does not count
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub max_time: Option<Duration>,
    /// Tokens the session may use, like 500k
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub budget: Option<u64>,
    /// Dollars the session may cost
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub cost: Option<u64>,
    /// Tokens that one iteration may use
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub iteration_budget: Option<u64>,
    /// Dollars that one iteration may cost
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub iteration_cost: Option<u64>,
    /// Iterations that may begin in an hour
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub calls_per_hour: Option<u64>,
    /// Tokens that may be used in an hour
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub tokens_per_hour: Option<u64>,
    /// Stop before this percentage of any of the plan's windows is used
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub stop_at: Option<u8>,
    /// Leave this percentage of the plan's week for other work
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub leave: Option<u8>,
    /// Work only in these hours, like 22:00-07:00
    #[arg(long, value_name = "FROM-TO", value_parser = hours)]
    pub hours: Option<(u16, u16)>,
    /// With several agents: the first one takes over again when its window is open
    #[arg(long, requires = "agent")]
    pub back: bool,
    /// At a limit, park the loop and exit instead of waiting here until it is over
    #[arg(long)]
    pub no_wait: bool,
    /// Stay where a person is needed: at a breakpoint until segno breakpoint continue, and when the breaker opens until one more
    /// iteration may be tried
    #[arg(long)]
    pub stay: bool,
    /// Work in the background, even after the terminal is closed
    #[arg(long, conflicts_with = "dry_run")]
    pub detach: bool,
    /// Tell the session's id to this file, for --detach
    #[arg(long, hide = true, value_name = "FILE")]
    pub tell: Option<PathBuf>,
    /// The session of the agent that asked for this loop, where no variable tells
    #[arg(long, hide = true, value_name = "ID")]
    pub below: Option<segno_engine::core::SessionId>,
    /// Show the plan and the first prompt, and start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not let the agent report its calls before they run
    #[arg(long)]
    pub no_hooks: bool,
    /// Not an agent: it is refused with what to do instead
    #[arg(last = true, value_name = "COMMAND", hide = true)]
    pub command_line: Vec<String>,
}

/// Whether iterations share a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ContextWish {
    /// One conversation.
    Same,
    /// A new one each time, with a brief.
    Fresh,
}

/// What to do with a loop that is there.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Write a commented workflow to start from, into .segno/workflows
    Init {
        /// Its name
        #[arg(value_name = "NAME", default_value = "mine")]
        name: String,
        /// The workflow to start from
        #[arg(long, value_name = "NAME", default_value = "prp")]
        from: String,
    },
    /// Show where a loop stands: phases, gate, breaker, budget, and what it waits for
    Status {
        /// The session
        #[command(flatten)]
        session: OneSession,
    },
    /// Resume a loop that is not running
    Resume {
        /// The session
        #[command(flatten)]
        session: OneSession,
        /// Resume all loops of the store that are due, one after another for each account
        #[arg(long, conflicts_with_all = ["id", "now", "more"])]
        due: bool,
        /// Resume it even before the time that it waits for
        #[arg(long)]
        now: bool,
        /// At a limit, park the loop and exit instead of waiting here
        #[arg(long)]
        no_wait: bool,
        /// What wakes it
        #[arg(long, hide = true, value_enum, default_value = "command")]
        by: WokenBy,
        /// Stay where a person is needed, as segno loop --stay does
        #[arg(long)]
        stay: bool,
        /// Allow this many iterations from here on, for a loop that has used up its own. One that may take more already keeps
        /// what it has, and one that cannot go on is allowed nothing
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        more: Option<u64>,
        /// Allow this much time from here on, in the same way
        #[arg(long, value_name = "TIME", value_parser = some_time)]
        more_time: Option<Duration>,
        /// Go on with this model, in the present phase and those that had the same one
        #[arg(long, value_name = "MODEL", conflicts_with = "due")]
        model: Option<String>,
    },
    /// Tell the agent something with the next prompt, without stopping the loop
    Say {
        /// What
        #[arg(value_name = "TEXT")]
        text: String,
        /// The session
        #[arg(value_name = "ID")]
        id: Option<crate::commands::args::SessionRef>,
    },
    /// Retry at once a work item that failed, was set aside or was left out
    Retry {
        /// The item's id
        #[arg(value_name = "ITEM")]
        item: String,
        /// The session of the loop
        #[arg(value_name = "ID")]
        id: Option<crate::commands::args::SessionRef>,
    },
    /// Leave the current phase without passing its gate, at the end of the iteration
    SkipPhase {
        /// The session
        #[command(flatten)]
        session: OneSession,
    },
}

/// What wakes a loop, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WokenBy {
    /// A command that somebody typed.
    Command,
    /// A timer of the system.
    Timer,
}

impl WokenBy {
    /// As it is typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Timer => "timer",
        }
    }
}

/// A time that something may take.
fn some_time(text: &str) -> Result<Duration, String> {
    age(text).and_then(|time| match time.is_zero() {
        true => Err("no time at all would stop it before it begins".to_owned()),
        false => Ok(time),
    })
}

/// A share in percent, with or without the sign.
fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    number
        .parse()
        .ok()
        .filter(|percent| (1..=100).contains(percent))
        .ok_or_else(|| "a share is between 1 and 100 percent".to_owned())
}

/// Hours of the day, such as `22:00-07:00`, in minutes.
fn hours(text: &str) -> Result<(u16, u16), String> {
    parse_hours(text).ok_or_else(|| "hours are like 22:00-07:00".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_work_in() {
        assert_eq!(some_time("90s"), Ok(Duration::from_secs(90)));
        assert!(["0s", "0h", "5", "soon"].iter().all(|text| some_time(text).is_err()));
    }

    #[test]
    fn shares_and_hours() {
        assert_eq!((percent("30%"), percent("95"), percent("30 %")), (Ok(30), Ok(95), Ok(30)));
        assert!([percent("0"), percent("101%"), percent("x")].iter().all(Result::is_err));
        assert_eq!(hours("22:00-07:30"), Ok((1_320, 450)));
        assert_eq!(hours("9-17"), Ok((540, 1_020)));
        assert_eq!(hours("22:00–07:00"), Ok((1_320, 420)));
        assert_eq!(hours("0:00-24:00"), Ok((0, 1_440)));
        assert!(["9", "9-9", "25-3", "9:60-10", "24:00-1"].iter().all(|text| hours(text).is_err()));
    }
}
