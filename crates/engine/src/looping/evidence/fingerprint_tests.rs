//! A script that is made easier is another command, however it is reached.

use rstest::rstest;

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

    fn print(&self, command: &str) -> Fingerprint {
        fingerprint(command, self.0.path())
    }
}

/// Each row: the command, the file that is rewritten behind its back, and other files that are there.
#[rstest]
#[case("./check.sh", "check.sh", &[])]
#[case("sh check.sh", "check.sh", &[])]
#[case("cd . && bash ./check.sh --all", "check.sh", &[])]
#[case("env A=1 ./check.sh", "check.sh", &[])]
#[case("timeout 60 ./check.sh", "check.sh", &[])]
#[case("timeout -k 1 60 env -i bash check.sh", "check.sh", &[])]
#[case("bash -c './check.sh'", "check.sh", &[])]
#[case("sh -c \"timeout 5 ./check.sh\"", "check.sh", &[])]
#[case(". ./check.sh", "check.sh", &[])]
#[case("bash -c 'source check.sh && run_all'", "check.sh", &[])]
// What the script names in turn.
#[case("./check.sh", "lib.sh", &[("check.sh", "#!/bin/sh\n. ./lib.sh\n")])]
#[case("./ci/check.sh", "ci/lib.sh", &[("ci/check.sh", "#!/usr/bin/env bash\nsource \"$(dirname \"$0\")/lib.sh\"\n")])]
#[case("./ci/check.sh", "ci/lib.sh", &[("ci/check.sh", "DIR=$(cd \"$(dirname \"$0\")\" && pwd)\n. \"$DIR/lib.sh\"\n")])]
#[case("./a.sh", "c.sh", &[("a.sh", "if ./b.sh; then true; fi"), ("b.sh", "timeout 9 bash c.sh")])]
// Targets of a Makefile, scripts of a package, recipes.
#[case("make test", "Makefile", &[("Makefile", "test:\n\ttrue\n")])]
#[case("make test", "scripts/check.sh", &[("Makefile", "D = scripts\ntest: lint\n\t@$(D)/check.sh\nlint:\n\ttrue\n")])]
#[case("make", "rules.mk", &[("Makefile", "include rules.mk\nall:\n\ttrue\n")])]
#[case("make -C sub test", "sub/check.sh", &[("sub/Makefile", "test:\n\tsh check.sh\n")])]
#[case("npm test", "package.json", &[("package.json", r#"{"scripts":{"test":"jest"}}"#)])]
#[case("npm test", "ci/check.sh", &[("package.json", r#"{"scripts":{"pretest":"sh ci/check.sh","test":"jest"}}"#)])]
#[case("yarn unit", "run.js", &[("package.json", r#"{"scripts":{"unit":"node run.js"}}"#)])]
#[case("just check", "check.sh", &[("justfile", "check:\n    ./check.sh\n")])]
// Given to a shell, found by a variable, a pattern, or another program.
#[case("sh < sub/check.sh", "sub/check.sh", &[])]
#[case("cat sub/check | sh", "sub/check", &[])]
#[case("S=sub; sh $S/check.sh", "sub/check.sh", &[])]
#[case("sh sub/ch*.sh", "sub/check.sh", &[])]
#[case("env -C sub sh -c ../sub/check.sh", "sub/check.sh", &[])]
#[case("taskset 1 sub/check.sh", "sub/check.sh", &[])]
#[case("newtool --fast sub/check.sh", "sub/check.sh", &[])]
#[case("find sub -name check.sh -exec {} \\;", "sub/deep/check.sh", &[])]
#[case("for f in sub/check.sh; do sh $f; done", "sub/check.sh", &[])]
#[case("PATH=sub:$PATH check.sh", "sub/check.sh", &[])]
#[case("python3 -c 'import os; os.execv(\"sub/check.sh\", [])'", "sub/check.sh", &[])]
#[case("make test", "z.mk", &[("Makefile", "include *.mk\ntest:\n\ttrue\n")])]
#[case("python3 -m pytest", "pytest.py", &[])]
// Other languages.
#[case("python3 tools/check.py", "tools/check.py", &[])]
#[case("python -m tools.check", "tools/check.py", &[])]
#[case("uv run python tools/check.py", "tools/check.py", &[])]
fn a_rewritten_script_is_another_command(
    #[case] command: &str,
    #[case] rewritten: &str,
    #[case] others: &[(&str, &str)],
) {
    let yard = Yard::new(&[(rewritten, "exit 1\n"), ("src/lib.rs", "one")]);
    others.iter().for_each(|(name, text)| yard.write(name, text));
    let before = yard.print(command);
    yard.write("src/lib.rs", "two");
    assert_eq!(yard.print(command), before, "other files are none of its business");
    let text = if rewritten == "package.json" { r#"{"scripts":{"test":"true"}}"# } else { "exit 0\n" };
    yard.write(rewritten, text);
    let after = yard.print(command);
    assert_ne!(after.command, before.command);
    assert_eq!(changed(&before.files, &after.files).0, [rewritten]);
}

#[rstest]
#[case("pytest -q", "conftest.py")]
#[case("python -m pytest", "tests/unit/conftest.py")]
#[case("timeout 60 pytest", "pytest.ini")]
#[case("uv run pytest", "pytest.ini")]
#[case("npx jest", "jest.config.js")]
#[case("vitest run", "vitest.config.ts")]
#[case("cargo test", ".cargo/config.toml")]
#[case("cargo nextest run", ".config/nextest.toml")]
#[case("make test", "conftest.py")]
#[case("pytest build/t", "build/t/conftest.py")]
#[case("pytest build/t/test_a.py", "build/conftest.py")]
#[case(".venv/bin/pytest", "conftest.py")]
#[case("vitest run", "vite.config.mjs")]
#[case("vitest run", "vitest.config.cts")]
fn settings_of_a_test_runner_are_told_apart_from_scripts(#[case] command: &str, #[case] rewritten: &str) {
    let yard = Yard::new(&[("Makefile", "test:\n\tpytest\n"), ("tests/test_a.py", "def test_a(): pass\n")]);
    yard.write("build/t/test_a.py", "def test_a(): pass\n");
    let before = yard.print(command);
    yard.write("tests/test_a.py", "def test_a(): assert False\n");
    assert_eq!(yard.print(command), before, "tests are compared by name");
    yard.write(rewritten, "anything");
    let after = yard.print(command);
    assert_eq!(after.command, before.command);
    assert_ne!(after.settings, before.settings);
    assert_eq!(changed(&before.files, &after.files), (vec![], vec![rewritten.to_owned()]));
}

#[test]
fn what_does_not_matter_may_change() {
    let yard = Yard::new(&[
        ("package.json", r#"{"scripts":{"test":"jest"},"dependencies":{}}"#),
        ("pyproject.toml", "[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n"),
        ("Makefile", "test:\n\ttrue\ndeploy:\n\t./deploy.sh\n"),
        ("deploy.sh", "one"),
    ]);
    let all = || ["npm test", "pytest", "make test", "cargo test"].map(|command| yard.print(command));
    let before = all();
    yard.write("package.json", r#"{"scripts":{"test":"jest"},"dependencies":{"a":"1"}}"#);
    yard.write("pyproject.toml", "[project]\nname = \"b\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n");
    yard.write("deploy.sh", "two");
    assert_eq!(all(), before);
    yard.write(
        "pyproject.toml",
        "[project]\nname = \"b\"\n[tool.pytest.ini_options]\naddopts = \"-k none\"\n",
    );
    assert_ne!(yard.print("pytest").settings, before[1].settings);
}

/// The part of a file that says whether tests are run, and by whom.
#[rstest]
#[case("cargo test", "m/Cargo.toml", "[[test]]\nname=\"a\"\nharness=false\n", true)]
#[case("cargo test", "m/Cargo.toml", "[[bench]]\nname=\"a\"\nharness=false\n", false)]
#[case("cargo test", "m/Cargo.toml", "[dependencies]\ntime = \"1\"\n", false)]
#[case("python3 -m pytest", "evil-1.dist-info/entry_points.txt", "[pytest11]\nevil = evilplug\n", true)]
#[case("pytest", "mine.egg-info/entry_points.txt", "[console_scripts]\nmine = mine:main\n", false)]
fn parts_of_files_that_decide_what_tests_are_worth(
    #[case] command: &str,
    #[case] file: &str,
    #[case] text: &str,
    #[case] differs: bool,
) {
    let yard =
        Yard::new(&[("Cargo.toml", "[workspace]\nmembers=[\"m\"]\n"), ("m/Cargo.toml", "[package]\n")]);
    let before = yard.print(command);
    yard.write(file, text);
    let after = yard.print(command);
    assert_eq!(after.command, before.command);
    assert_eq!(after.settings != before.settings, differs);
}

/// Files that a command only looks at are the work: they may change, scripts or not.
#[rstest]
#[case("grep -q upper check.sh")]
#[case("cmp expected.txt out.txt")]
#[case("shellcheck check.sh && sh -c 'test -x check.sh'")]
#[case("for t in tests/*.sh; do sh \"$t\" || exit 1; done")]
#[case("newtool words.py out.txt")]
#[case("bats tests/a.sh")]
#[case("python3 -c 'import words; open(\"out.txt\")'")]
fn what_a_command_only_looks_at_may_change(#[case] command: &str) {
    let files = ["check.sh", "words.py", "out.txt", "expected.txt", "tests/a.sh"];
    let yard = Yard::new(&files.map(|name| (name, "one\n")));
    let before = yard.print(command);
    files.iter().for_each(|name| yard.write(name, "two\n"));
    yard.write("tests/b.sh", "new\n");
    assert_eq!(yard.print(command), before);
}

/// A script may lie anywhere; what belongs to the system is what its name says.
#[test]
fn scripts_outside_the_project_are_followed() {
    let outside = Yard::new(&[("check.sh", "exit 1\n"), ("lib.sh", "true\n")]);
    let there = outside.0.path().display().to_string();
    let yard = Yard::new(&[("a.sh", "true\n")]);
    std::os::unix::fs::symlink(yard.0.path(), outside.0.path().join("link")).unwrap();
    let up = format!("../{}/check.sh", outside.0.path().file_name().unwrap().to_str().unwrap());
    for (command, file) in [
        (format!("{there}/check.sh"), "check.sh"),
        (format!("sh {there}/check.sh"), "lib.sh"),
        (up, "check.sh"),
    ] {
        outside.write("check.sh", &format!(". {there}/lib.sh\n"));
        outside.write("lib.sh", "one\n");
        let before = yard.print(&command);
        outside.write(file, "exit 0\n");
        let after = yard.print(&command);
        assert_ne!(after.command, before.command, "{command}");
        assert_eq!(changed(&before.files, &after.files).0[0], format!("{there}/{file}"));
    }
    let through = format!("{there}/link/a.sh");
    let before = yard.print(&through);
    yard.write("a.sh", "exit 0\n");
    assert_ne!(yard.print(&through).command, before.command);
}

#[test]
fn what_belongs_to_the_system_is_not_read_and_circles_end() {
    let yard = Yard::new(&[("a.sh", "./b.sh; /usr/bin/x.sh; sh /etc/passwd\n"), ("b.sh", "./a.sh\n")]);
    let files: Vec<String> = yard.print("./a.sh").files.into_keys().collect();
    assert_eq!(files, ["a.sh", "b.sh"]);
    // A script that is not there yet is noted: when somebody writes it, it is another one.
    let before = yard.print("./later.sh");
    yard.write("later.sh", "exit 0");
    assert_eq!(changed(&before.files, &yard.print("./later.sh").files).0, ["later.sh"]);
}
