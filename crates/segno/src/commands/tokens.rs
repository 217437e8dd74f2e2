//! `segno tokens`: what was used.

use clap::Args as ClapArgs;
use segno_engine::core::Fact;
use segno_engine::core::TokenUse;
use segno_engine::core::budget::estimate_tokens;
use segno_engine::core::event::Source;

use super::args::TextSource;
use super::args::count;
use super::args::dollars;
use super::doing::record;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::units;

/// The longest text that is estimated.
const LIMIT: u64 = 256 << 20;

/// Record tokens that were used
///
/// Without arguments: shows what was used so far. Recording never fails because a budget is used up.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno tokens --input 12k --output 800 --cost 0.05")]
pub struct Args {
    /// Total tokens, when their kinds are not known
    #[arg(value_name = "N", allow_negative_numbers = true, value_parser = count, conflicts_with_all = ["input", "output", "cache_read", "cache_write", "estimate"])]
    pub total: Option<u64>,
    /// Tokens that went in
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub input: Option<u64>,
    /// Tokens that came out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub output: Option<u64>,
    /// Tokens read from the cache
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub cache_read: Option<u64>,
    /// Tokens written to the cache
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub cache_write: Option<u64>,
    /// Estimate from a text, or from standard input with `-`; marked as an estimate
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["input", "output", "cache_read", "cache_write"])]
    pub estimate: Option<TextSource>,
    /// What it cost, in dollars
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub cost: Option<u64>,
}

/// Runs `segno tokens`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let (tokens, estimated) = match &args.estimate {
        Some(source) => (TokenUse::of(estimate_tokens(&source.read(LIMIT)?)), true),
        None => {
            let tokens = TokenUse {
                input: args.input.unwrap_or(0),
                output: args.output.unwrap_or(0),
                cache_read: args.cache_read.unwrap_or(0),
                cache_write: args.cache_write.unwrap_or(0),
                other: args.total.unwrap_or(0),
                reasoning: 0,
            };
            (tokens, false)
        }
    };
    let mut facts = Vec::new();
    let said_tokens = args.total.is_some()
        || args.input.is_some()
        || args.output.is_some()
        || args.cache_read.is_some()
        || args.cache_write.is_some()
        || estimated;
    if said_tokens {
        facts.push(Fact::TokensRecorded { tokens, estimated, source: Source::Hand });
    }
    if let Some(micros) = args.cost {
        facts.push(Fact::CostRecorded { micros, source: Source::Hand });
    }
    if facts.is_empty() {
        return super::budget::show(context);
    }
    record(context, facts, |acted| {
        let budget = &acted.state.budget;
        let used = format!(
            "{} of {} used ({:.0} %)",
            units::count(budget.tokens_used),
            units::tokens(budget.total_budget),
            budget.utilization_percent()
        );
        match acted.state.cost.used_micros {
            0 => used.into(),
            micros => format!("{used}   {}", units::dollars(micros)).into(),
        }
    })
}
