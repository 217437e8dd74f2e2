//! `segno completions`: scripts for shells.

use clap::Args as ClapArgs;
use clap_complete::Shell;

use crate::cli;
use crate::context::Context;
use crate::error::Outcome;

/// Print the completion script of a shell
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno completions fish > ~/.config/fish/completions/segno.fish")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Runs `segno completions`.
///
/// # Errors
/// If the script cannot be written.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "segno", &mut script);
    context.printer.raw(&script)
}
