//! One reader for each runner.

pub(crate) mod cargo;
mod go;
mod go_json;
mod jest;
mod junit;
mod mocha;
mod nextest;
mod node;
mod pytest;
mod tap;
mod unittest;
mod vitest;
mod xml;

use crate::report::Part;
use crate::text;

/// Reads one run of one runner, line by line.
pub(crate) trait Reader {
    /// Whether the line belongs to this run. Also asked after the result was seen: it may have been a quoted one.
    fn take(&mut self, line: &str) -> bool;

    /// Whether the result was seen.
    fn ended(&self) -> bool;

    /// Whether what was read can be nothing but a run, also if its result is missing.
    fn is_certain(&self) -> bool {
        false
    }

    /// Whether what comes now is certainly printed by a test.
    fn quoting(&self) -> bool {
        false
    }

    /// What was read. Nothing if it was no run at all.
    fn finish(self: Box<Self>) -> Option<Part>;
}

/// What a runner counts at its end.
#[derive(Default)]
struct Numbers {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// A reader if the line begins a run and can mean nothing else.
pub(crate) fn begin(line: &str, before: &mut Before) -> Option<Box<dyn Reader>> {
    if let Some(reader) = cargo::begin(line, before) {
        return Some(reader);
    }
    [nextest::begin, pytest::begin, vitest::begin, junit::begin, tap::begin]
        .iter()
        .find_map(|begin| begin(line))
}

type MayBegin = fn(&str, &Before) -> Option<Box<dyn Reader>>;

/// Readers for runs that begin with lines that could also mean something else.
pub(crate) const MAY_BEGIN: &[MayBegin] = &[
    cargo::may_begin,
    pytest::may_begin,
    unittest::may_begin,
    go::may_begin,
    go_json::may_begin,
    jest::may_begin,
    vitest::may_begin,
    node::may_begin,
    mocha::may_begin,
    tap::may_begin,
];

/// What stood before a run, as far as it tells something about it.
#[derive(Default)]
pub(crate) struct Before {
    /// The titles under which the next line stands, by their indents.
    titles: Vec<(usize, String)>,
    /// The test program that cargo said it runs now.
    program: Option<String>,
    /// Cargo named a program, and no tests followed.
    program_without_tests: bool,
    blank: bool,
    /// Some line was seen.
    any: bool,
}

impl Before {
    pub(crate) fn take(&mut self, line: &str) {
        if let Some(program) = cargo::program(line) {
            self.program_without_tests |= self.program.is_some();
            self.program = Some(program);
        }
        self.blank = line.trim().is_empty();
        self.any = true;
        let indent = text::indent(line);
        if !self.blank {
            self.titles.retain(|(other, _)| *other < indent);
            // Deeper than anybody writes; the list stays small.
            if self.titles.len() < 64 && line.len() < 1000 {
                self.titles.push((indent, line.trim().to_owned()));
            }
        }
    }

    pub(crate) fn titles(&self) -> &[(usize, String)] {
        &self.titles
    }

    /// Whether nothing stood there.
    pub(crate) fn is_nothing(&self) -> bool {
        !self.any
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.blank
    }

    pub(crate) fn take_program(&mut self) -> Option<String> {
        self.program.take()
    }

    /// Cargo names its test programs on stderr and they write to stdout. If the two were not put together as they came,
    /// nobody knows which names belong to which program.
    pub(crate) fn settle_prefixes(&self, parts: &mut [Part]) {
        let is_cargo = |part: &&mut Part| part.runner == crate::report::Runner::CargoTest;
        let apart = parts.iter_mut().filter(is_cargo).any(|part| part.prefix.is_none());
        if apart && (self.program_without_tests || self.program.is_some()) {
            parts.iter_mut().filter(is_cargo).for_each(|part| part.prefix = None);
        }
    }
}
