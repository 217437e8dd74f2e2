//! What stands behind the programs that only run others.

use super::Need;
use super::Toolkit;
use crate::report::Runner;

/// How many wrappers are taken off one command.
const MOST: usize = 16;

/// A part of what one simple command is about.
pub(super) enum Unwrapped {
    /// What follows runs in another directory.
    Enter(String),
    /// Text for a shell.
    Shell(String),
    /// It needs this.
    Need(Need),
    /// It needs this, in another directory.
    In(String, Need),
    /// It runs tests.
    Tests(Runner),
}

/// Words that may stand before a command in a script.
const RESERVED: &[&str] =
    &["if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done", "time", "and", "or"];

/// Programs that run the command behind them, with those of their options that take a value.
const WRAPPERS: &[(&str, &[&str])] = &[
    ("env", &["-u", "--unset", "-C", "--chdir"]),
    ("timeout", &["-k", "--kill-after", "-s", "--signal"]),
    ("gtimeout", &["-k", "--kill-after", "-s", "--signal"]),
    ("nice", &["-n", "--adjustment"]),
    ("ionice", &["-c", "-n", "-p"]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("command", &[]),
    ("builtin", &[]),
    ("exec", &["-a"]),
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-D"]),
    ("doas", &["-u"]),
    ("xvfb-run", &["-n", "-s", "-e", "-f", "--server-args"]),
    ("chronic", &[]),
    ("unbuffer", &[]),
    ("script", &["-c"]),
    ("flock", &["-w", "-E"]),
    ("xargs", &["-n", "-I", "-P", "-L", "-d", "-a"]),
    ("npx", &["-p", "--package"]),
    ("bunx", &[]),
    ("pnpx", &[]),
    ("uvx", &["--from", "--with"]),
    ("strace", &["-e", "-o", "-p"]),
    ("busybox", &[]),
];

/// Programs that run the command behind one of their words.
const RUNS: &[(&str, &[&str])] = &[
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("rye", &["run"]),
    ("hatch", &["run"]),
    ("conda", &["run"]),
    ("bundle", &["exec"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("npm", &["exec"]),
    ("direnv", &["exec"]),
    ("dotenv", &["run"]),
    ("nix-shell", &["--run"]),
];

/// What runs scripts and programs of packages as its settings say.
const PACKAGE_MANAGERS: &[&str] = &["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"];
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];
const INTERPRETERS: &[&str] = &[
    "node", "ruby", "perl", "php", "tsx", "ts-node", "lua", "Rscript", "pwsh", "julia", "deno", "bun", "go",
];

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
        program_needs(name, rest, &mut found);
        found.extend(runner(name, rest).map(Unwrapped::Tests));
        return found;
    }
    found
}

/// Words with which a test runner only says something about itself or its tests.
const RUNS_NONE: &[&str] =
    &["--help", "-h", "--version", "-V", "--no-run", "--collect-only", "--co", "--list", "--listTests"];

/// The test runner that a program is, if it runs tests.
fn runner(name: &str, rest: &[&str]) -> Option<Runner> {
    let words: Vec<&str> = rest.iter().filter(|word| !word.starts_with(['-', '+'])).copied().collect();
    let is = |first: &str| words.first() == Some(&first);
    let python = name.starts_with("python") || name == "pypy3";
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
    // How long it may take, or what is locked, stands before the command.
    let skip = usize::from(matches!(name, "timeout" | "gtimeout" | "flock"));
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

fn program_needs(name: &str, rest: &[&str], found: &mut Vec<Unwrapped>) {
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
        python if python.starts_with("python") || python == "pypy3" => python_needs(rest, found),
        other if INTERPRETERS.contains(&other) => {
            let script = rest.iter().find(|word| !word.starts_with('-') && !["run", "test"].contains(*word));
            if let Some(script) = script.filter(|word| word.contains('.') || word.contains('/')) {
                need(Need::Script((*script).to_owned()));
            }
        }
        _ => {}
    }
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
            flags if flags.starts_with('-') || flags.starts_with('+') => {}
            script => {
                found.push(Unwrapped::Need(Need::ShellScript(script.to_owned())));
                return;
            }
        }
    }
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
                match *module {
                    "pytest" | "tox" | "nox" | "coverage" => program_needs(module, &behind, found),
                    module => found.push(Unwrapped::Need(Need::Module(module.to_owned()))),
                }
                return;
            }
            "-c" => return,
            "-W" | "-X" | "--source" | "--rcfile" => drop(words.next()),
            word if word.starts_with('-') || word == "run" => {}
            script => return found.push(Unwrapped::Need(Need::Script(script.to_owned()))),
        }
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
fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A program of the system, which is what its name says.
fn is_system(program: &str) -> bool {
    ["/bin/", "/usr/", "/sbin/", "/opt/", "/nix/"].iter().any(|directory| program.starts_with(directory))
}
