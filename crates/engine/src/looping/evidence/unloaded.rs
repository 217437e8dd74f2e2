//! Tests that nobody could run when a phase began: a file of them that is gone afterwards would not be missed otherwise.

use std::collections::BTreeMap;
use std::path::Path;

use segno_core::looping::EvidenceMark;
use segno_core::looping::EvidencePlan;
use segno_core::looping::Named;
use segno_core::looping::TestEnd;
use segno_core::looping::UnloadedTests;

use super::fingerprint::files_below;
use super::gather::Measured;
use crate::files;
use crate::files::Links;

/// How many entries of directories are looked at.
const LOOKED_AT: usize = 20_000;
/// How deep.
const DEEP: usize = 16;
/// The largest file that is read.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The files of tests that a broken measurement says nothing of; none if it was not broken.
pub(crate) fn unloaded(
    plans: &[EvidencePlan],
    measured: &Measured,
    root: &Path,
) -> BTreeMap<String, UnloadedTests> {
    let Some((runners, some_ran)) = broken(plans, measured) else { return BTreeMap::new() };
    let mut found = written_below(root, &runners);
    for (file, tests) in &mut found {
        tests.told = names(&measured.failing, file);
    }
    // Where others ran, those are meant that the runner speaks of.
    if some_ran && found.values().any(|tests| tests.told) {
        found.retain(|_, tests| tests.told);
    }
    found
}

/// Who ran tests of which some, or all, could not be loaded, and whether some were.
fn broken(plans: &[EvidencePlan], measured: &Measured) -> Option<(String, bool)> {
    if let Some(tests) = &measured.tests {
        let some_ran = !measured.names.is_empty() && !tests.incomplete;
        return (tests.build_failed || tests.incomplete).then(|| (tests.runner.clone(), some_ran));
    }
    // A runner that fails and tells of no test.
    let silent = |(plan, mark): (&EvidencePlan, &EvidenceMark)| {
        segno_evidence::named_runner(&plan.command).filter(|_| !mark.passes && !mark.tells_tests)
    };
    let runners: Vec<&str> =
        plans.iter().zip(&measured.evidence).filter_map(silent).map(|runner| runner.name()).collect();
    (!runners.is_empty()).then(|| (runners.join(" + "), false))
}

/// The files with tests that these runners may run.
fn written_below(root: &Path, runners: &str) -> BTreeMap<String, UnloadedTests> {
    let mut found = BTreeMap::new();
    files_below(root, DEEP, &mut LOOKED_AT.clone(), &mut |path| {
        let file = path.strip_prefix(root).ok().map(|path| path.display().to_string());
        if let Some(file) = file.filter(|file| segno_evidence::may_run(runners, file)) {
            let written = written(root, &file);
            if written > 0 {
                found.insert(file, UnloadedTests { written, told: false });
            }
        }
    });
    found
}

fn written(root: &Path, file: &str) -> u64 {
    let text = || {
        let bytes = files::read_bounded(&root.join(file), LARGEST, Links::Follow).ok().flatten()?;
        String::from_utf8(bytes).ok()
    };
    // By its name alone it may be none.
    let known = segno_evidence::written_tests(file, "").and_then(|_| text());
    known.and_then(|text| segno_evidence::written_tests(file, &text)).unwrap_or(0)
}

/// Whether a text names a file: by its path, or as Python names its module.
fn names(text: &str, file: &str) -> bool {
    let module = file.strip_suffix(".py").map(|stem| stem.replace('/', "."));
    let has = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let inside = |c: char| c.is_alphanumeric() || c == '_';
            let before = text[..at].chars().next_back().is_some_and(inside);
            !before && !text[at + word.len()..].chars().next().is_some_and(inside)
        })
    };
    has(file) || module.is_some_and(|module| has(&module))
}

/// Which of the files that could not be loaded have fewer tests now, or are gone, or are not loaded although the tests run.
pub(crate) fn lost(
    before: &BTreeMap<String, UnloadedTests>,
    now: &BTreeMap<String, TestEnd>,
    root: &Path,
) -> Named {
    let mut lost = Named::default();
    let loaded = |file: &str| now.keys().any(|name| names(name, file));
    let mut elsewhere: Option<BTreeMap<String, UnloadedTests>> = None;
    for (file, then) in before {
        if written(root, file) < then.written {
            // It may have been moved.
            let there = elsewhere.get_or_insert_with(|| written_below(root, ""));
            let moved = there.iter().any(|(other, tests)| {
                let same = other.rsplit('/').next() == file.rsplit('/').next();
                same && !before.contains_key(other) && tests.written >= then.written
            });
            if !moved {
                lost.add(file);
            }
        } else if then.told && !now.is_empty() && file.ends_with(".py") && !loaded(file) {
            // Python names each test with its file; of others that is not known.
            lost.add(file);
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use segno_core::looping::TestCounts;

    use super::*;

    struct Yard(tempfile::TempDir);

    impl Yard {
        fn new(files: &[(&str, &str)]) -> Self {
            let yard = Self(tempfile::tempdir().unwrap());
            files.iter().for_each(|(name, text)| yard.write(name, text));
            yard
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn remove(&self, name: &str) {
            std::fs::remove_file(self.0.path().join(name)).unwrap();
        }

        fn unloaded(&self, measured: &Measured) -> BTreeMap<String, UnloadedTests> {
            unloaded(&[], measured, self.0.path())
        }

        fn lost(&self, before: &BTreeMap<String, UnloadedTests>, names: &[&str]) -> Vec<String> {
            let now = names.iter().map(|name| ((*name).to_owned(), TestEnd::Passed)).collect();
            lost(before, &now, self.0.path()).names
        }
    }

    const TEST: &str = "import feature\n\ndef test_n():\n    pass\n";

    fn broken_by(runner: &str, failing: &str, names: &[&str]) -> Measured {
        let tests = TestCounts {
            build_failed: true,
            total: 1,
            failed: 1,
            runner: runner.into(),
            ..TestCounts::default()
        };
        let names = names.iter().map(|name| ((*name).to_owned(), TestEnd::Passed)).collect();
        Measured { tests: Some(tests), names, failing: failing.into(), ..Measured::default() }
    }

    #[test]
    fn a_file_that_could_not_be_imported_may_not_go() {
        let yard = Yard::new(&[("test_old.py", TEST), ("test_new.py", TEST), ("tests/b.rs", "#[test]\n")]);
        let whole = Measured { tests: Some(TestCounts::default()), ..Measured::default() };
        assert!(yard.unloaded(&whole).is_empty(), "all could be loaded");
        let said = "ERROR: test_new (unittest.loader._FailedTest.test_new)\nImportError: Failed to import test module: test_new\n";
        let before = yard.unloaded(&broken_by("unittest", said, &["test_old.T.test_n"]));
        assert_eq!(before.keys().collect::<Vec<_>>(), ["test_new.py"]);
        assert!(yard.lost(&before, &["test_old.T.test_n", "test_new.T.test_n"]).is_empty());
        assert_eq!(
            yard.lost(&before, &["test_old.T.test_n"]),
            ["test_new.py"],
            "it is there, and not loaded"
        );
        yard.write("test_new.py", "import unittest\n");
        assert_eq!(yard.lost(&before, &["test_old.T.test_n"]), ["test_new.py"], "it is empty");
        yard.remove("test_new.py");
        assert_eq!(yard.lost(&before, &["test_old.T.test_n"]), ["test_new.py"]);
        yard.write("tests/test_new.py", TEST);
        assert!(yard.lost(&before, &["tests/test_new.py::test_n"]).is_empty(), "it was moved");
    }

    #[test]
    fn where_nothing_ran_every_file_of_tests_counts() {
        let yard =
            Yard::new(&[("tests/a.rs", "#[test]\n"), ("tests/b.rs", "#[test]\n"), ("test_x.py", TEST)]);
        let said = "error[E0425]: cannot find function `b`\n --> tests/b.rs:1:1\n";
        let before = yard.unloaded(&broken_by("cargo test", said, &[]));
        assert_eq!(before.keys().collect::<Vec<_>>(), ["tests/a.rs", "tests/b.rs"]);
        yard.remove("tests/a.rs");
        assert_eq!(yard.lost(&before, &["b::b"]), ["tests/a.rs"]);
    }
}
