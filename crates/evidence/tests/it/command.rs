//! Which files a command is made of.

use segno_evidence::Need;
use segno_evidence::NeedIn;
use segno_evidence::make_recipes;
use segno_evidence::masked_runner;
use segno_evidence::needs;
use segno_evidence::recipes;
use segno_evidence::sections;

/// Each need in short: where, and what.
fn short(text: &str) -> Vec<String> {
    let one = |NeedIn { directory, need }: NeedIn| {
        let what = match need {
            Need::ShellScript(file) => format!("shell {file}"),
            Need::Script(file) => format!("script {file}"),
            Need::Given(file) => format!("given {file}"),
            Need::Perhaps(word) => format!("perhaps {word}"),
            Need::Module(name) => format!("module {name}"),
            Need::Make { file, targets } => {
                format!("make {} {}", file.as_deref().unwrap_or("-"), targets.join(","))
            }
            Need::Just { file } => format!("just {}", file.as_deref().unwrap_or("-")),
            Need::PackageScript(name) => format!("package {name}"),
            Need::Settings(toolkit) => format!("{toolkit:?}"),
        };
        if directory.is_empty() { what } else { format!("{directory}: {what}") }
    };
    needs(text).into_iter().map(one).collect()
}

#[test]
fn what_commands_name() {
    for (text, expected) in [
        ("./check.sh", &["shell ./check.sh"][..]),
        ("sh check.sh", &["shell check.sh"]),
        ("bash -eu -o pipefail scripts/check", &["shell scripts/check"]),
        ("bash -c './a.sh && ./b.sh'", &["shell ./a.sh", "shell ./b.sh"]),
        ("sh -ec \"sh -c './deep.sh'\"", &["shell ./deep.sh"]),
        ("env -i PATH=/bin ./check.sh", &["shell ./check.sh"]),
        ("env -S './check.sh --all'", &["shell ./check.sh"]),
        ("timeout -k 5 60 ./check.sh", &["shell ./check.sh"]),
        ("timeout 60 env A=b nice -n 5 bash check.sh", &["shell check.sh"]),
        ("A=1 B=2 ./check.sh", &["shell ./check.sh"]),
        (". ./lib.sh; source env.sh", &["shell ./lib.sh", "shell env.sh"]),
        ("eval './x.sh'", &["shell ./x.sh"]),
        ("if ! ./a.sh; then ./b.sh; fi", &["shell ./a.sh", "shell ./b.sh"]),
        ("test \"$(./count.sh)\" -ge 3", &["shell ./count.sh"]),
        ("./a.sh > out 2>&1 | tee log", &["shell ./a.sh"]),
        ("cat <<END | sh run.sh\n./not_this.sh\nEND\n./this.sh", &["shell run.sh", "shell ./this.sh"]),
        ("./a.sh # ./b.sh", &["shell ./a.sh"]),
        ("cd web && ./check.sh", &["web: shell ./check.sh"]),
        ("make test", &["make - test"]),
        ("make -C sub -f Rules.mk -j 4 CC=gcc check lint", &["sub: make Rules.mk check,lint"]),
        ("just check", &["just -"]),
        ("npm test", &["Npm", "package test"]),
        ("npm --prefix web run unit -- --ci", &["Npm", "web: package unit"]),
        ("yarn lint", &["Npm", "package lint"]),
        ("npm ci", &["Npm"]),
        ("npx jest --ci", &["Npm", "Jest"]),
        ("pytest -q", &["Pytest"]),
        ("python3 -m pytest -c ci.ini tests", &["module pytest", "Pytest", "script ci.ini", "tests: Pytest"]),
        (
            "pytest build/t/test_a.py::test_b -k fast",
            &["Pytest", "build/t/test_a.py: Pytest", "fast: Pytest"],
        ),
        (".venv/bin/pytest", &["shell .venv/bin/pytest", "Pytest"]),
        ("uv run pytest", &["Pytest"]),
        ("poetry run python tools/check.py", &["script tools/check.py"]),
        ("coverage run -m pytest", &["module pytest", "Pytest"]),
        ("python -m tools.check", &["module tools.check"]),
        ("python -c 'import sys'", &[]),
        ("node scripts/check.js", &["script scripts/check.js"]),
        ("node --test", &[]),
        ("cargo nextest run", &["Cargo"]),
        ("/usr/bin/env bash check.sh", &["shell check.sh"]),
        ("test -f sail", &[]),
        ("", &[]),
        // What a shell or an interpreter gets to read.
        ("sh < sub/check.sh", &["given sub/check.sh"]),
        ("sh -s -- x < sub/check.sh", &["given sub/check.sh"]),
        ("cat sub/check.sh | sh", &["given sub/check.sh"]),
        ("cat sub/check.sh | tr a b | env A=1 bash", &["given sub/check.sh", "given a", "given b"]),
        ("python3 - < run.py", &["given run.py"]),
        ("./prog < input.txt", &["shell ./prog"]),
        ("echo sub/check.sh | xargs sh", &["given sub/check.sh"]),
        // Names that are put together from what stands there.
        ("S=sub; sh $S/check.sh", &["shell sub/check.sh"]),
        ("export S=sub && sh ${S}/check.sh $SS", &["shell sub/check.sh"]),
        ("S=$(pwd); sh $S/check.sh", &["shell $S/check.sh"]),
        ("for f in sub/check.sh; do sh $f; done", &["shell sub/check.sh"]),
        ("for f in a.sh b.sh; do sh $f; done", &["perhaps a.sh", "perhaps b.sh", "shell $f"]),
        ("for f in tests/*.sh; do sh \"$f\"; done", &["shell $f"]),
        ("PATH=sub:$PATH check.sh", &["given sub/check.sh"]),
        ("export PATH=sub:$PATH; check.sh -x", &["given sub/export", "given sub/check.sh"]),
        // Other wrappers, in other directories, and programs that nobody knows.
        ("env -C sub ../check.sh && ./b.sh", &["sub: shell ../check.sh", "shell ./b.sh"]),
        ("taskset 1 sub/check.sh", &["shell sub/check.sh"]),
        ("chrt -o 0 sub/check.sh", &["shell sub/check.sh"]),
        ("prlimit --nofile=9 sub/check.sh", &["shell sub/check.sh"]),
        ("unshare -r sub/check.sh", &["shell sub/check.sh"]),
        ("faketime 'last friday' sub/check.sh", &["shell sub/check.sh"]),
        ("bwrap --bind / / sub/check.sh", &["perhaps /", "perhaps sub/check.sh"]),
        ("newtool 3 sh sub/check", &["perhaps 3", "perhaps sh", "perhaps sub/check", "shell sub/check"]),
        ("find sub -name check.sh -exec {} \\;", &["given sub/**/check.sh"]),
        ("find . -name '*.sh' -exec sh {} +", &[]),
        ("find sub -type f -exec sh sub/check.sh \\;", &["shell sub/check.sh"]),
        (
            "python3 -c 'import subprocess; subprocess.call([\"sh\", \"sub/check.sh\"])'",
            &["perhaps subprocess.call", "perhaps sub/check.sh"],
        ),
        // Programs that only look at files.
        ("grep -q upper words.py", &[]),
        ("cmp expected.txt out.txt", &[]),
        ("shellcheck install.sh", &[]),
    ] {
        assert_eq!(short(text), expected, "{text}");
    }
}

#[test]
fn the_commands_behind_a_target() {
    let text = "DIR := scripts\nCHECK = $(DIR)/check.sh\nexport X=1\n.PHONY: test\n\nall: build\n\ttrue\n\n\
                test: unit lint # all of it\n\t@$(CHECK) \\\n\t  --all\n\nunit:\n\t-cd web && npm test\n\n\
                lint: ; ./lint.sh\n\ndeploy:\n\t./deploy.sh $$HOME\n\ninclude rules.mk\n";
    let (commands, includes) = make_recipes(text, &["test".to_owned()]);
    assert_eq!(
        short(&commands),
        ["shell scripts/check.sh", "shell ./lint.sh", "web: Npm", "web: package test"]
    );
    assert_eq!(includes, ["rules.mk"]);
    let (first, _) = make_recipes(text, &[]);
    assert_eq!(first, "true\n", "the first target is the usual one");
    let (deploy, _) = make_recipes(text, &["deploy".to_owned()]);
    assert_eq!(deploy, "./deploy.sh $HOME\n");
    assert_eq!(make_recipes("a: b\nb: a\n\ttrue\n", &["a".to_owned()]).0, "true\n", "a circle ends");
}

#[test]
fn recipes_and_sections() {
    assert_eq!(
        short(&recipes("check: build\n    @./check.sh\n\nbuild:\n\tcargo build\n")),
        ["shell ./check.sh", "Cargo"]
    );
    let text =
        "[project]\nname = \"x\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n[tool.black]\nline = 1\n";
    assert_eq!(sections(text, &["[tool.pytest"]), "[tool.pytest.ini_options]\naddopts = \"-q\"\n");
}

/// What hides the exit status of the tests, and whether it succeeds whatever they do.
#[test]
fn exit_statuses_that_say_nothing_of_the_tests() {
    for (text, wanted) in [
        ("pytest", None),
        ("pytest -q && mypy .", None),
        ("mypy . && pytest", None),
        ("pytest > log.txt 2>&1", None),
        ("pytest &> log.txt", None),
        ("if pytest; then echo ok; else exit 1; fi", None),
        ("! pytest", None),
        ("pytest || exit 1", None),
        ("pytest || { echo bad; exit 1; }", None),
        ("pytest; st=$?; echo done; exit $st", None),
        ("set -e; pytest; echo done", None),
        ("bash -ec 'pytest; echo done'", None),
        ("bash -c 'set -o pipefail; pytest | tail -3'", None),
        ("for d in a b; do (cd $d && pytest) || exit 1; done", None),
        ("./check.sh | tail -3", None),
        ("test \"$(pytest | tail -1)\" = OK", None),
        ("python3 -m unittest -v 2>&1 | tail -3", Some(("| tail -3", true))),
        ("(cd sub && pytest) | cat", Some(("| cat", true))),
        ("{ pytest; } | tail -1", Some(("| tail -1", true))),
        ("pytest | tee log.txt", Some(("| tee log.txt", true))),
        ("pytest |& tee log | tail", Some(("| tee log", true))),
        ("pytest -q || true", Some(("|| true", true))),
        ("pytest -q; echo done", Some(("; echo done", true))),
        ("pytest -q > log; true", Some(("; true", true))),
        ("sh -c 'pytest || :'", Some(("|| :", true))),
        ("sh -c pytest | cat", Some(("| cat", true))),
        ("pytest &", Some(("&", true))),
        // These may fail by themselves.
        ("pytest | grep -q passed", Some(("| grep -q passed", false))),
        ("pytest; mypy .", Some(("; mypy .", false))),
    ] {
        let masked = masked_runner(text).map(|masked| (masked.by, masked.always));
        assert_eq!(masked, wanted.map(|(by, always)| (by.to_owned(), always)), "{text}");
    }
}

proptest::proptest! {
    /// Whatever the text is, reading it ends and panics nowhere.
    #[test]
    fn any_text_is_read(text in "[ -~\n]{0,200}") {
        let _ = needs(&text);
        let _ = masked_runner(&text);
        let _ = make_recipes(&text, &[]);
    }
}
