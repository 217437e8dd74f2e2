//! Commands whose exit status says nothing of the tests that they run.

use super::DEEPEST;
use super::runner_in;
use super::words::Simple;
use super::words::Then;
use super::words::simple_commands;
use super::wrappers::Unwrapped;
use super::wrappers::unwrap;
use crate::report::Runner;

/// A test runner whose exit status is not that of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masked {
    /// The runner.
    pub runner: Runner,
    /// What takes the place of its exit status, such as `| tail -3`.
    pub by: String,
    /// That succeeds whatever the tests do, so that only what is printed tells of them.
    pub always: bool,
}

/// Programs that succeed whatever they are given.
const ALWAYS: &[&str] = &[
    "true", ":", "echo", "printf", "tail", "head", "cat", "tee", "less", "more", "sed", "awk", "cut", "sort",
    "uniq", "tr", "ts", "nl", "fold", "column", "wc", "date", "sleep",
];
/// Words that ask for the exit status of what stands behind them.
const ASKS: &[&str] = &["if", "elif", "while", "until", "!"];
/// Words that only close what was opened before.
const CLOSES: &[&str] = &["fi", "done", "esac", "}"];

/// The test runner that a command names and whose exit status it hides, if it does: behind a pipe without `pipefail`,
/// `|| true`, or a command that follows.
pub fn masked_runner(text: &str) -> Option<Masked> {
    masked_in(text, false, 0)
}

fn masked_in(text: &str, stops: bool, depth: usize) -> Option<Masked> {
    // Somebody looks after it.
    if depth >= DEEPEST || ["pipefail", "PIPESTATUS", "$?"].iter().any(|word| text.contains(word)) {
        return None;
    }
    let commands: Vec<Simple> = simple_commands(text).into_iter().filter(|it| !it.nested).collect();
    let mut stops = stops;
    for (at, simple) in commands.iter().enumerate() {
        let words: Vec<&str> = simple.words.iter().map(String::as_str).collect();
        stops |= words.first() == Some(&"set") && words.iter().any(|word| has_flag(word, 'e'));
        let mut runner = None;
        for part in unwrap(&simple.words) {
            match part {
                Unwrapped::Tests(found) => runner = Some(found),
                Unwrapped::Shell(text) => {
                    let inner_stops = words.iter().any(|word| has_flag(word, 'e') && has_flag(word, 'c'));
                    if let Some(masked) = masked_in(&text, inner_stops, depth + 1) {
                        return Some(masked);
                    }
                    runner = runner_in(&text, depth + 1);
                }
                _ => {}
            }
        }
        let Some(runner) = runner.filter(|_| !words.iter().any(|word| ASKS.contains(word))) else { continue };
        let rest = commands.get(at + 1..).unwrap_or_default();
        if let Some((by, always)) = hidden(simple.then, rest, stops) {
            return Some(Masked { runner, by, always });
        }
    }
    None
}

/// What takes the place of a command's exit status, given what follows it.
fn hidden(then: Then, rest: &[Simple], stops: bool) -> Option<(String, bool)> {
    let (mut then, mut rest) = (then, rest);
    loop {
        let Some((next, more)) = rest.split_first() else {
            return (then == Then::Beside).then(|| ("&".to_owned(), true));
        };
        let words: Vec<&str> = next.words.iter().map(String::as_str).collect();
        let said = words.join(" ");
        match then {
            Then::Beside => return Some((format!("& {said}"), true)),
            Then::Pipe => {
                let last = rest.iter().find(|it| it.then != Then::Pipe).or(rest.last());
                return Some((format!("| {said}"), last.is_some_and(succeeds)));
            }
            // What comes then may fail by itself.
            Then::Or => return (succeeds(next) && !fails(rest)).then(|| (format!("|| {said}"), true)),
            Then::Next if words.iter().all(|word| CLOSES.contains(word)) => {}
            Then::Next if stops || fails(rest) => return None,
            Then::Next => return Some((format!("; {said}"), rest.last().is_some_and(succeeds))),
            Then::And => {}
        }
        (then, rest) = (next.then, more);
    }
}

/// Whether a command succeeds whatever it is given.
fn succeeds(simple: &Simple) -> bool {
    let words: Vec<&str> = simple.words.iter().map(String::as_str).filter(|word| *word != "{").collect();
    matches!(words.as_slice(), ["exit", "0"]) || words.first().is_some_and(|word| ALWAYS.contains(word))
}

/// Whether one of these says by itself that something failed.
fn fails(commands: &[Simple]) -> bool {
    commands.iter().any(|simple| {
        let words: Vec<&str> = simple.words.iter().map(String::as_str).collect();
        words.contains(&"false")
            || words.windows(2).any(|pair| matches!(pair[0], "exit" | "return") && pair[1] != "0")
    })
}

/// Whether a word is flags with this one among them.
fn has_flag(word: &str, flag: char) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(flag)
}
