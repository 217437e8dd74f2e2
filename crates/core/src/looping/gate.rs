//! The exit gate of a phase: conditions with their values, and the explicit signal.

use serde::Deserialize;
use serde::Serialize;

use super::marks::EvidenceMark;
use super::observation::Named;
use super::observation::Observation;
use super::observation::line;
use super::observation::name;
use super::plan::GateRule;
use super::plan::MetricRule;
use super::state::LoopState;
use crate::limits;

/// One condition of the first gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// What is looked at.
    pub name: String,
    /// What it should be.
    pub wanted: String,
    /// What it is.
    pub value: String,
    /// Whether that is enough.
    pub holds: bool,
    /// Whether a person may accept that it does not hold.
    pub acceptable: bool,
    /// What it is that differs, as a hash: a person who accepts it accepts this, until it changes again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// How a gate came out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateResult {
    /// The conditions of the first gate.
    pub conditions: Vec<Condition>,
    /// Whether they all hold.
    pub gate_1: bool,
    /// Whether the agent said explicitly that it is done; none if that is not asked for.
    pub gate_2: Option<bool>,
    /// Whether the phase is done.
    pub can_exit: bool,
    /// The tree that was measured.
    pub tree: Option<String>,
    /// How many times in a row all tests passed, this measurement included.
    pub runs: u32,
    /// What a person should know.
    pub warnings: Vec<String>,
}

impl GateResult {
    /// The same within bounds, whoever made it.
    pub(crate) fn bounded(mut self) -> Self {
        self.conditions.truncate(limits::CONDITIONS);
        for condition in &mut self.conditions {
            name(&mut condition.name);
            name(&mut condition.wanted);
            line(&mut condition.value);
            condition.mark.iter_mut().for_each(name);
        }
        self.tree.iter_mut().for_each(name);
        self.warnings.truncate(limits::LOOP_NAMES);
        self.warnings.iter_mut().for_each(line);
        self
    }
}

/// How the gate of the present phase comes out for what an iteration showed. `iteration` is its number in the phase.
pub fn evaluate(state: &LoopState, seen: &Observation, iteration: u64) -> GateResult {
    let Some(phase) = state.phase_plan() else { return GateResult::default() };
    let mut checks = Checks { state, seen, conditions: Vec::new() };
    let runs = checks.green_runs();
    match &phase.gate {
        GateRule::Red { criteria } => checks.red((*criteria).max(1)),
        GateRule::Green { runs: wanted } => checks.green(runs, (*wanted).max(1)),
        GateRule::Refactor { iterations } => checks.refactor(iteration, *iterations),
        GateRule::Document { docs, adr } => checks.document(*docs, *adr),
        GateRule::Qa => checks.qa(),
        GateRule::Until => checks.until(),
        GateRule::Metrics(rules) => rules.iter().for_each(|rule| checks.metric_rule(rule)),
        GateRule::Signal => {}
    }
    if !matches!(phase.gate, GateRule::Signal) {
        checks.runners_speak();
        checks.nothing_lost();
    }
    checks.at_rest();
    checks.whole();
    checks.not_tampered(matches!(phase.gate, GateRule::Red { .. }));
    checks.accept();
    let conditions = checks.conditions;
    let only_signal = matches!(phase.gate, GateRule::Signal);
    let gate_1 = conditions.iter().all(|one| one.holds) && (only_signal || !conditions.is_empty());
    let gate_2 = (state.plan.signal || only_signal).then(|| seen.claims.exit_signal == Some(true));
    let warnings = warnings(seen, gate_1);
    let can_exit = gate_1 && gate_2.unwrap_or(true);
    GateResult { conditions, gate_1, gate_2, can_exit, tree: seen.bound_to().cloned(), runs, warnings }
        .bounded()
}

/// The conditions of one gate, as they are gathered.
struct Checks<'a> {
    state: &'a LoopState,
    seen: &'a Observation,
    conditions: Vec<Condition>,
}

impl Checks<'_> {
    fn put(&mut self, name: &str, wanted: impl Into<String>, value: impl Into<String>, holds: bool) {
        let (wanted, value) = (wanted.into(), value.into());
        let name = name.to_owned();
        self.conditions.push(Condition { name, wanted, value, holds, acceptable: false, mark: None });
    }

    /// A condition that a person may accept.
    fn put_acceptable(&mut self, name: &str, wanted: &str, value: String, holds: bool) {
        // What is too long to be told whole is accepted on one tree only.
        let whole = !value.ends_with(MORE) && value.len() <= limits::NAME;
        let mark = (!holds && whole).then(|| value.clone());
        self.put(name, wanted, value, holds);
        if let Some(last) = self.conditions.last_mut() {
            (last.acceptable, last.mark) = (true, mark);
        }
    }

    /// Tests that fail and did not already fail when the loop began.
    fn failing(&self) -> Option<u64> {
        let tests = self.seen.tests.as_ref()?;
        let old = self.seen.since_start.as_ref().map_or(0, |since| since.old_failing);
        Some(tests.failed.saturating_sub(old))
    }

    /// How many times in a row all tests passed, with this measurement. What is flaky passed by chance.
    fn green_runs(&self) -> u32 {
        let Some(tests) = &self.seen.tests else { return 0 };
        let green = tests.ran() > 0
            && !tests.build_failed
            && !tests.incomplete
            && self.failing() == Some(0)
            && !self.seen.flaky;
        if green { self.state.green_runs.saturating_add(self.seen.measured.max(1)) } else { 0 }
    }

    fn red(&mut self, criteria: u64) {
        let Some(tests) = &self.seen.tests else {
            return self.put("new failing tests", format!("at least {criteria}"), NOT_MEASURED, false);
        };
        let changes = &self.seen.changes;
        if tests.build_failed {
            // Tests for what is not there yet often do not build. Nothing can be said of the old ones then.
            let built = self.state.baseline.as_ref().is_none_or(|mark| !mark.tests.build_failed);
            let changed = self.state.baseline.as_ref().is_none_or(|mark| mark.tree != self.seen.tree_after);
            let value = if built { "the tests do not build any more" } else { "they did not build before" };
            return self.put("new failing tests", format!("at least {criteria}"), value, built && changed);
        }
        let (failing, passing) = self.new_tests(tests);
        self.put(
            "new failing tests",
            format!("at least {criteria}"),
            failing.to_string(),
            failing >= criteria,
        );
        let value =
            if changes.new_passing.is_empty() { passing.to_string() } else { list(&changes.new_passing) };
        self.put("new passing tests", "0", value, passing == 0);
        self.not_broken();
        self.not_weaker();
    }

    /// New tests that fail and that pass: by name, or by the numbers where the runner tells no names.
    fn new_tests(&self, tests: &super::TestCounts) -> (u64, u64) {
        let named = (self.seen.changes.new_failing.count, self.seen.changes.new_passing.count);
        let Some(before) = self.state.baseline.as_ref().filter(|mark| !mark.named && named == (0, 0)) else {
            return named;
        };
        let new = tests.ran().saturating_sub(before.tests.ran());
        let failing = tests.failed.saturating_sub(before.tests.failed).min(new);
        (failing, new - failing)
    }

    /// Tests that were not there when the loop began, as far as anybody can tell.
    fn new_since_start(&self) -> Option<u64> {
        let by_name = self.seen.since_start.as_ref().map(|since| since.new);
        by_name.or_else(|| {
            let before = self.state.first.as_ref()?.tests.ran();
            Some(self.seen.tests.as_ref()?.ran().saturating_sub(before))
        })
    }

    fn green(&mut self, runs: u32, wanted: u32) {
        self.tests_pass();
        if self.state.promised > 0 {
            let new = self.new_since_start();
            let holds = new.is_some_and(|new| new >= self.state.promised);
            let value = new.map_or(NOT_MEASURED.to_owned(), |new| new.to_string());
            self.put_acceptable("new tests", &format!("at least {}", self.state.promised), value, holds);
        }
        let value =
            if self.seen.flaky { "0, they differ on the same tree".to_owned() } else { runs.to_string() };
        self.put("passing runs in a row", format!("at least {wanted}"), value, runs >= wanted);
        self.not_broken();
        self.not_weaker();
        self.commands_succeed();
    }

    /// There are tests, and none fails that did not fail when the loop began.
    fn tests_pass(&mut self) {
        let ran = self.seen.tests.as_ref().map(super::TestCounts::ran);
        let value = ran.map_or(NOT_MEASURED.to_owned(), |ran| ran.to_string());
        self.put("tests", "at least 1", value, ran.is_some_and(|ran| ran > 0));
        let Some(tests) = &self.seen.tests else { return };
        if tests.build_failed {
            return self.put("failing tests", "0", "the tests do not build", false);
        }
        let failing = self.failing().unwrap_or(tests.failed);
        let old = tests.failed.saturating_sub(failing);
        let old = if old > 0 { format!(" (and {old} that failed before)") } else { String::new() };
        self.put("failing tests", "0", format!("{failing}{old}"), failing == 0);
        if self.seen.flaky {
            self.put("stable tests", "the same on the same files", "they differ on the same files", false);
        }
    }

    fn refactor(&mut self, iteration: u64, wanted: u64) {
        self.tests_pass();
        let says = |name: &str| self.seen.claims.metrics.get(name).is_some_and(|value| *value > 0.0);
        let through = says("refactoring_complete") || says("no_improvements_found");
        let value = if through { "it says so".to_owned() } else { format!("iteration {iteration}") };
        let wanted_words = format!("the agent is through, or iteration {wanted}");
        self.put("refactored", wanted_words, value, through || iteration >= wanted);
        self.not_broken();
        self.not_weaker();
        self.commands_succeed();
    }

    fn document(&mut self, docs: u64, adr: bool) {
        self.metric("docs_generated", &format!("at least {docs}"), |value| value >= docs as f64);
        if adr {
            self.metric("has_adr", "at least 1", |value| value >= 1.0);
        }
        if let Some(total) = self.seen.metrics.get("diagrams_total").copied() {
            self.metric("diagrams_valid", &format!("{total}"), |value| value >= total);
        }
        self.old_tests_pass();
        self.commands_succeed();
    }

    /// What tests there are pass, and those that were seen when the phase began are still seen.
    fn old_tests_pass(&mut self) {
        match self.seen.tests.is_some() {
            true => {
                self.tests_pass();
                self.not_broken();
                self.not_weaker();
            }
            false => self.tests_are_seen(),
        }
    }

    /// A command that tells of no failing tests succeeds; one that does may fail for those that failed when the loop began.
    fn commands_succeed(&mut self) {
        self.evidence_but(|mark| mark.tells_tests && mark.failing_tests > 0);
    }

    /// A command that runs tests by a runner that it names itself shows them, whatever others show.
    fn runners_speak(&mut self) {
        for mark in self.seen.evidence.iter().filter(|mark| mark.passes) {
            if let Some(runner) = &mark.silent_runner {
                let value = format!("none were seen of {runner}");
                self.put_acceptable(&format!("tests of {}", mark.name), "at least 1", value, false);
            }
        }
    }

    /// A measurement that shows no test where there were some says nothing of them: whatever ran them may have been made to
    /// end well before its first test.
    fn tests_are_seen(&mut self) {
        // A command that fails shows why by itself.
        if self.seen.tests.is_some() || self.seen.evidence.iter().any(|mark| !mark.passes) {
            return;
        }
        let marks = [&self.state.first, &self.state.baseline].into_iter().flatten().map(|mark| &mark.tests);
        let measured = marks.chain(&self.state.tests);
        // What does not build has tests, how many nobody knows.
        let known = measured.map(|tests| tests.ran().max(u64::from(tests.build_failed)));
        let later = self.state.recent.iter().filter_map(|recent| recent.tests.map(|(_, total)| total));
        let before = known.chain(later).max().unwrap_or(0);
        if before > 0 {
            let wanted = format!("as they were seen before: {before}");
            self.put_acceptable("tests", &wanted, "none were seen".to_owned(), false);
        }
    }

    fn qa(&mut self) {
        let verdict = self.seen.claims.verdict.clone().unwrap_or_else(|| "none".to_owned());
        let approves = verdict.eq_ignore_ascii_case("approve") || verdict.eq_ignore_ascii_case("approved");
        self.put("verdict of the review", "APPROVE", verdict, approves);
        let blocking = self.seen.claims.metrics.get("blocking_issues").copied();
        let value = blocking.map_or("not said".to_owned(), |n| n.to_string());
        self.put("blocking issues", "0", value, blocking == Some(0.0));
        // An approval that the numbers contradict is none.
        self.commands_succeed();
        self.old_tests_pass();
    }

    fn until(&mut self) {
        if self.seen.evidence.is_empty() {
            self.put("evidence", "at least 1 command", NOT_MEASURED, false);
        }
        self.evidence();
        if let Some(tests) = &self.seen.tests {
            let (ran, build_failed) = (tests.ran(), tests.build_failed);
            self.put("tests", "at least 1", ran.to_string(), ran > 0 && !build_failed);
            self.put("failing tests", "0", tests.failed.to_string(), tests.failed == 0);
        }
        self.tests_are_seen();
        self.not_weaker();
    }

    fn evidence(&mut self) {
        self.evidence_but(|_| false);
    }

    /// Every command succeeds, but for those of which that is not asked.
    fn evidence_but(&mut self, excused: impl Fn(&EvidenceMark) -> bool) {
        for mark in self.seen.evidence.iter().filter(|mark| mark.passes || !excused(mark)) {
            let value = mark.exit.map_or("did not end".to_owned(), |exit| format!("exit {exit}"));
            self.put(&format!("command {}", mark.name), "exit 0", value, mark.passes);
        }
    }

    fn metric(&mut self, name: &str, wanted: &str, holds: impl Fn(f64) -> bool) {
        let value = self.seen.metrics.get(name).copied();
        let words = value.map_or(NOT_MEASURED.to_owned(), |value| value.to_string());
        self.put(name, wanted, words, value.is_some_and(holds));
    }

    fn metric_rule(&mut self, rule: &MetricRule) {
        let wanted: Vec<String> = [
            rule.at_least.map(|least| format!("at least {least}")),
            rule.at_most.map(|most| format!("at most {most}")),
            rule.equals.map(|exactly| format!("{exactly}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        self.metric(&rule.name, &wanted.join(", "), |value| {
            rule.at_least.is_none_or(|least| value >= least)
                && rule.at_most.is_none_or(|most| value <= most)
                && rule.equals.is_none_or(|exactly| (value - exactly).abs() < 1e-9)
        });
    }

    /// Nothing that passed when the phase began fails now.
    fn not_broken(&mut self) {
        let broken = &self.seen.changes.newly_failing;
        self.put("tests that passed before and fail", "0", list(broken), broken.is_empty());
    }

    /// What is measured did not become weaker: a person may accept that it did.
    fn not_weaker(&mut self) {
        let (removed, skipped) = (&self.seen.changes.removed, &self.seen.changes.newly_skipped);
        let measured = self.seen.tests.as_ref().filter(|tests| !tests.build_failed);
        if let (Some(tests), Some(before)) = (measured, self.state.reference()) {
            if before.tests.build_failed && !before.named {
                // How many there were nobody knows; which files they were in is looked at apart from this.
            } else if before.named && !self.seen.by_number {
                self.put_acceptable("removed tests", "0", list(removed), removed.is_empty());
                self.put_acceptable("newly skipped tests", "0", list(skipped), skipped.is_empty());
            } else {
                let (then, now) = (before.tests.ran(), tests.ran());
                let wanted = format!("at least {then}");
                self.put_acceptable("number of tests", &wanted, now.to_string(), now >= then);
            }
            let until = self.state.phase_plan().is_some_and(|plan| plan.gate == GateRule::Until);
            // A number says nothing of which tests they are. A command that never named them, and that is all that is asked
            // for, passes with a warning; what asks for tests, and what has lost their names, does not.
            if self.seen.by_number && (before.named || !until) {
                self.put_acceptable(BY_NAME, "each with its name", "only their numbers".to_owned(), false);
            }
        }
    }

    /// Tests that nobody could load when the phase began are loaded, or at least still there: their names are not known, so
    /// nobody would miss them.
    fn nothing_lost(&mut self) {
        let lost = &self.seen.lost;
        if !lost.is_empty() {
            self.put_acceptable(
                "tests that could not be loaded",
                "loaded, or still there",
                list(lost),
                false,
            );
        }
    }

    /// Of a run that was cut short nobody knows what the rest would have shown.
    fn whole(&mut self) {
        if self.seen.tests.as_ref().is_some_and(|tests| tests.incomplete) {
            self.put("whole run", "the result of the test runner", "the output ends before it", false);
        }
    }

    /// What was measured is true of the files as they are.
    fn at_rest(&mut self) {
        let restless = &self.seen.restless;
        if !restless.is_empty() {
            let value = format!("changed each time: {}", restless.join(", "));
            self.put("files at rest while measured", "the same before and after", value, false);
        }
    }

    /// What measures is what it was when the phase began: a person may accept that it is not. A phase that writes tests
    /// may change the settings of the test runner.
    fn not_tampered(&mut self, writes_tests: bool) {
        let Some(before) = &self.state.baseline else { return };
        for mark in &self.seen.evidence {
            let Some(then) = before.evidence.iter().find(|then| then.name == mark.name) else { continue };
            if then.command_hash != mark.command_hash {
                self.changed(&evidence_condition(&mark.name), &mark.command_hash, &mark.changed);
            }
            if then.settings_hash != mark.settings_hash && !then.settings_hash.is_empty() && !writes_tests {
                self.changed(&settings_condition(&mark.name), &mark.settings_hash, &mark.changed_settings);
            }
        }
        if let (Some(then), Some(now)) = (&before.protected, &self.seen.protected)
            && *then != now.hash
        {
            self.changed(PROTECTED, &now.hash, &now.changed);
        }
    }

    fn changed(&mut self, name: &str, mark: &str, files: &[String]) {
        let value =
            if files.is_empty() { "changed".to_owned() } else { format!("changed: {}", files.join(", ")) };
        self.put_acceptable(name, "as when the phase began", value, false);
        if let Some(last) = self.conditions.last_mut() {
            last.mark = Some(mark.to_owned());
        }
    }

    /// What a person accepted holds: on the tree that they looked at, and wherever exactly the same is missing.
    fn accept(&mut self) {
        let Some(accepted) = &self.state.accepted else { return };
        let same_tree = accepted.tree.as_ref() == self.seen.bound_to();
        for condition in self.conditions.iter_mut().filter(|one| !one.holds && one.acceptable) {
            let here = same_tree && accepted.conditions.contains(&condition.name);
            let same =
                condition.mark.is_some() && accepted.marks.get(&condition.name) == condition.mark.as_ref();
            if here || same {
                condition.accept(&accepted.because);
            }
        }
    }
}

impl Condition {
    /// A person accepts that it does not hold.
    pub(crate) fn accept(&mut self, because: &str) {
        self.holds = true;
        self.value = format!("{} (accepted: {because})", self.value);
        line(&mut self.value);
    }
}

/// The condition that a command that measures is what it was.
pub(crate) fn evidence_condition(name: &str) -> String {
    format!("evidence command {name}")
}

/// The condition that the settings of its test runner are what they were.
pub(crate) fn settings_condition(name: &str) -> String {
    format!("test settings of {name}")
}

/// The condition that protected files are what they were.
pub(crate) const PROTECTED: &str = "protected files";

/// The condition that tests are compared one by one.
pub(crate) const BY_NAME: &str = "tests by name";

/// What stands behind names that are not all.
const MORE: &str = " and more";

/// What stands where a value should be that nobody has.
const NOT_MEASURED: &str = "not measured";

/// How many, and the first few by name.
fn list(named: &Named) -> String {
    if named.names.is_empty() {
        return named.count.to_string();
    }
    let more = if (named.names.len() as u64) < named.count { MORE } else { "" };
    format!("{}: {}{more}", named.count, named.names.join(", "))
}

fn warnings(seen: &Observation, gate_1: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if seen.claims.exit_signal == Some(true) && !gate_1 {
        warnings.push("the agent says that it is done, but what is measured says otherwise".to_owned());
    }
    if seen.flaky {
        warnings.push("the tests came out differently on the same tree".to_owned());
    }
    if seen.by_number {
        let runner = seen.tests.as_ref().map(|tests| tests.runner.as_str()).unwrap_or_default();
        warnings.push(format!(
            "the tests are compared by their numbers only: one that is replaced by another is not noticed; {}",
            naming(runner)
        ));
    }
    let says = |name: &str| seen.claims.metrics.get(name).copied();
    if let (Some(said), Some(tests)) = (says("tests_failing"), &seen.tests)
        && (said - tests.failed as f64).abs() > 0.5
    {
        warnings.push(format!("the agent says that {said} tests fail, but {} do", tests.failed));
    }
    warnings.extend(seen.claims.problems.iter().cloned());
    warnings
}

/// How a test runner is made to name its tests.
fn naming(runner: &str) -> &'static str {
    // Its name ends like that of Go's.
    let known = [
        ("cargo test", "cargo test without -q names them"),
        ("pytest", "pytest -v names them"),
        ("unittest", "python -m unittest -v names them"),
        ("go test", "go test -v names them"),
        ("jest", "jest --verbose names them"),
        ("vitest", "vitest --reporter=verbose names them"),
        ("mocha", "mocha --reporter spec names them"),
    ];
    let found = known.iter().find(|(name, _)| runner.contains(name));
    found.map_or("a verbose run of the tests may name them", |(_, words)| words)
}
