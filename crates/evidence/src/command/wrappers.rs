//! What stands behind the programs that only run others.

use super::MOST_WORDS;
use super::Need;
use super::Toolkit;
use super::known::INTERPRETERS;
use super::known::PACKAGE_MANAGERS;
use super::known::READERS;
use super::known::RESERVED;
use super::known::RUNS;
use super::known::RUNS_NONE;
use super::known::SHELLS;
use super::known::WRAPPERS;
use crate::report::Runner;

/// How many wrappers are taken off one command.
const MOST: usize = 16;

/// A part of what one simple command is about.
pub(super) enum Unwrapped {
    /// What follows runs in another directory.
    Enter(String),
    /// The rest of this command does.
    EnterOnce(String),
    /// It runs what it is given to read.
    Reads,
    /// Text for a shell.
    Shell(String),
    /// It needs this.
    Need(Need),
    /// It needs this, in another directory.
    In(String, Need),
    /// It runs tests.
    Tests(Runner),
}

/// What a simple command is about.
pub(super) fn unwrap(words: &[String]) -> Vec<Unwrapped> {
    let mut found = Vec::new();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    for _ in 0..MOST {
        while words.first().is_some_and(|word| RESERVED.contains(word) || is_assignment(word)) {
            words.remove(0);
        }
        let Some((&program, rest)) = words.split_first() else { return found };
        let name = program.rsplit('/').next().unwrap_or(program);
        if program.contains('/') && !is_system(program) {
            found.push(Unwrapped::Need(Need::ShellScript(program.to_owned())));
            // A test runner or Python of an environment of the project.
            if program.contains("bin/") && runner(name, rest).is_some() {
                program_needs(name, rest, &mut found);
                found.extend(runner(name, rest).map(Unwrapped::Tests));
            }
            return found;
        }
        if PACKAGE_MANAGERS.contains(&name) {
            found.push(Unwrapped::Need(Need::Settings(Toolkit::Npm)));
        }
        if let Some((_, valued)) = WRAPPERS.iter().find(|(known, _)| *known == name) {
            if let Some(text) = shell_text(name, rest) {
                found.push(Unwrapped::Shell(text));
                return found;
            }
            if matches!(name, "env" | "sudo") {
                let to = value(rest, &["-C", "--chdir", "-D"]);
                found.extend(to.map(Unwrapped::EnterOnce));
            }
            words = behind(name, rest, valued);
            continue;
        }
        if let Some((_, runs)) = RUNS.iter().find(|(known, _)| *known == name)
            && let Some(at) = rest.iter().position(|word| runs.contains(word))
        {
            if name == "nix-shell" {
                found.extend(rest.get(at + 1).map(|text| Unwrapped::Shell((*text).to_owned())));
                return found;
            }
            words =
                behind(name, rest.get(at + 1..).unwrap_or_default(), &["--with", "-n", "-p", "--package"]);
            continue;
        }
        if name == "find" {
            let Some(run) = found_and_run(rest, &mut found) else { return found };
            words = run;
            continue;
        }
        let known = READERS.contains(&name)
            || PACKAGE_MANAGERS.contains(&name)
            || RUNS.iter().any(|(known, _)| *known == name);
        if !program_needs(name, rest, &mut found) && !known {
            // Nobody here knows what it does with its words: it may run one of them.
            let words = rest.iter().filter(|word| !word.starts_with('-') && !word.contains(['*', '$', ' ']));
            let perhaps = words.take(MOST_WORDS).map(|word| Need::Perhaps((*word).to_owned()));
            found.extend(perhaps.map(Unwrapped::Need));
            if let Some(at) = rest.iter().position(|word| SHELLS.contains(word) || is_python(word)) {
                words_of(rest.get(at..).unwrap_or_default(), &mut found);
            }
        }
        found.extend(runner(name, rest).map(Unwrapped::Tests));
        return found;
    }
    found
}

/// A shell or Python with its words, behind a program that nobody here knows.
fn words_of(words: &[&str], found: &mut Vec<Unwrapped>) {
    if let Some((name, rest)) = words.split_first() {
        program_needs(name, rest, found);
    }
}

/// What `find` runs on what it finds. A name without a pattern is a file that can be looked for here, too.
fn found_and_run<'a>(rest: &[&'a str], found: &mut Vec<Unwrapped>) -> Option<Vec<&'a str>> {
    let at = rest.iter().position(|word| matches!(*word, "-exec" | "-execdir" | "-ok" | "-okdir"))?;
    let run = rest.get(at + 1..)?;
    let run: Vec<&str> = run.iter().take_while(|word| !matches!(**word, ";" | "+")).copied().collect();
    let place = rest.first().filter(|word| !word.starts_with('-')).unwrap_or(&".");
    let name = value(rest, &["-name", "-path", "-wholename"]).filter(|name| !name.contains(['*', '?', '[']));
    let runs_it =
        run.first() == Some(&"{}") || run.iter().any(|word| SHELLS.contains(word) || is_python(word));
    if let Some(name) = name.filter(|_| runs_it && run.contains(&"{}")) {
        let place = place.trim_end_matches('/');
        found.push(Unwrapped::Need(Need::Given(format!("{place}/**/{}", name.trim_start_matches("./")))));
    }
    (run.first() != Some(&"{}")).then(|| run.into_iter().filter(|word| *word != "{}").collect())
}

fn is_python(name: &str) -> bool {
    name.starts_with("python") || name == "pypy3"
}

/// The test runner that a program is, if it runs tests.
fn runner(name: &str, rest: &[&str]) -> Option<Runner> {
    let words: Vec<&str> = rest.iter().filter(|word| !word.starts_with(['-', '+'])).copied().collect();
    let is = |first: &str| words.first() == Some(&first);
    let python = is_python(name);
    let module = || rest.iter().position(|word| *word == "-m").and_then(|at| rest.get(at + 1));
    let runner = match name {
        "pytest" | "py.test" => Runner::Pytest,
        "jest" => Runner::Jest,
        "vitest" if !is("list") => Runner::Vitest,
        "mocha" => Runner::Mocha,
        "cargo" if is("test") || is("t") => Runner::CargoTest,
        "cargo" if is("nextest") && words.get(1) == Some(&"run") => Runner::Nextest,
        "go" if is("test") => Runner::GoTest,
        "node" if rest.contains(&"--test") => Runner::NodeTest,
        _ if python && module() == Some(&"pytest") => Runner::Pytest,
        _ if python && module() == Some(&"unittest") => Runner::Unittest,
        _ => return None,
    };
    (!rest.iter().any(|word| RUNS_NONE.contains(word))).then_some(runner)
}

/// The command behind a wrapper and its options.
fn behind<'a>(name: &str, rest: &[&'a str], valued: &[&str]) -> Vec<&'a str> {
    let mut rest = rest;
    while let Some((&word, more)) = rest.split_first() {
        let skip = match word {
            "--" => {
                rest = more;
                break;
            }
            word if valued.contains(&word) => 2,
            word if word.starts_with('-') => 1,
            word if is_assignment(word) && name == "env" => 1,
            _ => break,
        };
        rest = rest.get(skip..).unwrap_or_default();
    }
    // How long it may take, what is locked, where or when it runs stands before the command.
    let skip =
        usize::from(matches!(name, "timeout" | "gtimeout" | "flock" | "taskset" | "chrt" | "faketime"));
    rest.get(skip..).unwrap_or_default().to_vec()
}

/// Text that a wrapper gives to a shell.
fn shell_text(name: &str, rest: &[&str]) -> Option<String> {
    let flag = match name {
        "env" => ["-S", "--split-string"],
        "script" | "flock" => ["-c", "--command"],
        _ => return None,
    };
    let at = rest.iter().position(|word| flag.contains(word))?;
    rest.get(at + 1).map(|text| (*text).to_owned())
}

/// What a program needs that is known here; false if it is not.
fn program_needs(name: &str, rest: &[&str], found: &mut Vec<Unwrapped>) -> bool {
    let first = || rest.iter().find(|word| !word.starts_with('-')).copied();
    let mut need = |need: Need| found.push(Unwrapped::Need(need));
    match name {
        "cd" | "pushd" => found.extend(first().map(|to| Unwrapped::Enter(to.to_owned()))),
        "." | "source" => {
            if let Some(file) = rest.first() {
                need(Need::ShellScript((*file).to_owned()));
            }
        }
        "eval" => found.push(Unwrapped::Shell(rest.join(" "))),
        shell if SHELLS.contains(&shell) => shell_needs(rest, found),
        "make" | "gmake" | "bmake" => make_needs(rest, found),
        "just" => need(Need::Just { file: value(rest, &["-f", "--justfile"]) }),
        "npm" | "pnpm" | "yarn" | "bun" if package_script(name, rest).is_some() => {
            let script = package_script(name, rest).unwrap_or_default();
            let directory = value(rest, &["--prefix", "-C", "--cwd", "--dir"]);
            let script = Need::PackageScript(script);
            match directory {
                Some(directory) => found.push(Unwrapped::In(directory, script)),
                None => need(script),
            }
        }
        "pytest" | "py.test" => {
            need(Need::Settings(Toolkit::Pytest));
            if let Some(file) = value(rest, &["-c", "--config-file"]) {
                need(Need::Script(file));
            }
            // Where it is told to look it finds settings, too, also where nobody else would.
            for word in rest.iter().filter(|word| !word.starts_with('-')).take(MOST_WORDS) {
                let place = word.split("::").next().unwrap_or(word).trim_end_matches('/');
                if place.contains('/') || !place.contains('.') {
                    let settings = Need::Settings(Toolkit::Pytest);
                    found.push(Unwrapped::In(place.to_owned(), settings));
                }
            }
        }
        "tox" | "nox" => need(Need::Settings(Toolkit::Tox)),
        "coverage" => python_needs(rest.get(1..).unwrap_or_default(), found),
        "jest" => need(Need::Settings(Toolkit::Jest)),
        "vitest" => need(Need::Settings(Toolkit::Vitest)),
        "mocha" => need(Need::Settings(Toolkit::Mocha)),
        "cargo" => need(Need::Settings(Toolkit::Cargo)),
        "gradle" | "mvn" => need(Need::Settings(Toolkit::Jvm)),
        "rspec" | "rake" => need(Need::Settings(Toolkit::Ruby)),
        "phpunit" => need(Need::Settings(Toolkit::Php)),
        python if is_python(python) => python_needs(rest, found),
        other if INTERPRETERS.contains(&other) => {
            if let Some(text) = value(rest, &["-e", "--eval", "-p", "--print", "-r"]) {
                named_in(&text, found);
                return true;
            }
            let mut need = |need: Need| found.push(Unwrapped::Need(need));
            let script = rest.iter().find(|word| !word.starts_with('-') && !["run", "test"].contains(*word));
            if let Some(script) = script.filter(|word| word.contains('.') || word.contains('/')) {
                need(Need::Script((*script).to_owned()));
            } else if rest.iter().all(|word| word.starts_with('-')) && !rest.contains(&"--test") {
                found.push(Unwrapped::Reads);
            }
        }
        _ => return false,
    }
    true
}

/// Scripts that the text of a program names.
fn named_in(text: &str, found: &mut Vec<Unwrapped>) {
    let between = |c: char| !(c.is_ascii_alphanumeric() || "_-./".contains(c));
    let words = text.split(between).filter(|word| word.contains(['/', '.']) && word.len() > 1);
    let perhaps = words.take(MOST_WORDS).map(|word| Need::Perhaps(word.to_owned()));
    found.extend(perhaps.map(Unwrapped::Need));
}

fn shell_needs(rest: &[&str], found: &mut Vec<Unwrapped>) {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "-o" | "+o" | "-O" | "--rcfile" | "--init-file" => drop(words.next()),
            "--" => {}
            flags if flags.starts_with('-') && !flags.starts_with("--") && flags.contains('c') => {
                found.extend(words.next().map(|text| Unwrapped::Shell((*text).to_owned())));
                return;
            }
            // What follows are only words for what it reads.
            "-s" => break,
            flags if flags.starts_with('-') || flags.starts_with('+') => {}
            script => {
                found.push(Unwrapped::Need(Need::ShellScript(script.to_owned())));
                return;
            }
        }
    }
    found.push(Unwrapped::Reads);
}

fn make_needs(rest: &[&str], found: &mut Vec<Unwrapped>) {
    let (file, directory) =
        (value(rest, &["-f", "--file", "--makefile"]), value(rest, &["-C", "--directory"]));
    let mut targets = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "-f" | "--file" | "--makefile" | "-C" | "--directory" | "-o" | "-W" | "-I" => drop(words.next()),
            "-j" | "-l" => {}
            word if word.starts_with('-') || is_assignment(word) => {}
            word if word.chars().all(|c| c.is_ascii_digit()) => {}
            target => targets.push(target.to_owned()),
        }
    }
    let make = Need::Make { file, targets };
    found.push(match directory {
        Some(directory) => Unwrapped::In(directory, make),
        None => Unwrapped::Need(make),
    });
}

fn python_needs(rest: &[&str], found: &mut Vec<Unwrapped>) {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "-m" => {
                let Some(module) = words.next() else { return };
                let behind: Vec<&str> = words.copied().collect();
                // A module of this name in the project comes before the one that is meant.
                found.push(Unwrapped::Need(Need::Module((*module).to_owned())));
                if ["pytest", "tox", "nox", "coverage"].contains(module) {
                    program_needs(module, &behind, found);
                }
                return;
            }
            "-c" => {
                if let Some(text) = words.next() {
                    named_in(text, found);
                }
                return;
            }
            "-" => return found.push(Unwrapped::Reads),
            "-W" | "-X" | "--source" | "--rcfile" => drop(words.next()),
            word if word.starts_with('-') || word == "run" => {}
            script => return found.push(Unwrapped::Need(Need::Script(script.to_owned()))),
        }
    }
    if rest.is_empty() {
        found.push(Unwrapped::Reads);
    }
}

/// The script of a package that is run.
fn package_script(name: &str, rest: &[&str]) -> Option<String> {
    let mut words = rest.iter();
    let first = loop {
        match *words.next()? {
            "--prefix" | "-C" | "--cwd" | "--dir" | "--filter" | "-F" | "-w" | "--workspace" => {
                words.next();
            }
            word if word.starts_with('-') => {}
            word => break word,
        }
    };
    match first {
        "test" | "t" | "tst" if name != "bun" => Some("test".to_owned()),
        "start" | "stop" | "restart" => Some(first.to_owned()),
        "run" | "run-script" => words.find(|word| !word.starts_with('-')).map(|word| (*word).to_owned()),
        "install" | "ci" | "i" | "add" | "remove" | "exec" | "dlx" | "audit" | "publish" | "pack" => None,
        script if matches!(name, "yarn" | "pnpm") => Some(script.to_owned()),
        _ => None,
    }
}

/// The value of an option, in either form.
fn value(rest: &[&str], names: &[&str]) -> Option<String> {
    for (index, word) in rest.iter().enumerate() {
        if names.contains(word) {
            return rest.get(index + 1).map(|value| (*value).to_owned());
        }
        let glued = names.iter().find_map(|name| word.strip_prefix(name)?.strip_prefix('='));
        if let Some(value) = glued {
            return Some(value.to_owned());
        }
    }
    None
}

/// `NAME=value`.
pub(super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A program of the system, which is what its name says.
pub(super) fn is_system(program: &str) -> bool {
    ["/bin/", "/usr/", "/sbin/", "/opt/", "/nix/"].iter().any(|directory| program.starts_with(directory))
}
