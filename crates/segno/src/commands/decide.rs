//! `segno decide`: why it was done this way.

use clap::Args as ClapArgs;
use segno_engine::core::Command;

use super::doing::record;
use crate::context::Context;
use crate::error::Outcome;

/// Record a decision
///
/// Decisions form a tree: --parent hangs one below another, --branch names a line of thought.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Example:\n  segno decide \"which database?\" --choice sqlite --because \"no server\" --alternative postgres"
)]
pub struct Args {
    /// The question
    pub question: String,
    /// What was chosen
    #[arg(long, value_name = "TEXT")]
    pub choice: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub because: Option<String>,
    /// What was not chosen; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub alternative: Vec<String>,
    /// The decision this one follows from
    #[arg(long, value_name = "ID")]
    pub parent: Option<u64>,
    /// The line of thought it belongs to
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
}

/// Runs `segno decide`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let command = Command::Decide {
        question: args.question.as_str().into(),
        choice: args.choice.as_str().into(),
        reason: args.because.as_deref().map(Into::into),
        alternatives: args.alternative.iter().map(|text| text.as_str().into()).collect(),
        parent: args.parent,
        branch: args.branch.clone(),
    };
    record(context, vec![command], |acted| {
        format!("decision {} on branch {}", acted.state.decisions.count, acted.state.decisions.branch).into()
    })
}
