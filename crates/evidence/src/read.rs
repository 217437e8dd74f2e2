//! Finds the runs of test runners in an output and hands each to its reader.

use crate::report::Exit;
use crate::report::Part;
use crate::report::Runner;
use crate::report::TestReport;
use crate::runners;
use crate::runners::Reader;
use crate::runners::cargo;
use crate::text;

/// Makes a report of what a test command printed, stdout and stderr together, and of how it ended. If no runner is
/// recognised the exit status alone tells; `None` if that is not known either.
///
/// Colours, carriage returns, and text in between do not matter. Several runs, also of several runners, are added up.
/// What the tests themselves printed is not counted, as far as the runner marks it.
pub fn read(output: &str, exit: Exit) -> Option<TestReport> {
    let text = text::plain(output);
    let mut lines = Lines::default();
    for line in text.lines() {
        lines.take(line.trim_end());
    }
    let parts = lines.finish(exit);
    if !parts.is_empty() {
        return Some(TestReport::of_parts(parts, exit));
    }
    (exit != Exit::Unknown).then(|| TestReport::of_exit(exit))
}

/// Who reads the next line.
///
/// A runner that begins with a line of its own that nothing else prints becomes the owner and gets every line up to its
/// result: what looks like another runner in between was printed by a test. Runners that begin without such a line
/// are candidates: they read side by side until one of them comes to a result, and the others were mistaken.
#[derive(Default)]
struct Lines {
    parts: Vec<Part>,
    owner: Option<Box<dyn Reader>>,
    candidates: Vec<Option<Box<dyn Reader>>>,
    before: runners::Before,
    build: Build,
}

impl Lines {
    fn take(&mut self, line: &str) {
        if let Some(owner) = &mut self.owner
            && (owner.take(line) || !owner.ended())
        {
            return;
        }
        let quoted = self.candidates.iter().flatten().any(|candidate| candidate.quoting());
        if !quoted {
            self.build.take(line);
            if let Some(mut reader) = runners::begin(line, &mut self.before) {
                self.close_owner();
                self.candidates.clear();
                reader.take(line);
                self.owner = Some(reader);
                return;
            }
        }
        self.candidates.resize_with(runners::MAY_BEGIN.len(), || None);
        for (candidate, may_begin) in self.candidates.iter_mut().zip(runners::MAY_BEGIN) {
            if candidate.is_none() {
                *candidate = may_begin(line, &self.before);
            }
            if let Some(reader) = candidate {
                reader.take(line);
            }
        }
        self.before.take(line);
        let ended = |candidate: &mut Option<Box<dyn Reader>>| candidate.take_if(|reader| reader.ended());
        if let Some(winner) = self.candidates.iter_mut().find_map(ended) {
            self.close_owner();
            self.candidates.clear();
            self.owner = Some(winner);
        }
    }

    fn close_owner(&mut self) {
        self.parts.extend(self.owner.take().and_then(|owner| owner.finish()));
    }

    fn finish(mut self, exit: Exit) -> Vec<Part> {
        self.close_owner();
        // A command that ended by itself showed its result, unless its output was cut on the way. One that was cut off
        // did not come to it.
        let cut = !exit.is_by_itself();
        let told = self.candidates.into_iter().flatten().filter(|candidate| cut || candidate.is_certain());
        let told = told.filter_map(|candidate| candidate.finish());
        self.parts.extend(told.max_by_key(|part| part.tests.len()).filter(|part| !part.tests.is_empty()));
        self.before.settle_prefixes(&mut self.parts);
        self.build.settle(&mut self.parts, exit);
        self.parts
    }
}

/// Whether Rust code could not be built.
#[derive(Default)]
struct Build {
    said_so: bool,
    has_errors: bool,
    by_nextest: bool,
}

impl Build {
    fn take(&mut self, line: &str) {
        self.said_so |= line.starts_with("error: could not compile `");
        self.has_errors |= line.starts_with("error[E");
        self.by_nextest |= line.starts_with("error: command `") && line.contains(" test --no-run ");
    }

    fn settle(&self, parts: &mut Vec<Part>, exit: Exit) {
        // Said in so many words it stands, also where a later command ended well.
        if !self.said_so && (!self.has_errors || !parts.is_empty() || exit.is_success()) {
            return;
        }
        let runner = if self.by_nextest { Runner::Nextest } else { Runner::CargoTest };
        let mut part = cargo::not_built(runner);
        part.complete = self.said_so;
        parts.push(part);
    }
}
