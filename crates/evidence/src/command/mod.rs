//! Which files a command is made of, as far as its text tells.
//!
//! A command that measures the work is only worth something while nobody makes it easier. What it reads cannot be
//! listed in general; what it names can: scripts, what wraps them, targets of a Makefile, scripts of a package, and the
//! settings of the test runner. Whoever has the files at hand follows scripts further with [`needs`].

mod known;
mod masked;
mod recipes;
mod variables;
mod words;
mod wrappers;

pub use masked::Masked;
pub use masked::masked_runner;
pub use recipes::make_recipes;
pub use recipes::recipes;
pub use recipes::sections;

use crate::report::Runner;
use variables::Variables;
use words::Then;
use words::simple_commands;
use wrappers::Unwrapped;
use wrappers::unwrap;

/// How deep `sh -c` may stand in `sh -c`.
const DEEPEST: usize = 8;
/// How many words of one command are looked at that may name a script.
const MOST_WORDS: usize = 64;

/// What a command needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// A script that a shell runs or takes in: what it names is needed as well.
    ShellScript(String),
    /// A program or script of another kind.
    Script(String),
    /// A file that a shell or an interpreter gets to read, if there is one of this name.
    Given(String),
    /// A word of a program that nobody here knows: if it names a script, that program may run it.
    Perhaps(String),
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
    /// npm, pnpm and Yarn, which run scripts and programs of packages.
    Npm,
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
    let mut variables = Variables::default();
    // What the commands before this one in its pipeline name.
    let mut piped: Vec<String> = Vec::new();
    for simple in simple_commands(text) {
        let words = variables.filled(&simple.words);
        let mut there = here.clone();
        for need in variables.take_in(&words) {
            put(NeedIn { directory: here.clone(), need }, found);
        }
        for part in unwrap(&words) {
            match part {
                Unwrapped::Enter(to) => {
                    here = below(&here, &to);
                    there.clone_from(&here);
                }
                Unwrapped::EnterOnce(to) => there = below(&there, &to),
                Unwrapped::Shell(text) => gather(&text, &there, depth + 1, found),
                Unwrapped::In(to, need) => put(NeedIn { directory: below(&there, &to), need }, found),
                Unwrapped::Need(need) => put(NeedIn { directory: there.clone(), need }, found),
                Unwrapped::Reads => {
                    for file in simple.inputs.iter().chain(&piped).take(MOST_WORDS) {
                        put(NeedIn { directory: here.clone(), need: Need::Given(file.clone()) }, found);
                    }
                }
                Unwrapped::Tests(_) => {}
            }
        }
        match simple.then {
            Then::Pipe => {
                piped.extend(words.into_iter().skip(1).filter(|word| !word.starts_with('-')));
                piped.extend(simple.inputs);
            }
            _ => piped.clear(),
        }
    }
}

fn put(need: NeedIn, found: &mut Vec<NeedIn>) {
    if !found.contains(&need) {
        found.push(need);
    }
}

/// The test runner that a command itself names, if what that runner prints is what the command prints: so one that ends well
/// and shows no test has run none, whatever it says. Scripts are not followed; they may print what they like.
pub fn named_runner(text: &str) -> Option<Runner> {
    let quiet = text.replace("2>&1", "").replace("||", "");
    if quiet.contains(['>', '|']) {
        return None;
    }
    runner_in(text, 0)
}

fn runner_in(text: &str, depth: usize) -> Option<Runner> {
    if depth >= DEEPEST {
        return None;
    }
    let parts = simple_commands(text).into_iter().flat_map(|simple| unwrap(&simple.words));
    parts.into_iter().find_map(|part| match part {
        Unwrapped::Tests(runner) => Some(runner),
        Unwrapped::Shell(text) => runner_in(&text, depth + 1),
        _ => None,
    })
}

/// A directory seen from another one.
fn below(from: &str, to: &str) -> String {
    if to.starts_with('/') || from.is_empty() { to.to_owned() } else { format!("{from}/{to}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_that_a_command_names() {
        let rows = [
            ("pytest -q", Some(Runner::Pytest)),
            ("python3 -m pytest tests", Some(Runner::Pytest)),
            ("cd sub && python -m unittest -v 2>&1", Some(Runner::Unittest)),
            ("CI=1 timeout 60 cargo test --workspace", Some(Runner::CargoTest)),
            ("cargo nextest run", Some(Runner::Nextest)),
            ("cargo +nightly test", Some(Runner::CargoTest)),
            ("go test ./...", Some(Runner::GoTest)),
            ("node --test", Some(Runner::NodeTest)),
            ("npx jest", Some(Runner::Jest)),
            ("npx vitest run", Some(Runner::Vitest)),
            ("uv run pytest", Some(Runner::Pytest)),
            ("sh -c 'pytest'", Some(Runner::Pytest)),
            ("make lint && pytest", Some(Runner::Pytest)),
            // What they print goes elsewhere, or is not theirs any more.
            ("pytest > log.txt", None),
            ("pytest | tee log.txt", None),
            // None runs there.
            ("cargo test --no-run", None),
            ("pytest --collect-only", None),
            ("cargo build", None),
            ("cargo nextest list", None),
            ("./check.sh", None),
            ("make test", None),
            ("grep pytest README.md", None),
        ];
        for (command, wanted) in rows {
            assert_eq!(named_runner(command), wanted, "{command}");
        }
    }
}
