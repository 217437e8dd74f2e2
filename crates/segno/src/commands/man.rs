//! `segno man`: manual pages.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::Command;
use clap_mangen::Man;

use crate::cli;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

/// Write the manual pages
///
/// With a directory: one page per command, in it. Without: the main page, on standard output.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno man ~/.local/share/man/man1")]
pub struct Args {
    /// The directory; it is created if it is missing
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// Runs `segno man`.
///
/// # Errors
/// If a page cannot be written.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let mut command = cli::command();
    command.build();
    let Some(directory) = &args.directory else {
        return context.printer.raw(&page(&command)?);
    };
    let failed = |path: &Path| {
        let said = format!("cannot write {}", path.display());
        move |error| CommandError::io(said, error)
    };
    fs::create_dir_all(directory).map_err(failed(directory))?;
    let mut pages = Vec::new();
    collect(&command, &mut pages)?;
    for (name, page) in &pages {
        let path = directory.join(format!("{name}.1"));
        fs::write(&path, page).map_err(failed(&path))?;
    }
    context.printer.talk(format!("wrote {} pages to {}", pages.len(), directory.display()));
    Ok(())
}

fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> Outcome {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    pages.push((name.to_owned(), page(command)?));
    command.get_subcommands().try_for_each(|below| collect(below, pages))
}

fn page(command: &Command) -> Outcome<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone())
        .render(&mut page)
        .map_err(|error| CommandError::internal(format!("cannot write the manual: {error}")))?;
    Ok(page)
}
