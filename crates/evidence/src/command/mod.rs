//! Which files a command is made of, as far as its text tells.
//!
//! A command that measures the work is only worth something while nobody makes it easier. What it reads cannot be
//! listed in general; what it names can: scripts, what wraps them, targets of a Makefile, scripts of a package, and the
//! settings of the test runner. Whoever has the files at hand follows scripts further with [`needs`].

mod recipes;
mod words;
mod wrappers;

pub use recipes::make_recipes;
pub use recipes::recipes;
pub use recipes::sections;

use words::simple_commands;
use wrappers::Unwrapped;
use wrappers::unwrap;

/// How deep `sh -c` may stand in `sh -c`.
const DEEPEST: usize = 8;

/// What a command needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// A script that a shell runs or takes in: what it names is needed as well.
    ShellScript(String),
    /// A program or script of another kind.
    Script(String),
    /// A module that Python runs by its name.
    Module(String),
    /// Targets of a Makefile; the usual file if none is named.
    Make {
        /// The Makefile.
        file: Option<String>,
        /// The targets.
        targets: Vec<String>,
    },
    /// A justfile; the usual one if none is named.
    Just {
        /// The justfile.
        file: Option<String>,
    },
    /// A script of a `package.json`.
    PackageScript(String),
    /// The settings of a test runner or build tool.
    Settings(Toolkit),
}

/// A tool whose settings decide what its tests are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolkit {
    /// pytest.
    Pytest,
    /// tox and nox.
    Tox,
    /// Jest.
    Jest,
    /// Vitest.
    Vitest,
    /// Mocha.
    Mocha,
    /// Cargo and nextest.
    Cargo,
    /// Gradle and Maven.
    Jvm,
    /// RSpec and Rake.
    Ruby,
    /// PHPUnit.
    Php,
}

/// A need, and the directory that it is seen from: empty where the command itself runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedIn {
    /// The directory, as `cd` says it.
    pub directory: String,
    /// What is needed there.
    pub need: Need,
}

/// What the text of a command, or of a shell script, needs.
pub fn needs(text: &str) -> Vec<NeedIn> {
    let mut found = Vec::new();
    gather(text, "", 0, &mut found);
    found
}

fn gather(text: &str, directory: &str, depth: usize, found: &mut Vec<NeedIn>) {
    if depth >= DEEPEST {
        return;
    }
    let mut here = directory.to_owned();
    for words in simple_commands(text) {
        for part in unwrap(&words) {
            match part {
                Unwrapped::Enter(to) => here = below(&here, &to),
                Unwrapped::Shell(text) => gather(&text, &here, depth + 1, found),
                Unwrapped::In(to, need) => {
                    let found_need = NeedIn { directory: below(&here, &to), need };
                    found.extend((!found.contains(&found_need)).then_some(found_need));
                }
                Unwrapped::Need(need) => {
                    let found_need = NeedIn { directory: here.clone(), need };
                    found.extend((!found.contains(&found_need)).then_some(found_need));
                }
            }
        }
    }
}

/// A directory seen from another one.
fn below(from: &str, to: &str) -> String {
    if to.starts_with('/') || from.is_empty() { to.to_owned() } else { format!("{from}/{to}") }
}
