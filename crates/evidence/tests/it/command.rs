//! Which files a command is made of.

use segno_evidence::Need;
use segno_evidence::NeedIn;
use segno_evidence::make_recipes;
use segno_evidence::needs;
use segno_evidence::recipes;
use segno_evidence::sections;

/// Each need in short: where, and what.
fn short(text: &str) -> Vec<String> {
    let one = |NeedIn { directory, need }: NeedIn| {
        let what = match need {
            Need::ShellScript(file) => format!("shell {file}"),
            Need::Script(file) => format!("script {file}"),
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
        ("python3 -m pytest -c ci.ini tests", &["Pytest", "script ci.ini"]),
        ("uv run pytest", &["Pytest"]),
        ("poetry run python tools/check.py", &["script tools/check.py"]),
        ("coverage run -m pytest", &["Pytest"]),
        ("python -m tools.check", &["module tools.check"]),
        ("python -c 'import sys'", &[]),
        ("node scripts/check.js", &["script scripts/check.js"]),
        ("node --test", &[]),
        ("cargo nextest run", &["Cargo"]),
        ("/usr/bin/env bash check.sh", &["shell check.sh"]),
        ("test -f sail", &[]),
        ("", &[]),
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

proptest::proptest! {
    /// Whatever the text is, reading it ends and panics nowhere.
    #[test]
    fn any_text_is_read(text in "[ -~\n]{0,200}") {
        let _ = needs(&text);
        let _ = make_recipes(&text, &[]);
    }
}
