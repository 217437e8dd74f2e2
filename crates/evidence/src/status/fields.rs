//! What the keys of a block mean.

use std::collections::BTreeMap;

use super::ClaimedFiles;
use super::ClaimedTests;
use super::Family;
use super::StatusBlock;
use super::TestsStatus;
use super::WorkStatus;

/// The longest value that is kept, in characters.
const LONGEST: usize = 2000;

/// The keys of a block with their values, as they stand there.
#[derive(Default)]
pub(super) struct Raw {
    fields: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<String>>,
    problems: Vec<String>,
    contradictions: Vec<String>,
}

/// A value without quotes, and without what stands behind `#`.
fn bare(value: &str) -> &str {
    let value = match value.find(" #") {
        Some(at) => value.get(..at).unwrap_or(value),
        None => value,
    };
    value.trim().trim_matches(['"', '\'', '`', '*']).trim()
}

/// `true` or `false`, in any case.
pub(super) fn truth(value: &str) -> Option<bool> {
    let value = bare(value);
    if value.eq_ignore_ascii_case("true") {
        return Some(true);
    }
    value.eq_ignore_ascii_case("false").then_some(false)
}

impl Raw {
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.lists.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.fields.len() + self.lists.values().map(Vec::len).sum::<usize>()
    }

    pub(super) fn set(&mut self, key: String, value: &str) {
        let value: String = value.chars().take(LONGEST).collect();
        if let Some(before) = self.fields.insert(key.clone(), value.clone()) {
            let decides =
                ["status", "exit_signal", "verdict"].contains(&key.as_str()) && bare(&before) != bare(&value);
            let problem = format!("{} is there twice; the first was \"{before}\"", key.to_ascii_uppercase());
            match decides {
                true => self.contradicts(problem),
                false => self.problems.push(problem),
            }
        }
    }

    /// A key whose list may follow.
    pub(super) fn group(&mut self, key: &str) {
        self.lists.entry(key.to_owned()).or_default();
    }

    pub(super) fn item(&mut self, key: &str, item: &str) {
        self.lists.entry(key.to_owned()).or_default().push(item.chars().take(LONGEST).collect());
    }

    fn contradicts(&mut self, problem: String) {
        self.problems.push(problem.clone());
        self.contradictions.push(problem);
    }

    /// The value of a key as a word in upper case.
    fn word(&self, key: &str) -> Option<String> {
        let word = bare(self.fields.get(key)?).to_ascii_uppercase();
        (!word.is_empty()).then_some(word)
    }

    fn number(&mut self, key: &str) -> Option<u64> {
        let value = bare(self.fields.get(key)?).trim_end_matches('%').trim_end();
        let number = value.parse().ok();
        if number.is_none() {
            let problem = format!("{} is no number: \"{value}\"", key.to_ascii_uppercase());
            self.problems.push(problem);
        }
        number
    }

    fn status(&mut self) -> Option<WorkStatus> {
        let word = self.word("status")?.replace([' ', '-'], "_");
        match word.as_str() {
            "IN_PROGRESS" => Some(WorkStatus::InProgress),
            "BLOCKED" => Some(WorkStatus::Blocked),
            "COMPLETE" | "COMPLETED" => Some(WorkStatus::Complete),
            _ => {
                self.problems
                    .push(format!("STATUS is neither IN_PROGRESS nor BLOCKED nor COMPLETE: \"{word}\""));
                None
            }
        }
    }

    fn tests_status(&mut self) -> Option<TestsStatus> {
        let word = self.word("tests_status")?.replace([' ', '-'], "_");
        match word.as_str() {
            "PASSING" => Some(TestsStatus::Passing),
            "FAILING" => Some(TestsStatus::Failing),
            "NOT_RUN" => Some(TestsStatus::NotRun),
            _ => {
                self.problems
                    .push(format!("TESTS_STATUS is neither PASSING nor FAILING nor NOT_RUN: \"{word}\""));
                None
            }
        }
    }

    fn exit_signal(&mut self) -> Option<bool> {
        let value = self.fields.get("exit_signal")?;
        let signal = truth(value);
        if signal.is_none() {
            self.problems.push(format!("EXIT_SIGNAL is neither true nor false: \"{value}\""));
        }
        signal
    }

    fn tests(&mut self) -> ClaimedTests {
        let tests = ClaimedTests {
            total: self.number("tests.total"),
            passing: self.number("tests.passing"),
            failing: self.number("tests.failing"),
            skipped: self.number("tests.skipped"),
        };
        if let (Some(total), Some(passing), Some(failing)) = (tests.total, tests.passing, tests.failing) {
            let skipped = tests.skipped.unwrap_or(0);
            let sum = passing.checked_add(failing).and_then(|sum| sum.checked_add(skipped));
            if sum != Some(total) {
                self.contradicts(format!(
                    "TESTS: {passing} passing, {failing} failing and {skipped} skipped are not {total} in total"
                ));
            }
        }
        tests
    }

    fn blockers(&mut self) -> Vec<String> {
        let mut blockers = self.lists.get("blockers").cloned().unwrap_or_default();
        if let Some(inline) = self.fields.get("blockers") {
            let inside = inline.strip_prefix('[').and_then(|inline| inline.strip_suffix(']'));
            match inside {
                Some(list) => blockers.extend(list.split(',').map(|item| bare(item).to_owned())),
                None => blockers.push(inline.clone()),
            }
        }
        let says_something = |blocker: &String| {
            // `None.`, `(none)`.
            let word = bare(blocker).trim_matches(['(', ')', '[', ']', '.', '*', '`', '"', ' ']);
            !word.is_empty() && !word.eq_ignore_ascii_case("none") && !word.eq_ignore_ascii_case("n/a")
        };
        blockers.retain(says_something);
        blockers
    }

    fn progress(&mut self) -> Option<u64> {
        let progress = self.number("progress_percent").or_else(|| self.number("progress"))?;
        if progress > 100 {
            self.problems.push(format!("PROGRESS_PERCENT is more than 100: {progress}"));
        }
        Some(progress)
    }

    fn metrics(&self) -> BTreeMap<String, f64> {
        let number = |value: &String| bare(value).trim_end_matches('%').trim_end().parse::<f64>().ok();
        let numbers = self.fields.iter().filter_map(|(key, value)| Some((key.clone(), number(value)?)));
        let mut metrics: BTreeMap<String, f64> = numbers.filter(|(_, number)| number.is_finite()).collect();
        // A list counts by its length: patterns applied, documents written.
        for (key, list) in self.lists.iter().filter(|(key, list)| *key != "blockers" && !list.is_empty()) {
            metrics.insert(key.clone(), list.len() as f64);
        }
        metrics
    }

    pub(super) fn into_block(mut self, family: Family, has_end: bool) -> StatusBlock {
        let files = ClaimedFiles {
            created: self.number("files.created"),
            modified: self.number("files.modified").or_else(|| self.number("files_modified")),
            deleted: self.number("files.deleted"),
        };
        let (status, exit_signal) = (self.status(), self.exit_signal());
        let said = self.fields.contains_key("status") || self.fields.contains_key("exit_signal");
        if self.fields.get("dual_gate.can_exit").and_then(|value| truth(value)) == Some(true)
            && ["dual_gate.gate_1", "dual_gate.gate_2"]
                .iter()
                .any(|gate| self.fields.get(*gate).and_then(|value| truth(value)) == Some(false))
        {
            self.contradicts("DUAL_GATE: CAN_EXIT is true, and one of the gates is not".to_owned());
        }
        let blockers = self.blockers();
        if exit_signal == Some(true) {
            self.check_signal(status, &blockers);
        }
        let recommendation = self.fields.get("recommendation").cloned();
        StatusBlock {
            family,
            complete: has_end && said,
            phase: self.word("phase"),
            status,
            iteration: self.number("iteration"),
            progress: self.progress(),
            tests: self.tests(),
            tests_status: self.tests_status(),
            files,
            exit_signal,
            blockers,
            recommendation,
            verdict: self.word("verdict"),
            work_type: self.word("work_type"),
            tasks_completed: self
                .number("tasks_completed_this_loop")
                .or_else(|| self.number("tasks_completed")),
            metrics: self.metrics(),
            fields: self.with_lists(),
            problems: self.problems,
            contradictions: self.contradictions,
        }
    }

    /// Whoever says that all is done cannot say in the same breath that something keeps it from being done. That work is
    /// in progress is no contradiction: a phase may be done while the whole is not.
    fn check_signal(&mut self, status: Option<WorkStatus>, blockers: &[String]) {
        if status == Some(WorkStatus::Blocked) {
            self.contradicts("STATUS is BLOCKED, and EXIT_SIGNAL is true".to_owned());
        }
        if let Some(first) = blockers.first() {
            self.contradicts(format!("BLOCKERS names \"{first}\", and EXIT_SIGNAL is true"));
        }
        if self.fields.get("dual_gate.can_exit").and_then(|value| truth(value)) == Some(false) {
            self.contradicts("DUAL_GATE: CAN_EXIT is false, and EXIT_SIGNAL is true".to_owned());
        }
    }

    /// Lists that nobody knows are kept as text.
    fn with_lists(&mut self) -> BTreeMap<String, String> {
        let mut fields = std::mem::take(&mut self.fields);
        for (key, list) in std::mem::take(&mut self.lists) {
            if !list.is_empty() {
                fields.entry(key).or_insert_with(|| list.join("\n"));
            }
        }
        fields
    }
}
