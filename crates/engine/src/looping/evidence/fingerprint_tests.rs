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
fn settings_of_a_test_runner_are_told_apart_from_scripts(#[case] command: &str, #[case] rewritten: &str) {
    let yard = Yard::new(&[("Makefile", "test:\n\tpytest\n"), ("tests/test_a.py", "def test_a(): pass\n")]);
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

#[test]
fn nothing_outside_the_project_is_read_and_circles_end() {
    let yard = Yard::new(&[("a.sh", "./b.sh; ../../etc/x.sh; /etc/passwd\n"), ("b.sh", "./a.sh\n")]);
    let files: Vec<String> = yard.print("./a.sh").files.into_keys().collect();
    assert_eq!(files, ["a.sh", "b.sh"]);
    // A script that is not there yet is noted: when somebody writes it, it is another one.
    let before = yard.print("./later.sh");
    yard.write("later.sh", "exit 0");
    assert_eq!(changed(&before.files, &yard.print("./later.sh").files).0, ["later.sh"]);
}
