//! `segno budget`: caps on tokens and money.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::DayStand;
use segno_engine::core::Command as Act;
use segno_engine::core::State;
use segno_engine::core::budget::Counting;
use segno_engine::core::event::Unit;

use super::args::count;
use super::args::dollars;
use super::doing::look;
use super::doing::record_for;
use crate::command_context::extend_hint;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::units;

/// Show or change the budget
///
/// A budget that you set stops the session's agent, prevents new runs, and leaves the session resumable; the default
/// one, and one that is set with --advisory, only warns. What counts is input, cache writes and output, including those
/// of sub-agents and of runs that the agent starts; budget.count = "all" counts what is read from the vendor's cache as
/// well. What all sessions of a project may use in a day is a setting: budget.day_tokens and budget.day_cost. Costs are
/// what the agent reports, or list prices where it reports none; under a cost cap that stops, a model without a price
/// stops the run too.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:\n  segno budget extend 50k\n  segno budget check 20k")]
pub struct Args {
    /// What to do; without it, shows the budget
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with the budget.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Show what is used and what is left
    Show,
    /// Check whether this many more tokens fit; exit code 8 if they do not
    ///
    /// Looks at both caps. Without a number: whether anything is left.
    Check {
        /// How many
        #[arg(value_name = "N", value_parser = count)]
        tokens: Option<u64>,
    },
    /// Add tokens
    Extend {
        /// How many
        #[arg(value_name = "N", allow_negative_numbers = true, value_parser = count)]
        tokens: u64,
    },
    /// Set the tokens the session may use
    Set {
        /// How many
        #[arg(value_name = "N", allow_negative_numbers = true, value_parser = count)]
        tokens: u64,
        /// How it holds
        #[command(flatten)]
        hold: Hold,
    },
    /// Set or add to the dollars the session may cost
    Cost {
        /// How many dollars
        #[arg(value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
        dollars: u64,
        /// Add to the current cap instead of setting it
        #[arg(long)]
        extend: bool,
        /// How it holds
        #[command(flatten)]
        hold: Hold,
    },
}

/// How a budget holds.
#[derive(ClapArgs, Clone, Copy, Debug)]
pub struct Hold {
    /// Only warn when it is used up, instead of stopping the work
    #[arg(long)]
    pub advisory: bool,
    /// Warn at this percentage of it
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub warn: Option<u8>,
}

/// Runs `segno budget`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let command = match &args.command {
        None | Some(Command::Show) => return show(context),
        Some(Command::Check { tokens }) => return check(context, *tokens),
        Some(Command::Extend { tokens }) => Act::ExtendBudget { unit: Unit::Tokens, added: *tokens },
        Some(Command::Set { tokens, hold }) => Act::SetBudget {
            unit: Unit::Tokens,
            total: Some(*tokens),
            hard: hold.hard(),
            warn_percent: hold.warn,
            count: Some(context.config()?.budget.count),
        },
        Some(Command::Cost { dollars, extend: true, .. }) => {
            Act::ExtendBudget { unit: Unit::Cost, added: *dollars }
        }
        Some(Command::Cost { dollars, hold, .. }) => Act::SetBudget {
            unit: Unit::Cost,
            total: Some(*dollars),
            hard: hold.hard(),
            warn_percent: hold.warn,
            count: None,
        },
    };
    // Whose budget it is, is said once: by whoever changes it.
    record_for(
        context,
        |state| {
            if state.budget.hard || state.cost.hard {
                context.refuse_below_run("change a budget that stops it")?;
            }
            Ok(vec![command])
        },
        |acted| line(&acted.state).into(),
    )
}

/// Shows what is used and what is left.
///
/// # Errors
/// If the session cannot be read.
pub fn show(context: &Context) -> Outcome {
    let (ctx, state) = look(context)?;
    let printer = &context.printer;
    let day = ctx.engine.day_stand(&state.project.path)?;
    if printer.is_json() {
        let (budget, cost) = (&state.budget, &state.cost);
        return printer.json(&serde_json::json!({
            "session_id": state.session_id,
            "tokens": {
                "total_budget": budget.total_budget,
                "tokens_used": budget.tokens_used,
                "estimated": state.tokens_estimated,
                "tokens_remaining": budget.tokens_remaining(),
                "utilization_percent": budget.utilization_percent(),
                "warn_percent": budget.warn_percent,
                "warning": budget.is_warning(),
                "over_budget": budget.is_over(),
                "hard": budget.hard,
                "count": budget.count,
                "by_kind": state.tokens,
            },
            "cost": {
                "limit_micros": cost.limit_micros,
                "used_micros": cost.used_micros,
                "remaining_micros": cost.remaining_micros(),
                "warning": cost.is_warning(),
                "over_budget": cost.is_over(),
                "hard": cost.hard,
                "unpriced_tokens": state.unpriced_tokens(),
            },
            "day": {
                "tokens_used": day.used.tokens(day.caps.count),
                "tokens_most": day.caps.tokens,
                "used_micros": day.used.micros,
                "most_micros": day.caps.micros,
                "warning": day.caps.low(&day.used).is_some(),
                "used_up": day.caps.reached(&day.used).is_some(),
                "since": day.since,
                "until": day.until,
            },
        }));
    }
    printer.data(line(&state))?;
    match day_line(context, &day) {
        Some(line) => printer.data(line),
        None => Ok(()),
    }
}

/// Answers a script: whether so many more tokens fit, and money is left.
fn check(context: &Context, tokens: Option<u64>) -> Outcome {
    let (ctx, state) = look(context)?;
    let (budget, cost) = (&state.budget, &state.cost);
    let required = tokens.unwrap_or(1);
    let fits = budget.can_continue(required);
    let spent = cost.remaining_micros() == Some(0);
    let printer = &context.printer;
    if printer.is_json() {
        printer.json(&serde_json::json!({
            "session_id": state.session_id,
            "can_continue": fits && !spent,
            "required_tokens": required,
            "tokens_remaining": budget.tokens_remaining(),
            "cost_remaining_micros": cost.remaining_micros(),
        }))?;
    } else {
        printer.data(line(&state))?;
    }
    let unit = match (fits, spent) {
        (true, false) => return Ok(()),
        (false, _) => Unit::Tokens,
        (true, true) => Unit::Cost,
    };
    let why = match unit {
        Unit::Tokens => {
            let left = units::count(budget.tokens_remaining());
            format!("{} do not fit: {left} left", units::tokens(required))
        }
        Unit::Cost => "the cost budget is used up".to_owned(),
    };
    Err(CommandError::new(ExitCode::BudgetExhausted, "budget_exceeded", why)
        .hint(extend_hint(unit, Some(ctx.engine.ending(state.session_id)))))
}

/// How much of the tokens is used, in words for people.
pub(crate) fn tokens_used(state: &State) -> String {
    let budget = &state.budget;
    let low = match (budget.is_over(), budget.is_exhausted(), budget.is_warning()) {
        (true, ..) => ", over budget",
        (_, true, _) => ", used up",
        (.., true) => ", runs low",
        _ => "",
    };
    let stops = if budget.hard { ", stops there" } else { ", warns only" };
    let used = units::about(budget.tokens_used, state.tokens_estimated);
    let mut text = match budget.is_unlimited() {
        true => format!("{used} tok used, no budget"),
        false => format!(
            "{used} of {} used ({:.0} %), {} left{low}{stops}",
            units::tokens(budget.total_budget),
            budget.utilization_percent(),
            units::count(budget.tokens_remaining()),
        ),
    };
    let cached = state.tokens.cache_read;
    if cached > 0 {
        let counted = match budget.count {
            Counting::All => "counted",
            Counting::Uncached => "not counted",
        };
        text += &format!("; {} read from cache, {counted}", units::count(cached));
    }
    text
}

/// How near the money is to its limit, in words for people.
pub(crate) fn money_low(state: &State) -> &'static str {
    match (state.cost.is_over(), state.cost.is_exhausted(), state.cost.is_warning()) {
        (true, ..) => ", over budget",
        (_, true, _) => ", used up",
        (.., true) => ", runs low",
        _ => "",
    }
}

fn money(state: &State) -> String {
    units::money(state.cost.used_micros, state.unpriced_tokens())
}

/// What was used today in the project, if there is a cap on that.
fn day_line(context: &Context, day: &DayStand) -> Option<String> {
    let caps = &day.caps;
    let tokens = caps
        .tokens
        .map(|most| format!("{} of {}", units::count(day.used.tokens(caps.count)), units::tokens(most)));
    let money =
        caps.micros.map(|most| format!("{} of {}", units::dollars(day.used.micros), units::dollars(most)));
    let low = match (caps.reached(&day.used), caps.low(&day.used)) {
        (Some(_), _) => ", used up",
        (None, Some(_)) => ", runs low",
        (None, None) => "",
    };
    let parts: Vec<String> = tokens.into_iter().chain(money).collect();
    let until = context.clock(day.until);
    (!parts.is_empty()).then(|| format!("today in this project: {}{low}   until {until}", parts.join("   ")))
}

fn line(state: &State) -> String {
    let mut text = tokens_used(state);
    match state.cost.limit_micros {
        Some(limit) => {
            let low = money_low(state);
            text += &format!("   {} of {} spent{low}", money(state), units::dollars(limit));
        }
        None if state.cost.used_micros > 0 || state.unpriced_tokens() > 0 => {
            text += &format!("   {} spent", money(state));
        }
        None => {}
    }
    text
}

impl Hold {
    /// A budget that somebody sets is meant to stop, unless they say that it is not.
    #[expect(clippy::unnecessary_wraps, reason = "the command takes what was said of each property")]
    fn hard(self) -> Option<bool> {
        Some(!self.advisory)
    }
}
