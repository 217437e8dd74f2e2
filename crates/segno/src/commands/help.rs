//! `segno help`: what there is, and what a command does.

use clap::Args as ClapArgs;
use clap::builder::StyledStr;

use crate::cli;
use crate::error::CommandError;
use crate::error::Outcome;

/// Explain a command, or list all of them
///
/// Without anything, the commands that people need; with --all, every command there is.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:\n  segno help --all\n  segno help run\n  segno help checkpoint restore")]
pub struct Args {
    /// The command, with its subcommands
    #[arg(value_name = "COMMAND", conflicts_with = "all")]
    pub command: Vec<String>,
    /// List every command
    #[arg(long)]
    pub all: bool,
}

/// The help that was asked for. It needs no store and no settings, so that it is there when these are broken.
///
/// # Errors
/// If there is no such command.
pub fn text(args: &Args) -> Outcome<StyledStr> {
    if args.all {
        return Ok(cli::command_listing_all().render_help());
    }
    let mut root = cli::command();
    root.build();
    let mut found = &mut root;
    for word in &args.command {
        found = found.find_subcommand_mut(word).ok_or_else(|| {
            CommandError::usage(format!("there is no command `{}`", args.command.join(" ")))
                .hint("segno help --all")
        })?;
    }
    Ok(if args.command.is_empty() { found.render_help() } else { found.render_long_help() })
}
