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
        let exit = mark.exit.filter(|exit| [DENIED, MISSING].contains(exit))?;
        let said = said_by(&plan.command, told);
        let end = last_lines(&said).join("; ");
        let words = if end.is_empty() { format!("exit {exit}") } else { format!("exit {exit}: {end}") };
        // What the command itself names would be another measurement if the work brought it. What a program that it runs
        // misses may well be the work.
        let own =
            said.lines().filter_map(missed).any(|name| words_of(&plan.command).any(|word| word == name));
        let may_come = exit == MISSING && !own;
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
