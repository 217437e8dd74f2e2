//! `segno self`: where this program came from, and how it is updated and removed.

mod origin;

use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::Subcommand;
use segno_engine::installer;
use serde_json::json;

use self::origin::Origin;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// The installer, as releases have it. The program brings its own, so that nothing is fetched to be run.
const INSTALLER: &str = include_str!("install.sh");
/// What the installer ends with when it refuses, and has changed nothing.
const INSTALLER_REFUSED: i32 = 3;

/// Update or remove this program
///
/// What the installer of a release put here is updated and removed by the same installer, which comes with this program.
/// If npm, cargo or the system installed it, they have to do that: then the command to type is shown.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  segno self\n  segno self update --from ~/Downloads/segno-release\n  segno self remove"
)]
pub struct Args {
    /// What to do; says where this program came from if nothing is said
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with this program.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Install another version in the place of this one
    ///
    /// The archive is checked against the list of checksums beside it. Agents, drivers and hooks that run now go on with
    /// the program they started with. A version older than this one is refused.
    Update {
        /// Where the release is: a directory or a web address (default: where this version came from)
        #[arg(long, value_name = "DIR|URL")]
        from: Option<OsString>,
        /// Also install an older version
        #[arg(long)]
        older: bool,
        /// Only say which version there is
        #[arg(long)]
        check: bool,
    },
    /// Remove this program, and its hooks from the settings of agents; sessions and settings stay
    Remove {
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

impl Args {
    /// Whether it would change what is installed.
    pub const fn changes(&self) -> bool {
        !matches!(&self.command, None | Some(Command::Update { check: true, .. }))
    }
}

/// Runs `segno self`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let program = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .map_err(|why| CommandError::io("cannot find this program", why))?;
    let origin = Origin::of(&program, |path| std::fs::read_to_string(path).ok());
    match &args.command {
        None => tell(context, &program, &origin),
        Some(Command::Update { from, older, check }) => {
            let prefix = own(&origin, "update", origin.update())?;
            let mut words: Vec<OsString> = vec!["--to".into(), prefix.into()];
            let from = from.clone().or_else(|| origin.from().map(Into::into));
            words.extend(from.into_iter().flat_map(|from| ["--from".into(), from]));
            words.extend(older.then(|| "--older".into()));
            words.extend(check.then(|| "--check".into()));
            install(context, &words)
        }
        Some(Command::Remove { yes }) => {
            let prefix = own(&origin, "remove", origin.remove())?;
            let question =
                format!("remove segno from {}, and its hooks from the settings of agents?", prefix.display());
            super::rm::confirm(context, *yes, "removed", &question)?;
            super::init::take_out(context);
            // What this program starts cannot change settings: it might be an agent's.
            install(context, &["--remove".into(), "--keep-hooks".into(), "--to".into(), prefix.into()])
        }
    }
}

fn tell(context: &Context, program: &Path, origin: &Origin) -> Outcome {
    if context.printer.is_json() {
        return context.printer.json(&json!({
            "program": program.to_string_lossy(),
            "version": env!("CARGO_PKG_VERSION"),
            "installed_by": origin.name(),
            "from": origin.from(),
            "update": origin.update(),
            "remove": origin.remove(),
        }));
    }
    context.printer.data(format!("program    {}", program.display()))?;
    context.printer.data(concat!("version    ", env!("CARGO_PKG_VERSION")))?;
    context.printer.data(format!("installed  {}", origin.words()))?;
    context.printer.data(format!("update     {}", origin.update()))?;
    context.printer.data(format!("remove     {}", origin.remove()))
}

/// The prefix of an installation of ours; who else installed this program has to be asked.
fn own(origin: &Origin, verb: &str, command: &str) -> Outcome<PathBuf> {
    match origin {
        Origin::Installer { prefix, .. } => Ok(prefix.clone()),
        _ => Err(CommandError::new(
            ExitCode::Refused,
            "not_installed_here",
            format!("segno does not {verb} itself: it was {}", origin.words()),
        )
        .hint(command)),
    }
}

/// Runs the installer that this program brings.
fn install(context: &Context, words: &[OsString]) -> Outcome {
    // What was said here counts, not what a variable says to a first installation.
    let ended = installer::run(INSTALLER, words, &["SEGNO_INSTALL_FROM"], !context.printer.is_json())
        .map_err(|why| CommandError::io("cannot run the installer", why))?;
    match ended {
        Some(0) if context.printer.is_json() => context.printer.json(&json!({ "done": true })),
        Some(0) => Ok(()),
        Some(INSTALLER_REFUSED) => Err(CommandError::new(
            ExitCode::Refused,
            "install_refused",
            "the installer refused; nothing was changed",
        )),
        _ => Err(CommandError::failure(
            "install_failed",
            "the installer failed; it says above what it changed",
        )
        .hint("segno self update --from DIR|URL")),
    }
}
