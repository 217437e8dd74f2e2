//! Runs the evidence commands of a phase, and reads what they show.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use segno_core::SessionId;
use segno_core::State;
use segno_core::looping::ErrorMark;
use segno_core::looping::EvidenceMark;
use segno_core::looping::EvidencePlan;
use segno_core::looping::ProtectedMark;
use segno_core::looping::Reads;
use segno_core::looping::TestCounts;
use segno_core::looping::TestEnd;
use segno_core::text::shorten;

use super::command::Cut;
use super::command::EvidenceCommand;
use super::command::Shown;
use super::command::run_evidence;
use crate::Engine;
use crate::Error;
use crate::files;
use crate::files::Links;
use crate::launch::LaunchSettings;
use crate::looping::driver::news::LoopListener;
use crate::looping::driver::news::LoopNews;

/// The largest report that is read.
const LARGEST: u64 = 16 * 1024 * 1024;
/// How much of what a failing command printed is told to the agent.
const TOLD: usize = 4_000;

/// What the evidence commands of a phase showed together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Measured {
    /// The tree afterwards: what the commands themselves wrote is part of it. None if there are none.
    pub(crate) tree: Option<String>,
    pub(crate) evidence: Vec<EvidenceMark>,
    /// The files that the phase protects, as they were before anything ran.
    pub(crate) protected: Option<ProtectedMark>,
    pub(crate) tests: Option<TestCounts>,
    pub(crate) names: BTreeMap<String, TestEnd>,
    pub(crate) metrics: BTreeMap<String, f64>,
    /// The end of what the failing ones printed, without secrets.
    pub(crate) failing: String,
    /// What the first failing one says is wrong, if it says so.
    pub(crate) error: Option<ErrorMark>,
    /// Files that changed each time that it was measured.
    pub(crate) restless: Vec<String>,
    /// Somebody wanted it to stop before it was done.
    pub(crate) stopped: bool,
}

impl Measured {
    /// Whether every command succeeded.
    pub(crate) fn passes(&self) -> bool {
        self.evidence.iter().all(|mark| mark.passes)
    }
}

impl Engine {
    /// Runs the evidence commands of a phase, one after the other, and looks at the files that it protects.
    pub(crate) fn gather(
        &self,
        state: &State,
        wanted: (&[EvidencePlan], &[String]),
        settings: &LaunchSettings,
        stops: &dyn Fn() -> bool,
        listener: &dyn LoopListener,
    ) -> Result<Measured, Error> {
        let place = (Path::new(&state.project.path), Some(state.session_id));
        self.gather_at(place, wanted, settings, stops, listener)
    }

    /// The same in a directory, for a session or for none.
    pub(crate) fn gather_at(
        &self,
        (directory, session): (&Path, Option<SessionId>),
        (plans, protect): (&[EvidencePlan], &[String]),
        settings: &LaunchSettings,
        stops: &dyn Fn() -> bool,
        listener: &dyn LoopListener,
    ) -> Result<Measured, Error> {
        let protected = super::protect::protected(protect, directory);
        let mut measured = Measured { protected, ..Measured::default() };
        let guard = settings.guard();
        for plan in plans {
            listener.hear(&LoopNews::Measuring { name: plan.name.clone() });
            let wanted = EvidenceCommand {
                command: &plan.command,
                directory,
                environment: &settings.environment,
                timeout: Duration::from_secs(plan.seconds),
                resources: settings.resources,
                adopts: settings.sole_process,
                guard: &guard,
            };
            let print = super::fingerprint::fingerprint(&plan.command, directory);
            let report = plan.report.as_ref().map(|report| Report::before(directory.join(report)));
            let shown = run_evidence(&wanted, &self.redactor(), stops)?;
            if shown.cut == Some(Cut::Stopped) {
                return Ok(Measured { stopped: true, ..measured });
            }
            let mark = EvidenceMark {
                name: plan.name.clone(),
                exit: shown.exit,
                passes: shown.passes(),
                command_hash: print.command,
                settings_hash: print.settings,
                files: print.files,
                ..EvidenceMark::default()
            };
            measured.take_in(plan, &shown, mark, report.as_ref());
        }
        // Where nothing is measured nothing is bound to a tree: that of the agent is known by its checkpoint.
        if !plans.is_empty() {
            measured.tree = self.tree_at(directory, session)?;
        }
        Ok(measured)
    }
}

impl Measured {
    fn take_in(
        &mut self,
        plan: &EvidencePlan,
        shown: &Shown,
        mut mark: EvidenceMark,
        report: Option<&Report>,
    ) {
        if !mark.passes {
            let tail =
                &shown.output[shown.output.ceil_char_boundary(shown.output.len().saturating_sub(TOLD))..];
            self.failing.push_str(&format!("$ {}\n{tail}\n({})\n", plan.command, shown.words()));
            self.error = self.error.take().or_else(|| error_of(&shown.output));
        }
        match plan.reads {
            Reads::Exit => {}
            Reads::Metrics => self.metrics.extend(numbers(&shown.output)),
            Reads::Tests => {
                let text =
                    report.map_or(Some(Cow::Borrowed(&*shown.output)), |it| it.written().map(Cow::Owned));
                let told = text.and_then(|text| super::tests_read::read(&text, shown));
                mark.tells_tests = told.is_some();
                mark.failing_tests = told.as_ref().map_or(0, |(counts, _)| counts.failed);
                if told.is_none() && mark.passes {
                    mark.silent_runner = match &plan.report {
                        Some(report) => Some(format!("{report}, as this run wrote it")),
                        // What was left out of a long output may be what it said of its tests.
                        None if shown.left_out > 0 => None,
                        None => heard_of(&plan.command).map(|runner| runner.name().to_owned()),
                    };
                }
                self.count_tests(told);
            }
        }
        self.evidence.push(mark);
    }

    fn count_tests(&mut self, read: Option<(TestCounts, BTreeMap<String, TestEnd>)>) {
        let Some((counts, names)) = read else { return };
        self.names.extend(names);
        let sum = self.tests.get_or_insert_with(TestCounts::default);
        sum.total += counts.total;
        sum.passed += counts.passed;
        sum.failed += counts.failed;
        sum.skipped += counts.skipped;
        sum.build_failed |= counts.build_failed;
        sum.incomplete |= counts.incomplete;
        if !sum.runner.contains(&counts.runner) {
            let both = if sum.runner.is_empty() { "" } else { " + " };
            sum.runner.push_str(&format!("{both}{}", counts.runner));
        }
    }
}

/// The test runner of which something should be seen where a command ends well: one that it names and whose words are its
/// own, or one whose exit status is lost to something that always succeeds.
fn heard_of(command: &str) -> Option<segno_evidence::Runner> {
    let masked = || segno_evidence::masked_runner(command).filter(|masked| masked.always);
    segno_evidence::named_runner(command).or_else(|| masked().map(|masked| masked.runner))
}

/// What went wrong, as far as a failing command says so: equal for the same failures, whatever else is printed.
fn error_of(output: &str) -> Option<ErrorMark> {
    let lines = segno_evidence::failure_lines(output);
    let told = segno_evidence::error_lines(output);
    // A heading such as `ERROR: test_adds` says less than what stands below it.
    let first = told.iter().find(|line| !line.starts_with("ERROR: ")).or(told.first()).or(lines.first())?;
    let first = first.clone();
    // Line numbers and ids come and go; but a value that a test found is another failure when it is another value.
    let (values, rest): (Vec<String>, Vec<String>) = lines.into_iter().partition(|line| has_value(line));
    let both = format!("{}\n{}", segno_core::fingerprint(&rest.join("\n")), values.join("\n"));
    let fingerprint = blake3::hash(both.as_bytes()).to_hex()[..16].to_owned();
    Some(ErrorMark { fingerprint, text: shorten(&first, segno_core::limits::LOOP_TEXT) })
}

/// Whether a line says what a test found or wanted.
fn has_value(line: &str) -> bool {
    let starts = ["left:", "right:", "E  ", "AssertionError", "Expected:", "Received:"];
    starts.iter().any(|start| line.starts_with(start))
}

/// Lines such as `coverage=81.5`; the last one of a name counts.
fn numbers(output: &str) -> BTreeMap<String, f64> {
    let number = |line: &str| {
        let (name, value) = line.trim().split_once('=')?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let name = name.trim();
        let value: f64 = value.trim().parse().ok()?;
        (!name.is_empty() && name.chars().all(fits) && value.is_finite()).then(|| (name.to_owned(), value))
    };
    output.lines().filter_map(number).collect()
}

/// The file in which a command says how its tests came out. What lay there before the command ran is no measurement:
/// anybody may have written it.
struct Report {
    path: PathBuf,
    before: Option<Written>,
}

/// What changes whenever a file is written: its place on the disk, its size, and when it and its entry changed.
type Written = (u64, u64, u64, (i64, i64), (i64, i64));

impl Report {
    fn before(path: PathBuf) -> Self {
        let before = Self::state(&path);
        Self { path, before }
    }

    fn state(path: &Path) -> Option<Written> {
        let now = std::fs::metadata(path).ok()?;
        let times = ((now.mtime(), now.mtime_nsec()), (now.ctime(), now.ctime_nsec()));
        Some((now.dev(), now.ino(), now.len(), times.0, times.1))
    }

    /// What the command has written there.
    fn written(&self) -> Option<String> {
        if Self::state(&self.path) == self.before {
            return None;
        }
        let bytes = files::read_bounded(&self.path, LARGEST, Links::Follow).ok().flatten()?;
        String::from_utf8(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_name() {
        let read = numbers("coverage=81.5\nnoise\n a b=1\nwarnings = 3\ncoverage=82\nx=NaN\n");
        assert_eq!(read, BTreeMap::from([("coverage".to_owned(), 82.0), ("warnings".to_owned(), 3.0)]));
    }

    #[test]
    fn the_same_failures_are_the_same_error_in_any_order() {
        let mark = |output: &str| error_of(output).map(|error| error.fingerprint);
        let one = "test a ... FAILED\ntest b ... ok\nthread 'a' (17) panicked at src/lib.rs:7:9:\n  left: 1\n right: 2\n";
        let again = "test b ... ok\ntest a ... FAILED\n  left: 1\n right: 2\nthread 'a' (99) panicked at src/lib.rs:8:9:\n";
        assert_eq!(mark(one), mark(again));
        assert_ne!(mark(one), mark(&one.replace("'a'", "'c'")));
        assert_ne!(mark(one), mark(&one.replace("left: 1", "left: 3")), "it comes nearer, or moves at least");
        assert_eq!(mark("nothing to see here\n"), None, "what says nothing says nothing twice");
    }
}
