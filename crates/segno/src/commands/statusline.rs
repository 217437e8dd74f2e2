//! `segno statusline`: how the session stands, in one line, for the status line of an agent or the prompt of a shell.
//!
//! It is drawn again and again, so it builds no command tree but its own, settles nothing, and waits for nobody. Whatever
//! cannot be read is left out: a store that is broken, busy or missing makes the line shorter, never an error.

use std::io::IsTerminal as _;
use std::io::Read as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use jiff::Timestamp;
use segno_engine::core::State;
use segno_engine::core::looping::BreakerState;
use segno_engine::setup::Purpose;
use segno_engine::status_line::StatusVisit;
use segno_engine::status_line::Told;
use serde_json::Value;
use serde_json::json;

use super::statusline_format::Format;
use super::statusline_format::Part;
use crate::cli::GlobalArgs;
use crate::command_context::short;
use crate::config::Paths;
use crate::config::env::Environment;
use crate::context;
use crate::context::Context;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Printer;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// Largest description of a conversation that is read.
const LARGEST: u64 = 1 << 20;
/// The line if nobody says otherwise.
const USUAL: &str =
    "{session}[ {phase}][ · {doubt}][ · {budget}][ · {cost}][ · {limits}][ · {breaker}][ · {checkpoint}]";

/// Print the session's status in one line, for Claude Code's status line or a shell prompt
///
/// Reads what Claude Code passes to its status line on standard input, and says which session the conversation is
/// recorded in, its phase, budget, the windows of the plan, an open breaker and the last checkpoint. `segno init
/// --statusline` registers it. With `--format` it is for prompts such as starship: standard input is left alone, and
/// the session is the one of this directory in which something happened last. A store that is missing, busy or broken
/// never makes it fail: it shows less.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "In --format, {name} stands for a value and [ ... ] for text that is left out if no value in it is known; \
                  a backslash takes the meaning of the next character. Names: session, topic, status, agent, model, context, \
                  phase, iteration, tokens, budget, cost, limits, breaker, checkpoint, doubt.\n\nExamples:\n  \
                  segno statusline --format '{session}[ {phase}][ {doubt}]'\n  \
                  segno statusline --json < /dev/null"
)]
pub struct Args {
    /// What is printed, instead of the usual line
    #[arg(long, value_name = "TEXT", value_parser = Format::parse)]
    pub format: Option<Format>,
    /// Read what Claude Code passes on standard input with --format too
    #[arg(long, requires = "format")]
    pub input: bool,
}

/// Runs `segno statusline`.
pub fn run(global: &GlobalArgs, environment: &Environment, args: &Args) -> ExitCode {
    let printer = Printer::new(context::manner(global, environment), environment);
    let told = reads_input(args).then(input).flatten();
    let seen = Seen { state: look(global, environment, told.clone()), told, now: Timestamp::now() };
    let printed = if global.json { printer.json(&seen.json()) } else { seen.print(&printer, args) };
    // Whoever does not listen any more needs no line.
    let _ = printed.and_then(|()| printer.flush());
    ExitCode::Ok
}

/// A prompt may have anything on its standard input, also a pipe that nobody ever closes.
fn reads_input(args: &Args) -> bool {
    (args.format.is_none() || args.input) && !std::io::stdin().is_terminal()
}

fn input() -> Option<Told> {
    let mut input = Vec::new();
    std::io::stdin().lock().take(LARGEST).read_to_end(&mut input).ok()?;
    Told::read(&input)
}

fn look(global: &GlobalArgs, environment: &Environment, told: Option<Told>) -> Option<State> {
    let paths = Paths::find(environment).ok()?;
    crate::log_file::start(environment, &paths.state, 0);
    let named = told.as_ref().and_then(|told| told.input.directory.as_deref()).map(PathBuf::from);
    let directory = match named.filter(|directory| directory.is_absolute() && directory.is_dir()) {
        Some(directory) => directory,
        None => std::env::current_dir().ok()?,
    };
    visit(global, environment, paths, &directory, told).ok()?.look()
}

fn visit(
    global: &GlobalArgs,
    environment: &Environment,
    paths: Paths,
    directory: &Path,
    told: Option<Told>,
) -> Outcome<StatusVisit> {
    let context = Context::new(global.clone(), environment.clone(), paths, directory, Timestamp::now())?;
    let opening = context.opening(false, Purpose::OneShot)?;
    Ok(StatusVisit {
        setup: context.setup()?,
        actor: opening.actor,
        named: context.session(None)?.map(|named| named.as_str().to_owned()),
        project: context.project.root,
        told,
    })
}

/// What is known for a line.
struct Seen {
    state: Option<State>,
    told: Option<Told>,
    now: Timestamp,
}

/// One window of a plan: its name, how much of it is used, when it opens again.
struct Window {
    name: String,
    percent: u64,
    resets_at: Option<i64>,
}

impl Seen {
    fn print(&self, printer: &Printer, args: &Args) -> Outcome {
        let usual = Format::parse(USUAL).unwrap_or_default();
        let line = args.format.as_ref().unwrap_or(&usual).fill(&|part| self.value(part));
        let line = if args.format.is_none() { line.without_leading(" · ") } else { line };
        if line.is_empty() { Ok(()) } else { printer.data(line) }
    }

    fn value(&self, part: Part) -> Option<Text> {
        let input = self.told.as_ref().map(|told| &told.input);
        let plain = |text: String| Some(Text::from(text));
        match part {
            Part::Model => input?
                .model
                .clone()
                .or_else(|| self.state.as_ref()?.run.as_ref()?.model.clone())
                .map(Text::from),
            Part::Context => plain(format!("ctx {}%", input?.context_percent?)),
            Part::Limits => self.limits(),
            Part::Agent => self.agent().map(Text::from),
            _ => self.of_state(part, self.state.as_ref()?),
        }
    }

    fn of_state(&self, part: Part, state: &State) -> Option<Text> {
        let painted = |meaning, text: String| Some(Text::new().painted(meaning, text));
        let looping = state.looping.as_deref();
        match part {
            Part::Session => painted(Meaning::Dim, short(state.session_id)),
            Part::Topic => state.topic.clone().map(Text::from),
            Part::Status => Some(Text::from(state.status.to_string())),
            Part::Phase => state.phase_label().map(Text::from),
            Part::Iteration => {
                let total = looping.map_or(state.iteration, |looping| looping.total);
                (total > 0).then(|| Text::from(total.to_string()))
            }
            Part::Tokens => painted(Meaning::Plain, units::tokens(state.budget.tokens_used)),
            Part::Budget => {
                let (used, all) = (state.budget.tokens_used, state.budget.total_budget);
                let estimated = state.tokens_estimated;
                let text = format!("{}/{} tok", units::about(used, estimated), units::count(all));
                painted(meaning(state.budget.is_over(), state.budget.is_warning()), text)
            }
            Part::Cost => {
                let cost = &state.cost;
                let text = units::money(cost.used_micros, state.unpriced_tokens());
                let text = match cost.limit_micros {
                    Some(limit) => format!("{text}/{}", units::dollars(limit)),
                    None if cost.used_micros == 0 => return None,
                    None => text,
                };
                painted(meaning(cost.is_over(), cost.is_warning()), text)
            }
            Part::Breaker => match looping?.breaker.state {
                BreakerState::Closed => None,
                BreakerState::HalfOpen => painted(Meaning::Waiting, "breaker half-open".to_owned()),
                BreakerState::Open => painted(Meaning::Lost, "breaker open".to_owned()),
            },
            Part::Checkpoint => {
                let mark = state.checkpoint.as_ref()?;
                let age = self.now.as_microsecond().saturating_sub(mark.at.as_micros());
                let age = Duration::from_micros(u64::try_from(age).unwrap_or(0));
                Some(Text::from(mark.id.to_string()).painted(Meaning::Dim, format!(" {}", units::age(age))))
            }
            Part::Doubt => match state.calls.in_doubt.len() {
                0 => None,
                count => painted(Meaning::Waiting, format!("{count} in doubt")),
            },
            Part::Model | Part::Context | Part::Limits | Part::Agent => None,
        }
    }

    fn agent(&self) -> Option<String> {
        let told = self.told.as_ref().map(|told| told.agent.to_owned());
        told.or_else(|| Some(self.state.as_ref()?.run.as_ref()?.agent.clone()))
    }

    fn limits(&self) -> Option<Text> {
        let mut line = Text::new();
        for window in self.windows() {
            let space = if line.is_empty() { "" } else { " " };
            let text = format!("{space}{} {}%", window.name, window.percent);
            line = line.painted(meaning(window.percent >= 100, window.percent >= 80), text);
        }
        (!line.is_empty()).then_some(line)
    }

    /// The windows as they were just told, else as they are on record; one that has opened again since is left out.
    fn windows(&self) -> Vec<Window> {
        let told: Vec<Window> = self
            .told
            .iter()
            .flat_map(|told| &told.input.windows)
            .filter_map(|window| {
                Some(Window {
                    name: window_name(&window.name),
                    percent: percent(window.utilization?),
                    resets_at: window.resets_at,
                })
            })
            .collect();
        let agent = self.agent();
        let known = self.state.iter().flat_map(|state| state.limits.values());
        let known = known.filter(|mark| agent.as_deref() == Some(mark.agent.as_str())).filter_map(|mark| {
            let resets_at = mark.resets_at.map(|at| at.as_micros().div_euclid(1_000_000));
            Some(Window { name: window_name(&mark.window), percent: percent(mark.utilization?), resets_at })
        });
        let mut windows = if told.is_empty() { known.collect() } else { told };
        windows.retain(|window| window.resets_at.is_none_or(|at| at > self.now.as_second()));
        windows
    }

    fn json(&self) -> Value {
        let state = self.state.as_ref();
        let input = self.told.as_ref().map(|told| &told.input);
        let windows: Vec<Value> = self
            .windows()
            .iter()
            .map(|window| {
                json!({
                    "window": window.name, "percent": window.percent, "resets_at": window.resets_at,
                })
            })
            .collect();
        json!({
            "session_id": state.map(|state| state.session_id),
            "topic": state.and_then(|state| state.topic.as_deref()),
            "status": state.map(|state| state.status),
            "agent": self.agent(),
            "model": input.and_then(|input| input.model.as_deref()),
            "context_percent": input.and_then(|input| input.context_percent),
            "phase": state.and_then(State::phase_label),
            "iteration": state.map(|state| state.looping.as_ref().map_or(state.iteration, |looping| looping.total)),
            "tokens_used": state.map(|state| state.budget.tokens_used),
            "token_budget": state.map(|state| state.budget.total_budget),
            "cost_micros": state.map(|state| state.cost.used_micros),
            "cost_limit_micros": state.and_then(|state| state.cost.limit_micros),
            "windows": windows,
            "breaker": state.and_then(|state| state.looping.as_ref()).map(|looping| looping.breaker.state.as_str()),
            "checkpoint": state.and_then(|state| state.checkpoint.as_ref()).map(|mark| mark.id.to_string()),
            "in_doubt": state.map(|state| state.calls.in_doubt.len()),
        })
    }
}

fn meaning(over: bool, warns: bool) -> Meaning {
    match (over, warns) {
        (true, _) => Meaning::Lost,
        (false, true) => Meaning::Waiting,
        (false, false) => Meaning::Plain,
    }
}

/// In whole percent, rounded down: 100 means all of it.
fn percent(share: f64) -> u64 {
    // A share of a hundredth may be stored as a little less than that.
    (share * 100.0 + 1e-6) as u64
}

fn window_name(name: &str) -> String {
    match name {
        "five_hour" => "5h".to_owned(),
        "seven_day" => "7d".to_owned(),
        other => other.to_owned(),
    }
}
