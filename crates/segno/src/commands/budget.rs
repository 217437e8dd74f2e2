//! `segno budget`: caps on tokens and money.

use clap::{Args as ClapArgs, Subcommand};
use segno_engine::core::event::Unit;
use segno_engine::core::{Command as Act, State};

use super::args::{count, dollars};
use super::doing::{look, record};
use crate::context::Context;
use crate::error::Outcome;
use crate::output::units;

/// Show or change the budget
///
/// A budget that you set stops the work and leaves the session resumable; the default one, and one that is set with
/// --advisory, only warns.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno budget extend 50k")]
pub struct Args {
    /// What to do; shows the budget if nothing is said
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with the budget.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Show what is used and what is left
    Show,
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
        /// Add to the present cap instead of setting it
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
    /// Warn at this share of it, in percent
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
        Some(Command::Extend { tokens }) => Act::ExtendBudget { unit: Unit::Tokens, added: *tokens },
        Some(Command::Set { tokens, hold }) => Act::SetBudget {
            unit: Unit::Tokens,
            total: Some(*tokens),
            hard: hold.hard(),
            warn_percent: hold.warn,
        },
        Some(Command::Cost { dollars, extend: true, .. }) => {
            Act::ExtendBudget { unit: Unit::Cost, added: *dollars }
        }
        Some(Command::Cost { dollars, hold, .. }) => Act::SetBudget {
            unit: Unit::Cost,
            total: Some(*dollars),
            hard: hold.hard(),
            warn_percent: hold.warn,
        },
    };
    record(context, vec![command], |acted| line(&acted.state).into())
}

/// Shows what is used and what is left.
///
/// # Errors
/// If the session cannot be read.
pub fn show(context: &Context) -> Outcome {
    let (_desk, state) = look(context)?;
    let printer = &context.printer;
    if printer.is_json() {
        let (budget, cost) = (&state.budget, &state.cost);
        return printer.json(&serde_json::json!({
            "session_id": state.session_id,
            "tokens": {
                "total_budget": budget.total_budget,
                "tokens_used": budget.tokens_used,
                "tokens_remaining": budget.tokens_remaining(),
                "utilization_percent": budget.utilization_percent(),
                "warn_percent": budget.warn_percent,
                "warning": budget.is_warning(),
                "over_budget": budget.is_over(),
                "hard": budget.hard,
                "by_kind": state.tokens,
            },
            "cost": {
                "limit_micros": cost.limit_micros,
                "used_micros": cost.used_micros,
                "remaining_micros": cost.remaining_micros(),
                "warning": cost.is_warning(),
                "over_budget": cost.is_over(),
                "hard": cost.hard,
            },
        }));
    }
    printer.data(line(&state))
}

fn line(state: &State) -> String {
    let budget = &state.budget;
    let mut text = format!(
        "{} of {} used ({:.0} %), {} left{}",
        units::count(budget.tokens_used),
        units::tokens(budget.total_budget),
        budget.utilization_percent(),
        units::count(budget.tokens_remaining()),
        if budget.hard { ", stops there" } else { "" },
    );
    match state.cost.limit_micros {
        Some(limit) => {
            text +=
                &format!("   {} of {} spent", units::dollars(state.cost.used_micros), units::dollars(limit));
        }
        None if state.cost.used_micros > 0 => {
            text += &format!("   {} spent", units::dollars(state.cost.used_micros));
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
