//! What the work produced and where it is: artifacts, files, the place in the code.

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::core::Command as Act;
use segno_engine::core::Fact;
use segno_engine::core::List;
use segno_engine::core::State;
use segno_engine::core::event::Change;

use super::args::ArtifactChange;
use super::args::FileChange;
use super::args::Page;
use super::doing::record;
use super::doing::record_for;
use super::lists;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

/// Record and list artifacts
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno artifact add docs/design.md created")]
pub struct Args {
    /// What to do; without it, lists the artifacts
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with artifacts.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Record an artifact
    Add {
        /// Its path, which must be in the project; recorded from the project's root on
        path: String,
        /// What happened to it
        #[arg(value_enum)]
        change: ArtifactChange,
        /// The phase it belongs to, if not the current one
        #[arg(long, value_name = "NAME")]
        phase: Option<String>,
    },
    /// List artifacts
    List {
        /// Only those of this phase
        #[arg(long, value_name = "NAME")]
        phase: Option<String>,
        /// Which page
        #[command(flatten)]
        page: Page,
    },
}

/// Record and list files that were touched
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno file add src/auth.rs modified")]
pub struct FileArgs {
    /// What to do; without it, lists the files
    #[command(subcommand)]
    pub command: Option<FileCommand>,
}

/// What to do with files.
#[derive(Clone, Debug, Subcommand)]
pub enum FileCommand {
    /// Record that a file was touched
    Add {
        /// Its path
        path: String,
        /// What happened to it
        #[arg(value_enum)]
        change: FileChange,
    },
    /// List files
    List {
        /// Which page
        #[command(flatten)]
        page: Page,
    },
}

/// Record where in the code the work is
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno at src/auth.rs:42")]
pub struct AtArgs {
    /// The file, with a line number if it is known
    #[arg(value_name = "FILE[:LINE]")]
    pub place: String,
}

/// Runs `segno artifact`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    match &args.command {
        None => lists::show(context, None, List::Artifacts, &Page::default()),
        Some(Command::List { page, phase: None }) => lists::show(context, None, List::Artifacts, page),
        Some(Command::List { page, phase: Some(phase) }) => lists::artifacts_of_phase(context, page, phase),
        Some(Command::Add { path, change, phase }) => {
            let artifact_type = match change {
                ArtifactChange::Created => Change::Created,
                ArtifactChange::Modified => Change::Modified,
            };
            let here = here()?;
            let (typed, phase) = (path, phase.clone());
            let make = |state: &State| {
                let path = segno_engine::artifact_path(state, &here, &context.redacted(typed))?;
                Ok(vec![Act::RecordArtifact { path, artifact_type, phase }])
            };
            record_for(context, make, |_| format!("artifact {typed} {}", artifact_type.as_str()).into())
        }
    }
}

/// Runs `segno file`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn file(context: &Context, args: &FileArgs) -> Outcome {
    let (path, change) = match &args.command {
        None => return lists::show(context, None, List::Files, &Page::default()),
        Some(FileCommand::List { page }) => return lists::show(context, None, List::Files, page),
        Some(FileCommand::Add { path, change }) => (path, change),
    };
    let change = match change {
        FileChange::Created => Change::Created,
        FileChange::Modified => Change::Modified,
        FileChange::Deleted => Change::Deleted,
    };
    let (typed, here) = (path, here()?);
    let make = |state: &State| {
        let path = segno_engine::artifact_path(state, &here, &context.redacted(typed))?;
        Ok(vec![Fact::FileChanged { path, change, call: None }])
    };
    record_for(context, make, |_| format!("file {typed} {}", change.as_str()).into())
}

/// Where paths that are typed begin.
fn here() -> Outcome<std::path::PathBuf> {
    std::env::current_dir().map_err(|why| CommandError::io("there is no current directory", why))
}

/// Runs `segno at`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn at(context: &Context, args: &AtArgs) -> Outcome {
    // Only a number after the last colon is a line: paths may hold colons too.
    let (file, line) = match args.place.rsplit_once(':') {
        Some((file, line)) if !file.is_empty() => match line.parse() {
            Ok(line) => (file.to_owned(), Some(line)),
            Err(_) => (args.place.clone(), None),
        },
        _ => (args.place.clone(), None),
    };
    let said = format!("at {}", args.place);
    record(context, vec![Act::SetPosition { file: Some(file), line }], |_| said.into())
}
