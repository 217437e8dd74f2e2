//! Commands that cannot be run at all: said before an agent is paid for work that nothing can measure.

use segno_core::looping::EvidenceMark;
use segno_core::looping::EvidencePlan;
use segno_core::text::shorten;

/// How a shell ends that found its program and may not run it, and one that did not find it.
const DENIED: i32 = 126;
const MISSING: i32 = 127;
/// How much is shown of what a command printed.
const LINES: usize = 4;
const CHARACTERS: usize = 200;

/// How a command that measures cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unrunnable {
    /// The command.
    pub(crate) command: String,
    /// How it ended, and the end of what it printed.
    pub(crate) words: String,
    /// It may be there when the work is done: a program that it runs misses something.
    pub(crate) may_come: bool,
}

/// The first of these commands that could not be run, if one could not. `told` is what the failing ones printed.
pub(crate) fn unrunnable(plans: &[EvidencePlan], marks: &[EvidenceMark], told: &str) -> Option<Unrunnable> {
    plans.iter().zip(marks).find_map(|(plan, mark)| {
        let exit = mark.exit.filter(|exit| *exit != 0)?;
        let said = said_by(&plan.command, told);
        let interpreted = said.lines().filter_map(not_opened).any(|name| is_named(&plan.command, name));
        if !interpreted && ![DENIED, MISSING].contains(&exit) {
            return None;
        }
        let end = last_lines(&said).join("; ");
        let words = if end.is_empty() { format!("exit {exit}") } else { format!("exit {exit}: {end}") };
        // What the command itself names would be another measurement if the work brought it. What a program that it runs
        // misses may well be the work.
        let own =
            said.lines().filter_map(missed).any(|name| words_of(&plan.command).any(|word| word == name));
        let may_come = exit == MISSING && !own && !interpreted;
        Some(Unrunnable { command: plan.command.clone(), words, may_come })
    })
}

/// The end of what failing commands printed, without the lines that name them.
pub(crate) fn last_lines(told: &str) -> Vec<String> {
    let lines = told.lines().map(str::trim_end).filter(|line| {
        let framed = line.starts_with("$ ") || (line.starts_with("(exit ") && line.ends_with(')'));
        !line.trim().is_empty() && !framed
    });
    let lines: Vec<&str> = lines.collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    last.iter().map(|line| shorten(line, CHARACTERS)).collect()
}

/// What one of several failing commands printed.
fn said_by(command: &str, told: &str) -> String {
    let rest = told.split_once(&format!("$ {command}\n")).map_or(told, |(_, rest)| rest);
    rest.split("\n$ ").next().unwrap_or(rest).to_owned()
}

/// What a shell says that it did not find.
fn missed(line: &str) -> Option<&str> {
    let (before, _) =
        ["command not found", "not found", "No such file"].iter().find_map(|it| line.split_once(it))?;
    before.trim_end().trim_end_matches(':').rsplit([' ', ':']).next()
}

/// The script that an interpreter says it cannot open: then it has run nothing, whatever its exit status is.
fn not_opened(line: &str) -> Option<&str> {
    let line = line.trim();
    let quoted = |rest: &'static str, close: char| {
        let (_, rest) = line.split_once(rest)?;
        rest.split_once(close).map(|(name, _)| name)
    };
    if line.contains(": can't open file '") {
        return quoted(": can't open file '", '\'');
    }
    if line.starts_with("Error: Cannot find module '") {
        return quoted("Cannot find module '", '\'');
    }
    if line.starts_with("Can't open perl script \"") {
        return quoted("Can't open perl script \"", '"');
    }
    if let Some((_, rest)) = line.split_once("No such file or directory -- ") {
        return rest.split_whitespace().next();
    }
    // A shell: `sh: 0: cannot open check.sh: No such file`. From its first line on it is a redirection that misses its file, and
    // that may well be the work.
    let (_, rest) = line.split_once(": 0: cannot open ").or_else(|| line.split_once(": 0: Can't open "))?;
    Some(rest.split(": ").next().unwrap_or(rest).trim_end())
}

/// Whether a command names a file, of which this is the path.
fn is_named(command: &str, path: &str) -> bool {
    words_of(command).any(|word| {
        let word = word.trim_start_matches("./");
        path == word || path.strip_suffix(word).is_some_and(|before| before.ends_with('/'))
    })
}

/// The words of a command, without what the shell reads between them.
fn words_of(command: &str) -> impl Iterator<Item = &str> {
    let between = |c: char| c.is_whitespace() || "&|;()<>\"'=".contains(c);
    command.split(between).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::dash("nosuchtool --x", 127, "sh: 1: nosuchtool: not found", Some(false))]
    #[case::bash("A=1 nosuchtool", 127, "sh: line 1: nosuchtool: command not found", Some(false))]
    #[case::later("make && nosuchtool", 127, "sh: 1: nosuchtool: not found", Some(false))]
    #[case::by_path("./made -x", 127, "sh: 1: ./made: not found", Some(false))]
    #[case::a_script("sh made.sh", 127, "sh: made.sh: No such file or directory", Some(false))]
    #[case::within("npm test", 127, "> jest\nsh: 1: jest: not found", Some(true))]
    #[case::within_a_script("sh a.sh", 127, "a.sh: 1: exec: ./made: not found", Some(true))]
    #[case::denied("./made", 126, "sh: 1: ./made: Permission denied", Some(false))]
    #[case::python(
        "python3 nosuch.py",
        2,
        "python3: can't open file '/home/p/nosuch.py': [Errno 2] No such file or directory",
        Some(false)
    )]
    #[case::node("node ./nosuch.js", 1, "Error: Cannot find module '/home/p/nosuch.js'", Some(false))]
    #[case::perl("perl no.pl", 2, "Can't open perl script \"no.pl\": No such file or directory", Some(false))]
    #[case::ruby("ruby no.rb", 1, "ruby: No such file or directory -- no.rb (LoadError)", Some(false))]
    #[case::a_shell("sh nosuch.sh", 2, "sh: 0: cannot open nosuch.sh: No such file", Some(false))]
    // What a script misses may be the work.
    #[case::redirected("test $(wc -l < f) -ge 2", 2, "/bin/sh: 1: cannot open f: No such file", None)]
    #[case::required("node a.js", 1, "Error: Cannot find module './feature'", None)]
    #[case::opened(
        "python3 a.py",
        1,
        "FileNotFoundError: [Errno 2] No such file or directory: 'data.txt'",
        None
    )]
    #[case::module("python3 -m feature", 1, "/usr/bin/python3: No module named feature", None)]
    #[case::red("make test", 2, "make: *** [test] Error 1", None)]
    fn what_cannot_be_run(
        #[case] command: &str,
        #[case] exit: i32,
        #[case] output: &str,
        #[case] may_come: Option<bool>,
    ) {
        let plans = [EvidencePlan { command: command.to_owned(), ..EvidencePlan::default() }];
        let marks = [EvidenceMark { exit: Some(exit), ..EvidenceMark::default() }];
        let found = unrunnable(&plans, &marks, &format!("$ {command}\n{output}\n(exit {exit})\n"));
        assert_eq!(found.as_ref().map(|found| found.may_come), may_come, "{found:?}");
        let last = output.lines().last().unwrap();
        assert!(found.is_none_or(|found| found.words.ends_with(last)));
    }
}
